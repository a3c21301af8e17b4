//! `--max-regression`: the largest change for the worse that the user accepts, like `p99:5%`.

use crate::error::StatsError;
use brimful_core::comparison::{LimitOutcome, LimitResult, MetricComparison};
use std::fmt;
use std::str::FromStr;

/// The largest accepted change for the worse of one metric. The limit is met if the whole 95 % interval of the change
/// is below it, and exceeded if the whole interval is above it. Otherwise, the outcome is undecided.
#[derive(Clone, Debug, PartialEq)]
pub struct RegressionLimit {
    figure: String,
    /// The limit as a fraction of side A's value. For metrics that are shares, it is absolute: 0.01 is one percentage
    /// point.
    share: f64,
    /// The limit in the user's notation.
    text: String,
}

impl RegressionLimit {
    /// Determines whether the comparison meets this limit.
    ///
    /// # Errors
    /// [`StatsError::NotComparable`] if the comparison does not have the metric of this limit.
    pub fn judge(&self, figures: &[MetricComparison]) -> Result<LimitResult, StatsError> {
        let names = || figures.iter().map(|figure| figure.name.as_str()).collect::<Vec<_>>().join(", ");
        let no_such = || {
            StatsError::NotComparable(format!(
                "`{self}` is about a figure that is not compared here; these are: {}",
                names()
            ))
        };
        let figure = figures.iter().find(|figure| figure.name == self.figure).ok_or_else(no_such)?;
        let sign = if figure.lower_is_better { 1.0 } else { -1.0 };
        let interval95 = figure.interval95.map(|ends| {
            let [one, other] = ends.map(|end| sign * end);
            [one.min(other), one.max(other)]
        });
        let outcome = match interval95 {
            Some([low, _]) if low > self.share => LimitOutcome::Exceeded,
            Some([_, high]) if high <= self.share => LimitOutcome::Kept,
            _ => LimitOutcome::NotKnown,
        };
        let regression = figure.difference.map(|difference| sign * difference);
        Ok(LimitResult { limit: self.text.clone(), regression, interval95, outcome })
    }
}

impl FromStr for RegressionLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<RegressionLimit, String> {
        let wrong = || format!("`{text}` is no limit: write FIGURE:PERCENT, like p99:5% or throughput:2%");
        let (figure, limit) = text.rsplit_once(':').ok_or_else(wrong)?;
        let percent = limit.trim().strip_suffix('%').ok_or_else(wrong)?.trim_end();
        let is_number = percent.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let percent: f64 = percent.parse().ok().filter(|_| is_number).ok_or_else(wrong)?;
        match figure.trim() {
            "" => Err(wrong()),
            name => Ok(RegressionLimit { figure: name.to_owned(), share: percent / 100.0, text: text.to_owned() }),
        }
    }
}

impl fmt::Display for RegressionLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(limit: &str, lower_is_better: bool, interval95: Option<[f64; 2]>) -> LimitOutcome {
        let figure =
            MetricComparison { name: "p99".to_owned(), lower_is_better, interval95, ..MetricComparison::default() };
        limit.parse::<RegressionLimit>().unwrap().judge(&[figure]).unwrap().outcome
    }

    #[test]
    fn a_limit_is_decided_only_by_the_whole_interval() {
        assert_eq!(outcome("p99:5%", true, Some([0.06, 0.1])), LimitOutcome::Exceeded);
        assert_eq!(outcome("p99:5%", true, Some([0.04, 0.1])), LimitOutcome::NotKnown);
        assert_eq!(outcome("p99:5%", true, Some([-0.5, 0.05])), LimitOutcome::Kept);
        assert_eq!(outcome("p99:5%", true, None), LimitOutcome::NotKnown);
        // If lower values are worse, a decrease by 6 to 10 % exceeds a limit of 5 %.
        assert_eq!(outcome("p99:5%", false, Some([-0.1, -0.06])), LimitOutcome::Exceeded);
        assert_eq!(outcome("p99:5%", false, Some([-0.04, 0.9])), LimitOutcome::Kept);
    }

    #[test]
    fn a_limit_names_a_figure_and_a_percentage() {
        let limit: RegressionLimit = "rate p99<50ms: 2.5 %".parse().unwrap();
        assert_eq!((limit.figure.as_str(), limit.share), ("rate p99<50ms", 0.025));
        for wrong in ["", "p99", "p99:5", ":5%", "p99:-5%", "p99:inf%", "p99:%", "p99:1.2.3%"] {
            assert!(wrong.parse::<RegressionLimit>().is_err(), "{wrong}");
        }
        let error =
            limit.judge(&[MetricComparison { name: "p99".to_owned(), ..MetricComparison::default() }]).unwrap_err();
        assert!(error.to_string().ends_with("these are: p99"), "{error}");
    }
}
