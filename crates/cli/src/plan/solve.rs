//! `brimful plan solve`: solves a model analytically and, if requested, by simulation.

use super::args::SolveArgs;
use super::load_curve::load_curve;
use super::model;
use super::result::ResultFiles;
use crate::exit::Exit;
use brimful_core::model::{ClassKind, Model};
use brimful_model::{
    Method, ModelError, Scenario, SimulationOptions, Solution, WhatIfOptions, asymptotic_bounds,
    response_distributions, simulate, solve, what_if,
};
use brimful_report::plan::solution::{Percentiles, Solved, text};

/// Solves the model. Prints the solution, and writes the files that the flags name.
pub fn main(args: &SolveArgs) -> anyhow::Result<Exit> {
    let places = ResultFiles::open(&args.result)?;
    let model = model::read(&args.model.model)?;
    let mut solved = match by_formula(&model, args.model.method) {
        // The analytic method does not converge, so the simulation is the only solution.
        Err(unsettled @ ModelError::NotConverged { .. }) if args.simulate => {
            Solved::simulated(model.clone(), unsettled.to_string())
        }
        solved => solved?,
    };
    let is_simulated = solved.solution.as_ref().is_some_and(|solution| solution.method == Method::Simulation);
    if args.simulate || is_simulated {
        solved = solved
            .with_simulation(simulate(&model, &SimulationOptions { seed: args.seed, ..SimulationOptions::default() })?);
    }
    places.deliver("solution", &solved, || text(&solved))?;
    Ok(Exit::Ok)
}

fn by_formula(model: &Model, method: Method) -> Result<Solved, ModelError> {
    let results = what_if(model, &Scenario::default(), &WhatIfOptions { method, ..WhatIfOptions::default() })?.before;
    let Some(solution) = &results.solution else {
        // The model is unstable, so `solve` fails. Its error names the overloaded station.
        return Err(solve(model, method).err().unwrap_or(ModelError::Inconsistent("the model has no solution".into())));
    };
    let percentiles = percentiles(model, solution)?;
    let caveat = seidmann_caveat(model, solution);
    let closed = model.classes.iter().all(|class| class.kind == ClassKind::Closed);
    let bounds = if closed { asymptotic_bounds(model)? } else { Vec::new() };
    let curve = load_curve(&results, method)?;
    let mut solved = Solved::new(results, percentiles, bounds, curve);
    solved.caveats.splice(0..0, caveat);
    Ok(solved)
}

fn percentiles(model: &Model, solution: &Solution) -> Result<Vec<Percentiles>, ModelError> {
    let found = response_distributions(model, solution)?;
    let percentiles_of_class = |class| {
        let [p50, p95, p99] = [50.0, 95.0, 99.0].map(|percent| found.percentile(Some(class), percent));
        Percentiles { p50, p95, p99 }
    };
    Ok((0..model.classes.len()).map(percentiles_of_class).collect())
}

/// A warning about Seidmann's approximation; `None` if the solution does not use the approximation.
fn seidmann_caveat(model: &Model, solution: &Solution) -> Option<String> {
    let several = model.stations.iter().any(|station| station.servers > 1);
    (solution.method == Method::Seidmann && several).then(|| {
        "Seidmann's approximation makes stations with several servers slower than they are, by about 10 to 15 % at 80 % load; \
         the other methods do not have this error"
            .to_owned()
    })
}
