//! One connection's TLS, without I/O: bytes of the wire in, plaintext and bytes for the wire out.
//!
//! - What was received is decrypted in place. Only of a record or handshake message that is not whole yet something is
//!   kept, in a buffer that the connection gives back when it needs it no more: ten thousand idle connections hold none.
//! - What is kept is bounded by [`MOST_KEPT`]; rustls itself refuses records and messages that are longer than allowed.
//! - rustls allocates once for each record in either direction; nothing else is allocated for a call.
//!
//! Source: rustls' `unbuffered` API, which leaves all buffers to the caller.

use rustls::client::UnbufferedClientConnection;
use rustls::pki_types::ServerName;
use rustls::unbuffered::{ConnectionState, EncodeError, EncryptError, UnbufferedStatus};
use rustls::{ClientConfig, Error, HandshakeKind, PeerMisbehaved};
use std::sync::Arc;

/// More than the longest handshake message (64 KiB) and the longest record (18 KiB) together.
const MOST_KEPT: usize = 128 * 1024;
/// What a record is longer than what it holds, at most: header, explicit nonce, tag and content type.
const RECORD_OVERHEAD: usize = 32;
/// Most that one record holds.
const RECORD: usize = 16 * 1024;
/// Buffers for parts of records that are kept for the next connection that needs one.
const SPARE: usize = 16;

/// What all connections of a shard share: it is empty between two calls of the shard's loop but for `plaintext`.
#[derive(Debug, Default)]
pub struct Scratch {
    /// What was received, decrypted in place.
    incoming: Vec<u8>,
    /// What the latest bytes held for the application.
    pub plaintext: Vec<u8>,
    /// What is to be sent.
    pub outgoing: Vec<u8>,
    spare: Vec<Vec<u8>>,
}

/// What bytes have brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct News {
    /// The handshake is over.
    pub secured: bool,
    /// The server has said that nothing more will come.
    pub finished: bool,
    /// It has come nevertheless.
    pub excess: bool,
}

/// One connection's.
pub struct Session {
    tls: UnbufferedClientConnection,
    /// What was received of a record or message that is not whole.
    kept: Vec<u8>,
    secured: bool,
    /// The server has said that nothing more will come.
    finished: bool,
}

impl Session {
    /// Begins a handshake; its first bytes go to `outgoing`.
    pub fn begin(config: &Arc<ClientConfig>, name: &ServerName<'static>, scratch: &mut Scratch) -> Result<Self, Error> {
        let tls = UnbufferedClientConnection::new(Arc::clone(config), name.clone())?;
        let mut session = Session { tls, kept: Vec::new(), secured: false, finished: false };
        session.take_in(&[], scratch)?;
        Ok(session)
    }

