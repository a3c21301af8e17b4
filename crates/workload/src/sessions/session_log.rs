//! Parser of scripted sessions in the format of httperf's `--wsesslog` (httperf(1)):
//!
//! ```text
//! # A session: a page, then its two images, a think time of two seconds, and then a form.
//! /foo.html think=2.0 /pict1.gif /pict2.gif /foo2.html method=POST contents='Post data'
//!
//! # After one or more empty lines, another session begins.
//! /foo3.html method=POST contents="Several\nlines" /foo4.html method=HEAD
//! ```
//!
//! A line that begins with white space belongs to the burst of the line before it. Values may be in single or double
//! quotes. Within quotes, `\n`, `\r`, `\t`, `\\`, `\'` and `\"` mean the same as in C, and a `\` at the end of a line
//! is a line break. A call without a method or contents has those of its request class, usually GET without contents.
//! Lines and columns are counted from 1, columns in characters. Malformed input is an error; the parser never panics.

use brimful_core::url::is_absolute_url;
use brimful_core::workload::{LineError, Script, ScriptedBurst, ScriptedCall};
use std::iter::Peekable;
use std::str::Chars;

/// Parses the sessions of a file; there is at least one.
///
/// # Errors
/// [`LineError`] with the position of the first error.
pub fn read_session_log(bytes: &[u8]) -> Result<Vec<Script>, LineError> {
    let text = LineError::decode_utf8(bytes)?;
    let mut reader = Reader { chars: text.chars().peekable(), line: 1, column: 1 };
    let mut scripts = Vec::new();
    let mut bursts = Vec::<ScriptedBurst>::new();
    while reader.peek().is_some() {
        match reader.entry()? {
            Entry::Comment => {}
            Entry::Empty => scripts.extend(take_session(&mut bursts)),
            Entry::Call { call, think_s, position } => match bursts.last_mut() {
                Some(burst) if position.indented => {
                    burst.calls.push(call);
                    burst.think_s = think_s.or(burst.think_s);
                }
                None if position.indented => {
                    let what = "an indented path belongs to the burst of the path above it, but this session has no \
                                path yet: write the first path of a session without indentation";
                    return Err(position.error(what.to_owned()));
                }
                _ => bursts.push(ScriptedBurst { calls: vec![call], think_s }),
            },
        }
    }
    scripts.extend(take_session(&mut bursts));
    if scripts.is_empty() {
        return Err(reader.position().error("there is no session: expected a path, like /index.html".to_owned()));
    }
    Ok(scripts)
}

/// Removes all bursts from the list, and returns them as a session; `None` if the list is empty.
fn take_session(bursts: &mut Vec<ScriptedBurst>) -> Option<Script> {
    (!bursts.is_empty()).then(|| Script { bursts: std::mem::take(bursts) })
}

/// One logical line of the file. A quoted value may continue on further lines.
enum Entry {
    Comment,
    Empty,
    Call { call: ScriptedCall, think_s: Option<f64>, position: Position },
}

/// A position in the file of sessions.
#[derive(Clone, Copy)]
struct Position {
    line: usize,
    column: usize,
    /// Whether the position is after the start of its line. At the start of a call, only white space can precede it.
    indented: bool,
}

impl Position {
    fn error(self, what: String) -> LineError {
        LineError { line: self.line, column: self.column, expected: what }
    }
}

/// The text that has not been read yet, and the position at which it begins.
struct Reader<'t> {
    chars: Peekable<Chars<'t>>,
    line: usize,
    column: usize,
}

