//! Service level objectives and their notation.
//!
//! `p95<200ms` and `mean<1s` limit the response time of all requests; `api:p99<50ms` limits the response time of one
//! class. `cpu.utilization<70%` limits the utilization of one station; `utilization<70%` limits the utilization of
//! every station. The limit follows the last `<`, so a name may contain any other character. [`Slo`] does not check
//! names; the code that uses an [`Slo`] checks them.

use crate::units::Nanos;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// A service level objective: a measure that must stay below a limit.
#[derive(Clone, Debug, PartialEq, JsonSchema)]
#[schemars(with = "String")]
pub struct Slo {
    /// The quantity that must stay below the limit.
    pub measure: Measure,
    /// The limit that the measure must stay below: seconds for a time, a fraction for a utilization.
    pub limit: f64,
}

/// The quantity that an objective limits.
#[derive(Clone, Debug, PartialEq)]
pub enum Measure {
    /// Mean response time.
    Mean {
        /// Name of the class; `None` for all requests.
        class: Option<String>,
    },
    /// A percentile of the response time.
    Percentile {
        /// Name of the class; `None` for all requests.
        class: Option<String>,
        /// The percentile, above 0 and below 100.
        percent: f64,
    },
    /// Share of a station's capacity that is in use.
    Utilization {
        /// Name of the station; `None` for every station.
        station: Option<String>,
    },
}

/// The error of parsing an objective.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "`{text}` is no objective: {problem}; write it like p95<200ms, mean<1s, CLASS:p99<50ms or STATION.utilization<70%"
)]
pub struct ParseSloError {
    text: String,
    problem: String,
}

const UTILIZATION: &str = "utilization";

impl FromStr for Slo {
    type Err = ParseSloError;

    fn from_str(text: &str) -> Result<Slo, ParseSloError> {
        let error = |problem: String| ParseSloError { text: text.to_owned(), problem };
        let (left, limit) = text.rsplit_once('<').ok_or_else(|| error("there is no `<`".into()))?;
        let (left, limit) = (left.trim(), limit.trim_start_matches('=').trim());
        let measure = Measure::parse(left).map_err(error)?;
        let limit = match measure {
            Measure::Utilization { .. } => share(limit).ok_or_else(|| error(format!("`{limit}` is no share"))),
            _ => limit.parse::<Nanos>().map(Nanos::as_secs_f64).map_err(|e| error(e.to_string())),
        }?;
        if limit > 0.0 { Ok(Slo { measure, limit }) } else { Err(error("nothing is below 0".into())) }
    }
}

impl Measure {
    fn parse(text: &str) -> Result<Measure, String> {
        if text == UTILIZATION {
            return Ok(Measure::Utilization { station: None });
        }
        if let Some(station) = text.strip_suffix(UTILIZATION).and_then(|rest| rest.strip_suffix('.')) {
            return Ok(Measure::Utilization { station: Some(station.trim().to_owned()) });
        }
        let (class, what) = match text.rsplit_once(':') {
            Some((class, what)) => (Some(class.trim().to_owned()), what.trim()),
            None => (None, text),
        };
        if what == "mean" {
            return Ok(Measure::Mean { class });
        }
        let percent = what.strip_prefix('p').and_then(percent);
        percent.map(|percent| Measure::Percentile { class, percent }).ok_or_else(|| format!("`{what}` is no measure"))
    }
}

/// Parses a percentile above 0 and below 100, like `95` or `99.9`.
fn percent(text: &str) -> Option<f64> {
    let digits = text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    text.parse().ok().filter(|p| digits && *p > 0.0 && *p < 100.0)
}

/// Parses a share of at most 1, written as `70%` or `0.7`.
fn share(text: &str) -> Option<f64> {
    let (number, whole) = text.strip_suffix('%').map_or((text, 1.0), |number| (number.trim_end(), 100.0));
    let digits = number.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    number.parse().ok().map(|n: f64| n / whole).filter(|share| digits && *share <= 1.0)
}

