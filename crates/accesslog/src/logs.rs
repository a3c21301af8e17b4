//! The logs of a site, opened: all lines of all of them, merged by time.
//!
//! A rotated set has one log for each stretch of time, a site of several servers has several for the same. Nobody has
//! to say which it is. Logs are read one after another, from that on whose first request is the oldest. Where the one
//! that is read goes on beyond the beginning of the next, that one is read beside it, by a thread of its own, and
//! whichever has the oldest request goes on. So a rotated set costs no more than [`read()`](crate::read::read()).
//!
//! Servers write a line when an answer has ended, so a log is a little out of order by itself, and stays so: requests
//! are not sorted. A stamp that leaps ahead waits for the next line, so that a wrong one does not hold up its log until
//! all others have ended. `read = parsed + malformed + filtered` over all logs.
//!
//! Memory: about 1 MiB for each log that is read beside another, of which there are at most [`MOST_BESIDE`]. What lies
//! at the same time in still more logs comes later, and is out of order.

mod batch;

use crate::read::{Kept, Prepared, Progress, Read, ReadOptions, prepare, read_prepared};
use crate::source;
use crate::source::blocks::Limits;
use crate::source::sample::{self, Begun};
use crate::{Entry, LogError};
use batch::{Batch, Packer};
use brimful_core::profile::{Lines, Source};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Logs that are read beside another at a time.
pub const MOST_BESIDE: usize = 64;
/// Batches of entries that are ahead of the merge, of each log.
const BATCHES_AHEAD: usize = 2;
/// Bytes that are read at once of a log beside another.
const BLOCK_BESIDE: usize = 64 * 1024;
/// A stamp that is further ahead of the one before may be wrong.
const LEAP_NS: i64 = 60_000_000_000;
/// How often progress is told, at most.
const PROGRESS_EVERY: Duration = Duration::from_millis(100);

/// Logs that are open.
pub struct Logs {
    prepared: Prepared,
    options: ReadOptions,
}

impl Logs {
    /// Opens logs and reads how each begins. `paths`: files, patterns, directories, or `-`; see [`source::find`].
    ///
    /// # Errors
    /// A path that is not there or cannot be read, logs without a line, or lines of which nothing known reads any.
    pub fn open(paths: &[String], options: ReadOptions) -> Result<Logs, LogError> {
        Ok(Logs { prepared: prepare(source::find(paths)?, &options)?, options })
    }

    /// How far east of UTC the logs' own clocks are, in seconds, as most of their first stamps say; `None` where these
    /// do not.
    pub fn offset_s(&self) -> Option<i32> {
        sample::offset_s(&self.prepared.logs, &self.prepared.formats)
    }

    /// Reads all of them, merged by time.
    ///
    /// # Errors
    /// Where there is no thread to read with.
    pub fn read(
        self,
        sink: &mut impl FnMut(&Entry<'_>) -> Kept,
        progress: &mut dyn FnMut(&Progress),
    ) -> Result<Read, LogError> {
        if self.prepared.logs.len() < 2 {
            return self.read_in_turn(sink, progress);
        }
        let Logs { prepared: Prepared { logs, formats, of }, options } = self;
        let done = Done { read: Read { lines: Lines::default(), sources: Vec::new(), formats } };
        let paths = logs.iter().map(|log| log.log.path().to_owned()).collect();
        let waiting = logs.into_iter().enumerate().collect();
        let tally = Arc::new(Tally { of, ..Tally::default() });
        let given = Given { sink, kept: 0, out_of_order: 0 };
        Merge { waiting, beside: Vec::new(), next_ns: i64::MIN, options, tally, given, done }.run(paths, progress)
    }

    /// Reads one after another, for those to whom the order means nothing.
    ///
    /// # Errors
    /// As [`Logs::read`].
    pub fn read_in_turn(
        self,
        sink: &mut impl FnMut(&Entry<'_>) -> Kept,
        progress: &mut dyn FnMut(&Progress),
    ) -> Result<Read, LogError> {
        read_prepared(self.prepared, &self.options, Limits::default(), sink, progress)
    }
}

/// What is under way.
struct Merge<'s, S> {
    /// Not begun yet, with their place; those without a request that can be read come last.
    waiting: VecDeque<(usize, Begun)>,
    beside: Vec<Beside>,
    /// Before this instant, nothing but the log that is read in this thread has a request.
    next_ns: i64,
    options: ReadOptions,
    tally: Arc<Tally>,
    given: Given<'s, S>,
    done: Done,
}

/// A log that another thread reads.
struct Beside {
    place: usize,
    batches: Receiver<Batch>,
    batch: Batch,
    /// The entry of it that comes next.
    at: usize,
    last_ns: i64,
    thread: JoinHandle<Result<Read, LogError>>,
}

/// Who gets the entries, and what became of them.
struct Given<'s, S> {
    sink: &'s mut S,
    kept: u64,
    out_of_order: u64,
}

