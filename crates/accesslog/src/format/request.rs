//! The values of a request while its line is being read. Most values are stored in an [`Entry`]. Texts that consist of
//! several fields or have escapes are completed after the line has been read.

use crate::entry::Entry;
use std::net::IpAddr;

/// The outcome of reading a line that is not malformed.
#[expect(clippy::large_enum_variant, reason = "nearly all lines are requests, and nothing is kept")]
pub(crate) enum Parsed<'a> {
    Request(RawRequest<'a>),
    /// A line of the log that is not a request.
    Other,
}

/// A text of the entry that may have escapes. Each text has a bit in [`RawRequest::escaped_slots`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    Method,
    /// The target, or the whole request line until it is split.
    Target,
    Protocol,
    Host,
    Client,
    Agent,
    Referer,
    Query,
}

/// A request with its texts as they are written in the line.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RawRequest<'a> {
    /// The values of the fields. Texts still have their escapes.
    pub entry: Entry<'a>,
    /// The query, if the line has a separate field for it.
    pub query: &'a [u8],
    /// Bit set of the texts ([`Slot`]) that have JSON escapes.
    pub escaped_slots: u8,
    /// Bit set of the texts ([`Slot`]) that have doubled quotes.
    pub doubled_quote_slots: u8,
    /// Whether `entry.target` contains the whole request line, which must still be split.
    pub is_request_line: bool,
    /// Whether the target may be an absolute URL, whose scheme and host are removed from the target.
    pub may_be_absolute: bool,
}

