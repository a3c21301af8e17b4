//! How long a survey takes, said at its start: the sum of what the method is going to do, on a server of which no more is
//! known than what one client at a time gets done.
//!
//! What cannot be known yet is taken as it mostly is: clients are served at the same time by all the server's CPUs, the
//! ladder of clients is gone up twice, the number of blocks lies in the middle, and nothing has to be measured again.

use crate::calibration::{BLOCKS, Capacity, design, next_rung};
use crate::method::{EXPECTING, IDLE, Method, PAST_SATURATION, PROBE, overload_lasts};
use crate::predictions::{planned, saturation_lasts, times};
use crate::what_if::{self, Change};
use brimful_core::Nanos;
use brimful_estimate::Place;
use brimful_run::client_limit;

/// What a run takes besides its load: starting threads and the monitor, and waiting for the last answers.
pub(crate) const RUN_SET_UP: Nanos = Nanos::from_millis(60);
/// The same where a crew makes the load: agreeing on an instant, and merging.
const CREW_SET_UP: Nanos = Nanos::from_millis(1800);
/// Most servers get no faster from the first time up the ladder to the second.
const LADDERS: f64 = 2.0;

/// So many runs, and how long their loads last with what the server rests after them.
#[derive(Clone, Copy, Default)]
struct Runs {
    number: f64,
    last: Nanos,
}

impl Runs {
    fn add(&mut self, lasts: Nanos) {
        self.number += 1.0;
        self.last += lasts;
    }

    /// So many times all of it, each with its set-up.
    fn times(self, factor: f64, set_up: Nanos) -> Nanos {
        times(factor, self.last + times(self.number, set_up))
    }
}

impl Method<'_> {
    /// How long all of the survey takes, about, where one client at a time gets `first_rate` calls per second done.
    pub(crate) fn foreseen(&self, first_rate: f64, change: Option<Change>) -> Nanos {
        let idle = if self.setup.is_black_box() { Nanos::ZERO } else { IDLE };
        let (ladder, capacity) = self.foreseen_ladder(first_rate);
        let mut block = Runs::default();
        for place in design(&self.setup.workload, &capacity) {
            block.add(self.lasts_with_rest(&self.setup.workload, place, &capacity));
        }
        let set_up = if self.setup.shards.is_some() { CREW_SET_UP } else { RUN_SET_UP };
        let blocks = (BLOCKS.0 + BLOCKS.1) as f64 / 2.0;
        PROBE
            + client_limit::TYPICAL_DURATION
            + idle
            + ladder.times(LADDERS, set_up)
            + block.times(blocks, set_up)
            + EXPECTING
            + self.foreseen_levels(&capacity, change).times(1.0, set_up)
    }

    /// Once up the ladder of clients, and what comes of it.
    fn foreseen_ladder(&self, first_rate: f64) -> (Runs, Capacity) {
        let servers = u64::from(self.setup.servers());
        let most = self.most_clients();
        let at = |clients: u64| Capacity {
            rate: first_rate * clients.min(servers) as f64,
            clients,
            filled: true,
            busy: None,
            in_use: None,
        };
        let (mut ladder, mut clients) = (Runs::default(), 1);
        loop {
            let rung = at(clients);
            ladder.add(self.lasts_with_rest(&self.setup.workload, Place::Clients(clients), &rung));
            let next = next_rung(clients, most);
            if next > most || 2.0 * clients as f64 / rung.rate > self.setup.max_delay.as_secs_f64() {
                return (ladder, rung);
            }
            clients = next;
        }
    }

    /// Whatever is predicted and then measured.
    fn foreseen_levels(&self, capacity: &Capacity, change: Option<Change>) -> Runs {
        let level = self.setup.level;
        let mut runs = Runs::default();
        let (_, anchor) = self.anchor_at(capacity);
        let mut between_anchors = |lasts: Nanos| {
            for run in [lasts, anchor.min(lasts), anchor.min(lasts)] {
                runs.add(run);
            }
        };
        let most = if self.setup.gentle { self.setup.max_load } else { f64::INFINITY };
        let levels = planned(&self.setup.workload, level);
        levels.into_iter().filter(|(fraction, _)| *fraction <= most).for_each(|(_, lasts)| between_anchors(lasts));
        if self.setup.gentle {
            return runs;
        }
        between_anchors(saturation_lasts(level));
        if change.is_some() {
            let lasts = times(what_if::LASTS, level);
            between_anchors(lasts);
            runs.add(lasts);
        }
        for fraction in PAST_SATURATION {
            runs.add(overload_lasts((fraction - 1.0) * capacity.rate, level));
        }
        runs
    }
}
