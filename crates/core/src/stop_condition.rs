//! Conditions that end a load early, such as `p99>1s for 5s`, and their notation.
//!
//! `p99>1s for 5s` ends a load if the 99th percentile of the response time exceeded one second in each of the last five
//! seconds. `errors>5%` and `mean>200ms` use the measures of [`crate::Slo`] with `>` instead of `<`. A condition can
//! apply to one class: `api:p99>1s`. Without `for`, the condition must be met for [`DEFAULT_HOLD`].

use crate::slo::{Measure, parse_limit};
use crate::units::Nanos;
use std::fmt;
use std::str::FromStr;

/// Time for which a condition must be met if the user does not specify it.
pub const DEFAULT_HOLD: Nanos = Nanos::from_secs(5);
/// The shortest time that a user can specify with `for`. In a shorter time, too few calls end.
const MIN_HOLD: Nanos = Nanos::from_millis(100);
/// The longest time that a user can specify with `for`: a day.
const MAX_HOLD: Nanos = Nanos::from_secs(86_400);

/// A condition that ends a load early.
#[derive(Clone, Debug, PartialEq)]
pub struct StopCondition {
    /// The quantity that is compared with the limit: a response time or the share of errors.
    pub measure: Measure,
    /// The limit that the quantity must exceed: seconds for a time, a fraction for a share.
    pub limit: f64,
    /// Time for which the quantity must exceed the limit without interruption.
    pub hold: Nanos,
}

/// The error for a text that is not a condition.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error("`{text}` is not a condition: {problem}; write it like 'p99>1s for 5s', 'mean>200ms' or 'errors>5%'")]
pub struct ParseStopConditionError {
    text: String,
    problem: String,
}

impl FromStr for StopCondition {
    type Err = ParseStopConditionError;

    fn from_str(text: &str) -> Result<StopCondition, ParseStopConditionError> {
        let error = |problem: String| ParseStopConditionError { text: text.to_owned(), problem };
        let (measure, rest) = text.rsplit_once('>').ok_or_else(|| error("there is no `>`".into()))?;
        let measure = Measure::parse(measure.trim()).map_err(error)?;
        if matches!(measure, Measure::Utilization { .. }) {
            return Err(error("a load does not measure utilizations".into()));
        }
        let (limit, hold) = match rest.split_once(" for ") {
            Some((limit, hold)) => (limit, hold.trim().parse().map_err(|e| error(format!("{e}")))?),
            None => (rest, DEFAULT_HOLD),
        };
        let limit = parse_limit(&measure, limit.trim_start_matches('=').trim()).map_err(error)?;
        match measure {
            Measure::ErrorShare { .. } if limit >= 1.0 => return Err(error("no share is above 100 %".into())),
            Measure::Mean { .. } | Measure::Percentile { .. } if limit == 0.0 => {
                return Err(error("the limit of a time is above 0".into()));
            }
            _ => {}
        }
        if !(MIN_HOLD..=MAX_HOLD).contains(&hold) {
            return Err(error(format!("the time after `for` is between {MIN_HOLD} and {MAX_HOLD}")));
        }
        Ok(StopCondition { measure, limit, hold })
    }
}

impl fmt::Display for StopCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.measure {
            Measure::ErrorShare { .. } | Measure::Utilization { .. } => write!(f, "{}>{}", self.measure, self.limit)?,
            _ => write!(f, "{}>{}", self.measure, Nanos::from_secs_f64(self.limit).to_exact_string())?,
        }
        write!(f, " for {}", self.hold.to_exact_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parsed(text: &str) -> StopCondition {
        text.parse().unwrap()
    }

    #[test]
    fn conditions_as_people_write_them() {
        let p99 = Measure::Percentile { class: None, percent: 99.0 };
        let slow = StopCondition { measure: p99, limit: 1.0, hold: Nanos::from_secs(3) };
        assert_eq!(parsed("p99>1s for 3s"), slow);
        assert_eq!(parsed("p99 >= 1s for 3s"), slow);
        let errors = Measure::ErrorShare { class: None };
        assert_eq!(parsed("errors>5%"), StopCondition { measure: errors, limit: 0.05, hold: DEFAULT_HOLD });
        assert_eq!(parsed("errors>0%").limit, 0.0);
        let mean_of_class = Measure::Mean { class: Some("GET:/a>b".into()) };
        assert_eq!(parsed("GET:/a>b:mean>20ms").measure, mean_of_class);
    }

    #[test]
    fn what_makes_no_sense_is_said() {
        for (text, problem) in [
            ("p99<1s", "no `>`"),
            ("p99>0s", "limit"),
            ("p101>1s", "`p101` is no measure"),
            ("p99>1s for", "not a duration"),
            ("p99>1s for ever", "not a duration"),
            ("p99>1s for 1ms", "between"),
            ("p99>1s for 48h", "between"),
            ("errors>100%", "no share is above"),
            ("cpu.utilization>90%", "does not measure utilizations"),
        ] {
            let error = text.parse::<StopCondition>().unwrap_err().to_string();
            assert!(error.contains(problem) && error.contains("'p99>1s for 5s'"), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics_and_a_condition_is_shown_as_it_is_written(text in ".*") {
            if let Ok(condition) = text.parse::<StopCondition>() {
                prop_assert_eq!(condition.to_string().parse(), Ok(condition));
            }
        }
    }
}
