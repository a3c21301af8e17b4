//! Parses URLs, including those of Unix sockets.

use crate::RunError;
use brimful_core::secret::without_credentials;
use brimful_core::url::{encode_target, to_ascii_host};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// The parts of a parsed URL.
#[derive(Debug)]
pub struct ParsedUrl {
    /// The URL with its scheme, percent-encoded. The URL of a Unix socket has a canonical form.
    pub url: String,
    /// Value of the `Host` header field.
    pub authority: String,
    /// Path and query of requests; at least `/`.
    pub path: String,
    /// Whether connections use TLS.
    pub is_secure: bool,
    /// The server's host and port, or its Unix socket.
    pub location: ServerLocation,
}

/// The place where the server of a URL listens.
#[derive(Debug, PartialEq, Eq)]
pub enum ServerLocation {
    /// A host (without the brackets of an IPv6 address) and a port.
    Host(String, u16),
    /// Path of a Unix socket.
    Socket(PathBuf),
}

/// Parses a URL. With `socket`, the server is at that Unix socket; the URL determines only the scheme, the `Host`
/// header field and the path of requests.
pub fn parse(text: &str, socket: Option<&Path>) -> Result<ParsedUrl, RunError> {
    if let Some((is_secure, rest)) = strip_unix_scheme(text) {
        let bad = |why: &str| RunError::BadUrl { url: text.to_owned(), why: why.to_owned() };
        if socket.is_some() {
            return Err(bad("it names a socket, and so does --unix-socket: leave one out"));
        }
        let (socket, path) = split_socket(rest)
            .ok_or_else(|| bad("write it like http+unix:/run/app.sock:/path, or http+unix://%2Frun%2Fapp.sock/path"))?;
        return parse_http_url(&format!("http://localhost{path}"))
            .map(|parsed| ParsedUrl { is_secure, ..parsed }.at_socket(socket));
    }
    let parsed = parse_http_url(text)?;
    Ok(match socket {
        Some(socket) => parsed.at_socket(socket.to_owned()),
        None => parsed,
    })
}

impl ParsedUrl {
    /// Replaces the location of the server by a Unix socket.
    fn at_socket(self, socket: PathBuf) -> ParsedUrl {
        let scheme = if self.is_secure { "https" } else { "http" };
        let url = format!("{scheme}+unix://{}{}", percent_encode(socket.as_os_str().as_bytes()), self.path);
        ParsedUrl { url, location: ServerLocation::Socket(socket), ..self }
    }
}

/// Strips the scheme from the URL of a Unix socket. Returns whether the scheme means TLS, and the rest of the URL;
/// `None` for other URLs.
fn strip_unix_scheme(text: &str) -> Option<(bool, &str)> {
    // nginx writes the URL of an upstream server as `http://unix:`.
    let schemes = [("http+unix:", false), ("https+unix:", true), ("unix:", false), ("http://unix:", false)];
    let (is_secure, rest) =
        schemes.iter().find_map(|(scheme, is_secure)| Some((*is_secure, text.strip_prefix(scheme)?)))?;
    // Excludes `unix:80`, which is port 80 of a host with the name `unix`.
    (!rest.starts_with(|first: char| first.is_ascii_digit())).then_some((is_secure, rest))
}

