//! Derives metrics from counters: means and deviations from sums, percentiles from buckets, and the CPU time that is
//! not explained by the sampled requests.
//!
//! Each metric is derived from the growth of counters from the first to the last sample that contains the server. The
//! counters may contain arbitrary numbers: a counter that falls yields no metric, and nothing is divided by zero.

use super::layout::{BUCKETS, CPU_PHASES, PHASES};
use super::{ClassSample, IoSample, ModuleSample, ServerSample, TimesSample, buckets};
use brimful_core::server::{
    CpuDemand, CpuParts, DISK_BLOCK_BYTES, Elapsed, Module, ModuleClass, ModuleServer, Phases, Sampled,
};
use std::sync::Arc;

/// The 97.5th percentile of the standard normal distribution, for 95 % confidence intervals.
const NORMAL_975: f64 = 1.96;
/// Average CPU time that a worker uses between two sampled requests, in microseconds, if all workers are busy. See
/// `BRIMFUL_CPU_REST_NS` in `server-module/clock.h`.
const REST_US: f64 = 4_000.0;
/// Minimum CPU time per process, in clock ticks, for which the kernel's accounting is used. Below it, the workers' own
/// readings of their CPU time are more precise.
const MIN_TICKS: u64 = 10;
/// Maximum share of requests in classes with fewer than two sampled requests. These classes are assumed to have the
/// mean CPU time of the other classes.
const MAX_UNSAMPLED: f64 = 0.01;

/// Growth of a server's counters between two samples.
struct Growth<'s> {
    earlier: &'s ServerSample,
    later: &'s ServerSample,
    seconds: f64,
    classes: Vec<ClassGrowth>,
}

struct ClassGrowth {
    requests: u64,
    bytes: u64,
    failed: u64,
    aborted: u64,
    resumed: u64,
    cpu: Option<CpuGrowth>,
    mixed: u64,
    blocks: BlocksGrowth,
    times: [Option<TimesGrowth>; PHASES],
}

/// Growth of the counters of disk blocks of a class between two samples, for sampled requests only.
struct BlocksGrowth {
    requests: u64,
    read: u64,
    written: u64,
}

/// CPU times of a class's sampled requests between two samples, in microseconds. At least two requests were sampled.
struct CpuGrowth {
    sampled: Sampled,
    /// Mean CPU time of each phase.
    phases: [f64; CPU_PHASES],
}

struct TimesGrowth {
    count: u64,
    sum_ns: u64,
    sum_us2: u64,
    buckets: [u64; BUCKETS],
}

/// CPU time of a server that is not explained by its sampled requests, for example of threads that serve no requests.
struct Unexplained {
    /// Unexplained CPU time divided by the number of requests, in microseconds.
    us: f64,
    /// Variance of `us` in square microseconds. Its cause is CPU time that was not read at the start and the end of the
    /// period.
    ends_us2: f64,
    requests: f64,
}

/// Computes the metrics of each server over a list of samples. A sample may lack some of the servers.
pub(super) fn over(samples: &[&ModuleSample]) -> Module {
    let mut seen: Vec<(&Arc<ServerSample>, &Arc<ServerSample>)> = Vec::new();
    for server in samples.iter().flat_map(|sample| &sample.servers) {
        match seen.iter_mut().find(|(first, _)| first.identity == server.identity) {
            Some((_, last)) => *last = server,
            None => seen.push((server, server)),
        }
    }
    let mut module = Module::default();
    for growth in seen.into_iter().filter_map(|(earlier, later)| Growth::between(earlier, later)) {
        let server = module.servers.len() as u64;
        module.classes.extend(growth.classes(server));
        module.servers.push(growth.server());
    }
    module
}

