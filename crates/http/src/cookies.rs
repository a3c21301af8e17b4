//! The cookies of one user of one server. They are read from the heads of responses and sent with later requests.
//!
//! This is the part of RFC 6265 (Barth 2011) that a load generator needs. Section numbers refer to RFC 6265.
//!
//! - Name, value, `Path`, `Max-Age`, `Expires` and `Secure` are used. `Domain` is ignored, because all requests go to
//!   one server. `HttpOnly` and `SameSite` are ignored, because there are no scripts and no other sites.
//! - A `Secure` cookie that arrives without TLS is ignored. An expired cookie is removed.
//! - A jar has at most [`CookieJar::MAX_COOKIES`] cookies and [`CookieJar::MAX_BYTES`] bytes of names, values and
//!   paths; the oldest cookies are evicted first. Cookies that are too large are ignored.
//! - Cookies are untrusted: none of their bytes can end a line of a request. A cookie with a control character is
//!   ignored. If a field is folded over several lines (obs-fold), only its first line is used.
//!
//! The caller passes a function that returns the time in seconds since 1970. The jar calls this function only for
//! cookies that can expire.

mod date;

/// Maximum length in bytes of one cookie's name and value together (§6.1), and of its path.
const MAX_COOKIE_BYTES: usize = 4096;

/// The cookies that one user received from a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CookieJar {
    /// The cookies in the order in which they are sent: longer paths first, then older cookies first (§5.4).
    cookies: Vec<Cookie>,
    bytes: usize,
    /// Number of cookies received so far; it wraps around.
    received: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Cookie {
    /// The text `name=value`.
    pair: Box<[u8]>,
    /// Length of the name at the start of `pair`, in bytes.
    name_len: usize,
    path: Box<[u8]>,
    /// Expiry time in seconds since 1970; `None` if the cookie does not expire during the session.
    expires: Option<u64>,
    /// The order in which cookies were first received: the value of [`CookieJar::received`] at that time.
    sequence: u32,
}

/// The content of a Set-Cookie field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SetCookie<'h> {
    name: &'h [u8],
    value: &'h [u8],
    path: Option<&'h [u8]>,
    /// The `Max-Age` attribute, in seconds after the receipt of the cookie. Zero or a negative number removes the
    /// cookie.
    max_age: Option<i64>,
    /// The `Expires` attribute, in seconds since 1970.
    expires: Option<u64>,
    secure: bool,
}

impl CookieJar {
    /// Maximum number of cookies in a jar.
    pub const MAX_COOKIES: usize = 50;
    /// Maximum total length in bytes of all names, values and paths in a jar.
    pub const MAX_BYTES: usize = 8192;

    /// Whether the jar has no cookie.
    pub fn is_empty(&self) -> bool {
        self.cookies.is_empty()
    }

    /// Whether a response with this head sets or removes a cookie.
    pub fn sets_cookies(head: &[u8]) -> bool {
        set_cookies(head).next().is_some()
    }

    /// Stores the cookies of a response to a request for `target`, made with or without TLS. The directory of `target`
    /// is the default path of a cookie.
    pub fn receive(&mut self, head: &[u8], target: &[u8], tls: bool, now: impl Fn() -> u64) {
        for cookie in set_cookies(head).filter_map(parse_set_cookie) {
            if cookie.secure && !tls {
                continue;
            }
            let expires = match cookie.max_age {
                Some(seconds) if seconds <= 0 => Some(0),
                Some(seconds) => Some(now().saturating_add(seconds.unsigned_abs())),
                None => cookie.expires,
            };
            let path = cookie.path.unwrap_or_else(|| directory(target));
            if expires.is_some_and(|at| at == 0 || at <= now()) {
                self.remove(cookie.name, path);
            } else {
                self.put(cookie, path, expires);
            }
        }
    }

    /// Appends to `cookies` the pairs `name=value` to send with a request for `target`, separated by `; `.
    pub fn write(&self, target: &[u8], now: impl Fn() -> u64, cookies: &mut Vec<u8>) {
        let path = request_path(target);
        for cookie in self.cookies.iter().filter(|cookie| path_matches(&cookie.path, path)) {
            if cookie.expires.is_some_and(|at| at <= now()) {
                continue;
            }
            if !cookies.is_empty() {
                cookies.extend_from_slice(b"; ");
            }
            cookies.extend_from_slice(&cookie.pair);
        }
    }