/// What all threads have read together.
#[derive(Default)]
struct Tally {
    bytes: AtomicU64,
    lines: AtomicU64,
    of: Option<u64>,
}

/// What is known of logs that have been read.
struct Done {
    read: Read,
}

impl<S: FnMut(&Entry<'_>) -> Kept> Merge<'_, S> {
    fn run(mut self, paths: Vec<String>, progress: &mut dyn FnMut(&Progress)) -> Result<Read, LogError> {
        let unread = |path| Source { path, cut_short: Some("nothing more was wanted".to_owned()), ..Source::default() };
        self.done.read.sources = paths.into_iter().map(unread).collect();
        while !self.options.enough.load(Ordering::Relaxed)
            && let Some((place, log)) = self.waiting.pop_front()
        {
            let read = self.read_here(log, progress)?;
            self.done.add(place, read);
        }
        let mut last = Instant::now();
        while !self.options.enough.load(Ordering::Relaxed) && self.hand_on_one(i64::MAX) {
            if last.elapsed() >= PROGRESS_EVERY {
                last = Instant::now();
                progress(&self.tally.so_far());
            }
        }
        self.finish(progress)
    }

    /// Reads a log in this thread, and hands on what others have before each of its requests.
    fn read_here(&mut self, log: Begun, progress: &mut dyn FnMut(&Progress)) -> Result<Read, LogError> {
        let (options, tally) = (self.options.clone(), self.tally.clone());
        let prepared = Prepared { logs: vec![log], formats: self.done.read.formats.afresh(), of: None };
        self.look_ahead();
        // What waits for the next line, as its stamp may be wrong.
        let mut held = Batch::default();
        let mut packer = Packer::default();
        let mut last_ns = i64::MIN;
        let mut sink = |entry: &Entry<'_>| {
            let leaps = packer.leaps(entry.time_ns);
            if !held.is_empty() {
                self.hand_on_held(&mut held, entry.time_ns, &mut last_ns);
            }
            if leaps {
                held.push(entry, entry.time_ns);
                return Kept::Yes;
            }
            self.hand_on_before(entry.time_ns);
            self.given.give(entry, &mut last_ns);
            Kept::Yes
        };
        let mut before = Progress::default();
        let mut shown = |now: &Progress| progress(&tally.add(now, &mut before));
        let read = read_prepared(prepared, &options, Limits::default(), &mut sink, &mut shown)?;
        self.hand_on_held(&mut held, i64::MAX, &mut last_ns);
        Ok(read)
    }

    /// Hands on what was held until the next request of its log, which came then.
    fn hand_on_held(&mut self, held: &mut Batch, then_ns: i64, last_ns: &mut i64) {
        for at in 0..held.len() {
            if let Some((entry, key_ns)) = held.get(at) {
                self.hand_on_before(key_ns.min(then_ns));
                self.given.give(&entry, last_ns);
            }
        }
        held.clear();
    }

    /// Hands on what others have before an instant.
    #[inline]
    fn hand_on_before(&mut self, time_ns: i64) {
        if time_ns >= self.next_ns {
            self.catch_up(time_ns);
        }
    }

    #[cold]
    fn catch_up(&mut self, time_ns: i64) {
        self.begin_until(time_ns);
        while self.hand_on_one(time_ns) {}
        self.look_ahead();
    }

    /// Begins to read those whose first request came before, as far as there may be threads for them.
    fn begin_until(&mut self, time_ns: i64) {
        while self.beside.len() < MOST_BESIDE
            && let Some(first_ns) = self.waiting.front().and_then(|(_, log)| log.first_ns)
            // Of a log that is rotated, two may have the same second.
            && first_ns < time_ns
            && let Some((place, log)) = self.waiting.pop_front()
        {
            let (sender, batches) = sync_channel(BATCHES_AHEAD);
            let formats = self.done.read.formats.afresh();
            let prepared = Prepared { logs: vec![log], formats, of: None };
            let (options, tally) = (self.options.clone(), self.tally.clone());
            let read = move || read_beside(prepared, &options, &tally, sender);
            match thread::Builder::new().name("log beside".to_owned()).spawn(read) {
                Ok(thread) => {
                    let batch = Batch::default();
                    self.beside.push(Beside { place, batches, batch, at: 0, last_ns: i64::MIN, thread });
                }
                Err(_) => self.done.miss(place),
            }
        }
    }

    /// Hands on the oldest request of the logs beside, if it came no later; else says that there is none.
    fn hand_on_one(&mut self, time_ns: i64) -> bool {
        let mut oldest: Option<(usize, i64)> = None;
        let mut index = 0;
        while let Some(beside) = self.beside.get_mut(index) {
            match beside.next_ns() {
                Some(next_ns) => {
                    if oldest.is_none_or(|(_, oldest_ns)| next_ns < oldest_ns) {
                        oldest = Some((index, next_ns));
                    }
                    index += 1;
                }
                None => {
                    let ended = self.beside.swap_remove(index);
                    self.done.join(ended);
                }
            }
        }
        let Some(beside) = oldest.filter(|(_, ns)| *ns <= time_ns).and_then(|(index, _)| self.beside.get_mut(index))
        else {
            return false;
        };
        if let Some((entry, _)) = beside.batch.get(beside.at) {
            self.given.give(&entry, &mut beside.last_ns);
        }
        beside.at += 1;
        true
    }

    /// Finds out until when there is nothing to do but for the log that is read here.
    fn look_ahead(&mut self) {
        let heads = self.beside.iter_mut().filter_map(Beside::next_ns).min();
        let more = self.beside.len() < MOST_BESIDE;
        let waiting = self.waiting.front().filter(|_| more).and_then(|(_, log)| log.first_ns);
        self.next_ns = heads.into_iter().chain(waiting).min().unwrap_or(i64::MAX);
    }

    fn finish(mut self, progress: &mut dyn FnMut(&Progress)) -> Result<Read, LogError> {
        for beside in std::mem::take(&mut self.beside) {
            self.done.join(beside);
        }
        progress(&self.tally.so_far());
        let mut read = self.done.read;
        // What was on its way when nothing more was wanted is filtered too.
        read.lines.filtered += read.lines.parsed.saturating_sub(self.given.kept);
        read.lines.parsed = self.given.kept;
        read.lines.out_of_order = self.given.out_of_order;
        read.lines.first_malformed.truncate(self.options.first_malformed);
        Ok(read)
    }
}

