//! Counts requests by time. The requests may be added in any order.
//!
//! Each UTC day with requests has counts per minute, and each hour with requests has counts per second. At most
//! [`MAX_DAYS`] days are kept (22 MiB of memory); requests of any other days count only in totals. At most
//! [`MAX_HOURS`] hours are kept (11 MiB); if there are more, the counts per second of the hour with the fewest requests
//! are dropped. Hours of the day and weekdays follow the local time of a time zone, and are computed at the end from
//! the counts per minute.
//!
//! A few timestamps that are far away from all others do not extend the span of the log. More than [`GAP_DAYS`] days
//! separate such timestamps from nearly all requests, or `strays` finds them at the start or the end.

mod strays;

use foldhash::fast::RandomState;
use jiff::tz::TimeZone;
use std::collections::HashMap;
use std::ops::Range;

/// Maximum number of days whose requests are counted by time.
pub(super) const MAX_DAYS: usize = 4_000;
/// Maximum number of hours in which requests are counted per second.
pub(super) const MAX_HOURS: usize = 768;
/// Maximum gap in days between two groups of requests of one log. Stray requests are separated by a longer gap.
const GAP_DAYS: i64 = 30;
/// Gaps of more than [`GAP_DAYS`] days divide the days into groups. If the largest group has less than this share of
/// the requests, there are no stray requests, and all groups belong to the log.
const MIN_SPAN_SHARE: f64 = 0.99;

/// Seconds per day.
pub(super) const DAY_S: i64 = 86_400;
const HOUR_S: i64 = 3_600;
/// Nanoseconds per second.
pub(super) const NS_PER_S: i64 = 1_000_000_000;
/// Maximum number of intervals in a rate history (the request rate over time).
const MAX_STEPS: i64 = 2_000;
/// Possible lengths of the intervals of a rate history, in minutes; longer intervals are whole days.
const STEPS_MIN: [i64; 7] = [1, 5, 15, 60, 360, 720, 1_440];

/// Counts of requests by day, minute and second.
#[derive(Clone, Debug, Default)]
pub(super) struct Calendar {
    /// The time of the last request, in whole seconds since 1970.
    second: Option<i64>,
    days: Vec<Day>,
    day_places: HashMap<i64, usize, RandomState>,
    /// Index in `days` of the day of the last request. `usize::MAX` if this day is not counted, because [`MAX_DAYS`] is
    /// reached.
    day: usize,
    minute: usize,
    hours: Vec<Hour>,
    hour_places: HashMap<i64, usize, RandomState>,
    /// Index in `hours` of the last request's hour.
    hour: usize,
    /// Number of requests on days that are not counted by time, because [`MAX_DAYS`] is reached.
    pub uncounted_requests: u64,
    /// Number of requests in the busiest second.
    pub busiest_second: u64,
}

#[derive(Clone, Debug)]
struct Day {
    /// Number of the day, in days since 1970.
    number: i64,
    requests: u64,
    first_ns: i64,
    last_ns: i64,
    minutes: Box<[u32]>,
}

#[derive(Clone, Debug)]
struct Hour {
    /// Number of the hour, in hours since 1970.
    number: i64,
    requests: u64,
    seconds: Box<[u32]>,
}

/// The time range from the first request to the last, without stray requests.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Span {
    /// Time of the first request, in nanoseconds since 1970.
    pub first_ns: i64,
    /// Time of the last request, in nanoseconds since 1970.
    pub last_ns: i64,
    /// Number of requests within the span.
    pub requests: u64,
    /// Number of requests far before or after the span.
    pub stray_requests: u64,
}

/// Requests by hour of the day and by weekday, in the local time of a zone.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Week {
    /// Number of requests in each hour of the day: 24 values.
    pub by_hour: Vec<u64>,
    /// Number of requests on each day of the week: 7 values, Monday first.
    pub by_weekday: Vec<u64>,
    /// Mean rate in each hour of the week, in requests per second: 7 weekdays × 24 hours, Monday first.
    pub rates: Vec<Vec<f64>>,
}

/// Request rates over the time of the log, in intervals of equal length.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RateHistory {
    /// Start of the first interval, in seconds since 1970.
    pub from_s: i64,
    /// Length of each interval, in seconds.
    pub step_s: i64,
    /// Mean rate in each interval, in requests per second.
    pub rates: Vec<f64>,
}

