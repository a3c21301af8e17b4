//! Determines the bottleneck of the server at the highest load, and the evidence for it.
//!
//! The CPUs or a disk are the bottleneck if they are busy nearly all the time. Workers are the bottleneck if the Server
//! Module (a plug-in of the web server) reports that nearly all of them are busy, or if the server serves as many calls
//! at once as it has processes or threads. Any other bottleneck (a lock, a backend) is inferred by elimination.

mod occupancy;

use super::blocks::{OfferedLoad, PooledLoads, PooledMeasurement, ServerFacts, most_clients, single_class_measurement};
use super::programs::ProgramUsage;
use brimful_core::quantity::{number, percent};
use occupancy::{WorkerGroup, find_workers};

/// Minimum utilization of a resource that is full (saturated). Disks and workers must be busy for this share of the
/// time. The CPUs are full if calls use this share of the capacity that requests can use, or if less than 10 % of the
/// CPUs is idle.
const FULL: f64 = 0.9;
/// Maximum capacity of a pool (number of calls that it serves at once) that the fit tries.
const MAX_POOL: u32 = 256;
/// Minimum share of a call's duration that is spent at a resource. Below it, the resource is not a station of the
/// model. Also the share of the CPUs that other work must exceed to be mentioned in the evidence.
const NOTABLE: f64 = 0.05;
/// Maximum share of the duration of a single call that the stations need not explain, because of measurement errors.
const UNEXPLAINED: f64 = 0.04;

/// The resource that limits the server's throughput.
#[derive(Clone, Debug)]
pub(super) struct Bottleneck {
    /// Name of the bottleneck's station.
    pub name: String,
    /// Text for the report: the measurements that show why this resource is the bottleneck.
    pub evidence: String,
    /// Share of the CPUs' capacity that requests can use.
    pub cpu_share: f64,
    /// CPU seconds per call at the highest load. `None` if no load kept the server busy all the time.
    pub saturated_cost: Option<f64>,
    /// The full resource; `None` if the CPUs are the bottleneck.
    pub pool: Option<Pool>,
}

/// A resource that only a limited number of calls can hold at the same time, such as workers or a lock.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Pool {
    /// Number of calls that can hold the resource at the same time.
    pub capacity: u32,
    /// Time for which a call of each class holds the resource, in seconds.
    pub holding_time: Vec<f64>,
    /// Whether a call that uses the CPUs holds the resource during this time. True for workers, but not for a disk.
    pub includes_cpu_time: bool,
}

/// The discrete properties of a pool, a resource that a limited number of calls can hold at the same time. They are
/// determined once from all measurements, because a resampled subset might yield other values by chance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PoolKind {
    /// Number of calls that can hold the resource at the same time.
    pub capacity: u32,
    /// Whether a call that uses the CPUs holds the resource during this time.
    pub includes_cpu_time: bool,
}

impl Pool {
    /// The discrete properties of this pool.
    pub fn kind(&self) -> PoolKind {
        PoolKind { capacity: self.capacity, includes_cpu_time: self.includes_cpu_time }
    }
}

/// A pool that is fitted to the throughput of the mix, without differences between request classes.
#[derive(Clone, Copy, Debug, PartialEq)]
struct MixPool {
    capacity: u32,
    /// Mean time for which a call of the mix holds the resource, in seconds.
    holding_time: f64,
    includes_cpu_time: bool,
}

/// A saturated resource other than the CPUs.
struct FullPool {
    /// Name of the resource's station in the model.
    name: String,
    /// The resource as a pool, with the mean time for which a call of the mix holds it.
    pool: MixPool,
    /// Time for which a call of each class holds the resource, in seconds.
    held_by_class: Vec<f64>,
    /// Text for the report: the measurements that show that the resource is full.
    evidence: String,
}

/// The measurement of the largest number of clients, and its CPU usage.
struct HighestLoad<'a> {
    facts: &'a ServerFacts,
    loads: &'a PooledLoads,
    clients: u64,
    pooled: &'a PooledMeasurement,
    cpu: CpuUse,
    /// Share of the CPUs' capacity that requests can use.
    free: f64,
}

