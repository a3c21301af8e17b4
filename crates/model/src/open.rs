//! Open multiclass networks: requests arrive at given rates, whatever the servers do.
//!
//! Queues under processor sharing are solved in product form (Baskett, Chandy, Muntz & Palacios, 1975), exact whatever
//! the distribution of service times, with Erlang's C for several servers; or with the approximation of Seidmann,
//! Schweitzer & Shalev-Oren (1987), which puts a queue of D/m and a delay of D·(m − 1)/m in the place of m servers.
//!
//! Under first come, first served all classes that visit wait alike: the wait of M/M/m (or of Seidmann's queue) at the
//! mean service time of the mixed stream, times (1 + scv)/2 with the scv of that stream (Allen & Cunneen, in Allen 1978;
//! for m = 1 the exact result of Pollaczek & Khinchine).
//!
//! Background work b slows a queue to 1 − b of its nominal rate. A delay station has no capacity, so no background.
//! Matrices are stations × classes, times seconds, rates per second.

use crate::ModelError;
use crate::erlang::wait_per_service;
use crate::error::non_negative;
use brimful_core::model::{Class, ClassKind, Model, Scheduling, Station, StationKind};
use serde::Serialize;
use std::{fmt, str::FromStr};

/// How several servers at one station are treated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// Exactly, by Erlang's C formula.
    #[default]
    Erlang,
    /// As one fast server and a delay; pessimistic, and what papers of the time used.
    Seidmann,
}

/// A solved network.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Solution {
    /// How it was solved.
    pub method: Method,
    /// X, by class.
    pub throughput: Vec<f64>,
    /// R, by class.
    pub response_time: Vec<f64>,
    /// Time spent at the station, queued or served; stations × classes.
    pub residence: Vec<Vec<f64>>,
    /// N; stations × classes.
    pub queue_length: Vec<Vec<f64>>,
    /// U, of the nominal capacity and by our classes alone; stations × classes. Of a delay station, the number present.
    pub utilization: Vec<Vec<f64>>,
    /// The station that saturates first; empty if none ever does.
    pub bottleneck: String,
    /// The rate of all classes together, at their present mix, at which it saturates; infinite (JSON: null) if never.
    pub saturation_rate: f64,
    /// R over all requests, at their present mix.
    pub mean_response_time: f64,
}

/// Solves an open network.
///
/// The mix is that of the rates; if all are zero, that of equal rates. Errors: what does not fit together, a number that
/// cannot be, a closed class, or a station that cannot keep up.
pub fn solve_open(model: &Model, method: Method) -> Result<Solution, ModelError> {
    let rates = rates(model)?;
    let (saturation_rate, bottleneck) = capacity(model, &rates);
    if let Some(i) = bottleneck {
        let utilization = rho(&model.stations[i], &model.demands[i], &rates);
        if utilization >= 1.0 {
            return Err(ModelError::Unstable { station: name(model, bottleneck), utilization, saturation_rate });
        }
    }
    let stations = || model.stations.iter().zip(&model.demands);
    let residence: Vec<Vec<f64>> = stations().map(|(s, d)| residence(s, d, &rates, method)).collect();
    let response_time: Vec<f64> = (0..rates.len()).map(|c| residence.iter().map(|r| r[c]).sum()).collect();
    let mix = mix(&rates);
    Ok(Solution {
        method,
        mean_response_time: products(&response_time, &mix).sum::<f64>() / mix.iter().sum::<f64>(),
        queue_length: residence.iter().map(|r| products(r, &rates).collect()).collect(),
        utilization: stations().map(|(s, d)| products(d, &rates).map(|busy| busy / servers(s)).collect()).collect(),
        bottleneck: name(model, bottleneck),
        throughput: rates,
        response_time,
        residence,
        saturation_rate,
    })
}

/// The rate of all classes together, at the mix of the rates, at which the first station saturates, and its name; the
/// network need not be stable. Infinite and empty if no queue has any work. The mix is as in [`solve_open`].
pub fn saturation_rate(model: &Model) -> Result<(f64, String), ModelError> {
    let (rate, bottleneck) = capacity(model, &rates(model)?);
    Ok((rate, name(model, bottleneck)))
}

