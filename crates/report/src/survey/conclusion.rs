//! The conclusions of a survey in its text report, one line each.

use super::clients;
use crate::format::{NAME_COLUMN_WIDTH, error, fact, interval, number, percent, rate, seconds};
use brimful_core::quantity;
use brimful_core::survey::{
    Comparison, Connections, CostFormula, Level, LevelPurpose, ModuleMeasurements, Overload, ServerPauses, Stopped,
    Survey,
};

/// Formats all conclusions of a survey, one line each.
pub(super) fn conclusion(survey: &Survey) -> String {
    let mut text = fact("saturation", &saturation(survey));
    text += &or_nothing("intervals", intervals(survey));
    text += &or_nothing("law", laws(&survey.cost_formulas));
    text += &or_nothing("full", full(survey));
    text += &or_nothing("inside", survey.module_measurements.map(|inside| from_inside(&inside)));
    text += &or_nothing("calibration", inflicted(survey));
    text += &or_nothing("host", host(&survey.speed_by_block));
    text += &or_nothing("connections", connections(survey));
    text += &or_nothing("pauses", survey.pauses.map(|pauses| pauses_of(&pauses)));
    text += &or_nothing("overload", survey.overload.map(|overload| describe_overload(&overload)));
    if survey.client_max_rate.is_some() {
        text += &fact("client", &format!("can offer {}", rate(survey.client_max_rate)));
    } else if survey.url.starts_with("https:") {
        let what =
            "its maximum by TLS is not known: each level was judged by the generator's own lateness and CPU time";
        text += &fact("client", what);
    }
    if survey.elapsed_s.is_some() {
        text += &fact("elapsed", &seconds(survey.elapsed_s));
    }
    text += &verdict(survey);
    if survey.levels.iter().any(|level| !level.verdict.valid) {
        text += &fact("", "* a level in doubt; the report and the JSON document say why of each");
    }
    text
}

/// Says whether the survey is valid and why, and where its report is. If the survey stopped early and the reasons do
/// not say why, begins with the level (load) at which it stopped and the cause.
pub(super) fn verdict(survey: &Survey) -> String {
    let mut text = String::new();
    let is_a_reason =
        |stopped: &Stopped| survey.verdict.reasons.iter().any(|reason| reason.message.contains(&stopped.reason));
    if let Some(stopped) = survey.stopped.as_ref().filter(|stopped| !is_a_reason(stopped)) {
        text += &fact("stopped", &format!("at {}: {}", stopped.level, stopped.reason));
    }
    let verdict = match (survey.verdict.valid, survey.has_valid_measurements()) {
        (true, _) => "valid",
        (false, true) => "NOT VALID: the measurements hold, and the model does not",
        (false, false) => "NOT VALID: do not trust these numbers",
    };
    text += &fact("verdict", verdict);
    for reason in &survey.verdict.reasons {
        text += &fact("hint:", &reason.message);
    }
    if let Some(report) = &survey.report {
        // Keeps the path on one line, so that users can copy it.
        text += &format!("{:<NAME_COLUMN_WIDTH$}{report}\n", "report");
    }
    text
}

fn or_nothing(name: &str, said: Option<String>) -> String {
    said.map_or(String::new(), |said| fact(name, &said))
}

fn saturation(survey: &Survey) -> String {
    let capacity = survey.saturation_rate;
    let between = capacity.interval90.map(|[low, high]| format!(" ({})", interval(low, high, number)));
    let ci = capacity.measured_ci95_half_width.map(|half| format!(" ± {}", rate(Some(half))));
    let drift = capacity.error_drift.map(|drift| format!(", host share {}", error(Some(drift))));
    let said = format!(
        "predicted {}{}, measured {}{}, error {}{}",
        rate(capacity.predicted),
        between.unwrap_or_default(),
        rate(capacity.measured),
        ci.unwrap_or_default(),
        error(capacity.error),
        drift.unwrap_or_default()
    );
    if survey.has_valid_measurements() { said } else { format!("not determined; {said}") }
}

/// Says how many of the predicted intervals contain the measured value, for each metric and in total. Excludes loads
/// whose measurements are not valid.
fn intervals(survey: &Survey) -> Option<String> {
    let kinds = held_by_kind(survey);
    let (hold, all) = count_correct_intervals(survey);
    let parts = kinds.iter().filter(|(_, (_, all))| *all > 0);
    let parts: Vec<String> = parts.map(|(name, (hold, all))| format!("{name} {hold} of {all}")).collect();
    let doubtful = survey.levels.iter().any(|level| level.role == LevelPurpose::HeldOut && !level.verdict.valid);
    let without = if doubtful { "; levels in doubt are not counted" } else { "" };
    (all > 0).then(|| format!("{hold} of {all} hold, and 90 % should: {}{without}", parts.join(", ")))
}

/// The number of predicted intervals that contain the measured value, and the number of all predicted intervals.
pub(super) fn count_correct_intervals(survey: &Survey) -> (usize, usize) {
    held_by_kind(survey).iter().fold((0, 0), |sum, (_, one)| (sum.0 + one.0, sum.1 + one.1))
}

