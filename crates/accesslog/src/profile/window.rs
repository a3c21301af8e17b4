//! What is kept of the requests in one window of time, and which windows are kept.
//!
//! Which window is the busiest is only known at the end, so the one with the most requests so far is kept, and the
//! three that were written last, as lines of a log are a little out of order. Windows begin at whole multiples of their
//! length since 1970; but a log that is no longer than a window is one, whenever it begins. When one is written again
//! after it was given up, it has only what came since; the calendar knows what it should have.

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
    /// All requests, as long as they fit into one window.
    whole: Option<Window>,
    is_empty: bool,
    kept: Vec<(Window, u64)>,
    /// The place of the one that was written last.
    current: usize,
    /// Counts changes from one window to another.
    clock: u64,
    hasher: RandomState,
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
        Windows { seconds, given, whole: None, is_empty: true, kept: Vec::new(), current: 0, clock: 0, hasher }
    }

    /// A request, unless it lies outside the given window; `url` is its URL with its hash.
    pub fn add(&mut self, entry: &Entry<'_>, key: Option<&str>, url: (&[u8], u64)) {
        let Some((from_ns, seconds)) = self.at(entry.time_ns) else { return };
        self.add_to_whole(entry, key, url);
        if self.kept.get(self.current).is_none_or(|(window, _)| window.from_ns != from_ns) {
            self.change(from_ns, seconds);
        }
        if let Some((window, _)) = self.kept.get_mut(self.current) {
            window.add(entry, key, url);
        }
    }

    /// The one with the most requests, the first of several; the whole log, if that is no longer.
    pub fn busiest(&self) -> Option<&Window> {
        if self.whole.is_some() {
            return self.whole.as_ref();
        }
        let windows = self.kept.iter().map(|(window, _)| window);
        windows.max_by(|a, b| a.requests.cmp(&b.requests).then(b.from_ns.cmp(&a.from_ns)))
    }

    /// As long as there is a window of all requests. It begins a minute before the first one, as those of before may
    /// come late, and ends with the first that does not fit.
    fn add_to_whole(&mut self, entry: &Entry<'_>, key: Option<&str>, url: (&[u8], u64)) {
        if std::mem::take(&mut self.is_empty) && self.given.is_none() {
            let minute = 60 * NS;
            let from_ns = (entry.time_ns.div_euclid(minute) - 1).saturating_mul(minute);
            self.whole = Some(Window::new(from_ns, self.seconds as u64, self.hasher.clone()));
        }
        let Some(whole) = &mut self.whole else { return };
        let since = entry.time_ns.checked_sub(whole.from_ns);
        if since.is_some_and(|since| (0..self.seconds * NS).contains(&since)) {
            whole.add(entry, key, url);
        } else {
            self.whole = None;
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
            let new = (Window::new(from_ns, seconds, self.hasher.clone()), 0);
            match self.kept.get_mut(place) {
                Some(kept) => *kept = new,
                None => self.kept.push(new),
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
mod tests {
    use super::super::urls::{hash, url};
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64;

    const HOUR: i64 = 3_600 * NS;

    fn add(windows: &mut Windows, time_ns: i64, target: &str, bytes: u64) {
        let entry =
            Entry { time_ns, method: b"GET", target: target.as_bytes(), bytes: Some(bytes), ..Entry::default() };
        let url = url(entry.target);
        let hash = hash(&windows.hasher, url);
        windows.add(&entry, Some(target), (url, hash));
    }

    fn windows(given: Option<(i64, i64)>) -> Windows {
        Windows::new(3_600, given, RandomState::default())
    }

    #[test]
    fn the_busiest_of_many_hours_is_whole() {
        let mut rng = Pcg64::seed_from_u64(1);
        let mut windows = windows(None);
        let mut counts = [0u64; 100];
        for hour in 0..100 {
            let requests = if hour == 41 { 500 } else { rng.random_range(10..400) };
            for i in 0..requests {
                // Some come from up to an hour earlier.
                let late = if i % 10 == 0 { rng.random_range(0..HOUR) } else { 0 };
                let time = hour * HOUR + rng.random_range(0..HOUR) - late;
                counts[(time / HOUR).max(0) as usize] += u64::from(time >= 0);
                add(&mut windows, time, &format!("/{}", i % 7), (i % 5) as u64);
            }
        }
        assert!(windows.kept.len() <= RECENT + 1);
        let busiest = windows.busiest().unwrap();
        assert_eq!(busiest.from_ns, 41 * HOUR);
        assert_eq!((busiest.requests, busiest.seconds), (*counts.iter().max().unwrap(), 3_600));
        let with_body: u64 = busiest.sizes.sorted().iter().map(|size| size.count).sum();
        assert_eq!(with_body + busiest.zero_length, busiest.requests);
        assert_eq!(busiest.urls.sorted().iter().map(|url| url.requests).sum::<u64>(), busiest.requests);
        assert_eq!(busiest.keyed.values().map(|keyed| keyed.requests).sum::<u64>(), busiest.requests);
        assert_eq!(busiest.keyed.values().map(|keyed| keyed.bytes).sum::<u64>(), busiest.bytes);
    }

    #[test]
    fn a_log_that_is_no_longer_than_a_window_is_one() {
        let mut windows = windows(None);
        let noon = 12 * HOUR;
        for minute in [-29, 0, 15, -30, 28] {
            add(&mut windows, noon + minute * 60 * NS, "/", 1);
        }
        let whole = windows.busiest().unwrap();
        assert_eq!((whole.from_ns, whole.requests), (noon - HOUR / 2, 5));
        add(&mut windows, noon + HOUR / 2, "/", 1);
        let busiest = windows.busiest().unwrap();
        assert_eq!((busiest.from_ns, busiest.requests), (noon, 4));
    }

    #[test]
    fn only_the_given_window_is_kept() {
        let mut windows = windows(Some((HOUR / 2, HOUR)));
        for minute in 0..120 {
            add(&mut windows, minute * 60 * NS, "/", 1);
        }
        let given = windows.busiest().unwrap();
        assert_eq!((given.from_ns, given.seconds, given.requests), (HOUR / 2, 1_800, 30));
        let mut never = self::windows(Some((HOUR, HOUR)));
        add(&mut never, HOUR, "/", 1);
        assert!(never.busiest().is_none());
    }

    #[test]
    fn keys_are_bounded() {
        let mut windows = windows(None);
        for i in 0..1_000u64 {
            add(&mut windows, 0, &format!("/{i}"), i);
        }
        let window = windows.busiest().unwrap();
        assert_eq!((window.keyed.len(), window.keyed[OTHER].requests), (KEYS + 1, 936));
        let other = &window.keyed[OTHER];
        assert_eq!((other.least, other.most, other.bytes), (64, 999, (64..1_000).sum()));
        assert_eq!(other.bytes_squared, (64..1_000u64).map(|i| (i * i) as f64).sum::<f64>());
    }

    #[test]
    fn times_at_the_ends_of_the_range_have_a_window() {
        let mut windows = windows(None);
        for time in [i64::MIN, i64::MAX, i64::MIN + 1, i64::MAX - 1, -1, 0] {
            add(&mut windows, time, "/", 1);
        }
        assert_eq!(windows.busiest().map(|window| window.requests), Some(2));
    }
}