impl<'s> Growth<'s> {
    /// Compares two samples of a server. Returns `None` if a counter fell or no time has passed.
    fn between(earlier: &'s ServerSample, later: &'s ServerSample) -> Option<Growth<'s>> {
        let seconds = (later.at - earlier.at).as_secs_f64();
        if seconds <= 0.0 || earlier.classes.len() != later.classes.len() {
            return None;
        }
        let pairs = earlier.classes.iter().zip(&later.classes);
        let classes = pairs.map(|(earlier, later)| ClassGrowth::between(earlier, later)).collect::<Option<_>>()?;
        Some(Growth { earlier, later, seconds, classes })
    }

    fn server(&self) -> ModuleServer {
        let Growth { earlier, later, seconds, .. } = *self;
        let per_s = |from: u64, to: u64| to.checked_sub(from).map(|grown| grown as f64 / seconds);
        let io = earlier.io.zip(later.io);
        let unexplained = self.unexplained();
        let per_request = |figure: fn(&IoSample) -> u64| {
            let (from, to) = io?;
            let requests = to.requests.checked_sub(from.requests).filter(|&requests| requests > 0)?;
            Some(figure(&to).checked_sub(figure(&from))? as f64 / requests as f64)
        };
        ModuleServer {
            name: later.name.clone(),
            file: later.file.clone(),
            recording: later.enabled,
            requests_per_s: self.requests() / seconds,
            connections_per_s: per_s(earlier.connections, later.connections),
            requests_in_progress: later.in_progress,
            workers: later.workers,
            workers_busy: per_s(earlier.busy.0, later.busy.0).map(|ns| ns / 1e9),
            max_workers: Some(u64::from(later.workers_most)).filter(|&most| most > 0),
            workers_lost: later.lost.into(),
            cores: per_s(earlier.cpu.0, later.cpu.0).map(|ns| ns / 1e9).filter(|_| later.cpu_one_in > 0),
            cpu_one_in: later.cpu_one_in.into(),
            cpu_user_us: per_request(|io| io.user.0).map(|ns| ns / 1e3),
            cpu_system_us: per_request(|io| io.system.0).map(|ns| ns / 1e3),
            unexplained_cpu_us: unexplained.as_ref().map(|unexplained| unexplained.us),
            unexplained_cpu_ci95_half_width_us: unexplained.as_ref().map(|unexplained| self.half_width(unexplained)),
            reads_per_request: per_request(|io| io.reads),
            blocks_read_per_request: per_request(|io| io.read_bytes).map(|bytes| bytes / DISK_BLOCK_BYTES as f64),
        }
    }

    fn classes(&self, server: u64) -> impl Iterator<Item = ModuleClass> {
        let unexplained = self.unexplained();
        let demand = |index: usize, cpu: &CpuGrowth| unexplained.as_ref().map(|rest| self.demand(index, cpu, rest));
        let figures = |(index, (class, growth)): (usize, (&ClassSample, &ClassGrowth))| ModuleClass {
            name: class.name.clone(),
            server,
            requests: growth.requests,
            requests_per_s: growth.requests as f64 / self.seconds,
            bytes_per_s: growth.bytes as f64 / self.seconds,
            failed: growth.failed,
            aborted: growth.aborted,
            turns: growth.turns(),
            phases_us: growth.phases(),
            cpu_us: growth.cpu.as_ref().map(|cpu| cpu.sampled),
            cpu_ci95_half_width_us: growth.cpu.as_ref().map(|cpu| NORMAL_975 * cpu.variance().sqrt()),
            cpu_parts_us: growth.cpu.as_ref().map(CpuGrowth::parts),
            cpu_mixed: growth.mixed_share(),
            blocks_read_per_request: growth.blocks.per_request(growth.blocks.read),
            blocks_written_per_request: growth.blocks.per_request(growth.blocks.written),
            demand_us: growth.cpu.as_ref().and_then(|cpu| demand(index, cpu)),
        };
        let classes: Vec<ModuleClass> = self.later.classes.iter().zip(&self.classes).enumerate().map(figures).collect();
        classes.into_iter()
    }

    fn requests(&self) -> f64 {
        self.classes.iter().map(|class| class.requests as f64).sum()
    }

    /// The server's CPU time minus the sampled CPU time of all requests, divided by the number of requests. Returns
    /// `None` if CPU time is not measured, if there are too few requests for a meaningful result, or if more than
    /// [`MAX_UNSAMPLED`] of the requests are in classes with fewer than two sampled requests.
    fn unexplained(&self) -> Option<Unexplained> {
        let requests = self.requests();
        if self.later.cpu_one_in == 0 {
            return None;
        }
        let (mut sampled, mut explained_us) = (0.0, 0.0);
        for class in &self.classes {
            if let Some(cpu) = &class.cpu {
                sampled += class.requests as f64;
                explained_us += class.requests as f64 * cpu.sampled.mean;
            }
        }
        if sampled <= 0.0 || sampled < (1.0 - MAX_UNSAMPLED) * requests {
            return None;
        }
        let mean_us = explained_us / sampled;
        let (total_us, ends_us2) = match self.processes_us() {
            Some(of_processes) => of_processes,
            None => self.workers_us(requests, mean_us)?,
        };
        Some(Unexplained { us: total_us - mean_us, ends_us2, requests })
    }

    /// Half width of the 95 % confidence interval of the unexplained CPU time. Its variance is the sum of two
    /// variances: that of the mean CPU time of the sampled requests, and that of the CPU time at both ends of the
    /// period.
    fn half_width(&self, unexplained: &Unexplained) -> f64 {
        let of_class = |class: &ClassGrowth| {
            let share = class.requests as f64 / unexplained.requests;
            Some(share.powi(2) * class.cpu.as_ref()?.variance())
        };
        let variance: f64 = self.classes.iter().filter_map(of_class).sum();
        NORMAL_975 * (variance + unexplained.ends_us2).sqrt()
    }

    /// CPU time of the server's processes per request, by the kernel's accounting, and the variance of this value's error.
    /// The error arises because the CPU time of each process is rounded to a clock tick. Threads that serve no requests
    /// are included, such as a thread that accepts connections.
    fn processes_us(&self) -> Option<(f64, f64)> {
        let (from, to) = self.earlier.io.zip(self.later.io)?;
        let used = |io: IoSample| io.user.0.checked_add(io.system.0);
        let requests = to.requests.checked_sub(from.requests).filter(|&requests| requests > 0)? as f64;
        let least = MIN_TICKS.saturating_mul(to.tick.0).saturating_mul(to.processes);
        let us = used(to)?.checked_sub(used(from)?).filter(|&used| used > 0 && used >= least)? as f64 / 1e3;
        let ends_us2 = 2.0 * to.processes as f64 * (to.tick.0 as f64 / 1e3).powi(2) / 12.0;
        Some((us / requests, ends_us2 / requests.powi(2)))
    }

    /// CPU time of the workers per request, by their own readings, and its variance. A worker's clock is read at each
    /// sampled request. So both at the start and at the end of the period, the CPU time since the last reading is
    /// missing. This missing time depends on the random gap between sampled requests. Its standard deviation is assumed
    /// to be the CPU time of `cpu_one_in` requests plus [`REST_US`], which is an overestimate.
    fn workers_us(&self, requests: f64, mean_us: f64) -> Option<(f64, f64)> {
        let total_us = self.later.cpu.0.checked_sub(self.earlier.cpu.0)? as f64 / 1e3;
        let one_in = f64::from(self.later.cpu_one_in);
        let workers = self.earlier.workers.max(self.later.workers).max(1) as f64;
        let ends_us2 = 2.0 * workers * (one_in * mean_us + REST_US).powi(2) / requests.powi(2);
        (requests >= one_in * workers).then_some((total_us / requests, ends_us2))
    }

    /// The CPU demand D of a class; see [`CpuDemand`]. D = (1 − p) m − Σ pⱼ mⱼ + C/N. Here p is the class's share of
    /// the requests, and m the mean CPU time of its sampled requests. The sum is over the other classes. C is the CPU
    /// time of the server during N requests.
    fn demand(&self, index: usize, cpu: &CpuGrowth, unexplained: &Unexplained) -> CpuDemand {
        let weight = |other: usize, class: &ClassGrowth| {
            let share = class.requests as f64 / unexplained.requests;
            if other == index { 1.0 - share } else { share }
        };
        let of_class =
            |(other, class): (usize, &ClassGrowth)| Some(weight(other, class).powi(2) * class.cpu.as_ref()?.variance());
        let variance: f64 = self.classes.iter().enumerate().filter_map(of_class).sum();
        CpuDemand {
            mean: (cpu.sampled.mean + unexplained.us).max(0.0),
            ci95_half_width: NORMAL_975 * (variance + unexplained.ends_us2).sqrt(),
            stddev: cpu.sampled.stddev,
        }
    }
}