impl Bottleneck {
    /// Determines the bottleneck. In a bootstrap, `known` has the properties of the pool that the fit to all
    /// measurements determined.
    pub fn new(facts: &ServerFacts, loads: &PooledLoads, known: Option<PoolKind>) -> Bottleneck {
        let free = 1.0 - facts.background;
        // If there are no more clients than CPUs, the CPUs may be idle although nothing else limits the throughput,
        // because each client waits for responses.
        let leaves_no_rest = |(clients, pooled): &(u64, &PooledMeasurement)| {
            facts.is_saturated || *clients > facts.servers.into() || pooled.measurement.kernel.busy.is_none()
        };
        let Some((clients, pooled)) = most_clients(loads).filter(leaves_no_rest) else {
            let evidence = "no load without think time was tried".to_owned();
            return Bottleneck::cpus(facts, free, None, evidence);
        };
        let highest = HighestLoad { facts, loads, clients, pooled, cpu: CpuUse::new(facts, pooled), free };
        if let Some(cpus) = highest.full_cpus().or_else(|| highest.exhausted_quota()) {
            return cpus;
        }
        let ladder = throughput_ladder(loads);
        let on_cpu = cost_of_fewest_clients(facts, loads).or(highest.cpu.cost).unwrap_or(0.0) / free;
        let pool_by_throughput = fit_pool(&ladder, on_cpu, known);
        let full = highest
            .full_disk(pool_by_throughput)
            .or_else(|| highest.busy_workers())
            .or_else(|| highest.connection_limit())
            .or_else(|| highest.pool_by_elimination(pool_by_throughput?, &ladder, on_cpu));
        let cost = highest.cpu.cost;
        let Some(FullPool { name, pool, held_by_class, evidence }) = full else {
            return Bottleneck::cpus(facts, free, cost, format!("nothing was full {}", highest.conditions()));
        };
        let pool =
            Pool { capacity: pool.capacity, holding_time: held_by_class, includes_cpu_time: pool.includes_cpu_time };
        Bottleneck { name, evidence, cpu_share: free, saturated_cost: cost, pool: Some(pool) }
    }

    fn cpus(facts: &ServerFacts, cpu_share: f64, saturated_cost: Option<f64>, evidence: String) -> Bottleneck {
        Bottleneck { name: facts.station.clone(), evidence, cpu_share, saturated_cost, pool: None }
    }
}

