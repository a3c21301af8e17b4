//! Tables of a survey's levels (the loads at which it measured the server), with predictions and measurements.

use super::clients;
use crate::format::{Column, error, figure, interval, key, narrow, percent, rate, seconds, table, words};
use brimful_core::quantity;
use brimful_core::survey::{Comparison, Level, LevelPurpose, Survey, WhatIf};

/// A table of the levels (measured loads) from which the model was calibrated: first open loads, then closed loads,
/// then loads of a single class.
pub(super) fn calibration(survey: &Survey) -> String {
    const COLUMNS: [Column<'static>; 7] = [
        words("calibration", 0),
        key(figure("load", 2, None)),
        figure("throughput", 2, None),
        figure("±", 1, None),
        figure("mean response time", 2, None),
        figure("±", 1, None),
        figure("utilization", 2, None),
    ];
    let mut levels = of_role(survey, LevelPurpose::Calibration);
    let place = |level: &Level| (level.clients.is_some(), !is_of_mix(level), level.clients);
    levels.sort_by_key(|level| place(level));
    let row = |level: &Level| {
        let (throughput, response) = (level.throughput, level.response_time_s);
        vec![
            format!("{}{}", if is_of_mix(level) { "mix".to_owned() } else { workload(level) }, doubt(level)),
            load(level),
            rate(throughput.measured),
            rate(throughput.measured_ci95_half_width),
            seconds(response.measured),
            seconds(response.measured_ci95_half_width),
            percent(level.utilization.measured),
        ]
    };
    unless_empty(&COLUMNS, levels.into_iter().map(row).collect())
}

/// Two tables of the levels (loads) that test the model's predictions. The first has mean response times, prediction
/// errors, and the share of each error that is due to changes of the host's speed. The second has the other metrics.
pub(super) fn held_out(survey: &Survey) -> String {
    const RESPONSE: [Column<'static>; 10] = [
        words("held out", 0),
        key(figure("load", 2, None)),
        figure("offered", 2, None),
        figure("predicted", 2, Some("mean response time")),
        figure("90 % interval", 2, None),
        figure("measured", 2, None),
        words("", 1),
        figure("±", 1, None),
        figure("error", 2, None),
        figure("host share", 2, None),
    ];
    const REST: [Column<'static>; 10] = [
        words("held out", 0),
        key(figure("load", 2, None)),
        figure("predicted", 2, Some("utilization")),
        figure("90 % interval", 2, None),
        figure("measured", 2, None),
        words("", 1),
        figure("predicted", 2, Some("95th percentile of response times")),
        figure("90 % interval", 2, None),
        figure("measured", 2, None),
        words("", 1),
    ];
    let levels = of_role(survey, LevelPurpose::HeldOut);
    let name = |level: &Level| [workload(level) + doubt(level), quantity::whole_percent(level.fraction)];
    let response = |level: &&Level| {
        let mean = level.response_time_s;
        let mut cells = name(level).to_vec();
        cells.push(rate(Some(level.offered)));
        cells.extend(tested(mean, seconds));
        cells.extend([seconds(mean.measured_ci95_half_width), error(mean.error), error(mean.error_drift)]);
        cells
    };
    let rest = |level: &&Level| {
        let mut cells = name(level).to_vec();
        cells.extend(tested(level.utilization, percent));
        cells.extend(tested(level.response_percentiles_s.p95, seconds));
        cells
    };
    if levels.is_empty() {
        return String::new();
    }
    let response = narrow(RESPONSE.to_vec(), levels.iter().map(response).collect(), &["±"]);
    response + "\n" + &narrow(REST.to_vec(), levels.iter().map(rest).collect(), &[])
}

