//! Replays a log: converts its requests into calls, each with a due time, a method and a path.
//!
//! The gaps between calls are the gaps in the log, divided by the speed. A timestamp in whole seconds does not show the
//! time of the request within its second. `spread` chooses this time: either like the finer timestamps of the same
//! logs, or at equal distances.
//!
//! Servers write lines when responses end, so lines are slightly out of order. They are sorted within
//! [`Options::window_ns`]. `timeline` identifies requests that cannot be sorted: requests that are later in the log
//! than their timestamp by more than this window, and requests whose timestamp is far ahead of its neighbours. These
//! requests are due at once, and are counted. Pauses longer than [`Options::max_gap_ns`] are shortened to that length.
//!
//! Memory is bounded by the number of requests within `window_ns`, and by [`MAX_BUFFERED_REQUESTS`] requests.

mod spread;
mod target;
mod timeline;

use crate::fileset::{self, rounded_size};
use crate::{Entry, LogError};
use spread::Spread;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet, VecDeque};
use std::path::PathBuf;
use timeline::{LOOK_AHEAD, StampKind, Timeline};

pub use target::{PathRule, requestable_path};

/// Names of the classes of replayed calls. A call's class is determined by the status of the logged response.
pub const STATUS_CLASSES: [&str; 6] = ["2xx", "304", "3xx", "4xx", "5xx", "other"];
/// Maximum number of requests that are kept in memory for sorting.
pub const MAX_BUFFERED_REQUESTS: usize = 100_000;
const SECOND_NS: i64 = 1_000_000_000;

/// Options of a replay.
#[derive(Clone, Debug)]
pub struct Options {
    /// Speed of the replay: the gaps between requests are divided by this factor.
    pub speed: f64,
    /// Calls per second at a constant rate; `None` to use the log's own gaps.
    pub constant_rate: Option<f64>,
    /// Maximum time by which a request may be out of order and is still sorted, in nanoseconds of the log's time.
    pub window_ns: i64,
    /// The longest pause between two calls, in nanoseconds of the replay. Longer pauses are shortened to this length;
    /// `None` if no pause is shortened.
    pub max_gap_ns: Option<u64>,
    /// Methods that are sent. Requests with other methods are not replayed.
    pub methods: Vec<String>,
    /// Rules that replace the beginnings of paths.
    pub path_rules: Vec<PathRule>,
    /// A document root in which a file of each response's size is created. Calls then request these files instead of
    /// the log's paths.
    pub fileset: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            speed: 1.0,
            constant_rate: None,
            window_ns: 5 * SECOND_NS,
            max_gap_ns: None,
            methods: ["GET", "HEAD"].map(str::to_owned).to_vec(),
            path_rules: Vec::new(),
            fileset: None,
        }
    }
}

/// A call (an HTTP request and its response) of a replay, with its due time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Due time of the call, in nanoseconds after the first call.
    pub due_ns: u64,
    /// Index of the call's class in [`STATUS_CLASSES`].
    pub class: u16,
    /// Method of the call.
    pub method: String,
    /// Path and query, with only characters that are valid in a request.
    pub path: String,
    /// Whether the log's response was 304 (Not Modified); the call is then sent with `If-None-Match: *`.
    pub is_not_modified: bool,
}

/// Numbers of calls, requests and pauses of a replay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Number of calls created so far.
    pub calls: u64,
    /// Number of requests that were not replayed because of their methods.
    pub other_methods: u64,
    /// Number of requests that were not replayed because they have no path that can be requested.
    pub requests_without_path: u64,
    /// Number of requests whose timestamps were too far behind the preceding lines to be sorted. Their calls were due
    /// at once.
    pub late_timestamps: u64,
    /// Number of requests whose timestamps were far ahead of their neighbours. Their calls were due at once.
    pub early_timestamps: u64,
    /// Number of times that the log's clock was set back permanently. The replay continues without a pause.
    pub clock_setbacks: u64,
    /// The longest pause between two calls, in nanoseconds of the replay.
    pub longest_pause_ns: u64,
    /// Number of pauses shortened to [`Options::max_gap_ns`].
    pub shortened_pauses: u64,
    /// Total time by which pauses were shortened, in nanoseconds of the replay.
    pub removed_pause_ns: u64,
}

