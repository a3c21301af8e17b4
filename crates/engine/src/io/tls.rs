//! TLS as a layer of bytes: an [`Io`] around another one, so that neither the engines nor a shard know of it.
//!
//! - A connection that is established begins its handshake; when that is over the shard hears `Secured`, and requests may be
//!   handed over from then on. What ends the client's side of a handshake leaves together with the first request.
//! - A byte was received when it was decrypted: what several records of one read hold is one `Received`. Times are honest
//!   by that, and counts are those of plaintext.
//! - A server that says by close_notify that nothing more comes has `Finished`: its stream has ended, its connection
//!   has not. Many servers close only after the client's own close_notify, so closing such a connection answers it (RFC
//!   8446 §6.1). A connection on which more comes is `Broken`. A stream that ends without close_notify is `Truncated`.
//! - Whatever breaks the rules of TLS is `Broken`, once, and nothing is heard of that connection after it.
//!
//! Counts of bytes that were not sent are of plaintext, and rather too high than too low.

mod fault;
mod handshake;
mod identity;
#[cfg(any(test, fuzzing))]
pub mod scripted;
mod security;
mod session;
mod tickets;
mod verify;

pub use handshake::Handshake;
pub use security::{Security, SecurityError, SecurityOptions};

use super::{Io, IoEvent, Route, Settings, Token, Warm, socket};
use crate::clock::Clock;
use crate::pacing::Waited;
use crate::{Address, EngineError};
use brimful_core::{Nanos, TlsFault};
use rustix::io::Errno;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
pub use session::Session;
use session::{News, Scratch};
use std::borrow::Cow;
use std::collections::VecDeque;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Sends that are told apart while the kernel has not taken them; later ones count together.
const TOLD_APART: usize = 64;

/// Connections of another [`Io`], secured.
pub struct Tls<'a, I> {
    inner: I,
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
    http2: bool,
    pipelined: bool,
    /// This side closes by FIN, and says so before.
    says_farewell: bool,
    /// This side closes by RST, and so answers no close_notify.
    resets: bool,
    slots: Vec<Slot>,
    /// What one thing that happened to `inner` was all about; what is received with it lies in `scratch`.
    happened: VecDeque<(Token, IoEvent)>,
    scratch: Scratch,
    /// The connection whose last bytes of the handshake wait in `scratch` for the first request.
    held: Option<Token>,
    /// Connections with requests to encrypt together.
    gathering: Vec<Token>,
    life: PhantomData<&'a ()>,
}

#[derive(Default)]
struct Slot {
    generation: u32,
    session: Option<Box<Session>>,
    /// Plaintext to encrypt together with what else is handed over in this turn.
    gathered: Vec<u8>,
    /// What was sent since the kernel had last taken everything: how long it was, and how long encrypted.
    on_its_way: VecDeque<(usize, usize)>,
    /// What a connection that is taken in had received before.
    early: Vec<u8>,
    /// The server has said that nothing more comes.
    finished: bool,
    /// The connection itself has ended, or its end is known to follow.
    ended: bool,
}

impl<'a, I: Io<'a>> Io<'a> for Tls<'a, I> {
    const NAME: &'static str = I::NAME;

    fn new(settings: &Settings) -> Result<Self, EngineError> {
        let security =
            settings.tls.as_ref().ok_or_else(|| EngineError::Thread("nothing says how to secure it".into()))?;
        Ok(Tls::around(I::new(settings)?, security, settings))
    }

