//! Docker's `json-file` logs: each line of a container's output in an object of its own,
//! `{"log":"…\n","stream":"stdout","time":"…"}`. What stands in `log` is a line of whatever format the server in the
//! container writes, and is read as if it stood alone; `time` is when Docker had it. Lines of more than 16 KiB come in
//! several objects: none of these is a request.

use super::found::unescape;
use memchr::memchr2;

/// What such a line begins with.
pub(crate) const BEGINS: &[u8] = br#"{"log":""#;

/// The line that is wrapped up in this one, put into `place`; `None` if none is.
#[inline]
pub(crate) fn unwrapped<'a>(line: &[u8], place: &'a mut Vec<u8>) -> Option<&'a [u8]> {
    // Most lines are told by their first byte.
    if line.first() == Some(&b'{') { inside(line, place) } else { None }
}

#[cold]
fn inside<'a>(line: &[u8], place: &'a mut Vec<u8>) -> Option<&'a [u8]> {
    let text = line.strip_prefix(BEGINS)?;
    let (inner, rest) = text.split_at_checked(closing_quote(text)?)?;
    // Somebody's own log may have a field of this name.
    if !rest.starts_with(br#"","stream":"std"#) {
        return None;
    }
    place.clear();
    unescape(inner, place);
    let inner = place.strip_suffix(b"\n").unwrap_or(place);
    Some(inner.strip_suffix(b"\r").unwrap_or(inner))
}

/// The first quote without a backslash before it.
fn closing_quote(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += memchr2(b'"', b'\\', text.get(at..)?)?;
        if text.get(at) == Some(&b'"') {
            return Some(at);
        }
        // A backslash, and what it escapes.
        at += 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(line: &str) -> Option<String> {
        let mut place = b"old".to_vec();
        unwrapped(line.as_bytes(), &mut place).map(|inner| String::from_utf8(inner.to_vec()).unwrap())
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
