//! Parses the timestamps of logs, and converts them to nanoseconds since 1970.
//!
//! A timestamp without a time zone is read as UTC. The leap second 23:59:60 is read as the following midnight. The
//! years 1970 to 2261 are supported, because nanoseconds of later years do not fit into 64 bits. Each function reads at
//! the start of a text, and returns the number of bytes that the timestamp occupies.

mod parts;

use super::number::whole_number;
use jiff::civil::Date;
use jiff::tz::Offset;

pub(crate) use parts::{Part, Parts};

const SECOND_NS: i64 = 1_000_000_000;
const DAY_S: i64 = 86_400;

/// A timestamp of a log line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// Nanoseconds since 1970.
    pub ns: i64,
    /// Whether the log shows fractions of a second.
    pub has_subsecond_time: bool,
    /// The number of seconds by which the log's clock is ahead of UTC; `None` if the log states no offset.
    pub offset_s: Option<i32>,
}

/// Reads the timestamps of log lines. Most lines have the same date as the previous line, and on a busy site also the
/// same second. So the last date and the last second are cached.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clock {
    /// The text of the last timestamp in the Common Log Format, such as `10/Oct/2000:13:55:36 -0700`.
    clf: [u8; 26],
    clf_stamp: Stamp,
    /// The cached date of the Common Log Format, such as `10/Oct/2000:`.
    clf_day: [u8; 12],
    /// The cached time zone of the Common Log Format, such as ` -0700`.
    clf_zone: [u8; 6],
    /// The time at which the day `clf_day` began in the zone `clf_zone`, in seconds since 1970.
    clf_midnight_s: i64,
    clf_offset_s: Option<i32>,
    /// The cached date of ISO 8601 timestamps, such as `2000-10-10`.
    iso_day: [u8; 10],
    iso_midnight_s: i64,
}

impl Clock {
    /// Reads the time of the Common Log Format, `10/Oct/2000:13:55:36 -0700`, with or without a fraction and a zone.
    #[inline]
    pub(crate) fn clf(&mut self, text: &[u8]) -> Option<(Stamp, usize)> {
        if let Some(stamp) = text.first_chunk::<26>() {
            if *stamp == self.clf {
                return Some((self.clf_stamp, 26));
            }
            if stamp[..12] == self.clf_day
                && stamp[20..] == self.clf_zone
                && let Some(second) = stamp[12..].first_chunk().and_then(second_of_day)
            {
                let ns = (self.clf_midnight_s + second) * SECOND_NS;
                (self.clf, self.clf_stamp) =
                    (*stamp, Stamp { ns, has_subsecond_time: false, offset_s: self.clf_offset_s });
                return Some((self.clf_stamp, 26));
            }
        }
        self.clf_of_another_day(text)
    }

    #[cold]
    fn clf_of_another_day(&mut self, text: &[u8]) -> Option<(Stamp, usize)> {
        let (day, rest) = text.split_first_chunk::<12>()?;
        let &[d1, d2, b'/', m1, m2, m3, b'/', y1, y2, y3, y4, b':'] = day else { return None };
        let (clock, rest) = rest.split_first_chunk::<8>()?;
        let local_s = midnight(
            two_digits(y1, y2)? * 100 + two_digits(y3, y4)?,
            month_number(&[m1, m2, m3])?,
            two_digits(d1, d2)?,
        )?;
        let (nanos, fraction_length) = fraction(rest);
        let rest = rest.get(fraction_length..)?;
        let (zone_s, zone_length) = spaced_zone(rest);
        let offset_s = zone_s.map_or(0, i64::from);
        let stamp = stamp_from_seconds(local_s - offset_s + second_of_day(clock)?, nanos, fraction_length > 0)?;
        if let Some(zone) = rest.first_chunk::<6>()
            && zone_length == 6
            && local_s >= offset_s
            && local_s - offset_s <= LAST_MIDNIGHT_S
        {
            (self.clf_day, self.clf_zone, self.clf_midnight_s) = (*day, *zone, local_s - offset_s);
            self.clf_offset_s = zone_s;
        }
        Some((Stamp { offset_s: zone_s, ..stamp }, 20 + fraction_length + zone_length))
    }

    /// Reads a time of ISO 8601 or RFC 3339: `2000-10-10T13:55:36.123-07:00`.
    pub(crate) fn iso(&mut self, text: &[u8]) -> Option<(Stamp, usize)> {
        let (day, rest) = text.split_first_chunk::<10>()?;
        let (b'T' | b't' | b' ' | b'_', rest) = rest.split_first()? else { return None };
        let (second, nanos, clock_length) = time_of_day(rest)?;
        let (zone_s, zone_length) = spaced_zone(rest.get(clock_length..)?);
        let stamp =
            stamp_from_seconds(self.day_start_s(day)? - zone_s.map_or(0, i64::from) + second, nanos, clock_length > 8)?;
        Some((Stamp { offset_s: zone_s, ..stamp }, 11 + clock_length + zone_length))
    }

