//! The past of a load that begins in its stationary state: which sessions are in progress when the run starts, and when
//! the next bursts of these sessions are due.
//!
//! Sessions are simulated for some time before the run, with answers that take no time. At most one session in a
//! thousand lasts longer than this time. But the time is never longer than a day. The initial load lacks the sessions
//! that began even earlier. They matter only if very long sessions make most of the load.

use super::session_state::SessionState;
use super::{draw_count, draw_s};
use crate::rng;
use brimful_core::Nanos;
use brimful_core::workload::{SessionArrivals, Sessions as SessionLoad, Spread};
use rand::RngExt;

/// Upper bound of the simulated time, in seconds.
const MAX_SPAN_S: f64 = 86_400.0;
/// Number of sessions that are drawn to estimate the distribution of session lengths.
const SAMPLE_SESSIONS: usize = 10_000;
/// The simulated time is at least this quantile of the session length.
const COVERED_QUANTILE: f64 = 0.999;
/// If a session has more than this number of think times in a row, their mean is used for each instead of a random
/// draw.
const MAX_DRAWN_THINK_TIMES: u32 = 100;

/// Simulates the sessions before the run.
#[derive(Debug)]
pub struct SessionHistory {
    pub span: Nanos,
    /// Mean time from the start of a user's session to the start of the user's next session, in seconds. Used only for
    /// closed loads.
    cycle_s: f64,
}

impl SessionHistory {
    pub fn new(load: &SessionLoad) -> SessionHistory {
        let rest = match &load.session_arrivals {
            SessionArrivals::Open { .. } => &Spread::Constant(0.0),
            SessionArrivals::Closed { rest_s, .. } => rest_s,
        };
        // The seed is fixed, so that the span does not depend on the seed of the run.
        let mut draws = rng(0, 5);
        let draw_length_s = |_| draw_session_s(load, &mut draws) + draw_s(rest, &mut draws);
        let mut lengths_s: Vec<f64> = (0..SAMPLE_SESSIONS).map(draw_length_s).collect();
        lengths_s.sort_unstable_by(f64::total_cmp);
        let longest_s = lengths_s.get((SAMPLE_SESSIONS as f64 * COVERED_QUANTILE) as usize).copied().unwrap_or(0.0);
        let cycle_s = (load.bursts.mean() - 1.0).max(0.0) * load.think_s.mean() + rest.mean();
        let span_s = longest_s.max(cycle_s).min(MAX_SPAN_S);
        SessionHistory { span: Nanos::from_secs_f64(span_s), cycle_s: cycle_s.min(span_s) }
    }

    /// Simulates a session up to the start of the run, and returns whether the session is then still in progress. The
    /// session began at `began_s`, in seconds from the start of the run (negative).
    pub fn reaches_run(&self, began_s: f64, load: &SessionLoad, visit: &mut SessionState) -> bool {
        self.simulate(began_s, load, visit).is_ok()
    }

    /// Simulates the sessions of a user up to the start of the run. `place`, from 0 to 1, is the position in the first
    /// cycle at which the user's first session begins.
    pub fn begin_user(&self, place: f64, load: &SessionLoad, rest_s: &Spread, visit: &mut SessionState) {
        let mut began_s = self.cycle_s * place - self.span.as_secs_f64();
        while began_s < 0.0 {
            let Err(ended_s) = self.simulate(began_s, load, visit) else { return };
            began_s = ended_s + draw_s(rest_s, visit.rng());
        }
        visit.due = Nanos::from_secs_f64(began_s);
    }

    /// Simulates a session. Returns `Ok` if the session continues in the run. Otherwise returns the time at which the
    /// session ended, in seconds from the start of the run.
    fn simulate(&self, began_s: f64, load: &SessionLoad, visit: &mut SessionState) -> Result<(), f64> {
        let mean_think_s = load.think_s.mean();
        let mut now_s = began_s;
        let mut bursts_left = draw_count(&load.bursts, visit.rng()) - 1;
        while now_s < 0.0 {
            if bursts_left == 0 || mean_think_s == 0.0 {
                return Err(now_s);
            }
            // Far before the start of the run, several think times are skipped in one step.
            let skippable = (-now_s / mean_think_s * 0.9) as u32;
            if bursts_left > MAX_DRAWN_THINK_TIMES && skippable > MAX_DRAWN_THINK_TIMES {
                let skipped = skippable.min(bursts_left);
                now_s += f64::from(skipped) * mean_think_s;
                bursts_left -= skipped;
            } else {
                now_s += draw_s(&load.think_s, visit.rng());
                bursts_left -= 1;
            }
        }
        visit.resume(Nanos::from_secs_f64(now_s), bursts_left.saturating_add(1));
        Ok(())
    }
}

/// Draws the length of a session, in seconds: the sum of the session's think times.
fn draw_session_s(load: &SessionLoad, draws: &mut impl RngExt) -> f64 {
    let think_times = draw_count(&load.bursts, draws) - 1;
    let drawn_s: f64 = (0..think_times.min(MAX_DRAWN_THINK_TIMES)).map(|_| draw_s(&load.think_s, draws)).sum();
    drawn_s + f64::from(think_times.saturating_sub(MAX_DRAWN_THINK_TIMES)) * load.think_s.mean()
}
