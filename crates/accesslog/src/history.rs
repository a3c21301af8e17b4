//! Counts requests per hour over all of a site's logs. A forecast is made from these counts.

use crate::LogError;
use crate::detect::Formats;
use crate::logs::Logs;
use crate::read::{EntryDecision, Progress, ReadOptions, ReadSummary};
use jiff::tz::Offset;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Length of the interval in which requests are counted, in seconds. An hour is short enough to show daily patterns.
/// Where daylight saving time begins or ends, most clocks change by a whole hour, so every day still has whole
/// intervals.
pub const HISTORY_STEP_S: i64 = 3600;
const STEP_NS: i64 = HISTORY_STEP_S * 1_000_000_000;
/// The longest plausible gap between two requests, in hours. A longer gap means that a timestamp is wrong.
const MAX_GAP_HOURS: i64 = 24 * 366;

/// Number of requests in each hour of a site's logs.
#[derive(Clone, Debug)]
pub struct History {
    /// Start of the first hour, in seconds since 1970.
    pub from_s: i64,
    /// The number of seconds by which the logs' clocks are ahead of UTC, according to the first timestamps of most
    /// logs. 0 if these timestamps state no offset.
    pub offset_s: i32,
    /// Number of requests in each whole hour. The incomplete hours at the start and end of the logs are left out.
    pub counts: Vec<u64>,
    /// Counts of the lines that were read, with the logs and their formats.
    pub read: ReadSummary,
}

/// Whether a file that begins with `head` is an access log. Compressed files count as logs.
pub fn is_log(head: &[u8]) -> bool {
    const MAGIC: [&[u8]; 3] = [b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"BZh"];
    if MAGIC.iter().any(|magic| head.starts_with(magic)) {
        return true;
    }
    // The last line of `head` may be incomplete, so it is ignored.
    let head = brimful_core::text::strip_bom_bytes(head);
    let whole = head.iter().rposition(|byte| *byte == b'\n').map_or(head, |end| &head[..end]);
    let lines: Vec<&[u8]> = whole.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).take(50).collect();
    !lines.is_empty() && Formats::detect(&lines).is_ok()
}

/// Counts the requests of logs per hour. The logs may be in any order.
///
/// # Errors
/// [`LogError`] if the logs cannot be read, or contain fewer than two whole hours.
pub fn count_requests(
    paths: &[String],
    options: ReadOptions,
    progress: &mut dyn FnMut(&Progress),
) -> Result<History, LogError> {
    let mut hours: BTreeMap<i64, u64> = BTreeMap::new();
    let mut sink = |entry: &crate::Entry<'_>| {
        *hours.entry(entry.time_ns.div_euclid(STEP_NS)).or_default() += 1;
        EntryDecision::Accepted
    };
    let logs = Logs::open(paths, options)?;
    let offset_s = logs.offset_s().unwrap_or(0);
    let read = logs.read_one_by_one(&mut sink, progress)?;
    if hours.is_empty() {
        return Err(read.no_requests_error());
    }
    let (from, counts) = whole_hours(&hours).ok_or_else(|| {
        LogError::NoRequests(
            "the logs have no two whole hours one after another: a history needs days of them".to_owned(),
        )
    })?;
    Ok(History { from_s: from * HISTORY_STEP_S, offset_s, counts, read })
}

/// Returns the first whole hour, in hours since 1970, and the number of requests in each whole hour. Gaps longer than
/// [`MAX_GAP_HOURS`] divide the hours into ranges, and only the range with the most requests is returned.
fn whole_hours(hours: &BTreeMap<i64, u64>) -> Option<(i64, Vec<u64>)> {
    let all: Vec<(i64, u64)> = hours.iter().map(|(hour, count)| (*hour, *count)).collect();
    let parts = all.chunk_by(|a, b| b.0 - a.0 <= MAX_GAP_HOURS);
    let longest = parts.max_by_key(|part| part.iter().map(|(_, count)| count).sum::<u64>())?;
    let first = longest.first()?.0;
    let last = longest.last()?.0;
    let whole: Vec<u64> = (first + 1..last).map(|hour| hours.get(&hour).copied().unwrap_or(0)).collect();
    (whole.len() > 1).then_some((first + 1, whole))
}

impl History {
    /// Formats CSV for `plan forecast`, with a time and a count per line. Times have the logs' offset from UTC, so that
    /// days begin at local midnight.
    pub fn to_csv(&self) -> String {
        let mut text = "time,requests\n".to_owned();
        for (step, count) in (0..).zip(&self.counts) {
            if let Ok(time) = jiff::Timestamp::from_second(self.from_s + step * HISTORY_STEP_S) {
                let offset = Offset::from_seconds(self.offset_s).ok().filter(|offset| *offset != Offset::UTC);
                let time = offset.map_or(time.to_string(), |offset| time.display_with_offset(offset).to_string());
                // Writing to a `String` cannot fail.
                let _ = writeln!(text, "{time},{count}");
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn hours_without_requests_count_and_parts_of_hours_do_not() {
        let hours = BTreeMap::from([(10, 3), (11, 40), (12, 50), (15, 60), (16, 1), (1_000_000, 1)]);
        assert_eq!(whole_hours(&hours), Some((11, vec![40, 50, 0, 0, 60])));
        assert_eq!(whole_hours(&BTreeMap::from([(10, 3), (11, 40)])), None);
        assert_eq!(whole_hours(&BTreeMap::new()), None);
    }

    #[test]
    fn a_log_is_told_from_a_table() {
        let log = b"10.0.0.1 - - [02/Mar/2026:10:00:00 +0100] \"GET / HTTP/1.1\" 200 5\n10.0.0.1 - - [02/Mar/20";
        assert!(is_log(log) && is_log(b"\x1f\x8b\x08rest"));
        assert!(!is_log(b"time,requests\n2026-03-02,500\n2026-03-03,510\n") && !is_log(b""));
        assert!(!is_log(br#"[["2026-03-02", 500], ["2026-03-03", 510]]"#));
    }

    #[test]
    fn a_history_is_what_logs_say() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("access.log");
        let line = |hour: usize, n: usize| {
            format!("10.0.0.1 - - [02/Mar/2026:{hour:02}:00:00 +0000] \"GET / HTTP/1.1\" 200 5\n").repeat(n)
        };
        fs::write(&file, line(3, 1) + &line(4, 2) + &line(5, 3) + &line(6, 1)).unwrap();
        let paths = [file.to_str().unwrap().to_owned()];
        let found = count_requests(&paths, ReadOptions::default(), &mut |_| {}).unwrap();
        assert_eq!(found.counts, [2, 3]);
        assert_eq!(found.to_csv(), "time,requests\n2026-03-02T04:00:00Z,2\n2026-03-02T05:00:00Z,3\n");
        let there = fs::read_to_string(&file).unwrap().replace("+0000", "+0530");
        fs::write(&file, there).unwrap();
        let found = count_requests(&paths, ReadOptions::default(), &mut |_| {}).unwrap();
        // This zone is 5 hours and 30 minutes ahead of UTC, so whole hours of UTC begin at half past the local hour.
        assert_eq!(found.offset_s, 19_800);
        assert!(found.to_csv().starts_with("time,requests\n2026-03-02T03:30:00+05:30,"), "{}", found.to_csv());
    }
}
