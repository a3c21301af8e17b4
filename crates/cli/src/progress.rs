//! What is happening, on stderr, for people: a bar on a terminal, lines elsewhere, nothing with `--quiet`.

use anyhow::Context;
use brimful_core::Nanos;
use brimful_engine::Progress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Runs shorter than this need no progress.
const WORTH_SHOWING: Nanos = Nanos::from_secs(2);
const REFRESH: Duration = Duration::from_millis(200);

/// Shows how a run of about `lasts` gets on while `body` runs it.
pub fn during<T>(what: &str, lasts: Nanos, live: &Progress, quiet: bool, body: impl FnOnce() -> T) -> T {
    if quiet || lasts < WORTH_SHOWING || !std::io::stderr().is_terminal() {
        return body();
    }
    let bar = bar(what, lasts);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let began = Instant::now();
            while !done.load(Ordering::Relaxed) {
                show(&bar, began, lasts, live.ended.load(Ordering::Relaxed));
                std::thread::park_timeout(REFRESH);
            }
        });
        let result = body();
        done.store(true, Ordering::Relaxed);
        bar.finish_and_clear();
        result
    })
}

/// A bar over `lasts`.
pub fn bar(what: &str, lasts: Nanos) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(lasts.0 / 1_000_000), ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("{prefix} [{bar:28}] {msg}") {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.set_prefix(what.to_owned());
    bar
}

/// Brings a bar up to date; a schedule without an end shows elapsed time alone.
pub fn show(bar: &ProgressBar, began: Instant, lasts: Nanos, ended: u64) {
    let elapsed = began.elapsed();
    bar.set_position((elapsed.as_millis() as u64).min(lasts.0 / 1_000_000));
    let of = if lasts < Nanos::from_secs(86_400) { format!(" of {lasts}") } else { String::new() };
    bar.set_message(format!("{:.0}s{of}, {ended} calls ended", elapsed.as_secs_f64()));
}

/// Sets a flag on Ctrl-C, a request to terminate, or when the terminal is closed, as by a lost ssh connection.
pub fn stop_flag() -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = stop.clone();
    on_stop(hang_up(), move || flag.store(true, Ordering::Relaxed))?;
    Ok(stop)
}

/// The signal of a terminal that is closed, unless it is ignored, as under nohup: then whoever began this wants it to
/// go on.
fn hang_up() -> &'static [i32] {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    let bit = 1 << (SIGHUP - 1);
    if ignored.is_some_and(|ignored| ignored & bit != 0) { &[] } else { &[SIGHUP] }
}

/// Calls `stop` on Ctrl-C, a request to terminate, or another of these signals. Another Ctrl-C ends the process, unless
/// it comes with the first: `timeout -s INT` and some shells signal twice for one wish.
pub fn on_stop(others: &[i32], mut stop: impl FnMut() + Send + 'static) -> anyhow::Result<()> {
    const SAME_WISH: Duration = Duration::from_secs(1);
    let signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM].iter().chain(others));
    let mut signals =
        signals.context("cannot listen for signals; raise the descriptor limit (`ulimit -n`) and try again")?;
    let listen = move || {
        let mut first = None;
        for signal in signals.forever() {
            stop();
            if signal == SIGINT && first.get_or_insert_with(Instant::now).elapsed() > SAME_WISH {
                std::process::exit(130);
            }
        }
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(listen)?;
    Ok(())
}