impl fmt::Display for Slo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.measure {
            Measure::Utilization { station } => {
                let of = station.iter().flat_map(|name| [name.as_str(), "."]).collect::<String>();
                write!(f, "{of}{UTILIZATION}<{}", self.limit)
            }
            Measure::Mean { class } => write!(f, "{}mean<{}", prefix(class), time(self.limit)),
            Measure::Percentile { class, percent } => write!(f, "{}p{percent}<{}", prefix(class), time(self.limit)),
        }
    }
}

fn prefix(class: &Option<String>) -> String {
    class.iter().flat_map(|name| [name.as_str(), ":"]).collect()
}

/// Formats a time without rounding, in the unit that is easiest to read.
fn time(seconds: f64) -> String {
    Nanos::from_secs_f64(seconds).to_exact_string()
}

impl Serialize for Slo {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn slo(text: &str) -> (Measure, f64) {
        let slo: Slo = text.parse().unwrap();
        (slo.measure, slo.limit)
    }

    #[test]
    fn objectives_as_people_write_them() {
        let p = |class: Option<&str>, percent| Measure::Percentile { class: class.map(Into::into), percent };
        assert_eq!(slo("p95<200ms"), (p(None, 95.0), 0.2));
        assert_eq!(slo("p99.9 <= 1.5s"), (p(None, 99.9), 1.5));
        assert_eq!(slo("mean<1s"), (Measure::Mean { class: None }, 1.0));
        assert_eq!(slo("GET:/a<b:p99<50ms"), (p(Some("GET:/a<b"), 99.0), 0.05));
        assert_eq!(slo("cpu.utilization<70%"), (Measure::Utilization { station: Some("cpu".into()) }, 0.7));
        assert_eq!(slo("utilization<0.7"), (Measure::Utilization { station: None }, 0.7));
        assert_eq!(slo("disk.0.utilization<100%").1, 1.0);
    }

    #[test]
    fn what_makes_no_sense_is_said() {
        for (text, problem) in [
            ("", "no `<`"),
            ("p95", "no `<`"),
            ("p95<200", "not a duration"),
            ("p95<0s", "nothing is below 0"),
            ("p0<1s", "`p0` is no measure"),
            ("p100<1s", "`p100` is no measure"),
            ("pinf<1s", "no measure"),
            ("p9e1<1s", "no measure"),
            ("median<1s", "`median` is no measure"),
            ("cpu.utilization<140%", "`140%` is no share"),
            ("cpu.utilization<70ms", "no share"),
            ("cpu.utilization<-1", "no share"),
        ] {
            let error = text.parse::<Slo>().unwrap_err().to_string();
            assert!(error.contains(problem) && error.contains("p95<200ms"), "{text}: {error}");
        }
    }

    #[test]
    fn it_is_shown_as_it_is_written() {
        for text in ["p95<200ms", "mean<1s", "api:p99.9<1.5ms", "cpu.utilization<0.7", "utilization<0.05"] {
            assert_eq!(slo_text(text), text);
        }
        assert_eq!(serde_json::to_value("mean<1s".parse::<Slo>().unwrap()).unwrap(), "mean<1s");
    }

    fn slo_text(text: &str) -> String {
        text.parse::<Slo>().unwrap().to_string()
    }

    proptest! {
        #[test]
        fn no_text_panics_and_what_is_read_reads_back(text in ".*") {
            if let Ok(slo) = text.parse::<Slo>() {
                prop_assert_eq!(slo.to_string().parse(), Ok(slo));
            }
        }

        #[test]
        fn parse_undoes_display(name in "[^\u{0}]{0,8}", kind in 0..3u8, percent in 0.001..99.999f64, n in 1..1_000_000_000_000_000u64) {
            let (class, station) = (Some(name.trim().to_owned()), Some(name.trim().to_owned()));
            let limit = Nanos(n).as_secs_f64();
            let slo = match kind {
                0 => Slo { measure: Measure::Mean { class }, limit },
                1 => Slo { measure: Measure::Percentile { class, percent }, limit },
                _ => Slo { measure: Measure::Utilization { station }, limit: percent / 100.0 },
            };
            prop_assert_eq!(slo.to_string().parse(), Ok(slo));
        }
    }
}
