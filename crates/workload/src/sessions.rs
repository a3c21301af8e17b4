//! Sessions: users who come, make bursts of calls with time to think in between, and go, as httperf's `--wsess` has
//! them (Mosberger & Jin 1998).
//!
//! - The first call of a burst is answered before the others go out, all due at that instant. No more of them than the
//!   session has connections are under way, unless they are pipelined; those that wait for one keep their due time.
//! - The next burst is due its think time after the last answer. A call that fails ends its session; where that is asked
//!   for, one whose answer was not what was expected is due again at once, and its session waits for it.
//! - Session `i` of the whole schedule has a random stream of its own, in the order of its bursts and calls, and shard
//!   `i mod count` makes it: a split schedule has the very same sessions, however they are answered. Of a closed load,
//!   user `i` has, for all sessions that follow one another; their number is the user's.
//! - Where sessions are written out, session `i` is the `i`-th of them, beginning anew after the last one; the `k`-th of
//!   user `u` among `n` is session `u + k·n`. Where their number is given, there is none of that number or a higher one.
//! - Memory is that of the sessions under way, and of the users of a closed load.
//! - Nothing is due, and no call that has waited is made, at or after the window's end.

mod past;
mod scripts;
mod session_log;
mod visit;

pub use scripts::Scripts;
pub use session_log::read_session_log;

use crate::back_off::BackOff;
use crate::{Arrivals, ArrivalsError, Extent, Mix, Process, Shard, rng};
use brimful_core::workload::{BetweenBursts, SessionArrivals, Sessions as SessionLoad, Spread};
use brimful_core::{CallSpec, End, Nanos, Next, Outcome, SessionId, SessionOutcome, Workload};
use past::Past;
use rand::RngExt;
use rand_pcg::Pcg64;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::sync::Arc;
use visit::{Phase, Visit};

/// What all sessions are made by.
#[derive(Debug)]
struct Plan {
    /// Without what is written out.
    load: SessionLoad,
    mix: Mix,
    scripts: Option<Arc<Scripts>>,
    /// Of a closed load; none of an open one.
    users: u64,
}

impl Plan {
    /// How many sessions the user has of this number.
    fn sessions_of_user(&self, user: SessionId) -> u64 {
        let share = |number| Shard { index: u64::from(user.0), count: self.users.max(1) }.share(number);
        self.load.number.map_or(u64::MAX, share)
    }
}

/// One shard of a load of sessions.
#[derive(Debug)]
pub struct Sessions {
    plan: Plan,
    /// Those to come, of an open load.
    coming: Option<Coming>,
    /// Those that have come, and the users who rest; slots are used again.
    visits: Vec<Visit>,
    free: Vec<u32>,
    slots: HashMap<SessionId, u32>,
    /// When something is due of whom; void where the visit says otherwise.
    due: BinaryHeap<Reverse<(Nanos, u32)>>,
    /// Calls that are made again, since then. Their visits count them as under way, and so are still there.
    again: VecDeque<(Nanos, CallSpec)>,
    /// Waits of the users of a closed load.
    back_off: BackOff,
    window: Nanos,
    calls_left: u64,
}

