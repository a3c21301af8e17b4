//! One session under way, or one user between two.

use super::{Plan, draw_count, draw_s};
use brimful_core::workload::Spread;
use brimful_core::{CallSpec, Nanos, SessionId, SessionOutcome};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg32;

/// What is known of it: some ninety bytes, however long it lasts.
#[derive(Clone, Debug)]
pub struct Visit {
    /// Its own stream.
    rng: Pcg32,
    pub session: SessionId,
    pub phase: Phase,
    /// It stands in the queue, for `due`.
    pub queued: bool,
    failed: bool,
    /// Failures in a row of this user of a closed load, and how long it waits after the last of them.
    pub failures: u8,
    pub wait: Nanos,
    from_before: bool,
    /// When its next call is due.
    pub due: Nanos,
    /// Since when a call that was due before could be made.
    pub ready: Nanos,
    began: Nanos,
    ended: Nanos,
    /// Bursts still to begin.
    bursts_left: u32,
    /// Calls of this burst still to be handed out.
    calls_left: u32,
    /// Calls of the bursts still to begin, where their number is given.
    calls_to_come: u32,
    under_way: u32,
    /// Bursts begun and calls handed out so far.
    bursts: u32,
    calls: u32,
    /// Sessions begun so far: those of one user follow one another.
    pub round: u32,
}

/// What it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It has not begun.
    Rests,
    /// Its next burst has not begun.
    Thinks,
    /// The first call of a burst has not been answered.
    First,
    /// The others of the burst may be made.
    Others,
    /// The run has ended before it.
    CutOff,
}

impl Visit {
    /// One that has not begun.
    pub fn new(session: SessionId, seed: u64) -> Visit {
        Visit {
            rng: Pcg32::seed_from_u64(seed),
            session,
            phase: Phase::Rests,
            queued: false,
            failed: false,
            failures: 0,
            wait: Nanos::ZERO,
            from_before: false,
            due: Nanos::ZERO,
            ready: Nanos::ZERO,
            began: Nanos::ZERO,
            ended: Nanos::ZERO,
            bursts_left: 0,
            calls_left: 0,
            calls_to_come: 0,
            under_way: 0,
            bursts: 0,
            calls: 0,
            round: 0,
        }
    }

    pub fn rng(&mut self) -> &mut Pcg32 {
        &mut self.rng
    }

    /// It began before the run; so many bursts are left, the next one due at `due`.
    pub fn goes_on(&mut self, due: Nanos, bursts_left: u32) {
        (self.phase, self.from_before) = (Phase::Thinks, true);
        (self.due, self.began, self.bursts_left) = (due, due, bursts_left);
    }

    /// Begins a session when it is due.
    pub fn begin(&mut self, plan: &Plan) {
        (self.phase, self.from_before, self.failed) = (Phase::Thinks, false, false);
        (self.began, self.bursts, self.calls) = (self.due, 0, 0);
        self.round = self.round.saturating_add(1);
        self.bursts_left = match (&plan.scripts, &plan.load.calls_in_all) {
            (Some(scripts), _) => scripts.bursts(self.script(plan)),
            (None, Some(calls)) => {
                self.calls_to_come = draw_count(calls, &mut self.rng);
                u32::MAX
            }
            (None, None) => draw_count(&plan.load.bursts, &mut self.rng),
        };
    }

    /// Begins a burst when it is due.
    pub fn begin_burst(&mut self, plan: &Plan) {
        self.phase = Phase::First;
        self.ready = self.due;
        self.calls_left = match &plan.scripts {
            Some(scripts) => scripts.burst(self.script(plan), self.bursts).calls(),
            None => draw_count(&plan.load.calls_per_burst, &mut self.rng),
        };
        self.bursts_left = self.bursts_left.saturating_sub(1);
        self.bursts = self.bursts.saturating_add(1);
        if plan.load.calls_in_all.is_some() {
            self.calls_left = self.calls_left.min(self.calls_to_come);
            self.calls_to_come -= self.calls_left;
            if self.calls_to_come == 0 {
                self.bursts_left = 0;
            }
        }
    }

