//! Properties of HTTP/2 for any bytes that a server may send: nothing panics, and the result does not depend on how the
//! bytes are split into pieces.

use brimful_http::{Http2, ParseError, RecentBlock, Request, StreamEnd, StreamObserver, Version};
use proptest::prelude::*;

/// All events that occurred while the bytes were fed.
#[derive(Debug, Default, PartialEq)]
struct Results {
    ended: Vec<(usize, StreamEnd)>,
    bytes: [u64; CALLS],
    bodies: [u64; CALLS],
    heads: Vec<(usize, Vec<u8>)>,
    error: Option<ParseError>,
    said: Vec<u8>,
}

const CALLS: usize = 4;

impl StreamObserver<usize> for Results {
    fn received(&mut self, call: &mut usize, bytes: u64) {
        self.bytes[*call] += bytes;
    }

    fn wants_heads(&self) -> bool {
        true
    }

    fn head(&mut self, call: &mut usize, head: &[u8]) {
        self.heads.push((*call, head.to_vec()));
    }

    fn body(&mut self, call: &mut usize, piece: &[u8]) {
        self.bodies[*call] += piece.len() as u64;
    }
}

fn feed_all(pieces: &[&[u8]]) -> Results {
    let (mut http2, mut recent, mut results) = (Http2::new(), RecentBlock::default(), Results::default());
    for call in 0..CALLS {
        let (method, body) = [("GET", ""), ("HEAD", ""), ("POST", "a body"), ("GET", "")][call];
        let request = Request::new(method, "a", "/", &[], body.as_bytes(), Version::Http2, false).unwrap();
        http2.open(&request, call);
    }
    http2.clear_output();
    'all: for piece in pieces {
        let mut rest = *piece;
        loop {
            match http2.feed(&mut recent, rest, &mut results) {
                Ok(fed) => {
                    rest = &rest[fed.consumed..];
                    match fed.closed {
                        Some((stream, end)) => results.ended.push((stream.value, end)),
                        None => {
                            assert!(rest.is_empty());
                            break;
                        }
                    }
                }
                Err(error) => {
                    results.error = Some(error);
                    break 'all;
                }
            }
        }
    }
    results.said = http2.output().to_vec();
    // After a protocol error, the number of counted bytes depends on how the input was split, so it is not compared.
    if results.error.is_some() {
        results.bytes = [0; CALLS];
        results.bodies = [0; CALLS];
    }
    results
}

/// Generates a frame that is usually valid.
fn frame() -> impl Strategy<Value = Vec<u8>> {
    let block = prop_oneof![
        4 => Just(vec![0x88]),
        1 => Just(vec![0x88, 0x0f, 0x0d, 1, b'3']),
        1 => Just(vec![0x08, 3, b'1', b'0', b'3']),
        1 => Just(vec![0x40, 1, b'a', 1, b'b']),
        1 => Just(vec![0x88, 0xbe]),
        1 => prop::collection::vec(any::<u8>(), 0..20),
    ];
    let payload = move |kind: u8| match kind {
        1 | 9 => block.clone().boxed(),
        3 => Just(vec![0; 4]).boxed(),
        4 => prop::sample::select(vec![vec![], vec![0, 3, 0, 0, 0, 9], vec![0, 4, 0, 0, 0, 2], vec![0; 5]]).boxed(),
        6 => Just(vec![7; 8]).boxed(),
        7 => (0u8..9).prop_map(|last| vec![0, 0, 0, last, 0, 0, 0, 0]).boxed(),
        8 => any::<u16>().prop_map(|more| vec![0, 0, (more >> 8) as u8, more as u8]).boxed(),
        _ => prop::collection::vec(any::<u8>(), 0..40).boxed(),
    };
    let kind = prop::sample::select(vec![0u8, 0, 0, 1, 1, 1, 2, 3, 4, 6, 7, 8, 9, 11]);
    let stream = prop::sample::select(vec![1u8, 1, 1, 3, 3, 5, 7, 0, 9]);
    let flags = prop::sample::select(vec![0u8, 4, 4, 5, 5, 1, 0x0c, 0x24, 0xff]);
    (kind, stream, flags).prop_flat_map(move |(kind, stream, flags)| {
        let stream = if matches!(kind, 4 | 6 | 7) { 0 } else { stream };
        let flags = if matches!(kind, 4 | 6) { flags & !1 } else { flags };
        payload(kind).prop_map(move |payload| {
            [&[0, 0, payload.len() as u8, kind, flags, 0, 0, 0, stream][..], &payload].concat()
        })
    })
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let frames = prop::collection::vec(frame(), 0..30).prop_map(|frames| {
        let settings = vec![0, 0, 0, 4, 0, 0, 0, 0, 0];
        std::iter::once(settings).chain(frames).collect::<Vec<_>>().concat()
    });
    prop_oneof![9 => frames, 1 => prop::collection::vec(any::<u8>(), 0..200)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn any_split_of_the_bytes_brings_the_same(bytes in bytes(), cuts in prop::collection::vec(0usize..400, 0..8)) {
        let whole = feed_all(&[&bytes]);
        let singly: Vec<&[u8]> = bytes.chunks(1).collect();
        prop_assert_eq!(&whole, &feed_all(&singly));
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).chain([0, bytes.len()]).collect();
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
        prop_assert_eq!(&whole, &feed_all(&pieces));
        for (call, ended) in &whole.ended {
            if let StreamEnd::Complete(response) = ended {
                prop_assert!((200..1000).contains(&response.status));
                prop_assert!(whole.error.is_some() || response.body_bytes == whole.bodies[*call]);
            }
        }
    }
}
