//! The cookies that one user has of one server: taken from the heads of responses, and sent with later requests.
//!
//! What of RFC 6265 (Barth 2011) a load generator needs; section numbers are its own:
//!
//! - Name and value, `Path`, `Max-Age`, `Expires` and `Secure` count. `Domain` does not, as all requests go to one
//!   server, and neither do `HttpOnly` and `SameSite`, as there is no script and no other site.
//! - A cookie that is `Secure` and came without TLS is left out. One that has expired is removed.
//! - A jar holds no more than [`Jar::MAX_COOKIES`] cookies and [`Jar::MAX_BYTES`] bytes of names, values and paths; the
//!   oldest go first. Larger cookies are left out.
//! - What servers send is foreign: no byte of it ends a line of a request. A cookie with a control character in it is
//!   left out, and so is a field that goes on over several lines (obs-fold), from its second line on.
//!
//! It reads no clock: the time, in seconds since 1970, is asked for where it matters.

mod date;

/// Most bytes of one cookie's name and value (§6.1), and of its path.
const MOST_OF_ONE: usize = 4096;

/// One user's cookies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Jar {
    /// Those with long paths first, of equal paths the oldest (§5.4).
    cookies: Vec<Cookie>,
    bytes: usize,
    /// Cookies taken in so far.
    taken_in: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Cookie {
    /// `name=value`.
    pair: Box<[u8]>,
    /// Bytes of the name.
    name: usize,
    path: Box<[u8]>,
    /// Seconds since 1970; `None` is until the session ends.
    expires: Option<u64>,
    /// When it was taken in first, among the others.
    age: u32,
}

/// What a Set-Cookie field says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Given<'h> {
    name: &'h [u8],
    value: &'h [u8],
    path: Option<&'h [u8]>,
    /// Seconds from now; below one is the past.
    max_age: Option<i64>,
    /// Seconds since 1970.
    expires: Option<u64>,
    secure: bool,
}

impl Jar {
    /// Most cookies of one user.
    pub const MOST_COOKIES: usize = 50;
    /// Most bytes of their names, values and paths.
    pub const MOST_BYTES: usize = 8192;

    /// Whether it has no cookie.
    pub fn is_empty(&self) -> bool {
        self.cookies.is_empty()
    }

    /// Whether a response with this head sets or removes a cookie at all.
    pub fn is_set_by(head: &[u8]) -> bool {
        set_cookies(head).next().is_some()
    }

    /// Takes in what a response says whose request asked for `target`, by TLS or not. Of `target` only the directory
    /// matters: where a cookie goes that names no path.
    pub fn receive(&mut self, head: &[u8], target: &[u8], tls: bool, now: impl Fn() -> u64) {
        for given in set_cookies(head).filter_map(read) {
            if given.secure && !tls {
                continue;
            }
            let expires = match given {
                Given { max_age: Some(seconds), .. } if seconds <= 0 => Some(0),
                Given { max_age: Some(seconds), .. } => Some(now().saturating_add(seconds.unsigned_abs())),
                Given { expires, .. } => expires,
            };
            let path = given.path.unwrap_or_else(|| directory(target));
            let over = expires.is_some_and(|at| at == 0 || at <= now());
            self.put(given, path, expires, over);
        }
    }

    /// Appends what to send with a request for `target` to `cookies`: `name=value` pairs with `; ` in between.
    pub fn write(&self, target: &[u8], now: impl Fn() -> u64, cookies: &mut Vec<u8>) {
        let path = path_of(target);
        for cookie in self.cookies.iter().filter(|cookie| matches(&cookie.path, path)) {
            if cookie.expires.is_some_and(|at| at <= now()) {
                continue;
            }
            if !cookies.is_empty() {
                cookies.extend_from_slice(b"; ");
            }
            cookies.extend_from_slice(&cookie.pair);
        }
    }

    /// In place of the one of that name and path, if there is one; or just removes that.
    fn put(&mut self, given: Given<'_>, path: &[u8], expires: Option<u64>, over: bool) {
        let same = |cookie: &Cookie| cookie.named() == given.name && *cookie.path == *path;
        let before = self.cookies.iter().position(same).map(|at| self.take(at).age);
        if over {
            return;
        }
        self.taken_in = self.taken_in.wrapping_add(1);
        let cookie = Cookie {
            pair: [given.name, b"=", given.value].concat().into(),
            name: given.name.len(),
            path: path.into(),
            expires,
            age: before.unwrap_or(self.taken_in),
        };
        while self.cookies.len() >= Jar::MAX_COOKIES || self.bytes + cookie.bytes() > Jar::MAX_BYTES {
            let oldest = (0..self.cookies.len()).min_by_key(|at| self.cookies.get(*at).map(|cookie| cookie.age));
            let Some(oldest) = oldest else { return };
            self.take(oldest);
        }
        self.bytes += cookie.bytes();
        let rank = |cookie: &Cookie| (std::cmp::Reverse(cookie.path.len()), cookie.age);
        let at = self.cookies.partition_point(|other| rank(other) < rank(&cookie));
        self.cookies.insert(at, cookie);
    }