impl HighestLoad<'_> {
    fn rate(&self) -> f64 {
        self.pooled.measurement.rate()
    }

    fn programs(&self) -> &[ProgramUsage] {
        &self.pooled.measurement.kernel.programs
    }

    /// The number of clients and the CPU utilization, as a clause of the evidence.
    fn conditions(&self) -> String {
        format!("with {} clients at once, the CPUs were {} busy", self.clients, percent(self.cpu.used))
    }

    /// Whether the CPUs have spare capacity under the load `pooled`.
    fn cpus_have_room(&self, pooled: &PooledMeasurement) -> bool {
        let CpuUse { used, idle, .. } = CpuUse::new(self.facts, pooled);
        used < FULL * self.free && idle >= 1.0 - FULL
    }

    fn full_cpus(&self) -> Option<Bottleneck> {
        let CpuUse { used, idle, cost } = self.cpu;
        if used < FULL * self.free && idle >= 1.0 - FULL {
            return None;
        }
        let other_work = (1.0 - idle - used).max(0.0);
        let clients = self.clients;
        let evidence = if self.pooled.measurement.kernel.busy.is_none() {
            "only its answers can be observed".to_owned()
        } else if other_work > NOTABLE {
            format!(
                "{} busy with {clients} clients at once, and {} with other work",
                percent(used),
                percent(other_work)
            )
        } else {
            format!("{} busy with {clients} clients at once", percent(used))
        };
        let cost = cost.or(Some(f64::from(self.facts.servers) / self.rate()));
        Some(Bottleneck::cpus(self.facts, used.min(1.0), cost, evidence))
    }

    fn exhausted_quota(&self) -> Option<Bottleneck> {
        let CpuUse { used, cost, .. } = self.cpu;
        let (program, quota) = self.programs().iter().find_map(|program| Some((&program.name, program.quota?)))?;
        let evidence = format!(
            "{} busy with {} clients at once, which is all that the quota of {} CPUs leaves {program}",
            percent(used),
            self.clients,
            number(quota)
        );
        Some(Bottleneck::cpus(self.facts, used, cost, evidence))
    }

    fn full_disk(&self, pool_by_throughput: Option<MixPool>) -> Option<FullPool> {
        let (disk, busy) = busiest_disk(self.pooled).filter(|(_, busy)| *busy >= FULL)?;
        let capacity = pool_by_throughput.map_or(1, |pool| pool.capacity);
        let holding_time = |pooled: &PooledMeasurement| {
            let measurement = &pooled.measurement;
            Some(f64::from(capacity) * measurement.kernel.disks.get(disk)? / measurement.rate())
        };
        let mean = holding_time(self.pooled).unwrap_or_default();
        Some(FullPool {
            name: format!("disk {disk}"),
            pool: MixPool { capacity, holding_time: mean, includes_cpu_time: false },
            held_by_class: self.held_by_class(mean, &holding_time),
            evidence: format!("{} busy {}", percent(busy), self.conditions()),
        })
    }

    fn busy_workers(&self) -> Option<FullPool> {
        let workers = self.pooled.measurement.module.workers.filter(|workers| workers.busy_share() >= FULL)?;
        let pool = MixPool {
            capacity: workers.max_workers,
            holding_time: workers.busy / self.rate(),
            includes_cpu_time: true,
        };
        let holding_time = |pooled: &PooledMeasurement| {
            let full = pooled.measurement.module.workers.filter(|workers| workers.busy_share() >= FULL)?;
            Some(full.busy / pooled.measurement.rate())
        };
        Some(FullPool {
            name: "workers".to_owned(),
            pool,
            held_by_class: self.held_by_class(pool.holding_time, &holding_time),
            evidence: format!(
                "{} of {} workers busy, as the server itself counts them; {}",
                number(workers.busy),
                workers.max_workers,
                self.conditions()
            ),
        })
    }

    fn connection_limit(&self) -> Option<FullPool> {
        let served = self.facts.served_at_once?;
        let pool = MixPool { capacity: served, holding_time: f64::from(served) / self.rate(), includes_cpu_time: true };
        let conditions = self.conditions();
        let evidence = match served {
            1 => format!("one connection at a time is served; {conditions}"),
            _ => format!("{served} connections at a time are served, each by a worker; {conditions}"),
        };
        let held_by_class = self.held_by_class(pool.holding_time, &|pooled| self.held_if_full(pool, pooled));
        Some(FullPool { name: "workers".to_owned(), pool, held_by_class, evidence })
    }

    /// The workers whose number explains the throughput. If there are none, the pool `by_throughput`. `None` if the
    /// largest number of clients does not saturate the pool.
    fn pool_by_elimination(&self, by_throughput: MixPool, ladder: &[(u64, f64)], on_cpu: f64) -> Option<FullPool> {
        let workers = ladder.first().and_then(|(fewest, rate)| {
            let alone = *fewest as f64 / rate;
            find_workers(self.programs(), self.rate(), alone, on_cpu, self.facts.servers)
        });
        let workers = workers.filter(|workers| workers.size > 1 && u64::from(workers.size) < self.clients);
        let pool = workers.as_ref().map_or(by_throughput, |workers| MixPool {
            capacity: workers.size,
            holding_time: f64::from(workers.size) / self.rate(),
            includes_cpu_time: true,
        });
        if !self.facts.is_saturated || u64::from(pool.capacity) >= self.clients {
            return None;
        }
        let busy_cpus = self.cpu.used * f64::from(self.facts.servers);
        let (name, evidence) = describe(pool, busy_cpus, workers.as_ref(), self.programs());
        Some(FullPool {
            name: name.to_owned(),
            pool,
            held_by_class: self.held_by_class(pool.holding_time, &|pooled| self.held_if_full(pool, pooled)),
            evidence: format!("{evidence}; {}", self.conditions()),
        })
    }

    /// Mean time for which a call holds the resource, in seconds, if the load `pooled` saturates it. `None` if the CPUs
    /// may be saturated instead.
    fn held_if_full(&self, pool: MixPool, pooled: &PooledMeasurement) -> Option<f64> {
        self.cpus_have_room(pooled).then(|| f64::from(pool.capacity) / pooled.measurement.rate())
    }

    /// Time for which a call of each class holds the resource, in seconds. The times are scaled so that the mean over
    /// the mix is `mean`. `holding_time` computes the time of one class from the measurement of this class alone; it
    /// returns `None` if another resource was saturated. Classes without such a time have the same time.
    fn held_by_class(&self, mean: f64, holding_time: &dyn Fn(&PooledMeasurement) -> Option<f64>) -> Vec<f64> {
        let facts = self.facts;
        let held_alone = |class| {
            single_class_measurement(self.loads, class)
                .and_then(holding_time)
                .filter(|holding_time| holding_time.is_finite())
        };
        let known: Vec<Option<f64>> = (0..facts.classes.len()).map(held_alone).collect();
        let mut remaining = mean;
        let mut unknown_share = 0.0;
        for (holding_time, share) in known.iter().zip(&facts.mix) {
            match holding_time {
                Some(holding_time) => remaining -= share * holding_time,
                None => unknown_share += share,
            }
        }
        let others = if unknown_share > 0.0 { (remaining / unknown_share).max(0.0) } else { 0.0 };
        let all: Vec<f64> = known.into_iter().map(|holding_time| holding_time.unwrap_or(others)).collect();
        let sum: f64 = all.iter().zip(&facts.mix).map(|(holding_time, share)| holding_time * share).sum();
        if sum > 0.0 {
            all.iter().map(|holding_time| holding_time * mean / sum).collect()
        } else {
            vec![mean; all.len()]
        }
    }
}