impl Reader<'_> {
    fn peek(&mut self) -> Option<char> {
        self.chars.peek().copied()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.chars.next()?;
        if next == '\n' {
            (self.line, self.column) = (self.line + 1, 1);
        } else {
            self.column += 1;
        }
        Some(next)
    }

    fn position(&self) -> Position {
        Position { line: self.line, column: self.column, indented: self.column > 1 }
    }

    fn skip_blanks(&mut self) {
        while self.peek().is_some_and(is_blank) {
            self.next();
        }
    }

    /// Skips to the end of the line. The line break is not consumed.
    fn skip_line(&mut self) {
        while self.peek().is_some_and(|c| c != '\n') {
            self.next();
        }
    }

    /// Reads a word, which ends before the next white space.
    fn word(&mut self) -> String {
        let mut word = String::new();
        while let Some(c) = self.peek().filter(|c| !is_blank(*c) && *c != '\n') {
            word.push(c);
            self.next();
        }
        word
    }

    fn entry(&mut self) -> Result<Entry, LineError> {
        let entry = match self.peek() {
            Some('#') => {
                self.skip_line();
                Entry::Comment
            }
            _ => {
                self.skip_blanks();
                match self.peek() {
                    None | Some('\n') => Entry::Empty,
                    Some(_) => self.call()?,
                }
            }
        };
        // Consumes the line break.
        self.next();
        Ok(entry)
    }

    fn call(&mut self) -> Result<Entry, LineError> {
        let position = self.position();
        let path = self.word();
        // Absolute URLs are accepted and sent unchanged, as in httperf.
        if !path.starts_with('/') && !is_absolute_url(&path) {
            return Err(position.error(format!("`{}` is not a path: expected one that begins with /", excerpt(&path))));
        }
        if let Some(at) = path.chars().position(char::is_control) {
            let position = Position { column: position.column + at, ..position };
            return Err(position.error("a path cannot contain control characters: write them as %XX".to_owned()));
        }
        let mut call = ScriptedCall { path, ..ScriptedCall::default() };
        let mut think_s = None;
        loop {
            self.skip_blanks();
            let name_at = self.position();
            if self.peek().is_none_or(|c| c == '\n') {
                return Ok(Entry::Call { call, think_s, position });
            }
            let name = self.name();
            let value_at = self.position();
            match name.as_str() {
                "method=" => call.method = method(self.value()?).map_err(|what| value_at.error(what))?,
                "think=" => think_s = Some(seconds(&self.value()?).map_err(|what| value_at.error(what))?),
                "contents=" => call.body = Some(self.value()?),
                _ => {
                    let what = format!("expected method=, think= or contents=, not `{}`", excerpt(&name));
                    return Err(name_at.error(what));
                }
            }
        }
    }

    /// Reads a name. It ends with `=`, which is consumed, or before white space.
    fn name(&mut self) -> String {
        let mut name = String::new();
        while let Some(c) = self.peek().filter(|c| !is_blank(*c) && *c != '\n') {
            name.push(c);
            self.next();
            if c == '=' {
                break;
            }
        }
        name
    }

    /// Reads a value: a quoted text or a word.
    fn value(&mut self) -> Result<String, LineError> {
        let Some(quote) = self.peek().filter(|c| matches!(c, '\'' | '"')) else { return Ok(self.word()) };
        let quote_at = self.position();
        self.next();
        let mut value = String::new();
        loop {
            let at = self.position();
            match self.next() {
                Some(c) if c == quote => break,
                Some('\\') => value.push(self.escaped(at)?),
                Some(c) if c != '\n' => value.push(c),
                _ => {
                    return Err(quote_at.error(format!("this value has no closing {quote} in its line: add one")));
                }
            }
        }
        if self.peek().is_some_and(|c| !is_blank(c) && c != '\n') {
            return Err(self.position().error(format!("expected white space after the closing {quote}")));
        }
        Ok(value)
    }

    fn escaped(&mut self, at: Position) -> Result<char, LineError> {
        match self.next() {
            Some('n' | '\n') => Ok('\n'),
            Some('\r') if self.peek() == Some('\n') => {
                self.next();
                Ok('\n')
            }
            Some('r') => Ok('\r'),
            Some('t') => Ok('\t'),
            Some(c @ ('\\' | '\'' | '"')) => Ok(c),
            _ => Err(at.error(r#"expected \n, \r, \t, \\, \' or \", or the end of the line after the \"#.to_owned())),
        }
    }
}

/// Whether a character is white space within a line. `\r` counts as white space, because lines may end with `\r\n`.
fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\u{b}' | '\u{c}')
}

fn method(text: String) -> Result<String, String> {
    let is_token_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    match !text.is_empty() && text.bytes().all(is_token_byte) {
        true => Ok(text),
        false => Err(format!("`{}` is not a method: expected one word, such as POST", excerpt(&text))),
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|s: &f64| s.is_finite() && *s >= 0.0);
    number.ok_or_else(|| {
        format!("`{}` is not a time: expected a number of seconds, zero or more, like 2.5", excerpt(text))
    })
}