    fn take(&mut self, at: usize) -> Cookie {
        let cookie = self.cookies.remove(at);
        self.bytes -= cookie.bytes();
        cookie
    }
}

impl Cookie {
    fn bytes(&self) -> usize {
        self.pair.len() + self.path.len()
    }

    fn named(&self) -> &[u8] {
        &self.pair[..self.name]
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

/// What a field says (§5.2); `None` where it is no cookie, or one that is left out.
fn read(field: &[u8]) -> Option<Given<'_>> {
    if field.iter().any(|byte| (*byte < b' ' && *byte != b'\t') || *byte == 0x7f) {
        return None;
    }
    let mut parts = field.split(|byte| *byte == b';');
    let pair = parts.next()?;
    let equals = pair.iter().position(|byte| *byte == b'=')?;
    let (name, value) = (pair[..equals].trim_ascii(), pair[equals + 1..].trim_ascii());
    if name.is_empty() || name.len() + value.len() > MOST_OF_ONE {
        return None;
    }
    let mut given = Given { name, value, path: None, max_age: None, expires: None, secure: false };
    for part in parts {
        let (name, value) = match part.iter().position(|byte| *byte == b'=') {
            Some(equals) => (part[..equals].trim_ascii(), part[equals + 1..].trim_ascii()),
            None => (part.trim_ascii(), &b""[..]),
        };
        // The last one counts (§5.3), but for those that say nothing.
        if name.eq_ignore_ascii_case(b"path") {
            given.path = Some(value).filter(|path| path.starts_with(b"/") && path.len() <= MOST_OF_ONE);
        } else if name.eq_ignore_ascii_case(b"max-age") {
            given.max_age = seconds(value).or(given.max_age);
        } else if name.eq_ignore_ascii_case(b"expires") {
            given.expires = date::read(value).or(given.expires);
        } else if name.eq_ignore_ascii_case(b"secure") {
            given.secure = true;
        }
    }
    Some(given)
}

/// A whole number of seconds, which may be below zero (§5.2.2); as many as there are where there are more.
fn seconds(text: &[u8]) -> Option<i64> {
    let (below, digits) = match text.strip_prefix(b"-") {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = digits.iter().fold(0_i64, |sum, digit| sum.saturating_mul(10).saturating_add(i64::from(digit - b'0')));
    Some(if below { -number } else { number })
}

/// The path of a target, without its query.
fn path_of(target: &[u8]) -> &[u8] {
    let path = target.split(|byte| *byte == b'?').next().unwrap_or_default();
    if path.starts_with(b"/") { path } else { b"/" }
}

/// Where a cookie goes that names no path (§5.1.4): the directory of what was asked for.
fn directory(target: &[u8]) -> &[u8] {
    let path = path_of(target);
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) if (1..=MOST_OF_ONE).contains(&slash) => &path[..slash],
        _ => b"/",
    }
}

