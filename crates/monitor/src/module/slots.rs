//! Reads the slots of a Server Module's file consistently while workers write to them, and sums over all slots.
//!
//! A request is either in the sums of its class or pending (`server-module/layout.h`); the totals include both. A
//! worker adds its pending requests to the sums (a *fold*) about once in [`MAX_PENDING`] requests: thousands of times
//! per second on a busy server. A reading of a slot is valid only if no fold happened meanwhile. Otherwise the slot is
//! read again. The number of repetitions is limited, because the file is written by a program that is not trusted.

use super::buckets::bucket_of;
use super::layout::{
    BUCKETS, CPU_PHASES, FOLDED_COUNT_SHIFT, MAX_PENDING, PHASES, class, pending, read_u32_at, read_u64_at,
    request_bits, slot, sums, times,
};
use super::{ClassSample, TimesSample};
use brimful_core::Nanos;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Maximum number of repeated readings, over all slots. A reading of a slot takes some microseconds, and is valid only
/// if the worker does not add pending requests to the sums meanwhile. A very busy worker adds them so often that many
/// attempts may fail.
const MAX_ATTEMPTS: usize = 4096;

/// Bytes that another process may change or truncate at any moment.
pub(super) trait Bytes {
    fn length(&self) -> io::Result<u64>;
    /// Fills the whole buffer with the bytes from the offset `at` on. Returns an error if there are fewer bytes.
    fn fill(&self, buffer: &mut [u8], at: u64) -> io::Result<()>;
}

/// A function that says whether a worker is alive. Its argument is the worker's process id.
pub(super) type IsAlive<'a> = &'a dyn Fn(u32) -> bool;

/// Reads slots, one after another, into the same buffer.
pub(super) struct SlotReader<'b, B> {
    bytes: &'b B,
    buffer: &'b mut [u8],
    /// Number of repeated readings that are left.
    attempts: usize,
}

/// The contents of a slot (the counters of one worker) at one moment.
pub(super) struct Slot<'b> {
    /// The words at `RECORDED_OFFSET` and `FOLDED_OFFSET`, from the first reading of the slot's first cache line. Their
    /// copies in `bytes` may be newer.
    recorded: u64,
    folded: u64,
    /// The word at `REQUEST_BITS_OFFSET` of each pending request, as it was before the rest of the slot was read. It
    /// says for which phases the request has times; the times themselves are in `bytes`.
    whats: [u64; MAX_PENDING],
    bytes: &'b [u8],
}

/// The counters of a server: sums over all slots of a file.
#[derive(Clone, Debug, Default)]
pub(super) struct Totals {
    /// Number of workers that are alive.
    pub workers: u64,
    /// Number of requests in progress.
    pub in_progress: u64,
    /// Number of connections accepted.
    pub connections: u64,
    /// Time for which workers were busy.
    pub busy_ns: u64,
    /// CPU time of the workers' threads.
    pub cpu_ns: u64,
    /// Sums for each class of requests.
    pub classes: Vec<ClassTotals>,
}

/// The counters of a class of requests, summed over all slots.
#[derive(Clone, Debug)]
pub(super) struct ClassTotals {
    /// The words of the sums, and the words between the sums and the buckets, in the order of the file.
    sums: [u64; sums::SIZE / 8],
    cpu: [u64; (class::BUCKETS_OFFSET - class::CPU_COUNT_OFFSET) / 8],
    buckets: [[u64; BUCKETS]; PHASES],
}

impl<'b, B: Bytes> SlotReader<'b, B> {
    /// Creates a reader. The buffer grows as needed.
    pub fn new(bytes: &'b B, slot_size: usize, buffer: &'b mut Vec<u8>) -> SlotReader<'b, B> {
        if buffer.len() < slot_size {
            buffer.resize(slot_size, 0);
        }
        SlotReader { bytes, buffer: &mut buffer[..slot_size], attempts: MAX_ATTEMPTS }
    }

    /// Reads the slot at the offset `at` of the file. Returns `None` if the slot was never used, like most slots of
    /// most servers.
    pub fn read(&mut self, at: u64) -> io::Result<Option<Slot<'_>>> {
        let mut line = [0; slot::LINE_BYTES];
        self.bytes.fill(&mut line, at)?;
        if read_u64_at(&line, slot::OWNERS_OFFSET).is_none_or(|owners| owners == 0) {
            return Ok(None);
        }
        let mut whats = [0; MAX_PENDING];
        let (recorded, folded) = loop {
            let word = |at| read_u64_at(&line, at).unwrap_or_default();
            let (recorded, folded) = (word(slot::RECORDED_OFFSET), word(slot::FOLDED_OFFSET));
            if pending_count(recorded, folded) > 0 {
                self.bytes.fill(
                    &mut self.buffer[slot::PENDING_OFFSET..slot::CLASSES_OFFSET],
                    at + slot::PENDING_OFFSET as u64,
                )?;
                let places = self.buffer[slot::PENDING_OFFSET..slot::CLASSES_OFFSET].chunks_exact(pending::SIZE);
                whats
                    .iter_mut()
                    .zip(places)
                    .for_each(|(what, place)| *what = read_u64_at(place, pending::REQUEST_BITS_OFFSET).unwrap_or(0));
            }
            self.bytes.fill(self.buffer, at)?;
            self.bytes.fill(&mut line, at)?;
            if read_u64_at(&line, slot::FOLDED_OFFSET) == Some(folded) || self.attempts == 0 {
                break (recorded, folded);
            }
            self.attempts -= 1;
        };
        Ok(Some(Slot { recorded, folded, whats, bytes: self.buffer }))
    }
}

