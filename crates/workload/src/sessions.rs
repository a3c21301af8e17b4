//! Sessions: a user arrives, makes bursts of calls with think times between them, and leaves, as with httperf's
//! `--wsess` (Mosberger & Jin 1998).
//!
//! - A burst's first call is sent alone. When it is answered, the burst's other calls are due. The number of calls in
//!   flight is at most the number of the session's connections, unless calls are pipelined. Calls that wait for a
//!   connection keep their due time.
//! - The next burst is due one think time after the last answer. A failed call ends its session. If the load retries, a
//!   call with an unexpected answer does not end its session: the call is due again immediately, and the session waits
//!   for it.
//! - Session `i` of the whole schedule has its own random stream and belongs to shard `i mod count`: a split schedule
//!   has the same sessions as the whole schedule, whatever the server answers. In a closed load, user `i` has one
//!   random stream for all its sessions, which follow one another and have the user's number.
//! - With scripts, session `i` follows script `i` modulo the number of scripts; the `k`-th session of user `u` among
//!   `n` users is session `u + k·n`. If the load limits the number of sessions, only sessions with lower numbers exist.
//! - Memory use is proportional to the number of sessions in progress or, in a closed load, to the number of users.
//! - No call is due, and no waiting call is made, at or after the end of the window, the time in which load is offered.

mod scripts;
mod session_history;
mod session_log;
mod session_state;

pub use scripts::Scripts;
pub use session_log::read_session_log;

use crate::back_off::BackOff;
use crate::{ArrivalProcess, Arrivals, ArrivalsError, Mix, Shard, WorkloadLimits, rng};
use brimful_core::workload::{BetweenBursts, SessionArrivals, Sessions as SessionLoad, Spread};
use brimful_core::{CallSpec, End, Nanos, NextCall, Outcome, SessionId, SessionOutcome, Workload};
use rand::RngExt;
use rand_pcg::Pcg64;
use session_history::SessionHistory;
use session_state::{Phase, SessionState};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::sync::Arc;

/// The parameters that all sessions share.
#[derive(Debug)]
struct Plan {
    /// The parameters of the load, without its scripts.
    load: SessionLoad,
    mix: Mix,
    scripts: Option<Arc<Scripts>>,
    /// Number of users in a closed load; 0 in an open load.
    users: u64,
}

impl Plan {
    /// Number of sessions that this user begins in the whole load.
    fn sessions_of_user(&self, user: SessionId) -> u64 {
        let share = |number| Shard { index: u64::from(user.0), count: self.users.max(1) }.item_count(number);
        self.load.max_sessions.map_or(u64::MAX, share)
    }
}

/// One shard (part of the load) of a workload of sessions.
#[derive(Debug)]
pub struct Sessions {
    plan: Plan,
    /// The sessions of an open load that have not arrived yet; `None` in a closed load.
    coming: Option<FutureSessions>,
    /// Sessions in progress, and the users of a closed load that rest between two sessions. The slots of ended sessions
    /// are reused.
    visits: Vec<SessionState>,
    free: Vec<u32>,
    slots: HashMap<SessionId, u32>,
    /// A queue of due times, each with the index of its session in `visits`. An entry is ignored if the session is no
    /// longer queued for its due time.
    due: BinaryHeap<Reverse<(Nanos, u32)>>,
    /// Calls that will be retried, each with its due time. A call that waits for its retry counts as in flight, so its
    /// session cannot end before.
    again: VecDeque<(Nanos, CallSpec)>,
    /// Determines how long users of a closed load wait after failures.
    back_off: BackOff,
    window: Nanos,
    calls_left: u64,
}