    fn adopt(&mut self, token: Token, warm: Warm) -> Result<(), Errno> {
        let Warm { socket, address, session } = warm;
        let (session, early) = session.unzip();
        self.inner.adopt(token, Warm { socket, address, session: None })?;
        let slot = self.occupy(token);
        slot.session = session;
        if let Some(early) = early.filter(|early| !early.is_empty()) {
            slot.early = early;
            self.happened.push_back((token, IoEvent::Received { last: false }));
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
        self.slots.get(slot as usize).map_or(0, |slot| slot.gathered.len().saturating_add(slot.holds(encrypted)))
    }

    fn close(&mut self, token: Token) {
        if self.held == Some(token) {
            self.held = None;
            self.scratch.outgoing.clear();
        }
        self.say_farewell(token);
        if let Some(slot) = self.get_mut(token) {
            *slot = Slot { generation: token.generation.wrapping_add(1), ..Slot::default() };
        }
        self.inner.close(token);
    }

    fn flush(&mut self) -> Result<(), EngineError> {
        self.send_gathered();
        self.inner.flush()
    }

    fn wait(&mut self, clock: Clock, until: Nanos) -> Result<Waited, EngineError> {
        self.send_gathered();
        // What has happened already is not waited for.
        let until = if self.happened.is_empty() { until } else { Nanos::ZERO };
        self.inner.wait(clock, until)
    }

    fn set_exact(&mut self, exactly: bool) {
        self.inner.set_exact(exactly);
    }

    fn next(&mut self) -> Option<(Token, IoEvent)> {
        loop {
            while let Some((token, happened)) = self.happened.pop_front() {
                let Some(slot) = self.get_mut(token) else { continue };
                if matches!(happened, IoEvent::Received { .. }) && !slot.early.is_empty() {
                    self.scratch.plaintext = std::mem::take(&mut slot.early);
                }
                return Some((token, happened));
            }
            self.send_held();
            let (token, happened) = self.inner.next()?;
            match happened {
                IoEvent::Established => {
                    self.happened.push_back((token, IoEvent::Established));
                    self.begin(token);
                }
                IoEvent::Received { last } => self.take_in(token, last),
                IoEvent::EndOfStream => {
                    let end = self.end_of_stream(token);
                    self.happened.push_back((token, end));
                }
                other => self.happened.push_back((token, other)),
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
            config: security.of_shard(),
            name: security.name().clone(),
            http2: security.is_http2(),
            pipelined: settings.pipelined,
            says_farewell: settings.says_farewell,
            resets: settings.options.reset_on_close,
            slots: Vec::new(),
            happened: VecDeque::new(),
            scratch: Scratch::default(),
            held: None,
            gathering: Vec::new(),
            life: PhantomData,
        }
    }

    fn occupy(&mut self, token: Token) -> &mut Slot {
        let at = token.slot as usize;
        if at >= self.slots.len() {
            self.slots.resize_with(at + 1, Slot::default);
        }
        self.slots[at] = Slot { generation: token.generation, ..Slot::default() };
        &mut self.slots[at]
    }

    fn get_mut(&mut self, token: Token) -> Option<&mut Slot> {
        self.slots.get_mut(token.slot as usize).filter(|slot| slot.generation == token.generation)
    }

    /// Begins the handshake of a connection that was established.
    fn begin(&mut self, token: Token) {
        match Session::begin(&self.config, &self.name, &mut self.scratch) {
            Ok(session) => {
                self.send_outgoing(token);
                if let Some(slot) = self.get_mut(token) {
                    slot.session = Some(Box::new(session));
                }
            }
            Err(error) => self.happened.push_back((token, IoEvent::Broken(fault::kind(&error)))),
        }
    }

    /// Takes in what `inner` has received; after that its stream may have ended, if this was the `last`.
    fn take_in(&mut self, token: Token, last: bool) {
        let Tls { inner, slots, scratch, happened, .. } = self;
        let Some(slot) = slots.get_mut(token.slot as usize).filter(|slot| slot.generation == token.generation) else {
            return;
        };
        slot.ended |= last;
        let Some(session) = slot.session.as_mut() else { return };
        scratch.plaintext.clear();
        let news = session.take_in(inner.received(), scratch);
        let (resumed, http2) = match news {
            Ok(News { secured: true, .. }) => (session.is_resumed(), session.is_http2()),
            _ => (false, false),
        };
        let holds_something = !scratch.plaintext.is_empty();
        match news {
            Ok(News { secured: true, .. }) if self.http2 && !http2 => self.break_off(token, TlsFault::Protocol),
            Ok(News { secured, finished, excess }) => {
                slot.finished |= finished;
                if secured {
                    happened.push_back((token, IoEvent::Secured { resumed, http2 }));
                }
                if holds_something {
                    happened.push_back((token, IoEvent::Received { last: last || finished }));
                }
                if finished {
                    happened.push_back((token, IoEvent::Finished));
                }
                if excess {
                    happened.push_back((token, IoEvent::Broken(TlsFault::Misbehaved)));
                }
                if secured {
                    self.held = Some(token);
                } else {
                    self.send_outgoing(token);
                }
            }
            Err(error) => {
                // What came before has come.
                if holds_something && session.is_secured() {
                    happened.push_back((token, IoEvent::Received { last: true }));
                }
                self.break_off(token, fault::kind(&error));
            }
        }
    }

    /// Nothing that comes on this connection from now on can be trusted. The server is told why, if it is.
    fn break_off(&mut self, token: Token, why: TlsFault) {
        if !self.scratch.outgoing.is_empty() {
            self.send_outgoing(token);
            // The shard closes it next, with what has not left by then. A failure will show at the next flush.
            let _ = self.inner.flush();
        }
        if let Some(slot) = self.get_mut(token) {
            slot.session = None;
        }
        self.happened.push_back((token, IoEvent::Broken(why)));
    }

    /// What it means that the connection itself has ended.
    fn end_of_stream(&mut self, token: Token) -> IoEvent {
        let Some(slot) = self.get_mut(token) else { return IoEvent::EndOfStream };
        slot.ended = true;
        let is_secured = slot.session.as_ref().is_some_and(|session| session.is_secured());
        if is_secured && !slot.finished { IoEvent::Truncated } else { IoEvent::EndOfStream }
    }

    /// Encrypts and sends.
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
            return self.break_off(token, fault::kind(&error));
        }
        if inner.unsent(token.slot) == 0 {
            slot.on_its_way.clear();
        }
        inner.send_copied(token, &scratch.outgoing);
        // That the kernel has not taken it may be known later only.
        slot.note(plaintext.len(), scratch.outgoing.len());
        scratch.outgoing.clear();
    }

