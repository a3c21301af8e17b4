//! The URLs that are asked for most, by Space-Saving (Metwally, Agrawal & El Abbadi, *Efficient computation of frequent
//! and top-k elements in data streams*, 2005).
//!
//! So many URLs are counted; a new one takes the place of the one with the fewest requests, and starts with these, as
//! it may have had them before: that is its error. What is asked for more often than total ÷ capacity is always there,
//! and no count is too low. Counts stand in a heap, URLs are found by their hash; a URL that is known costs no
//! allocation. A URL is path and query, at most [`LONGEST`] bytes of them; all together have a budget, and where they
//! are long, fewer are kept.

mod index;

use crate::Entry;
use foldhash::fast::RandomState;
use index::Index;
use std::hash::{BuildHasher, Hasher};

/// The most bytes of a URL that are looked at.
pub const LONGEST: usize = 2_048;

/// Bytes per URL on average that there is room for.
const MEAN_LENGTH: usize = 192;
/// The most bytes of a method.
const LONGEST_METHOD: usize = 16;

/// The most popular URLs.
#[derive(Clone, Debug)]
pub struct TopUrls {
    capacity: usize,
    hasher: RandomState,
    /// Slots; those in `free` have none.
    urls: Vec<TopUrl>,
    free: Vec<u32>,
    /// Requests and slot; none has more than those at 2i + 1 and 2i + 2.
    heap: Vec<(u64, u32)>,
    /// Where in the heap each slot is.
    places: Vec<u32>,
    index: Index,
    /// Bytes of all URLs.
    length: usize,
    /// The most requests that a URL had that was given up.
    given_up: u64,
}

/// A URL.
#[derive(Clone, Debug, Default)]
pub struct TopUrl {
    /// Path and query.
    pub url: Box<[u8]>,
    /// The method that it is mostly asked for with.
    pub method: Box<[u8]>,
    /// How often.
    pub requests: u64,
    /// It may have been as much less often.
    pub requests_error: u64,
    /// Of all answers that were seen since it is counted.
    pub bytes: u64,
    /// How many of these had a body.
    pub bodies: u64,
    hash: u64,
    /// Requests with this method less those with others (Boyer & Moore 1981).
    votes: u32,
}

/// Path and query of what was asked for: without scheme and host, where a proxy was asked.
pub(crate) fn url<'a>(target: &'a [u8]) -> &'a [u8] {
    let absolute = |target: &'a [u8]| {
        let rest = target.strip_prefix(b"http://").or_else(|| target.strip_prefix(b"https://"))?;
        let path = rest.iter().position(|byte| *byte == b'/');
        Some(path.and_then(|at| rest.get(at..)).unwrap_or(b"/"))
    };
    let url = if target.first() == Some(&b'h') { absolute(target).unwrap_or(target) } else { target };
    url.get(..LONGEST).unwrap_or(url)
}

impl TopUrls {
    /// With room for so many.
    pub fn new(capacity: usize) -> TopUrls {
        TopUrls::with_hasher(capacity, RandomState::default())
    }

    /// Several with the same hasher can share a hash.
    pub(crate) fn with_hasher(capacity: usize, hasher: RandomState) -> TopUrls {
        TopUrls {
            capacity: capacity.clamp(1, u32::MAX as usize / 4),
            hasher,
            urls: Vec::new(),
            free: Vec::new(),
            heap: Vec::new(),
            places: Vec::new(),
            index: Index::default(),
            length: 0,
            given_up: 0,
        }
    }

    /// A request; one without a URL is none of any.
    pub fn add(&mut self, entry: &Entry<'_>) {
        let url = url(entry.target);
        self.add_hashed(hash(&self.hasher, url), url, entry);
    }

    /// The same, when URL and hash are known.
    pub(crate) fn add_hashed(&mut self, hash: u64, url: &[u8], entry: &Entry<'_>) {
        if url.is_empty() {
            return;
        }
        let slot = match self.find(hash, url) {
            Some(slot) => {
                let at = self.places[slot] as usize;
                self.heap[at].0 += 1;
                self.sink(at);
                slot
            }
            None => self.insert(hash, url),
        };
        self.urls[slot].count(entry);
    }

    /// Most requests first; of as many, in the order of the alphabet.
    pub fn sorted(&self) -> Vec<&TopUrl> {
        let mut all: Vec<&TopUrl> = self.heap.iter().map(|(_, slot)| &self.urls[*slot as usize]).collect();
        all.sort_unstable_by(|a, b| b.requests.cmp(&a.requests).then_with(|| a.url.cmp(&b.url)));
        all
    }

    /// Whether no URL was given up, so that every count is exact.
    pub fn is_exact(&self) -> bool {
        self.given_up == 0
    }

    fn find(&self, hash: u64, url: &[u8]) -> Option<usize> {
        self.index.find(hash, |slot| *self.urls[slot].url == *url)
    }

