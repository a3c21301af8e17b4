//! Labels, tables and cells of a run's text.

use brimful_core::quantity::seconds;

/// A line of a group; without a label it goes on with the one above.
pub fn labelled(label: &str, what: &str) -> String {
    format!("{label:<15}  {what}")
}

/// A name, and what stands beside it.
pub fn row(head: &str, cells: impl IntoIterator<Item = String>) -> Vec<String> {
    [head.to_owned()].into_iter().chain(cells).collect()
}

/// The first column to the left, as wide as the labels of the groups; the others to the right.
pub fn table(rows: &[Vec<String>]) -> Vec<String> {
    let width = |column: usize| rows.iter().map(|r| r[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..rows.first().map_or(0, Vec::len)).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| match column {
            0 => format!("{cell:<0$}", width.max(15)),
            _ => format!("  {cell:>0$}", width.max(9)),
        });
        cells.collect::<String>()
    };
    rows.iter().map(line).collect()
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
