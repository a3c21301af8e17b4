//! Filters the requests of a log by time, status and URL.

use crate::exit::UsageError;
use brimful_accesslog::Entry;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Timestamp, civil};
use std::str::FromStr;

/// The rules of the flags `--since`, `--until`, `--filter-status` and `--filter-url`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    /// Keep requests from this time on, in nanoseconds since 1970.
    pub since: Option<i64>,
    /// Keep requests before this time, in nanoseconds since 1970.
    pub until: Option<i64>,
    /// Statuses to keep or to skip.
    pub status: Vec<StatusRange>,
    /// URLs to keep or to skip.
    pub urls: Vec<UrlPattern>,
}

/// A status or a range of statuses to keep, like `304`, `4xx` or `400-499`; with `!` in front, to skip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusRange {
    from: u16,
    to: u16,
    leave_out: bool,
}

/// A pattern of URLs to keep, like `/shop/*`; with `!` in front, to skip. An asterisk matches any text, even an empty
/// one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlPattern {
    pattern: String,
    leave_out: bool,
}

impl Filter {
    /// Whether a request is kept.
    pub fn keeps(&self, entry: &Entry<'_>) -> bool {
        let time = entry.time_ns;
        let status = || self.status.iter().map(|range| (range.leave_out, range.has(entry.status)));
        let urls = || self.urls.iter().map(|url| (url.leave_out, matches(url.pattern.as_bytes(), entry.target)));
        self.since.is_none_or(|since| time >= since)
            && self.until.is_none_or(|until| time < until)
            && is_kept(status())
            && is_kept(urls())
    }
}

/// Whether the rules keep a request: no skip rule matches and, if there are keep rules, at least one of them matches.
/// Each item of `matches` is one rule: whether it is a skip rule, and whether it matches.
fn is_kept(matches: impl Iterator<Item = (bool, bool)>) -> bool {
    let mut any_kept = false;
    let mut kept = false;
    for (leave_out, matches) in matches {
        if leave_out && matches {
            return false;
        }
        any_kept |= !leave_out;
        kept |= !leave_out && matches;
    }
    kept || !any_kept
}

/// Whether a text matches the pattern. After a mismatch, only the last asterisk is extended: extending an earlier one
/// would not make more of the text match.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let mut pattern_at = 0;
    let mut text_at = 0;
    // The positions after the last asterisk, in the pattern and in the text.
    let mut retry: Option<(usize, usize)> = None;
    while let Some(byte) = text.get(text_at) {
        match pattern.get(pattern_at) {
            Some(b'*') => {
                pattern_at += 1;
                retry = Some((pattern_at, text_at));
            }
            Some(wanted) if wanted == byte => {
                pattern_at += 1;
                text_at += 1;
            }
            _ => match &mut retry {
                Some((behind, from)) => {
                    *from += 1;
                    pattern_at = *behind;
                    text_at = *from;
                }
                None => return false,
            },
        }
    }
    pattern.get(pattern_at..).is_none_or(|rest| rest.iter().all(|byte| *byte == b'*'))
}

impl StatusRange {
    fn has(self, status: u16) -> bool {
        (self.from..=self.to).contains(&status)
    }
}

impl FromStr for StatusRange {
    type Err = String;

    fn from_str(text: &str) -> Result<StatusRange, String> {
        let (leave_out, rest) = split_exclamation(text.trim());
        let status = |text: &str| text.parse::<u16>().ok().filter(|status| text.len() == 3 && *status >= 100);
        let hundred = || Some(100 * rest.strip_suffix("xx")?.parse::<u16>().ok().filter(|h| (1..=9).contains(h))?);
        let range = match rest.split_once('-') {
            Some((from, to)) => status(from).zip(status(to)).filter(|(from, to)| from <= to),
            None => status(rest).map(|one| (one, one)).or_else(|| hundred().map(|from| (from, from + 99))),
        };
        let error = || format!("`{text}` is not a status: write it like 304, 4xx, 400-499 or !404");
        range.map(|(from, to)| StatusRange { from, to, leave_out }).ok_or_else(error)
    }
}

impl FromStr for UrlPattern {
    type Err = String;

    fn from_str(text: &str) -> Result<UrlPattern, String> {
        let (leave_out, pattern) = split_exclamation(text);
        match pattern.is_empty() {
            true => Err("an empty pattern matches nothing: write it like '/shop/*' or '!/health*'".to_owned()),
            false => Ok(UrlPattern { pattern: pattern.to_owned(), leave_out }),
        }
    }
}

/// Splits off a leading exclamation mark. Returns whether there was one, and the rest of the rule.
fn split_exclamation(text: &str) -> (bool, &str) {
    text.strip_prefix('!').map_or((false, text), |rest| (true, rest))
}

/// Parses the time in a flag, and returns it in nanoseconds since 1970. The time is in RFC 3339, or a date with or
/// without a time of day, in the zone. If clocks were set back and the time occurs twice, the first one is used. If
/// clocks were set forward and the time was skipped, it is moved forward by the same amount.
pub fn parse_instant(text: &str, zone: &TimeZone, flag: &str) -> Result<i64, UsageError> {
    let text = text.trim();
    let clock = || text.parse::<DateTime>().ok().or_else(|| Some(text.parse::<civil::Date>().ok()?.at(0, 0, 0, 0)));
    let on_clocks = || zone.to_ambiguous_timestamp(clock()?).compatible().ok();
    let at = text.parse::<Timestamp>().ok().or_else(on_clocks);
    at.and_then(|at| i64::try_from(at.as_nanosecond()).ok()).ok_or_else(|| {
        let text: String = text.chars().take(60).collect();
        UsageError(format!(
            "{flag}: `{text}` is not a time: write 2026-03-01, 2026-03-01T14:00 or 2026-03-01T14:00:00+01:00"
        ))
    })
}

