//! Labels, tables and cells of a run's text.

use crate::format;
use brimful_core::quantity::seconds;

/// The names of httperf's figures stand in this many columns.
const NAMES: usize = 17;

/// A figure of httperf's; without a label it goes on with the one above.
pub fn labelled(label: &str, what: &str) -> String {
    format::labelled(label, what, NAMES).trim_end().to_owned()
}

/// One of the lines that everybody reads.
pub fn fact(label: &str, what: &str) -> String {
    format::fact(label, what).trim_end().to_owned()
}

/// A name, and what stands beside it.
pub fn row(head: &str, cells: impl IntoIterator<Item = String>) -> Vec<String> {
    [head.to_owned()].into_iter().chain(cells).collect()
}

/// The first column to the left, the others to the right.
pub fn table(heads: &[&str], rows: &[Vec<String>]) -> String {
    let column = |(i, head)| if i == 0 { format::words(head, 0) } else { format::figure(head, 2, None) };
    let columns: Vec<_> = heads.iter().copied().enumerate().map(column).collect();
    format::table(&columns, rows).trim_end().to_owned()
}

pub fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

/// Microseconds.
pub fn time(us: f64) -> String {
    seconds(us / 1e6)
}

/// Microseconds, if they were measured.
pub fn time_or_dash(us: Option<f64>) -> String {
    us.map_or("-".to_owned(), time)
}
