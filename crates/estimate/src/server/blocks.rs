//! Input of the fit: the measurements of calibration, in blocks. Each block measures the same loads in a different
//! order, so that the drift of the host's speed affects all loads equally.

use super::programs::{self, ProgramUsage};
use super::work_scv::WorkScv;
use crate::inside::{ModuleDemand, Workers};
use crate::window::{CompletedCalls, RunStretch};
use brimful_core::moments::Moments;
use std::collections::BTreeMap;

/// Facts about the server that are not part of a single block.
#[derive(Clone, Debug)]
pub struct ServerFacts {
    /// Names of the classes.
    pub classes: Vec<String>,
    /// Shares of the classes in the mix. They sum to one.
    pub mix: Vec<f64>,
    /// Name of the station that represents the CPUs, or the whole server if its CPUs cannot be observed.
    pub station: String,
    /// Number of CPUs that the server can use at once; 1 if the CPUs cannot be observed.
    pub servers: u32,
    /// Mean number of CPUs that the server's processes keep busy without load.
    pub idle_busy: f64,
    /// Share of the CPUs' capacity that other work uses, so that requests cannot use it.
    pub background: f64,
    /// Whether the largest number of clients achieved no more throughput than half as many clients. If so, some
    /// resource is saturated.
    pub is_saturated: bool,
    /// Number of connections that the server serves at the same time. `None` unless the largest number of clients used
    /// all of them.
    pub served_at_once: Option<u32>,
}

/// The load during one measurement of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OfferedLoad {
    /// Poisson arrivals of the mix. The number is the rate, in percent of the server's capacity.
    Level(u32),
    /// The mix, sent by closed-loop clients without think time. The number is the number of clients.
    Clients(u64),
    /// One class alone, sent by closed-loop clients without think time. The numbers are the index of the class and the
    /// number of clients.
    SingleClass(usize, u64),
}

/// A measurement of the server under one load.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// The load that was offered.
    pub load: OfferedLoad,
    /// Duration of the measurement in seconds, without the warm-up.
    pub seconds: f64,
    /// Calls completed per second, by class.
    pub throughput: Vec<f64>,
    /// CPU, disk and program usage during the measurement.
    pub kernel: KernelMetrics,
    /// The Server Module's measurements of the requests.
    pub module: ModuleMetrics,
    /// Response times of the calls.
    pub responses: ResponseMetrics,
    /// The measurement as a function of time.
    pub timeline: Timeline,
}

/// Measurements of the server and its host by the kernel.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KernelMetrics {
    /// Mean number of CPUs that the server's processes keep busy; `None` if the CPUs cannot be observed.
    pub busy: Option<f64>,
    /// Mean number of idle CPUs; `None` if the CPUs cannot be observed.
    pub idle: Option<f64>,
    /// Utilization of each of the host's disks (0 to 1), by name of the disk.
    pub disks: BTreeMap<String, f64>,
    /// The CPU usage of each of the server's programs.
    pub programs: Vec<ProgramUsage>,
}

/// The Server Module's measurements; empty without the module.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModuleMetrics {
    /// CPU time of the requests, by class; `None` for a class that the module did not measure.
    pub demands: Vec<Option<ModuleDemand>>,
    /// The workers of a server in which each worker serves at most one call at a time.
    pub workers: Option<Workers>,
    /// Number of workers that can compete for the CPUs.
    pub threads: Option<u64>,
}

/// Response times during a measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ResponseMetrics {
    /// Mean response time in seconds.
    pub mean: Option<f64>,
    /// 50th, 95th and 99th percentiles of the response time, in seconds.
    pub percentiles: Option<[f64; 3]>,
    /// Squared coefficient of variation of the response times of calls within a class.
    pub scv: Option<f64>,
}

