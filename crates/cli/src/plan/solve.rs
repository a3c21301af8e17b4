//! `brimful plan solve`: a model by a formula, and by simulation beside it.

use super::args::SolveArgs;
use super::{Places, model};
use crate::exit::Exit;
use brimful_core::model::{Class, ClassKind, Model};
use brimful_model::{
    Curve, Method, ModelError, Outlook, Scenario, SimulationOptions, Solution, WhatIfOptions, asymptotic_bounds, curve,
    response_distributions, simulate, solve, what_if,
};
use brimful_report::plan::solution::{Percentiles, Solved, text};

/// Points of the curve from idleness to saturation.
const POINTS: usize = 60;

/// The last of them, as a share of the saturation rate: the curve beyond goes up without bound.
const NEARLY_FULL: f64 = 0.98;

/// Customers of a closed class whose curve is quickly had.
const MOST_CUSTOMERS: u32 = 1000;

/// Runs it.
pub fn main(args: &SolveArgs) -> anyhow::Result<Exit> {
    let places = Places::open(&args.result)?;
    let model = model::read(&args.model.model)?;
    let mut solved = match by_formula(&model, args.model.method) {
        // Only the simulator is left then.
        Err(unsettled @ ModelError::Unsettled { .. }) if args.simulate => {
            Solved::simulated(model.clone(), unsettled.to_string())
        }
        solved => solved?,
    };
    if args.simulate {
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
    let approximate = approximate(model, solution);
    let closed = model.classes.iter().all(|class| class.kind == ClassKind::Closed);
    let bounds = if closed { asymptotic_bounds(model)? } else { Vec::new() };
    let curve = load_curve(&outlook, method)?;
    let mut solved = Solved::new(outlook, percentiles, bounds, curve);
    solved.caveats.splice(0..0, approximate);
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

/// The model as its load grows: the rate of open classes to saturation, the population of a closed one to twice what it is.
/// None of several closed classes, whose populations have no common measure, and none where it would take long.
fn load_curve(outlook: &Outlook, method: Method) -> Result<Option<Curve>, ModelError> {
    let classes = &outlook.model.classes;
    let open: f64 = classes.iter().filter(|class| class.kind == ClassKind::Open).filter_map(|class| class.rate).sum();
    let all_open = classes.iter().all(|class| class.kind == ClassKind::Open);
    let range = match (outlook.stations.first(), classes.as_slice()) {
        (Some(limit), _) if all_open && open > 0.0 => {
            let most = (limit.saturation_rate * NEARLY_FULL).max(open);
            format!("rate={}..{most}:{POINTS}", most / POINTS as f64)
        }
        (_, [Class { population: Some(n @ 1..=MOST_CUSTOMERS), .. }]) => format!("population=1..{}:{POINTS}", 2 * n),
        _ => return Ok(None),
    };
    let scenario = Scenario { changes: vec![range.parse()?], ..Scenario::default() };
    curve(&outlook.model, &scenario, method).map(Some)
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
