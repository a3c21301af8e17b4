//! Formats values and tables of the server's metrics.

use crate::format::{Column, figure, key, table, width, words};
use brimful_core::quantity::{self, percent};
use brimful_core::server::Elapsed;
use brimful_core::text::one_line;

/// The text that replaces an unknown value.
pub const UNKNOWN_MARK: &str = "–";

/// Formats a table with a row for each field and a column for each name. A table that is too wide is split into
/// several.
pub fn facts(title: &str, names: &[&str], fields: Vec<(&str, Vec<String>)>) -> String {
    const CELL_WIDTH: usize = 14;
    let per_block = ((width() - 26) / (CELL_WIDTH + 1)).max(1);
    let columns = fields.first().map_or(0, |(_, cells)| cells.len());
    let mut text = String::new();
    for block in (0..columns).step_by(per_block) {
        let block = block..(block + per_block).min(columns);
        let names: String = names
            .get(block.clone())
            .unwrap_or_default()
            .iter()
            .map(|name| format!(" {:>CELL_WIDTH$}", one_line(name)))
            .collect();
        text += format!("{title:<25}{names}").trim_end();
        text += "\n";
        for (field, cells) in &fields {
            let cells: String = cells[block.clone()].iter().map(|cell| format!(" {cell:>CELL_WIDTH$}")).collect();
            text += &format!("  {field:<23}{cells}\n");
        }
    }
    text
}

/// Formats a table with these column titles. A table that is too wide is split into several.
pub fn rows(titles: &[&str], rows: &[Vec<String>]) -> String {
    let padded: Vec<String> = titles.iter().map(|title| format!("{title:>6}")).collect();
    let first = format!("{:<13}", titles.first().copied().unwrap_or_default());
    let figures = padded.iter().skip(1).map(|title| figure(title, 2, None));
    let columns: Vec<Column<'_>> = std::iter::once(key(words(&first, 0))).chain(figures).collect();
    let indented = |row: &Vec<String>| {
        let mut row = row.clone();
        row.iter_mut().take(1).for_each(|name| name.insert_str(0, "  "));
        row
    };
    table(&columns, &rows.iter().map(indented).collect::<Vec<_>>())
}

/// Formats a table of times, one row for each name. A row of dashes means that the times were not measured.
pub fn times<'n>(title: &str, named: impl IntoIterator<Item = (&'n str, Option<Elapsed>)>) -> String {
    let us = |us: f64| seconds(Some(us / 1e6));
    let row = |(name, times): (&str, Option<Elapsed>)| {
        let cells = times.map_or(vec![UNKNOWN_MARK.to_owned(); 6], |times| {
            let Elapsed { count, mean, stddev, p50, p90, p99 } = times;
            [quantity::count(count)].into_iter().chain([mean, stddev, p50, p90, p99].map(us)).collect()
        });
        [name.to_owned()].into_iter().chain(cells).collect()
    };
    let found: Vec<Vec<String>> = named.into_iter().map(row).collect();
    rows(&[title, "count", "mean", "stddev", "p50", "p90", "p99"], &found)
}

/// Formats a number; a dash if it is unknown.
pub fn number(value: Option<f64>) -> String {
    value.map_or(UNKNOWN_MARK.to_owned(), quantity::compact)
}

/// Formats a count; a dash if it is unknown.
pub fn count(n: Option<u64>) -> String {
    n.map_or(UNKNOWN_MARK.to_owned(), quantity::count)
}

/// Formats a share as a percentage; a dash if it is unknown.
pub fn share(share: Option<f64>) -> String {
    share.map_or(UNKNOWN_MARK.to_owned(), percent)
}

/// Formats a number of bytes; a dash if it is unknown.
pub fn bytes(bytes: Option<u64>) -> String {
    bytes.map_or(UNKNOWN_MARK.to_owned(), |bytes| quantity::bytes(bytes as f64))
}

/// Formats a time that is given in seconds; a dash if it is unknown.
pub fn seconds(seconds: Option<f64>) -> String {
    seconds.map_or(UNKNOWN_MARK.to_owned(), quantity::seconds)
}
