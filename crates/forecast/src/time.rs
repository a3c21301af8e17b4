//! Points in time as seconds since 1970-01-01 UTC, for the years 0 to 9999. Parses and writes common notations.
//!
//! A time without an offset is in the time zone that the user named, or else in UTC.

use brimful_core::JsonSchema;
use jiff::ToSpan;
use jiff::civil::{Date, date};
use serde::Serialize;
use std::fmt;
use std::str::FromStr;

/// Seconds in a day.
pub(crate) const DAY_S: i64 = 86_400;

/// Mean length of a month, a twelfth of 365.25 days, in seconds.
pub const MONTH_S: f64 = 365.25 / 12.0 * DAY_S as f64;

/// A time that is written as a number is in milliseconds if it is at least this. In seconds, it would be after the year
/// 5000.
const MIN_MILLISECONDS: i64 = 100_000_000_000;

/// The valid times, in seconds since 1970-01-01 UTC: from 0000-01-01 to just before 10000-01-01.
const RANGE: std::ops::Range<i64> = -62_167_219_200..253_402_300_800;

const EPOCH: Date = date(1970, 1, 1);

/// A point in time, to the second, with the local offset from UTC. In documents, it is RFC 3339:
/// `2026-03-01T00:00:00+01:00`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(into = "String")]
#[schemars(with = "String")]
pub struct Timestamp {
    /// Seconds since 1970-01-01 UTC.
    unix: i64,
    /// Number of seconds by which local time is ahead of UTC.
    offset_s: i32,
}

impl Timestamp {
    /// Creates a time from seconds since 1970-01-01 UTC. Times outside the years 0 to 9999 are clamped.
    pub fn from_unix(seconds: i64) -> Self {
        Self { unix: seconds.clamp(RANGE.start, RANGE.end - 1), offset_s: 0 }
    }

    /// The same point in time, for clocks that are `offset_s` seconds ahead of UTC.
    pub(crate) fn with_offset(self, offset_s: i32) -> Self {
        Self { offset_s, ..self }
    }

    /// The offset of local time from UTC, in seconds.
    pub(crate) fn offset_s(self) -> i32 {
        self.offset_s
    }

    /// Local time, in seconds since 1970-01-01 00:00 local time.
    pub(crate) fn local(self) -> i64 {
        self.unix + i64::from(self.offset_s)
    }

    /// Seconds since 1970-01-01 UTC.
    pub fn unix(self) -> i64 {
        self.unix
    }

    /// The time `seconds` seconds later, with the same offset from UTC.
    pub fn plus_seconds(self, seconds: i64) -> Self {
        Self { offset_s: self.offset_s, ..Self::from_unix(self.unix.saturating_add(seconds)) }
    }

    /// The local date: `2026-03-01`.
    pub fn date(self) -> String {
        let days = self.local().clamp(RANGE.start, RANGE.end - 1).div_euclid(DAY_S);
        EPOCH.saturating_add(days.days()).to_string()
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let second = self.local().clamp(RANGE.start, RANGE.end - 1).rem_euclid(DAY_S);
        let hour = second / 3600;
        let minute = second / 60 % 60;
        let second = second % 60;
        let offset = if self.offset_s == 0 { "Z".to_owned() } else { write_offset(self.offset_s) };
        f.pad(&format!("{}T{hour:02}:{minute:02}:{second:02}{offset}", self.date()))
    }
}

impl From<Timestamp> for String {
    fn from(time: Timestamp) -> String {
        time.to_string()
    }
}

/// The error for a text that is not a time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no time: write 2026-03-01, 2026-03-01 14:00, 2026-03-01T14:00:00+01:00 (RFC 3339) or seconds since 1970"
)]
pub struct ParseTimestampError(String);

impl FromStr for Timestamp {
    type Err = ParseTimestampError;
    /// Parses all notations that [`ParsedTime`] accepts. A time without an offset is in UTC.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(text.parse::<ParsedTime>()?.to_timestamp())
    }
}

