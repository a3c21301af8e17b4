//! Measures the CPU time of the monitor's parts for `bench/monitor`, and prints one JSON object. The monitor runs in
//! this process, through its public interface, as in `brimful watch`.
//!
//! Times are in microseconds of the sampling thread's CPU clock. Each includes one reading of this clock, a system call
//! of about a microsecond. The monitor is measured twice: *eBPF* means with its default settings, and *plain* means
//! without eBPF.
#![forbid(unsafe_code)]

mod proc_net_tcp;

use anyhow::{Context, Result, ensure};
use brimful_core::Nanos;
use brimful_core::server::State;
use brimful_monitor::{GroupName, Groups, Intervals, MonitorConfig, ProcessSelector, Rates, Sample, Sampler};
use clap::{Parser, Subcommand};
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{Write, stdout};
use std::process::ExitCode;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Maximum time to wait for a sample with the counts of connections. Counting is expensive, so not every sample
/// contains them.
const COUNT_TIMEOUT: Duration = Duration::from_secs(20);

/// Times the parts of the monitor and prints JSON.
#[derive(Debug, Parser)]
#[command(version)]
struct Args {
    #[command(subcommand)]
    part: Part,
}

#[derive(Debug, Subcommand)]
enum Part {
    /// Full samples of one program, all groups
    Sample {
        /// The program's name
        #[arg(long)]
        process: String,
        /// The port that the program listens on
        #[arg(long)]
        port: u16,
        /// Number of samples of each kind
        #[arg(long)]
        samples: u32,
        /// Milliseconds between samples
        #[arg(long)]
        interval_ms: u64,
    },
    /// The connections of one port by state: /proc/net/tcp, sock_diag, and eBPF
    States {
        /// The port
        #[arg(long)]
        port: u16,
        /// Number of times that each source is timed
        #[arg(long)]
        rounds: u32,
    },
    /// The listening sockets of several ports, one for each
    Lookup {
        /// The ports, at least two
        #[arg(long, value_delimiter = ',', required = true)]
        ports: Vec<u16>,
        /// Number of times that each lookup is timed
        #[arg(long)]
        rounds: u32,
    },
}

/// Results of the command `sample` for one monitor.
#[derive(Debug, Serialize)]
struct Sampled {
    sources: BTreeMap<String, String>,
    /// Number of threads in the last full sample, which shows whether the monitor has read all of them.
    threads: Option<u64>,
    full_us: Vec<f64>,
    /// Times of full samples that follow one another without a pause, so that the data is in the caches.
    warm_us: Vec<f64>,
    /// Times of samples of a single group of metrics, which are taken between the full samples.
    groups_us: BTreeMap<&'static str, Vec<f64>>,
}

/// Results of one method of counting connections.
#[derive(Debug, Default, Serialize)]
struct Counted {
    source: String,
    /// The counts of the last sample, without the listening socket.
    connections: BTreeMap<State, u64>,
    us: Vec<f64>,
}

/// Results of the command `lookup` for one monitor. Samples in which sock_diag has read all sockets are left out.
#[derive(Debug, Default, Serialize)]
struct LookedUp {
    source: String,
    one_port_us: Vec<f64>,
    all_ports_us: Vec<f64>,
}

fn main() -> ExitCode {
    match run(&Args::parse().part) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("brimful-bench-monitor: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(part: &Part) -> Result<()> {
    let document = match part {
        Part::Sample { process, port, samples, interval_ms } => {
            let selectors = [ProcessSelector::Name(process.clone())];
            serde_json::to_string(&sample(&selectors, *port, *samples, Duration::from_millis(*interval_ms))?)
        }
        Part::States { port, rounds } => serde_json::to_string(&states(*port, *rounds)?),
        Part::Lookup { ports, rounds } => serde_json::to_string(&lookup(ports, *rounds)?),
    }?;
    writeln!(stdout(), "{document}").context("cannot write to stdout")
}

/// Takes samples with both monitors alternately, half an interval apart, so that the data is as rarely in the caches as
/// with a single monitor.
fn sample(
    processes: &[ProcessSelector],
    port: u16,
    samples: u32,
    interval: Duration,
) -> Result<BTreeMap<&'static str, Sampled>> {
    let mut samplers = Vec::new();
    for (name, ebpf) in [("ebpf", true), ("plain", false)] {
        samplers.push((name, Sampler::open(&config(processes, &[port], &GroupName::ALL, ebpf))?));
    }
    let mut measured = BTreeMap::new();
    let mut due = Instant::now();
    // Round 0 is a warm-up. After that, full samples alternate with samples of each single group.
    for round in 0..=samples * 2 {
        for (name, sampler) in &mut samplers {
            due += interval / 2;
            sleep(due.saturating_duration_since(Instant::now()));
            let so_far = measured.entry(*name).or_insert_with(|| Sampled {
                sources: sampler.sources(),
                threads: None,
                full_us: Vec::new(),
                warm_us: Vec::new(),
                groups_us: BTreeMap::new(),
            });
            if round % 2 == 1 {
                let (sample, us) = timed(|| sampler.sample());
                so_far.full_us.push(us);
                so_far.threads = threads(&sample);
            } else {
                for group in GroupName::ALL {
                    let (_, us) = timed(|| sampler.sample_groups(Groups::from_iter([group])));
                    if round > 0 {
                        so_far.groups_us.entry(group.name()).or_default().push(us);
                    }
                }
            }
        }
    }
    for (name, sampler) in &mut samplers {
        if let Some(sampled) = measured.get_mut(name) {
            sampled.warm_us.extend((0..samples).map(|_| timed(|| sampler.sample()).1));
            sampled.sources = sampler.sources();
        }
    }
    Ok(measured)
}

