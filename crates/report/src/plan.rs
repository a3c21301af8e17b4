//! Reports of the capacity planner's results: documents, and texts. A document contains the queueing model and the
//! results of the crate `brimful-model`.
//!
//! A text begins with a sentence; tables follow, and then methods and caveats. Lines are at most 100 columns wide.

/// Reports of models calibrated from runs.
pub mod calibration;
/// Reports of predicted arrivals.
pub mod forecast;
mod shared_texts;
/// Reports of models calibrated from access logs.
pub mod site;
/// Reports of solved models.
pub mod solution;
/// Reports of changes to a model.
pub mod what_if;

use crate::format::{fact, number, percent, seconds};
use brimful_core::model::{ClassKind, Model, ModelClass, Scheduling, Station, StationKind};
use brimful_model::{Estimate, interrupted_share};

/// Formats a rate in requests per second: `123 req/s`.
fn requests(rate: f64) -> String {
    number(Some(rate)) + " req/s"
}

/// Formats the load of a request class: `54.9/s` if the class is open, or `20 customers` if it is closed.
fn offered(class: &ModelClass) -> String {
    match class.kind {
        ClassKind::Open => crate::format::rate(class.rate),
        ClassKind::Closed => {
            let customers = match class.population {
                Some(1) => "1 customer".to_owned(),
                n => n.map_or("-".to_owned(), |n| format!("{n} customers")),
            };
            if class.think > 0.0 { format!("{customers}, think {}", seconds(Some(class.think))) } else { customers }
        }
    }
}

/// Describes a station's servers, queueing discipline and variability: `2 × PS`, `FCFS, scv 0.40`, `delay`. The scv is
/// the squared coefficient of variation of the service times.
fn kind(station: &Station) -> String {
    if station.kind == StationKind::Delay {
        return "delay".to_owned();
    }
    let mut text = if station.servers > 1 { format!("{} × ", station.servers) } else { String::new() };
    text += match station.scheduling {
        Scheduling::Ps => "PS",
        Scheduling::Fcfs => "FCFS",
        Scheduling::Priority => "priority",
        Scheduling::Preemptive => "preemptive",
    };
    if !station.rate_multipliers.is_empty() {
        text += ", load-dependent";
    }
    if let Some(total) = station.total_scv {
        text += &format!(", total scv {}", number(Some(total)));
    } else if station.scheduling != Scheduling::Ps && station.scv != 1.0 {
        text += &format!(", scv {}", number(Some(station.scv)));
    }
    if station.background > 0.0 {
        text += &format!(", {} taken", percent(Some(station.background)));
    }
    if station.interruptions.is_some() {
        text += ", interrupted";
    }
    text
}

/// Describes the interruptions of each station that has any, in one line per station. `throughput` contains the
/// completed requests per second of each class; without it, the share of time in interruptions is left out.
fn interruptions(model: &Model, throughput: Option<&[f64]>) -> String {
    let line = |(station, demands): (&Station, &Vec<f64>)| {
        let it = station.interruptions?;
        let share = throughput.map(|rates| interrupted_share(station, demands, rates));
        let rates = [(it.per_second, "per second"), (it.per_call, "per request")];
        let rates: Vec<String> = rates
            .into_iter()
            .filter(|(rate, _)| *rate > 0.0)
            .map(|(rate, unit)| format!("{} {unit}", number(Some(rate))))
            .collect();
        let rates = if rates.is_empty() { "none".to_owned() } else { rates.join(" and ") };
        let share = share.map_or_else(String::new, |share| format!(", {} of the time", percent(Some(share))));
        let length = seconds(Some(it.mean_length));
        Some(fact("interrupted", &format!("{}: {rates}, of {length} on average{share}", station.name)))
    };
    model.stations.iter().zip(&model.demands).filter_map(line).collect()
}

/// Formats an estimate, and separately the half width of its 95 % confidence interval.
fn with_half_width(estimate: &Estimate, format: fn(Option<f64>) -> String) -> [String; 2] {
    [format(Some(estimate.value)), format(estimate.ci95_half_width)]
}
