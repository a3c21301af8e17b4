//! Judges whether a run met its objectives. Objectives limit a response time of the expected answers, or the share of
//! calls without an expected answer. A response time begins when the call is due, and ends with the last byte of the
//! response. If the workload names the statuses that it expects of a class, only answers with these statuses are
//! expected. Otherwise, every answer except 5xx and 429 is expected.
//!
//! For a percentile, a call that failed or had an unexpected answer counts as slower than any limit, so that a server
//! cannot meet an objective by refusing calls. Calls do not count if the generator's host lacked the resources for
//! them, or if they were interrupted by the end of the run. A mean covers only the expected answers. An objective for
//! the mean is missed if more than one call in a hundred has no expected answer.

use crate::account::Account;
use crate::derive::expected_statuses;
use crate::distribution::Distribution;
use crate::error::StatsError;
use crate::tally::Tally;
use crate::thresholds::MAX_UNEXPECTED_SHARE_OF_MEAN;
use brimful_core::quantity::{count, percent, pluralize};
use brimful_core::record::{Objective, Record};
use brimful_core::slo::Measure;
use brimful_core::workload::Statuses;
use brimful_core::{Nanos, Slo, StatusClass};
use std::collections::BTreeMap;

/// Maximum number of causes of missing answers that a message lists.
const MAX_NAMED: usize = 3;

/// The reason why a run cannot be judged by an objective.
#[derive(Debug, thiserror::Error)]
pub enum ObjectiveError {
    /// The objective limits the utilization of a station, such as a CPU, which a load does not measure.
    #[error(
        "`{0}` is about a utilization, which a load does not measure: give an objective for a response time, like \
         p99<50ms, or ask `brimful plan what-if --slo`"
    )]
    Utilization(String),
    /// The objective names a class that the workload does not have.
    #[error("`{objective}` is about a class that is not there; the classes are: {known}")]
    UnknownClass {
        /// The objective, as the user wrote it.
        objective: String,
        /// The names of the workload's classes.
        known: String,
    },
    /// The Record was written by an earlier version of brimful, which did not separate the times of errors from the
    /// times of other answers.
    #[error(
        "`{0}` cannot be judged: the Record is of an earlier version, which does not say how long its 5xx and 429 answers \
         took; make the load again"
    )]
    NoStatusTimes(String),
    /// The Record has no `account` (its serialised statistics), or the account is damaged.
    #[error("{0}")]
    Unreadable(#[from] StatsError),
}

/// Checks that each objective can be applied to a run with these classes.
///
/// # Errors
/// [`ObjectiveError`] if one of the objectives cannot be applied.
pub fn check_objectives(classes: &[&str], objectives: &[Slo]) -> Result<(), ObjectiveError> {
    for objective in objectives {
        if let Measure::Utilization { .. } = objective.measure {
            return Err(ObjectiveError::Utilization(objective.to_string()));
        }
        let class = objective.measure.class();
        if class.is_some_and(|name| !classes.contains(&name)) {
            return Err(ObjectiveError::UnknownClass { objective: objective.to_string(), known: classes.join(", ") });
        }
    }
    Ok(())
}

/// Determines whether a run met each objective.
///
/// # Errors
/// [`ObjectiveError`] if the run cannot be judged by one of the objectives.
pub fn judge_objectives(record: &Record, objectives: &[Slo]) -> Result<Vec<Objective>, ObjectiveError> {
    if objectives.is_empty() {
        return Ok(Vec::new());
    }
    let account = Account::unpack(record.account.as_ref().ok_or(StatsError::NoAccount)?)?;
    let classes: Vec<&str> = account.classes.iter().map(|tally| tally.name.as_str()).collect();
    check_objectives(&classes, objectives)?;
    objectives.iter().map(|objective| judged(record, &account, objective)).collect()
}

