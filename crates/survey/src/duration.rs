//! Estimates the duration of a survey at its start. Only the throughput of a single client is known at that time.
//!
//! The estimate is the sum of the durations of all runs. It assumes that all CPUs of the server serve clients at the
//! same time, that calibration repeats its loads the mean of the minimum and the maximum number of times, and that no
//! disturbed run is repeated.

use crate::baseline::{IDLE, needed_rate};
use crate::connections::ConnectionUse;
use crate::design::{BlockDesign, RUN_SET_UP, anchor_duration, blocks, next_clients};
use crate::first_look::INITIAL_DURATION;
use crate::objective::{expected_slices, slice_duration};
use crate::overload::overload_durations;
use crate::predictions::{PREDICTION_TIME, planned_levels, saturation_duration};
use crate::setup::{Change, Setup, times};
use crate::{warm_server_up, what_if};
use brimful_core::Nanos;
use brimful_estimate::OfferedLoad;
use brimful_run::client_limit;

/// Time that a run takes in addition to its load if several generator processes (shards) share the load: to agree on a
/// start, and to merge the results.
const SHARDS_SET_UP: Nanos = Nanos::from_millis(1800);

/// A number of runs, and the total duration of their loads and pauses.
#[derive(Clone, Copy, Default)]
struct Runs {
    number: f64,
    total: Nanos,
}

impl Runs {
    fn add(&mut self, duration: Nanos) {
        self.number += 1.0;
        self.total += duration;
    }

    /// The duration of all runs, repeated `repetitions` times. Each run takes the additional time `set_up`.
    fn duration(self, repetitions: f64, set_up: Nanos) -> Nanos {
        times(repetitions, self.total + times(self.number, set_up))
    }
}

/// Estimates the total duration of the survey. `first_rate` is the throughput of a single client, in calls per second.
pub(crate) fn estimated_duration(
    setup: &Setup,
    connections: &ConnectionUse,
    first_rate: f64,
    change: Option<Change>,
) -> Nanos {
    let idle = if setup.is_black_box() { Nanos::ZERO } else { IDLE };
    let set_up = if setup.shards.is_some() { SHARDS_SET_UP } else { RUN_SET_UP };
    let design = BlockDesign { setup, client_limit: None };
    let search = capacity_search(design, connections.max_clients(setup), first_rate);
    let mut block = Runs::default();
    for offered in design.offered_loads(search.clients) {
        block.add(design.plan_load_step(offered, search.capacity).total());
    }
    let [min_blocks, max_blocks] = blocks(setup);
    let blocks = (min_blocks + max_blocks) as f64 / 2.0;
    let is_bounded = !setup.impact_limits.applies_after_calibration && setup.shards.is_none();
    let needed_rate = is_bounded.then(|| needed_rate(search.capacity));
    INITIAL_DURATION
        + warm_server_up::typical_duration(setup)
        + client_limit::typical_duration(needed_rate)
        + idle
        + search.runs.duration(1.0, set_up)
        + block.duration(blocks, set_up)
        + PREDICTION_TIME
        + levels(setup, &search, change).duration(1.0, set_up)
}

/// The estimated search for the capacity: its runs, the largest number of clients, and the assumed capacity.
struct Search {
    runs: Runs,
    clients: u64,
    capacity: f64,
}

fn capacity_search(design: BlockDesign<'_>, max_clients: u64, first_rate: f64) -> Search {
    let servers = u64::from(design.setup.servers());
    let max_delay_s = design.setup.impact_limits.max_delay.as_secs_f64();
    let mut runs = Runs::default();
    let mut clients = 1;
    loop {
        let capacity = first_rate * clients.min(servers) as f64;
        runs.add(design.plan_load_step(OfferedLoad::Clients(clients), capacity).total());
        let next = next_clients(clients, max_clients);
        if next > max_clients || 2.0 * clients as f64 / capacity > max_delay_s {
            return Search { runs, clients, capacity };
        }
        clients = next;
    }
}

/// The runs after calibration, such as those of the predicted load levels: their number and total duration.
fn levels(setup: &Setup, search: &Search, change: Option<Change>) -> Runs {
    let level_duration = setup.level_duration;
    let anchor = anchor_duration(setup, search.clients, search.capacity);
    let mut runs = Runs::default();
    let mut add_with_anchors = |duration: Nanos| {
        for run in [duration, anchor.min(duration), anchor.min(duration)] {
            runs.add(run);
        }
    };
    let is_gentle = setup.impact_limits.applies_after_calibration;
    for (fraction, duration) in planned_levels(setup) {
        if !is_gentle || fraction <= setup.impact_limits.max_load {
            add_with_anchors(duration);
        }
    }
    if is_gentle {
        return runs;
    }
    add_with_anchors(saturation_duration(level_duration));
    if change.is_some() {
        let duration = times(what_if::LOAD_DURATION, level_duration);
        add_with_anchors(duration);
        runs.add(duration);
    }
    for _ in 0..expected_slices(setup) {
        runs.add(slice_duration(setup, search.capacity, 0.0));
    }
    for duration in overload_durations(setup, search.capacity) {
        runs.add(duration);
    }
    runs
}
