//! Numbers as people read them on a terminal, and columns that line up.
//!
//! What is not known is `-`. Every number is at most seven characters wide (rates below a million, times below 10,000 s).

use brimful_core::units::grouped;

/// No line of running text or of a table is wider.
pub(crate) const WIDTH: usize = 100;
/// The names of facts stand in this many columns.
pub(crate) const NAMES: usize = 12;

/// Three significant digits or decimals, thousands grouped: `1,235`, `37.0`, `0.123`; millions as `1.23M`.
pub(crate) fn number(value: Option<f64>) -> String {
    let Some(x) = value else { return "-".to_owned() };
    let size = x.abs();
    if size >= 999_999.5 {
        return format!("{:.2}M", x / 1e6);
    }
    if size >= 99.95 {
        return grouped(x);
    }
    // 9.996 has one digit before the point, but 10.0 is what three digits make of it.
    let decimals = if size >= 9.995 {
        1
    } else if size >= 0.9995 || size == 0.0 {
        2
    } else {
        3
    };
    format!("{x:.decimals$}")
}

/// Per second: `1,235/s`.
pub(crate) fn rate(value: Option<f64>) -> String {
    with_unit(number(value), "/s")
}

/// Seconds, in the unit that suits them: `1.23 ms`.
pub(crate) fn seconds(value: Option<f64>) -> String {
    let (factor, unit) = match value.map_or(0.0, f64::abs) {
        0.0 => (1.0, " s"),
        x if x >= 0.9995 => (1.0, " s"),
        x if x >= 0.000_999_5 => (1e3, " ms"),
        _ => (1e6, " µs"),
    };
    with_unit(number(value.map(|x| x * factor)), unit)
}

/// A share: `73.2%`.
pub(crate) fn percent(value: Option<f64>) -> String {
    let text = value.map(|x| if x.abs() >= 0.9995 { format!("{:.0}", x * 100.0) } else { format!("{:.1}", x * 100.0) });
    with_unit(text.unwrap_or("-".to_owned()), "%")
}

/// A signed error: `+2.1%`.
pub(crate) fn error(value: Option<f64>) -> String {
    match value {
        Some(x) if x >= 0.0 => format!("+{}", percent(value)),
        _ => percent(value),
    }
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

fn with_unit(number: String, unit: &str) -> String {
    if number == "-" { number } else { number + unit }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_and_their_unit() {
        let shown =
            [0.0, 0.1234, 9.876, 99.94, 99.96, 999.6, 12_345.6, 999_999.0, 1_234_567.0].map(|x| number(Some(x)));
        assert_eq!(shown, ["0.00", "0.123", "9.88", "99.9", "100", "1,000", "12,346", "999,999", "1.23M"]);
        let shown = [0.0, 2.5e-7, 0.000_141, 0.000_999_6, 0.001_23, 0.999_4, 0.999_6, 12.0].map(|x| seconds(Some(x)));
        assert_eq!(shown, ["0.00 s", "0.250 µs", "141 µs", "1.00 ms", "1.23 ms", "999 ms", "1.00 s", "12.0 s"]);
        let shown = [0.021, -0.1234, 0.0, 12.3].map(|x| error(Some(x)));
        assert_eq!(shown, ["+2.1%", "-12.3%", "+0.0%", "+1230%"]);
        assert_eq!([number(None), rate(None), seconds(None), percent(None), error(None)], ["-"; 5]);
        assert_eq!(rate(Some(1234.5)), "1,234/s");
    }

    #[test]
    fn a_table_that_is_too_wide_goes_without_what_it_can_spare() {
        let wide = "x".repeat(60);
        let columns = || vec![words("a", 0), figure("b", 2, Some("group")), figure("c", 2, None)];
        let rows = || vec![vec![wide.clone(), wide.clone(), "1".to_owned()]];
        assert_eq!(narrow(columns(), rows(), &["b"]), format!("{:62}group\na{:61}c\n{wide}  1\n", "", ""));
        assert_eq!(narrow(columns(), rows(), &[]), table(&columns(), &rows()));
    }

    #[test]
    fn long_names_are_shortened_by_characters() {
        assert_eq!([shorten("größer", 6), shorten("größeres", 6), shorten("", 6)], ["größer", "größe…", ""]);
    }
}
