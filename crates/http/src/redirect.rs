//! Redirects: the target and the method of the next request (RFC 9110 §10.2.2 and §15.4, RFC 3986 §5.2). A target is
//! only resolved if it is on the same server: with the same scheme, host and port.

use crate::head::field_value;
use brimful_core::url::encode_bytes;
use std::borrow::Cow;

/// The next request after a redirect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Redirection<'a> {
    /// The next request goes to the same server.
    SameServer {
        /// Method of the next request.
        method: Cow<'a, str>,
        /// Path and query of the next request.
        target: String,
    },
    /// A request to another server, or to another port or with another scheme.
    OtherServer,
    /// The same request again, with the same method and body.
    ResendBody,
    /// No request, because `Location` is missing or is not a URL.
    InvalidLocation,
}

impl<'a> Redirection<'a> {
    /// Parses the head of the response to a request with this method and target. `origin` is the server's scheme, host
    /// and port, such as `http://example:8080`. Returns `None` if the response is not a redirect; 300 and 304 are not
    /// redirects.
    pub fn parse(head: &[u8], method: &'a str, target: &str, origin: &str) -> Option<Redirection<'a>> {
        let status = status(head).filter(|status| matches!(status, 301 | 302 | 303 | 307 | 308))?;
        let Some(location) = field_value(head, "location").and_then(encode_location) else {
            return Some(Redirection::InvalidLocation);
        };
        let safe = matches!(method, "GET" | "HEAD");
        let method = match status {
            // After 301 and 302, all clients change POST to GET, although the first specifications did not intend this
            // (RFC 9110 §15.4, note).
            301 | 302 if method == "POST" => "GET".into(),
            303 if !safe => "GET".into(),
            _ if safe => Cow::Borrowed(method),
            _ => return Some(Redirection::ResendBody),
        };
        Some(match resolve(&location, target, origin) {
            Some(target) => Redirection::SameServer { method, target },
            None => Redirection::OtherServer,
        })
    }
}

fn status(head: &[u8]) -> Option<u16> {
    std::str::from_utf8(head.split(|byte| *byte == b' ').nth(1)?.get(..3)?).ok()?.parse().ok()
}

/// Percent-encodes the spaces and non-ASCII bytes of a Location, so that it is valid in a request line. The character
/// set of these bytes is ignored, as in browsers. Returns `None` if the Location is empty or contains control
/// characters.
fn encode_location(location: &[u8]) -> Option<String> {
    let is_clean = !location.is_empty() && !location.iter().any(u8::is_ascii_control);
    is_clean.then(|| encode_bytes(location))
}

/// Resolves a URL reference relative to `target`. Returns the path and query of the result. Returns `None` if the
/// reference has another origin.
fn resolve(reference: &str, target: &str, origin: &str) -> Option<String> {
    let reference = reference.split('#').next().unwrap_or_default();
    let (scheme, _) = origin.split_once("://")?;
    let has_scheme = reference.split_once(':').is_some_and(|(before, _)| {
        before.starts_with(|first: char| first.is_ascii_alphabetic())
            && before.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
    });
    let absolute = match reference.strip_prefix("//") {
        Some(_) => Some(format!("{scheme}:{reference}")),
        None => has_scheme.then(|| reference.to_owned()),
    };
    if let Some(absolute) = absolute {
        let authority_at = absolute.find("://")? + 3;
        let end = absolute[authority_at..].find(['/', '?']).map_or(absolute.len(), |end| authority_at + end);
        let (theirs, rest) = absolute.split_at(end);
        if !same_origin(theirs, origin) {
            return None;
        }
        return Some(if rest.starts_with('/') { without_dots(rest) } else { format!("/{rest}") });
    }
    let path = target.split('?').next().unwrap_or_default();
    Some(match reference.as_bytes().first() {
        None => target.to_owned(),
        Some(b'/') => without_dots(reference),
        Some(b'?') => format!("{path}{reference}"),
        Some(_) => {
            without_dots(&format!("{}/{reference}", path.rsplit_once('/').map_or("", |(directory, _)| directory)))
        }
    })
}

/// Whether two origins of the form `scheme://host[:port]` are equal.
fn same_origin(one: &str, other: &str) -> bool {
    let normalize = |origin: &str| {
        let origin = origin.to_ascii_lowercase();
        let port = if origin.starts_with("https:") { ":443" } else { ":80" };
        origin.strip_suffix(port).map_or(origin.clone(), ToOwned::to_owned)
    };
    normalize(one) == normalize(other)
}

/// Removes the segments `.` and `..` from a path (RFC 3986 §5.2.4). Leaves its query unchanged.
fn without_dots(target: &str) -> String {
    let (path, query) = target.split_at(target.find('?').unwrap_or(target.len()));
    let mut segments: Vec<&str> = Vec::new();
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    for (nth, segment) in parts.iter().enumerate() {
        let last = nth + 1 == parts.len();
        match *segment {
            "." => segments.extend(last.then_some("")),
            ".." => {
                segments.pop();
                segments.extend(last.then_some(""));
            }
            segment => segments.push(segment),
        }
    }
    format!("/{}{query}", segments.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORIGIN: &str = "http://h:8080";

    fn redirection<'a>(status: u16, location: &str, method: &'a str) -> Option<Redirection<'a>> {
        let head = format!("HTTP/1.1 {status} Moved\r\nServer: x\r\nlocation: {location}\r\n\r\n");
        Redirection::parse(head.as_bytes(), method, "/a/b?c=d", ORIGIN)
    }

