//! Shows progress on stderr: a bar on a terminal, lines elsewhere, and nothing with `--quiet`. Also handles the signals
//! that stop a run.

use crate::output;
use anyhow::Context;
use brimful_core::quantity::{count, pluralize};
use brimful_core::{Nanos, panics};
use brimful_run::{ResultsSoFar, RunObserver, SetOnDrop};
use brimful_stats::{LiveProgress, LiveSummary};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rustix::termios::tcgetwinsize;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Minimum duration of a run whose progress is shown.
const WORTH_SHOWING: Nanos = Nanos::from_secs(2);
/// Width of a bar, in columns.
const BAR_WIDTH: usize = 28;
const REFRESH: Duration = Duration::from_millis(500);

/// Whether to show the progress of a run that takes about `duration`. The run must be long enough, and stderr must be a
/// terminal.
pub fn is_shown(duration: Nanos, quiet: bool) -> bool {
    !quiet && duration >= WORTH_SHOWING && std::io::stderr().is_terminal()
}

/// Calls `run` with this observer. During the run, shows a progress bar with the results so far, unless the run is
/// short or stderr is not a terminal.
pub fn run_with_bar<T>(
    what: &str,
    duration: Nanos,
    quiet: bool,
    observer: RunObserver,
    run: impl FnOnce(&RunObserver) -> T,
) -> T {
    if !is_shown(duration, quiet) {
        return run(&observer);
    }
    let live: Arc<LiveProgress> = Arc::default();
    let observer = RunObserver { results_so_far: ResultsSoFar::Shown(Arc::clone(&live)), ..observer };
    with_progress_bar(what, duration, Some(&live), || run(&observer))
}

/// Runs `body`, which takes about `duration`. Meanwhile shows a progress bar with the results so far in `live`, if
/// there are any.
pub fn with_progress_bar<T>(what: &str, duration: Nanos, live: Option<&LiveProgress>, body: impl FnOnce() -> T) -> T {
    let Some(live) = live else { return body() };
    let bar = new_bar(what, duration);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let refresh = || {
            let began = Instant::now();
            while !done.load(Ordering::Relaxed) {
                show(&bar, began, duration, &describe_progress(&live.summary()));
                std::thread::park_timeout(REFRESH);
            }
        };
        // If the code of the bar panics, the run continues.
        scope.spawn(move || panics::catch_panic(refresh));
        // Ends the bar's thread even if `body` panics. Otherwise the scope would wait for this thread forever.
        let done = SetOnDrop(&done);
        let result = body();
        drop(done);
        bar.finish_and_clear();
        result
    })
}

/// A text with the numbers of calls completed and failed so far, and the latest response times.
pub fn describe_progress(so_far: &LiveSummary) -> String {
    let counts = so_far.counts();
    let failed = match counts.errors() {
        0 => String::new(),
        errors => format!(", {} failed", count(errors)),
    };
    // The last interval is not complete, so it is skipped.
    let latest = so_far.intervals().iter().rev().skip(1).find_map(|interval| interval.p99_us);
    let time = latest
        .map_or(String::new(), |us| format!("; 99 % within {}", Nanos::from_secs_f64(us / 1e6).to_rounded_string()));
    format!("{} completed{failed}{time}", pluralize(counts.completed, "call"))
}

/// A progress bar for a run that takes `duration`.
pub fn new_bar(what: &str, duration: Nanos) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(duration.0 / 1_000_000), ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template(&format!("{{prefix}} [{{bar:{BAR_WIDTH}}}] {{msg}}")) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.set_prefix(what.to_owned());
    bar
}

/// Updates a bar. A run without a planned end shows only the elapsed time.
pub fn show(bar: &ProgressBar, began: Instant, duration: Nanos, calls: &str) {
    let elapsed = began.elapsed();
    bar.set_position((elapsed.as_millis() as u64).min(duration.0 / 1_000_000));
    let of = if duration < Nanos::from_secs(86_400) { format!(" of {duration}") } else { String::new() };
    let message = format!("{:.0}s{of}, {calls}", elapsed.as_secs_f64());
    bar.set_message(fitted(&output::to_locale_charset(&message), bar.prefix().chars().count()));
}

/// The message, shortened from its end so that prefix, bar and message fit into one line of the terminal.
fn fitted(message: &str, prefix: usize) -> String {
    let columns = tcgetwinsize(std::io::stderr()).map_or(usize::MAX, |size| usize::from(size.ws_col));
    let room = columns.saturating_sub(prefix + BAR_WIDTH + " [] ".len());
    let separators = [", ", "; "].into_iter().flat_map(|separator| message.match_indices(separator));
    let ends = separators.map(|(end, _)| &message[..end]).chain([message]);
    ends.filter(|start| start.chars().count() < room).max_by_key(|start| start.len()).unwrap_or("").to_owned()
}

/// A flag that is set by Ctrl-C, by SIGTERM, and when the terminal closes, for example because an ssh connection is
/// lost.
pub fn stop_flag() -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = stop.clone();
    handle_stop_signals(hang_up_signal(), move || flag.store(true, Ordering::Relaxed))?;
    Ok(stop)
}

/// SIGHUP, which is sent when the terminal closes. The list is empty if SIGHUP is ignored: a process that nohup started
/// is meant to continue.
fn hang_up_signal() -> &'static [i32] {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    let bit = 1 << (SIGHUP - 1);
    if ignored.is_some_and(|ignored| ignored & bit != 0) { &[] } else { &[SIGHUP] }
}

/// Calls `stop` on Ctrl-C, on SIGTERM, and on the signals in `others`. A second Ctrl-C ends the process, unless it
/// follows within a second: `timeout -s INT` and some shells send the signal twice.
pub fn handle_stop_signals(others: &[i32], mut stop: impl FnMut() + Send + 'static) -> anyhow::Result<()> {
    const REPEATED_SIGNAL: Duration = Duration::from_secs(1);
    let signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM].iter().chain(others));
    let mut signals =
        signals.context("cannot listen for signals; raise the descriptor limit (`ulimit -n`) and try again")?;
    let listen = move || {
        let mut first = None;
        for signal in signals.forever() {
            stop();
            if signal == SIGINT && first.get_or_insert_with(Instant::now).elapsed() > REPEATED_SIGNAL {
                std::process::exit(130);
            }
        }
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(listen)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    /// This test hangs if the thread of the progress bar does not end.
    #[test]
    fn a_run_that_panics_beside_its_progress_bar_does_not_hang() {
        let live = LiveProgress::default();
        let run = AssertUnwindSafe(|| with_progress_bar("load", Nanos::from_secs(1), Some(&live), || panic!("a bug")));
        assert!(catch_unwind(run).is_err());
    }
}
