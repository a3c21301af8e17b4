//! Service level objectives (SLOs), such as `p95<200ms`, and their notation.
//!
//! `p95<200ms` and `mean<1s` limit the response time of all requests; `api:p99<50ms` limits the response time of the
//! class `api`. `errors<1%` limits the share of calls without an expected answer. `cpu.utilization<70%` limits the
//! utilization of the station `cpu`; `utilization<70%` limits the utilization of every station. The limit begins after
//! the last `<`, so names may contain any other character. Whether classes and stations with these names exist must be
//! checked by the code that uses an [`Slo`].
//!
//! For a survey, a limit may also be a multiple of the value at light load: `p99<10x` is ten times the 99th percentile
//! at light load. [`SloSpec`] represents both kinds of limits.

use crate::JsonSchema;
use crate::units::Nanos;
use serde::{Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// A service level objective: a measure and the limit that it must stay below.
#[derive(Clone, Debug, PartialEq, JsonSchema)]
#[schemars(with = "String")]
pub struct Slo {
    /// The quantity that must stay below the limit, such as `p95`.
    pub measure: Measure,
    /// The limit that the measure must stay below: seconds for a time, a fraction for a share or a utilization.
    pub limit: f64,
}

/// The quantity that an objective limits.
#[derive(Clone, Debug, PartialEq)]
pub enum Measure {
    /// The mean response time.
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
    /// Fraction of the calls that failed or had an answer that the workload does not expect.
    ErrorShare {
        /// Name of the class; `None` for all requests.
        class: Option<String>,
    },
    /// Utilization: the fraction of a station's capacity that is in use.
    Utilization {
        /// Name of the station; `None` for every station.
        station: Option<String>,
    },
}

/// The error for a text that is not an objective.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "`{text}` is no objective: {problem}; write it like p95<200ms, mean<1s, CLASS:p99<50ms or STATION.utilization<70%"
)]
pub struct ParseSloError {
    text: String,
    problem: String,
}

const UTILIZATION: &str = "utilization";
const ERRORS: &str = "errors";

/// An objective of a survey as the user writes it: its limit may be a multiple of the value at light load.
#[derive(Clone, Debug, PartialEq)]
pub enum SloSpec {
    /// An objective whose limit is a time or a fraction.
    Absolute(Slo),
    /// An objective whose limit is a multiple of the value at light load, as in `p99<10x`.
    Relative {
        /// The quantity that must stay below the limit: the mean or a percentile of the response time.
        measure: Measure,
        /// The limit divided by the value at light load; greater than 1.
        factor: f64,
    },
}

impl SloSpec {
    /// The quantity that must stay below the limit.
    pub fn measure(&self) -> &Measure {
        match self {
            SloSpec::Absolute(slo) => &slo.measure,
            SloSpec::Relative { measure, .. } => measure,
        }
    }

    /// Computes the absolute objective. `light_load` is the value of the measure at light load.
    pub fn resolve(&self, light_load: f64) -> Slo {
        match self {
            SloSpec::Absolute(slo) => slo.clone(),
            SloSpec::Relative { measure, factor } => {
                Slo { measure: measure.clone(), limit: rounded(factor * light_load) }
            }
        }
    }
}

/// Rounds a time in seconds to two significant digits, so that computed limits are as easy to read as limits that a
/// user writes.
fn rounded(seconds: f64) -> f64 {
    if !(seconds.is_finite() && seconds > 0.0) {
        return seconds;
    }
    let unit = 10f64.powf(seconds.log10().floor() - 1.0);
    (seconds / unit).round() * unit
}

impl FromStr for SloSpec {
    type Err = ParseSloError;

    fn from_str(text: &str) -> Result<SloSpec, ParseSloError> {
        let relative = text.rsplit_once('<').and_then(|(left, limit)| {
            let limit = limit.trim_start_matches('=').trim().strip_suffix('x')?;
            Some((left.trim(), limit.trim_end()))
        });
        let Some((left, factor)) = relative else { return text.parse().map(SloSpec::Absolute) };
        let error = |problem: String| ParseSloError { text: text.to_owned(), problem };
        let measure = Measure::parse(left).map_err(error)?;
        if !matches!(measure, Measure::Mean { .. } | Measure::Percentile { .. }) {
            return Err(error("only a response time can be compared with light load".into()));
        }
        match factor.parse() {
            Ok(factor) if factor > 1.0 && factor <= 1e6 => Ok(SloSpec::Relative { measure, factor }),
            _ => Err(error(format!("`{factor}x` is not a multiple of light load, like 10x"))),
        }
    }
}

impl fmt::Display for SloSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SloSpec::Absolute(slo) => write!(f, "{slo}"),
            SloSpec::Relative { measure, factor } => write!(f, "{measure}<{factor}x"),
        }
    }
}

impl FromStr for Slo {
    type Err = ParseSloError;

    fn from_str(text: &str) -> Result<Slo, ParseSloError> {
        let error = |problem: String| ParseSloError { text: text.to_owned(), problem };
        let (left, limit) = text.rsplit_once('<').ok_or_else(|| error("there is no `<`".into()))?;
        let (left, limit) = (left.trim(), limit.trim_start_matches('=').trim());
        let measure = Measure::parse(left).map_err(error)?;
        let limit = parse_limit(&measure, limit).map_err(error)?;
        if limit > 0.0 { Ok(Slo { measure, limit }) } else { Err(error("nothing is below 0".into())) }
    }
}

