//! Reads all lines of all logs, one log after another, and counts each line by its outcome.
//!
//! A second thread reads and decompresses the bytes, and splits them into blocks of whole lines. The caller's thread
//! parses the lines. Small logs, which are read completely when they are opened, need no second thread. Blocks are
//! reused, so memory does not grow with the log. For any input, `read = parsed + malformed + filtered`. If a log cannot
//! be read to its end, the lines before the error are counted. The module `account` counts the lines.

mod account;

use crate::detect::Formats;
use crate::source::blocks::{Block, BlockContent, Limits};
use crate::source::sample::{self, OpenedLog};
use crate::source::{self, Log};
use crate::{Entry, LogError};
use account::{Account, Settings};
use brimful_core::profile::{Lines, MalformedLine, Source};
use brimful_core::quantity::count;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// Number of blocks by which the reading thread may be ahead.
const BLOCKS_AHEAD: usize = 3;
/// Minimum interval between progress reports.
const PROGRESS_EVERY: Duration = Duration::from_millis(100);

/// Options for reading logs.
#[derive(Clone, Debug)]
pub struct ReadOptions {
    /// The formats of the lines; detected from the first lines if `None`.
    pub formats: Option<Formats>,
    /// Maximum number of malformed lines that are kept for display; the first ones are kept.
    pub max_malformed: usize,
    /// Whether to read files to their current end. Otherwise, files are read only up to the size that they had when
    /// they were found.
    pub follow_growth: bool,
    /// The caller sets this flag to stop reading. The block that is being parsed is still completed.
    pub stop: Arc<AtomicBool>,
}

impl Default for ReadOptions {
    fn default() -> ReadOptions {
        ReadOptions { formats: None, max_malformed: 5, follow_growth: false, stop: Arc::default() }
    }
}

/// The decision of the sink, the function that receives the entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryDecision {
    /// The entry is counted as parsed.
    Accepted,
    /// The entry is counted as filtered.
    FilteredOut,
}

/// The progress of reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Number of bytes read, as stored: compressed if the log is compressed.
    pub bytes: u64,
    /// Total size of the logs in bytes, as stored; `None` if a log is a stream.
    pub total_bytes: Option<u64>,
    /// Number of lines read.
    pub lines: u64,
}

/// The result of reading logs.
#[derive(Clone, Debug)]
pub struct ReadSummary {
    /// Counts of lines by outcome.
    pub lines: Lines,
    /// The logs, in the order in which they were read.
    pub sources: Vec<Source>,
    /// The formats that read the lines.
    pub formats: Formats,
}

