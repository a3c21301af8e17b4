//! Describes the bottlenecks of a server in words, from the metrics of one period.
//!
//! Each resource that is at its limit, or near its limit, yields one sentence. Causes come before their consequences.

pub mod thresholds;

use crate::group::PeriodMetrics;
use crate::rates::Rates;
use brimful_core::cpus::CpuList;
use brimful_core::quantity::{count, number, whole_percent};
use brimful_core::server::{Connections, Core, CpuShares, Kernel, Listener, Module, Network, Program, Programs, Stall};
use brimful_core::text::one_line;
use thresholds::{
    BUSY_SHARE, CPU_STALL, CPU_WAIT_SHARE, IO_STALL, LOSSES_PER_S, MAJOR_FAULTS_PER_S, MEMORY_STALL, MIN_CPU_WAIT,
    MIN_DROPPED_PER_S, MIN_RETRANSMITTED_PER_S, RETRANSMITTED_SHARE, STEAL, SWAP_PAGES_PER_S, THROTTLED_TIME_SHARE,
    Thresholds, USED_MEMORY_SHARE,
};

/// If at least this share of the workers is busy, all workers count as busy. Each worker is idle for a moment between
/// two requests, so the share hardly ever reaches 1.
const MIN_ALL_BUSY: f64 = 0.99;

/// A resource that is at its limit or near it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Severity of the finding.
    pub severity: Severity,
    /// The finding as a sentence, without a full stop at its end.
    pub sentence: String,
}

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// No resource is near a limit.
    Fine,
    /// The resource is near its limit: work begins to wait.
    Near,
    /// The resource is at its limit: work waits, or is lost.
    Limit,
}

/// Lists the resources that are at or near their limits, with the most severe finding first. If no resource is near a
/// limit, the only finding says so. The list is empty if no metrics are known.
pub fn bottleneck(rates: &Rates) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(kernel) = &rates.kernel {
        cpus(&kernel.metrics, &mut findings);
    }
    if let Some(module) = &rates.module {
        workers(&module.metrics, &mut findings);
    }
    if let Some(connections) = &rates.connections {
        listeners(&connections.metrics, &mut findings);
    }
    if let Some(process) = &rates.process {
        programs(process, &mut findings);
    }
    if let Some(kernel) = &rates.kernel {
        disks_and_memory(&kernel.metrics, &mut findings);
    }
    if let Some(network) = &rates.network {
        losses(&network.metrics, &mut findings);
    }
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    if findings.is_empty() {
        findings.extend(all_fine(rates));
    }
    findings
}

/// Reports busy CPUs in one sentence, and CPUs from which the hypervisor takes time (steal) in another sentence.
fn cpus(kernel: &Kernel, findings: &mut Vec<Finding>) {
    let cores = cores(kernel);
    if let Some((severity, affected)) = worst(&cores, BUSY_SHARE, busy) {
        findings.push(Finding {
            severity,
            sentence: format!("{} {}", cpu_names(&affected, cores.len()), busy_sentence(&affected)),
        });
    }
    if let Some((severity, affected)) = worst(&cores, STEAL, |shares| shares.steal) {
        let share = whole_percent(mean(&affected, |shares| shares.steal));
        let name = cpu_names(&affected, cores.len());
        findings.push(Finding { severity, sentence: format!("the hypervisor took {share} of {name} (steal)") });
    }
}

/// The CPUs with the worst severity, and that severity. `metric` selects the share of CPU time that is compared with
/// `thresholds`.
fn worst(cores: &[Core], thresholds: Thresholds, metric: fn(&CpuShares) -> f64) -> Option<(Severity, Vec<&Core>)> {
    let severity = cores.iter().filter_map(|core| thresholds.severity_of(metric(&core.shares))).max()?;
    Some((
        severity,
        cores.iter().filter(|core| thresholds.severity_of(metric(&core.shares)) == Some(severity)).collect(),
    ))
}

fn mean(cores: &[&Core], figure: fn(&CpuShares) -> f64) -> f64 {
    cores.iter().map(|core| figure(&core.shares)).sum::<f64>() / cores.len() as f64
}

/// For each CPU, the shares of time in each state. If only the mean of all CPUs is known, the list contains only the
/// mean.
fn cores(kernel: &Kernel) -> Vec<Core> {
    match (kernel.cores.is_empty(), kernel.cpu) {
        (true, Some(shares)) => vec![Core { cpu: usize::MAX, shares }],
        _ => kernel.cores.clone(),
    }
}

