//! The result of `brimful plan calibrate`: a queueing model whose service demands are estimated from Records (result
//! documents of runs).

use super::shared_texts::headline;
use super::{kind, requests};
use crate::format::{fact, figure, number, percent, rate, seconds, table, without_control_characters, words, wrap};
use brimful_core::JsonSchema;
use brimful_core::model::StationKind;
use brimful_core::quantity::count;
use brimful_estimate::calibrate::{InsideDemand, InsideDemands, SizeDemand, Source};
use brimful_estimate::demand::LoadShape;
use brimful_estimate::usl::PeakBasis;
use brimful_estimate::{Calibrated, Interval, ScvBasis, UslFit};
use brimful_model::StationLimit;
use serde::Serialize;

/// Identifier of the document's schema, and the value of [`Calibration::schema`].
pub const SCHEMA: &str = "brimful.calibration/1";

/// A queueing model calibrated from Records (result files of runs).
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Calibration {
    /// Identifier of the document's schema: always [`SCHEMA`].
    pub schema: String,
    /// A sentence that names the bottleneck and the rate at which it saturates.
    pub headline: String,
    /// The rate at which each station saturates, in the order in which the stations saturate.
    pub limits: Vec<StationLimit>,
    /// Names of the Records (result files of runs) from which the model was calibrated. Other fields refer to a Record
    /// by its index in this list.
    pub records: Vec<String>,
    /// The model and its uncertainty.
    #[serde(flatten)]
    pub calibrated: Calibrated,
}

impl Calibration {
    /// Creates the document. `limits` are the stations' saturation rates in the calibrated model. A warning about a
    /// single run gets the name of the run's Record.
    pub fn new(mut calibrated: Calibrated, limits: Vec<StationLimit>, records: Vec<String>) -> Calibration {
        calibrated.warnings.splice(0..0, calibrated.odd.iter().map(|odd| odd.warning(&records[odd.record])));
        let headline = headline(&limits, calibrated.saturation.ci95.map(|ci| [Some(ci.low), Some(ci.high)])) + ".";
        Calibration { schema: SCHEMA.to_owned(), headline, limits, records, calibrated }
    }
}

/// Formats the document as text that ends in a newline.
pub fn text(calibration: &Calibration) -> String {
    let found = &calibration.calibrated;
    let parts = [
        wrap(&calibration.headline, 0),
        demands(found),
        found.inside.as_ref().map_or(String::new(), inside),
        stations(found),
        knees(found),
        records(calibration),
        notes(found),
    ];
    without_control_characters(&parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n"))
}

fn demands(found: &Calibrated) -> String {
    let columns = [
        words("station", 0),
        words("class", 2),
        figure("demand", 2, None),
        figure("95 % interval", 2, None),
        words("from", 2),
    ];
    let mut rows = Vec::new();
    for (k, station) in found.model.stations.iter().enumerate() {
        for (c, class) in found.model.classes.iter().enumerate() {
            rows.push(vec![
                station.name.clone(),
                class.name.clone(),
                seconds(Some(found.model.demands[k][c])),
                interval(found.uncertainty[k][c].ci95),
                source(found.uncertainty[k][c].source).to_owned(),
            ]);
        }
    }
    table(&columns, &rows)
}

/// A table that compares the CPU demands measured inside the server with those estimated by regression. The model uses
/// the measured demands.
fn inside(found: &InsideDemands) -> String {
    let columns = [
        words("class", 0),
        figure("inside", 2, None),
        figure("95 % interval", 2, None),
        figure("regression", 2, None),
        figure("95 % interval", 2, None),
        figure("ratio", 2, None),
        figure("requests", 2, None),
    ];
    let row = |class: &InsideDemand| {
        vec![
            class.class.clone(),
            seconds(Some(class.demand_s)),
            interval(class.ci95),
            seconds(class.regression_s),
            interval(class.regression_ci95),
            class.ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.3}")),
            count(class.sampled),
        ]
    };
    let rows: Vec<Vec<String>> = found.classes.iter().map(row).collect();
    let without = match &found.no_regression {
        Some(why) => format!(" There is no regression: {why}."),
        None if found.classes.iter().all(|class| class.regression_s.is_none()) => {
            " By regression the runs cannot tell the classes apart.".to_owned()
        }
        None => String::new(),
    };
    let said = "The model has the CPU demands that the Server Module measured, on the number of requests shown. The rest of \
                the CPU time is the same for every request.";
    table(&columns, &rows) + &wrap(&format!("{said}{without}"), 0)
}

/// Describes how a service demand was determined.
fn source(source: Source) -> &'static str {
    match source {
        Source::Direct => "inside the server",
        Source::SingleClassRun => "runs of it alone",
        Source::Regression => "runs of mixes",
        Source::Proportional => "a rule of proportion",
        Source::ResponseTimes => "response times",
    }
}

/// Formats an interval in the unit of its upper end: `166–176 µs`; `not known` if there is no interval.
fn interval(interval: Option<Interval>) -> String {
    let Some(Interval { low, high }) = interval else { return "not known".to_owned() };
    let high = seconds(Some(high));
    let unit = high.split_once(' ').map_or("s", |(_, unit)| unit);
    let scale = match unit {
        "µs" => 1e6,
        "ms" => 1e3,
        _ => 1.0,
    };
    format!("{}–{high}", number(Some(low * scale)))
}

