//! Feeds arbitrary bytes as the output of an HTTP/2 server. Checks that nothing panics and that the result does not
//! depend on how the bytes are split.
//!
//! Input: a byte of flags (bit 0: the SETTINGS frame is missing; bits 4 to 7: the number of cuts), the length of the
//! piece before each cut, and the bytes after SETTINGS. `README.md` contains the command that runs this target.
#![no_main]

use brimful_http::{StreamEnd, Http2, StreamObserver, ParseError, RecentBlock, Request, Version};
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

/// An empty SETTINGS frame. A server must send SETTINGS as its first frame.
const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];

/// The requests to which the bytes contain responses.
static REQUESTS: LazyLock<Vec<Request>> = LazyLock::new(|| {
    let request = |(method, body): (&str, &str)| {
        Request::new(method, "a", "/", &[], body.as_bytes(), Version::Http2, false).expect("the request is valid")
    };
    [("GET", ""), ("HEAD", ""), ("POST", "body"), ("GET", "")].map(request).into()
});

fuzz_target!(|input: &[u8]| {
    let Some((&flags, rest)) = input.split_first() else {
        return;
    };
    let Some((lengths, sent)) = rest.split_at_checked(usize::from(flags >> 4)) else {
        return;
    };
    let sent = if flags & 1 == 0 {
        [SETTINGS, sent].concat()
    } else {
        sent.to_vec()
    };
    let mut cut = Vec::new();
    let mut left = &sent[..];
    for &length in lengths {
        let (piece, after) = left.split_at(left.len().min(usize::from(length)));
        cut.push(piece);
        left = after;
    }
    cut.push(left);

    let whole = feed_all(&[&sent]);
    assert_eq!(whole, feed_all(&cut));
    assert_eq!(whole, feed_all(&sent.chunks(1).collect::<Vec<_>>()));
});

/// All events that occurred while the bytes were fed.
#[derive(Debug, Default, PartialEq)]
struct Results {
    ended: Vec<(usize, StreamEnd)>,
    heads: Vec<(usize, Vec<u8>)>,
    error: Option<ParseError>,
    said: Vec<u8>,
}

impl StreamObserver<usize> for Results {
    fn received(&mut self, _: &mut usize, _: u64) {}

    fn wants_heads(&self) -> bool {
        true
    }

    fn head(&mut self, call: &mut usize, head: &[u8]) {
        self.heads.push((*call, head.to_vec()));
    }
}

fn feed_all(pieces: &[&[u8]]) -> Results {
    let mut http2 = Http2::new();
    let mut recent = RecentBlock::default();
    let mut results = Results::default();
    for (call, request) in REQUESTS.iter().enumerate() {
        http2.open(request, call);
    }
    http2.clear_output();
    for piece in pieces {
        let mut rest = *piece;
        loop {
            match http2.feed(&mut recent, rest, &mut results) {
                Ok(fed) => {
                    rest = &rest[fed.consumed..];
                    let Some((stream, end)) = fed.closed else {
                        assert!(rest.is_empty(), "all bytes are consumed unless a stream ends");
                        break;
                    };
                    results.ended.push((stream.value, end));
                }
                Err(error) => {
                    assert!(http2.refuses_new_streams(), "after an error, no stream can be opened");
                    results.error = Some(error);
                    results.said = http2.output().to_vec();
                    return results;
                }
            }
        }
    }
    assert_eq!(http2.streams() + results.ended.len(), REQUESTS.len());
    results.said = http2.output().to_vec();
    results
}
