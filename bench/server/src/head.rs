//! Finding requests: one ends with its blank line, for none has a body.

/// What becomes of the connection after the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Persistence {
    /// It stays open, as HTTP/1.1 has it.
    Keep,
    /// It stays open because an HTTP/1.0 client asked for it; the answer must confirm that.
    KeepAsked,
    Close,
}

/// How many requests want what. After one that wants the connection closed there are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) keep: usize,
    pub(crate) keep_asked: usize,
    pub(crate) close: bool,
}

impl Found {
    pub(crate) fn requests(self) -> usize {
        self.keep + self.keep_asked + usize::from(self.close)
    }
}

/// Finds requests in a stream of bytes. A load generator repeats itself, so the last request is compared before anything is
/// searched: identical bytes are an identical request.
#[derive(Debug, Default)]
pub(crate) struct Finder {
    last: Vec<u8>,
    persistence: Option<Persistence>,
}

impl Finder {
    /// All whole requests that `input` begins with, and their length.
    pub(crate) fn find_all(&mut self, input: &[u8]) -> (Found, usize) {
        let (mut found, mut used) = (Found::default(), 0);
        while !found.close
            && let Some((len, persistence)) = self.find(&input[used..])
        {
            used += len;
            match persistence {
                Persistence::Keep => found.keep += 1,
                Persistence::KeepAsked => found.keep_asked += 1,
                Persistence::Close => found.close = true,
            }
        }
        (found, used)
    }

    /// The length of the request that `input` begins with, and what it wants; `None` while its blank line is missing.
    pub(crate) fn find(&mut self, input: &[u8]) -> Option<(usize, Persistence)> {
        if let Some(persistence) = self.persistence
            && input.starts_with(&self.last)
        {
            return Some((self.last.len(), persistence));
        }
        let end = input.windows(4).position(|w| w == b"\r\n\r\n")? + 4;
        let persistence = persistence(&input[..end]);
        self.last = input[..end].to_vec();
        self.persistence = Some(persistence);
        Some((end, persistence))
    }
}

/// RFC 9112 §9.3.
fn persistence(head: &[u8]) -> Persistence {
    let mut lines = head.split(|&b| b == b'\n').map(<[u8]>::trim_ascii_end);
    let old = lines.next().is_some_and(|request| request.ends_with(b" HTTP/1.0"));
    let (mut close, mut keep) = (false, false);
    for line in lines {
        let Some(colon) = line.iter().position(|&b| b == b':') else { continue };
        if line[..colon].eq_ignore_ascii_case(b"connection") {
            for option in line[colon + 1..].split(|&b| b == b',').map(<[u8]>::trim_ascii) {
                close |= option.eq_ignore_ascii_case(b"close");
                keep |= option.eq_ignore_ascii_case(b"keep-alive");
            }
        }
    }
    match (close, old, keep) {
        (true, _, _) | (false, true, false) => Persistence::Close,
        (false, true, true) => Persistence::KeepAsked,
        (false, false, _) => Persistence::Keep,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_end_with_their_blank_line() {
        let mut finder = Finder::default();
        let one = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
        let two = [&one[..], b"GET /b HTTP/1.1\r\n\r\n"].concat();
        assert_eq!(finder.find(&one[..one.len() - 1]), None);
        assert_eq!(finder.find(&two), Some((one.len(), Persistence::Keep)));
        // Now from memory, and then one that differs.
        assert_eq!(finder.find(&two), Some((one.len(), Persistence::Keep)));
        assert_eq!(finder.find(&one[..one.len() - 1]), None);
        assert_eq!(finder.find(&two[one.len()..]), Some((two.len() - one.len(), Persistence::Keep)));
    }

    #[test]
    fn connections_persist_as_the_client_asks() {
        let of = |head: &str| Finder::default().find(head.as_bytes()).unwrap().1;
        assert_eq!(of("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), Persistence::Keep);
        assert_eq!(of("GET / HTTP/1.1\r\nconnection: x, Close\r\n\r\n"), Persistence::Close);
        assert_eq!(of("GET / HTTP/1.0\r\nHost: a\r\n\r\n"), Persistence::Close);
        assert_eq!(of("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"), Persistence::KeepAsked);
    }

    #[test]
    fn what_was_learned_from_one_request_is_not_said_of_another() {
        let mut finder = Finder::default();
        let close = b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n";
        assert_eq!(finder.find(close).unwrap().1, Persistence::Close);
        assert_eq!(finder.find(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap().1, Persistence::Keep);
        assert_eq!(finder.find(close).unwrap().1, Persistence::Close);
    }
}
