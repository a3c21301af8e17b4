//! A history of arrivals at regular steps, and its parser for CSV and JSON.
//!
//! The step is the most common difference between consecutive times. All differences must be multiples of the step.
//! (For daily steps, they may deviate by an hour, because of daylight saving time.) Harmless defects are repaired and
//! reported. Up to [`MAX_INTERPOLATED_STEPS`] consecutive missing steps are interpolated, if at most a tenth of all
//! steps are missing. Unordered times are sorted. Other defects, such as a time that occurs twice, are errors.

use crate::ForecastError;
use crate::time::{DAY_S, ParseTimestampError, ParsedTime, Timestamp};
use crate::zone::Zone;
use brimful_core::JsonSchema;
use brimful_core::csv;
use brimful_core::number::NumberError;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::HashMap;
use std::fmt;

/// Minimum number of values of a history.
pub(crate) const MIN_VALUES: usize = 8;

/// Maximum number of consecutive missing steps that are interpolated.
pub const MAX_INTERPOLATED_STEPS: usize = 3;

/// Maximum number of arrivals, per second or per step. Squares and products of numbers up to this bound stay finite.
const MAX_VALUE: f64 = 1e15;

/// Maximum share of steps that may be interpolated.
const MAX_BRIDGED_SHARE: f64 = 0.1;

/// Maximum distance of a time from 1970-01-01, in seconds.
const MAX_TIME_S: i64 = 1_000_000_000_000;

/// Maximum deviation of a time from a regular step of a day or more, in seconds. Clocks change by an hour.
const CLOCK_CHANGE_S: i64 = 3600;

/// Unit of the values of a history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// Number of arrivals within a step.
    #[default]
    Counts,
    /// Arrivals per second.
    Rates,
}

/// A history of arrivals at regular steps.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Series {
    /// Start of the first step.
    pub start: Timestamp,
    /// Length of a step in seconds. If the step is a day, its actual length depends on changes of the clocks.
    pub step_s: u32,
    /// The time zone whose local time determines days and seasons.
    pub zone: Zone,
    /// Mean arrivals per second within each step.
    pub rates: Vec<f64>,
    /// Gaps in the history, whose steps are interpolated.
    pub bridged: Vec<Gap>,
    /// Number of values whose time is before the time of the preceding value in the text. The values are sorted by
    /// time.
    pub out_of_order: usize,
    /// Whether the times in the text have several offsets from UTC while the user named no time zone.
    pub mixed_offsets: bool,
}

/// A gap of consecutive missing steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Gap {
    /// Start of the first missing step.
    pub from: Timestamp,
    /// Number of missing steps.
    pub steps: usize,
}

impl Series {
    /// A series of rates in a zone with a fixed offset from UTC. Returns an error if the step is 0 or a rate is out of
    /// range.
    pub fn new(start: Timestamp, step_s: u32, rates: Vec<f64>) -> Result<Self, ForecastError> {
        let series = Self::empty(start, step_s, Zone::fixed(start.offset_s()));
        let series = Self { rates, ..series };
        series.check()?;
        Ok(series)
    }

    fn empty(start: Timestamp, step_s: u32, zone: Zone) -> Self {
        let rates = Vec::new();
        let bridged = Vec::new();
        Self { start, step_s, zone, rates, bridged, out_of_order: 0, mixed_offsets: false }
    }

    /// Returns an error if the step is 0 or a rate is out of range.
    pub(crate) fn check(&self) -> Result<(), ForecastError> {
        if self.step_s == 0 {
            return Err(ForecastError::Number(NumberError {
                what: "the step of a series".into(),
                value: 0.0,
                requirement: "at least 1 s",
            }));
        }
        if let Some(i) = self.rates.iter().position(|r| !(0.0..=MAX_VALUE).contains(r)) {
            let what = format!("value {i} (counted from 0) of the series");
            return Err(ForecastError::Number(NumberError {
                what,
                value: self.rates[i],
                requirement: "a rate, 0 to 1e15 per second",
            }));
        }
        Ok(())
    }

