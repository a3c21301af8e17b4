//! Ends a run early when one of the user's conditions holds (`--stop-when 'p99>1s for 5s'`).
//!
//! The shards count each call for the conditions that apply to its class. For each condition, a thread evaluates these
//! counts at regular intervals of at most a second. It ends the run when the condition was true in all intervals of the
//! required time (`for 5s`). The 99th percentile exceeds its limit in an interval if more than 1 % of the interval's
//! calls were slower than the limit. These are the calls that ended in the interval and the calls under way at its end
//! that have already waited longer than the limit. So the run also ends if the server stops responding.

use brimful_core::slo::Measure;
use brimful_core::workload::{RequestClass, Workload};
use brimful_core::{ClassId, End, Event, Nanos, Outcome, StopCondition};
use std::collections::VecDeque;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{io, thread};

/// Maximum length of the intervals at whose ends a condition is evaluated.
const MAX_STEP: Nanos = Nanos::from_secs(1);
/// Interval at which the threads check whether the run has ended or was stopped.
const END_CHECK: Duration = Duration::from_millis(20);

/// The user's conditions for ending a run early, with the counts of its calls. All shards of a run share one value.
#[derive(Debug)]
pub struct StopConditions {
    rules: Vec<Rule>,
    met_condition: OnceLock<String>,
}

/// One condition, and the counts of the calls to which it applies.
#[derive(Debug)]
struct Rule {
    condition: StopCondition,
    /// The class to which the condition applies; `None` for all classes.
    class: Option<ClassId>,
    /// For each class, whether this condition counts responses with status 5xx or 429 as errors. False for a class with
    /// expected statuses in the workload, which the engine checks.
    judges_status: Vec<bool>,
    counters: Counters,
}

#[derive(Debug, Default)]
struct Counters {
    scheduled: AtomicU64,
    ended: AtomicU64,
    judged: AtomicU64,
    beyond: AtomicU64,
    expected: AtomicU64,
    expected_ns: AtomicU64,
}

/// The counts of a condition's calls from the start of the run until one instant.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Totals {
    /// Number of calls that were due.
    scheduled: u64,
    /// Number of calls that have ended in any way.
    ended: u64,
    /// Number of calls that have ended, except those that failed because of this host or were cut off by the end of the
    /// run.
    judged: u64,
    /// Number of calls that violate the condition. For a limit on response times: calls that were slower or had no
    /// expected response. For a limit on the error share: calls that had no expected response.
    beyond: u64,
    /// Number of calls that had an expected response.
    expected: u64,
    /// Sum of the response times of the calls that had an expected response, in nanoseconds.
    expected_ns: u64,
}

impl StopConditions {
    /// Creates the conditions of a run of this workload.
    ///
    /// # Errors
    /// A message if a condition refers to a class that the workload does not have.
    pub fn new(conditions: &[StopCondition], workload: &Workload) -> Result<StopConditions, String> {
        let rules = conditions.iter().map(|condition| Rule::new(condition, workload)).collect::<Result<_, _>>()?;
        Ok(StopConditions { rules, met_condition: OnceLock::new() })
    }

    /// The condition that ended the run, if any.
    pub fn met_condition(&self) -> Option<&str> {
        self.met_condition.get().map(String::as_str)
    }

    /// Counts an event of a call for all conditions.
    pub(crate) fn observe(&self, event: &Event) {
        match event {
            Event::Scheduled { class, .. } => {
                self.rules.iter().filter(|rule| rule.concerns(*class)).for_each(|rule| {
                    rule.counters.scheduled.fetch_add(1, Ordering::Relaxed);
                });
            }
            Event::Ended(outcome) => {
                self.rules.iter().filter(|rule| rule.concerns(outcome.call.class)).for_each(|rule| rule.count(outcome));
            }
            _ => {}
        }
    }

