//! Parses times as monitors such as `sar` print them: dates in the order of a locale, clocks of 12 or 24 hours, and
//! rarely a time zone.

use brimful_forecast::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

/// Minimum step back of the time of day, in seconds, that means that midnight has passed. With a smaller step back, the
/// clock was set back.
const HALF_A_DAY_S: i64 = 43_200;

/// Parses a time of day like `10:15:01`, optionally with `AM` or `PM` as the next word. Returns seconds since midnight
/// and the number of words.
pub(super) fn time_of_day(words: &[&str]) -> Option<(i64, usize)> {
    let mut parts = words.first()?.split(':');
    let mut part = |below: i64| {
        let text = parts.next()?;
        let number = text.parse::<i64>().ok()?;
        ((1..=2).contains(&text.len()) && (0..below).contains(&number)).then_some(number)
    };
    let hour = part(24)?;
    let minute = part(60)?;
    // Second 60 is a leap second.
    let second = part(61)?;
    if parts.next().is_some() {
        return None;
    }
    let half = words.get(1).map(|word| word.to_ascii_lowercase().replace('.', ""));
    let (hour, taken) = match half.as_deref() {
        Some("am") if hour <= 12 => (hour % 12, 2),
        Some("pm") if hour <= 12 => (hour % 12 + 12, 2),
        _ => (hour, 1),
    };
    Some((hour * 3600 + minute * 60 + second, taken))
}

