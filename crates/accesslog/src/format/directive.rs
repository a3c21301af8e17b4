//! Reads quotes and escapes, which are the same in the format directives of Apache and nginx.

/// The beginning of a format string, for an error message.
pub(crate) fn excerpt(format: &str) -> String {
    let text: String = format.chars().take(160).collect();
    brimful_core::text::one_line(&text).into_owned()
}

/// Decodes the escapes of a quoted format string: each of `\"`, `\'`, `\\`, `\t`, `\n` and `\r` becomes one character.
pub(crate) fn unescape(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            result.push(character);
            continue;
        }
        match characters.next() {
            Some('t') => result.push('\t'),
            Some('n') => result.push('\n'),
            Some('r') => result.push('\r'),
            Some(other @ ('"' | '\\' | '\'')) => result.push(other),
            other => result.extend(['\\'].into_iter().chain(other)),
        }
    }
    result
}

/// The index of the first quote without a backslash before it, or the length of the text.
pub(crate) fn closing_quote(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    let end = text.find(|character: char| {
        let is_end = character == quote && !is_escaped;
        is_escaped = character == '\\' && !is_escaped;
        is_end
    });
    end.unwrap_or(text.len())
}