    /// Calls `body` with a flag that ends the run. The flag is set once a condition holds or `stop` is set. A condition
    /// never sets `stop` itself, because it ends only this run.
    ///
    /// # Errors
    /// An I/O error if a thread for the conditions cannot be started.
    pub(crate) fn watch_during<T>(&self, stop: &AtomicBool, body: impl FnOnce(&AtomicBool) -> T) -> io::Result<T> {
        let done = AtomicBool::new(false);
        let end = AtomicBool::new(false);
        thread::scope(|scope| {
            // Sets `done` even if `body` panics. Otherwise, the scope would wait forever for the threads of the
            // conditions.
            let _done = SetOnDrop(&done);
            for rule in &self.rules {
                let judge = || {
                    if rule.holds_before(&done) {
                        // An error means that another condition has already ended the run, and remains the reason.
                        let _ = self.met_condition.set(rule.condition.to_string());
                        end.store(true, Ordering::Relaxed);
                    }
                };
                thread::Builder::new().name("stop-when".to_owned()).spawn_scoped(scope, judge)?;
            }
            let forward_stop = || {
                while !done.load(Ordering::Relaxed) {
                    if stop.load(Ordering::Relaxed) {
                        end.store(true, Ordering::Relaxed);
                        return;
                    }
                    thread::sleep(END_CHECK);
                }
            };
            thread::Builder::new().name("stop-when".to_owned()).spawn_scoped(scope, forward_stop)?;
            Ok(body(&end))
        })
    }
}

/// Sets a flag when this value is dropped, even during a panic.
#[derive(Debug)]
pub struct SetOnDrop<'a>(pub &'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Rule {
    fn new(condition: &StopCondition, workload: &Workload) -> Result<Rule, String> {
        let class = condition.measure.class().map(|name| class_named(name, condition, workload)).transpose()?;
        let judges_status = workload.classes.iter().map(|class| !expects_status(class)).collect();
        Ok(Rule { condition: condition.clone(), class, judges_status, counters: Counters::default() })
    }

    fn concerns(&self, class: ClassId) -> bool {
        self.class.is_none_or(|concerned| concerned == class)
    }

