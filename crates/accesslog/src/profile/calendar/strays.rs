//! Finds stray requests: a few requests at the start or end of a log, separated from all other requests by a very long
//! gap.
//!
//! Such timestamps are caused by a download that began long before the log, or by a clock that was wrong for a moment.
//! They would extend the span of the log and lower the rates. At each end, at most one request in a hundred is
//! excluded. The gap must be longer than the log without its stray requests, and at least ten times as long as any
//! other gap in it. So a quiet night does not make requests stray.

/// Minimum number of requests in a log with stray requests. In a smaller log, no request is stray.
const MIN_REQUESTS: u64 = 20;
/// Reciprocal of the maximum share of stray requests at each end of the log. A single request may always be stray.
const STRAY_ONE_IN: u64 = 100;
/// A gap separates stray requests from a log only if it is at least this many times as long as the longest other gap.
const MIN_GAP_RATIO: i64 = 10;
/// Minimum length in seconds of a gap that separates stray requests. Shorter gaps hardly extend the time span of the
/// log.
const MIN_GAP_S: i64 = 300;
const MINUTE_S: i64 = 60;

/// The log without its stray requests: its time range and its number of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TrimmedLog {
    /// Start of the first minute with requests, in seconds since 1970.
    pub first_s: i64,
    /// Start of the last minute with requests, in seconds since 1970.
    pub last_s: i64,
    /// Number of requests.
    pub requests: u64,
}

/// Returns the log without stray requests; `None` if there are no stray requests. `minutes` yields the minutes with
/// requests in order of time, each with its number of requests. `requests` is the total number.
pub(super) fn trim_strays<I: DoubleEndedIterator<Item = (i64, u64)>>(
    minutes: impl Fn() -> I,
    requests: u64,
) -> Option<TrimmedLog> {
    if requests < MIN_REQUESTS {
        return None;
    }
    let most = (requests / STRAY_ONE_IN).max(1);
    let head = widest_gap(minutes(), most);
    let tail = widest_gap(minutes().rev(), most);
    let all_first_s = minutes().next()?.0;
    let all_last_s = minutes().next_back()?.0;
    let first_s = head.map_or(all_first_s, |gap| gap.after_s);
    let last_s = tail.map_or(all_last_s, |gap| gap.after_s);
    if first_s > last_s {
        return None;
    }
    let mut longest_s = 0;
    let mut before_s = first_s;
    for (minute_s, _) in minutes().filter(|(minute_s, _)| (first_s..=last_s).contains(minute_s)) {
        longest_s = longest_s.max(minute_s - before_s);
        before_s = minute_s;
    }
    let length_s = last_s - first_s + MINUTE_S;
    let is_stray = |gap: &Gap| {
        gap.length_s > length_s && gap.length_s >= longest_s.saturating_mul(MIN_GAP_RATIO) && gap.length_s >= MIN_GAP_S
    };
    let head = head.filter(is_stray);
    let tail = tail.filter(is_stray);
    if head.is_none() && tail.is_none() {
        return None;
    }
    let outside = head.map_or(0, |gap| gap.outside) + tail.map_or(0, |gap| gap.outside);
    Some(TrimmedLog {
        first_s: head.map_or(all_first_s, |gap| gap.after_s),
        last_s: tail.map_or(all_last_s, |gap| gap.after_s),
        requests: requests.saturating_sub(outside),
    })
}

/// A gap without requests near one end of the log. It may separate stray requests from the main part of the log.
#[derive(Clone, Copy)]
struct Gap {
    length_s: i64,
    /// Start of the first minute of the main part after the gap, or of its last minute if the gap is at the end of the
    /// log.
    after_s: i64,
    /// Number of requests between this gap and the nearer end of the log.
    outside: u64,
}

/// The longest gap that has at most `most` requests before it, in the order of `minutes`.
fn widest_gap(minutes: impl Iterator<Item = (i64, u64)>, most: u64) -> Option<Gap> {
    let mut widest: Option<Gap> = None;
    let mut outside = 0;
    let mut before_s: Option<i64> = None;
    for (minute_s, count) in minutes {
        if let Some(before_s) = before_s {
            let length_s = minute_s.abs_diff(before_s).try_into().unwrap_or(i64::MAX);
            if widest.is_none_or(|gap| length_s > gap.length_s) {
                widest = Some(Gap { length_s, after_s: minute_s, outside });
            }
        }
        outside += count;
        before_s = Some(minute_s);
        if outside > most {
            break;
        }
    }
    widest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(minutes: &[(i64, u64)]) -> Option<TrimmedLog> {
        let minutes: Vec<(i64, u64)> = minutes.iter().map(|(minute, count)| (minute * MINUTE_S, *count)).collect();
        let requests = minutes.iter().map(|(_, count)| count).sum();
        trim_strays(|| minutes.iter().copied(), requests)
    }

    #[test]
    fn one_early_stamp_is_no_part_of_half_a_minute() {
        let trimmed = TrimmedLog { first_s: 50 * MINUTE_S, last_s: 50 * MINUTE_S, requests: 299 };
        assert_eq!(found(&[(0, 1), (50, 299)]), Some(trimmed));
        assert_eq!(found(&[(50, 299), (6_000_000, 1)]), Some(trimmed));
        assert_eq!(found(&[(0, 1), (50, 299), (6_000_000, 1)]), Some(trimmed));
        let longer = TrimmedLog { last_s: 51 * MINUTE_S, requests: 598, ..trimmed };
        assert_eq!(found(&[(0, 1), (50, 299), (51, 299)]), Some(longer));
    }

    #[test]
    fn quiet_hours_are_part_of_a_log() {
        let day: Vec<(i64, u64)> = std::iter::once((0, 1)).chain((360..1_440).map(|minute| (minute, 10))).collect();
        assert_eq!(found(&day), None, "a night without requests must not make requests stray");
        assert_eq!(found(&[(0, 100), (600, 100)]), None, "half of the requests must not be stray");
        assert_eq!(found(&[(0, 1), (50, 10)]), None, "in a log with few requests, none may be stray");
        assert_eq!(found(&[(0, 300)]), None);
        assert_eq!(found(&[]), None);
    }
}
