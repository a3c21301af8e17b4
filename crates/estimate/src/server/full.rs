//! What is full when a server takes no more, and why that is believed: the CPUs or a disk because they are busy all the
//! time, workers because the server itself says that all of them are busy (the Server Module), or because as many calls
//! are in the server as it has processes or threads, and what else is by elimination.

mod occupancy;

use super::ServerFacts;
use super::blocks::{Place, Pooled};
use super::programs::ProgramSeen;
use brimful_core::quantity::{number, percent};
use occupancy::{Crew, crew};
use std::collections::BTreeMap;

/// From this share of what requests can have on, the CPUs or a disk are full; CPUs also if less than the rest is idle,
/// whoever has it.
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
    /// How many calls it takes at once, and why it is believed to be full: for people.
    pub evidence: String,
    /// Share of the CPUs' capacity that requests can have.
    pub cpu_share: f64,
    /// CPU seconds of a call while clients left the server no rest; `None` where that was not tried.
    pub cost_without_rest: Option<f64>,
    /// Where the CPUs were not full: of what there is too little.
    pub pool: Option<Pool>,
}

/// So many requests can be somewhere at once, each for so long.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Pool {
    pub places: u32,
    /// In seconds, by class.
    pub held: Vec<f64>,
    /// Whether they hold it while they are on the CPUs, too, like workers; and not only elsewhere, like a lock or a
    /// disk.
    pub around_cpu: bool,
}

/// A pool by the throughput of the mix.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Places {
    places: u32,
    /// In seconds, by a call of the mix.
    held: f64,
    around_cpu: bool,
}

impl Full {
    pub fn of(facts: &ServerFacts, places: &BTreeMap<Place, Pooled>) -> Full {
        let free = 1.0 - facts.background;
        let cpu = |cpu_share, cost_without_rest, evidence| Full {
            name: facts.station.clone(),
            evidence,
            cpu_share,
            cost_without_rest,
            pool: None,
        };
        let most = places.iter().rev().find_map(|(place, at)| match place {
            Place::Clients(clients) => Some((*clients, at)),
            _ => None,
        });
        // As many as there are CPUs leave each some rest, and may be far from filling anything.
        let is_restless =
            |(clients, at): &(u64, &Pooled)| facts.filled || *clients > facts.servers.into() || at.piece.busy.is_none();
        let Some((clients, at)) = most.filter(is_restless) else {
            return cpu(free, None, "clients who leave the server no rest were not tried".to_owned());
        };
        let by = format!("with {clients} clients at once");
        let Use { used, idle, cost } = Use::of(facts, at);
        let rate = at.piece.rate();
        if used >= FULL * free || idle < 1.0 - FULL {
            let evidence = match (at.piece.busy, (1.0 - idle - used).max(0.0)) {
                (None, _) => "nothing is seen of it but its answers".to_owned(),
                (Some(_), others) if others > NOTABLE => {
                    format!("{} busy {by}, and {} with other work", percent(used), percent(others))
                }
                (Some(_), _) => format!("{} busy {by}", percent(used)),
            };
            let servers = f64::from(facts.servers);
            return cpu(used.min(1.0), cost.or(Some(servers / rate)), evidence);
        }
        if let Some((program, quota)) = at.piece.programs.iter().find_map(|p| Some((&p.name, p.quota?))) {
            let evidence = format!(
                "{} busy {by}, which is all that the quota of {} CPUs leaves {program}",
                percent(used),
                number(quota)
            );
            return cpu(used, cost, evidence);
        }
        let ladder = ladder(places);
        let on_cpu = cost.unwrap_or(0.0) / free;
        let by_ladder = pool(&ladder, on_cpu);
        let by = format!("{by}, the CPUs were {} busy", percent(used));
        let full = |name: &str, pool: Places, held: Vec<f64>, evidence| Full {
            name: name.to_owned(),
            evidence,
            cpu_share: free,
            cost_without_rest: cost,
            pool: Some(Pool { places: pool.places, held, around_cpu: pool.around_cpu }),
        };
        if let Some((disk, busy)) = busiest_disk(at).filter(|(_, busy)| *busy >= FULL) {
            let places_of_disk = by_ladder.map_or(1, |pool| pool.places);
            let of_disk = Places { places: places_of_disk, held: 0.0, around_cpu: false };
            let held = |at: &Pooled| Some(f64::from(places_of_disk) * at.piece.disks.get(disk)? / at.piece.rate());
            let mean = held(at).unwrap_or_default();
            let evidence = format!("{} busy {by}", percent(busy));
            return full(&format!("disk {disk}"), of_disk, by_class(facts, places, mean, &held), evidence);
        }
        if let Some(workers) = at.piece.workers.filter(|workers| workers.share() >= FULL) {
            let pool = Places { places: workers.most, held: workers.busy / rate, around_cpu: true };
            let held = |at: &Pooled| {
                let full = at.piece.workers.filter(|workers| workers.share() >= FULL)?;
                Some(full.busy / at.piece.rate())
            };
            let evidence = format!(
                "{} of {} workers busy, as the server itself counts them; {by}",
                number(workers.busy),
                workers.most
            );
            return full("workers", pool, by_class(facts, places, pool.held, &held), evidence);
        }
        if let Some(served) = facts.served_at_once {
            let pool = Places { places: served, held: f64::from(served) / rate, around_cpu: true };
            let held = |at: &Pooled| {
                let Use { used, idle, .. } = Use::of(facts, at);
                (used < FULL * free && idle >= 1.0 - FULL).then(|| f64::from(served) / at.piece.rate())
            };
            let evidence = match served {
                1 => format!("one connection at a time is served; {by}"),
                _ => format!("{served} connections at a time are served, each by a worker; {by}"),
            };
            return full("workers", pool, by_class(facts, places, pool.held, &held), evidence);
        }
        let nothing = || cpu(free, cost, format!("nothing was full {by}"));
        let Some(found) = by_ladder else { return nothing() };
        let crew = ladder.first().and_then(|(fewest, least)| {
            let alone = *fewest as f64 / least;
            crew(&at.piece.programs, rate, alone, on_cpu / f64::from(facts.servers), facts.servers)
        });
        let crew = crew.filter(|crew| crew.size > 1 && u64::from(crew.size) < clients);
        let found = crew.as_ref().map_or(found, |crew| Places {
            places: crew.size,
            held: f64::from(crew.size) / rate,
            around_cpu: true,
        });
        // Not even the most clients have filled anything.
        if !facts.filled || u64::from(found.places) >= clients {
            return nothing();
        }
        let held = |at: &Pooled| {
            let Use { used, idle, .. } = Use::of(facts, at);
            let is_full = used < FULL * free && idle >= 1.0 - FULL;
            is_full.then(|| f64::from(found.places) / at.piece.rate())
        };
        let (name, evidence) = describe(found, used * f64::from(facts.servers), crew.as_ref(), &at.piece.programs);
        full(name, found, by_class(facts, places, found.held, &held), format!("{evidence}; {by}"))
    }
}