impl Calendar {
    /// Adds a request; `second` is its time in whole seconds.
    #[inline]
    pub fn add(&mut self, time_ns: i64, second: i64) {
        // Most requests arrive in the same second as the previous request, whose counters are already selected.
        if self.second != Some(second) {
            self.select(second);
        }
        match self.days.get_mut(self.day) {
            Some(day) => day.add(time_ns, self.minute),
            None => self.uncounted_requests += 1,
        }
        let Some(hour) = self.hours.get_mut(self.hour) else { return };
        hour.requests += 1;
        if let Some(count) = hour.seconds.get_mut(second.rem_euclid(HOUR_S) as usize) {
            *count = count.saturating_add(1);
            self.busiest_second = self.busiest_second.max(u64::from(*count));
        }
    }

    /// The span of all requests except stray requests; `None` if there are no requests.
    pub fn span(&self) -> Option<Span> {
        let mut days: Vec<&Day> = self.days.iter().collect();
        days.sort_unstable_by_key(|day| day.number);
        let total: u64 = days.iter().map(|day| day.requests).sum();
        let groups = days.chunk_by(|a, b| b.number - a.number <= GAP_DAYS);
        let span = |days: &[&Day]| {
            let requests: u64 = days.iter().map(|day| day.requests).sum();
            let first_ns = days.first()?.first_ns;
            let last_ns = days.last()?.last_ns;
            Some(Span { first_ns, last_ns, requests, stray_requests: total - requests })
        };
        let main = groups.filter_map(span).max_by_key(|span| span.requests)?;
        let main = if (main.requests as f64) < MIN_SPAN_SHARE * total as f64 { span(&days)? } else { main };
        Some(self.without_strays(&days, main))
    }

    /// Returns the span without the stray requests at its start and end.
    fn without_strays(&self, days: &[&Day], span: Span) -> Span {
        let within = |minute: &(i64, u64)| (minute_of(span.first_ns)..=minute_of(span.last_ns)).contains(&minute.0);
        let minutes = || days.iter().flat_map(|day| day.minutes_with_requests()).filter(within);
        let Some(log) = strays::trim_strays(minutes, span.requests) else { return span };
        let mut trimmed =
            Span { requests: log.requests, stray_requests: span.stray_requests + span.requests - log.requests, ..span };
        if log.first_s > minute_of(span.first_ns) {
            trimmed.first_ns =
                self.seconds_of_minute(log.first_s).next().unwrap_or(log.first_s).saturating_mul(NS_PER_S);
        }
        if log.last_s < minute_of(span.last_ns) {
            let last_s = self.seconds_of_minute(log.last_s).last().unwrap_or(log.last_s + 59);
            trimmed.last_ns = last_s.saturating_mul(NS_PER_S);
        }
        trimmed
    }

    /// The seconds within a minute that have requests. The iterator is empty if no counts per second are kept for this
    /// hour.
    fn seconds_of_minute(&self, minute_s: i64) -> impl Iterator<Item = i64> {
        let hour = self.hour_places.get(&minute_s.div_euclid(HOUR_S)).and_then(|place| self.hours.get(*place));
        let seconds = hour.map_or(&[][..], |hour| &*hour.seconds);
        let first = usize::try_from(minute_s.rem_euclid(HOUR_S)).unwrap_or(0);
        let counted = (minute_s..).zip(seconds.get(first..first + 60).unwrap_or_default());
        counted.filter(|(_, count)| **count > 0).map(|(second, _)| second)
    }

    /// Number of requests in the busiest minute.
    pub fn busiest_minute(&self) -> u64 {
        self.days.iter().flat_map(|day| day.minutes.iter()).max().map_or(0, |count| u64::from(*count))
    }

    /// Request rates in at most [`MAX_STEPS`] intervals of whole minutes. Intervals of whole days begin at midnight in
    /// the zone.
    pub fn rate_history(&self, span: &Span, zone: &TimeZone) -> RateHistory {
        let first = span.first_ns.div_euclid(NS_PER_S);
        let last = span.last_ns.div_euclid(NS_PER_S);
        // Intervals are whole minutes, so seconds of the offset are dropped: before 1900, many offsets had seconds.
        let offset = offset_s(zone, first).div_euclid(60) * 60;
        let begin = |step_s: i64| (first + offset).div_euclid(step_s) * step_s - offset;
        let steps = |step_s: i64| (last - begin(step_s)).div_euclid(step_s) + 1;
        let step_s = STEPS_MIN.iter().map(|minutes| minutes * 60).find(|step_s| steps(*step_s) <= MAX_STEPS);
        let step_s = step_s.unwrap_or_else(|| ((last - first) / DAY_S / (MAX_STEPS - 1) + 1) * DAY_S);
        let mut counts = vec![0u64; usize::try_from(steps(step_s)).unwrap_or(0)];
        for (minute, count) in self.minutes() {
            let step = (minute - begin(step_s)).div_euclid(step_s);
            if let Some(sum) = usize::try_from(step).ok().and_then(|step| counts.get_mut(step)) {
                *sum += count;
            }
        }
        let rates = counts.iter().map(|count| *count as f64 / step_s as f64).collect();
        RateHistory { from_s: begin(step_s), step_s, rates }
    }