    /// Stores a cookie. It replaces a cookie with the same name and path.
    fn put(&mut self, set_cookie: SetCookie<'_>, path: &[u8], expires: Option<u64>) {
        let replaced = self.remove(set_cookie.name, path);
        self.received = self.received.wrapping_add(1);
        let cookie = Cookie {
            pair: [set_cookie.name, b"=", set_cookie.value].concat().into(),
            name_len: set_cookie.name.len(),
            path: path.into(),
            expires,
            sequence: replaced.map_or(self.received, |replaced| replaced.sequence),
        };
        while self.cookies.len() >= CookieJar::MAX_COOKIES || self.bytes + cookie.bytes() > CookieJar::MAX_BYTES {
            let oldest = (0..self.cookies.len()).min_by_key(|at| self.cookies.get(*at).map(|cookie| cookie.sequence));
            let Some(oldest) = oldest else { return };
            self.remove_at(oldest);
        }
        self.bytes += cookie.bytes();
        let rank = |cookie: &Cookie| (std::cmp::Reverse(cookie.path.len()), cookie.sequence);
        let at = self.cookies.partition_point(|other| rank(other) < rank(&cookie));
        self.cookies.insert(at, cookie);
    }

    /// Removes the cookie with this name and path.
    fn remove(&mut self, name: &[u8], path: &[u8]) -> Option<Cookie> {
        let is_same = |cookie: &Cookie| cookie.name() == name && *cookie.path == *path;
        self.cookies.iter().position(is_same).map(|at| self.remove_at(at))
    }

    fn remove_at(&mut self, at: usize) -> Cookie {
        let cookie = self.cookies.remove(at);
        self.bytes -= cookie.bytes();
        cookie
    }
}

impl Cookie {
    fn bytes(&self) -> usize {
        self.pair.len() + self.path.len()
    }

    fn name(&self) -> &[u8] {
        &self.pair[..self.name_len]
    }
}

/// The values of the Set-Cookie fields of a head.
fn set_cookies(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    const NAME: &[u8] = b"set-cookie:";
    head.split(|byte| *byte == b'\n').filter_map(|line| {
        let (name, value) = line.split_at_checked(NAME.len())?;
        name.eq_ignore_ascii_case(NAME).then(|| value.strip_suffix(b"\r").unwrap_or(value))
    })
}

/// Parses the value of a Set-Cookie field (§5.2). Returns `None` if the value is not a cookie or must be ignored.
fn parse_set_cookie(field: &[u8]) -> Option<SetCookie<'_>> {
    if field.iter().any(|byte| (*byte < b' ' && *byte != b'\t') || *byte == 0x7f) {
        return None;
    }
    let mut parts = field.split(|byte| *byte == b';');
    let pair = parts.next()?;
    let equals = pair.iter().position(|byte| *byte == b'=')?;
    let name = pair[..equals].trim_ascii();
    let value = pair[equals + 1..].trim_ascii();
    if name.is_empty() || name.len() + value.len() > MAX_COOKIE_BYTES {
        return None;
    }
    let mut cookie = SetCookie { name, value, path: None, max_age: None, expires: None, secure: false };
    for part in parts {
        let (name, value) = match part.iter().position(|byte| *byte == b'=') {
            Some(equals) => (part[..equals].trim_ascii(), part[equals + 1..].trim_ascii()),
            None => (part.trim_ascii(), &b""[..]),
        };
        // The last attribute of a name counts (§5.3). An invalid `Max-Age` or `Expires` is ignored, but an invalid
        // `Path` removes an earlier `Path` (§5.2.4).
        if name.eq_ignore_ascii_case(b"path") {
            cookie.path = Some(value).filter(|path| path.starts_with(b"/") && path.len() <= MAX_COOKIE_BYTES);
        } else if name.eq_ignore_ascii_case(b"max-age") {
            cookie.max_age = parse_seconds(value).or(cookie.max_age);
        } else if name.eq_ignore_ascii_case(b"expires") {
            cookie.expires = date::parse(value).or(cookie.expires);
        } else if name.eq_ignore_ascii_case(b"secure") {
            cookie.secure = true;
        }
    }
    Some(cookie)
}

