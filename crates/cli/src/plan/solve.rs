//! `brimful plan solve`: a model by a formula, and by simulation beside it.

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

/// Runs it.
pub fn main(args: &SolveArgs) -> anyhow::Result<Exit> {
    let places = ResultFiles::open(&args.result)?;
    let model = model::read(&args.model.model)?;
    let mut solved = match by_formula(&model, args.model.method) {
        // Only the simulator is left then.
        Err(unsettled @ ModelError::Unsettled { .. }) if args.simulate => {
            Solved::simulated(model.clone(), unsettled.to_string())
        }
        solved => solved?,
    };
    let by_itself = solved.solution.as_ref().is_some_and(|solution| solution.method == Method::Simulation);
    if args.simulate || by_itself {
        solved =
            solved.beside(simulate(&model, &SimulationOptions { seed: args.seed, ..SimulationOptions::default() })?);
    }
    places.deliver("solution", &solved, || text(&solved))?;
    Ok(Exit::Ok)
}

fn by_formula(model: &Model, method: Method) -> Result<Solved, ModelError> {
    let outlook = what_if(model, &Scenario::default(), &WhatIfOptions { method, ..WhatIfOptions::default() })?.before;
    let Some(solution) = &outlook.solution else {
        // It is unstable, and this says where.
        return Err(solve(model, method).err().unwrap_or(ModelError::Shape("the model has no solution".into())));
    };
    let percentiles = percentiles(model, solution)?;
    let pessimistic = pessimistic(model, solution);
    let closed = model.classes.iter().all(|class| class.kind == ClassKind::Closed);
    let bounds = if closed { asymptotic_bounds(model)? } else { Vec::new() };
    let curve = load_curve(&outlook, method)?;
    let mut solved = Solved::new(outlook, percentiles, bounds, curve);
    solved.caveats.splice(0..0, pessimistic);
    Ok(solved)
}

fn percentiles(model: &Model, solution: &Solution) -> Result<Vec<Percentiles>, ModelError> {
    let found = response_distributions(model, solution)?;
    let of = |class| {
        let [p50, p95, p99] = [50.0, 95.0, 99.0].map(|percent| found.percentile(Some(class), percent));
        Percentiles { p50, p95, p99 }
    };
    Ok((0..model.classes.len()).map(of).collect())
}

/// What is wrong with Seidmann's stations, where there are any.
fn pessimistic(model: &Model, solution: &Solution) -> Option<String> {
    let several = model.stations.iter().any(|station| station.servers > 1);
    (solution.method == Method::Seidmann && several).then(|| {
        "Seidmann's stations of several servers are slower than real ones, by some 10 to 15 % at 80 % load; the other methods \
         do not have that error"
            .to_owned()
    })
}
