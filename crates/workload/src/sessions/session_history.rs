//! Simulates the sessions of a load before the run starts, so that the run begins in the stationary state. The results
//! are the sessions in progress at the start of the run, and the times at which their next bursts are due.
//!
//! Sessions are simulated for a certain time before the run, as if all answers took no time. At most one session in a
//! thousand lasts longer than this time, unless the time is limited to its maximum of one day. Sessions that began even
//! earlier are missing at the start of the run. They matter only if most of the load comes from very long sessions.

use super::session_state::SessionState;
use super::{draw_count, draw_s};
use crate::rng;
use brimful_core::Nanos;
use brimful_core::workload::{SessionArrivals, Sessions as SessionLoad, Spread};
use rand::RngExt;

/// Maximum length, in seconds, of the time before the run that is simulated.
const MAX_SPAN_S: f64 = 86_400.0;
/// Number of sessions that are drawn to estimate the distribution of session lengths.
const SAMPLE_SESSIONS: usize = 10_000;
/// The simulated time before the run is at least this quantile of the session lengths.
const COVERED_QUANTILE: f64 = 0.999;
/// If a session has at most this number of think times, each of them is drawn. If it has more, the mean is used for
/// some of them.
const MAX_DRAWN_THINK_TIMES: u32 = 100;

/// Simulates the sessions that begin before the run.
#[derive(Debug)]
pub struct SessionHistory {
    /// Length of the simulated time before the run.
    pub span: Nanos,
    /// Mean time from the start of a user's session to the start of the same user's next session, in seconds. It is
    /// used only for closed loads.
    cycle_s: f64,
}

impl SessionHistory {
    /// Determines the length of the simulated time from random sessions of this load.
    pub fn new(load: &SessionLoad) -> SessionHistory {
        let rest = match &load.session_arrivals {
            SessionArrivals::Open { .. } => &Spread::Constant(0.0),
            SessionArrivals::Closed { rest_s, .. } => rest_s,
        };
        // This seed is fixed, so that `span` does not depend on the seed of the run.
        let mut draws = rng(0, 5);
        let draw_length_s = |_| draw_session_s(load, &mut draws) + draw_s(rest, &mut draws);
        let mut lengths_s: Vec<f64> = (0..SAMPLE_SESSIONS).map(draw_length_s).collect();
        lengths_s.sort_unstable_by(f64::total_cmp);
        let longest_s = lengths_s.get((SAMPLE_SESSIONS as f64 * COVERED_QUANTILE) as usize).copied().unwrap_or(0.0);
        let cycle_s = (load.bursts.mean() - 1.0).max(0.0) * load.think_s.mean() + rest.mean();
        let span_s = longest_s.max(cycle_s).min(MAX_SPAN_S);
        SessionHistory { span: Nanos::from_secs_f64(span_s), cycle_s: cycle_s.min(span_s) }
    }

    /// Simulates a session up to the start of the run, and updates its state `visit`. Returns whether the session is
    /// still in progress at that time. The session began at `began_s`, in seconds from the start of the run, which is
    /// negative.
    pub fn reaches_run(&self, began_s: f64, load: &SessionLoad, visit: &mut SessionState) -> bool {
        self.simulate(began_s, load, visit).is_ok()
    }

    /// Simulates the sessions of a user up to the start of the run, and updates the state `visit`. A cycle is the mean
    /// time between the starts of two sessions of a user. The first session begins in the first cycle of the simulated
    /// time, after the share `place` (0 to 1) of it.
    pub fn begin_user(&self, place: f64, load: &SessionLoad, rest_s: &Spread, visit: &mut SessionState) {
        let mut began_s = self.cycle_s * place - self.span.as_secs_f64();
        while began_s < 0.0 {
            let Err(ended_s) = self.simulate(began_s, load, visit) else { return };
            began_s = ended_s + draw_s(rest_s, visit.rng());
        }
        visit.due = Nanos::from_secs_f64(began_s);
    }

    /// Simulates a session that begins at `began_s`. Returns `Ok` if the session is still in progress when the run
    /// starts. Otherwise returns the time at which it ended, in seconds from the start of the run.
    fn simulate(&self, began_s: f64, load: &SessionLoad, visit: &mut SessionState) -> Result<(), f64> {
        let mean_think_s = load.think_s.mean();
        let mut now_s = began_s;
        let mut bursts_left = draw_count(&load.bursts, visit.rng()) - 1;
        while now_s < 0.0 {
            if bursts_left == 0 || mean_think_s == 0.0 {
                return Err(now_s);
            }
            // As long as the start of the run is far away, several think times are skipped in one step.
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
