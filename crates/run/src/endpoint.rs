//! Parses URLs, resolves host names, and checks that TLS works for `https://`.

mod name;
mod reach;
mod url;

pub use name::{ConnectTo, ConnectToError, ServerHosts};

use crate::RunError;
use brimful_core::tls::NegotiatedTls;
use brimful_core::{Nanos, TlsFault};
use brimful_engine::{Address, Destination, Handshake, Security, SecurityOptions};
use name::look_up;
use reach::{ReachOutcome, reach_all, reach_first, slow_round_trip};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use url::{ParsedUrl, ServerLocation, parse};

/// The server under test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// The URL as the user wrote it, with a scheme.
    pub url: String,
    /// The first address of the host, or the Unix socket.
    pub address: Address,
    /// Further addresses of the host that accept connections.
    pub further_addresses: Vec<Address>,
    /// The host names that resolve to the addresses, for later look-ups; `None` for a Unix socket.
    pub name: Option<ServerHosts>,
    /// Value of the `Host` header field.
    pub authority: String,
    /// Path and query of requests; at least `/`.
    pub path: String,
    /// Whether connections use TLS.
    pub is_secure: bool,
}

/// Options that replace the address to which a URL's connections go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnectOverrides {
    /// Unix socket to connect to instead.
    pub socket: Option<PathBuf>,
    /// Rules for connecting to other hosts or ports. The first rule that matches the URL's host and port applies.
    pub connect_to: Vec<ConnectTo>,
    /// Whether to use only the first address that accepts a connection.
    pub first_address: bool,
}

impl Endpoint {
    /// Parses the URL `http://HOST[:PORT][/PATH]` or `https://…` and resolves its host; the default scheme is
    /// `http://`. `http+unix:PATH[:/PATH]` is a server at a Unix socket of this host. If the host has several
    /// addresses, all that accept a connection are used. If none does within `timeout`, one that did not reply is used,
    /// because a run may intentionally overload a server that has stopped accepting.
    ///
    /// # Errors
    /// [`RunError::BadUrl`], [`RunError::Unresolvable`], [`RunError::NothingListens`], [`RunError::NoSocket`], and
    /// [`RunError::ConnectTimeoutTooShort`] if a connection takes longer than `timeout`.
    pub fn resolve(text: &str, timeout: Nanos) -> Result<Endpoint, RunError> {
        Endpoint::resolve_at(text, &ConnectOverrides::default(), timeout)
    }

    /// Resolves a URL like [`Endpoint::resolve`], but connects to the addresses that `overrides` determines. Requests
    /// still have the URL's host name and path.
    ///
    /// # Errors
    /// The errors of [`Endpoint::resolve`].
    pub fn resolve_at(text: &str, overrides: &ConnectOverrides, timeout: Nanos) -> Result<Endpoint, RunError> {
        Endpoint::resolve_by(text, overrides, timeout, look_up)
    }

    fn resolve_by(
        text: &str,
        overrides: &ConnectOverrides,
        timeout: Nanos,
        look_up: impl Fn(&str, u16) -> io::Result<Vec<SocketAddr>>,
    ) -> Result<Endpoint, RunError> {
        let ParsedUrl { url, authority, path, is_secure, location } = parse(text, overrides.socket.as_deref())?;
        let (name, mut addresses) = match location {
            ServerLocation::Socket(socket) => (None, vec![socket_address(&url, &socket)?]),
            ServerLocation::Host(host, port) => {
                let no_rule = || RunError::BadUrl {
                    url: url.clone(),
                    why: format!("no --connect-to matches {host}:{port}; an empty HOST and PORT match any"),
                };
                let name = ServerHosts::by_rules(&host, port, &overrides.connect_to, overrides.first_address)
                    .ok_or_else(no_rule)?;
                let unresolvable = |source| RunError::Unresolvable { url: url.clone(), source };
                let addresses = name.resolve(look_up).map_err(unresolvable)?;
                let reach = if overrides.first_address { reach_first } else { reach_all };
                let chosen = match reach(&addresses, timeout) {
                    Some(ReachOutcome::Accepts(addresses)) => addresses,
                    Some(ReachOutcome::Silent(address)) => {
                        check_timeout(address, timeout)?;
                        vec![address]
                    }
                    Some(ReachOutcome::NotPermitted(address)) => vec![address],
                    Some(ReachOutcome::Refuses(address)) => {
                        return Err(RunError::NothingListens { address: address.into() });
                    }
                    None => return Err(unresolvable(io::Error::new(ErrorKind::NotFound, "the name has no address"))),
                };
                (Some(name), chosen.into_iter().map(Address::from).collect())
            }
        };
        let address = addresses.remove(0);
        Ok(Endpoint { url, address, further_addresses: addresses, name, authority, path, is_secure })
    }

