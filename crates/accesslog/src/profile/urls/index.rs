//! Maps the hashes of URLs to slots: a hash table with linear probing, at most half full.
//!
//! A cell is 0 if it is empty. Otherwise, it consists of the upper half of a hash and the slot + 1. The lower bits of
//! this upper half select the preferred position of the cell.

/// The hash table. The bits of the upper half of each hash must be well mixed.
#[derive(Clone, Debug, Default)]
pub(super) struct Index {
    /// The cells of the hash table. Their number is 0 or a power of two.
    cells: Vec<u64>,
    used: usize,
}

impl Index {
    /// Finds the slot of a URL with this hash for which `is_match` returns `true`. `is_match` is rarely called for
    /// slots with other hashes, because half of the hash is compared first.
    pub fn find(&self, hash: u64, is_match: impl Fn(usize) -> bool) -> Option<usize> {
        let mask = self.cells.len().checked_sub(1)?;
        let mut at = home(hash, mask);
        loop {
            let slot = slot_of(self.cells[at])?;
            if self.cells[at] >> 32 == hash >> 32 && is_match(slot) {
                return Some(slot);
            }
            at = (at + 1) & mask;
        }
    }

    /// Inserts a slot that is not in the table.
    pub fn insert(&mut self, hash: u64, slot: usize) {
        self.used += 1;
        if self.cells.len() < 2 * self.used {
            let cells = vec![0; (2 * self.used).next_power_of_two().max(16)];
            let old = std::mem::replace(&mut self.cells, cells);
            old.into_iter().filter(|cell| *cell != 0).for_each(|cell| self.place(cell));
        }
        self.place((hash >> 32 << 32) | (slot as u64 + 1));
    }

    /// Removes a slot that is in the table. Following cells that are not at their preferred position are moved back, so
    /// that searches still find them.
    pub fn remove(&mut self, hash: u64, slot: usize) {
        self.used -= 1;
        let mask = self.cells.len() - 1;
        let mut hole = home(hash, mask);
        while slot_of(self.cells[hole]) != Some(slot) {
            hole = (hole + 1) & mask;
        }
        let mut at = (hole + 1) & mask;
        while self.cells[at] != 0 {
            let from_home = at.wrapping_sub(home(self.cells[at], mask)) & mask;
            if from_home >= at.wrapping_sub(hole) & mask {
                self.cells[hole] = self.cells[at];
                hole = at;
            }
            at = (at + 1) & mask;
        }
        self.cells[hole] = 0;
    }

    /// Removes all slots. The time is proportional to the number of slots, not to the size of the table.
    pub fn clear(&mut self) {
        if self.cells.len() > 32 * self.used {
            self.cells = Vec::new();
        } else {
            self.cells.fill(0);
        }
        self.used = 0;
    }

    /// Number of slots in the table.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        assert!(self.cells.len() >= 2 * self.used);
        assert_eq!(self.cells.iter().filter(|cell| **cell != 0).count(), self.used);
        self.used
    }

    fn place(&mut self, cell: u64) {
        let mask = self.cells.len() - 1;
        let mut at = home(cell, mask);
        while self.cells[at] != 0 {
            at = (at + 1) & mask;
        }
        self.cells[at] = cell;
    }
}

/// The preferred position of a hash, or of a cell, which begins with the upper half of a hash.
fn home(hash: u64, mask: usize) -> usize {
    (hash >> 32) as usize & mask
}

fn slot_of(cell: u64) -> Option<usize> {
    (cell as u32 as usize).checked_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64;
    use std::collections::BTreeMap;

    #[test]
    fn it_finds_what_a_map_finds() {
        let (mut index, mut map, mut rng) = (Index::default(), BTreeMap::new(), Pcg64::seed_from_u64(1));
        for round in 0..20_000 {
            let slot = rng.random_range(0..300usize);
            // The hashes have only seven preferred positions in the table. So there are long runs of occupied cells,
            // also across the end of the table.
            let hash = ((slot as u64 % 7) << 32).wrapping_sub(3 << 32);
            match map.remove(&slot) {
                Some(()) => index.remove(hash, slot),
                None => {
                    map.insert(slot, ());
                    index.insert(hash, slot);
                }
            }
            if round % 100 == 0 {
                assert_eq!(index.len(), map.len());
                for slot in 0..300 {
                    let hash = ((slot as u64 % 7) << 32).wrapping_sub(3 << 32);
                    assert_eq!(index.find(hash, |found| found == slot).is_some(), map.contains_key(&slot), "{slot}");
                }
            }
        }
    }
}