/// A measurement as a function of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timeline {
    /// Duration of the warm-up in seconds. The mean values of the measurement exclude the warm-up.
    pub warm_up: f64,
    /// Time without load after the measurement, in seconds.
    pub pause_after: f64,
    /// CPU time and completed calls in short intervals ("stretches"), from the start of the measurement.
    pub stretches: Vec<RunStretch>,
    /// Time of each arrival in seconds since the start of the measurement, and the index of its class. Empty for
    /// closed-loop clients.
    pub arrivals: Vec<(f64, usize)>,
    /// Completed calls over time, including the warm-up.
    pub completed: CompletedCalls,
    /// Start and duration of each pause of the server, in seconds since the start of the measurement. Empty until the
    /// fit detects them.
    pub pauses: Vec<(f64, f64)>,
}

/// The measurements of one block, in the order in which they were made.
pub type Block = Vec<Measurement>;

impl Timeline {
    /// The stretches after the warm-up in which the CPUs worked.
    fn working_stretches(&self) -> Vec<&RunStretch> {
        self.stretches.iter().filter(|stretch| stretch.start_s >= self.warm_up && stretch.work > 0.0).collect()
    }
}

impl Measurement {
    /// Calls completed per second.
    pub fn rate(&self) -> f64 {
        self.throughput.iter().sum()
    }

    /// Number of completed calls.
    fn calls(&self) -> f64 {
        self.rate() * self.seconds
    }

    /// Seconds from the start of the measurement to the start of the next one.
    pub(super) fn until_next(&self) -> f64 {
        self.timeline.warm_up + self.seconds + self.timeline.pause_after
    }

    /// CPU seconds per call, without the `idle_busy` CPUs that the server keeps busy without calls. `None` if the CPUs
    /// cannot be observed, or if the result is not positive.
    pub(super) fn cost(&self, idle_busy: f64) -> Option<f64> {
        let cost = (self.kernel.busy? - idle_busy) / self.rate();
        (cost.is_finite() && cost > 0.0).then_some(cost)
    }
}

/// A measurement, and the model's predictions for its calls.
#[derive(Clone, Debug)]
pub(super) struct ReplayedMeasurement {
    /// The measurement.
    pub measurement: Measurement,
    /// The mean response time that the model predicts; `None` before the replay, and if it cannot be predicted.
    pub modelled: Option<ModelledResponse>,
    /// Ratios of the measured percentiles of response times to the percentiles that the model predicts for the same
    /// calls.
    pub percentile_ratios: Option<[f64; 3]>,
}

/// The mean response time that the model predicts for the calls of a measurement, at the host's speed during the
/// measurement. It is a linear function of the squared coefficient of variation (scv) of service times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ModelledResponse {
    /// The mean response time with scv 0 (constant service times in each class), in seconds.
    pub constant: f64,
    /// The increase of the mean response time per unit of scv, in seconds.
    pub per_scv: f64,
}

/// The measurements of one load, combined over all blocks.
#[derive(Clone, Debug)]
pub(super) struct PooledMeasurement {
    /// The measurements of all blocks, combined: means, and the sum of the durations.
    pub measurement: Measurement,
    /// The mean response time that the model predicts, averaged over all blocks.
    pub modelled: Option<ModelledResponse>,
    /// Ratios of the measured percentiles of response times to the predicted percentiles, averaged over all blocks.
    pub percentile_ratios: Option<[f64; 3]>,
    /// Variance of the mean of (response time − [`ModelledResponse::constant`]), estimated from the differences between
    /// blocks.
    pub excess_variance: Option<f64>,
    /// Variance of the mean response time, estimated from the differences between blocks.
    pub response_variance: Option<f64>,
    /// Variance of the mean throughput, estimated from the differences between blocks.
    pub rate_variance: Option<f64>,
    /// Squared coefficient of variation of the CPU time of a call.
    pub work_scv: Option<WorkScv>,
    /// Number of blocks that measured this load.
    pub blocks: usize,
}

/// The combined measurements, by load.
pub(super) type PooledLoads = BTreeMap<OfferedLoad, PooledMeasurement>;