    /// The endpoint of the server with this host name and port, and the path `/`. If the host has several addresses,
    /// those that accept a connection are used, or the first one if none does. A single address is used without a
    /// connection attempt.
    ///
    /// # Errors
    /// The error of the resolver if the name cannot be resolved.
    pub fn for_server(host: &str, port: u16, timeout: Nanos) -> io::Result<Endpoint> {
        let name = ServerHosts::of_host(host, port);
        let mut addresses = name.resolve(look_up)?;
        if let [_, _, ..] = addresses[..]
            && let Some(ReachOutcome::Accepts(accepting)) = reach_all(&addresses, timeout)
        {
            addresses = accepting;
        } else {
            addresses.truncate(1);
        }
        let mut addresses = addresses.into_iter().map(Address::from);
        let no_address = || io::Error::new(ErrorKind::NotFound, "the name has no address");
        let authority = format!("{host}:{port}");
        Ok(Endpoint {
            url: format!("http://{authority}/"),
            address: addresses.next().ok_or_else(no_address)?,
            further_addresses: addresses.collect(),
            name: Some(name),
            authority,
            path: "/".to_owned(),
            is_secure: false,
        })
    }

    /// All addresses that connections go to.
    pub fn addresses(&self) -> impl Iterator<Item = &Address> {
        [&self.address].into_iter().chain(&self.further_addresses)
    }

    /// The destination of a run's connections. It resolves the host name again after a failed connection attempt.
    pub fn destination(&self) -> Destination {
        let look_up = self.name.as_ref().and_then(ServerHosts::look_up_again);
        Destination::new(self.address.clone(), self.further_addresses.clone(), look_up)
    }

    /// The server's TCP port; `None` for a Unix socket.
    pub fn port(&self) -> Option<u16> {
        self.address.tcp().map(|address| address.port())
    }

    /// The host of the `Host` header field, without the port.
    pub fn host(&self) -> &str {
        let host = self.authority.rsplit_once(':').filter(|(_, port)| !port.ends_with(']'));
        host.map_or(self.authority.as_str(), |(host, _)| host)
    }

    /// Makes one TLS handshake with each address, so that TLS errors are reported before the run. Returns the
    /// negotiated TLS parameters, or `None` if no handshake was complete within `timeout`.
    ///
    /// # Errors
    /// [`RunError::Handshake`] if a handshake fails.
    pub(crate) fn check(&self, security: &Security, timeout: Nanos) -> Result<Option<NegotiatedTls>, RunError> {
        let mut spoken = None;
        for address in self.addresses() {
            let spoken_at_address = self.check_address(address, security, timeout)?;
            spoken = spoken.or(spoken_at_address);
        }
        Ok(spoken)
    }

    fn check_address(
        &self,
        address: &Address,
        security: &Security,
        timeout: Nanos,
    ) -> Result<Option<NegotiatedTls>, RunError> {
        let (why, detail) = match security.try_handshake(address, timeout) {
            Handshake::Succeeded(spoken) => return Ok(Some(spoken)),
            Handshake::Inconclusive => return Ok(None),
            Handshake::Failed { why, detail } => (why, detail),
        };
        let closed = || "the server closed the connection during the TLS handshake".to_owned();
        let what = why.map_or_else(closed, |why| why.to_string());
        let check =
            "check that this port speaks TLS (`openssl s_client -connect HOST:PORT`), and see the server's error log";
        Err(RunError::Handshake {
            url: if self.further_addresses.is_empty() {
                self.url.clone()
            } else {
                format!("{} at {address}", self.url)
            },
            what: detail.map_or(what.clone(), |detail| format!("{what} ({detail})")),
            remedy: why.map_or(check, TlsFault::remedy).to_owned(),
            usage: why == Some(TlsFault::NotTls),
        })
    }
}

