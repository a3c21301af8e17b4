//! Formats GitHub Markdown for pull requests. Escapes text from documents, so that it cannot become markup.

use brimful_core::text::one_line;

/// Escapes each character that Markdown or HTML interprets. An invisible character (word joiner) after `@` prevents
/// that GitHub notifies the user of that name.
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
    // GitHub turns URLs into links even without markup. A word joiner prevents this.
    shown.replace("://", ":\u{2060}//")
}

/// Formats a row of a Markdown table. The cells must already be escaped.
pub(crate) fn row(cells: &[String]) -> String {
    format!("| {} |\n", cells.join(" | "))
}