    #[test]
    fn references_are_resolved_within_an_origin() {
        for (location, target) in [
            ("/x?y=z#part", Some("/x?y=z")),
            ("x", Some("/a/x")),
            ("../x/./y/..", Some("/x/")),
            ("../../../x", Some("/x")),
            ("?q", Some("/a/b?q")),
            ("#part", Some("/a/b?c=d")),
            ("http://h:8080", Some("/")),
            ("http://h:8080?q", Some("/?q")),
            ("HTTP://H:8080/x", Some("/x")),
            ("//h:8080/x", Some("/x")),
            ("a/b:c", Some("/a/a/b:c")),
            ("https://h:8080/x", None),
            ("http://h/x", None),
            ("//other:8080/x", None),
            ("http://h:8080@other/x", None),
            ("mailto:a@b", None),
        ] {
            let expected = match target {
                Some(target) => Redirection::SameServer { method: "GET".into(), target: target.to_owned() },
                None => Redirection::OtherServer,
            };
            assert_eq!(redirection(302, location, "GET"), Some(expected), "{location}");
        }
        assert!(same_origin("http://h:80", "HTTP://h") && same_origin("https://h", "https://h:443"));
        assert!(!same_origin("https://h:80", "https://h"));
    }

    #[test]
    fn locations_that_are_not_ascii_are_followed_as_browsers_do() {
        for (location, expected) in [
            ("/\u{fc}?q=\u{df}#\u{e4}".as_bytes().to_vec(), "/%C3%BC?q=%C3%9F"),
            (b"/\xfc?q=\xdf".to_vec(), "/%FC?q=%DF"),
            (b"x y'?'".to_vec(), "/a/x%20y'?%27"),
            ("http://h:8080/\u{65e5}".as_bytes().to_vec(), "/%E6%97%A5"),
            ("/%C3%BC/\u{fc}".as_bytes().to_vec(), "/%C3%BC/%C3%BC"),
        ] {
            let head = [b"HTTP/1.1 302 Found\r\nLocation: ", &location[..], b"\r\n\r\n"].concat();
            let expected = Redirection::SameServer { method: "GET".into(), target: expected.to_owned() };
            assert_eq!(Redirection::parse(&head, "GET", "/a/b?c=d", ORIGIN), Some(expected));
        }
        let elsewhere = "http://b\u{fc}cher.example/";
        assert_eq!(redirection(302, elsewhere, "GET"), Some(Redirection::OtherServer));
    }

    #[test]
    fn methods_become_get_as_clients_do() {
        for (status, method, expected) in [
            (301, "GET", Some("GET")),
            (308, "HEAD", Some("HEAD")),
            (302, "POST", Some("GET")),
            (303, "PUT", Some("GET")),
            (303, "HEAD", Some("HEAD")),
            (307, "POST", None),
            (301, "PUT", None),
        ] {
            let expected = expected.map_or(Redirection::ResendBody, |method| Redirection::SameServer {
                method: method.into(),
                target: "/x".to_owned(),
            });
            assert_eq!(redirection(status, "/x", method), Some(expected), "{status} {method}");
        }
        for status in [200, 300, 304, 404] {
            assert_eq!(redirection(status, "/x", "GET"), None, "{status}");
        }
    }

    #[test]
    fn invalid_locations_are_reported() {
        for location in ["", "/a\tb", "/a\u{7f}b"] {
            assert_eq!(redirection(302, location, "GET"), Some(Redirection::InvalidLocation), "{location}");
        }
        assert_eq!(Redirection::parse(b"HTTP/2 302\r\n\r\n", "GET", "/", ORIGIN), Some(Redirection::InvalidLocation));
        let hinted = b"HTTP/1.1 103 Early Hints\r\nLocation: /x\r\n\r\n";
        assert_eq!(Redirection::parse(hinted, "GET", "/", ORIGIN), None);
    }
}
