//! Infers the unit of logged durations that are whole numbers.
//!
//! A unit is implausible in these cases:
//!
//! - The median duration would be shorter than on any server, or longer than any user would wait.
//! - Responses would have been faster than a network of 100 Gbit/s.
//! - Lines would not be in the order in which the responses ended. Servers that write whole numbers (Apache, Tomcat)
//!   log the start time of a request, but write the line when the response has ended.
//!
//! Of the plausible units, the most usual is chosen. A note names the other plausible units.

use crate::format::{Format, TimeUnit};
use crate::{Line, Scratch};
use brimful_core::Nanos;
use brimful_core::quantity::count;

/// Lower bound of a plausible median duration, in nanoseconds.
const MIN_MEDIAN_NS: u64 = 20_000;
/// Upper bound of a plausible median duration, in nanoseconds.
const MAX_MEDIAN_NS: u64 = 120_000_000_000;
/// Maximum plausible rate of one response, in bytes per second: 100 Gbit/s.
const MAX_BYTES_PER_S: f64 = 12.5e9;
/// Reciprocal of the maximum fraction of responses that may exceed [`MAX_BYTES_PER_S`] in a plausible unit.
const EXCEPTIONS: usize = 100;
/// Maximum percentage of zeros in a column of microseconds or nanoseconds. Nearly every request takes at least a
/// microsecond.
const MAX_ZERO_PERCENT: usize = 2;
/// Upper bound of the delay from the end of a response to the writing of its line, in nanoseconds.
const MAX_WRITE_DELAY_NS: i64 = 2_000_000_000;
/// Minimum number of lines for judging a unit by the order of the lines.
const MIN_ORDERED_LINES: usize = 8;
/// Minimum number of responses out of order, in addition to those with the best unit, for which a unit is implausible.
/// There must also be at least twice as many out of order as with the best unit.
const MIN_DISORDER: usize = 2;

/// A request whose duration is a number in an unknown unit.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimedRequest {
    /// Start time, in nanoseconds since 1970.
    pub time_ns: i64,
    /// Size of the response, in bytes; `None` if unknown.
    pub bytes: Option<u64>,
    /// The logged duration, in an unknown unit.
    pub value: u64,
}

/// The most likely unit of a duration, and the other plausible units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UnitGuess {
    /// The most likely unit.
    pub unit: TimeUnit,
    /// The other plausible units, except nanoseconds; the most usual unit first.
    pub other_units: Vec<TimeUnit>,
}

/// Guesses the unit of a column of numbers. The requests are in the order of the log.
pub(super) fn guess_unit(requests: &[TimedRequest]) -> UnitGuess {
    use TimeUnit::{Microseconds, Milliseconds, Nanoseconds, Seconds};
    let possible = possible(requests, [Microseconds, Milliseconds, Seconds, Nanoseconds]);
    let is_mostly_zero = requests.iter().filter(|request| request.value == 0).count() * 2 >= requests.len();
    let unit = match possible.as_slice() {
        // If a server writes whole seconds, fast responses have a duration of 0.
        [Milliseconds, Seconds, ..] if is_mostly_zero => Seconds,
        [first, ..] => *first,
        [] if is_mostly_zero => Seconds,
        [] => Microseconds,
    };
    let other_units = possible.into_iter().filter(|other| *other != unit && *other != Nanoseconds).collect();
    UnitGuess { unit, other_units }
}

/// Sets the unit of durations that are whole numbers to the most likely unit, unless the format states the unit. Also
/// returns a note for the user if this unit is not milliseconds, the usual unit.
pub(super) fn with_unit(format: Format, lines: &[&[u8]]) -> (Format, Option<String>) {
    use TimeUnit::{Microseconds, Milliseconds, Nanoseconds, Seconds};
    let Some(mut in_nanoseconds) = format.clone().with_default_unit(Nanoseconds) else { return (format, None) };
    let mut usual = format.clone();
    let mut scratch = Scratch::default();
    let mut usual_scratch = Scratch::default();
    let mut requests = Vec::new();
    for line in lines {
        if let (Ok(Line::Entry(entry)), Ok(Line::Entry(as_usual))) =
            (in_nanoseconds.read(line, &mut scratch), usual.read(line, &mut usual_scratch))
            && let (Some(value), Some(usual_ns)) = (entry.service_ns, as_usual.service_ns)
            && (value != usual_ns || value == 0)
        {
            requests.push(TimedRequest { time_ns: entry.time_ns, bytes: entry.bytes, value });
        }
    }
    if requests.iter().all(|request| request.value == 0) {
        return (format, None);
    }
    let possible = possible(&requests, [Milliseconds, Microseconds, Nanoseconds, Seconds]);
    match possible.first() {
        Some(unit) if *unit != Milliseconds => {
            let remark = unit_remark(&requests, *unit) + ".";
            (format.clone().with_default_unit(*unit).unwrap_or(format), Some(remark))
        }
        _ => (format, None),
    }
}

