//! One run of a replay: the logs are read while their calls are made.

use super::args::ReplayArgs;
use super::summary;
use crate::access_logs::{log_error, read_options};
use crate::exit::UsageError;
use crate::progress;
use crate::run_plan::request_plan;
use brimful_accesslog::logs::Logs;
use brimful_accesslog::read::{Kept, Progress, Read};
use brimful_accesslog::replay::{CLASSES, Call, Replayer, Summary};
use brimful_accesslog::{Entry, LogError};
use brimful_core::record::Record;
use brimful_core::workload::{Load, LogReplay, Workload};
use brimful_core::{Nanos, Rate};
use brimful_run::{RunPlan, StreamedCall, run_stream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What is replayed, besides what the flags say.
#[derive(Clone, Copy, Debug)]
pub struct How {
    /// At this constant rate, in calls per second.
    pub flattened: Option<f64>,
    /// So many calls.
    pub most: u64,
    /// How long it will last, as far as that is known.
    pub lasts: Nanos,
}

/// What came of it.
pub struct Replayed {
    pub record: Record,
    /// What was read from the logs; `None` if the run ended before the logs did, or they could not be read to their
    /// ends.
    pub fed: Option<Fed>,
    /// Why the logs could not be read to their ends.
    unread: Option<LogError>,
}

/// What was read, and handed over.
pub struct Fed {
    read: Read,
    summary: Summary,
    pub calls: u64,
    /// When the last of them was due.
    pub last: Nanos,
}

pub fn plan(args: &ReplayArgs) -> anyhow::Result<RunPlan> {
    let (logs, url) = args.logs_and_url()?;
    let mut plan = request_plan(url, &args.request)?;
    let class = Workload::single("GET", "/").classes.remove(0);
    let log = LogReplay {
        files: logs,
        speed: args.speed.get(),
        flattened: args.flatten,
        max_gap_s: args.max_gap.map(Nanos::as_secs_f64),
    };
    plan.workload = Workload {
        classes: CLASSES
            .iter()
            .map(|name| brimful_core::workload::Class { name: (*name).to_owned(), ..class.clone() })
            .collect(),
        load: Some(Load::Log(log)),
        tls: plan.workload.tls.take(),
    };
    plan.window = args.duration.unwrap_or(Nanos::MAX);
    Ok(plan)
}

/// One run. The logs are read while it goes on.
pub fn replayed(args: &ReplayArgs, mut plan: RunPlan, how: How, stop: &AtomicBool) -> anyhow::Result<Replayed> {
    let lasts = plan.window.min(how.lasts);
    plan.live = progress::is_shown(lasts, args.output.quiet).then(Arc::default);
    let fed = Mutex::new(None);
    let feed = |push: &mut dyn FnMut(StreamedCall) -> bool| {
        let read = feed(args, how, push, stop);
        *fed.lock().unwrap_or_else(PoisonError::into_inner) = Some(read);
    };
    let load = || run_stream(&plan, Box::new(feed), stop);
    let what = if how.flattened.is_some() { "flat" } else { "replay" };
    let record = progress::during(what, lasts, plan.live.as_deref(), load);
    // Why nothing was read says more than that there was nothing to do.
    match (record, fed.into_inner().unwrap_or_else(PoisonError::into_inner)) {
        (Ok(record), Some(Err(error))) if record.counts.scheduled > 0 => {
            Ok(Replayed { record, fed: None, unread: Some(error) })
        }
        (_, Some(Err(error))) => Err(log_error(error)),
        (Err(_), Some(Ok(fed))) if fed.calls == 0 && fed.read.lines.read > 0 => {
            Err(UsageError(summary::no_call(&fed.read, &fed.summary)).into())
        }
        (record, Some(Ok(fed))) => Ok(Replayed { record: record?, fed: Some(fed), unread: None }),
        (record, None) => Ok(Replayed { record: record?, fed: None, unread: None }),
    }
}

/// Reads the logs and hands over their calls, until nobody wants more.
fn feed(
    args: &ReplayArgs,
    how: How,
    push: &mut dyn FnMut(StreamedCall) -> bool,
    stop: &AtomicBool,
) -> Result<Fed, LogError> {
    let ends = args.duration.unwrap_or(Nanos::MAX);
    let (mut calls, mut last) = (0, Nanos::ZERO);
    let mut emit = |call: Call| {
        let due = Nanos(call.due_ns);
        if due >= ends || calls >= how.most || stop.load(Ordering::Relaxed) {
            return false;
        }
        (calls, last) = (calls + 1, due);
        let headers = if call.unchanged { vec![("If-None-Match".to_owned(), "*".to_owned())] } else { Vec::new() };
        let Call { class, method, path, .. } = call;
        push(StreamedCall { due, class, method, path, headers })
    };
    let mut replayer = Replayer::new(args.replay_options(how.flattened));
    let (mut wrong, mut wanted) = (None, true);
    let options = read_options(&args.format)?;
    let enough = options.enough.clone();
    let mut sink = |entry: &Entry<'_>| {
        if !wanted || wrong.is_some() {
            enough.store(true, Ordering::Relaxed);
            return Kept::No;
        }
        match replayer.add(entry, &mut emit) {
            Ok((goes_on, is_call)) => {
                wanted = goes_on;
                if is_call { Kept::Yes } else { Kept::No }
            }
            Err(error) => {
                wrong = Some(error);
                Kept::No
            }
        }
    };
    let read = Logs::open(&args.logs(), options)?.read(&mut sink, &mut |_: &Progress| {})?;
    if let Some(error) = wrong {
        return Err(error);
    }
    let summary = if wanted { replayer.finish(&mut emit) } else { replayer.summary() };
    Ok(Fed { read, summary, calls, last })
}

/// Calls per second of so many, of which the last was due then.
pub fn rate_of(calls: u64, last: Nanos, flag: &str) -> anyhow::Result<f64> {
    if calls < 2 || last == Nanos::ZERO {
        return Err(UsageError(format!("a log of a single moment has no mean rate: leave out {flag}")).into());
    }
    Ok(Rate((calls - 1) as f64 / last.as_secs_f64()).0)
}

pub fn read_twice(args: &ReplayArgs, flag: &str) -> anyhow::Result<()> {
    if args.logs().iter().any(|log| log == "-") {
        return Err(UsageError(format!("{flag} reads the logs twice, which stdin cannot be: give files")).into());
    }
    Ok(())
}

impl Replayed {
    /// # Errors
    /// The logs could not be read to their ends, and the rest was not replayed.
    pub fn read_to_its_end(self) -> anyhow::Result<()> {
        self.unread.map_or(Ok(()), |error| Err(log_error(error)))
    }

    /// Says what became of the lines, and of the requests that they are.
    pub fn account(&self, args: &ReplayArgs) {
        if let Some(fed) = self.fed.as_ref().filter(|_| !args.output.quiet) {
            summary::account(&fed.read, &fed.summary, &self.record);
        }
    }
}
