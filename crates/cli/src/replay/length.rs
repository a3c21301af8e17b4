//! Determines the length of a replay before it starts, by reading the logs once.
//!
//! Only the first part of large logs is read, and the rest is estimated from its bytes. Standard input can be read only
//! once, so its length is unknown.

use super::args::ReplayArgs;
use super::summary::{duration_text, no_call_message};
use crate::access_logs::{log_error, read_options};
use crate::exit::UsageError;
use crate::output::print_note;
use brimful_accesslog::Entry;
use brimful_accesslog::entry_text::describe_fields;
use brimful_accesslog::logs::Logs;
use brimful_accesslog::read::{EntryDecision, Progress};
use brimful_accesslog::replay::{Call, Options, Replayer};
use brimful_core::Nanos;
use brimful_core::quantity::pluralize;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

/// Maximum number of bytes of the log files, before decompression, that are read. The rest of larger logs is estimated.
const READ_BYTES: u64 = 256 << 20;
/// Reciprocal of the fraction of the whole replay that a pause must last to be reported. It must also last at least
/// [`MIN_LONG_PAUSE`].
const LONG_PAUSE_PART: u64 = 4;
/// Minimum length of a pause that is reported.
const MIN_LONG_PAUSE: Nanos = Nanos::from_secs(10);

/// The number of calls and the duration of a replay, and notes on the logs.
pub struct ReplayLength {
    /// Number of calls.
    pub calls: u64,
    /// The time at which the last call is due.
    pub last_due: Nanos,
    /// The longest pause between two calls.
    longest_pause: Nanos,
    /// The fraction of the logs that was read; `None` if all was read, or if `--duration` ended the reading.
    share: Option<f64>,
    /// Whether `--duration` ends the replay before the logs end.
    is_cut: bool,
    /// The formats of the lines, and one line as an example.
    formats: String,
    sample: String,
    remarks: Vec<String>,
}

/// Reads the logs up to the end of `--duration`, or all of them if their mean rate is needed. Returns `None` for
/// standard input, or after an interrupt.
pub fn measure(args: &ReplayArgs, stop: &AtomicBool) -> anyhow::Result<Option<ReplayLength>> {
    let logs = args.logs();
    let needs_all = args.flatten;
    if !needs_all && !logs.iter().all(|log| can_be_read_twice(log)) {
        return Ok(None);
    }
    let ends = args.duration.filter(|_| !args.flatten).unwrap_or(Nanos::MAX);
    let is_cut = Cell::new(false);
    let mut calls = 0;
    let mut last_due = Nanos::ZERO;
    let mut emit = |call: Call| {
        if Nanos(call.due_ns) >= ends {
            is_cut.set(true);
            return false;
        }
        calls += 1;
        last_due = Nanos(call.due_ns);
        true
    };
    let mut replayer = Replayer::new(Options { fileset: None, ..args.replay_options(None) });
    let options = read_options(&args.format).map_err(log_error)?;
    let enough = options.stop.clone();
    let mut map_error = None;
    let mut sink = |entry: &Entry<'_>| {
        if is_cut.get() || map_error.is_some() || stop.load(Ordering::Relaxed) {
            enough.store(true, Ordering::Relaxed);
            return EntryDecision::FilteredOut;
        }
        match replayer.add(entry, &mut emit) {
            Ok((_, true)) => EntryDecision::Accepted,
            Ok((_, false)) => EntryDecision::FilteredOut,
            Err(error) => {
                map_error = Some(error);
                EntryDecision::FilteredOut
            }
        }
    };
    let mut share = None;
    let mut progress = |progress: &Progress| {
        let of = progress.total_bytes.unwrap_or(0);
        if !needs_all && progress.bytes > READ_BYTES && progress.bytes < of {
            share = Some(progress.bytes as f64 / of as f64);
            enough.store(true, Ordering::Relaxed);
        }
    };
    let read = Logs::open(&logs, options).map_err(log_error)?.read(&mut sink, &mut progress).map_err(log_error)?;
    if let Some(error) = map_error {
        return Err(log_error(error));
    }
    let summary = if is_cut.get() { replayer.summary() } else { replayer.finish(&mut emit) };
    if stop.load(Ordering::Relaxed) {
        return Ok(None);
    }
    if calls == 0 {
        return Err(UsageError(no_call_message(&read, &summary)).into());
    }
    let names: Vec<String> = read.formats.shares().into_iter().map(|format| format.name).collect();
    Ok(Some(ReplayLength {
        calls,
        last_due,
        longest_pause: Nanos(summary.longest_pause_ns),
        share: share.filter(|_| !is_cut.get()),
        is_cut: is_cut.get(),
        formats: names.join(", "),
        sample: describe_fields(&read.formats.sample()),
        remarks: read.formats.remarks(),
    }))
}

/// Whether a log is a file. A pipe or a terminal cannot be read twice.
fn can_be_read_twice(log: &str) -> bool {
    log != "-" && std::fs::metadata(log).map_or(true, |metadata| metadata.is_file() || metadata.is_dir())
}

/// Prints how the logs are read and how long the replay will take. Returns the duration, or `Nanos::MAX` if it is
/// unknown.
pub fn print_replay_length(args: &ReplayArgs, length: Option<&ReplayLength>) -> Nanos {
    let Some(length) = length else {
        if !args.output.quiet {
            print_note("the duration is unknown, because this log can be read only once");
        }
        return Nanos::MAX;
    };
    let (calls, duration) = match length.share {
        Some(share) => {
            ((length.calls as f64 / share) as u64, Nanos::from_secs_f64(length.last_due.as_secs_f64() / share))
        }
        None => (length.calls, length.last_due),
    };
    if args.output.quiet {
        return duration;
    }
    print_note(&format!("log format {}: {}", length.formats, length.sample));
    length.remarks.iter().for_each(|remark| print_note(remark));
    let about = if length.share.is_some() { "about " } else { "" };
    let speed = match args.speed.get() {
        1.0 => String::new(),
        speed => format!(" (at {speed} times the log's speed)"),
    };
    let cut = if length.is_cut { ", until --duration ends it" } else { "" };
    let estimated = if length.share.is_some() { "; estimated from the first 256 MiB" } else { "" };
    print_note(&format!(
        "{about}{} over {about}{}{speed}{cut}{estimated}",
        pluralize(calls, "call"),
        duration_text(duration)
    ));
    let pause = length.longest_pause;
    if !args.flatten
        && args.max_gap.is_none()
        && pause >= MIN_LONG_PAUSE
        && pause.0 >= length.last_due.0 / LONG_PAUSE_PART
    {
        print_note(&format!(
            "the longest pause between calls is {}: --max-gap 10s shortens pauses to 10 s",
            duration_text(pause)
        ));
    }
    duration
}
