//! The design of calibration: the loads of a block, and their durations. All of these depend only on the setup and the
//! capacity, so that the duration of a survey can be estimated at its start.

use crate::setup::{Setup, closed, times, with_load};
use brimful_core::workload::{Load, Workload};
use brimful_core::{Nanos, Rate};
use brimful_estimate::OfferedLoad;

/// Rates of the open loads of calibration, in percent of the capacity.
const LEVEL_PERCENTS: [u32; 4] = [10, 20, 40, 60];
/// Rate of the lightest open load of calibration, in percent of the capacity.
pub(crate) const LIGHTEST_LEVEL: u32 = LEVEL_PERCENTS[0];
/// Duration of an open load of calibration, without its warm-up, in units of [`Setup::level_duration`].
const OPEN_LOAD_DURATION: f64 = 0.1;
/// Duration of a closed load of calibration, without its warm-up, in units of [`Setup::level_duration`].
const CLOSED_LOAD_DURATION: f64 = 0.05;
/// Minimum duration of a load of calibration, without its warm-up.
const MIN_LOAD_DURATION: Nanos = Nanos::from_millis(200);
/// Time that a run takes in addition to its load: to start threads and the monitor, and to wait for the last responses.
pub(crate) const RUN_SET_UP: Nanos = Nanos::from_millis(140);
/// Duration of the warm-up at the start of each calibration load, in units of [`Setup::level_duration`]. After a pause,
/// the host takes some tenths of a second to reach its sustained speed under load.
const WARM_UP: f64 = 0.075;
/// Maximum duration of the warm-up.
const LONGEST_WARM_UP: Nanos = Nanos::from_secs(1);
/// Minimum number of calls in a load of calibration; in a closed load, per client. A load is extended to at most
/// [`MAX_EXTENDED_DURATION`] for these calls.
const MIN_CALLS: f64 = 12.0;
/// Maximum duration to which a load of calibration is extended for its minimum number of calls.
const MAX_EXTENDED_DURATION: Nanos = Nanos::from_secs(1);
/// Duration of an anchor (a short load that measures the host's speed), in units of a closed load of calibration.
const ANCHOR_DURATION: f64 = 2.5;
/// Minimum number of blocks (repetitions of the calibration loads) in a thorough survey. Other surveys have one less.
const MIN_BLOCKS: usize = 6;
/// Maximum number of blocks (repetitions of the calibration loads) in a thorough survey. Other surveys have one less.
const MAX_BLOCKS: usize = 7;

/// One load of calibration, and the pause after it.
#[derive(Clone, Debug)]
pub(crate) struct LoadStep {
    /// The load to offer.
    pub workload: Workload,
    /// Duration of the load, including its warm-up.
    pub duration: Nanos,
    /// Duration of the pause without load, chosen so that the mean load remains below the permitted one.
    pub pause: Nanos,
}

impl LoadStep {
    /// Duration of the load and the pause.
    pub fn total(&self) -> Nanos {
        self.duration + self.pause
    }
}

/// The minimum and the maximum number of blocks (repetitions of the calibration loads).
pub(crate) fn blocks(setup: &Setup) -> [usize; 2] {
    [MIN_BLOCKS, MAX_BLOCKS].map(|blocks| blocks - usize::from(!setup.thorough))
}

/// Plans the loads of calibration.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockDesign<'a> {
    /// The options of the survey.
    pub setup: &'a Setup,
    /// The maximum rate of this client in calls per second, if it is known.
    pub client_limit: Option<f64>,
}