fn states(port: u16, rounds: u32) -> Result<BTreeMap<&'static str, Counted>> {
    let mut measured = BTreeMap::new();
    for _ in 0..rounds {
        let (counted, us) = timed(|| proc_net_tcp::count_connections(port));
        see(&mut measured, "proc_net_tcp", "/proc/net/tcp".to_owned(), counted?, us);
    }
    for (name, ebpf) in [("ebpf", true), ("plain", false)] {
        let mut sampler = Sampler::open(&config(&[], &[port], &[GroupName::Connections], ebpf))?;
        let _cold = sampler.sample();
        for _ in 0..rounds {
            let counted = counted(&mut sampler, port);
            let source = sampler.sources().remove("connections").unwrap_or_default();
            match counted {
                Some((counted, us)) => see(&mut measured, name, source, counted, us),
                None => {
                    measured.insert(name, Counted { source, ..Counted::default() });
                    break;
                }
            }
        }
    }
    Ok(measured)
}

/// Takes samples until one contains the counts of a port's connections. Returns these counts and the time of the
/// sample; `None` after `COUNT_TIMEOUT`.
fn counted(sampler: &mut Sampler, port: u16) -> Option<(BTreeMap<State, u64>, f64)> {
    let begun = Instant::now();
    while begun.elapsed() < COUNT_TIMEOUT {
        let (sample, us) = timed(|| sampler.sample());
        let ports = sample.groups.connections.map(|connections| connections.ports).unwrap_or_default();
        if let Some(counted) =
            ports.into_iter().find(|counts| counts.port == port).and_then(|counts| counts.connections)
        {
            return Some((counted, us));
        }
        sleep(Duration::from_millis(20));
    }
    None
}

/// Takes samples of one port and of all ports alternately.
fn lookup(ports: &[u16], rounds: u32) -> Result<BTreeMap<&'static str, LookedUp>> {
    ensure!(ports.len() > 1, "lookup compares one port with several: name at least two, such as --ports 8080,8081");
    let mut measured = BTreeMap::new();
    for (name, ebpf) in [("ebpf", true), ("plain", false)] {
        let mut one = Sampler::open(&config(&[], &ports[..1], &[GroupName::Connections], ebpf))?;
        let mut all = Sampler::open(&config(&[], ports, &[GroupName::Connections], ebpf))?;
        let mut looked_up = LookedUp::default();
        for _ in 0..rounds {
            looked_up.one_port_us.extend(look_up(&mut one, ebpf));
            looked_up.all_ports_us.extend(look_up(&mut all, ebpf));
        }
        looked_up.source = one.sources().remove("listener").unwrap_or_default();
        measured.insert(name, looked_up);
    }
    Ok(measured)
}

/// The CPU time of a sample, in microseconds. `None` if the sample also read all connections, which *plain* does in
/// some samples.
fn look_up(sampler: &mut Sampler, ebpf: bool) -> Option<f64> {
    let (sample, us) = timed(|| sampler.sample());
    let ports = sample.groups.connections?.ports;
    let walked = !ebpf && ports.iter().any(|port| port.connections.is_some());
    (!walked && ports.iter().all(|port| port.listener.is_some())).then_some(us)
}

fn config(processes: &[ProcessSelector], ports: &[u16], groups: &[GroupName], ebpf: bool) -> MonitorConfig {
    let mut intervals = Intervals::uniform(Nanos::from_secs(1));
    for group in GroupName::ALL.into_iter().filter(|group| !groups.contains(group)) {
        intervals.set(group, None);
    }
    MonitorConfig { processes: processes.to_vec(), ports: ports.to_vec(), intervals, ebpf, ..MonitorConfig::default() }
}

/// Number of threads of the first watched program.
fn threads(sample: &Sample) -> Option<u64> {
    let programs = Rates::between(sample, sample).process?.metrics.process;
    programs.first()?.threads
}

fn see(
    measured: &mut BTreeMap<&'static str, Counted>,
    name: &'static str,
    source: String,
    connections: BTreeMap<State, u64>,
    us: f64,
) {
    let counted = measured.entry(name).or_default();
    counted.us.push(us);
    (counted.source, counted.connections) = (source, connections);
}

/// Runs `work`. Returns its result, and the CPU time of this thread in microseconds.
fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let begun = cpu_us();
    let done = work();
    (done, cpu_us() - begun)
}

fn cpu_us() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
}
