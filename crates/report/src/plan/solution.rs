//! The result of `brimful plan solve`: a solved queueing network.

use super::shared_texts::{combined_class_caveats, limits, saturation_caveat, time_interval};
use super::{interruptions, kind, offered, requests, with_half_width};
use crate::format::{
    Column, fact, figure, narrow, number, percent, rate, seconds, table, width, without_control_characters, words, wrap,
};
use brimful_core::JsonSchema;
use brimful_core::model::{Model, Station, StationKind};
use brimful_core::quantity;
use brimful_model::{AsymptoticBounds, Curve, Intervals, ModelResults, Simulation, Solution, StationLimit};
use serde::Serialize;

/// Identifier of the document's schema, and the value of [`Solved::schema`].
pub const SCHEMA: &str = "brimful.solution/1";

/// A solved queueing network. Matrices have a row for each station and a column for each class, in the order of the
/// model.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Solved {
    /// Identifier of the document's schema: always [`SCHEMA`].
    pub schema: String,
    /// A sentence that names the bottleneck and the rate at which it saturates.
    pub headline: String,
    /// The analytic solution. If the network has none, its fields are absent, and only `simulation` has results.
    #[serde(flatten)]
    pub solution: Option<Solution>,
    /// Approximate percentiles of each class's response time. Empty without an analytic solution.
    pub response_percentiles: Vec<Percentiles>,
    /// The rate at which each station saturates, in the order in which the stations saturate.
    pub limits: Vec<StationLimit>,
    /// Upper and lower bounds of each class's throughput and response time in a closed network; empty for other
    /// networks.
    pub bounds: Vec<AsymptoticBounds>,
    /// 90 % confidence intervals of the results; absent if the demands have no intervals.
    pub intervals: Option<Intervals>,
    /// Solutions of the same model at loads from zero to saturation or, in a closed network, for growing populations.
    pub curve: Option<Curve>,
    /// Results of a simulation, if one was requested.
    pub simulation: Option<Simulation>,
    /// Caveats about the results.
    pub caveats: Vec<String>,
    /// The solved model.
    pub model: Model,
}

/// Approximate percentiles of a class's response time, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Percentiles {
    /// Median of the response time.
    pub p50: f64,
    /// 95th percentile of the response time.
    pub p95: f64,
    /// 99th percentile of the response time.
    pub p99: f64,
}

impl Solved {
    /// Creates the document of an analytic solution and writes its headline.
    pub fn new(
        results: ModelResults,
        percentiles: Vec<Percentiles>,
        bounds: Vec<AsymptoticBounds>,
        curve: Option<Curve>,
    ) -> Solved {
        let ModelResults { model, solution, stations, intervals, .. } = results;
        Solved {
            schema: SCHEMA.to_owned(),
            headline: limits(&stations, intervals.as_ref()) + ".",
            caveats: solution
                .iter()
                .flat_map(|solution| solution.caveats.iter().cloned().chain(saturation_caveat(&model, solution)))
                .chain(combined_class_caveats(&model))
                .collect(),
            solution,
            response_percentiles: percentiles,
            limits: stations,
            bounds,
            intervals,
            curve,
            simulation: None,
            model,
        }
    }

    /// Creates the document of a model that has no analytic solution; `why` is the reason.
    pub fn simulated(model: Model, why: String) -> Solved {
        Solved {
            schema: SCHEMA.to_owned(),
            headline: "No formula settles this network; it was simulated.".to_owned(),
            solution: None,
            response_percentiles: Vec::new(),
            limits: Vec::new(),
            bounds: Vec::new(),
            intervals: None,
            curve: None,
            simulation: None,
            caveats: vec![why],
            model,
        }
    }

    /// Adds the results of a simulation.
    pub fn with_simulation(mut self, simulation: Simulation) -> Solved {
        self.caveats.extend(simulation.run.caveats.iter().map(|caveat| format!("simulation: {caveat}")));
        self.simulation = Some(simulation);
        self
    }
}