impl BlockDesign<'_> {
    /// The loads that each block of calibration offers. Closed loads have at most `clients` clients.
    pub fn offered_loads(&self, clients: u64) -> Vec<OfferedLoad> {
        // A closed load with a single client measures the duration of a call without queueing.
        let mut numbers = vec![1, 4, clients];
        numbers.retain(|number| *number <= clients);
        numbers.dedup();
        let classes = self.setup.workload.classes.len();
        let mut loads: Vec<OfferedLoad> = LEVEL_PERCENTS.map(OfferedLoad::Level).to_vec();
        loads.extend(numbers.into_iter().map(OfferedLoad::Clients));
        if classes > 1 {
            loads.extend((0..classes).map(|class| OfferedLoad::SingleClass(class, clients)));
        }
        loads
    }

    /// Plans one load of calibration, for a server with a capacity of `capacity` calls per second.
    pub fn plan_load_step(&self, offered: OfferedLoad, capacity: f64) -> LoadStep {
        let (workload, measured, load) = match offered {
            OfferedLoad::Level(percent) => {
                let fraction = f64::from(percent) / 100.0;
                let rate = Rate(fraction * self.offerable(capacity));
                let calls = Nanos::from_secs_f64(MIN_CALLS / rate.0.max(1e-9)).min(MAX_EXTENDED_DURATION);
                let measured = times(OPEN_LOAD_DURATION, self.setup.level_duration).max(MIN_LOAD_DURATION).max(calls);
                (self.setup.workload_with(Load::poisson(rate)), measured, fraction)
            }
            OfferedLoad::Clients(clients) => {
                (self.setup.workload_with(closed(clients)), self.closed_load_duration(clients, capacity), 1.0)
            }
            OfferedLoad::SingleClass(class, clients) => {
                let workload = with_load(&only_class(&self.setup.workload, class), closed(clients));
                (workload, self.closed_load_duration(clients, capacity), 1.0)
            }
        };
        let duration = warm_up(self.setup) + measured;
        LoadStep { workload, duration, pause: times(load / self.setup.impact_limits.max_load - 1.0, duration) }
    }

    /// The name of a load in the survey's document.
    pub fn load_name(&self, offered: OfferedLoad) -> String {
        match offered {
            OfferedLoad::Level(_) => "mix".to_owned(),
            OfferedLoad::Clients(clients) => format!("{clients} at once"),
            OfferedLoad::SingleClass(class, _) => self.setup.workload.classes[class].name.clone(),
        }
    }

    fn closed_load_duration(&self, clients: u64, capacity: f64) -> Nanos {
        let calls = Nanos::from_secs_f64(MIN_CALLS * clients as f64 / capacity).min(MAX_EXTENDED_DURATION);
        times(CLOSED_LOAD_DURATION, self.setup.level_duration).max(MIN_LOAD_DURATION).max(calls)
    }

    /// The capacity, or a lower rate if this client could not offer the highest rate of calibration. The rates of the
    /// open loads are percentages of it.
    fn offerable(&self, capacity: f64) -> f64 {
        let highest = f64::from(LEVEL_PERCENTS[LEVEL_PERCENTS.len() - 1]) / 100.0;
        self.client_limit.map_or(capacity, |limit| capacity.min(limit / highest))
    }
}

/// Duration of the warm-up at the start of each calibration load, which is not measured.
pub(crate) fn warm_up(setup: &Setup) -> Nanos {
    times(WARM_UP, setup.level_duration).min(LONGEST_WARM_UP)
}

/// Maximum duration of an anchor (a short load that measures the host's speed) with this number of clients, on a server
/// with a capacity of `capacity` calls per second.
pub(crate) fn anchor_duration(setup: &Setup, clients: u64, capacity: f64) -> Nanos {
    let design = BlockDesign { setup, client_limit: None };
    times(ANCHOR_DURATION, design.plan_load_step(OfferedLoad::Clients(clients), capacity).duration)
}

/// The number of clients after `clients` in the search for the capacity: four times as many, then half of `max`, then
/// `max`. So the last two numbers differ by at least a factor of two, as `SATURATED_GAIN` requires. After `max`, the
/// result exceeds `max`, which ends the search.
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

/// The workload with only one of its classes.
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
        // The range includes 20, for a server with 20 workers, and 288, for nine CPUs with 32 clients each.
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
