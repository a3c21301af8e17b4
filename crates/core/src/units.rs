//! Types for durations, rates, counts and sizes, and their notation.
//!
//! Times are integers in nanoseconds ([`Nanos`]), rates are events per second ([`Rate`]), and sizes are bytes
//! ([`Bytes`]). In the notation of the command line and of documents, durations are `500ms 30s 2m 1h`, counts and rates
//! `10k 1.5M`, and sizes `64KiB 10MB`.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::str::FromStr;
use std::time::Duration;

/// A duration, or the time since the start of a run, in nanoseconds. It is serialised as a number. Subtraction
/// saturates at zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Nanos(pub u64);

/// The time of an event, or [`OptionalNanos::NONE`] if the event has not happened. It needs half of the memory of an
/// `Option<Nanos>`, and every call stores several of them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct OptionalNanos(Nanos);

/// A rate in events per second. A parsed rate is finite and not negative.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Rate(pub f64);

/// A size in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub u64);

/// A number of items, written `1000`, `10k` or `1.5M`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Count(pub u64);

impl OptionalNanos {
    /// The value for an event that has not happened.
    pub const NONE: OptionalNanos = OptionalNanos(Nanos::MAX);

    /// The time of the event; `None` if the event has not happened.
    #[inline]
    pub fn get(self) -> Option<Nanos> {
        (self != OptionalNanos::NONE).then_some(self.0)
    }

    /// Sets the time of the event to `now`, unless the event has already happened. Returns the time of the event.
    #[inline]
    pub fn get_or_set(&mut self, now: Nanos) -> Nanos {
        if *self == OptionalNanos::NONE {
            *self = now.into();
        }
        self.0
    }
}

impl Default for OptionalNanos {
    fn default() -> OptionalNanos {
        OptionalNanos::NONE
    }
}

impl From<Nanos> for OptionalNanos {
    /// Converts a time. [`Nanos::MAX`], which no run can reach, becomes [`OptionalNanos::NONE`].
    fn from(at: Nanos) -> OptionalNanos {
        OptionalNanos(at)
    }
}

impl fmt::Debug for OptionalNanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

/// The error for a text that is not a quantity.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("`{text}` is not a {what}: write it like {example}")]
pub struct ParseUnitError {
    /// The invalid text.
    pub(crate) text: String,
    /// Name of the expected quantity, such as `duration`.
    pub(crate) what: &'static str,
    /// Examples of valid texts.
    pub(crate) example: &'static str,
}

impl Nanos {
    /// A duration of zero, or the start of the run.
    pub const ZERO: Nanos = Nanos(0);
    /// The largest possible value, later than the end of any run.
    pub const MAX: Nanos = Nanos(u64::MAX);

    /// Converts whole microseconds to nanoseconds.
    pub const fn from_micros(us: u64) -> Nanos {
        Nanos(us * 1_000)
    }

    /// Converts whole milliseconds to nanoseconds.
    pub const fn from_millis(ms: u64) -> Nanos {
        Nanos(ms * 1_000_000)
    }

    /// Converts whole seconds to nanoseconds.
    pub const fn from_secs(s: u64) -> Nanos {
        Nanos(s * 1_000_000_000)
    }

    /// Converts seconds to nanoseconds, with rounding. Negative numbers and NaN become zero; values that are too large
    /// become [`Nanos::MAX`].
    pub fn from_secs_f64(s: f64) -> Nanos {
        Nanos((s * 1e9).round() as u64)
    }

    /// The time in seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The time in microseconds.
    pub fn as_micros_f64(self) -> f64 {
        self.0 as f64 / 1e3
    }

    /// Formats the time for the user, rounded to three significant digits: `657 µs`, `3 s`.
    pub fn to_rounded_string(self) -> String {
        let step = 10_u64.pow(self.0.max(1).ilog10().saturating_sub(2));
        let rounded = Nanos(self.0.saturating_add(step / 2) / step * step);
        let (divisor, unit) = rounded.unit();
        format!("{} {unit}", rounded.0 as f64 / divisor as f64)
    }