/// Formats the document as text that ends in a newline.
pub fn text(solved: &Solved) -> String {
    let solution = solved.solution.as_ref();
    let model = &solved.model;
    let parts = [
        wrap(&solved.headline, 0),
        classes(solved),
        stations(solved),
        solution.map_or_else(String::new, |solution| residence(model, solution)),
        notes(solved),
    ];
    without_control_characters(&parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n"))
}

fn classes(solved: &Solved) -> String {
    let Solved { model, solution, simulation, intervals, .. } = solved;
    let mut columns = vec![words("class", 0), words("offered", 2)];
    if solution.is_some() {
        columns.extend([figure("throughput", 2, None), figure("response", 2, None)]);
        columns.extend(intervals.as_ref().map(|_| figure("90 %", 1, None)));
        columns.extend([figure("p95", 2, None), words("most of it at", 2)]);
    }
    if simulation.is_some() {
        let title = Some("simulated");
        columns.extend([figure("throughput", 2, title), figure("response", 2, None), figure("±", 1, None)]);
        columns.push(figure("p95", 2, None));
    }
    let mut rows: Vec<Vec<String>> = (0..model.classes.len())
        .map(|c| {
            let class = &model.classes[c];
            let mut row = vec![class.name.clone(), offered(class)];
            if let Some(solution) = solution {
                row.extend([rate(Some(solution.throughput[c])), seconds(Some(solution.response_time[c]))]);
                row.extend(intervals.as_ref().map(|intervals| time_interval(intervals.response_time[c])));
                row.push(seconds(solved.response_percentiles.get(c).map(|p| p.p95)));
                row.push(longest(model, solution, c));
            }
            if let Some(simulation) = simulation {
                row.push(rate(Some(simulation.throughput[c].value)));
                let response = simulation.response_time[c].as_ref();
                let [mean, half] =
                    response.map_or(["-".to_owned(), "-".to_owned()], |r| with_half_width(&r.mean, seconds));
                row.extend([mean, half, seconds(response.map(|r| r.p95.value))]);
            }
            row
        })
        .collect();
    if let (Some(solution), true) = (solution, model.classes.len() > 1) {
        let total = solution.throughput.iter().sum();
        let mean = seconds(Some(solution.mean_response_time));
        let mut row = vec!["all".to_owned(), String::new(), rate(Some(total)), mean];
        row.resize(columns.len(), String::new());
        rows.push(row);
    }
    narrow(columns, rows, &["most of it at", "90 %", "offered", "p95", "p95"])
}

/// Name of the station at which requests of a class spend most of their response time.
fn longest(model: &Model, solution: &Solution, class: usize) -> String {
    let whole = solution.response_time[class];
    let at = model.stations.iter().zip(&solution.residence).max_by(|a, b| a.1[class].total_cmp(&b.1[class]));
    at.filter(|_| whole > 0.0).map_or_else(String::new, |(station, residence)| {
        format!("{} {}", station.name.clone(), quantity::whole_percent(residence[class] / whole))
    })
}

fn stations(solved: &Solved) -> String {
    let Solved { model, solution, simulation, .. } = solved;
    let mut columns = vec![words("station", 0), words("kind", 2)];
    if solution.is_some() {
        columns.extend([figure("utilization", 2, None), figure("present", 2, None), figure("saturates at", 2, None)]);
    }
    if simulation.is_some() {
        let title = Some("simulated");
        columns.extend([figure("utilization", 2, title), figure("present", 2, None), figure("±", 1, None)]);
    }
    let rows: Vec<Vec<String>> = (0..model.stations.len())
        .map(|k| {
            let station = &model.stations[k];
            let busy = |sum: f64| if station.kind == StationKind::Delay { "-".to_owned() } else { percent(Some(sum)) };
            let mut row = vec![station.name.clone(), kind(station)];
            if let Some(solution) = solution {
                row.push(busy(solution.utilization[k].iter().sum()));
                row.push(number(Some(solution.queue_length[k].iter().sum())));
                let limit = solved.limits.iter().find(|limit| limit.station == station.name);
                row.push(rate(limit.map(|limit| limit.saturation_rate)));
            }
            if let Some(simulation) = simulation {
                row.push(busy(simulation.utilization[k].iter().map(|e| e.value).sum()));
                row.push(number(Some(simulation.queue_length[k].iter().map(|e| e.value).sum())));
                // Adds the half widths of the classes, which gives an upper bound of the half width of their sum.
                let half: Option<f64> = simulation.queue_length[k].iter().map(|e| e.ci95_half_width).sum();
                row.push(number(half));
            }
            row
        })
        .collect();
    narrow(columns, rows, &["kind"])
}

/// A table of residence times by request class and station. Empty if there is only one class or station, or if the
/// table is too wide.
fn residence(model: &Model, solution: &Solution) -> String {
    let names: Vec<String> = model.classes.iter().map(|class| class.name.clone()).collect();
    let mut columns: Vec<Column<'_>> = vec![words("time at", 0)];
    columns.extend(names.iter().map(|name| figure(name, 2, None)));
    let row = |(station, residence): (&Station, &Vec<f64>)| {
        let times = residence.iter().map(|r| seconds(Some(*r).filter(|r| *r > 0.0)));
        std::iter::once(station.name.clone()).chain(times).collect()
    };
    let rows: Vec<Vec<String>> = model.stations.iter().zip(&solution.residence).map(row).collect();
    let text = table(&columns, &rows);
    let fits = text.lines().all(|line| line.chars().count() <= width());
    if fits && rows.len() > 1 { text } else { String::new() }
}

fn notes(solved: &Solved) -> String {
    let throughput = solved.solution.as_ref().map(|solution| solution.throughput.as_slice());
    let mut text = interruptions(&solved.model, throughput);
    if let Some(solution) = &solved.solution {
        text += &fact("method", &format!("{}: {}", solution.method, solution.why));
    }
    for (class, bounds) in solved.model.classes.iter().zip(&solved.bounds) {
        let x = bounds.bounds.throughput;
        let what =
            format!("{}: {} to {} whatever the order of service", class.name, number(Some(x.lower)), requests(x.upper));
        let begins = match bounds.saturation_population {
            n if n.is_finite() => format!("; from {} customers on some must wait", number(Some(n))),
            _ => String::new(),
        };
        text += &fact("bounds", &(what + &begins));
    }
    if let Some(simulation) = &solved.simulation {
        let run = &simulation.run;
        let precision =
            run.precision.map(|p| format!("; response times and throughputs to within {}", percent(Some(p))));
        let what = format!(
            "{} events in {} of its time, seed {}{}",
            number(Some(run.events as f64)),
            seconds(Some(run.time_s)),
            run.seed,
            precision.unwrap_or_default()
        );
        text += &fact("simulation", &what);
    }
    for caveat in &solved.caveats {
        text += &fact("beware", caveat);
    }
    text
}
