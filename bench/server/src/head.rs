//! Finds the requests in a stream of bytes. A request ends with its blank line, because no request has a body.

/// Whether the connection stays open after the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Persistence {
    /// The connection stays open, which is the default of HTTP/1.1.
    Keep,
    /// The connection stays open because an HTTP/1.0 client has requested it. The response must confirm this.
    KeepAsked,
    /// The connection is closed.
    Close,
}

/// Number of requests for each persistence. At most one request closes the connection: the last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RequestCounts {
    pub(crate) keep: usize,
    pub(crate) keep_asked: usize,
    pub(crate) close: bool,
}

impl RequestCounts {
    pub(crate) fn requests(self) -> usize {
        self.keep + self.keep_asked + usize::from(self.close)
    }
}

/// Finds requests in a stream of bytes. A load generator usually repeats the same request. So the input is first
/// compared with the last request, and searched for a blank line only if it differs.
#[derive(Debug, Default)]
pub(crate) struct Finder {
    last: Vec<u8>,
    persistence: Option<Persistence>,
}

impl Finder {
    /// Counts the complete requests at the beginning of `input`. Returns the counts and the total length of these
    /// requests.
    pub(crate) fn find_all(&mut self, input: &[u8]) -> (RequestCounts, usize) {
        let (mut counts, mut used) = (RequestCounts::default(), 0);
        while !counts.close
            && let Some((len, persistence)) = self.find(&input[used..])
        {
            used += len;
            match persistence {
                Persistence::Keep => counts.keep += 1,
                Persistence::KeepAsked => counts.keep_asked += 1,
                Persistence::Close => counts.close = true,
            }
        }
        (counts, used)
    }

    /// Returns the length and the persistence of the first request in `input`; `None` if its blank line has not
    /// arrived.
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

/// The persistence that a request's head asks for (RFC 9112 §9.3).
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
        // The second call compares the input with the last request. It must find the same request.
        assert_eq!(finder.find(&two), Some((one.len(), Persistence::Keep)));
        assert_eq!(finder.find(&one[..one.len() - 1]), None);
        assert_eq!(finder.find(&two[one.len()..]), Some((two.len() - one.len(), Persistence::Keep)));
    }

    #[test]
    fn connections_persist_as_the_client_asks() {
        assert_eq!(persistence(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"), Persistence::Keep);
        assert_eq!(persistence(b"GET / HTTP/1.1\r\nconnection: x, Close\r\n\r\n"), Persistence::Close);
        assert_eq!(persistence(b"GET / HTTP/1.0\r\nHost: a\r\n\r\n"), Persistence::Close);
        assert_eq!(persistence(b"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"), Persistence::KeepAsked);
    }

    #[test]
    fn the_persistence_of_a_request_does_not_affect_the_next() {
        let mut finder = Finder::default();
        let close = b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n";
        assert_eq!(finder.find(close).unwrap().1, Persistence::Close);
        assert_eq!(finder.find(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap().1, Persistence::Keep);
        assert_eq!(finder.find(close).unwrap().1, Persistence::Close);
    }
}
