//! Markdown (GitHub's) for pull requests. Text from documents cannot become markup.

use brimful_core::text::one_line;

/// Escapes the characters that Markdown or HTML interprets, as numeric references. After `@`, a word joiner prevents
/// that the name behind it is notified.
pub(crate) fn escaped(text: &str) -> String {
    let mut shown = String::new();
    for c in one_line(text).chars() {
        match c {
            '@' => shown.push_str("@\u{2060}"),
            '&' | '<' | '>' | '|' | '`' | '*' | '_' | '[' | ']' | '#' | '~' | '\\' | '$' => {
                shown.push_str(&format!("&#{};", u32::from(c)));
            }
            _ => shown.push(c),
        }
    }
    // Addresses become links without any markup.
    shown.replace("://", ":\u{2060}//")
}

/// A row of a table. The cells must be escaped.
pub(crate) fn row(cells: &[String]) -> String {
    format!("| {} |\n", cells.join(" | "))
}
