//! Formats numbers, tables and wrapped text for terminals. An unknown value is shown as `-`.

use brimful_core::comparison::MetricUnit;
use brimful_core::record::Machine;
use brimful_core::text::one_line;
use brimful_core::{quantity, text};
use std::cell::Cell;
use std::collections::BTreeMap;

/// Default width of lines in files and pipes, in columns. It is also the maximum width of running text.
pub const DEFAULT_WIDTH: usize = 100;
/// Minimum width of lines, in columns. On a narrower terminal, lines are still this long.
const MIN_WIDTH: usize = 40;
/// Width of the names to the left of a report's lines, in characters; see [`fact`].
pub(crate) const NAME_COLUMN_WIDTH: usize = 12;

thread_local! {
    static CURRENT_WIDTH: Cell<usize> = const { Cell::new(DEFAULT_WIDTH) };
}

/// Calls `body`, and formats all texts within it for lines of this number of columns.
pub fn with_width<T>(columns: usize, body: impl FnOnce() -> T) -> T {
    let former = CURRENT_WIDTH.replace(columns.max(MIN_WIDTH));
    let result = body();
    CURRENT_WIDTH.set(former);
    result
}

/// Current maximum width of a line of a table, in columns.
pub(crate) fn width() -> usize {
    CURRENT_WIDTH.get()
}

/// Formats a value with this function; `-` if the value is unknown.
fn known(value: Option<f64>, format: fn(f64) -> String) -> String {
    value.map_or("-".to_owned(), format)
}

/// Formats a number; `-` if it is unknown.
pub(crate) fn number(value: Option<f64>) -> String {
    known(value, quantity::number)
}

/// Formats a rate per second; `-` if it is unknown.
pub(crate) fn rate(value: Option<f64>) -> String {
    known(value, quantity::rate)
}

/// Formats a duration that is given in seconds; `-` if it is unknown.
pub(crate) fn seconds(value: Option<f64>) -> String {
    known(value, quantity::seconds)
}

/// Formats a share as a percentage; `-` if it is unknown.
pub(crate) fn percent(value: Option<f64>) -> String {
    known(value, quantity::percent)
}

/// Formats the value of a metric in this unit; `-` if it is unknown.
pub(crate) fn in_unit(unit: MetricUnit, value: Option<f64>) -> String {
    match unit {
        MetricUnit::PerSecond => rate(value),
        MetricUnit::Seconds => seconds(value),
        MetricUnit::Share => percent(value),
    }
}

/// Formats a relative error as a signed percentage; `-` if it is unknown.
pub(crate) fn error(value: Option<f64>) -> String {
    known(value, quantity::signed_percent)
}

/// Formats the interval from `low` to `high`, both by the function `figure`. If both ends have the same unit, it is
/// written once: `8.61 … 9.93 ms`.
pub(crate) fn interval(low: f64, high: f64, figure: fn(Option<f64>) -> String) -> String {
    let (low, high) = (figure(Some(low)), figure(Some(high)));
    let unit = |text: &str| text.find(' ').map_or(String::new(), |at| text[at..].to_owned());
    let short = low.strip_suffix(&unit(&high)).unwrap_or(&low);
    format!("{short} … {high}")
}

/// Shortens a text to `width` characters, and marks this by `…` at the end. Cuts the text after a word if this keeps at
/// least half of the width.
pub(crate) fn shorten(text: &str, width: usize) -> String {
    match text.char_indices().nth(width.saturating_sub(1)) {
        Some((end, _)) if text.chars().count() > width => {
            let start = &text[..end];
            let words = start.rfind(' ').filter(|words| 2 * words > end || text[end..].starts_with(' '));
            format!("{}…", start[..words.unwrap_or(end)].trim_end())
        }
        _ => text.to_owned(),
    }
}

/// One column of a table.
#[derive(Clone, Copy)]
pub(crate) struct Column<'a> {
    /// Title of the column.
    pub(crate) title: &'a str,
    /// Number of spaces between the previous column and this one.
    pub(crate) gap: usize,
    /// Whether the cells contain words, which are aligned left, rather than numbers, which are aligned right.
    pub(crate) words: bool,
    /// Title of a group of columns that begins with this column. The group ends before the next column with a group
    /// title.
    pub(crate) group: Option<&'a str>,
    /// Whether the column identifies the rows, as the first column always does.
    pub(crate) key: bool,
}

/// A column of words, `gap` spaces to the right of the previous column.
pub(crate) const fn words(title: &str, gap: usize) -> Column<'_> {
    Column { title, gap, words: true, group: None, key: false }
}

/// A column of numbers, `gap` spaces to the right of the previous column.
pub(crate) const fn figure<'a>(title: &'a str, gap: usize, group: Option<&'a str>) -> Column<'a> {
    Column { title, gap, words: false, group, key: false }
}

