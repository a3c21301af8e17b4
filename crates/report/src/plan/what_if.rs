//! The result of `brimful plan what-if`: a model's results before and after changes, and as curves over ranges of a
//! change.

use super::shared_texts::{
    combined_class_caveats, interval_in_parentheses, interval_text, limits, objective_cells, saturation_caveat,
    time_interval,
};
use super::{interruptions, offered, requests};
use crate::format::{
    Column, error, fact, figure, key, narrow, number, percent, rate, seconds, table, without_control_characters, words,
    wrap,
};
use brimful_core::JsonSchema;
use brimful_model::what_if::{Axis, Curve, CurvePoint, ModelResults, WhatIf};
use serde::Serialize;

/// Identifier of the document's schema, and the value of [`Changed::schema`].
pub const SCHEMA: &str = "brimful.what-if/1";

/// Maximum number of points of a curve that the text shows.
const ROWS: usize = 21;
/// Maximum number of request classes whose curves the text shows.
const MAX_CLASSES: usize = 5;

/// A model before and after changes.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Changed {
    /// Identifier of the document's schema: always [`SCHEMA`].
    pub schema: String,
    /// A sentence about how the changes affect the bottleneck.
    pub headline: String,
    /// The solutions before and after the changes, and for ranges of changes.
    #[serde(flatten)]
    pub what_if: WhatIf,
    /// Curves of both models for loads from zero to saturation; absent if the loads of the models cannot be shown on
    /// one axis.
    pub load_curves: Option<LoadCurves>,
    /// Caveats about the results.
    pub caveats: Vec<String>,
}

/// Results as a function of the load, before and after the changes.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LoadCurves {
    /// The curve of the original model.
    pub before: Curve,
    /// The curve of the changed model.
    pub after: Curve,
}

impl Changed {
    /// Creates the document of a what-if analysis and writes its headline.
    pub fn new(what_if: WhatIf, load_curves: Option<LoadCurves>) -> Changed {
        let now = what_if.after.as_ref().unwrap_or(&what_if.before);
        let sensitive = now.solution.as_ref().and_then(|solution| saturation_caveat(&now.model, solution));
        let solved = now.solution.iter().flat_map(|solution| solution.caveats.iter().cloned());
        let caveats = now
            .unsolved
            .iter()
            .cloned()
            .chain(solved)
            .chain(sensitive)
            .chain(combined_class_caveats(&now.model))
            .collect();
        Changed { schema: SCHEMA.to_owned(), headline: headline(&what_if), what_if, load_curves, caveats }
    }
}

fn headline(what_if: &WhatIf) -> String {
    let before = &what_if.before;
    if let Some(curve) = &what_if.curve {
        return along(before, curve);
    }
    let Some(after) = &what_if.after else { return limits(&before.stations, before.intervals.as_ref()) + "." };
    let keeps_up = match (&after.solution, after.stations.first()) {
        (None, Some(full)) => format!(" {} cannot keep up with this load.", full.station),
        _ => String::new(),
    };
    let (Some(was), Some(now), false) = (before.stations.first(), after.stations.first(), what_if.changes.is_empty())
    else {
        return limits(&after.stations, after.intervals.as_ref()) + "." + &keeps_up;
    };
    let range =
        after.intervals.as_ref().map_or(String::new(), |intervals| interval_in_parentheses(intervals.saturation_rate));
    let moved = error(Some(now.saturation_rate / was.saturation_rate - 1.0));
    let moved_by = what_if.effect.as_ref().map_or(String::new(), |effect| {
        let share = |x: Option<f64>| error(x.map(|x| x - 1.0));
        let text = interval_text(effect.saturation_rate, share);
        if text == "-" { String::new() } else { format!(" ({text})") }
    });
    let bottleneck = if was.station == now.station {
        format!("{} stays the bottleneck", now.station)
    } else {
        format!("the bottleneck moves from {} to {}", was.station, now.station)
    };
    let (change, then) = (what_if.changes.join(" and "), requests(now.saturation_rate));
    let before = match requests(was.saturation_rate) {
        same if same == then => "as before".to_owned(),
        other => format!("instead of {other}, {moved}{moved_by}"),
    };
    format!("With {change} it can take {then}{range} {before}: {bottleneck}.{keeps_up}")
}