/// The beginning of a text for an error message. Control characters are escaped.
fn excerpt(text: &str) -> String {
    text.chars().take(40).flat_map(char::escape_debug).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn call(path: &str) -> ScriptedCall {
        ScriptedCall { path: path.to_owned(), ..ScriptedCall::default() }
    }

    fn burst(calls: Vec<ScriptedCall>, think_s: Option<f64>) -> ScriptedBurst {
        ScriptedBurst { calls, think_s }
    }

    /// Expects that bursts, sessions and comments are distinguished in the example of httperf's manual and in other
    /// files.
    #[test]
    fn bursts_sessions_and_comments_are_distinguished() {
        let text = "# Comment\n\n\n/foo.html think=2.0\n\t/pict1.gif\n  /pict2.gif\n/foo2.html method=POST \
                    contents='Post data'\n\t/pict3.gif\n# in between\n\t/pict4.gif\n\t\n \r\n# second\r\n/foo3.html \
                    method=POST contents=\"Multiline\\ndata\\\nand 'more'\"\r\n/foo4.html method=HEAD";
        let post = |path: &str, body: &str| ScriptedCall {
            method: "POST".to_owned(),
            body: Some(body.to_owned()),
            ..call(path)
        };
        let head = ScriptedCall { method: "HEAD".to_owned(), ..call("/foo4.html") };
        let expected = [
            Script {
                bursts: vec![
                    burst(vec![call("/foo.html"), call("/pict1.gif"), call("/pict2.gif")], Some(2.0)),
                    burst(vec![post("/foo2.html", "Post data"), call("/pict3.gif"), call("/pict4.gif")], None),
                ],
            },
            Script {
                bursts: vec![
                    burst(vec![post("/foo3.html", "Multiline\ndata\nand 'more'")], None),
                    burst(vec![head], None),
                ],
            },
        ];
        assert_eq!(read_session_log(text.as_bytes()).unwrap(), expected);
    }

    #[test]
    fn an_indented_line_may_set_the_think_time_of_its_burst() {
        let scripts = read_session_log(b"/a think=1\n\t/b think=0.5\n\t/c\n").unwrap();
        assert_eq!(scripts[0].bursts[0].think_s, Some(0.5));
    }

    #[test]
    fn an_error_states_its_position_and_what_was_expected() {
        for (text, line, column, message) in [
            (&b""[..], 1, 1, "there is no session: expected a path"),
            (b"# nothing\n\n", 3, 1, "there is no session"),
            (b"index.html", 1, 1, "`index.html` is not a path: expected one that begins with /"),
            (b"/a\n\n\t/b\n", 3, 2, "belongs to the burst of the path above it"),
            (b"/a\n/b thinks=2", 2, 4, "expected method=, think= or contents=, not `thinks=`"),
            (b"/a think=-1", 1, 10, "`-1` is not a time: expected a number of seconds"),
            (b"/a think=soon", 1, 10, "`soon` is not a time"),
            (b"/a think=inf", 1, 10, "`inf` is not a time"),
            (b"/a method=", 1, 11, "`` is not a method: expected one word"),
            (b"/a method='GET /b'", 1, 11, "`GET /b` is not a method"),
            (b"/a method=\"GET\\r\\nX:\"", 1, 11, r"`GET\r\nX:` is not a method"),
            (b"/a contents='b\n", 1, 13, "no closing ' in its line"),
            (b"/a contents='b", 1, 13, "no closing '"),
            (b"/a contents='b'c", 1, 16, "expected white space after the closing '"),
            (br#"/a contents="\x""#, 1, 14, r"expected \n, \r, \t"),
            (b"/a\x00b", 1, 3, "control characters"),
            (b"/a\n  /\xc3\xa9 \xff", 2, 6, "text in UTF-8"),
        ] {
            let error = read_session_log(text).unwrap_err();
            let input = String::from_utf8_lossy(text).into_owned();
            assert_eq!((error.line, error.column), (line, column), "{input:?}: {error}");
            assert!(error.to_string().contains(message), "{input:?}: {error}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(
            bytes in prop::collection::vec(prop::sample::select(&b"/a='\"\\\n\r\t #nmethod=think=contents=1.\xff\x00"[..]), 0..80),
        ) {
            if let Ok(scripts) = read_session_log(&bytes) {
                prop_assert!(!scripts.is_empty());
                for burst in scripts.iter().flat_map(|script| &script.bursts) {
                    prop_assert!(!burst.calls.is_empty());
                    prop_assert!(burst.calls.iter().all(|call| call.path.starts_with('/') || is_absolute_url(&call.path)));
                    prop_assert!(burst.calls.iter().all(|call| !call.path.contains(|c: char| c <= ' ')));
                }
            }
        }
    }
}