impl Sessions {
    /// Shard `shard` of the sessions that a valid `load`, `mix`, `extent` and `seed` describe; give every shard the
    /// same four. Requests are drawn from the mix, by the sessions' own streams.
    ///
    /// # Errors
    /// When the arrival process of an open load is none.
    pub fn new(
        load: &SessionLoad,
        mix: Mix,
        extent: Extent,
        seed: u64,
        shard: Shard,
    ) -> Result<Sessions, ArrivalsError> {
        let users = match load.comes {
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
            window: extent.window,
            calls_left: shard.share(extent.calls),
        };
        let past = load.in_progress.then(|| Past::of(load));
        // Which numbers it begins with is a session's, so that those of others can be passed over in one step.
        let mut seeds = rng(seed, 4);
        seeds.advance(u128::from(shard.index));
        match &load.comes {
            SessionArrivals::Open { rate, arrivals } => {
                let arrivals = Arrivals::new(arrivals.parse::<Process>()?, *rate, seed)?;
                let before = past.as_ref().map_or(Nanos::ZERO, |past| past.span);
                let left = load.number.map_or(u64::MAX, |number| shard.share(number));
                sessions.coming = Some(Coming::new(arrivals, seeds, shard, before, left));
                past.iter().for_each(|past| sessions.admit_those_under_way(past));
            }
            SessionArrivals::Closed { users, rest_s } => {
                for user in (shard.index..*users).step_by(usize::try_from(shard.count).unwrap_or(usize::MAX)) {
                    let mut visit = Visit::new(SessionId(user as u32), seeds.random());
                    seeds.advance(u128::from(shard.count - 1));
                    let place = user as f64 / *users as f64;
                    match &past {
                        Some(past) => past.begin_user(place, load, rest_s, &mut visit),
                        // So that they do not march in step.
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

    /// The same of users who do not wait although they could not connect.
    #[must_use]
    pub fn without_back_off(self) -> Sessions {
        Sessions { back_off: BackOff::none(), ..self }
    }

    /// The same, where the sessions are written out.
    #[must_use]
    pub fn following(mut self, scripts: Option<Arc<Scripts>>) -> Sessions {
        self.plan.scripts = scripts;
        self
    }

    /// Takes in the sessions that began before the run and go on in it.
    fn admit_those_under_way(&mut self, past: &Past) {
        while let Some((began, mut visit)) = self.coming.as_mut().and_then(Coming::take_past) {
            if past.goes_on(began, &self.plan.load, &mut visit) {
                self.admit(visit);
            }
        }
    }

    /// Takes in a session, or a user, with whom something is due.
    fn admit(&mut self, visit: Visit) {
        let session = visit.session;
        let slot = self.free.pop().unwrap_or(self.visits.len() as u32);
        match self.visits.get_mut(slot as usize) {
            Some(place) => *place = visit,
            None => self.visits.push(visit),
        }
        self.slots.insert(session, slot);
        self.queue(slot);
    }

    /// Something of this visit is due when it says.
    fn queue(&mut self, slot: u32) {
        if let Some(visit) = self.visits.get_mut(slot as usize) {
            visit.queued = true;
            self.due.push(Reverse((visit.due, slot)));
        }
    }

    /// The next call of the visit in this slot, unless it has failed meanwhile.
    fn hand_out(&mut self, due: Nanos, slot: u32) -> Option<Next> {
        let visit = self.visits.get_mut(slot as usize).filter(|visit| visit.queued && visit.due == due)?;
        visit.queued = false;
        if visit.phase == Phase::Rests {
            visit.begin(&self.plan);
        }
        if visit.phase == Phase::Thinks {
            visit.begin_burst(&self.plan);
        }
        let call = visit.hand_out(&self.plan);
        let at_once = if self.plan.load.pipelined { u32::MAX } else { self.plan.load.connections };
        let (ready, more) = (visit.ready, visit.can_hand_out(at_once));
        self.calls_left -= 1;
        if more {
            self.queue(slot);
        }
        Some(if ready > due { Next::Waited { due, ready, call } } else { Next::Due { due, call } })
    }

    /// The next call that is made again.
    fn repeat(&mut self) -> Option<Next> {
        let (due, call) = self.again.pop_front().filter(|(due, _)| *due < self.window)?;
        self.calls_left -= 1;
        Some(Next::Due { due, call })
    }

    fn visit(&self, session: SessionId) -> Option<&Visit> {
        self.visits.get(*self.slots.get(&session)? as usize)
    }

    /// Bytes held.
    #[cfg(test)]
    fn footprint(&self) -> usize {
        self.visits.capacity() * size_of::<Visit>()
            + self.free.capacity() * size_of::<u32>()
            + self.due.capacity() * size_of::<(Nanos, u32)>()
            // A byte of control for each place, of which no more than seven in eight are taken.
            + self.slots.capacity() * 8 / 7 * (size_of::<(SessionId, u32)>() + 1)
    }
}

impl Workload for Sessions {
    fn next(&mut self, now: Nanos, in_flight: usize) -> Next {
        loop {
            if self.calls_left == 0 {
                return Next::Done;
            }
            if let Some(next) = self.repeat() {
                return next;
            }
            let coming = self.coming.as_ref().and_then(Coming::due);
            let queued = self.due.peek().map(|Reverse((due, _))| *due);
            let Some(due) = coming.into_iter().chain(queued).min().filter(|due| *due < self.window) else {
                return if in_flight == 0 { Next::Done } else { Next::WaitForOutcome };
            };
            if due > now {
                return Next::NotBefore(due);
            }
            if coming == Some(due) {
                let visit = self.coming.as_mut().and_then(Coming::take);
                visit.into_iter().for_each(|visit| self.admit(visit));
            } else if let Some(Reverse((due, slot))) = self.due.pop()
                && let Some(next) = self.hand_out(due, slot)
            {
                return next;
            }
        }
    }

    fn on_outcome(&mut self, outcome: &Outcome) {
        let Some(&slot) = outcome.call.session.and_then(|session| self.slots.get(&session)) else { return };
        let Some(visit) = self.visits.get_mut(slot as usize) else { return };
        (visit.wait, visit.failures) = self.back_off.after(outcome, visit.failures);
        match outcome.end {
            End::Completed { .. } => {
                if visit.answered(outcome.at, &self.plan, self.window) {
                    self.queue(slot);
                }
            }
            End::Unexpected { .. } if self.plan.load.retry && visit.makes_again() => {
                self.again.push_back((outcome.at, outcome.call));
            }
            // The end of the run is no failure, nor the end of a session.
            End::Unfinished { .. } => visit.cut_off(outcome.at),
            _ => visit.fail(outcome.at),
        }
    }

    fn session_ended(&mut self, session: SessionId) -> Option<SessionOutcome> {
        let slot = *self.slots.get(&session)?;
        let visit = self.visits.get_mut(slot as usize)?;
        let outcome = visit.outcome()?;
        match &self.plan.load.comes {
            SessionArrivals::Closed { rest_s, .. } if u64::from(visit.round) < self.plan.sessions_of_user(session) => {
                visit.rest(rest_s);
                self.queue(slot);
            }
            SessionArrivals::Open { .. } | SessionArrivals::Closed { .. } => {
                visit.phase = Phase::Rests;
                self.slots.remove(&session);
                self.free.push(slot);
            }
        }
        Some(outcome)
    }

    fn closes_between_bursts(&self, session: SessionId) -> bool {
        self.plan.load.between_bursts == BetweenBursts::Close
            && self.visit(session).is_some_and(|visit| visit.phase == Phase::Thinks)
    }

    fn sessions_in_progress(&self) -> u64 {
        self.visits.iter().filter(|visit| visit.is_in_progress()).count() as u64
    }
}

/// The sessions of an open load that are still to come, of one shard.
#[derive(Debug)]
struct Coming {
    arrivals: Arrivals,
    seeds: Pcg64,
    shard: Shard,
    /// Number of the next session in the whole schedule.
    index: u64,
    /// When it comes, counted from when the first one could have.
    head: Option<Nanos>,
    /// For how long sessions have come before the run.
    before: Nanos,
    /// How many are still to come.
    left: u64,
}

impl Coming {
    /// With `seeds` at this shard's first, of so many.
    fn new(mut arrivals: Arrivals, seeds: Pcg64, shard: Shard, before: Nanos, left: u64) -> Coming {
        arrivals.pass(shard.index);
        let head = arrivals.next();
        Coming { arrivals, seeds, shard, index: shard.index, head, before, left }
    }

    /// When the next one comes.
    fn due(&self) -> Option<Nanos> {
        let head = self.head.filter(|_| self.left > 0)?;
        Some(head - self.before)
    }

    fn take(&mut self) -> Option<Visit> {
        let due = self.due()?;
        let mut visit = Visit::new(SessionId(self.index as u32), self.seeds.random());
        visit.due = due;
        self.left -= 1;
        let others = self.shard.count - 1;
        self.seeds.advance(u128::from(others));
        self.arrivals.pass(others);
        self.head = self.arrivals.next();
        self.index = self.index.wrapping_add(self.shard.count);
        Some(visit)
    }

    /// The next one, if it came before the run, and when, in seconds, which is below zero.
    fn take_past(&mut self) -> Option<(f64, Visit)> {
        let came = self.head.filter(|came| *came < self.before)?;
        Some((-(self.before - came).as_secs_f64(), self.take()?))
    }
}

/// Seconds, drawn.
fn draw_s(spread: &Spread, rng: &mut impl RngExt) -> f64 {
    spread.quantile(rng.random())
}

/// A whole number, drawn.
fn draw_count(spread: &Spread, rng: &mut impl RngExt) -> u32 {
    u32::try_from(spread.count(rng.random())).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use brimful_core::Rate;

    #[test]
    fn ten_thousand_sessions_under_way_take_less_than_two_hundred_bytes_each() {
        let comes = SessionArrivals::Open { rate: Rate(10_000.0), arrivals: "constant".to_owned() };
        let load = SessionLoad {
            bursts: Spread::Constant(3.0),
            calls_per_burst: Spread::Constant(2.0),
            think_s: Spread::Constant(60.0),
            ..SessionLoad::with_arrivals(comes)
        };
        let extent = Extent { window: Nanos::from_secs(1), calls: u64::MAX };
        let mut sessions = Sessions::new(&load, Mix::new(&[1.0], 0).unwrap(), extent, 1, Shard::WHOLE).unwrap();
        let mut under_way = 0;
        for _ in 0..2 {
            let mut calls = Vec::new();
            while let Next::Due { due, call } = sessions.next(Nanos(999_999_999), under_way) {
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
        let comes = SessionArrivals::Closed { users: 1, rest_s: Spread::Constant(0.0) };
        let load = SessionLoad { think_s: Spread::Constant(0.0), ..SessionLoad::with_arrivals(comes) };
        let extent = Extent { window: Nanos::from_secs(60), calls: u64::MAX };
        let mut sessions = Sessions::new(&load, Mix::new(&[1.0], 0).unwrap(), extent, 1, Shard::WHOLE).unwrap();
        let mut now = Nanos::ZERO;
        for longest_ms in [10, 20, 40] {
            let Next::Due { due, call } = sessions.next(now, 0) else { panic!("no call is due at {now}") };
            sessions.on_outcome(&Outcome { call, due, at: now, end: End::Refused, bytes_sent: 0, bytes_received: 0 });
            assert!(sessions.session_ended(call.session.unwrap()).is_some_and(|outcome| outcome.failed));
            let Next::NotBefore(next) = sessions.next(now, 0) else { panic!("the user does not wait") };
            let longest = Nanos::from_millis(longest_ms);
            assert!(next <= now + longest && next >= now + Nanos(longest.0 / 2), "{next} after {now}");
            now = next;
        }
    }
}