/// Reads logs from the oldest to the newest. `paths` are files, patterns, directories, or `-` for standard input. In a
/// directory, files with `access` in their names are read. See [`source::find`].
///
/// # Errors
///
/// Returns an error if a path cannot be read, if no log has a line, or if no known format reads the lines.
pub fn read(
    paths: &[String],
    options: ReadOptions,
    sink: &mut impl FnMut(&Entry<'_>) -> EntryDecision,
    progress: &mut dyn FnMut(&Progress),
) -> Result<ReadSummary, LogError> {
    read_logs(source::find(paths)?, options, Limits::default(), sink, progress)
}

/// Reads one stream, like standard input.
///
/// # Errors
///
/// The errors of [`read()`].
pub fn read_stream(
    name: &str,
    reader: impl io::Read + Send + 'static,
    options: ReadOptions,
    sink: &mut impl FnMut(&Entry<'_>) -> EntryDecision,
    progress: &mut dyn FnMut(&Progress),
) -> Result<ReadSummary, LogError> {
    read_logs(vec![Log::stream(name, reader)], options, Limits::default(), sink, progress)
}

fn read_logs(
    logs: Vec<Log>,
    options: ReadOptions,
    limits: Limits,
    sink: &mut impl FnMut(&Entry<'_>) -> EntryDecision,
    progress: &mut dyn FnMut(&Progress),
) -> Result<ReadSummary, LogError> {
    read_prepared(prepare(logs, &options)?, &options, limits, sink, progress)
}

/// Opened logs, in the order of the times of their first requests.
pub(crate) struct Prepared {
    /// The logs, the oldest first.
    pub logs: Vec<OpenedLog>,
    /// The formats with which all logs are read.
    pub formats: Formats,
    /// Total number of stored bytes of the logs, if known.
    pub total_bytes: Option<u64>,
}

/// Opens logs, detects their formats unless `options` has them, and sorts the logs by time.
pub(crate) fn prepare(logs: Vec<Log>, options: &ReadOptions) -> Result<Prepared, LogError> {
    let total_bytes = logs.iter().map(Log::bytes).sum::<Option<u64>>();
    let mut logs = sample::open_all(logs, options.follow_growth)?;
    if logs.iter().all(OpenedLog::is_empty) {
        return Err(empty(&logs));
    }
    let formats = match &options.formats {
        Some(formats) => formats.clone(),
        None => sample::detect(&logs).or_else(|error| sample::refuse_binary(&logs, None).and(Err(error)))?,
    };
    sample::refuse_binary(&logs, Some(&formats))?;
    sample::put_in_order(&mut logs, &formats);
    Ok(Prepared { logs, formats, total_bytes })
}

/// Reads opened logs. `options` must be the options with which the logs were opened.
pub(crate) fn read_prepared(
    prepared: Prepared,
    options: &ReadOptions,
    limits: Limits,
    sink: &mut impl FnMut(&Entry<'_>) -> EntryDecision,
    progress: &mut dyn FnMut(&Progress),
) -> Result<ReadSummary, LogError> {
    let Prepared { logs, formats, total_bytes } = prepared;
    let path = |log: &OpenedLog| Source { path: log.log.path().to_owned(), ..Source::default() };
    let sources: Vec<Source> = logs.iter().map(path).collect();
    let settings = Settings {
        may_detect: options.formats.is_none(),
        max_malformed: options.max_malformed,
        max_line_bytes: limits.line_bytes,
    };
    let reporter = ProgressReporter { progress, total_bytes, last: Instant::now() };
    let mut parser = Parser { account: Account::new(formats, sources, settings, sink), reporter, ended: 0, current: 0 };
    if logs.iter().all(OpenedLog::is_fully_read) {
        parser.parse_whole(logs, options, limits);
    } else {
        parser.parse_beside_reader(logs, options, limits)?;
    }
    Ok(parser.finish(&options.stop))
}

fn empty(logs: &[OpenedLog]) -> LogError {
    let one = |log: &OpenedLog| match &log.cut_short {
        Some(why) => format!("{}: {why}", log.log.path()),
        None => log.log.path().to_owned(),
    };
    LogError::Empty(logs.iter().map(one).collect::<Vec<_>>().join(", "))
}

/// A message from the reading thread.
struct Message {
    /// Index of the log.
    source: usize,
    /// Number of stored bytes of the log that have been read when the message is sent.
    taken: u64,
    kind: MessageKind,
}

enum MessageKind {
    Lines(Block),
    TooLong(Block),
    End { bytes: u64, cut_short: Option<String> },
}

/// Passes all blocks of the logs to `deliver`. `deliver` returns an empty block for reuse, or `None` to stop reading.
fn read_blocks(
    logs: Vec<OpenedLog>,
    follow_growth: bool,
    limits: Limits,
    mut deliver: impl FnMut(Message) -> Option<Block>,
) {
    let mut block = Block::default();
    for (source, log) in logs.into_iter().enumerate() {
        let mut log = match log.into_blocks(follow_growth, limits) {
            Ok(log) => log,
            Err(error) => {
                let cut_short = Some(format!("it cannot be opened again: {error}"));
                let kind = MessageKind::End { bytes: 0, cut_short };
                match deliver(Message { source, taken: 0, kind }) {
                    Some(_) => continue,
                    None => return,
                }
            }
        };
        loop {
            let kind = match log.next(&mut block) {
                BlockContent::Lines => MessageKind::Lines(std::mem::take(&mut block)),
                BlockContent::TooLong => MessageKind::TooLong(std::mem::take(&mut block)),
                BlockContent::End => {
                    MessageKind::End { bytes: log.bytes_decoded(), cut_short: log.truncation_reason() }
                }
            };
            let is_end = matches!(kind, MessageKind::End { .. });
            match deliver(Message { source, taken: log.bytes_read(), kind }) {
                Some(reused) => block = reused,
                None => return,
            }
            if is_end {
                break;
            }
        }
    }
}

/// Parses blocks, and counts the outcomes of their lines.
struct Parser<'a, S> {
    account: Account<'a, S>,
    reporter: ProgressReporter<'a>,
    /// Number of stored bytes of the logs that have ended.
    ended: u64,
    /// Number of stored bytes of the current log that have been read.
    current: u64,
}

impl<S: FnMut(&Entry<'_>) -> EntryDecision> Parser<'_, S> {
    /// Parses small logs in this thread. These logs were read completely when they were opened.
    fn parse_whole(&mut self, logs: Vec<OpenedLog>, options: &ReadOptions, limits: Limits) {
        let is_wanted = || !options.stop.load(Ordering::Relaxed);
        let longest = logs.iter().map(OpenedLog::head_bytes).max().unwrap_or(0);
        let limits = Limits { block_bytes: limits.block_bytes.min(longest + 1), ..limits };
        if is_wanted() {
            read_blocks(logs, options.follow_growth, limits, |message| {
                let block = self.parse(message);
                is_wanted().then_some(block)
            });
        }
    }

    /// Starts a thread that reads blocks, and parses the blocks in this thread.
    fn parse_beside_reader(
        &mut self,
        logs: Vec<OpenedLog>,
        options: &ReadOptions,
        limits: Limits,
    ) -> Result<(), LogError> {
        let (blocks, received) = mpsc::sync_channel(BLOCKS_AHEAD);
        let (spent, reused) = mpsc::channel::<Block>();
        let follow_growth = options.follow_growth;
        // The send fails only if reading was stopped, so that the receiver no longer exists.
        let deliver = move |message| blocks.send(message).ok().map(|()| reused.try_recv().unwrap_or_default());
        thread::Builder::new()
            .name("log reader".to_owned())
            .spawn(move || read_blocks(logs, follow_growth, limits, deliver))
            .map_err(|source| LogError::Io { path: "a thread to read with".into(), source })?;
        while let Some(message) = next(&received, &options.stop) {
            // The send fails only if the reading thread has ended. Then it needs no more blocks.
            let _ = spent.send(self.parse(message));
        }
        Ok(())
    }

    /// Parses the lines of a message's block, and returns the block for reuse.
    fn parse(&mut self, message: Message) -> Block {
        self.account.switch_to(message.source);
        self.current = message.taken;
        let block = match message.kind {
            MessageKind::Lines(block) => {
                self.account.read_lines(block.bytes());
                block
            }
            MessageKind::TooLong(block) => {
                self.account.count_too_long(block.bytes());
                block
            }
            MessageKind::End { bytes, cut_short } => {
                self.account.end(bytes, cut_short);
                self.ended += self.current;
                self.current = 0;
                Block::default()
            }
        };
        self.reporter.report(self.ended + self.current, self.account.lines.read, false);
        block
    }

    fn finish(mut self, stop: &AtomicBool) -> ReadSummary {
        self.account.was_stopped = stop.load(Ordering::Relaxed);
        self.reporter.report(self.ended + self.current, self.account.lines.read, true);
        self.account.finish()
    }
}

/// Waits for the next message. Returns `None` at the end, or if reading is stopped. The stop flag is checked at
/// intervals, so reading can be stopped even if a stream sends nothing.
fn next(blocks: &Receiver<Message>, stop: &AtomicBool) -> Option<Message> {
    while !stop.load(Ordering::Relaxed) {
        match blocks.recv_timeout(PROGRESS_EVERY) {
            Err(RecvTimeoutError::Timeout) => {}
            received => return received.ok(),
        }
    }
    None
}

/// Reports progress, at most once per [`PROGRESS_EVERY`].
struct ProgressReporter<'a> {
    progress: &'a mut dyn FnMut(&Progress),
    total_bytes: Option<u64>,
    last: Instant,
}

impl ProgressReporter<'_> {
    fn report(&mut self, bytes: u64, lines: u64, is_end: bool) {
        if is_end || self.last.elapsed() >= PROGRESS_EVERY {
            self.last = Instant::now();
            (self.progress)(&Progress { bytes, total_bytes: self.total_bytes, lines });
        }
    }
}

impl ReadSummary {
    /// The error for logs without a request. It shows the counts of lines, and the first malformed lines.
    pub fn no_requests_error(&self) -> LogError {
        let lines = &self.lines;
        LogError::NoRequests(format!(
            "no request is left of {} lines: {} are malformed and {} were left out; check the format and the filters{}",
            count(lines.read),
            count(lines.malformed),
            count(lines.filtered),
            describe_first_malformed(lines)
        ))
    }
}

/// A text that is appended to a message. It lists the first malformed lines, their positions, and what was expected at
/// each position. It is empty if no line was malformed.
pub fn describe_first_malformed(lines: &Lines) -> String {
    let one = |line: &MalformedLine| {
        let MalformedLine { file, line, column, expected, text } = line;
        format!("\n{file}:{line}:{column}: expected {expected}\n  | {text}")
    };
    match lines.first_malformed.as_slice() {
        [] => String::new(),
        malformed => format!(". The first malformed:{}", malformed.iter().map(one).collect::<String>()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::decode::tests::{bzip2, gzip, zstd};
    use proptest::prelude::*;

    const LINE: &str = r#"10.0.0.1 - - [10/Oct/2000:13:55:36 +0000] "GET / HTTP/1.1" 200 5 "-" "curl/8""#;

    fn read_with(limits: Limits, logs: Vec<(&str, Vec<u8>)>) -> Result<(ReadSummary, Vec<i64>), LogError> {
        read_found(limits, logs.into_iter().map(|(name, bytes)| Log::stream(name, io::Cursor::new(bytes))).collect())
    }

    fn read_found(limits: Limits, logs: Vec<Log>) -> Result<(ReadSummary, Vec<i64>), LogError> {
        let mut stamps = Vec::new();
        let mut sink = |entry: &Entry<'_>| {
            stamps.push(entry.time_ns);
            if entry.target == b"/filtered" { EntryDecision::FilteredOut } else { EntryDecision::Accepted }
        };
        let mut last = Progress::default();
        let read = read_logs(logs, ReadOptions::default(), limits, &mut sink, &mut |progress| last = *progress)?;
        assert_eq!(last.lines, read.lines.read);
        Ok((read, stamps))
    }

    fn read_all(log: impl Into<Vec<u8>>) -> ReadSummary {
        read_with(Limits::default(), vec![("log", log.into())]).unwrap().0
    }

    /// The numbers of lines that were read, parsed, malformed and filtered.
    fn counts(lines: &Lines) -> [u64; 4] {
        [lines.read, lines.parsed, lines.malformed, lines.filtered]
    }

    #[test]
    fn every_line_is_accounted_for() {
        let filtered = LINE.replace("GET /", "GET /filtered");
        let log = format!("{LINE}\r\n{filtered}\n\n{LINE}\nnonsense\n{LINE}");
        let read = read_all(log.clone());
        assert_eq!(counts(&read.lines), [6, 3, 1, 2]);
        let [malformed] = &read.lines.first_malformed[..] else { panic!("{:?}", read.lines) };
        assert_eq!((malformed.file.as_str(), malformed.line, malformed.text.as_str()), ("log", 5, "nonsense"));
        let source = Source { path: "log".into(), lines: 6, bytes: log.len() as u64, cut_short: None };
        assert_eq!(read.sources, [source]);
    }

    #[test]
    fn an_order_of_stamps_that_is_not_theirs_is_counted() {
        let at = |second: u32| format!("{}\n", LINE.replace(":36 ", &format!(":{second:02} ")));
        let log = [at(1), at(3), at(2), at(2), at(5), at(4)].concat();
        assert_eq!(read_all(log).lines.out_of_order, 2);
    }

    #[test]
    fn a_line_of_three_mebibytes_is_one_malformed_line() {
        let log = [LINE.as_bytes(), b"\n\x1b[2J", &vec![b'x'; 3 << 20][..], b"\n", LINE.as_bytes()].concat();
        let read = read_all(log);
        assert_eq!(counts(&read.lines), [3, 2, 1, 0]);
        let malformed = &read.lines.first_malformed[0];
        assert_eq!((malformed.line, malformed.expected.as_str()), (2, "a line of at most 1 MiB"));
        assert_eq!(malformed.text, format!("\\u001b[2J{}", "x".repeat(71)));
    }

    #[test]
    fn a_log_that_is_cut_off_counts_as_far_as_it_goes() {
        let text = format!("{LINE}\n").repeat(50_000);
        let stored = gzip(text.as_bytes());
        let (read, _) = read_with(Limits::default(), vec![("log", stored[..stored.len() / 2].to_vec())]).unwrap();
        assert!(read.lines.parsed > 10_000 && read.lines.malformed <= 1, "{:?}", counts(&read.lines));
        assert!(read.sources[0].cut_short.as_deref().unwrap().contains("ends in the middle"));
    }

    #[test]
    fn formats_may_change_within_a_log() {
        let json = r#"{"time":"2000-10-11T00:00:00Z","method":"GET","uri":"/","status":200,"size":5,"remote_addr":"10.0.0.1"}"#;
        let log = [format!("{LINE}\n").repeat(2000), format!("{json}\n").repeat(5000), format!("{LINE}\n").repeat(9)]
            .concat();
        let read = read_all(log);
        assert_eq!(read.lines.read, 7009);
        assert!(read.lines.malformed <= 512, "{:?}", counts(&read.lines));
        let shares = read.formats.shares();
        assert!(shares.len() >= 2 && (shares.iter().map(|share| share.share).sum::<f64>() - 1.0).abs() < 1e-9);
        let other = 2009.0 / read.lines.parsed as f64;
        assert!((shares[1].share - other).abs() < 1e-9, "lines before the change of format must count: {shares:?}");
    }

    #[test]
    fn reading_ends_when_nothing_more_is_wanted() {
        let text = format!("{LINE}\n").repeat(200_000);
        let options = ReadOptions::default();
        let stop = options.stop.clone();
        let mut sink = |_: &Entry<'_>| {
            stop.store(true, Ordering::Relaxed);
            EntryDecision::Accepted
        };
        let read =
            read_stream("log", std::io::Cursor::new(text.into_bytes()), options, &mut sink, &mut |_| {}).unwrap();
        let [all, parsed, ..] = counts(&read.lines);
        assert!(all == parsed && all < 100_000, "{all}");
        assert_eq!(read.sources[0].cut_short.as_deref(), Some("the reading was stopped"));
    }

    #[test]
    fn nothing_at_all_is_an_error_and_an_empty_log_among_others_is_none() {
        let empty = read_with(Limits::default(), vec![("a", vec![]), ("b", gzip(b""))]).unwrap_err();
        assert_eq!(empty.to_string(), "the log is empty: a, b");
        let (read, _) = read_with(Limits::default(), vec![("a", vec![]), ("b", LINE.into())]).unwrap();
        let sources: Vec<_> = read.sources.iter().map(|source| (source.path.as_str(), source.lines)).collect();
        assert_eq!(sources, [("b", 1), ("a", 0)]);
    }

    #[test]
    fn every_compression_has_the_same_entries() {
        let second = |i: u32| LINE.replace("13:55:36", &format!("{:02}:{:02}:{:02}", i / 3600, i / 60 % 60, i % 60));
        let text = (0..5000).map(|i| second(i) + "\n").collect::<String>().into_bytes();
        let (first, last) = text.split_at(text.len() / 3);
        let plain = read_with(Limits::default(), vec![("log", text.clone())]).unwrap();
        assert_eq!(plain.1.len(), 5000);
        for pack in [gzip, bzip2, zstd] {
            for stored in [pack(&text), [pack(first), pack(last)].concat()] {
                let packed = read_with(Limits::default(), vec![("log", stored)]).unwrap();
                assert_eq!(
                    (&packed.0.lines, &packed.0.sources, &packed.1),
                    (&plain.0.lines, &plain.0.sources, &plain.1)
                );
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]
        #[test]
        fn accounts_add_up_whatever_the_lines_and_the_blocks(
            lines in prop::collection::vec((0_usize..6, "\\PC{0,40}"), 0..80), block in 1_usize..3000, has_end: bool,
        ) {
            let mut log = format!("{LINE}\n").repeat(100);
            for (kind, text) in lines {
                log.push_str(&match kind {
                    0 | 1 => LINE.to_owned(),
                    2 => LINE.replace("GET /", "GET /filtered"),
                    3 => String::new(),
                    4 => text.repeat(30),
                    _ => text,
                });
                log.push_str(if kind % 2 == 0 { "\n" } else { "\r\n" });
            }
            if !has_end {
                log.truncate(log.trim_end_matches(['\r', '\n']).len());
            }
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), &log).unwrap();
            let found = || source::find(&[file.path().to_string_lossy().into_owned()]).unwrap();
            let whole = read_found(Limits::default(), found()).unwrap();
            let pieces = read_found(Limits { block_bytes: block, line_bytes: 600 }, found()).unwrap();
            for (read, stamps) in [&whole, &pieces] {
                let [all, parsed, malformed, filtered] = counts(&read.lines);
                prop_assert_eq!(all, parsed + malformed + filtered);
                prop_assert_eq!(all, log.split_inclusive('\n').count() as u64);
                prop_assert!(parsed >= 100 && parsed <= stamps.len() as u64);
            }
            let has_long = log.lines().any(|line| line.len() > 600);
            prop_assert!(has_long || whole.0.lines == pieces.0.lines);
        }
    }
}