impl ClassGrowth {
    fn between(earlier: &ClassSample, later: &ClassSample) -> Option<ClassGrowth> {
        let grown = |figure: fn(&ClassSample) -> u64| figure(later).checked_sub(figure(earlier));
        let mut times = [const { None }; PHASES];
        for (growth, (earlier, later)) in times.iter_mut().zip(earlier.times.iter().zip(&later.times)) {
            *growth = TimesGrowth::between(earlier, later)?;
        }
        Some(ClassGrowth {
            requests: grown(|class| class.requests)?,
            bytes: grown(|class| class.bytes)?,
            failed: grown(|class| class.failed)?,
            aborted: grown(|class| class.aborted)?,
            resumed: grown(|class| class.resumed)?,
            cpu: CpuGrowth::between(earlier, later)?,
            mixed: grown(|class| class.cpu_mixed)?,
            blocks: BlocksGrowth {
                requests: grown(|class| class.blocks_count)?,
                read: grown(|class| class.blocks_read)?,
                written: grown(|class| class.blocks_written)?,
            },
            times,
        })
    }

    /// Mean number of times that a worker worked on a request: once, plus the number of times that a worker resumed it.
    fn turns(&self) -> Option<f64> {
        (self.requests > 0).then(|| 1.0 + self.resumed as f64 / self.requests as f64)
    }

