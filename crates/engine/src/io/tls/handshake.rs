//! Blocking TLS handshakes, used for the connections that are opened before a run and for a test whether TLS works.

use super::fault;
use super::security::Security;
use super::session::{Scratch, Session};
use crate::Address;
use crate::io::socket::{self, SocketOptions};
use brimful_core::tls::NegotiatedTls;
use brimful_core::{Nanos, TlsFault};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustls::pki_types::CertificateDer;
use std::time::{Duration, Instant};

/// Time to wait after a handshake for the server to reject the client's certificate (RFC 8446 §4.4.2.4).
const REJECTION_WAIT: Duration = Duration::from_millis(100);

/// The reason why a handshake failed.
#[derive(Debug)]
pub enum HandshakeError {
    /// An error of rustls, such as an invalid certificate.
    Tls(rustls::Error),
    /// The server did not agree on HTTP/2.
    Protocol,
    /// The server closed the connection during the handshake or directly after it.
    Ended,
    /// The connection was reset, or failed for another reason.
    Broken,
    /// The handshake took too long.
    TimedOut,
}

/// Completes the handshake of `session` on a non-blocking socket. At first, `scratch` must contain the first bytes to
/// send. Afterwards, `scratch.plaintext` contains the application data that the server sent directly after the
/// handshake.
pub fn complete(
    socket: &OwnedFd,
    session: &mut Session,
    scratch: &mut Scratch,
    until: Instant,
) -> Result<(), HandshakeError> {
    while !session.is_secured() {
        send_all(socket, scratch, until)?;
        receive(socket, session, scratch, until)?;
    }
    send_all(socket, scratch, until)
}

/// Waits for bytes from the server, and passes them to the session.
fn receive(
    socket: &OwnedFd,
    session: &mut Session,
    scratch: &mut Scratch,
    until: Instant,
) -> Result<(), HandshakeError> {
    let mut buffer = [0; 16 * 1024];
    await_socket(socket, PollFlags::IN, until)?;
    match recv(socket, &mut buffer[..], RecvFlags::DONTWAIT) {
        Ok((0, _)) => Err(HandshakeError::Ended),
        Ok((n, _)) => match session.receive(buffer.get(..n).unwrap_or_default(), scratch) {
            Ok(news) if news.finished => Err(HandshakeError::Ended),
            Ok(_) => Ok(()),
            Err(error) => {
                // The alert only appears in the server's log. The error is returned whether or not the alert arrives.
                let _ = send_all(socket, scratch, until);
                Err(HandshakeError::Tls(error))
            }
        },
        Err(Errno::AGAIN | Errno::INTR) => Ok(()),
        Err(_) => Err(HandshakeError::Broken),
    }
}

fn send_all(socket: &OwnedFd, scratch: &mut Scratch, until: Instant) -> Result<(), HandshakeError> {
    let mut sent = 0;
    while let Some(rest) = scratch.outgoing.get(sent..).filter(|rest| !rest.is_empty()) {
        match send(socket, rest, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
            Ok(n) => sent += n,
            Err(Errno::AGAIN | Errno::INTR) => await_socket(socket, PollFlags::OUT, until)?,
            Err(_) => return Err(HandshakeError::Broken),
        }
    }
    scratch.outgoing.clear();
    Ok(())
}

fn await_socket(socket: &OwnedFd, what: PollFlags, until: Instant) -> Result<(), HandshakeError> {
    let left = until.saturating_duration_since(Instant::now());
    let left = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
    match poll(&mut [PollFd::new(socket, what)], Some(&left)) {
        Ok(0) => Err(HandshakeError::TimedOut),
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(_) => Err(HandshakeError::Broken),
    }
}

/// The result of a test handshake with a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Handshake {
    /// The handshake succeeded with these negotiated parameters.
    Succeeded(NegotiatedTls),
    /// The connection was not established, or the handshake took too long. TLS may still work if the server is
    /// overloaded.
    Inconclusive,
    /// The handshake failed.
    Failed {
        /// The kind of failure; `None` if the connection ended without a TLS error.
        why: Option<TlsFault>,
        /// A description of the failure, if there is one.
        detail: Option<String>,
    },
}

