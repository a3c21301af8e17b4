//! Options of a profile, and the keys by which requests are divided into classes.

use super::size_ranges::SizeRanges;
use super::urls::url;
use crate::Entry;
use jiff::tz::TimeZone;
use std::fmt::Write;

/// The class key of requests whose URL matches no pattern or whose host is empty. Requests beyond the maximum number of
/// keys have this key, too.
pub(crate) const OTHER_KEY: &str = "other";
/// Maximum length of a host in bytes; the rest is ignored.
const MAX_HOST_BYTES: usize = 255;

/// Whether requests of robots are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RobotFilter {
    /// Counts requests of robots like all other requests.
    #[default]
    Keep,
    /// Excludes requests of robots.
    Drop,
    /// Excludes all requests except requests of robots.
    Only,
}

/// The criterion by which requests are divided into classes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ClassBy {
    /// By the size of the response.
    #[default]
    Size,
    /// By the URL. Each pair has the name of a class and a pattern, in which `*` matches any text. The first pattern
    /// that matches counts.
    Url(Vec<(String, String)>),
    /// By the status of the response.
    Status,
    /// By the virtual host.
    Host,
}

/// Options for computing a profile of a log.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The time zone in which hours of the day and weekdays are counted.
    pub zone: TimeZone,
    /// Length of the peak window, in seconds.
    pub window_s: u64,
    /// The peak window, as start and end in nanoseconds since 1970; `None` to use the busiest window.
    pub peak: Option<(i64, i64)>,
    /// Whether requests of robots are counted.
    pub robots: RobotFilter,
    /// The criterion by which requests are divided into classes.
    pub class_by: ClassBy,
    /// The number of classes; `None` to choose it automatically.
    pub classes: Option<usize>,
    /// The ranges of sizes that define the classes; `None` to derive the classes from the logged sizes.
    pub size_ranges: Option<SizeRanges>,
    /// Whether to identify sessions.
    pub sessions: bool,
    /// The minimum pause between two requests of a client that ends a session, in seconds.
    pub session_gap_s: f64,
    /// The maximum pause between two requests of a burst, such as a page and its embedded files, in seconds.
    pub burst_gap_s: f64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            zone: TimeZone::UTC,
            window_s: 3_600,
            peak: None,
            robots: RobotFilter::Keep,
            class_by: ClassBy::Size,
            classes: None,
            size_ranges: None,
            sessions: true,
            session_gap_s: 1_800.0,
            burst_gap_s: 1.0,
        }
    }
}

impl ClassBy {
    /// Returns the key of the class to which a request belongs; `None` if classes are formed by size. `text` is a
    /// buffer for the key.
    pub(super) fn key<'a>(&'a self, entry: &Entry<'_>, text: &'a mut String) -> Option<&'a str> {
        match self {
            ClassBy::Size => None,
            ClassBy::Url(patterns) => {
                let found = patterns.iter().find(|(_, pattern)| matches_pattern(pattern.as_bytes(), url(entry.target)));
                Some(found.map_or(OTHER_KEY, |(name, _)| name.as_str()))
            }
            ClassBy::Status => {
                text.clear();
                // Writing to a `String` cannot fail.
                let _ = write!(text, "{}", entry.status);
                Some(text.as_str())
            }
            ClassBy::Host => {
                let host = entry.host.get(..MAX_HOST_BYTES).unwrap_or(entry.host);
                text.clear();
                for chunk in host.utf8_chunks() {
                    text.push_str(chunk.valid());
                    if !chunk.invalid().is_empty() {
                        text.push(char::REPLACEMENT_CHARACTER);
                    }
                }
                text.make_ascii_lowercase();
                Some(if text.is_empty() { OTHER_KEY } else { text.as_str() })
            }
        }
    }
}

/// Whether a URL matches a pattern. A pattern without `?` is compared only with the path.
fn matches_pattern(pattern: &[u8], url: &[u8]) -> bool {
    let query = if pattern.contains(&b'?') { None } else { url.iter().position(|byte| *byte == b'?') };
    matches_glob(pattern, query.and_then(|at| url.get(..at)).unwrap_or(url))
}

/// Whether `text` matches a pattern in which `*` matches any text.
fn matches_glob(pattern: &[u8], text: &[u8]) -> bool {
    let mut p = 0;
    let mut t = 0;
    // The index after the last `*` in the pattern, and the index in `text` at which the text that this `*` matches
    // ends.
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                p += 1;
                star = Some((p, t));
            }
            Some(byte) if text.get(t) == Some(byte) => (p, t) = (p + 1, t + 1),
            _ => match star {
                Some((behind, end)) => {
                    (p, t) = (behind, end + 1);
                    star = Some((behind, end + 1));
                }
                None => return false,
            },
        }
    }
    pattern.get(p..).unwrap_or(&[]).iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit() {
        let yes = [("*", ""), ("/a", "/a"), ("/*", "/"), ("/*.png", "/x/y.png"), ("*a*b*", "xaayyb"), ("/a*a", "/aaa")];
        let no = [("", "/"), ("/a", "/ab"), ("/*.png", "/x.png2"), ("*ab", "ba"), ("/a*a", "/a"), ("a?", "ab")];
        for (pattern, text) in yes {
            assert!(matches_glob(pattern.as_bytes(), text.as_bytes()), "{pattern} {text}");
        }
        for (pattern, text) in no {
            assert!(!matches_glob(pattern.as_bytes(), text.as_bytes()), "{pattern} {text}");
        }
        assert!(matches_pattern(b"/search", b"/search?q=1") && !matches_pattern(b"/search?", b"/search?q=1"));
        assert!(matches_pattern(b"/*?*print=1*", b"/a?x&print=1"));
    }

    #[test]
    fn keys_are_names_statuses_and_hosts() {
        let mut text = String::new();
        let entry = Entry { target: b"/img/a.png", status: 404, host: b"WWW.Example\xff.com", ..Entry::default() };
        let pattern = |name: &str, pattern: &str| (name.to_owned(), pattern.to_owned());
        let by_url = ClassBy::Url(vec![pattern("pages", "*.html"), pattern("images", "/img/*"), pattern("all", "*")]);
        assert_eq!(by_url.key(&entry, &mut text), Some("images"));
        assert_eq!(ClassBy::Url(Vec::new()).key(&entry, &mut text), Some("other"));
        assert_eq!(ClassBy::Status.key(&entry, &mut text), Some("404"));
        assert_eq!(ClassBy::Host.key(&entry, &mut text), Some("www.example\u{fffd}.com"));
        assert_eq!(ClassBy::Host.key(&Entry::default(), &mut text), Some("other"));
        assert_eq!(ClassBy::Size.key(&entry, &mut text), None);
    }
}
