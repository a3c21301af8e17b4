//! Batches of log entries, which one thread sends to another. The texts of all entries of a batch are in one buffer.

use super::LEAP_NS;
use crate::Entry;

/// Maximum number of entries in a batch.
const ENTRIES: usize = 512;
/// Minimum number of bytes of texts at which a batch is complete.
const BYTES: usize = 64 * 1024;
/// Number of texts in an entry, such as its method and its target.
const TEXTS: usize = 7;

/// A batch of consecutive entries of a log.
#[derive(Debug, Default)]
pub(super) struct Batch {
    bytes: Vec<u8>,
    packed: Vec<Packed>,
}

/// An entry of a batch without its texts, which are in the buffer of the batch.
#[derive(Debug)]
struct Packed {
    /// The merge key: the time that determines the entry's order among the entries of all logs.
    key_ns: i64,
    numbers: Entry<'static>,
    /// The position in the buffer at which each text ends.
    ends: [usize; TEXTS],
}

impl Batch {
    /// Number of entries in the batch.
    pub fn len(&self) -> usize {
        self.packed.len()
    }

    pub fn is_empty(&self) -> bool {
        self.packed.is_empty()
    }

    /// Removes all entries, but keeps the allocated memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.packed.clear();
    }

    /// Appends a copy of an entry, with its merge key.
    pub fn push(&mut self, entry: &Entry<'_>, key_ns: i64) {
        let Entry { method, target, protocol, host, client, user_agent, referer, .. } = *entry;
        let ends = [method, target, protocol, host, client, user_agent, referer].map(|text| {
            self.bytes.extend_from_slice(text);
            self.bytes.len()
        });
        let Entry { time_ns, has_subsecond_time, offset_s, status, bytes, service_ns, upstream_ns, .. } = *entry;
        let numbers =
            Entry { time_ns, has_subsecond_time, offset_s, status, bytes, service_ns, upstream_ns, ..Entry::default() };
        self.packed.push(Packed { key_ns, numbers, ends });
    }

    /// The merge key of the entry at index `at`.
    pub fn key_ns(&self, at: usize) -> Option<i64> {
        self.packed.get(at).map(|packed| packed.key_ns)
    }

    /// The entry at index `at`, and its merge key.
    pub fn get(&self, at: usize) -> Option<(Entry<'_>, i64)> {
        let packed = self.packed.get(at)?;
        let before = at.checked_sub(1).and_then(|before| self.packed.get(before));
        let mut start = before.map_or(0, |before| before.ends[TEXTS - 1]);
        let [method, target, protocol, host, client, user_agent, referer] = packed.ends.map(|end| {
            let text = self.bytes.get(start..end).unwrap_or_default();
            start = end;
            text
        });
        let entry = Entry { method, target, protocol, host, client, user_agent, referer, ..packed.numbers };
        Some((entry, packed.key_ns))
    }
}

/// Adds entries to batches and computes their merge keys. The key of an entry is its time. If this time is far ahead
/// and the next entry is earlier, the key is the time of the next entry.
#[derive(Debug, Default)]
pub(super) struct Packer {
    last_ns: Option<i64>,
    /// The time of the last entry, if this time is far ahead of the previous times; otherwise `None`.
    leapt_ns: Option<i64>,
}

impl Packer {
    /// Whether `time_ns` is far ahead of the previous times.
    pub fn is_leap_ahead(&mut self, time_ns: i64) -> bool {
        if let Some(leapt_ns) = self.leapt_ns.take() {
            self.last_ns = Some(leapt_ns.min(time_ns));
        }
        let leaps = self.last_ns.is_some_and(|last_ns| time_ns > last_ns.saturating_add(LEAP_NS));
        if leaps {
            self.leapt_ns = Some(time_ns);
        } else {
            self.last_ns = Some(time_ns);
        }
        leaps
    }

    /// Adds an entry to a batch.
    pub fn pack(&mut self, entry: &Entry<'_>, batch: &mut Batch) {
        if let (Some(_), Some(last)) = (self.leapt_ns, batch.packed.last_mut()) {
            last.key_ns = last.key_ns.min(entry.time_ns);
        }
        self.is_leap_ahead(entry.time_ns);
        batch.push(entry, entry.time_ns);
    }

    /// Whether the batch is large enough, and the merge key of its last entry is known.
    pub fn is_batch_complete(&self, batch: &Batch) -> bool {
        self.leapt_ns.is_none() && (batch.len() >= ENTRIES || batch.bytes.len() >= BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_out_as_they_went_in() {
        let first =
            Entry { time_ns: 5, has_subsecond_time: true, offset_s: Some(3600), target: b"/a", ..Entry::default() };
        let second = Entry { bytes: Some(7), user_agent: b"curl", method: b"GET", status: 200, ..Entry::default() };
        let mut batch = Batch::default();
        batch.push(&first, 5);
        batch.push(&second, 4);
        assert_eq!((batch.get(0), batch.get(1), batch.get(2)), (Some((first, 5)), Some((second, 4)), None));
        batch.clear();
        assert_eq!((batch.len(), batch.get(0)), (0, None));
    }

    #[test]
    fn a_stamp_that_is_wrong_has_the_key_of_the_next_one() {
        const MINUTE: i64 = 60_000_000_000;
        let keys = |times: &[i64]| -> Vec<i64> {
            let (mut batch, mut packer) = (Batch::default(), Packer::default());
            for time in times {
                packer.pack(&Entry { time_ns: time * MINUTE, ..Entry::default() }, &mut batch);
            }
            (0..batch.len()).filter_map(|at| batch.key_ns(at)).map(|key| key / MINUTE).collect()
        };
        assert_eq!(keys(&[1, 2, 9_000, 3, 4]), [1, 2, 3, 3, 4]);
        assert_eq!(keys(&[1, 2, 60, 61, 62]), [1, 2, 60, 61, 62], "a pause must not count as a wrong timestamp");
        assert_eq!(keys(&[5, 1, 6]), [5, 1, 6]);
    }
}
