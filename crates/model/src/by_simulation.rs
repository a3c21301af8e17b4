//! Solves networks by [`mod@crate::simulate`] if no formula is valid for them.
//!
//! Such networks have closed classes, and a station that is not in product form. For them, the approximations of
//! [`crate::residence`] could be several times too long or too short. A run ends when throughputs and response times
//! are known to within [`PRECISION`], or after [`EVENTS`] events, which take a fraction of a second. The seed is fixed,
//! so the models before and after a change are simulated with the same random numbers.

use crate::ModelError;
use crate::closed::approximate;
use crate::network::Network;
use crate::simulate::{Simulation, SimulationOptions, simulate};
use crate::solution::{Method, Solution};
use brimful_core::quantity::percent;

/// Relative precision of throughputs and mean response times at which the simulation ends.
const PRECISION: f64 = 0.02;

/// Maximum number of simulated events.
const EVENTS: u64 = 1_000_000;

/// An open class counts as saturated if the simulation completes less than this share of its requests.
const MIN_COMPLETED: f64 = 0.95;

/// Minimum number of simulated arrivals of a class. With fewer arrivals, the simulation cannot tell whether the class
/// is saturated.
const MIN_ARRIVALS: f64 = 30.0;

/// Minimum number of interruptions of a station in the simulation of a network with closed classes. After fewer
/// interruptions, the Linearizer solves the network instead.
const MIN_INTERRUPTIONS: f64 = 30.0;

/// Solves a network by simulation. `why` is the reason for simulating it, which the solution repeats. If the simulation
/// fails and there are closed classes, the Linearizer solves the network instead, and the solution has a caveat.
pub(crate) fn solve_network(network: &Network<'_>, why: &str) -> Result<Solution, ModelError> {
    let options = SimulationOptions { precision: Some(PRECISION), events: EVENTS, ..SimulationOptions::default() };
    let unfit = |error: &ModelError| {
        matches!(error, ModelError::TooShort { .. } | ModelError::Number { .. } | ModelError::Inconsistent(_))
    };
    match simulate(network.model, &options) {
        Ok(found) => simulated(network, why, &found),
        Err(error) if unfit(&error) && network.closed().next().is_some() => {
            approximated(network, why, &error.to_string())
        }
        Err(error) => Err(error),
    }
}

fn simulated(network: &Network<'_>, why: &str, found: &Simulation) -> Result<Solution, ModelError> {
    if let Some(station) = rarely_interrupted(network, found) {
        let reason = format!("station `{station}` is interrupted too rarely for a simulation of this length");
        return approximated(network, why, &reason);
    }
    (0..network.rates.len()).try_for_each(|class| check_served(network, found, class))?;
    let seen = |row: &Vec<Option<_>>| row.iter().all(Option::is_some);
    // A class with very few requests might not have visited every station in the simulation. The Linearizer computes
    // the residence times that are missing.
    let unseen = if found.residence.iter().all(seen) { None } else { Some(approximate::linearizer(network)?.1) };
    let residence = |(k, row): (usize, &Vec<Option<crate::Estimate>>)| -> Vec<f64> {
        let figure = |(c, figure): (usize, &Option<crate::Estimate>)| match (figure, &unseen) {
            (Some(figure), _) => figure.value,
            (None, Some(unseen)) => unseen[k][c],
            (None, None) => network.demands[k][c],
        };
        row.iter().enumerate().map(figure).collect()
    };
    let residence: Vec<Vec<f64>> = found.residence.iter().enumerate().map(residence).collect();
    let throughput = |c: usize| match network.population[c] {
        0 => network.rates[c],
        customers => {
            let response: f64 = residence.iter().map(|row| row[c]).sum();
            f64::from(customers) / (network.model.classes[c].think + response)
        }
    };
    let throughput = (0..network.rates.len()).map(throughput).collect();
    let why = format!("{why}; {} events, seed {}", found.run.events, found.run.seed);
    let known = found.run.precision.map_or_else(String::new, |precision| {
        format!("; throughputs and mean response times are known to within {} (95 % confidence)", percent(precision))
    });
    let mut solution = Solution::new(network, Method::Simulation, why.clone(), throughput, residence)?;
    // Where servers must be woken up, the utilization is taken from the simulation. The law of [`crate::idle_law`] is
    // valid only for Poisson arrivals: requests of closed classes find idle servers with a different probability.
    for k in (0..network.waking.len()).filter(|k| network.waking[*k] > 0.0) {
        solution.utilization[k] = found.utilization[k].iter().map(|figure| figure.value).collect();
    }
    solution.caveats.push(format!("these values are simulated: {why}{known}"));
    solution.caveats.extend(found.run.caveats.iter().map(|caveat| format!("simulation: {caveat}")));
    if network.model.demand_ci95_half_width.iter().flatten().any(|half| *half > 0.0) {
        solution.caveats.push("the simulation ignores the confidence intervals of the demands".into());
    }
    Ok(solution)
}

/// Returns an error if a class is hardly ever served, because closed classes of higher priority use the whole capacity.
fn check_served(network: &Network<'_>, found: &Simulation, class: usize) -> Result<(), ModelError> {
    let (rate, throughput) = (network.rates[class], found.throughput[class]);
    let served = match network.population[class] {
        0 if rate * found.run.time_s < MIN_ARRIVALS => true,
        0 => throughput.value + throughput.ci95_half_width.unwrap_or(0.0) >= MIN_COMPLETED * rate,
        _ => throughput.value > 0.0,
    };
    if served {
        return Ok(());
    }
    let present = |k: &usize| found.queue_length[*k][class].value;
    let fullest = (0..network.demands.len()).max_by(|a, b| present(a).total_cmp(&present(b)));
    Err(ModelError::Starved { station: network.name(fullest), class: network.model.classes[class].name.clone() })
}

/// Name of a station with fewer than [`MIN_INTERRUPTIONS`] interruptions in the simulation of a network with closed
/// classes. `None` if there is no such station.
fn rarely_interrupted<'a>(network: &'a Network<'_>, found: &Simulation) -> Option<&'a str> {
    let seconds = found.run.time_s - found.run.warm_up_s;
    let rare = |k: &usize| {
        let interrupted = network.interrupted[*k].as_ref();
        interrupted.is_some_and(|it| it.share / it.mean * seconds < MIN_INTERRUPTIONS)
    };
    let station = (0..network.demands.len()).find(rare).filter(|_| network.closed().next().is_some());
    station.map(|k| network.model.stations[k].name.as_str())
}

fn approximated(network: &Network<'_>, why: &str, reason: &str) -> Result<Solution, ModelError> {
    let (throughput, residence) = approximate::linearizer(network)?;
    let mut solution = Solution::new(network, Method::Linearizer, why.to_owned(), throughput, residence)?;
    solution.caveats.push(format!("{why}, and it cannot be simulated ({reason}): the figures may be far off"));
    Ok(solution)
}
