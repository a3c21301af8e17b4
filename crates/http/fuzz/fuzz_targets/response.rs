//! Feeds arbitrary bytes as the responses of a connection. Checks that nothing panics, that the result does not depend
//! on how the bytes are split, even at empty lines between two responses, and that the result agrees with the reference
//! implementation of the tests.
//!
//! Input: a byte of flags (bit 0: the requests are HEAD; bits 4 to 7: the number of cuts), the length of the piece
//! before each cut, and the bytes that the server sends. `README.md` contains the command that runs this target.
#![no_main]

use brimful_http::{
    MAX_EMPTY_LINES, MAX_HEAD_BYTES, ParseError, ParseStep, RecentHead, Response, ResponseParser,
};
use libfuzzer_sys::fuzz_target;
use reference::Reading;

#[path = "../../tests/it/reference.rs"]
mod reference;

fuzz_target!(|input: &[u8]| {
    let Some((&flags, rest)) = input.split_first() else {
        return;
    };
    let Some((lengths, sent)) = rest.split_at_checked(usize::from(flags >> 4)) else {
        return;
    };
    let head_request = flags & 1 == 1;

    let mut cut = Vec::new();
    let mut left = sent;
    for &length in lengths {
        let (piece, after) = left.split_at(left.len().min(usize::from(length)));
        cut.push(piece);
        left = after;
    }
    cut.push(left);

    let whole = responses(head_request, &[sent]);
    let first = match (&whole.0[..], whole.1) {
        ([(response, empty_lines), ..], _) => Ok((*response, *empty_lines)),
        ([], Err(ParseError::Truncated { .. })) => Err(Reading::Truncated),
        ([], Err(_)) => Err(Reading::Malformed),
        // The end of the connection delimits this response. Only the reference reports the number of empty lines before
        // it.
        ([], Ok(response)) => match reference::read(sent, head_request) {
            Reading::Complete(read, _, empty_lines) if read == response => Ok((read, empty_lines)),
            other => panic!("the response is {response:?}, but the reference reads {other:?}"),
        },
    };
    let read = match reference::read(sent, head_request) {
        Reading::Complete(response, _, empty_lines) => Ok((response, empty_lines)),
        other => Err(other),
    };
    assert_eq!(first, read, "{:?}", String::from_utf8_lossy(sent));
    assert_eq!(whole, responses(head_request, &cut));
    assert_eq!(
        whole,
        responses(head_request, &sent.chunks(1).collect::<Vec<_>>())
    );
});

/// Feeds the pieces of one connection. Returns each response with the number of empty lines before it, and the result
/// of closing the connection after the last piece.
fn responses(
    head_request: bool,
    pieces: &[&[u8]],
) -> (Vec<(Response, u32)>, Result<Response, ParseError>) {
    let mut parser = ResponseParser::new();
    let mut recent = RecentHead::default();
    parser.start(head_request);
    let mut complete = Vec::new();
    let mut taken = 0;
    for piece in pieces {
        let mut left = *piece;
        loop {
            let fed = match parser.feed_with(&mut recent, left, |_| {}) {
                Ok(fed) => fed,
                Err(error) => {
                    assert_eq!(parser.finish(), Err(error), "finish returns the same error");
                    return (complete, Err(error));
                }
            };
            taken += fed.consumed;
            left = &left[fed.consumed..];
            match fed.step {
                ParseStep::NeedMore => {
                    assert!(left.is_empty(), "an incomplete response needs all bytes");
                    break;
                }
                ParseStep::Complete(response) => {
                    check(&response, &parser, taken);
                    complete.push((response, parser.empty_lines()));
                    let empty = parser.skip_empty_lines(left);
                    taken = empty;
                    left = &left[empty..];
                    parser.start(head_request);
                }
            }
        }
    }
    let end = parser.finish();
    match end {
        Ok(response) => {
            check(&response, &parser, taken);
            assert!(
                !response.keep_alive,
                "a connection that has ended is not kept alive"
            );
        }
        Err(error) => {
            let received = parser.received();
            assert_eq!(error, ParseError::Truncated { received });
            assert!(received <= taken as u64 && taken as u64 <= received + 2 * TOO_MANY_EMPTY_LINES);
        }
    }
    (complete, end)
}

/// The smallest number of empty lines before a response that the parser rejects.
const TOO_MANY_EMPTY_LINES: u64 = MAX_EMPTY_LINES as u64 + 1;

/// Checks a response for which `taken` bytes were consumed, including empty lines.
fn check(response: &Response, parser: &ResponseParser, taken: usize) {
    let empty_lines = u64::from(parser.empty_lines());
    assert!(empty_lines < TOO_MANY_EMPTY_LINES);
    assert!(parser.received() + empty_lines <= taken as u64);
    assert!(taken as u64 <= parser.received() + 2 * empty_lines);
    assert!((101..1000).contains(&response.status));
    assert!(response.head_bytes > 0 && response.head_bytes + response.body_bytes <= taken as u64);
    assert!(response.head_bytes <= MAX_HEAD_BYTES as u64 || taken > MAX_HEAD_BYTES);
}
