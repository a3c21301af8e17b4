//! Computes a profile from entries in one pass and in bounded memory. The entries may be in any order.
//!
//! - `busy_hours`: the hours of the week that are regularly busy. `slow`: slow URLs and hours.
//! - `calendar`: requests by time. [`window`]: the busiest window. `bursts`, `hurst`: the arrivals in that window.
//! - [`sizes`], [`urls`], `popularity`, `kinds`, `histogram`: bytes, URLs, status and methods, durations.
//! - `distinct`: number of distinct URLs and clients. `robots`: requests of robots. [`sessions`], [`classes`].
//! - `notes`: warnings about the metrics of the profile.
//!
//! The peak window is the time window that the user specified. Without one, it is the busiest window that starts at a
//! whole multiple of its length, or the whole log if the log is not longer than a window. All metrics of the peak are
//! for the part of this window that the log covers.

mod bursts;
mod busy_hours;
mod calendar;
pub mod classes;
mod distinct;
mod gaps;
mod histogram;
mod hurst;
mod kinds;
mod notes;
mod options;
mod popularity;
mod robots;
pub mod sessions;
mod size_ranges;
pub mod sizes;
mod slow;
mod sparse_times;
pub mod urls;
pub mod window;

pub(crate) use distinct::mix;
use distinct::{DistinctCounter, fixed_hash};
pub use options::{ClassBy, Options, RobotFilter};
pub use size_ranges::{EMPTY_CLASS, SizeRanges};
pub use sizes::{SizeCount, SizeCounts};
pub use urls::{TopUrl, TopUrls};
pub use window::{KeyedRequests, Window};

use crate::read::{EntryDecision, ReadSummary};
use crate::{Entry, LogError};
use brimful_core::profile::{self as document, Arrivals, Peak, Profile, SecondCounts};
use bursts::Bursts;
use calendar::{Calendar, NS_PER_S, Span, offset_s};
use foldhash::fast::RandomState;
use gaps::Gaps;
use histogram::Histogram;
use jiff::tz::{Offset, TimeZone};
use kinds::StatusAndMethodCounts;
use notes::FieldCounts;
use robots::RobotDetector;
use sessions::Sessions;
use slow::SlowRequests;
use std::ops::Range;
use window::Windows;

/// Maximum number of URLs that are counted over the whole log.
const URLS: usize = 8_192;
const SECOND_NS: f64 = NS_PER_S as f64;
/// Maximum length of [`Arrivals::seconds`], the number of requests in each second.
const SERIES_S: usize = 3_600;

/// Builds a profile of the traffic from log entries.
#[derive(Clone, Debug)]
pub struct Profiler {
    options: Options,
    hasher: RandomState,
    key: String,
    requests: u64,
    bytes: u64,
    largest: u64,
    calendar: Calendar,
    windows: Windows,
    kinds: StatusAndMethodCounts,
    service_ns: Histogram,
    upstream_ns: Histogram,
    slow: SlowRequests,
    gaps: Gaps,
    urls: TopUrls,
    distinct_urls: DistinctCounter,
    distinct_clients: DistinctCounter,
    agents: RobotDetector,
    robots: document::Robots,
    sessions: Option<Sessions>,
    seen: FieldCounts,
}

impl Profiler {
    /// Creates an empty profiler.
    pub fn new(options: Options) -> Profiler {
        let hasher = RandomState::default();
        let policy = match options.robots {
            RobotFilter::Keep => "keep",
            RobotFilter::Drop => "drop",
            RobotFilter::Only => "only",
        };
        Profiler {
            windows: Windows::new(options.window_s, options.peak, hasher.clone()),
            urls: TopUrls::with_hasher(URLS, hasher.clone()),
            sessions: options.sessions.then(|| Sessions::new(options.session_gap_s, options.burst_gap_s)),
            robots: document::Robots { policy: policy.to_owned(), requests: 0, bytes: 0 },
            options,
            hasher,
            key: String::new(),
            requests: 0,
            bytes: 0,
            largest: 0,
            calendar: Calendar::default(),
            kinds: StatusAndMethodCounts::default(),
            service_ns: Histogram::default(),
            upstream_ns: Histogram::default(),
            slow: SlowRequests::default(),
            gaps: Gaps::default(),
            distinct_urls: DistinctCounter::default(),
            distinct_clients: DistinctCounter::default(),
            agents: RobotDetector::default(),
            seen: FieldCounts::default(),
        }
    }

