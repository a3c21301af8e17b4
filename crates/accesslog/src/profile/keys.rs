//! What a request's class is known by, where classes are not made of sizes: a name for its URL, its status, its host.

use super::ClassBy;
use super::urls::url;
use crate::Entry;
use std::fmt::Write;

/// The key of what no pattern fits, of empty hosts, and of keys beyond the most.
pub(crate) const OTHER: &str = "other";
/// Bytes of a host that are looked at.
const LONGEST: usize = 255;

/// The key of a request, in `text` where it has to be made; `None` where classes are of sizes.
pub(super) fn key<'a>(class_by: &'a ClassBy, entry: &Entry<'_>, text: &'a mut String) -> Option<&'a str> {
    match class_by {
        ClassBy::Size => None,
        ClassBy::Url(patterns) => {
            let found = patterns.iter().find(|(_, pattern)| is_of(pattern.as_bytes(), url(entry.target)));
            Some(found.map_or(OTHER, |(name, _)| name.as_str()))
        }
        ClassBy::Status => {
            text.clear();
            // Writing to a string cannot fail.
            let _ = write!(text, "{}", entry.status);
            Some(text.as_str())
        }
        ClassBy::Host => {
            let host = entry.host.get(..LONGEST).unwrap_or(entry.host);
            text.clear();
            for chunk in host.utf8_chunks() {
                text.push_str(chunk.valid());
                if !chunk.invalid().is_empty() {
                    text.push(char::REPLACEMENT_CHARACTER);
                }
            }
            text.make_ascii_lowercase();
            Some(if text.is_empty() { OTHER } else { text.as_str() })
        }
    }
}

/// Whether a URL fits a pattern; one without `?` is about the path only.
fn is_of(pattern: &[u8], url: &[u8]) -> bool {
    let query = if pattern.contains(&b'?') { None } else { url.iter().position(|byte| *byte == b'?') };
    fits(pattern, query.and_then(|at| url.get(..at)).unwrap_or(url))
}

/// Whether text is the pattern, in which `*` stands for anything.
fn fits(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    // Behind the last `*`, and where what it stands for ends.
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
            assert!(fits(pattern.as_bytes(), text.as_bytes()), "{pattern} {text}");
        }
        for (pattern, text) in no {
            assert!(!fits(pattern.as_bytes(), text.as_bytes()), "{pattern} {text}");
        }
        assert!(is_of(b"/search", b"/search?q=1") && !is_of(b"/search?", b"/search?q=1"));
        assert!(is_of(b"/*?*print=1*", b"/a?x&print=1"));
    }

    #[test]
    fn keys_are_names_statuses_and_hosts() {
        let mut text = String::new();
        let entry = Entry { target: b"/img/a.png", status: 404, host: b"WWW.Example\xff.com", ..Entry::default() };
        let pattern = |name: &str, pattern: &str| (name.to_owned(), pattern.to_owned());
        let by_url = ClassBy::Url(vec![pattern("pages", "*.html"), pattern("images", "/img/*"), pattern("all", "*")]);
        assert_eq!(key(&by_url, &entry, &mut text), Some("images"));
        assert_eq!(key(&ClassBy::Url(Vec::new()), &entry, &mut text), Some("other"));
        assert_eq!(key(&ClassBy::Status, &entry, &mut text), Some("404"));
        assert_eq!(key(&ClassBy::Host, &entry, &mut text), Some("www.example\u{fffd}.com"));
        assert_eq!(key(&ClassBy::Host, &Entry::default(), &mut text), Some("other"));
        assert_eq!(key(&ClassBy::Size, &entry, &mut text), None);
    }
}
