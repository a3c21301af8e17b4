//! Parses the dates of `Expires`, in any form that servers write (RFC 6265 §5.1.1). Time, day, month and year are
//! recognised by their form. If several parts have the same form, the first is used. All other parts are skipped.

/// Parses a date as seconds since 1970; earlier dates become 0. Returns `None` if the text is not a date.
pub fn parse(text: &[u8]) -> Option<u64> {
    let mut time = None;
    let mut day = None;
    let mut month = None;
    let mut year = None;
    for token in text.split(|byte| is_delimiter(*byte)).filter(|token| !token.is_empty()) {
        if time.is_none()
            && let Some(found) = time_of_day(token)
        {
            time = Some(found);
        } else if day.is_none()
            && let Some(found) = number(token, 1, 2)
        {
            day = Some(found);
        } else if month.is_none()
            && let Some(found) = parse_month(token)
        {
            month = Some(found);
        } else if year.is_none()
            && let Some(found) = number(token, 2, 4)
        {
            year = Some(found);
        }
    }
    let year = match year? {
        year @ 70..=99 => year + 1900,
        year @ 0..=69 => year + 2000,
        year => year,
    };
    let day = day?;
    let (hour, minute, second) = time?;
    let is_valid = (1..=31).contains(&day) && year >= 1601 && hour <= 23 && minute <= 59 && second <= 59;
    let seconds = days_since_1970(year, month?, day) * 86_400 + hour * 3_600 + minute * 60 + second;
    is_valid.then_some(u64::try_from(seconds).unwrap_or(0))
}

fn is_delimiter(byte: u8) -> bool {
    matches!(byte, 0x09 | 0x20..=0x2f | 0x3b..=0x40 | 0x5b..=0x60 | 0x7b..=0x7e)
}

/// Parses `HH:MM:SS`, which may be followed by anything but a digit.
fn time_of_day(token: &[u8]) -> Option<(i64, i64, i64)> {
    let mut parts = token.splitn(3, |byte| *byte == b':');
    let only_digits = |part: &&[u8]| part.iter().all(u8::is_ascii_digit);
    let hour = parts.next().filter(only_digits)?;
    let minute = parts.next().filter(only_digits)?;
    let second = parts.next()?;
    Some((number(hour, 1, 2)?, number(minute, 1, 2)?, number(second, 1, 2)?))
}

/// Parses a number of `min_digits` to `max_digits` digits at the start of a token. Returns `None` if there are fewer or
/// more digits.
fn number(token: &[u8], min_digits: usize, max_digits: usize) -> Option<i64> {
    let digits = token.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let value = token.iter().take(digits.min(max_digits)).fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0'));
    (min_digits..=max_digits).contains(&digits).then_some(value)
}

/// Parses a month by its first three letters. January is 1.
fn parse_month(token: &[u8]) -> Option<i64> {
    const MONTHS: [&[u8; 3]; 12] =
        [b"jan", b"feb", b"mar", b"apr", b"may", b"jun", b"jul", b"aug", b"sep", b"oct", b"nov", b"dec"];
    let name = token.get(..3)?;
    (1..).zip(MONTHS).find(|(_, month)| name.eq_ignore_ascii_case(*month)).map(|(nth, _)| nth)
}

/// Number of days from 1970-01-01 to a date of the Gregorian calendar (Hinnant, "chrono-Compatible Low-Level Date
/// Algorithms", 2013). In this algorithm, years begin in March, so that the leap day is the last day of a year.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_forms_that_servers_write() {
        for (text, seconds) in [
            ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777),
            ("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777),
            ("Sun Nov  6 08:49:37 1994", 784_111_777),
            ("Tue, 29-Feb-2028 23:59:59 GMT", 1_835_481_599),
            ("Wed, 01 Mar 2028 00:00:00 GMT", 1_835_481_600),
            ("Thu, 01-Jan-1970 00:00:01 GMT", 1),
            ("Mon, 31 Dec 1601 00:00:00 GMT", 0),
            ("1 january 2000 0:0:0", 946_684_800),
            ("Fri, 31 Dec 9999 23:59:59 GMT", 253_402_300_799),
        ] {
            assert_eq!(parse(text.as_bytes()), Some(seconds), "{text}");
        }
    }

    #[test]
    fn invalid_dates_are_refused() {
        for text in [
            "",
            "soon",
            "Sun, 06 Nov 1994",
            "08:49:37",
            "Sun, 06 Nov 1994 24:00:00 GMT",
            "Sun, 32 Nov 1994 08:49:37 GMT",
            "Sun, 00 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1600 08:49:37 GMT",
            "Sun, 06 Nov 19940 08:49:37 GMT",
            "Sun, 06 Foo 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49 GMT",
        ] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
    }
}