impl Endpoint {
    /// Whether the server speaks TLS: a handshake within `timeout` succeeds, or fails with an error that only a TLS
    /// server sends.
    pub(crate) fn speaks_tls(&self, timeout: Nanos) -> bool {
        let options = SecurityOptions { name: self.host().to_owned(), insecure: true, ..SecurityOptions::default() };
        let Ok(security) = Security::new(&options) else { return false };
        match security.try_handshake(&self.address, timeout) {
            Handshake::Succeeded(_) => true,
            Handshake::Inconclusive | Handshake::Failed { why: None, .. } => false,
            Handshake::Failed { why: Some(why), .. } => matches!(
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

/// The address of a Unix socket. Returns an error unless the socket accepts a connection or its accept queue is full.
fn socket_address(url: &str, path: &Path) -> Result<Address, RunError> {
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
        // EAGAIN means that the socket's accept queue is full, so there is a server.
        Ok(()) | Err(Errno::AGAIN) => Ok(address),
        Err(Errno::CONNREFUSED) => Err(RunError::NothingListens { address }),
        Err(errno) => Err(RunError::NoSocket { path: path.to_owned(), source: errno.into() }),
    }
}

/// Returns an error if the server accepts connections, but only after `timeout`. S-Clients with this timeout would
/// abandon every attempt (Banga & Druschel 1997, §4.2).
fn check_timeout(address: SocketAddr, timeout: Nanos) -> Result<(), RunError> {
    match slow_round_trip(address, timeout) {
        Some(connected_after) => Err(RunError::ConnectTimeoutTooShort { address, timeout, connected_after }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::reach::tests::refusing;
    use super::*;

    #[test]
    fn a_unix_socket_is_reached_or_the_error_names_the_reason() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("app.sock");
        let resolve = |path: &Path| {
            let overrides = ConnectOverrides { socket: Some(path.to_owned()), ..ConnectOverrides::default() };
            Endpoint::resolve_at("http://app.example/x", &overrides, Nanos::from_secs(600))
        };
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
    fn a_refused_port_and_an_unknown_host_are_different_errors() {
        let (_taken, refusing) = refusing();
        // A timeout that no attempt reaches, even on a busy host.
        let timeout = Nanos::from_secs(600);
        let error = Endpoint::resolve(&refusing.to_string(), timeout).unwrap_err();
        assert!(matches!(error, RunError::NothingListens { .. }) && !error.is_usage(), "{error}");
        // The resolver fails in the first case, and returns no addresses in the second.
        for answer in [Err(ErrorKind::NotFound), Ok(Vec::new())] {
            let look_up = |host: &str, port: u16| {
                assert_eq!((host, port), ("server.example", 8080));
                answer.clone().map_err(io::Error::from)
            };
            let error = Endpoint::resolve_by("server.example:8080/x", &ConnectOverrides::default(), timeout, look_up)
                .unwrap_err();
            assert!(matches!(error, RunError::Unresolvable { .. }) && error.is_usage(), "{error}");
        }
    }

    #[test]
    fn all_addresses_that_accept_are_used_or_only_the_first() {
        let listeners = [(); 2].map(|()| std::net::TcpListener::bind("127.0.0.1:0").unwrap());
        let [one, other] = listeners.each_ref().map(|listener| listener.local_addr().unwrap());
        let (_taken, refusing) = refusing();
        let look_up = |_: &str, _: u16| Ok(vec![refusing, one, other, one]);
        let resolve = |overrides: &ConnectOverrides| {
            Endpoint::resolve_by("server.example", overrides, Nanos::from_secs(600), look_up)
        };
        let endpoint = resolve(&ConnectOverrides::default()).unwrap();
        assert_eq!(
            endpoint.addresses().map(ToString::to_string).collect::<Vec<_>>(),
            [one, other].map(|a| a.to_string())
        );
        let endpoint = resolve(&ConnectOverrides { first_address: true, ..ConnectOverrides::default() }).unwrap();
        assert_eq!(endpoint.addresses().count(), 1);
        let rule = ConnectOverrides {
            connect_to: vec!["other.example::127.0.0.1:".parse().unwrap()],
            ..ConnectOverrides::default()
        };
        let error = resolve(&rule).unwrap_err();
        assert!(error.is_usage() && error.to_string().contains("--connect-to matches server.example:80"), "{error}");
    }
}