/// A time parsed from text, before the time zone of the history is applied.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ParsedTime {
    /// A point in time, in seconds since 1970-01-01 UTC. The second value is its offset from UTC, if the text contains
    /// one.
    Instant(i64, Option<i32>),
    /// A local time without an offset from UTC, in seconds since 1970-01-01 00:00 local time.
    Clock(i64),
}

impl ParsedTime {
    /// The offset from UTC, if the text contains one.
    pub(crate) fn offset_s(self) -> Option<i32> {
        match self {
            Self::Instant(_, offset) => offset,
            Self::Clock(_) => None,
        }
    }

    /// Converts to a time with the offset that the text contains. A time without an offset is read as UTC.
    pub(crate) fn to_timestamp(self) -> Timestamp {
        match self {
            Self::Instant(unix, offset) => Timestamp::from_unix(unix).with_offset(offset.unwrap_or(0)),
            Self::Clock(local) => Timestamp::from_unix(local),
        }
    }
}

impl FromStr for ParsedTime {
    type Err = ParseTimestampError;
    /// Parses a date, a date with a time of day, or a number of seconds or milliseconds since 1970. The time of day may
    /// have seconds, a fraction of a second and an offset from UTC. Fractions are cut off.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        let number = text.split_once('.').filter(|(_, rest)| rest.bytes().all(|b| b.is_ascii_digit()));
        let written = match number.map_or(text, |(whole, _)| whole).parse::<i64>() {
            Ok(number) if number.unsigned_abs() >= MIN_MILLISECONDS.unsigned_abs() => {
                Some(Self::Instant(number.div_euclid(1000), None))
            }
            Ok(number) => Some(Self::Instant(number, None)),
            Err(_) => read(text),
        };
        let possible = |written: &Self| match written {
            Self::Instant(seconds, _) | Self::Clock(seconds) => RANGE.contains(seconds),
        };
        written.filter(possible).ok_or_else(|| ParseTimestampError(text.chars().take(40).collect()))
    }
}

/// Parses a date, with or without a time of day. Returns `None` for any other text.
fn read(text: &str) -> Option<ParsedTime> {
    let (date, rest) = text.split_at_checked(10)?;
    let midnight = midnight(date)?;
    if rest.is_empty() {
        return Some(ParsedTime::Clock(midnight));
    }
    let rest = rest.strip_prefix(['T', 't', ' '])?;
    let (clock, offset) = match rest.find(['Z', 'z', '+', '-']) {
        Some(at) => (rest[..at].trim_end(), Some(read_offset(&rest[at..])?)),
        None => (rest, None),
    };
    let mut parts = clock.split(':');
    let hour = digits(parts.next()?, 2)?;
    let minute = digits(parts.next()?, 2)?;
    let second = parts.next().map_or(Some(0), second)?;
    // The second 60 is a leap second, which is read as the following second.
    let sound = parts.next().is_none() && hour < 24 && minute < 60 && second <= 60;
    let local = midnight + hour * 3600 + minute * 60 + second;
    let written = offset.map_or(ParsedTime::Clock(local), |o| ParsedTime::Instant(local - i64::from(o), Some(o)));
    sound.then_some(written)
}

/// The start of a date such as `2026-03-01`, in seconds since 1970-01-01 00:00 local time.
fn midnight(date: &str) -> Option<i64> {
    let mut parts = date.split('-');
    let year = digits(parts.next()?, 4)?;
    let month = digits(parts.next()?, 2)?;
    let day = digits(parts.next()?, 2)?;
    if parts.next().is_some() {
        return None;
    }
    let date = Date::new(year.try_into().ok()?, month.try_into().ok()?, day.try_into().ok()?).ok()?;
    Some(i64::from(date.since(EPOCH).ok()?.get_days()) * DAY_S)
}