    fn phases(&self) -> Phases {
        let [head, parse, process, upstream, send, log] =
            self.times.each_ref().map(|times| times.as_ref().map(TimesGrowth::elapsed));
        Phases { head, parse, process, upstream, send, log }
    }

    fn mixed_share(&self) -> Option<f64> {
        let measured = self.cpu.as_ref().map_or(0.0, |cpu| cpu.sampled.count as f64);
        let chosen = measured + self.mixed as f64;
        (chosen > 0.0).then(|| self.mixed as f64 / chosen)
    }
}

impl BlocksGrowth {
    /// Mean number of blocks per sampled request. `blocks` is the number of blocks of all sampled requests.
    fn per_request(&self, blocks: u64) -> Option<f64> {
        (self.requests > 0).then(|| blocks as f64 / self.requests as f64)
    }
}

impl CpuGrowth {
    /// Growth of a class's CPU time. The outer `None` means that a counter fell, the inner `None` that fewer than two
    /// requests were sampled.
    fn between(earlier: &ClassSample, later: &ClassSample) -> Option<Option<CpuGrowth>> {
        let grown = |figure: fn(&ClassSample) -> u64| figure(later).checked_sub(figure(earlier));
        let count = grown(|class| class.cpu_count)?;
        let squares = grown(|class| class.cpu_sum_us2)?;
        let mut phases = [0.0; CPU_PHASES];
        for (mean, (from, to)) in phases.iter_mut().zip(earlier.cpu_ns.iter().zip(&later.cpu_ns)) {
            *mean = to.checked_sub(*from)? as f64 / 1e3 / count.max(1) as f64;
        }
        if count < 2 {
            return Some(None);
        }
        let mean = phases.iter().sum();
        let sampled = Sampled { count, mean, stddev: stddev(count, mean, squares) };
        Some(Some(CpuGrowth { sampled, phases }))
    }

    /// The variance of the mean CPU time.
    fn variance(&self) -> f64 {
        self.sampled.stddev.powi(2) / self.sampled.count as f64
    }

    fn parts(&self) -> CpuParts {
        let [parse, process, log] = self.phases;
        CpuParts { parse, process, log }
    }
}

impl TimesGrowth {
    /// Growth of a phase's times. The outer `None` means that a counter fell, the inner `None` that no request had this
    /// phase.
    fn between(earlier: &TimesSample, later: &TimesSample) -> Option<Option<TimesGrowth>> {
        // While a worker adds its pending requests to the sums, its buckets may contain some of these requests twice.
        // So bucket counts may fall afterwards.
        let mut counts = dense(later);
        for (count, before) in counts.iter_mut().zip(dense(earlier)) {
            *count = count.saturating_sub(before);
        }
        let count = later.count.checked_sub(earlier.count)?;
        let (sum_ns, sum_us2) =
            (later.sum_ns.checked_sub(earlier.sum_ns)?, later.sum_us2.checked_sub(earlier.sum_us2)?);
        let growth = TimesGrowth { count, sum_ns, sum_us2, buckets: counts };
        Some((count > 0).then_some(growth))
    }

