//! `brimful target`: the reference server in the foreground.

use crate::args::TargetArgs;
use crate::exit::{Exit, UsageError};
use crate::output::print;
use crate::progress;
use anyhow::Context;
use brimful_core::quantity::{count, seconds};
use brimful_target::{ServiceClass, Target, TargetConfig, TargetError, Truth};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// What is served unless something else is asked for.
const DEFAULT_SERVICE: &str = "light=200us,heavy=2ms/16KiB";

/// Serves until it is interrupted, then tells what it has spent.
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
        | TargetError::ServesNothing
        | TargetError::DuplicateName(_)
        | TargetError::Backlog { .. }
        | TargetError::Pin { .. } => usage(error).into(),
        error => anyhow::Error::from(error),
    })?;
    print(&format!("listening on http://{}\n", target.addr()))?;
    while !stop.load(Ordering::Relaxed) {
        // A signal ends the sleep early.
        std::thread::sleep(Duration::from_millis(100));
    }
    let truth = target.truth();
    target.stop();
    print(&table(&truth))?;
    Ok(Exit::Ok)
}

/// Those of --service, then those of --work; without either, the default ones.
fn classes(args: &TargetArgs) -> Result<Vec<ServiceClass>, TargetError> {
    let service = match (&args.service, &args.work) {
        (None, None) => Some(DEFAULT_SERVICE),
        (service, _) => service.as_deref(),
    };
    let mut classes = service.map_or(Ok(Vec::new()), ServiceClass::parse_list)?;
    classes.extend(args.work.as_deref().map_or(Ok(Vec::new()), ServiceClass::parse_work_list)?);
    Ok(classes)
}

/// /tmp is often in memory.
fn default_read_dir() -> PathBuf {
    std::env::var_os("TMPDIR").filter(|path| !path.is_empty()).map_or_else(|| "/var/tmp".into(), PathBuf::from)
}

fn table(truth: &Truth) -> String {
    let mut text = format!("{:<20} {:>12} {:>14} {:>14}\n", "class", "requests", "CPU each", "nominal");
    for (name, class) in &truth.classes {
        let (mean, nominal) = (seconds(class.mean_cpu_s), seconds(class.nominal_s));
        text += &format!("{name:<20} {:>12} {mean:>14} {nominal:>14}\n", count(class.requests));
    }
    let [all, other] = [truth.total_cpu_s, truth.other_cpu_s].map(seconds);
    text += &format!("CPU in all: {all}, of it for no class: {other}\n");
    if let Some(pool) = truth.pool {
        let [most, waited] = [pool.most_served_at_once as u64, pool.waited].map(count);
        text += &format!("pool: at most {most} of {} places taken at once, {waited} requests waited\n", pool.places);
    }
    text
}
