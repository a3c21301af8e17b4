//! A TLS client and a server in memory, for tests and fuzzing. The server's bytes can be split, changed, cut short or
//! extended before the client receives them.

use super::{Security, Tls};
use crate::clock::Clock;
use crate::io::{Io, IoEvent, Route, Settings, SocketOptions, Token, WarmConnection};
use crate::pacing::WaitTimes;
use crate::{Address, EngineError};
use brimful_core::{Nanos, TlsFault};
use rustix::io::Errno;
use rustls::{ServerConfig, ServerConnection};
use std::borrow::Cow;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;

const TOKEN: Token = Token { slot: 0, generation: 0 };
const REQUEST: &[u8] = b"GET / HTTP/1.1\r\n\r\n";

/// How the server's bytes are changed before the client receives them.
#[derive(Clone, Debug, Default)]
pub struct Tampering {
    /// Lengths in bytes of the pieces in which the client receives the server's bytes, repeated cyclically. Empty: the
    /// bytes are not split.
    pub pieces: Vec<usize>,
    /// Offset of a byte in the server's stream, and the mask of the bits to flip in it.
    pub flip: Option<(usize, u8)>,
    /// Offset in the server's stream at which bytes are inserted, and these bytes.
    pub insert: Option<(usize, Vec<u8>)>,
    /// Offset in the server's stream at which the connection ends.
    pub cut: Option<usize>,
    /// Whether the server sends close_notify at the end.
    pub notify: bool,
}

/// The data that the client received, and the TLS events of its connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Whether the handshake was completed.
    pub secured: bool,
    /// All decrypted data.
    pub plaintext: Vec<u8>,
    /// Whether the server has sent close_notify.
    pub finished: bool,
    /// How the connection ended.
    pub end: Option<End>,
}

/// How the connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The stream ended normally: after close_notify, or before the handshake was complete.
    Eof,
    /// The stream ended without close_notify after the handshake.
    Truncated,
    /// The connection was broken off because of a TLS fault.
    Broken(TlsFault),
}

/// Sends one request to a server in memory, which replies with `response`. Returns the data and events that the client
/// received, or `None` if the connection cannot be set up.
pub fn exchange(
    server: &Arc<ServerConfig>,
    security: &Security,
    response: &[u8],
    tampering: Tampering,
) -> Option<Received> {
    let server = ServerConnection::new(Arc::clone(server)).ok()?;
    let memory = Memory {
        server,
        response: response.to_vec(),
        tampering,
        established: false,
        wire: Vec::new(),
        at: 0,
        nth: 0,
        piece: Vec::new(),
        ended: false,
    };
    let settings = Settings {
        addresses: vec![SocketAddr::from(([127, 0, 0, 1], 1)).into()],
        sources: Vec::new(),
        options: SocketOptions::default(),
        pipelined: false,
        tls: None,
        sends_close_notify: false,
    };
    let mut io = Tls::around(memory, security, &settings);
    io.connect(TOKEN, Route::default()).ok()?;
    let mut seen = Received::default();
    while let Some((_, event)) = io.next() {
        match event {
            IoEvent::Secured { .. } => {
                assert!(!std::mem::replace(&mut seen.secured, true), "secured twice");
                io.send(TOKEN, REQUEST.into());
                io.flush().ok()?;
            }
            IoEvent::Received { .. } => {
                assert!(seen.secured && !io.received().is_empty());
                seen.plaintext.extend_from_slice(io.received());
            }
            IoEvent::Finished => seen.finished = true,
            IoEvent::EndOfStream => seen.end = Some(End::Eof),
            IoEvent::Truncated => seen.end = Some(End::Truncated),
            IoEvent::Broken(why) => seen.end = Some(End::Broken(why)),
            IoEvent::Established | IoEvent::NotEstablished(_) | IoEvent::Reset | IoEvent::Sent => {}
        }
        if seen.end.is_some() {
            io.close(TOKEN);
            assert!(io.next().is_none(), "a closed connection has no events");
            break;
        }
    }
    Some(seen)
}