    /// The time at which a day such as `2000-10-10` begins in UTC, in seconds since 1970.
    pub(crate) fn day_start_s(&mut self, text: &[u8; 10]) -> Option<i64> {
        if *text != self.iso_day {
            let &[y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] = text else { return None };
            let midnight_s =
                midnight(two_digits(y1, y2)? * 100 + two_digits(y3, y4)?, two_digits(m1, m2)?, two_digits(d1, d2)?)?;
            (self.iso_day, self.iso_midnight_s) = (*text, midnight_s);
        }
        Some(self.iso_midnight_s)
    }

    /// Reads a whole text as a time in any supported notation, with or without brackets around the time.
    pub(crate) fn any_notation(&mut self, text: &[u8]) -> Option<Stamp> {
        let text = text.strip_prefix(b"[").and_then(|text| text.strip_suffix(b"]")).unwrap_or(text);
        let (stamp, length) = match (text.get(2), text.get(4)) {
            (Some(b'/'), _) => self.clf(text)?,
            (_, Some(b'-')) => self.iso(text)?,
            _ => epoch(text)?,
        };
        (length == text.len()).then_some(stamp)
    }
}

/// Reads a time since 1970 in seconds (with or without a fraction), milliseconds, microseconds or nanoseconds. The
/// number of digits determines the unit, which works for times between 1973 and 5138.
pub(crate) fn epoch(text: &[u8]) -> Option<(Stamp, usize)> {
    let (value, length) = whole_number(text)?;
    let (nanos, fraction_length) = fraction(text.get(length..)?);
    let unit_ns: u64 = match value.checked_ilog10().unwrap_or(0) {
        ..11 => 1_000_000_000,
        11..14 => 1_000_000,
        14..17 => 1_000,
        17.. => 1,
    };
    let ns = i64::try_from(value.checked_mul(unit_ns)?).ok()?;
    let rest_ns = nanos / (SECOND_NS / i64::try_from(unit_ns).ok()?);
    let has_subsecond_time = unit_ns < 1_000_000_000 || fraction_length > 0;
    Some((Stamp { ns: ns.checked_add(rest_ns)?, has_subsecond_time, offset_s: None }, length + fraction_length))
}

/// Reads a time such as `13:55:36.123`. Returns the seconds since midnight, the nanoseconds, and the length.
pub(crate) fn time_of_day(text: &[u8]) -> Option<(i64, i64, usize)> {
    let (clock, rest) = text.split_first_chunk::<8>()?;
    let (nanos, length) = fraction(rest);
    Some((second_of_day(clock)?, nanos, 8 + length))
}

/// Creates a timestamp without an offset; `None` if the year is not supported.
pub(crate) fn stamp_from_seconds(seconds: i64, nanos: i64, has_subsecond_time: bool) -> Option<Stamp> {
    let ns = seconds.checked_mul(SECOND_NS)?.checked_add(nanos)?;
    (seconds >= 0).then_some(Stamp { ns, has_subsecond_time, offset_s: None })
}

/// Number of seconds since midnight for a time such as `13:55:36`.
#[inline]
fn second_of_day(text: &[u8; 8]) -> Option<i64> {
    let &[h1, h2, b':', m1, m2, b':', s1, s2] = text else { return None };
    let hour = two_digits(h1, h2)?;
    let minute = two_digits(m1, m2)?;
    let second = two_digits(s1, s2)?;
    (hour < 24 && minute < 60 && second <= 60).then_some(hour * 3600 + minute * 60 + second)
}

/// The number that two digits form, 0 to 99.
#[inline]
fn two_digits(tens: u8, ones: u8) -> Option<i64> {
    let tens = tens.wrapping_sub(b'0');
    let ones = ones.wrapping_sub(b'0');
    (tens < 10 && ones < 10).then_some(i64::from(tens) * 10 + i64::from(ones))
}

/// Reads a fraction of a second such as `.655`. Returns nanoseconds and the length of the text; both are 0 without a
/// fraction.
fn fraction(text: &[u8]) -> (i64, usize) {
    match text.split_first() {
        Some((b'.' | b',', digits)) => match nanoseconds(digits) {
            (_, 0) => (0, 0),
            (nanos, length) => (nanos, length + 1),
        },
        _ => (0, 0),
    }
}

