//! Parses and formats comma-separated values (RFC 4180). The parser accepts several common deviations.
//!
//! The first comma, semicolon or tab outside of quotes is the separator. A quoted field may contain separators, doubled
//! quotes and line breaks. An unclosed quote extends to the end of the text. The parser ignores a byte order mark,
//! blank lines, lines that begin with `#`, and spaces around fields.

/// One row of a text of comma-separated values.
#[derive(Debug, PartialEq)]
pub struct Row {
    /// Number of the line on which the row begins, from 1.
    pub line: usize,
    /// The fields of the row, without surrounding white space.
    pub fields: Vec<String>,
}

/// Parses all rows of a text.
pub fn parse(text: &str) -> Vec<Row> {
    let text = crate::text::strip_bom(text);
    let separator = separator(text);
    let mut rows = Vec::new();
    let mut line = 1;
    let mut first_line = 1;
    let mut quoted = false;
    let mut fields = Vec::new();
    let mut field = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        line += usize::from(c == '\n');
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => field.extend(chars.next()),
            '"' if quoted || field.trim().is_empty() => quoted = !quoted,
            '\n' if !quoted => {
                fields.push(std::mem::take(&mut field));
                push_row(&mut rows, first_line, &mut fields);
                first_line = line;
            }
            c if c == separator && !quoted => fields.push(std::mem::take(&mut field)),
            c => field.push(c),
        }
    }
    fields.push(field);
    push_row(&mut rows, first_line, &mut fields);
    rows
}

/// Appends a row, unless it is blank or a comment.
fn push_row(rows: &mut Vec<Row>, line: usize, fields: &mut Vec<String>) {
    let fields: Vec<String> = std::mem::take(fields).iter().map(|f| f.trim().to_owned()).collect();
    let comment = fields.first().is_some_and(|f| f.starts_with('#'));
    if !comment && fields.iter().any(|f| !f.is_empty()) {
        rows.push(Row { line, fields });
    }
}

/// Returns the first separator outside of quotes and comments; a comma if there is none.
fn separator(text: &str) -> char {
    let lines = text.lines().filter(|l| !l.trim_start().starts_with('#'));
    let mut quoted = false;
    let first = lines.flat_map(str::chars).find(|c| {
        quoted ^= *c == '"';
        !quoted && [',', ';', '\t'].contains(c)
    });
    first.unwrap_or(',')
}

/// Formats fields as one row that ends with a newline. Fields are quoted if necessary.
pub fn format_row<'a>(fields: impl IntoIterator<Item = &'a str>) -> String {
    let fields: Vec<String> = fields.into_iter().map(escape).collect();
    fields.join(",") + "\n"
}

fn escape(field: &str) -> String {
    let plain = !field.contains([',', ';', '\t', '"', '\n', '\r', '#']) && field.trim() == field;
    if plain { field.to_owned() } else { format!("\"{}\"", field.replace('"', "\"\"")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fields(text: &str) -> Vec<Vec<String>> {
        parse(text).into_iter().map(|row| row.fields).collect()
    }

    #[test]
    fn quotes_comments_and_line_breaks_are_understood() {
        let text = "\u{feff}# written by hand\r\na,b\r\n\r\n\"x, \"\"y\"\"\", 2 \n\"two\nlines\",3\n4,5";
        let rows = parse(text);
        let lines: Vec<usize> = rows.iter().map(|r| r.line).collect();
        assert_eq!(lines, [2, 4, 5, 7]);
        assert_eq!(fields(text)[1..3], [["x, \"y\"", "2"], ["two\nlines", "3"]]);
        assert_eq!(fields("a;b,c\n1;2"), [["a", "b,c"], ["1", "2"]]);
        assert_eq!(fields("a\tb"), [["a", "b"]]);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(a in "[ -~äé\n]{0,20}", b in "[ -~]{1,20}") {
            // The parser removes spaces around a field, so the expected fields are trimmed. Rows with a blank field `b`
            // are not tested.
            prop_assume!(!b.trim().is_empty());
            let written = format_row(["x", a.as_str(), b.as_str()]);
            prop_assert_eq!(fields(&written), vec![vec!["x".to_owned(), a.trim().to_owned(), b.trim().to_owned()]]);
        }

        #[test]
        fn no_text_panics(text in "(.|[\n\"#;,\t]){0,60}") {
            parse(&text);
        }
    }
}
