//! Times the solvers and the simulator for `bench/planner`. Reads one request as a JSON object from standard input, and
//! prints the answer as a JSON object.
//!
//! Times are in seconds of this process's CPU clock, so that other programs on the same CPU do not affect them. The
//! program has only one thread.
#![forbid(unsafe_code)]

mod agreement;
#[path = "../../../../crates/model/tests/it/networks.rs"]
mod networks;

use brimful_core::model::Model;
use brimful_model::what_if::{Change, Scenario, curve};
use brimful_model::{Method, SimulationOptions, simulate, solve};
use rustix::time::{ClockId, clock_gettime};
use serde::Deserialize;
use serde_json::{Value, json};
use std::error::Error;
use std::fs::read_to_string;
use std::hint::black_box;
use std::io::{Read, stdin};
use std::process::ExitCode;

/// A request: the task to run.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Request {
    /// Solve a model `repetitions` times.
    Solve { model: Model, method: String, repetitions: usize },
    /// Solve a model for a range of changes, `repetitions` times.
    Curve { model: Model, change: String, repetitions: usize },
    /// Simulate a model once.
    Simulate { model: Model, events: u64, seed: u64 },
    /// Return the random networks with their exact solutions.
    Networks { networks: u64 },
    /// Compare simulations of random networks with the exact solutions.
    Agreement { networks: u64, events: u64 },
}

fn main() -> ExitCode {
    match answer() {
        Ok(answer) => {
            println!("{}", json!({ "answer": answer, "peak_rss_kib": peak_rss_kib() }));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn answer() -> Result<Value, Box<dyn Error>> {
    let mut text = String::new();
    stdin().read_to_string(&mut text)?;
    match serde_json::from_str(&text)? {
        Request::Solve { model, method, repetitions } => {
            let method: Method = method.parse()?;
            let (cpu_s, solution) = timed(repetitions, || solve(&model, method))?;
            Ok(json!({ "cpu_s": cpu_s, "solution": solution }))
        }
        Request::Curve { model, change, repetitions } => {
            let scenario = Scenario { changes: vec![change.parse::<Change>()?], ..Scenario::default() };
            let (cpu_s, curve) = timed(repetitions, || curve(&model, &scenario, Method::Auto))?;
            Ok(json!({ "cpu_s": cpu_s, "points": curve.points }))
        }
        Request::Simulate { model, events, seed } => {
            let options = SimulationOptions { seed, events, precision: None, ..SimulationOptions::default() };
            let (cpu_s, found) = timed(1, || simulate(&model, &options))?;
            Ok(json!({ "cpu_s": cpu_s, "events": found.run.events }))
        }
        Request::Networks { networks } => Ok(agreement::solved_networks(networks)?),
        Request::Agreement { networks, events } => Ok(agreement::simulate_networks(networks, events)?),
    }
}

/// Runs a task several times. Returns the CPU seconds of each run, and the last result.
fn timed<T, E>(repetitions: usize, mut what: impl FnMut() -> Result<T, E>) -> Result<(Vec<f64>, T), E> {
    let mut seconds = Vec::new();
    loop {
        let start = cpu_s();
        let result = black_box(what()?);
        seconds.push(cpu_s() - start);
        if seconds.len() >= repetitions {
            return Ok((seconds, result));
        }
    }
}

fn cpu_s() -> f64 {
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    spent.tv_sec as f64 + spent.tv_nsec as f64 * 1e-9
}

/// Peak memory of this process. It is read here, because the value that wait4 returns to the parent process includes
/// the parent's memory at the fork.
fn peak_rss_kib() -> Option<u64> {
    let status = read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?.trim().strip_suffix(" kB")?.parse().ok()
}
