//! Judges a survey: whether it was completed, whether its load levels were measured well, and whether its model
//! predicted the later measurements. If the model's predictions are wrong, the measurements are still valid.

use crate::runner::{Halt, RunLog};
use brimful_core::Nanos;
use brimful_core::quantity::{percent, rate, signed_percent};
use brimful_core::record::{Reason, ReasonCode, Verdict};
use brimful_core::survey::{Comparison, Level, LevelPurpose, ResponsePercentiles};

/// Tolerated relative error of predicted throughput and utilization. A model is considered useful within 5 to 10 %
/// (Lazowska, Zahorjan, Graham & Sevcik, *Quantitative System Performance*, 1984).
const MAX_THROUGHPUT_ERROR: f64 = 0.1;
/// Tolerated relative error of predicted mean response times. A model is considered useful within 10 to 30 % (Lazowska,
/// Zahorjan, Graham & Sevcik, *Quantitative System Performance*, 1984).
const MAX_RESPONSE_ERROR: f64 = 0.3;
/// If the host's speed caused an error of more than this share, the verdict states the size of that error.
const NOTABLE_HOST_ERROR: f64 = 0.05;

/// Share of the saturation rate above which small errors of a service demand cause large errors of the mean response
/// time: about 7 times as large at 85 %, and 10 times as large at 90 %. Above it, a mean response time refutes the
/// model only if it is outside of the range that the prediction interval permits.
const SENSITIVE_LOAD: f64 = 0.85;

/// Minimum share of idle CPUs, on the saturated server, that the verdict mentions.
const MIN_IDLE_SHARE: f64 = 0.1;
/// Minimum CPU usage of other programs, on the saturated server, that the verdict mentions.
const MIN_OTHER_WORK: f64 = 0.05;

/// The verdict on the whole survey. `full` names a saturated resource other than the CPUs, with the evidence; `None` if
/// calibration found no such resource.
pub(crate) fn verdict(log: &RunLog, saturation: Comparison, full: Option<&str>, halt: Option<&Halt>) -> Verdict {
    let mut reasons: Vec<Reason> = halt.map(|halt| ended_early(halt, &log.step)).into_iter().collect();
    reasons.extend(log.doubts.iter().cloned());
    // Do not repeat a reason from single load levels if it already concerns the whole survey.
    let level_doubts = doubts(&log.levels).filter(|doubt| reasons.iter().all(|reason| reason.code != doubt.code));
    reasons.extend(level_doubts);
    // A measurement that cannot be trusted cannot refute a model.
    if reasons.is_empty() {
        reasons.extend(capacity_missed(&log.levels, saturation, full));
        reasons.extend(refuting_level(&log.levels));
    }
    Verdict::from_reasons(reasons)
}

fn ended_early(halt: &Halt, step: &str) -> Reason {
    match halt {
        Halt::Stopped(code, stopped) => {
            let message = format!("The survey stopped at the level «{}»: {}.", stopped.level, stopped.reason);
            Reason { code: *code, message }
        }
        Halt::Error(error) => {
            let message = format!("The survey could not be finished; at the level «{step}»: {error}.");
            Reason { code: ReasonCode::Incomplete, message }
        }
    }
}

/// A reason to distrust the survey because of invalid measurements of load levels. A few of them are only marked. The
/// survey is invalid if the measurement of the capacity is, or if more than a quarter of all levels are.
fn doubts(levels: &[Level]) -> Option<Reason> {
    let doubtful: Vec<&Level> = levels.iter().filter(|level| !level.verdict.valid).collect();
    let capacity = doubtful.iter().find(|level| measures_capacity(level));
    if capacity.is_none() && 4 * doubtful.len() <= levels.len() {
        return None;
    }
    let reason = capacity.or(doubtful.first())?.verdict.reasons.first()?;
    let message = format!("{} of {} levels are in doubt. {}", doubtful.len(), levels.len(), reason.message);
    Some(Reason { message, ..reason.clone() })
}

fn measures_capacity(level: &Level) -> bool {
    level.clients.is_some() && level.role == LevelPurpose::PastSaturation
}

/// The permitted error of a prediction, relative to the measurement.
#[derive(Clone, Copy)]
struct Tolerance {
    /// A relative error below this one is always permitted, however narrow the prediction interval is.
    least: f64,
    /// A relative error above this one is never permitted, however wide the prediction interval is.
    most: f64,
}