/// The same, with the station's index.
fn capacity(model: &Model, rates: &[f64]) -> (f64, Option<usize>) {
    let mix = mix(rates);
    let loads = model.stations.iter().zip(&model.demands).map(|(s, d)| rho(s, d, &mix));
    let busiest = loads.enumerate().filter(|(_, load)| *load > 0.0).reduce(|a, b| if b.1 > a.1 { b } else { a });
    busiest.map_or((f64::INFINITY, None), |(i, load)| (mix.iter().sum::<f64>() / load, Some(i)))
}

/// Work offered to a queue by classes arriving at `rates`, over what its background leaves; a delay has no limit.
fn rho(station: &Station, demands: &[f64], rates: &[f64]) -> f64 {
    match station.kind {
        StationKind::Queue => products(demands, rates).sum::<f64>() / (servers(station) * (1.0 - station.background)),
        StationKind::Delay => 0.0,
    }
}

/// Time that a request of each class spends at a station with ρ < 1.
fn residence(station: &Station, demands: &[f64], rates: &[f64], method: Method) -> Vec<f64> {
    if station.kind == StationKind::Delay {
        return demands.to_vec();
    }
    let slowed = 1.0 / (1.0 - station.background);
    let wait = method.wait_per_service(station.servers, rho(station, demands, rates));
    match station.scheduling {
        Scheduling::Ps => demands.iter().map(|d| d * slowed * (1.0 + wait)).collect(),
        Scheduling::Fcfs => {
            // A class without demand does not visit, so it neither waits nor counts in the mean.
            let visits: f64 = demands.iter().zip(rates).filter(|(d, _)| **d > 0.0).map(|(_, rate)| rate).sum();
            let mean_service = if visits > 0.0 { products(demands, rates).sum::<f64>() / visits } else { 0.0 };
            let wait = wait * mean_service * (1.0 + station.scv) / 2.0;
            demands.iter().map(|d| if *d > 0.0 { (d + wait) * slowed } else { 0.0 }).collect()
        }
    }
}

impl Method {
    /// Mean wait over mean service time at exponential servers.
    fn wait_per_service(self, servers: u32, rho: f64) -> f64 {
        match self {
            Method::Erlang => wait_per_service(servers, rho),
            // D/m ÷ (1 − ρ) + D·(m − 1)/m = D·(1 + ρ/(m·(1 − ρ))).
            Method::Seidmann => rho / (f64::from(servers) * (1.0 - rho)),
        }
    }
}

/// The arrival rates of a model that makes sense.
fn rates(model: &Model) -> Result<Vec<f64>, ModelError> {
    let (stations, classes) = (model.stations.len(), model.classes.len());
    if stations == 0 || classes == 0 {
        return Err(ModelError::Shape(format!("a model needs stations and classes; it has {stations} and {classes}")));
    }
    if model.demands.len() != stations {
        let rows = model.demands.len();
        return Err(ModelError::Shape(format!("{stations} stations need as many rows of demands, not {rows}")));
    }
    for (station, demands) in model.stations.iter().zip(&model.demands) {
        check(station, demands, classes)?;
    }
    let rate = |class: &Class| match (class.kind, class.rate) {
        (ClassKind::Closed, _) => Err(ModelError::Closed { class: class.name.clone() }),
        (ClassKind::Open, None) => Err(ModelError::Shape(format!("open class `{}` needs a rate", class.name))),
        (ClassKind::Open, Some(rate)) => non_negative(rate, || format!("the rate of class `{}`", class.name)),
    };
    model.classes.iter().map(rate).collect()
}

