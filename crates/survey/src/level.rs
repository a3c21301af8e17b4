//! Converts the measurement of a load level (a load at some share of the capacity) to a level of the survey's document,
//! with predictions and measurements side by side.

use crate::trial::Trial;
use brimful_core::moments::Moments;
use brimful_core::record::Verdict;
use brimful_core::server::CpuShares;
use brimful_core::survey::{Comparison, Level, LevelClass, LevelPurpose, ResponsePercentiles};
use brimful_core::workload::{Load, Workload};
use brimful_estimate::{PredictedMeasurement, PredictedValue, Prediction, ResponseSummary};

/// Minimum number of throughput samples for a confidence interval.
const MIN_SAMPLES: u64 = 3;

/// The host's speed during the measurement of a load level, relative to its speed during calibration.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HostSpeed {
    /// Mean of the speeds before and after the measurement. If only one speed is known, that speed; `None` if none is.
    pub mean: Option<f64>,
    /// The speed after the measurement minus the speed before it; `None` unless both are known.
    pub change: Option<f64>,
}

/// Facts about a measured load level that are not in its Record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LevelContext<'a> {
    /// Purpose of the measurement: calibration, test of the model, or measurement past saturation.
    pub role: LevelPurpose,
    /// Name of the workload in the document, such as `mix`.
    pub workload: &'a str,
    /// The saturation rate, in calls per second. In the document, loads are shares of this rate.
    pub saturation: f64,
    /// Prediction for a host with constant speed; `None` without a prediction.
    pub predicted: Option<&'a Prediction>,
    /// Prediction for a host whose speed varies as during calibration; `None` without such a prediction.
    pub expected: Option<&'a PredictedMeasurement>,
    /// Speed of the host during the measurement, and its effect on response times.
    pub host_conditions: HostConditions,
}

/// Speed of the host during the measurement of a load level, and its effect on response times.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HostConditions {
    /// Speed of the host, measured with anchors (short loads) before and after the load level.
    pub speed: HostSpeed,
    /// Response times that the model predicts for the arrivals of this measurement, at the measured speed of the host.
    pub response: Option<ResponseSummary>,
}

