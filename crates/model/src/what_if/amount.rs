//! Numbers in a change of a model (what-if): `1.5x`, `+30%`, `+2`, `12ms`, and ranges of them, `1x..2x:11`.
//!
//! A range has the stated number of points from its first to its last number. The points are evenly spaced; with
//! `:log`, they grow by a constant factor. Counts are whole numbers. A unit that follows only the last number applies
//! to both numbers, as in `1..4x`.

use brimful_core::units::{Bytes, Count, Nanos, Rate};
use std::fmt;

/// Default number of points of a range.
const DEFAULT_POINTS: u32 = 21;
/// Maximum number of points of a range.
const MAX_POINTS: u32 = 100_000;

/// The amount of a change: one number, or a range of numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Amount {
    /// How the number changes the parameter.
    pub(super) operation: Operation,
    /// The unit of the parameter.
    pub(super) unit: Unit,
    first: f64,
    range: Option<Range>,
}

/// The operation by which a number changes a parameter of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    /// Replaces the parameter: `50`.
    Set,
    /// Multiplies the parameter: `1.5x`.
    Times,
    /// Changes the parameter by a percentage: `+30%`.
    Percent,
    /// Adds to the parameter: `+2`.
    Add,
}

/// The unit of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// A whole number.
    Count,
    /// A rate per second.
    Rate,
    /// A time in seconds.
    Time,
    /// A share: `0.2` or `20%`.
    Share,
    /// A plain number without a unit.
    Number,
    /// A number of bits per second.
    BitRate,
    /// A number of bytes.
    Size,
    /// A parameter that can only be changed relative to its value, such as by `1.5x` or `+30%`.
    Factor,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Range {
    last: f64,
    points: Option<u32>,
    log: bool,
}

impl Amount {
    /// Parses a number or a range for a parameter with this unit.
    pub(super) fn parse(text: &str, unit: Unit) -> Result<Amount, String> {
        let Some((first, rest)) = text.split_once("..") else {
            let (operation, first) = single(text.trim(), unit)?;
            return Ok(Amount { operation, unit, first, range: None });
        };
        let mut parts = rest.split(':').map(str::trim);
        let last = parts.next().unwrap_or_default();
        let (mut points, mut log) = (None, false);
        for part in parts {
            match part.parse() {
                _ if part == "log" && !log => log = true,
                Ok(n) if points.is_none() && (2..=MAX_POINTS).contains(&n) => points = Some(n),
                _ => return Err(format!("`{part}` is no number of points (2 to {MAX_POINTS}), nor `log`")),
            }
        }
        let (operation, last_number) = single(last, unit)?;
        let (first_operation, first) = with_suffix_of(first.trim(), last, unit)?;
        if operation != first_operation {
            return Err("the ends of its range are not of one kind: write 1x..2x, +10%..+50% or 10..200".into());
        }
        let positive = |n: f64| n > 0.0 && matches!(operation, Operation::Set | Operation::Times);
        if log && !(positive(first) && positive(last_number)) {
            return Err("a range by even factors needs ends above 0, like 1x..10x:log".into());
        }
        Ok(Amount { operation, unit, first, range: Some(Range { last: last_number, points, log }) })
    }

    /// Whether the amount is a range of numbers.
    pub(super) fn is_range(&self) -> bool {
        self.range.is_some()
    }

    /// The number, or the first number of a range.
    pub(super) fn first(&self) -> f64 {
        self.first
    }

    /// All numbers of the amount: one number, or the points of the range from the first to the last.
    pub(super) fn points(&self) -> Vec<f64> {
        let Some(range) = self.range else { return vec![self.first] };
        let whole = self.unit == Unit::Count && matches!(self.operation, Operation::Set | Operation::Add);
        let steps = (range.last - self.first).abs();
        let points = match range.points {
            None if whole && steps < f64::from(DEFAULT_POINTS) && !range.log => steps as u32 + 1,
            points => points.unwrap_or(DEFAULT_POINTS),
        };
        let at = |i: u32| {
            let part = f64::from(i) / f64::from(points - 1).max(1.0);
            match i {
                0 => self.first,
                _ if i == points - 1 => range.last,
                _ if range.log => self.first * (range.last / self.first).powf(part),
                _ => self.first + (range.last - self.first) * part,
            }
        };
        let mut numbers: Vec<f64> = (0..points).map(|i| if whole { at(i).round() } else { at(i) }).collect();
        numbers.dedup();
        numbers
    }

