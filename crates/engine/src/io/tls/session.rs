//! The TLS session of one connection, without I/O: it turns received bytes into plaintext and into bytes to send.
//!
//! - Received bytes are decrypted in place. A connection has a buffer only while a record or handshake message is
//!   incomplete, so idle connections have none.
//! - A connection keeps at most [`MAX_INCOMPLETE`] bytes of incomplete data. rustls itself rejects records and messages
//!   that are longer than allowed.
//! - rustls allocates memory once for each record that is sent or received. A call needs no other allocations.
//!
//! The session uses the `unbuffered` API of rustls, in which the caller provides all buffers.

use rustls::client::UnbufferedClientConnection;
use rustls::pki_types::ServerName;
use rustls::unbuffered::{ConnectionState, EncodeError, EncryptError, UnbufferedStatus};
use rustls::{ClientConfig, Error, HandshakeKind, PeerMisbehaved};
use std::sync::Arc;

/// Maximum length of incomplete data, in bytes: more than the longest handshake message (64 KiB) plus the longest
/// record (18 KiB).
const MAX_INCOMPLETE: usize = 128 * 1024;
/// Maximum number of bytes that encryption adds to a record: header, explicit nonce, tag and content type.
const RECORD_OVERHEAD: usize = 32;
/// Maximum number of bytes of content in one record.
const MAX_RECORD_CONTENT: usize = 16 * 1024;
/// Maximum number of empty buffers kept for reuse by connections with incomplete records.
const MAX_SPARE_BUFFERS: usize = 16;

/// Buffers that all connections of a shard share. After an event was handled, all except `plaintext` are empty.
#[derive(Debug, Default)]
pub struct Scratch {
    /// Received bytes; they are decrypted in place.
    incoming: Vec<u8>,
    /// The application data that was decrypted from the latest received bytes.
    pub plaintext: Vec<u8>,
    /// Bytes to send.
    pub outgoing: Vec<u8>,
    spare: Vec<Vec<u8>>,
}

/// The effects of received bytes on the state of a TLS session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// The handshake is complete.
    pub secured: bool,
    /// The server has sent close_notify.
    pub finished: bool,
    /// The server has sent more data after its close_notify.
    pub has_trailing_data: bool,
}

/// The TLS session of one connection.
pub struct Session {
    tls: UnbufferedClientConnection,
    /// The received part of an incomplete record or handshake message.
    incomplete: Vec<u8>,
    secured: bool,
    /// Whether the server has sent close_notify.
    finished: bool,
}

impl Session {
    /// Begins a handshake, and adds its first bytes to `scratch.outgoing`.
    pub fn begin(config: &Arc<ClientConfig>, name: &ServerName<'static>, scratch: &mut Scratch) -> Result<Self, Error> {
        let tls = UnbufferedClientConnection::new(Arc::clone(config), name.clone())?;
        let mut session = Session { tls, incomplete: Vec::new(), secured: false, finished: false };
        session.receive(&[], scratch)?;
        Ok(session)
    }

    /// Decrypts received bytes. Appends application data to `scratch.plaintext`, and TLS messages that must be sent in
    /// reply to `scratch.outgoing`. After an error, the reply is the corresponding TLS alert.
    pub fn receive(&mut self, received: &[u8], scratch: &mut Scratch) -> Result<Progress, Error> {
        if self.finished {
            return Ok(Progress { has_trailing_data: !received.is_empty(), ..Progress::default() });
        }
        let Scratch { incoming, plaintext, outgoing, spare } = scratch;
        let Session { tls, incomplete, .. } = self;
        let is_new = incomplete.is_empty();
        let buffer = if is_new { &mut *incoming } else { &mut *incomplete };
        buffer.extend_from_slice(received);
        let mut from = 0;
        let mut finished = false;
        let result = loop {
            let rest = buffer.get_mut(from..).unwrap_or_default();
            let UnbufferedStatus { mut discard, state } = tls.process_tls_records(rest);
            let continues = match state {
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
            match continues {
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
                *incomplete = spare.pop().unwrap_or_default();
                incomplete.extend_from_slice(rest);
            }
            incoming.clear();
        } else {
            incomplete.drain(..from.min(incomplete.len()));
            if incomplete.is_empty() {
                let empty = std::mem::take(incomplete);
                if spare.len() < MAX_SPARE_BUFFERS {
                    spare.push(empty);
                }
            }
        }
        result?;
        if incomplete.len() > MAX_INCOMPLETE {
            return Err(PeerMisbehaved::MessageInterleavedWithHandshakeMessage.into());
        }
        let secured = !self.secured && !self.tls.is_handshaking();
        self.secured |= secured;
        self.finished = finished;
        // rustls does not process data after close_notify, so it is still in `incomplete`.
        let has_trailing_data = finished && !std::mem::take(&mut self.incomplete).is_empty();
        Ok(Progress { secured, finished, has_trailing_data })
    }

    /// Encrypts this plaintext, and appends the TLS records to `outgoing`.
    pub fn encrypt(&mut self, plaintext: &[u8], outgoing: &mut Vec<u8>) -> Result<(), Error> {
        let mut room = plaintext.len() + RECORD_OVERHEAD * (1 + plaintext.len() / MAX_RECORD_CONTENT);
        self.write(outgoing, |traffic, outgoing| {
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

    /// Appends a close_notify alert to `outgoing`.
    pub fn send_close_notify(&mut self, outgoing: &mut Vec<u8>) -> Result<(), Error> {
        self.write(outgoing, |traffic, outgoing| {
            let start = outgoing.len();
            outgoing.resize(start + 2 * RECORD_OVERHEAD, 0);
            let written = traffic.queue_close_notify(outgoing.get_mut(start..).unwrap_or_default());
            outgoing.truncate(start + *written.as_ref().unwrap_or(&0));
            written
        })
    }

    /// Appends pending TLS output to `outgoing`, such as the reply to a key update, and then calls `write`.
    fn write(
        &mut self,
        outgoing: &mut Vec<u8>,
        mut write: impl FnMut(&mut Traffic<'_>, &mut Vec<u8>) -> Result<usize, EncryptError>,
    ) -> Result<(), Error> {
        /// Maximum number of rustls states to process until application data can be written.
        const MAX_STEPS: usize = 8;
        for _ in 0..MAX_STEPS {
            let UnbufferedStatus { discard, state } = self.tls.process_tls_records(&mut self.incomplete);
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
            self.incomplete.drain(..discard.min(self.incomplete.len()));
            if done {
                return Ok(());
            }
        }
        Err(Error::EncryptError)
    }

    /// Whether the handshake is complete.
    pub fn is_secured(&self) -> bool {
        self.secured
    }

    /// Whether the handshake resumed an earlier session.
    pub fn is_resumed(&self) -> bool {
        self.tls.handshake_kind() == Some(HandshakeKind::Resumed)
    }

    /// Whether the server chose HTTP/2.
    pub fn is_http2(&self) -> bool {
        self.tls.alpn_protocol() == Some(super::security::ALPN_HTTP2)
    }

    /// The rustls connection, from which the negotiated parameters can be read.
    pub fn connection(&self) -> &UnbufferedClientConnection {
        &self.tls
    }
}

/// The rustls state in which application data can be written.
type Traffic<'c> = rustls::unbuffered::WriteTraffic<'c, rustls::client::ClientConnectionData>;

/// Extends `outgoing` by the length of a handshake message, and writes the message there.
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
