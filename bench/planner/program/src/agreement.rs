//! Checks, on random networks, that the confidence intervals of simulated metrics contain the exact values.

use crate::networks::{errors, network};
use brimful_model::{Method, ModelError, SimulationOptions, simulate, solve};
use serde_json::{Value, json};

/// Half-width of a 95 % confidence interval, in standard errors.
const HALF_WIDTH_95: f64 = 1.96;

/// Simulates random networks and solves them exactly. Returns the number of metrics, the number of 95 % intervals that
/// contain the exact value, and the largest error, in standard errors, with the number of its network.
pub fn simulate_networks(networks: u64, events: u64) -> Result<Value, ModelError> {
    let (mut figures, mut covered, mut farthest) = (0, 0, (0.0f64, 0));
    for number in 0..networks {
        let model = network(number);
        let options = SimulationOptions { seed: number, events, precision: None, ..SimulationOptions::default() };
        for error in errors(&model, &simulate(&model, &options)?, Method::Exact)? {
            figures += 1;
            covered += u32::from(error.abs() <= HALF_WIDTH_95);
            if error.abs() > farthest.0 {
                farthest = (error.abs(), number);
            }
        }
    }
    Ok(json!({ "figures": figures, "covered": covered, "farthest_errors": farthest.0, "farthest_network": farthest.1 }))
}

/// Solves random networks exactly. Returns the networks with their solutions.
pub fn solved_networks(count: u64) -> Result<Value, ModelError> {
    let solved = |number| {
        let model = network(number);
        solve(&model, Method::Exact).map(|solution| json!({ "model": model, "solution": solution }))
    };
    (0..count).map(solved).collect()
}
