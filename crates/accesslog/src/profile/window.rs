//! What is kept of the requests in one window of time, and which windows are kept.
//!
//! Which window is the busiest is only known at the end, so the one with the most requests so far is kept, and the
//! three that were written last, as lines of a log are a little out of order. Windows begin at whole multiples of their
//! length since 1970; but a log that is no longer than a window is one, whenever it begins. When one is written again
//! after it was given up, it has only what came since; the calendar knows what it should have. The memory of what is
//! given up is used again.

use super::calendar::{DAY_S, NS};
use super::keys::OTHER;
use super::sizes::SizeCounts;
use super::urls::TopUrls;
use crate::Entry;
use foldhash::fast::RandomState;
use std::collections::BTreeMap;

/// Windows besides the busiest.
const RECENT: usize = 3;
/// URLs of a window, and of one key of it.
const URLS: usize = 2_048;
const URLS_OF_KEY: usize = 512;
/// Keys of a window; the others are one.
const KEYS: usize = 64;
/// The longest window.
const LONGEST_S: u64 = 366 * DAY_S as u64;

/// The requests of a window of time.
#[derive(Clone, Debug)]
pub struct Window {
    /// When it begins, since 1970.
    pub from_ns: i64,
    /// How long it is.
    pub seconds: u64,
    /// How many requests.
    pub requests: u64,
    /// Of all answers.
    pub bytes: u64,
    /// Answers without a body.
    pub zero_length: u64,
    /// Time that the server took for these together, in nanoseconds, and of how many of them that is.
    pub zero_service: (f64, u64),
    /// Answers that have a body.
    pub sizes: SizeCounts,
    /// What was asked for most.
    pub urls: TopUrls,
    /// By what classes are made of, unless that is the size; at most 64 and `other`.
    pub keyed: BTreeMap<String, Keyed>,
    hasher: RandomState,
}

/// Requests of one key. Answers without a body have 0 bytes.
#[derive(Clone, Debug)]
pub struct Keyed {
    /// How many.
    pub requests: u64,
    /// Of all answers.
    pub bytes: u64,
    /// Sum of the squares of their bytes.
    pub bytes_squared: f64,
    /// Bytes of the smallest answer.
    pub least: u64,
    /// Bytes of the largest one.
    pub most: u64,
    /// Time that the server took for these together, in nanoseconds, and of how many of them that is.
    pub service: (f64, u64),
    /// What was asked for most.
    pub urls: TopUrls,
}

/// The windows that are kept.
#[derive(Clone, Debug)]
pub(super) struct Windows {
    /// Their length, where they follow one another.
    seconds: i64,
    /// The only one, from when to when, in nanoseconds.
    given: Option<(i64, i64)>,
    whole: Whole,
    /// Answers of windows that were given up, and of requests that belong to none.
    sizes: SizeCounts,
    kept: Vec<(Window, u64)>,
    /// The place of the one that was written last.
    current: usize,
    /// Counts changes from one window to another.
    clock: u64,
    hasher: RandomState,
}

/// All requests, as long as they fit into one window.
#[derive(Clone, Debug)]
enum Whole {
    /// There was no request yet.
    Empty,
    /// They are those of the only window that is kept; from when on they would be one.
    Same(i64),
    /// They are more than those.
    Own(Box<Window>),
    /// They do not fit, or are not asked for.
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
            zero_service: (0.0, 0),
            sizes: SizeCounts::default(),
            urls: TopUrls::with_hasher(URLS, hasher.clone()),
            keyed: BTreeMap::new(),
            hasher,
        }
    }

    /// Forgets all requests, and begins at another time.
    fn begin(&mut self, from_ns: i64) {
        self.from_ns = from_ns;
        (self.requests, self.bytes, self.zero_length, self.zero_service) = (0, 0, 0, (0.0, 0));
        self.sizes.clear();
        self.urls.clear();
        self.keyed.clear();
    }

    /// Whether a time is one of the window's, for certain: not where what it begins with is cut off.
    #[inline]
    fn has(&self, time_ns: i64) -> bool {
        let length_ns = self.seconds.saturating_mul(NS.unsigned_abs());
        self.from_ns > i64::MIN && time_ns >= self.from_ns && time_ns.abs_diff(self.from_ns) < length_ns
    }

    /// A request; `url` is its URL with its hash.
    fn add(&mut self, entry: &Entry<'_>, key: Option<&str>, (url, hash): (&[u8], u64)) {
        let bytes = entry.bytes.unwrap_or(0);
        self.requests += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        if bytes == 0 {
            self.zero_length += 1;
            add_service(&mut self.zero_service, entry);
        } else {
            self.sizes.add(bytes, entry.service_ns);
        }
        self.urls.add_hashed(hash, url, entry);
        if let Some(key) = key {
            self.add_keyed(entry, key, bytes, (url, hash));
        }
    }

    fn add_keyed(&mut self, entry: &Entry<'_>, key: &str, bytes: u64, url: (&[u8], u64)) {
        let key = if self.keyed.contains_key(key) || self.keyed.len() < KEYS { key } else { OTHER };
        if let Some(keyed) = self.keyed.get_mut(key) {
            return keyed.add(entry, bytes, url);
        }
        let mut keyed = Keyed::new(self.hasher.clone());
        keyed.add(entry, bytes, url);
        self.keyed.insert(key.to_owned(), keyed);
    }
}

impl Keyed {
    fn new(hasher: RandomState) -> Keyed {
        let urls = TopUrls::with_hasher(URLS_OF_KEY, hasher);
        Keyed { requests: 0, bytes: 0, bytes_squared: 0.0, least: u64::MAX, most: 0, service: (0.0, 0), urls }
    }