    pub fn hand_out(&mut self, plan: &Plan) -> CallSpec {
        let call = match &plan.scripts {
            Some(scripts) => scripts.call(self.script(plan), self.bursts.saturating_sub(1), self.calls_left),
            None => plan.mix.at(self.rng.random()),
        };
        self.calls_left = self.calls_left.saturating_sub(1);
        self.under_way += 1;
        self.calls = self.calls.saturating_add(1);
        CallSpec { session: Some(self.session), ..call }
    }

    /// Number of this session in the whole schedule; of its user's first one, if they follow one another.
    fn script(&self, plan: &Plan) -> u64 {
        u64::from(self.session.0) + u64::from(self.round.saturating_sub(1)) * plan.users
    }

    /// Seconds to think after this burst.
    fn think_s(&mut self, plan: &Plan) -> f64 {
        let written = plan.scripts.as_ref().and_then(|scripts| {
            let burst = scripts.burst(self.script(plan), self.bursts.saturating_sub(1));
            burst.think_s()
        });
        written.unwrap_or_else(|| draw_s(&plan.load.think_s, &mut self.rng))
    }

    /// Whether another call may go out beside those under way.
    pub fn can_hand_out(&self, connections: u32) -> bool {
        self.phase == Phase::Others && self.calls_left > 0 && self.under_way < connections
    }

    /// A call of it was answered. Returns whether something more is due, when it says.
    pub fn answered(&mut self, at: Nanos, plan: &Plan, window: Nanos) -> bool {
        self.end_call(at);
        if self.failed || !matches!(self.phase, Phase::First | Phase::Others) {
            return false;
        }
        if self.phase == Phase::First {
            (self.phase, self.due) = (Phase::Others, at);
        }
        if self.calls_left > 0 {
            // The call that has ended leaves it a connection.
            let again = !self.queued && at < window;
            if again {
                self.ready = at;
            }
            return again;
        }
        let thinks = self.under_way == 0 && self.bursts_left > 0;
        if thinks {
            self.phase = Phase::Thinks;
            self.due = at + Nanos::from_secs_f64(self.think_s(plan));
        }
        thinks
    }

    /// A call of it has ended and is made again, and so stays under way; not in a session that has failed, or was cut off.
    pub fn makes_again(&mut self) -> bool {
        let again = !self.failed && matches!(self.phase, Phase::First | Phase::Others);
        if again {
            self.calls = self.calls.saturating_add(1);
        }
        again
    }

    /// A call of it failed, and it goes no further.
    pub fn fail(&mut self, at: Nanos) {
        self.end_call(at);
        (self.failed, self.queued) = (true, false);
    }

    /// The run has ended first.
    pub fn cut_off(&mut self, at: Nanos) {
        self.end_call(at);
        (self.phase, self.queued) = (Phase::CutOff, false);
    }

    fn end_call(&mut self, at: Nanos) {
        self.under_way = self.under_way.saturating_sub(1);
        self.ended = self.ended.max(at);
    }

    /// How it went, if it has ended.
    pub fn outcome(&self) -> Option<SessionOutcome> {
        let done = self.phase == Phase::Others && self.calls_left == 0 && self.bursts_left == 0;
        (self.under_way == 0 && self.phase != Phase::Rests && (self.failed || done)).then_some(SessionOutcome {
            began: self.began,
            ended: self.ended,
            calls: self.calls,
            bursts: self.bursts,
            failed: self.failed,
            from_before: self.from_before,
        })
    }

    /// Rests after a session, until the next; no less than a user waits who could not connect.
    pub fn rest(&mut self, rest_s: &Spread) {
        self.phase = Phase::Rests;
        let rest = Nanos::from_secs_f64(draw_s(rest_s, &mut self.rng));
        self.due = self.ended + rest.max(self.wait);
    }

    /// Whether a call of it was made and it has not ended.
    pub fn is_in_progress(&self) -> bool {
        self.phase != Phase::Rests && self.calls > 0
    }
}
