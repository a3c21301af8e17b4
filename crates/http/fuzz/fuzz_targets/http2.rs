//! Foreign bytes as what a server of HTTP/2 says: no panic, the same wherever they are cut, and bounded in what is kept.
//!
//! Input: a byte of flags (bits 4 to 7: the number of cuts), the lengths of that many pieces, and what the server sends
//! behind its SETTINGS. `README.md` has the command.
#![no_main]

use brimful_http::{StreamEnd, Http2, Listener, ParseError, RecentBlock, Request, Version};
use libfuzzer_sys::fuzz_target;

/// By which a server begins.
const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];
const CALLS: usize = 4;

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

    let whole = told(&[&sent]);
    assert_eq!(whole, told(&cut));
    assert_eq!(whole, told(&sent.chunks(1).collect::<Vec<_>>()));
});

/// What ended how, the heads, how the connection ended, and what was said in return.
#[derive(Debug, Default, PartialEq)]
struct Told {
    over: Vec<(usize, StreamEnd)>,
    heads: Vec<(usize, Vec<u8>)>,
    error: Option<ParseError>,
    said: Vec<u8>,
}

impl Listener<usize> for Told {
    fn received(&mut self, _: &mut usize, _: u64) {}

    fn wants_heads(&self) -> bool {
        true
    }

    fn head(&mut self, call: &mut usize, head: &[u8]) {
        self.heads.push((*call, head.to_vec()));
    }
}

fn told(pieces: &[&[u8]]) -> Told {
    let mut http2 = Http2::new();
    let mut recent = RecentBlock::default();
    let mut told = Told::default();
    for (call, (method, body)) in [("GET", ""), ("HEAD", ""), ("POST", "body"), ("GET", "")]
        .into_iter()
        .enumerate()
    {
        let request = Request::new(
            method,
            "a",
            "/",
            &[],
            body.as_bytes(),
            Version::Http2,
            false,
        );
        http2.open(&request.expect("a good request"), call);
    }
    http2.clear_output();
    for piece in pieces {
        let mut rest = *piece;
        loop {
            match http2.feed(&mut recent, rest, &mut told) {
                Ok(heard) => {
                    rest = &rest[heard.consumed..];
                    let Some((carried, ended)) = heard.closed else {
                        assert!(rest.is_empty(), "all is read unless something ends");
                        break;
                    };
                    told.over.push((carried.value, ended));
                }
                Err(error) => {
                    assert!(http2.is_spent(), "an error stays");
                    told.error = Some(error);
                    told.said = http2.output().to_vec();
                    return told;
                }
            }
        }
    }
    assert_eq!(http2.streams() + told.over.len(), CALLS);
    told.said = http2.output().to_vec();
    told
}
