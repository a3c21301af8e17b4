//! Random networks whose exact solution is known, and the errors of their simulations. The tests here use some of the
//! networks; `bench/planner/program` uses many.

use brimful_core::model::{ClassKind, Model, ModelClass, Scheduling, Station, StationKind};
use brimful_model::{Estimate, Method, ModelError, Simulation, solve};
use rand::RngExt;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::SeedableRng;

/// Generates a random network from the seed `number`. Open, closed and mixed networks alternate.
///
/// Processor sharing and delays have any distribution of service times. At FCFS stations, service times are exponential
/// with the same mean for all classes. Stations have one to four servers, speeds that depend on the load, or background
/// work. Open classes use 30 to 85 % of the busiest station.
pub fn network(number: u64) -> Model {
    let mut rng = Pcg64Mcg::seed_from_u64(number);
    let classes: Vec<ModelClass> = (0..rng.random_range(1..=3)).map(|c| class(&mut rng, c, number % 3)).collect();
    let mut stations: Vec<Station> = (0..rng.random_range(1..=5)).map(|i| station(&mut rng, i)).collect();
    stations[0].kind = StationKind::Queue;
    let row = |station: &Station| -> Vec<f64> {
        let alike = rng.random_range(0.2..1.0);
        let fcfs = station.scheduling == Scheduling::Fcfs;
        classes.iter().map(|_| if fcfs { alike } else { rng.random_range(0.2..1.0) }).collect()
    };
    let demands = stations.iter().map(row).collect();
    let mut model = Model { stations, classes, demands, ..Model::default() };
    load(&mut model, rng.random_range(0.3..0.85));
    model
}

fn class(rng: &mut Pcg64Mcg, index: u64, kind: u64) -> ModelClass {
    let name = format!("class {index}");
    // In a mixed network, the first class is closed and the second is open.
    if kind == 1 || kind == 2 && index != 1 {
        let think = if rng.random_bool(0.5) { rng.random_range(0.5..5.0) } else { 0.0 };
        let population = Some(rng.random_range(1..=6));
        return ModelClass { name, kind: ClassKind::Closed, population, think, ..ModelClass::default() };
    }
    ModelClass { name, rate: Some(rng.random_range(0.2..1.0)), ..ModelClass::default() }
}

fn station(rng: &mut Pcg64Mcg, index: u64) -> Station {
    let name = format!("station {index}");
    let background = if rng.random_bool(0.3) { rng.random_range(0.05..0.4) } else { 0.0 };
    match rng.random_range(0..10) {
        0..2 => Station { name, kind: StationKind::Delay, scv: rng.random_range(0.0..4.0), ..Station::default() },
        2..5 => Station {
            name,
            scheduling: Scheduling::Fcfs,
            servers: rng.random_range(1..=4),
            background,
            ..Station::default()
        },
        5 => {
            let rate_multipliers = (1..=4).map(|n| f64::from(n).powf(0.7)).collect();
            Station { name, rate_multipliers, scv: rng.random_range(0.0..4.0), background, ..Station::default() }
        }
        _ => Station {
            name,
            servers: rng.random_range(1..=4),
            scv: rng.random_range(0.0..4.0),
            background,
            ..Station::default()
        },
    }
}

/// Sets the rates of the open classes so that they use the share `share` of the busiest station.
fn load(model: &mut Model, share: f64) {
    let rates: Vec<f64> = model.classes.iter().map(|class| class.rate.unwrap_or(0.0)).collect();
    let capacity = |station: &Station| match station.kind {
        StationKind::Delay => f64::INFINITY,
        StationKind::Queue => {
            station.rate_multipliers.last().copied().unwrap_or(f64::from(station.servers)) * (1.0 - station.background)
        }
    };
    let used = |(station, row): (&Station, &Vec<f64>)| {
        row.iter().zip(&rates).map(|(demand, rate)| demand * rate).sum::<f64>() / capacity(station)
    };
    let busiest = model.stations.iter().zip(&model.demands).map(used).fold(0.0, f64::max);
    for class in &mut model.classes {
        class.rate = class.rate.map(|rate| rate * share / busiest);
    }
}

/// Errors of simulated throughputs, response times and numbers of requests present. An error is the simulated value
/// minus the exact value, in units of the simulation's standard error.
pub fn errors(model: &Model, found: &Simulation, method: Method) -> Result<Vec<f64>, ModelError> {
    let exact = solve(model, method)?;
    let error = |figure: Estimate, truth: f64| {
        let standard = figure.ci95_half_width.unwrap_or(0.0) / 1.96;
        (figure.value - truth) / standard.max(1e-9 * truth).max(f64::MIN_POSITIVE)
    };
    let mut errors = Vec::new();
    for class in 0..model.classes.len() {
        errors.push(error(found.throughput[class], exact.throughput[class]));
        let response = found.response_time[class].as_ref();
        errors.push(response.map_or(f64::INFINITY, |r| error(r.mean, exact.response_time[class])));
        for (row, truths) in found.queue_length.iter().zip(&exact.queue_length) {
            errors.push(error(row[class], truths[class]));
        }
    }
    Ok(errors)
}
