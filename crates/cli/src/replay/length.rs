//! How long a replay will be, found out before it begins: the logs are read once for it, without a call.
//!
//! Of large logs only as much is read as takes a moment, and the rest is estimated by its bytes. Standard input can be
//! read only once, so its length is not known.

use super::{ReplayArgs, lines, options, reading};
use crate::characterize::failed;
use crate::exit::UsageError;
use crate::output::say;
use brimful_accesslog::Entry;
use brimful_accesslog::logs::Logs;
use brimful_accesslog::read::{Kept, Progress, ReadSummary, first_malformed};
use brimful_accesslog::readout::in_words;
use brimful_accesslog::replay::{Call, Options, Replayer, Summary};
use brimful_core::Nanos;
use brimful_core::quantity::{count, counted};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

/// So many bytes are read, as they are stored; of larger logs the rest is estimated.
const READ_BYTES: u64 = 256 << 20;
/// A pause that is this part of the whole replay is worth a word.
const LONG_PAUSE: u64 = 4;
/// No shorter one is.
const WORTH_CUTTING: Nanos = Nanos::from_secs(10);

/// What there will be to do.
pub(super) struct Length {
    pub calls: u64,
    /// When the last call is due.
    pub last: Nanos,
    /// The longest pause between two calls.
    longest_pause: Nanos,
    /// What part of the logs that is of, where not all were read.
    share: Option<f64>,
    /// Whether `--duration` ends it before the logs do.
    is_cut: bool,
    /// What lines were read as, and a line read out.
    formats: String,
    sample: String,
    remarks: Vec<String>,
}

/// Reads the logs, as far as `--duration` goes; all of them where a mean rate is asked for. `None` for standard input, or
/// when it was interrupted.
pub(super) fn measure(args: &ReplayArgs, stop: &AtomicBool) -> anyhow::Result<Option<Length>> {
    let logs = args.logs();
    let is_whole_needed = args.flatten;
    if !is_whole_needed && !logs.iter().all(|log| is_read_again(log)) {
        return Ok(None);
    }
    let ends = args.duration.filter(|_| !args.flatten).unwrap_or(Nanos::MAX);
    let is_cut = Cell::new(false);
    let mut calls = 0;
    let mut last = Nanos::ZERO;
    let mut emit = |call: Call| {
        if Nanos(call.due_ns) >= ends {
            is_cut.set(true);
            return false;
        }
        calls += 1;
        last = Nanos(call.due_ns);
        true
    };
    let mut replayer = Replayer::new(Options { fileset: None, ..options(args, None) });
    let read_options = reading(args).map_err(failed)?;
    let enough = read_options.enough.clone();
    let mut wrong = None;
    let mut sink = |entry: &Entry<'_>| {
        if is_cut.get() || wrong.is_some() || stop.load(Ordering::Relaxed) {
            enough.store(true, Ordering::Relaxed);
            return Kept::No;
        }
        match replayer.add(entry, &mut emit) {
            Ok((_, true)) => Kept::Yes,
            Ok((_, false)) => Kept::No,
            Err(error) => {
                wrong = Some(error);
                Kept::No
            }
        }
    };
    let mut share = None;
    let mut progress = |progress: &Progress| {
        let of = progress.total_bytes.unwrap_or(0);
        if !is_whole_needed && progress.bytes > READ_BYTES && progress.bytes < of {
            share = Some(progress.bytes as f64 / of as f64);
            enough.store(true, Ordering::Relaxed);
        }
    };
    let read = Logs::open(&logs, read_options).map_err(failed)?.read(&mut sink, &mut progress).map_err(failed)?;
    if let Some(error) = wrong {
        return Err(failed(error));
    }
    let summary = if is_cut.get() { replayer.summary() } else { replayer.finish(&mut emit) };
    if stop.load(Ordering::Relaxed) {
        return Ok(None);
    }
    if calls == 0 {
        return Err(UsageError(no_call(&read, &summary)).into());
    }
    let names: Vec<String> = read.formats.shares().into_iter().map(|format| format.name).collect();
    Ok(Some(Length {
        calls,
        last,
        longest_pause: Nanos(summary.longest_pause_ns),
        share: share.filter(|_| !is_cut.get()),
        is_cut: is_cut.get(),
        formats: names.join(", "),
        sample: in_words(&read.formats.sample()),
        remarks: read.formats.remarks(),
    }))
}