fn held_by_kind(survey: &Survey) -> [(&'static str, (usize, usize)); 5] {
    let levels = survey.levels.iter().filter(|level| level.role == LevelPurpose::HeldOut && level.verdict.valid);
    let levels: Vec<&Level> = levels.collect();
    let percentiles = |level: &&Level| {
        let percentiles = level.response_percentiles_s;
        [percentiles.p50, percentiles.p95, percentiles.p99]
    };
    [
        ("capacity", tally([survey.saturation_rate])),
        ("objectives", tally(survey.objectives.iter().map(|objective| objective.rate))),
        ("mean response", tally(levels.iter().map(|level| level.response_time_s))),
        ("percentiles", tally(levels.iter().flat_map(percentiles))),
        ("utilization", tally(levels.iter().map(|level| level.utilization))),
    ]
}

/// The number of intervals that contain the measured value, and the number of all intervals.
fn tally(comparisons: impl IntoIterator<Item = Comparison>) -> (usize, usize) {
    let held = comparisons.into_iter().filter_map(|comparison| comparison.is_within_interval());
    held.fold((0, 0), |(hold, all), holds| (hold + usize::from(holds), all + 1))
}

/// Describes how the CPU time per call depends on the load, by the law that fits best and the second best.
fn laws(laws: &[CostFormula]) -> Option<String> {
    let best = laws.first()?;
    let off = |law: &CostFormula| percent(Some(law.left_out_error));
    let next = laws.get(1).map(|next| format!("; next {}, {}", next.name, off(next)));
    Some(format!(
        "{}, with an error of {} for loads left out of the fit{}",
        best.name,
        off(best),
        next.unwrap_or_default()
    ))
}

/// Names the bottleneck, and the measurement that identifies it.
fn full(survey: &Survey) -> Option<String> {
    let name = survey.bottleneck.as_ref()?;
    Some(survey.bottleneck_evidence.as_ref().map_or(name.clone(), |evidence| format!("{name}: {evidence}")))
}

/// Describes how the load's clients used connections, and why; `None` for the default.
fn connections(survey: &Survey) -> Option<String> {
    (survey.connections != Connections::default()).then(|| survey.connections.to_string())
}

/// Compares the throughput of the overloaded server with and without a connection pool.
pub(super) fn describe_overload(overload: &Overload) -> String {
    let Overload { pooled, unlimited, .. } = *overload;
    format!(
        "{} through a pool; {} ({}) if each waiting call opens a connection",
        rate(Some(pooled)),
        rate(Some(unlimited)),
        error(Some(unlimited / pooled - 1.0)),
    )
}

/// Describes how often and how long the server paused.
fn pauses_of(pauses: &ServerPauses) -> String {
    let ServerPauses { per_second, per_call, mean_s, longest_s, observed } = *pauses;
    let by_time = (per_second > 0.0).then(|| format!("{} a second", quantity::number(per_second)));
    let by_calls =
        (per_call > 0.0).then(|| format!("one in {} calls", quantity::count((1.0 / per_call).round() as u64)));
    let rates: Vec<String> = by_time.into_iter().chain(by_calls).collect();
    format!(
        "{}, {} on average, up to {} ({} seen between completed calls)",
        rates.join(" and "),
        seconds(Some(mean_s)),
        seconds(Some(longest_s)),
        quantity::count(observed)
    )
}

fn inflicted(survey: &Survey) -> Option<String> {
    let asked = survey.calibration_impact?;
    let bound = |allowed: Option<String>| allowed.map_or(String::new(), |allowed| format!(" ({allowed} allowed)"));
    Some(format!(
        "mean load {}{}, up to {}, waits of up to {}{}",
        quantity::whole_percent(asked.mean_load),
        bound(asked.max_load.map(quantity::whole_percent)),
        clients(asked.max_clients),
        seconds(Some(asked.longest_wait_s)),
        bound(asked.max_delay_s.map(|delay| seconds(Some(delay))))
    ))
}

/// Says that the classes' service demands were measured inside the server, and from how many requests; with the
/// variability of service times if it is known.
fn from_inside(inside: &ModuleMeasurements) -> String {
    let mut said = format!(
        "how the classes' demands differ was measured inside the server (Server Module), in {} requests",
        quantity::count(inside.sampled)
    );
    if let Some(scv) = inside.scv {
        let half = inside.scv_ci95_half_width.map_or(String::new(), |half| format!(" ± {}", number(Some(half))));
        said += &format!("; variability of service scv {}{half}", number(Some(scv)));
        if inside.takes_turns {
            said += ", that of waits is fitted, because its workers take turns on the CPUs";
        }
    }
    if let Some((busy, workers)) = inside.workers_busy.zip(inside.workers) {
        said += &format!("; {} of {} workers busy", number(Some(busy)), quantity::count(workers));
    }
    said
}

/// Describes how much the server's speed varied between blocks (groups of successive runs) of the calibration, relative
/// to its mean.
fn host(speeds: &[f64]) -> Option<String> {
    let low = speeds.iter().copied().reduce(f64::min)?;
    let high = speeds.iter().copied().reduce(f64::max)?;
    Some(format!("speed between blocks {low:.2} … {high:.2} of its mean"))
}