fn judged(record: &Record, account: &Account, objective: &Slo) -> Result<Objective, ObjectiveError> {
    let answers = Answers::to_calls_of(record, account, objective)?;
    let error_share = answers.error_share();
    let is_below = |value: Option<f64>| value.is_some_and(|value| value < objective.limit);
    let (measured_s, met) = match objective.measure {
        Measure::Percentile { percent, .. } => {
            let measured = answers.percentile_s(percent / 100.0);
            (measured, is_below(measured))
        }
        Measure::ErrorShare { .. } => (None, is_below(error_share)),
        Measure::Mean { .. } | Measure::Utilization { .. } => {
            let is_possible = error_share.is_none_or(|share| share <= MAX_UNEXPECTED_SHARE_OF_MEAN);
            let measured = answers.mean_s();
            (measured, is_possible && is_below(measured))
        }
    };
    Ok(Objective {
        objective: objective.to_string(),
        measured_s,
        met,
        error_share,
        message: answers.message(&objective.measure, measured_s.is_some()),
    })
}

/// Numbers of calls to which an objective applies: all calls, and calls beyond the objective's limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CallsByLimit {
    /// Number of calls to which the objective applies.
    pub calls: u64,
    /// Number of these calls that took longer than the limit or had no expected answer. If the objective limits the
    /// share of errors, only calls without an expected answer are counted.
    pub beyond: u64,
    /// The value that the objective limits: a time in seconds, or a share of errors. `None` if too few calls had an
    /// expected answer.
    pub value: Option<f64>,
}

/// The value of a measure (such as a percentile, a mean or an error share) over the calls of several runs together: a
/// time in seconds, or a share of errors. `None` if too few calls had an expected answer.
///
/// # Errors
/// [`ObjectiveError`] if a run cannot be judged by an objective of this measure.
pub fn pooled_value(records: &[&Record], measure: &Measure) -> Result<Option<f64>, ObjectiveError> {
    let objective = Slo { measure: measure.clone(), limit: 0.0 };
    let mut pooled = Answers::new();
    for record in records {
        let account = Account::unpack(record.account.as_ref().ok_or(StatsError::NoAccount)?)?;
        pooled.merge(Answers::to_calls_of(record, &account, &objective)?);
    }
    Ok(pooled.value(measure))
}

/// Counts the calls of a run to which an objective applies, and those of them that exceed its limit.
///
/// # Errors
/// [`ObjectiveError`] if the run cannot be judged by the objective.
pub fn count_by_limit(record: &Record, objective: &Slo) -> Result<CallsByLimit, ObjectiveError> {
    let account = Account::unpack(record.account.as_ref().ok_or(StatsError::NoAccount)?)?;
    let answers = Answers::to_calls_of(record, &account, objective)?;
    let above = answers.expected.count_above(Nanos::from_secs_f64(objective.limit));
    let is_of_errors = matches!(objective.measure, Measure::ErrorShare { .. });
    Ok(CallsByLimit {
        calls: answers.calls(),
        beyond: if is_of_errors { answers.missed } else { answers.missed + above },
        value: answers.value(&objective.measure),
    })
}

/// The response times of the calls to which an objective applies, and their failures.
struct Answers {
    /// Response times of the expected answers.
    expected: Distribution,
    /// Number of calls without an expected answer.
    missed: u64,
    /// Number of answers with an unexpected status, by status code.
    codes: BTreeMap<u16, u64>,
}

impl Answers {
    fn new() -> Answers {
        Answers { expected: Distribution::none(), missed: 0, codes: BTreeMap::new() }
    }

    /// Collects the response times and failures of the calls to which the objective applies.
    fn to_calls_of(record: &Record, account: &Account, objective: &Slo) -> Result<Answers, ObjectiveError> {
        if let Measure::Utilization { .. } = objective.measure {
            return Err(ObjectiveError::Utilization(objective.to_string()));
        }
        let class = objective.measure.class();
        let mut answers = Answers::new();
        for tally in account.classes.iter().filter(|tally| class.is_none_or(|name| name == tally.name)) {
            let expected = expected_statuses(record.workload.as_ref(), &tally.name);
            let refusals = tally.counts.status.s429 + tally.counts.status.s5xx;
            if expected.is_none() && refusals > 0 && tally.answers.has_unattributed() {
                return Err(ObjectiveError::NoStatusTimes(objective.to_string()));
            }
            answers.add(tally, expected);
        }
        Ok(answers)
    }