fn cpu_names(cores: &[&Core], of: usize) -> String {
    let numbers: Vec<usize> = cores.iter().map(|core| core.cpu).collect();
    match *numbers {
        [usize::MAX] => "the time of all watched CPUs".to_owned(),
        [cpu] => format!("CPU {cpu}"),
        _ if cores.len() == of => format!("all {of} CPUs"),
        _ => format!("CPUs {}", CpuList(numbers)),
    }
}

/// A phrase for the mean of several CPUs, such as `is 97 % busy, 88 % of it in the kernel`.
fn busy_sentence(cores: &[&Core]) -> String {
    let used = mean(cores, busy);
    let in_kernel = mean(cores, |shares| shares.system);
    let interrupts = mean(cores, |shares| shares.interrupt.unwrap_or_default());
    let verb = if cores.len() == 1 { "is" } else { "are" };
    let mut text =
        format!("{verb} {} busy, {} of it in the kernel", whole_percent(used), whole_percent(in_kernel / used));
    if interrupts > used / 3.0 {
        text += &format!(" ({} with interrupts)", whole_percent(interrupts / used));
    }
    text
}

/// The share of time in which a CPU was busy. Steal is not included, because it has its own finding.
fn busy(shares: &CpuShares) -> f64 {
    shares.user + shares.system
}

/// Reports servers whose workers are all busy. Each worker handles one request or connection at a time, so further
/// requests or connections wait.
fn workers(module: &Module, findings: &mut Vec<Finding>) {
    for server in &module.servers {
        let (Some(most), Some(busy)) = (server.max_workers.filter(|&most| most > 0), server.workers_busy) else {
            continue;
        };
        let share = busy / most as f64;
        BUSY_SHARE.report(share, findings, || {
            let name = one_line(&server.name);
            match share >= MIN_ALL_BUSY {
                true => format!("all {} workers of {name} are busy", count(most)),
                false => format!("{} of {} workers of {name} are busy", count(busy.round() as u64), count(most)),
            }
        });
    }
}

fn listeners(connections: &Connections, findings: &mut Vec<Finding>) {
    for port in &connections.ports {
        let Some(Listener { fullest, dropped_per_s, .. }) = port.listener else { continue };
        let drops = dropped_per_s >= MIN_DROPPED_PER_S;
        let fill = BUSY_SHARE.severity_of(fullest.fullness());
        let Some(severity) = fill.max(drops.then_some(Severity::Limit)) else { continue };
        let mut sentence = if connections.ports.len() > 1 { format!("port {}: ", port.port) } else { String::new() };
        sentence += &format!("accept queue {}/{}", count(fullest.length), count(fullest.limit));
        if drops {
            sentence += &format!(", {} SYN/s dropped", number(dropped_per_s));
        }
        findings.push(Finding { severity, sentence });
    }
}

fn programs(process: &PeriodMetrics<Programs>, findings: &mut Vec<Finding>) {
    let seconds = process.length().as_secs_f64();
    for program in process.metrics.process.iter().filter(|_| seconds > 0.0) {
        let Program { name, cpu_s, run_queue_wait_s, major_faults, quota, .. } = program;
        if let Some(quota) = quota {
            let share = (quota.throttled_s / seconds).min(1.0);
            THROTTLED_TIME_SHARE.report(share, findings, || {
                let cpus = number(quota.cpus);
                format!("{name} is stopped by a quota of {cpus} CPUs {} of the time", whole_percent(share))
            });
        }
        if let Some(wait) = run_queue_wait_s.filter(|wait| wait / seconds >= MIN_CPU_WAIT) {
            let share = wait / (wait + cpu_s);
            CPU_WAIT_SHARE
                .report(share, findings, || format!("{name} waits for a CPU {} of the time", whole_percent(share)));
        }
        if let Some(faults) = major_faults.map(|faults| faults as f64 / seconds) {
            MAJOR_FAULTS_PER_S
                .report(faults, findings, || format!("{name} waits for the disk in {} page faults/s", number(faults)));
        }
    }
}

