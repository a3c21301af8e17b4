//! One shard: what it knows and keeps, and how a call ends. `turns.rs` begins calls and waits, `exchange.rs` says what becomes of
//! them.

use crate::bodies::Bodies;
use crate::clock::Clock;
use crate::connection::{Call, Connection, Connections, Phase};
use crate::deadlines::Deadlines;
use crate::density::Density;
use crate::destination::AddressTurns;
use crate::io::{Io, Settings, Warm};
use crate::pacing::Waited;
use crate::sources::Turns;
use crate::sweep::Sweep;
use crate::{Config, EngineError, Redirect, Requests};
use brimful_core::{CallSpec, End, Event, Nanos, Observer, Outcome, SessionEnded, SessionId, Workload};
use brimful_http::{RecentBlock, RecentHead};
use std::collections::VecDeque;

/// A server that is to close a connection after the last answer has this long. Connections that wait for it hold
/// descriptors: a server that answers 1,000 calls per second and never closes has 1,000 of them.
pub(crate) const SERVER_CLOSES_WITHIN: Nanos = Nanos::from_secs(1);

/// The connection was lost; whether before anything was sent, [`Shard::end`] knows.
pub(crate) const RESET: End = End::Reset { sent: true };

/// A call that follows a redirect: its user has waited since the first one was due.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hop {
    pub spec: CallSpec,
    pub due: Nanos,
    pub ready: Nanos,
}

/// One shard of a run.
pub struct Shard<'a, W, R, O: Observer, I> {
    pub(crate) config: &'a Config,
    pub(crate) clock: Clock,
    pub(crate) now: Nanos,
    pub(crate) workload: W,
    pub(crate) requests: R,
    pub(crate) observer: O,
    pub(crate) io: I,
    pub(crate) connections: Connections<O::PerCall>,
    pub(crate) connecting: Deadlines,
    pub(crate) responding: Deadlines,
    pub(crate) securing: Deadlines,
    /// Until when connections wait for the server to close them.
    pub(crate) closing: Deadlines,
    pub(crate) bodies: Bodies<'a>,
    pub(crate) sources: Turns,
    pub(crate) addresses: AddressTurns,
    pub(crate) recent_head: RecentHead,
    pub(crate) recent_block: RecentBlock,
    /// Slots of connections that speak HTTP/2 and have something to say.
    pub(crate) speaking: Vec<u32>,
    /// Why nothing can be sent any more.
    pub(crate) failed: Option<EngineError>,
    /// When the workload wants to be asked again.
    pub(crate) next_due: Nanos,
    /// Not before this tick is it asked, where calls begin in ticks.
    pub(crate) next_tick: Nanos,
    /// How closely calls come due.
    pub(crate) density: Density,
    /// Whether waits end when they should.
    pub(crate) exactly: bool,
    /// When the oldest thing was asked for that the kernel may not know of yet.
    pub(crate) held_since: Option<Nanos>,
    pub(crate) done: bool,
    /// More was due than could be begun in one go.
    pub(crate) behind: bool,
    /// Calls that may be due wait for a connection, see [`ConnectionPolicy::max_per_shard`].
    ///
    /// [`ConnectionPolicy::max_per_shard`]: crate::ConnectionPolicy::max_per_shard
    pub(crate) lacks_connection: bool,
    /// When there was one again.
    pub(crate) had_room: Nanos,
    /// Calls that have not ended, those among them that follow a redirect and have not begun.
    pub(crate) in_flight: usize,
    /// Calls that follow a redirect, and are to begin.
    pub(crate) hops: VecDeque<Hop>,
    /// Calls that are to be sent again.
    pub(crate) retries: VecDeque<Call<O::PerCall>>,
    pub(crate) waited: Waited,
    /// Up to when the sockets have been read.
    pub(crate) sweep: Sweep,
    /// When the latest wait ended.
    pub(crate) turn_began: Nanos,
    pub(crate) longest_gap: Nanos,
    /// CPU time the thread had used, and waited for, when the run began.
    pub(crate) cpu_before: Nanos,
    pub(crate) cpu_wait_before: Option<Nanos>,
}

impl<'a, W: Workload, R: Requests<'a>, O: Observer, I: Io<'a>> Shard<'a, W, R, O, I> {
    pub fn new(
        config: &'a Config,
        settings: &Settings,
        clock: Clock,
        (workload, requests, observer): (W, R, O),
        io: I,
        warm: Vec<Warm>,
        addresses: AddressTurns,
    ) -> Self {
        let lifetime = config.connections.calls_per_connection.unwrap_or(u64::MAX);
        let mut shard = Shard {
            config,
            clock,
            now: Nanos::ZERO,
            workload,
            requests,
            observer,
            io,
            connections: Connections::new(config.connections.pipeline, lifetime),
            connecting: Deadlines::new(config.connections.connect_timeout.unwrap_or(Nanos::MAX)),
            responding: Deadlines::new(config.connections.response_timeout),
            securing: Deadlines::new(config.connections.response_timeout),
            closing: Deadlines::new(SERVER_CLOSES_WITHIN.min(config.connections.response_timeout)),
            bodies: Bodies::new(),
            sources: Turns::new(settings.sources.len()),
            addresses,
            recent_head: RecentHead::default(),
            recent_block: RecentBlock::default(),
            speaking: Vec::new(),
            failed: None,
            next_due: Nanos::ZERO,
            next_tick: Nanos::ZERO,
            density: Density::default(),
            exactly: true,
            held_since: None,
            done: false,
            behind: false,
            lacks_connection: false,
            had_room: Nanos::ZERO,
            in_flight: 0,
            hops: VecDeque::new(),
            retries: VecDeque::new(),
            waited: Waited::default(),
            sweep: Sweep::default(),
            turn_began: Nanos::ZERO,
            longest_gap: Nanos::ZERO,
            cpu_before: Nanos::ZERO,
            cpu_wait_before: None,
        };
        for address in shard.addresses.told_apart() {
            shard.observer.on_address(&address.to_string());
        }
        for warm in warm {
            let policy = &config.connections;
            let mut connection = Connection::new(Phase::Open, policy.pipeline, None).speaking(policy.http2);
            connection.warm = true;
            connection.address = warm.address as u16;
            shard.addresses.take(None);
            let token = shard.connections.insert(connection);
            shard.speaking.extend(policy.http2.then_some(token.slot));
            if shard.io.adopt(token, warm).is_err() {
                drop(shard.connections.remove(token.slot));
            }
        }
        shard
    }