    /// Parses a history from CSV or JSON. CSV has two columns, time and value, with or without a header; tabs or
    /// semicolons may separate the columns, too. JSON is an array of `[time, value]` or `{"time": …, "value": …}`.
    ///
    /// Times are parsed like [`Timestamp`]. A line without a value is a missing step. If `zone` is given, days follow
    /// its local time. Otherwise, days follow the offset from UTC in the times; if these differ, the offset of the
    /// latest time. If the times have no offset, days follow UTC.
    pub fn parse(text: &str, unit: Unit, zone: Option<&Zone>) -> Result<Self, ForecastError> {
        let text = brimful_core::text::strip_bom(text);
        let written = if text.trim_start().starts_with('[') { read_json(text)? } else { read_csv(text)? };
        let by_clock = |p: Point<ParsedTime>| Point {
            at: p.at,
            time: zone.map_or_else(|| p.time.to_timestamp(), |zone| zone.read(p.time)),
            value: p.value,
        };
        let mut offsets: Vec<(i64, i32)> =
            written.iter().filter_map(|p| Some((p.time.to_timestamp().unix(), p.time.offset_s()?))).collect();
        offsets.sort_unstable();
        let mixed_offsets = zone.is_none() && offsets.windows(2).any(|w| w[0].1 != w[1].1);
        let last = Zone::fixed(offsets.last().map_or(0, |(_, offset)| *offset));
        let mut points: Vec<Point<Timestamp>> = written.into_iter().map(by_clock).collect();
        let out_of_order = points.windows(2).filter(|w| w[1].time < w[0].time).count();
        points.sort_by_key(|p| p.time);
        if let Some(twice) = points.windows(2).find(|w| w[0].time.unix() == w[1].time.unix()) {
            return Err(twice[1].at.refused(format!(
                "{} was given on {} already: keep one of the two or add them up; where clocks change, write times with their \
                 offset from UTC",
                twice[1].time, twice[0].at
            )));
        }
        let step_s = step(&points)?;
        let zone = zone.cloned().unwrap_or(last);
        let mut series = Self { out_of_order, mixed_offsets, ..regular(&points, step_s, zone)? };
        if unit == Unit::Counts {
            series.rates.iter_mut().for_each(|r| *r /= f64::from(step_s));
        }
        Ok(series)
    }

    /// The start of a step. The index of the first step after the history is `rates.len()`.
    pub fn time(&self, index: usize) -> Timestamp {
        let by = (index as i64).saturating_mul(i64::from(self.step_s));
        if self.by_day() {
            return self.zone.time(self.start.local().saturating_add(by).clamp(-MAX_TIME_S, MAX_TIME_S));
        }
        self.zone.show(self.start.plus_seconds(by))
    }

    /// Number of steps in the last week of the history; at most the number of all steps.
    pub(crate) fn last_week(&self) -> usize {
        self.steps(7.0 * DAY_S as f64).clamp(1, self.rates.len().max(1))
    }

    /// Whether steps are whole days. Their lengths depend on changes of the clocks.
    fn by_day(&self) -> bool {
        i64::from(self.step_s) % DAY_S == 0
    }

    /// The index that a step would have if the clocks never changed. If the clocks are set back, two steps have the
    /// same index. If clocks change by a time that is not a multiple of the step, returns `index`.
    pub(crate) fn clock_index(&self, index: usize) -> usize {
        let step = i64::from(self.step_s);
        let shift = self.time(index).offset_s() - self.time(0).offset_s();
        if self.by_day() || i64::from(shift) % step != 0 {
            return index;
        }
        usize::try_from(index as i64 + i64::from(shift) / step).unwrap_or(0)
    }

    /// The rates, indexed by [`Series::clock_index`]. The rate of an index that two steps share is their mean. An index
    /// without a step (when clocks are set forward) gets the mean of its neighbours.
    pub(crate) fn rates_by_clock_index(&self) -> Vec<f64> {
        let mut sums: Vec<(f64, f64)> = Vec::with_capacity(self.rates.len());
        for (i, rate) in self.rates.iter().enumerate() {
            let at = self.clock_index(i);
            sums.resize(sums.len().max(at + 1), (0.0, 0.0));
            sums[at].0 += rate;
            sums[at].1 += 1.0;
        }
        let known = |(sum, count): &(f64, f64)| (*count > 0.0).then(|| sum / count);
        let mut rates: Vec<f64> = Vec::with_capacity(sums.len());
        for (i, sum) in sums.iter().enumerate() {
            let next = || sums[i..].iter().find_map(known).unwrap_or(0.0);
            let halfway = || (rates.last().copied().unwrap_or(0.0) + next()) / 2.0;
            rates.push(known(sum).unwrap_or_else(halfway));
        }
        rates
    }