/// Combines the measurements of each load over all blocks. Rates are averaged by time, response times by calls.
pub(super) fn pool<'a>(blocks: impl IntoIterator<Item = &'a Vec<ReplayedMeasurement>>) -> PooledLoads {
    let mut loads: BTreeMap<OfferedLoad, Vec<&ReplayedMeasurement>> = BTreeMap::new();
    for replayed in blocks.into_iter().flatten().filter(|replayed| replayed.measurement.seconds > 0.0) {
        loads.entry(replayed.measurement.load).or_default().push(replayed);
    }
    loads.into_iter().map(|(load, replayed)| (load, pool_load(&replayed))).collect()
}

/// The combined measurement of the load with only this class.
pub(super) fn single_class_measurement(loads: &PooledLoads, class: usize) -> Option<&PooledMeasurement> {
    let is_of_class = |load: &OfferedLoad| matches!(load, OfferedLoad::SingleClass(other, _) if *other == class);
    loads.iter().rev().find_map(|(load, pooled)| is_of_class(load).then_some(pooled))
}

/// The largest number of closed-loop clients that sent the mix, and the combined measurement under this load.
pub(super) fn most_clients(loads: &PooledLoads) -> Option<(u64, &PooledMeasurement)> {
    loads.iter().rev().find_map(|(load, pooled)| match load {
        OfferedLoad::Clients(clients) => Some((*clients, pooled)),
        _ => None,
    })
}

fn pool_load(replayed: &[&ReplayedMeasurement]) -> PooledMeasurement {
    let measurements: Vec<&Measurement> = replayed.iter().map(|replayed| &replayed.measurement).collect();
    let answered: Vec<&Measurement> =
        measurements.iter().copied().filter(|measurement| measurement.responses.mean.is_some()).collect();
    let responses: Vec<f64> = answered.iter().filter_map(|measurement| measurement.responses.mean).collect();
    let rates: Vec<f64> = measurements.iter().map(|measurement| measurement.rate()).collect();
    let modelled: Vec<(ModelledResponse, &Measurement)> = replayed
        .iter()
        .filter(|replayed| replayed.measurement.responses.mean.is_some())
        .filter_map(|replayed| Some((replayed.modelled?, &replayed.measurement)))
        .collect();
    let excess: Vec<f64> = modelled
        .iter()
        .filter_map(|(modelled, measurement)| Some(measurement.responses.mean? - modelled.constant))
        .collect();
    PooledMeasurement {
        measurement: pool_figures(&measurements, &answered, &responses),
        modelled: (modelled.len() == measurements.len()).then(|| mean_by_calls(&modelled)),
        percentile_ratios: mean_percentile_ratios(replayed.iter().filter_map(|replayed| replayed.percentile_ratios)),
        excess_variance: variance_of_mean(&excess),
        response_variance: variance_of_mean(&responses),
        rate_variance: variance_of_mean(&rates),
        work_scv: WorkScv::new(measurements.iter().map(|measurement| measurement.timeline.working_stretches())),
        blocks: measurements.len(),
    }
}

