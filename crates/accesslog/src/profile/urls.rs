//! Finds the most requested URLs by the algorithm Space-Saving (Metwally, Agrawal & El Abbadi, *Efficient computation
//! of frequent and top-k elements in data streams*, 2005).
//!
//! A limited number of URLs have counters, each in a slot. If all counters are in use, a new URL replaces the URL with
//! the fewest requests. If several URLs have the fewest, the one in the first slot is replaced. The new URL starts with
//! the count of the replaced URL. This count is the maximum error of the new count, because the new URL may have had
//! that number of requests before. No count is too low. A URL with more requests than total ÷ capacity always has a
//! counter.
//!
//! A queue finds the URL with the fewest requests. The queue contains outdated counts, which are corrected only when a
//! URL is replaced. So counting a known URL neither uses the queue nor allocates memory. A URL consists of path and
//! query, up to [`MAX_URL_BYTES`] bytes. All URLs share a memory budget: if URLs are long, fewer are kept.
//!
//! URLs are identified by a 64-bit hash with a random key, not by their text. Among 10⁹ requests, the probability that
//! a request is counted for a wrong URL is less than 10⁻⁶.

mod index;

use crate::Entry;
use foldhash::fast::RandomState;
use index::Index;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hash::{BuildHasher, Hasher};
use std::ops::Deref;

/// Maximum length of a URL in bytes; the rest is ignored.
pub const MAX_URL_BYTES: usize = 2_048;

/// Mean length of a URL in bytes. The memory budget suffices for URLs of this mean length.
const MEAN_LENGTH: usize = 192;
/// Maximum length of a method in bytes.
const MAX_METHOD_BYTES: usize = 16;
/// Number of bits of a [`QueueEntry`] that contain the slot.
const SLOT_BITS: u32 = 24;
/// The capacity of a URL's buffer is a multiple of this number of bytes, so that the next URL in the same slot usually
/// fits.
const TEXT_STEP: usize = 32;

/// Counters of the most popular URLs.
#[derive(Clone, Debug)]
pub struct TopUrls {
    capacity: usize,
    hasher: RandomState,
    /// All slots. The slots whose index is in `free`, and all slots from `used` on, contain no URL.
    urls: Vec<TopUrl>,
    used: usize,
    free: Vec<u32>,
    /// A priority queue of all slots with a URL. The counts in it may be outdated. The slot with the lowest count is
    /// first.
    queue: BinaryHeap<Reverse<QueueEntry>>,
    index: Index,
    /// Total length of all stored URLs, in bytes.
    length: usize,
    /// The highest count of a URL that was replaced or removed; 0 if there is none.
    highest_dropped: u64,
}

/// The counter of a URL. Counting accesses only the first 64 bytes, which are one cache line.
#[derive(Clone, Debug, Default)]
#[repr(C, align(64))]
pub struct TopUrl {
    hash: u64,
    /// Estimated number of requests: never too low, and too high by at most `requests_error`.
    pub requests: u64,
    /// Total size of the responses since this URL got a counter, in bytes. Only frequent URLs have counters.
    pub bytes: u64,
    /// Number of responses with a body since this URL got a counter.
    pub responses_with_body: u64,
    /// State of the majority vote on the method (Boyer & Moore 1981). It increases with each request with `method`, and
    /// decreases with each request with another method.
    votes: u32,
    /// The method of more than half of the requests, if such a method exists.
    pub method: Method,
    /// Maximum error of `requests`.
    pub requests_error: u64,
    /// Path and query of the URL.
    pub url: Vec<u8>,
}

/// A method, truncated to 16 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Method {
    bytes: [u8; MAX_METHOD_BYTES],
    length: u8,
}

/// The number of requests (up to a trillion) and the slot, combined in one number. Entries with the same number of
/// requests are ordered by slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct QueueEntry(u64);