    /// The start of the step for which [`Series::clock_index`] returns `clock_index`.
    pub(crate) fn time_of_clock_index(&self, clock_index: usize) -> Timestamp {
        let by = (clock_index as i64).saturating_mul(i64::from(self.step_s));
        self.zone.time(self.start.local().saturating_add(by).clamp(-MAX_TIME_S, MAX_TIME_S))
    }

    /// Number of steps in `seconds`, rounded up.
    pub fn steps(&self, seconds: f64) -> usize {
        (seconds / f64::from(self.step_s)).ceil() as usize
    }

    /// The mean rates of whole days in the time zone of the series, and the ratio of a day's highest step to its mean.
    /// `None` if the step does not divide a day, or if no day is complete.
    pub fn daily(&self) -> Option<DailySeries> {
        let step = i64::from(self.step_s);
        let per_day = usize::try_from(DAY_S / step).ok().filter(|n| *n > 1 && DAY_S % step == 0)?;
        // A step that extends beyond midnight belongs to the day in which it starts.
        let into_day = self.start.local().rem_euclid(DAY_S);
        let skip = usize::try_from((DAY_S - into_day) % DAY_S / step).ok()?;
        let skip = skip + usize::from(into_day % step != 0);
        let rates = self.rates_by_clock_index();
        let days: Vec<&[f64]> = rates.get(skip..)?.chunks_exact(per_day).collect();
        let means: Vec<f64> = days.iter().map(|day| day.iter().sum::<f64>() / per_day as f64).collect();
        let mut ratios: Vec<f64> = days
            .iter()
            .zip(&means)
            .filter(|(_, mean)| **mean > 0.0)
            .map(|(day, mean)| day.iter().fold(0.0, |a: f64, b| a.max(*b)) / mean)
            .collect();
        ratios.sort_by(f64::total_cmp);
        let peak_to_mean = *ratios.get((ratios.len() * 19).div_ceil(20).saturating_sub(1)).unwrap_or(&1.0);
        let series = Self { start: self.time_of_clock_index(skip), step_s: DAY_S as u32, rates: means, ..self.clone() };
        (!series.rates.is_empty()).then_some(DailySeries { series, peak_to_mean })
    }
}

/// The days of a history, as a series of daily steps.
#[derive(Clone, Debug, PartialEq)]
pub struct DailySeries {
    /// The mean rate of each whole day.
    pub series: Series,
    /// The ratio of a day's highest step to the day's mean: the 95th percentile over the days.
    pub peak_to_mean: f64,
}

/// A time with its value, parsed from a text.
struct Point<Time> {
    at: TextPosition,
    time: Time,
    value: f64,
}

/// A position in a text: the number of the CSV line or of the JSON entry, counted from 1.
#[derive(Clone, Copy)]
enum TextPosition {
    Line(usize),
    Entry(usize),
}

impl TextPosition {
    fn refused(self, problem: impl Into<String>) -> ForecastError {
        ForecastError::Input { place: self.to_string(), problem: problem.into() }
    }
}

impl fmt::Display for TextPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(number) => write!(f, "line {number}"),
            Self::Entry(number) => write!(f, "entry {number}"),
        }
    }
}

fn read_csv(text: &str) -> Result<Vec<Point<ParsedTime>>, ForecastError> {
    let mut points = Vec::new();
    for (i, row) in csv::parse(text).into_iter().enumerate() {
        let at = TextPosition::Line(row.line);
        let [time, value] = row.fields.as_slice() else {
            return Err(at.refused(format!("{} columns: a history has two, time and value", row.fields.len())));
        };
        let header = i == 0 && time.parse::<Timestamp>().is_err() && value.parse::<f64>().is_err();
        if !header {
            points.extend(point(at, time, value)?);
        }
    }
    Ok(points)
}