    fn elapsed(&self) -> Elapsed {
        let mean = self.sum_ns as f64 / 1e3 / self.count as f64;
        let percentile = |share| buckets::percentile_ns(&self.buckets, share).map_or(mean, |ns| ns / 1e3);
        Elapsed {
            count: self.count,
            mean,
            stddev: stddev(self.count, mean, self.sum_us2),
            p50: percentile(0.5),
            p90: percentile(0.9),
            p99: percentile(0.99),
        }
    }
}

/// The elapsed times by which these counters grew. Returns `None` if no times were added, or if a counter fell.
pub(crate) fn elapsed_between(earlier: &TimesSample, later: &TimesSample) -> Option<Elapsed> {
    TimesGrowth::between(earlier, later).flatten().as_ref().map(TimesGrowth::elapsed)
}

/// The standard deviation of `count` values with this mean and this sum of squares; 0 for a single value.
fn stddev(count: u64, mean: f64, squares: u64) -> f64 {
    let n = count as f64;
    // Because the squares were rounded, the difference can be negative.
    let variance = (squares as f64 / n - mean * mean).max(0.0);
    if count > 1 { (variance * n / (n - 1.0)).sqrt() } else { 0.0 }
}

fn dense(times: &TimesSample) -> [u64; BUCKETS] {
    let mut counts = [0_u64; BUCKETS];
    for &(bucket, count) in &times.buckets {
        if let Some(sum) = counts.get_mut(usize::from(bucket)) {
            *sum = sum.saturating_add(count);
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use brimful_core::Nanos;

    /// A class whose requests took 100 µs each in the phase `process`. Half of the sampled requests took 10 µs of CPU
    /// time, the other half 30 µs.
    fn class(requests: u64, sampled: u64) -> ClassSample {
        let mut class = ClassSample {
            name: "small".to_owned(),
            requests,
            bytes: 1000 * requests,
            failed: requests / 10,
            aborted: requests / 100,
            resumed: requests / 2,
            cpu_count: sampled,
            cpu_ns: [2_000 * sampled, 17_000 * sampled, 1_000 * sampled],
            cpu_sum_us2: (100 + 900) / 2 * sampled,
            cpu_mixed: sampled,
            blocks_count: sampled,
            blocks_read: 24 * sampled,
            blocks_written: sampled / 2,
            ..ClassSample::default()
        };
        let bucket = (0..BUCKETS).rfind(|&bucket| buckets::start_ns(bucket) <= 100_000.0).unwrap();
        class.times[2] = TimesSample {
            count: requests,
            sum_ns: 100_000 * requests,
            sum_us2: 10_000 * requests,
            buckets: vec![(bucket as u8, requests)],
        };
        class
    }

    fn server(at_s: u64, cpu_us: u64, classes: Vec<ClassSample>) -> ServerSample {
        ServerSample {
            identity: [1, 2, 3],
            at: Nanos::from_secs(at_s),
            name: "test/1".to_owned(),
            enabled: true,
            cpu_one_in: 16,
            workers_most: 150,
            workers: 2,
            in_progress: 3,
            connections: 7 * at_s,
            busy: Nanos::from_millis(1500 * at_s),
            cpu: Nanos(1000 * cpu_us),
            classes,
            ..ServerSample::default()
        }
    }

    fn figures(servers: &[ServerSample]) -> Module {
        let samples: Vec<ModuleSample> =
            servers.iter().map(|server| ModuleSample { servers: vec![Arc::new(server.clone())] }).collect();
        over(&samples.iter().collect::<Vec<_>>())
    }

    fn near(found: f64, expected: f64) {
        assert!((found / expected - 1.0).abs() < 1e-9, "{found}, not {expected}");
    }

    #[test]
    fn growth_becomes_rates_means_and_percentiles() {
        let found = figures(&[server(10, 0, vec![class(1_000, 100)]), server(12, 100_000, vec![class(5_000, 400)])]);
        let [server] = found.servers.as_slice() else { panic!("{found:?}") };
        assert_eq!(
            (server.requests_per_s, server.connections_per_s, server.requests_in_progress),
            (2_000.0, Some(7.0), 3)
        );
        assert_eq!((server.workers_busy, server.max_workers, server.workers), (Some(1.5), Some(150), 2));
        near(server.cores.unwrap(), 0.05);
        near(server.unexplained_cpu_us.unwrap(), 100_000.0 / 4_000.0 - 20.0);
        let [class] = found.classes.as_slice() else { panic!("{found:?}") };
        assert_eq!((class.requests, class.failed, class.aborted, class.bytes_per_s), (4_000, 400, 40, 2e6));
        assert_eq!(class.turns, Some(1.5));
        let process = class.phases_us.process.unwrap();
        assert_eq!((process.count, process.mean, process.stddev), (4_000, 100.0, 0.0));
        assert!(process.p50 > 98.0 && process.p99 < 114.69, "all are in the bucket from 98.3 to 114.7 µs: {process:?}");
        assert_eq!((class.phases_us.parse, class.cpu_mixed), (None, Some(0.5)));
        assert_eq!((class.blocks_read_per_request, class.blocks_written_per_request), (Some(24.0), Some(0.5)));
        let (cpu, parts) = (class.cpu_us.unwrap(), class.cpu_parts_us.unwrap());
        assert_eq!((cpu.count, cpu.mean), (300, 20.0));
        near(cpu.stddev, (100.0_f64 * 300.0 / 299.0).sqrt());
        assert_eq!((parts.parse, parts.process, parts.log), (2.0, 17.0, 1.0));
        near(class.cpu_ci95_half_width_us.unwrap(), 1.96 * (100.0_f64 / 299.0).sqrt());
    }

    /// The demand of all requests must add up to the CPU time of the workers. With a single class, the demand is then
    /// all CPU time divided by all requests, however many were sampled. Only the uncertainty at the start and the end
    /// of the period remains.
    #[test]
    fn demands_add_up_to_the_cpu_time_of_all_workers() {
        let small = |n, sampled| ClassSample { name: "small".to_owned(), ..class(n, sampled) };
        let mut large = class(1_000, 100);
        large.cpu_ns[1] *= 10;
        let none =
            || server(10, 0, vec![small(0, 0), ClassSample { name: "large".to_owned(), ..ClassSample::default() }]);
        let found = figures(&[none(), server(20, 300_000, vec![small(3_000, 300), large])]);
        let demand = |class: usize| found.classes[class].demand_us.unwrap();
        near(3_000.0 * demand(0).mean + 1_000.0 * demand(1).mean, 300_000.0);
        near(demand(1).mean - demand(0).mean, 17.0 * 9.0);
        let alone = figures(&[none(), server(20, 75_000, vec![small(3_000, 300), ClassSample::default()])]);
        let demand = alone.classes[0].demand_us.unwrap();
        near(demand.mean, 25.0);
        near(demand.ci95_half_width, 1.96 * (2.0_f64 * 2.0).sqrt() * (16.0 * 20.0 + 4_000.0) / 3_000.0);
        near(demand.stddev, alone.classes[0].cpu_us.unwrap().stddev);
    }

    /// The demand must include the CPU time of threads that serve no requests.
    #[test]
    fn demands_add_up_to_the_cpu_time_of_the_processes_where_that_is_told() {
        let at = |s, cpu_us, requests, used: u64| {
            let (user, system, tick) = (Nanos(used / 4), Nanos(used / 4 * 3), Nanos(1_000_000));
            let io = Some(IoSample { user, system, tick, processes: 2, requests, ..IoSample::default() });
            ServerSample { io, ..server(s, cpu_us, vec![class(requests, requests / 10)]) }
        };
        let found = figures(&[at(10, 0, 1_000, 0), at(20, 60_000, 5_000, 120_000_000)]);
        let demand = found.classes[0].demand_us.unwrap();
        near(demand.mean, 120_000.0 / 4_000.0);
        near(found.servers[0].unexplained_cpu_us.unwrap(), 30.0 - 20.0);
        near(demand.ci95_half_width, 1.96 * (2.0_f64 * 2.0 / 12.0).sqrt() * 1_000.0 / 4_000.0);
        assert_eq!(found.servers[0].cpu_contradiction(), None);

        // If the kernel reports less CPU time for the processes than the sampled requests used, there must be a
        // warning.
        let found = figures(&[at(10, 0, 1_000, 0), at(20, 60_000, 5_000, 40_000_000)]);
        near(found.servers[0].unexplained_cpu_us.unwrap(), 10.0 - 20.0);
        let warning = found.servers[0].cpu_contradiction().unwrap();
        assert!(warning.contains("10.0 µs of CPU time more per request"), "{warning}");
    }

    #[test]
    fn what_was_sampled_too_little_has_no_demand() {
        let of = |later: ServerSample| figures(&[server(10, 0, vec![class(0, 0), class(0, 0)]), later]);
        let unexplained = |later| of(later).servers[0].unexplained_cpu_us;
        assert!(unexplained(server(11, 1_000_000, vec![class(1_000, 60), class(9, 0)])).is_some());
        assert_eq!(
            unexplained(server(11, 1_000_000, vec![class(1_000, 60), class(30, 0)])),
            None,
            "too many requests are of a class without samples"
        );
        assert_eq!(
            unexplained(server(11, 1_000_000, vec![class(31, 31), class(0, 0)])),
            None,
            "there are too few requests"
        );
        let off = ServerSample { cpu_one_in: 0, ..server(11, 0, vec![class(1_000, 0), class(0, 0)]) };
        let off = of(off);
        assert_eq!((off.servers[0].unexplained_cpu_us, off.servers[0].cores), (None, None));
        assert_eq!((off.classes[0].cpu_us, off.classes[0].demand_us, off.classes[0].cpu_mixed), (None, None, None));
        assert_eq!(off.classes[0].blocks_read_per_request, None);
    }

    #[test]
    fn a_file_that_was_replaced_has_figures_of_its_own_and_none_wraps() {
        let old = [server(10, 0, vec![class(9_000, 0)]), server(11, 0, vec![class(9_100, 0)])];
        let new = [12, 13].map(|at| ServerSample { identity: [1, 2, 4], ..server(at, 0, vec![class(100 * at, 0)]) });
        let found = figures(&[old[0].clone(), old[1].clone(), new[0].clone(), new[1].clone()]);
        assert_eq!(found.classes.iter().map(|class| class.requests).collect::<Vec<_>>(), [100, 100]);
        assert_eq!(found.classes.iter().map(|class| class.server).collect::<Vec<_>>(), [0, 1]);
        // A new file has no counters in common with the old file. If a counter fell, there are no metrics either.
        assert_eq!(figures(&[old[1].clone(), new[0].clone()]), Module::default());
        assert_eq!(figures(&[old[1].clone(), old[0].clone()]), Module::default());
        let mut fallen = server(12, 0, vec![class(9_200, 0)]);
        fallen.classes[0].times[2].sum_ns = 1;
        assert_eq!(figures(&[old[1].clone(), fallen]), Module::default());
    }

    #[test]
    fn reads_are_of_the_requests_between_two_looks() {
        let with = |at, reads, read_bytes, requests| {
            let (user, system) = (Nanos(20_000 * requests), Nanos(60_000 * requests));
            let io = Some(IoSample { reads, read_bytes, user, system, requests, ..IoSample::default() });
            ServerSample { io, ..server(at, 0, vec![class(100 * at, 0)]) }
        };
        let found = |later| {
            let server = figures(&[with(10, 50, 0, 1000), later]).servers.remove(0);
            (server.reads_per_request, server.blocks_read_per_request)
        };
        assert_eq!(found(with(20, 350, 512 * 50, 1100)), (Some(3.0), Some(0.5)));
        let server = figures(&[with(10, 50, 0, 1000), with(20, 350, 0, 1100)]).servers.remove(0);
        assert_eq!((server.cpu_user_us, server.cpu_system_us), (Some(20.0), Some(60.0)));
        assert_eq!(found(with(20, 50, 0, 1000)), (None, None), "the kernel's counters were not read again");
        assert_eq!(found(ServerSample { io: None, ..with(20, 1, 1, 1) }), (None, None));
    }
}