    /// Takes in what was received: what it holds for the application is added to `plaintext`, what has to be answered to
    /// `outgoing`; after an error that is the alert which says so.
    pub fn take_in(&mut self, received: &[u8], scratch: &mut Scratch) -> Result<News, Error> {
        if self.finished {
            return Ok(News { excess: !received.is_empty(), ..News::default() });
        }
        let Scratch { incoming, plaintext, outgoing, spare } = scratch;
        let Session { tls, kept, .. } = self;
        let is_new = kept.is_empty();
        let buffer = if is_new { &mut *incoming } else { &mut *kept };
        buffer.extend_from_slice(received);
        let (mut from, mut finished) = (0, false);
        let result = loop {
            let rest = buffer.get_mut(from..).unwrap_or_default();
            let UnbufferedStatus { mut discard, state } = tls.process_tls_records(rest);
            let goes_on = match state {
                Ok(ConnectionState::ReadTraffic(mut traffic)) => loop {
                    match traffic.next_record() {
                        Some(Ok(record)) => {
                            discard += record.discard;
                            plaintext.extend_from_slice(record.payload);
                        }
                        Some(Err(error)) => break Err(error),
                        None => break Ok(true),
                    }
                },
                Ok(ConnectionState::EncodeTlsData(mut message)) => {
                    encode(outgoing, |space| message.encode(space));
                    Ok(true)
                }
                Ok(ConnectionState::TransmitTlsData(sent)) => {
                    sent.done();
                    Ok(true)
                }
                Ok(ConnectionState::PeerClosed) => {
                    finished = true;
                    Ok(true)
                }
                Ok(_) => Ok(false),
                Err(error) => Err(error),
            };
            from += discard;
            match goes_on {
                Ok(true) => {}
                Ok(false) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        if result.is_err()
            && let Ok(ConnectionState::EncodeTlsData(mut alert)) =
                tls.process_tls_records(buffer.get_mut(from..).unwrap_or_default()).state
        {
            encode(outgoing, |space| alert.encode(space));
        }
        if is_new {
            let rest = incoming.get(from..).unwrap_or_default();
            if !rest.is_empty() {
                *kept = spare.pop().unwrap_or_default();
                kept.extend_from_slice(rest);
            }
            incoming.clear();
        } else {
            kept.drain(..from.min(kept.len()));
            if kept.is_empty() {
                let empty = std::mem::take(kept);
                if spare.len() < SPARE {
                    spare.push(empty);
                }
            }
        }
        result?;
        if kept.len() > MOST_KEPT {
            return Err(PeerMisbehaved::MessageInterleavedWithHandshakeMessage.into());
        }
        let secured = !self.secured && !self.tls.is_handshaking();
        self.secured |= secured;
        self.finished = finished;
        // rustls leaves what follows close_notify where it is.
        let excess = finished && !std::mem::take(&mut self.kept).is_empty();
        Ok(News { secured, finished, excess })
    }

    /// Adds what carries `plaintext` to `outgoing`.
    pub fn encrypt(&mut self, plaintext: &[u8], outgoing: &mut Vec<u8>) -> Result<(), Error> {
        let mut room = plaintext.len() + RECORD_OVERHEAD * (1 + plaintext.len() / RECORD);
        self.writing(outgoing, |traffic, outgoing| {
            let start = outgoing.len();
            outgoing.resize(start + room, 0);
            let written = traffic.encrypt(plaintext, outgoing.get_mut(start..).unwrap_or_default());
            outgoing.truncate(start + *written.as_ref().unwrap_or(&0));
            if let Err(EncryptError::InsufficientSize(needed)) = &written {
                room = needed.required_size;
            }
            written
        })
    }

    /// Adds what says that nothing more will be sent.
    pub fn say_farewell(&mut self, outgoing: &mut Vec<u8>) -> Result<(), Error> {
        self.writing(outgoing, |traffic, outgoing| {
            let start = outgoing.len();
            outgoing.resize(start + 2 * RECORD_OVERHEAD, 0);
            let written = traffic.queue_close_notify(outgoing.get_mut(start..).unwrap_or_default());
            outgoing.truncate(start + *written.as_ref().unwrap_or(&0));
            written
        })
    }

    /// Does `write`, after what rustls itself has to send before: an answer to an update of keys.
    fn writing(
        &mut self,
        outgoing: &mut Vec<u8>,
        mut write: impl FnMut(&mut Traffic<'_>, &mut Vec<u8>) -> Result<usize, EncryptError>,
    ) -> Result<(), Error> {
        /// Nothing of rustls' own takes so many turns.
        const TURNS: usize = 8;
        for _ in 0..TURNS {
            let UnbufferedStatus { discard, state } = self.tls.process_tls_records(&mut self.kept);
            let done = match state? {
                ConnectionState::WriteTraffic(mut traffic) => match write(&mut traffic, outgoing) {
                    Ok(_) => true,
                    Err(EncryptError::InsufficientSize(_)) => false,
                    Err(EncryptError::EncryptExhausted) => return Err(Error::EncryptError),
                },
                ConnectionState::EncodeTlsData(mut message) => {
                    encode(outgoing, |space| message.encode(space));
                    false
                }
                ConnectionState::TransmitTlsData(sent) => {
                    sent.done();
                    false
                }
                _ => return Err(Error::HandshakeNotComplete),
            };
            self.kept.drain(..discard.min(self.kept.len()));
            if done {
                return Ok(());
            }
        }
        Err(Error::EncryptError)
    }

    /// Whether the handshake is over.
    pub fn is_secured(&self) -> bool {
        self.secured
    }

    /// Whether the handshake resumed an earlier session.
    pub fn is_resumed(&self) -> bool {
        self.tls.handshake_kind() == Some(HandshakeKind::Resumed)
    }

    /// Whether the server chose HTTP/2.
    pub fn is_http2(&self) -> bool {
        self.tls.alpn_protocol() == Some(super::security::HTTP2)
    }

    /// What was agreed on.
    pub fn connection(&self) -> &UnbufferedClientConnection {
        &self.tls
    }
}

/// What application data is written to.
type Traffic<'c> = rustls::unbuffered::WriteTraffic<'c, rustls::client::ClientConnectionData>;

/// Adds a message of the handshake, with as much room as it needs.
fn encode(outgoing: &mut Vec<u8>, mut message: impl FnMut(&mut [u8]) -> Result<usize, EncodeError>) {
    let start = outgoing.len();
    let mut room = 4 * RECORD_OVERHEAD;
    loop {
        outgoing.resize(start + room, 0);
        match message(outgoing.get_mut(start..).unwrap_or_default()) {
            Ok(written) => return outgoing.truncate(start + written),
            Err(EncodeError::InsufficientSize(needed)) if needed.required_size > room => room = needed.required_size,
            Err(_) => return outgoing.truncate(start),
        }
    }
}