    fn add(&mut self, tally: &Tally, expected: Option<&Statuses>) {
        let times = if expected.is_some() { tally.answers.completed() } else { tally.answers.served() };
        self.expected.merge(&times.response);
        let counts = &tally.counts;
        let failed = counts.errors() - counts.client_limited.min(counts.errors());
        self.missed += failed + tally.error_answers(expected.is_some());
        for (code, answers) in tally.answers.codes() {
            let is_expected = match expected {
                Some(statuses) => statuses.contains(code),
                None => !StatusClass::from_code(code).is_refusal(),
            };
            if !is_expected {
                *self.codes.entry(code).or_default() += answers;
            }
        }
    }

    fn merge(&mut self, other: Answers) {
        self.expected.merge(&other.expected);
        self.missed += other.missed;
        for (code, answers) in other.codes {
            *self.codes.entry(code).or_default() += answers;
        }
    }

    /// The value of a measure, such as a percentile: a time in seconds, or a share of errors. `None` if too few calls
    /// had an expected answer.
    fn value(&self, measure: &Measure) -> Option<f64> {
        match measure {
            Measure::Percentile { percent, .. } => self.percentile_s(percent / 100.0),
            Measure::ErrorShare { .. } => self.error_share(),
            Measure::Mean { .. } | Measure::Utilization { .. } => self.mean_s(),
        }
    }

    fn calls(&self) -> u64 {
        self.expected.count() + self.missed
    }

    fn error_share(&self) -> Option<f64> {
        (self.calls() > 0).then(|| self.missed as f64 / self.calls() as f64)
    }

    fn mean_s(&self) -> Option<f64> {
        self.expected.summary().map(|summary| summary.mean / 1e6)
    }

    /// The shortest time within which the share `share` of all calls had an expected answer; `None` if a smaller share
    /// of the calls had an expected answer.
    fn percentile_s(&self, share: f64) -> Option<f64> {
        let share_of_expected = share * self.calls() as f64 / self.expected.count() as f64;
        let time = (share_of_expected <= 1.0).then(|| self.expected.quantile(share_of_expected)).flatten();
        time.map(|time| time.as_secs_f64())
    }

    /// Describes the calls without an expected answer, and their effect on the objective.
    fn message(&self, measure: &Measure, is_measured: bool) -> Option<String> {
        let share = match self.error_share() {
            None => return Some("no call was answered, and none failed".to_owned()),
            Some(share) => share,
        };
        let calls = count(self.calls());
        if self.missed == 0 {
            let is_of_errors = matches!(measure, Measure::ErrorShare { .. });
            return is_of_errors.then(|| format!("all {calls} calls had an expected answer"));
        }
        if self.expected.count() == 0 {
            return Some(format!(
                "no answer was as expected: {}",
                self.causes().replacen(' ', &format!(" of {calls} "), 1)
            ));
        }
        let missed = pluralize(self.missed, "call");
        let what = format!("{missed} of {calls} ({}) had no expected answer: {}", percent(share), self.causes());
        let meaning = match measure {
            Measure::ErrorShare { .. } => return Some(what),
            Measure::Percentile { percent, .. } if !is_measured => format!("more than p{percent} allows for"),
            Measure::Percentile { .. } => "they count as slower than any limit".to_owned(),
            _ if share > MAX_UNEXPECTED_SHARE_OF_MEAN => {
                format!("a mean allows for {}", percent(MAX_UNEXPECTED_SHARE_OF_MEAN))
            }
            _ => "the mean is that of the others".to_owned(),
        };
        Some(format!("{what}; {meaning}"))
    }

