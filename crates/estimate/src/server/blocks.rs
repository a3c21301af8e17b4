//! The data of the fit: calibration measurements of a server, in blocks. Each block measures the same loads in a
//! different order, so that changes of the host's speed affect all loads equally.

use super::programs::{self, ProgramUsage};
use super::work_scv::WorkScv;
use crate::server_module::{ModuleDemand, Workers};
use crate::window::{CompletedCalls, RunStretch};
use brimful_core::moments::Moments;
use std::collections::BTreeMap;

/// Facts about the server that apply to all its measurements.
#[derive(Clone, Debug)]
pub struct ServerFacts {
    /// Names of the request classes.
    pub classes: Vec<String>,
    /// Share of each request class in the mix. The shares sum to one.
    pub mix: Vec<f64>,
    /// Name of the queueing station that represents the CPUs, or the whole server if its CPUs cannot be observed.
    pub station: String,
    /// Number of CPUs that the server can use at the same time; 1 if the CPUs cannot be observed.
    pub servers: u32,
    /// Mean number of CPUs that the server's processes keep busy without load.
    pub idle_busy: f64,
    /// Share of the CPUs' capacity that other work uses and that requests cannot use.
    pub background: f64,
    /// Whether the largest number of clients had no more throughput than half as many clients. If so, some resource is
    /// saturated.
    pub is_saturated: bool,
    /// Number of connections that the server serves at the same time. `None` if it is unknown, or larger than the largest
    /// tested number of clients.
    pub served_at_once: Option<u32>,
}

/// The load on the server during one calibration measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OfferedLoad {
    /// Poisson arrivals of the mix of request classes. The number is the rate, in percent of the server's capacity.
    Level(u32),
    /// The mix of request classes, sent by this number of closed-loop clients without think time.
    Clients(u64),
    /// One request class alone, sent by closed-loop clients without think time. The numbers are the index of the class
    /// and the number of clients.
    SingleClass(usize, u64),
}

/// A measurement of the server under one constant load.
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
    /// Time series of the measurement, and the arrival times of its calls.
    pub timeline: Timeline,
}

/// The kernel's measurements of the server's processes and of the host, as means over a measurement.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KernelMetrics {
    /// Mean number of CPUs that the server's processes keep busy; `None` if the CPUs cannot be observed.
    pub busy: Option<f64>,
    /// Mean number of idle CPUs; `None` if the CPUs cannot be observed.
    pub idle: Option<f64>,
    /// Utilization of each of the host's disks (0 to 1), by name of the disk.
    pub disks: BTreeMap<String, f64>,
    /// The CPU usage of each program of the server.
    pub programs: Vec<ProgramUsage>,
}

/// Measurements by the Server Module, a plug-in of the web server; empty without the module.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModuleMetrics {
    /// CPU time of the requests, by class; `None` for a class that the module did not measure.
    pub demands: Vec<Option<ModuleDemand>>,
    /// Number of workers and of busy workers, if the server has workers that serve at most one call at a time.
    pub workers: Option<Workers>,
    /// Number of workers that can compete for the CPUs.
    pub threads: Option<u64>,
}

/// Response times of the calls during a measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ResponseMetrics {
    /// Mean response time in seconds.
    pub mean: Option<f64>,
    /// 50th, 95th and 99th percentiles of the response time, in seconds.
    pub percentiles: Option<[f64; 3]>,
    /// Squared coefficient of variation of the response times of calls within a class.
    pub scv: Option<f64>,
}

/// Time series of a measurement, and the arrival times of its calls.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timeline {
    /// Duration of the warm-up in seconds. The mean values of the measurement exclude the warm-up.
    pub warm_up: f64,
    /// Time without load from the end of the measurement to the next one, in seconds.
    pub pause_after: f64,
    /// CPU time and completed calls in consecutive short intervals, from the start of the measurement.
    pub stretches: Vec<RunStretch>,
    /// Time of each arrival in seconds since the start of the measurement, and the index of its class. Empty for
    /// closed-loop clients.
    pub arrivals: Vec<(f64, usize)>,
    /// Number of completed calls in consecutive short intervals, including the warm-up.
    pub completed: CompletedCalls,
    /// Start and duration of each pause of the server, in seconds since the start of the measurement. Empty until the
    /// fit detects them.
    pub pauses: Vec<(f64, f64)>,
}

/// A block of the calibration: one measurement of each load, in the order in which they were made.
pub type Block = Vec<Measurement>;

