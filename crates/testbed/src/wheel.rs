//! A timer wheel: things that are due at instants, given back in the order of these.
//!
//! One turn of it is 2²⁰ slots of 8.192 µs, 8.6 s. An instant is rounded up to the next slot, so nothing comes too
//! early, and what is in a slot comes out in the order in which it was put in: things of one flow, whose instants never
//! fall, keep their order. Putting in and taking out cost the same however many there are. Which slots are occupied is
//! a bit each, with a summary over every 64. Source: Varghese & Lauck 1987, scheme 4.
//!
//! It is told the time.

use brimful_core::Nanos;

/// Length of a slot is 2 to this power, in nanoseconds.
const SLOT_BITS: u32 = 13;
/// Slots of a turn.
const SLOTS: u64 = 1 << 20;
/// Bits of a word.
const WORD: usize = 64;
/// No entry: entries are counted from one, so that memory that was never written is an empty slot.
const NONE: u32 = 0;

/// How far ahead something may be due.
pub const HORIZON: Nanos = Nanos((SLOTS - 2) << SLOT_BITS);

/// The things and when they are due.
#[derive(Debug)]
pub struct Wheel<T> {
    slots: Vec<Slot>,
    occupied: Vec<u64>,
    /// Words of `occupied` that are not zero.
    summary: Vec<u64>,
    entries: Vec<Entry<T>>,
    /// The first entry that is free.
    free: u32,
    /// The number, since the beginning of time, of the first occupied slot.
    first: Option<u64>,
    length: usize,
}

/// The entries that are due at the same time, a list.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    first: u32,
    last: u32,
}

#[derive(Debug)]
struct Entry<T> {
    thing: Option<T>,
    next: u32,
}

impl<T> Wheel<T> {
    pub fn new() -> Wheel<T> {
        let words = SLOTS as usize / WORD;
        Wheel {
            slots: vec![Slot::default(); SLOTS as usize],
            occupied: vec![0; words],
            summary: vec![0; words / WORD],
            entries: Vec::new(),
            free: NONE,
            first: None,
            length: 0,
        }
    }

    /// How many things are in it.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Puts a thing in. Due beyond the horizon, it comes at the horizon; due before `now`, at once.
    pub fn insert(&mut self, now: Nanos, due: Nanos, thing: T) {
        let present = now.0 >> SLOT_BITS;
        let base = self.first.map_or(present, |first| first.min(present));
        let slot = due.0.saturating_add((1 << SLOT_BITS) - 1) >> SLOT_BITS;
        let slot = slot.clamp(base, base + SLOTS - 1);
        let entry = self.entry(thing);
        let index = index(slot);
        let list = &mut self.slots[index];
        match list.last {
            NONE => list.first = entry,
            last => self.entries[last as usize - 1].next = entry,
        }
        list.last = entry;
        self.occupied[index / WORD] |= 1 << (index % WORD);
        self.summary[index / WORD / WORD] |= 1 << (index / WORD % WORD);
        self.first = Some(self.first.map_or(slot, |first| first.min(slot)));
        self.length += 1;
    }

    /// When the next thing is due, rounded up to its slot.
    pub fn next(&self) -> Option<Nanos> {
        self.first.map(|slot| Nanos(slot << SLOT_BITS))
    }

    /// Takes the next thing out if it is due.
    pub fn pop(&mut self, now: Nanos) -> Option<T> {
        let slot = self.first.filter(|slot| slot << SLOT_BITS <= now.0)?;
        let index = index(slot);
        let list = &mut self.slots[index];
        let place = list.first.checked_sub(1)? as usize;
        let entry = &mut self.entries[place];
        list.first = entry.next;
        let thing = entry.thing.take();
        entry.next = self.free;
        self.free = place as u32 + 1;
        self.length -= 1;
        if list.first == NONE {
            list.last = NONE;
            self.vacate(slot, index);
        }
        thing
    }

    /// A slot has become empty, which was the first.
    fn vacate(&mut self, slot: u64, index: usize) {
        let word = &mut self.occupied[index / WORD];
        *word &= !(1 << (index % WORD));
        if *word == 0 {
            self.summary[index / WORD / WORD] &= !(1 << (index / WORD % WORD));
        }
        let ahead = |found: usize| (found as u64).wrapping_sub(slot) & (SLOTS - 1);
        self.first = self.occupied_from(index).map(|found| slot + ahead(found));
    }

