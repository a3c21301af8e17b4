//! The state of a session in progress, or of a user of a closed load between two sessions.

use super::{Plan, draw_count, draw_s};
use brimful_core::workload::Spread;
use brimful_core::{CallSpec, Nanos, SessionId, SessionOutcome};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg32;

/// The state of a session, or of a user between two sessions. Its size, about ninety bytes, does not depend on the
/// number of calls.
#[derive(Clone, Debug)]
pub struct SessionState {
    /// The random stream of this session or, in a closed load, of this user.
    rng: Pcg32,
    /// Identifies the session or, in a closed load, the user.
    pub session: SessionId,
    /// The current activity of the session or user.
    pub phase: Phase,
    /// Whether the session is in the queue of due times, for the time `due`.
    pub is_queued: bool,
    failed: bool,
    /// Number of failed calls in a row; used only for users of a closed load.
    pub failures: u8,
    /// Minimum time until the user's next session begins; above 0 after a failed call.
    pub wait: Nanos,
    /// Whether the session began before the run.
    began_before_run: bool,
    /// The time at which the session's next call is due.
    pub due: Nanos,
    /// The earliest time at which the session's next call could be made. It is later than `due` if the call had to wait
    /// for a connection.
    pub ready: Nanos,
    began: Nanos,
    ended: Nanos,
    /// Number of bursts that have not begun yet.
    bursts_left: u32,
    /// Number of calls of the current burst that have not been made yet.
    calls_left: u32,
    /// Number of calls that remain for later bursts. It is used only if the load specifies the number of calls per
    /// session.
    calls_to_come: u32,
    /// Number of the session's calls that have been made and have not ended, including calls that wait for a retry.
    in_flight: u32,
    /// Number of bursts begun so far.
    bursts: u32,
    /// Number of calls made so far.
    calls: u32,
    /// Number of sessions begun so far by this user.
    pub sessions_begun: u32,
}

/// The current activity of a session or user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The session has not begun, or the user rests between two sessions.
    Resting,
    /// The user thinks before the next burst.
    Thinking,
    /// The first call of the burst has been made, but not answered.
    FirstCall,
    /// The first call of the burst has been answered, so the other calls of the burst may be made.
    OtherCalls,
    /// The run ended before the session ended.
    CutOff,
}

impl SessionState {
    /// Creates the state of a session that has not begun. `seed` is the seed of its random stream.
    pub fn new(session: SessionId, seed: u64) -> SessionState {
        SessionState {
            rng: Pcg32::seed_from_u64(seed),
            session,
            phase: Phase::Resting,
            is_queued: false,
            failed: false,
            failures: 0,
            wait: Nanos::ZERO,
            began_before_run: false,
            due: Nanos::ZERO,
            ready: Nanos::ZERO,
            began: Nanos::ZERO,
            ended: Nanos::ZERO,
            bursts_left: 0,
            calls_left: 0,
            calls_to_come: 0,
            in_flight: 0,
            bursts: 0,
            calls: 0,
            sessions_begun: 0,
        }
    }

    /// The random stream of the session or user.
    pub fn rng(&mut self) -> &mut Pcg32 {
        &mut self.rng
    }

    /// Resumes a session that began before the run. Its next burst is due at `due`.
    pub fn resume(&mut self, due: Nanos, bursts_left: u32) {
        self.phase = Phase::Thinking;
        self.began_before_run = true;
        self.due = due;
        self.began = due;
        self.bursts_left = bursts_left;
    }

    /// Begins a session at the time `due`.
    pub fn begin(&mut self, plan: &Plan) {
        self.phase = Phase::Thinking;
        self.began_before_run = false;
        self.failed = false;
        self.began = self.due;
        self.bursts = 0;
        self.calls = 0;
        self.sessions_begun = self.sessions_begun.saturating_add(1);
        self.bursts_left = match (&plan.scripts, &plan.load.calls_per_session) {
            (Some(scripts), _) => scripts.bursts(self.script(plan)),
            (None, Some(calls)) => {
                self.calls_to_come = draw_count(calls, &mut self.rng);
                u32::MAX
            }
            (None, None) => draw_count(&plan.load.bursts, &mut self.rng),
        };
    }

    /// Begins a burst at the time `due`.
    pub fn begin_burst(&mut self, plan: &Plan) {
        self.phase = Phase::FirstCall;
        self.ready = self.due;
        self.calls_left = match &plan.scripts {
            Some(scripts) => scripts.burst(self.script(plan), self.bursts).calls(),
            None => draw_count(&plan.load.calls_per_burst, &mut self.rng),
        };
        self.bursts_left = self.bursts_left.saturating_sub(1);
        self.bursts = self.bursts.saturating_add(1);
        if plan.load.calls_per_session.is_some() {
            self.calls_left = self.calls_left.min(self.calls_to_come);
            self.calls_to_come -= self.calls_left;
            if self.calls_to_come == 0 {
                self.bursts_left = 0;
            }
        }
    }