    /// Formats the time exactly, in the largest unit in which its value is at least one. Parsing the text yields the
    /// same time.
    pub fn to_exact_string(self) -> String {
        let (divisor, unit) = self.unit();
        let (whole, rest) = (self.0 / divisor, self.0 % divisor);
        let text = format!("{whole}.{rest:00$}", divisor.ilog10() as usize);
        format!("{}{unit}", text.trim_end_matches('0').trim_end_matches('.'))
    }

    /// The largest unit in which the time is at least one: its length in nanoseconds, and its symbol.
    fn unit(self) -> (u64, &'static str) {
        match self.0 {
            n if n >= 1_000_000_000 => (1_000_000_000, "s"),
            n if n >= 1_000_000 => (1_000_000, "ms"),
            n if n >= 1_000 => (1_000, "µs"),
            _ => (1, "ns"),
        }
    }

    /// Adds two times; the result is at most [`Nanos::MAX`].
    pub fn saturating_add(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_add(other.0))
    }
}

impl Add for Nanos {
    type Output = Nanos;
    fn add(self, other: Nanos) -> Nanos {
        self.saturating_add(other)
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Nanos) {
        *self = *self + other;
    }
}

impl Sub for Nanos {
    type Output = Nanos;
    fn sub(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(other.0))
    }
}