/// Path and query of a request target. If the target is an absolute URL, as in a request to a proxy, its scheme and
/// host are removed.
pub(crate) fn url<'a>(target: &'a [u8]) -> &'a [u8] {
    let absolute = |target: &'a [u8]| {
        let rest = target.strip_prefix(b"http://").or_else(|| target.strip_prefix(b"https://"))?;
        let path = rest.iter().position(|byte| *byte == b'/');
        Some(path.and_then(|at| rest.get(at..)).unwrap_or(b"/"))
    };
    let url = if target.first() == Some(&b'h') { absolute(target).unwrap_or(target) } else { target };
    url.get(..MAX_URL_BYTES).unwrap_or(url)
}

impl TopUrls {
    /// Creates counters for up to `capacity` URLs.
    pub fn new(capacity: usize) -> TopUrls {
        TopUrls::with_hasher(capacity, RandomState::default())
    }

    /// Creates counters that hash URLs with this hasher. Several [`TopUrls`] with the same hasher can share the hash of
    /// a URL.
    pub(crate) fn with_hasher(capacity: usize, hasher: RandomState) -> TopUrls {
        TopUrls {
            capacity: capacity.clamp(1, (1 << SLOT_BITS) - 1),
            hasher,
            urls: Vec::new(),
            used: 0,
            free: Vec::new(),
            queue: BinaryHeap::new(),
            index: Index::default(),
            length: 0,
            highest_dropped: 0,
        }
    }

    /// Counts a request. A request without a URL is ignored.
    pub fn add(&mut self, entry: &Entry<'_>) {
        let url = url(entry.target);
        self.add_hashed(hash_url(&self.hasher, url), url, entry);
    }

    /// Counts a request whose URL and hash are known. Returns the slot of the URL, and whether the URL is new in this
    /// slot. Returns `None` for a request without a URL.
    pub(crate) fn add_hashed(&mut self, hash: u64, url: &[u8], entry: &Entry<'_>) -> Option<(usize, bool)> {
        if url.is_empty() {
            return None;
        }
        let found = self.find(hash);
        let slot = found.unwrap_or_else(|| self.insert(hash, url));
        self.urls[slot].count(entry);
        Some((slot, found.is_none()))
    }

    /// The URLs with their slots, in no particular order.
    pub(crate) fn slots(&self) -> impl Iterator<Item = (usize, &TopUrl)> {
        self.queue.iter().map(|Reverse(place)| (place.slot(), &self.urls[place.slot()]))
    }

    /// Removes all URLs, but keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.used = 0;
        self.free.clear();
        self.queue.clear();
        self.index.clear();
        self.length = 0;
        self.highest_dropped = 0;
    }

    /// The URLs, sorted by descending number of requests, then alphabetically.
    pub fn sorted(&self) -> Vec<&TopUrl> {
        let mut all: Vec<&TopUrl> = self.queue.iter().map(|Reverse(place)| &self.urls[place.slot()]).collect();
        all.sort_unstable_by(|a, b| b.requests.cmp(&a.requests).then_with(|| a.url.cmp(&b.url)));
        all
    }

    /// Whether all counts are exact, because no URL was replaced or removed.
    pub fn is_exact(&self) -> bool {
        self.highest_dropped == 0
    }

    #[inline]
    fn find(&self, hash: u64) -> Option<usize> {
        self.index.find(hash, |slot| self.urls[slot].hash == hash)
    }

    /// Gives a new URL a counter, and returns the counter's slot.
    fn insert(&mut self, hash: u64, url: &[u8]) -> usize {
        while self.length + url.len() > MAX_URL_BYTES + self.capacity * MEAN_LENGTH && self.queue.len() > 1 {
            self.drop_least();
        }
        let slot = if self.queue.len() >= self.capacity { self.replace_least() } else { self.new_slot() };
        let new = &mut self.urls[slot];
        rewrite(&mut new.url, url);
        (new.requests, new.requests_error) = (self.highest_dropped, self.highest_dropped);
        (new.bytes, new.responses_with_body, new.votes, new.hash) = (0, 0, 0, hash);
        self.length += url.len();
        self.index.insert(hash, slot);
        slot
    }

    /// Returns a free slot, which is also added to the queue.
    fn new_slot(&mut self) -> usize {
        let slot = self.free.pop().map_or(self.used, |slot| slot as usize);
        if slot == self.used {
            self.used += 1;
        }
        if slot == self.urls.len() {
            self.urls.push(TopUrl::default());
        }
        self.queue.push(Reverse(QueueEntry::new(self.highest_dropped + 1, slot)));
        slot
    }

    /// Removes the URL with the fewest requests, and returns its slot. The slot's queue entry is kept for the new URL.
    fn replace_least(&mut self) -> usize {
        self.correct_queue_head();
        let Some(mut first) = self.queue.peek_mut() else { return self.new_slot() };
        let slot = first.0.slot();
        self.highest_dropped = self.urls[slot].requests;
        *first = Reverse(QueueEntry::new(self.highest_dropped + 1, slot));
        drop(first);
        self.remove_from_index(slot);
        slot
    }

    /// Removes the URL with the fewest requests, and frees its slot.
    fn drop_least(&mut self) {
        self.correct_queue_head();
        let Some(Reverse(first)) = self.queue.pop() else { return };
        let slot = first.slot();
        self.highest_dropped = self.urls[slot].requests;
        self.remove_from_index(slot);
        self.urls[slot].url = Vec::new();
        self.free.push(slot as u32);
    }

    /// Corrects outdated entries at the head of the queue until the head is the URL with the fewest requests. All calls
    /// together make at most one correction for each counted request.
    fn correct_queue_head(&mut self) {
        while let Some(mut first) = self.queue.peek_mut() {
            let slot = first.0.slot();
            let place = Reverse(QueueEntry::new(self.urls[slot].requests, slot));
            if *first == place {
                return;
            }
            *first = place;
        }
    }

    /// Removes a URL from the index.
    fn remove_from_index(&mut self, slot: usize) {
        self.length -= self.urls[slot].url.len();
        self.index.remove(self.urls[slot].hash, slot);
    }
}

