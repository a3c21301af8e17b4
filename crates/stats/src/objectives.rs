//! Were the objectives of a run met? They are about response times, from due to the last byte.
//!
//! A call that failed was never answered: for a percentile it counts as slower than any limit, so that no server meets
//! an objective by refusing what it is too slow for. What this host had no means for, and what the end of the run cut
//! off, was not the server's to answer and does not count. A mean is that of the calls that were completed.

use crate::account::Account;
use crate::error::StatsError;
use crate::tally::Tally;
use brimful_core::Slo;
use brimful_core::record::{Objective, Record};
use brimful_core::slo::Measure;

/// Why an objective cannot be judged by a run.
#[derive(Debug, thiserror::Error)]
pub enum ObjectiveError {
    /// A load measures no stations.
    #[error(
        "`{0}` is about a utilization, which a load does not measure: give an objective for a response time, like \
         p99<50ms, or ask `brimful plan what-if --slo`"
    )]
    Utilization(String),
    /// There is no such class.
    #[error("`{objective}` is about a class that is not there; the classes are: {known}")]
    UnknownClass {
        /// The objective.
        objective: String,
        /// The classes.
        known: String,
    },
    /// The Record has lost what was seen.
    #[error("{0}")]
    Unreadable(#[from] StatsError),
}

/// Whether a run with these classes can be judged by each of them.
///
/// # Errors
/// [`ObjectiveError`] when one of them cannot.
pub fn check_objectives(classes: &[&str], objectives: &[Slo]) -> Result<(), ObjectiveError> {
    for objective in objectives {
        let class = match &objective.measure {
            Measure::Mean { class } | Measure::Percentile { class, .. } => class.as_deref(),
            Measure::Utilization { .. } => return Err(ObjectiveError::Utilization(objective.to_string())),
        };
        if class.is_some_and(|name| !classes.contains(&name)) {
            return Err(ObjectiveError::UnknownClass { objective: objective.to_string(), known: classes.join(", ") });
        }
    }
    Ok(())
}

/// Judges each of them.
///
/// # Errors
/// [`ObjectiveError`] when one of them cannot be judged.
pub fn judge_objectives(record: &Record, objectives: &[Slo]) -> Result<Vec<Objective>, ObjectiveError> {
    if objectives.is_empty() {
        return Ok(Vec::new());
    }
    let account = Account::unpack(record.account.as_ref().ok_or(StatsError::NoAccount)?)?;
    let classes: Vec<&str> = account.classes.iter().map(|tally| tally.name.as_str()).collect();
    check_objectives(&classes, objectives)?;
    Ok(objectives.iter().map(|objective| judged(&account, objective)).collect())
}

fn judged(account: &Account, objective: &Slo) -> Objective {
    let measured_s = match &objective.measure {
        Measure::Mean { class } => mean_s(&tally(account, class.as_deref())),
        Measure::Percentile { class, percent } => percentile_s(&tally(account, class.as_deref()), percent / 100.0),
        Measure::Utilization { .. } => None,
    };
    let met = measured_s.is_some_and(|measured| measured < objective.limit);
    Objective { objective: objective.to_string(), measured_s, met }
}

/// The calls of one class, or of all.
fn tally(account: &Account, class: Option<&str>) -> Tally {
    let chosen = account.classes.iter().filter(|tally| class.is_none_or(|name| name == tally.name));
    chosen.fold(Tally::new(String::new()), |mut sum, tally| {
        sum.merge(tally);
        sum
    })
}

fn mean_s(tally: &Tally) -> Option<f64> {
    tally.response.summary().map(|summary| summary.mean / 1e6)
}

fn percentile_s(tally: &Tally, share: f64) -> Option<f64> {
    let (completed, counts) = (tally.response.count(), &tally.counts);
    let failed = counts.errors() - counts.client_limited.min(counts.errors());
    let of_completed = share * (completed + failed) as f64 / completed as f64;
    (of_completed <= 1.0).then(|| tally.response.quantile(of_completed)).flatten().map(|time| time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Facts, derive};
    use brimful_core::Nanos;

    /// `light` is answered within 1 to 100 ms; half of what is `heavy` fails.
    fn record() -> Record {
        let mut account = Account::new(&["light".to_owned(), "heavy".to_owned()], Nanos::from_secs(1));
        for ms in 1..=100 {
            account.classes[0].response.record(Nanos::from_millis(ms));
            account.classes[1].response.record(Nanos::from_millis(10 * ms));
        }
        account.classes[0].counts.client_limited = 50;
        account.classes[1].counts.timed_out = 100;
        derive(&account, Facts::default())
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
            // A third of all failed.
            ("p60<1s", Some(800.0), true),
            ("p70<1s", None, false),
            ("heavy:p49.9<1s", Some(1_000.0), false),
            ("heavy:p51<10s", None, false),
        ] {
            let judged = judge(text).unwrap();
            let close = |(measured, expected): (f64, f64)| (measured * 1e3 / expected - 1.0).abs() < 0.02;
            assert_eq!((judged.met, judged.measured_s.is_some()), (met, measured_ms.is_some()), "{judged:?}");
            assert!(judged.measured_s.zip(measured_ms).is_none_or(close), "{judged:?} and not {measured_ms:?}");
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