/// The cells of a predicted metric: the prediction, its interval, the measured value, and a mark for whether the
/// interval contains it.
fn tested(comparison: Comparison, figure: fn(Option<f64>) -> String) -> [String; 4] {
    let mark = match comparison.is_within_interval() {
        Some(true) => "✓",
        Some(false) => "✗",
        None => "",
    };
    let between = comparison.interval90.map_or("-".to_owned(), |[low, high]| interval(low, high, figure));
    [figure(comparison.predicted), between, figure(comparison.measured), mark.to_owned()]
}

/// A table of the levels (loads) beyond the server's capacity, where throughput is lower than the offered load.
pub(super) fn past_saturation(survey: &Survey) -> String {
    const COLUMNS: [Column<'static>; 10] = [
        words("past saturation", 0),
        key(figure("load", 2, None)),
        figure("predicted", 2, Some("throughput")),
        figure("measured", 1, None),
        figure("±", 1, None),
        figure("error", 1, None),
        figure("host share", 1, None),
        figure("mean", 2, Some("response")),
        figure("pred.", 3, Some("utilization")),
        figure("meas.", 1, None),
    ];
    let row = |level: &Level| {
        let throughput = level.throughput;
        vec![
            workload(level) + doubt(level),
            load(level),
            rate(throughput.predicted),
            rate(throughput.measured),
            rate(throughput.measured_ci95_half_width),
            error(throughput.error),
            error(throughput.error_drift),
            seconds(level.response_time_s.measured),
            percent(level.utilization.predicted),
            percent(level.utilization.measured),
        ]
    };
    let rows: Vec<_> = of_role(survey, LevelPurpose::PastSaturation).into_iter().map(row).collect();
    if rows.is_empty() { String::new() } else { narrow(COLUMNS.to_vec(), rows, &["±"]) }
}

/// A table of the effects of a change of the server, predicted and measured: on its capacity, on its utilization, and
/// on the mean response time at half of the new capacity.
pub(super) fn what_if(survey: &Survey) -> String {
    const COLUMNS: [Column<'static>; 7] = [
        words("what if", 0),
        key(words("", 2)),
        figure("predicted", 2, None),
        figure("90 % interval", 2, None),
        figure("measured", 2, None),
        words("", 1),
        figure("error", 2, None),
    ];
    let Some(what_if) = &survey.what_if else { return String::new() };
    let WhatIf { change, saturation_rate, utilization, offered, response_time_s, .. } = what_if;
    let doubt = if what_if.verdict.valid { "" } else { " *" };
    let row = |name: String, comparison: Comparison, figure: fn(Option<f64>) -> String| {
        let [predicted, between, measured, mark] = tested(comparison, figure);
        vec![format!("{}{doubt}", change), name, predicted, between, measured, mark, error(comparison.error)]
    };
    let rows = vec![
        row("capacity".to_owned(), *saturation_rate, rate),
        row("utilization".to_owned(), *utilization, percent),
        row(format!("mean response time at {}", rate(Some(*offered))), *response_time_s, seconds),
    ];
    table(&COLUMNS, &rows)
}

fn of_role(survey: &Survey, role: LevelPurpose) -> Vec<&Level> {
    survey.levels.iter().filter(|level| level.role == role).collect()
}

fn unless_empty(columns: &[Column<'_>], rows: Vec<Vec<String>>) -> String {
    if rows.is_empty() { String::new() } else { table(columns, &rows) }
}

/// Whether the level's load consists of all classes rather than a single one. Such a level is named `mix` or, if its
/// load is closed, after its number of clients.
fn is_of_mix(level: &Level) -> bool {
    level.workload == "mix" || level.clients.is_some() && level.workload.ends_with(" at once")
}

fn workload(level: &Level) -> String {
    level.workload.clone()
}

/// The load of a survey's level: the offered rate of an open load, or the number of clients of a closed load.
fn load(level: &Level) -> String {
    match level.clients {
        Some(number) => clients(number),
        None => rate(Some(level.offered)),
    }
}

/// The mark after the name of a level (load) whose measurements are not valid.
fn doubt(level: &Level) -> &'static str {
    if level.verdict.valid { "" } else { " *" }
}