impl Bytes for File {
    fn length(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn fill(&self, buffer: &mut [u8], at: u64) -> io::Result<()> {
        self.read_exact_at(buffer, at)
    }
}

impl Bytes for &[u8] {
    fn length(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }

    fn fill(&self, buffer: &mut [u8], at: u64) -> io::Result<()> {
        let at = usize::try_from(at).unwrap_or(usize::MAX);
        let found = self.get(at..at.saturating_add(buffer.len())).ok_or(io::ErrorKind::UnexpectedEof)?;
        buffer.copy_from_slice(found);
        Ok(())
    }
}

/// The number of pending requests of a slot. A number that no writer can have written counts as 0.
fn pending_count(recorded: u64, folded: u64) -> u64 {
    let count = recorded.wrapping_sub(folded >> FOLDED_COUNT_SHIFT);
    if count <= MAX_PENDING as u64 { count } else { 0 }
}

impl Slot<'_> {
    /// For each pending request, the word at `REQUEST_BITS_OFFSET`, and all bytes of the request.
    fn pending(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let first = self.folded >> FOLDED_COUNT_SHIFT;
        (0..pending_count(self.recorded, self.folded)).filter_map(move |request| {
            let place = (first.wrapping_add(request) % MAX_PENDING as u64) as usize;
            let at = slot::PENDING_OFFSET + place * pending::SIZE;
            Some((*self.whats.get(place)?, self.bytes.get(at..at + pending::SIZE)?))
        })
    }
}

impl Totals {
    /// Sets all sums to zero, for a file with `classes` classes.
    pub fn clear(&mut self, classes: usize) {
        self.classes.clear();
        self.classes.resize(classes, ClassTotals::ZERO);
        *self = Totals { classes: std::mem::take(&mut self.classes), ..Totals::default() };
    }

    /// Adds the counters of a slot. `now` is the time of the reading, up to which a busy worker was busy.
    pub fn add(&mut self, slot: &Slot<'_>, is_alive: IsAlive<'_>, now: Nanos) {
        self.add_worker(slot.bytes, is_alive, now);
        let classes = slot.bytes.get(slot::CLASSES_OFFSET..).unwrap_or_default().chunks_exact(class::SIZE);
        for (index, (totals, bytes)) in self.classes.iter_mut().zip(classes).enumerate() {
            totals.add(bytes, (slot.folded >> index) as usize & 1);
        }
        for (what, place) in slot.pending() {
            if let Some(totals) = self.classes.get_mut((what & request_bits::CLASS_MASK) as usize) {
                totals.add_pending(what, place);
            }
        }
    }

    /// Adds the counters in the first bytes of a slot. If the slot's worker was killed, these bytes show a busy worker
    /// with a request in progress until another worker uses the slot; so they count only for living workers.
    fn add_worker(&mut self, head: &[u8], is_alive: IsAlive<'_>, now: Nanos) {
        let word = |at| read_u64_at(head, at).unwrap_or_default();
        add(&mut self.connections, word(slot::CONNECTIONS_OFFSET));
        add(&mut self.busy_ns, word(slot::BUSY_NS_OFFSET));
        add(&mut self.cpu_ns, word(slot::CPU_NS_OFFSET));
        let owner = read_u32_at(head, slot::OWNER_OFFSET).filter(|&owner| owner != 0);
        if owner.is_some_and(is_alive) {
            add(&mut self.workers, 1);
            add(&mut self.in_progress, word(slot::IN_PROGRESS_OFFSET));
            let since = word(slot::BUSY_SINCE_NS_OFFSET);
            if since > 0 {
                add(&mut self.busy_ns, now.0.saturating_sub(since));
            }
        }
    }
}

impl ClassTotals {
    const ZERO: ClassTotals = ClassTotals {
        sums: [0; sums::SIZE / 8],
        cpu: [0; (class::BUCKETS_OFFSET - class::CPU_COUNT_OFFSET) / 8],
        buckets: [[0; BUCKETS]; PHASES],
    };

