//! The URLs that are asked for most, by Space-Saving (Metwally, Agrawal & El Abbadi, *Efficient computation of frequent
//! and top-k elements in data streams*, 2005).
//!
//! So many URLs are counted; a new one takes the place of the one with the fewest requests, of several that of the
//! first slot, and starts with these, as it may have had them before: that is its error. What is asked for more often
//! than total ÷ capacity is always there, and no count is too low. Which has the fewest requests, a queue says: it has
//! every URL's requests of some time ago, and is put right where a URL is given up, so that counting a known one does
//! not touch it, and costs no allocation. A URL is path and query, at most [`LONGEST`] bytes of them; all together have
//! a budget, and where they are long, fewer are kept.
//!
//! URLs are told apart by all 64 bits of a hash whose key is random, not by their text: of 10⁹ requests, one is counted
//! as another URL's with a probability of less than 10⁻⁶.

mod index;

use crate::Entry;
use foldhash::fast::RandomState;
use index::Index;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hash::{BuildHasher, Hasher};
use std::ops::Deref;

/// The most bytes of a URL that are looked at.
pub const LONGEST: usize = 2_048;

/// Bytes per URL on average that there is room for.
const MEAN_LENGTH: usize = 192;
/// The most bytes of a method.
const LONGEST_METHOD: usize = 16;
/// The bits of a [`Place`] that have the slot.
const SLOT_BITS: u32 = 24;
/// Memory for a URL comes in steps of so many bytes, so that most of those that follow one another in a slot fit.
const TEXT_STEP: usize = 32;

/// The most popular URLs.
#[derive(Clone, Debug)]
pub struct TopUrls {
    capacity: usize,
    hasher: RandomState,
    /// Slots. Those in `free` have no URL, nor have those from `used` on.
    urls: Vec<TopUrl>,
    used: usize,
    free: Vec<u32>,
    /// Each slot that has a URL, once; the one with the fewest requests first, as they were known.
    queue: BinaryHeap<Reverse<Place>>,
    index: Index,
    /// Bytes of all URLs.
    length: usize,
    /// The most requests that a URL had that was given up.
    given_up: u64,
}

/// A URL. What counting touches is the first 64 bytes, so that they are one line of a cache.
#[derive(Clone, Debug, Default)]
#[repr(C, align(64))]
pub struct TopUrl {
    hash: u64,
    /// How often.
    pub requests: u64,
    /// Of all answers that were seen since it is counted.
    pub bytes: u64,
    /// How many of these had a body.
    pub bodies: u64,
    /// Requests with this method less those with others (Boyer & Moore 1981).
    votes: u32,
    /// The method that it is mostly asked for with.
    pub method: Method,
    /// It may have been as much less often.
    pub requests_error: u64,
    /// Path and query.
    pub url: Vec<u8>,
}

/// A method; 16 bytes of it at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Method {
    bytes: [u8; LONGEST_METHOD],
    length: u8,
}