    fn count(&self, outcome: &Outcome) {
        let Counters { ended, judged, beyond, expected, expected_ns, .. } = &self.counters;
        ended.fetch_add(1, Ordering::Relaxed);
        let is_expected = match outcome.end {
            // These calls say nothing about the server, so they do not count.
            End::ClientLimited(_) | End::Unfinished { .. } => return,
            End::Completed { status } => !self.is_error(outcome.call.class, status),
            _ => false,
        };
        judged.fetch_add(1, Ordering::Relaxed);
        let response_time = Nanos(outcome.at.0.saturating_sub(outcome.due.0));
        if is_expected {
            expected.fetch_add(1, Ordering::Relaxed);
            expected_ns.fetch_add(response_time.0, Ordering::Relaxed);
        }
        let is_slow = self.limits_time() && response_time > self.limit();
        if !is_expected || is_slow {
            beyond.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn is_error(&self, class: ClassId, status: u16) -> bool {
        let judges_status = self.judges_status.get(usize::from(class.0)).is_none_or(|judges| *judges);
        judges_status && (status >= 500 || status == 429)
    }

    fn limits_time(&self) -> bool {
        !matches!(self.condition.measure, Measure::ErrorShare { .. })
    }

    /// The limit of the response time in the condition.
    fn limit(&self) -> Nanos {
        Nanos::from_secs_f64(self.condition.limit)
    }

    /// Waits until the condition holds or the run is `done`. Returns whether the condition holds.
    fn holds_before(&self, done: &AtomicBool) -> bool {
        let hold = self.condition.hold;
        let steps = hold.0.div_ceil(MAX_STEP.0).max(1);
        let step = Duration::from_nanos(hold.0 / steps);
        let mut judge = Judge::new(self, steps);
        let start = Instant::now();
        let mut next = start + step;
        loop {
            while let Some(left) = next.checked_duration_since(Instant::now()) {
                if done.load(Ordering::Relaxed) {
                    return false;
                }
                thread::sleep(left.min(END_CHECK));
            }
            if judge.add_step(start.elapsed(), self.counters.totals()) {
                return !done.load(Ordering::Relaxed);
            }
            // If this process was suspended, skips the intervals in the past.
            next = (next + step).max(Instant::now());
        }
    }
}

fn expects_status(class: &RequestClass) -> bool {
    class.expect.as_ref().is_some_and(|expect| expect.status.is_some())
}

fn class_named(name: &str, condition: &StopCondition, workload: &Workload) -> Result<ClassId, String> {
    let names: Vec<&str> = workload.classes.iter().map(|class| class.name.as_str()).collect();
    let index = names.iter().position(|candidate| *candidate == name).and_then(|index| u16::try_from(index).ok());
    index.map(ClassId).ok_or_else(|| {
        format!("`{condition}` is about a class that the workload lacks; its classes are: {}", names.join(", "))
    })
}

impl Counters {
    fn totals(&self) -> Totals {
        // Reads `ended` before `scheduled`: otherwise, a call that is scheduled and ends between the two reads would
        // make the number of waiting calls negative.
        let ended = self.ended.load(Ordering::Relaxed);
        Totals {
            ended,
            scheduled: self.scheduled.load(Ordering::Relaxed),
            judged: self.judged.load(Ordering::Relaxed),
            beyond: self.beyond.load(Ordering::Relaxed),
            expected: self.expected.load(Ordering::Relaxed),
            expected_ns: self.expected_ns.load(Ordering::Relaxed),
        }
    }
}

/// Evaluates one condition at the end of each interval.
struct Judge<'a> {
    rule: &'a Rule,
    /// Number of successive intervals in which the condition must be true.
    steps: u64,
    /// Number of successive intervals, up to the latest, in which the condition was true.
    true_steps: u64,
    last: Totals,
    /// The end of each earlier interval, and the number of calls that were due by then. Intervals that ended longer ago
    /// than the limit are removed.
    scheduled: VecDeque<(Duration, u64)>,
    /// Number of calls that were due at least the limit (a duration) before the end of the latest interval.
    scheduled_before_limit: u64,
}

impl<'a> Judge<'a> {
    fn new(rule: &'a Rule, steps: u64) -> Judge<'a> {
        Judge {
            rule,
            steps,
            true_steps: 0,
            last: Totals::default(),
            scheduled: VecDeque::new(),
            scheduled_before_limit: 0,
        }
    }

    /// Evaluates the condition for the interval that ends now, `elapsed` after the start of the first one. Returns
    /// whether it was true in the required number of successive intervals.
    fn add_step(&mut self, elapsed: Duration, now: Totals) -> bool {
        let overdue = self.overdue(elapsed, now);
        self.true_steps = if self.is_true(now, overdue) { self.true_steps + 1 } else { 0 };
        self.last = now;
        self.true_steps >= self.steps
    }

    /// Minimum number of calls under way that have waited longer than the limit. The exact number is unknown, because
    /// calls may end in another order than they were due.
    fn overdue(&mut self, elapsed: Duration, now: Totals) -> u64 {
        if !self.rule.limits_time() {
            return 0;
        }
        self.scheduled.push_back((elapsed, now.scheduled));
        let limit = Duration::from(self.rule.limit());
        while let Some(&(_, scheduled)) = self.scheduled.front().filter(|(at, _)| *at + limit < elapsed) {
            self.scheduled_before_limit = scheduled;
            self.scheduled.pop_front();
        }
        self.scheduled_before_limit.saturating_sub(now.ended)
    }

    fn is_true(&self, now: Totals, overdue: u64) -> bool {
        let beyond = now.beyond - self.last.beyond + overdue;
        let calls = now.judged - self.last.judged + overdue;
        let condition = &self.rule.condition;
        match condition.measure {
            Measure::Mean { .. } => {
                // The mean over the calls that ended in this interval. The response times of overdue calls are not
                // known yet, so these calls count only if no call ended: then the mean exceeds the limit.
                let expected = now.expected - self.last.expected;
                let sum_ns = now.expected_ns - self.last.expected_ns;
                if expected > 0 { sum_ns as f64 > condition.limit * 1e9 * expected as f64 } else { overdue > 0 }
            }
            Measure::Percentile { percent, .. } => beyond as f64 > calls as f64 * (1.0 - percent / 100.0),
            Measure::ErrorShare { .. } | Measure::Utilization { .. } => beyond as f64 > calls as f64 * condition.limit,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brimful_core::CallSpec;

    const MS: u64 = 1_000_000;

    fn rule(condition: &str) -> Rule {
        Rule::new(&condition.parse().unwrap(), &Workload::single_class("GET", "/")).unwrap()
    }

    fn end(rule: &Rule, response_ms: u64, end: End) {
        let (due, at) = (Nanos(0), Nanos(response_ms * MS));
        let call = CallSpec::for_class(ClassId(0));
        rule.counters.scheduled.fetch_add(1, Ordering::Relaxed);
        rule.count(&Outcome { call, due, at, end, bytes_sent: 1, bytes_received: 1 });
    }

    /// For each second, whether the condition held at its end. The n-th function of `calls` makes the calls of the n-th
    /// second.
    fn seconds(condition: &str, calls: &[&dyn Fn(&Rule)]) -> Vec<bool> {
        let rule = rule(condition);
        let mut judge = Judge::new(&rule, rule.condition.hold.0.div_ceil(MAX_STEP.0));
        let add_step = |(second, calls): (usize, &&dyn Fn(&Rule))| {
            calls(&rule);
            judge.add_step(Duration::from_secs(second as u64 + 1), rule.counters.totals())
        };
        calls.iter().enumerate().map(add_step).collect()
    }

    fn fast(rule: &Rule) {
        (0..100).for_each(|_| end(rule, 10, End::Completed { status: 200 }));
    }

    fn slow(rule: &Rule) {
        fast(rule);
        (0..3).for_each(|_| end(rule, 1_001, End::Completed { status: 200 }));
    }

    fn failing(rule: &Rule) {
        fast(rule);
        (0..9).for_each(|_| end(rule, 1, End::Refused));
    }

    fn hanging(rule: &Rule) {
        rule.counters.scheduled.fetch_add(100, Ordering::Relaxed);
    }

    fn silent(_: &Rule) {}

    #[test]
    fn a_percentile_must_exceed_its_limit_in_every_second() {
        assert_eq!(seconds("p99>1s for 2s", &[&slow, &fast, &slow, &slow]), [false, false, false, true]);
        assert_eq!(seconds("p95>1s for 1s", &[&slow]), [false]);
        assert_eq!(seconds("p99>2s for 1s", &[&slow]), [false]);
        assert_eq!(seconds("p99>1s for 1s", &[&silent, &fast, &silent]), [false; 3]);
    }

    #[test]
    fn failures_count_as_slow_and_as_errors() {
        assert_eq!(seconds("p99>1s for 1s", &[&failing]), [true]);
        assert_eq!(seconds("errors>8% for 1s", &[&failing]), [true]);
        assert_eq!(seconds("errors>9% for 1s", &[&failing]), [false]);
        assert_eq!(seconds("errors>0% for 1s", &[&slow]), [false]);
        let overloaded = |rule: &Rule| end(rule, 1, End::Completed { status: 503 });
        assert_eq!(seconds("errors>50% for 1s", &[&overloaded]), [true]);
        let cut_off = |rule: &Rule| end(rule, 1, End::Unfinished { sent: true });
        assert_eq!(seconds("errors>0% for 1s", &[&cut_off]), [false]);
    }

    #[test]
    fn a_server_that_stops_responding_exceeds_every_limit_of_a_time() {
        let run: [&dyn Fn(&Rule); 5] = [&fast, &hanging, &silent, &silent, &silent];
        assert_eq!(seconds("p99>1s for 2s", &run), [false, false, false, false, true]);
        assert_eq!(seconds("mean>1s for 2s", &run), [false, false, false, false, true]);
        assert_eq!(seconds("errors>1% for 2s", &run), [false; 5]);
    }

    #[test]
    fn a_mean_covers_the_expected_responses() {
        assert_eq!(seconds("mean>38ms for 1s", &[&slow]), [true]);
        assert_eq!(seconds("mean>39ms for 1s", &[&slow]), [false]);
        assert_eq!(seconds("mean>5ms for 1s", &[&silent]), [false]);
    }

    #[test]
    fn an_unknown_class_is_an_error_that_names_the_classes() {
        let workload = Workload::single_class("GET", "/");
        let error = StopConditions::new(&["api:p99>1s".parse().unwrap()], &workload).unwrap_err();
        assert!(error.contains(&workload.classes[0].name), "{error}");
    }

    #[test]
    fn a_condition_that_holds_stops_the_run_and_is_the_reason() {
        let workload = Workload::single_class("GET", "/");
        let conditions = ["errors>1% for 100ms", "p99>1h for 100ms"].map(|text| text.parse().unwrap());
        let conditions = StopConditions::new(&conditions, &workload).unwrap();
        let stop = AtomicBool::new(false);
        let run = |end: &AtomicBool| {
            while !end.load(Ordering::Relaxed) {
                failing(&conditions.rules[0]);
                thread::sleep(Duration::from_millis(1));
            }
        };
        conditions.watch_during(&stop, run).unwrap();
        assert_eq!(conditions.met_condition(), Some("errors>0.01 for 100ms"));
        assert!(!stop.load(Ordering::Relaxed), "the caller was not asked to stop");
    }

    #[test]
    fn a_run_with_conditions_ends_when_the_user_stops_it() {
        let conditions = StopConditions::new(&[], &Workload::single_class("GET", "/")).unwrap();
        let stop = AtomicBool::new(true);
        let run = |end: &AtomicBool| {
            while !end.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_millis(1));
            }
        };
        conditions.watch_during(&stop, run).unwrap();
        assert_eq!(conditions.met_condition(), None);
    }
}
