//! Reads the beginnings of logs, detects their formats, and sorts the logs by time.
//!
//! Formats are detected from the first lines of all logs together. If this fails, detection uses only the logs whose
//! own lines are recognized. Rotated sets are sorted by the time of each log's first request, not by name. In some
//! naming schemes, the highest number is the oldest log, and in others, the newest.

use super::blocks::{Blocks, Limits};
use super::decode::Decoder;
use super::{Log, unreadable};
use crate::detect::Formats;
use crate::{Line, LogError, Scratch};
use brimful_core::text::strip_bom_bytes;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read};

/// Maximum number of lines from which formats are detected, of all logs together. It may be exceeded, because each log
/// contributes at least [`MIN_LINES`].
const MAX_LINES: usize = 500;
/// Minimum number of lines of each log from which formats are detected, if the log has that many.
const MIN_LINES: usize = 20;
/// Number of requests at the start of a log from which the median timestamp is computed. The first plausible timestamp
/// is near this median.
const COMPARED_REQUESTS: usize = 15;
const LEAP_NS: i64 = 60_000_000_000;
/// Maximum number of bytes that are decoded when logs are opened, of all logs together.
const MAX_BYTES: usize = 4 * 1024 * 1024;
const BYTES_PER_LOG: std::ops::RangeInclusive<usize> = 8 * 1024..=256 * 1024;

/// A log whose first bytes have been read.
pub(crate) struct OpenedLog {
    /// The log.
    pub log: Log,
    /// The first bytes of the log, decompressed.
    head: Vec<u8>,
    /// Whether `head` is the whole log.
    is_fully_read: bool,
    /// The error that ended the log within `head`; `None` if there was no error.
    pub cut_short: Option<String>,
    /// The decoder of the rest of the log, if the log is a stream. Files are opened again.
    rest: Option<Decoder>,
    /// Time of the first request in `head`; set when the logs are sorted.
    pub first_ns: Option<i64>,
}

/// Opens logs and reads their first bytes.
///
/// # Errors
///
/// Returns an error if a log cannot be read, or if a file is not a log.
pub(crate) fn open_all(logs: Vec<Log>, follow_growth: bool) -> Result<Vec<OpenedLog>, LogError> {
    let bytes = (MAX_BYTES / logs.len().max(1)).clamp(*BYTES_PER_LOG.start(), *BYTES_PER_LOG.end());
    logs.into_iter().map(|log| OpenedLog::new(log, follow_growth, bytes)).collect()
}

/// Detects the formats of logs from their first lines.
///
/// # Errors
///
/// Returns an error if no known format reads the lines of any log.
pub(crate) fn detect(logs: &[OpenedLog]) -> Result<Formats, LogError> {
    let with_lines = logs.iter().filter(|log| log.lines().next().is_some()).count().max(1);
    let each = (MAX_LINES / with_lines).max(MIN_LINES);
    let sample = |log| OpenedLog::lines(log).take(each).collect::<Vec<_>>();
    let samples: Vec<Vec<&[u8]>> = logs.iter().map(sample).collect();
    Formats::detect(&samples.concat()).or_else(|error| {
        // A log of an unknown format must not prevent the detection of the other logs' formats. All its lines are
        // counted as malformed.
        let known = samples.iter().filter(|lines| !lines.is_empty() && Formats::detect(lines).is_ok());
        let known = known.flatten().copied().collect::<Vec<&[u8]>>();
        if known.is_empty() { Err(error) } else { Formats::detect(&known) }
    })
}

/// Sorts logs by the time of their first request. Logs without a request keep their order and come last.
pub(crate) fn put_in_order(logs: &mut [OpenedLog], formats: &Formats) {
    for log in &mut *logs {
        log.first_ns = log.first_request_ns(&mut formats.clone());
    }
    logs.sort_by_key(|log| (log.first_ns.is_none(), log.first_ns));
}

