//! Feeds arbitrary bytes as the output of an HTTP/2 client to the reference server. Checks that nothing panics, that
//! the result does not depend on how the bytes are split, and that the output is bounded.
//!
//! Input: a byte of flags (bit 0: the preface is missing; bits 4 to 7: the number of cuts), the length of the piece
//! before each cut, and the bytes of the client. `README.md` contains the command that runs this target.
#![no_main]

use brimful_http::{Http2Server, ServerEvent, MAX_HEAD_BYTES, ParseError, response_header_block};
use libfuzzer_sys::fuzz_target;
use std::sync::Arc;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Length of every other response body in bytes. It exceeds the flow-control window, so the end of the body waits for a
/// WINDOW_UPDATE.
const ANSWER: usize = 70_000;

fuzz_target!(|input: &[u8]| {
    let Some((&flags, rest)) = input.split_first() else {
        return;
    };
    let Some((lengths, said)) = rest.split_at_checked(usize::from(flags >> 4)) else {
        return;
    };
    let said = if flags & 1 == 0 {
        [PREFACE, said].concat()
    } else {
        said.to_vec()
    };
    let mut cut = Vec::new();
    let mut left = &said[..];
    for &length in lengths {
        let (piece, after) = left.split_at(left.len().min(usize::from(length)));
        cut.push(piece);
        left = after;
    }
    cut.push(left);

    let whole = feed_all(&[&said]);
    assert_eq!(whole, feed_all(&cut));
    assert_eq!(whole, feed_all(&said.chunks(1).collect::<Vec<_>>()));
});

/// All requests, errors and output that resulted from the bytes.
#[derive(Debug, Default, PartialEq)]
struct Results {
    requests: Vec<(u32, usize)>,
    error: Option<ParseError>,
    said: Vec<u8>,
}

/// Feeds the pieces, and responds to every request at once. Every second response has a body of
/// [`ANSWER`] bytes; the others have none.
fn feed_all(pieces: &[&[u8]]) -> Results {
    let mut server: Http2Server<usize> = Http2Server::default();
    let block = response_header_block(200, &[("content-type", "text/plain")]);
    let bodies: [Arc<[u8]>; 2] = [Arc::from(&b"short"[..]), Arc::from(vec![b'x'; ANSWER])];
    let mut results = Results::default();
    let mut kept: Vec<u8> = Vec::new();
    'pieces: for piece in pieces {
        kept.extend_from_slice(piece);
        loop {
            let (used, asked) = server.feed(&kept, |method, path| {
                assert!(method.len() + path.len() <= MAX_HEAD_BYTES);
                method.len() + path.len()
            });
            kept.drain(..used);
            match asked {
                ServerEvent::NeedMore => break,
                ServerEvent::Request(stream, value) => {
                    server.respond(stream, &block, &bodies[results.requests.len() % 2], 0);
                    results.requests.push((stream, value));
                }
                ServerEvent::Broken(error) => {
                    results.error = Some(error);
                    break 'pieces;
                }
            }
        }
    }
    while !server.output().is_empty() {
        let output = server.output();
        results.said.extend_from_slice(output);
        let sent = output.len();
        server.consume_output(sent);
    }
    let most = (results.requests.len() + 1) * (ANSWER + 4096) + 32 * pieces.iter().map(|piece| piece.len()).sum::<usize>();
    assert!(results.said.len() <= most, "{} bytes", results.said.len());
    results
}