    pub(crate) fn tick(&mut self) -> Nanos {
        self.now = self.clock.now();
        self.now
    }

    /// Uses the server's addresses that the latest look-up of its name has found.
    pub(crate) fn refresh_addresses(&mut self) {
        for address in self.addresses.refresh() {
            self.observer.on_address(&address.to_string());
            self.io.add_address(address);
        }
    }

    pub(crate) fn hold(&mut self) {
        self.held_since = self.held_since.or(Some(self.now));
    }

    /// Ends a call of whose request the kernel took `bytes_sent` bytes. Whether any did is known for sure only now, and decides
    /// both whether the call was sent and how it can have ended.
    pub(crate) fn end(&mut self, call: &mut Call<O::PerCall>, end: End, bytes_sent: u64) {
        let sent = bytes_sent > 0 && !matches!(end, End::ClientLimited(_));
        if let Some(at) = call.sent_at.get().filter(|_| sent) {
            self.observer.on(&mut call.observed, &Event::Sent { at });
        }
        if let Some(at) = call.first_byte_at.get() {
            self.observer.on(&mut call.observed, &Event::FirstByte { at });
        }
        let end = possible(end, sent);
        let bytes_sent = if sent { bytes_sent + call.earlier.bytes_sent } else { 0 };
        let Call { spec, due, received, .. } = *call;
        let outcome = Outcome { call: spec, due, at: self.now, end, bytes_sent, bytes_received: received };
        self.observer.on(&mut call.observed, &Event::Ended(outcome));
        self.requests.ended(&spec);
        if call.redirect.take().is_some_and(|leads| self.is_followed(*leads, &outcome)) {
            return;
        }
        self.workload.on_outcome(&outcome);
        self.in_flight -= 1;
        // The workload may want something at once.
        self.next_due = Nanos::ZERO;
        if let Some(session) = spec.session {
            self.go_on_with(session);
        }
    }

    /// Whether another call follows the one that has ended. The workload then hears of the last one only: its client goes on
    /// waiting.
    fn is_followed(&mut self, leads: Redirect, outcome: &Outcome) -> bool {
        match (leads, outcome.end) {
            (Redirect::To(spec), End::Completed { .. }) => {
                self.hops.push_back(Hop { spec, due: outcome.due, ready: self.now });
                self.next_due = Nanos::ZERO;
                return true;
            }
            (Redirect::To(spec), _) => self.requests.ended(&spec),
            (Redirect::Not(why), End::Completed { .. }) => self.observer.on_unfollowed(why),
            (Redirect::Not(_), _) => {}
        }
        false
    }

    /// What becomes of a session one of whose calls has ended: its connections stay, or they are closed.
    fn go_on_with(&mut self, session: SessionId) {
        if let Some(outcome) = self.workload.session_ended(session) {
            let connections = self.connections.end_session(session);
            self.observer.on_session(&SessionEnded { session, outcome, connections });
            self.requests.session_ended(session);
            self.leave(session);
        } else if self.workload.closes_between_bursts(session) {
            self.leave(session);
        }
    }

    /// Closes the connections of a session that has no call under way.
    fn leave(&mut self, session: SessionId) {
        let idle = |slot: &u32| self.connections.get(*slot).is_some_and(|connection| connection.under_way() == 0);
        let slots: Vec<u32> = self.connections.of_session(session).iter().copied().filter(idle).collect();
        slots.into_iter().for_each(|slot| self.part(slot));
    }
}

/// How a call can have ended of which something was sent, or nothing: what comes unasked is no answer, nor too late.
fn possible(end: End, sent: bool) -> End {
    match end {
        End::Reset { .. } => End::Reset { sent },
        End::ClosedOnReuse { .. } => End::ClosedOnReuse { sent },
        End::Unfinished { .. } => End::Unfinished { sent },
        End::TlsFailed { why, .. } => End::TlsFailed { sent, why },
        End::Completed { .. }
        | End::Unexpected { .. }
        | End::TimedOut
        | End::Malformed
        | End::StreamReset
        | End::GoneAway
            if !sent =>
        {
            End::Reset { sent }
        }
        _ => end,
    }
}
