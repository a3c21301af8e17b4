//! Templates of requests: texts with placeholders, which each call replaces by values:
//!
//! ```text
//! {seq}            the number of the call within its class, from 0: unique in a load
//! {uuid}           a random UUID (version 4)
//! {rand:1-500}     a random integer from 1 to 500, uniformly distributed
//! {csv.user}       the field `user` of the class's CSV file: call n uses row n, from 0; after the last row, the first
//! ```
//!
//! All other text in braces is copied unchanged, so JSON needs no escapes.

use std::fmt;

/// A part of a template: plain text or a placeholder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TemplatePart<'t> {
    /// Text that is copied unchanged.
    Text(&'t str),
    /// `{seq}`: the number of the call within its class.
    Seq,
    /// `{uuid}`: a random UUID.
    Uuid,
    /// `{rand:FROM-TO}`: a random integer.
    Rand {
        /// The smallest possible value.
        from: u64,
        /// The largest possible value.
        to: u64,
    },
    /// `{csv.NAME}`: the field of a CSV row in the column with this name.
    Csv(&'t str),
}

/// The error for a placeholder with invalid syntax.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateError {
    /// Position of the placeholder in the template, in characters from 1.
    pub column: usize,
    /// The text that was expected at this position.
    pub expected: String,
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "column {}: {}", self.column, self.expected)
    }
}

/// The beginnings of all kinds of placeholders.
const PLACEHOLDER_STARTS: [&str; 4] = ["{seq}", "{uuid}", "{rand:", "{csv."];

/// Whether a text contains a placeholder.
pub fn is_template(text: &str) -> bool {
    text.contains('{') && PLACEHOLDER_STARTS.iter().any(|start| text.contains(start))
}

/// Splits a template into plain text and placeholders. No part is empty.
///
/// # Errors
/// Returns [`TemplateError`] if a placeholder has invalid syntax.
pub fn parse(text: &str) -> Result<Vec<TemplatePart<'_>>, TemplateError> {
    let mut pieces = Vec::new();
    let mut text_from = 0;
    let mut at = 0;
    while let Some(brace) = text[at..].find('{').map(|found| at + found) {
        let rest = &text[brace..];
        if !PLACEHOLDER_STARTS.iter().any(|start| rest.starts_with(start)) {
            at = brace + 1;
            continue;
        }
        let wrong =
            |expected: &str| TemplateError { column: text[..brace].chars().count() + 1, expected: expected.to_owned() };
        let end = rest.find('}').ok_or_else(|| wrong("a } after what { begins"))?;
        let piece = placeholder(&rest[1..end]).map_err(wrong)?;
        if text_from < brace {
            pieces.push(TemplatePart::Text(&text[text_from..brace]));
        }
        pieces.push(piece);
        at = brace + end + 1;
        text_from = at;
    }
    if text_from < text.len() {
        pieces.push(TemplatePart::Text(&text[text_from..]));
    }
    Ok(pieces)
}

/// Parses the text between the braces of a placeholder. The error describes the expected text.
fn placeholder(within: &str) -> Result<TemplatePart<'_>, &'static str> {
    const RANGE: &str = "two whole numbers, the lower one first, like {rand:1-500}";
    match within {
        "seq" => Ok(TemplatePart::Seq),
        "uuid" => Ok(TemplatePart::Uuid),
        _ => match (within.strip_prefix("rand:"), within.strip_prefix("csv.")) {
            (Some(range), _) => {
                let (from, to) = range.split_once('-').ok_or(RANGE)?;
                let [from, to] = [from, to].map(|number| number.trim().parse::<u64>());
                let (from, to) = (from.map_err(|_| RANGE)?, to.map_err(|_| RANGE)?);
                if from <= to { Ok(TemplatePart::Rand { from, to }) } else { Err(RANGE) }
            }
            (_, Some(column)) if !column.trim().is_empty() => Ok(TemplatePart::Csv(column.trim())),
            _ => Err("the name of a column, like {csv.user}"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn places_are_found_and_all_else_is_text() {
        let pieces = parse("/u/{csv.name}/{seq}?r={rand:1-500}&id={uuid}").unwrap();
        let expected = [
            TemplatePart::Text("/u/"),
            TemplatePart::Csv("name"),
            TemplatePart::Text("/"),
            TemplatePart::Seq,
            TemplatePart::Text("?r="),
            TemplatePart::Rand { from: 1, to: 500 },
            TemplatePart::Text("&id="),
            TemplatePart::Uuid,
        ];
        assert_eq!(pieces, expected);
        for json in [r#"{"q":"brim"}"#, "{seq }", "{sequence}", "{}", "{", "{{"] {
            assert_eq!(parse(json), Ok(vec![TemplatePart::Text(json)]));
            assert!(!is_template(json), "{json}");
        }
        let nested = parse(r#"{"id":{seq}}"#).unwrap();
        assert_eq!(nested, [TemplatePart::Text(r#"{"id":"#), TemplatePart::Seq, TemplatePart::Text("}")]);
        assert_eq!(parse(""), Ok(Vec::new()));
    }

    #[test]
    fn what_is_wrong_has_a_place() {
        for (text, column, word) in [
            ("/ä{rand:}", 3, "two whole numbers"),
            ("/{rand:5-1}", 2, "the lower one first"),
            ("/{rand:1-2", 2, "a }"),
            ("/{rand:-1-2}", 2, "two whole numbers"),
            ("{csv.}", 1, "name of a column"),
        ] {
            let error = parse(text).unwrap_err();
            assert_eq!(error.column, column, "{text}");
            assert!(error.to_string().contains(word), "{error}");
        }
    }

    proptest! {
        #[test]
        fn pieces_are_the_text(text in "([ -~äé]|\\{seq\\}|\\{uuid\\}|\\{csv\\.[a-z]+\\}|\\{){0,30}") {
            let Ok(pieces) = parse(&text) else { return Ok(()) };
            let written: String = pieces.iter().map(|piece| match piece {
                TemplatePart::Text(text) => (*text).to_owned(),
                TemplatePart::Seq => "{seq}".to_owned(),
                TemplatePart::Uuid => "{uuid}".to_owned(),
                TemplatePart::Rand { from, to } => format!("{{rand:{from}-{to}}}"),
                TemplatePart::Csv(column) => format!("{{csv.{column}}}"),
            }).collect();
            prop_assert_eq!(written.len(), text.len(), "{} {}", written, text);
            prop_assert_eq!(pieces.iter().any(|piece| !matches!(piece, TemplatePart::Text(_))), is_template(&text));
        }
    }
}