impl From<Duration> for Nanos {
    fn from(d: Duration) -> Nanos {
        Nanos(u64::try_from(d.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl From<Nanos> for Duration {
    fn from(n: Nanos) -> Duration {
        Duration::from_nanos(n.0)
    }
}

impl fmt::Display for Nanos {
    /// Writes the time in the largest unit in which its value is at least one, with at most three decimals: `1.5ms`,
    /// `20µs`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (divisor, unit) = self.unit();
        let text = format!("{:.3}", self.0 as f64 / divisor as f64);
        write!(f, "{}{unit}", text.trim_end_matches('0').trim_end_matches('.'))
    }
}

impl FromStr for Nanos {
    type Err = ParseUnitError;
    /// Parses `500ms`, `30s`, `2m`, `1h`, `1m 30s` or `0.5s`. A number without a unit is an error, because it
    /// could mean seconds or milliseconds.
    fn from_str(text: &str) -> Result<Nanos, ParseUnitError> {
        let error = || ParseUnitError { text: text.to_owned(), what: "duration", example: "500ms, 30s, 2m or 1h" };
        if let Ok(duration) = humantime::parse_duration(text) {
            return Ok(duration.into());
        }
        let (number, unit) = split_number(text).ok_or_else(error)?;
        let scale = match unit {
            "ns" => 1.0,
            "us" | "µs" => 1e3,
            "ms" => 1e6,
            "s" => 1e9,
            "m" | "min" => 60e9,
            "h" => 3600e9,
            _ => return Err(error()),
        };
        Ok(Nanos((number * scale).round() as u64))
    }
}

impl FromStr for Rate {
    type Err = ParseUnitError;
    /// Parses `1000`, `10k` or `1.5M`, optionally with a unit: `150/s`.
    fn from_str(text: &str) -> Result<Rate, ParseUnitError> {
        parse_scaled(text.trim_end_matches("/s")).map(Rate).ok_or_else(|| ParseUnitError {
            text: text.to_owned(),
            what: "rate",
            example: "1000, 10k or 1.5M",
        })
    }
}

impl FromStr for Count {
    type Err = ParseUnitError;
    /// Parses `1000`, `10k` or `1.5M`.
    fn from_str(text: &str) -> Result<Count, ParseUnitError> {
        parse_scaled(text).filter(|n| n.fract() == 0.0).map(|n| Count(n as u64)).ok_or_else(|| ParseUnitError {
            text: text.to_owned(),
            what: "count",
            example: "1000, 10k or 1.5M",
        })
    }
}

impl FromStr for Bytes {
    type Err = ParseUnitError;
    /// Parses `512`, `512B`, `64KiB` or `10MB`. Prefixes with an `i` are powers of 1,024, the others powers of 1,000.
    fn from_str(text: &str) -> Result<Bytes, ParseUnitError> {
        let error = || ParseUnitError { text: text.to_owned(), what: "size", example: "512, 64KiB or 10MB" };
        let (number, unit) = split_number(text).ok_or_else(error)?;
        let scale = match unit {
            "" | "B" => 1.0,
            "k" | "K" | "kB" | "KB" => 1e3,
            "M" | "MB" => 1e6,
            "G" | "GB" => 1e9,
            "Ki" | "KiB" => 1024.0,
            "Mi" | "MiB" => 1024.0 * 1024.0,
            "Gi" | "GiB" => 1024.0 * 1024.0 * 1024.0,
            _ => return Err(error()),
        };
        Ok(Bytes((number * scale).round() as u64))
    }
}

fn parse_scaled(text: &str) -> Option<f64> {
    let (number, unit) = split_number(text)?;
    let scale = match unit {
        "" => 1.0,
        "k" | "K" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        _ => return None,
    };
    Some(number * scale)
}

/// Splits a text such as `1.5M` into a finite non-negative number and its suffix.
fn split_number(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    number.is_finite().then(|| (number, text[end..].trim()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_moment_is_an_instant_or_none_in_its_memory() {
        let mut moment = OptionalNanos::default();
        assert_eq!((moment, moment.get(), size_of::<OptionalNanos>()), (OptionalNanos::NONE, None, 8));
        assert_eq!([7, 9].map(|now| moment.get_or_set(Nanos(now))), [Nanos(7); 2], "only the first call sets the time");
        assert_eq!(moment.get(), Some(Nanos(7)));
    }

    #[test]
    fn durations_as_people_write_them() {
        for (text, nanos) in [
            ("500ms", 500_000_000),
            ("30s", 30_000_000_000),
            ("2m", 120_000_000_000),
            ("1h", 3_600_000_000_000),
            ("0.5s", 500_000_000),
            ("150us", 150_000),
            ("1m 30s", 90_000_000_000),
        ] {
            assert_eq!(text.parse::<Nanos>(), Ok(Nanos(nanos)), "{text}");
        }
        for text in ["", "5", "-1s", "s", "1 fortnight", "1e3s", "NaNs"] {
            assert!(text.parse::<Nanos>().is_err(), "{text}");
        }
    }

    #[test]
    fn three_digits_are_kept() {
        for (exact, rounded) in
            [(657_133, "657 µs"), (1_234_567_890, "1.23 s"), (999_600, "1 ms"), (7, "7 ns"), (0, "0 ns")]
        {
            assert_eq!(Nanos(exact).to_rounded_string(), rounded);
        }
    }

    #[test]
    fn counts_rates_and_sizes() {
        assert_eq!("10k".parse(), Ok(Rate(10_000.0)));
        assert_eq!("1.5M".parse(), Ok(Count(1_500_000)));
        assert_eq!("64KiB".parse(), Ok(Bytes(65_536)));
        assert_eq!("10MB".parse(), Ok(Bytes(10_000_000)));
        assert!("-1".parse::<Rate>().is_err());
        assert!("1.5".parse::<Count>().is_err());
        assert!("ten".parse::<Rate>().is_err());
        let message = "ten".parse::<Rate>().unwrap_err().to_string();
        assert_eq!(message, "`ten` is not a rate: write it like 1000, 10k or 1.5M");
    }

    proptest! {
        #[test]
        fn a_displayed_duration_reads_back_within_its_rounding(n in 0u64..10_000_000_000_000) {
            let back: Nanos = Nanos(n).to_string().parse().unwrap();
            prop_assert!(back.0.abs_diff(n) as f64 <= 0.0005 * (n as f64).max(1.0));
        }

        #[test]
        fn an_exact_duration_reads_back(n in any::<u64>()) {
            prop_assert_eq!(Nanos(n).to_exact_string().parse(), Ok(Nanos(n)));
        }

        #[test]
        fn no_text_panics(text in ".*") {
            let _ = text.parse::<Nanos>();
            let _ = text.parse::<Rate>();
            let _ = text.parse::<Count>();
            let _ = text.parse::<Bytes>();
        }
    }
}