/// The most common offset from UTC in the first timestamps of the logs. It is the number of seconds by which a log's
/// clock is ahead of UTC. `None` if these timestamps state no offset.
pub(crate) fn offset_s(logs: &[OpenedLog], formats: &Formats) -> Option<i32> {
    let mut counts = BTreeMap::<i32, usize>::new();
    let mut scratch = Scratch::default();
    for log in logs {
        let mut formats = formats.clone();
        for line in log.lines().take((MAX_LINES / logs.len().max(1)).max(MIN_LINES)) {
            if let Ok(Line::Entry(entry)) = formats.read(line, &mut scratch)
                && let Some(offset_s) = entry.offset_s
            {
                *counts.entry(offset_s).or_default() += 1;
            }
        }
    }
    counts.into_iter().max_by_key(|(_, count)| *count).map(|(offset_s, _)| offset_s)
}

/// Returns an error if a log has NUL bytes and no readable line: the user probably named a wrong file.
pub(crate) fn refuse_binary(logs: &[OpenedLog], formats: Option<&Formats>) -> Result<(), LogError> {
    let is_read = |log: &OpenedLog, formats: &Formats| {
        let mut formats = formats.clone();
        log.lines().take(MAX_LINES).any(|line| reads(&mut formats, line))
    };
    for log in logs {
        if log.head.contains(&0) && !formats.is_some_and(|formats| is_read(log, formats)) {
            let why =
                "no log, but binary data: it has NUL bytes, and none of its first lines can be read. Leave it out";
            return Err(LogError::UnknownFormat(format!("{} is {why}", log.log.path())));
        }
    }
    Ok(())
}

/// Whether the formats can read at least half of the lines.
pub(crate) fn reads_half(formats: &Formats, lines: &[&[u8]]) -> bool {
    let mut formats = formats.clone();
    lines.iter().filter(|line| reads(&mut formats, line)).count() * 2 >= lines.len()
}

fn reads(formats: &mut Formats, line: &[u8]) -> bool {
    formats.read(line, &mut Scratch::default()).is_ok()
}

impl OpenedLog {
    fn new(mut log: Log, follow_growth: bool, bytes: usize) -> Result<OpenedLog, LogError> {
        let input = log.open(follow_growth).map_err(|error| unreadable(log.path(), error))?;
        let mut decoder = Decoder::new(input);
        let mut head = vec![0; bytes.min(*BYTES_PER_LOG.start())];
        let mut read = 0;
        let mut is_fully_read = false;
        let mut cut_short = None;
        while !is_fully_read && read < bytes {
            if read == head.len() {
                head.resize((2 * read).min(bytes), 0);
            }
            match decoder.read(head.get_mut(read..).unwrap_or_default()) {
                Ok(0) => is_fully_read = true,
                Ok(count) => read += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    is_fully_read = true;
                    cut_short = Some(decoder.describe_truncation(&error));
                }
            }
        }
        head.truncate(read);
        head.shrink_to_fit();
        if let Some(kind) = recognize_other_file(&head) {
            return Err(LogError::UnknownFormat(kind.refusal(log.path())));
        }
        let rest = log.is_stream().then_some(decoder);
        Ok(OpenedLog { log, head, is_fully_read, cut_short, rest, first_ns: None })
    }

    /// Whether `head` is the whole log.
    pub fn is_fully_read(&self) -> bool {
        self.is_fully_read
    }

    /// Number of bytes that have already been read and decompressed.
    pub fn head_bytes(&self) -> usize {
        self.head.len()
    }

    /// Whether the log has no bytes.
    pub fn is_empty(&self) -> bool {
        self.head.is_empty()
    }

    /// Creates a reader of the whole log in blocks.
    pub fn into_blocks(mut self, follow_growth: bool, limits: Limits) -> io::Result<Blocks> {
        if let Some(rest) = self.rest {
            let mut blocks = Blocks::new(rest, self.head, limits);
            if let Some(why) = self.cut_short {
                blocks.end(why);
            }
            return Ok(blocks);
        }
        // The file is read again from its start, so the head is not needed and its memory can be freed.
        drop(self.head);
        Ok(Blocks::new(Decoder::new(self.log.open(follow_growth)?), Vec::new(), limits))
    }

    /// The lines of the head that are complete and not empty. If the head is only a part of one long line, yields this
    /// part.
    fn lines(&self) -> impl Iterator<Item = &[u8]> {
        let end = if self.is_fully_read { Some(self.head.len()) } else { memchr::memrchr(b'\n', &self.head) };
        let lines = self.head.get(..end.unwrap_or(self.head.len())).unwrap_or_default();
        let lines = strip_bom_bytes(lines);
        lines
            .split(|&byte| byte == b'\n')
            .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
            .filter(|line| !line.is_empty())
    }

    /// The time of the first request that is not far later than the median of the first timestamps. If a wrong
    /// timestamp far ahead counted as the first, the log would be sorted after all other logs.
    fn first_request_ns(&self, formats: &mut Formats) -> Option<i64> {
        let mut scratch = Scratch::default();
        let mut stamps = Vec::new();
        for line in self.lines().take(MAX_LINES) {
            if let Ok(Line::Entry(entry)) = formats.read(line, &mut scratch) {
                stamps.push(entry.time_ns);
            }
            if stamps.len() >= COMPARED_REQUESTS {
                break;
            }
        }
        let mut sorted = stamps.clone();
        sorted.sort_unstable();
        let middle_ns = sorted.get(sorted.len().saturating_sub(1) / 2)?;
        stamps.iter().copied().find(|stamp_ns| *stamp_ns <= middle_ns.saturating_add(LEAP_NS))
    }
}

