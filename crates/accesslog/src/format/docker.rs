//! Docker's `json-file` logs: each line of a container's output is a JSON object,
//! `{"log":"…\n","stream":"stdout","time":"…"}`. The value of `log` is a line in the format of the server in the
//! container. `time` is the time at which Docker received the line, and is ignored. Docker splits lines of more than 16
//! KiB into several objects. None of these objects is read as a request.

use super::request::unescape;
use memchr::memchr2;

/// The beginning of each line that Docker has wrapped.
pub(crate) const LINE_START: &[u8] = br#"{"log":""#;

/// Returns the server's line without Docker's wrapping, stored in `buffer`; `None` if the line is not wrapped.
#[inline]
pub(crate) fn unwrap<'a>(line: &[u8], buffer: &'a mut Vec<u8>) -> Option<&'a [u8]> {
    // Most lines are recognized by their first byte as not wrapped.
    if line.first() == Some(&b'{') { inside(line, buffer) } else { None }
}

#[cold]
fn inside<'a>(line: &[u8], buffer: &'a mut Vec<u8>) -> Option<&'a [u8]> {
    let text = line.strip_prefix(LINE_START)?;
    let (inner, rest) = text.split_at_checked(closing_quote(text)?)?;
    // A log of another program may also begin with a field named `log`.
    if !rest.starts_with(br#"","stream":"std"#) {
        return None;
    }
    buffer.clear();
    unescape(inner, buffer);
    let inner = buffer.strip_suffix(b"\n").unwrap_or(buffer);
    Some(inner.strip_suffix(b"\r").unwrap_or(inner))
}

/// The index of the first quote that is not escaped.
fn closing_quote(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += memchr2(b'"', b'\\', text.get(at..)?)?;
        if text.get(at) == Some(&b'"') {
            return Some(at);
        }
        // Skips a backslash and the byte that it escapes.
        at += 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(line: &str) -> Option<String> {
        let mut buffer = b"old".to_vec();
        unwrap(line.as_bytes(), &mut buffer).map(|inner| String::from_utf8(inner.to_vec()).unwrap())
    }

    #[test]
    fn what_was_wrapped_up_is_as_before() {
        let time = r#""stream":"stdout","time":"2026-03-02T10:00:00.123456789Z"}"#;
        for (log, line) in [
            (r"plain\n", "plain"),
            ("plain", "plain"),
            (r#"\"GET /\u003ca\u003e\\x22 HTTP/1.1\"\r\n"#, r#""GET /<a>\x22 HTTP/1.1""#),
            (r#"{\"status\":200}\n"#, r#"{"status":200}"#),
            ("", ""),
        ] {
            assert_eq!(text(&format!(r#"{{"log":"{log}",{time}"#)).as_deref(), Some(line), "{log}");
        }
        for other in [
            "",
            "{",
            "plain",
            r#"{"log":"#,
            r#"{"log":"a\"#,
            r#"{"log":"a"}"#,
            r#"{"log":"a","status":200}"#,
            r#"{"status":200,"log":"a","stream":"stdout"}"#,
        ] {
            assert_eq!(text(other), None, "{other}");
        }
    }
}