    /// Adds the counters of a class in a slot. `current` is the index of the current copy of the class's sums.
    fn add(&mut self, bytes: &[u8], current: usize) {
        let (counters, buckets) = bytes.split_at(class::BUCKETS_OFFSET);
        let (both, cpu) = counters.split_at(class::CPU_COUNT_OFFSET);
        let current = both.chunks_exact(sums::SIZE).nth(current).unwrap_or_default();
        let any = read_u64_at(current, sums::REQUESTS_OFFSET).is_some_and(|requests| requests > 0);
        self.sums.iter_mut().zip(words(current)).for_each(|(sum, word)| add(sum, word));
        self.cpu.iter_mut().zip(words(cpu)).for_each(|(sum, word)| add(sum, word));
        if any {
            self.buckets.as_flattened_mut().iter_mut().zip(words(buckets)).for_each(|(sum, word)| add(sum, word));
        }
    }

    /// Adds a pending request to the sums in the same way as the server: see `brimful_fold` in `server-module/`.
    fn add_pending(&mut self, what: u64, place: &[u8]) {
        add(&mut self.sums[sums::REQUESTS_OFFSET / 8], 1);
        add(&mut self.sums[sums::BYTES_OFFSET / 8], read_u64_at(place, pending::BYTES_OFFSET).unwrap_or_default());
        add(&mut self.sums[sums::FAILED_OFFSET / 8], u64::from(what & request_bits::FAILED != 0));
        add(&mut self.sums[sums::ABORTED_OFFSET / 8], u64::from(what & request_bits::ABORTED != 0));
        add(&mut self.sums[sums::RESUMED_OFFSET / 8], what >> request_bits::RESUMED_SHIFT);
        for phase in (0..PHASES).filter(|phase| what >> (request_bits::HAS_TIME_SHIFT as usize + phase) & 1 != 0) {
            let ns = read_u64_at(place, pending::TIME_NS_OFFSET + 8 * phase).unwrap_or_default();
            let at = (sums::TIMES_OFFSET + phase * times::SIZE) / 8;
            add(&mut self.sums[at + times::COUNT_OFFSET / 8], 1);
            add(&mut self.sums[at + times::SUM_NS_OFFSET / 8], ns);
            add(&mut self.sums[at + times::SUM_US2_OFFSET / 8], square_us2(ns));
            add(&mut self.buckets[phase][bucket_of(ns)], 1);
        }
    }

    /// Converts the sums to a sample of the class `name`.
    pub fn sample(&self, name: String) -> ClassSample {
        let sum = |at: usize| self.sums[at / 8];
        let cpu = |at: usize| self.cpu[(at - class::CPU_COUNT_OFFSET) / 8];
        ClassSample {
            name,
            requests: sum(sums::REQUESTS_OFFSET),
            bytes: sum(sums::BYTES_OFFSET),
            failed: sum(sums::FAILED_OFFSET),
            aborted: sum(sums::ABORTED_OFFSET),
            resumed: sum(sums::RESUMED_OFFSET),
            cpu_count: cpu(class::CPU_COUNT_OFFSET),
            cpu_ns: std::array::from_fn::<_, CPU_PHASES, _>(|phase| cpu(class::CPU_NS_OFFSET + 8 * phase)),
            cpu_sum_us2: cpu(class::CPU_SUM_US2_OFFSET),
            cpu_mixed: cpu(class::CPU_MIXED_OFFSET),
            blocks_count: cpu(class::BLOCKS_COUNT_OFFSET),
            blocks_read: cpu(class::BLOCKS_READ_OFFSET),
            blocks_written: cpu(class::BLOCKS_WRITTEN_OFFSET),
            times: std::array::from_fn(|phase| self.times(phase)),
        }
    }

    fn times(&self, phase: usize) -> TimesSample {
        let sum = |at: usize| self.sums[(sums::TIMES_OFFSET + phase * times::SIZE + at) / 8];
        let buckets = self.buckets[phase].iter().enumerate();
        TimesSample {
            count: sum(times::COUNT_OFFSET),
            sum_ns: sum(times::SUM_NS_OFFSET),
            sum_us2: sum(times::SUM_US2_OFFSET),
            buckets: buckets.filter(|(_, count)| **count > 0).map(|(bucket, &count)| (bucket as u8, count)).collect(),
        }
    }
}

/// The square of a time in square microseconds, rounded down. The recorder may round the sum of several squares
/// instead, which is at least the sum of the rounded squares.
fn square_us2(ns: u64) -> u64 {
    match ns {
        ..1_000_000_000 => ns * ns / 1_000_000,
        _ => (ns / 1000).min(0x7fff_ffff).pow(2),
    }
}

/// The 64-bit words of `bytes`. An incomplete last word is dropped.
fn words(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.chunks_exact(8).filter_map(|word| read_u64_at(word, 0))
}

/// Adds `more` to `sum`. The sum saturates instead of overflowing, because the file may contain any numbers.
fn add(sum: &mut u64, more: u64) {
    *sum = sum.saturating_add(more);
}