/// Requests, up to a trillion, and slot: of as many requests, the first slot comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place(u64);

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
            capacity: capacity.clamp(1, (1 << SLOT_BITS) - 1),
            hasher,
            urls: Vec::new(),
            used: 0,
            free: Vec::new(),
            queue: BinaryHeap::new(),
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

    /// The same, when URL and hash are known. Whether the URL was not among those that are counted.
    pub(crate) fn add_hashed(&mut self, hash: u64, url: &[u8], entry: &Entry<'_>) -> bool {
        if url.is_empty() {
            return false;
        }
        let found = self.find(hash);
        let slot = found.unwrap_or_else(|| self.insert(hash, url));
        self.urls[slot].count(entry);
        found.is_none()
    }

    /// Forgets all URLs, but not the memory that they had.
    pub(crate) fn clear(&mut self) {
        self.used = 0;
        self.free.clear();
        self.queue.clear();
        self.index.clear();
        self.length = 0;
        self.given_up = 0;
    }

    /// Most requests first; of as many, in the order of the alphabet.
    pub fn sorted(&self) -> Vec<&TopUrl> {
        let mut all: Vec<&TopUrl> = self.queue.iter().map(|Reverse(place)| &self.urls[place.slot()]).collect();
        all.sort_unstable_by(|a, b| b.requests.cmp(&a.requests).then_with(|| a.url.cmp(&b.url)));
        all
    }

    /// Whether no URL was given up, so that every count is exact.
    pub fn is_exact(&self) -> bool {
        self.given_up == 0
    }

    #[inline]
    fn find(&self, hash: u64) -> Option<usize> {
        self.index.find(hash, |slot| self.urls[slot].hash == hash)
    }

    /// A URL that is not known.
    fn insert(&mut self, hash: u64, url: &[u8]) -> usize {
        while self.length + url.len() > LONGEST + self.capacity * MEAN_LENGTH && self.queue.len() > 1 {
            self.give_up();
        }
        let slot = if self.queue.len() >= self.capacity { self.replaced() } else { self.added() };
        let new = &mut self.urls[slot];
        rewrite(&mut new.url, url);
        (new.requests, new.requests_error) = (self.given_up, self.given_up);
        (new.bytes, new.bodies, new.votes, new.hash) = (0, 0, 0, hash);
        self.length += url.len();
        self.index.insert(hash, slot);
        slot
    }

    /// A slot for one more, which stands in the queue already.
    fn added(&mut self) -> usize {
        let slot = self.free.pop().map_or(self.used, |slot| slot as usize);
        if slot == self.used {
            self.used += 1;
        }
        if slot == self.urls.len() {
            self.urls.push(TopUrl::default());
        }
        self.queue.push(Reverse(Place::new(self.given_up + 1, slot)));
        slot
    }

    /// The slot of the URL with the fewest requests, which is given up, and stands in the queue for the new one.
    fn replaced(&mut self) -> usize {
        self.put_right();
        let Some(mut first) = self.queue.peek_mut() else { return self.added() };
        let slot = first.0.slot();
        self.given_up = self.urls[slot].requests;
        *first = Reverse(Place::new(self.given_up + 1, slot));
        drop(first);
        self.forget(slot);
        slot
    }

    /// Gives up the URL with the fewest requests.
    fn give_up(&mut self) {
        self.put_right();
        let Some(Reverse(first)) = self.queue.pop() else { return };
        let slot = first.slot();
        self.given_up = self.urls[slot].requests;
        self.forget(slot);
        self.urls[slot].url = Vec::new();
        self.free.push(slot as u32);
    }

    /// Makes the first of the queue the one with the fewest requests. Requests since a URL was last put right pay for
    /// it.
    fn put_right(&mut self) {
        while let Some(mut first) = self.queue.peek_mut() {
            let slot = first.0.slot();
            let place = Reverse(Place::new(self.urls[slot].requests, slot));
            if *first == place {
                return;
            }
            *first = place;
        }
    }

    /// No longer finds a URL.
    fn forget(&mut self, slot: usize) {
        self.length -= self.urls[slot].url.len();
        self.index.remove(self.urls[slot].hash, slot);
    }
}

impl Place {
    fn new(requests: u64, slot: usize) -> Place {
        Place((requests.min(u64::MAX >> SLOT_BITS) << SLOT_BITS) | slot as u64)
    }

    fn slot(self) -> usize {
        (self.0 & ((1 << SLOT_BITS) - 1)) as usize
    }
}

impl TopUrl {
    /// Mean bytes of the answers that have a body; 0 where none has.
    pub fn mean_bytes(&self) -> f64 {
        if self.bodies == 0 { 0.0 } else { self.bytes as f64 / self.bodies as f64 }
    }

    #[inline]
    fn count(&mut self, entry: &Entry<'_>) {
        let bytes = entry.bytes.unwrap_or(0);
        self.requests += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        self.bodies += u64::from(bytes > 0);
        let method = entry.method.get(..LONGEST_METHOD).unwrap_or(entry.method);
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
        let mut bytes = [0; LONGEST_METHOD];
        bytes.iter_mut().zip(text).for_each(|(byte, from)| *byte = *from);
        Method { bytes, length: text.len().min(LONGEST_METHOD) as u8 }
    }
}

impl Deref for Method {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.length)).unwrap_or_default()
    }
}

/// What `==` says of short texts, without a call.
#[inline]
pub(super) fn is_same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a == b)
}

/// Puts a text in the place of another, in its memory if that is neither too small nor much too large.
fn rewrite(old: &mut Vec<u8>, text: &[u8]) {
    if !(text.len()..=2 * text.len() + TEXT_STEP).contains(&old.capacity()) {
        *old = Vec::with_capacity(text.len().next_multiple_of(TEXT_STEP));
    }
    old.clear();
    old.extend_from_slice(text);
}

/// What finds a URL.
pub(crate) fn hash(hasher: &RandomState, url: &[u8]) -> u64 {
    let mut hasher = hasher.build_hasher();
    hasher.write(url);
    hasher.finish()
}

#[cfg(test)]
mod tests;