/// A kind of file that cannot be read as a log.
enum NotALog {
    Utf16,
    Tar,
    /// A file in another compression format: the name of this format, and the command that decompresses it to standard
    /// output.
    Packed(&'static str, &'static str),
}

fn recognize_other_file(head: &[u8]) -> Option<NotALog> {
    match head {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Some(NotALog::Utf16),
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some(NotALog::Packed("xz", "xz -dc")),
        [0x5d, 0, 0, ..] => Some(NotALog::Packed("lzma", "xz -dc")),
        [b'P', b'K', 3, 4, ..] => Some(NotALog::Packed("zip", "unzip -p")),
        [0x04, 0x22, 0x4d, 0x18, ..] => Some(NotALog::Packed("lz4", "lz4 -dc")),
        [0x1f, 0x9d, ..] => Some(NotALog::Packed("compress", "gzip -dc")),
        [b'7', b'z', 0xbc, 0xaf, ..] => Some(NotALog::Packed("7z", "7z x -so")),
        [b'L', b'Z', b'I', b'P', 1, ..] => Some(NotALog::Packed("lzip", "lzip -dc")),
        _ if head.get(257..262) == Some(b"ustar") => Some(NotALog::Tar),
        _ => None,
    }
}

impl NotALog {
    /// The message that rejects a file of this kind, with advice.
    fn refusal(&self, path: &str) -> String {
        let (what, command) = match self {
            NotALog::Utf16 => ("text in UTF-16; logs are read as UTF-8 or ASCII", "iconv -f UTF-16 -t UTF-8"),
            NotALog::Tar => ("an archive", "tar -xOf"),
            NotALog::Packed(_, command) => ("", *command),
        };
        let what = match self {
            NotALog::Packed(name, _) => {
                format!("compressed with {name}; gzip, bzip2 and zstd are undone without help")
            }
            _ => what.to_owned(),
        };
        format!("{path} is {what}: try `{command} {path} | brimful characterize -`")
    }
}

#[cfg(test)]
mod tests {
    use super::super::decode::tests::{gzip, zstd};
    use super::*;

    const COMBINED: &str = r#"10.0.0.1 - - [10/Oct/2000:13:55:36 +0000] "GET / HTTP/1.1" 200 5 "-" "curl/8""#;
    const JSON: &str =
        r#"{"time":"2000-10-11T00:00:00Z","method":"GET","uri":"/","status":200,"size":5,"remote_addr":"10.0.0.1"}"#;

    fn opened(logs: &[(&str, Vec<u8>)]) -> Result<Vec<OpenedLog>, LogError> {
        let logs = logs.iter().map(|(name, bytes)| Log::stream(name, io::Cursor::new(bytes.clone()))).collect();
        open_all(logs, false)
    }