    /// A URL that is not known.
    fn insert(&mut self, hash: u64, url: &[u8]) -> usize {
        while self.length + url.len() > LONGEST + self.capacity * MEAN_LENGTH && self.heap.len() > 1 {
            self.give_up();
        }
        let slot = if self.heap.len() >= self.capacity { self.replaced() } else { self.added() };
        let old = std::mem::take(&mut self.urls[slot]);
        self.urls[slot] = TopUrl {
            url: rewritten(old.url, url),
            method: old.method,
            requests: self.given_up,
            requests_error: self.given_up,
            hash,
            ..TopUrl::default()
        };
        self.length += url.len();
        self.index.insert(hash, slot);
        slot
    }

    /// A slot for one more, which stands in the heap already.
    fn added(&mut self) -> usize {
        let slot = self.free.pop().map_or(self.urls.len(), |slot| slot as usize);
        if slot == self.urls.len() {
            self.urls.push(TopUrl::default());
            self.places.push(0);
        }
        self.places[slot] = self.heap.len() as u32;
        self.heap.push((self.given_up + 1, slot as u32));
        self.rise(self.heap.len() - 1);
        slot
    }

    /// The slot of the URL with the fewest requests, which is given up, and stands in the heap for the new one.
    fn replaced(&mut self) -> usize {
        let (requests, slot) = self.heap[0];
        self.given_up = requests;
        self.heap[0].0 = requests + 1;
        self.sink(0);
        self.forget(slot as usize);
        slot as usize
    }

    /// Gives up the URL with the fewest requests.
    fn give_up(&mut self) {
        let (requests, slot) = self.heap.swap_remove(0);
        self.given_up = requests;
        if let Some((_, moved)) = self.heap.first() {
            self.places[*moved as usize] = 0;
            self.sink(0);
        }
        self.forget(slot as usize);
        self.urls[slot as usize].url = Box::default();
        self.free.push(slot);
    }

    /// No longer finds a URL.
    fn forget(&mut self, slot: usize) {
        self.length -= self.urls[slot].url.len();
        self.index.remove(self.urls[slot].hash, slot);
    }

    /// Moves what has become larger away from the root.
    fn sink(&mut self, mut at: usize) {
        loop {
            let (left, right) = (2 * at + 1, 2 * at + 2);
            let Some(first) = self.heap.get(left) else { return };
            let least = if self.heap.get(right).is_some_and(|second| second.0 < first.0) { right } else { left };
            if self.heap[at].0 <= self.heap[least].0 {
                return;
            }
            self.swap(at, least);
            at = least;
        }
    }

    /// Moves what is smaller than what is above it towards the root.
    fn rise(&mut self, mut at: usize) {
        while at > 0 && self.heap[at].0 < self.heap[(at - 1) / 2].0 {
            self.swap(at, (at - 1) / 2);
            at = (at - 1) / 2;
        }
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        for at in [a, b] {
            self.places[self.heap[at].1 as usize] = at as u32;
        }
    }
}

impl TopUrl {
    /// Mean bytes of the answers that have a body; 0 where none has.
    pub fn mean_bytes(&self) -> f64 {
        if self.bodies == 0 { 0.0 } else { self.bytes as f64 / self.bodies as f64 }
    }

    fn count(&mut self, entry: &Entry<'_>) {
        let bytes = entry.bytes.unwrap_or(0);
        self.requests += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        self.bodies += u64::from(bytes > 0);
        let method = entry.method.get(..LONGEST_METHOD).unwrap_or(entry.method);
        let same = *self.method == *method;
        match self.votes.checked_sub(1) {
            _ if same => self.votes = self.votes.saturating_add(1),
            Some(fewer) => self.votes = fewer,
            None => (self.method, self.votes) = (method.into(), 1),
        }
    }
}

/// A text in the place of another, if it has the same length.
fn rewritten(mut old: Box<[u8]>, text: &[u8]) -> Box<[u8]> {
    if old.len() != text.len() {
        return text.into();
    }
    old.copy_from_slice(text);
    old
}