impl QueueEntry {
    fn new(requests: u64, slot: usize) -> QueueEntry {
        QueueEntry((requests.min(u64::MAX >> SLOT_BITS) << SLOT_BITS) | slot as u64)
    }

    fn slot(self) -> usize {
        (self.0 & ((1 << SLOT_BITS) - 1)) as usize
    }
}

impl TopUrl {
    /// Mean size of the responses with a body, in bytes; 0 if no response had a body.
    pub fn mean_bytes(&self) -> f64 {
        if self.responses_with_body == 0 { 0.0 } else { self.bytes as f64 / self.responses_with_body as f64 }
    }

    #[inline]
    fn count(&mut self, entry: &Entry<'_>) {
        let bytes = entry.bytes.unwrap_or(0);
        self.requests += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        self.responses_with_body += u64::from(bytes > 0);
        let method = entry.method.get(..MAX_METHOD_BYTES).unwrap_or(entry.method);
        let same = is_same(&self.method, method);
        match self.votes.checked_sub(1) {
            _ if same => self.votes = self.votes.saturating_add(1),
            Some(fewer) => self.votes = fewer,
            None => (self.method, self.votes) = (Method::new(method), 1),
        }
    }
}

impl Method {
    fn new(text: &[u8]) -> Method {
        let mut bytes = [0; MAX_METHOD_BYTES];
        bytes.iter_mut().zip(text).for_each(|(byte, from)| *byte = *from);
        Method { bytes, length: text.len().min(MAX_METHOD_BYTES) as u8 }
    }
}

impl Deref for Method {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.length)).unwrap_or_default()
    }
}

/// Compares short texts. In contrast to `==`, it compiles to a loop without a function call.
#[inline]
pub(super) fn is_same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a == b)
}

/// Overwrites the text `old`. Reuses its memory, unless this is too small or much too large.
fn rewrite(old: &mut Vec<u8>, text: &[u8]) {
    if !(text.len()..=2 * text.len() + TEXT_STEP).contains(&old.capacity()) {
        *old = Vec::with_capacity(text.len().next_multiple_of(TEXT_STEP));
    }
    old.clear();
    old.extend_from_slice(text);
}

/// The hash that identifies a URL in the counters with this hasher.
pub(crate) fn hash_url(hasher: &RandomState, url: &[u8]) -> u64 {
    let mut hasher = hasher.build_hasher();
    hasher.write(url);
    hasher.finish()
}

#[cfg(test)]
mod tests;
