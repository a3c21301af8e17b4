//! Collects requests by time window, and chooses which windows to keep in memory.
//!
//! The busiest window is known only at the end, so the window with the most requests so far is kept. The three windows
//! that were used last are kept, too, because lines of a log are slightly out of order. Windows start at whole
//! multiples of their length since 1970. A log that is not longer than a window is a single window, which may start at
//! any minute. If a window is used again after it was dropped, it contains only the later requests; the calendar has
//! the true number of requests. The memory of dropped windows is reused.

use super::calendar::{DAY_S, NS_PER_S};
use super::options::OTHER_KEY;
use super::sizes::SizeCounts;
use super::sparse_times::{SparseTimes, coarse_step};
use super::urls::TopUrls;
use crate::Entry;
use foldhash::fast::RandomState;
use std::collections::BTreeMap;

/// Number of windows kept in addition to the busiest window.
const RECENT_WINDOWS: usize = 3;
/// Maximum number of URLs that are counted in a window.
const URLS: usize = 2_048;
/// Maximum number of URLs that are counted for one class key (such as a virtual host) of a window.
const URLS_OF_KEY: usize = 512;
/// Maximum number of class keys (such as virtual hosts) of a window. Requests with further keys are counted under
/// [`OTHER_KEY`].
const MAX_KEYS: usize = 64;
/// Maximum length of a window in seconds.
const MAX_WINDOW_S: u64 = 366 * DAY_S as u64;

/// The requests of one time window.
#[derive(Clone, Debug)]
pub struct Window {
    /// Start of the window, in nanoseconds since 1970.
    pub from_ns: i64,
    /// Length of the window in seconds.
    pub seconds: u64,
    /// Number of requests in the window.
    pub requests: u64,
    /// Total size of all responses in the window, in bytes.
    pub bytes: u64,
    /// Number of responses without a body.
    pub zero_length: u64,
    /// Service times of responses without a body: their sum in nanoseconds, and the number of known service times.
    pub zero_length_service: (f64, u64),
    /// Distribution of the service times of responses without a body.
    pub(super) zero_length_times: SparseTimes,
    /// Service times of responses with a body, grouped by size. The key is the logarithmic step of the size.
    pub(super) times_by_size: BTreeMap<u16, SizedTimes>,
    /// Sizes of responses with a body.
    pub sizes: SizeCounts,
    /// The most requested URLs.
    pub urls: TopUrls,
    /// Requests by class key, such as the virtual host; empty if classes are formed by size. At most 64 keys and
    /// `other`.
    pub requests_by_key: BTreeMap<String, KeyedRequests>,
    hasher: RandomState,
}

/// Requests with one class key, such as one virtual host. A response without a body counts as 0 bytes.
#[derive(Clone, Debug)]
pub struct KeyedRequests {
    /// Number of requests with this class key.
    pub requests: u64,
    /// Total size of all responses, in bytes.
    pub bytes: u64,
    /// Sum of the squared sizes of the responses, in bytes².
    pub sum_of_squared_bytes: f64,
    /// Size of the smallest response, in bytes.
    pub min_bytes: u64,
    /// Size of the largest response, in bytes.
    pub max_bytes: u64,
    /// Service times: their sum in nanoseconds, and the number of known service times.
    pub service: (f64, u64),
    /// Distribution of the service times.
    pub(super) times: SparseTimes,
    /// The most requested URLs.
    pub urls: TopUrls,
}

/// Service times of responses of similar size.
#[derive(Clone, Debug, Default)]
pub(super) struct SizedTimes {
    /// Sum of the sizes of these responses, in bytes.
    pub bytes: f64,
    /// Distribution of the service times of these responses.
    pub times: SparseTimes,
}

