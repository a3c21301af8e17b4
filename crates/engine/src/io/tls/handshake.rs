//! One handshake at a time, waited for: of connections that are to be open before a run begins, and of the one that finds
//! out whether TLS works at all.

use super::fault;
use super::security::Security;
use super::session::{Scratch, Session};
use crate::Address;
use crate::io::socket::{self, SocketOptions};
use brimful_core::tls::TlsSpoken;
use brimful_core::{Nanos, TlsFault};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustls::pki_types::CertificateDer;
use std::time::{Duration, Instant};

/// For so long a server is listened to that may have something against the client: it says so after its side of the
/// handshake only (RFC 8446 §4.4.2.4).
const OBJECTION: Duration = Duration::from_millis(100);

/// Why there was no handshake.
#[derive(Debug)]
pub enum Failed {
    /// TLS itself.
    Tls(rustls::Error),
    /// Another protocol inside than was asked for.
    Protocol,
    /// The server closed the connection.
    Ended,
    /// It was reset, or something as hard.
    Broken,
    /// It took too long.
    TimedOut,
}

/// Completes the handshake of `session`, whose first bytes are in `scratch`, on a socket that does not block. What the
/// server sent behind it is in `scratch.plaintext` then.
pub fn complete(socket: &OwnedFd, session: &mut Session, scratch: &mut Scratch, until: Instant) -> Result<(), Failed> {
    while !session.is_secured() {
        send_all(socket, scratch, until)?;
        listen(socket, session, scratch, until)?;
    }
    send_all(socket, scratch, until)
}

/// Waits for something to come, and takes it in.
fn listen(socket: &OwnedFd, session: &mut Session, scratch: &mut Scratch, until: Instant) -> Result<(), Failed> {
    let mut buffer = [0; 16 * 1024];
    await_socket(socket, PollFlags::IN, until)?;
    match recv(socket, &mut buffer[..], RecvFlags::DONTWAIT) {
        Ok((0, _)) => Err(Failed::Ended),
        Ok((n, _)) => match session.take_in(buffer.get(..n).unwrap_or_default(), scratch) {
            Ok(news) if news.finished => Err(Failed::Ended),
            Ok(_) => Ok(()),
            Err(error) => {
                // The server's log is to say why; whether it gets there is not our concern.
                let _ = send_all(socket, scratch, until);
                Err(Failed::Tls(error))
            }
        },
        Err(Errno::AGAIN | Errno::INTR) => Ok(()),
        Err(_) => Err(Failed::Broken),
    }
}

fn send_all(socket: &OwnedFd, scratch: &mut Scratch, until: Instant) -> Result<(), Failed> {
    let mut sent = 0;
    while let Some(rest) = scratch.outgoing.get(sent..).filter(|rest| !rest.is_empty()) {
        match send(socket, rest, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
            Ok(n) => sent += n,
            Err(Errno::AGAIN | Errno::INTR) => await_socket(socket, PollFlags::OUT, until)?,
            Err(_) => return Err(Failed::Broken),
        }
    }
    scratch.outgoing.clear();
    Ok(())
}

fn await_socket(socket: &OwnedFd, what: PollFlags, until: Instant) -> Result<(), Failed> {
    let left = until.saturating_duration_since(Instant::now());
    let left = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
    match poll(&mut [PollFd::new(socket, what)], Some(&left)) {
        Ok(0) => Err(Failed::TimedOut),
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(_) => Err(Failed::Broken),
    }
}

/// What a handshake of its own has found out about a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Handshake {
    /// It works, and this was agreed on.
    Works(TlsSpoken),
    /// Nothing was found out: it took too long, or there was no connection. To overload such a server may be the plan.
    Unknown,
    /// It does not work.
    Fails {
        /// Of which kind the failure is; `None` where the connection was just broken off.
        why: Option<TlsFault>,
        /// What exactly.
        detail: Option<String>,
    },
}

