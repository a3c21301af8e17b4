//! Prepares text for terminals.
//!
//! Names of processes and files, and texts from other hosts, are not trusted: they could contain characters that move
//! the cursor, change colours, or erase or reorder text. [`escape_controls`] and [`one_line`] replace such characters
//! by escapes: `\u` and four hexadecimal digits. JSON uses the same escapes, so an escaped JSON document has the same
//! meaning.
//!
//! For terminals that can display only ASCII, [`to_ascii`] replaces all other characters.

use std::borrow::Cow;
use std::fmt::Write;

/// The byte order mark, which some programs write at the beginning of a text file, mainly on Windows.
const MARK: char = '\u{feff}';
const MARK_BYTES: &[u8] = b"\xef\xbb\xbf";

/// Removes the byte order mark from the beginning of a text.
pub fn strip_bom(text: &str) -> &str {
    text.strip_prefix(MARK).unwrap_or(text)
}

/// Removes the byte order mark from the beginning of a text file in UTF-8.
pub fn strip_bom_bytes(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(MARK_BYTES).unwrap_or(bytes)
}

/// Escapes the characters that control a terminal, except newlines and tabs.
pub fn escape_controls(text: &str) -> Cow<'_, str> {
    escape(text, |c| c != '\n' && c != '\t' && is_control(c))
}

/// Escapes all characters that control a terminal, including newlines and tabs, so that the text fits on one line.
pub fn one_line(text: &str) -> Cow<'_, str> {
    escape(text, is_control)
}

/// Converts a text to ASCII. Symbols are replaced by their usual substitutes (`+-`, `us`, `...`), and other characters
/// by escapes. If a substitute is longer than the symbol, a following sequence of spaces is shortened, so that columns
/// remain aligned.
pub fn to_ascii(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    // `surplus` is the number of characters by which substitutes have lengthened the line; `spaces` is the number of
    // immediately preceding spaces.
    let mut surplus = 0;
    let mut spaces = 0;
    for c in text.chars() {
        match c {
            // A sequence of spaces separates columns. It must keep its first space; the others may be removed.
            ' ' if spaces > 0 && surplus > 0 => surplus -= 1,
            ' ' => {
                spaces += 1;
                shown.push(c);
            }
            '\n' => {
                surplus = 0;
                spaces = 0;
                shown.push(c);
            }
            c if c.is_ascii() => {
                spaces = 0;
                shown.push(c);
            }
            c => {
                spaces = 0;
                let before = shown.len();
                push_ascii(&mut shown, c);
                surplus += (shown.len() - before).saturating_sub(1);
            }
        }
    }
    Cow::Owned(shown)
}

fn push_ascii(shown: &mut String, c: char) {
    let sign = match c {
        '±' => "+-",
        '−' | '–' | '‐' | '‑' | '─' => "-",
        '—' => "--",
        'µ' | 'μ' => "u",
        '…' => "...",
        '×' => "x",
        '·' | '░' => ".",
        '•' => "*",
        '≤' => "<=",
        '≥' => ">=",
        '→' => "->",
        '‘' | '’' => "'",
        '“' | '”' => "\"",
        '²' => "^2",
        '\u{a0}' | '\u{202f}' => " ",
        // The symbols for "the interval contains the measurement" and "it does not".
        '✓' => "y",
        '✗' => "n",
        // The blocks and shades of charts, in increasing order of height or darkness.
        '▁' => "_",
        '▂' => ",",
        '▃' => "-",
        '▄' => "~",
        '▅' => "=",
        '▆' | '▓' => "+",
        '▇' => "*",
        '▒' => ":",
        '█' => "#",
        '│' => "|",
        '\u{2500}'..='\u{257f}' => "+",
        _ => {
            // Writing to a string cannot fail.
            let _ = write!(shown, "\\u{:04x}", u32::from(c));
            return;
        }
    };
    *shown += sign;
}

/// Wraps a text at spaces into indented lines of at most `width` characters, and appends a newline. A word that is
/// longer than a line is not divided. There is no line break between a number and its percent sign.
pub fn wrap(text: &str, indent: usize, width: usize) -> String {
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match words.last_mut() {
            Some(number) if word.starts_with('%') => {
                number.push(' ');
                number.push_str(word);
            }
            _ => words.push(word.to_owned()),
        }
    }
    let mut lines = vec![" ".repeat(indent)];
    for word in &words {
        let length = lines.last().map_or(0, |line| line.chars().count());
        if length > indent && length + 1 + word.chars().count() > width {
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

/// Whether a terminal could interpret a character as a command: control characters (C0, DEL and C1), line and paragraph
/// separators, and characters that change the direction of writing.
fn is_control(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn escape(text: &str, is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if is_escaped(c) {
            // Writing to a string cannot fail.
            let _ = write!(shown, "\\u{:04x}", u32::from(c));
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_percent_sign_stays_on_the_line_of_its_number() {
        assert_eq!(wrap("B is slower by 12.5 %.", 2, 21), "  B is slower by\n  12.5 %.\n");
    }

    #[test]
    fn a_byte_order_mark_is_no_content() {
        assert_eq!((strip_bom("\u{feff}a\u{feff}"), strip_bom("a")), ("a\u{feff}", "a"));
        assert_eq!((strip_bom_bytes(b"\xef\xbb\xbfa"), strip_bom_bytes(b"\xef\xbb")), (&b"a"[..], &b"\xef\xbb"[..]));
    }

    #[test]
    fn what_a_terminal_obeys_is_shown() {
        assert_eq!(escape_controls("\x1b[2J\r\x07\u{7f}\u{9b}1m"), r"\u001b[2J\u000d\u0007\u007f\u009b1m");
        assert_eq!(escape_controls("\u{202e}gnp.exe\u{2066}\u{200f}"), r"\u202egnp.exe\u2066\u200f");
        assert_eq!(escape_controls("a\tb\nc – 5 µs"), "a\tb\nc – 5 µs");
        assert_eq!(one_line("nginx\nverdict\tvalid"), r"nginx\u000averdict\u0009valid");
    }

    #[test]
    fn ascii_has_signs_as_they_are_typed_and_columns_where_they_were() {
        assert_eq!(to_ascii("657 µs ± 3, −2.8 %, 1 … 2 ms – ✓"), "657 us +- 3, -2.8 %, 1 ... 2 ms - y");
        let table = "load      ±  mean  held\n50/s  30 …  2 ms  ✗\nabcd  1234  9 ms  ✓";
        let plain = "load      +- mean  held\n50/s  30 ... 2 ms n\nabcd  1234  9 ms  y";
        let shown = to_ascii(table);
        assert_eq!(shown, plain);
        assert_eq!(to_ascii("größe │ ▁█"), "gr\\u00f6\\u00dfe | _#");
        assert!(matches!(to_ascii("as it is"), Cow::Borrowed("as it is")));
    }

    proptest! {
        #[test]
        fn ascii_is_ascii_in_as_many_lines(text: String) {
            let shown = to_ascii(&text);
            prop_assert!(shown.is_ascii());
            prop_assert_eq!(shown.lines().count(), text.lines().count());
        }


        #[test]
        fn nothing_is_control_and_json_stays_the_same_data(text: String) {
            let shown = one_line(&text);
            prop_assert!(!shown.contains(is_control));
            prop_assert!(text.contains(is_control) || shown == text);
            let json = serde_json::to_string(&[&text]).unwrap();
            prop_assert_eq!(serde_json::from_str::<[String; 1]>(&escape_controls(&json)).unwrap(), [text]);
        }
    }
}
