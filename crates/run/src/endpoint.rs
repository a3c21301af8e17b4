//! A URL, understood and resolved.

mod reach;

use crate::RunError;
use brimful_core::Nanos;
use brimful_core::secret::without_credentials;
use reach::{Reached, reach};
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, ToSocketAddrs};

/// Where to send load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// As given, with the scheme.
    pub url: String,
    /// The address that was chosen.
    pub address: SocketAddr,
    /// For the `Host` header.
    pub authority: String,
    /// Path and query, at least `/`.
    pub path: String,
}

impl Endpoint {
    /// Understands `http://HOST[:PORT][/PATH]`; without a scheme, `http://` is meant. Of several addresses that is taken
    /// which is the first to accept a connection. A server that neither accepts nor refuses within `patience` is given the
    /// benefit of the doubt: to overload one that has stopped accepting is what some runs are for.
    ///
    /// # Errors
    /// [`RunError::BadUrl`], [`RunError::Unresolvable`], [`RunError::NothingListens`].
    pub fn resolve(text: &str, patience: Nanos) -> Result<Endpoint, RunError> {
        Endpoint::resolve_by(text, patience, |host| Ok(host.to_socket_addrs()?.collect()))
    }

    fn resolve_by(
        text: &str,
        patience: Nanos,
        look_up: impl Fn((&str, u16)) -> io::Result<Vec<SocketAddr>>,
    ) -> Result<Endpoint, RunError> {
        let (url, authority, path, port) = parse(text)?;
        let host = authority.host().trim_start_matches('[').trim_end_matches(']');
        let unresolvable = |source| RunError::Unresolvable { url: url.clone(), source };
        let addresses = look_up((host, port)).map_err(unresolvable)?;
        match reach(&addresses, patience) {
            Some(Reached::Accepts(address) | Reached::Silent(address) | Reached::Barred(address)) => {
                Ok(Endpoint { url, address, authority: authority.to_string(), path })
            }
            Some(Reached::Refuses(address)) => Err(RunError::NothingListens { address }),
            None => Err(unresolvable(io::Error::new(ErrorKind::NotFound, "the name has no address"))),
        }
    }
}

fn parse(text: &str) -> Result<(String, http::uri::Authority, String, u16), RunError> {
    let bad = |why: String| RunError::BadUrl { url: without_credentials(text).into_owned(), why };
    let url = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    let uri: http::Uri = url.parse().map_err(|error: http::uri::InvalidUri| {
        bad(format!("{error}; write it like http://127.0.0.1:8080/index.html"))
    })?;
    match uri.scheme_str() {
        Some("http") => {}
        Some("https") => {
            return Err(bad("TLS is not supported; give the server's plain http:// address".to_owned()));
        }
        other => {
            let scheme = other.unwrap_or("no scheme");
            return Err(bad(format!("brimful speaks http://, not {scheme}")));
        }
    }
    let authority = uri.authority().ok_or_else(|| bad("it names no host".to_owned()))?.clone();
    if authority.as_str().contains('@') {
        return Err(bad("credentials belong in a header: -H 'Authorization: …'".to_owned()));
    }
    let port = match authority.as_str().rsplit_once(':') {
        Some((_, port)) if !port.ends_with(']') => port.parse().map_err(|_| bad(format!("`{port}` is not a port")))?,
        _ => 80,
    };
    if port == 0 {
        return Err(bad("port 0 is no place to connect to".to_owned()));
    }
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    Ok((url, authority, path, port))
}

#[cfg(test)]
mod tests {
    use super::reach::tests::refusing;
    use super::*;

    #[test]
    fn urls_as_people_write_them() {
        for (text, authority, path, port) in [
            ("http://localhost", "localhost", "/", 80),
            ("127.0.0.1:8080/a?b=c", "127.0.0.1:8080", "/a?b=c", 8080),
            ("http://[::1]:81/x", "[::1]:81", "/x", 81),
            ("http://[::1]/", "[::1]", "/", 80),
            ("http://h?q=1", "h", "/?q=1", 80),
        ] {
            let (_, a, p, n) = parse(text).unwrap();
            assert_eq!((a.as_str(), p.as_str(), n), (authority, path, port), "{text}");
        }
    }

    #[test]
    fn what_is_no_url_to_load_is_said() {
        for (text, part) in [
            ("https://a/", "TLS"),
            ("ftp://a/", "ftp"),
            ("http://", "write it like"),
            ("http://a:99999/", "port"),
            ("http://u:p@a/", "Authorization"),
            ("http://a:0/", "port 0"),
            ("", "write it like"),
            ("http://a b/", "write it like"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn a_refused_port_and_an_unknown_host_are_told_apart() {
        let (_taken, refusing) = refusing();
        // So long nobody waits; a host that is busy may take its time.
        let patience = Nanos::from_secs(600);
        let error = Endpoint::resolve(&refusing.to_string(), patience).unwrap_err();
        assert!(matches!(error, RunError::NothingListens { .. }) && !error.is_usage(), "{error}");
        // The words of a resolver, and a name without addresses.
        for answer in [Err(ErrorKind::NotFound), Ok(Vec::new())] {
            let look_up = |host: (&str, u16)| {
                assert_eq!(host, ("server.example", 8080));
                answer.clone().map_err(io::Error::from)
            };
            let error = Endpoint::resolve_by("server.example:8080/x", patience, look_up).unwrap_err();
            assert!(matches!(error, RunError::Unresolvable { .. }) && error.is_usage(), "{error}");
        }
    }
}
