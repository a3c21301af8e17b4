//! Counts of requests by status and by method, and the reasons why responses have no body.

use super::urls::is_same;
use crate::Entry;
use std::collections::BTreeMap;

/// Maximum number of methods that are counted by name. Requests with other methods are counted as `other`.
const MAX_METHODS: usize = 32;
/// Maximum length of a method, in bytes. Longer texts count as invalid. Only one registered method is longer:
/// `UPDATEREDIRECTREF`, with 17 letters.
const MAX_METHOD_BYTES: usize = 16;
const STATUSES: usize = 1_000;

/// Counts of requests by status and method, in a few kB.
#[derive(Clone, Debug)]
pub(super) struct StatusAndMethodCounts {
    status: Vec<u64>,
    status_other: u64,
    methods: Vec<(Box<str>, u64)>,
    methods_other: u64,
    methods_invalid: u64,
    zero_length: [u64; REASONS.len()],
}

/// Names of the reasons why a response has no body, in the order of [`StatusAndMethodCounts::zero_length`].
const REASONS: [&str; 7] = ["head", "not_modified", "aborted", "not_found", "redirect", "error", "other"];

/// A reason why a response has no body: an index into [`REASONS`].
#[derive(Clone, Copy)]
enum Reason {
    Head,
    NotModified,
    Aborted,
    NotFound,
    Redirect,
    Error,
    Other,
}

impl Default for StatusAndMethodCounts {
    fn default() -> Self {
        Self {
            status: vec![0; STATUSES],
            status_other: 0,
            methods: Vec::new(),
            methods_other: 0,
            methods_invalid: 0,
            zero_length: [0; REASONS.len()],
        }
    }
}

impl StatusAndMethodCounts {
    /// Adds a request.
    #[inline]
    pub fn add(&mut self, entry: &Entry<'_>) {
        *self.status.get_mut(usize::from(entry.status)).unwrap_or(&mut self.status_other) += 1;
        *self.method(entry.method) += 1;
        if entry.bytes.unwrap_or(0) == 0 {
            self.zero_length[reason(entry) as usize] += 1;
        }
    }

    /// Numbers of requests by status. Statuses above 999 count as `other`.
    pub fn status(&self) -> BTreeMap<String, u64> {
        let all = self.status.iter().enumerate().map(|(status, count)| (status.to_string(), *count));
        all.chain([("other".to_owned(), self.status_other)]).filter(|(_, count)| *count > 0).collect()
    }

    /// Numbers of requests by method. Invalid methods count as `invalid`.
    pub fn methods(&self) -> BTreeMap<String, u64> {
        let named = self.methods.iter().map(|(method, count)| (method.to_string(), *count));
        let rest = [("other".to_owned(), self.methods_other), ("invalid".to_owned(), self.methods_invalid)];
        named.chain(rest).filter(|(_, count)| *count > 0).collect()
    }

    /// Numbers of responses without a body, by the reason why they have none.
    pub fn zero_length(&self) -> BTreeMap<String, u64> {
        let all = REASONS.iter().zip(self.zero_length).map(|(reason, count)| ((*reason).to_owned(), count));
        all.filter(|(_, count)| *count > 0).collect()
    }

    /// The counter of a method in the list of methods. Each call moves the method one position towards the front, so
    /// that common methods are found first.
    #[inline]
    fn method(&mut self, method: &[u8]) -> &mut u64 {
        let found = self.methods.iter().position(|(known, _)| is_same(known.as_bytes(), method));
        let at = match found {
            Some(0) => 0,
            Some(at) => {
                self.methods.swap(at, at - 1);
                at - 1
            }
            None if !is_method(method) => return &mut self.methods_invalid,
            None if self.methods.len() == MAX_METHODS => return &mut self.methods_other,
            None => {
                self.methods.push((String::from_utf8_lossy(method).into(), 0));
                self.methods.len() - 1
            }
        };
        match self.methods.get_mut(at) {
            Some((_, count)) => count,
            None => &mut self.methods_other,
        }
    }
}

