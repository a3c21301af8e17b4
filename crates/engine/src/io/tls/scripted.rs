//! [`Tls`] at a server in memory, whose bytes arrive as a test or a fuzzer has written down: in pieces, changed, with
//! others between them, cut short.

use super::{Security, Tls};
use crate::clock::Clock;
use crate::io::{Io, IoEvent, Route, Settings, SocketOptions, Token, Warm};
use crate::pacing::Waited;
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

/// What becomes of the server's bytes on their way.
#[derive(Clone, Debug, Default)]
pub struct Way {
    /// Lengths of the pieces in which they arrive, again and again; without any they arrive as they are sent.
    pub pieces: Vec<usize>,
    /// At this offset, these bits of a byte are changed.
    pub flip: Option<(usize, u8)>,
    /// At this offset, these bytes come between.
    pub insert: Option<(usize, Vec<u8>)>,
    /// The connection ends at this offset.
    pub cut: Option<usize>,
    /// The server says that it has finished.
    pub notify: bool,
}

/// What a shard would have heard.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Heard {
    /// The connection was secured.
    pub secured: bool,
    /// What was received.
    pub plaintext: Vec<u8>,
    /// The server has said that it has finished.
    pub finished: bool,
    /// How it ended.
    pub end: Option<End>,
}

/// How the connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By the end of the stream.
    Stream,
    /// The same, without a word.
    Truncated,
    /// By this fault.
    Broken(TlsFault),
}

/// One request of one connection, answered by `response`.
pub fn hear(server: &Arc<ServerConfig>, security: &Security, response: &[u8], way: Way) -> Option<Heard> {
    let server = ServerConnection::new(Arc::clone(server)).ok()?;
    let memory = Memory {
        server,
        response: response.to_vec(),
        way,
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
        says_farewell: false,
    };
    let mut io = Tls::around(memory, security, &settings);
    io.connect(TOKEN, Route::default()).ok()?;
    let mut heard = Heard::default();
    while let Some((_, happened)) = io.next() {
        match happened {
            IoEvent::Secured { .. } => {
                assert!(!std::mem::replace(&mut heard.secured, true), "secured twice");
                io.send(TOKEN, REQUEST.into());
                io.flush().ok()?;
            }
            IoEvent::Received { .. } => {
                assert!(heard.secured && !io.received().is_empty());
                heard.plaintext.extend_from_slice(io.received());
            }
            IoEvent::Finished => heard.finished = true,
            IoEvent::EndOfStream => heard.end = Some(End::Stream),
            IoEvent::Truncated => heard.end = Some(End::Truncated),
            IoEvent::Broken(why) => heard.end = Some(End::Broken(why)),
            IoEvent::Established | IoEvent::NotEstablished(_) | IoEvent::Reset | IoEvent::Sent => {}
        }
        if heard.end.is_some() {
            io.close(TOKEN);
            assert!(io.next().is_none(), "nothing is heard of a connection that was closed");
            break;
        }
    }
    Some(heard)
}