    /// The value of a parameter after the change. `base` is its value before the change. `number` is the amount's
    /// number, or one number of its range.
    pub(super) fn apply(&self, base: f64, number: f64) -> f64 {
        match self.operation {
            Operation::Set => number,
            Operation::Times => base * number,
            Operation::Percent => base * (1.0 + number / 100.0),
            Operation::Add => base + number,
        }
    }

    /// Whether the amount multiplies a parameter. The order of such changes does not matter.
    pub(super) fn is_factor(&self) -> bool {
        matches!(self.operation, Operation::Times | Operation::Percent)
    }
}

/// Parses the first number of a range. If the number has no unit, it has the unit of the last number. A prefix such as
/// `k` belongs to the number, not to the unit.
fn with_suffix_of(first: &str, last: &str, unit: Unit) -> Result<(Operation, f64), String> {
    let end = last.rfind(|c: char| c.is_ascii_digit() || c == '.').map_or(0, |i| i + 1);
    let bare = first.ends_with(|c: char| c.is_ascii_digit() || c == '.');
    let shared = if bare && !["k", "K", "M", "G"].contains(&&last[end..]) { &last[end..] } else { "" };
    single(&format!("{first}{shared}"), unit)
}

fn single(text: &str, unit: Unit) -> Result<(Operation, f64), String> {
    if let Some(number) = text.strip_suffix(['x', '×']) {
        return Ok((Operation::Times, number_of(number)?));
    }
    let signed = text.starts_with(['+', '-', '−']);
    let sign = if signed && !text.starts_with('+') { -1.0 } else { 1.0 };
    let size = text.trim_start_matches(['+', '-', '−']).trim_start();
    if let Some(percent) = size.strip_suffix('%') {
        return match unit {
            _ if signed => Ok((Operation::Percent, sign * number_of(percent)?)),
            Unit::Share => Ok((Operation::Set, number_of(percent)? / 100.0)),
            _ => Err(format!("`{text}` may mean more or all of it: write +{text} or a factor like 1.3x")),
        };
    }
    let number = plain(size, unit)?;
    Ok(if signed { (Operation::Add, sign * number) } else { (Operation::Set, number) })
}

fn plain(text: &str, unit: Unit) -> Result<f64, String> {
    match unit {
        Unit::Count => text.parse().map(|Count(n)| n as f64).map_err(|e| e.to_string()),
        Unit::Rate => text.parse().map(|Rate(r)| r).map_err(|e| e.to_string()),
        Unit::Time => text.parse().map(Nanos::as_secs_f64).map_err(|e| e.to_string()),
        Unit::Size => text.parse().map(|Bytes(n)| n as f64).map_err(|e| e.to_string()),
        Unit::Share | Unit::Number => number_of(text),
        Unit::BitRate => {
            bit_rate(text).ok_or_else(|| format!("`{text}` is not a speed: write it like 128kbps or 10Mbps"))
        }
        Unit::Factor => {
            Err(format!("`{text}` is no factor: only the ratio to the present is known, so write 1.5x or +50%"))
        }
    }
}

/// Parses a non-negative number without an exponent.
fn number_of(text: &str) -> Result<f64, String> {
    let digits = text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let number = text.parse().ok().filter(|n: &f64| digits && n.is_finite());
    number.ok_or_else(|| format!("`{text}` is not a number"))
}

const BIT_RATES: [(&str, f64); 4] = [("G", 1e9), ("M", 1e6), ("k", 1e3), ("", 1.0)];

fn bit_rate(text: &str) -> Option<f64> {
    let number = text.strip_suffix("bps").or_else(|| text.strip_suffix("bit/s"))?.trim_end();
    BIT_RATES.iter().find_map(|(prefix, scale)| Some(number_of(number.strip_suffix(prefix)?.trim_end()).ok()? * scale))
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fmt_number(f, self.first)?;
        let Some(range) = self.range else { return Ok(()) };
        f.write_str("..")?;
        self.fmt_number(f, range.last)?;
        if let Some(points) = range.points {
            write!(f, ":{points}")?;
        }
        f.write_str(if range.log { ":log" } else { "" })
    }
}

impl Amount {
    /// Writes one of the amount's numbers in the user's notation.
    pub(super) fn fmt_number(&self, f: &mut fmt::Formatter<'_>, number: f64) -> fmt::Result {
        match self.operation {
            Operation::Times => write!(f, "{number}x"),
            Operation::Percent => write!(f, "{number:+}%"),
            Operation::Set => self.fmt_plain(f, number),
            Operation::Add => {
                f.write_str(if number.is_sign_negative() { "-" } else { "+" })?;
                self.fmt_plain(f, number.abs())
            }
        }
    }