/// The value of the digits after a decimal point, in nanoseconds, and the number of digits.
fn nanoseconds(text: &[u8]) -> (i64, usize) {
    let length = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let digit = |place| if place < length { text.get(place).map_or(0, |byte| i64::from(byte - b'0')) } else { 0 };
    ((0..9).fold(0, |nanos, place| nanos * 10 + digit(place)), length)
}

/// The offset of a time zone from UTC in seconds, and the length of its text. The length includes a leading space,
/// which is optional.
fn spaced_zone(text: &[u8]) -> (Option<i32>, usize) {
    let spaces = usize::from(text.first() == Some(&b' '));
    let found = text.get(spaces..).and_then(zone_offset).filter(|_| spaces == 0 || text.get(1) != Some(&b'Z'));
    found.map_or((None, 0), |(offset_s, length)| (i32::try_from(offset_s).ok(), length + spaces))
}

/// The number of seconds by which a zone such as `Z`, `+01:00`, `+0100` or `+01` is ahead of UTC, and the length of its
/// text.
fn zone_offset(text: &[u8]) -> Option<(i64, usize)> {
    let (sign, digits) = match text.split_first()? {
        (b'Z' | b'z', _) => return Some((0, 1)),
        (b'+', digits) => (1, digits),
        (b'-', digits) => (-1, digits),
        _ => return None,
    };
    let (&[tens, ones], rest) = digits.split_first_chunk::<2>()?;
    let hour = two_digits(tens, ones)?;
    let colon = usize::from(rest.first() == Some(&b':'));
    let minute = rest.get(colon..).and_then(|rest| rest.first_chunk::<2>());
    let minute = minute.and_then(|&[tens, ones]| two_digits(tens, ones));
    let (minute, length) = minute.map_or((0, 3), |minute| (minute, 5 + colon));
    (hour < 24 && minute < 60).then_some((sign * (hour * 3600 + minute * 60), length))
}

/// The number of a month, 1 to 12, from the first three letters of its English name.
fn month_number(name: &[u8; 3]) -> Option<i64> {
    let months = b"janfebmaraprmayjunjulaugsepoctnovdec";
    let index = months.chunks_exact(3).position(|month| name.eq_ignore_ascii_case(month))?;
    i64::try_from(index + 1).ok()
}

/// The start of the last supported day, 2261-12-31, in seconds since 1970.
const LAST_MIDNIGHT_S: i64 = 106_650 * DAY_S;

