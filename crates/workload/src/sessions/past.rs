//! The past of a load that begins as if it had always gone on: which sessions are under way when the run begins, and
//! when their next bursts are due.
//!
//! Sessions are followed from before the run, with answers that take no time, from so long ago that no more than one in
//! a thousand lasts longer; a day at most. What those few would have made is missing of the load at the beginning, which
//! is much only where very long sessions make most of it.

use super::visit::Visit;
use super::{draw_count, draw_s};
use crate::rng;
use brimful_core::Nanos;
use brimful_core::workload::{SessionArrivals, Sessions as SessionLoad, Spread};
use rand::RngExt;

const MOST_S: f64 = 86_400.0;
/// Sessions that are drawn to learn how long they last.
const DRAWN: usize = 10_000;
/// The share of them that does not last longer than they are followed.
const SHARE: f64 = 0.999;
/// So many think times in a row are passed over by their mean.
const MANY: u32 = 100;

/// How far back sessions are followed.
#[derive(Debug)]
pub struct Past {
    pub span: Nanos,
    /// From the beginning of one session to that of the user's next, on average, in seconds. Of a closed load.
    cycle_s: f64,
}

impl Past {
    pub fn of(load: &SessionLoad) -> Past {
        let rest = match &load.comes {
            SessionArrivals::Open { .. } => &Spread::Constant(0.0),
            SessionArrivals::Closed { rest_s, .. } => rest_s,
        };
        // Whatever the seed of the run, so that the same sessions are followed.
        let mut draws = rng(0, 5);
        let length_s = |_| session_s(load, &mut draws) + draw_s(rest, &mut draws);
        let mut lengths: Vec<f64> = (0..DRAWN).map(length_s).collect();
        lengths.sort_unstable_by(f64::total_cmp);
        let longest = lengths.get((DRAWN as f64 * SHARE) as usize).copied().unwrap_or(0.0);
        let cycle_s = (load.bursts.mean() - 1.0).max(0.0) * load.think_s.mean() + rest.mean();
        let span_s = longest.max(cycle_s).min(MOST_S);
        Past { span: Nanos::from_secs_f64(span_s), cycle_s: cycle_s.min(span_s) }
    }

    /// Follows a session that began at `began_s`, below zero, up to the run. Returns whether it goes on in it.
    pub fn goes_on(&self, began_s: f64, load: &SessionLoad, visit: &mut Visit) -> bool {
        self.follow(began_s, load, visit).is_ok()
    }

    /// Follows the sessions of a user up to the run. Users, each of which has a place from 0 to 1 of its own, begin
    /// evenly over one cycle.
    pub fn begin_user(&self, place: f64, load: &SessionLoad, rest_s: &Spread, visit: &mut Visit) {
        let mut began_s = self.cycle_s * place - self.span.as_secs_f64();
        while began_s < 0.0 {
            let Err(ended_s) = self.follow(began_s, load, visit) else { return };
            began_s = ended_s + draw_s(rest_s, visit.rng());
        }
        visit.due = Nanos::from_secs_f64(began_s);
    }

    /// Either the visit goes on in the run, or it ended before, then.
    fn follow(&self, began_s: f64, load: &SessionLoad, visit: &mut Visit) -> Result<(), f64> {
        let mean_s = load.think_s.mean();
        let (mut at_s, mut left) = (began_s, draw_count(&load.bursts, visit.rng()) - 1);
        while at_s < 0.0 {
            if left == 0 || mean_s == 0.0 {
                return Err(at_s);
            }
            let passed = (-at_s / mean_s * 0.9) as u32;
            if left > MANY && passed > MANY {
                let passed = passed.min(left);
                at_s += f64::from(passed) * mean_s;
                left -= passed;
            } else {
                at_s += draw_s(&load.think_s, visit.rng());
                left -= 1;
            }
        }
        visit.goes_on(Nanos::from_secs_f64(at_s), left.saturating_add(1));
        Ok(())
    }
}

/// How long a session lasts by its think times.
fn session_s(load: &SessionLoad, draws: &mut impl RngExt) -> f64 {
    let thinks = draw_count(&load.bursts, draws) - 1;
    let drawn: f64 = (0..thinks.min(MANY)).map(|_| draw_s(&load.think_s, draws)).sum();
    drawn + f64::from(thinks.saturating_sub(MANY)) * load.think_s.mean()
}
