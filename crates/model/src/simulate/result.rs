//! The result of a simulation, including its precision.

use super::SimulationOptions;
use super::intervals::BATCHES;
use super::layout::Layout;
use super::record::Record;
use super::statistics::{ResponseTime, RunStatistics};
use super::world::World;
use crate::{Estimate, ModelError};
use brimful_core::JsonSchema;
use brimful_core::quantity::percent;
use serde::Serialize;

/// Result of a simulation. Its estimates have 95 % confidence intervals.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Simulation {
    /// X: throughput of each class, in requests per second.
    pub throughput: Vec<Estimate>,
    /// R: response time of each class; `None` for a class without completed requests.
    pub response_time: Vec<Option<ResponseTime>>,
    /// Residence time of each class at each station, from arrival to departure, in seconds: stations × classes. It is 0
    /// where the class has no demand, and `None` where no visit was simulated.
    pub residence: Vec<Vec<Option<Estimate>>>,
    /// N: mean number of requests present, stations × classes.
    pub queue_length: Vec<Vec<Estimate>>,
    /// U: utilization of the nominal capacity, stations × classes; for a delay station, the number of requests present.
    pub utilization: Vec<Vec<Estimate>>,
    /// Length and precision of the run.
    pub run: Run,
}

/// Length and precision of a run.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Run {
    /// Seed of the random numbers.
    pub seed: u64,
    /// Number of simulated events.
    pub events: u64,
    /// Length of the run in simulated time, including the warm-up, in seconds.
    pub time_s: f64,
    /// Length of the warm-up, in seconds, which is a part of `time_s`. Its requests are not in the results.
    pub warm_up_s: f64,
    /// Whether the network reached its steady state in the first half of the run.
    pub settled: bool,
    /// Number of batches (parts of equal length) into which the run after the warm-up is divided.
    pub batches: usize,
    /// Length of a batch (a part of the run after the warm-up), in seconds.
    pub batch_s: f64,
    /// The largest correlation between the mean response times of successive batches, over all classes. Above 0.5, the
    /// intervals are unreliable.
    pub lag1_correlation: f64,
    /// The precision that was reached: the largest half width among the intervals of the classes' throughputs and mean
    /// response times, divided by the estimate. `None` if one of these estimates has no interval.
    pub precision: Option<f64>,
    /// The reason why the run ended.
    pub ended: Ended,
    /// Sentences about the limits of the results, and how to improve them.
    pub caveats: Vec<String>,
}

/// The reason why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Ended {
    /// The results reached the requested precision.
    Precision,
    /// The limit of events was reached.
    Events,
    /// The limit of simulated time was reached.
    Time,
    /// The simulated time was so large that rounding errors would distort the shortest service times.
    Resolution,
}

/// If successive batches (parts of the run) have a larger correlation, the confidence intervals are reported as
/// unreliable.
const UNRELIABLE_CORRELATION: f64 = 0.5;

/// Computes the result of a finished run.
pub(super) fn result(
    layout: &Layout,
    world: &World<'_>,
    record: &Record,
    options: &SimulationOptions,
    ended: Ended,
) -> Result<Simulation, ModelError> {
    if record.slices.len() < 2 * BATCHES {
        if ended == Ended::Resolution {
            return Err(ModelError::Inconsistent(
                "the shortest times are too short to be simulated together with the longest: leave out the shortest or the longest".into(),
            ));
        }
        let (events, slices) = (world.events(), record.slices.len().max(1) as u64);
        return Err(ModelError::TooShort { events, needed: (events + 1) * 3 * BATCHES as u64 / slices });
    }
    let statistics = RunStatistics::new(layout, record);
    let (stations, classes) = (layout.stations.len(), layout.classes.len());
    let by_class = |station: usize, figure: &dyn Fn(usize, usize) -> Estimate| -> Vec<Estimate> {
        (0..classes).map(|class| figure(station, class)).collect()
    };
    Ok(Simulation {
        throughput: (0..classes).map(|class| statistics.throughput(class)).collect(),
        response_time: (0..classes).map(|class| statistics.response_time(class, &world.histograms[class])).collect(),
        residence: (0..stations).map(|i| (0..classes).map(|c| statistics.residence(i, c)).collect()).collect(),
        queue_length: (0..stations).map(|i| by_class(i, &|i, c| statistics.queue_length(i, c))).collect(),
        utilization: (0..stations).map(|i| by_class(i, &|i, c| statistics.utilization(i, c))).collect(),
        run: run(layout, world, record, &statistics, options, ended),
    })
}

fn run(
    layout: &Layout,
    world: &World<'_>,
    record: &Record,
    statistics: &RunStatistics<'_>,
    options: &SimulationOptions,
    ended: Ended,
) -> Run {
    let time_s = record.slice_s * record.slices.len() as f64;
    let mut run = Run {
        seed: options.seed,
        events: world.events(),
        time_s,
        warm_up_s: time_s - statistics.batch_s() * BATCHES as f64,
        settled: statistics.settled(),
        batches: BATCHES,
        batch_s: statistics.batch_s(),
        lag1_correlation: statistics.correlation(),
        precision: statistics.precision(),
        ended,
        caveats: Vec::new(),
    };
    let advice = match ended {
        Ended::Events => "allow more events",
        Ended::Time => "allow more time",
        Ended::Precision => "ask for more precision",
        Ended::Resolution => "leave out either the shortest or the longest times",
    };
    let mut add = |caveat: String| run.caveats.push(caveat);
    match (options.precision, run.precision) {
        (Some(_), None) => add(format!("a class has completed too few requests for an interval: {advice}")),
        (Some(wanted), Some(precision)) if precision > wanted => add(format!(
            "the widest interval is ±{} where ±{} was asked for: {advice}",
            percent(precision),
            percent(wanted)
        )),
        _ => {}
    }
    if !run.settled {
        add(format!(
            "the network had not settled after half the run, or it cannot keep up and its queues still grow: {advice}"
        ));
    }
    if time_s < layout.min_time() {
        add(format!("a station was interrupted too rarely for its effect to be known: {advice}"));
    }
    if run.lag1_correlation > UNRELIABLE_CORRELATION {
        add(format!(
            "successive batches are correlated ({:.2}), so that the intervals may still be too short: {advice}",
            run.lag1_correlation
        ));
    }
    run
}