    /// Adds a request. Returns `EntryDecision::FilteredOut` if the option for robots excludes this request.
    pub fn add(&mut self, entry: &Entry<'_>) -> EntryDecision {
        let bytes = entry.bytes.unwrap_or(0);
        let user_agent = fixed_hash(entry.user_agent);
        let is_robot = self.agents.is_robot(entry.user_agent, user_agent);
        if is_robot {
            self.robots.requests += 1;
            self.robots.bytes = self.robots.bytes.saturating_add(bytes);
        }
        let is_left_out = match self.options.robots {
            RobotFilter::Keep => false,
            RobotFilter::Drop => is_robot,
            RobotFilter::Only => !is_robot,
        };
        if is_left_out {
            return EntryDecision::FilteredOut;
        }
        self.requests += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        self.largest = self.largest.max(bytes);
        let second = entry.time_ns.div_euclid(NS_PER_S);
        self.seen.add(entry, second);
        self.calendar.add(entry.time_ns, second);
        self.kinds.add(entry);
        self.add_times(entry);
        let url = urls::url(entry.target);
        let hash = urls::hash_url(&self.hasher, url);
        let slot = self.urls.add_hashed(hash, url, entry);
        // The URL is new to the counters. Any other URL was added to the distinct URLs with an earlier request.
        if let Some((_, true)) = slot {
            self.distinct_urls.add(fixed_hash(url));
        }
        self.slow.add(slot, second, entry.service_ns);
        self.windows.add(entry, self.options.class_by.key(entry, &mut self.key), (url, hash));
        if !entry.client.is_empty() {
            let client = fixed_hash(entry.client);
            self.distinct_clients.add(client);
            if let Some(sessions) = &mut self.sessions {
                sessions.add_hashed(client, user_agent, entry.time_ns);
            }
        }
        EntryDecision::Accepted
    }

    /// Completes the profile, except for `command`, `brimful_version`, `workload` and `workload_arrivals_reason`.
    ///
    /// # Errors
    /// [`LogError::NoRequests`] if there was no request at all, or no request in the specified peak window.
    pub fn finish(mut self, read: &ReadSummary) -> Result<Profile, LogError> {
        let Some(span) = self.calendar.span() else { return Err(read.no_requests_error()) };
        let zone = self.options.zone.clone();
        let sizes = self.windows.sizes();
        let Some(window) = self.windows.take_busiest() else { return Err(no_peak(&self.options, &span)) };
        let window = &window;
        let seconds = self.seconds_of(window, &span);
        let peak = self.peak(window, &seconds);
        let peak_seconds = seconds.clone();
        let bursts =
            self.calendar.counts_per_second(seconds).map_or_else(Bursts::unknown, |counts| bursts::measure(&counts));
        let span_s = self.span_s(&span);
        let notes = notes::notes(&self, read, &span, window, &bursts);
        let (classes, classes_by) = classes::classes(window, &self.options);
        let times = |histogram: &Histogram| (!histogram.is_empty()).then(|| histogram.to_times(SECOND_NS));
        let shares = read.formats.shares();
        Ok(Profile {
            schema: document::SCHEMA.to_owned(),
            sources: read.sources.clone(),
            format: shares.first().map(|format| format.name.clone()).unwrap_or_default(),
            formats: shares,
            format_sample: read.formats.sample(),
            lines: read.lines.clone(),
            from: rfc3339(span.first_ns, &zone),
            to: rfc3339(span.last_ns, &zone),
            timezone: zone_name(&zone),
            requests: self.requests,
            bytes: self.bytes,
            arrivals: self.arrivals(&span, span_s, &peak_seconds),
            peak,
            status: self.kinds.status(),
            methods: self.kinds.methods(),
            zero_length: self.kinds.zero_length(),
            sizes: sizes::size_metrics(&sizes, self.largest),
            service_s: times(&self.service_ns),
            upstream_s: times(&self.upstream_ns),
            slowest_hour: self.slow.slowest_hour(|time_ns| rfc3339(time_ns, &zone)),
            slowest_urls: self.slow.slowest_urls(&self.urls),
            interarrival_s: times(&self.gaps.finish()),
            classes,
            classes_by,
            dispersion: bursts.dispersion,
            burstiness: bursts.burstiness,
            hurst: bursts.hurst,
            hurst_missing: bursts.hurst_missing,
            unique_urls: self.distinct_urls.estimate(),
            unique_clients: self.distinct_clients.estimate(),
            unique_error: distinct::RELATIVE_ERROR,
            popularity: popularity::measure(&self.urls, self.requests),
            robots: self.robots,
            sessions: self.sessions.and_then(|sessions| sessions.finish(span_s)),
            notes,
            ..Profile::default()
        })
    }