/// Splits `//%2Frun%2Fapp.sock/path` or `/run/app.sock:/path` into the path of the socket and the path and query of
/// requests.
fn split_socket(rest: &str) -> Option<(PathBuf, &str)> {
    let (socket, path) = match rest.strip_prefix("//") {
        Some(rest) => {
            let (socket, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            (percent_decode(socket)?, path)
        }
        None => {
            let (socket, path) =
                rest.split_once(":/").map_or((rest, ""), |(socket, _)| (socket, &rest[socket.len() + 1..]));
            (socket.as_bytes().to_vec(), path)
        }
    };
    let socket = PathBuf::from(OsString::from_vec(socket));
    (!socket.as_os_str().is_empty()).then_some((socket, if path.is_empty() { "/" } else { path }))
}

fn parse_http_url(text: &str) -> Result<ParsedUrl, RunError> {
    let bad = |why: String| RunError::BadUrl { url: without_credentials(text).into_owned(), why };
    let text = text.trim_matches(' ');
    if let Some(control) = text.chars().find(|c| c.is_control()) {
        return Err(bad(format!("it has the control character {control:?}: remove it, or percent-encode it")));
    }
    // A `://` in the path, the query or the fragment does not belong to a scheme.
    let has_scheme = text.find("://").is_some_and(|at| !text[..at].contains(['/', '?', '#']));
    let url = if has_scheme { text.to_owned() } else { format!("http://{text}") };
    let authority_from = url.find("://").map_or(0, |at| at + 3);
    let authority_end = url[authority_from..].find(['/', '?', '#']).map_or(url.len(), |at| authority_from + at);
    let (origin, target) = url.split_at(authority_end);
    let written = &origin[authority_from..];
    if written.contains('@') {
        return Err(bad("credentials in a URL are not accepted: give them by --user NAME:PASSWORD".to_owned()));
    }
    if !written.is_ascii() {
        let why = format!("its host name is not ASCII: write its DNS form, {}", to_ascii_host(written));
        return Err(bad(why));
    }
    let url = format!("{origin}{}", encode_target(target));
    let uri: http::Uri = url.parse().map_err(|error: http::uri::InvalidUri| {
        bad(format!("{error}; write it like http://127.0.0.1:8080/index.html"))
    })?;
    let is_secure = match uri.scheme_str() {
        Some("http") => false,
        Some("https") => true,
        other => {
            let scheme = other.unwrap_or("no scheme");
            return Err(bad(format!("brimful speaks http:// and https://, not {scheme}")));
        }
    };
    let authority = uri.authority().ok_or_else(|| bad("it has no host".to_owned()))?.clone();
    let port = match authority.as_str().rsplit_once(':') {
        Some((_, port)) if !port.ends_with(']') => port.parse().map_err(|_| bad(format!("`{port}` is not a port")))?,
        _ if is_secure => 443,
        _ => 80,
    };
    if port == 0 {
        return Err(bad("it is not possible to connect to port 0".to_owned()));
    }
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    let host = authority.host().trim_start_matches('[').trim_end_matches(']');
    let (host, authority) = match host.split_once('%') {
        // An IPv6 zone follows `%25`, or just `%` as people often write. The `Host` header field must not contain the
        // zone (RFC 6874 §4).
        Some((address, zone)) => {
            let zone = zone.strip_prefix("25").filter(|zone| !zone.is_empty()).unwrap_or(zone);
            let zone =
                percent_decode(zone).and_then(|zone| String::from_utf8(zone).ok()).filter(|zone| !zone.is_empty());
            let zone =
                zone.ok_or_else(|| bad("its zone is empty: write it like http://[fe80::1%25eth0]/".to_owned()))?;
            let sent = authority.as_str().replacen(host, address, 1);
            (format!("{address}%{zone}"), sent)
        }
        None => (host.to_owned(), authority.to_string()),
    };
    Ok(ParsedUrl { url, authority, path, is_secure, location: ServerLocation::Host(host, port) })
}

/// Percent-encodes all bytes except the unreserved characters (RFC 3986 §2.1).
fn percent_encode(bytes: &[u8]) -> String {
    let encode_byte = |&byte: &u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    bytes.iter().map(encode_byte).collect()
}

/// Percent-decodes a text; `None` if it contains an invalid escape.
fn percent_decode(text: &str) -> Option<Vec<u8>> {
    let mut parts = text.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_as_people_write_them() {
        for (text, authority, path, host, port) in [
            ("http://localhost", "localhost", "/", "localhost", 80),
            ("127.0.0.1:8080/a?b=c", "127.0.0.1:8080", "/a?b=c", "127.0.0.1", 8080),
            ("http://[::1]:81/x", "[::1]:81", "/x", "::1", 81),
            ("http://[::1]/", "[::1]", "/", "::1", 80),
            // Expects that the `Host` header field lacks the IPv6 zone, which has a meaning only on this host.
            ("http://[fe80::1%25eth0]:81/x", "[fe80::1]:81", "/x", "fe80::1%eth0", 81),
            ("http://[fe80::1%25a%2Fb]/", "[fe80::1]", "/", "fe80::1%a/b", 80),
            ("http://[fe80::1%2525]/", "[fe80::1]", "/", "fe80::1%25", 80),
            ("[fe80::1%eth0]", "[fe80::1]", "/", "fe80::1%eth0", 80),
            ("http://h?q=1", "h", "/?q=1", "h", 80),
            ("https://h/a", "h", "/a", "h", 443),
            ("https://h:8443", "h:8443", "/", "h", 8443),
            ("http://h/ü b?q='ß#part", "h", "/%C3%BC%20b?q=%27%C3%9F", "h", 80),
            ("h?ü", "h", "/?%C3%BC", "h", 80),
            ("h#part", "h", "/", "h", 80),
            ("h/?u=http://x/ü", "h", "/?u=http://x/%C3%BC", "h", 80),
            (" http://h/u/{seq}/%C3%BC ", "h", "/u/{seq}/%C3%BC", "h", 80),
        ] {
            let found = parse(text, None).unwrap();
            assert_eq!((found.authority.as_str(), found.path.as_str()), (authority, path), "{text}");
            assert_eq!(found.location, ServerLocation::Host(host.to_owned(), port), "{text}");
            assert_eq!(found.is_secure, text.starts_with("https"), "{text}");
        }
    }

    #[test]
    fn unix_sockets_as_people_write_them() {
        for (text, url) in [
            ("http+unix://%2Frun%2Fapp.sock/a?b=c", "http+unix://%2Frun%2Fapp.sock/a?b=c"),
            ("http+unix://%2Frun%2Fapp.sock", "http+unix://%2Frun%2Fapp.sock/"),
            ("http+unix:/run/app.sock", "http+unix://%2Frun%2Fapp.sock/"),
            ("unix:/run/app.sock:/a?b=c", "http+unix://%2Frun%2Fapp.sock/a?b=c"),
            ("http://unix:/run/app.sock:/a?b=c", "http+unix://%2Frun%2Fapp.sock/a?b=c"),
            ("https+unix:/run/app.sock", "https+unix://%2Frun%2Fapp.sock/"),
        ] {
            let found = parse(text, None).unwrap();
            assert_eq!((found.url.as_str(), found.authority.as_str()), (url, "localhost"), "{text}");
            assert_eq!(found.location, ServerLocation::Socket("/run/app.sock".into()), "{text}");
            // Expects that the canonical URL is unchanged when it is parsed again.
            assert_eq!(parse(&found.url, None).unwrap().url, url);
        }
        let odd = Path::new("/run/100% a/ü.sock");
        let found = parse("http://app.example/x", Some(odd)).unwrap();
        assert_eq!((found.authority.as_str(), found.path.as_str()), ("app.example", "/x"));
        assert_eq!(parse(&found.url, None).unwrap().location, ServerLocation::Socket(odd.to_owned()), "{}", found.url);
    }

    #[test]
    fn errors_name_what_is_wrong_with_a_url() {
        for (text, part) in [
            ("ftp://a/", "ftp"),
            ("http://", "write it like"),
            ("http://a:99999/", "port"),
            ("http://[fe80::1%]/", "zone"),
            ("http://u:p@a/", "--user"),
            ("http://a:0/", "port 0"),
            ("http+unix:", "http+unix:/run/app.sock"),
            ("http+unix://%2/", "http+unix:/run/app.sock"),
            ("", "write it like"),
            ("http://a b/", "write it like"),
            ("http://a/b\tc", "control character '\\t'"),
            ("http://a/b\r\nX: y", "control character '\\r'"),
            ("http://bücher.example:81/ü", "its DNS form, xn--bcher-kva.example:81"),
        ] {
            let error = parse(text, None).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
        let error = parse("unix:/run/a.sock", Some(Path::new("/run/b.sock"))).unwrap_err().to_string();
        assert!(error.contains("leave one out"), "{error}");
    }
}
