//! `brimful target`: runs the reference server in the foreground.

use crate::exit::{Exit, UsageError};
use crate::output::print;
use crate::progress;
use anyhow::Context;
use brimful_core::cpus::CpuList;
use brimful_core::quantity::{count, seconds};
use brimful_core::units::Count;
use brimful_target::{ReferenceCpuTimes, ServiceClass, Target, TargetConfig, TargetError};
use clap::Args;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  $ brimful target
  $ brimful target --listen 127.0.0.1:8080 --service light=200us,heavy=2ms/16KiB --workers 2";

/// Arguments of `brimful target`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct TargetArgs {
    /// Address to listen on; port 0 selects a free port
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8080")]
    pub listen: std::net::SocketAddr,
    /// Request classes, NAME=STEPS[/SIZE],…, each served at /NAME, like light=200us,heavy=2ms/16KiB
    ///
    /// The first class is also served at /. STEPS is one step, or several joined by +. A step is a CPU time; work:TIME
    /// (memory access, arithmetic and system calls, in an amount that took TIME when the server started); lock:TIME
    /// (CPU time under a lock that all requests share); sleep:TIME; or read:SIZE (from a file, past the page cache)
    /// [default: light=200us,heavy=2ms/16KiB, unless --work is given]
    #[arg(long, value_name = "CLASSES")]
    pub service: Option<String>,
    /// Request classes made of fixed work
    ///
    /// Like --service, but a time alone means work:TIME, and cpu:TIME is CPU time. With --service, these classes come after
    /// its classes.
    #[arg(long, value_name = "CLASSES")]
    pub work: Option<String>,
    /// Distribution of the times of steps around the times given with the class
    #[arg(long, value_name = "NAME", default_value = "deterministic")]
    pub distribution: String,
    /// Worker threads
    #[arg(long, value_name = "N", default_value = "1")]
    pub workers: Count,
    /// Length of the listen queue
    #[arg(long, value_name = "N", default_value = "511")]
    pub backlog: Count,
    /// Requests that may be served at once; others wait [default: as many as --workers]
    ///
    /// Like PHP-FPM's processes or a pool of database connections. A waiting request occupies its worker.
    #[arg(long, value_name = "N")]
    pub pool: Option<Count>,
    /// Maximum requests served per second; further requests get status 429 [default: unlimited]
    ///
    /// Like a gateway that limits its clients.
    #[arg(long, value_name = "N")]
    pub rate_limit: Option<Count>,
    /// Directory for the 67 MB file that read steps read; deleted at the end [default: TMPDIR or /var/tmp]
    #[arg(long, value_name = "DIR")]
    pub read_dir: Option<PathBuf>,
    /// CPUs to pin the workers to, in turn
    #[arg(long, value_name = "LIST")]
    pub cpus: Option<CpuList>,
    /// Seed of the random service demands
    #[arg(long, value_name = "N", default_value = "1")]
    pub seed: u64,
    /// End when the process that started this one ends
    #[arg(long, hide = true)]
    pub with_parent: bool,
}

/// The request classes if neither `--service` nor `--work` is given.
const DEFAULT_SERVICE: &str = "light=200us,heavy=2ms/16KiB";

/// Serves until interrupted, then prints the service demands that the server measured.
pub fn main(args: &TargetArgs) -> anyhow::Result<Exit> {
    if args.with_parent {
        let signal = Some(rustix::process::Signal::TERM);
        rustix::process::set_parent_process_death_signal(signal).context("cannot follow the parent process")?;
    }
    let usage = |error: TargetError| UsageError(error.to_string());
    let count = |n: u64, what: &str| u32::try_from(n).map_err(|_| UsageError(format!("{n} {what} are too many")));
    let stop = progress::stop_flag()?;
    let target = Target::start(TargetConfig {
        listen: args.listen,
        classes: classes(args).map_err(usage)?,
        distribution: args.distribution.parse().map_err(usage)?,
        workers: count(args.workers.0, "workers")? as usize,
        backlog: count(args.backlog.0, "places in the backlog")?,
        pool: args.pool.map(|places| count(places.0, "places in the pool")).transpose()?.map(|places| places as usize),
        rate_limit: args.rate_limit.map(|n| count(n.0, "requests a second")).transpose()?,
        cpus: args.cpus.as_ref().map(|list| list.0.clone()).unwrap_or_default(),
        read_dir: args.read_dir.clone().unwrap_or_else(default_read_dir),
        tls: false,
        seed: args.seed,
    })
    .map_err(|error| match error {
        TargetError::NoWorkers
        | TargetError::EmptyPool
        | TargetError::ZeroRateLimit
        | TargetError::DuplicateName(_)
        | TargetError::Backlog { .. }
        | TargetError::Pin { .. } => usage(error).into(),
        error => anyhow::Error::from(error),
    })?;
    print(&format!("listening on http://{}\n", target.addr()))?;
    while !stop.load(Ordering::Relaxed) {
        // The loop checks ten times a second whether a signal has set `stop`.
        std::thread::sleep(Duration::from_millis(100));
    }
    let truth = target.cpu_times();
    target.stop();
    print(&table(&truth))?;
    Ok(Exit::Ok)
}

/// The classes of `--service`, followed by the classes of `--work`; the default classes if neither is given.
fn classes(args: &TargetArgs) -> Result<Vec<ServiceClass>, TargetError> {
    let service = match (&args.service, &args.work) {
        (None, None) => Some(DEFAULT_SERVICE),
        (service, _) => service.as_deref(),
    };
    let mut classes = service.map_or(Ok(Vec::new()), ServiceClass::parse_list)?;
    classes.extend(args.work.as_deref().map_or(Ok(Vec::new()), ServiceClass::parse_work_list)?);
    Ok(classes)
}

/// The directory in `TMPDIR`, or else /var/tmp, because /tmp is often in memory.
fn default_read_dir() -> PathBuf {
    std::env::var_os("TMPDIR").filter(|path| !path.is_empty()).map_or_else(|| "/var/tmp".into(), PathBuf::from)
}

fn table(truth: &ReferenceCpuTimes) -> String {
    let mut text = format!("{:<20} {:>12} {:>14} {:>14}\n", "class", "requests", "CPU each", "nominal");
    for (name, class) in &truth.classes {
        let mean = seconds(class.mean_cpu_s);
        let nominal = seconds(class.nominal_s);
        text += &format!("{name:<20} {:>12} {mean:>14} {nominal:>14}\n", count(class.requests));
    }
    let [all, other] = [truth.total_cpu_s, truth.other_cpu_s].map(seconds);
    text += &format!("total CPU time: {all}, of which {other} belongs to no class\n");
    if let Some(pool) = truth.pool {
        let [most, waited] = [pool.most_served_at_once as u64, pool.waited].map(count);
        text += &format!("pool: at most {most} of {} places in use at once, {waited} requests waited\n", pool.places);
    }
    text
}