/// Reports busy disks, scarce memory, and stalls (pressure stall information).
fn disks_and_memory(kernel: &Kernel, findings: &mut Vec<Finding>) {
    let nothing_so_far = findings.is_empty();
    for (name, disk) in &kernel.disks {
        BUSY_SHARE.report(disk.utilization, findings, || {
            let queue = if disk.queue_length >= 1.5 {
                format!(", {} operations under way", count(disk.queue_length.round() as u64))
            } else {
                String::new()
            };
            format!("disk {name} is {} busy{queue}", whole_percent(disk.utilization))
        });
    }
    let memory_used =
        kernel.memory.and_then(|memory| Some(1.0 - memory.available_bytes? as f64 / memory.total_bytes.max(1) as f64));
    if let Some(used) = memory_used {
        USED_MEMORY_SHARE.report(used, findings, || format!("memory: {} of it is in use", whole_percent(used)));
    }
    let swapped = kernel.paging.and_then(|paging| Some(paging.swap_ins_per_s? + paging.swap_outs_per_s?));
    if let Some(pages) = swapped {
        SWAP_PAGES_PER_S
            .report(pages, findings, || format!("memory: {} pages/s are swapped in and out", number(pages)));
    }
    let pressure = kernel.pressure.unwrap_or_default();
    let mut stall = |what: &str, thresholds: Thresholds, stall: Option<Stall>| {
        if let Some(Stall { some, .. }) = stall {
            thresholds.report(some, findings, || {
                format!("{what}: {} of the time something waited for it (PSI)", whole_percent(some))
            });
        }
    };
    stall("memory", MEMORY_STALL, pressure.memory);
    stall("storage", IO_STALL, pressure.io);
    if nothing_so_far {
        stall("CPU time", CPU_STALL, pressure.cpu);
    }
}

fn losses(network: &Network, findings: &mut Vec<Finding>) {
    let tcp = network.tcp.unwrap_or_default();
    if let (Some(again), Some(sent)) = (tcp.retransmitted_per_s, tcp.segments_out_per_s) {
        let share = if again >= MIN_RETRANSMITTED_PER_S { again / (again + sent) } else { 0.0 };
        RETRANSMITTED_SHARE.report(share, findings, || format!("{} of segments retransmitted", whole_percent(share)));
    }
    let mut lost = |per_s: Option<f64>, what: &str| {
        if let Some(per_s) = per_s {
            LOSSES_PER_S.report(per_s, findings, || format!("{} {what}", number(per_s)));
        }
    };
    lost(network.queue_overflows_per_s, "packets/s dropped because a CPU's receive queue was full");
    lost(tcp.backlog_drops_per_s, "segments/s dropped because a socket's backlog was full");
    lost(tcp.syn_cookies_per_s, "SYN cookies/s: the queue of half-open connections overflows");
    for (name, traffic) in &network.interfaces {
        lost(Some(traffic.rx_errors_per_s), &format!("packets/s arrived damaged on {name}"));
        lost(Some(traffic.tx_errors_per_s), &format!("packets/s could not be sent on {name}"));
        lost(Some(traffic.tx_dropped_per_s), &format!("packets/s dropped before they were sent on {name}"));
        lost(Some(traffic.collisions_per_s), &format!("collisions/s on {name}"));
    }
}

/// The finding that nothing is near a limit. It names the utilization of the busiest CPU.
fn all_fine(rates: &Rates) -> Option<Finding> {
    let cores = rates.kernel.as_ref().map(|kernel| cores(&kernel.metrics)).unwrap_or_default();
    let busiest = cores.iter().map(|core| busy(&core.shares)).reduce(f64::max);
    let sentence = match busiest {
        Some(share) if cores.len() > 1 => {
            format!("nothing is near a limit: the busiest CPU is {} busy", whole_percent(share))
        }
        Some(share) => format!("nothing is near a limit: the CPU is {} busy", whole_percent(share)),
        None => "nothing that is watched is near a limit".to_owned(),
    };
    (!rates.is_empty()).then_some(Finding { severity: Severity::Fine, sentence })
}

#[cfg(test)]
mod tests {
    use super::*;
    use brimful_core::Nanos;
    use brimful_core::server::{AcceptQueue, Disk, Memory, ModuleServer, NetworkTraffic, Paging, Port, Pressure, Tcp};

    fn period<T>(seconds: u64, metrics: T) -> Option<PeriodMetrics<T>> {
        Some(PeriodMetrics { from: Nanos::ZERO, to: Nanos::from_secs(seconds), suspended: Nanos::ZERO, metrics })
    }

    fn core(cpu: usize, user: f64, system: f64, steal: f64) -> Core {
        let shares = CpuShares { user, system, steal, idle: 1.0 - user - system - steal, ..CpuShares::default() };
        Core { cpu, shares }
    }