/// An [`Io`] with one connection to a TLS server in the same process.
struct Memory {
    server: ServerConnection,
    response: Vec<u8>,
    tampering: Tampering,
    established: bool,
    /// The server's bytes after tampering that the client has not received yet.
    wire: Vec<u8>,
    /// Number of bytes that the server has sent so far, before tampering.
    at: usize,
    /// Number of pieces that the client has received, which selects the length of the next piece.
    nth: usize,
    /// The bytes that the client received last.
    piece: Vec<u8>,
    ended: bool,
}

impl Memory {
    fn serve(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.server.read_tls(&mut bytes).is_err() || self.server.process_new_packets().is_err() {
                break;
            }
        }
        let mut request = [0; 64];
        if self.server.reader().read(&mut request).is_ok_and(|n| n > 0) {
            let _ = self.server.writer().write_all(&self.response);
            if self.tampering.notify {
                self.server.send_close_notify();
            }
        }
        let mut sent = Vec::new();
        while self.server.wants_write() && self.server.write_tls(&mut sent).is_ok() {}
        self.transmit(&sent);
    }

    fn transmit(&mut self, sent: &[u8]) {
        for byte in sent {
            if let Some((_, inserted)) = self.tampering.insert.take_if(|(at, _)| *at == self.at) {
                self.wire.extend(inserted);
            }
            if self.tampering.cut.is_some_and(|cut| self.at >= cut) {
                return;
            }
            let bits = self.tampering.flip.filter(|(at, _)| *at == self.at).map_or(0, |(_, bits)| bits);
            self.wire.push(byte ^ bits);
            self.at += 1;
        }
    }
}

impl<'a> Io<'a> for Memory {
    const NAME: &'static str = "memory";

    fn new(_: &Settings) -> Result<Self, EngineError> {
        Err(EngineError::Thread("it is made by its test".to_owned()))
    }

    fn adopt(&mut self, _: Token, _: WarmConnection) -> Result<(), Errno> {
        Ok(())
    }

    fn connect(&mut self, _: Token, _: Route) -> Result<(), Errno> {
        Ok(())
    }

    fn add_address(&mut self, _: Address) {}

    fn send(&mut self, _: Token, bytes: Cow<'a, [u8]>) {
        self.serve(&bytes);
    }

    fn notify_when_sent(&mut self, _: Token) {}

    fn unsent(&self, _: u32) -> usize {
        0
    }

    fn close(&mut self, _: Token) {}

    fn flush(&mut self) -> Result<(), EngineError> {
        Ok(())
    }

    fn wait(&mut self, _: Clock, _: Nanos) -> Result<WaitTimes, EngineError> {
        Ok(WaitTimes::default())
    }

    fn next(&mut self) -> Option<(Token, IoEvent)> {
        if !std::mem::replace(&mut self.established, true) {
            return Some((TOKEN, IoEvent::Established));
        }
        if self.wire.is_empty() {
            return (!std::mem::replace(&mut self.ended, true)).then_some((TOKEN, IoEvent::EndOfStream));
        }
        let length = match self.tampering.pieces.len() {
            0 => self.wire.len(),
            n => self.tampering.pieces.get(self.nth % n).copied().unwrap_or(1).clamp(1, self.wire.len()),
        };
        self.nth += 1;
        self.piece = self.wire.drain(..length).collect();
        Some((TOKEN, IoEvent::Received { last: false }))
    }

    fn set_exact(&mut self, _: bool) {}

    fn attempts_have_begun(&self) -> bool {
        true
    }

    fn left_unread(&mut self) -> bool {
        false
    }

    fn received(&self) -> &[u8] {
        &self.piece
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SecurityOptions;
    use brimful_core::tls::TlsVersion;
    use brimful_testkit::{CertificateFlaw, Certificates, server_config};
    use proptest::prelude::*;
    use std::sync::OnceLock;

    /// The configurations of a server and of a client that trusts its certificate.
    fn pair() -> &'static (Arc<ServerConfig>, Security) {
        static PAIR: OnceLock<(Arc<ServerConfig>, Security)> = OnceLock::new();
        PAIR.get_or_init(|| {
            let certificates = Certificates::new();
            let server = server_config(&certificates.issue("DNS:localhost", CertificateFlaw::None), Vec::new());
            let options = SecurityOptions {
                name: "localhost".to_owned(),
                authorities: Some(certificates.authority()),
                ..SecurityOptions::default()
            };
            (server, Security::new(&options).unwrap())
        })
    }