    fn on_day(day: u8) -> Vec<u8> {
        COMBINED.replace("10/Oct", &format!("{day:02}/Oct")).into_bytes()
    }

    fn paths(logs: &[OpenedLog]) -> Vec<&str> {
        logs.iter().map(|log| log.log.path()).collect()
    }

    #[test]
    fn logs_come_in_the_order_of_their_first_request() {
        let logs = [("today", on_day(12)), ("empty", vec![]), ("oldest", gzip(&on_day(9))), ("old", zstd(&on_day(11)))];
        let mut logs = opened(&logs).unwrap();
        let formats = detect(&logs).unwrap();
        put_in_order(&mut logs, &formats);
        assert_eq!(paths(&logs), ["oldest", "old", "today", "empty"]);
    }

    #[test]
    fn the_first_request_need_not_be_in_the_first_line() {
        let late = [b"\xef\xbb\xbf\r\n\nnonsense\n".to_vec(), on_day(8)].concat();
        let mut logs = opened(&[("a", on_day(9)), ("b", late)]).unwrap();
        let formats = detect(&logs).unwrap();
        put_in_order(&mut logs, &formats);
        assert_eq!(paths(&logs), ["b", "a"]);
    }

    #[test]
    fn one_stamp_of_2038_at_the_head_does_not_put_a_log_last() {
        let wrong = String::from_utf8(on_day(8)).unwrap().replace("/2000", "/2038").into_bytes();
        let mut logs =
            opened(&[("a", on_day(9)), ("b", [wrong, b"\n".to_vec(), on_day(8), b"\n".to_vec(), on_day(8)].concat())])
                .unwrap();
        let formats = detect(&logs).unwrap();
        put_in_order(&mut logs, &formats);
        assert_eq!(paths(&logs), ["b", "a"]);
    }

    #[test]
    fn logs_of_different_formats_are_read_together() {
        let many = |line: &str| format!("{line}\n").repeat(40).into_bytes();
        let ltsv = "time:10/Oct/2000:13:55:36 +0000\thost:10.0.0.1\treq:GET / HTTP/1.1\tstatus:200\tsize:5";
        let logs = opened(&[("a", many(COMBINED)), ("b", many(JSON)), ("c", many(ltsv))]).unwrap();
        let formats = detect(&logs).unwrap();
        for log in &logs {
            assert!(reads_half(&formats, &log.lines().collect::<Vec<_>>()), "{}", log.log.path());
        }
    }

    #[test]
    fn what_is_no_log_is_refused_and_said() {
        let said = |bytes: &[u8]| opened(&[("f", bytes.to_vec())]).err().map(|error| error.to_string()).unwrap();
        assert!(said(b"\xff\xfea\0b\0").contains("UTF-16"));
        assert!(said(b"\xfd7zXZ\0...").contains("xz -dc f | brimful"));
        let mut tar = vec![b'x'; 512];
        tar[257..262].copy_from_slice(b"ustar");
        assert!(said(&gzip(&tar)).contains("archive"));

        let binary = opened(&[("f", b"\x7fELF\x02\x01\0\0\nx".to_vec())]).unwrap();
        let why = refuse_binary(&binary, detect(&binary).ok().as_ref()).unwrap_err().to_string();
        assert!(why.contains("f is no log, but binary data"), "{why}");
        // After a crash, a log may contain zeros. They must not prevent reading the log.
        let zeros = [vec![0; 100], b"\n".to_vec(), on_day(1), b"\n".to_vec(), on_day(1)].concat();
        let zeros = opened(&[("f", zeros)]).unwrap();
        refuse_binary(&zeros, Some(&detect(&zeros).unwrap())).unwrap();
    }

    #[test]
    fn a_log_that_is_damaged_from_the_beginning_is_an_empty_one() {
        let logs = opened(&[("f", gzip(b"text")[..9].to_vec())]).unwrap();
        assert!(logs[0].is_empty());
        assert!(logs[0].cut_short.as_deref().unwrap().contains("gzip"));
    }
}