/// Converts the entries of a log into calls to send.
#[derive(Debug)]
pub struct Replayer {
    options: Options,
    /// Requests whose timestamps are not classified yet, in the order of the log.
    unjudged: VecDeque<PendingRequest>,
    timeline: Timeline,
    held: BinaryHeap<Reverse<PendingRequest>>,
    /// Number of requests added so far.
    sequence: u64,
    /// Log time of the first call, in nanoseconds since 1970.
    first_ns: Option<i64>,
    last_ns: i64,
    /// Due time of the latest call, in nanoseconds after the first call.
    last_due_ns: u64,
    created_sizes: HashSet<u64>,
    spread: Spread,
    summary: Summary,
}

/// A request that waits to be sorted. Requests are ordered by time. At equal times, timestamps in whole seconds come
/// before finer timestamps. Requests that are equal in both keep the order of the log.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct PendingRequest {
    time_ns: i64,
    has_subsecond_time: bool,
    sequence: u64,
    /// Whether the timestamp had whole seconds, and the time within the second has already been chosen by `spread`.
    is_placed: bool,
    class: u16,
    method: String,
    path: String,
}

impl Replayer {
    /// Creates a replayer without requests.
    pub fn new(options: Options) -> Replayer {
        Replayer {
            timeline: Timeline::new(options.window_ns),
            options,
            unjudged: VecDeque::new(),
            held: BinaryHeap::new(),
            sequence: 0,
            first_ns: None,
            last_ns: i64::MIN,
            last_due_ns: 0,
            created_sizes: HashSet::new(),
            spread: Spread::default(),
            summary: Summary::default(),
        }
    }

    /// Adds the next entry of the log. Passes all calls that no later entry can precede to `emit`, until `emit` returns
    /// `false`. Returns whether `emit` accepts more calls, and whether the entry becomes a call.
    ///
    /// # Errors
    /// Returns an error if a file of the fileset cannot be created.
    pub fn add(&mut self, entry: &Entry<'_>, emit: &mut dyn FnMut(Call) -> bool) -> Result<(bool, bool), LogError> {
        let Some(held) = self.pending_request(entry)? else { return Ok((true, false)) };
        self.unjudged.push_back(held);
        let wanted = self.unjudged.len() <= LOOK_AHEAD || self.judge_next(emit);
        Ok((wanted, true))
    }

    /// The counts so far.
    pub fn summary(&self) -> Summary {
        self.summary
    }

    /// Passes all remaining calls to `emit`. Returns the counts.
    pub fn finish(mut self, emit: &mut dyn FnMut(Call) -> bool) -> Summary {
        while !self.unjudged.is_empty() {
            if !self.judge_next(emit) {
                return self.summary;
            }
        }
        self.emit_until(i64::MAX, emit);
        self.summary
    }

    /// Classifies the timestamp of the oldest unclassified request by the requests that follow. Passes all calls that
    /// no later request can precede to `emit`.
    fn judge_next(&mut self, emit: &mut dyn FnMut(Call) -> bool) -> bool {
        let Some(next) = self.unjudged.pop_front() else { return true };
        let following = self.unjudged.iter().map(|held| held.time_ns);
        let sorted_ns = self.first_ns.map(|_| self.last_ns);
        let place = self.timeline.classify_stamp(next.time_ns, following, sorted_ns);
        self.summary.clock_setbacks = self.timeline.clock_setbacks;
        let time_ns = match place {
            StampKind::Regular(time_ns) => time_ns,
            StampKind::Behind => {
                self.summary.late_timestamps += 1;
                return emit(self.due_at_once(next));
            }
            StampKind::Ahead => {
                self.summary.early_timestamps += 1;
                return emit(self.due_at_once(next));
            }
        };
        self.held.push(Reverse(PendingRequest { time_ns, ..next }));
        self.emit_until(self.timeline.newest_ns().saturating_sub(self.options.window_ns), emit)
    }

    fn pending_request(&mut self, entry: &Entry<'_>) -> Result<Option<PendingRequest>, LogError> {
        let Some(path) = requestable_path(entry.target) else {
            self.summary.requests_without_path += 1;
            return Ok(None);
        };
        let method = String::from_utf8_lossy(entry.method).into_owned();
        if !self.options.methods.contains(&method) {
            self.summary.other_methods += 1;
            return Ok(None);
        }
        let path = match self.options.fileset.clone() {
            Some(root) => self.file(&root, entry.bytes.unwrap_or(0))?,
            None => PathRule::apply(&self.options.path_rules, path),
        };
        self.sequence += 1;
        let time_ns = entry.time_ns;
        let has_subsecond_time = entry.has_subsecond_time;
        let sequence = self.sequence;
        let class = class_of_status(entry.status);
        Ok(Some(PendingRequest { time_ns, has_subsecond_time, sequence, is_placed: false, class, method, path }))
    }

