//! A solved network: `brimful plan solve`.

use super::{kind, offered, requests, with_half_width};
use crate::format::{
    Column, WIDTH, fact, figure, harmless, number, percent, rate, seconds, shorten, table, words, wrap,
};
use brimful_core::model::{ClassKind, Model, Station, StationKind};
use brimful_model::{Simulation, Solution};
use schemars::JsonSchema;
use serde::Serialize;

/// The value of [`Solved::schema`].
pub const SCHEMA: &str = "brimful.solution/1";

/// A station this busy makes response times depend on the last percent of its demands.
const SENSITIVE: f64 = 0.9;

/// The document. Matrices are stations × classes, in the order of the model.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Solved {
    /// [`SCHEMA`].
    pub schema: String,
    /// In one sentence: what limits, and at which rate.
    pub headline: String,
    /// By a formula; without one these keys are missing, and only `simulation` answers.
    #[serde(flatten)]
    pub solution: Option<Solution>,
    /// By simulation, if it was asked for.
    pub simulation: Option<Simulation>,
    /// What to know before relying on the figures.
    pub caveats: Vec<String>,
    /// The network.
    pub model: Model,
}

impl Solved {
    /// The document of at least one of the two answers.
    pub fn new(
        model: Model,
        solution: Option<Solution>,
        simulation: Option<Simulation>,
        caveats: Vec<String>,
    ) -> Solved {
        let headline = solution.as_ref().map_or_else(|| simulated_only(&model), |solution| headline(&model, solution));
        let sensitive = solution.as_ref().and_then(|solution| sensitivity(&model, solution));
        let run = simulation.iter().flat_map(|s| s.run.caveats.iter().map(|caveat| format!("simulation: {caveat}")));
        let caveats = caveats.into_iter().chain(sensitive).chain(run).collect();
        Solved { schema: SCHEMA.to_owned(), headline, solution, simulation, caveats, model }
    }
}

/// What limits, and what would limit next.
pub fn headline(model: &Model, solution: &Solution) -> String {
    let mut limits: Vec<(&str, f64)> = model
        .stations
        .iter()
        .zip(&solution.station_saturation_rate)
        .filter_map(|(station, rate)| Some((station.name.as_str(), (*rate)?)))
        .collect();
    limits.sort_by(|a, b| a.1.total_cmp(&b.1));
    let Some((first, rate)) = limits.first() else {
        return "Nothing here can saturate: no queue has any work.".to_owned();
    };
    let next = limits.get(1).map(|(name, rate)| format!("; after it, {name} at {}", requests(*rate)));
    format!("{first} is the bottleneck: {}{}.", requests(*rate), next.unwrap_or_default())
}

fn simulated_only(model: &Model) -> String {
    format!("No formula settles this network of {} stations; it was simulated.", model.stations.len())
}

fn sensitivity(model: &Model, solution: &Solution) -> Option<String> {
    let total: f64 = solution.throughput.iter().sum();
    let open = model.classes.iter().all(|class| class.kind == ClassKind::Open);
    let used = total / solution.saturation_rate;
    (open && used > SENSITIVE).then(|| {
        format!(
            "{} has {} of its capacity in use: an error of 1 % in its demands moves its response times by some {:.0} %",
            solution.bottleneck,
            percent(Some(used)),
            (used / (1.0 - used)).max(1.0)
        )
    })
}

/// The document for people; ends in a newline.
pub fn text(solved: &Solved) -> String {
    let Solved { solution, simulation, model, .. } = solved;
    let (solution, simulation) = (solution.as_ref(), simulation.as_ref());
    let parts = [
        wrap(&solved.headline, 0),
        classes(model, solution, simulation),
        stations(model, solution, simulation),
        solution.map_or_else(String::new, |solution| residence(model, solution)),
        notes(solved),
    ];
    harmless(&parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n"))
}

fn classes(model: &Model, solution: Option<&Solution>, simulation: Option<&Simulation>) -> String {
    let mut columns = vec![words("class", 0), words("offered", 2)];
    if solution.is_some() {
        columns.extend([figure("throughput", 2, None), figure("response", 2, None), words("most of it at", 2)]);
    }
    if simulation.is_some() {
        let title = Some("simulated");
        columns.extend([figure("throughput", 2, title), figure("response", 2, None), figure("±", 1, None)]);
        columns.push(figure("p95", 2, None));
    }
    let mut rows: Vec<Vec<String>> = (0..model.classes.len())
        .map(|c| {
            let class = &model.classes[c];
            let mut row = vec![shorten(&class.name, 24), offered(class)];
            if let Some(solution) = solution {
                row.extend([rate(Some(solution.throughput[c])), seconds(Some(solution.response_time[c]))]);
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
    table(&columns, &rows)
}

/// Where the class spends most of its response time.
fn longest(model: &Model, solution: &Solution, class: usize) -> String {
    let whole = solution.response_time[class];
    let at = model.stations.iter().zip(&solution.residence).max_by(|a, b| a.1[class].total_cmp(&b.1[class]));
    at.filter(|_| whole > 0.0).map_or_else(String::new, |(station, residence)| {
        format!("{} {:.0}%", shorten(&station.name, 20), 100.0 * residence[class] / whole)
    })
}

fn stations(model: &Model, solution: Option<&Solution>, simulation: Option<&Simulation>) -> String {
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
            let mut row = vec![shorten(&station.name, 24), shorten(&kind(station), 32)];
            if let Some(solution) = solution {
                row.push(busy(solution.utilization[k].iter().sum()));
                row.push(number(Some(solution.queue_length[k].iter().sum())));
                row.push(rate(solution.station_saturation_rate[k]));
            }
            if let Some(simulation) = simulation {
                row.push(busy(simulation.utilization[k].iter().map(|e| e.value).sum()));
                row.push(number(Some(simulation.queue_length[k].iter().map(|e| e.value).sum())));
                // Of a sum of classes that wait together, at most the sum of the half widths.
                let half: Option<f64> = simulation.queue_length[k].iter().map(|e| e.ci95_half_width).sum();
                row.push(number(half));
            }
            row
        })
        .collect();
    table(&columns, &rows)
}

/// Time that each class spends at each station, if there are several of both and it fits.
fn residence(model: &Model, solution: &Solution) -> String {
    let names: Vec<String> = model.classes.iter().map(|class| shorten(&class.name, 16)).collect();
    let mut columns: Vec<Column<'_>> = vec![words("time at", 0)];
    columns.extend(names.iter().map(|name| figure(name, 2, None)));
    let row = |(station, residence): (&Station, &Vec<f64>)| {
        let times = residence.iter().map(|r| seconds(Some(*r).filter(|r| *r > 0.0)));
        std::iter::once(shorten(&station.name, 24)).chain(times).collect()
    };
    let rows: Vec<Vec<String>> = model.stations.iter().zip(&solution.residence).map(row).collect();
    let text = table(&columns, &rows);
    let fits = text.lines().all(|line| line.chars().count() <= WIDTH);
    if fits && rows.len() > 1 { text } else { String::new() }
}

fn notes(solved: &Solved) -> String {
    let mut text = String::new();
    if let Some(solution) = &solved.solution {
        text += &fact("method", &format!("{}: {}", solution.method, solution.why));
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
