//! Shows the progress of a survey on stderr.

use crate::output::print_note;
use crate::progress;
use brimful_core::quantity::{number, rate, whole_percent};
use brimful_core::survey::Level;
use brimful_core::text::{escape_controls, one_line};
use brimful_core::{Nanos, panics};
use brimful_estimate::PredictedValue;
use brimful_stats::LiveProgress;
use brimful_survey::{PredictedLevel, PredictedObjective, Predictions, SurveyEvent};
use indicatif::ProgressBar;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Shows each step of a survey as a bar on a terminal, and as a line elsewhere.
pub struct Display {
    quiet: bool,
    bar: Option<ProgressBar>,
    /// The results so far of the survey's current load; `None` if no bar shows them.
    pub live: Option<Arc<LiveProgress>>,
    current: Mutex<Option<(Instant, Nanos)>>,
}

impl Display {
    /// Creates a display. If `quiet` is set, it shows nothing.
    pub fn new(quiet: bool) -> Display {
        use std::io::IsTerminal;
        let bar = (!quiet && std::io::stderr().is_terminal()).then(|| progress::new_bar("", Nanos::from_secs(1)));
        let live = bar.is_some().then(Arc::default);
        Display { quiet, bar, live, current: Mutex::default() }
    }

    /// Shows an event of the survey: the start of a step, a note, or a result.
    pub fn show(&self, event: &SurveyEvent) {
        let line = match event {
            SurveyEvent::Begin(what, duration) => {
                if let Some(bar) = &self.bar {
                    // The new step may have no load, so the live results of the previous step are removed.
                    self.live.iter().for_each(|live| live.restart());
                    bar.set_length(duration.0 / 1_000_000);
                    bar.set_prefix(one_line(what).into_owned());
                    if let Ok(mut current) = self.current.lock() {
                        *current = Some((Instant::now(), *duration));
                    }
                    return;
                }
                format!("{what} ({})", duration.to_rounded_string())
            }
            SurveyEvent::EstimatedDuration(duration) => {
                format!(
                    "  the survey takes about {} in total, and longer if a measurement is disturbed and repeated",
                    in_minutes(*duration)
                )
            }
            SurveyEvent::Note(text) => format!("  {text}"),
            SurveyEvent::Predicted(predictions) => format!("  {}", predictions_text(predictions)),
            SurveyEvent::Level(level) => format!("  {}", level_summary(level)),
        };
        match &self.bar {
            Some(bar) => bar.println(escape_controls(&line)),
            None if !self.quiet => print_note(&line),
            None => {}
        }
    }

    /// Runs `body`, and updates the progress bar during that time.
    pub fn with_updates<T>(&self, body: impl FnOnce() -> T) -> T {
        let (Some(bar), Some(live)) = (&self.bar, &self.live) else { return body() };
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let refresh = || {
                while !done.load(Ordering::Relaxed) {
                    if let Ok(Some((began, duration))) = self.current.lock().as_deref() {
                        progress::show(bar, *began, *duration, &progress::describe_progress(&live.summary()));
                    }
                    std::thread::park_timeout(Duration::from_millis(200));
                }
            };
            // If the code of the bar panics, the survey continues.
            scope.spawn(move || panics::catch_panic(refresh));
            let result = body();
            done.store(true, Ordering::Relaxed);
            bar.finish_and_clear();
            result
        })
    }
}

/// Formats a time in minutes and seconds, like `2 min 5 s`.
fn in_minutes(time: Nanos) -> String {
    let seconds = time.as_secs_f64().round() as u64;
    match (seconds / 60, seconds % 60) {
        (0, seconds) => format!("{seconds} s"),
        (minutes, seconds) => format!("{minutes} min {seconds} s"),
    }
}

/// A text with all predictions of the survey. It is printed before the load levels are measured.
fn predictions_text(predictions: &Predictions) -> String {
    let time = |seconds| Nanos::from_secs_f64(seconds).to_rounded_string();
    let level = |level: &PredictedLevel| {
        let PredictedValue { median, interval90: [low, high] } = level.expected.response;
        let name = &level.name;
        let share = whole_percent(level.fraction);
        format!("\n    {name} at {share}, {}: {} ({} … {})", rate(level.rate), time(median), time(low), time(high))
    };
    let levels: Vec<String> = predictions.levels.iter().map(level).collect();
    let between = predictions.saturation_interval.map_or(String::new(), |spread| {
        let [low, high] = spread.interval90;
        format!(" ({} … {})", rate(low), rate(high))
    });
    let saturation = rate(predictions.saturation);
    let objectives: String = predictions.objectives.iter().filter_map(objective_text).collect();
    format!(
        "predicted, with 90 % intervals: capacity {saturation}{between}{objectives}; mean response times{}",
        levels.concat()
    )
}

fn objective_text(objective: &PredictedObjective) -> Option<String> {
    let PredictedValue { median, interval90: [low, high] } = objective.rate?;
    Some(format!("; {objective} up to {} ({} … {})", rate(median), rate(low), rate(high)))
}

/// The main results at a load level, which is a rate at which the server was measured.
fn level_summary(level: &Level) -> String {
    let time = |seconds: Option<f64>| seconds.map_or("-".to_owned(), |s| Nanos::from_secs_f64(s).to_rounded_string());
    let busy = level.utilization.measured.map_or("-".to_owned(), whole_percent);
    let doubt = if level.verdict.valid { "" } else { "; not valid" };
    format!(
        "{} at {}: {} responses/s, {} on average, server {busy} busy{doubt}",
        level.workload,
        rate(level.offered),
        number(level.throughput.measured.unwrap_or(0.0)),
        time(level.response_time_s.measured),
    )
}
