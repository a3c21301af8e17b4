//! Labels, tables and cells of the text report of a run.

use crate::format;
use brimful_core::quantity::seconds;

/// Width of the names of httperf's metrics to the left of their values, in characters.
const NAMES: usize = 17;

/// Formats a line of httperf's metrics: a name and its text. With an empty name, the text continues the previous line.
pub fn labelled(label: &str, what: &str) -> String {
    format::labelled(label, what, NAMES).trim_end().to_owned()
}

/// Formats a line of the main results: a name and its text.
pub fn fact(label: &str, what: &str) -> String {
    format::fact(label, what).trim_end().to_owned()
}

/// Returns the cells of a table row: `head`, then `cells`.
pub fn row(head: &str, cells: impl IntoIterator<Item = String>) -> Vec<String> {
    [head.to_owned()].into_iter().chain(cells).collect()
}

/// Formats a table with these titles. The first column is aligned left, the others right.
pub fn table(heads: &[&str], rows: &[Vec<String>]) -> String {
    let column = |(i, head)| if i == 0 { format::words(head, 0) } else { format::figure(head, 2, None) };
    let columns: Vec<_> = heads.iter().copied().enumerate().map(column).collect();
    format::table(&columns, rows).trim_end().to_owned()
}

/// Returns `part` divided by `whole`; `None` if `whole` is zero.
pub fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

/// Formats a time that is given in microseconds.
pub fn time(us: f64) -> String {
    seconds(us / 1e6)
}

/// Formats a time that is given in microseconds; a dash if the time was not measured.
pub fn time_or_dash(us: Option<f64>) -> String {
    us.map_or("-".to_owned(), time)
}