    fn add(&mut self, entry: &Entry<'_>, bytes: u64, (url, hash): (&[u8], u64)) {
        self.requests += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        self.bytes_squared += (bytes as f64).powi(2);
        self.least = self.least.min(bytes);
        self.most = self.most.max(bytes);
        add_service(&mut self.service, entry);
        self.urls.add_hashed(hash, url, entry);
    }
}

fn add_service(sum: &mut (f64, u64), entry: &Entry<'_>) {
    if let Some(service_ns) = entry.service_ns {
        *sum = (sum.0 + service_ns as f64, sum.1 + 1);
    }
}

impl Windows {
    /// Windows of so many seconds, or the given one only, from when to when.
    pub fn new(seconds: u64, given: Option<(i64, i64)>, hasher: RandomState) -> Windows {
        let seconds = seconds.clamp(1, LONGEST_S) as i64;
        let whole = if given.is_none() { Whole::Empty } else { Whole::No };
        Windows { seconds, given, whole, sizes: SizeCounts::default(), kept: Vec::new(), current: 0, clock: 0, hasher }
    }

    /// A request, unless it lies outside the given window; `url` is its URL with its hash.
    #[inline]
    pub fn add(&mut self, entry: &Entry<'_>, key: Option<&str>, url: (&[u8], u64)) {
        let is_current =
            self.given.is_none() && self.kept.get(self.current).is_some_and(|kept| kept.0.has(entry.time_ns));
        if !is_current {
            let Some((from_ns, seconds)) = self.at(entry.time_ns) else {
                if let Some(bytes) = entry.bytes.filter(|bytes| *bytes > 0) {
                    self.sizes.add(bytes, None);
                }
                return;
            };
            if self.kept.get(self.current).is_none_or(|(window, _)| window.from_ns != from_ns) {
                self.part_whole();
                self.change(from_ns, seconds);
            }
        }
        if !matches!(self.whole, Whole::No) {
            self.add_to_whole(entry, key, url);
        }
        if let Some((window, _)) = self.kept.get_mut(self.current) {
            window.add(entry, key, url);
        }
    }

    /// All answers that have a body, of all requests whatsoever.
    pub fn sizes(&self) -> SizeCounts {
        let mut all = self.sizes.clone();
        self.kept.iter().for_each(|(window, _)| all.add_all(&window.sizes));
        all
    }

    /// Takes out the one with the most requests, the first of several; the whole log, if that is no longer.
    pub fn take_busiest(&mut self) -> Option<Window> {
        let from_ns = match std::mem::replace(&mut self.whole, Whole::No) {
            Whole::Own(whole) => return Some(*whole),
            Whole::Same(from_ns) => Some(from_ns),
            Whole::Empty | Whole::No => None,
        };
        let windows = self.kept.iter().map(|(window, _)| window).enumerate();
        let busiest = windows.max_by(|(_, a), (_, b)| a.requests.cmp(&b.requests).then(b.from_ns.cmp(&a.from_ns)));
        let place = busiest.map(|(place, _)| place)?;
        let (mut window, _) = self.kept.swap_remove(place);
        window.from_ns = from_ns.unwrap_or(window.from_ns);
        Some(window)
    }

    /// As long as there is a window of all requests. It begins a minute before the first one, as those of before may
    /// come late, and ends with the first that does not fit.
    fn add_to_whole(&mut self, entry: &Entry<'_>, key: Option<&str>, url: (&[u8], u64)) {
        let length_ns = self.seconds * NS;
        let fits = |from_ns| entry.time_ns.checked_sub(from_ns).is_some_and(|since| (0..length_ns).contains(&since));
        match &mut self.whole {
            Whole::Empty => {
                let minute = 60 * NS;
                let from_ns = (entry.time_ns.div_euclid(minute) - 1).saturating_mul(minute);
                self.whole = if fits(from_ns) { Whole::Same(from_ns) } else { Whole::No };
            }
            Whole::Same(from_ns) if fits(*from_ns) => {}
            Whole::Own(whole) if fits(whole.from_ns) => whole.add(entry, key, url),
            _ => self.whole = Whole::No,
        }
    }

    /// Before a second window is kept: what all requests were so far becomes a window of its own.
    fn part_whole(&mut self) {
        if let (&Whole::Same(from_ns), Some((window, _))) = (&self.whole, self.kept.get(self.current)) {
            self.whole = Whole::Own(Box::new(Window { from_ns, ..window.clone() }));
        }
    }

    /// Beginning and length of the window that a time belongs to.
    fn at(&self, time_ns: i64) -> Option<(i64, u64)> {
        match self.given {
            Some((from, to)) => {
                (from..to).contains(&time_ns).then(|| (from, (from.abs_diff(to)).div_ceil(NS as u64).max(1)))
            }
            None => {
                let from = time_ns.div_euclid(NS).div_euclid(self.seconds) * self.seconds;
                Some((from.saturating_mul(NS), self.seconds as u64))
            }
        }
    }

    /// Goes on with another window.
    fn change(&mut self, from_ns: i64, seconds: u64) {
        self.clock += 1;
        let known = self.kept.iter().position(|(window, _)| window.from_ns == from_ns);
        self.current = known.unwrap_or_else(|| {
            let place = if self.kept.len() > RECENT { self.given_up() } else { self.kept.len() };
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

    /// The place of the window that was not written for longest, but for the busiest.
    fn given_up(&self) -> usize {
        let requests = |place: &usize| self.kept.get(*place).map_or(0, |(window, _)| window.requests);
        let written = |place: &usize| self.kept.get(*place).map_or(0, |(_, written)| *written);
        let busiest = (0..self.kept.len()).max_by_key(requests);
        (0..self.kept.len()).filter(|place| Some(*place) != busiest).min_by_key(written).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests;
