//! Warnings about the metrics of a profile.

use super::Profiler;
use super::bursts::Bursts;
use super::calendar::{NS_PER_S, Span};
use super::window::Window;
use crate::Entry;
use crate::read::ReadSummary;
use brimful_core::quantity::{count, number, percent};

/// Minimum share of the lines or requests that a problem must affect to be reported.
const REPORTED_SHARE: f64 = 0.01;
/// Minimum number of requests, or of client addresses, for reporting a problem. With fewer, the problem may be a
/// coincidence.
const MIN_COUNT: u64 = 30;
/// Minimum ratio of clients (pairs of address and `User-Agent`) to addresses for the note that agents may be forged.
const AGENTS_PER_CLIENT: u64 = 3;
const HOUR_NS: u64 = 3_600 * NS_PER_S as u64;
const DAY_NS: i64 = 86_400 * NS_PER_S;

/// Counts from which the warnings of a profile are derived.
#[derive(Clone, Debug)]
pub(super) struct FieldCounts {
    /// Bit set of the seconds within a minute (0 to 59) that occur in timestamps.
    seconds: u64,
    /// Bit set of the minutes within an hour (0 to 59) that occur in timestamps.
    minutes: u64,
    fine: u64,
    with_bytes: u64,
    with_agent: u64,
    /// Number of requests with timestamps after `tomorrow_ns`, which are in the future.
    future: u64,
    tomorrow_ns: i64,
}

impl Default for FieldCounts {
    fn default() -> Self {
        let now = i64::try_from(jiff::Timestamp::now().as_nanosecond()).unwrap_or(i64::MAX);
        let tomorrow_ns = now.saturating_add(DAY_NS);
        Self { seconds: 0, minutes: 0, fine: 0, with_bytes: 0, with_agent: 0, future: 0, tomorrow_ns }
    }
}

impl FieldCounts {
    /// Adds a request; `second` is its time in whole seconds.
    #[inline]
    pub fn add(&mut self, entry: &Entry<'_>, second: i64) {
        let second = second.rem_euclid(3_600);
        self.seconds |= 1 << (second % 60);
        self.minutes |= 1 << (second / 60);
        self.fine += u64::from(entry.has_subsecond_time);
        self.with_bytes += u64::from(entry.bytes.is_some());
        self.with_agent += u64::from(!entry.user_agent.is_empty());
        self.future += u64::from(entry.time_ns > self.tomorrow_ns);
    }

    /// Whether any timestamp has fractions of a second.
    pub fn has_subsecond_times(&self) -> bool {
        self.fine > 0
    }
}

/// Returns the notes, one sentence each. Notes about the whole log come first.
pub(super) fn notes(
    profiler: &Profiler,
    read: &ReadSummary,
    span: &Span,
    window: &Window,
    bursts: &Bursts,
) -> Vec<String> {
    let notes = [
        malformed(read),
        out_of_order(read),
        strays(span),
        left_out(profiler),
        future(profiler),
        short(profiler, span),
        same_stamps(profiler, span),
        whole_seconds(profiler),
        no_sizes(profiler),
        revisited_window(profiler, window),
        sessions(profiler),
        hurst(bursts),
    ];
    let mut notes: Vec<String> = notes.into_iter().flatten().collect();
    // Notes on how lines were read come before all others.
    notes.splice(0..0, read.formats.remarks());
    notes
}

fn malformed(read: &ReadSummary) -> Option<String> {
    let lines = &read.lines;
    let share = lines.malformed as f64 / lines.read.max(1) as f64;
    (share > REPORTED_SHARE).then(|| {
        let malformed = count(lines.malformed);
        let share = percent(share);
        format!("{malformed} lines ({share}) are malformed and in no figure: check the format.")
    })
}

fn out_of_order(read: &ReadSummary) -> Option<String> {
    let share = read.lines.out_of_order as f64 / read.lines.parsed.max(1) as f64;
    (share > REPORTED_SHARE).then(|| {
        format!(
                        "{} of the requests come before one above them in the log: servers write a line when the response ends. Times \
                         between requests leave these out.",
            percent(share)
        )
    })
}

