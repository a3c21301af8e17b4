//! TLS as a layer between a shard and the kernel interface: an [`Io`] that wraps another [`Io`]. Shards, epoll and
//! io_uring are the same with and without TLS.
//!
//! - The handshake begins when a connection is established. When it is complete, the shard gets `Secured`, and may send
//!   requests. The last bytes of the client's handshake are sent together with the first request.
//! - A byte counts as received once it is decrypted. The content of all records of one read is reported as one
//!   `Received`. All byte counts are of plaintext.
//! - After a server's close_notify, the shard gets `Finished`: the TLS stream has ended, but the TCP connection is
//!   still open. Many servers close it only after the client's own close_notify, so closing such a connection sends one
//!   (RFC 8446 §6.1). If more data arrives on the connection, it is `Broken`. A stream that ends without close_notify
//!   is `Truncated`.
//! - For a connection that violates TLS, `Broken` is reported once, and no further events.
//!
//! The number of unsent bytes refers to plaintext, and is an upper bound.

mod error;
mod fault;
mod handshake;
mod identity;
/// Scripted TLS peers for tests.
#[cfg(any(test, fuzzing))]
pub mod scripted;
mod security;
mod session;
mod tickets;
mod verify;

pub use error::SecurityError;
pub use handshake::Handshake;
pub use security::{Security, SecurityOptions};

use super::{Io, IoEvent, Route, Settings, Token, WarmConnection, socket};
use crate::clock::Clock;
use crate::pacing::WaitTimes;
use crate::{Address, EngineError};
use brimful_core::{Nanos, TlsFault};
use rustix::io::Errno;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
pub use session::Session;
use session::{Progress, Scratch};
use std::borrow::Cow;
use std::collections::VecDeque;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum number of sends whose lengths are kept separately until the kernel has accepted their bytes. Beyond this
/// number, lengths are added to that of the latest send.
const MAX_COUNTED_SENDS: usize = 64;

/// TLS over the connections of another [`Io`].
pub struct Tls<'a, I> {
    inner: I,
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
    http2: bool,
    pipelined: bool,
    /// Whether this host closes connections with FIN. If so, it sends close_notify first.
    sends_close_notify: bool,
    /// Whether this host closes connections with RST. If so, it does not reply to a close_notify.
    resets: bool,
    slots: Vec<Slot>,
    /// Events that the latest event of `inner` has caused. Their plaintext is in `scratch`.
    events: VecDeque<(Token, IoEvent)>,
    scratch: Scratch,
    /// The connection whose last handshake bytes are in `scratch`. They are sent together with its first request.
    held: Option<Token>,
    /// Connections with requests to be encrypted and sent together.
    gathering: Vec<Token>,
    life: PhantomData<&'a ()>,
}

#[derive(Default)]
struct Slot {
    generation: u32,
    session: Option<Box<Session>>,
    /// Plaintext of the connection's requests, to be encrypted and sent together before the next wait.
    gathered: Vec<u8>,
    /// Lengths of all sends, oldest first, since the kernel last had accepted all bytes.
    sends: VecDeque<SentBytes>,
    /// Plaintext that the server sent with its handshake on a connection opened before the run.
    early: Vec<u8>,
    /// Whether the server has sent close_notify.
    finished: bool,
    /// Whether the TCP connection has ended, or will end without further data.
    ended: bool,
}

/// The plaintext length and the encrypted length of one send, in bytes.
#[derive(Clone, Copy, Debug)]
struct SentBytes {
    plaintext: usize,
    encrypted: usize,
}

impl<'a, I: Io<'a>> Io<'a> for Tls<'a, I> {
    const NAME: &'static str = I::NAME;

    fn new(settings: &Settings) -> Result<Self, EngineError> {
        let security = settings.tls.as_ref().ok_or_else(|| EngineError::Thread("TLS is not configured".into()))?;
        Ok(Tls::around(I::new(settings)?, security, settings))
    }

    fn adopt(&mut self, token: Token, warm: WarmConnection) -> Result<(), Errno> {
        let WarmConnection { socket, address, session } = warm;
        let (session, early) = session.unzip();
        self.inner.adopt(token, WarmConnection { socket, address, session: None })?;
        let slot = self.occupy(token);
        slot.session = session;
        if let Some(early) = early.filter(|early| !early.is_empty()) {
            slot.early = early;
            self.events.push_back((token, IoEvent::Received { last: false }));
        }
        Ok(())
    }