fn check(station: &Station, demands: &[f64], classes: usize) -> Result<(), ModelError> {
    let of = |what| format!("the {what} of station `{}`", station.name);
    if demands.len() != classes {
        let (name, given) = (&station.name, demands.len());
        return Err(ModelError::Shape(format!("station `{name}` has {given} demands for {classes} classes")));
    }
    for (class, demand) in demands.iter().enumerate() {
        non_negative(*demand, || {
            format!("the demand of class {class} (counted from 0) at station `{}`", station.name)
        })?;
    }
    if station.servers == 0 {
        return Err(ModelError::Number { what: of("number of servers"), value: 0.0, need: "at least 1" });
    }
    if !(0.0..1.0).contains(&station.background) {
        let (what, value) = (of("background"), station.background);
        return Err(ModelError::Number { what, value, need: "at least 0 and below 1" });
    }
    non_negative(station.scv, || of("squared coefficient of variation"))?;
    Ok(())
}

/// In which proportion the classes come: as their rates, or alike if there are none.
fn mix(rates: &[f64]) -> Vec<f64> {
    if rates.iter().any(|r| *r > 0.0) { rates.to_vec() } else { vec![1.0; rates.len()] }
}

fn servers(station: &Station) -> f64 {
    match station.kind {
        StationKind::Queue => f64::from(station.servers),
        StationKind::Delay => 1.0,
    }
}

fn name(model: &Model, station: Option<usize>) -> String {
    station.map(|i| model.stations[i].name.clone()).unwrap_or_default()
}

fn products(a: &[f64], b: &[f64]) -> impl Iterator<Item = f64> {
    a.iter().zip(b).map(|(a, b)| a * b)
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Method::Erlang => "erlang",
            Method::Seidmann => "seidmann",
        })
    }
}

impl FromStr for Method {
    type Err = ModelError;

