//! Foreign bytes as a connection's responses: no panic, and one outcome wherever they are cut.
//!
//! Input: a byte of flags (bit 0: the requests are HEAD; bits 4 to 7: the number of cuts), the lengths of that many
//! pieces, and what the server sends. `README.md` has the command.
#![no_main]

use brimful_http::{MAX_HEAD_BYTES, ParseError, Progress, RecentHead, Response, ResponseParser};
use libfuzzer_sys::fuzz_target;

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
    assert_eq!(whole, responses(head_request, &cut));
    assert_eq!(
        whole,
        responses(head_request, &sent.chunks(1).collect::<Vec<_>>())
    );
});

/// All that a connection's pieces amount to: each response with the bytes it took, and how the connection ended.
fn responses(
    head_request: bool,
    pieces: &[&[u8]],
) -> (Vec<(Response, usize)>, Result<Response, ParseError>) {
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
                    assert_eq!(parser.finish(), Err(error), "an error stays");
                    return (complete, Err(error));
                }
            };
            taken += fed.consumed;
            left = &left[fed.consumed..];
            match fed.state {
                Progress::NeedMore => {
                    assert!(left.is_empty(), "all is consumed until a response is whole");
                    break;
                }
                Progress::Complete(response) => {
                    check(&response, taken);
                    complete.push((response, taken));
                    taken = 0;
                    parser.start(head_request);
                }
            }
        }
    }
    let end = parser.finish();
    match end {
        Ok(response) => {
            check(&response, taken);
            assert!(
                !response.keep_alive,
                "what a close delimits leaves nothing open"
            );
        }
        Err(error) => assert_eq!(
            error,
            ParseError::Truncated {
                received: taken as u64
            }
        ),
    }
    (complete, end)
}

/// What holds for every response, which took so many bytes.
fn check(response: &Response, taken: usize) {
    assert!((101..1000).contains(&response.status));
    assert!(response.head_bytes > 0 && response.head_bytes + response.body_bytes <= taken as u64);
    assert!(response.head_bytes <= MAX_HEAD_BYTES as u64 || taken > MAX_HEAD_BYTES);
}
