//! Foreign text on its way to a terminal: names of processes, words of other hosts, names of files. Whoever chose it must not move
//! the cursor, colour, erase or reorder what stands there, so what a terminal would obey is shown as an escape instead.
//!
//! An escape is `\u` and four hexadecimal digits, JSON's own: a JSON document stays the same data.

use std::borrow::Cow;
use std::fmt::Write;

/// Several lines, with nothing in them that a terminal obeys but their ends and tabs.
pub fn visible(text: &str) -> Cow<'_, str> {
    escape(text, |c| c != '\n' && c != '\t' && is_obeyed(c))
}

/// The same for what belongs on one line, like a name.
pub fn one_line(text: &str) -> Cow<'_, str> {
    escape(text, is_obeyed)
}

/// Control characters (C0, DEL and C1), line and paragraph separators, and what changes the direction of writing.
fn is_obeyed(c: char) -> bool {
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
    fn what_a_terminal_obeys_is_shown() {
        assert_eq!(visible("\x1b[2J\r\x07\u{7f}\u{9b}1m"), r"\u001b[2J\u000d\u0007\u007f\u009b1m");
        assert_eq!(visible("\u{202e}gnp.exe\u{2066}\u{200f}"), r"\u202egnp.exe\u2066\u200f");
        assert_eq!(visible("a\tb\nc – 5 µs"), "a\tb\nc – 5 µs");
        assert_eq!(one_line("nginx\nverdict\tvalid"), r"nginx\u000averdict\u0009valid");
    }

    proptest! {
        #[test]
        fn nothing_is_obeyed_and_json_stays_the_same_data(text: String) {
            let shown = one_line(&text);
            prop_assert!(!shown.contains(is_obeyed));
            prop_assert!(text.contains(is_obeyed) || shown == text);
            let json = serde_json::to_string(&[&text]).unwrap();
            prop_assert_eq!(serde_json::from_str::<[String; 1]>(&visible(&json)).unwrap(), [text]);
        }
    }
}
