//! A URL, understood and resolved; and where it is `https://`, whether TLS works there.

mod reach;

use crate::RunError;
use brimful_core::secret::without_credentials;
use brimful_core::tls::TlsSpoken;
use brimful_core::{Nanos, TlsFault};
use brimful_engine::{Handshake, Security, SecurityOptions};
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
    /// Whether it is by TLS.
    pub is_secure: bool,
}

impl Endpoint {
    /// Understands `http://HOST[:PORT][/PATH]`, and `https://` likewise; without a scheme, `http://` is meant. Of several addresses that is taken
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
        let Parsed { url, authority, path, port, is_secure } = parse(text)?;
        let host = authority.host().trim_start_matches('[').trim_end_matches(']');
        let unresolvable = |source| RunError::Unresolvable { url: url.clone(), source };
        let addresses = look_up((host, port)).map_err(unresolvable)?;
        match reach(&addresses, patience) {
            Some(Reached::Accepts(address) | Reached::Silent(address) | Reached::Barred(address)) => {
                Ok(Endpoint { url, address, authority: authority.to_string(), path, is_secure })
            }
            Some(Reached::Refuses(address)) => Err(RunError::NothingListens { address }),
            None => Err(unresolvable(io::Error::new(ErrorKind::NotFound, "the name has no address"))),
        }
    }

    /// The host, without the port.
    pub fn host(&self) -> &str {
        let host = self.authority.rsplit_once(':').filter(|(_, port)| !port.ends_with(']'));
        host.map_or(self.authority.as_str(), |(host, _)| host)
    }

    /// Makes one TLS handshake with the server, and no request: whatever is wrong is said before a run and not after it.
    /// Returns what was agreed on; `None` where the server takes no connection or no handshake within `patience`, which is
    /// not for us to judge.
    ///
    /// # Errors
    /// [`RunError::Handshake`] when it does not work.
    pub fn check(&self, security: &Security, patience: Nanos) -> Result<Option<TlsSpoken>, RunError> {
        let (why, detail) = match security.try_handshake(self.address, patience) {
            Handshake::Works(spoken) => return Ok(Some(spoken)),
            Handshake::Unknown => return Ok(None),
            Handshake::Fails { why, detail } => (why, detail),
        };
        let broken_off = || "the server broke the connection off in the TLS handshake".to_owned();
        let what = why.map_or_else(broken_off, |why| why.to_string());
        let check =
            "check that this port speaks TLS (`openssl s_client -connect HOST:PORT`), and see the server's error log";
        Err(RunError::Handshake {
            url: self.url.clone(),
            what: detail.map_or(what.clone(), |detail| format!("{what} ({detail})")),
            remedy: why.map_or(check, TlsFault::remedy).to_owned(),
            usage: why == Some(TlsFault::NotTls),
        })
    }
}

impl Endpoint {
    /// Whether a TLS handshake with the server works, or fails as only a server fails it that speaks TLS.
    pub(crate) fn speaks_tls(&self, patience: Nanos) -> bool {
        let options = SecurityOptions { name: self.host().to_owned(), insecure: true, ..SecurityOptions::default() };
        let Ok(security) = Security::new(&options) else { return false };
        match security.try_handshake(self.address, patience) {
            Handshake::Works(_) => true,
            Handshake::Unknown | Handshake::Fails { why: None, .. } => false,
            Handshake::Fails { why: Some(why), .. } => matches!(
                why,
                TlsFault::Version
                    | TlsFault::NothingInCommon
                    | TlsFault::ClientCertificate
                    | TlsFault::UnknownName
                    | TlsFault::Protocol
                    | TlsFault::Alert
            ),
        }
    }
}

/// What a URL says.
#[derive(Debug)]
struct Parsed {
    url: String,
    authority: http::uri::Authority,
    path: String,
    port: u16,
    is_secure: bool,
}

fn parse(text: &str) -> Result<Parsed, RunError> {
    let bad = |why: String| RunError::BadUrl { url: without_credentials(text).into_owned(), why };
    if text.starts_with("http+unix:") || text.starts_with("unix:") {
        let port = "brimful connects by TCP alone: have the server listen on a port of 127.0.0.1 as well";
        return Err(bad(port.to_owned()));
    }
    let url = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
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
    let authority = uri.authority().ok_or_else(|| bad("it names no host".to_owned()))?.clone();
    if authority.as_str().contains('@') {
        return Err(bad("credentials are not taken from a URL: give them by --user NAME:PASSWORD".to_owned()));
    }
    let port = match authority.as_str().rsplit_once(':') {
        Some((_, port)) if !port.ends_with(']') => port.parse().map_err(|_| bad(format!("`{port}` is not a port")))?,
        _ if is_secure => 443,
        _ => 80,
    };
    if port == 0 {
        return Err(bad("port 0 is no place to connect to".to_owned()));
    }
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    Ok(Parsed { url, authority, path, port, is_secure })
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
            ("https://h/a", "h", "/a", 443),
            ("https://h:8443", "h:8443", "/", 8443),
        ] {
            let found = parse(text).unwrap();
            let Parsed { authority: a, path: p, port: n, is_secure, .. } = &found;
            assert_eq!((a.as_str(), p.as_str(), *n), (authority, path, port), "{text}");
            assert_eq!(*is_secure, text.starts_with("https"), "{text}");
        }
    }

    #[test]
    fn what_is_no_url_to_load_is_said() {
        for (text, part) in [
            ("ftp://a/", "ftp"),
            ("http://", "write it like"),
            ("http://a:99999/", "port"),
            ("http://u:p@a/", "--user"),
            ("http://a:0/", "port 0"),
            ("http+unix:/run/app.sock", "TCP alone"),
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
