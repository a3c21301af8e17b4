//! Interruptions of stations: formulas against the simulator, limits, and invalid documents.

use brimful_core::model::{ClassKind, Interruptions, Model, ModelClass, Scheduling, Station};
use brimful_model::*;

fn pauses(per_second: f64, mean_length: f64, length_scv: f64) -> Interruptions {
    Interruptions { per_second, mean_length, length_scv, ..Interruptions::default() }
}

fn cpu(servers: u32, scv: f64, interruptions: Interruptions) -> Station {
    let interruptions = Some(interruptions);
    Station { name: "cpu".into(), servers, scv, scheduling: Scheduling::Fcfs, interruptions, ..Station::default() }
}

fn open(rate: f64) -> ModelClass {
    ModelClass { name: format!("open {rate}"), rate: Some(rate), ..ModelClass::default() }
}

fn closed(population: u32, think: f64) -> ModelClass {
    let population = Some(population);
    ModelClass { name: "closed".into(), kind: ClassKind::Closed, population, think, ..ModelClass::default() }
}

fn model(station: Station, classes: &[(ModelClass, f64)]) -> Model {
    Model {
        stations: vec![station],
        classes: classes.iter().map(|(class, _)| class.clone()).collect(),
        demands: vec![classes.iter().map(|(_, demand)| *demand).collect()],
        ..Model::default()
    }
}

fn simulated(model: &Model, events: u64) -> Simulation {
    simulate(model, &SimulationOptions { events, precision: None, ..SimulationOptions::default() }).unwrap()
}

#[test]
fn explore() {
    let d = 0.001;
    for (order, name) in [(Scheduling::Fcfs, "fcfs")] {
        for servers in [1u32, 4] {
            for scv in [0.0, 1.0, 4.0] {
                for rho in [0.2, 0.5, 0.8] {
                    for (l, sigma) in [(0.002, 0.05), (0.01, 0.05)] {
                        let rate = rho * f64::from(servers) / d;
                        let it = pauses(sigma / l, l, 0.5);
                        let m = model(Station { scheduling: order, ..cpu(servers, scv, it) }, &[(open(rate), d)]);
                        let s = solve(&m, Method::Auto).unwrap();
                        let x = simulated(&m, 2_000_000);
                        let r = x.response_time[0].as_ref().unwrap();
                        let dist = response_distributions(&m, &s).unwrap();
                        let e = |q: f64, v: f64| 100.0 * (dist.percentile(None, q) / v - 1.0);
                        println!("{name} m={servers} scv={scv} rho={rho} L={l}: mean {:+.1}% (±{:.1}%) p50 {:+.1}% p95 {:+.1}% p99 {:+.1}%",
                            100.0 * (s.response_time[0] / r.mean.value - 1.0), 100.0 * r.mean.ci95_half_width.unwrap() / r.mean.value,
                            e(50.0, r.p50.value), e(95.0, r.p95.value), e(99.0, r.p99.value));
                    }
                }
            }
        }
    }
}
#[test]
#[ignore]
fn explore_closed() {
    let d = 0.001;
    for order in [Scheduling::Fcfs, Scheduling::Ps] {
    for servers in [1u32, 4] {
        for n in [1u32, 3, 10, 100] {
            for z in [0.0, 0.001, 0.01, 0.1] {
                for (l, sigma) in [(0.002, 0.1), (0.02, 0.1), (0.2, 0.1)] {
                    let it = pauses(sigma / l, l, 0.5);
                    let m = model(Station { scheduling: order, ..cpu(servers, 1.0, it) }, &[(closed(n, z), d)]);
                    let s = solve(&m, Method::Linearizer).unwrap();
                    let s2 = solve(&m, Method::Schweitzer).unwrap();
                    let x = simulated(&m, 2_000_000);
                    let r = x.response_time[0].as_ref().unwrap();
                    println!("{order:?} m={servers} n={n} z={z} L={l}: R {:+.1}% schw {:+.1}% (±{:.1}%) X {:+.1}%",
                        100.0 * (s.response_time[0] / r.mean.value - 1.0), 100.0 * (s2.response_time[0] / r.mean.value - 1.0),
                        100.0 * r.mean.ci95_half_width.unwrap() / r.mean.value,
                        100.0 * (s.throughput[0] / x.throughput[0].value - 1.0));
                }
            }
        }
    }
    }
}
