//! Foreign bytes as what a client of HTTP/2 says to the reference server: no panic, the same wherever they are cut, and
//! bounded in what is kept.
//!
//! Input: a byte of flags (bit 0: without the preface; bits 4 to 7: the number of cuts), the lengths of that many pieces,
//! and what the client sends. `README.md` has the command.
#![no_main]

use brimful_http::{Http2Server, ServerEvent, MAX_HEAD_BYTES, ParseError, answer_block};
use libfuzzer_sys::fuzz_target;
use std::sync::Arc;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// More than a window holds, so that the rest waits until the client opens it.
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

    let whole = told(&[&said]);
    assert_eq!(whole, told(&cut));
    assert_eq!(whole, told(&said.chunks(1).collect::<Vec<_>>()));
});

/// Which requests were whole, how the connection ended, and what was said in return.
#[derive(Debug, Default, PartialEq)]
struct Told {
    requests: Vec<(u32, usize)>,
    error: Option<ParseError>,
    said: Vec<u8>,
}

/// Every request is answered at once, with as many bytes as make the windows matter for every other.
fn told(pieces: &[&[u8]]) -> Told {
    let mut server: Http2Server<usize> = Http2Server::default();
    let block = answer_block(200, &[("content-type", "text/plain")]);
    let bodies: [Arc<[u8]>; 2] = [Arc::from(&b"short"[..]), Arc::from(vec![b'x'; ANSWER])];
    let mut told = Told::default();
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
                ServerEvent::Nothing => break,
                ServerEvent::Request(stream, value) => {
                    server.answer(stream, &block, &bodies[told.requests.len() % 2], 0);
                    told.requests.push((stream, value));
                }
                ServerEvent::Broken(error) => {
                    told.error = Some(error);
                    break 'pieces;
                }
            }
        }
    }
    while !server.output().is_empty() {
        let output = server.output();
        told.said.extend_from_slice(output);
        let sent = output.len();
        server.sent(sent);
    }
    let most = (told.requests.len() + 1) * (ANSWER + 4096) + 32 * pieces.iter().map(|piece| piece.len()).sum::<usize>();
    assert!(told.said.len() <= most, "{} bytes", told.said.len());
    told
}