impl Sessions {
    /// Creates one shard of a workload of sessions. `load`, `mix`, `limits` and `seed` must be the same for all shards,
    /// and `load` must be valid. Each session draws its requests from the mix with its own random stream.
    ///
    /// # Errors
    /// [`ArrivalsError`] if the arrival process of an open load is not valid.
    pub fn new(
        load: &SessionLoad,
        mix: Mix,
        limits: WorkloadLimits,
        seed: u64,
        shard: Shard,
    ) -> Result<Sessions, ArrivalsError> {
        let users = match load.session_arrivals {
            SessionArrivals::Open { .. } => 0,
            SessionArrivals::Closed { users, .. } => users,
        };
        let mut sessions = Sessions {
            plan: Plan { load: SessionLoad { scripts: Vec::new(), ..load.clone() }, mix, scripts: None, users },
            coming: None,
            visits: Vec::new(),
            free: Vec::new(),
            slots: HashMap::new(),
            due: BinaryHeap::new(),
            again: VecDeque::new(),
            back_off: BackOff::new(seed, shard),
            window: limits.window,
            calls_left: shard.item_count(limits.calls),
        };
        let past = load.in_progress.then(|| SessionHistory::new(load));
        // Each session uses one number of this stream as its seed, so the seeds of other shards' sessions are skipped
        // in one step.
        let mut seeds = rng(seed, 4);
        seeds.advance(u128::from(shard.index));
        match &load.session_arrivals {
            SessionArrivals::Open { rate, arrivals } => {
                let arrivals = Arrivals::new(arrivals.parse::<ArrivalProcess>()?, *rate, seed)?;
                let before = past.as_ref().map_or(Nanos::ZERO, |past| past.span);
                let left = load.max_sessions.map_or(u64::MAX, |number| shard.item_count(number));
                sessions.coming = Some(FutureSessions::new(arrivals, seeds, shard, before, left));
                past.iter().for_each(|past| sessions.admit_sessions_in_progress(past));
            }
            SessionArrivals::Closed { users, rest_s } => {
                for user in (shard.index..*users).step_by(usize::try_from(shard.count).unwrap_or(usize::MAX)) {
                    let mut visit = SessionState::new(SessionId(user as u32), seeds.random());
                    seeds.advance(u128::from(shard.count - 1));
                    let place = user as f64 / *users as f64;
                    match &past {
                        Some(past) => past.begin_user(place, load, rest_s, &mut visit),
                        // The first sessions of the users are spread evenly over one mean rest time, so that users do
                        // not all arrive at the same time.
                        None => visit.due = Nanos::from_secs_f64(place * rest_s.mean()),
                    }
                    if sessions.plan.sessions_of_user(visit.session) > 0 {
                        sessions.admit(visit);
                    }
                }
            }
        }
        Ok(sessions)
    }

    /// Lets users make their next call without a wait after a failed call.
    #[must_use]
    pub fn without_back_off(self) -> Sessions {
        Sessions { back_off: BackOff::none(), ..self }
    }

    /// Makes the sessions follow `scripts`; `None` if sessions have no scripts.
    #[must_use]
    pub fn with_scripts(mut self, scripts: Option<Arc<Scripts>>) -> Sessions {
        self.plan.scripts = scripts;
        self
    }

    /// Adds the sessions that began before the run and are still in progress when it starts.
    fn admit_sessions_in_progress(&mut self, past: &SessionHistory) {
        while let Some((began, mut visit)) = self.coming.as_mut().and_then(FutureSessions::take_past) {
            if past.reaches_run(began, &self.plan.load, &mut visit) {
                self.admit(visit);
            }
        }
    }

    /// Stores a new session or user, and queues it for its due time.
    fn admit(&mut self, visit: SessionState) {
        let session = visit.session;
        let slot = self.free.pop().unwrap_or(self.visits.len() as u32);
        match self.visits.get_mut(slot as usize) {
            Some(place) => *place = visit,
            None => self.visits.push(visit),
        }
        self.slots.insert(session, slot);
        self.queue(slot);
    }

    /// Queues the session with this index in `visits` for the due time of its next call.
    fn queue(&mut self, slot: u32) {
        if let Some(visit) = self.visits.get_mut(slot as usize) {
            visit.is_queued = true;
            self.due.push(Reverse((visit.due, slot)));
        }
    }

    /// Returns the next call of the session with the index `slot` in `visits`. Returns `None` if the session is no
    /// longer queued for the time `due`, for example because it has failed.
    fn next_call(&mut self, due: Nanos, slot: u32) -> Option<NextCall> {
        let visit = self.visits.get_mut(slot as usize).filter(|visit| visit.is_queued && visit.due == due)?;
        visit.is_queued = false;
        if visit.phase == Phase::Resting {
            visit.begin(&self.plan);
        }
        if visit.phase == Phase::Thinking {
            visit.begin_burst(&self.plan);
        }
        let call = visit.next_call(&self.plan);
        let ready = visit.ready;
        let max_in_flight = if self.plan.load.pipelined { u32::MAX } else { self.plan.load.connections };
        self.calls_left -= 1;
        if visit.can_call(max_in_flight) {
            self.queue(slot);
        }
        Some(if ready > due { NextCall::Delayed { due, ready, call } } else { NextCall::Due { due, call } })
    }

    /// Returns the next call to retry; `None` if no retry is due before the end of the window.
    fn next_retry(&mut self) -> Option<NextCall> {
        let (due, call) = self.again.pop_front().filter(|(due, _)| *due < self.window)?;
        self.calls_left -= 1;
        Some(NextCall::Due { due, call })
    }

