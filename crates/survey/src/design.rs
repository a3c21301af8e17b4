//! The design of calibration: the loads of a block, and their durations. All functions depend only on the setup, so
//! that the duration of a survey can be estimated at its start.

use crate::setup::{Setup, closed, times, with_load};
use brimful_core::workload::{Load, Workload};
use brimful_core::{Nanos, Rate};
use brimful_estimate::OfferedLoad;

/// Levels of the mix, in percent of the capacity.
const LEVELS: [u32; 4] = [10, 20, 40, 60];
pub(crate) const LIGHTEST_LEVEL: u32 = LEVELS[0];
/// Length of a step (a load of calibration) at a level and with closed clients, respectively, in units of
/// [`Setup::level`].
const LEVEL_STEP: f64 = 0.1;
const CLIENTS_STEP: f64 = 0.05;
/// Length of the shortest step, without its warm-up. A host that has rested takes some tenths of a second to reach its
/// sustained speed under load; this time is excluded as the warm-up.
const SHORTEST_STEP: Nanos = Nanos::from_millis(200);
const WARM_UP: f64 = 0.075;
const LONGEST_WARM_UP: Nanos = Nanos::from_secs(1);
/// A step is long enough for at least this number of calls (of each client, if the load is closed), unless that takes
/// longer than [`LONGEST_STEP`].
const CALLS: f64 = 12.0;
const LONGEST_STEP: Nanos = Nanos::from_secs(1);
/// Length of an anchor (a short load that measures the host's speed), in units of a step with closed clients.
const ANCHOR: f64 = 2.5;
/// Minimum and maximum number of blocks of a thorough survey. Other surveys have one block less.
const MIN_BLOCKS: usize = 6;
const MAX_BLOCKS: usize = 7;

/// One load of calibration, and the pause of the server after it.
#[derive(Clone, Debug)]
pub(crate) struct LoadStep {
    pub workload: Workload,
    /// Duration of the load, including its warm-up.
    pub duration: Nanos,
    /// Duration of the pause after the load, chosen so that the mean load stays below the permitted one.
    pub pause: Nanos,
}

impl LoadStep {
    pub fn total(&self) -> Nanos {
        self.duration + self.pause
    }
}

/// The minimum and the maximum number of blocks.
pub(crate) fn blocks(setup: &Setup) -> [usize; 2] {
    [MIN_BLOCKS, MAX_BLOCKS].map(|blocks| blocks - usize::from(!setup.thorough))
}

/// Chooses the loads of calibration.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockDesign<'a> {
    pub setup: &'a Setup,
    /// The rate that this client can offer, if it is known.
    pub client_limit: Option<f64>,
}

impl BlockDesign<'_> {
    /// The loads of a block, with at most `clients` closed clients.
    pub fn offered_loads(&self, clients: u64) -> Vec<OfferedLoad> {
        // A single client shows the duration of a call without queueing.
        let mut numbers = vec![1, 4, clients];
        numbers.retain(|number| *number <= clients);
        numbers.dedup();
        let classes = self.setup.workload.classes.len();
        let mut places: Vec<OfferedLoad> = LEVELS.map(OfferedLoad::Level).to_vec();
        places.extend(numbers.into_iter().map(OfferedLoad::Clients));
        if classes > 1 {
            places.extend((0..classes).map(|class| OfferedLoad::SingleClass(class, clients)));
        }
        places
    }

    /// The step for a load, on a server that completes `capacity` calls per second.
    pub fn plan_load_step(&self, place: OfferedLoad, capacity: f64) -> LoadStep {
        let (workload, measured, load) = match place {
            OfferedLoad::Level(percent) => {
                let fraction = f64::from(percent) / 100.0;
                let rate = Rate(fraction * self.offerable(capacity));
                let calls = Nanos::from_secs_f64(CALLS / rate.0.max(1e-9)).min(LONGEST_STEP);
                let measured = times(LEVEL_STEP, self.setup.level).max(SHORTEST_STEP).max(calls);
                (self.setup.workload_with(Load::poisson(rate)), measured, fraction)
            }
            OfferedLoad::Clients(clients) => {
                (self.setup.workload_with(closed(clients)), self.clients_step(clients, capacity), 1.0)
            }
            OfferedLoad::SingleClass(class, clients) => {
                let workload = with_load(&only_class(&self.setup.workload, class), closed(clients));
                (workload, self.clients_step(clients, capacity), 1.0)
            }
        };
        let duration = warm_up(self.setup) + measured;
        LoadStep { workload, duration, pause: times(load / self.setup.impact_limits.max_load - 1.0, duration) }
    }

    /// The name of a load in the document.
    pub fn load_name(&self, place: OfferedLoad) -> String {
        match place {
            OfferedLoad::Level(_) => "mix".to_owned(),
            OfferedLoad::Clients(clients) => format!("{clients} at once"),
            OfferedLoad::SingleClass(class, _) => self.setup.workload.classes[class].name.clone(),
        }
    }

    fn clients_step(&self, clients: u64, capacity: f64) -> Nanos {
        let calls = Nanos::from_secs_f64(CALLS * clients as f64 / capacity).min(LONGEST_STEP);
        times(CLIENTS_STEP, self.setup.level).max(SHORTEST_STEP).max(calls)
    }

    /// The rate of which the levels are fractions: the capacity, or less if this client could not offer the highest
    /// level.
    fn offerable(&self, capacity: f64) -> f64 {
        let highest = f64::from(LEVELS[LEVELS.len() - 1]) / 100.0;
        self.client_limit.map_or(capacity, |limit| capacity.min(limit / highest))
    }
}

/// Length of the unmeasured beginning of each step.
pub(crate) fn warm_up(setup: &Setup) -> Nanos {
    times(WARM_UP, setup.level).min(LONGEST_WARM_UP)
}

/// Upper bound of the duration of an anchor (a short load that measures the host's speed) with this number of clients,
/// on a server that completes `capacity` calls per second.
pub(crate) fn anchor_duration(setup: &Setup, clients: u64, capacity: f64) -> Nanos {
    let design = BlockDesign { setup, client_limit: None };
    times(ANCHOR, design.plan_load_step(OfferedLoad::Clients(clients), capacity).duration)
}

/// Returns the number of clients after `clients` in the search for the capacity: four times as many, then half of
/// `max`, then `max`. So the last step at least doubles the number, as `SATURATED_GAIN` assumes. After `max`, the result
/// is greater than `max`.
pub(crate) fn next_clients(clients: u64, max: u64) -> u64 {
    let half = max / 2;
    if clients >= max {
        2 * clients
    } else if 4 * clients <= half {
        4 * clients
    } else if clients < half {
        half
    } else {
        max
    }
}

/// Returns the workload with only one of its classes.
fn only_class(mix: &Workload, class: usize) -> Workload {
    let mut workload = mix.clone();
    for (index, other) in workload.classes.iter_mut().enumerate() {
        other.weight = if index == class { 1.0 } else { 0.0 };
    }
    workload
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_step_of_the_search_at_least_doubles_the_clients() {
        // The range includes 20, for a server with 20 workers, and 288, for nine CPUs.
        for max in 2..=300 {
            let mut ladder = vec![1];
            while ladder[ladder.len() - 1] < max {
                ladder.push(next_clients(ladder[ladder.len() - 1], max));
            }
            assert_eq!(ladder.last(), Some(&max), "{ladder:?}");
            let [.., before, last] = ladder[..] else { panic!("{ladder:?}") };
            assert!(last >= 2 * before, "{ladder:?}");
            assert!(next_clients(max, max) > max);
        }
        assert_eq!(next_clients(1, 1), 2);
    }
}
