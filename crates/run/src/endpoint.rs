//! A URL, understood and resolved; and where it is `https://`, whether TLS works there.

mod reach;
mod url;

use crate::RunError;
use brimful_core::tls::TlsSpoken;
use brimful_core::{Nanos, TlsFault};
use brimful_engine::{Address, Handshake, Security, SecurityOptions};
use reach::{Reached, reach};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::Path;
use url::{Parsed, Place, parse};

/// Where to send load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// As given, with the scheme.
    pub url: String,
    /// The address that was chosen, or the socket.
    pub address: Address,
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
    /// benefit of the doubt: to overload one that has stopped accepting is what some runs are for. `http+unix:PATH[:/PATH]`
    /// is a server at a Unix socket of this host.
    ///
    /// # Errors
    /// [`RunError::BadUrl`], [`RunError::Unresolvable`], [`RunError::NothingListens`], [`RunError::NoSocket`].
    pub fn resolve(text: &str, patience: Nanos) -> Result<Endpoint, RunError> {
        Endpoint::resolve_at(text, None, patience)
    }

    /// The same of a server at this Unix socket, if one is given: the URL then says by which name and path it is asked.
    ///
    /// # Errors
    /// As [`Endpoint::resolve`].
    pub fn resolve_at(text: &str, socket: Option<&Path>, patience: Nanos) -> Result<Endpoint, RunError> {
        Endpoint::resolve_by(text, socket, patience, |host| Ok(host.to_socket_addrs()?.collect()))
    }

    fn resolve_by(
        text: &str,
        socket: Option<&Path>,
        patience: Nanos,
        look_up: impl Fn((&str, u16)) -> io::Result<Vec<SocketAddr>>,
    ) -> Result<Endpoint, RunError> {
        let Parsed { url, authority, path, is_secure, place } = parse(text, socket)?;
        let address = match place {
            Place::Socket(socket) => of_socket(&url, &socket)?,
            Place::Host(host, port) => {
                let unresolvable = |source| RunError::Unresolvable { url: url.clone(), source };
                let addresses = look_up((&host, port)).map_err(unresolvable)?;
                match reach(&addresses, patience) {
                    Some(Reached::Accepts(address) | Reached::Silent(address) | Reached::Barred(address)) => {
                        address.into()
                    }
                    Some(Reached::Refuses(address)) => {
                        return Err(RunError::NothingListens { address: address.into() });
                    }
                    None => return Err(unresolvable(io::Error::new(ErrorKind::NotFound, "the name has no address"))),
                }
            }
        };
        Ok(Endpoint { url, address, authority, path, is_secure })
    }

    /// The server's TCP port, if it has one.
    pub fn port(&self) -> Option<u16> {
        self.address.tcp().map(|address| address.port())
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
        let (why, detail) = match security.try_handshake(&self.address, patience) {
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
        match security.try_handshake(&self.address, patience) {
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

/// A Unix socket that can be connected to, or is only busy.
fn of_socket(url: &str, path: &Path) -> Result<Address, RunError> {
    let too_long = || RunError::BadUrl {
        url: url.to_owned(),
        why:
            "the path of a Unix socket has at most 107 bytes: give a shorter one, relative to the directory you are in"
                .to_owned(),
    };
    let address = Address::unix(path).ok_or_else(too_long)?;
    let attempt = || {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        connect(&socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?, &SocketAddrUnix::new(path)?)
    };
    match attempt() {
        // Its accept queue is full: it is there.
        Ok(()) | Err(Errno::AGAIN) => Ok(address),
        Err(Errno::CONNREFUSED) => Err(RunError::NothingListens { address }),
        Err(errno) => Err(RunError::NoSocket { path: path.to_owned(), source: errno.into() }),
    }
}

#[cfg(test)]
mod tests {
    use super::reach::tests::refusing;
    use super::*;

    #[test]
    fn a_unix_socket_is_reached_or_the_reason_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("app.sock");
        let resolve = |path: &Path| Endpoint::resolve_at("http://app.example/x", Some(path), Nanos::from_secs(600));
        let error = resolve(&path).unwrap_err().to_string();
        assert!(error.contains("there is no Unix socket at") && error.contains("app.sock"), "{error}");
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let endpoint = resolve(&path).unwrap();
        assert_eq!((endpoint.authority.as_str(), endpoint.path.as_str()), ("app.example", "/x"));
        assert_eq!(endpoint.address, Address::unix(&path).unwrap());
        drop(listener);
        let error = resolve(&path).unwrap_err();
        assert!(matches!(error, RunError::NothingListens { .. }), "{error}");
        let error = resolve(Path::new(&"long/".repeat(40))).unwrap_err();
        assert!(error.is_usage() && error.to_string().contains("107 bytes"), "{error}");
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
            let error = Endpoint::resolve_by("server.example:8080/x", None, patience, look_up).unwrap_err();
            assert!(matches!(error, RunError::Unresolvable { .. }) && error.is_usage(), "{error}");
        }
    }
}
