//! Reads all logs of a site, merged by time.
//!
//! A rotated set has one log for each time period. A site with several servers has several logs of the same period. The
//! reader distinguishes these two cases. It reads the logs one after another, starting with the log whose first request
//! is the oldest. If the next log begins before the current log ends, a second thread reads the next log concurrently.
//! The oldest request of both logs is then delivered next. So a rotated set costs no more than
//! [`read()`](crate::read::read()).
//!
//! Servers write a line when a response has ended, so a log is slightly out of order. The requests of one log are not
//! sorted. If a timestamp is far ahead, its request is held until the next line is known. Otherwise, a wrong timestamp
//! would delay its log until all other logs have ended. For the counts of lines of all logs, `read = parsed + malformed
//! + filtered`.
//!
//! Memory: about 1 MiB per concurrent log, of which there are at most [`MAX_CONCURRENT_LOGS`]. Requests of any
//! additional logs of the same period are delivered later, out of order.

mod batch;

use crate::read::{EntryDecision, Prepared, Progress, ReadOptions, ReadSummary, prepare, read_prepared};
use crate::source;
use crate::source::blocks::Limits;
use crate::source::sample::{self, OpenedLog};
use crate::{Entry, LogError};
use batch::{Batch, Packer};
use brimful_core::profile::{Lines, Source};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Maximum number of logs that are read concurrently besides the current one.
pub const MAX_CONCURRENT_LOGS: usize = 64;
/// Maximum number of batches of entries that are read ahead from each concurrent log before they are merged.
const BATCHES_AHEAD: usize = 2;
/// Number of bytes per read of a log that a separate thread reads.
const CONCURRENT_BLOCK: usize = 64 * 1024;
/// A timestamp that is later than the previous one by more than this time may be wrong.
const LEAP_NS: i64 = 60_000_000_000;
/// Minimum time between progress reports.
const PROGRESS_EVERY: Duration = Duration::from_millis(100);

/// Logs that are open and whose formats are known.
pub struct Logs {
    prepared: Prepared,
    options: ReadOptions,
}

impl Logs {
    /// Opens logs and reads their beginnings. `paths` are files, patterns, directories, or `-`; see [`source::find`].
    ///
    /// # Errors
    /// Returns an error if a path cannot be read, if no log has a line, or if no known format reads the lines.
    pub fn open(paths: &[String], options: ReadOptions) -> Result<Logs, LogError> {
        Ok(Logs { prepared: prepare(source::find(paths)?, &options)?, options })
    }

    /// The number of seconds by which the logs' clocks are ahead of UTC, according to the first timestamps of most
    /// logs. `None` if these timestamps state no offset.
    pub fn offset_s(&self) -> Option<i32> {
        sample::offset_s(&self.prepared.logs, &self.prepared.formats)
    }

    /// Reads all logs, merged by time.
    ///
    /// # Errors
    /// Returns an error if no thread can be started.
    pub fn read(
        self,
        sink: &mut impl FnMut(&Entry<'_>) -> EntryDecision,
        progress: &mut dyn FnMut(&Progress),
    ) -> Result<ReadSummary, LogError> {
        if self.prepared.logs.len() < 2 {
            return self.read_one_by_one(sink, progress);
        }
        let Logs { prepared: Prepared { logs, formats, total_bytes }, options } = self;
        let results = Results { read: ReadSummary { lines: Lines::default(), sources: Vec::new(), formats } };
        let paths = logs.iter().map(|log| log.log.path().to_owned()).collect();
        let waiting = logs.into_iter().enumerate().collect();
        let shared = Arc::new(SharedProgress { total_bytes, ..SharedProgress::default() });
        let delivery = Delivery { sink, kept: 0, out_of_order: 0 };
        Merge { waiting, concurrent: Vec::new(), next_ns: i64::MIN, options, shared, delivery, results }
            .run(paths, progress)
    }

    /// Reads one log after another, for callers that ignore the order of requests.
    ///
    /// # Errors
    /// The errors of [`Logs::read`].
    pub fn read_one_by_one(
        self,
        sink: &mut impl FnMut(&Entry<'_>) -> EntryDecision,
        progress: &mut dyn FnMut(&Progress),
    ) -> Result<ReadSummary, LogError> {
        read_prepared(self.prepared, &self.options, Limits::default(), sink, progress)
    }
}

/// The state while the entries of several logs are merged by time.
struct Merge<'s, S> {
    /// Logs that no thread has started to read, with their indices. Logs without a readable request come last.
    waiting: VecDeque<(usize, OpenedLog)>,
    concurrent: Vec<ConcurrentLog>,
    /// The time of the oldest request of the other logs, in nanoseconds since 1970. Until this time, all requests come
    /// from the log that this thread reads.
    next_ns: i64,
    options: ReadOptions,
    shared: Arc<SharedProgress>,
    delivery: Delivery<'s, S>,
    results: Results,
}

/// A log that another thread reads.
struct ConcurrentLog {
    place: usize,
    batches: Receiver<Batch>,
    batch: Batch,
    /// Index of the next entry in `batch`.
    at: usize,
    last_ns: i64,
    thread: JoinHandle<Result<ReadSummary, LogError>>,
}

/// Passes entries to the sink (the function that receives them), and counts them.
struct Delivery<'s, S> {
    sink: &'s mut S,
    kept: u64,
    out_of_order: u64,
}