/// The windows that are kept in memory.
#[derive(Clone, Debug)]
pub(super) struct Windows {
    /// Length of a window in seconds; not used if the user specified a window.
    seconds: i64,
    /// The window that the user specified: start and end, in nanoseconds since 1970.
    given: Option<(i64, i64)>,
    whole: WholeLog,
    /// Sizes of responses in dropped windows and outside of the specified window.
    sizes: SizeCounts,
    kept: Vec<(Window, u64)>,
    /// Index in `kept` of the window that was used last.
    current: usize,
    /// Number of switches from one window to another. `kept` contains each window with the value of `clock` at its last
    /// use.
    clock: u64,
    hasher: RandomState,
}

/// Whether the log read so far fits into one window, and the window that contains the whole log.
#[derive(Clone, Debug)]
enum WholeLog {
    /// No request was added yet.
    Empty,
    /// The log fits into one window, and the only window that is kept contains all requests so far. The value is the
    /// start of the window for the whole log, in nanoseconds since 1970.
    Same(i64),
    /// The log fits into this separate window, although several other windows are kept.
    Own(Box<Window>),
    /// The log does not fit into one window, or the user specified the window.
    No,
}

impl Window {
    fn new(from_ns: i64, seconds: u64, hasher: RandomState) -> Window {
        Window {
            from_ns,
            seconds,
            requests: 0,
            bytes: 0,
            zero_length: 0,
            zero_length_service: (0.0, 0),
            zero_length_times: SparseTimes::default(),
            times_by_size: BTreeMap::new(),
            sizes: SizeCounts::default(),
            urls: TopUrls::with_hasher(URLS, hasher.clone()),
            requests_by_key: BTreeMap::new(),
            hasher,
        }
    }

    /// Removes all requests, and sets the start time to `from_ns`.
    fn begin(&mut self, from_ns: i64) {
        self.from_ns = from_ns;
        (self.requests, self.bytes, self.zero_length, self.zero_length_service) = (0, 0, 0, (0.0, 0));
        self.zero_length_times.clear();
        self.times_by_size.clear();
        self.sizes.clear();
        self.urls.clear();
        self.requests_by_key.clear();
    }

    /// Whether the window contains a time. Always `false` if the start of the window is out of range.
    #[inline]
    fn contains(&self, time_ns: i64) -> bool {
        let length_ns = self.seconds.saturating_mul(NS_PER_S.unsigned_abs());
        self.from_ns > i64::MIN && time_ns >= self.from_ns && time_ns.abs_diff(self.from_ns) < length_ns
    }

    /// Adds a request. `url` is the request's URL, and `hash` is the hash of this URL.
    fn add(&mut self, entry: &Entry<'_>, key: Option<&str>, (url, hash): (&[u8], u64)) {
        let bytes = entry.bytes.unwrap_or(0);
        self.requests += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        if bytes == 0 {
            self.zero_length += 1;
            add_service(&mut self.zero_length_service, entry);
        } else {
            self.sizes.add(bytes, entry.service_ns);
        }
        if let Some(service_ns) = entry.service_ns {
            self.add_time(bytes, service_ns);
        }
        self.urls.add_hashed(hash, url, entry);
        if let Some(key) = key {
            self.add_keyed(entry, key, bytes, (url, hash));
        }
    }

    fn add_time(&mut self, bytes: u64, service_ns: u64) {
        if bytes == 0 {
            return self.zero_length_times.add(service_ns);
        }
        let sized = self.times_by_size.entry(coarse_step(bytes)).or_default();
        sized.bytes += bytes as f64;
        sized.times.add(service_ns);
    }

    /// Service times of the responses with a body of `from` to `to` bytes. A group of sizes that is only partly in this
    /// range is included if its mean size is in the range.
    pub(super) fn times_of_sizes(&self, from: u64, to: u64) -> SparseTimes {
        let mut all = SparseTimes::default();
        for sized in self.times_by_size.values() {
            let mean = sized.bytes / sized.times.samples().max(1) as f64;
            if mean >= from as f64 && mean < to as f64 + 1.0 {
                all.add_all(&sized.times);
            }
        }
        all
    }

