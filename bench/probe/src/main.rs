//! Times the monitor from inside, by the CPU clock of the thread that samples, and prints one JSON object: what
//! `bench/monitor` cannot see from outside. Only the monitor's public interface is used: what is timed is what
//! `brimful watch` does.
//!
//! Times are in microseconds and contain one reading of that clock, a system call of about a microsecond. *eBPF* is the
//! monitor as it is, *plain* the same without eBPF.
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

/// How long to wait for a figure that the monitor does not bring with every sample, because it is expensive.
const PATIENCE: Duration = Duration::from_secs(20);

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
        /// The port it listens on
        #[arg(long)]
        port: u16,
        /// How many samples of each kind
        #[arg(long)]
        samples: u32,
        /// Milliseconds from sample to sample
        #[arg(long)]
        interval_ms: u64,
    },
    /// The connections of one port by state: /proc/net/tcp, sock_diag, and eBPF
    States {
        /// Which
        #[arg(long)]
        port: u16,
        /// How often each is timed
        #[arg(long)]
        rounds: u32,
    },
    /// The listening sockets of several ports, one for each
    Lookup {
        /// Which, at least two
        #[arg(long, value_delimiter = ',', required = true)]
        ports: Vec<u16>,
        /// How often each is timed
        #[arg(long)]
        rounds: u32,
    },
}

/// Full samples by one sampler.
#[derive(Debug, Serialize)]
struct Sampled {
    sources: BTreeMap<String, String>,
    /// Of the last sample, to know that all of them were seen.
    threads: Option<u64>,
    full_us: Vec<f64>,
    /// Full samples one after the other, which find in the caches what they need.
    warm_us: Vec<f64>,
    /// One group alone, at other moments than the full samples.
    groups_us: BTreeMap<&'static str, Vec<f64>>,
}

/// One way to count connections.
#[derive(Debug, Default, Serialize)]
struct Counted {
    source: String,
    /// What it counted last, without the listening socket.
    connections: BTreeMap<State, u64>,
    us: Vec<f64>,
}

/// Samples of the connections group, without those in which connections were counted by a walk over all sockets.
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

/// Both samplers in turn, half an interval apart, so that each finds what it reads as cold as it would alone.
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
    // The first round finds the pages and the descriptors; then a full sample, and each group for itself.
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
        let (counted, us) = timed(|| proc_net_tcp::connections(port));
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

/// The first sample in which the connections of a port are counted; `None` if there is none for a long time.
fn counted(sampler: &mut Sampler, port: u16) -> Option<(BTreeMap<State, u64>, f64)> {
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        let (sample, us) = timed(|| sampler.sample());
        let ports = sample.groups.connections.map(|connections| connections.ports).unwrap_or_default();
        if let Some(counted) = ports.into_iter().find_map(|of| of.connections.filter(|_| of.port == port)) {
            return Some((counted, us));
        }
        sleep(Duration::from_millis(20));
    }
    None
}

/// One port and all of them in turn.
fn lookup(ports: &[u16], rounds: u32) -> Result<BTreeMap<&'static str, LookedUp>> {
    ensure!(ports.len() > 1, "what one more port costs takes two of them: --ports 8080,8081");
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

/// `None` if more was done than a look-up: a dump of all connections, which `plain` makes now and then.
fn look_up(sampler: &mut Sampler, ebpf: bool) -> Option<f64> {
    let (sample, us) = timed(|| sampler.sample());
    let ports = sample.groups.connections?.ports;
    let walked = !ebpf && ports.iter().any(|port| port.connections.is_some());
    (!walked && ports.iter().all(|port| port.listener.is_some())).then_some(us)
}

fn config(processes: &[ProcessSelector], ports: &[u16], groups: &[GroupName], ebpf: bool) -> MonitorConfig {
    let mut intervals = Intervals::every(Nanos::from_secs(1));
    for group in GroupName::ALL.into_iter().filter(|group| !groups.contains(group)) {
        intervals.set(group, None);
    }
    MonitorConfig { processes: processes.to_vec(), ports: ports.to_vec(), intervals, ebpf, ..MonitorConfig::default() }
}

/// Threads of the first program.
fn threads(sample: &Sample) -> Option<u64> {
    let programs = Rates::between(sample, sample).process?.figures.process;
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

/// What something returns, and the CPU time of this thread that it took.
fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let begun = cpu_us();
    let done = work();
    (done, cpu_us() - begun)
}

fn cpu_us() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
}