impl<'a> RawRequest<'a> {
    /// Converts the fields of the line to an entry. `buffer` stores the fields that had to be unescaped, because these
    /// are not slices of the line.
    #[inline]
    pub(crate) fn build_entry(&self, buffer: &'a mut Vec<u8>) -> Entry<'a> {
        let needs_buffer = self.escaped_slots != 0 || self.doubled_quote_slots != 0 || !self.query.is_empty();
        let mut entry = if needs_buffer { self.copy_texts(buffer) } else { self.entry };
        if self.is_request_line {
            (entry.method, entry.target, entry.protocol) = split_request(entry.target);
        }
        if self.may_be_absolute
            && let Some((host, target)) = split_url(entry.target)
        {
            entry.target = target;
            if entry.host.is_empty() {
                entry.host = host;
            }
        }
        entry
    }

    /// Copies all texts to `bytes`. Decodes the escapes, and appends the query to the target.
    #[cold]
    fn copy_texts(&self, bytes: &'a mut Vec<u8>) -> Entry<'a> {
        let Entry { method, target, protocol, host, client, user_agent, referer, .. } = self.entry;
        let texts = [method, target, protocol, host, client, user_agent, referer];
        bytes.clear();
        let write = |slot: usize, text: &[u8], bytes: &mut Vec<u8>| match 1 << slot {
            bit if self.escaped_slots & bit != 0 => unescape(text, bytes),
            bit if self.doubled_quote_slots & bit != 0 => undouble(text, bytes),
            _ => bytes.extend_from_slice(text),
        };
        let ends = std::array::from_fn::<usize, 7, _>(|slot| {
            write(slot, texts.get(slot).copied().unwrap_or_default(), bytes);
            let has_query = slot == Slot::Target as usize && !self.query.is_empty() && !target.contains(&b'?');
            if has_query {
                bytes.push(b'?');
                write(Slot::Query as usize, self.query, bytes);
            }
            bytes.len()
        });
        let bytes: &'a [u8] = bytes;
        let mut start = 0;
        let [method, target, protocol, host, client, user_agent, referer] = ends.map(|end| {
            let text = bytes.get(start..end).unwrap_or_default();
            start = end;
            text
        });
        Entry { method, target, protocol, host, client, user_agent, referer, ..self.entry }
    }
}

/// Returns an empty text for `-`, which means that the value is missing. Returns other texts unchanged.
#[inline]
pub(crate) fn without_dash(text: &[u8]) -> &[u8] {
    // A comparison with `==` would compile to a function call.
    if let [b'-'] = text { &[] } else { text }
}

/// Splits a request line into method, target and protocol. A text that is not a request, such as a TLS handshake,
/// becomes the target.
#[inline]
pub(crate) fn split_request(line: &[u8]) -> (&[u8], &[u8], &[u8]) {
    let line = without_dash(line);
    let Some(space) = memchr::memchr(b' ', line.get(..32).unwrap_or(line)) else { return (&[], line, &[]) };
    let method = line.get(..space).unwrap_or_default();
    let rest = line.get(space + 1..).unwrap_or_default();
    if method.is_empty() || !method.iter().all(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'-' | b'_')) {
        return (&[], line, &[]);
    }
    // Nearly all request lines end with a protocol of this length, such as ` HTTP/1.1`.
    if let Some((target, protocol)) = rest.split_last_chunk::<9>()
        && protocol.starts_with(b" HTTP/")
    {
        return (method, target.trim_ascii(), protocol.get(1..).unwrap_or_default());
    }
    match memchr::memrchr(b' ', rest).and_then(|space| rest.split_at_checked(space)) {
        Some((target, protocol)) if protocol.starts_with(b" HTTP") || protocol.starts_with(b" http") => {
            (method, target.trim_ascii(), protocol.trim_ascii())
        }
        _ => (method, rest.trim_ascii(), &[]),
    }
}

/// Host and target of `https://example.com:443/path`, without the default port of the scheme.
fn split_url(url: &[u8]) -> Option<(&[u8], &[u8])> {
    let (rest, port) = match url.strip_prefix(b"http://") {
        Some(rest) => (rest, b":80".as_slice()),
        None => (url.strip_prefix(b"https://")?, b":443".as_slice()),
    };
    let end = memchr::memchr2(b'/', b'?', rest).unwrap_or(rest.len());
    let (host, target) = rest.split_at_checked(end)?;
    Some((host.strip_suffix(port).unwrap_or(host), if target.is_empty() { b"/".as_slice() } else { target }))
}

/// Removes the port and the brackets of an address such as `192.0.2.1:2817` or `[2001:db8::1]:2817`.
pub(crate) fn without_port(client: &[u8]) -> &[u8] {
    let host = match memchr::memrchr(b':', client).and_then(|colon| client.split_at_checked(colon)) {
        Some((host, port)) if port.len() > 1 && port.get(1..).is_some_and(|p| p.iter().all(u8::is_ascii_digit)) => host,
        _ => client,
    };
    host.strip_prefix(b"[").and_then(|host| host.strip_suffix(b"]")).unwrap_or(host)
}

/// The client that a field contains: an address or name, with or without a port, or the first of a list `client, proxy,
/// proxy`.
#[inline]
pub(crate) fn client_address(field: &[u8]) -> &[u8] {
    if memchr::memchr3(b',', b':', b'"', field).is_none() { without_dash(field) } else { client_of_list(field) }
}

/// The client in a list of addresses. If no element is an address, the whole text is the client.
#[cold]
fn client_of_list(field: &[u8]) -> &[u8] {
    if list_elements(field).any(|element| parse_ip(element).is_some()) {
        first_address(field)
    } else {
        without_dash(field)
    }
}

/// The client of `X-Forwarded-For: client, proxy` or of `Forwarded: for=client;by=proxy, for=proxy`. This is the first
/// address or host name of the list, or else the first element that does not hide its address. Empty if all elements
/// hide their address.
pub(crate) fn first_address(list: &[u8]) -> &[u8] {
    let is_named = |element: &&[u8]| !is_hidden(element);
    let address =
        list_elements(list).map(strip_any_port).find(|element| parse_ip(element).is_some() || is_host_name(element));
    address.or_else(|| list_elements(list).find(is_named).map(strip_any_port)).unwrap_or_default()
}

/// Whether a list is not empty, and each of its elements is an address or hides its address.
pub(crate) fn is_address_list(list: &[u8]) -> bool {
    !list.is_empty() && list_elements(list).all(|element| is_hidden(element) || parse_ip(element).is_some())
}

/// Parses an IP address, which may have a port.
pub(crate) fn parse_ip(text: &[u8]) -> Option<IpAddr> {
    let address = strip_any_port(text);
    let without_zone = address.get(..memchr::memchr(b'%', address).unwrap_or(address.len())).unwrap_or_default();
    std::str::from_utf8(without_zone).ok()?.parse().ok()
}

/// The elements of a list, without padding (IIS writes spaces as `+`), quotes and `for=`.
fn list_elements(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    let is_padding = |byte: &u8| matches!(byte, b' ' | b'+' | b'"' | b'\t');
    list.split(|byte| *byte == b',').map(move |element| {
        let start = element.iter().position(|byte| !is_padding(byte)).unwrap_or(element.len());
        let element = element.get(start..).unwrap_or_default();
        let element = match element.get(..4) {
            Some(prefix) if prefix.eq_ignore_ascii_case(b"for=") => {
                let value = element.get(4..).unwrap_or_default();
                value.get(..memchr::memchr(b';', value).unwrap_or(value.len())).unwrap_or_default()
            }
            _ => element,
        };
        let start = element.iter().position(|byte| !is_padding(byte)).unwrap_or(element.len());
        let end = element.iter().rposition(|byte| !is_padding(byte)).map_or(start, |last| last + 1);
        element.get(start..end).unwrap_or_default()
    })
}

/// Whether the element hides the address: `-`, `unknown`, a Unix socket, or an obfuscated name (RFC 7239, section 6.3).
fn is_hidden(element: &[u8]) -> bool {
    matches!(element, b"" | b"-" | b"unix:") || element.eq_ignore_ascii_case(b"unknown") || element.starts_with(b"_")
}

/// Removes the brackets and the port of `192.0.2.1:443`, `[2001:db8::1]:443` and `name:443`. An IPv6 address without
/// brackets has no port, so its last group stays.
fn strip_any_port(element: &[u8]) -> &[u8] {
    let has_port = element.starts_with(b"[") || element.iter().filter(|byte| **byte == b':').count() == 1;
    if has_port { without_port(element) } else { element }
}

/// Whether a text looks like `crawler.example.com`.
fn is_host_name(text: &[u8]) -> bool {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-');
    text.contains(&b'.') && text.iter().all(is_part)
}

/// Converts the end time of a request into its start time. A time in whole seconds is not changed, because its rounding
/// error may exceed the duration of the request.
#[inline]
pub(crate) fn move_to_start(entry: &mut Entry<'_>, is_end_time: bool) {
    if is_end_time
        && entry.has_subsecond_time
        && let Some(begun_ns) = entry.service_ns.and_then(|ns| entry.time_ns.checked_sub(i64::try_from(ns).ok()?))
        && begun_ns >= 0
    {
        entry.time_ns = begun_ns;
    }
}

/// Replaces each doubled quote by a single quote.
fn undouble(text: &[u8], bytes: &mut Vec<u8>) {
    let mut was_quote = false;
    for byte in text {
        was_quote = *byte == b'"' && !was_quote;
        if *byte != b'"' || was_quote {
            bytes.push(*byte);
        }
    }
}

/// Decodes JSON escapes, and escapes such as `\x22`, which nginx writes.
pub(crate) fn unescape(mut text: &[u8], bytes: &mut Vec<u8>) {
    while let Some(at) = memchr::memchr(b'\\', text) {
        let (plain, escape) = text.split_at_checked(at).unwrap_or((text, &[]));
        bytes.extend_from_slice(plain);
        let (length, character) = match escape.get(1) {
            Some(b'n') => (2, '\n'),
            Some(b't') => (2, '\t'),
            Some(b'r') => (2, '\r'),
            Some(b'b') => (2, '\u{8}'),
            Some(b'f') => (2, '\u{c}'),
            Some(b'u') => unicode(escape),
            Some(b'x') => {
                bytes.push(hex(escape.get(2..4)).and_then(|byte| u8::try_from(byte).ok()).unwrap_or(b'?'));
                text = escape.get(4..).unwrap_or_default();
                continue;
            }
            // The escapes `\"`, `\\` and `\/`, and invalid escapes. The byte after the backslash is kept.
            _ => {
                bytes.extend(escape.get(1));
                text = escape.get(2..).unwrap_or_default();
                continue;
            }
        };
        bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        text = escape.get(length..).unwrap_or_default();
    }
    bytes.extend_from_slice(text);
}

/// The character of `\u00e9` or of a surrogate pair, and the length of the escape.
fn unicode(escape: &[u8]) -> (usize, char) {
    let Some(unit) = hex(escape.get(2..6)) else { return (2, char::REPLACEMENT_CHARACTER) };
    let low = escape.get(6..8).filter(|start| *start == b"\\u").and_then(|_| hex(escape.get(8..12)));
    match (unit, low) {
        (0xd800..0xdc00, Some(low @ 0xdc00..0xe000)) => {
            let code = 0x1_0000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
            (12, char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER))
        }
        _ => (6, char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER)),
    }
}

