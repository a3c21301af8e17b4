//! A timer wheel: a queue that returns items in the order of their due times.
//!
//! The wheel is an array of 2²⁰ slots of 8.192 µs, which cover 8.6 s and are reused in turn. A due time is rounded up
//! to the next slot, so no item is early. Items in the same slot keep the order in which they were inserted. So packets
//! of a flow keep their order if their due times do not decrease. Insertion and removal take constant time. A bitmap
//! marks the occupied slots, and a summary marks the words of the bitmap that are not zero. Source: Varghese & Lauck
//! 1987, scheme 4.
//!
//! The wheel does not read a clock: its caller passes the time.

use brimful_core::Nanos;

/// Log₂ of a slot's length in nanoseconds.
const SLOT_BITS: u32 = 13;
/// Number of slots of the wheel.
const SLOTS: u64 = 1 << 20;
/// Number of bits in a word of the bitmaps.
const WORD: usize = 64;
/// The number that stands for no entry. Entries are numbered from one, so an empty slot consists of zero bytes, and the
/// kernel allocates memory only for slots that were used.
const NONE: u32 = 0;

/// Maximum time until the due time of an item.
pub const WHEEL_HORIZON: Nanos = Nanos((SLOTS - 2) << SLOT_BITS);

/// A queue of items in the order of their due times.
#[derive(Debug)]
pub struct TimerWheel<T> {
    slots: Vec<Slot>,
    occupied: Vec<u64>,
    /// A bitmap with one bit for each word of `occupied`, which is set if the word is not zero.
    summary: Vec<u64>,
    entries: Vec<Entry<T>>,
    /// Number of the first unused entry; unused entries form a linked list.
    free: u32,
    /// Number of the first occupied slot. Slot numbers count from time zero, over all reuses of the array.
    first: Option<u64>,
    length: usize,
}

/// The items that are due in one slot, as a linked list of entries.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    first: u32,
    last: u32,
}

#[derive(Debug)]
struct Entry<T> {
    item: Option<T>,
    next: u32,
}

impl<T> TimerWheel<T> {
    /// Creates an empty timer wheel.
    pub fn new() -> TimerWheel<T> {
        let words = SLOTS as usize / WORD;
        TimerWheel {
            slots: vec![Slot::default(); SLOTS as usize],
            occupied: vec![0; words],
            summary: vec![0; words / WORD],
            entries: Vec::new(),
            free: NONE,
            first: None,
            length: 0,
        }
    }

