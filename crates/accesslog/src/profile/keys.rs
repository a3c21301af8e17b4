//! The class key of a request where classes are not made by size: a name for its URL, its status, or its host.

use super::options::ClassBy;
use super::urls::url;
use crate::Entry;
use std::fmt::Write;

/// The key of URLs that match no pattern, of empty hosts, and of keys beyond the maximum number.
pub(crate) const OTHER: &str = "other";
/// Bytes of a host that are considered.
const MAX_HOST_BYTES: usize = 255;

/// The key of a request, stored in `text` if necessary; `None` if classes are made by size.
pub(super) fn class_key<'a>(class_by: &'a ClassBy, entry: &Entry<'_>, text: &'a mut String) -> Option<&'a str> {
    match class_by {
        ClassBy::Size => None,
        ClassBy::Url(patterns) => {
            let found = patterns.iter().find(|(_, pattern)| matches_pattern(pattern.as_bytes(), url(entry.target)));
            Some(found.map_or(OTHER, |(name, _)| name.as_str()))
        }
        ClassBy::Status => {
            text.clear();
            // Writing to a string cannot fail.
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
            Some(if text.is_empty() { OTHER } else { text.as_str() })
        }
    }
}

/// Whether a URL matches a pattern. A pattern without `?` is compared with the path only.
fn matches_pattern(pattern: &[u8], url: &[u8]) -> bool {
    let query = if pattern.contains(&b'?') { None } else { url.iter().position(|byte| *byte == b'?') };
    matches_glob(pattern, query.and_then(|at| url.get(..at)).unwrap_or(url))
}

/// Whether text matches a pattern, in which `*` stands for any text.
fn matches_glob(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    // The position after the last `*`, and the end of the text that it matches.
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
        assert_eq!(class_key(&by_url, &entry, &mut text), Some("images"));
        assert_eq!(class_key(&ClassBy::Url(Vec::new()), &entry, &mut text), Some("other"));
        assert_eq!(class_key(&ClassBy::Status, &entry, &mut text), Some("404"));
        assert_eq!(class_key(&ClassBy::Host, &entry, &mut text), Some("www.example\u{fffd}.com"));
        assert_eq!(class_key(&ClassBy::Host, &Entry::default(), &mut text), Some("other"));
        assert_eq!(class_key(&ClassBy::Size, &entry, &mut text), None);
    }
}