    /// Returns the path of a file of about `bytes` bytes under `root`. Creates the file if it does not exist yet.
    fn file(&mut self, root: &std::path::Path, bytes: u64) -> Result<String, LogError> {
        let bytes = rounded_size(bytes);
        let path = format!("/brimful/{bytes}");
        if self.created_sizes.insert(bytes) {
            fileset::create_file(&root.join(&path[1..]), bytes)?;
        }
        Ok(path)
    }

    /// Passes the calls of all requests before `horizon_ns` to `emit`. Requests with the same timestamp in whole
    /// seconds are passed on only if the whole second is before `horizon_ns`.
    fn emit_until(&mut self, horizon_ns: i64, emit: &mut dyn FnMut(Call) -> bool) -> bool {
        while let Some(Reverse(next)) = self.held.peek() {
            let time_ns = next.time_ns;
            let has_subsecond_time = next.has_subsecond_time;
            let ends_ns = if has_subsecond_time { time_ns } else { time_ns.saturating_add(SECOND_NS) };
            if ends_ns > horizon_ns && self.held.len() <= MAX_BUFFERED_REQUESTS {
                return true;
            }
            if !has_subsecond_time {
                self.place_in_second(time_ns);
            } else if let Some(Reverse(held)) = self.held.pop() {
                if !held.is_placed {
                    self.spread.record_stamp(time_ns);
                }
                if !emit(self.call(held)) {
                    return false;
                }
            }
        }
        true
    }

    /// Chooses a time within the second for each request whose timestamp, in whole seconds, is `second_ns`.
    fn place_in_second(&mut self, second_ns: i64) {
        let mut same = Vec::new();
        while self.held.peek().is_some_and(|Reverse(held)| held.time_ns == second_ns && !held.has_subsecond_time) {
            same.extend(self.held.pop().map(|Reverse(held)| held));
        }
        let request_times = self.spread.request_times(second_ns, same.len());
        for (held, place) in same.into_iter().zip(request_times) {
            let time_ns = second_ns.saturating_add(place);
            self.held.push(Reverse(PendingRequest { time_ns, has_subsecond_time: true, is_placed: true, ..held }));
        }
    }

    /// Creates the call of a sorted request. It is due after the previous call by the gap in the log, divided by the
    /// speed.
    fn call(&mut self, held: PendingRequest) -> Call {
        let time_ns = held.time_ns;
        let first_ns = *self.first_ns.get_or_insert(time_ns);
        if time_ns < self.last_ns {
            self.summary.late_timestamps += 1;
        }
        self.last_ns = self.last_ns.max(time_ns);
        let logged_ns = (self.last_ns.saturating_sub(first_ns).max(0) as f64 / self.options.speed) as u64;
        let mut gap_ns = logged_ns.saturating_sub(self.summary.removed_pause_ns).saturating_sub(self.last_due_ns);
        if let Some(max_gap_ns) = self.options.max_gap_ns
            && gap_ns > max_gap_ns
        {
            self.summary.shortened_pauses += 1;
            self.summary.removed_pause_ns += gap_ns - max_gap_ns;
            gap_ns = max_gap_ns;
        }
        self.summary.longest_pause_ns = self.summary.longest_pause_ns.max(gap_ns);
        self.last_due_ns = self.last_due_ns.saturating_add(gap_ns);
        self.due_at_once(held)
    }

    /// Creates a call that is due at the same time as the latest call. In a replay at a constant rate, it is due one
    /// interval later than the latest call.
    fn due_at_once(&mut self, held: PendingRequest) -> Call {
        let due_ns = match self.options.constant_rate {
            Some(rate) => (self.summary.calls as f64 / rate * 1e9) as u64,
            None => self.last_due_ns,
        };
        self.summary.calls += 1;
        let is_not_modified = STATUS_CLASSES[usize::from(held.class)] == "304";
        Call { due_ns, class: held.class, method: held.method, path: held.path, is_not_modified }
    }
}