    fn connect(&mut self, token: Token, route: Route) -> Result<(), Errno> {
        self.occupy(token);
        self.inner.connect(token, route)
    }

    fn add_address(&mut self, address: Address) {
        self.inner.add_address(address);
    }

    fn send(&mut self, token: Token, request: Cow<'a, [u8]>) {
        self.send_copied(token, &request);
    }

    fn send_copied(&mut self, token: Token, bytes: &[u8]) {
        if !self.pipelined {
            return self.transmit(token, bytes);
        }
        let Some(slot) = self.get_mut(token) else { return };
        let first = slot.gathered.is_empty();
        slot.gathered.extend_from_slice(bytes);
        if first {
            self.gathering.push(token);
        }
    }

    fn notify_when_sent(&mut self, token: Token) {
        self.send_gathered();
        self.inner.notify_when_sent(token);
    }

    fn unsent(&self, slot: u32) -> usize {
        let encrypted = self.inner.unsent(slot);
        self.slots
            .get(slot as usize)
            .map_or(0, |slot| slot.gathered.len().saturating_add(slot.plaintext_in_last(encrypted)))
    }

    fn close(&mut self, token: Token) {
        if self.held == Some(token) {
            self.held = None;
            self.scratch.outgoing.clear();
        }
        self.send_close_notify(token);
        if let Some(slot) = self.get_mut(token) {
            *slot = Slot { generation: token.generation.wrapping_add(1), ..Slot::default() };
        }
        self.inner.close(token);
    }

    fn flush(&mut self) -> Result<(), EngineError> {
        self.send_gathered();
        self.inner.flush()
    }

    fn wait(&mut self, clock: Clock, until: Nanos) -> Result<WaitTimes, EngineError> {
        self.send_gathered();
        let until = if self.events.is_empty() { until } else { Nanos::ZERO };
        self.inner.wait(clock, until)
    }

    fn set_exact(&mut self, exactly: bool) {
        self.inner.set_exact(exactly);
    }

    fn next(&mut self) -> Option<(Token, IoEvent)> {
        loop {
            while let Some((token, event)) = self.events.pop_front() {
                let Some(slot) = self.get_mut(token) else { continue };
                if matches!(event, IoEvent::Received { .. }) && !slot.early.is_empty() {
                    self.scratch.plaintext = std::mem::take(&mut slot.early);
                }
                return Some((token, event));
            }
            self.send_held();
            let (token, event) = self.inner.next()?;
            match event {
                IoEvent::Established => {
                    self.events.push_back((token, IoEvent::Established));
                    self.begin_handshake(token);
                }
                IoEvent::Received { last } => self.receive(token, last),
                IoEvent::EndOfStream => {
                    let end = self.end_of_stream(token);
                    self.events.push_back((token, end));
                }
                other => self.events.push_back((token, other)),
            }
        }
    }

    fn attempts_have_begun(&self) -> bool {
        self.inner.attempts_have_begun()
    }

    fn left_unread(&mut self) -> bool {
        self.inner.left_unread()
    }

    fn received(&self) -> &[u8] {
        &self.scratch.plaintext
    }
}