fn hex(digits: Option<&[u8]>) -> Option<u32> {
    digits?.iter().try_fold(0, |value, byte| Some(value * 16 + char::from(*byte).to_digit(16)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn split(line: &str) -> [&str; 3] {
        let (method, target, protocol) = split_request(line.as_bytes());
        [method, target, protocol].map(|text| std::str::from_utf8(text).unwrap())
    }

    #[test]
    fn whatever_a_client_sends_is_a_request() {
        assert_eq!(split("GET /a?b=c HTTP/1.1"), ["GET", "/a?b=c", "HTTP/1.1"]);
        assert_eq!(split("GET / HTTP/2"), ["GET", "/", "HTTP/2"]);
        assert_eq!(split("GET /ksc.html"), ["GET", "/ksc.html", ""]);
        assert_eq!(split("GET /a file name HTTP/1.0"), ["GET", "/a file name", "HTTP/1.0"]);
        assert_eq!(split("GET  / HTTP/1.0"), ["GET", "/", "HTTP/1.0"]);
        assert_eq!(split("PROPFIND /x HTTP/1.1"), ["PROPFIND", "/x", "HTTP/1.1"]);
        assert_eq!(split("M-SEARCH * HTTP/1.1"), ["M-SEARCH", "*", "HTTP/1.1"]);
        assert_eq!(split("\\x16\\x03\\x01 \\x00"), ["", "\\x16\\x03\\x01 \\x00", ""]);
        assert_eq!(split("quit"), ["", "quit", ""]);
        assert_eq!((split("-"), split("")), (["", "", ""], ["", "", ""]));
        assert_eq!(split("GET HTTP/1.1"), ["GET", "HTTP/1.1", ""]);
    }

    #[test]
    fn urls_and_addresses_are_taken_apart() {
        let url = |url: &'static str| split_url(url.as_bytes()).unwrap();
        assert_eq!(url("https://example.com:443/a?b"), (b"example.com".as_slice(), b"/a?b".as_slice()));
        assert_eq!(url("http://example.com:8080"), (b"example.com:8080".as_slice(), b"/".as_slice()));
        assert_eq!(url("http://[::1]:80?q"), (b"[::1]".as_slice(), b"?q".as_slice()));
        assert_eq!(split_url(b"/http://a"), None);
        assert_eq!(without_port(b"192.0.2.1:2817"), b"192.0.2.1");
        assert_eq!(without_port(b"[2001:db8::1]:2817"), b"2001:db8::1");
        assert_eq!(without_port(b"example.com"), b"example.com");
        assert_eq!(first_address(b" 192.0.2.1, 10.0.0.1"), b"192.0.2.1");
        assert_eq!(first_address(b"-"), b"");
    }

    #[test]
    fn the_client_of_a_list_is_its_first_address() {
        for (list, first) in [
            ("203.0.113.7, 198.51.100.9", "203.0.113.7"),
            ("203.0.113.7,198.51.100.9,10.0.0.1", "203.0.113.7"),
            ("203.0.113.7:443, 198.51.100.9:80", "203.0.113.7"),
            ("2001:db8::17, 198.51.100.9", "2001:db8::17"),
            ("[2001:db8::17]:443, 198.51.100.9", "2001:db8::17"),
            ("[2001:db8::17]", "2001:db8::17"),
            ("fe80::1%eth0, ::1", "fe80::1%eth0"),
            ("unknown, 198.51.100.9", "198.51.100.9"),
            ("unix:, 198.51.100.9", "198.51.100.9"),
            ("_hidden, _SEVKISEK, 198.51.100.9", "198.51.100.9"),
            ("-, 198.51.100.9", "198.51.100.9"),
            ("\"203.0.113.7, 198.51.100.9\"", "203.0.113.7"),
            ("203.0.113.7,+198.51.100.9", "203.0.113.7"),
            ("for=192.0.2.60;proto=http;by=203.0.113.43, for=198.51.100.17", "192.0.2.60"),
            ("For=\"[2001:db8:cafe::17]:4711\"", "2001:db8:cafe::17"),
            ("crawler.example.com, 198.51.100.9", "crawler.example.com"),
            ("' or 1=1, 203.0.113.7", "203.0.113.7"),
        ] {
            assert_eq!(client_address(list.as_bytes()), first.as_bytes(), "{list}");
            assert_eq!(first_address(list.as_bytes()), first.as_bytes(), "{list}");
        }
        // A client field keeps a hidden address such as `unknown`, because the text still distinguishes this client
        // from others. In the header `X-Forwarded-For`, hidden addresses are ignored.
        for (field, itself) in [
            ("unknown", "unknown"),
            ("unix:", "unix:"),
            ("a:1, b", "a:1, b"),
            ("-", ""),
            ("2001:db8::17", "2001:db8::17"),
        ] {
            assert_eq!(client_address(field.as_bytes()), itself.as_bytes(), "{field}");
        }
        assert_eq!(
            (first_address(b"unknown"), first_address(b"unix:"), first_address(b"_x, -")),
            (&b""[..], &b""[..], &b""[..])
        );
    }

    #[test]
    fn escapes_are_undone_in_another_place() {
        let entry = Entry {
            target: br"/caf\u00e9\/\ud83d\ude00",
            user_agent: br#"a \"b\" \x41"#,
            client: b"::1",
            ..Entry::default()
        };
        let escaped = (1 << Slot::Target as u8) | (1 << Slot::Agent as u8);
        let raw = RawRequest { entry, query: b"a=1", escaped_slots: escaped, ..RawRequest::default() };
        let mut place = b"old".to_vec();
        let read = raw.build_entry(&mut place);
        assert_eq!(read.target, "/café/😀?a=1".as_bytes());
        assert_eq!((read.user_agent, read.client), (br#"a "b" A"#.as_slice(), b"::1".as_slice()));
    }

    proptest! {
        #[test]
        fn no_text_panics(text: Vec<u8>, escapes in r#"[\\u0-9a-fx"d]{0,40}"#) {
            for text in [text.as_slice(), escapes.as_bytes()] {
                let mut bytes = Vec::new();
                unescape(text, &mut bytes);
                prop_assert!(bytes.len() <= 2 * text.len());
                let _ = (split_request(text), split_url(text), without_port(text), client_address(text), is_address_list(text));
            }
        }
    }
}
