//! `brimful load --sweep`: the same kind of load at rising rates, or with rising numbers of S-Clients, each of which
//! keeps a connection attempt pending (Banga & Druschel 1997).

use super::args::LoadArgs;
use super::levels::Levels;
use super::stop_conditions;
use crate::exit::{self, Exit};
use crate::output::{OutFile, deliver, first_failure, text_or_document};
use crate::progress;
use crate::results::write_page;
use brimful_core::record::Record;
use brimful_core::sweep::{SCHEMA, Sweep, SweepLevel};
use brimful_report::sweep::{headline, text};
use brimful_run::{RunObserver, RunOptions, RunPlan, run};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Pause before the next load level, in which an overloaded server can work off its backlog.
const REST: Duration = Duration::from_secs(1);
/// Interval at which a pause checks whether the user has interrupted the sweep.
const STOP_CHECK: Duration = Duration::from_millis(20);

/// Generates each load of the sweep, and prints the Sweep document or writes it to the file of `--out`.
pub fn main(args: &LoadArgs, plan: &RunPlan, levels: Levels<'_>) -> anyhow::Result<Exit> {
    let out = OutFile::create_optional(args.output.out.as_deref(), "--out")?;
    let html = OutFile::create_optional(args.html.as_deref(), "--html")?;
    let stop = progress::stop_flag()?;
    let mut measured = Vec::new();
    let failure = measure(args, plan.options(), levels, &stop, &mut measured).err();
    if measured.is_empty()
        && let Some(failure) = failure
    {
        return Err(failure);
    }
    let sweep = Sweep {
        schema: SCHEMA.to_owned(),
        command: plan.options().record.command.clone(),
        target: plan.options().server.endpoint.url.clone(),
        headline: headline(levels.kind, &measured),
        kind: levels.kind,
        levels: measured,
        interrupted: stop.load(Ordering::Relaxed),
    };
    let json = brimful_report::json::document("sweep", &sweep)?;
    let shown = if args.output.json { json.clone() } else { text_or_document(|| text(&sweep), &json) };
    let delivered = deliver(out, &json, &shown).map(|()| code(&sweep));
    first_failure(delivered, [write_page(html, "sweep", &sweep), failure.map_or(Ok(()), Err)])
}

/// Generates the load at each level of the sweep, and appends the results to `measured`. Ends early if a load was
/// interrupted or stopped.
fn measure(
    args: &LoadArgs,
    options: &RunOptions,
    levels: Levels<'_>,
    stop: &AtomicBool,
    measured: &mut Vec<SweepLevel>,
) -> anyhow::Result<()> {
    for (index, &level) in levels.values.iter().enumerate() {
        if index > 0 && !rest(stop) {
            return Ok(());
        }
        let plan = RunPlan::new(options.clone().with_load(levels.load(level, &args.arrivals, args.think)?))?;
        let stop_when = stop_conditions(args, &options.load.workload)?;
        let observer = RunObserver { stop_when, ..RunObserver::default() };
        let title = format!("level {} of {}", index + 1, levels.values.len());
        let load = |observer: &RunObserver| run(&plan, observer, stop);
        let record = progress::run_with_bar(&title, options.load.window, args.output.quiet, observer, load)?.record;
        let has_ended = record.interrupted || record.stopped_by.is_some();
        measured.push(SweepLevel { level, record: Record { hdr: Default::default(), account: None, ..record } });
        if has_ended {
            return Ok(());
        }
    }
    Ok(())
}

/// Waits between two loads. Returns false if the user interrupted the sweep.
fn rest(stop: &AtomicBool) -> bool {
    let end = Instant::now() + REST;
    while Instant::now() < end && !stop.load(Ordering::Relaxed) {
        thread::sleep(STOP_CHECK);
    }
    !stop.load(Ordering::Relaxed)
}

/// The exit code of a sweep. A sweep overloads the server on purpose, so failed calls do not affect the exit code.
fn code(sweep: &Sweep) -> Exit {
    let has_completed = sweep.levels.iter().any(|level| level.record.counts.completed > 0);
    let is_stopped = sweep.levels.iter().any(|level| level.record.stopped_by.is_some());
    match sweep.levels.first() {
        _ if sweep.interrupted => Exit::Interrupted,
        _ if is_stopped => Exit::MissedObjective,
        Some(first) if !has_completed => exit::code_for_record(&first.record),
        _ if sweep.levels.iter().any(|level| !level.record.verdict.valid) => Exit::GeneratorLimit,
        _ => Exit::Ok,
    }
}