/// A pipe or a terminal cannot be read twice.
fn is_read_again(log: &str) -> bool {
    log != "-" && std::fs::metadata(log).map_or(true, |metadata| metadata.is_file() || metadata.is_dir())
}

/// Says what the logs were read as and how long the replay is: how long that is, as far as it is known.
pub(super) fn say_length(args: &ReplayArgs, length: Option<&Length>) -> Nanos {
    let Some(length) = length else {
        if !args.output.quiet {
            say("how long this will be is not known: the log can be read only once");
        }
        return Nanos::MAX;
    };
    let (calls, lasts) = match length.share {
        Some(share) => ((length.calls as f64 / share) as u64, Nanos::from_secs_f64(length.last.as_secs_f64() / share)),
        None => (length.calls, length.last),
    };
    if args.output.quiet {
        return lasts;
    }
    say(&format!("read as {}: {}", length.formats, length.sample));
    length.remarks.iter().for_each(|remark| say(remark));
    let about = if length.share.is_some() { "about " } else { "" };
    let speed = match args.speed.get() {
        1.0 => String::new(),
        speed => format!(" (at {speed} times the log's speed)"),
    };
    let cut = if length.is_cut { ", then --duration ends it" } else { "" };
    let estimated = if length.share.is_some() { "; estimated from the first 256 MiB" } else { "" };
    say(&format!("{about}{} over {about}{}{speed}{cut}{estimated}", counted(calls, "call"), lasting(lasts)));
    let pause = length.longest_pause;
    if !args.flatten && args.max_gap.is_none() && pause >= WORTH_CUTTING && pause.0 >= length.last.0 / LONG_PAUSE {
        say(&format!("the longest pause between calls is {}: --max-gap 10s cuts pauses to 10 s", lasting(pause)));
    }
    lasts
}

/// `30 s`, `2 h 5 min`, `3 days 4 h`: the two largest units.
pub(super) fn lasting(time: Nanos) -> String {
    const UNITS: [(u64, &str); 3] = [(86_400, "days"), (3_600, "h"), (60, "min")];
    let seconds = time.as_secs_f64().round() as u64;
    if seconds < 10 {
        return time.rounded();
    }
    if seconds < 120 {
        return format!("{seconds} s");
    }
    let mut rest = seconds;
    let mut parts = Vec::new();
    for (length, unit) in UNITS.into_iter().chain([(1, "s")]) {
        let number = rest / length;
        rest %= length;
        if number > 0 {
            let unit = if number == 1 && unit == "days" { "day" } else { unit };
            parts.push(format!("{} {unit}", count(number)));
        }
    }
    parts.truncate(2);
    parts.join(" ")
}

/// Why no call comes of what was read.
pub(super) fn no_call(read: &ReadSummary, summary: &Summary) -> String {
    let not_sent = left_out(summary).map_or(String::new(), |left_out| format!("; not sent: {left_out}"));
    format!(
        "there is no call to make in what was read: {}{not_sent}{}",
        lines(&read.lines),
        first_malformed(&read.lines)
    )
}

/// Requests that are not sent, by reason.
pub(super) fn left_out(summary: &Summary) -> Option<String> {
    let methods = match summary.other_methods {
        0 => None,
        number => Some(format!("{} of other methods (--methods)", count(number))),
    };
    let paths = match summary.without_path {
        0 => None,
        number => Some(format!("{} without a path", count(number))),
    };
    let reasons: Vec<String> = methods.into_iter().chain(paths).collect();
    (!reasons.is_empty()).then(|| reasons.join(", "))
}
