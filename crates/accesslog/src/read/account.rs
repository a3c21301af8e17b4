//! Counts the lines of logs by their outcome: parsed, malformed or filtered.
//!
//! After every line, `read = parsed + malformed + filtered`. If most of the recent lines of a log are malformed, the
//! log may have changed its format. So the formats of the next lines are detected, and added to the known formats.

use super::{EntryDecision, ReadSummary};
use crate::detect::Formats;
use crate::source::sample;
use crate::{Entry, Line, LineParseError, Scratch};
use brimful_core::profile::{Lines, MalformedLine, Source};
use brimful_core::text;

/// Maximum number of characters of a malformed line that a message shows.
const MAX_SHOWN_CHARS: usize = 80;
/// Number of lines of a log after which its share of malformed lines is checked. It doubles after each detection of
/// formats.
const CHECK_INTERVAL_LINES: u32 = 256;
/// Maximum number of lines from which a new format is detected.
const MAX_LINES_TO_DETECT: usize = 500;
/// Minimum number of lines from which a new format is detected.
const MIN_LINES_TO_DETECT: usize = 20;
const TOO_LONG: &str = "a line of at most 1 MiB";

/// Options for reading and counting lines.
pub(super) struct Settings {
    /// Whether detected formats may be added to the formats in use.
    pub may_detect: bool,
    /// Maximum number of malformed lines that are kept for display.
    pub max_malformed: usize,
    /// Maximum number of bytes of a line, without its newline.
    pub max_line_bytes: usize,
}

/// Reads lines, passes their entries to the sink, and counts the lines by outcome.
pub(super) struct Account<'a, S> {
    formats: Formats,
    scratch: Scratch,
    /// Counts of the lines read so far, by outcome.
    pub lines: Lines,
    sources: Vec<Source>,
    /// Index of the log that is being read.
    source: usize,
    ended_sources: usize,
    /// Whether the caller stopped reading before the end of the logs.
    pub was_stopped: bool,
    /// The timestamp of the last parsed request, in nanoseconds since 1970.
    last_ns: i64,
    watch: MalformedWatch,
    may_detect: bool,
    max_malformed: usize,
    max_line_bytes: usize,
    sink: &'a mut S,
}

