//! Compares the solvers with simulations in networks out of product form, where the order of service matters.

use crate::closed::with_unique_names;
use brimful_core::model::{ClassKind, Model, ModelClass, Scheduling, Station};
use brimful_model::{Method, ModelError, SimulationOptions, simulate, solve};
use rand::RngExt;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::SeedableRng;

/// Whether the classes of a network are open, closed or mixed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Open,
    Closed,
    Mixed,
}

/// Generates a random network from the seed `number`. It has one to three stations; at the first station, the order of
/// service matters. Its two or three classes have demands between 1 and 50 s. Open classes use 30 to 85 % of the
/// busiest station, and 18 to 51 % in mixed networks.
fn network(number: u64, kind: Kind, orders: &[Scheduling]) -> Model {
    let mut rng = Pcg64Mcg::seed_from_u64(number);
    let classes: Vec<ModelClass> = (0..rng.random_range(2..=3u32)).map(|c| class(&mut rng, c, kind)).collect();
    let stations = (0..rng.random_range(1..=3)).map(|k| {
        let order =
            if k == 0 || rng.random_bool(0.3) { orders[rng.random_range(0..orders.len())] } else { Scheduling::Ps };
        let servers = if rng.random_bool(0.6) { 1 } else { rng.random_range(2..=4) };
        let scv = [0.0, 1.0, rng.random_range(0.0..4.0)][rng.random_range(0..3)];
        Station { scheduling: order, servers, scv, ..Station::default() }
    });
    let stations: Vec<Station> = stations.collect();
    let row = |_: &Station| classes.iter().map(|_| 50f64.powf(rng.random_range(0.0..1.0))).collect::<Vec<f64>>();
    let demands: Vec<Vec<f64>> = stations.iter().map(row).collect();
    let mut model = with_unique_names(Model { stations, classes, demands, ..Model::default() });
    let load = rng.random_range(0.3..0.85) * if kind == Kind::Mixed { 0.6 } else { 1.0 };
    let used = |(station, row): (&Station, &Vec<f64>)| {
        let work = |(class, demand): (&ModelClass, &f64)| class.rate.unwrap_or(0.0) * demand;
        model.classes.iter().zip(row).map(work).sum::<f64>() / f64::from(station.servers)
    };
    let busiest = model.stations.iter().zip(&model.demands).map(used).fold(0.0, f64::max);
    for class in &mut model.classes {
        class.rate = class.rate.map(|rate| rate * load / busiest);
    }
    model
}

fn class(rng: &mut Pcg64Mcg, index: u32, kind: Kind) -> ModelClass {
    let closed = kind == Kind::Closed || kind == Kind::Mixed && index == 0;
    let think = if rng.random_bool(0.5) { rng.random_range(0.0..100.0) } else { 0.0 };
    let (population, rate) = (rng.random_range(1..=8), rng.random_range(0.2..1.0));
    let class = ModelClass { priority: rng.random_range(0..3), ..ModelClass::default() };
    match closed {
        true => ModelClass { kind: ClassKind::Closed, population: Some(population), think, ..class },
        false => ModelClass { rate: Some(rate), ..class },
    }
}

/// Relative errors of the solver's mean response times, compared with a long simulation. An error is measured from the
/// nearest end of the simulation's confidence interval; it is 0 inside. Classes without a response time in the
/// simulation are excluded.
fn errors(model: &Model) -> Option<Vec<f64>> {
    let solution = match solve(model, Method::Auto) {
        Err(ModelError::Starved { .. }) => return None,
        solved => solved.unwrap(),
    };
    let open = model.classes.iter().all(|class| class.kind == ClassKind::Open);
    assert!(open || solution.method == Method::Simulation && !solution.caveats.is_empty(), "{solution:?}");
    let options = SimulationOptions { seed: 7, events: 1_000_000, ..SimulationOptions::default() };
    let found = simulate(model, &options).unwrap();
    let error = |(solved, found): (&f64, &Option<brimful_model::ResponseTime>)| {
        let mean = found.as_ref()?.mean;
        Some((((solved - mean.value).abs() - mean.ci95_half_width?) / mean.value).max(0.0))
    };
    let errors: Vec<f64> = solution.response_time.iter().zip(&found.response_time).filter_map(error).collect();
    let exact = open && solution.caveats.is_empty();
    assert!(!exact || errors.iter().all(|error| *error < 0.06), "{errors:?} {model:?}");
    Some(errors)
}

const ORDERS: [Scheduling; 3] = [Scheduling::Fcfs, Scheduling::Priority, Scheduling::Preemptive];

#[test]
fn errors_of_open_networks_match_their_caveat() {
    let each = ORDERS.iter().flat_map(|order| (0..12).map(|number| network(number, Kind::Open, &[*order])));
    let mut errors: Vec<f64> = each.filter_map(|model| errors(&model)).flatten().collect();
    errors.sort_by(f64::total_cmp);
    let (nine_of_ten, most) = (errors[errors.len() * 9 / 10], errors[errors.len() - 1]);
    assert!(nine_of_ten <= 0.12 && most <= 0.40, "{nine_of_ten} {most}");
}

#[test]
fn closed_and_mixed_networks_are_simulated_with_a_caveat() {
    for kind in [Kind::Closed, Kind::Mixed] {
        for order in ORDERS {
            for number in 0..6 {
                let model = network(number, kind, &[order]);
                let errors = errors(&model).unwrap_or_default();
                assert!(errors.iter().all(|error| *error < 0.15), "{errors:?} {kind:?} {order:?} {number}");
            }
        }
    }
}