impl Beside {
    /// The key of its next entry, once there is one; `None` at the end.
    fn next_ns(&mut self) -> Option<i64> {
        while self.at >= self.batch.len() {
            (self.batch, self.at) = (self.batches.recv().ok()?, 0);
        }
        self.batch.key_ns(self.at)
    }
}

impl<S: FnMut(&Entry<'_>) -> Kept> Given<'_, S> {
    /// `last_ns` is when the last one of the same log came that was kept.
    #[inline]
    fn give(&mut self, entry: &Entry<'_>, last_ns: &mut i64) {
        if (self.sink)(entry) == Kept::Yes {
            self.kept += 1;
            self.out_of_order += u64::from(entry.time_ns < *last_ns);
            *last_ns = entry.time_ns;
        }
    }
}

impl Tally {
    /// Adds what one log has more than before.
    fn add(&self, now: &Progress, before: &mut Progress) -> Progress {
        self.bytes.fetch_add(now.bytes.saturating_sub(before.bytes), Ordering::Relaxed);
        self.lines.fetch_add(now.lines.saturating_sub(before.lines), Ordering::Relaxed);
        *before = *now;
        self.so_far()
    }

    fn so_far(&self) -> Progress {
        let (bytes, lines) = (self.bytes.load(Ordering::Relaxed), self.lines.load(Ordering::Relaxed));
        Progress { bytes, of: self.of, lines }
    }
}

impl Done {
    fn join(&mut self, beside: Beside) {
        let Beside { place, batches, thread, .. } = beside;
        // It must not wait for someone to take what it still has.
        drop(batches);
        match thread.join() {
            Ok(Ok(read)) => self.add(place, read),
            _ => self.miss(place),
        }
    }

    /// Says of a log that it was not read.
    fn miss(&mut self, place: usize) {
        if let Some(source) = self.read.sources.get_mut(place) {
            source.cut_short = Some("there was no thread to read it with".to_owned());
        }
    }

    fn add(&mut self, place: usize, read: Read) {
        let (lines, more) = (&mut self.read.lines, read.lines);
        lines.read += more.read;
        lines.parsed += more.parsed;
        lines.malformed += more.malformed;
        lines.filtered += more.filtered;
        lines.first_malformed.extend(more.first_malformed);
        self.read.formats.join(read.formats);
        if let Some((place, source)) = self.read.sources.get_mut(place).zip(read.sources.into_iter().next()) {
            *place = source;
        }
    }
}

/// Reads a log to its end, or until nobody wants more.
fn read_beside(
    prepared: Prepared,
    options: &ReadOptions,
    tally: &Tally,
    batches: SyncSender<Batch>,
) -> Result<Read, LogError> {
    let limits = Limits { block: BLOCK_BESIDE, ..Limits::default() };
    let (mut batch, mut packer) = (Batch::default(), Packer::default());
    let mut sink = |entry: &Entry<'_>| {
        packer.pack(entry, &mut batch);
        if packer.may_end(&batch) && batches.send(std::mem::take(&mut batch)).is_err() {
            options.enough.store(true, Ordering::Relaxed);
        }
        Kept::Yes
    };
    let mut before = Progress::default();
    let mut progress = |now: &Progress| {
        tally.add(now, &mut before);
    };
    let read = read_prepared(prepared, options, limits, &mut sink, &mut progress)?;
    // If nobody listens, nothing is missing to anybody.
    let _ = batches.send(batch);
    Ok(read)
}