/// Parses whole seconds from texts such as `07` and `07.25`.
fn second(text: &str) -> Option<i64> {
    let (whole, fraction) = text.split_once(['.', ',']).unwrap_or((text, "0"));
    let sound = !fraction.is_empty() && fraction.bytes().all(|b| b.is_ascii_digit());
    sound.then(|| digits(whole, 2)).flatten()
}

/// Parses an offset from UTC such as `Z`, `+01:00`, `+0100` or `+01`. Returns the number of seconds by which local time
/// is ahead of UTC.
pub(crate) fn read_offset(text: &str) -> Option<i32> {
    if text.eq_ignore_ascii_case("z") {
        return Some(0);
    }
    let (sign, text) = text.split_at_checked(1)?;
    let (hour, minute) = text.split_at_checked(2)?;
    let minute = if minute.is_empty() { 0 } else { digits(minute.strip_prefix(':').unwrap_or(minute), 2)? };
    let seconds = digits(hour, 2).filter(|h| *h < 24)? * 3600 + Some(minute).filter(|m| *m < 60)? * 60;
    let seconds = i32::try_from(seconds).ok()?;
    Some(if sign == "-" { -seconds } else { seconds })
}

/// Writes an offset from UTC such as `+01:00`, truncated to minutes. `seconds` is the number of seconds by which local
/// time is ahead of UTC.
pub(crate) fn write_offset(seconds: i32) -> String {
    let minutes = seconds.abs() / 60;
    format!("{}{:02}:{:02}", if seconds < 0 { "-" } else { "+" }, minutes / 60, minutes % 60)
}

/// Parses a number of exactly `width` digits. Returns `None` for any other text.
fn digits(text: &str, width: usize) -> Option<i64> {
    let sound = text.len() == width && text.bytes().all(|b| b.is_ascii_digit());
    sound.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn unix(text: &str) -> i64 {
        text.parse::<Timestamp>().unwrap_or_else(|e| panic!("{e}")).unix()
    }

    #[test]
    fn every_way_to_write_a_time_is_read() {
        assert_eq!(unix("1970-01-01"), 0);
        assert_eq!(unix("2000-03-01 00:00"), 951_868_800);
        assert_eq!(unix("2026-11-22T05:31:40Z"), 1_795_325_500);
        for same in [
            "2026-11-22 06:31:40+01:00",
            "2026-11-22t05:31:40.999z",
            "2026-11-22T00:01:40 -0530",
            "1795325500",
            "1795325500.75",
        ] {
            assert_eq!(unix(same), 1_795_325_500, "{same}");
        }
        assert_eq!(unix("1795325500123"), 1_795_325_500, "a large number is in milliseconds");
        assert_eq!(unix("2026-11-22 06:00+01"), 1_795_323_600);
    }

    #[test]
    fn what_is_no_time_is_refused_with_the_ways_to_write_one() {
        let foreign = [
            "",
            "time",
            "2026-13-01",
            "2025-02-29",
            "1900-02-29",
            "2026-1-1",
            "2026-01-01T25:00",
            "2026-01-01 00:00+1",
        ];
        for text in foreign.into_iter().chain(["2026-01-01x", "01/02/2026", "2026-01-01 00:00:61", "99999999999999999"])
        {
            let error = text.parse::<Timestamp>().expect_err(text).to_string();
            assert!(error.contains("RFC 3339"), "{error}");
        }
        assert_eq!(unix("2000-02-29"), unix("2000-03-01") - DAY_S);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(seconds in RANGE) {
            let time = Timestamp::from_unix(seconds);
            prop_assert_eq!(time.to_string().parse(), Ok(time));
            prop_assert_eq!(Timestamp::from_unix(seconds.div_euclid(DAY_S) * DAY_S).date().parse(),
                Ok(Timestamp::from_unix(seconds.div_euclid(DAY_S) * DAY_S)));
        }

        #[test]
        fn no_text_panics(text in ".{0,30}", digits in "[0-9:T+Z. -]{0,30}") {
            let _ = (text.parse::<Timestamp>(), digits.parse::<Timestamp>());
        }
    }
}