/// The same column, which identifies the rows.
pub(crate) const fn key(column: Column<'_>) -> Column<'_> {
    Column { key: true, ..column }
}

/// Formats a table with aligned columns. If it is too wide, it is split as by [`narrow`]. No line ends in a space.
pub(crate) fn table(columns: &[Column<'_>], rows: &[Vec<String>]) -> String {
    narrow(columns.to_vec(), rows.to_vec(), &[])
}

/// Formats a table, and makes it narrower until it fits the width. First, cells of words are shortened to half of the
/// width. Then the columns with titles in `dispensable` are left out, one by one. If the table is still too wide, it is
/// split into several tables, one below the other, which all begin with the columns that identify the rows.
pub(crate) fn narrow(columns: Vec<Column<'_>>, mut rows: Vec<Vec<String>>, dispensable: &[&str]) -> String {
    for row in &mut rows {
        for (cell, _) in row.iter_mut().zip(&columns).filter(|(_, column)| column.words) {
            *cell = shorten(cell, width() / 2);
        }
    }
    let mut shown: Vec<usize> = (0..columns.len()).collect();
    let widths: Vec<usize> = columns.iter().enumerate().map(|(i, column)| width_of(column, i, &rows)).collect();
    let room = |shown: &[usize]| shown.iter().map(|i| columns[*i].gap + widths[*i]).sum::<usize>();
    let fits = |shown: &[usize]| room(shown) <= width() && groups(&columns, &widths, shown).chars().count() <= width();
    for title in [None].into_iter().chain(dispensable.iter().copied().map(Some)) {
        if let Some(dispensed) = shown.iter().position(|i| title == Some(columns[*i].title)) {
            shown.remove(dispensed);
        }
        if fits(&shown) {
            return block(&columns, &widths, &shown, &rows);
        }
    }
    stacked(&columns, fits).iter().map(|shown| block(&columns, &widths, shown, &rows)).collect::<Vec<_>>().join("\n")
}

fn width_of(column: &Column<'_>, i: usize, rows: &[Vec<String>]) -> usize {
    let cells = rows.iter().filter_map(|row| row.get(i)).map(|cell| cell.chars().count());
    cells.chain([column.title.chars().count()]).max().unwrap_or(0)
}

/// Splits a table that is too wide into several. Returns the column indices of each: the columns that identify the
/// rows, and as many other columns as fit. A column without a title stays with the previous column.
fn stacked(columns: &[Column<'_>], fits: impl Fn(&[usize]) -> bool) -> Vec<Vec<usize>> {
    let is_key = |i: usize| i == 0 || columns[i].key;
    let keys: Vec<usize> = (0..columns.len()).filter(|i| is_key(*i)).collect();
    let mut blocks: Vec<Vec<usize>> = Vec::new();
    let mut i = 0;
    while i < columns.len() {
        let end = (i + 1..columns.len()).find(|end| !columns[*end].title.is_empty()).unwrap_or(columns.len());
        let unit: Vec<usize> = (i..end).filter(|i| !is_key(*i)).collect();
        i = end;
        if unit.is_empty() {
            continue;
        }
        let wider = blocks.last().map(|block| [block, &unit[..]].concat()).filter(|wider| fits(wider));
        match (wider, blocks.last_mut()) {
            (Some(wider), Some(block)) => *block = wider,
            _ => blocks.push([&keys[..], &unit].concat()),
        }
    }
    if blocks.is_empty() { vec![keys] } else { blocks }
}

/// Formats the columns with the indices `shown` of a table: their titles and all rows.
fn block<'t>(columns: &[Column<'t>], widths: &[usize], shown: &[usize], rows: &'t [Vec<String>]) -> String {
    let line = |cell_of: &dyn Fn(usize) -> &'t str| {
        let padded = shown.iter().map(|&i| {
            let (Column { gap, words, .. }, width, cell) = (columns[i], widths[i], cell_of(i));
            if words { format!("{:gap$}{cell:<width$}", "") } else { format!("{:gap$}{cell:>width$}", "") }
        });
        padded.collect::<String>().trim_end().to_owned() + "\n"
    };
    let groups = groups(columns, widths, shown);
    let mut text = if groups.is_empty() { groups } else { groups + "\n" };
    text += &line(&|i| columns[i].title);
    for row in rows {
        text += &line(&|i| row.get(i).map_or("", String::as_str));
    }
    text
}