/// A connection to a server in memory.
struct Memory {
    server: ServerConnection,
    response: Vec<u8>,
    way: Way,
    established: bool,
    /// What the server has sent and the client not received, mischief included.
    wire: Vec<u8>,
    /// Bytes that the server has sent.
    at: usize,
    nth: usize,
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
            if self.way.notify {
                self.server.send_close_notify();
            }
        }
        let mut sent = Vec::new();
        while self.server.wants_write() && self.server.write_tls(&mut sent).is_ok() {}
        self.transmit(&sent);
    }

    fn transmit(&mut self, sent: &[u8]) {
        for byte in sent {
            if let Some((_, inserted)) = self.way.insert.take_if(|(at, _)| *at == self.at) {
                self.wire.extend(inserted);
            }
            if self.way.cut.is_some_and(|cut| self.at >= cut) {
                return;
            }
            let bits = self.way.flip.filter(|(at, _)| *at == self.at).map_or(0, |(_, bits)| bits);
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

    fn adopt(&mut self, _: Token, _: Warm) -> Result<(), Errno> {
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

    fn wait(&mut self, _: Clock, _: Nanos) -> Result<Waited, EngineError> {
        Ok(Waited::default())
    }

    fn next(&mut self) -> Option<(Token, IoEvent)> {
        if !std::mem::replace(&mut self.established, true) {
            return Some((TOKEN, IoEvent::Established));
        }
        if self.wire.is_empty() {
            return (!std::mem::replace(&mut self.ended, true)).then_some((TOKEN, IoEvent::EndOfStream));
        }
        let length = match self.way.pieces.len() {
            0 => self.wire.len(),
            n => self.way.pieces.get(self.nth % n).copied().unwrap_or(1).clamp(1, self.wire.len()),
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
    use brimful_testkit::{Certificates, Flaw, server_config};
    use proptest::prelude::*;
    use std::sync::OnceLock;

    /// A server, and what trusts it.
    fn pair() -> &'static (Arc<ServerConfig>, Security) {
        static PAIR: OnceLock<(Arc<ServerConfig>, Security)> = OnceLock::new();
        PAIR.get_or_init(|| {
            let certificates = Certificates::new();
            let server = server_config(&certificates.issue("DNS:localhost", Flaw::None), Vec::new());
            let options = SecurityOptions {
                name: "localhost".to_owned(),
                authorities: Some(certificates.authority()),
                ..SecurityOptions::default()
            };
            (server, Security::new(&options).unwrap())
        })
    }

    /// Several records.
    fn response() -> Vec<u8> {
        (0..40_000_u32).map(|i| (i ^ i >> 8) as u8).collect()
    }

    fn heard(way: Way) -> Heard {
        let (server, security) = pair();
        hear(server, security, &response(), way).unwrap()
    }

    #[test]
    fn one_request_has_its_answer() {
        let whole = Heard { secured: true, plaintext: response(), finished: true, end: Some(End::Stream) };
        assert_eq!(heard(Way { notify: true, ..Way::default() }), whole);
        let cut = Heard { finished: false, end: Some(End::Truncated), ..whole };
        assert_eq!(heard(Way::default()), cut);
    }

    #[test]
    fn single_bytes_say_the_same() {
        let way = Way { notify: true, ..Way::default() };
        assert_eq!(heard(Way { pieces: vec![1], ..way.clone() }), heard(way));
    }

    #[test]
    fn a_certificate_that_is_not_trusted_is_no_handshake() {
        let (ours, others) = (Certificates::new(), Certificates::new());
        let server = server_config(&ours.issue("DNS:localhost", Flaw::None), Vec::new());
        for (name, authorities, why) in
            [("other.example", &ours, TlsFault::CertificateName), ("localhost", &others, TlsFault::CertificateIssuer)]
        {
            let options = SecurityOptions {
                name: name.to_owned(),
                authorities: Some(authorities.authority()),
                minimum: TlsVersion::V13,
                ..SecurityOptions::default()
            };
            let security = Security::new(&options).unwrap();
            let heard = hear(&server, &security, b"", Way::default()).unwrap();
            assert_eq!(heard, Heard { end: Some(End::Broken(why)), ..Heard::default() });
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

        /// Wherever the bytes are cut, the same is heard.
        #[test]
        fn any_pieces_say_the_same(pieces in prop::collection::vec(1_usize..5_000, 1..8), notify: bool) {
            let way = Way { notify, ..Way::default() };
            prop_assert_eq!(heard(Way { pieces, ..way.clone() }), heard(way));
        }

        /// A changed byte is never taken for the server's: what was received before is right, and no more comes.
        #[test]
        fn no_changed_byte_gets_through(at in 0_usize..42_000, bits in 1_u8.., pieces in prop::collection::vec(1_usize..5_000, 0..4)) {
            let heard = heard(Way { pieces, flip: Some((at, bits)), notify: true, ..Way::default() });
            prop_assert!(response().starts_with(&heard.plaintext));
            prop_assert!(heard.end.is_some());
            prop_assert!(heard.plaintext.len() < 40_000 || heard.secured);
        }

        /// What comes between is a fault, or ends like a connection that waits for more.
        #[test]
        fn what_comes_between_is_no_answer(at in 0_usize..42_000, bytes in prop::collection::vec(any::<u8>(), 1..64)) {
            let heard = heard(Way { insert: Some((at, bytes)), notify: true, ..Way::default() });
            prop_assert!(response().starts_with(&heard.plaintext) && heard.end.is_some());
        }

        /// A connection that ends early was cut, but for one whose end the server had announced.
        #[test]
        fn an_early_end_is_told_from_the_announced_one(cut in 0_usize..42_000) {
            let heard = heard(Way { cut: Some(cut), notify: true, ..Way::default() });
            prop_assert!(response().starts_with(&heard.plaintext));
            let expected = if heard.secured && !heard.finished { End::Truncated } else { End::Stream };
            prop_assert_eq!(heard.end, Some(expected));
            prop_assert!(!heard.finished || heard.plaintext.len() == 40_000);
        }
    }
}