    fn add_times(&mut self, entry: &Entry<'_>) {
        if let Some(service_ns) = entry.service_ns {
            self.service_ns.add(service_ns);
        }
        if let Some(upstream_ns) = entry.upstream_ns {
            self.upstream_ns.add(upstream_ns);
        }
        self.gaps.add(entry.time_ns);
    }

    /// Length of the time span that the log covers, in seconds. If timestamps are in whole seconds, the span ends at
    /// the end of the last second.
    fn span_s(&self, span: &Span) -> f64 {
        let resolution = if self.seen.has_subsecond_times() { 0.0 } else { 1.0 };
        (span.last_ns.abs_diff(span.first_ns) as f64 / SECOND_NS + resolution).max(1.0)
    }

    fn arrivals(&self, span: &Span, span_s: f64, peak_seconds: &Range<i64>) -> Arrivals {
        let zone = &self.options.zone;
        let rate_history = self.calendar.rate_history(span, zone);
        let week = self.calendar.week(span, zone);
        Arrivals {
            mean_rate: span.requests as f64 / span_s,
            busiest_second: self.calendar.busiest_second,
            busiest_minute: self.calendar.busiest_minute(),
            from: rfc3339(rate_history.from_s.saturating_mul(NS_PER_S), zone),
            step_s: rate_history.step_s.unsigned_abs(),
            rates: rate_history.rates,
            busy_hours: busy_hours::find_busy_hours(&week.rates, span_s),
            seconds: self.busiest_seconds(peak_seconds),
            by_hour: week.by_hour,
            by_weekday: week.by_weekday,
            by_weekday_and_hour: week.rates,
        }
    }

    /// The number of requests in each second, for at most [`SERIES_S`] seconds around the busiest second of the peak
    /// window. `None` if these numbers are unknown.
    fn busiest_seconds(&self, peak: &Range<i64>) -> Option<SecondCounts> {
        let counts = self.calendar.counts_per_second(peak.clone())?;
        let busiest = (0..counts.len()).max_by_key(|second| (counts[*second], std::cmp::Reverse(*second)))?;
        let from = busiest.saturating_sub(SERIES_S / 2).min(counts.len().saturating_sub(SERIES_S));
        let shown = counts.get(from..(from + SERIES_S).min(counts.len()))?;
        let first = peak.start + i64::try_from(from).ok()?;
        Some(SecondCounts { from: rfc3339(first.saturating_mul(NS_PER_S), &self.options.zone), counts: shown.to_vec() })
    }

    /// The whole seconds of the window that the log covers. If the window contains only stray requests (far away from
    /// all others), returns all seconds of the window.
    fn seconds_of(&self, window: &Window, span: &Span) -> Range<i64> {
        let from = window.from_ns.div_euclid(NS_PER_S);
        let to = from.saturating_add_unsigned(window.seconds);
        let first = span.first_ns.div_euclid(NS_PER_S);
        let last = span.last_ns.div_euclid(NS_PER_S);
        let reached = from.max(first)..to.min(last + 1);
        if reached.is_empty() { from..to } else { reached }
    }

    fn peak(&self, window: &Window, seconds: &Range<i64>) -> Peak {
        let length = (seconds.end - seconds.start).max(1).unsigned_abs();
        Peak {
            from: rfc3339(seconds.start.saturating_mul(NS_PER_S), &self.options.zone),
            seconds: length,
            rate: window.requests as f64 / length as f64,
            requests: window.requests,
            chosen_by_user: self.options.peak.is_some(),
        }
    }
}

fn no_peak(options: &Options, span: &Span) -> LogError {
    let show = |time_ns: i64| rfc3339(time_ns, &options.zone);
    let (from, to) = options.peak.unwrap_or_default();
    LogError::NoRequests(format!(
        "no request lies in the peak window from {} to {}: the log has requests from {} to {}",
        show(from),
        show(to),
        show(span.first_ns),
        show(span.last_ns)
    ))
}

/// Formats a time in a time zone as RFC 3339: `2026-03-01T14:00:00+01:00`.
fn rfc3339(time_ns: i64, zone: &TimeZone) -> String {
    let Ok(time) = jiff::Timestamp::from_nanosecond(i128::from(time_ns)) else { return String::new() };
    let offset = zone.to_offset(time);
    if offset == Offset::UTC { time.to_string() } else { time.display_with_offset(offset).to_string() }
}

/// The name of a zone, such as `Europe/Berlin`, `UTC` or `+01:00`.
fn zone_name(zone: &TimeZone) -> String {
    let offset = || {
        let seconds = offset_s(zone, 0);
        let sign = if seconds < 0 { '-' } else { '+' };
        let minutes = seconds.abs() / 60;
        format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60)
    };
    zone.iana_name().map_or_else(offset, str::to_owned)
}