/// The line of group titles above a table, each above the first shown column of its group.
fn groups(columns: &[Column<'_>], widths: &[usize], shown: &[usize]) -> String {
    let group_of = |i: usize| columns[..=i].iter().rev().find_map(|column| column.group).filter(|_| !columns[i].key);
    let mut text = String::new();
    let mut start = 0;
    let mut former = None;
    for &i in shown {
        start += columns[i].gap;
        let group = group_of(i);
        if let Some(title) = group.filter(|_| group != former) {
            text = format!("{text:<start$}{title}");
        }
        former = group;
        start += widths[i];
    }
    text.trim_end().to_owned()
}

/// Formats a line of a report: a name, and a text to the right of it, which is wrapped in its own column.
pub(crate) fn fact(name: &str, text: &str) -> String {
    labelled(name, text, NAME_COLUMN_WIDTH)
}

/// Like [`fact`], with `names` as the width of the name's column.
pub(crate) fn labelled(name: &str, text: &str, names: usize) -> String {
    format!("{name:<names$}{}", wrap(text, names).trim_start())
}

/// Wraps running text, and indents each line by `indent` spaces.
pub(crate) fn wrap(text: &str, indent: usize) -> String {
    text::wrap(text, indent, width().min(DEFAULT_WIDTH))
}

/// Formats labels as a list: `branch=main, commit=abc123`. Control characters in labels are escaped.
pub(crate) fn labels(labels: &BTreeMap<String, String>) -> String {
    labels.iter().map(|(name, value)| one_line(&format!("{name}={value}")).into_owned()).collect::<Vec<_>>().join(", ")
}

/// Describes a machine: its name, kernel version and CPU model. Control characters are escaped.
pub(crate) fn machine(machine: &Machine) -> String {
    let cpus = machine.cpu_model.as_ref().map_or(String::new(), |model| format!(", {model}"));
    one_line(&format!("{} (Linux {}{cpus})", machine.host, machine.kernel)).into_owned()
}

/// Removes control characters except newlines from a text with names from files, which could otherwise control the
/// terminal.
pub(crate) fn without_control_characters(text: &str) -> String {
    text.replace(|c: char| c.is_control() && c != '\n', "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_that_is_too_wide_goes_without_what_it_can_spare() {
        let (name, digits) = ("x".repeat(45), "1".repeat(60));
        let columns = || vec![words("a", 0), figure("b", 2, Some("group")), figure("c", 2, None)];
        let rows = || vec![vec![name.clone(), digits.clone(), "1".to_owned()]];
        let without = format!("{:47}group\na{:46}c\n{name}  1\n", "", "");
        let whole = format!("{:47}group\na{:105}b  c\n{name}  {digits}  1\n", "", "");
        assert_eq!(narrow(columns(), rows(), &["b"]), without);
        assert_eq!(with_width(200, || narrow(columns(), rows(), &["b"])), whole);
    }

    #[test]
    fn what_cannot_be_spared_stands_below() {
        let columns = [
            words("level", 0),
            key(figure("load", 2, None)),
            figure("predicted", 2, Some("mean response time")),
            figure("measured", 2, None),
            words("", 1),
            figure("error", 2, None),
            figure("throughput", 2, Some("")),
        ];
        let rows = ["mix", "other"]
            .map(|level| [level, "50/s", "1.00 ms", "2.00 ms", "✗", "−50.0 %", "50.0/s"].map(str::to_owned).to_vec());
        let head = format!("{:13}mean response time\n", "");
        let wide = head.clone()
            + "\
level  load  predicted  measured      error  throughput
mix    50/s    1.00 ms   2.00 ms ✗  −50.0 %      50.0/s
other  50/s    1.00 ms   2.00 ms ✗  −50.0 %      50.0/s
";
        assert_eq!(with_width(60, || table(&columns, &rows)), wide);
        let narrower = format!(
            "\
{head}level  load  predicted  measured
mix    50/s    1.00 ms   2.00 ms ✗
other  50/s    1.00 ms   2.00 ms ✗

{head}level  load    error  throughput
mix    50/s  −50.0 %      50.0/s
other  50/s  −50.0 %      50.0/s
"
        );
        assert_eq!(with_width(40, || table(&columns, &rows)), narrower);
    }

    #[test]
    fn an_interval_names_its_unit_once() {
        assert_eq!(interval(0.00861, 0.00993, seconds), "8.61 … 9.93 ms");
        assert_eq!(interval(0.00095, 0.00105, seconds), "950 µs … 1.05 ms");
        assert_eq!(interval(0.97, 1.0, percent), "97.0 … 100 %");
        assert_eq!(interval(7900.0, 8400.0, number), "7,900 … 8,400");
    }

    #[test]
    fn long_names_are_shortened_by_characters() {
        assert_eq!([shorten("größer", 6), shorten("größeres", 6), shorten("", 6)], ["größer", "größe…", ""]);
        assert_eq!(shorten("8 cores and faster database", 23), "8 cores and faster…");
    }
}