/// What finds a URL.
pub(crate) fn hash(hasher: &RandomState, url: &[u8]) -> u64 {
    let mut hasher = hasher.build_hasher();
    hasher.write(url);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_distr::{Distribution, Zipf};
    use rand_pcg::Pcg64;
    use std::collections::HashMap;

    fn entry<'a>(method: &'a [u8], target: &'a [u8], bytes: u64) -> Entry<'a> {
        Entry { method, target, bytes: Some(bytes), ..Entry::default() }
    }

    /// Everything that links slots, heap and table holds.
    fn assert_sound(urls: &TopUrls) {
        assert!(urls.heap.len() <= urls.capacity && urls.index.len() == urls.heap.len());
        assert_eq!(urls.urls.len(), urls.heap.len() + urls.free.len());
        assert_eq!(urls.heap.iter().map(|(_, slot)| urls.urls[*slot as usize].url.len()).sum::<usize>(), urls.length);
        assert!(urls.length <= LONGEST + urls.capacity * MEAN_LENGTH);
        for (at, (requests, slot)) in urls.heap.iter().enumerate() {
            let url = &urls.urls[*slot as usize];
            assert_eq!((urls.places[*slot as usize] as usize, url.requests), (at, *requests));
            assert_eq!(urls.find(url.hash, &url.url), Some(*slot as usize));
            assert!(at == 0 || urls.heap[(at - 1) / 2].0 <= *requests);
        }
    }

    #[test]
    fn counts_are_exact_while_there_is_room() {
        let (mut urls, mut exact) = (TopUrls::new(1_000), HashMap::<u64, (u64, u64)>::new());
        let mut rng = Pcg64::seed_from_u64(1);
        for _ in 0..50_000 {
            let (id, bytes) = (rng.random_range(0..30u64).pow(2), rng.random_range(0..9));
            urls.add(&entry(b"GET", format!("/{id}").as_bytes(), bytes));
            let sum = exact.entry(id).or_default();
            *sum = (sum.0 + 1, sum.1 + bytes);
        }
        assert_sound(&urls);
        let sorted = urls.sorted();
        assert!(urls.is_exact() && sorted.len() == exact.len() && sorted.is_sorted_by(|a, b| a.requests >= b.requests));
        for url in sorted {
            let id: u64 = std::str::from_utf8(&url.url[1..]).unwrap().parse().unwrap();
            assert_eq!((url.requests, url.bytes, url.requests_error), (exact[&id].0, exact[&id].1, 0));
            assert_eq!(&*url.method, b"GET");
        }
    }

    #[test]
    fn without_room_counts_are_never_too_low_and_the_popular_ones_are_there() {
        let (mut urls, mut exact) = (TopUrls::new(200), HashMap::<Vec<u8>, u64>::new());
        let (zipf, mut rng) = (Zipf::new(20_000.0, 1.0).unwrap(), Pcg64::seed_from_u64(2));
        let total = 100_000;
        for i in 0..total {
            let url = format!("/page/{}", zipf.sample(&mut rng));
            urls.add(&entry(b"GET", url.as_bytes(), 1));
            *exact.entry(url.into_bytes()).or_default() += 1;
            if i % 10_000 == 0 {
                assert_sound(&urls);
            }
        }
        let sorted = urls.sorted();
        assert!(!urls.is_exact() && sorted.len() == 200);
        assert_eq!(sorted.iter().map(|url| url.requests).sum::<u64>(), total, "each request is counted somewhere");
        for url in &sorted {
            let true_count = exact[&*url.url];
            assert!(url.requests >= true_count && url.requests - url.requests_error <= true_count);
            assert!(url.requests_error <= total / 200);
        }
        for (url, _) in exact.iter().filter(|(_, count)| **count > total / 200) {
            assert!(sorted.iter().any(|known| *known.url == **url), "a popular one is missing");
        }
    }

    #[test]
    fn distinct_long_urls_stay_within_the_budget() {
        let mut urls = TopUrls::new(100);
        for i in 0..5_000 {
            let url = format!("/{i}/{}", "x".repeat(i % 4_000));
            urls.add(&entry(b"GET", url.as_bytes(), 1));
        }
        assert_sound(&urls);
        assert!(urls.urls.len() <= 100 && urls.sorted().len() >= 9);
        assert!(urls.sorted().iter().all(|url| url.url.len() <= LONGEST));
    }

    #[test]
    fn the_method_is_that_of_most_requests() {
        let mut urls = TopUrls::new(10);
        for method in [&b"HEAD"[..], b"POST", b"GET", b"POST", b"POST", b"HEAD", b"POST"] {
            urls.add(&entry(method, b"/form", 0));
        }
        assert_eq!((&*urls.sorted()[0].method, urls.sorted()[0].mean_bytes()), (&b"POST"[..], 0.0));
        urls.add(&entry(b"GET", b"", 1));
        assert_eq!(urls.sorted().len(), 1, "no URL");
    }

    #[test]
    fn a_proxy_is_asked_for_the_same_url() {
        let cases: [(&[u8], &[u8]); 6] = [
            (b"http://www.example.com/a?b=c", b"/a?b=c"),
            (b"https://example.com", b"/"),
            (b"/http://x/y", b"/http://x/y"),
            (b"httpd.conf", b"httpd.conf"),
            (b"*", b"*"),
            (b"", b""),
        ];
        for (target, expected) in cases {
            assert_eq!(url(target), expected);
        }
        assert_eq!(url(&[b'/'; 5_000]).len(), LONGEST);
    }
}
