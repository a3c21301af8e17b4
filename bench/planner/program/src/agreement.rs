//! Whether simulations of random networks agree with their exact solutions within the intervals that they state.

use crate::networks::{errors, network};
use brimful_model::{Method, ModelError, SimulationOptions, simulate, solve};
use serde_json::{Value, json};

/// Standard errors of a 95 % interval.
const INTERVAL: f64 = 1.96;

/// How many figures were compared, how many intervals cover the exact one, and which is the farthest from it.
pub fn simulated(networks: u64, events: u64) -> Result<Value, ModelError> {
    let (mut figures, mut covered, mut farthest) = (0, 0, (0.0f64, 0));
    for number in 0..networks {
        let model = network(number);
        let options = SimulationOptions { seed: number, events, precision: None, ..SimulationOptions::default() };
        for error in errors(&model, &simulate(&model, &options)?, Method::Exact)? {
            figures += 1;
            covered += u32::from(error.abs() <= INTERVAL);
            if error.abs() > farthest.0 {
                farthest = (error.abs(), number);
            }
        }
    }
    Ok(json!({ "figures": figures, "covered": covered, "farthest_errors": farthest.0, "farthest_network": farthest.1 }))
}

/// The networks, and their exact solutions.
pub fn networks_solved(networks: u64) -> Result<Value, ModelError> {
    let solved = |number| {
        let model = network(number);
        solve(&model, Method::Exact).map(|solution| json!({ "model": model, "solution": solution }))
    };
    (0..networks).map(solved).collect()
}