/// Parses a whole number of seconds, which may be negative (§5.2.2). A number that is too large for 64 bits becomes the
/// largest or smallest number.
fn parse_seconds(text: &[u8]) -> Option<i64> {
    let (is_negative, digits) = match text.strip_prefix(b"-") {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = digits.iter().fold(0_i64, |sum, digit| sum.saturating_mul(10).saturating_add(i64::from(digit - b'0')));
    Some(if is_negative { -number } else { number })
}

/// The path of a request target, without its query.
fn request_path(target: &[u8]) -> &[u8] {
    let path = target.split(|byte| *byte == b'?').next().unwrap_or_default();
    if path.starts_with(b"/") { path } else { b"/" }
}

/// The default path of a cookie (§5.1.4): the directory of the request target.
fn directory(target: &[u8]) -> &[u8] {
    let path = request_path(target);
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) if (1..=MAX_COOKIE_BYTES).contains(&slash) => &path[..slash],
        _ => b"/",
    }
}

/// Whether a cookie with path `cookie` is sent with a request for `path` (§5.1.4).
fn path_matches(cookie: &[u8], path: &[u8]) -> bool {
    path.strip_prefix(cookie).is_some_and(|rest| rest.is_empty() || cookie.ends_with(b"/") || rest.starts_with(b"/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW: u64 = 1_800_000_000;

    /// The `Cookie` value sent for `target`, after a response to `/app/login?x=/y` with these Set-Cookie fields.
    fn sent(fields: &[&str], target: &str) -> String {
        sent_at(&jar(fields), target, NOW)
    }

    fn jar(fields: &[&str]) -> CookieJar {
        let mut jar = CookieJar::default();
        let head = |field: &str| format!("HTTP/1.1 200 OK\r\nSET-cookie: {field}\r\nContent-Length: 0\r\n\r\n");
        fields.iter().for_each(|field| jar.receive(head(field).as_bytes(), b"/app/login?x=/y", false, || NOW));
        jar
    }

    fn sent_at(jar: &CookieJar, target: &str, now: u64) -> String {
        let mut cookies = Vec::new();
        jar.write(target.as_bytes(), || now, &mut cookies);
        String::from_utf8(cookies).unwrap()
    }

    #[test]
    fn cookies_that_were_set_are_sent_back() {
        assert_eq!(sent(&["a=b; Path=/; HttpOnly; SameSite=Lax", " c = \"d e\" ;path=/"], "/"), "a=b; c=\"d e\"");
        assert_eq!(sent(&["a=; Path=/", "b=x=y;Path=/"], "/"), "a=; b=x=y");
        assert_eq!(sent(&["a", "=b", "", ";", " = ; Path=/"], "/app/"), "");
        let head =
            b"HTTP/1.1 200 OK\r\nSet-Cookie: a=1\r\nX-Set-Cookie: b=2\r\nSet-Cookie: c=3\nSet-Cookie : d=4\r\n\r\n";
        let mut jar = CookieJar::default();
        jar.receive(head, b"/", false, || NOW);
        assert_eq!(sent_at(&jar, "/", NOW), "a=1; c=3");
        assert!(
            CookieJar::sets_cookies(head)
                && !CookieJar::sets_cookies(b"HTTP/1.1 200 OK\r\nServer: Set-Cookie: a=b\r\n\r\n")
        );
    }

    #[test]
    fn a_cookie_replaces_one_with_the_same_name_and_path() {
        assert_eq!(sent(&["a=1; Path=/", "b=2; Path=/", "a=3; Path=/"], "/"), "a=3; b=2");
        assert_eq!(sent(&["a=1; Path=/", "a=2; Path=/app"], "/app/x"), "a=2; a=1");
        assert_eq!(sent(&["a=1; Path=/", "A=2; Path=/"], "/"), "a=1; A=2");
    }

    #[test]
    fn a_cookie_is_sent_for_its_path() {
        for (path, target, goes) in [
            ("/", "/", true),
            ("/", "/x?y", true),
            ("/app", "/app", true),
            ("/app", "/app/x", true),
            ("/app", "/app?x", true),
            ("/app", "/apple", false),
            ("/app/", "/app/x", true),
            ("/app/", "/app", false),
            ("/app", "/", false),
            ("/app", "http://other/app", false),
            ("/", "*", true),
        ] {
            let expected = if goes { "a=b" } else { "" };
            assert_eq!(sent(&[&format!("a=b; Path={path}")], target), expected, "{path} {target}");
        }
        // Without a valid `Path`, the cookie's path is the directory of the request target.
        for field in ["a=b", "a=b; Path=x", "a=b; Path", "a=b; Path=/z; Path="] {
            assert_eq!(["/app/x", "/app", "/"].map(|target| sent(&[field], target)), ["a=b", "a=b", ""], "{field}");
        }
    }

    #[test]
    fn an_expired_cookie_is_not_sent_and_removes_an_earlier_one() {
        for over in [
            "Max-Age=0",
            "max-age=-5",
            "Max-Age=-99999999999999999999999",
            "Expires=Thu, 01 Jan 1970 00:00:00 GMT",
            "Expires=Fri, 15-Jan-27 07:59:59 GMT",
            "Expires=Tue, 19 Jan 2038 03:14:07 GMT; Max-Age=0",
        ] {
            assert_eq!(sent(&["a=b; Path=/", "c=d; Path=/", &format!("a=x; Path=/; {over}")], "/"), "c=d", "{over}");
        }
        for lasts in
            ["Max-Age=1", "Expires=Fri, 15 Jan 2027 08:00:01 GMT", "Expires=Thu, 01 Jan 1970 00:00:00 GMT; Max-Age=1"]
        {
            let jar = jar(&[&format!("a=b; Path=/; {lasts}")]);
            assert_eq!([NOW, NOW + 1].map(|now| sent_at(&jar, "/", now)), ["a=b", ""], "{lasts}");
        }
        for neither in
            ["Max-Age=", "Max-Age=soon", "Max-Age=1.5", "Expires=soon", "Expires=", "Max-Age=99999999999999999999"]
        {
            assert_eq!(sent(&[&format!("a=b; Path=/; {neither}")], "/"), "a=b", "{neither}");
        }
    }

    #[test]
    fn a_secure_cookie_needs_tls() {
        assert_eq!(sent(&["a=b; Path=/; Secure"], "/"), "");
        let mut jar = CookieJar::default();
        jar.receive(b"Set-Cookie: a=b; Path=/; secure\r\n", b"/", true, || NOW);
        assert_eq!(sent_at(&jar, "/", NOW), "a=b");
    }

    #[test]
    fn a_jar_is_bounded_and_the_oldest_go_first() {
        let fields: Vec<String> = (0..CookieJar::MAX_COOKIES + 2).map(|n| format!("c{n}=x; Path=/")).collect();
        let jar_of = |fields: &[String]| jar(&fields.iter().map(String::as_str).collect::<Vec<_>>());
        let many = jar_of(&fields);
        assert_eq!(many.cookies.len(), CookieJar::MAX_COOKIES);
        assert!(sent_at(&many, "/", NOW).starts_with("c2=x; c3=x"));
        let long: Vec<String> = (0..5).map(|n| format!("{n}={}; Path=/", "x".repeat(3_000))).collect();
        let few = jar_of(&long);
        assert!(few.bytes <= CookieJar::MAX_BYTES && sent_at(&few, "/", NOW).starts_with("3=xx"));
        assert!(jar(&[&format!("a={}; Path=/", "x".repeat(MAX_COOKIE_BYTES))]).is_empty());
    }

    #[test]
    fn no_byte_ends_a_line() {
        for bytes in [&b"a=b\rX: y"[..], b"a=b\0", b"a=\x01", b"a=\x7f", b"a=b; Path=/\x0b"] {
            let mut jar = CookieJar::default();
            jar.receive(&[b"Set-Cookie: ", bytes, b"\r\n\r\n"].concat(), b"/", false, || NOW);
            assert!(jar.is_empty(), "{bytes:?}");
        }
        // Only the first line of a folded field is used.
        let mut jar = CookieJar::default();
        jar.receive(b"Set-Cookie: a=b;\r\n Path=/x\r\n\r\n", b"/", false, || NOW);
        assert_eq!(sent_at(&jar, "/", NOW), "a=b");
    }

    proptest! {
        #[test]
        fn any_bytes_make_bounded_cookies_without_line_breaks(
            heads in prop::collection::vec(
                prop::collection::vec(
                    prop::sample::select(&b"Set-Cookie:=; \r\n\tabPath/Expires=max-age019 GMT Jan\x00\xff"[..]), 0..120,
                ),
                0..6,
            ),
        ) {
            let mut jar = CookieJar::default();
            for head in &heads {
                jar.receive(&[b"\r\nSet-Cookie:", &head[..]].concat(), b"/a/b", false, || NOW);
                prop_assert!(jar.bytes <= CookieJar::MAX_BYTES && jar.cookies.len() <= CookieJar::MAX_COOKIES);
                prop_assert_eq!(jar.bytes, jar.cookies.iter().map(Cookie::bytes).sum::<usize>());
            }
            let mut cookies = Vec::new();
            jar.write(b"/a/b/c", || NOW, &mut cookies);
            prop_assert!(!cookies.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)));
        }
    }
}