/// Of the CPUs at one place.
struct Use {
    /// Share that calls use.
    used: f64,
    /// Share that nobody uses.
    idle: f64,
    /// CPU seconds of a call.
    cost: Option<f64>,
}

impl Use {
    /// CPUs of which nothing is seen are taken to be full.
    fn of(facts: &ServerFacts, at: &Pooled) -> Use {
        let servers = f64::from(facts.servers);
        let cost = at.piece.cost(facts.idle_busy);
        let used = cost.map_or(1.0, |cost| at.piece.rate() * cost / servers);
        Use { used, idle: at.piece.idle.map_or(1.0, |idle| idle / servers), cost }
    }
}

/// What a pool is, by how many hold it and where. `busy` CPUs are the calls'.
fn describe(found: Places, busy: f64, crew: Option<&Crew>, programs: &[ProgramSeen]) -> (&'static str, String) {
    let places = f64::from(found.places);
    if let Some(crew) = crew {
        return ("workers", format!("{} at a time, as many as {} has {}", found.places, crew.program, crew.kind));
    }
    if found.around_cpu && busy >= FULL * places {
        let what = if found.places == 1 {
            "one call at a time, on a CPU all the time: a single thread, or a lock that is held meanwhile".to_owned()
        } else {
            format!("{} calls at a time, each on a CPU all the time", found.places)
        };
        return ("workers", what);
    }
    match (found.places, found.around_cpu) {
        (1, _) => {
            let single = programs.iter().find(|program| occupancy::has_one_worker(program));
            let or = single.map_or(String::new(), |program| format!(", or the only worker of {}", program.name));
            ("lock or backend", format!("one call at a time, by elimination{or}"))
        }
        (places, true) => ("workers", format!("{places} at a time, held while on the CPUs as well")),
        (places, false) => ("backend pool", format!("{places} calls at a time, by elimination")),
    }
}

fn busiest_disk(at: &Pooled) -> Option<(&str, f64)> {
    let disks = at.piece.disks.iter().map(|(name, busy)| (name.as_str(), *busy));
    disks.max_by(|a, b| a.1.total_cmp(&b.1))
}

/// How long each class holds a place, such that a call of the mix holds it for `mean`. `held` tells it of a class by
/// itself, unless something else was full then: such classes have what the others leave.
fn by_class(
    facts: &ServerFacts,
    places: &BTreeMap<Place, Pooled>,
    mean: f64,
    held: &dyn Fn(&Pooled) -> Option<f64>,
) -> Vec<f64> {
    let alone = |class| super::alone(places, class).and_then(held).filter(|held| held.is_finite());
    let known: Vec<Option<f64>> = (0..facts.classes.len()).map(alone).collect();
    let (mut left, mut unknown) = (mean, 0.0);
    for (held, share) in known.iter().zip(&facts.mix) {
        match held {
            Some(held) => left -= share * held,
            None => unknown += share,
        }
    }
    let others = if unknown > 0.0 { (left / unknown).max(0.0) } else { 0.0 };
    let all: Vec<f64> = known.into_iter().map(|held| held.unwrap_or(others)).collect();
    let sum: f64 = all.iter().zip(&facts.mix).map(|(held, share)| held * share).sum();
    if sum > 0.0 { all.iter().map(|held| held * mean / sum).collect() } else { vec![mean; all.len()] }
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
fn pool(ladder: &[(u64, f64)], cpu: f64) -> Option<Places> {
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
    (off(places).is_finite() && held > NOTABLE * alone).then_some(Places { places, held, around_cpu })
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
