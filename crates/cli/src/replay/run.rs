//! One run of a replay. The logs are read during the run.

use super::args::ReplayArgs;
use super::summary;
use crate::access_logs::{log_error, read_options};
use crate::exit::UsageError;
use crate::progress;
use crate::run_options::run_options;
use brimful_accesslog::logs::Logs;
use brimful_accesslog::read::{EntryDecision, Progress, ReadSummary};
use brimful_accesslog::replay::{Call, Replayer, STATUS_CLASSES, Summary};
use brimful_accesslog::{Entry, LogError};
use brimful_core::panics::lock;
use brimful_core::record::Record;
use brimful_core::workload::{Load, LogReplay, Workload};
use brimful_core::{Nanos, Rate};
use brimful_run::{RunObserver, RunOptions, RunPlan, StreamedCall, run_log};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// Limits of one run that replays the logs, and its rate if this is constant.
#[derive(Clone, Copy, Debug)]
pub struct ReplaySettings {
    /// The constant rate of the calls, in calls per second; `None` if calls are made at the times of the log.
    pub constant_rate: Option<f64>,
    /// Maximum number of calls of the run.
    pub max_calls: u64,
    /// Expected duration; `Nanos::MAX` if unknown.
    pub duration: Nanos,
}

/// The result of one run of a replay.
pub struct ReplayOutcome {
    /// The Record of the run.
    pub record: Record,
    /// The lines read and the calls made; `None` if the run ended before the logs did, or the logs could not be read.
    pub counts: Option<ReplayCounts>,
    /// The error that ended the reading of the logs.
    read_error: Option<LogError>,
}

/// Counts of the lines that were read, and of the calls that were made from them.
pub struct ReplayCounts {
    read: ReadSummary,
    summary: Summary,
    /// Number of calls that were made.
    pub calls: u64,
    /// Time at which the last call was due.
    pub last_due: Nanos,
}

/// The options of a run that sends the requests of the logs.
pub fn options(args: &ReplayArgs) -> anyhow::Result<RunOptions> {
    let (logs, url) = args.logs_and_url()?;
    let mut options = run_options(url, &args.request)?;
    let class = Workload::single_class("GET", "/").classes.remove(0);
    let log = LogReplay {
        files: logs,
        speed: args.speed.get(),
        flattened: args.flatten,
        max_gap_s: args.max_gap.map(Nanos::as_secs_f64),
    };
    options.load.workload = Workload {
        classes: STATUS_CLASSES
            .iter()
            .map(|name| brimful_core::workload::RequestClass { name: (*name).to_owned(), ..class.clone() })
            .collect(),
        load: Some(Load::Log(log)),
        tls: options.load.workload.tls.take(),
    };
    options.load.window = args.duration.unwrap_or(Nanos::MAX);
    Ok(options)
}

/// Runs the plan, and reads the logs during the run.
pub fn run(
    args: &ReplayArgs,
    plan: &RunPlan,
    settings: ReplaySettings,
    stop: &AtomicBool,
) -> anyhow::Result<ReplayOutcome> {
    let duration = plan.options().load.window.min(settings.duration);
    let read_feed = Mutex::new(None);
    let feed = |push: &mut dyn FnMut(StreamedCall) -> bool| {
        let read = feed(args, settings, push, stop);
        *lock(&read_feed) = Some(read);
    };
    let load = |observer: &RunObserver| run_log(plan, Box::new(feed), observer, stop).map(|output| output.record);
    let what = if settings.constant_rate.is_some() { "flat" } else { "replay" };
    let record = progress::run_with_bar(what, duration, args.output.quiet, RunObserver::default(), load);
    // An error in reading the logs explains more than the error that the run had no calls.
    match (record, read_feed.into_inner().unwrap_or_else(PoisonError::into_inner)) {
        (Ok(record), Some(Err(error))) if record.counts.scheduled > 0 => {
            Ok(ReplayOutcome { record, counts: None, read_error: Some(error) })
        }
        (_, Some(Err(error))) => Err(log_error(error)),
        (Err(_), Some(Ok(counts))) if counts.calls == 0 && counts.read.lines.read > 0 => {
            Err(UsageError(summary::no_call_message(&counts.read, &counts.summary)).into())
        }
        (record, Some(Ok(counts))) => Ok(ReplayOutcome { record: record?, counts: Some(counts), read_error: None }),
        (record, None) => Ok(ReplayOutcome { record: record?, counts: None, read_error: None }),
    }
}