impl Timeline {
    /// The short intervals after the warm-up in which the server used CPU time.
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

    /// CPU seconds per call. The `idle_busy` CPUs that the server keeps busy without calls are subtracted. `None` if
    /// the CPUs cannot be observed, or if the result is not positive.
    pub(super) fn cost(&self, idle_busy: f64) -> Option<f64> {
        let cost = (self.kernel.busy? - idle_busy) / self.rate();
        (cost.is_finite() && cost > 0.0).then_some(cost)
    }
}

/// A measurement, and the model's predictions of its response times.
#[derive(Clone, Debug)]
pub(super) struct ReplayedMeasurement {
    /// The measurement whose calls are replayed through the model.
    pub measurement: Measurement,
    /// The mean response time that the model predicts for these calls; `None` before the prediction, or if it fails.
    pub modelled: Option<ModelledResponse>,
    /// Measured 50th, 95th and 99th percentiles of the response time, divided by the percentiles that the model
    /// predicts for the same calls.
    pub percentile_ratios: Option<[f64; 3]>,
}

/// The mean response time that the model predicts for the calls of a measurement. It is a linear function of the
/// squared coefficient of variation (scv) of service times, and accounts for changes of the host's speed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ModelledResponse {
    /// The mean response time if scv is 0 (constant service times within each class), in seconds.
    pub constant: f64,
    /// Increase of the mean response time per unit of scv, in seconds.
    pub per_scv: f64,
}

/// All measurements of the same load, combined.
#[derive(Clone, Debug)]
pub(super) struct PooledMeasurement {
    /// Means over all measurements of this load. The duration is the sum of their durations.
    pub measurement: Measurement,
    /// The mean response time that the model predicts, averaged over the measurements.
    pub modelled: Option<ModelledResponse>,
    /// Measured percentiles of the response time divided by predicted percentiles, averaged over the measurements.
    pub percentile_ratios: Option<[f64; 3]>,
    /// Variance of the mean of (response time − [`ModelledResponse::constant`]), estimated from the differences between
    /// measurements.
    pub excess_variance: Option<f64>,
    /// Variance of the mean response time, estimated from the differences between measurements.
    pub response_variance: Option<f64>,
    /// Variance of the mean throughput, estimated from the differences between measurements.
    pub rate_variance: Option<f64>,
    /// Squared coefficient of variation of the CPU time of a call.
    pub work_scv: Option<WorkScv>,
    /// Number of measurements of this load, one per block.
    pub blocks: usize,
}

/// The combined measurements of each load.
pub(super) type PooledLoads = BTreeMap<OfferedLoad, PooledMeasurement>;

/// Combines the measurements of each load over all blocks. Means of rates are weighted by duration, means of response
/// times by calls.
pub(super) fn pool<'a>(blocks: impl IntoIterator<Item = &'a Vec<ReplayedMeasurement>>) -> PooledLoads {
    let mut loads: BTreeMap<OfferedLoad, Vec<&ReplayedMeasurement>> = BTreeMap::new();
    for replayed in blocks.into_iter().flatten().filter(|replayed| replayed.measurement.seconds > 0.0) {
        loads.entry(replayed.measurement.load).or_default().push(replayed);
    }
    loads.into_iter().map(|(load, replayed)| (load, pool_load(&replayed))).collect()
}

/// The combined measurement of the load that consists only of this request class.
pub(super) fn single_class_measurement(loads: &PooledLoads, class: usize) -> Option<&PooledMeasurement> {
    let is_of_class = |load: &OfferedLoad| matches!(load, OfferedLoad::SingleClass(other, _) if *other == class);
    loads.iter().rev().find_map(|(load, pooled)| is_of_class(load).then_some(pooled))
}

/// The largest number of closed-loop clients that sent the mix of request classes, and the combined measurement of this
/// load.
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
    // Leave out a disk that is missing in some measurement. Calls that need a disk would use it in every measurement.
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

/// The maximum number of workers, and the mean number of busy workers, weighted by the duration of the measurements.
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

/// The median of the values. Unlike the mean, it changes little if the server briefly stopped during one measurement.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let even = values.len().is_multiple_of(2);
    values.get(middle).map(|upper| if even { f64::midpoint(values[middle - 1], *upper) } else { *upper })
}

fn variance_of_mean(values: &[f64]) -> Option<f64> {
    Some(Moments::from_values(values)?.variance()? / values.len() as f64)
}