    /// Counts the requests of the span by hour of the day and by weekday, in the local time of `zone`.
    pub fn week(&self, span: &Span, zone: &TimeZone) -> Week {
        let from = minute_of(span.first_ns);
        let to = minute_of(span.last_ns) + 60;
        let offsets = Offsets::new(zone, from, to);
        let mut requests = [0u64; 168];
        for (minute, count) in self.minutes().filter(|(minute, _)| (from..to).contains(minute)) {
            requests[hour_of_week(minute + offsets.offset_at(minute))] += count;
        }
        let mut seconds = [0i64; 168];
        for (range, offset) in &offsets.ranges {
            let mut at = range.start + offset;
            while at < range.end + offset {
                let next = (at.div_euclid(HOUR_S) * HOUR_S + HOUR_S).min(range.end + offset);
                seconds[hour_of_week(at)] += next - at;
                at = next;
            }
        }
        let rate = |i: usize| if seconds[i] > 0 { requests[i] as f64 / seconds[i] as f64 } else { 0.0 };
        Week {
            by_hour: (0..24).map(|hour| requests.iter().skip(hour).step_by(24).sum()).collect(),
            by_weekday: requests.chunks(24).map(|day| day.iter().sum()).collect(),
            rates: (0..7).map(|day| (0..24).map(|hour| rate(day * 24 + hour)).collect()).collect(),
        }
    }

    /// Number of requests in each second of `range`; `None` unless all requests in this range are counted per second.
    pub fn counts_per_second(&self, range: Range<i64>) -> Option<Vec<u64>> {
        if range.end - range.start > MAX_HOURS as i64 * HOUR_S {
            return None;
        }
        let mut counts = vec![0; usize::try_from(range.end - range.start).ok()?];
        for hour in (range.start.div_euclid(HOUR_S)..=(range.end - 1).div_euclid(HOUR_S)).map(|hour| hour * HOUR_S) {
            let seconds = self.hour_places.get(&(hour / HOUR_S)).and_then(|place| self.hours.get(*place));
            let (seconds, known) = seconds.map_or((&[][..], 0), |hour| (&*hour.seconds, hour.requests));
            if known != self.requests_in_hour(hour) {
                return None;
            }
            for (second, count) in (hour..).zip(seconds).filter(|(second, _)| range.contains(second)) {
                counts[(second - range.start) as usize] = u64::from(*count);
            }
        }
        Some(counts)
    }

    /// Returns the first second and the number of requests of the busiest window. Windows are `seconds` long and start
    /// at whole multiples of `seconds`.
    pub fn busiest_window(&self, seconds: i64) -> Option<(i64, u64)> {
        let mut windows = HashMap::<i64, u64, RandomState>::default();
        for (minute, count) in self.minutes() {
            *windows.entry(minute.div_euclid(seconds.max(60))).or_default() += count;
        }
        let busiest = windows.into_iter().max_by_key(|(number, count)| (*count, -number));
        busiest.map(|(number, count)| (number * seconds.max(60), count))
    }

    /// All minutes with requests. For each minute, yields its first second and its number of requests.
    fn minutes(&self) -> impl Iterator<Item = (i64, u64)> {
        self.days.iter().flat_map(Day::minutes_with_requests)
    }

    /// Number of requests in the hour that begins at the second `from`.
    fn requests_in_hour(&self, from: i64) -> u64 {
        let day = self.day_places.get(&from.div_euclid(DAY_S)).and_then(|place| self.days.get(*place));
        let first = (from.rem_euclid(DAY_S) / 60) as usize;
        let minutes = day.and_then(|day| day.minutes.get(first..first + 60));
        minutes.unwrap_or(&[]).iter().map(|count| u64::from(*count)).sum()
    }

