//! `brimful plan solve`: a model by a formula, and by simulation beside it.

use super::args::SolveArgs;
use super::{Places, model};
use crate::exit::Exit;
use brimful_core::model::{ClassKind, Model};
use brimful_model::{Method, ModelError, Simulation, SimulationOptions, Solution, simulate, solve};
use brimful_report::plan::solution::{Solved, text};

/// Runs it.
pub fn main(args: &SolveArgs) -> anyhow::Result<Exit> {
    let places = Places::open(&args.result)?;
    let model = model::read(&args.model.model)?;
    let solved = solved(model, args)?;
    places.deliver("solution", &solved, || text(&solved))?;
    Ok(Exit::Ok)
}

fn solved(model: Model, args: &SolveArgs) -> Result<Solved, ModelError> {
    let mut caveats = Vec::new();
    let solution = match solve(&model, args.model.method) {
        Ok(solution) => {
            caveats.extend(approximate(&model, &solution));
            Some(solution)
        }
        // Only the simulator is left then.
        Err(unsettled @ ModelError::Unsettled { .. }) if args.simulate => {
            caveats.push(unsettled.to_string());
            None
        }
        Err(error) => return Err(error),
    };
    let simulation = args.simulate.then(|| simulation(&model, args.seed)).transpose()?;
    Ok(Solved::new(model, solution, simulation, caveats))
}

fn simulation(model: &Model, seed: u64) -> Result<Simulation, ModelError> {
    simulate(model, &SimulationOptions { seed, ..SimulationOptions::default() })
}

/// Why the solution of an open network is not exact, if it is not.
fn approximate(model: &Model, solution: &Solution) -> Option<String> {
    let open = model.classes.iter().all(|class| class.kind == ClassKind::Open);
    match (solution.method, open) {
        (Method::Erlang, true) => match solve(model, Method::Exact) {
            Err(ModelError::NoProductForm { station, reason }) => Some(format!(
                "approximate: station {station} {reason}, and what leaves it is taken for Poisson all the same; --simulate \
                 shows how far off that is"
            )),
            _ => None,
        },
        (Method::Seidmann, _) if model.stations.iter().any(|station| station.servers > 1) => Some(
            "Seidmann's stations of several servers are slower than real ones, by some 10 to 15 % at 80 % load; the other \
             methods do not have that error"
                .to_owned(),
        ),
        _ => None,
    }
}