fn stations(found: &Calibrated) -> String {
    let columns = [words("station", 0), words("kind", 2), figure("other work", 2, None)];
    let rows: Vec<Vec<String>> = found
        .model
        .stations
        .iter()
        .map(|station| {
            let queue = station.kind == StationKind::Queue;
            let background = percent(Some(station.background).filter(|_| queue));
            let without = brimful_core::model::Station { background: 0.0, ..station.clone() };
            vec![station.name.clone(), kind(&without), background]
        })
        .collect();
    table(&columns, &rows)
}

/// Compares the model's saturation rate with estimates that do not depend on the model.
fn knees(found: &Calibrated) -> String {
    let checks = &found.knee;
    let usl = match (&checks.usl, &checks.usl_absent) {
        (Some(UslFit { peak: Some(peak), .. }), _) => {
            let basis = match peak.basis {
                PeakBasis::Measured => "",
                PeakBasis::Extrapolated => ", which is beyond what was measured",
                PeakBasis::Doubtful => ", which is in doubt",
            };
            let [at, most] = [peak.load, peak.throughput].map(|estimate| number(Some(estimate.value)));
            format!("at most {most}/s, with {at} requests in the server{basis}")
        }
        (Some(_), _) => "throughput grows without end".to_owned(),
        (None, why) => format!("none: {}", why.as_deref().unwrap_or_default()),
    };
    let kneedle = match (&checks.knee, &checks.knee_absent) {
        (Some(knee), _) => format!("{} at {} offered", rate(Some(knee.throughput)), rate(Some(knee.load))),
        (None, why) => format!("none: {}", why.as_deref().unwrap_or_default()),
    };
    let model = rate(Some(found.saturation.rate).filter(|rate| rate.is_finite()));
    fact("knee", &format!("{model} by the model; what knows no model says:"))
        + &fact("USL", &usl)
        + &fact("Kneedle", &kneedle)
}

fn records(calibration: &Calibration) -> String {
    let found = &calibration.calibrated;
    let mut text =
        fact("records", &format!("{} of {} used", found.used.len() + found.idle.len(), calibration.records.len()));
    for idle in &found.idle {
        text += &fact("", &format!("{}: the idle server", calibration.records[*idle]));
    }
    for left in &found.left_out {
        text += &fact("left out", &format!("{}: {}", calibration.records[left.record], left.reason));
    }
    text
}

/// Explains why the model does not use the variability of service times that was measured inside the server. `None` if
/// the model uses it, or if it was not measured.
fn unused_variability(inside: &InsideDemands, basis: ScvBasis) -> Option<String> {
    let (scv, workers) = (inside.scv.filter(|_| basis != ScvBasis::Measured)?, inside.workers?);
    Some(format!(
        "scv {} as measured inside the server; its {} workers take turns on fewer CPUs, so that waits are of another \
         variability",
        number(Some(scv)),
        count(workers)
    ))
}

fn notes(found: &Calibrated) -> String {
    let mut text = String::new();
    let half = found.background.ci95_half_width.map_or(String::new(), |half| format!(" ± {}", number(Some(half))));
    let source = if found.idle.is_empty() { "fitted" } else { "measured while it was idle" };
    text += &fact(
        "background",
        &format!("{}{half} CPUs busy without requests, {source}", number(Some(found.background.value))),
    );
    text += &fact(
        "condition",
        &format!("number {}; above 30 classes could not be distinguished", number(Some(found.condition_number))),
    );
    if let Some(load) = &found.load_dependence {
        let how = match load.shape {
            LoadShape::PerSecond => {
                format!("{} CPUs are busy as soon as there are requests", number(Some(load.weight.value)))
            }
            LoadShape::Idle(_) => {
                format!("a request that finds the server idle costs up to {} more", seconds(Some(load.weight.value)))
            }
            LoadShape::Busy => format!("a request costs up to {} more under load", seconds(Some(load.weight.value))),
        };
        text += &fact("load", &format!("{how} (p = {:.2}); the model has the demands at saturation", load.p));
    }
    if let Some(SizeDemand { fit, .. }) = &found.sizes {
        let [request, kilobyte] = [fit.per_request_s.value, 1e3 * fit.per_byte_s.value].map(|s| seconds(Some(s)));
        text += &fact("size", &format!("{request} of CPU for a request and {kilobyte} for each kB that it sends"));
    }
    if let Some(rate) = found.bursts.saturation_rate {
        let most = found.bursts.runs.iter().map(|run| run.b).fold(0.0, f64::max);
        text += &fact(
            "bursts",
            &format!("at the burstiest that was measured (b = {most:.2}) it saturates at {}", requests(rate)),
        );
    }
    if let Some(response) = &found.response {
        let scv = match response.basis {
            ScvBasis::Measured => {
                let half = response
                    .scv_standard_error
                    .map_or(String::new(), |error| format!(" ± {}", number(Some(1.96 * error))));
                format!("variability of service measured inside the server, scv {}{half}", number(Some(response.scv)))
            }
            ScvBasis::Fitted => format!("variability of service fitted, scv {}", number(Some(response.scv))),
            ScvBasis::TooFewPoints => "variability of service assumed exponential: too few runs to fit it".to_owned(),
            ScvBasis::Indistinct => {
                "variability of service assumed exponential: the runs' waiting times differ too little to fit it"
                    .to_owned()
            }
        };
        text += &fact("response", &format!("{} spent elsewhere; {scv}", seconds(Some(response.delay))));
        if let Some(reason) = found.inside.as_ref().and_then(|inside| unused_variability(inside, response.basis)) {
            text += &fact("service", &reason);
        }
    }
    for warning in &found.warnings {
        text += &fact("beware", warning);
    }
    text
}