    fn visit(&self, session: SessionId) -> Option<&SessionState> {
        self.visits.get(*self.slots.get(&session)? as usize)
    }

    /// Number of bytes that the workload has allocated.
    #[cfg(test)]
    fn footprint(&self) -> usize {
        self.visits.capacity() * size_of::<SessionState>()
            + self.free.capacity() * size_of::<u32>()
            + self.due.capacity() * size_of::<(Nanos, u32)>()
            // A hash map has one control byte per bucket, and fills at most seven of eight buckets.
            + self.slots.capacity() * 8 / 7 * (size_of::<(SessionId, u32)>() + 1)
    }
}

impl Workload for Sessions {
    fn next(&mut self, now: Nanos, in_flight: usize) -> NextCall {
        loop {
            if self.calls_left == 0 {
                return NextCall::Done;
            }
            if let Some(next) = self.next_retry() {
                return next;
            }
            let coming = self.coming.as_ref().and_then(FutureSessions::due);
            let queued = self.due.peek().map(|Reverse((due, _))| *due);
            let Some(due) = coming.into_iter().chain(queued).min().filter(|due| *due < self.window) else {
                return if in_flight == 0 { NextCall::Done } else { NextCall::WaitForOutcome };
            };
            if due > now {
                return NextCall::NotBefore(due);
            }
            if coming == Some(due) {
                let visit = self.coming.as_mut().and_then(FutureSessions::take);
                visit.into_iter().for_each(|visit| self.admit(visit));
            } else if let Some(Reverse((due, slot))) = self.due.pop()
                && let Some(next) = self.next_call(due, slot)
            {
                return next;
            }
        }
    }

    fn on_outcome(&mut self, outcome: &Outcome) {
        let Some(&slot) = outcome.call.session.and_then(|session| self.slots.get(&session)) else { return };
        let Some(visit) = self.visits.get_mut(slot as usize) else { return };
        (visit.wait, visit.failures) = self.back_off.wait_after(outcome, visit.failures);
        match outcome.end {
            End::Completed { .. } => {
                if visit.handle_answer(outcome.at, &self.plan, self.window) {
                    self.queue(slot);
                }
            }
            End::Unexpected { .. } if self.plan.load.retry && visit.retry() => {
                self.again.push_back((outcome.at, outcome.call));
            }
            // A call that was cut off by the end of the run is not a failure, and does not end its session.
            End::Unfinished { .. } => visit.cut_off(outcome.at),
            _ => visit.fail(outcome.at),
        }
    }

    fn session_ended(&mut self, session: SessionId) -> Option<SessionOutcome> {
        let slot = *self.slots.get(&session)?;
        let visit = self.visits.get_mut(slot as usize)?;
        let outcome = visit.outcome()?;
        match &self.plan.load.session_arrivals {
            SessionArrivals::Closed { rest_s, .. }
                if u64::from(visit.sessions_begun) < self.plan.sessions_of_user(session) =>
            {
                visit.rest(rest_s);
                self.queue(slot);
            }
            SessionArrivals::Open { .. } | SessionArrivals::Closed { .. } => {
                visit.phase = Phase::Resting;
                self.slots.remove(&session);
                self.free.push(slot);
            }
        }
        Some(outcome)
    }

    fn closes_between_bursts(&self, session: SessionId) -> bool {
        self.plan.load.between_bursts == BetweenBursts::Close
            && self.visit(session).is_some_and(|visit| visit.phase == Phase::Thinking)
    }

    fn sessions_in_progress(&self) -> u64 {
        self.visits.iter().filter(|visit| visit.is_in_progress()).count() as u64
    }
}

/// The sessions of one shard of an open load that have not arrived yet.
#[derive(Debug)]
struct FutureSessions {
    arrivals: Arrivals,
    seeds: Pcg64,
    shard: Shard,
    /// Index of the next session in the whole schedule.
    index: u64,
    /// The time at which the next session arrives, counted from the start of the arrivals, which may be before the run.
    head: Option<Nanos>,
    /// Time from the start of the arrivals to the start of the run.
    before: Nanos,
    /// Number of this shard's sessions that have not arrived yet.
    left: u64,
}

impl FutureSessions {
    /// Creates the sessions of a shard. `seeds` must yield the seed of this shard's first session next.
    fn new(mut arrivals: Arrivals, seeds: Pcg64, shard: Shard, before: Nanos, left: u64) -> FutureSessions {
        arrivals.skip_calls(shard.index);
        let head = arrivals.next();
        FutureSessions { arrivals, seeds, shard, index: shard.index, head, before, left }
    }