/// The progress of all reading threads together.
#[derive(Default)]
struct SharedProgress {
    bytes: AtomicU64,
    lines: AtomicU64,
    total_bytes: Option<u64>,
}

/// Results of the logs that have been read.
struct Results {
    read: ReadSummary,
}

impl<S: FnMut(&Entry<'_>) -> EntryDecision> Merge<'_, S> {
    fn run(mut self, paths: Vec<String>, progress: &mut dyn FnMut(&Progress)) -> Result<ReadSummary, LogError> {
        let unread = |path| Source { path, cut_short: Some("the reading was stopped".to_owned()), ..Source::default() };
        self.results.read.sources = paths.into_iter().map(unread).collect();
        while !self.options.stop.load(Ordering::Relaxed)
            && let Some((place, log)) = self.waiting.pop_front()
        {
            let read = self.read_in_this_thread(log, progress)?;
            self.results.add(place, read);
        }
        let mut last = Instant::now();
        while !self.options.stop.load(Ordering::Relaxed) && self.pass_on_oldest(i64::MAX) {
            if last.elapsed() >= PROGRESS_EVERY {
                last = Instant::now();
                progress(&self.shared.current());
            }
        }
        self.finish(progress)
    }

    /// Reads a log in this thread. Before each request of this log, delivers the older requests of the concurrent logs.
    fn read_in_this_thread(
        &mut self,
        log: OpenedLog,
        progress: &mut dyn FnMut(&Progress),
    ) -> Result<ReadSummary, LogError> {
        let options = self.options.clone();
        let shared = self.shared.clone();
        let prepared =
            Prepared { logs: vec![log], formats: self.results.read.formats.with_zero_counts(), total_bytes: None };
        self.update_next_time();
        // Entries that are held until the next line is known, because their timestamps may be wrong.
        let mut held = Batch::default();
        let mut packer = Packer::default();
        let mut last_ns = i64::MIN;
        let mut sink = |entry: &Entry<'_>| {
            let leaps = packer.is_leap_ahead(entry.time_ns);
            if !held.is_empty() {
                self.pass_on_held(&mut held, entry.time_ns, &mut last_ns);
            }
            if leaps {
                held.push(entry, entry.time_ns);
                return EntryDecision::Accepted;
            }
            self.pass_on_before(entry.time_ns);
            self.delivery.deliver(entry, &mut last_ns);
            EntryDecision::Accepted
        };
        let mut before = Progress::default();
        let mut shown = |now: &Progress| progress(&shared.add(now, &mut before));
        let read = read_prepared(prepared, &options, Limits::default(), &mut sink, &mut shown)?;
        self.pass_on_held(&mut held, i64::MAX, &mut last_ns);
        Ok(read)
    }

    /// Delivers the held entries to the sink. Before each of them, delivers the older requests of the other logs.
    /// `then_ns` is the time of the next request in this log. Held entries with a later time are ordered as if they had
    /// this time.
    fn pass_on_held(&mut self, held: &mut Batch, then_ns: i64, last_ns: &mut i64) {
        for at in 0..held.len() {
            if let Some((entry, key_ns)) = held.get(at) {
                self.pass_on_before(key_ns.min(then_ns));
                self.delivery.deliver(&entry, last_ns);
            }
        }
        held.clear();
    }

    /// Delivers all requests of the concurrent logs with a time before `time_ns`.
    #[inline]
    fn pass_on_before(&mut self, time_ns: i64) {
        if time_ns >= self.next_ns {
            self.catch_up(time_ns);
        }
    }

    #[cold]
    fn catch_up(&mut self, time_ns: i64) {
        self.start_threads_until(time_ns);
        while self.pass_on_oldest(time_ns) {}
        self.update_next_time();
    }

    /// Starts threads for logs whose first request is before `time_ns`, up to [`MAX_CONCURRENT_LOGS`] threads.
    fn start_threads_until(&mut self, time_ns: i64) {
        while self.concurrent.len() < MAX_CONCURRENT_LOGS
            && let Some(first_ns) = self.waiting.front().and_then(|(_, log)| log.first_ns)
            // The comparison is `<`, not `<=`: if the last request of a rotated log and the first request of the next
            // log have the same second, the logs do not overlap and no thread is needed.
            && first_ns < time_ns
            && let Some((place, log)) = self.waiting.pop_front()
        {
            let (sender, batches) = sync_channel(BATCHES_AHEAD);
            let formats = self.results.read.formats.with_zero_counts();
            let prepared = Prepared { logs: vec![log], formats, total_bytes: None };
            let options = self.options.clone();
            let shared = self.shared.clone();
            let read = move || read_concurrently(prepared, &options, &shared, sender);
            match thread::Builder::new().name("concurrent log".to_owned()).spawn(read) {
                Ok(thread) => {
                    let batch = Batch::default();
                    self.concurrent.push(ConcurrentLog { place, batches, batch, at: 0, last_ns: i64::MIN, thread });
                }
                Err(_) => self.results.mark_unread(place),
            }
        }
    }

    /// Delivers the oldest request of the concurrent logs if its time is `time_ns` or earlier. Returns whether there
    /// was such a request.
    fn pass_on_oldest(&mut self, time_ns: i64) -> bool {
        let mut oldest: Option<(usize, i64)> = None;
        let mut index = 0;
        while let Some(concurrent) = self.concurrent.get_mut(index) {
            match concurrent.next_ns() {
                Some(next_ns) => {
                    if oldest.is_none_or(|(_, oldest_ns)| next_ns < oldest_ns) {
                        oldest = Some((index, next_ns));
                    }
                    index += 1;
                }
                None => {
                    let ended = self.concurrent.swap_remove(index);
                    self.results.join(ended);
                }
            }
        }
        let Some(concurrent) =
            oldest.filter(|(_, ns)| *ns <= time_ns).and_then(|(index, _)| self.concurrent.get_mut(index))
        else {
            return false;
        };
        if let Some((entry, _)) = concurrent.batch.get(concurrent.at) {
            self.delivery.deliver(&entry, &mut concurrent.last_ns);
        }
        concurrent.at += 1;
        true
    }

    /// Updates `next_ns`, the time of the oldest request of the concurrent logs and of the logs that have not been
    /// started.
    fn update_next_time(&mut self) {
        let heads = self.concurrent.iter_mut().filter_map(ConcurrentLog::next_ns).min();
        let more = self.concurrent.len() < MAX_CONCURRENT_LOGS;
        let waiting = self.waiting.front().filter(|_| more).and_then(|(_, log)| log.first_ns);
        self.next_ns = heads.into_iter().chain(waiting).min().unwrap_or(i64::MAX);
    }

    fn finish(mut self, progress: &mut dyn FnMut(&Progress)) -> Result<ReadSummary, LogError> {
        for concurrent in std::mem::take(&mut self.concurrent) {
            self.results.join(concurrent);
        }
        progress(&self.shared.current());
        let mut read = self.results.read;
        // If reading was stopped, entries that were not delivered count as filtered.
        read.lines.filtered += read.lines.parsed.saturating_sub(self.delivery.kept);
        read.lines.parsed = self.delivery.kept;
        read.lines.out_of_order = self.delivery.out_of_order;
        read.lines.first_malformed.truncate(self.options.max_malformed);
        Ok(read)
    }
}