    /// A response that needs several TLS records.
    fn response() -> Vec<u8> {
        (0..40_000_u32).map(|i| (i ^ i >> 8) as u8).collect()
    }

    fn received(tampering: Tampering) -> Received {
        let (server, security) = pair();
        exchange(server, security, &response(), tampering).unwrap()
    }

    #[test]
    fn a_request_gets_its_response() {
        let whole = Received { secured: true, plaintext: response(), finished: true, end: Some(End::Eof) };
        assert_eq!(received(Tampering { notify: true, ..Tampering::default() }), whole);
        let cut = Received { finished: false, end: Some(End::Truncated), ..whole };
        assert_eq!(received(Tampering::default()), cut);
    }

    #[test]
    fn single_bytes_make_no_difference() {
        let unchanged = Tampering { notify: true, ..Tampering::default() };
        assert_eq!(received(Tampering { pieces: vec![1], ..unchanged.clone() }), received(unchanged));
    }

    #[test]
    fn an_untrusted_certificate_ends_the_handshake() {
        let (ours, others) = (Certificates::new(), Certificates::new());
        let server = server_config(&ours.issue("DNS:localhost", CertificateFlaw::None), Vec::new());
        for (name, authorities, why) in
            [("other.example", &ours, TlsFault::CertificateName), ("localhost", &others, TlsFault::CertificateIssuer)]
        {
            let options = SecurityOptions {
                name: name.to_owned(),
                authorities: Some(authorities.authority()),
                min_version: TlsVersion::V13,
                ..SecurityOptions::default()
            };
            let security = Security::new(&options).unwrap();
            let seen = exchange(&server, &security, b"", Tampering::default()).unwrap();
            assert_eq!(seen, Received { end: Some(End::Broken(why)), ..Received::default() });
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

        /// Expects the same result for every way to split the server's bytes into pieces.
        #[test]
        fn pieces_make_no_difference(pieces in prop::collection::vec(1_usize..5_000, 1..8), notify: bool) {
            let unchanged = Tampering { notify, ..Tampering::default() };
            prop_assert_eq!(received(Tampering { pieces, ..unchanged.clone() }), received(unchanged));
        }

        /// Flips bits of one byte. Expects that the client receives only bytes from the beginning of the response, and
        /// that the connection ends.
        #[test]
        fn a_changed_byte_is_detected(at in 0_usize..42_000, bits in 1_u8.., pieces in prop::collection::vec(1_usize..5_000, 0..4)) {
            let seen = received(Tampering { pieces, flip: Some((at, bits)), notify: true, ..Tampering::default() });
            prop_assert!(response().starts_with(&seen.plaintext));
            prop_assert!(seen.end.is_some());
            prop_assert!(seen.plaintext.len() < 40_000 || seen.secured);
        }

        /// Inserts bytes. Expects that the client receives only bytes of the response, and that the connection ends.
        #[test]
        fn inserted_bytes_are_not_received(at in 0_usize..42_000, bytes in prop::collection::vec(any::<u8>(), 1..64)) {
            let seen = received(Tampering { insert: Some((at, bytes)), notify: true, ..Tampering::default() });
            prop_assert!(response().starts_with(&seen.plaintext) && seen.end.is_some());
        }

        /// Expects that a connection that ends early counts as truncated, unless the server sent close_notify before.
        #[test]
        fn an_early_end_differs_from_an_announced_one(cut in 0_usize..42_000) {
            let seen = received(Tampering { cut: Some(cut), notify: true, ..Tampering::default() });
            prop_assert!(response().starts_with(&seen.plaintext));
            let expected = if seen.secured && !seen.finished { End::Truncated } else { End::Eof };
            prop_assert_eq!(seen.end, Some(expected));
            prop_assert!(!seen.finished || seen.plaintext.len() == 40_000);
        }
    }
}