impl<'a, I: Io<'a>> Tls<'a, I> {
    fn around(inner: I, security: &Security, settings: &Settings) -> Tls<'a, I> {
        Tls {
            inner,
            config: security.shard_config(),
            name: security.name().clone(),
            http2: security.is_http2(),
            pipelined: settings.pipelined,
            sends_close_notify: settings.sends_close_notify,
            resets: settings.options.reset_on_close,
            slots: Vec::new(),
            events: VecDeque::new(),
            scratch: Scratch::default(),
            held: None,
            gathering: Vec::new(),
            life: PhantomData,
        }
    }

    fn occupy(&mut self, token: Token) -> &mut Slot {
        let index = token.slot as usize;
        if index >= self.slots.len() {
            self.slots.resize_with(index + 1, Slot::default);
        }
        self.slots[index] = Slot { generation: token.generation, ..Slot::default() };
        &mut self.slots[index]
    }

    fn get_mut(&mut self, token: Token) -> Option<&mut Slot> {
        self.slots.get_mut(token.slot as usize).filter(|slot| slot.generation == token.generation)
    }

    /// Begins the handshake of an established connection.
    fn begin_handshake(&mut self, token: Token) {
        match Session::begin(&self.config, &self.name, &mut self.scratch) {
            Ok(session) => {
                self.send_outgoing(token);
                if let Some(slot) = self.get_mut(token) {
                    slot.session = Some(Box::new(session));
                }
            }
            Err(error) => self.events.push_back((token, IoEvent::Broken(fault::classify(&error)))),
        }
    }

    /// Processes the bytes that `inner` has received. `last` says that the server has closed its side after them.
    fn receive(&mut self, token: Token, last: bool) {
        let Tls { inner, slots, scratch, events, .. } = self;
        let Some(slot) = slots.get_mut(token.slot as usize).filter(|slot| slot.generation == token.generation) else {
            return;
        };
        slot.ended |= last;
        let Some(session) = slot.session.as_mut() else { return };
        scratch.plaintext.clear();
        let progress = session.receive(inner.received(), scratch);
        let (resumed, http2) = match progress {
            Ok(Progress { secured: true, .. }) => (session.is_resumed(), session.is_http2()),
            _ => (false, false),
        };
        let has_plaintext = !scratch.plaintext.is_empty();
        match progress {
            Ok(Progress { secured: true, .. }) if self.http2 && !http2 => self.break_off(token, TlsFault::Protocol),
            Ok(Progress { secured, finished, has_trailing_data }) => {
                slot.finished |= finished;
                if secured {
                    events.push_back((token, IoEvent::Secured { resumed, http2 }));
                }
                if has_plaintext {
                    events.push_back((token, IoEvent::Received { last: last || finished }));
                }
                if finished {
                    events.push_back((token, IoEvent::Finished));
                }
                if has_trailing_data {
                    events.push_back((token, IoEvent::Broken(TlsFault::Misbehaved)));
                }
                if secured {
                    self.held = Some(token);
                } else {
                    self.send_outgoing(token);
                }
            }
            Err(error) => {
                // Reports the plaintext that was decrypted before the error, because it is valid.
                if has_plaintext && session.is_secured() {
                    events.push_back((token, IoEvent::Received { last: true }));
                }
                self.break_off(token, fault::classify(&error));
            }
        }
    }

    /// Ends a TLS session after an error and reports `Broken`, because no further data on the connection can be
    /// trusted. Sends the TLS alert, if any.
    fn break_off(&mut self, token: Token, why: TlsFault) {
        if !self.scratch.outgoing.is_empty() {
            self.send_outgoing(token);
            // Flushes now, because the shard closes the connection next. If the flush fails, the next flush fails too
            // and reports the error.
            let _ = self.inner.flush();
        }
        if let Some(slot) = self.get_mut(token) {
            slot.session = None;
        }
        self.events.push_back((token, IoEvent::Broken(why)));
    }

    /// Returns the event that reports the end of the TCP connection to the shard.
    fn end_of_stream(&mut self, token: Token) -> IoEvent {
        let Some(slot) = self.get_mut(token) else { return IoEvent::EndOfStream };
        slot.ended = true;
        let is_secured = slot.session.as_ref().is_some_and(|session| session.is_secured());
        if is_secured && !slot.finished { IoEvent::Truncated } else { IoEvent::EndOfStream }
    }

    /// Encrypts plaintext and sends it on the connection.
    fn transmit(&mut self, token: Token, plaintext: &[u8]) {
        if self.held.is_some_and(|held| held != token) {
            self.send_held();
        }
        self.held = None;
        let Tls { inner, slots, scratch, .. } = self;
        let Some(slot) = slots.get_mut(token.slot as usize).filter(|slot| slot.generation == token.generation) else {
            return scratch.outgoing.clear();
        };
        let Some(session) = slot.session.as_mut() else { return scratch.outgoing.clear() };
        if let Err(error) = session.encrypt(plaintext, &mut scratch.outgoing) {
            return self.break_off(token, fault::classify(&error));
        }
        if inner.unsent(token.slot) == 0 {
            slot.sends.clear();
        }
        inner.send_copied(token, &scratch.outgoing);
        // The lengths are kept even if the kernel seems to have accepted all bytes. A later completion may report that
        // it has not.
        slot.note_send(SentBytes { plaintext: plaintext.len(), encrypted: scratch.outgoing.len() });
        scratch.outgoing.clear();
    }

    /// Sends bytes that TLS itself produced: handshake messages, alerts or other replies.
    fn send_outgoing(&mut self, token: Token) {
        if !self.scratch.outgoing.is_empty() {
            self.inner.send_copied(token, &self.scratch.outgoing);
            self.scratch.outgoing.clear();
        }
    }

    /// Sends the last handshake bytes that were held back for a first request, because no request has followed.
    fn send_held(&mut self) {
        if let Some(token) = self.held.take() {
            self.send_outgoing(token);
        }
    }

    fn send_gathered(&mut self) {
        while let Some(token) = self.gathering.pop() {
            let Some(slot) = self.get_mut(token) else { continue };
            let mut gathered = std::mem::take(&mut slot.gathered);
            self.transmit(token, &gathered);
            gathered.clear();
            if let Some(slot) = self.get_mut(token) {
                slot.gathered = gathered;
            }
        }
        self.send_held();
    }

    /// Sends close_notify if this host closes connections with FIN, or if the server has sent a close_notify and may
    /// wait for the reply. A server that has closed its TCP connection does not wait, and would answer with RST.
    fn send_close_notify(&mut self, token: Token) {
        let Tls { inner, slots, scratch, sends_close_notify, resets, .. } = self;
        let slot = slots.get_mut(token.slot as usize).filter(|slot| slot.generation == token.generation);
        let Some(slot) = slot.filter(|slot| if slot.finished { !*resets && !slot.ended } else { *sends_close_notify })
        else {
            return;
        };
        let Some(session) = slot.session.as_mut().filter(|session| session.is_secured()) else { return };
        let other = std::mem::take(&mut scratch.outgoing);
        if inner.unsent(token.slot) == 0 && session.send_close_notify(&mut scratch.outgoing).is_ok() {
            inner.send_copied(token, &scratch.outgoing);
            // An error is ignored here, because the next flush fails too and reports it.
            let _ = inner.flush();
        }
        scratch.outgoing = other;
    }
}

