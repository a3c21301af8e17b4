//! Shows the progress of reading logs on stderr: on a terminal a bar after two seconds, elsewhere a line every 30
//! seconds.

use crate::output::print_note;
use brimful_accesslog::read::Progress;
use brimful_core::quantity::{bytes, count};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// Time after which a bar appears.
const BAR_DELAY: Duration = Duration::from_secs(2);
/// Time between two updates of the bar.
const BAR_INTERVAL: Duration = Duration::from_millis(200);
/// Time between two lines if stderr is a file or a pipe.
const LINE_INTERVAL: Duration = Duration::from_secs(30);

/// Shows the progress until this value is dropped.
pub struct ProgressMeter {
    began: Instant,
    terminal: bool,
    /// Time since the start at which progress is shown next; `None` to show no progress.
    next: Option<Duration>,
    bar: Option<ProgressBar>,
}

impl ProgressMeter {
    /// Creates a meter. If `quiet` is set, it shows nothing.
    pub fn new(quiet: bool) -> ProgressMeter {
        let terminal = std::io::stderr().is_terminal();
        let next = if terminal { BAR_DELAY } else { LINE_INTERVAL };
        ProgressMeter { began: Instant::now(), terminal, next: (!quiet).then_some(next), bar: None }
    }

    /// Shows the progress if an update is due.
    pub fn show(&mut self, progress: &Progress) {
        let elapsed = self.began.elapsed();
        if self.next.is_none_or(|next| elapsed < next) {
            return;
        }
        let message = message(progress, elapsed);
        if self.terminal {
            let bar = self.bar.get_or_insert_with(bar);
            bar.set_length(progress.total_bytes.unwrap_or(0).max(progress.bytes));
            bar.set_position(if progress.total_bytes.is_some() { progress.bytes } else { 0 });
            bar.set_message(message);
        } else {
            print_note(&message);
        }
        self.next = Some(elapsed + if self.terminal { BAR_INTERVAL } else { LINE_INTERVAL });
    }
}

impl Drop for ProgressMeter {
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

/// A message like `1.20 GB of 4.00 GB, 6,000,000 lines, 600 MB/s, 5 s left`.
fn message(progress: &Progress, elapsed: Duration) -> String {
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
    fn the_message_has_bytes_lines_rate_and_remaining_time() {
        let progress = Progress { bytes: 1_200_000_000, total_bytes: Some(4_200_000_000), lines: 6_000_000 };
        let expected = "1.20 GB of 4.20 GB, 6,000,000 lines, 600 MB/s, 5 s left";
        assert_eq!(message(&progress, Duration::from_secs(2)), expected);
        let unknown = Progress { bytes: 0, total_bytes: None, lines: 0 };
        assert_eq!(message(&unknown, Duration::ZERO), "0 B, 0 lines, 0 B/s");
    }

    #[test]
    fn a_quiet_meter_shows_nothing() {
        let mut meter = ProgressMeter::new(true);
        meter.began -= Duration::from_secs(60);
        meter.show(&Progress { bytes: 1, total_bytes: None, lines: 1 });
        assert!(meter.next.is_none() && meter.bar.is_none());
    }
}