    /// Number of items in the wheel.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Inserts an item. If it is due beyond [`WHEEL_HORIZON`], it becomes due at the horizon. If it was due before
    /// `now`, the next call of [`TimerWheel::pop`] returns it.
    pub fn insert(&mut self, now: Nanos, due: Nanos, item: T) {
        let present = now.0 >> SLOT_BITS;
        let base = self.first.map_or(present, |first| first.min(present));
        let slot = due.0.saturating_add((1 << SLOT_BITS) - 1) >> SLOT_BITS;
        let slot = slot.clamp(base, base + SLOTS - 1);
        let entry = self.allocate_entry(item);
        let index = slot_index(slot);
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

    /// Due time of the next item, rounded up to the next slot; `None` if the wheel is empty.
    pub fn next_due(&self) -> Option<Nanos> {
        self.first.map(|slot| Nanos(slot << SLOT_BITS))
    }

    /// Removes and returns the next item if it is due.
    pub fn pop(&mut self, now: Nanos) -> Option<T> {
        let slot = self.first.filter(|slot| slot << SLOT_BITS <= now.0)?;
        let index = slot_index(slot);
        let list = &mut self.slots[index];
        let entry_index = list.first.checked_sub(1)? as usize;
        let entry = &mut self.entries[entry_index];
        list.first = entry.next;
        let item = entry.item.take();
        entry.next = self.free;
        self.free = entry_index as u32 + 1;
        self.length -= 1;
        if list.first == NONE {
            list.last = NONE;
            self.clear_first_slot(slot, index);
        }
        item
    }

    /// Marks the first occupied slot as empty, and finds the next occupied slot.
    fn clear_first_slot(&mut self, slot: u64, index: usize) {
        let word = &mut self.occupied[index / WORD];
        *word &= !(1 << (index % WORD));
        if *word == 0 {
            self.summary[index / WORD / WORD] &= !(1 << (index / WORD % WORD));
        }
        let slots_ahead = |found: usize| (found as u64).wrapping_sub(slot) & (SLOTS - 1);
        self.first = self.next_occupied(index).map(|found| slot + slots_ahead(found));
    }

    /// Index of the first occupied slot from `index` on. The search continues at the beginning of the array.
    fn next_occupied(&self, index: usize) -> Option<usize> {
        if self.length == 0 {
            return None;
        }
        let word = index / WORD;
        let found = next_bit(&self.occupied[word..=word], index % WORD).map(|bit| word * WORD + bit);
        found.or_else(|| {
            let word = next_bit(&self.summary, word + 1).or_else(|| next_bit(&self.summary, 0))?;
            next_bit(&self.occupied[word..=word], 0).map(|bit| word * WORD + bit)
        })
    }

    /// Stores an item in an unused or a new entry, and returns the entry's number.
    fn allocate_entry(&mut self, item: T) -> u32 {
        let entry = Entry { item: Some(item), next: NONE };
        match self.free {
            NONE => {
                self.entries.push(entry);
                self.entries.len() as u32
            }
            free => {
                let free_entry = &mut self.entries[free as usize - 1];
                self.free = free_entry.next;
                *free_entry = entry;
                free
            }
        }
    }
}

fn slot_index(slot: u64) -> usize {
    (slot & (SLOTS - 1)) as usize
}

/// Index of the first set bit from bit `from` on.
fn next_bit(words: &[u64], from: usize) -> Option<usize> {
    let first = from / WORD;
    let first_word = words.get(first)? & (u64::MAX << (from % WORD));
    let other_words = words.iter().skip(first + 1).copied();
    let mut remaining_words = (first..).zip(std::iter::once(first_word).chain(other_words));
    remaining_words.find(|(_, word)| *word != 0).map(|(index, word)| index * WORD + word.trailing_zeros() as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SLOT: u64 = 1 << SLOT_BITS;

    #[test]
    fn no_item_is_early_and_items_of_one_slot_keep_their_order() {
        let mut wheel = TimerWheel::new();
        let start = Nanos::from_secs(100);
        for (due, item) in [(3 * SLOT, 'c'), (1, 'a'), (SLOT - 1, 'b'), (3 * SLOT, 'd')] {
            wheel.insert(start, Nanos(due) + start, item);
        }
        assert_eq!(wheel.pop(start), None);
        let mut seen = Vec::new();
        while let Some(next) = wheel.next_due() {
            assert_eq!(wheel.pop(next - Nanos(1)), None, "too early");
            seen.extend(wheel.pop(next));
        }
        assert_eq!((seen, wheel.len()), (vec!['a', 'b', 'c', 'd'], 0));
    }

    #[test]
    fn past_items_are_due_at_once_and_far_ones_at_the_horizon() {
        let mut wheel = TimerWheel::new();
        let now = Nanos::from_secs(50);
        wheel.insert(now, Nanos::ZERO, "past");
        wheel.insert(now, Nanos::MAX, "future");
        assert_eq!(wheel.pop(now), Some("past"));
        let next = wheel.next_due().unwrap();
        assert!(next >= now + WHEEL_HORIZON && next <= now + WHEEL_HORIZON + Nanos(3 * SLOT), "{next}");
        assert_eq!(wheel.pop(next), Some("future"));
        assert_eq!(wheel.next_due(), None);
    }

    proptest! {
        /// Expects that the wheel returns items in the same order as a sorted list, over a time longer than the wheel
        /// covers.
        #[test]
        fn the_wheel_returns_items_like_a_sorted_list(
            steps in prop::collection::vec((0u64..2_000_000_000, 0u64..8_000_000_000), 1..200),
        ) {
            let mut wheel = TimerWheel::new();
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
                prop_assert_eq!(wheel.next_due().map(|next| next.0), next);
            }
        }
    }
}