    /// Selects the counters for requests in this second: the day, the minute and the hour.
    fn select(&mut self, second: i64) {
        self.second = Some(second);
        let day = second.div_euclid(DAY_S);
        let hour = second.div_euclid(HOUR_S);
        self.minute = (second.rem_euclid(DAY_S) / 60) as usize;
        if self.days.get(self.day).is_none_or(|known| known.number != day) {
            self.day = match self.day_places.get(&day) {
                Some(place) => *place,
                None if self.days.len() >= MAX_DAYS => usize::MAX,
                None => {
                    self.days.push(Day::new(day));
                    self.day_places.insert(day, self.days.len() - 1);
                    self.days.len() - 1
                }
            };
        }
        if self.hours.get(self.hour).is_none_or(|known| known.number != hour) {
            self.hour = match self.hour_places.get(&hour) {
                Some(place) => *place,
                None => self.new_hour(hour),
            };
        }
    }

    /// Returns the index of a new hour. If there is no room, the new hour replaces the hour with the fewest requests.
    fn new_hour(&mut self, number: i64) -> usize {
        let mut place = self.hours.len();
        if place < MAX_HOURS {
            self.hours.push(Hour { number, requests: 0, seconds: vec![0; HOUR_S as usize].into() });
        } else {
            // The hour that was used last is kept, because the next lines of the log probably belong to this hour.
            let others = self.hours.iter().enumerate().filter(|(at, _)| *at != self.hour);
            place = others.min_by_key(|(_, hour)| hour.requests).map_or(0, |(at, _)| at);
            if let Some(hour) = self.hours.get_mut(place) {
                self.hour_places.remove(&hour.number);
                (hour.number, hour.requests) = (number, 0);
                hour.seconds.fill(0);
            }
        }
        self.hour_places.insert(number, place);
        place
    }
}

impl Day {
    fn new(number: i64) -> Day {
        Day { number, requests: 0, first_ns: i64::MAX, last_ns: i64::MIN, minutes: vec![0; 1_440].into() }
    }

    /// Adds a request in one of the day's minutes.
    #[inline]
    fn add(&mut self, time_ns: i64, minute: usize) {
        self.requests += 1;
        self.first_ns = self.first_ns.min(time_ns);
        self.last_ns = self.last_ns.max(time_ns);
        if let Some(count) = self.minutes.get_mut(minute) {
            *count = count.saturating_add(1);
        }
    }

    /// The minutes of the day that have requests. For each minute, yields its first second and its number of requests.
    fn minutes_with_requests(&self) -> impl DoubleEndedIterator<Item = (i64, u64)> {
        let first = self.number * DAY_S;
        let minutes = self.minutes.iter().enumerate().filter(|(_, count)| **count > 0);
        minutes.map(move |(minute, count)| (first + 60 * minute as i64, u64::from(*count)))
    }
}

/// Offsets of a time zone from UTC in seconds, each with the time range in which the offset is valid.
struct Offsets {
    ranges: Vec<(Range<i64>, i64)>,
}

impl Offsets {
    fn new(zone: &TimeZone, from: i64, to: i64) -> Offsets {
        let mut ranges = Vec::new();
        let mut start = from;
        let mut offset = offset_s(zone, from);
        if let Ok(first) = jiff::Timestamp::from_second(from) {
            for change in zone.following(first) {
                let at = change.timestamp().as_second();
                if at >= to {
                    break;
                }
                ranges.push((start..at, offset));
                (start, offset) = (at, i64::from(change.offset().seconds()));
            }
        }
        ranges.push((start..to, offset));
        Offsets { ranges }
    }

    fn offset_at(&self, second: i64) -> i64 {
        let place = self.ranges.partition_point(|(range, _)| range.end <= second);
        self.ranges.get(place).or(self.ranges.last()).map_or(0, |(_, offset)| *offset)
    }
}

/// The number of seconds by which local time in the zone is ahead of UTC. `second` is the time in seconds since 1970.
pub(super) fn offset_s(zone: &TimeZone, second: i64) -> i64 {
    let time = jiff::Timestamp::from_second(second);
    time.map_or(0, |time| i64::from(zone.to_offset(time).seconds()))
}

/// The first second of the minute that contains `time_ns`.
fn minute_of(time_ns: i64) -> i64 {
    time_ns.div_euclid(60 * NS_PER_S) * 60
}

/// The hour of the week: 0 for Monday 0:00, up to 167. `local_s` is local time, in seconds since 1970-01-01 00:00 local
/// time (a Thursday).
fn hour_of_week(local_s: i64) -> usize {
    (local_s.div_euclid(HOUR_S) + 3 * 24).rem_euclid(168) as usize
}

#[cfg(test)]
mod tests;