/// The time at which a day begins in UTC, in seconds since 1970; `None` for dates that do not exist or are out of
/// range.
fn midnight(year: i64, month: i64, day: i64) -> Option<i64> {
    let date = Date::new(year.try_into().ok()?, month.try_into().ok()?, day.try_into().ok()?).ok()?;
    let midnight = Offset::UTC.to_timestamp(date.at(0, 0, 0, 0)).ok()?;
    (1970..=2261).contains(&year).then(|| midnight.as_second())
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use proptest::prelude::*;

    fn clf(text: &str) -> Option<(i64, bool)> {
        let (stamp, length) = Clock::default().clf(text.as_bytes())?;
        (length == text.len()).then_some((stamp.ns, stamp.has_subsecond_time))
    }

    fn coarse(same: &str) -> Option<(i64, bool)> {
        Some((ns(same), false))
    }

    fn ns(text: &str) -> i64 {
        i64::try_from(text.parse::<Timestamp>().unwrap().as_nanosecond()).unwrap()
    }

    #[test]
    fn the_time_of_the_common_log_format() {
        let cases = [
            ("10/Oct/2000:13:55:36 -0700", "2000-10-10T20:55:36Z"),
            ("29/Feb/2024:23:59:59 +0000", "2024-02-29T23:59:59Z"),
            ("01/Jan/2026:00:30:00 +0530", "2025-12-31T19:00:00Z"),
            ("01/Jul/1995:00:00:01 -0400", "1995-07-01T04:00:01Z"),
            ("26/Oct/2025:02:30:00 +0200", "2025-10-26T00:30:00Z"),
            ("26/Oct/2025:02:30:00 +0100", "2025-10-26T01:30:00Z"),
            ("31/Dec/2016:23:59:60 +0000", "2017-01-01T00:00:00Z"),
        ];
        for (text, same) in cases {
            assert_eq!(clf(text), coarse(same), "{text}");
        }
        let fine = Some((ns("2009-02-06T12:14:14.655Z"), true));
        assert_eq!(clf("06/Feb/2009:12:14:14.655"), fine);
        for wrong in [
            "",
            "10/Oct/2000",
            "10/Okt/2000:13:55:36 -0700",
            "31/Sep/2000:13:55:36 -0700",
            "29/Feb/2023:00:00:00 +0000",
            "10/Oct/2000:24:00:00 -0700",
            "10/Oct/2000:23:60:00 -0700",
            "10/Oct/2000:23:00:61 -0700",
            "10/Oct/1969:13:55:36 -0700",
            "01/Jan/1970:00:00:00 +0100",
            "10/Oct/9999:13:55:36 -0700",
            "10/Oct/2000:13:55:36 -070",
        ] {
            assert_eq!(clf(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_day_that_is_remembered_is_the_right_one() {
        let mut clock = Clock::default();
        for (text, same) in [
            ("10/Oct/2000:13:55:36 -0700", "2000-10-10T20:55:36Z"),
            ("10/Oct/2000:13:55:37 -0700", "2000-10-10T20:55:37Z"),
            ("10/Oct/2000:13:55:37 -0700", "2000-10-10T20:55:37Z"),
            ("10/Oct/2000:13:55:37 -0800", "2000-10-10T21:55:37Z"),
            ("10/Oct/2000:13:55:37 -0800", "2000-10-10T21:55:37Z"),
            ("11/Oct/2000:13:55:37 -0800", "2000-10-11T21:55:37Z"),
            ("10/Oct/2000:23:59:59 -0700", "2000-10-11T06:59:59Z"),
        ] {
            let (stamp, length) = clock.clf(text.as_bytes()).unwrap();
            assert_eq!((Some((stamp.ns, stamp.has_subsecond_time)), length), (coarse(same), 26), "{text}");
        }
        assert_eq!(clock.clf(b"10/Oct/2000:24:00:00 -0700"), None);
    }

    #[test]
    fn any_time_is_recognized_by_its_look() {
        let mut clock = Clock::default();
        let same = coarse("2026-11-22T05:31:40Z");
        let fine_us = ns("2026-11-22T05:31:40.25Z") / 1000;
        for text in ["2026-11-22T05:31:40Z", "2026-11-22 06:31:40+01:00", "[22/Nov/2026:00:01:40 -0530]", "1795325500"]
        {
            let found = clock.any_notation(text.as_bytes());
            assert_eq!(found.map(|stamp| (stamp.ns, stamp.has_subsecond_time)), same, "{text}");
        }
        for text in [
            "2026-11-22T05:31:40.250000000Z",
            "2026-11-22t06:31:40,25+01",
            "1795325500.25",
            "1795325500250",
            "1795325500250000",
            "1795325500250000000",
            "1795325500250000.5",
        ] {
            let found = clock.any_notation(text.as_bytes());
            assert_eq!(found.map(|stamp| (stamp.ns / 1000, stamp.has_subsecond_time)), Some((fine_us, true)), "{text}");
        }
        for wrong in
            ["", "-", "yesterday", "2026-11-22", "2026-11-22T05:31:40Zx", "1795325500s", "99999999999999999999"]
        {
            assert_eq!(clock.any_notation(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn a_stamp_knows_how_far_from_utc_it_was_written() {
        let mut clock = Clock::default();
        for (text, offset_s) in [
            ("10/Oct/2000:13:55:36 -0700", Some(-7 * 3600)),
            ("10/Oct/2000:13:55:37 -0700", Some(-7 * 3600)),
            ("10/Oct/2000:13:55:37 +0530", Some(5 * 3600 + 1800)),
            ("10/Oct/2000:13:55:37", None),
            ("2026-11-22T06:31:40.5+01:00", Some(3600)),
            ("2026-11-22T06:31:40Z", Some(0)),
            ("2026-11-22T06:31:40", None),
            ("1795325500.25", None),
        ] {
            assert_eq!(clock.any_notation(text.as_bytes()).unwrap().offset_s, offset_s, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(second in 0..9_214_646_400i64, nanos in 0..1_000_000_000i64) {
            let written = Timestamp::new(second, i32::try_from(nanos).unwrap()).unwrap();
            let stamp = Clock::default().any_notation(written.to_string().as_bytes());
            let expected = second.checked_mul(SECOND_NS).and_then(|ns| ns.checked_add(nanos));
            prop_assert_eq!(stamp.map(|stamp| stamp.ns), expected);
        }

        #[test]
        fn no_text_panics(text: Vec<u8>, stamp in "[0-9/:A-Z. +-]{0,30}") {
            let mut clock = Clock::default();
            let stamp = stamp.as_bytes();
            let _ = (clock.any_notation(&text), clock.any_notation(stamp), clock.clf(stamp), clock.iso(stamp));
        }
    }
}