/// A prediction that the measurement refutes.
#[derive(Clone, Copy)]
struct Miss {
    predicted: f64,
    measured: f64,
    /// Relative error, without the part that the host's speed caused.
    model_error: f64,
}

impl Miss {
    /// Returns a miss if the measurement refutes the prediction: if it is outside of the prediction interval with
    /// doubled width, limited by the tolerance. The part of the error that the host's speed caused is not counted.
    /// `host_uncertainty` is the uncertainty of that part, relative to the measurement.
    fn from_comparison(comparison: Comparison, tolerance: Tolerance, host_uncertainty: f64) -> Option<Miss> {
        let predicted = comparison.predicted?;
        let measured = comparison.measured?;
        let model_error = comparison.model_error()?;
        let by_interval = comparison.interval90.map_or(f64::INFINITY, |[low, high]| {
            let side = if measured > predicted { high - predicted } else { predicted - low };
            (2.0 * side).max(tolerance.least * measured)
        });
        let noise = comparison.measured_ci95_half_width.unwrap_or(0.0);
        let allowed = by_interval.min(tolerance.most * measured) + noise + host_uncertainty * measured;
        let distance = comparison.error?.abs().min(model_error.abs()) * measured;
        (distance > allowed).then_some(Miss { predicted, measured, model_error })
    }
}

fn capacity_missed(levels: &[Level], saturation: Comparison, full: Option<&str>) -> Option<Reason> {
    let closed = levels.iter().find(|level| measures_capacity(level));
    // If the host's speed changed during the measurement, its mean is somewhere between the speed before and the speed
    // after the measurement.
    let host_uncertainty = closed.and_then(|closed| closed.host_speed_change).map_or(0.0, |change| change.abs() / 2.0);
    let tolerance = Tolerance { least: MAX_THROUGHPUT_ERROR / 2.0, most: MAX_THROUGHPUT_ERROR };
    let miss = Miss::from_comparison(saturation, tolerance, host_uncertainty)?;
    let cause = closed.and_then(|closed| saturated_by(closed, full)).unwrap_or_default();
    let message = format!(
        "The model does not hold: it predicted a capacity of {}, and {} was measured: {}{}.{cause} Do not plan with it.",
        rate(miss.predicted),
        rate(miss.measured),
        signed_percent(saturation.error?),
        without_host(saturation, miss.model_error),
    );
    Some(Reason { code: ReasonCode::ModelRefuted, message })
}

/// A clause with the error of the model alone, if the host's speed caused a significant part of the error.
fn without_host(comparison: Comparison, model_error: f64) -> String {
    match comparison.error_drift {
        Some(drift) if drift.abs() > NOTABLE_HOST_ERROR => {
            let model_error = signed_percent(model_error);
            format!(" ({model_error} of it the model's, because the host's speed was different then)")
        }
        _ => String::new(),
    }
}

/// A clause about the cause of the saturation, if other programs or a resource other than the CPUs contributed to it.
fn saturated_by(closed: &Level, full: Option<&str>) -> Option<String> {
    let idle = closed.cpu?.idle;
    let others = 1.0 - idle - closed.utilization.measured?;
    if idle > MIN_IDLE_SHARE {
        let shortage = match full {
            Some(full) => format!("what was full in calibration is {full}"),
            None => {
                "the server was short of something that the model does not know, like a lock, a disk, a database, or \
                     workers"
                    .to_owned()
            }
        };
        return Some(format!(" The CPUs were idle for {} of the time then: {shortage}.", percent(idle)));
    }
    (others > MIN_OTHER_WORK)
        .then(|| format!(" Something other than the server used {} of its CPUs then.", percent(others)))
}

/// The reason with the largest error of a predicted load level that refutes the model; `None` if no level refutes it.
fn refuting_level(levels: &[Level]) -> Option<Reason> {
    let tested = levels
        .iter()
        .filter(|level| level.role == LevelPurpose::HeldOut && level.verdict.valid && level.clients.is_none());
    let misses = tested.flat_map(|level| {
        predicted_metrics(level).into_iter().filter_map(move |figure| {
            let miss = Miss::from_comparison(figure.comparison, figure.tolerance, 0.0)?;
            Some((level, figure, miss))
        })
    });
    let (level, figure, miss) = misses.max_by(|a, b| a.2.model_error.abs().total_cmp(&b.2.model_error.abs()))?;
    let format_value = |value: f64| match figure.kind {
        Kind::Time => Nanos::from_secs_f64(value).to_rounded_string().to_string(),
        Kind::Share => percent(value),
    };
    let message = format!(
        "The model does not hold: at {} ({}) it predicted that {} {}, and {} was measured: {}{}. Do not plan with it.",
        rate(level.offered),
        level.workload,
        figure.phrase,
        format_value(miss.predicted),
        format_value(miss.measured),
        signed_percent(figure.comparison.error?),
        without_host(figure.comparison, miss.model_error),
    );
    Some(Reason { code: ReasonCode::ModelRefuted, message })
}