    fn kernel(kernel: Kernel) -> Rates {
        Rates { kernel: period(1, kernel), ..Rates::default() }
    }

    fn with_cores(cores: &[Core]) -> Rates {
        kernel(Kernel { cores: cores.to_vec(), ..Kernel::default() })
    }

    fn ports(ports: &[(u16, u64, u64, f64)]) -> Rates {
        let port = |&(port, length, limit, dropped_per_s): &_| {
            let fullest = AcceptQueue { length, limit };
            let listener = Listener { fullest, dropped_per_s, ..Listener::default() };
            Port { port, listener: Some(listener), connections: None }
        };
        let connections = Connections { ports: ports.iter().map(port).collect(), ..Connections::default() };
        Rates { connections: period(1, connections), ..Rates::default() }
    }

    fn workers(busy: f64, most: u64) -> Rates {
        let name = "Apache/2.4.66 (prefork)".to_owned();
        let server =
            ModuleServer { name, max_workers: Some(most), workers_busy: Some(busy), ..ModuleServer::default() };
        // An nginx worker handles many requests at a time, so there is no limit (`workers_most`) that could be reached.
        let nginx = ModuleServer { workers: 2, workers_busy: Some(2.0), ..ModuleServer::default() };
        Rates { module: period(1, Module { servers: vec![server, nginx], ..Module::default() }), ..Rates::default() }
    }

    fn program(cpu_s: f64, wait: f64, major_faults: u64) -> Rates {
        let (name, run_queue_wait_s, major_faults) = ("nginx".to_owned(), Some(wait), Some(major_faults));
        let process = Program { name, cpu_s, run_queue_wait_s, major_faults, ..Program::default() };
        Rates { process: period(2, Programs { process: vec![process] }), ..Rates::default() }
    }

    fn network(interface: NetworkTraffic, tcp: Tcp) -> Rates {
        let interfaces = [("eth0".to_owned(), interface)].into();
        Rates { network: period(1, Network { interfaces, tcp: Some(tcp), ..Network::default() }), ..Rates::default() }
    }

    fn pressure(cpu: f64, memory: f64, io: f64) -> Rates {
        let stall = |some| Some(Stall { some, full: None });
        let pressure = Pressure { cpu: stall(cpu), memory: stall(memory), io: stall(io) };
        kernel(Kernel { pressure: Some(pressure), cores: vec![core(0, 0.1, 0.02, 0.0)], ..Kernel::default() })
    }

    fn tcp(again: f64, sent: f64) -> Tcp {
        Tcp { retransmitted_per_s: Some(again), segments_out_per_s: Some(sent), ..Tcp::default() }
    }

