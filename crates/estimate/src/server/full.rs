//! What is full when a server takes no more.

use super::ServerFacts;
use super::blocks::{Place, Pooled};
use std::collections::BTreeMap;

/// From this share of what requests can have on, the CPUs are full; or if less than the rest is idle, whoever has it.
const FULL: f64 = 0.9;
/// The most places of a pool that are tried.
const MOST_PLACES: u32 = 256;
/// More of a call's time than this share must be spent somewhere else for that to be a station.
const NOTABLE: f64 = 0.05;

/// What is full.
#[derive(Clone, Debug)]
pub(super) struct Full {
    /// Its station's name.
    pub name: String,
    /// Share of the CPUs' capacity that requests can have.
    pub cpu_share: f64,
    /// CPU seconds of a call while clients left the server no rest; `None` where that was not tried.
    pub cost_without_rest: Option<f64>,
    /// Where the CPUs were not full: of what there is too little.
    pub pool: Option<Pool>,
}

/// So many requests can be somewhere at once, each for so long.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pool {
    pub places: u32,
    /// In seconds.
    pub held: f64,
    /// Whether they hold it while they are on the CPUs, too, like workers; and not only elsewhere, like a lock or a disk.
    pub around_cpu: bool,
}

impl Full {
    pub fn of(facts: &ServerFacts, places: &BTreeMap<Place, Pooled>) -> Full {
        let servers = f64::from(facts.servers);
        let cpu = |cpu_share, cost_without_rest| Full {
            name: facts.station.clone(),
            cpu_share,
            cost_without_rest,
            pool: None,
        };
        let free = 1.0 - facts.background;
        let most = places.iter().rev().find_map(|(place, at)| match place {
            Place::Clients(clients) => Some((*clients, at)),
            _ => None,
        });
        // As many as there are CPUs leave each some rest, and may be far from filling anything.
        let is_restless =
            |(clients, at): &(u64, &Pooled)| facts.filled || *clients > facts.servers.into() || at.piece.busy.is_none();
        let Some((clients, most)) = most.filter(is_restless) else { return cpu(free, None) };
        let rate = most.piece.rate();
        let cost = most.piece.cost(facts.idle_busy);
        let used = cost.map_or(1.0, |cost| rate * cost / servers);
        let idle = most.piece.idle.map_or(1.0, |idle| idle / servers);
        if used >= FULL * free || idle < 1.0 - FULL {
            return cpu(used.min(1.0), cost.or(Some(servers / rate)));
        }
        match pool(&ladder(places), cost.unwrap_or(0.0) / free) {
            // Not even the most clients have filled anything.
            Some(Pool { places, .. }) if !facts.filled || u64::from(places) >= clients => cpu(free, None),
            Some(pool) => {
                Full { name: "workers".to_owned(), cpu_share: free, cost_without_rest: cost, pool: Some(pool) }
            }
            None => cpu(free, cost),
        }
    }
}

/// Clients and throughput.
fn ladder(places: &BTreeMap<Place, Pooled>) -> Vec<(u64, f64)> {
    let rung = |(place, at): (&Place, &Pooled)| match place {
        Place::Clients(clients) => Some((*clients, at.piece.rate())),
        _ => None,
    };
    places.iter().filter_map(rung).collect()
}

/// The pool of which the throughput of so many clients is least far off, with `cpu` seconds of each call outside of it.
/// As many as there are places get what one gets, each; more share the throughput of all places.
fn pool(ladder: &[(u64, f64)], cpu: f64) -> Option<Pool> {
    let (_, most) = *ladder.last()?;
    let (fewest, least) = *ladder.first()?;
    // How long a call takes while nobody waits.
    let alone = fewest as f64 / least;
    let off = |places: u32| {
        let held = f64::from(places) / most;
        let other = alone - held;
        if other < -NOTABLE * alone {
            return f64::INFINITY;
        }
        let of = |(clients, rate): &(u64, f64)| ((*clients as f64 / alone).min(most) / rate).ln().powi(2);
        let fits: f64 = ladder.iter().map(of).sum();
        // Time outside the pool and the CPUs is what has no other explanation: the pool that leaves least of it.
        fits + (other.max(cpu) - cpu).max(0.0) / alone * 1e-3
    };
    let places = (1..=MOST_PLACES).min_by(|a, b| off(*a).total_cmp(&off(*b)))?;
    let held = f64::from(places) / most;
    let around_cpu = held + cpu > (1.0 + NOTABLE) * alone;
    (off(places).is_finite() && held > NOTABLE * alone).then_some(Pool { places, held, around_cpu })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_is_found_by_the_throughput_of_its_clients() {
        // Four places, each held for 5 ms; 0.2 ms of CPU in it.
        let ladder: Vec<(u64, f64)> = [1, 2, 4, 8, 16].into_iter().map(|n| (n, (n as f64).min(4.0) / 0.005)).collect();
        let found = pool(&ladder, 0.0002).unwrap();
        assert!(found.places == 4 && !found.around_cpu, "{found:?}");
        assert!(pool(&ladder, 0.001).unwrap().around_cpu);
        assert!((found.held - 0.005).abs() < 1e-9);
        // One lock, held for half of the time of a call.
        let ladder: Vec<(u64, f64)> =
            [1, 2, 4, 8].into_iter().map(|n| (n, (n as f64 / 0.002).min(1.0 / 0.001))).collect();
        let found = pool(&ladder, 0.001).unwrap();
        assert!(found.places == 1 && (found.held - 0.001).abs() < 1e-9 && !found.around_cpu, "{found:?}");
    }
}