impl<'a> LevelContext<'a> {
    /// The context of a load of calibration, which has no prediction.
    pub fn calibration(workload: &'a str, saturation: f64) -> LevelContext<'a> {
        let host_conditions = HostConditions::default();
        LevelContext {
            role: LevelPurpose::Calibration,
            workload,
            saturation,
            predicted: None,
            expected: None,
            host_conditions,
        }
    }

    /// The context of a load above the saturation rate.
    pub fn past_saturation(saturation: f64, predicted: &'a Prediction, speed: HostSpeed) -> LevelContext<'a> {
        LevelContext {
            role: LevelPurpose::PastSaturation,
            workload: "mix",
            saturation,
            predicted: Some(predicted),
            expected: None,
            host_conditions: HostConditions { speed, response: None },
        }
    }

    /// Converts the measurement of `workload` to a level of the document. `servers` is the number of the server's CPUs.
    pub fn level(&self, trial: &Trial, workload: &Workload, servers: u32) -> Level {
        let record = &trial.record;
        let planned_rate = match workload.load {
            Some(Load::Open { rate, .. }) => rate.0,
            _ => record.rates.offered,
        };
        let clients = match workload.load {
            Some(Load::Closed { clients, .. }) => Some(clients),
            _ => None,
        };
        let mut reasons = trial.verdict(servers).reasons;
        // An open load above the saturation rate is expected to have failures, so they are no reason to distrust it.
        if self.role != LevelPurpose::PastSaturation || clients.is_some() {
            reasons.extend(trial.failures());
        }
        Level {
            fraction: planned_rate / self.saturation.max(1e-9),
            offered: record.rates.offered,
            role: self.role,
            workload: self.workload.to_owned(),
            clients,
            window_s: record.window_s,
            throughput: Comparison {
                measured_ci95_half_width: record
                    .reply_rate
                    .ci95_half_width
                    .filter(|_| record.reply_rate.samples >= MIN_SAMPLES),
                ..Comparison::new(self.predicted.map(|it| it.throughput), Some(record.rates.completed))
            },
            response_time_s: self.response_time(trial),
            steady_response_s: self.predicted.and_then(|prediction| prediction.response),
            host_speed: self.host_conditions.speed.mean,
            host_speed_change: self.host_conditions.speed.change,
            response_percentiles_s: self.response_percentiles(trial),
            utilization: self.utilization(trial, servers),
            cpu: trial.cpu_shares(),
            error_share: trial.error_share(),
            lateness_p50_s: record.lateness_us.map(|lateness| lateness.p50 / 1e6),
            lateness_p99_s: record.lateness_us.map(|lateness| lateness.p99 / 1e6),
            verdict: Verdict { valid: reasons.is_empty(), reasons, ..record.verdict },
            classes: self.classes(trial, workload),
        }
    }

    fn response_time(&self, trial: &Trial) -> Comparison {
        let expected = self.expected.map(|expected| expected.response);
        let predicted = self.predicted.and_then(|prediction| prediction.response);
        Comparison {
            measured_ci95_half_width: trial.record.response_mean_ci95_us.map(|us| us / 1e6),
            ..compare(expected, predicted, trial.mean_response_time())
                .with_host_prediction(self.host_conditions.response.map(|times| times.mean))
        }
    }

    fn response_percentiles(&self, trial: &Trial) -> ResponsePercentiles {
        let measured_us = trial.record.response_time_us;
        let comparison = |index: usize, measured_us: Option<f64>| {
            let expected = self.expected.map(|expected| expected.percentiles[index]);
            let on_this_host = self.host_conditions.response.map(|times| times.percentiles[index]);
            compare(expected, None, measured_us.map(|us| us / 1e6)).with_host_prediction(on_this_host)
        };
        ResponsePercentiles {
            p50: comparison(0, measured_us.map(|times| times.p50)),
            p95: comparison(1, measured_us.map(|times| times.p95)),
            p99: comparison(2, measured_us.map(|times| times.p99)),
        }
    }

    fn utilization(&self, trial: &Trial, servers: u32) -> Comparison {
        let measured = trial.busy_cpus().map(|busy| busy / f64::from(servers));
        let predicted = self.predicted.map(|prediction| prediction.utilization);
        let comparison = compare(self.expected.map(|expected| expected.utilization), predicted, measured);
        let on_this_host =
            comparison.predicted.zip(self.host_conditions.speed.mean).map(|(busy, speed)| (busy / speed).min(1.0));
        comparison.with_host_prediction(on_this_host)
    }

    fn classes(&self, trial: &Trial, workload: &Workload) -> Vec<LevelClass> {
        let record = &trial.record;
        let predicted = self.predicted.and_then(|prediction| prediction.class_response_times.as_ref());
        let mut classes = Vec::new();
        for (index, class) in workload.classes.iter().enumerate() {
            let Some(measured) = record.classes.get(&class.name).filter(|class| class.counts.scheduled > 0) else {
                continue;
            };
            let mean = measured.response_time_us.map(|summary| summary.mean / 1e6);
            let predicted = predicted.and_then(|responses| responses.get(index).copied()).filter(|_| mean.is_some());
            classes.push(LevelClass {
                name: class.name.clone(),
                throughput: measured.counts.completed as f64 / record.duration_s.max(1e-9),
                response_time_s: Comparison::new(predicted, mean),
            });
        }
        classes
    }
}

/// Compares a prediction with the measurement. The prediction is the median of `expected`, or `predicted` if there is
/// no `expected`.
fn compare(expected: Option<PredictedValue>, predicted: Option<f64>, measured: Option<f64>) -> Comparison {
    Comparison {
        interval90: expected.map(|spread| spread.interval90),
        ..Comparison::new(expected.map(|spread| spread.median).or(predicted), measured)
    }
}

/// Merges the measurements of each calibration load in all blocks into one level.
pub(crate) fn merge_by_load(runs: &[Level]) -> Vec<Level> {
    let is_same_place = |a: &Level, b: &Level| {
        a.workload == b.workload && (a.clients.is_some() || (a.fraction - b.fraction).abs() < 1e-6)
    };
    let mut places: Vec<Vec<&Level>> = Vec::new();
    for run in runs {
        match places.iter_mut().find(|place| is_same_place(place[0], run)) {
            Some(place) => place.push(run),
            None => places.push(vec![run]),
        }
    }
    places.iter().map(|runs| pool(runs)).collect()
}

/// Merges the measurements of one load into one level. Shares and rates are means weighted by time, and response times
/// are means weighted by calls.
fn pool(runs: &[&Level]) -> Level {
    let by_time = |figure: &dyn Fn(&Level) -> Option<f64>| weighted_mean(runs, &|run| run.window_s, figure);
    let by_calls = |figure: &dyn Fn(&Level) -> Option<f64>| weighted_mean(runs, &completed_calls, figure);
    let measured = |value: Option<f64>| Comparison { measured: value, ..Comparison::default() };
    let mut whole = runs[0].clone();
    whole.window_s = runs.iter().map(|run| run.window_s).sum();
    whole.offered = by_time(&|run| Some(run.offered)).unwrap_or(0.0);
    whole.fraction = by_time(&|run| Some(run.fraction)).unwrap_or(0.0);
    whole.throughput = Comparison {
        measured_ci95_half_width: ci95_half_width(runs.iter().filter_map(|run| run.throughput.measured)),
        ..measured(by_time(&|run| run.throughput.measured))
    };
    whole.utilization = measured(by_time(&|run| run.utilization.measured));
    whole.response_time_s = Comparison {
        measured_ci95_half_width: ci95_half_width(runs.iter().filter_map(|run| run.response_time_s.measured)),
        ..measured(by_calls(&|run| run.response_time_s.measured))
    };
    // The exact percentiles of all runs together are unknown. Their mean weighted by calls is a good approximation if
    // the runs are similar.
    whole.response_percentiles_s = ResponsePercentiles {
        p50: measured(by_calls(&|run| run.response_percentiles_s.p50.measured)),
        p95: measured(by_calls(&|run| run.response_percentiles_s.p95.measured)),
        p99: measured(by_calls(&|run| run.response_percentiles_s.p99.measured)),
    };
    whole.error_share = by_calls(&|run| Some(run.error_share)).unwrap_or(0.0);
    let optional_share = |share: &dyn Fn(&CpuShares) -> Option<f64>| by_time(&|run| run.cpu.as_ref().and_then(share));
    let share = |share: &dyn Fn(&CpuShares) -> f64| optional_share(&|cpu| Some(share(cpu))).unwrap_or(0.0);
    whole.cpu = whole.cpu.map(|_| CpuShares {
        user: share(&|cpu| cpu.user),
        system: share(&|cpu| cpu.system),
        idle: share(&|cpu| cpu.idle),
        steal: share(&|cpu| cpu.steal),
        interrupt: optional_share(&|cpu| cpu.interrupt),
        io_wait: optional_share(&|cpu| cpu.io_wait),
    });
    for class in &mut whole.classes {
        let same_class = |run: &Level| run.classes.iter().find(|other| other.name == class.name).cloned();
        let response_time_s = by_calls(&|run| same_class(run)?.response_time_s.measured);
        let throughput = by_time(&|run| Some(same_class(run)?.throughput));
        class.response_time_s = measured(response_time_s);
        class.throughput = throughput.unwrap_or(0.0);
    }
    whole.verdict = verdict_of_most(runs);
    whole
}

fn completed_calls(run: &Level) -> f64 {
    run.throughput.measured.unwrap_or(0.0) * run.window_s
}

fn weighted_mean(
    runs: &[&Level],
    weight: &dyn Fn(&Level) -> f64,
    figure: &dyn Fn(&Level) -> Option<f64>,
) -> Option<f64> {
    let mut sum = 0.0;
    let mut weights = 0.0;
    for run in runs {
        if let Some(value) = figure(run) {
            sum += value * weight(run);
            weights += weight(run);
        }
    }
    (weights > 0.0).then(|| sum / weights)
}

/// The verdict on several runs: valid unless most of the runs are invalid.
fn verdict_of_most(runs: &[&Level]) -> Verdict {
    let mut doubtful = runs.iter().filter(|run| !run.verdict.valid);
    let first = doubtful.next();
    match first {
        Some(first) if 2 * (1 + doubtful.count()) > runs.len() => first.verdict.clone(),
        _ => Verdict { valid: true, reasons: Vec::new(), ..runs[0].verdict },
    }
}

/// Half width of the 95 % confidence interval of the mean, for normally distributed values. `None` for fewer than three
/// values.
fn ci95_half_width(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.collect();
    let moments = Moments::from_values(&values).filter(|_| values.len() > 2)?;
    Some(2.0 * moments.standard_error()?)
}