/// Whether a text consists of upper-case letters and hyphens, which methods of WebDAV and UPnP contain.
fn is_method(method: &[u8]) -> bool {
    let is_letter = |byte: &u8| byte.is_ascii_uppercase() || *byte == b'-';
    (1..=MAX_METHOD_BYTES).contains(&method.len()) && method.iter().all(is_letter)
}

/// The reason why a response has no body. The method takes precedence over the status.
fn reason(entry: &Entry<'_>) -> Reason {
    match entry.status {
        _ if entry.method == b"HEAD" => Reason::Head,
        304 => Reason::NotModified,
        // nginx writes the status 499 if the client closed the connection before the response.
        0 | 408 | 499 => Reason::Aborted,
        404 | 410 => Reason::NotFound,
        300..=399 => Reason::Redirect,
        400..=599 => Reason::Error,
        _ => Reason::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(method: &[u8], status: u16, bytes: Option<u64>) -> Entry<'_> {
        Entry { method, status, bytes, ..Entry::default() }
    }

    #[test]
    fn every_empty_answer_has_a_reason() {
        let mut kinds = StatusAndMethodCounts::default();
        let cases = [
            ("HEAD", 200, "head"),
            ("HEAD", 304, "head"),
            ("GET", 304, "not_modified"),
            ("GET", 302, "redirect"),
            ("GET", 404, "not_found"),
            ("GET", 410, "not_found"),
            ("GET", 408, "aborted"),
            ("GET", 499, "aborted"),
            ("", 0, "aborted"),
            ("GET", 403, "error"),
            ("GET", 502, "error"),
            ("GET", 200, "other"),
            ("POST", 204, "other"),
            ("GET", 65_535, "other"),
        ];
        for (method, status, expected) in cases {
            let reason = reason(&entry(method.as_bytes(), status, None));
            assert_eq!(REASONS[reason as usize], expected, "{method} {status}");
            kinds.add(&entry(method.as_bytes(), status, Some(0)));
            kinds.add(&entry(method.as_bytes(), status, Some(9)));
        }
        assert_eq!(kinds.zero_length().values().sum::<u64>(), cases.len() as u64);
        assert_eq!((kinds.zero_length()["aborted"], kinds.zero_length()["head"]), (3, 2));
        let status = kinds.status();
        assert_eq!((status["0"], status["200"], status["304"], status["other"]), (2, 4, 4, 2));
    }

    #[test]
    fn methods_are_few_whatever_comes() {
        let mut kinds = StatusAndMethodCounts::default();
        for i in 0..100u8 {
            kinds.add(&entry(&[b'A' + i / 26, b'A' + i % 26], 200, None));
            kinds.add(&entry(&[i], 200, None));
        }
        for (method, count) in [("GET", 50), ("AA", 9)] {
            (0..count).for_each(|_| kinds.add(&entry(method.as_bytes(), 200, None)));
        }
        kinds.add(&entry(b"LONGER-THAN-SIXTEEN", 200, None));
        let methods = kinds.methods();
        assert!(methods.len() <= MAX_METHODS + 2, "{methods:?}");
        assert_eq!(methods.values().sum::<u64>(), 260);
        // Of the 256 methods with a single byte, only `-` and the 26 upper-case letters are valid.
        assert!(methods["AA"] == 10 && methods["invalid"] == 74 && methods["other"] > 50, "{methods:?}");
    }

    #[test]
    fn usual_methods_are_counted_by_name() {
        let mut kinds = StatusAndMethodCounts::default();
        for method in ["GET", "POST", "GET", "M-SEARCH", "GET", "get", "\u{16}\u{3}\u{1}", ""] {
            kinds.add(&entry(method.as_bytes(), 200, Some(1)));
        }
        let expected = [("GET", 3), ("M-SEARCH", 1), ("POST", 1), ("invalid", 3)];
        assert_eq!(kinds.methods(), expected.map(|(method, count)| (method.to_owned(), count)).into());
        assert!(kinds.zero_length().is_empty());
    }
}
