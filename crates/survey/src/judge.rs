//! Whether a survey can be trusted: that it reached its end, that its levels were measured well, and that its model
//! said what was then measured. The last is another matter than the first two: measurements that refute a model hold.

use crate::found::Halt;
use brimful_core::Nanos;
use brimful_core::quantity::{percent, rate, signed_percent};
use brimful_core::record::{Reason, ReasonCode, Verdict};
use brimful_core::survey::{Comparison, Level, ResponsePercentiles, Role};

/// A model is of use that says throughput and utilization to within this share, and mean response times to within this
/// one (Lazowska, Zahorjan, Graham & Sevcik, *Quantitative System Performance*, 1984: 5 to 10 % and 10 to 30 %).
const THROUGHPUT: f64 = 0.1;
const RESPONSE: f64 = 0.3;
/// An error of the host's that is worth a word.
const NOTABLE: f64 = 0.05;

/// Beyond this share of the saturation rate a mean response time is ten times as far off as a demand and more: nothing
/// is accepted or rejected there.
const SENSITIVE: f64 = 0.85;

/// From these shares of the CPUs on it is worth a word that they were idle while the server was saturated, or that
/// something else used them.
const IDLE: f64 = 0.1;
const OTHERS: f64 = 0.05;

/// The verdict on the levels, in whatever order, on calibration, and on the model. `full` is what that takes to be full
/// beside the CPUs, and why; `step` is where the survey was when it ended early.
pub(crate) fn verdict(
    levels: &[Level],
    of_calibration: &[Reason],
    saturation: Comparison,
    full: Option<&str>,
    halt: Option<&Halt>,
    step: &str,
) -> Verdict {
    let early = halt.map(|halt| ended_early(halt, step)).into_iter();
    let mut reasons: Vec<Reason> = early.chain(of_calibration.iter().cloned()).collect();
    // What is said of the whole is not said once more of a level.
    let said = |reason: &Reason| reasons.iter().any(|other| other.code == reason.code);
    let of_levels = doubts(levels).filter(|reason| !said(reason));
    reasons.extend(of_levels);
    // What a disturbed measurement says against a model is said of the disturbance.
    if reasons.is_empty() {
        reasons.extend(capacity_missed(levels, saturation, full).into_iter().chain(level_missed(levels)));
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

/// A few doubtful levels are marked and left at that; the survey falls with the level that measures the capacity, or
/// with many.
fn doubts(levels: &[Level]) -> Option<Reason> {
    let doubtful: Vec<&Level> = levels.iter().filter(|level| !level.verdict.valid).collect();
    let closed = |level: &&&Level| level.clients.is_some() && level.role == Role::PastSaturation;
    let capacity = doubtful.iter().find(closed);
    if capacity.is_none() && 4 * doubtful.len() <= levels.len() {
        return None;
    }
    let reason = capacity.or(doubtful.first())?.verdict.reasons.first()?;
    let message = format!("{} of {} levels are in doubt. {}", doubtful.len(), levels.len(), reason.message);
    Some(Reason { message, ..reason.clone() })
}

/// A measurement that is further from what was predicted than twice its interval (but at least `least` of itself), or
/// however wide that is, than `most` of itself. What the host did to it by being slower or faster then is not the model's
/// fault; nor is a prediction that was right refuted by what was put down to the host.
fn missed(comparison: Comparison, least: f64, most: f64) -> Option<(f64, f64, f64)> {
    let (predicted, measured, of_model) = (comparison.predicted?, comparison.measured?, comparison.error_of_model()?);
    let by_interval = comparison.interval90.map_or(f64::INFINITY, |[low, high]| {
        let side = if measured > predicted { high - predicted } else { predicted - low };
        (2.0 * side).max(least * measured)
    });
    let noise = comparison.measured_ci95_half_width.unwrap_or(0.0);
    let allowed = by_interval.min(most * measured) + noise;
    let off = comparison.error?.abs().min(of_model.abs()) * measured;
    (off > allowed).then_some((predicted, measured, of_model))
}

fn capacity_missed(levels: &[Level], saturation: Comparison, full: Option<&str>) -> Option<Reason> {
    let (predicted, measured, of_model) = missed(saturation, THROUGHPUT / 2.0, THROUGHPUT)?;
    let why = levels.iter().find(|level| level.clients.is_some() && level.role == Role::PastSaturation);
    let why = why.and_then(|closed| saturated_by(closed, full)).unwrap_or_default();
    let message = format!(
        "The model does not hold: it predicted a capacity of {}, and {} was measured: {}{}.{why} Do not plan with it.",
        rate(predicted),
        rate(measured),
        signed_percent(saturation.error?),
        apart_from_host(saturation, of_model),
    );
    Some(Reason { code: ReasonCode::ModelRefuted, message })
}

/// What is left of an error that is the host's by a notable part.
fn apart_from_host(comparison: Comparison, of_model: f64) -> String {
    match comparison.error_drift {
        Some(drift) if drift.abs() > NOTABLE => {
            format!(" ({} of it the model's, for the host had another speed then)", signed_percent(of_model))
        }
        _ => String::new(),
    }
}

/// What saturated the server, if that was not all its own work on the CPUs.
fn saturated_by(closed: &Level, full: Option<&str>) -> Option<String> {
    let idle = closed.cpu?.idle;
    let others = 1.0 - idle - closed.utilization.measured?;
    if idle > IDLE {
        let what = full.map_or(
            "the server was short of something of which the model knows nothing, like a lock, a disk, a database, or \
             workers"
                .to_owned(),
            |full| format!("what was full in calibration is {full}"),
        );
        return Some(format!(" The CPUs were idle for {} of the time then: {what}.", percent(idle)));
    }
    (others > OTHERS).then(|| format!(" Something other than the server used {} of its CPUs then.", percent(others)))
}

/// What of the held-out levels was missed by the most.
fn level_missed(levels: &[Level]) -> Option<Reason> {
    let tested = |level: &&Level| level.role == Role::HeldOut && level.verdict.valid && level.clients.is_none();
    let missed = levels.iter().filter(tested).flat_map(|level| {
        figures(level).into_iter().filter_map(move |figure| {
            let missed = missed(figure.comparison, figure.least, figure.most)?;
            Some((level, figure, missed))
        })
    });
    let (level, figure, (predicted, measured, of_model)) = missed.max_by(|a, b| a.2.2.abs().total_cmp(&b.2.2.abs()))?;
    let value = |value: f64| match figure.kind {
        Kind::Time => Nanos::from_secs_f64(value).rounded().to_string(),
        Kind::Share => percent(value),
    };
    let message = format!(
        "The model does not hold: at {} ({}) it predicted that {} {}, and {} was measured: {}{}. Do not plan with it.",
        rate(level.offered),
        level.workload,
        figure.what,
        value(predicted),
        value(measured),
        signed_percent(figure.comparison.error?),
        apart_from_host(figure.comparison, of_model),
    );
    Some(Reason { code: ReasonCode::ModelRefuted, message })
}

/// A figure of a level that was predicted, and how far off it may be.
struct Figure {
    /// As in «predicted that a call takes 3 ms on average»; the value comes after.
    what: &'static str,
    kind: Kind,
    comparison: Comparison,
    /// See [`missed`].
    least: f64,
    most: f64,
}

enum Kind {
    Time,
    Share,
}

/// Those of a level.
fn figures(level: &Level) -> [Figure; 5] {
    // Where nothing is accepted or rejected by a mean alone, it may still be beyond what was thought possible.
    let (least, most) = if level.fraction < SENSITIVE { (RESPONSE / 2.0, RESPONSE) } else { (RESPONSE, f64::INFINITY) };
    let time = |what, comparison, least, most| Figure { what, kind: Kind::Time, comparison, least, most };
    let ResponsePercentiles { p50, p95, p99 } = level.response_percentiles_s;
    [
        time("calls take on average", level.response_time_s, least, most),
        // How far percentiles may be off, their interval says; the 99th rests on few calls, and is off by more.
        time("half of the calls take less than", p50, RESPONSE, f64::INFINITY),
        time("95 % of the calls take less than", p95, RESPONSE, f64::INFINITY),
        time("99 % of the calls take less than", p99, 2.0 * RESPONSE, f64::INFINITY),
        Figure {
            what: "the server keeps its CPUs busy for",
            kind: Kind::Share,
            comparison: level.utilization,
            least: THROUGHPUT / 2.0,
            most: f64::INFINITY,
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refuted(predicted: f64, measured: f64, interval90: [f64; 2], given_host: f64) -> bool {
        let comparison =
            Comparison { interval90: Some(interval90), ..Comparison::new(Some(predicted), Some(measured)) };
        capacity_missed(&[], comparison.given_host(Some(given_host)), None).is_some()
    }

    #[test]
    fn a_wide_interval_excuses_nothing_and_a_slow_host_does() {
        assert!(!refuted(100.0, 104.0, [95.0, 105.0], 100.0));
        assert!(refuted(100.0, 120.0, [98.0, 102.0], 100.0), "beyond twice its interval");
        assert!(refuted(163.0, 100.0, [130.0, 176.0], 139.0), "39 % are the model's, within twice a wide interval");
        assert!(!refuted(130.0, 100.0, [125.0, 135.0], 104.0), "the host was slower, and so was the server");
        assert!(
            !refuted(100.0, 99.0, [95.0, 105.0], 130.0),
            "what was right is not refuted by what is put down to the host"
        );
    }
}