/// Parses the limit of a measure. Returns seconds for a time, and a fraction for a share or a utilization.
pub(crate) fn parse_limit(measure: &Measure, text: &str) -> Result<f64, String> {
    match measure {
        Measure::Utilization { .. } | Measure::ErrorShare { .. } => {
            share(text).ok_or_else(|| format!("`{text}` is no share"))
        }
        _ => text.parse::<Nanos>().map(Nanos::as_secs_f64).map_err(|error| error.to_string()),
    }
}

impl Measure {
    /// Parses the left side of an objective, such as `api:p99` or `cpu.utilization`.
    pub(crate) fn parse(text: &str) -> Result<Measure, String> {
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
        if what == ERRORS {
            return Ok(Measure::ErrorShare { class });
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

/// Parses a share, written as `70%` or `0.7`, as a fraction of at most 1.
fn share(text: &str) -> Option<f64> {
    let (number, whole) = text.strip_suffix('%').map_or((text, 1.0), |number| (number.trim_end(), 100.0));
    let digits = number.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    number.parse().ok().map(|n: f64| n / whole).filter(|share| digits && *share <= 1.0)
}

impl fmt::Display for Slo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let measure = &self.measure;
        match measure {
            Measure::Utilization { .. } | Measure::ErrorShare { .. } => write!(f, "{measure}<{}", self.limit),
            Measure::Mean { .. } | Measure::Percentile { .. } => write!(f, "{measure}<{}", time(self.limit)),
        }
    }
}

impl Measure {
    /// The class that the measure describes; `None` for all requests.
    pub fn class(&self) -> Option<&str> {
        match self {
            Measure::Mean { class } | Measure::Percentile { class, .. } | Measure::ErrorShare { class } => {
                class.as_deref()
            }
            Measure::Utilization { .. } => None,
        }
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Measure::Utilization { station } => {
                let of = station.iter().flat_map(|name| [name.as_str(), "."]).collect::<String>();
                write!(f, "{of}{UTILIZATION}")
            }
            Measure::Mean { class } => write!(f, "{}mean", prefix(class)),
            Measure::Percentile { class, percent } => write!(f, "{}p{percent}", prefix(class)),
            Measure::ErrorShare { class } => write!(f, "{}{ERRORS}", prefix(class)),
        }
    }
}

fn prefix(class: &Option<String>) -> String {
    class.iter().flat_map(|name| [name.as_str(), ":"]).collect()
}

/// Formats a time exactly, in the most readable unit.
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
        assert_eq!(slo("errors<1%"), (Measure::ErrorShare { class: None }, 0.01));
        assert_eq!(slo("api:errors<0.5%"), (Measure::ErrorShare { class: Some("api".into()) }, 0.005));
    }

    #[test]
    fn a_limit_can_be_a_multiple_of_light_load() {
        let spec: SloSpec = "api:p99 < 10x".parse().unwrap();
        assert_eq!(spec.to_string(), "api:p99<10x");
        assert_eq!(spec.resolve(0.002).to_string(), "api:p99<20ms");
        assert_eq!(spec.resolve(0.029_556_735).to_string(), "api:p99<300ms");
        assert_eq!(spec.resolve(0.000_123_4).to_string(), "api:p99<1.2ms");
        let absolute: SloSpec = "p99<50ms".parse().unwrap();
        assert_eq!(absolute.resolve(0.002).to_string(), "p99<50ms");
        for (text, problem) in [
            ("p99<1x", "not a multiple"),
            ("p99<x", "not a multiple"),
            ("p99<NaNx", "not a multiple"),
            ("p99<1e300x", "not a multiple"),
            ("errors<10x", "only a response time"),
            ("utilization<2x", "only a response time"),
            ("px<10x", "no measure"),
        ] {
            let error = text.parse::<SloSpec>().unwrap_err().to_string();
            assert!(error.contains(problem), "{text}: {error}");
        }
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
        for text in
            ["p95<200ms", "mean<1s", "api:p99.9<1.5ms", "cpu.utilization<0.7", "utilization<0.05", "errors<0.01"]
        {
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
        fn parse_undoes_display(name in "[^\u{0}]{0,8}", kind in 0..4u8, percent in 0.001..99.999f64, n in 1..1_000_000_000_000_000u64) {
            let (class, station) = (Some(name.trim().to_owned()), Some(name.trim().to_owned()));
            let limit = Nanos(n).as_secs_f64();
            let slo = match kind {
                0 => Slo { measure: Measure::Mean { class }, limit },
                1 => Slo { measure: Measure::Percentile { class, percent }, limit },
                2 => Slo { measure: Measure::ErrorShare { class }, limit: percent / 100.0 },
                _ => Slo { measure: Measure::Utilization { station }, limit: percent / 100.0 },
            };
            prop_assert_eq!(slo.to_string().parse(), Ok(slo));
        }
    }
}