impl ConcurrentLog {
    /// The merge key (the time by which entries are ordered) of the next entry, in nanoseconds. Waits until this entry
    /// has been read. Returns `None` at the end of the log.
    fn next_ns(&mut self) -> Option<i64> {
        while self.at >= self.batch.len() {
            (self.batch, self.at) = (self.batches.recv().ok()?, 0);
        }
        self.batch.key_ns(self.at)
    }
}

impl<S: FnMut(&Entry<'_>) -> EntryDecision> Delivery<'_, S> {
    /// Passes an entry to the sink. `last_ns` is the timestamp of the last accepted entry of the same log.
    #[inline]
    fn deliver(&mut self, entry: &Entry<'_>, last_ns: &mut i64) {
        if (self.sink)(entry) == EntryDecision::Accepted {
            self.kept += 1;
            self.out_of_order += u64::from(entry.time_ns < *last_ns);
            *last_ns = entry.time_ns;
        }
    }
}

impl SharedProgress {
    /// Adds the progress that one log has made since `before`, updates `before`, and returns the progress of all logs
    /// together.
    fn add(&self, now: &Progress, before: &mut Progress) -> Progress {
        self.bytes.fetch_add(now.bytes.saturating_sub(before.bytes), Ordering::Relaxed);
        self.lines.fetch_add(now.lines.saturating_sub(before.lines), Ordering::Relaxed);
        *before = *now;
        self.current()
    }

    fn current(&self) -> Progress {
        let bytes = self.bytes.load(Ordering::Relaxed);
        let lines = self.lines.load(Ordering::Relaxed);
        Progress { bytes, total_bytes: self.total_bytes, lines }
    }
}

impl Results {
    fn join(&mut self, concurrent: ConcurrentLog) {
        let ConcurrentLog { place, batches, thread, .. } = concurrent;
        // Close the channel first. Otherwise, the thread might wait forever for a receiver of its next batch.
        drop(batches);
        match thread.join() {
            Ok(Ok(read)) => self.add(place, read),
            _ => self.mark_unread(place),
        }
    }

    /// Marks a log as cut short, because no thread has read it to its end.
    fn mark_unread(&mut self, place: usize) {
        if let Some(source) = self.read.sources.get_mut(place) {
            source.cut_short = Some("there was no thread to read it with".to_owned());
        }
    }

    fn add(&mut self, place: usize, read: ReadSummary) {
        let lines = &mut self.read.lines;
        let more = read.lines;
        lines.read += more.read;
        lines.parsed += more.parsed;
        lines.malformed += more.malformed;
        lines.filtered += more.filtered;
        lines.first_malformed.extend(more.first_malformed);
        self.read.formats.merge(read.formats);
        if let Some((place, source)) = self.read.sources.get_mut(place).zip(read.sources.into_iter().next()) {
            *place = source;
        }
    }
}

/// Reads a log to its end, or until reading is stopped.
fn read_concurrently(
    prepared: Prepared,
    options: &ReadOptions,
    shared: &SharedProgress,
    batches: SyncSender<Batch>,
) -> Result<ReadSummary, LogError> {
    let limits = Limits { block_bytes: CONCURRENT_BLOCK, ..Limits::default() };
    let mut batch = Batch::default();
    let mut packer = Packer::default();
    let mut sink = |entry: &Entry<'_>| {
        packer.pack(entry, &mut batch);
        if packer.is_batch_complete(&batch) && batches.send(std::mem::take(&mut batch)).is_err() {
            options.stop.store(true, Ordering::Relaxed);
        }
        EntryDecision::Accepted
    };
    let mut before = Progress::default();
    let mut progress = |now: &Progress| {
        shared.add(now, &mut before);
    };
    let read = read_prepared(prepared, options, limits, &mut sink, &mut progress)?;
    // A send fails only if the receiver no longer exists, and then the batch is not needed.
    let _ = batches.send(batch);
    Ok(read)
}