    /// The time at which the next session arrives, counted from the start of the run.
    fn due(&self) -> Option<Nanos> {
        let head = self.head.filter(|_| self.left > 0)?;
        Some(head - self.before)
    }

    fn take(&mut self) -> Option<SessionState> {
        let due = self.due()?;
        let mut visit = SessionState::new(SessionId(self.index as u32), self.seeds.random());
        visit.due = due;
        self.left -= 1;
        let others = self.shard.count - 1;
        self.seeds.advance(u128::from(others));
        self.arrivals.skip_calls(others);
        self.head = self.arrivals.next();
        self.index = self.index.wrapping_add(self.shard.count);
        Some(visit)
    }

    /// If the next session arrived before the run, removes and returns it with its arrival time. The time is in seconds
    /// from the start of the run, and negative.
    fn take_past(&mut self) -> Option<(f64, SessionState)> {
        let arrival = self.head.filter(|arrival| *arrival < self.before)?;
        Some((-(self.before - arrival).as_secs_f64(), self.take()?))
    }
}

/// Draws a random duration, in seconds, from a distribution.
fn draw_s(spread: &Spread, rng: &mut impl RngExt) -> f64 {
    spread.quantile(rng.random())
}

/// Draws a random whole number from a distribution.
fn draw_count(spread: &Spread, rng: &mut impl RngExt) -> u32 {
    u32::try_from(spread.count(rng.random())).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use brimful_core::Rate;

    #[test]
    fn ten_thousand_sessions_in_progress_take_less_than_two_hundred_bytes_each() {
        let session_arrivals = SessionArrivals::Open { rate: Rate(10_000.0), arrivals: "constant".to_owned() };
        let load = SessionLoad {
            bursts: Spread::Constant(3.0),
            calls_per_burst: Spread::Constant(2.0),
            think_s: Spread::Constant(60.0),
            ..SessionLoad::with_arrivals(session_arrivals)
        };
        let limits = WorkloadLimits { window: Nanos::from_secs(1), calls: u64::MAX };
        let mut sessions = Sessions::new(&load, Mix::new(&[1.0], 0).unwrap(), limits, 1, Shard::WHOLE).unwrap();
        let mut under_way = 0;
        for _ in 0..2 {
            let mut calls = Vec::new();
            while let NextCall::Due { due, call } = sessions.next(Nanos(999_999_999), under_way) {
                under_way += 1;
                calls.push((due, call));
            }
            assert_eq!(calls.len(), 10_000);
            for (due, call) in calls {
                let end = End::Completed { status: 200 };
                let at = Nanos(999_999_999);
                sessions.on_outcome(&Outcome { call, due, at, end, bytes_sent: 1, bytes_received: 1 });
                assert_eq!(sessions.session_ended(call.session.unwrap()), None);
                under_way -= 1;
            }
        }
        assert_eq!((sessions.sessions_in_progress(), under_way), (10_000, 0));
        assert!(sessions.footprint() <= 10_000 * 200, "{} bytes", sessions.footprint());
    }

    #[test]
    fn a_user_that_cannot_connect_waits_before_its_next_session() {
        let session_arrivals = SessionArrivals::Closed { users: 1, rest_s: Spread::Constant(0.0) };
        let load = SessionLoad { think_s: Spread::Constant(0.0), ..SessionLoad::with_arrivals(session_arrivals) };
        let limits = WorkloadLimits { window: Nanos::from_secs(60), calls: u64::MAX };
        let mut sessions = Sessions::new(&load, Mix::new(&[1.0], 0).unwrap(), limits, 1, Shard::WHOLE).unwrap();
        let mut now = Nanos::ZERO;
        for longest_ms in [10, 20, 40] {
            let NextCall::Due { due, call } = sessions.next(now, 0) else { panic!("no call is due at {now}") };
            sessions.on_outcome(&Outcome { call, due, at: now, end: End::Refused, bytes_sent: 0, bytes_received: 0 });
            assert!(sessions.session_ended(call.session.unwrap()).is_some_and(|outcome| outcome.failed));
            let NextCall::NotBefore(next) = sessions.next(now, 0) else { panic!("the user does not wait") };
            let longest = Nanos::from_millis(longest_ms);
            assert!(next <= now + longest && next >= now + Nanos(longest.0 / 2), "{next} after {now}");
            now = next;
        }
    }
}