fn read_json(text: &str) -> Result<Vec<Point<ParsedTime>>, ForecastError> {
    let entries: Vec<Value> = serde_json::from_str(text)
        .map_err(|error| TextPosition::Line(error.line()).refused(format!("no JSON array: {error}")))?;
    let mut points = Vec::new();
    for (i, entry) in entries.iter().enumerate() {
        let at = TextPosition::Entry(i + 1);
        let fields = match entry {
            Value::Array(pair) if pair.len() == 2 => Some((&pair[0], &pair[1])),
            Value::Object(fields) => fields.get("time").zip(fields.get("value")),
            _ => None,
        };
        let (time, value) = fields
            .ok_or_else(|| at.refused("no entry of a history: each is [time, value] or {\"time\": …, \"value\": …}"))?;
        let plain = |value: &Value| match value {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            other => other.to_string(),
        };
        points.extend(point(at, &plain(time), &plain(value))?);
    }
    Ok(points)
}

/// Parses a time with its value; `None` if the value is missing.
fn point(at: TextPosition, time: &str, value: &str) -> Result<Option<Point<ParsedTime>>, ForecastError> {
    let time = time.parse().map_err(|error: ParseTimestampError| at.refused(error.to_string()))?;
    if value.is_empty() {
        return Ok(None);
    }
    match value.parse() {
        Ok(number) if (0.0..=MAX_VALUE).contains(&number) => Ok(Some(Point { at, time, value: number })),
        _ => {
            let value: String = value.chars().take(40).collect();
            Err(at
                .refused(format!("`{value}` is no number of arrivals: write 0 or more, or nothing if it is not known")))
        }
    }
}

/// The most common difference between consecutive times, in seconds; of several, the shortest.
fn step(points: &[Point<Timestamp>]) -> Result<u32, ForecastError> {
    let mut seen: HashMap<i64, usize> = HashMap::new();
    for pair in points.windows(2) {
        *seen.entry(pair[1].time.unix() - pair[0].time.unix()).or_default() += 1;
    }
    let common = seen.into_iter().max_by_key(|(step, count)| (*count, -step));
    let (step, _) = common.ok_or(ForecastError::SeriesTooShort { given: points.len(), needed: MIN_VALUES })?;
    u32::try_from(step).map_err(|_| {
        ForecastError::Number(NumberError {
            what: "the step of the series, in seconds,".into(),
            value: step as f64,
            requirement: "less than a century: check the times",
        })
    })
}

/// Assigns the values (`points`) to regular steps, and interpolates short gaps.
fn regular(points: &[Point<Timestamp>], step_s: u32, zone: Zone) -> Result<Series, ForecastError> {
    let step = i64::from(step_s);
    let first = points[0].time;
    let tolerance = if step >= DAY_S { CLOCK_CHANGE_S } else { 0 };
    let by_day = step % DAY_S == 0;
    // Daily steps are counted in local time, because not every day has 24 hours.
    let clock_s = |time: Timestamp| if by_day { time.local() } else { time.unix() };
    let start = if by_day { zone.time(first.local()) } else { zone.show(first) };
    let mut series = Series::empty(start, step_s, zone);
    let mut made_up = 0;
    for point in points {
        let since = clock_s(point.time) - clock_s(first);
        let index = (since + step / 2).div_euclid(step);
        if (since - index * step).abs() > tolerance || (index as usize) < series.rates.len() {
            return Err(point.at.refused(format!(
                "{} does not lie on the step of {step_s} s that most others have, counted from {first}: give every value the \
                 same step (months have none: use weeks), and times with their offset from UTC where clocks change",
                point.time
            )));
        }
        let missing = index as usize - series.rates.len();
        if missing > MAX_INTERPOLATED_STEPS {
            return Err(ForecastError::Gap {
                from: series.time(series.rates.len()).to_string(),
                steps: missing,
                before: point.time.to_string(),
                bridged: MAX_INTERPOLATED_STEPS,
            });
        }
        if let (Some(&last), true) = (series.rates.last(), missing > 0) {
            series.bridged.push(Gap { from: series.time(series.rates.len()), steps: missing });
            let slope = (point.value - last) / (missing + 1) as f64;
            series.rates.extend((1..=missing).map(|i| last + slope * i as f64));
            made_up += missing;
        }
        series.rates.push(point.value);
    }
    if made_up as f64 > MAX_BRIDGED_SHARE * series.rates.len() as f64 {
        return Err(ForecastError::Gaps { missing: made_up, steps: series.rates.len() });
    }
    Ok(series)
}