/// Parses a date in the form of any locale: `2026-11-22`, `11/22/2026`, `11/22/26`, `22.11.2026`, `2026年11月22日`. With
/// slashes, the month comes first if that is possible, as is sysstat's default.
pub(super) fn date(text: &str) -> Option<Date> {
    let groups: Vec<&str> = text.split(|c: char| !c.is_ascii_digit()).filter(|group| !group.is_empty()).collect();
    let [first, second, third] = groups[..] else { return None };
    let number = |text: &str| text.parse::<i16>().ok();
    let a = number(first)?;
    let b = number(second)?;
    let c = number(third)?;
    let (year, month, day) = match first.len() {
        4 => (a, b, c),
        _ if text.contains('/') && a <= 12 => (c, a, b),
        _ => (c, b, a),
    };
    // A year with two digits is in this century, because sysstat is not older.
    let year = if year < 100 { 2000 + year } else { year };
    Date::new(year, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()
}

/// Whether the text is a different date if the day is written before the month.
pub(super) fn is_ambiguous(text: &str) -> bool {
    let mut numbers = text.split('/').map(|part| part.trim().parse::<i16>().unwrap_or(99));
    matches!((numbers.next(), numbers.next()), (Some(a), Some(b)) if a <= 12 && b <= 12 && a != b)
}

/// The instant of a local time in the zone, in milliseconds since 1970. If clocks were set back and the time occurs
/// twice, the first one is used. If clocks were set forward and the time was skipped, it is moved forward by the same
/// amount.
pub(super) fn instant_ms(date: Date, second: i64, zone: &TimeZone) -> Option<i64> {
    let part = |seconds: i64| i8::try_from(seconds).ok();
    // 86,400 is the leap second 23:59:60, and counts as the second after it. `date.at` accepts no leap second, so 1 s
    // is added to 23:59:59 below.
    let (second, leap) = if second < 86_400 { (second, 0) } else { (86_399, 1) };
    let clock = date.at(part(second / 3600)?, part(second / 60 % 60)?, part(second % 60)?, 0);
    let at = zone.to_ambiguous_timestamp(clock).compatible().ok()?;
    at.as_millisecond().checked_add(1000 * leap)
}

/// Parses a text that is a time, in its own zone or in `zone`. Returns the instant in milliseconds since 1970, and
/// whether `zone` was used.
pub(super) fn parse_time(text: &str, zone: &TimeZone) -> Result<(i64, bool), String> {
    let text = text.trim();
    let parsed: Timestamp = text.parse().map_err(|error: brimful_forecast::ParseTimestampError| error.to_string())?;
    let has_zone =
        text.parse::<f64>().is_ok() || text.get(10..).is_some_and(|clock| clock.contains(['Z', 'z', '+', '-']));
    let parsed_ms = parsed.unix().saturating_mul(1000);
    if has_zone {
        return Ok((parsed_ms, false));
    }
    let at = jiff::Timestamp::from_second(parsed.unix()).ok().map(|at| TimeZone::UTC.to_datetime(at));
    let at = at.and_then(|clock| zone.to_ambiguous_timestamp(clock).compatible().ok());
    Ok((at.map_or(parsed_ms, jiff::Timestamp::as_millisecond), true))
}

/// The instants of successive lines whose timestamps have a time of day but no date.
#[derive(Clone, Copy, Debug)]
pub(super) struct LineTimes {
    date: Date,
    second: i64,
    /// The instant of the last line, in milliseconds since 1970.
    pub at_ms: i64,
    /// The instant of the previous line, in milliseconds since 1970. It is equal to `at_ms` if the time between the
    /// lines is unknown.
    pub before_ms: i64,
}

impl LineTimes {
    /// Starts at a date and a time of day, in seconds since midnight.
    pub fn start(date: Date, second: i64, zone: &TimeZone) -> Option<LineTimes> {
        let at_ms = instant_ms(date, second, zone)?;
        Some(LineTimes { date, second, at_ms, before_ms: at_ms })
    }

    /// Moves on to the time of the next line, which may be on the next day. Returns `None` if the time is not valid.
    pub fn advance_to(&mut self, second: i64, zone: &TimeZone) -> Option<()> {
        if second == self.second {
            return Some(());
        }
        let is_next_day = second + HALF_A_DAY_S < self.second;
        let date = if is_next_day { self.date.tomorrow().ok()? } else { self.date };
        let at_ms = instant_ms(date, second, zone)?;
        let before_ms = if at_ms > self.at_ms { self.at_ms } else { at_ms };
        *self = LineTimes { date, second, at_ms, before_ms };
        Some(())
    }

    /// Moves on to the time in a header, at which the next interval starts. There is no interval between the previous
    /// line and the header.
    pub fn restart(&mut self, second: i64, zone: &TimeZone) -> Option<()> {
        self.advance_to(second, zone)?;
        self.before_ms = self.at_ms;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access_logs::parse_zone;

    #[test]
    fn clocks_of_12_and_24_hours_are_read() {
        for (text, expected) in [
            ("00:00:01", Some((1, 1))),
            ("12:00:01 AM", Some((1, 2))),
            ("12:00:01 PM all", Some((43_201, 2))),
            ("01:02:03\u{202f}p.m.", Some((46_923, 2))),
            ("23:59:60", Some((86_400, 1))),
            ("24:00:00", None),
            ("10:15", None),
            ("10:15:01:02", None),
            ("Average:", None),
            ("-1:00:00", None),
            ("", None),
        ] {
            let words: Vec<&str> = text.split_whitespace().collect();
            assert_eq!(time_of_day(&words), expected, "{text}");
        }
    }

    #[test]
    fn a_leap_second_at_the_end_of_a_day_is_the_following_midnight() {
        let date = Date::constant(2016, 12, 31);
        let midnight_ms = instant_ms(Date::constant(2017, 1, 1), 0, &TimeZone::UTC);
        assert_eq!(instant_ms(date, 86_400, &TimeZone::UTC), midnight_ms);
        assert_eq!(instant_ms(date, 86_399, &TimeZone::UTC), midnight_ms.map(|ms| ms - 1000));
    }

    #[test]
    fn dates_of_many_countries_are_read() {
        for text in [
            "2026-11-22",
            "11/22/2026",
            "11/22/26",
            "22/11/2026",
            "22.11.2026",
            "22. 11. 2026",
            "22-11-26",
            "2026年11月22日",
        ] {
            assert_eq!(date(text), Date::new(2026, 11, 22).ok(), "{text}");
        }
        for text in ["", "11/2026", "99/99/2026", "2026-02-30", "1.2.3.4", "99999/1/1"] {
            assert_eq!(date(text), None, "{text}");
        }
        assert!(is_ambiguous("03/02/2026") && !is_ambiguous("11/22/2026") && !is_ambiguous("2026-03-02"));
    }

    #[test]
    fn a_time_without_a_zone_is_that_of_the_zone_given() {
        let berlin = parse_zone("Europe/Berlin").unwrap();
        assert_eq!(parse_time("2026-07-01 12:00:00", &berlin), Ok((1_782_900_000_000, true)));
        assert_eq!(parse_time("2026-07-01T12:00:00Z", &berlin), Ok((1_782_907_200_000, false)));
        assert_eq!(parse_time("1782907200.5", &berlin), Ok((1_782_907_200_000, false)));
        assert!(parse_time("noon", &berlin).unwrap_err().contains("RFC 3339"));
    }

    #[test]
    fn midnight_passes_and_clocks_are_set_back() {
        let utc = TimeZone::UTC;
        let mut times = LineTimes::start(Date::constant(2026, 12, 31), 86_390, &utc).unwrap();
        times.advance_to(5, &utc).unwrap();
        assert_eq!(times.at_ms - times.before_ms, 15_000);
        assert_eq!(times.date, Date::constant(2027, 1, 1));
        times.advance_to(4000, &utc).unwrap();
        times.advance_to(3000, &utc).unwrap();
        assert_eq!(times.at_ms, times.before_ms, "no interval has a negative length");
    }
}