    fn add_keyed(&mut self, entry: &Entry<'_>, key: &str, bytes: u64, url: (&[u8], u64)) {
        let key = if self.requests_by_key.contains_key(key) || self.requests_by_key.len() < MAX_KEYS {
            key
        } else {
            OTHER_KEY
        };
        if let Some(keyed) = self.requests_by_key.get_mut(key) {
            return keyed.add(entry, bytes, url);
        }
        let mut keyed = KeyedRequests::new(self.hasher.clone());
        keyed.add(entry, bytes, url);
        self.requests_by_key.insert(key.to_owned(), keyed);
    }
}

impl KeyedRequests {
    fn new(hasher: RandomState) -> KeyedRequests {
        let urls = TopUrls::with_hasher(URLS_OF_KEY, hasher);
        KeyedRequests {
            requests: 0,
            bytes: 0,
            sum_of_squared_bytes: 0.0,
            min_bytes: u64::MAX,
            max_bytes: 0,
            service: (0.0, 0),
            times: SparseTimes::default(),
            urls,
        }
    }

    fn add(&mut self, entry: &Entry<'_>, bytes: u64, (url, hash): (&[u8], u64)) {
        self.requests += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        self.sum_of_squared_bytes += (bytes as f64).powi(2);
        self.min_bytes = self.min_bytes.min(bytes);
        self.max_bytes = self.max_bytes.max(bytes);
        add_service(&mut self.service, entry);
        if let Some(service_ns) = entry.service_ns {
            self.times.add(service_ns);
        }
        self.urls.add_hashed(hash, url, entry);
    }
}

fn add_service(sum: &mut (f64, u64), entry: &Entry<'_>) {
    if let Some(service_ns) = entry.service_ns {
        *sum = (sum.0 + service_ns as f64, sum.1 + 1);
    }
}

impl Windows {
    /// Creates windows of `seconds` seconds. If `given` (start and end in nanoseconds) is set, this is the only window.
    pub fn new(seconds: u64, given: Option<(i64, i64)>, hasher: RandomState) -> Windows {
        let seconds = seconds.clamp(1, MAX_WINDOW_S) as i64;
        let whole = if given.is_none() { WholeLog::Empty } else { WholeLog::No };
        Windows { seconds, given, whole, sizes: SizeCounts::default(), kept: Vec::new(), current: 0, clock: 0, hasher }
    }

    /// Adds a request, unless it is outside of the specified window. `url` is the request's URL with its hash.
    #[inline]
    pub fn add(&mut self, entry: &Entry<'_>, key: Option<&str>, url: (&[u8], u64)) {
        let is_current =
            self.given.is_none() && self.kept.get(self.current).is_some_and(|kept| kept.0.contains(entry.time_ns));
        if !is_current {
            let Some((from_ns, seconds)) = self.window_of(entry.time_ns) else {
                if let Some(bytes) = entry.bytes.filter(|bytes| *bytes > 0) {
                    self.sizes.add(bytes, None);
                }
                return;
            };
            if self.kept.get(self.current).is_none_or(|(window, _)| window.from_ns != from_ns) {
                self.split_off_whole();
                self.switch_to(from_ns, seconds);
            }
        }
        if !matches!(self.whole, WholeLog::No) {
            self.add_to_whole(entry, key, url);
        }
        if let Some((window, _)) = self.kept.get_mut(self.current) {
            window.add(entry, key, url);
        }
    }

    /// Counts of the sizes of all responses with a body, in kept windows, in dropped windows and outside of windows.
    pub fn sizes(&self) -> SizeCounts {
        let mut all = self.sizes.clone();
        self.kept.iter().for_each(|(window, _)| all.add_all(&window.sizes));
        all
    }

