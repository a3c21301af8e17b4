//! How far reading a log is, on stderr: a bar on a terminal after two seconds, elsewhere a line now and then if it lasts.

use crate::output::say;
use brimful_accesslog::read::Progress;
use brimful_core::quantity::{bytes, count};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// What is over sooner needs no progress.
const WORTH_SHOWING: Duration = Duration::from_secs(2);
/// A terminal is shown another figure so often,
const REFRESH: Duration = Duration::from_millis(200);
/// and a file or pipe gets another line.
const LINES: Duration = Duration::from_secs(30);

/// Shows progress until it is dropped.
pub struct Meter {
    began: Instant,
    terminal: bool,
    /// When it is time to show something; never, if `None`.
    next: Option<Duration>,
    bar: Option<ProgressBar>,
}

impl Meter {
    /// Shows nothing yet, and never anything if `quiet`.
    pub fn new(quiet: bool) -> Meter {
        let terminal = std::io::stderr().is_terminal();
        let next = if terminal { WORTH_SHOWING } else { LINES };
        Meter { began: Instant::now(), terminal, next: (!quiet).then_some(next), bar: None }
    }

    /// Shows where it is, when it is time to.
    pub fn show(&mut self, progress: &Progress) {
        let elapsed = self.began.elapsed();
        if self.next.is_none_or(|next| elapsed < next) {
            return;
        }
        let told = told(progress, elapsed);
        if self.terminal {
            let bar = self.bar.get_or_insert_with(bar);
            bar.set_length(progress.total_bytes.unwrap_or(0).max(progress.bytes));
            bar.set_position(if progress.total_bytes.is_some() { progress.bytes } else { 0 });
            bar.set_message(told);
        } else {
            say(&told);
        }
        self.next = Some(elapsed + if self.terminal { REFRESH } else { LINES });
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn bar() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("{prefix} [{bar:28}] {msg}") {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.set_prefix("read");
    bar
}

/// `1.20 GB of 4.00 GB, 6,000,000 lines, 600 MB/s, 5 s left`.
fn told(progress: &Progress, elapsed: Duration) -> String {
    let seconds = elapsed.as_secs_f64().max(1e-3);
    let per_s = progress.bytes as f64 / seconds;
    let of = progress.total_bytes.map_or(String::new(), |of| format!(" of {}", bytes(of as f64)));
    let left = progress.total_bytes.filter(|of| *of > progress.bytes && per_s > 0.0);
    let left = left.map_or(String::new(), |of| format!(", {:.0} s left", (of - progress.bytes) as f64 / per_s));
    format!("{}{of}, {} lines, {}/s{left}", bytes(progress.bytes as f64), count(progress.lines), bytes(per_s))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_says_how_much_how_fast_and_how_long_yet() {
        let progress = Progress { bytes: 1_200_000_000, total_bytes: Some(4_200_000_000), lines: 6_000_000 };
        let expected = "1.20 GB of 4.20 GB, 6,000,000 lines, 600 MB/s, 5 s left";
        assert_eq!(told(&progress, Duration::from_secs(2)), expected);
        let unknown = Progress { bytes: 0, total_bytes: None, lines: 0 };
        assert_eq!(told(&unknown, Duration::ZERO), "0 B, 0 lines, 0 B/s");
    }

    #[test]
    fn who_wants_none_gets_none() {
        let mut meter = Meter::new(true);
        meter.began -= Duration::from_secs(60);
        meter.show(&Progress { bytes: 1, total_bytes: None, lines: 1 });
        assert!(meter.next.is_none() && meter.bar.is_none());
    }
}