    /// The first occupied slot from one on, round the wheel.
    fn occupied_from(&self, index: usize) -> Option<usize> {
        if self.length == 0 {
            return None;
        }
        let word = index / WORD;
        let found = next_bit(&self.occupied[word..=word], index % WORD).map(|bit| word * WORD + bit);
        found.or_else(|| {
            let words = next_bit(&self.summary, word + 1).or_else(|| next_bit(&self.summary, 0))?;
            next_bit(&self.occupied[words..=words], 0).map(|bit| words * WORD + bit)
        })
    }

    /// A place for a thing.
    fn entry(&mut self, thing: T) -> u32 {
        let entry = Entry { thing: Some(thing), next: NONE };
        match self.free {
            NONE => {
                self.entries.push(entry);
                self.entries.len() as u32
            }
            free => {
                let place = &mut self.entries[free as usize - 1];
                self.free = place.next;
                *place = entry;
                free
            }
        }
    }
}

fn index(slot: u64) -> usize {
    (slot & (SLOTS - 1)) as usize
}

/// The first bit that is set, from this one on.
fn next_bit(words: &[u64], from: usize) -> Option<usize> {
    let first = from / WORD;
    let in_first = words.get(first)? & (u64::MAX << (from % WORD));
    let rest = words.iter().skip(first + 1).copied();
    let mut all = std::iter::once(in_first).chain(rest).enumerate();
    all.find(|(_, word)| *word != 0).map(|(i, word)| (first + i) * WORD + word.trailing_zeros() as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SLOT: u64 = 1 << SLOT_BITS;

    #[test]
    fn nothing_comes_early_and_what_is_due_together_keeps_its_order() {
        let mut wheel = Wheel::new();
        let start = Nanos::from_secs(100);
        for (due, thing) in [(3 * SLOT, 'c'), (1, 'a'), (SLOT - 1, 'b'), (3 * SLOT, 'd')] {
            wheel.insert(start, Nanos(due) + start, thing);
        }
        assert_eq!(wheel.pop(start), None);
        let mut seen = Vec::new();
        while let Some(next) = wheel.next() {
            assert_eq!(wheel.pop(next - Nanos(1)), None, "too early");
            seen.extend(wheel.pop(next));
        }
        assert_eq!((seen, wheel.len()), (vec!['a', 'b', 'c', 'd'], 0));
    }

    #[test]
    fn the_past_is_due_at_once_and_the_far_future_at_the_horizon() {
        let mut wheel = Wheel::new();
        let now = Nanos::from_secs(50);
        wheel.insert(now, Nanos::ZERO, "past");
        wheel.insert(now, Nanos::MAX, "future");
        assert_eq!(wheel.pop(now), Some("past"));
        let next = wheel.next().unwrap();
        assert!(next >= now + HORIZON && next <= now + HORIZON + Nanos(3 * SLOT), "{next}");
        assert_eq!(wheel.pop(next), Some("future"));
        assert_eq!(wheel.next(), None);
    }

    proptest! {
        /// Against a sorted list, over several turns of the wheel.
        #[test]
        fn it_gives_back_what_a_sorted_list_would(
            steps in prop::collection::vec((0u64..2_000_000_000, 0u64..8_000_000_000), 1..200),
        ) {
            let mut wheel = Wheel::new();
            let mut list: Vec<(u64, usize)> = Vec::new();
            let mut now = 7_000_000_000u64;
            for (number, (passes, ahead)) in steps.into_iter().enumerate() {
                now += passes;
                let mut due: Vec<(u64, usize)> = list.iter().copied().filter(|(slot, _)| slot * SLOT <= now).collect();
                due.sort_unstable();
                list.retain(|(slot, _)| slot * SLOT > now);
                for (_, expected) in due {
                    prop_assert_eq!(wheel.pop(Nanos(now)), Some(expected));
                }
                prop_assert_eq!(wheel.pop(Nanos(now)), None);
                wheel.insert(Nanos(now), Nanos(now + ahead), number);
                list.push(((now + ahead).div_ceil(SLOT).max(now / SLOT), number));
                prop_assert_eq!(wheel.len(), list.len());
                let next = list.iter().map(|(slot, _)| slot * SLOT).min();
                prop_assert_eq!(wheel.next().map(|next| next.0), next);
            }
        }
    }
}
