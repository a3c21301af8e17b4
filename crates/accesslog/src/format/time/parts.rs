//! Reads times that consist of several fields, such as `%H` and `%M` in Apache's `%{format}t` and in `strftime`.

use super::{Stamp, epoch, midnight, month_number, nanoseconds, stamp_from_seconds, two_digits, zone_offset};
use crate::format::number::whole_number;

/// One field of a time, as `strftime` writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Year,
    YearOfCentury,
    Month,
    MonthName,
    /// Day of the month: two digits, or a space and a digit.
    Day,
    Hour,
    HourOfTwelve,
    /// `AM` or `PM`.
    HalfDay,
    Minute,
    Second,
    /// Digits after the decimal point.
    Fraction,
    Zone,
    Epoch,
    /// Ignored digits, such as the day of the year.
    Digits,
    /// An ignored word, such as the weekday.
    Word,
}

/// The fields of a time that have been read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Parts {
    year: i64,
    month: i64,
    day: i64,
    hour: i64,
    is_afternoon: Option<bool>,
    minute: i64,
    second: i64,
    fraction_ns: Option<i64>,
    offset_s: Option<i64>,
    epoch: Option<Stamp>,
}

impl Parts {
    /// Reads one field of the time, and returns its length in bytes.
    pub(crate) fn read(&mut self, part: Part, text: &[u8]) -> Option<usize> {
        let two = || text.first_chunk::<2>().and_then(|&[tens, ones]| two_digits(tens, ones));
        match part {
            Part::Year => {
                let &[y1, y2, y3, y4] = text.first_chunk::<4>()?;
                self.year = two_digits(y1, y2)? * 100 + two_digits(y3, y4)?;
                return Some(4);
            }
            // In POSIX, the two-digit years 69 to 99 mean 1969 to 1999.
            Part::YearOfCentury => self.year = two().map(|year| if year < 69 { 2000 + year } else { 1900 + year })?,
            Part::Month => self.month = two()?,
            Part::Day => {
                let &[tens, ones] = text.first_chunk::<2>()?;
                self.day = two_digits(if tens == b' ' { b'0' } else { tens }, ones)?;
            }
            Part::Hour | Part::HourOfTwelve => self.hour = two()?,
            Part::Minute => self.minute = two()?,
            Part::Second => self.second = two()?,
            Part::MonthName => {
                self.month = month_number(text.first_chunk()?)?;
                return Some(letters(text));
            }
            Part::HalfDay => {
                let word = text.first_chunk::<2>()?;
                let is_afternoon = word.eq_ignore_ascii_case(b"pm");
                self.is_afternoon = (is_afternoon || word.eq_ignore_ascii_case(b"am")).then_some(is_afternoon);
                self.is_afternoon?;
            }
            Part::Fraction => {
                let (nanos, length) = nanoseconds(text);
                self.fraction_ns = Some(nanos);
                return (length > 0).then_some(length);
            }
            Part::Zone => {
                let (offset_s, length) = zone_offset(text)?;
                self.offset_s = Some(offset_s);
                return Some(length);
            }
            Part::Epoch => {
                // The fraction of the second is a separate field, so only whole seconds are read here.
                let (_, length) = whole_number(text)?;
                let (stamp, _) = epoch(text.get(..length)?)?;
                self.epoch = Some(stamp);
                return Some(length);
            }
            Part::Digits => {
                let length = text.iter().take(4).take_while(|byte| byte.is_ascii_digit()).count();
                return (length > 0).then_some(length);
            }
            Part::Word => return Some(letters(text)).filter(|length| *length > 0),
        }
        Some(2)
    }

    /// The timestamp that the fields form; `None` if the date or time does not exist.
    pub(crate) fn stamp(&self) -> Option<Stamp> {
        if let Some(epoch) = self.epoch {
            return Some(self.with_fraction(epoch));
        }
        let hour = self.is_afternoon.map_or(self.hour, |pm| self.hour % 12 + if pm { 12 } else { 0 });
        if hour > 23 || self.minute > 59 || self.second > 60 {
            return None;
        }
        let local_s = midnight(self.year, self.month, self.day)? + hour * 3600 + self.minute * 60 + self.second;
        let offset_s = self.offset_s.and_then(|offset_s| i32::try_from(offset_s).ok());
        let stamp = stamp_from_seconds(local_s - self.offset_s.unwrap_or(0), 0, false)?;
        Some(self.with_fraction(Stamp { offset_s, ..stamp }))
    }

    /// Adds the fraction of a second, which is a separate field, to a timestamp in whole seconds.
    pub(crate) fn with_fraction(&self, stamp: Stamp) -> Stamp {
        match self.fraction_ns {
            Some(nanos) if !stamp.has_subsecond_time => {
                Stamp { ns: stamp.ns.saturating_add(nanos), has_subsecond_time: true, ..stamp }
            }
            _ => stamp,
        }
    }
}

fn letters(text: &[u8]) -> usize {
    text.iter().take(16).take_while(|byte| byte.is_ascii_alphabetic()).count()
}
