//! Numbers as people read them on a terminal, and columns that line up.
//!
//! What is not known is `-`.

use brimful_core::quantity;

/// No line of running text or of a table is wider.
pub(crate) const WIDTH: usize = 100;
/// The names of facts stand in this many columns.
pub(crate) const NAMES: usize = 12;

/// A figure in the words of `core`'s [`quantity`], or `-`.
fn known(value: Option<f64>, words: fn(f64) -> String) -> String {
    value.map_or("-".to_owned(), words)
}

pub(crate) fn number(value: Option<f64>) -> String {
    known(value, quantity::number)
}

pub(crate) fn rate(value: Option<f64>) -> String {
    known(value, quantity::rate)
}

pub(crate) fn seconds(value: Option<f64>) -> String {
    known(value, quantity::seconds)
}

pub(crate) fn percent(value: Option<f64>) -> String {
    known(value, quantity::percent)
}

/// A signed error.
pub(crate) fn error(value: Option<f64>) -> String {
    known(value, quantity::signed_percent)
}

/// From one figure to another, with the unit once where it is the same: `8.61 … 9.93 ms`.
pub(crate) fn interval(low: f64, high: f64, figure: fn(Option<f64>) -> String) -> String {
    let (low, high) = (figure(Some(low)), figure(Some(high)));
    let unit = |text: &str| text.find(' ').map_or(String::new(), |at| text[at..].to_owned());
    let short = low.strip_suffix(&unit(&high)).unwrap_or(&low);
    format!("{short} … {high}")
}

/// At most `width` characters, the last one a `…` where something was left out.
pub(crate) fn shorten(text: &str, width: usize) -> String {
    match text.char_indices().nth(width.saturating_sub(1)) {
        Some((end, _)) if text.chars().count() > width => format!("{}…", &text[..end]),
        _ => text.to_owned(),
    }
}

/// One column: `gap` spaces before it, then its cells, words to the left and numbers to the right.
#[derive(Clone, Copy)]
pub(crate) struct Column<'a> {
    pub(crate) title: &'a str,
    pub(crate) gap: usize,
    pub(crate) words: bool,
    /// A title above this and the following columns.
    pub(crate) group: Option<&'a str>,
}

/// A column of words.
pub(crate) const fn words(title: &str, gap: usize) -> Column<'_> {
    Column { title, gap, words: true, group: None }
}

/// A column of numbers.
pub(crate) const fn figure<'a>(title: &'a str, gap: usize, group: Option<&'a str>) -> Column<'a> {
    Column { title, gap, words: false, group }
}

/// Titles and rows, aligned; no line ends in a space.
pub(crate) fn table(columns: &[Column<'_>], rows: &[Vec<String>]) -> String {
    let width = |i: usize, column: &Column<'_>| {
        let cells = rows.iter().filter_map(|row| row.get(i)).map(|cell| cell.chars().count());
        cells.chain([column.title.chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = columns.iter().enumerate().map(|(i, column)| width(i, column)).collect();
    let line = |cells: &[&str]| {
        let padded = columns.iter().zip(&widths).zip(cells).map(|((column, &width), cell)| {
            let gap = column.gap;
            if column.words { format!("{:gap$}{cell:<width$}", "") } else { format!("{:gap$}{cell:>width$}", "") }
        });
        padded.collect::<String>().trim_end().to_owned() + "\n"
    };

    let mut text = String::new();
    if columns.iter().any(|column| column.group.is_some()) {
        let (mut groups, mut start) = (String::new(), 0);
        for (column, width) in columns.iter().zip(&widths) {
            start += column.gap;
            if let Some(group) = column.group {
                groups = format!("{groups:<start$}{group}");
            }
            start += width;
        }
        text += &(groups + "\n");
    }
    text += &line(&columns.iter().map(|column| column.title).collect::<Vec<_>>());
    for row in rows {
        text += &line(&row.iter().map(String::as_str).collect::<Vec<_>>());
    }
    text
}

/// A name and what there is to say, in the columns beside the names.
pub(crate) fn fact(name: &str, text: &str) -> String {
    let wrapped = wrap(text, NAMES);
    format!("{name:<NAMES$}{}", wrapped.trim_start())
}

/// Lines of at most [`WIDTH`] characters, broken at spaces, each indented.
pub(crate) fn wrap(text: &str, indent: usize) -> String {
    let mut lines = vec![" ".repeat(indent)];
    for word in text.split_whitespace() {
        let length = lines.last().map_or(0, |line| line.chars().count());
        if length > indent && length + 1 + word.chars().count() > WIDTH {
            lines.push(" ".repeat(indent));
        }
        if let Some(line) = lines.last_mut() {
            if line.chars().count() > indent {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.join("\n") + "\n"
}

/// Names come from files: none of them may steer the terminal.
pub(crate) fn harmless(text: &str) -> String {
    text.replace(|c: char| c.is_control() && c != '\n', "")
}

/// The table without as many of the `dispensable` columns, given by title, as it takes to make it fit.
pub(crate) fn narrow(mut columns: Vec<Column<'_>>, mut rows: Vec<Vec<String>>, dispensable: &[&str]) -> String {
    for title in dispensable {
        let text = table(&columns, &rows);
        if text.lines().all(|line| line.chars().count() <= WIDTH) {
            return text;
        }
        if let Some(i) = columns.iter().position(|column| column.title == *title) {
            let group = columns.remove(i).group;
            rows.iter_mut().for_each(|row| drop(row.remove(i)));
            // What stood above it stands above the next one.
            if let (Some(next), Some(group)) = (columns.get_mut(i), group) {
                next.group.get_or_insert(group);
            }
        }
    }
    table(&columns, &rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_that_is_too_wide_goes_without_what_it_can_spare() {
        let wide = "x".repeat(60);
        let columns = || vec![words("a", 0), figure("b", 2, Some("group")), figure("c", 2, None)];
        let rows = || vec![vec![wide.clone(), wide.clone(), "1".to_owned()]];
        assert_eq!(narrow(columns(), rows(), &["b"]), format!("{:62}group\na{:61}c\n{wide}  1\n", "", ""));
        assert_eq!(narrow(columns(), rows(), &[]), table(&columns(), &rows()));
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
    }
}