fn class_of_status(status: u16) -> u16 {
    match status {
        200..300 => 0,
        304 => 1,
        300..400 => 2,
        400..500 => 3,
        500..600 => 4,
        _ => 5,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(second: i64, target: &str) -> Entry<'_> {
        Entry {
            time_ns: second * SECOND_NS,
            method: b"GET",
            target: target.as_bytes(),
            status: 200,
            ..Entry::default()
        }
    }

    fn replayed(entries: &[Entry<'_>], options: Options) -> (Vec<Call>, Summary) {
        let mut calls = Vec::new();
        let mut replayer = Replayer::new(options);
        let mut emit = |call| {
            calls.push(call);
            true
        };
        for entry in entries {
            replayer.add(entry, &mut emit).unwrap();
        }
        let summary = replayer.finish(&mut emit);
        (calls, summary)
    }

    fn due_ms(calls: &[Call]) -> Vec<u64> {
        calls.iter().map(|call| call.due_ns / 1_000_000).collect()
    }

    #[test]
    fn those_of_a_second_are_spread_over_it() {
        let log = [entry(100, "/a"), entry(100, "/b"), entry(101, "/c"), entry(103, "/d"), entry(103, "/e")];
        let (calls, summary) = replayed(&log, Options::default());
        // Two requests in a second must be due at 0.25 s and 0.75 s within the second, and a single request at 0.5 s.
        // Due times are relative to the first call.
        assert_eq!(due_ms(&calls), [0, 500, 1250, 3000, 3500]);
        assert_eq!(summary, Summary { calls: 5, longest_pause_ns: 1_750_000_000, ..Summary::default() });
        let (calls, _) = replayed(&log, Options { speed: 2.0, ..Options::default() });
        assert_eq!(due_ms(&calls), [0, 250, 625, 1500, 1750]);
        let (calls, _) = replayed(&log, Options { constant_rate: Some(10.0), ..Options::default() });
        assert_eq!(due_ms(&calls), [0, 100, 200, 300, 400]);
    }

    #[test]
    fn whole_seconds_take_their_places_among_finer_ones() {
        let fine = |ms: i64| Entry { time_ns: ms * 1_000_000, has_subsecond_time: true, ..entry(0, "/fine") };
        let log = [fine(1000), entry(1, "/a"), entry(1, "/b"), fine(1400), fine(1900), entry(2, "/c"), fine(2600)];
        let (calls, summary) = replayed(&log, Options::default());
        assert_eq!(due_ms(&calls), [0, 250, 400, 750, 900, 1500, 1600]);
        assert_eq!((summary.late_timestamps, summary.calls), (0, 7));
        let paths: Vec<&str> = calls.iter().map(|call| call.path.as_str()).collect();
        assert_eq!(paths, ["/fine", "/a", "/fine", "/b", "/fine", "/c", "/fine"]);
    }

    #[test]
    fn whole_seconds_come_as_finer_ones_do() {
        // Each second has ten pairs of fine timestamps, 2 ms apart, and ten requests with a timestamp in whole seconds.
        let fine = (0..400).map(|i| (i / 2) * 100 + (i % 2) * 2);
        let fine = fine.map(|ms| Entry { time_ns: ms * 1_000_000, has_subsecond_time: true, ..entry(0, "/fine") });
        let coarse = (0..200).map(|i| entry(i / 10, "/coarse"));
        let mut log: Vec<Entry<'_>> = fine.chain(coarse).collect();
        log.sort_by_key(|entry| entry.time_ns);
        let (calls, summary) = replayed(&log, Options::default());
        assert_eq!((summary.late_timestamps, summary.calls), (0, 600));
        let due: Vec<u64> = calls.iter().filter(|call| call.path == "/coarse").map(|call| call.due_ns).collect();
        // From the third second on, there are at least `MIN_FINE_STAMPS` fine timestamps, so the requests with
        // timestamps in whole seconds come in pairs, too.
        let close = due[20..].windows(2).filter(|pair| pair[1] - pair[0] < 10_000_000).count();
        assert!((70..=110).contains(&close), "{close} of 180 calls are close to the previous call");
    }

    #[test]
    fn lines_out_of_order_are_sorted_as_far_as_they_may_be() {
        let fine = |ms: i64, target: &'static str| Entry {
            time_ns: ms * 1_000_000,
            has_subsecond_time: true,
            ..entry(0, target)
        };
        let log = [fine(1000, "/a"), fine(3000, "/c"), fine(2000, "/b"), fine(20_000, "/e"), fine(4000, "/late")];
        let (calls, summary) = replayed(&log, Options::default());
        let paths: Vec<&str> = calls.iter().map(|call| call.path.as_str()).collect();
        assert_eq!(paths, ["/a", "/b", "/c", "/late", "/e"], "the late request must be sorted before the last");
        assert_eq!(summary.late_timestamps, 0);
        let log = [fine(1000, "/a"), fine(20_000, "/b"), fine(30_000, "/c"), fine(2000, "/late"), fine(31_000, "/d")];
        let (calls, summary) = replayed(&log, Options::default());
        assert_eq!((due_ms(&calls), summary.late_timestamps), (vec![0, 19_000, 19_000, 29_000, 30_000], 1));
    }

    /// Ten requests per second for 30 s, with timestamps in whole seconds.
    fn thirty_seconds() -> Vec<Entry<'static>> {
        (0..300).map(|line| entry(10_000 + line / 10, "/a")).collect()
    }

    fn lasts_s(calls: &[Call]) -> u64 {
        calls.iter().map(|call| call.due_ns).max().unwrap().div_ceil(1_000_000_000)
    }

    #[test]
    fn one_early_stamp_does_not_stall_a_replay() {
        for at in [0, 5, 150, 299] {
            let mut log = thirty_seconds();
            log[at].time_ns -= 3_000 * SECOND_NS;
            let (calls, summary) = replayed(&log, Options::default());
            assert_eq!((calls.len(), summary.late_timestamps, lasts_s(&calls)), (300, 1, 30), "line {at}");
            assert!(calls.is_sorted_by_key(|call| call.due_ns));
        }
    }

    #[test]
    fn a_stamp_of_2038_does_not_stall_a_replay() {
        for at in [0, 5, 150, 299] {
            let mut log = thirty_seconds();
            log[at].time_ns = 2_147_483_647 * SECOND_NS;
            let (calls, summary) = replayed(&log, Options::default());
            assert_eq!(
                (calls.len(), summary.early_timestamps, summary.late_timestamps, lasts_s(&calls)),
                (300, 1, 0, 30),
                "line {at}"
            );
        }
    }

    #[test]
    fn pauses_are_cut_to_the_longest_that_is_wanted() {
        let fine = |ms: i64| Entry { time_ns: ms * 1_000_000, has_subsecond_time: true, ..entry(0, "/a") };
        let log = [fine(0), fine(1_000), fine(61_000), fine(62_000), fine(3_662_000)];
        let max_gap_ns = Some(10_000_000_000);
        let (calls, summary) = replayed(&log, Options { max_gap_ns, ..Options::default() });
        assert_eq!(due_ms(&calls), [0, 1_000, 11_000, 12_000, 22_000]);
        assert_eq!((summary.shortened_pauses, summary.removed_pause_ns / 1_000_000_000), (2, 50 + 3_590));
        assert_eq!(summary.longest_pause_ns, 10_000_000_000);
        // The maximum pause must apply to the time of the replay, not to the time of the log.
        let (calls, summary) = replayed(&log, Options { max_gap_ns, speed: 100.0, ..Options::default() });
        assert_eq!((due_ms(&calls), summary.shortened_pauses), (vec![0, 10, 610, 620, 10_620], 1));
    }

    #[test]
    fn what_changes_something_is_not_sent_unless_allowed() {
        let post = Entry { method: b"POST", ..entry(1, "/order") };
        let is_not_modified = Entry { status: 304, ..entry(2, "/a?b=c") };
        let garbage = entry(3, "\\x16\\x03");
        let (calls, summary) = replayed(&[post, is_not_modified, garbage], Options::default());
        assert_eq!((calls.len(), summary.other_methods, summary.requests_without_path), (1, 1, 1));
        assert!(
            calls[0].is_not_modified
                && calls[0].path == "/a?b=c"
                && STATUS_CLASSES[usize::from(calls[0].class)] == "304"
        );
        let (calls, _) = replayed(&[post], Options { methods: vec!["POST".to_owned()], ..Options::default() });
        assert_eq!(calls[0].method, "POST");
    }

    #[test]
    fn a_synthetic_root_has_a_file_for_each_size() {
        let root = tempfile::tempdir().unwrap();
        let options = Options { fileset: Some(root.path().to_owned()), ..Options::default() };
        let sized = |bytes| Entry { bytes, ..entry(1, "/whatever/../it is") };
        let (calls, _) = replayed(&[sized(Some(5000)), sized(Some(5001)), sized(None)], options);
        assert_eq!(calls[0].path, calls[1].path, "sizes that differ by 1 % must share a file");
        for call in &calls {
            let bytes: u64 = call.path.trim_start_matches("/brimful/").parse().unwrap();
            assert_eq!(std::fs::metadata(root.path().join(&call.path[1..])).unwrap().len(), bytes);
        }
    }
}