impl Security {
    /// Makes one handshake with the server at `address`, and no request, within `patience`.
    pub fn try_handshake(&self, address: &Address, patience: Nanos) -> Handshake {
        let until = Instant::now() + Duration::from(patience).min(Duration::from_secs(3600));
        let Ok(socket) = socket::open(address, &SocketOptions::default(), None) else { return Handshake::Unknown };
        if !socket::becomes_established(&socket, patience) {
            return Handshake::Unknown;
        }
        let (config, mut scratch) = (self.of_shard(), Scratch::default());
        let outcome =
            Session::begin(&config, self.name(), &mut scratch).map_err(Failed::Tls).and_then(|mut session| {
                complete(&socket, &mut session, &mut scratch, until)?;
                if self.is_http2() && !session.is_http2() {
                    return Err(Failed::Protocol);
                }
                match listen(&socket, &mut session, &mut scratch, Instant::now() + OBJECTION) {
                    Ok(()) | Err(Failed::TimedOut) => {}
                    Err(failed) => return Err(failed),
                }
                if session.say_farewell(&mut scratch.outgoing).is_ok() {
                    // It costs nothing, and nothing depends on it.
                    let _ = send_all(&socket, &mut scratch, until);
                }
                Ok(session)
            });
        match outcome {
            Ok(session) => Handshake::Works(spoken(&session)),
            Err(Failed::TimedOut) => Handshake::Unknown,
            Err(Failed::Protocol) => Handshake::Fails { why: Some(TlsFault::Protocol), detail: None },
            Err(Failed::Ended | Failed::Broken) => Handshake::Fails { why: None, detail: None },
            Err(Failed::Tls(error)) => {
                let why = fault::kind(&error);
                let shown = if why == TlsFault::CertificateIssuer { self.shown(address, until) } else { None };
                Handshake::Fails { why: Some(why), detail: shown.or_else(|| fault::detail(&error)) }
            }
        }
    }

    /// What is to be said of the certificates that the server shows, which nobody who is trusted has issued.
    fn shown(&self, address: &Address, until: Instant) -> Option<String> {
        let socket = socket::open(address, &SocketOptions::default(), None).ok()?;
        let (config, mut scratch) = (self.unchecked(), Scratch::default());
        let mut session = Session::begin(&config, self.name(), &mut scratch).ok()?;
        await_socket(&socket, PollFlags::OUT, until).ok()?;
        // It need not be completed: the certificates come before.
        let _ = complete(&socket, &mut session, &mut scratch, until);
        Some(of_chain(session.connection().peer_certificates()?))
    }
}

fn of_chain(shown: &[CertificateDer<'_>]) -> String {
    let first = shown.first().and_then(|first| webpki::EndEntityCert::try_from(first).ok());
    match (first, shown.len()) {
        (Some(first), _) if first.issuer() == first.subject() => "it is self-signed".to_owned(),
        (_, 1) => "the server shows it alone: either its issuer is a private one, or the chain is cut short".to_owned(),
        (_, n) => format!("nor were the {} that the server shows with it", n - 1),
    }
}

fn spoken(session: &Session) -> TlsSpoken {
    let tls = session.connection();
    let named = |name: Option<String>| name.unwrap_or_else(|| "unknown".to_owned());
    TlsSpoken {
        version: named(
            tls.protocol_version().and_then(|version| version.as_str()).map(|v| v.replace("TLSv1_", "TLS 1.")),
        ),
        cipher_suite: named(tls.negotiated_cipher_suite().and_then(|suite| suite.suite().as_str()).map(iana)),
        key_exchange: tls.negotiated_key_exchange_group().map(|group| format!("{:?}", group.name())),
        protocol: tls.alpn_protocol().map(|name| String::from_utf8_lossy(name).into_owned()),
    }
}

/// rustls tells the suites of TLS 1.3 from others by `TLS13_`, IANA does not.
fn iana(suite: &str) -> String {
    suite.replace("TLS13_", "TLS_")
}
