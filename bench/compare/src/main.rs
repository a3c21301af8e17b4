//! Measures how often `brimful compare` finds a difference between simulated runs of two equal servers (false alarms).
//!
//! Each run is a queue with one server, Poisson arrivals and exponential service times, at a utilization of 0.7.
//! Successive response times are correlated, because calls wait for the same earlier calls. The speed of the server
//! varies from run to run by a random factor, like that of a real host. A pair is a false alarm if any metric differs
//! significantly.
#![forbid(unsafe_code)]

use brimful_core::event::{CallSpec, ClassId, End, Event, Observer, Outcome};
use brimful_core::record::Record;
use brimful_core::server::{Program, Server, ServerInterval};
use brimful_core::{Nanos, workload::Workload};
use brimful_stats::{Account, Collector, PerCall, Run, RunFacts, Side, compare, derive};
use clap::Parser;
use rand::SeedableRng;
use rand_distr::{Distribution, Exp, Normal};
use rand_pcg::Pcg64Mcg;
use std::collections::BTreeMap;

/// Rate of the Poisson arrivals, in calls per second.
const RATE: f64 = 200.0;
/// Mean service time of a call, in seconds.
const SERVICE_S: f64 = 0.7 / RATE;

/// Counts false alarms of `brimful compare`.
#[derive(Debug, Parser)]
struct Args {
    /// Number of pairs.
    #[arg(long, default_value_t = 1_000)]
    pairs: usize,
    /// Length of a run, in seconds.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Number of runs of each side.
    #[arg(long, default_value_t = 1)]
    runs: usize,
    /// Standard deviation of the speed of the host from run to run, as a share.
    #[arg(long, default_value_t = 0.0)]
    drift: f64,
    /// True difference of B's service time, as a share; not 0 to measure how often a difference is found.
    #[arg(long, default_value_t = 0.0)]
    difference: f64,
    /// Seed of all randomness.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[allow(clippy::print_stdout, reason = "numbers alone")]
fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let mut random = Pcg64Mcg::seed_from_u64(args.seed);
    let speed = Normal::new(1.0, args.drift)?;
    let mut different = 0;
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    for _ in 0..args.pairs {
        let mut side = |name: &str, service_s: f64| -> anyhow::Result<Side> {
            let run = |number| {
                let speed = speed.sample(&mut random);
                let record = simulate(&mut random, service_s / speed, args.seconds, number)?;
                Ok((format!("{name}{number}"), Run::Record(Box::new(record))))
            };
            Ok(Side { name: name.to_owned(), runs: (0..args.runs).map(run).collect::<anyhow::Result<_>>()? })
        };
        let (a, b) = (side("A", SERVICE_S)?, side("B", SERVICE_S * (1.0 + args.difference))?);
        let compared = compare(a, b, &[])?;
        different += usize::from(compared.figures.iter().any(|figure| figure.differs));
        for figure in compared.figures.into_iter().filter(|figure| figure.differs) {
            *found.entry(figure.name).or_default() += 1;
        }
    }
    let share = 100.0 * different as f64 / args.pairs as f64;
    println!("{different} of {} pairs differ in some figure ({share:.1} %); by figure: {found:?}", args.pairs);
    Ok(())
}

/// Simulates one run. The Record contains the CPU time of the server as the monitor would measure it.
fn simulate(random: &mut Pcg64Mcg, service_s: f64, seconds: u64, number: usize) -> anyhow::Result<Record> {
    let (gap, service) = (Exp::new(RATE)?, Exp::new(1.0 / service_s)?);
    let window = Nanos::from_secs(seconds);
    let mut collector = Collector::new(Account::new(&["all".to_owned()], window));
    let mut busy = vec![0.0; seconds as usize + 1];
    let (mut due, mut free) = (0.0, 0.0);
    loop {
        due += gap.sample(random);
        if due >= window.as_secs_f64() {
            break;
        }
        let work: f64 = service.sample(random);
        let begun = f64::max(due, free);
        free = begun + work;
        if let Some(busy) = busy.get_mut(begun as usize) {
            *busy += work;
        }
        observe(&mut collector, Nanos::from_secs_f64(due), Nanos::from_secs_f64(free));
    }
    busy.truncate(seconds as usize);
    let facts = RunFacts {
        started_monotonic_ns: number as u64,
        duration: window,
        window,
        workload: Some(Workload::single_class("GET", "/")),
        server: Some(server(&busy)),
        ..RunFacts::default()
    };
    Ok(derive(&collector.into_account(), facts))
}

/// Adds a call that was due at `due` and ended at `at`.
fn observe(collector: &mut Collector, due: Nanos, at: Nanos) {
    let mut call = PerCall::default();
    let class = ClassId(0);
    let end = End::Completed { status: 200 };
    let outcome = Outcome { call: CallSpec::for_class(class), due, at, end, bytes_sent: 100, bytes_received: 1_000 };
    for event in [
        Event::Scheduled { class, due },
        Event::Begun { at: due },
        Event::Sent { at: due },
        Event::FirstByte { at },
        Event::Ended(outcome),
    ] {
        collector.on(&mut call, &event);
    }
}

/// The monitor's metrics of a server that was busy for these shares of each second.
fn server(busy: &[f64]) -> Server {
    let interval = |(second, cores): (usize, &f64)| ServerInterval {
        t_s: second as f64,
        length_s: 1.0,
        process_cores: Some(*cores),
        ..ServerInterval::default()
    };
    let program = Program { name: "server".to_owned(), cpu_s: busy.iter().sum(), ..Program::default() };
    Server { process: vec![program], intervals: busy.iter().enumerate().map(interval).collect(), ..Server::default() }
}
