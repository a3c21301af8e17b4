//! Recognizes the prefixes that syslog and container runtimes write before the lines of a server. Syslog prefixes
//! follow RFC 3164 as rsyslog and journalctl write it, also with RFC 3339 timestamps. A prefix of a container runtime
//! looks like `2026-11-23T10:00:00.5Z stdout F …`.

/// The length of a line's prefix in bytes; usually 0.
#[inline]
pub(crate) fn prefix_length(line: &[u8]) -> usize {
    let Some(start) = line.first_chunk::<16>() else { return 0 };
    let has_priority = start[0] == b'<';
    let is_old = start[3] == b' ' && start[6] == b' ' && start[9] == b':' && start[12] == b':' && start[15] == b' ';
    let is_new = start[4] == b'-' && start[7] == b'-' && start[10] == b'T' && start[13] == b':';
    if has_priority || is_old || is_new { find_prefix(line).unwrap_or(0) } else { 0 }
}

#[cold]
fn find_prefix(line: &[u8]) -> Option<usize> {
    let mut at = 0;
    if let Some(rest) = line.strip_prefix(b"<") {
        let digits = rest.iter().take(4).take_while(|byte| byte.is_ascii_digit()).count();
        at = (rest.get(digits) == Some(&b'>')).then_some(digits + 2)?;
    }
    let text = line.get(at..)?;
    let stamp = match text.first_chunk::<16>()? {
        [b'A'..=b'Z', _, _, b' ', _, _, b' ', .., b' '] => 16,
        [b'0'..=b'9', ..] => word(text)?,
        _ => return None,
    };
    let rest = text.get(stamp..)?;
    for stream in [b"stdout F ", b"stderr F ", b"stdout P ", b"stderr P "] {
        if rest.starts_with(stream) {
            return Some(at + stamp + stream.len());
        }
    }
    let host = word(rest)?;
    let tag = word(rest.get(host..)?)?;
    rest.get(..host + tag)?.ends_with(b": ").then_some(at + stamp + host + tag)
}

/// The length of a word in bytes, including the space after it; `None` if the word is longer than a host name.
fn word(text: &[u8]) -> Option<usize> {
    let text = text.get(..256).unwrap_or(text);
    memchr::memchr(b' ', text).filter(|length| *length > 0).map(|length| length + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_carries_a_line_is_known_by_its_look() {
        for (before, line) in [
            ("Nov 23 10:00:01 web1 nginx: ", "192.0.2.1 - - [x"),
            ("<190>Nov  3 10:00:01 web1 nginx[12]: ", "192.0.2.1 - - [x"),
            ("2026-11-23T10:00:01.123456+00:00 web1 caddy[12]: ", "{}"),
            ("2026-11-23T10:00:01.123456789Z stdout F ", "{}"),
            ("", "192.0.2.1 - - [10/Oct/2000:13:55:36 -0700] x"),
            ("", "2015-05-13T23:39:43.945958Z my-loadbalancer 192.168.131.39:2817 10.0.0.1:80"),
            ("", "Nov 23 10:00:01 web1 nginx 192.0.2.1"),
            ("", "<190>"),
            ("", "2026-11-23T10:00:01"),
        ] {
            assert_eq!(prefix_length(format!("{before}{line}").as_bytes()), before.len(), "{before}{line}");
        }
    }
}