/// Describes how the results change between the first and the last point of a curve.
fn along(before: &ModelResults, curve: &Curve) -> String {
    let today = limits(&before.stations, before.intervals.as_ref());
    let (Some(first), Some(last), [axis]) = (curve.points.first(), curve.points.last(), curve.axes.as_slice()) else {
        return format!("{today}; {} points along {} ranges.", curve.points.len(), curve.axes.len());
    };
    let whole =
        format!("{} from {} to {}", axis.subject, axis_position(axis, first.x[0]), axis_position(axis, last.x[0]));
    let kept = curve.points.iter().take_while(|point| point.steady.is_some()).last();
    let full = curve.points.iter().find(|point| point.steady.is_none());
    match (kept, full) {
        (Some(kept), Some(full)) => format!(
            "{today}. Along {whole} it keeps up as far as {} and not at {}.",
            axis_position(axis, kept.x[0]),
            axis_position(axis, full.x[0])
        ),
        (None, Some(_)) => format!("{today}. Along {whole} it does not keep up from the start."),
        (_, None) => {
            let [from, to] = [first, last].map(|point| requests(point.saturation_rate));
            let moves = if from == to { String::new() } else { format!(", and saturation moves from {from} to {to}") };
            format!("{today}. Along {whole} it keeps up{moves}.")
        }
    }
}