impl Security {
    /// Makes one TLS handshake with the server at `address` within `timeout`, and sends no request.
    pub fn try_handshake(&self, address: &Address, timeout: Nanos) -> Handshake {
        let until = Instant::now() + Duration::from(timeout).min(Duration::from_secs(3600));
        let Ok(socket) = socket::open(address, &SocketOptions::default(), None) else { return Handshake::Inconclusive };
        if !socket::wait_until_established(&socket, timeout) {
            return Handshake::Inconclusive;
        }
        let config = self.shard_config();
        let mut scratch = Scratch::default();
        let outcome =
            Session::begin(&config, self.name(), &mut scratch).map_err(HandshakeError::Tls).and_then(|mut session| {
                complete(&socket, &mut session, &mut scratch, until)?;
                if self.is_http2() && !session.is_http2() {
                    return Err(HandshakeError::Protocol);
                }
                match receive(&socket, &mut session, &mut scratch, Instant::now() + REJECTION_WAIT) {
                    Ok(()) | Err(HandshakeError::TimedOut) => {}
                    Err(failed) => return Err(failed),
                }
                if session.send_close_notify(&mut scratch.outgoing).is_ok() {
                    // An error is ignored, because the handshake has succeeded already.
                    let _ = send_all(&socket, &mut scratch, until);
                }
                Ok(session)
            });
        match outcome {
            Ok(session) => Handshake::Succeeded(negotiated(&session)),
            Err(HandshakeError::TimedOut) => Handshake::Inconclusive,
            Err(HandshakeError::Protocol) => Handshake::Failed { why: Some(TlsFault::Protocol), detail: None },
            Err(HandshakeError::Ended | HandshakeError::Broken) => Handshake::Failed { why: None, detail: None },
            Err(HandshakeError::Tls(error)) => {
                let why = fault::classify(&error);
                let issuer =
                    if why == TlsFault::CertificateIssuer { self.explain_issuer(address, until) } else { None };
                Handshake::Failed { why: Some(why), detail: issuer.or_else(|| fault::describe(&error)) }
            }
        }
    }

    /// Inspects the server's certificates, and explains why no trusted authority has issued them.
    fn explain_issuer(&self, address: &Address, until: Instant) -> Option<String> {
        let socket = socket::open(address, &SocketOptions::default(), None).ok()?;
        let config = self.unchecked_config();
        let mut scratch = Scratch::default();
        let mut session = Session::begin(&config, self.name(), &mut scratch).ok()?;
        await_socket(&socket, PollFlags::OUT, until).ok()?;
        // An error is ignored, because the server's certificates arrive before the end of the handshake.
        let _ = complete(&socket, &mut session, &mut scratch, until);
        Some(explain_chain(session.connection().peer_certificates()?))
    }
}

fn explain_chain(shown: &[CertificateDer<'_>]) -> String {
    let first = shown.first().and_then(|first| webpki::EndEntityCert::try_from(first).ok());
    match (first, shown.len()) {
        (Some(first), _) if first.issuer() == first.subject() => "it is self-signed".to_owned(),
        (_, 1) => {
            "the server sends no other with it: either its issuer is private, or the chain is incomplete".to_owned()
        }
        (_, n) => format!("nor were the {} that the server sends with it", n - 1),
    }
}

fn negotiated(session: &Session) -> NegotiatedTls {
    let tls = session.connection();
    let or_unknown = |name: Option<String>| name.unwrap_or_else(|| "unknown".to_owned());
    NegotiatedTls {
        version: or_unknown(
            tls.protocol_version().and_then(|version| version.as_str()).map(|v| v.replace("TLSv1_", "TLS 1.")),
        ),
        cipher_suite: or_unknown(tls.negotiated_cipher_suite().and_then(|suite| suite.suite().as_str()).map(iana_name)),
        key_exchange: tls.negotiated_key_exchange_group().map(|group| format!("{:?}", group.name())),
        protocol: tls.alpn_protocol().map(|name| String::from_utf8_lossy(name).into_owned()),
    }
}

/// IANA's name of a cipher suite. rustls begins the names of TLS 1.3 with `TLS13_`, IANA with `TLS_`.
fn iana_name(suite: &str) -> String {
    suite.replace("TLS13_", "TLS_")
}