/// Combines several measurements of the same load. `answered` are the measurements that have a mean response time, and
/// `responses` are these mean response times.
fn pool_figures(measurements: &[&Measurement], answered: &[&Measurement], responses: &[f64]) -> Measurement {
    let first = measurements[0];
    let seconds: f64 = measurements.iter().map(|measurement| measurement.seconds).sum();
    let mean_by_time = |figure: &dyn Fn(&Measurement) -> Option<f64>| {
        let weighted = measurements.iter().map(|measurement| Some(figure(measurement)? * measurement.seconds));
        weighted.sum::<Option<f64>>().map(|sum| sum / seconds)
    };
    let throughput = |class: usize| mean_by_time(&|m: &Measurement| m.throughput.get(class).copied()).unwrap_or(0.0);
    // Leave out a disk that is missing in some measurements: the calls do not need it.
    let disk =
        |name: &String| Some((name.clone(), mean_by_time(&|m: &Measurement| m.kernel.disks.get(name).copied())?));
    let calls: f64 = answered.iter().map(|measurement| measurement.calls()).sum();
    let weighted = answered.iter().zip(responses).map(|(measurement, response)| response * measurement.calls());
    let response = weighted.sum::<f64>() / calls;
    Measurement {
        load: first.load,
        seconds,
        throughput: (0..first.throughput.len()).map(throughput).collect(),
        kernel: KernelMetrics {
            busy: mean_by_time(&|measurement: &Measurement| measurement.kernel.busy),
            idle: mean_by_time(&|measurement: &Measurement| measurement.kernel.idle),
            disks: first.kernel.disks.keys().filter_map(disk).collect(),
            programs: programs::pool(measurements.iter().map(|m| (&m.kernel.programs[..], m.seconds)), seconds),
        },
        module: ModuleMetrics {
            demands: pool_module_demands(measurements),
            workers: pool_workers(measurements),
            threads: measurements.iter().filter_map(|measurement| measurement.module.threads).max(),
        },
        responses: ResponseMetrics {
            mean: (calls > 0.0).then_some(response),
            percentiles: None,
            scv: median(measurements.iter().filter_map(|measurement| measurement.responses.scv).collect()),
        },
        timeline: Timeline::default(),
    }
}

fn mean_by_calls(modelled: &[(ModelledResponse, &Measurement)]) -> ModelledResponse {
    let calls: f64 = modelled.iter().map(|(_, measurement)| measurement.calls()).sum();
    let mean = |figure: fn(&ModelledResponse) -> f64| {
        modelled.iter().map(|(modelled, measurement)| figure(modelled) * measurement.calls()).sum::<f64>() / calls
    };
    ModelledResponse { constant: mean(|modelled| modelled.constant), per_scv: mean(|modelled| modelled.per_scv) }
}

fn pool_module_demands(measurements: &[&Measurement]) -> Vec<Option<ModuleDemand>> {
    let classes = measurements.iter().map(|measurement| measurement.module.demands.len()).max().unwrap_or(0);
    let pool_class = |class| {
        let demands = measurements.iter().filter_map(|m| m.module.demands.get(class).copied().flatten());
        demands.reduce(ModuleDemand::pool)
    };
    (0..classes).map(pool_class).collect()
}

/// The maximum number of workers, and the mean number of busy workers weighted by time.
fn pool_workers(measurements: &[&Measurement]) -> Option<Workers> {
    let seen: Vec<(Workers, f64)> = measurements.iter().filter_map(|m| Some((m.module.workers?, m.seconds))).collect();
    let total: f64 = seen.iter().map(|(_, seconds)| seconds).sum();
    let busy = seen.iter().map(|(workers, seconds)| workers.busy * seconds / total).sum();
    seen.iter().map(|(workers, _)| workers.max_workers).max().map(|max_workers| Workers { max_workers, busy })
}

/// Geometric mean of the ratios, separately for each percentile.
pub(super) fn mean_percentile_ratios(shapes: impl Iterator<Item = [f64; 3]>) -> Option<[f64; 3]> {
    let mut count = 0.0;
    let mut log_sums = [0.0; 3];
    for percentile_ratios in shapes {
        count += 1.0;
        log_sums = std::array::from_fn(|index| log_sums[index] + percentile_ratios[index].ln());
    }
    (count > 0.0).then(|| log_sums.map(|sum: f64| (sum / count).exp()))
}

/// Median, which is robust against a measurement during which the server briefly stopped.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let even = values.len().is_multiple_of(2);
    values.get(middle).map(|upper| if even { f64::midpoint(values[middle - 1], *upper) } else { *upper })
}

fn variance_of_mean(values: &[f64]) -> Option<f64> {
    Some(Moments::from_values(values)?.variance()? / values.len() as f64)
}
