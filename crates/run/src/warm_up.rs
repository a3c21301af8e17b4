//! Warms a server up before a run: generates the load of the run, and discards the results. Just-in-time compilers,
//! caches and connection pools make the first calls to a server slower than later ones.

use crate::run::run_unprobed;
use crate::stop_when::SetOnDrop;
use crate::{ResultsSoFar, RunError, RunObserver, RunPlan};
use brimful_core::Nanos;
use brimful_stats::{LiveProgress, is_steady};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Maximum length of a warm-up without a fixed length.
pub const MAX_WARM_UP: Nanos = Nanos::from_secs(60);
/// Length of the intervals whose mean response times show when the times are steady. A warm-up has at least 40
/// intervals.
const INTERVAL: Nanos = Nanos::from_millis(125);
/// Interval at which a thread checks whether response times are steady.
const JUDGING: Duration = Duration::from_millis(250);

/// The condition that ends a warm-up.
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
    /// Duration of the warm-up.
    pub length: Nanos,
    /// Whether response times were steady at the end of the warm-up. Always true for a warm-up of fixed length, which
    /// does not check this.
    pub is_steady: bool,
}

impl WarmUp {
    /// Maximum duration of the warm-up.
    pub fn max_length(self) -> Nanos {
        match self {
            WarmUp::Auto => MAX_WARM_UP,
            WarmUp::Fixed(length) => length,
        }
    }
}

/// Generates the load of a plan until the warm-up ends or `stop` is set. `live` displays the progress.
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
    // Uses another seed than the run, so that no caches contain the responses to the run's requests.
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
        // Sets `ended` even if the run panics. Otherwise, the scope would wait forever for the thread that checks
        // response times.
        let _ended = SetOnDrop(&ended);
        run_unprobed(&plan, &observer, &ended)
    })?;
    let is_steady = kind != WarmUp::Auto || steady.load(Ordering::Relaxed);
    Ok(WarmUpOutcome { length: Nanos::from_secs_f64(record.window_s), is_steady })
}