impl Slot {
    fn note_send(&mut self, sent: SentBytes) {
        let is_full = self.sends.len() >= MAX_COUNTED_SENDS;
        match self.sends.back_mut().filter(|_| is_full) {
            Some(last) => {
                last.plaintext += sent.plaintext;
                last.encrypted += sent.encrypted;
            }
            None => self.sends.push_back(sent),
        }
    }

    /// Estimated number of plaintext bytes in the last `encrypted` bytes that were sent.
    fn plaintext_in_last(&self, mut encrypted: usize) -> usize {
        let mut plaintext: usize = 0;
        for sent in self.sends.iter().rev() {
            if encrypted == 0 {
                break;
            }
            // If part of a send is still unsent, at least one byte of its plaintext counts as unsent.
            let share = sent.plaintext as u128 * encrypted as u128 / sent.encrypted.max(1) as u128;
            let unsent = if encrypted < sent.encrypted { share.max(1) as usize } else { sent.plaintext };
            plaintext = plaintext.saturating_add(unsent);
            encrypted = encrypted.saturating_sub(sent.encrypted);
        }
        plaintext
    }
}

/// Opens up to `count` connections and completes their TLS handshakes, one after another. Stops at the first connection
/// that is not established within `timeout`, or whose handshake then takes longer than `timeout`. Does not report the
/// reason, because the run will meet the same error and report it.
pub fn open_secured(settings: &Settings, security: &Security, timeout: Nanos, count: u64) -> Vec<WarmConnection> {
    let config = security.shard_config();
    let mut scratch = Scratch::default();
    let open_one = |nth| {
        let route = settings.warm_route(nth);
        let socket = socket::open_one(settings, route, timeout)?;
        let until = Instant::now() + Duration::from(timeout).min(Duration::from_secs(3600));
        scratch.plaintext.clear();
        scratch.outgoing.clear();
        let mut session = Session::begin(&config, security.name(), &mut scratch).ok()?;
        handshake::complete(&socket, &mut session, &mut scratch, until).ok()?;
        let has_protocol = !security.is_http2() || session.is_http2();
        has_protocol.then(|| WarmConnection {
            socket,
            address: route.address,
            session: Some((Box::new(session), scratch.plaintext.clone())),
        })
    };
    (0..count).map_while(open_one).collect()
}