/// CPU utilization under one load.
#[derive(Clone, Copy)]
struct CpuUse {
    /// Share of the CPU capacity that calls use, 0 to 1.
    used: f64,
    /// Share of the CPU capacity that is idle, 0 to 1.
    idle: f64,
    /// CPU seconds per call; `None` if the CPUs cannot be observed.
    cost: Option<f64>,
}

impl CpuUse {
    /// Computes the CPU utilization under one load. CPUs that cannot be observed count as fully used.
    fn new(facts: &ServerFacts, pooled: &PooledMeasurement) -> CpuUse {
        let servers = f64::from(facts.servers);
        let cost = pooled.measurement.cost(facts.idle_busy);
        let used = cost.map_or(1.0, |cost| pooled.measurement.rate() * cost / servers);
        CpuUse { used, idle: pooled.measurement.kernel.idle.map_or(1.0, |idle| idle / servers), cost }
    }
}

/// Name and evidence of a saturated pool. `busy_cpus` is the number of CPUs that calls keep busy. `workers` are the
/// processes or threads whose number equals the pool's capacity, if there are any.
fn describe(
    pool: MixPool,
    busy_cpus: f64,
    workers: Option<&WorkerGroup>,
    programs: &[ProgramUsage],
) -> (&'static str, String) {
    let capacity = pool.capacity;
    if let Some(workers) = workers {
        return ("workers", format!("{capacity} at a time, as many as {} has {}", workers.program, workers.kind));
    }
    if pool.includes_cpu_time && busy_cpus >= FULL * f64::from(capacity) {
        let what = if capacity == 1 {
            "one call at a time, on a CPU all the time: a single thread, or a lock that is held meanwhile".to_owned()
        } else {
            format!("{capacity} calls at a time, each on a CPU all the time")
        };
        return ("workers", what);
    }
    match (capacity, pool.includes_cpu_time) {
        (1, _) => {
            let single = programs.iter().find(|program| occupancy::has_one_worker(program));
            let or_worker = single.map_or(String::new(), |program| format!(", or the only worker of {}", program.name));
            ("lock or backend", format!("one call at a time, by elimination{or_worker}"))
        }
        (_, true) => ("workers", format!("{capacity} at a time, held while on the CPUs as well")),
        (_, false) => ("backend pool", format!("{capacity} calls at a time, by elimination")),
    }
}

fn busiest_disk(pooled: &PooledMeasurement) -> Option<(&str, f64)> {
    let disks = pooled.measurement.kernel.disks.iter().map(|(name, busy)| (name.as_str(), *busy));
    disks.max_by(|a, b| a.1.total_cmp(&b.1))
}

/// Throughput of the mix in calls per second for each number of closed-loop clients, in ascending order of clients.
fn throughput_ladder(loads: &PooledLoads) -> Vec<(u64, f64)> {
    let rung = |(load, pooled): (&OfferedLoad, &PooledMeasurement)| match load {
        OfferedLoad::Clients(clients) => Some((*clients, pooled.measurement.rate())),
        _ => None,
    };
    loads.iter().filter_map(rung).collect()
}

/// CPU seconds per call with the smallest number of clients. These calls find the server idle, so they may cost much
/// more than calls at the highest load.
fn cost_of_fewest_clients(facts: &ServerFacts, loads: &PooledLoads) -> Option<f64> {
    let mut closed = loads.iter().filter(|(load, _)| matches!(load, OfferedLoad::Clients(_)));
    closed.next()?.1.measurement.cost(facts.idle_busy)
}