    fn from_str(text: &str) -> Result<Method, ModelError> {
        match text {
            "erlang" => Ok(Method::Erlang),
            "seidmann" => Ok(Method::Seidmann),
            _ => Err(ModelError::UnknownMethod(text.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn station(servers: u32, scheduling: Scheduling, scv: f64, background: f64) -> Station {
        Station { name: "CPU".into(), kind: StationKind::Queue, servers, scheduling, scv, background }
    }

    fn model(station: Station, classes: &[(f64, f64)]) -> Model {
        let class = |(i, (rate, _)): (usize, &(f64, f64))| Class {
            name: format!("c{i}"),
            kind: ClassKind::Open,
            rate: Some(*rate),
            population: None,
            think: 0.0,
        };
        Model {
            stations: vec![station],
            classes: classes.iter().enumerate().map(class).collect(),
            demands: vec![classes.iter().map(|c| c.1).collect()],
        }
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-12 * b.abs()
    }

    #[test]
    fn fcfs_is_pollaczek_khinchine_with_one_server() {
        for scv in [0.0, 0.5, 1.0, 4.0] {
            let solution = solve_open(&model(station(1, Scheduling::Fcfs, scv, 0.0), &[(7.0, 0.1)]), Method::Erlang);
            let wait = 7.0 * 0.1 * 0.1 * (1.0 + scv) / (2.0 * 0.3);
            assert!(close(solution.unwrap().response_time[0], 0.1 + wait), "scv {scv}");
        }
    }

    #[test]
    fn under_fcfs_all_who_visit_wait_alike() {
        let classes = [(1.0, 0.1), (0.5, 0.8), (100.0, 0.0)];
        let residence = solve_open(&model(station(2, Scheduling::Fcfs, 1.0, 0.0), &classes), Method::Erlang);
        let residence = residence.unwrap().residence.remove(0);
        let wait = crate::mmm_wait(1.5, 0.5 / 1.5, 2, 0.0);
        assert!(close(residence[0], 0.1 + wait) && close(residence[1], 0.8 + wait));
        assert_eq!(residence[2], 0.0);
    }

    #[test]
    fn background_is_a_slower_server() {
        for scheduling in [Scheduling::Ps, Scheduling::Fcfs] {
            for method in [Method::Erlang, Method::Seidmann] {
                let shared = solve_open(&model(station(3, scheduling, 2.0, 0.6), &[(4.0, 0.2)]), method).unwrap();
                let slower = solve_open(&model(station(3, scheduling, 2.0, 0.0), &[(4.0, 0.5)]), method).unwrap();
                assert!(close(shared.response_time[0], slower.response_time[0]));
                assert!(close(shared.saturation_rate, 3.0 * 0.4 / 0.2));
                assert!(close(shared.utilization[0][0], 4.0 * 0.2 / 3.0), "of the nominal capacity");
            }
        }
    }

    #[test]
    fn without_load_a_request_takes_its_demand_and_the_mix_is_even() {
        let solution =
            solve_open(&model(station(1, Scheduling::Fcfs, 1.0, 0.0), &[(0.0, 0.1), (0.0, 0.3)]), Method::Erlang);
        let solution = solution.unwrap();
        assert_eq!(solution.response_time, [0.1, 0.3]);
        assert!(close(solution.saturation_rate, 5.0) && close(solution.mean_response_time, 0.2));
    }

    #[test]
    fn without_a_loaded_queue_nothing_saturates() {
        let mut idle = model(station(1, Scheduling::Ps, 1.0, 0.0), &[(5.0, 2.0)]);
        idle.stations[0].kind = StationKind::Delay;
        let solution = solve_open(&idle, Method::Erlang).unwrap();
        assert_eq!((solution.saturation_rate, solution.bottleneck.as_str()), (f64::INFINITY, ""));
        assert_eq!(solution.utilization, [[10.0]], "of a delay: the number present");
        assert_eq!(saturation_rate(&idle).unwrap(), (f64::INFINITY, String::new()));
    }

    #[test]
    fn a_station_that_cannot_keep_up_is_named_with_its_limit() {
        let full = model(station(2, Scheduling::Ps, 1.0, 0.0), &[(20.0, 0.1)]);
        let error = solve_open(&full, Method::Erlang).unwrap_err();
        assert!(
            matches!(&error, ModelError::Unstable { station, utilization, .. } if station == "CPU" && *utilization == 1.0)
        );
        assert!(error.to_string().contains("`CPU`") && error.to_string().contains("20.00"), "{error}");
        assert_eq!(saturation_rate(&full).unwrap(), (20.0, "CPU".to_string()), "needs no stability");
    }

    #[test]
    fn what_makes_no_sense_is_an_error() {
        let good = || model(station(1, Scheduling::Ps, 1.0, 0.0), &[(1.0, 0.1)]);
        let broken = |f: &dyn Fn(&mut Model)| {
            let mut model = good();
            f(&mut model);
            solve_open(&model, Method::Erlang).unwrap_err().to_string()
        };
        assert!(solve_open(&good(), Method::Erlang).is_ok());
        assert!(broken(&|m| m.demands[0][0] = -0.1).contains("demand of class 0"));
        assert!(broken(&|m| m.demands[0][0] = f64::NAN).contains("NaN"));
        assert!(broken(&|m| m.demands[0].clear()).contains("0 demands for 1 classes"));
        assert!(broken(&|m| m.demands.clear()).contains("rows of demands"));
        assert!(broken(&|m| m.classes.clear()).contains("needs stations and classes"));
        assert!(broken(&|m| m.classes[0].kind = ClassKind::Closed).contains("`c0` is closed"));
        assert!(broken(&|m| m.classes[0].rate = None).contains("needs a rate"));
        assert!(broken(&|m| m.classes[0].rate = Some(f64::INFINITY)).contains("rate of class `c0`"));
        assert!(broken(&|m| m.stations[0].servers = 0).contains("at least 1"));
        assert!(broken(&|m| m.stations[0].background = 1.0).contains("below 1"));
        assert!(broken(&|m| m.stations[0].scv = -1.0).contains("variation"));
    }

    #[test]
    fn methods_go_by_their_names() {
        for method in [Method::Erlang, Method::Seidmann] {
            assert_eq!(method.to_string().parse(), Ok(method));
        }
        assert!("mva".parse::<Method>().is_err());
    }
}