/// A note that shows with an example how the numbers are read: `The log does not name the unit of its times: whole
/// numbers are read as microseconds, 5,040 as 5.04 ms`.
pub(super) fn unit_remark(requests: &[TimedRequest], unit: TimeUnit) -> String {
    let example = median(requests).max(1);
    let ns = Nanos(example.saturating_mul(unit.ns()));
    format!(
        "The log does not name the unit of its times: whole numbers are read as {}, {} as {}",
        unit.name(),
        count(example),
        ns.to_rounded_string()
    )
}

/// The plausible ones of `units`, in the same order.
fn possible<const N: usize>(requests: &[TimedRequest], units: [TimeUnit; N]) -> Vec<TimeUnit> {
    let disorder = units.map(|unit| disorder(requests, unit));
    let least = disorder.iter().copied().min().unwrap_or(0);
    let is_in_order = |disorder: usize| disorder < least + MIN_DISORDER || disorder < 2 * least;
    let judged = units.into_iter().zip(disorder);
    judged
        .filter(|(unit, disorder)| is_plausible(requests, *unit) && is_in_order(*disorder))
        .map(|(unit, _)| unit)
        .collect()
}

fn is_plausible(requests: &[TimedRequest], unit: TimeUnit) -> bool {
    let median_ns = median(requests).saturating_mul(unit.ns());
    let zeros = requests.iter().filter(|request| request.value == 0).count();
    let is_coarse = matches!(unit, TimeUnit::Seconds | TimeUnit::Milliseconds);
    let is_fast = !is_coarse && (median_ns < MIN_MEDIAN_NS || zeros * 100 > requests.len() * MAX_ZERO_PERCENT);
    let is_slow = median_ns > MAX_MEDIAN_NS;
    let too_many_bytes = requests.iter().filter(|request| {
        let seconds = request.value as f64 * unit.ns() as f64 / 1e9;
        request.value > 0 && request.bytes.unwrap_or(0) as f64 > MAX_BYTES_PER_S * seconds
    });
    !is_fast && !is_slow && too_many_bytes.count() * EXCEPTIONS <= requests.len()
}

/// Number of responses that would have ended before the response in the preceding line, if durations were in this unit.
/// Differences of at most [`MAX_WRITE_DELAY_NS`] do not count.
fn disorder(requests: &[TimedRequest], unit: TimeUnit) -> usize {
    if requests.len() < MIN_ORDERED_LINES {
        return 0;
    }
    let end_ns = |request: &TimedRequest| {
        let ns = i64::try_from(request.value.saturating_mul(unit.ns())).unwrap_or(i64::MAX);
        request.time_ns.saturating_add(ns)
    };
    requests.windows(2).filter(|pair| end_ns(&pair[1]) < end_ns(&pair[0]).saturating_sub(MAX_WRITE_DELAY_NS)).count()
}

fn median(requests: &[TimedRequest]) -> u64 {
    let mut values: Vec<u64> = requests.iter().map(|request| request.value).collect();
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use TimeUnit::{Microseconds, Milliseconds, Seconds};

    /// Creates one request for each value, a second apart, with a small response.
    fn every_second(values: impl IntoIterator<Item = u64>) -> Vec<TimedRequest> {
        let timed = |(second, value): (usize, u64)| TimedRequest {
            time_ns: second as i64 * 1_000_000_000,
            bytes: Some(10),
            value,
        };
        values.into_iter().enumerate().map(timed).collect()
    }

    fn guessed(requests: &[TimedRequest]) -> (TimeUnit, Vec<TimeUnit>) {
        let UnitGuess { unit, other_units } = guess_unit(requests);
        (unit, other_units)
    }

    #[test]
    fn a_unit_is_told_by_the_numbers() {
        assert_eq!(guessed(&every_second([5_040])), (Microseconds, vec![Milliseconds]));
        assert_eq!(guessed(&every_second([0, 0, 1, 0, 30])), (Seconds, vec![Milliseconds]));
        assert_eq!(guessed(&every_second([3, 0, 12, 5, 1])), (Milliseconds, vec![Seconds]));
        assert_eq!(guessed(&every_second([900_000, 400_000])), (Microseconds, vec![]));
        // A response of 2 MB within 40 µs would need 50 GB/s, so the numbers cannot be microseconds.
        let large: Vec<TimedRequest> =
            every_second([40; 9]).iter().map(|t| TimedRequest { bytes: Some(2_000_000), ..*t }).collect();
        assert_eq!(guessed(&large), (Milliseconds, vec![Seconds]));
    }

    #[test]
    fn a_unit_is_told_by_the_order_of_the_lines() {
        // Each line has the start time of its request, but the lines are in the order of the end times. The durations
        // are in microseconds in the first half of this test, and in milliseconds in the second half.
        let varied = [5_000, 40, 9_000, 300, 12_000, 800, 7_000, 60, 11_000, 90, 8_000, 500];
        assert_eq!(guessed(&every_second(varied)), (Microseconds, vec![]), "microseconds must fit the order");
        let mut in_milliseconds = every_second(varied);
        for request in &mut in_milliseconds {
            request.time_ns -= request.value as i64 * 1_000_000;
        }
        assert_eq!(guessed(&in_milliseconds), (Milliseconds, vec![]), "only milliseconds may fit");
    }
}