/// Fits a pool to the throughput for each number of clients (`ladder`). A single call uses the CPUs for `on_cpu`
/// seconds. If the pool's discrete properties are `known`, only its holding time is fitted.
///
/// In the fitted model, throughput grows in proportion to the number of clients until the pool is full, and then
/// remains constant.
fn fit_pool(ladder: &[(u64, f64)], on_cpu: f64, known: Option<PoolKind>) -> Option<MixPool> {
    let (_, highest_rate) = *ladder.last()?;
    if let Some(PoolKind { capacity, includes_cpu_time }) = known {
        return Some(MixPool { capacity, holding_time: f64::from(capacity) / highest_rate, includes_cpu_time });
    }
    let (fewest, lowest_rate) = *ladder.first()?;
    // Duration of a call that does not wait, in seconds.
    let alone = fewest as f64 / lowest_rate;
    let misfit = |capacity: u32| {
        let holding_time = f64::from(capacity) / highest_rate;
        let elsewhere = alone - holding_time;
        if elsewhere < -NOTABLE * alone {
            return f64::INFINITY;
        }
        let log_error =
            |(clients, rate): &(u64, f64)| ((*clients as f64 / alone).min(highest_rate) / rate).ln().powi(2);
        let log_errors: f64 = ladder.iter().map(log_error).sum();
        // Among equally good fits, choose the pool with the least unexplained time, which calls spend neither in the
        // pool nor on the CPUs. Unexplained time up to `UNEXPLAINED` counts as zero; among such pools, choose the
        // smallest.
        log_errors + (elsewhere - on_cpu - UNEXPLAINED * alone).max(0.0) / alone * 1e-3
    };
    let capacity = (1..=MAX_POOL).min_by(|a, b| misfit(*a).total_cmp(&misfit(*b)))?;
    let holding_time = f64::from(capacity) / highest_rate;
    let includes_cpu_time = holding_time + on_cpu > (1.0 + NOTABLE) * alone;
    (misfit(capacity).is_finite() && holding_time > NOTABLE * alone).then_some(MixPool {
        capacity,
        holding_time,
        includes_cpu_time,
    })
}

#[cfg(test)]
mod tests {
    use super::super::blocks::{
        KernelMetrics, Measurement, ModuleMetrics, ReplayedMeasurement, ResponseMetrics, Timeline, pool,
    };
    use super::*;

    #[test]
    fn a_pool_is_found_by_the_throughput_of_its_clients() {
        // A resource that four calls can hold at the same time, for 5 ms each.
        let ladder: Vec<(u64, f64)> = [1, 2, 4, 8, 16].into_iter().map(|n| (n, (n as f64).min(4.0) / 0.005)).collect();
        let pool = fit_pool(&ladder, 0.0002, None).unwrap();
        assert!(pool.capacity == 4 && !pool.includes_cpu_time, "{pool:?}");
        assert!(fit_pool(&ladder, 0.001, None).unwrap().includes_cpu_time);
        assert!((pool.holding_time - 0.005).abs() < 1e-9);
        // A lock that each call holds for half of its duration.
        let ladder: Vec<(u64, f64)> =
            [1, 2, 4, 8].into_iter().map(|n| (n, (n as f64 / 0.002).min(1.0 / 0.001))).collect();
        let pool = fit_pool(&ladder, 0.001, None).unwrap();
        assert!(pool.capacity == 1 && (pool.holding_time - 0.001).abs() < 1e-9 && !pool.includes_cpu_time, "{pool:?}");
    }

    /// Six workers on two CPUs are recognized, although six clients have less than six times the throughput of one. A
    /// call occupies a worker for 10 ms, of which 3 ms are CPU time, and calls wait for the CPUs.
    #[test]
    fn workers_that_share_several_cpus_are_recognized() {
        let (alone, on_cpu, cpus) = (0.01, 0.003, 2);
        let load = |clients: u64| {
            let rate = occupancy::throughput(clients.min(6) as u32, alone, on_cpu, cpus);
            let program = ProgramUsage { name: "php-fpm".to_owned(), processes: 6, ..ProgramUsage::default() };
            let busy = rate * on_cpu;
            let kernel = KernelMetrics {
                busy: Some(busy),
                idle: Some(f64::from(cpus) - busy),
                programs: vec![program],
                ..KernelMetrics::default()
            };
            let load = OfferedLoad::Clients(clients);
            let measurement = Measurement {
                load,
                seconds: 1.0,
                throughput: vec![rate],
                kernel,
                module: ModuleMetrics::default(),
                responses: ResponseMetrics::default(),
                timeline: Timeline::default(),
            };
            ReplayedMeasurement { measurement, modelled: None, percentile_ratios: None }
        };
        let facts = ServerFacts {
            classes: vec!["page".to_owned()],
            mix: vec![1.0],
            station: "cpu".to_owned(),
            servers: cpus,
            idle_busy: 0.0,
            background: 0.0,
            is_saturated: true,
            served_at_once: None,
        };
        let block: Vec<ReplayedMeasurement> = [1, 2, 4, 8, 16, 32].map(load).into();
        let bottleneck = Bottleneck::new(&facts, &pool([&block]), None);
        assert!(
            bottleneck.evidence.starts_with("6 at a time, as many as php-fpm has processes; "),
            "{}",
            bottleneck.evidence
        );
    }
}