/// A predicted metric of a load level, with its measurement.
struct PredictedMetric {
    /// Subject and verb of the message's clause, such as «calls take on average». The message continues with the value.
    phrase: &'static str,
    kind: Kind,
    comparison: Comparison,
    tolerance: Tolerance,
}

enum Kind {
    Time,
    Share,
}

fn predicted_metrics(level: &Level) -> [PredictedMetric; 5] {
    // Near saturation, a mean refutes the model only if it is outside of the range that the prediction interval permits.
    let mean_tolerance = if level.fraction < SENSITIVE_LOAD {
        Tolerance { least: MAX_RESPONSE_ERROR / 2.0, most: MAX_RESPONSE_ERROR }
    } else {
        Tolerance { least: MAX_RESPONSE_ERROR, most: f64::INFINITY }
    };
    // A percentile, too, refutes the model only if it is outside of the range that the prediction interval permits. The
    // 99th percentile depends on few calls, so its tolerance is larger.
    let percentile_tolerance = Tolerance { least: MAX_RESPONSE_ERROR, most: f64::INFINITY };
    let p99_tolerance = Tolerance { least: 2.0 * MAX_RESPONSE_ERROR, most: f64::INFINITY };
    let time = |phrase, comparison, tolerance| PredictedMetric { phrase, kind: Kind::Time, comparison, tolerance };
    let ResponsePercentiles { p50, p95, p99 } = level.response_percentiles_s;
    [
        time("calls take on average", level.response_time_s, mean_tolerance),
        time("half of the calls take less than", p50, percentile_tolerance),
        time("95 % of the calls take less than", p95, percentile_tolerance),
        time("99 % of the calls take less than", p99, p99_tolerance),
        PredictedMetric {
            phrase: "the server keeps its CPUs busy for",
            kind: Kind::Share,
            comparison: level.utilization,
            tolerance: Tolerance { least: MAX_THROUGHPUT_ERROR / 2.0, most: f64::INFINITY },
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use brimful_core::survey::Survey;

    fn refuted(predicted: f64, measured: f64, interval90: [f64; 2], given_host: f64) -> bool {
        let comparison =
            Comparison { interval90: Some(interval90), ..Comparison::new(Some(predicted), Some(measured)) };
        capacity_missed(&[], comparison.with_host_prediction(Some(given_host)), None).is_some()
    }

    #[test]
    fn a_host_whose_speed_changed_during_the_measurement_refutes_nothing() {
        let example: Survey = serde_json::from_str(include_str!("../../../web/example.survey.json")).unwrap();
        let closed = example.levels.into_iter().find(measures_capacity).unwrap();
        let level = |host_speed_change| Level { host_speed_change, ..closed.clone() };
        let saturation = Comparison { interval90: Some([90.0, 110.0]), ..Comparison::new(Some(100.0), Some(87.0)) };
        let saturation = saturation.with_host_prediction(Some(100.0));
        let is_refuted = |change| capacity_missed(&[level(change)], saturation, None).is_some();
        assert!(is_refuted(None) && is_refuted(Some(0.05)));
        assert!(!is_refuted(Some(-0.2)), "the host became slower by a fifth");
    }

    #[test]
    fn a_wide_interval_excuses_nothing_and_a_slow_host_does() {
        assert!(!refuted(100.0, 104.0, [95.0, 105.0], 100.0));
        assert!(refuted(100.0, 120.0, [98.0, 102.0], 100.0), "an error beyond twice the interval refutes the model");
        assert!(
            refuted(163.0, 100.0, [130.0, 176.0], 139.0),
            "a model error of 39 % refutes the model despite a wide interval"
        );
        assert!(!refuted(130.0, 100.0, [125.0, 135.0], 104.0), "the slower host explains the error");
        assert!(!refuted(100.0, 99.0, [95.0, 105.0], 130.0), "an accurate prediction is never refuted");
    }
}
