//! Pipelined calls of clients who call again as soon as they are answered: those that come due one by one leave together.
//!
//! A server that answers a pipeline answer by answer wakes the generator for each, and each client's next call would cost
//! a write of its own. Such a call stands behind all others of its connection anyway, as answers come in the order of the
//! requests. So the pipeline is refilled once half of it has been answered, by one write; or after [`LONGEST`], in case the
//! server works on several calls at a time. A call is ready when its pipeline is refilled: what it has waited for that is
//! a part of its response time, as it would be in the server's queue, and no lateness of the generator. Where answers come
//! too slowly for calls to gather, they leave at once.

use crate::Requests;
use crate::io::Io;
use crate::shard::Shard;
use brimful_core::{Event, Nanos, Observer, Workload};
use std::collections::VecDeque;

/// How long a call waits for others at most.
const LONGEST: Nanos = Nanos::from_millis(5);
/// Where so few calls of a pipeline had gathered by then, waiting does not pay,
const FEW: usize = 4;
/// and is not tried again for so many calls.
const REST: u32 = 2_048;

/// The calls that wait.
#[derive(Debug, Default)]
pub struct Kept {
    /// When the first of the calls that a connection keeps back came due, in that order; connections that have sent them
    /// since are among these.
    since: VecDeque<(Nanos, u32)>,
    /// So many calls leave at once.
    resting: u32,
}

impl<'a, W: Workload, R: Requests<'a>, O: Observer, I: Io<'a>> Shard<'a, W, R, O, I> {
    /// Whether a call that this connection is given leaves together with others.
    pub(crate) fn keeps_back(&self, slot: u32) -> bool {
        use crate::connection::Phase::Open;
        self.config.keeps_back
            && self.config.connections.pipeline > 1
            && self.connections.get(slot).is_some_and(|connection| {
                let is_open = connection.phase == Open && connection.protocol.http2().is_none();
                // What is kept back already must not be overtaken.
                is_open && (self.kept.resting == 0 || connection.kept > 0)
            })
    }

    /// Keeps back the call that was queued last on an established connection, unless it is to leave now.
    pub(crate) fn keep_back(&mut self, slot: u32, now: Nanos) {
        let Some(connection) = self.connections.get_mut(slot) else { return };
        connection.kept += 1;
        if connection.kept == 1 {
            connection.kept_since = now;
            self.kept.since.push_back((now, slot));
        }
        self.refill(slot, now);
    }

    /// A call leaves at once that might have waited.
    pub(crate) fn note_unkept(&mut self) {
        self.kept.resting = self.kept.resting.saturating_sub(1);
    }

    /// Sends the calls that a connection keeps back, if they are half of those on it or more.
    pub(crate) fn refill(&mut self, slot: u32, now: Nanos) {
        let half = |calls: usize, kept: usize| kept > 0 && 2 * kept >= calls;
        if self.connections.get(slot).is_some_and(|connection| half(connection.calls.len(), connection.kept)) {
            self.send_kept(slot, now, now);
        }
    }

    fn send_kept(&mut self, slot: u32, ready: Nanos, now: Nanos) {
        let Some(connection) = self.connections.get_mut(slot) else { return };
        let calls = connection.calls.len();
        let first = calls - std::mem::take(&mut connection.kept).min(calls);
        for call in connection.calls.range_mut(first..) {
            if ready > call.due {
                self.observer.on(&mut call.observed, &Event::Ready { at: ready });
            }
            self.observer.on(&mut call.observed, &Event::Begun { at: now });
        }
        (first..calls).for_each(|nth| self.send(slot, nth, now));
    }

    /// Sends what has waited for long enough.
    pub(crate) fn send_overdue(&mut self) {
        while let Some(&(since, slot)) = self.kept.since.front() {
            let kept = self.connections.get(slot).filter(|c| c.kept_since == since).map_or(0, |c| c.kept);
            let ready = since + LONGEST;
            if kept > 0 && self.now < ready {
                return;
            }
            self.kept.since.pop_front();
            if kept > 0 {
                if kept < FEW {
                    self.kept.resting = REST;
                }
                self.send_kept(slot, ready, self.now);
            }
        }
    }

    /// When that is to be looked at if nothing happens before: later than it need be, as something mostly does, and to wait
    /// for an instant costs more than to be woken.
    pub(crate) fn next_overdue(&self) -> Option<Nanos> {
        self.kept.since.front().map(|(since, _)| *since + LONGEST + Nanos(LONGEST.0 / 4))
    }
}
