//! How fast the simulator is, and whether it agrees with the solvers on 200 random networks.
//!
//! Prints both and what is required of them; exit code 1 if that is missed. One core, half a minute:
//! `cargo run --release -p brimful-bench-simulator`.
#![forbid(unsafe_code)]

#[path = "../../../../crates/model/tests/it/networks.rs"]
mod networks;

use brimful_core::model::{Class, Model, Scheduling, Station};
use brimful_model::{Method, ModelError, SimulationOptions, simulate};
use rustix::time::{ClockId, clock_gettime};
use std::process::ExitCode;
use std::time::Duration;

/// Events per second that are required, and of how many the median is taken.
const REQUIRED: f64 = 3e6;
const RUNS: usize = 5;

const NETWORKS: u64 = 200;
/// The least share of intervals that must cover the exact figure, which 95 % of them should.
const COVERED: f64 = 0.93;
/// The farthest that any figure may be from the exact one, in standard errors: of some 3000, one is at 4 by chance.
const FARTHEST: f64 = 6.0;

fn main() -> ExitCode {
    match speed().and_then(|fast| Ok(agreement()? && fast)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Events per second of two networks.
fn speed() -> Result<bool, ModelError> {
    println!("{:<42} {:>12} {:>12} {:>12}", "million events per second of one core", "least", "median", "required");
    let mut fast = true;
    for (name, model) in
        [("M/M/1, processor sharing, ρ = 0.8", mm1()), ("4 classes × 6 stations, ρ = 0.8", web_server())]
    {
        let mut rates = Vec::new();
        for seed in 0..RUNS as u64 {
            let start = cpu_time();
            let found = simulate(&model, &SimulationOptions { seed, ..events(5_000_000) })?;
            rates.push(found.run.events as f64 / (cpu_time() - start).as_secs_f64());
        }
        rates.sort_by(f64::total_cmp);
        let (least, median) = (rates[0], rates[RUNS / 2]);
        println!("{name:<42} {:>12.2} {:>12.2} {:>12.2}", least / 1e6, median / 1e6, REQUIRED / 1e6);
        fast &= median >= REQUIRED;
    }
    Ok(fast)
}

/// How often the intervals of random networks cover the exact figures.
fn agreement() -> Result<bool, ModelError> {
    let start = cpu_time();
    let (mut figures, mut covered, mut farthest, mut events_done) = (0u32, 0u32, (0.0f64, 0), 0);
    for number in 0..NETWORKS {
        let model = networks::network(number);
        let found = simulate(&model, &SimulationOptions { seed: number, ..events(1_000_000) })?;
        events_done += found.run.events;
        for error in networks::errors(&model, &found, Method::Exact)? {
            figures += 1;
            covered += u32::from(error.abs() <= 1.96);
            if error.abs() > farthest.0.abs() {
                farthest = (error, number);
            }
        }
    }
    let share = f64::from(covered) / f64::from(figures);
    let (seconds, millions) = ((cpu_time() - start).as_secs_f64(), events_done as f64 / 1e6);
    println!(
        "\n{NETWORKS} random networks against their exact solutions: {millions:.0} million events in {seconds:.0} s of CPU"
    );
    println!("  {:.1} % of {figures} intervals of 95 % cover (required: {:.0} %)", share * 100.0, COVERED * 100.0);
    println!(
        "  the farthest is {:.1} standard errors off, in network {} (required: {FARTHEST})",
        farthest.0, farthest.1
    );
    Ok(share >= COVERED && farthest.0.abs() <= FARTHEST)
}

/// CPU time of this process, which does not grow when others want the core too.
fn cpu_time() -> Duration {
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(spent.tv_sec.unsigned_abs(), spent.tv_nsec.unsigned_abs() as u32)
}

fn events(events: u64) -> SimulationOptions {
    SimulationOptions { precision: None, events, ..SimulationOptions::default() }
}

fn mm1() -> Model {
    Model {
        stations: vec![Station::default()],
        classes: vec![open(0, 80.0)],
        demands: vec![vec![0.01]],
        ..Model::default()
    }
}

/// A server of some CPUs and disks, by processor sharing and in order.
fn web_server() -> Model {
    let station = |(i, servers): (usize, u32)| Station {
        name: format!("station {i}"),
        servers,
        scheduling: if i.is_multiple_of(2) { Scheduling::Ps } else { Scheduling::Fcfs },
        ..Station::default()
    };
    let row = |scale: f64| [1.0, 1.5, 0.5, 2.0].map(|class| class * scale).to_vec();
    Model {
        stations: [4, 1, 1, 2, 1, 1].into_iter().enumerate().map(station).collect(),
        classes: [40.0, 30.0, 20.0, 10.0].into_iter().enumerate().map(|(i, rate)| open(i, rate)).collect(),
        // The busiest stations are used to 80, 69 and 69 %.
        demands: [0.0278, 0.006, 0.004, 0.012, 0.005, 0.001].map(row).to_vec(),
        ..Model::default()
    }
}

fn open(index: usize, rate: f64) -> Class {
    Class { name: format!("class {index}"), rate: Some(rate), ..Class::default() }
}
