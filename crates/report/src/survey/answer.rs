//! The short report of a survey, of about ten lines: the headline, the predicted and measured rates, the bottleneck,
//! and whether the survey is valid.

use super::conclusion::{count_correct_intervals, describe_overload, verdict};
use crate::format::{Column, error, fact, figure, interval, percent, rate, table, words, wrap};
use brimful_core::survey::{Comparison, Overload, RateUnderObjective, Survey, ThroughputByClients};

const COLUMNS: [Column<'static>; 5] = [
    words("", 0),
    figure("predicted", 2, None),
    figure("90 % interval", 2, None),
    figure("measured", 2, None),
    figure("error", 2, None),
];

/// Minimum loss of throughput without a connection pool that the report mentions, as a share of the throughput with a
/// pool. The loss must also exceed [`NOTABLE_LOSS_IN_DIFFERENCES`] times the difference between two runs with a pool,
/// which shows how much results vary on this host.
const NOTABLE_LOSS: f64 = 0.1;
const NOTABLE_LOSS_IN_DIFFERENCES: f64 = 2.0;

/// Formats the short report of a survey as text that ends in a newline.
pub(super) fn answer(survey: &Survey) -> String {
    let mut rows: Vec<Vec<String>> = survey.objectives.iter().map(objective).collect();
    rows.push(comparison("capacity", &survey.saturation_rate));
    let mut text = wrap(&survey.headline, 0) + "\n" + &table(&COLUMNS, &rows) + "\n";
    if let Some(limit) = limit(survey) {
        text += &fact("limit", &limit);
    }
    if let Some(overload) = survey.overload.filter(is_loss_notable) {
        text += &fact("overload", &describe_overload(&overload));
    }
    let (held, all) = count_correct_intervals(survey);
    if all > 0 {
        text += &fact("predictions", &format!("{held} of {all} within their 90 % interval"));
    }
    text += &verdict(survey);
    if let Some(next) = next(survey) {
        text += &fact("next", &next);
    }
    text
}

/// The table row of an objective such as `p99<50ms`. A rate that was not measured precisely is shown as an interval.
fn objective(result: &RateUnderObjective) -> Vec<String> {
    let mut row = comparison(&result.objective.replacen('<', " < ", 1), &result.rate);
    if let (None, Some([low, high])) = (result.rate.measured, result.measured_interval90) {
        row[3] = interval(low, high, rate);
    }
    row
}

fn comparison(name: &str, figures: &Comparison) -> Vec<String> {
    vec![
        name.to_owned(),
        rate(figures.predicted),
        figures.interval90.map_or("-".to_owned(), |[low, high]| interval(low, high, rate)),
        rate(figures.measured),
        error(figures.error),
    ]
}

/// Names the bottleneck, and says how busy the CPUs were at the server's capacity.
fn limit(survey: &Survey) -> Option<String> {
    let name = match survey.bottleneck.as_deref()? {
        "cpu" => "CPU",
        name => name,
    };
    let most = survey.throughput_by_clients.iter().max_by_key(|point| point.clients);
    let busy = most.and_then(|ThroughputByClients { utilization, .. }| *utilization);
    let busy = busy.map_or(String::new(), |busy| {
        let what = if name == "CPU" { "busy" } else { "of the CPUs busy" };
        format!(", {} {what}", percent(Some(busy)))
    });
    Some(format!("{name}{busy}"))
}

fn is_loss_notable(overload: &Overload) -> bool {
    let loss = overload.pooled - overload.unlimited;
    loss > (NOTABLE_LOSS * overload.pooled).max(NOTABLE_LOSS_IN_DIFFERENCES * overload.pooled_difference)
}

/// Suggests the next command: a load at 90 % of the highest rate that was measured to meet the first objective. `None`
/// if there is no such rate.
fn next(survey: &Survey) -> Option<String> {
    let objective = survey.objectives.first()?;
    let rate = objective.rate.measured.filter(|_| survey.verdict.valid)?;
    let url = &survey.url;
    let rate = (0.9 * rate).round().max(1.0);
    Some(format!("brimful load {url} --rate {rate} -d 60s --slo '{}'   # try it", objective.objective))
}