    /// Lists the reasons for missing answers, like `380 were 503, 20 failed`.
    fn causes(&self) -> String {
        let answered: u64 = self.codes.values().sum();
        let mut codes: Vec<(u16, u64)> = self.codes.iter().map(|(code, calls)| (*code, *calls)).collect();
        codes.sort_by_key(|(code, calls)| (std::cmp::Reverse(*calls), *code));
        let others: u64 = codes.iter().skip(MAX_NAMED).map(|(_, calls)| calls).sum();
        let named = codes
            .iter()
            .take(MAX_NAMED)
            .map(|(code, calls)| format!("{} {} {code:03}", count(*calls), if *calls == 1 { "was" } else { "were" }));
        let others = (others > 0).then(|| format!("{} had other statuses", count(others)));
        let failed = self.missed.saturating_sub(answered);
        let failed = (failed > 0).then(|| format!("{} failed", count(failed)));
        named.chain(others).chain(failed).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tally::count_end;
    use crate::{RunFacts, derive};
    use brimful_core::End;
    use brimful_core::counts::Counts;
    use brimful_core::workload::{Expect, Workload};

    /// Records `calls` calls of `class` that are answered with this status. Their response times are `step`, 2·`step`,
    /// and so on.
    fn answer(account: &mut Account, class: usize, status: u16, calls: u64, step: Nanos) {
        let tally = &mut account.classes[class];
        for call in 1..=calls {
            count_end(&mut tally.counts, End::Completed { status });
            tally.answers.record(status, true, Nanos(call * step.0), None);
        }
    }

    fn account() -> Account {
        Account::new(&["light".to_owned(), "heavy".to_owned()], Nanos::from_secs(1))
    }

    /// A Record of two classes. The `light` calls are answered within 1 to 100 ms. Half of the `heavy` calls are
    /// answered within 10 to 1000 ms; the other half time out.
    fn record() -> Record {
        let mut account = account();
        answer(&mut account, 0, 200, 100, Nanos::from_millis(1));
        answer(&mut account, 1, 200, 100, Nanos::from_millis(10));
        account.classes[0].counts.client_limited = 50;
        account.classes[1].counts.timed_out = 100;
        derive(&account, RunFacts::default())
    }

    fn judged(account: &Account, workload: Option<Workload>, text: &str) -> Objective {
        let record = derive(account, RunFacts { workload, ..RunFacts::default() });
        judge_objectives(&record, &[text.parse().unwrap()]).unwrap().remove(0)
    }

    #[test]
    fn fast_errors_meet_no_objective() {
        for status in [429, 500, 503, 599] {
            let mut account = account();
            answer(&mut account, 0, status, 400, Nanos(1_000));
            let objective = judged(&account, None, "p95<50ms");
            assert_eq!((objective.met, objective.measured_s, objective.error_share), (false, None, Some(1.0)));
            let said = format!("no answer was as expected: 400 of 400 were {status}");
            assert_eq!(objective.message.as_ref(), Some(&said));
            let mean = judged(&account, None, "mean<50ms");
            assert_eq!((mean.met, mean.message), (false, Some(said)));
        }
        for status in [101, 204, 301, 404] {
            let mut account = account();
            answer(&mut account, 0, status, 400, Nanos(1_000));
            let objective = judged(&account, None, "p95<50ms");
            assert_eq!((objective.met, objective.error_share, objective.message), (true, Some(0.0), None));
        }
    }

    #[test]
    fn a_percentile_is_of_all_calls_and_its_time_of_those_that_were_expected() {
        let mut account = account();
        answer(&mut account, 0, 503, 2, Nanos(1_000));
        answer(&mut account, 0, 429, 1, Nanos(1_000));
        answer(&mut account, 0, 200, 196, Nanos::from_millis(1));
        account.classes[0].counts.refused = 1;
        let p98 = judged(&account, None, "p98<1s");
        assert_eq!((p98.met, p98.measured_s, p98.error_share), (true, Some(0.196), Some(0.02)));
        let said = "4 calls of 200 (2.0 %) had no expected answer: 2 were 503, 1 was 429, 1 failed; ";
        assert_eq!(p98.message.unwrap(), format!("{said}they count as slower than any limit"));
        let p99 = judged(&account, None, "p99<1s");
        assert_eq!((p99.met, p99.measured_s), (false, None));
        assert_eq!(p99.message.unwrap(), format!("{said}more than p99 allows for"));
        let mean = judged(&account, None, "mean<1s");
        assert_eq!((mean.met, mean.measured_s.map(|s| (s * 1e4).round())), (false, Some(985.0)));
        assert_eq!(mean.message.unwrap(), format!("{said}a mean allows for 1.0 %"));
    }

    #[test]
    fn statuses_that_the_workload_expects_are_expected_and_no_others() {
        let expecting = |statuses: &str| {
            let mut workload = Workload::single_class("GET", "/");
            "light".clone_into(&mut workload.classes[0].name);
            workload.classes[0].expect = Some(Expect { status: statuses.parse().ok(), ..Expect::default() });
            Some(workload)
        };
        let mut account = account();
        answer(&mut account, 0, 503, 100, Nanos::from_millis(1));
        let met = judged(&account, expecting("503"), "p95<1s");
        assert_eq!((met.met, met.measured_s.map(|s| (s * 1e3).round()), met.message), (true, Some(95.0), None));
        // The engine reports a call with an unexpected status as `End::Unexpected`.
        let tally = &mut account.classes[0];
        tally.counts = Counts::default();
        tally.answers.clear();
        for _ in 0..10 {
            count_end(&mut tally.counts, End::Unexpected { status: 404 });
            tally.answers.record(404, false, Nanos(1_000), None);
        }
        let missed = judged(&account, expecting("200,3xx"), "p95<1s");
        let said = "no answer was as expected: 10 of 10 were 404";
        assert_eq!((missed.met, missed.message.as_deref()), (false, Some(said)));
    }

    #[test]
    fn a_record_that_does_not_say_which_times_are_errors_is_refused() {
        let mut account = account();
        answer(&mut account, 0, 503, 10, Nanos::from_millis(1));
        answer(&mut account, 0, 200, 10, Nanos::from_millis(1));
        let mut record = derive(&account, RunFacts::default());
        for class in &mut record.account.as_mut().unwrap().classes {
            class.status_codes.clear();
            class.status_times.clear();
        }
        let error = judge_objectives(&record, &["p99<1s".parse().unwrap()]).unwrap_err();
        assert!(error.to_string().contains("earlier version"), "{error}");
        assert!(judge_objectives(&record, &["heavy:p99<1s".parse().unwrap()]).is_ok());
    }

    fn judge(text: &str) -> Result<Objective, String> {
        let slo = text.parse::<Slo>().map_err(|error| error.to_string())?;
        let mut judged = judge_objectives(&record(), &[slo]).map_err(|error| error.to_string())?;
        Ok(judged.remove(0))
    }

    #[test]
    fn a_class_and_all_of_them() {
        for (text, measured_ms, met) in [
            ("light:p50<51ms", Some(50.0), true),
            ("light:p50<50ms", Some(50.0), false),
            ("light:p99<1s", Some(99.0), true),
            ("light:mean<51ms", Some(50.5), true),
            ("heavy:mean<500ms", Some(505.0), false),
            // A third of all calls failed, so percentiles above about the 66th have no value.
            ("p60<1s", Some(800.0), true),
            ("p70<1s", None, false),
            ("heavy:p49.9<1s", Some(1_000.0), false),
            ("heavy:p51<10s", None, false),
        ] {
            let judged = judge(text).unwrap();
            let close = |(measured, expected): (f64, f64)| (measured * 1e3 / expected - 1.0).abs() < 0.02;
            assert_eq!((judged.met, judged.measured_s.is_some()), (met, measured_ms.is_some()), "{judged:?}");
            assert!(judged.measured_s.zip(measured_ms).is_none_or(close), "{judged:?}, expected {measured_ms:?}");
            assert_eq!(judged.objective, text);
        }
        assert_eq!(judge_objectives(&record(), &[]).unwrap(), []);
    }

    #[test]
    fn what_cannot_be_judged_is_said() {
        assert!(judge("cpu.utilization<70%").unwrap_err().contains("plan what-if"));
        assert!(judge("medium:p99<1s").unwrap_err().ends_with("the classes are: light, heavy"));
        let lost = Record { account: None, ..record() };
        assert!(judge_objectives(&lost, &["mean<1s".parse().unwrap()]).is_err());
    }
}