/// Formats the document as text that ends in a newline.
pub fn text(changed: &Changed) -> String {
    let what_if = &changed.what_if;
    let after = what_if.after.as_ref();
    let parts = [
        wrap(&changed.headline, 0),
        after.map_or_else(String::new, |after| classes(&what_if.before, after)),
        after.map_or_else(String::new, |after| stations(&what_if.before, after)),
        what_if.curve.as_ref().map_or_else(String::new, curve),
        objectives(&what_if.before, after),
        notes(changed),
    ];
    without_control_characters(&parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n"))
}

/// A table of the response times of each request class. A class that the changes add has none before them.
fn classes(before: &ModelResults, after: &ModelResults) -> String {
    let mut columns = vec![words("class", 0), words("offered", 2), figure("before", 2, Some("mean response time"))];
    let known = before.intervals.is_some() || after.intervals.is_some();
    let interval = || if known { vec![figure("90 %", 1, None)] } else { Vec::new() };
    columns.extend(interval());
    columns.push(figure("after", 2, None));
    columns.extend(interval());
    columns.extend([figure("change", 2, None), figure("throughput", 2, Some(""))]);
    let row = |(c, class): (usize, &brimful_core::model::ModelClass)| {
        let was = before.model.classes.iter().position(|other| other.name == class.name);
        let old = was.and_then(|c| before.solution.as_ref().map(|s| s.response_time[c]));
        let new = after.solution.as_ref().map(|s| s.response_time[c]);
        let spread = |results: &ModelResults, c: Option<usize>| {
            let found = results.intervals.as_ref().zip(c).map(|(i, c)| time_interval(i.response_time[c]));
            if known { vec![found.unwrap_or("-".to_owned())] } else { Vec::new() }
        };
        let mut row = vec![class.name.clone(), offered(class), seconds(old)];
        row.extend(spread(before, was));
        row.push(seconds(new));
        row.extend(spread(after, Some(c)));
        row.push(error(old.zip(new).map(|(old, new)| new / old - 1.0)));
        row.push(rate(after.solution.as_ref().map(|s| s.throughput[c])));
        row
    };
    let rows = after.model.classes.iter().enumerate().map(row).collect();
    narrow(columns, rows, &["throughput", "90 %", "90 %", "offered"])
}

fn stations(before: &ModelResults, after: &ModelResults) -> String {
    let columns = [
        words("station", 0),
        figure("before", 2, Some("in use")),
        figure("after", 1, None),
        figure("before", 3, Some("saturates at")),
        figure("after", 1, None),
    ];
    let row = |limit: &brimful_model::StationLimit| {
        let was = before.stations.iter().find(|other| other.station == limit.station);
        vec![
            limit.station.clone(),
            percent(was.map(|was| was.utilization)),
            percent(Some(limit.utilization)),
            rate(was.map(|was| was.saturation_rate)),
            rate(Some(limit.saturation_rate)),
        ]
    };
    table(&columns, &after.stations.iter().map(row).collect::<Vec<_>>())
}

fn curve(curve: &Curve) -> String {
    let mut columns: Vec<Column<'_>> = curve.axes.iter().map(|axis| key(figure(&axis.subject, 2, None))).collect();
    columns[0].gap = 0;
    columns.extend([figure("saturates", 2, None), words("at", 2)]);
    let names = &curve.classes;
    // Shows only the first classes; the JSON document contains all.
    let shown = names.len().min(MAX_CLASSES);
    for (c, name) in names.iter().take(shown).enumerate() {
        columns.push(figure(name, 2, (c == 0).then_some("mean response time")));
    }
    if names.len() > 1 {
        columns.push(figure("all", 2, None));
    }
    let row = |point: &CurvePoint| {
        let mut row: Vec<String> = curve.axes.iter().zip(&point.x).map(|(axis, x)| axis_position(axis, *x)).collect();
        row.extend([rate(Some(point.saturation_rate).filter(|r| r.is_finite())), point.bottleneck.clone()]);
        let steady = point.steady.as_ref();
        row.extend((0..shown).map(|c| steady.map_or("full".to_owned(), |s| seconds(Some(s.response_time[c])))));
        if names.len() > 1 {
            row.push(steady.map_or("full".to_owned(), |s| seconds(Some(s.mean_response_time))));
        }
        row
    };
    let every = curve.points.len().div_ceil(ROWS);
    let rows: Vec<Vec<String>> = curve.points.iter().step_by(every.max(1)).map(row).collect();
    let mut text = table(&columns, &rows);
    if every > 1 {
        text += &format!("(one point in {every} of {}; --csv writes them all)\n", curve.points.len());
    }
    text
}

/// Formats a position on the axis of a curve, in the axis's unit.
pub(super) fn axis_position(axis: &Axis, x: f64) -> String {
    match axis.unit.as_str() {
        "1/s" => rate(Some(x)),
        "s" => seconds(Some(x)),
        "%" => error(Some(x / 100.0)),
        "bit/s" if x >= 1e9 => number(Some(x / 1e9)) + " Gbit/s",
        "bit/s" if x >= 1e6 => number(Some(x / 1e6)) + " Mbit/s",
        "bit/s" if x >= 1e3 => number(Some(x / 1e3)) + " kbit/s",
        unit => number(Some(x)) + unit,
    }
}

fn objectives(before: &ModelResults, after: Option<&ModelResults>) -> String {
    if before.headroom.is_empty() {
        return String::new();
    }
    let mut columns = vec![words("objective", 0), figure("now", 2, Some("before")), words("met up to", 2)];
    if after.is_some() {
        columns.extend([figure("now", 2, Some("after")), words("met up to", 2)]);
    }
    let rows = before.headroom.iter().enumerate().map(|(i, headroom)| {
        let known = |results: &ModelResults| results.intervals.as_ref().map(|intervals| intervals.headroom[i]);
        let mut row = vec![headroom.slo.to_string()];
        row.extend(objective_cells(headroom, known(before)));
        if let Some(after) = after {
            row.extend(objective_cells(&after.headroom[i], known(after)));
        }
        row
    });
    narrow(columns, rows.collect(), &["now", "now"])
}

fn notes(changed: &Changed) -> String {
    let what_if = &changed.what_if;
    let now = what_if.after.as_ref().unwrap_or(&what_if.before);
    let mut text = String::new();
    for change in &what_if.changes {
        text += &fact("change", change);
    }
    text += &interruptions(&now.model, now.solution.as_ref().map(|solution| solution.throughput.as_slice()));
    if let Some(solution) = &now.solution {
        text += &fact("method", &format!("{}: {}", solution.method, solution.why));
    }
    if let Some(intervals) = &now.intervals {
        let unstable = match intervals.unstable_share {
            share if share > 0.0 => format!("; in {} of them it cannot keep up", percent(Some(share))),
            _ => String::new(),
        };
        let what = format!("90 %, from {} draws of the demands{unstable}", intervals.draws);
        text += &fact("intervals", &what);
    }
    for caveat in &changed.caveats {
        text += &fact("beware", caveat);
    }
    text
}