    /// Removes and returns the window with the most requests; of several, the earliest. If the log is not longer than a
    /// window, this is the window that contains the whole log.
    pub fn take_busiest(&mut self) -> Option<Window> {
        let from_ns = match std::mem::replace(&mut self.whole, WholeLog::No) {
            WholeLog::Own(whole) => return Some(*whole),
            WholeLog::Same(from_ns) => Some(from_ns),
            WholeLog::Empty | WholeLog::No => None,
        };
        let windows = self.kept.iter().map(|(window, _)| window).enumerate();
        let busiest = windows.max_by(|(_, a), (_, b)| a.requests.cmp(&b.requests).then(b.from_ns.cmp(&a.from_ns)));
        let place = busiest.map(|(place, _)| place)?;
        let (mut window, _) = self.kept.swap_remove(place);
        window.from_ns = from_ns.unwrap_or(window.from_ns);
        Some(window)
    }

    /// Adds a request to the window that contains the whole log, if the request is within that window. The window
    /// starts a minute before the first request, because earlier requests may follow.
    fn add_to_whole(&mut self, entry: &Entry<'_>, key: Option<&str>, url: (&[u8], u64)) {
        let length_ns = self.seconds * NS_PER_S;
        let fits = |from_ns| entry.time_ns.checked_sub(from_ns).is_some_and(|since| (0..length_ns).contains(&since));
        match &mut self.whole {
            WholeLog::Empty => {
                let minute = 60 * NS_PER_S;
                let from_ns = (entry.time_ns.div_euclid(minute) - 1).saturating_mul(minute);
                self.whole = if fits(from_ns) { WholeLog::Same(from_ns) } else { WholeLog::No };
            }
            WholeLog::Same(from_ns) if fits(*from_ns) => {}
            WholeLog::Own(whole) if fits(whole.from_ns) => whole.add(entry, key, url),
            _ => self.whole = WholeLog::No,
        }
    }

    /// Creates a separate window for the whole log. Called before a second window is kept.
    fn split_off_whole(&mut self) {
        if let (&WholeLog::Same(from_ns), Some((window, _))) = (&self.whole, self.kept.get(self.current)) {
            self.whole = WholeLog::Own(Box::new(Window { from_ns, ..window.clone() }));
        }
    }

    /// Start (in nanoseconds since 1970) and length (in seconds) of the window that contains `time_ns`. `None` if this
    /// time is outside of the specified window.
    fn window_of(&self, time_ns: i64) -> Option<(i64, u64)> {
        match self.given {
            Some((from, to)) => {
                (from..to).contains(&time_ns).then(|| (from, (from.abs_diff(to)).div_ceil(NS_PER_S as u64).max(1)))
            }
            None => {
                let from = time_ns.div_euclid(NS_PER_S).div_euclid(self.seconds) * self.seconds;
                Some((from.saturating_mul(NS_PER_S), self.seconds as u64))
            }
        }
    }

    /// Makes the window that starts at `from_ns` the current window.
    fn switch_to(&mut self, from_ns: i64, seconds: u64) {
        self.clock += 1;
        let known = self.kept.iter().position(|(window, _)| window.from_ns == from_ns);
        self.current = known.unwrap_or_else(|| {
            let place = if self.kept.len() > RECENT_WINDOWS { self.least_recent() } else { self.kept.len() };
            match self.kept.get_mut(place) {
                Some((window, _)) => {
                    self.sizes.add_all(&window.sizes);
                    window.begin(from_ns);
                }
                None => self.kept.push((Window::new(from_ns, seconds, self.hasher.clone()), 0)),
            }
            place
        });
        if let Some((_, written)) = self.kept.get_mut(self.current) {
            *written = self.clock;
        }
    }

    /// Index of the least recently used window that is not the busiest window.
    fn least_recent(&self) -> usize {
        let requests = |place: &usize| self.kept.get(*place).map_or(0, |(window, _)| window.requests);
        let written = |place: &usize| self.kept.get(*place).map_or(0, |(_, written)| *written);
        let busiest = (0..self.kept.len()).max_by_key(requests);
        (0..self.kept.len()).filter(|place| Some(*place) != busiest).min_by_key(written).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests;