    fn fmt_plain(&self, f: &mut fmt::Formatter<'_>, number: f64) -> fmt::Result {
        match self.unit {
            Unit::Time => f.write_str(&Nanos::from_secs_f64(number).to_exact_string()),
            Unit::BitRate => {
                let whole = |scale: f64| number / scale >= 1.0 && number / scale * scale == number;
                let (prefix, scale) = BIT_RATES.iter().find(|(_, scale)| whole(*scale)).unwrap_or(&("", 1.0));
                write!(f, "{}{prefix}bps", number / scale)
            }
            _ => write!(f, "{number}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amount(text: &str, unit: Unit) -> (Operation, f64) {
        let amount = Amount::parse(text, unit).unwrap();
        (amount.operation, amount.first)
    }

    #[test]
    fn numbers_as_people_write_them() {
        assert_eq!(amount("1.5x", Unit::Factor), (Operation::Times, 1.5));
        assert_eq!(amount("+30%", Unit::Rate), (Operation::Percent, 30.0));
        assert_eq!(amount("-10%", Unit::Time), (Operation::Percent, -10.0));
        assert_eq!(amount("50/s", Unit::Rate), (Operation::Set, 50.0));
        assert_eq!(amount("10k", Unit::Rate), (Operation::Set, 10_000.0));
        assert_eq!(amount("-2ms", Unit::Time), (Operation::Add, -0.002));
        assert_eq!(amount("+1", Unit::Count), (Operation::Add, 1.0));
        assert_eq!(amount("20%", Unit::Share), (Operation::Set, 0.2));
        assert_eq!(amount("128kbps", Unit::BitRate), (Operation::Set, 128e3));
        assert_eq!(amount("10 Mbit/s", Unit::BitRate), (Operation::Set, 10e6));
        assert_eq!(amount("45.5KB", Unit::Size), (Operation::Set, 45_500.0));
    }

    #[test]
    fn invalid_numbers_are_explained() {
        for (text, unit, problem) in [
            ("1.5", Unit::Factor, "write 1.5x"),
            ("30%", Unit::Rate, "+30%"),
            ("5", Unit::Time, "500ms"),
            ("1.5", Unit::Count, "not a count"),
            ("NaNx", Unit::Factor, "not a number"),
            ("infx", Unit::Factor, "not a number"),
            ("-1x", Unit::Factor, "not a number"),
            ("1e3x", Unit::Factor, "not a number"),
            ("x", Unit::Factor, "not a number"),
            ("10MBps", Unit::BitRate, "128kbps"),
            ("1x..2", Unit::Number, "not of one kind"),
            ("1x..2x:1", Unit::Factor, "number of points"),
            ("1x..2x:5:6", Unit::Factor, "number of points"),
            ("0x..2x:log", Unit::Factor, "above 0"),
            ("+1%..+5%:log", Unit::Rate, "above 0"),
            ("..", Unit::Number, "not a number"),
        ] {
            let error = Amount::parse(text, unit).unwrap_err();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }

    fn points(text: &str, unit: Unit) -> Vec<f64> {
        Amount::parse(text, unit).unwrap().points()
    }

    #[test]
    fn ranges_go_from_end_to_end() {
        assert_eq!(points("1..2x:5", Unit::Factor), [1.0, 1.25, 1.5, 1.75, 2.0]);
        assert_eq!(points("8..2", Unit::Count), [8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0]);
        assert_eq!(points("1..100:3:log", Unit::Number), [1.0, 10.0, 100.0]);
        assert_eq!(points("1..4:9:log", Unit::Count), [1.0, 2.0, 3.0, 4.0], "counts are whole and distinct");
        assert_eq!(points("10..20ms:2", Unit::Time), [0.01, 0.02]);
        assert_eq!(points("1..10k:2", Unit::Rate), [1.0, 10_000.0]);
        assert_eq!(points("10..200/s:2", Unit::Rate), [10.0, 200.0]);
        assert_eq!(points("-10%..+10%:3", Unit::Rate), [-10.0, 0.0, 10.0]);
        assert_eq!(points("1x..2x", Unit::Factor).len(), 21);
        assert_eq!(points("1x", Unit::Factor), [1.0]);
        assert_eq!(points("3..3", Unit::Count), [3.0]);
    }
}