    #[test]
    fn each_thing_at_a_limit_is_said_in_words() {
        use Severity::{Limit, Near};
        let disk = |utilization, queue_length| {
            let disks = [("vda".to_owned(), Disk { utilization, queue_length, ..Disk::default() })].into();
            kernel(Kernel { disks, ..Kernel::default() })
        };
        let memory = |available| {
            let memory = Memory { total_bytes: 1000, available_bytes: Some(available) };
            let paging = Paging { swap_ins_per_s: Some(900.0), swap_outs_per_s: Some(300.0), ..Paging::default() };
            kernel(Kernel { memory: Some(memory), paging: Some(paging), ..Kernel::default() })
        };
        let interrupted = |mut core: Core| {
            core.shares.interrupt = Some(0.5);
            core
        };
        let whole = CpuShares { user: 0.5, system: 0.48, idle: 0.02, ..CpuShares::default() };
        let table: [(Rates, Severity, &str); 22] = [
            (workers(149.7, 150), Limit, "all 150 workers of Apache/2.4.66 (prefork) are busy"),
            (workers(129.6, 150), Near, "130 of 150 workers of Apache/2.4.66 (prefork) are busy"),
            (
                with_cores(&[core(0, 0.12, 0.85, 0.0), core(1, 0.1, 0.1, 0.0)]),
                Limit,
                "CPU 0 is 97 % busy, 88 % of it in the kernel",
            ),
            (
                with_cores(&[core(0, 0.9, 0.0, 0.0), core(1, 0.5, 0.3, 0.0), core(2, 0.0, 0.0, 0.0)]),
                Near,
                "CPUs 0-1 are 85 % busy, 18 % of it in the kernel",
            ),
            (
                with_cores(&[interrupted(core(0, 0.1, 0.9, 0.0)), interrupted(core(1, 0.1, 0.9, 0.0))]),
                Limit,
                "all 2 CPUs are 100 % busy, 90 % of it in the kernel (50 % with interrupts)",
            ),
            (
                kernel(Kernel { cpu: Some(whole), ..Kernel::default() }),
                Limit,
                "the time of all watched CPUs is 98 % busy, 49 % of it in the kernel",
            ),
            (
                with_cores(&[core(0, 0.1, 0.1, 0.0), core(1, 0.3, 0.1, 0.3)]),
                Limit,
                "the hypervisor took 30 % of CPU 1 (steal)",
            ),
            (ports(&[(80, 4096, 4096, 1210.0)]), Limit, "accept queue 4,096/4,096, 1,210 SYN/s dropped"),
            (ports(&[(80, 1, 8, 0.25)]), Limit, "accept queue 1/8, 0.250 SYN/s dropped"),
            (ports(&[(80, 0, 511, 0.0), (81, 450, 511, 0.0)]), Near, "port 81: accept queue 450/511"),
            (program(1.0, 0.75, 0), Near, "nginx waits for a CPU 43 % of the time"),
            (program(1.0, 3.0, 0), Limit, "nginx waits for a CPU 75 % of the time"),
            (program(1.0, 0.0, 2468), Limit, "nginx waits for the disk in 1,234 page faults/s"),
            (disk(0.99, 1.2), Limit, "disk vda is 99 % busy"),
            (disk(0.85, 12.4), Near, "disk vda is 85 % busy, 12 operations under way"),
            (memory(500), Limit, "memory: 1,200 pages/s are swapped in and out"),
            (memory(10), Limit, "memory: 99 % of it is in use"),
            (pressure(0.2, 0.12, 0.1), Near, "memory: 12 % of the time something waited for it (PSI)"),
            (pressure(0.2, 0.0, 0.3), Near, "storage: 30 % of the time something waited for it (PSI)"),
            (pressure(0.85, 0.0, 0.0), Limit, "CPU time: 85 % of the time something waited for it (PSI)"),
            (network(NetworkTraffic::default(), tcp(3.0, 97.0)), Near, "3 % of segments retransmitted"),
            (
                network(NetworkTraffic { rx_errors_per_s: 2.0, ..NetworkTraffic::default() }, tcp(0.9, 1.0)),
                Near,
                "2.00 packets/s arrived damaged on eth0",
            ),
        ];
        for (rates, severity, sentence) in table {
            let findings = bottleneck(&rates);
            assert_eq!((findings[0].severity, findings[0].sentence.as_str()), (severity, sentence), "{findings:?}");
        }
    }

    #[test]
    fn the_worst_comes_first_and_causes_before_what_follows() {
        let mut rates = with_cores(&[core(0, 0.12, 0.85, 0.0), core(1, 0.1, 0.0, 0.2)]);
        rates.connections = ports(&[(80, 4097, 4096, 1210.0)]).connections;
        rates.process = program(0.9, 0.7, 0).process;
        rates.module = workers(8.0, 8).module;
        let said: Vec<String> = bottleneck(&rates).into_iter().map(|finding| finding.sentence).collect();
        assert_eq!(
            said,
            [
                "CPU 0 is 97 % busy, 88 % of it in the kernel",
                "all 8 workers of Apache/2.4.66 (prefork) are busy",
                "accept queue 4,097/4,096, 1,210 SYN/s dropped",
                "the hypervisor took 20 % of CPU 1 (steal)",
                "nginx waits for a CPU 44 % of the time"
            ]
        );
    }

    #[test]
    fn where_nothing_is_wrong_that_is_said_and_what_would_be_next() {
        let only = |rates: &Rates| {
            let findings = bottleneck(rates);
            assert_eq!((findings.len(), findings[0].severity), (1, Severity::Fine), "{findings:?}");
            findings[0].sentence.clone()
        };
        let idle = with_cores(&[core(0, 0.02, 0.02, 0.0), core(1, 0.1, 0.02, 0.05)]);
        assert_eq!(only(&idle), "nothing is near a limit: the busiest CPU is 12 % busy");
        assert_eq!(only(&pressure(0.1, 0.01, 0.1)), "nothing is near a limit: the CPU is 12 % busy");
        assert_eq!(only(&ports(&[(80, 3, 511, 0.0)])), "nothing that is watched is near a limit");
        assert_eq!(only(&program(0.001, 0.01, 3)), "nothing that is watched is near a limit");
        assert_eq!(bottleneck(&Rates::default()), []);
    }
}
