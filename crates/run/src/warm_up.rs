//! Warms a server up before a run: makes the load of the run, and discards the results. Just-in-time compilers, caches
//! and connection pools make the first calls to a server slower than later calls.

use crate::run::run_unprobed;
use crate::stop_when::SetOnDrop;
use crate::{ResultsSoFar, RunError, RunObserver, RunPlan};
use brimful_core::Nanos;
use brimful_stats::{LiveProgress, is_steady};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// The longest warm-up whose end is detected.
pub const MAX_WARM_UP: Nanos = Nanos::from_secs(60);
/// Interval of the response times by which the end of a warm-up is detected. The shortest warm-up has 40 intervals.
const INTERVAL: Nanos = Nanos::from_millis(125);
/// How often the response times are judged.
const JUDGING: Duration = Duration::from_millis(250);

/// When a warm-up ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WarmUp {
    /// The warm-up ends when response times are steady, or after [`MAX_WARM_UP`].
    Auto,
    /// The warm-up ends after this time.
    Fixed(Nanos),
}

/// The result of a warm-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WarmUpOutcome {
    /// Length of the warm-up.
    pub length: Nanos,
    /// Whether response times were steady at the end of the warm-up. If the length was fixed, this is not judged and
    /// always true.
    pub is_steady: bool,
}

impl WarmUp {
    /// The longest time that the warm-up can take.
    pub fn max_length(self) -> Nanos {
        match self {
            WarmUp::Auto => MAX_WARM_UP,
            WarmUp::Fixed(length) => length,
        }
    }
}

/// Makes the load of the plan until the warm-up ends or `stop` is set. `live` shows the calls so far.
///
/// # Errors
/// The errors of [`crate::run()`].
pub fn warm_up(
    plan: &RunPlan,
    kind: WarmUp,
    live: &Arc<LiveProgress>,
    stop: &AtomicBool,
) -> Result<WarmUpOutcome, RunError> {
    let mut options = plan.options().clone();
    options.load.window = kind.max_length();
    options.load.calls = u64::MAX;
    // With another seed, the requests differ from the requests of the run, so that the run's requests are not in caches
    // already.
    options.load.seed = options.load.seed.wrapping_add(1);
    options.monitor = None;
    options.record.interval = INTERVAL;
    let plan = RunPlan::new(options)?;
    let observer = RunObserver { results_so_far: ResultsSoFar::Shown(Arc::clone(live)), ..RunObserver::default() };
    let ended = AtomicBool::new(false);
    let steady = AtomicBool::new(false);
    let record = thread::scope(|scope| {
        let judge = || {
            while !ended.load(Ordering::Relaxed) {
                let is_done = kind == WarmUp::Auto && is_steady(&live.summary().intervals());
                steady.fetch_or(is_done, Ordering::Relaxed);
                if is_done || stop.load(Ordering::Relaxed) {
                    ended.store(true, Ordering::Relaxed);
                }
                thread::sleep(JUDGING);
            }
        };
        scope.spawn(judge);
        // Sets `ended` even if the run panics. Otherwise the scope would wait forever for its thread.
        let _ended = SetOnDrop(&ended);
        run_unprobed(&plan, &observer, &ended)
    })?;
    let is_steady = kind != WarmUp::Auto || steady.load(Ordering::Relaxed);
    Ok(WarmUpOutcome { length: Nanos::from_secs_f64(record.window_s), is_steady })
}