/// Whether a cookie of this path goes with a request for that one (§5.1.4).
fn matches(cookie: &[u8], path: &[u8]) -> bool {
    path.strip_prefix(cookie).is_some_and(|rest| rest.is_empty() || cookie.ends_with(b"/") || rest.starts_with(b"/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW: u64 = 1_800_000_000;

    /// What is sent for `target` after a response to `/app/login?x=/y` with these Set-Cookie fields.
    fn sent(fields: &[&str], target: &str) -> String {
        sent_at(&jar(fields), target, NOW)
    }

    fn jar(fields: &[&str]) -> Jar {
        let mut jar = Jar::default();
        let head = |field: &str| format!("HTTP/1.1 200 OK\r\nSET-cookie: {field}\r\nContent-Length: 0\r\n\r\n");
        fields.iter().for_each(|field| jar.receive(head(field).as_bytes(), b"/app/login?x=/y", false, || NOW));
        jar
    }

    fn sent_at(jar: &Jar, target: &str, now: u64) -> String {
        let mut cookies = Vec::new();
        jar.write(target.as_bytes(), || now, &mut cookies);
        String::from_utf8(cookies).unwrap()
    }

    #[test]
    fn what_was_set_is_sent_back() {
        assert_eq!(sent(&["a=b; Path=/; HttpOnly; SameSite=Lax", " c = \"d e\" ;path=/"], "/"), "a=b; c=\"d e\"");
        assert_eq!(sent(&["a=; Path=/", "b=x=y;Path=/"], "/"), "a=; b=x=y");
        assert_eq!(sent(&["a", "=b", "", ";", " = ; Path=/"], "/app/"), "");
        let head =
            b"HTTP/1.1 200 OK\r\nSet-Cookie: a=1\r\nX-Set-Cookie: b=2\r\nSet-Cookie: c=3\nSet-Cookie : d=4\r\n\r\n";
        let mut jar = Jar::default();
        jar.receive(head, b"/", false, || NOW);
        assert_eq!(sent_at(&jar, "/", NOW), "a=1; c=3");
        assert!(Jar::is_set_by(head) && !Jar::is_set_by(b"HTTP/1.1 200 OK\r\nServer: Set-Cookie: a=b\r\n\r\n"));
    }

    #[test]
    fn a_cookie_of_the_same_name_and_path_takes_the_place_of_the_other() {
        assert_eq!(sent(&["a=1; Path=/", "b=2; Path=/", "a=3; Path=/"], "/"), "a=3; b=2");
        assert_eq!(sent(&["a=1; Path=/", "a=2; Path=/app"], "/app/x"), "a=2; a=1");
        assert_eq!(sent(&["a=1; Path=/", "A=2; Path=/"], "/"), "a=1; A=2");
    }

    #[test]
    fn a_path_says_what_it_is_sent_for() {
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
        // Without one, or with one that is none, it is the directory of what was asked for.
        for field in ["a=b", "a=b; Path=x", "a=b; Path", "a=b; Path=/z; Path="] {
            assert_eq!(["/app/x", "/app", "/"].map(|target| sent(&[field], target)), ["a=b", "a=b", ""], "{field}");
        }
    }

    #[test]
    fn what_has_expired_is_not_sent_and_removes_what_was_there() {
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
    fn a_secure_cookie_is_for_tls() {
        assert_eq!(sent(&["a=b; Path=/; Secure"], "/"), "");
        let mut jar = Jar::default();
        jar.receive(b"Set-Cookie: a=b; Path=/; secure\r\n", b"/", true, || NOW);
        assert_eq!(sent_at(&jar, "/", NOW), "a=b");
    }

    #[test]
    fn a_jar_is_bounded_and_the_oldest_go_first() {
        let fields: Vec<String> = (0..Jar::MAX_COOKIES + 2).map(|n| format!("c{n}=x; Path=/")).collect();
        let jar_of = |fields: &[String]| jar(&fields.iter().map(String::as_str).collect::<Vec<_>>());
        let many = jar_of(&fields);
        assert_eq!(many.cookies.len(), Jar::MAX_COOKIES);
        assert!(sent_at(&many, "/", NOW).starts_with("c2=x; c3=x"));
        let long: Vec<String> = (0..5).map(|n| format!("{n}={}; Path=/", "x".repeat(3_000))).collect();
        let few = jar_of(&long);
        assert!(few.bytes <= Jar::MAX_BYTES && sent_at(&few, "/", NOW).starts_with("3=xx"));
        assert!(jar(&[&format!("a={}; Path=/", "x".repeat(MOST_OF_ONE))]).is_empty());
    }

    #[test]
    fn no_byte_ends_a_line() {
        for bytes in [&b"a=b\rX: y"[..], b"a=b\0", b"a=\x01", b"a=\x7f", b"a=b; Path=/\x0b"] {
            let mut jar = Jar::default();
            jar.receive(&[b"Set-Cookie: ", bytes, b"\r\n\r\n"].concat(), b"/", false, || NOW);
            assert!(jar.is_empty(), "{bytes:?}");
        }
        // A field that goes on has its first line.
        let mut jar = Jar::default();
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
            let mut jar = Jar::default();
            for head in &heads {
                jar.receive(&[b"\r\nSet-Cookie:", &head[..]].concat(), b"/a/b", false, || NOW);
                prop_assert!(jar.bytes <= Jar::MAX_BYTES && jar.cookies.len() <= Jar::MAX_COOKIES);
                prop_assert_eq!(jar.bytes, jar.cookies.iter().map(Cookie::bytes).sum::<usize>());
            }
            let mut cookies = Vec::new();
            jar.write(b"/a/b/c", || NOW, &mut cookies);
            prop_assert!(!cookies.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)));
        }
    }
}