/// Reads the logs and sends their calls to the load generator, until the run ends or accepts no more calls.
fn feed(
    args: &ReplayArgs,
    settings: ReplaySettings,
    push: &mut dyn FnMut(StreamedCall) -> bool,
    stop: &AtomicBool,
) -> Result<ReplayCounts, LogError> {
    let ends = args.duration.unwrap_or(Nanos::MAX);
    let mut calls = 0;
    let mut last = Nanos::ZERO;
    let mut emit = |call: Call| {
        let due = Nanos(call.due_ns);
        if due >= ends || calls >= settings.max_calls || stop.load(Ordering::Relaxed) {
            return false;
        }
        calls += 1;
        last = due;
        let headers =
            if call.is_not_modified { vec![("If-None-Match".to_owned(), "*".to_owned())] } else { Vec::new() };
        let Call { class, method, path, .. } = call;
        push(StreamedCall { due, class, method, path, headers })
    };
    let mut replayer = Replayer::new(args.replay_options(settings.constant_rate));
    let mut map_error = None;
    let mut accepts_more = true;
    let options = read_options(&args.format)?;
    let stop_reading = options.stop.clone();
    let mut sink = |entry: &Entry<'_>| {
        if !accepts_more || map_error.is_some() {
            stop_reading.store(true, Ordering::Relaxed);
            return EntryDecision::FilteredOut;
        }
        match replayer.add(entry, &mut emit) {
            Ok((goes_on, is_call)) => {
                accepts_more = goes_on;
                if is_call { EntryDecision::Accepted } else { EntryDecision::FilteredOut }
            }
            Err(error) => {
                map_error = Some(error);
                EntryDecision::FilteredOut
            }
        }
    };
    let read = Logs::open(&args.logs(), options)?.read(&mut sink, &mut |_: &Progress| {})?;
    if let Some(error) = map_error {
        return Err(error);
    }
    let summary = if accepts_more { replayer.finish(&mut emit) } else { replayer.summary() };
    Ok(ReplayCounts { read, summary, calls, last_due: last })
}

/// Mean rate of `calls` calls, in calls per second. The first call is due at 0, and the last at `last_due`.
pub fn mean_rate(calls: u64, last_due: Nanos, flag: &str) -> anyhow::Result<f64> {
    if calls < 2 || last_due == Nanos::ZERO {
        return Err(UsageError(format!(
            "all requests of the log have the same time, so there is no mean rate: remove {flag}"
        ))
        .into());
    }
    Ok(Rate((calls - 1) as f64 / last_due.as_secs_f64()).0)
}

/// Checks that no log is stdin, which cannot be read twice. The error names `flag` as the reason for reading twice.
pub fn check_readable_twice(args: &ReplayArgs, flag: &str) -> anyhow::Result<()> {
    if args.logs().iter().any(|log| log == "-") {
        return Err(
            UsageError(format!("{flag} reads the logs twice, which is impossible for stdin: give files")).into()
        );
    }
    Ok(())
}

impl ReplayOutcome {
    /// Checks that the logs were read completely.
    ///
    /// # Errors
    /// Returns an error if the logs could not be read to their ends, so that the rest was not replayed.
    pub fn check_logs_read(self) -> anyhow::Result<()> {
        self.read_error.map_or(Ok(()), |error| Err(log_error(error)))
    }

    /// Prints the counts of the logs' lines and requests on stderr.
    pub fn print_replay_summary(&self, args: &ReplayArgs) {
        if let Some(counts) = self.counts.as_ref().filter(|_| !args.output.quiet) {
            summary::print_replay_summary(&counts.read, &counts.summary, &self.record);
        }
    }
}