/// Parses the two times of `FROM/TO`.
pub fn parse_window(text: &str, zone: &TimeZone, flag: &str) -> Result<(i64, i64), UsageError> {
    let usage = |why: &str| UsageError(format!("{flag}: {why}: write it like 2026-03-01T14:00/2026-03-01T15:00"));
    let (from, to) = text.split_once('/').ok_or_else(|| usage("a window has a start and an end"))?;
    let from = parse_instant(from, zone, flag)?;
    let to = parse_instant(to, zone, flag)?;
    if from < to { Ok((from, to)) } else { Err(usage("a window must end after it starts")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_asterisk_matches_anything() {
        for (pattern, text, expected) in [
            ("/", "/", true),
            ("/", "/a", false),
            ("/a", "/", false),
            ("*", "", true),
            ("*", "/x", true),
            ("", "", true),
            ("", "/", false),
            ("/shop/*", "/shop/", true),
            ("/shop/*", "/shop", false),
            ("*.png", "/a/b.png", true),
            ("*.png", "/a/b.png?x", false),
            ("*.png*", "/a/b.png?x", true),
            ("*a*b*c", "xaxbxbxc", true),
            ("*a*b*c", "xaxcxb", false),
            ("a*a", "a", false),
            ("*aab", "aaaaab", true),
            ("/*/x/*", "/a/x/b/x/c", true),
        ] {
            assert_eq!(matches(pattern.as_bytes(), text.as_bytes()), expected, "{pattern} {text}");
        }
        // Backtracking must be fast even in its worst case.
        let long = vec![b'a'; 100_000];
        assert!(!matches(b"*a*a*a*a*a*a*b", &long));
    }

    fn status(items: &[&str]) -> Filter {
        Filter { status: items.iter().map(|item| item.parse().unwrap()).collect(), ..Filter::default() }
    }

    fn keeps(filter: &Filter, status: u16, target: &str, time_ns: i64) -> bool {
        filter.keeps(&Entry { status, target: target.as_bytes(), time_ns, ..Entry::default() })
    }

    #[test]
    fn statuses_are_kept_and_left_out() {
        let kept = |items: &[&str]| -> Vec<u16> {
            let filter = status(items);
            [0, 200, 304, 404, 499, 500].into_iter().filter(|status| keeps(&filter, *status, "/", 0)).collect()
        };
        assert_eq!(kept(&[]), [0, 200, 304, 404, 499, 500]);
        assert_eq!(kept(&["2xx", "304"]), [200, 304]);
        assert_eq!(kept(&["!404"]), [0, 200, 304, 499, 500]);
        assert_eq!(kept(&["400-499", "!404"]), [499]);
        for text in ["", "xx", "20", "2000", "0xx", "499-400", "200-", "ok", "!", "1xxx", "+99"] {
            assert!(text.parse::<StatusRange>().is_err(), "{text}");
        }
    }

    #[test]
    fn urls_and_times_are_kept_and_left_out() {
        let urls = ["/shop/*", "/", "!*.png"].map(|pattern| pattern.parse().unwrap());
        let filter = Filter { urls: urls.into(), since: Some(10), until: Some(20), ..Filter::default() };
        assert!(keeps(&filter, 200, "/shop/a", 10) && keeps(&filter, 200, "/", 19));
        assert!(!keeps(&filter, 200, "/shop/a.png", 10) && !keeps(&filter, 200, "/news", 10));
        assert!(!keeps(&filter, 200, "/", 9) && !keeps(&filter, 200, "/", 20));
        assert!("".parse::<UrlPattern>().is_err() && "!".parse::<UrlPattern>().is_err());
    }

    #[test]
    fn times_are_instants_or_what_clocks_show() {
        let berlin = TimeZone::get("Europe/Berlin").unwrap();
        let seconds = |text: &str| parse_instant(text, &berlin, "--since").map(|ns| ns / 1_000_000_000).ok();
        assert_eq!(seconds("1970-01-02"), Some(86_400 - 3600));
        assert_eq!(seconds("1970-01-01T02:30"), Some(5400));
        assert_eq!(seconds("1970-01-01 02:30:01"), Some(5401));
        assert_eq!(seconds("1970-01-01T02:30:00Z"), Some(9000));
        assert_eq!(seconds("1970-01-01T02:30:00+02:00"), Some(1800));
        for text in ["", "now", "12:00", "1970-13-01", "9999999999999"] {
            let error = parse_instant(text, &berlin, "--since").unwrap_err().to_string();
            assert!(error.contains("--since") && error.contains("2026-03-01"), "{text}: {error}");
        }
        let utc = TimeZone::UTC;
        assert_eq!(parse_window("1970-01-01/1970-01-01T00:01", &utc, "--peak").unwrap(), (0, 60_000_000_000));
        for text in ["1970-01-01", "1970-01-02/1970-01-01", "1970-01-01/1970-01-01", "/", "a/b"] {
            assert!(parse_window(text, &utc, "--peak").is_err(), "{text}");
        }
    }
}