    /// Makes the next call of the current burst.
    pub fn next_call(&mut self, plan: &Plan) -> CallSpec {
        let call = match &plan.scripts {
            Some(scripts) => scripts.call(self.script(plan), self.bursts.saturating_sub(1), self.calls_left),
            None => plan.mix.call_at(self.rng.random()),
        };
        self.calls_left = self.calls_left.saturating_sub(1);
        self.in_flight += 1;
        self.calls = self.calls.saturating_add(1);
        CallSpec { session: Some(self.session), ..call }
    }

    /// The number by which this session selects its script. In an open load, this is the session's index in the
    /// schedule. In a closed load, it is `u + k·n` for the `k`-th session of user `u` among `n` users.
    fn script(&self, plan: &Plan) -> u64 {
        u64::from(self.session.0) + u64::from(self.sessions_begun.saturating_sub(1)) * plan.users
    }

    /// Think time after the current burst, in seconds.
    fn think_s(&mut self, plan: &Plan) -> f64 {
        let scripted = plan.scripts.as_ref().and_then(|scripts| {
            let burst = scripts.burst(self.script(plan), self.bursts.saturating_sub(1));
            burst.think_s()
        });
        scripted.unwrap_or_else(|| draw_s(&plan.load.think_s, &mut self.rng))
    }

    /// Whether another call may be made while the present ones are in flight. `max_in_flight` limits their number.
    pub fn can_call(&self, max_in_flight: u32) -> bool {
        self.phase == Phase::OtherCalls && self.calls_left > 0 && self.in_flight < max_in_flight
    }

    /// Handles an answer that arrived at `at`. Returns whether the session must be queued for its next call.
    pub fn handle_answer(&mut self, at: Nanos, plan: &Plan, window: Nanos) -> bool {
        self.end_call(at);
        if self.failed || !matches!(self.phase, Phase::FirstCall | Phase::OtherCalls) {
            return false;
        }
        if self.phase == Phase::FirstCall {
            self.phase = Phase::OtherCalls;
            self.due = at;
        }
        if self.calls_left > 0 {
            // The connection of the answered call is free for the next call.
            let must_queue = !self.is_queued && at < window;
            if must_queue {
                self.ready = at;
            }
            return must_queue;
        }
        let thinks = self.in_flight == 0 && self.bursts_left > 0;
        if thinks {
            self.phase = Phase::Thinking;
            self.due = at + Nanos::from_secs_f64(self.think_s(plan));
        }
        thinks
    }

    /// Counts a retry of a call that has ended. The call remains in flight. Returns `false` if the session does not
    /// retry the call, because the session has failed or was cut off.
    pub fn retry(&mut self) -> bool {
        let may_retry = !self.failed && matches!(self.phase, Phase::FirstCall | Phase::OtherCalls);
        if may_retry {
            self.calls = self.calls.saturating_add(1);
        }
        may_retry
    }

    /// Handles a call that failed at `at`. The session ends when its other calls have ended.
    pub fn fail(&mut self, at: Nanos) {
        self.end_call(at);
        self.failed = true;
        self.is_queued = false;
    }

    /// Handles a call that was cut off by the end of the run.
    pub fn cut_off(&mut self, at: Nanos) {
        self.end_call(at);
        self.phase = Phase::CutOff;
        self.is_queued = false;
    }

    fn end_call(&mut self, at: Nanos) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.ended = self.ended.max(at);
    }

    /// The outcome of the session; `None` if the session has not ended.
    pub fn outcome(&self) -> Option<SessionOutcome> {
        let done = self.phase == Phase::OtherCalls && self.calls_left == 0 && self.bursts_left == 0;
        (self.in_flight == 0 && self.phase != Phase::Resting && (self.failed || done)).then_some(SessionOutcome {
            began: self.began,
            ended: self.ended,
            calls: self.calls,
            bursts: self.bursts,
            failed: self.failed,
            began_before_run: self.began_before_run,
        })
    }

    /// Begins the idle time of a user between two sessions. After a failed session, it is at least as long as the wait
    /// after a failure.
    pub fn rest(&mut self, rest_s: &Spread) {
        self.phase = Phase::Resting;
        let rest = Nanos::from_secs_f64(draw_s(rest_s, &mut self.rng));
        self.due = self.ended + rest.max(self.wait);
    }

    /// Whether the session has made a call and has not ended.
    pub fn is_in_progress(&self) -> bool {
        self.phase != Phase::Resting && self.calls > 0
    }
}