fn strays(span: &Span) -> Option<String> {
    (span.stray_requests > 0).then(|| {
        let strays = count(span.stray_requests);
        format!(
            "Requests far before or after all others: {strays}; the span and its rates leave them out. A download that \
                         began long before the log, or a wrong clock, leaves such stamps."
        )
    })
}

fn left_out(profiler: &Profiler) -> Option<String> {
    let left_out = profiler.calendar.uncounted_requests;
    (left_out > 0)
        .then(|| format!("Requests on more days than can be counted: {}; they are in no rate.", count(left_out)))
}

fn future(profiler: &Profiler) -> Option<String> {
    let future = profiler.seen.future;
    (future > 0).then(|| format!("Requests in the future: {}; check the clock of the server.", count(future)))
}

fn short(profiler: &Profiler, span: &Span) -> Option<String> {
    let seconds = profiler.span_s(span);
    (seconds < 60.0).then(|| format!("The log spans {} s only: its rates are those of a moment.", number(seconds)))
}

/// The note for a log whose timestamps all have the same second or the same minute, as in some published logs.
fn same_stamps(profiler: &Profiler, span: &Span) -> Option<String> {
    let seen = &profiler.seen;
    let busiest = profiler.calendar.busiest_second;
    let requests = profiler.requests;
    let length = span.last_ns.abs_diff(span.first_ns);
    let only = |bits: u64| (bits.count_ones() == 1).then(|| bits.trailing_zeros());
    if requests < MIN_COUNT {
        return None;
    }
    let rates = "rates and bursts over shorter times are not those of the site";
    if busiest == requests {
        return Some(format!(
            "All {} requests are in one second: check that the stamps are what they seem.",
            count(requests)
        ));
    }
    if let Some(minute) = only(seen.minutes).filter(|_| length > 2 * HOUR_NS) {
        return Some(format!("All stamps are in minute {minute:02} of their hour, as if made coarse: {rates}."));
    }
    let second = only(seen.seconds).filter(|_| length > HOUR_NS)?;
    Some(format!("All stamps are at second {second:02} of their minute, as if made coarse: {rates}."))
}

fn whole_seconds(profiler: &Profiler) -> Option<String> {
    let note = "Stamps are whole seconds: times between requests are too, and bursts shorter than one cannot be seen.";
    (!profiler.seen.has_subsecond_times()).then(|| note.to_owned())
}

fn no_sizes(profiler: &Profiler) -> Option<String> {
    let note = "The log does not say how large answers are: all are taken as empty.";
    (profiler.seen.with_bytes == 0 && profiler.bytes == 0).then(|| note.to_owned())
}

/// The note for a log that is so far out of order that requests of a window came after the window was dropped from
/// memory. The window that is reported as the peak may then not be the busiest.
fn revisited_window(profiler: &Profiler, window: &Window) -> Option<String> {
    // The calendar has counts per minute for the whole log, so it can check only windows of whole minutes.
    if profiler.options.peak.is_some() || !window.seconds.is_multiple_of(60) {
        return None;
    }
    let (_, busiest) = profiler.calendar.busiest_window(i64::try_from(window.seconds).ok()?)?;
    (busiest > window.requests).then(|| {
        format!(
            "The log is not in the order of time: the peak window shown has {} requests, but the busiest one has {}.",
            count(window.requests),
            count(busiest)
        )
    })
}

fn sessions(profiler: &Profiler) -> Option<String> {
    let sessions = profiler.sessions.as_ref()?;
    let clients = sessions.clients();
    let addresses = profiler.distinct_clients.estimate();
    if clients > 0 && profiler.seen.with_agent == 0 {
        let note = "The log has no agents: clients with one address are one, so sessions are fewer and longer.";
        return Some(note.to_owned());
    }
    (addresses >= MIN_COUNT && clients >= AGENTS_PER_CLIENT * addresses).then(|| {
        format!(
            "{} addresses have {} agents: either many clients share an address, or agents are forged and sessions are \
             fewer and longer than shown.",
            count(addresses),
            count(clients)
        )
    })
}

fn hurst(bursts: &Bursts) -> Option<String> {
    let note = "The Hurst parameter is 1 or more: the rate itself changes in the peak window, so choose a shorter one.";
    bursts.hurst.filter(|hurst| hurst.value >= 1.0).map(|_| note.to_owned())
}
