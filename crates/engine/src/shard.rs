//! One shard of a run: a thread of the load generator with its own event loop. This file ends calls and sessions;
//! `turns.rs` begins calls and waits; `exchange.rs` handles events on connections.

mod exchange;
mod turns;

pub use turns::ShardUsage;

use crate::bodies::UnsentBodies;
use crate::call::Call;
use crate::clock::Clock;
use crate::connection::{Connection, Phase};
use crate::connections::Connections;
use crate::destination::AddressRotation;
use crate::due_calls::{DueCalls, RedirectedCall};
use crate::io::{Io, Settings, WarmConnection};
use crate::shard_time::ShardTime;
use crate::sockets::Sockets;
use crate::sources::SourceRotation;
use crate::timers::Timers;
use crate::{Config, Redirect, Requests};
use brimful_core::{End, Event, Nanos, Observer, Outcome, SessionEnded, SessionId, Workload};
use brimful_http::{RecentBlock, RecentHead};

/// One shard of a run: the calls, connections and sockets of one thread.
pub struct Shard<'a, W, R, O: Observer, I> {
    config: &'a Config,
    workload: W,
    requests: R,
    observer: O,
    time: ShardTime,
    due_calls: DueCalls<O::PerCall>,
    connections: Connections<O::PerCall>,
    sockets: Sockets<I>,
    timers: Timers,
    bodies: UnsentBodies<'a>,
    sources: SourceRotation,
    addresses: AddressRotation,
    recent: RecentHeads,
}

/// The latest response heads of each HTTP version. A new head with the same bytes need not be parsed again.
#[derive(Debug, Default)]
struct RecentHeads {
    http1: RecentHead,
    http2: RecentBlock,
}

impl<'a, W: Workload, R: Requests<'a>, O: Observer, I: Io<'a>> Shard<'a, W, R, O, I> {
    /// Creates a shard, and registers `warm`, the connections that were opened for this shard before the run.
    pub fn new(
        config: &'a Config,
        settings: &Settings,
        clock: Clock,
        (workload, requests, observer): (W, R, O),
        io: I,
        warm: Vec<WarmConnection>,
        addresses: AddressRotation,
    ) -> Self {
        let policy = &config.connections;
        let lifetime = policy.calls_per_connection.unwrap_or(u64::MAX);
        let mut shard = Shard {
            config,
            workload,
            requests,
            observer,
            time: ShardTime::new(clock),
            due_calls: DueCalls::new(config),
            connections: Connections::new(policy.pipeline, lifetime),
            sockets: Sockets::new(io),
            timers: Timers::new(policy),
            bodies: UnsentBodies::new(),
            sources: SourceRotation::new(settings.sources.len()),
            addresses,
            recent: RecentHeads::default(),
        };
        for address in shard.addresses.counted_addresses() {
            shard.observer.on_address(&address.to_string());
        }
        warm.into_iter().for_each(|warm| shard.adopt(warm));
        shard
    }

    /// Sets the stamp (number of a call or connection attempt) that was used last. The next one is one higher.
    #[cfg(test)]
    pub fn with_last_stamp(mut self, stamp: u32) -> Self {
        self.connections.set_last_stamp(stamp);
        self
    }

    /// Registers a connection that was opened before the run.
    fn adopt(&mut self, warm: WarmConnection) {
        let Config { connections: policy, http2, .. } = self.config;
        let mut connection = Connection::new(Phase::Open, policy.pipeline, None).with_protocol(*http2);
        connection.opened_before_run = true;
        connection.address = warm.address as u16;
        self.addresses.next_address(None);
        let token = self.connections.insert(connection);
        if *http2 {
            self.sockets.note_output(token.slot, Nanos::ZERO);
        }
        if self.sockets.adopt(token, warm).is_err() {
            drop(self.connections.remove(token.slot));
        }
    }

    /// Applies the server's addresses from the latest look-up of its name, and reports new addresses to the observer.
    fn refresh_addresses(&mut self) {
        for address in self.addresses.refresh() {
            self.observer.on_address(&address.to_string());
            self.sockets.add_address(address);
        }
    }

    /// Ends a call. `bytes_sent` is the number of bytes of its request that the kernel has accepted, which is certain
    /// only now. If it is 0, the call counts as not sent.
    fn end(&mut self, call: &mut Call<O::PerCall>, end: End, bytes_sent: u64) {
        let sent = bytes_sent > 0 && !matches!(end, End::ClientLimited(_));
        if let Some(at) = call.sent_at.get().filter(|_| sent) {
            self.observer.on(&mut call.observer_data, &Event::Sent { at });
        }
        if let Some(at) = call.first_byte_at.get() {
            self.observer.on(&mut call.observer_data, &Event::FirstByte { at });
        }
        let end = possible_end(end, sent);
        let bytes_sent = if sent { bytes_sent + call.earlier.bytes_sent } else { 0 };
        let Call { spec, due, response_bytes, .. } = *call;
        let outcome = Outcome { call: spec, due, at: self.time.now(), end, bytes_sent, bytes_received: response_bytes };
        self.observer.on(&mut call.observer_data, &Event::Ended(outcome));
        self.requests.ended(&spec);
        if call.redirect.take().is_some_and(|redirect| self.follow(*redirect, &outcome)) {
            return;
        }
        self.workload.on_outcome(&outcome);
        self.due_calls.note_ended();
        if let Some(session) = spec.session {
            self.end_or_continue(session);
        }
    }

    /// Queues the call that follows a redirect, if any, and returns whether it did. If so, the caller must not report
    /// the outcome to the workload, because the client waits for the response to the last redirected call.
    fn follow(&mut self, redirect: Redirect, outcome: &Outcome) -> bool {
        match (redirect, outcome.end) {
            (Redirect::To(spec), End::Completed { .. }) => {
                self.due_calls.push_redirected(RedirectedCall { spec, due: outcome.due, ready: self.time.now() });
                return true;
            }
            (Redirect::To(spec), _) => self.requests.ended(&spec),
            (Redirect::NotFollowed(why), End::Completed { .. }) => self.observer.on_unfollowed(why),
            (Redirect::NotFollowed(_), _) => {}
        }
        false
    }

    /// Ends a session if the workload reports that its last call has ended. Closes the session's idle connections if it
    /// has ended, or if the workload closes them between bursts (its groups of simultaneous calls).
    fn end_or_continue(&mut self, session: SessionId) {
        if let Some(outcome) = self.workload.session_ended(session) {
            let connections = self.connections.end_session(session);
            self.observer.on_session(&SessionEnded { session, outcome, connections });
            self.requests.session_ended(session);
            self.close_idle(session);
        } else if self.workload.closes_between_bursts(session) {
            self.close_idle(session);
        }
    }

    /// Closes those connections of a session that have no call under way.
    fn close_idle(&mut self, session: SessionId) {
        let is_idle =
            |slot: &u32| self.connections.get(*slot).is_some_and(|connection| connection.calls_in_flight() == 0);
        let slots: Vec<u32> = self.connections.slots_of_session(session).iter().copied().filter(is_idle).collect();
        slots.into_iter().for_each(|slot| self.send_goaway_and_close(slot));
    }
}

/// Corrects the outcome of a call of which no byte was `sent`. Such a call cannot have timed out, and bytes that
/// arrived are not a response to it.
fn possible_end(end: End, sent: bool) -> End {
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