    /// Sends what the handshake, or TLS itself, has to say.
    fn send_outgoing(&mut self, token: Token) {
        if !self.scratch.outgoing.is_empty() {
            self.inner.send_copied(token, &self.scratch.outgoing);
            self.scratch.outgoing.clear();
        }
    }

    /// No request came along.
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

    /// Sends close_notify where this side closes in order, and where the server has sent its own and may wait for the
    /// answer. A server whose connection has ended waits for nothing, and would answer with RST.
    fn say_farewell(&mut self, token: Token) {
        let Tls { inner, slots, scratch, says_farewell, resets, .. } = self;
        let slot = slots.get_mut(token.slot as usize).filter(|slot| slot.generation == token.generation);
        let Some(slot) = slot.filter(|slot| if slot.finished { !*resets && !slot.ended } else { *says_farewell })
        else {
            return;
        };
        let Some(session) = slot.session.as_mut().filter(|session| session.is_secured()) else { return };
        let other = std::mem::take(&mut scratch.outgoing);
        if inner.unsent(token.slot) == 0 && session.say_farewell(&mut scratch.outgoing).is_ok() {
            inner.send_copied(token, &scratch.outgoing);
            // A failure will show at the next flush.
            let _ = inner.flush();
        }
        scratch.outgoing = other;
    }
}

impl Slot {
    fn note(&mut self, plaintext: usize, encrypted: usize) {
        let many = self.on_its_way.len() >= TOLD_APART;
        match self.on_its_way.back_mut().filter(|_| many) {
            Some(last) => *last = (last.0 + plaintext, last.1 + encrypted),
            None => self.on_its_way.push_back((plaintext, encrypted)),
        }
    }

    /// How much plaintext is in the last `encrypted` bytes of what was sent.
    fn holds(&self, mut encrypted: usize) -> usize {
        let mut plaintext: usize = 0;
        for (whole, wire) in self.on_its_way.iter().rev() {
            if encrypted == 0 {
                break;
            }
            // Of one that the kernel has taken a part of, something was sent, and something was not.
            let part = (*whole as u128 * encrypted as u128 / (*wire).max(1) as u128).max(1) as usize;
            plaintext = plaintext.saturating_add(if encrypted < *wire { part } else { *whole });
            encrypted = encrypted.saturating_sub(*wire);
        }
        plaintext
    }
}

/// Opens up to `count` secured connections, one after another, and stops at the first that is not in time: whatever hinders
/// it will show in the run.
pub fn open_secured(settings: &Settings, security: &Security, timeout: Nanos, count: u64) -> Vec<Warm> {
    let (config, mut scratch) = (security.of_shard(), Scratch::default());
    let open_one = |nth| {
        let route = settings.warm_route(nth);
        let socket = socket::open_one(settings, route, timeout)?;
        let until = Instant::now() + Duration::from(timeout).min(Duration::from_secs(3600));
        scratch.plaintext.clear();
        scratch.outgoing.clear();
        let mut session = Session::begin(&config, security.name(), &mut scratch).ok()?;
        handshake::complete(&socket, &mut session, &mut scratch, until).ok()?;
        let right = !security.is_http2() || session.is_http2();
        right.then(|| Warm {
            socket,
            address: route.address,
            session: Some((Box::new(session), scratch.plaintext.clone())),
        })
    };
    (0..count).map_while(open_one).collect()
}