impl<'a, S: FnMut(&Entry<'_>) -> EntryDecision> Account<'a, S> {
    /// Creates a counter that has read no line yet. It passes each entry to `sink`.
    pub fn new(formats: Formats, sources: Vec<Source>, settings: Settings, sink: &'a mut S) -> Account<'a, S> {
        let Settings { may_detect, max_malformed, max_line_bytes } = settings;
        Account {
            formats,
            scratch: Scratch::default(),
            lines: Lines::default(),
            sources,
            source: 0,
            ended_sources: 0,
            was_stopped: false,
            last_ns: i64::MIN,
            watch: MalformedWatch::default(),
            may_detect,
            max_malformed,
            max_line_bytes,
            sink,
        }
    }

    /// Selects the log to which the next lines belong, by its index.
    pub fn switch_to(&mut self, source: usize) {
        if source != self.source {
            self.source = source;
            self.watch = MalformedWatch::default();
        }
    }

    /// Reads and counts all lines of a block.
    pub fn read_lines(&mut self, block: &[u8]) {
        let mut start = 0;
        for end in memchr::memchr_iter(b'\n', block) {
            self.read_line(block.get(start..end).unwrap_or_default());
            start = end + 1;
            if self.watch.is_due() {
                self.detect_again(block.get(start..).unwrap_or_default());
            }
        }
        if let Some(last) = block.get(start..)
            && !last.is_empty()
        {
            self.read_line(last);
        }
    }

    fn read_line(&mut self, line: &[u8]) {
        if line.len() > self.max_line_bytes {
            return self.count_too_long(line);
        }
        self.count_line();
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            self.lines.filtered += 1;
            return;
        }
        match self.formats.read(line, &mut self.scratch) {
            Ok(Line::Entry(entry)) if (self.sink)(&entry) == EntryDecision::Accepted => {
                self.lines.parsed += 1;
                self.lines.out_of_order += u64::from(entry.time_ns < self.last_ns);
                self.last_ns = entry.time_ns;
            }
            Ok(Line::Entry(_) | Line::Other) => self.lines.filtered += 1,
            Err(why) => self.count_malformed(line, &why),
        }
    }

    /// Counts a line that exceeds the maximum length as malformed. `line` is the beginning of this line.
    pub fn count_too_long(&mut self, line: &[u8]) {
        self.count_line();
        self.count_malformed(line, &LineParseError::at_byte(self.max_line_bytes, TOO_LONG));
    }

    fn count_line(&mut self) {
        self.lines.read += 1;
        self.watch.lines += 1;
        if let Some(source) = self.sources.get_mut(self.source) {
            source.lines += 1;
        }
    }

    fn count_malformed(&mut self, line: &[u8], why: &LineParseError) {
        self.lines.malformed += 1;
        self.watch.malformed += 1;
        if self.lines.first_malformed.len() < self.max_malformed
            && let Some(source) = self.sources.get(self.source)
        {
            self.lines.first_malformed.push(MalformedLine {
                file: source.path.clone(),
                line: source.lines,
                column: why.column as u64,
                expected: why.expected.clone().into_owned(),
                text: shown(line),
            });
        }
    }

    /// Detects the format of the next lines if most of the preceding lines were malformed.
    fn detect_again(&mut self, next: &[u8]) {
        if !self.watch.is_mostly_malformed() || !self.may_detect {
            return self.watch.restart(CHECK_INTERVAL_LINES);
        }
        let lines = next.split(|&byte| byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
        let lines: Vec<&[u8]> = lines.filter(|line| !line.is_empty()).take(MAX_LINES_TO_DETECT).collect();
        // The rest of the block has too few lines for detecting a format.
        if lines.len() < MIN_LINES_TO_DETECT {
            return self.watch.restart(CHECK_INTERVAL_LINES);
        }
        if !sample::reads_half(&self.formats, &lines)
            && let Ok(formats) = Formats::detect(&lines)
        {
            self.formats.merge(formats);
        }
        self.watch.restart(self.watch.until.saturating_mul(2));
    }

    /// Ends the current log. `bytes` is its decompressed size; `cut_short` is the reason if it was not read to its end.
    pub fn end(&mut self, bytes: u64, cut_short: Option<String>) {
        if let Some(source) = self.sources.get_mut(self.source) {
            source.bytes = bytes;
            source.cut_short = cut_short;
        }
        self.ended_sources = self.source + 1;
    }

    /// Returns the counts. Logs that have not ended are marked as cut short.
    pub fn finish(mut self) -> ReadSummary {
        // If the caller did not stop reading, the remaining logs are unread because the decoder of a damaged log
        // failed.
        let why = if self.was_stopped { "the reading was stopped" } else { "decompressing another log failed" };
        for source in self.sources.iter_mut().skip(self.ended_sources) {
            source.cut_short = Some(why.to_owned());
        }
        let Lines { read, parsed, malformed, filtered, .. } = self.lines;
        debug_assert_eq!(read, parsed + malformed + filtered);
        debug_assert_eq!(read, self.sources.iter().map(|source| source.lines).sum::<u64>());
        ReadSummary { lines: self.lines, sources: self.sources, formats: self.formats }
    }
}

/// Counts lines and malformed lines since the last check of their ratio.
struct MalformedWatch {
    lines: u32,
    malformed: u32,
    until: u32,
}

impl Default for MalformedWatch {
    fn default() -> MalformedWatch {
        MalformedWatch { lines: 0, malformed: 0, until: CHECK_INTERVAL_LINES }
    }
}

impl MalformedWatch {
    fn is_due(&self) -> bool {
        self.lines >= self.until
    }

    fn is_mostly_malformed(&self) -> bool {
        self.malformed > self.lines / 2
    }

    fn restart(&mut self, until: u32) {
        *self = MalformedWatch { lines: 0, malformed: 0, until };
    }
}

/// The beginning of a line, with control characters escaped for display.
fn shown(line: &[u8]) -> String {
    // A character has at most four bytes, so this many bytes contain enough characters.
    let start = line.get(..MAX_SHOWN_CHARS * 4).unwrap_or(line);
    let mut shown = String::new();
    let mut width = 0;
    for c in String::from_utf8_lossy(start).chars() {
        let mut bytes = [0; 4];
        let c = text::one_line(c.encode_utf8(&mut bytes)).into_owned();
        width += c.chars().count();
        if width > MAX_SHOWN_CHARS {
            break;
        }
        shown.push_str(&c);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_of_a_line_fits() {
        assert_eq!(shown(b"a\xffb\r\tc"), "a\u{fffd}b\\u000d\\u0009c");
        assert_eq!(shown("é".repeat(100).as_bytes()), "é".repeat(80));
        // The text must be cut between two escape sequences, not within one.
        assert_eq!(shown(&[0; 100]), "\\u0000".repeat(13));
    }
}
