//! One connection, spoken to by frames that the tests write.

use super::frame::{self, flag, kind};
use super::*;
use crate::Version;

/// A frame.
fn framed(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    Frame { length: payload.len(), kind, flags, stream }.write(&mut out);
    out.extend_from_slice(payload);
    out
}

fn settings(entries: &[(u16, u32)]) -> Vec<u8> {
    let payload: Vec<u8> =
        entries.iter().flat_map(|(name, value)| [&name.to_be_bytes()[..], &value.to_be_bytes()].concat()).collect();
    framed(kind::SETTINGS, 0, 0, &payload)
}

const OK: &[u8] = &[0x88];
const END: u8 = flag::END_STREAM;
const WHOLE: u8 = flag::END_HEADERS;

fn headers(flags: u8, stream: u32, block: &[u8]) -> Vec<u8> {
    framed(kind::HEADERS, flags, stream, block)
}

fn data(flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    framed(kind::DATA, flags, stream, payload)
}

fn goaway(last: u32) -> Vec<u8> {
    framed(kind::GOAWAY, 0, 0, &[last.to_be_bytes(), [0; 4]].concat())
}

fn request(body: &[u8]) -> Request {
    Request::new(if body.is_empty() { "GET" } else { "POST" }, "a", "/", &[], body, Version::Http2, false).unwrap()
}

/// Counts what comes for each call, and keeps heads and bodies.
#[derive(Default)]
struct Ear {
    bytes: u64,
    heads: String,
    body: Vec<u8>,
}

impl Listener<u32> for Ear {
    fn received(&mut self, _: &mut u32, bytes: u64) {
        self.bytes += bytes;
    }

    fn wants_heads(&self) -> bool {
        true
    }

    fn head(&mut self, value: &mut u32, head: &[u8]) {
        self.heads += &format!("{value}: {}|", String::from_utf8_lossy(head).replace("\r\n", ";"));
    }

    fn body(&mut self, _: &mut u32, piece: &[u8]) {
        self.body.extend_from_slice(piece);
    }
}

/// A connection with so many calls on streams 1, 3, 5 …, whose values are their numbers from 0.
struct Spoken {
    http2: Http2<u32>,
    recent: RecentBlock,
    ear: Ear,
}

impl Spoken {
    fn with(calls: u32) -> Spoken {
        let mut http2 = Http2::new();
        (0..calls).for_each(|call| assert_eq!(http2.open(&request(b""), call), 2 * call + 1));
        http2.clear_output();
        Spoken { http2, recent: RecentBlock::default(), ear: Ear::default() }
    }

    /// What ends by these bytes, and what breaks the connection.
    fn hear(&mut self, bytes: &[u8]) -> (Vec<(u32, StreamEnd)>, Option<ParseError>) {
        let (mut over, mut rest) = (Vec::new(), bytes);
        loop {
            match self.http2.feed(&mut self.recent, rest, &mut self.ear) {
                Err(error) => return (over, Some(error)),
                Ok(Http2FeedResult { consumed, closed: Some((carried, ended)) }) => {
                    rest = &rest[consumed..];
                    over.push((carried.value, ended));
                }
                Ok(Http2FeedResult { consumed, closed: None }) => {
                    assert_eq!(consumed, rest.len(), "all is read");
                    return (over, None);
                }
            }
        }
    }

    /// The frames that are to be sent, and no more after that.
    fn says(&mut self) -> Vec<(u8, u8, u32, Vec<u8>)> {
        let frames = frames(self.http2.output());
        self.http2.clear_output();
        frames
    }
}

fn frames(mut bytes: &[u8]) -> Vec<(u8, u8, u32, Vec<u8>)> {
    let mut frames = Vec::new();
    while let Some((header, behind)) = bytes.split_first_chunk() {
        let Frame { length, kind, flags, stream } = Frame::parse(*header);
        let (payload, rest) = behind.split_at(length);
        frames.push((kind, flags, stream, payload.to_vec()));
        bytes = rest;
    }
    frames
}

fn whole(status: u16, head_bytes: u64, body_bytes: u64) -> StreamEnd {
    StreamEnd::Whole(Response { status, keep_alive: true, head_bytes, body_bytes })
}

#[test]
fn a_connection_begins_with_what_a_server_has_to_know() {
    let http2: Http2<()> = Http2::new();
    let behind = http2.output().strip_prefix(frame::PREFACE).unwrap();
    let frames = frames(behind);
    assert_eq!(frames.iter().map(|frame| frame.0).collect::<Vec<_>>(), [kind::SETTINGS, kind::WINDOW_UPDATE]);
    assert!(frames[0].3.chunks(6).any(|entry| entry == [0, 2, 0, 0, 0, 0]), "no push");
}

#[test]
fn answers_come_in_any_order_and_mixed() {
    let mut spoken = Spoken::with(3);
    let bytes = [
        settings(&[]),
        headers(WHOLE, 5, OK),
        headers(WHOLE, 1, &[0x88, 0x0f, 0x0d, 1, b'3']),
        data(0, 5, b"12"),
        data(END, 1, b"abc"),
        headers(WHOLE | END, 3, &[0x8d]),
        data(END, 5, b"3456"),
    ]
    .concat();
    let expected = vec![(0, whole(200, 14, 3)), (1, whole(404, 10, 0)), (2, whole(200, 10, 6))];
    assert_eq!(spoken.hear(&bytes), (expected, None));
    assert_eq!(spoken.ear.bytes, bytes.len() as u64 - 9);
    assert_eq!(spoken.ear.heads, "2: HTTP/2 200;;|0: HTTP/2 200;content-length: 3;;|1: HTTP/2 404;;|");
    assert_eq!(spoken.ear.body, b"12abc3456");
    assert_eq!(spoken.says(), [(kind::SETTINGS, flag::ACK, 0, vec![])]);
    assert_eq!((spoken.http2.streams(), spoken.http2.has_room()), (0, true));
}

#[test]
fn informational_heads_padding_priorities_and_trailers_are_no_answer_of_their_own() {
    let mut spoken = Spoken::with(1);
    let early = &[0x08, 3, b'1', b'0', b'3'];
    let padded = [&[2, 0, 0, 0, 0, 16][..], OK, &[0, 0]].concat();
    let bytes = [
        settings(&[]),
        headers(WHOLE, 1, early),
        headers(WHOLE | flag::PADDED | flag::PRIORITY, 1, &padded),
        data(flag::PADDED, 1, b"\x03abc\0\0\0"),
        data(flag::PADDED, 1, b"\x00"),
        data(0, 1, b""),
        framed(2, 0, 1, &[0; 5]),
        framed(0xee, 0xff, 1, b"unknown"),
        headers(WHOLE | END, 1, &[0, 1, b't', 1, b'v']),
    ]
    .concat();
    assert_eq!(spoken.hear(&bytes), (vec![(0, whole(200, 14 + 10 + 14, 3))], None));
    assert_eq!(spoken.ear.heads, "0: HTTP/2 103;;|0: HTTP/2 200;;|0: t: v;;|");
}

#[test]
fn a_block_may_go_on_in_further_frames() {
    let mut spoken = Spoken::with(1);
    let bytes = [
        settings(&[]),
        headers(END, 1, &[0x88, 0x0f]),
        framed(kind::CONTINUATION, 0, 1, &[0x0d, 1]),
        framed(kind::CONTINUATION, WHOLE, 1, b"0"),
    ]
    .concat();
    assert_eq!(spoken.hear(&bytes), (vec![(0, whole(200, 14, 0))], None));
}

#[test]
fn an_answer_that_is_none_ends_its_call_alone() {
    let of_stream = |bytes: &[&[u8]]| {
        let mut spoken = Spoken::with(2);
        let (over, error) = spoken.hear(&[&settings(&[])[..], &bytes.concat(), &headers(WHOLE | END, 3, OK)].concat());
        assert_eq!(error, None);
        assert_eq!(over[1], (1, whole(200, 10, 0)), "the other goes on");
        let (StreamEnd::Malformed(ParseError::BadAnswer(why)), 0) = (over[0].1, over[0].0) else { panic!("{over:?}") };
        let told = spoken.says().into_iter().any(|frame| frame.0 == kind::RST_STREAM && frame.2 == 1);
        (why, told)
    };
    let text = |name: &str, value: &str| {
        [&[0, name.len() as u8][..], name.as_bytes(), &[value.len() as u8], value.as_bytes()].concat()
    };
    for (bytes, part, told) in [
        (vec![headers(WHOLE, 1, &text("a", "b"))], "no status", true),
        (vec![headers(WHOLE, 1, OK), headers(WHOLE | END, 1, OK)], "second head", true),
        (vec![headers(WHOLE, 1, OK), headers(WHOLE, 1, &text("a", "b"))], "after its trailers", true),
        (vec![headers(WHOLE | END, 1, &[0x08, 3, b'1', b'0', b'0'])], "ends with an informational", true),
        (vec![headers(WHOLE, 1, &[0x08, 3, b'1', b'0', b'1'])], "switches", true),
        (vec![data(0, 1, b"x"), data(END, 1, b"y")], "before its head", true),
        (vec![data(END, 1, b"")], "before its head", true),
        (vec![headers(WHOLE, 1, &[OK, &text("A", "b")].concat())], "capital", true),
        (vec![headers(WHOLE, 1, &[0x88, 0x0f, 0x0d, 1, b'3']), data(END, 1, b"ab")], "Content-Length", false),
        (vec![headers(WHOLE, 1, &[0x89]), data(END, 1, b"ab")], "not allowed here", false),
        (vec![framed(kind::WINDOW_UPDATE, 0, 1, &[0; 4])], "increased by 0", true),
        (vec![framed(kind::WINDOW_UPDATE, 0, 1, &[0x7f, 0xff, 0xff, 0xff])], "beyond the limit", true),
    ] {
        let bytes: Vec<&[u8]> = bytes.iter().map(Vec::as_slice).collect();
        let (why, was_told) = of_stream(&bytes);
        assert!(why.contains(part) && was_told == told, "{part}: {why}, told: {was_told}");
    }
}

#[test]
fn what_breaks_the_connection_is_named_and_the_server_told() {
    let known = settings(&[]);
    let after = |bytes: &[u8]| [&known[..], bytes].concat();
    let flood = |frame: Vec<u8>| after(&frame.repeat(MAX_IDLE_FRAMES as usize + 1));
    for (bytes, part, code) in [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(), "not HTTP/2", code::PROTOCOL_ERROR),
        (framed(kind::SETTINGS, flag::ACK, 0, &[]), "not HTTP/2", code::PROTOCOL_ERROR),
        (b"\x15\x03\x01\x00\x02\x02\x46\0\0".to_vec(), "not HTTP/2", code::PROTOCOL_ERROR),
        (after(&headers(WHOLE, 7, OK)), "never opened", code::PROTOCOL_ERROR),
        (after(&headers(WHOLE, 2, OK)), "never opened", code::PROTOCOL_ERROR),
        (after(&data(0, 0, b"")), "never opened", code::PROTOCOL_ERROR),
        (after(&framed(kind::RST_STREAM, 0, 9, &[0; 4])), "never opened", code::PROTOCOL_ERROR),
        (after(&framed(kind::WINDOW_UPDATE, 0, 9, &[0, 0, 0, 1])), "never opened", code::PROTOCOL_ERROR),
        (after(&framed(kind::SETTINGS, 0, 1, &[])), "about the connection", code::PROTOCOL_ERROR),
        (after(&framed(kind::PING, 0, 1, &[0; 8])), "about the connection", code::PROTOCOL_ERROR),
        (after(&framed(kind::PUSH_PROMISE, WHOLE, 1, &[0, 0, 0, 2, 0x82])), "pushes", code::PROTOCOL_ERROR),
        (after(&framed(kind::CONTINUATION, WHOLE, 1, OK)), "interrupted", code::PROTOCOL_ERROR),
        (after(&[headers(0, 1, OK), data(0, 1, b"")].concat()), "interrupted", code::PROTOCOL_ERROR),
        (after(&settings(&[(2, 1)])), "enables push", code::PROTOCOL_ERROR),
        (after(&settings(&[(5, 1)])), "frame size", code::PROTOCOL_ERROR),
        (after(&settings(&[(4, 1 << 31)])), "window", code::FLOW_CONTROL_ERROR),
        (after(&framed(kind::WINDOW_UPDATE, 0, 0, &[0; 4])), "window", code::FLOW_CONTROL_ERROR),
        (after(&framed(kind::WINDOW_UPDATE, 0, 0, &[0x7f, 0xff, 0xff, 0xff])), "window", code::FLOW_CONTROL_ERROR),
        (after(&framed(kind::PING, 0, 0, &[0; 7])), "length", code::FRAME_SIZE_ERROR),
        (after(&framed(kind::SETTINGS, 0, 0, &[0; 5])), "length", code::FRAME_SIZE_ERROR),
        (after(&framed(kind::SETTINGS, flag::ACK, 0, &[0; 6])), "length", code::FRAME_SIZE_ERROR),
        (after(&framed(kind::GOAWAY, 0, 0, &[0; 7])), "length", code::FRAME_SIZE_ERROR),
        (after(&framed(kind::RST_STREAM, 0, 1, &[0; 3])), "length", code::FRAME_SIZE_ERROR),
        (after(&framed(kind::WINDOW_UPDATE, 0, 0, &[0; 5])), "length", code::FRAME_SIZE_ERROR),
        (after(&data(flag::PADDED, 1, b"")), "length", code::FRAME_SIZE_ERROR),
        (after(&[headers(WHOLE, 1, OK), data(flag::PADDED, 1, b"\x03ab")].concat()), "padding", code::PROTOCOL_ERROR),
        (after(&headers(WHOLE | flag::PADDED, 1, &[9, 0x88])), "padding", code::PROTOCOL_ERROR),
        (after(&[0xff; 9]), "16 KiB", code::FRAME_SIZE_ERROR),
        (after(&headers(WHOLE, 1, &[0xff])), "decompressed", code::COMPRESSION_ERROR),
        (after(&headers(WHOLE, 1, &[0x88; 300])), "64 KiB", code::ENHANCE_YOUR_CALM),
        (
            after(&[headers(0, 1, b""), framed(kind::CONTINUATION, 0, 1, b"").repeat(100)].concat()),
            "CONTINUATION",
            code::ENHANCE_YOUR_CALM,
        ),
        (
            after(&[headers(0, 1, b""), framed(kind::CONTINUATION, 0, 1, &[0x20; 16_384]).repeat(5)].concat()),
            "CONTINUATION",
            code::ENHANCE_YOUR_CALM,
        ),
        (flood(framed(kind::PING, 0, 0, &[0; 8])), "PING", code::ENHANCE_YOUR_CALM),
        (flood(settings(&[])), "SETTINGS", code::ENHANCE_YOUR_CALM),
        (flood(framed(2, 0, 1, &[0; 5])), "without effect", code::ENHANCE_YOUR_CALM),
        (flood(framed(kind::WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1])), "WINDOW_UPDATE", code::ENHANCE_YOUR_CALM),
        (flood(headers(WHOLE, 1, &[0x08, 3, b'1', b'0', b'3'])), "informational", code::ENHANCE_YOUR_CALM),
        (
            after(&[headers(WHOLE, 1, OK), data(0, 1, b"").repeat(MAX_IDLE_FRAMES as usize + 1)].concat()),
            "empty DATA",
            code::ENHANCE_YOUR_CALM,
        ),
        (
            after(&framed(kind::RST_STREAM, 0, 1, &[0; 4]).repeat(MAX_IDLE_FRAMES as usize + 2)),
            "RST_STREAM",
            code::ENHANCE_YOUR_CALM,
        ),
    ] {
        let mut spoken = Spoken::with(3);
        let (_, error) = spoken.hear(&bytes);
        let error = error.unwrap_or_else(|| panic!("{part}: nothing is broken"));
        assert!(error.to_string().contains(part), "{part}: {error}");
        let last = spoken.says().pop().unwrap();
        let told = [[0; 4], code.to_be_bytes()].concat();
        assert_eq!((last.0, &last.3), (kind::GOAWAY, &told), "{part}");
        assert_eq!(spoken.hear(b"more"), (vec![], Some(error)), "and it stays so");
        assert!(spoken.http2.is_spent() && !spoken.http2.has_room());
        assert_eq!(spoken.http2.take_all().map(|carried| carried.value).collect::<Vec<_>>().last(), Some(&2));
    }
}

#[test]
fn a_server_that_goes_away_finishes_what_it_has_begun() {
    let mut spoken = Spoken::with(4);
    let bytes = [settings(&[]), goaway(u32::MAX), headers(WHOLE | END, 1, OK), goaway(3)].concat();
    let over = vec![(0, whole(200, 10, 0)), (2, StreamEnd::GoneAway), (3, StreamEnd::GoneAway)];
    assert_eq!(spoken.hear(&bytes), (over, None));
    assert!(spoken.http2.is_spent() && !spoken.http2.has_room() && spoken.http2.streams() == 1);
    assert_eq!(spoken.hear(&headers(WHOLE | END, 3, OK)), (vec![(1, whole(200, 10, 0))], None));
    // It cannot take on more again.
    assert_eq!(spoken.hear(&goaway(9)), (vec![], None));
    assert!(spoken.http2.is_spent());
}

#[test]
fn a_stream_that_is_given_up_by_either_side_ends_alone() {
    let mut spoken = Spoken::with(3);
    let refused = StreamEnd::Reset { code: REFUSED_STREAM, begun: false };
    assert_eq!(spoken.hear(&[settings(&[]), framed(kind::RST_STREAM, 0, 3, &[0, 0, 0, 7])].concat()).0, [(1, refused)]);
    spoken.says();
    assert_eq!(spoken.http2.cancel(1).map(|carried| carried.value), Some(0));
    assert_eq!(spoken.http2.cancel(1), None);
    assert_eq!(spoken.says(), [(kind::RST_STREAM, 0, 1, vec![0, 0, 0, 8])]);
    // What was on its way comes still, and what it says of the table counts.
    let late = [headers(WHOLE, 1, &[0x88, 0x40, 1, b'a', 1, b'b']), data(END, 1, b"late")].concat();
    assert_eq!(spoken.hear(&late), (vec![], None));
    assert_eq!(spoken.hear(&headers(WHOLE | END, 5, &[0x88, 0xbe])), (vec![(2, whole(200, 11, 0))], None));
    assert_eq!(spoken.ear.heads, "2: HTTP/2 200;a: b;;|");
}

#[test]
fn pings_are_answered_and_counted() {
    let mut spoken = Spoken::with(1);
    let ping = framed(kind::PING, 0, 0, b"12345678");
    spoken.hear(&[settings(&[]), ping.clone(), framed(kind::PING, flag::ACK, 0, b"12345678")].concat());
    assert_eq!(
        spoken.says(),
        [(kind::SETTINGS, flag::ACK, 0, vec![]), (kind::PING, flag::ACK, 0, b"12345678".to_vec())]
    );
    assert_eq!(spoken.http2.owed(), 9 + 17);
    spoken.http2.paid();
    assert_eq!(spoken.http2.owed(), 0);
    // Answers make up for them.
    for _ in 0..3 {
        assert_eq!(spoken.hear(&ping.repeat(MAX_IDLE_FRAMES as usize - 10)), (vec![], None));
        let id = spoken.http2.open(&request(b""), 9);
        assert_eq!(spoken.hear(&headers(WHOLE | END, id, OK)).0, [(9, whole(200, 10, 0))]);
    }
}

#[test]
fn streams_are_as_many_as_the_server_allows() {
    let mut spoken = Spoken::with(2);
    assert_eq!((spoken.http2.max_streams(), spoken.http2.expected_streams()), (None, None));
    assert!(!spoken.http2.has_room());
    spoken.hear(&settings(&[(3, 3)]));
    assert!(spoken.http2.has_room());
    spoken.http2.open(&request(b""), 2);
    assert!(!spoken.http2.has_room() && spoken.http2.max_streams() == Some(3));
    spoken.hear(&headers(WHOLE | END, 3, OK));
    assert!(spoken.http2.has_room());
    let mut unlimited = Spoken::with(0);
    unlimited.hear(&settings(&[]));
    assert_eq!(unlimited.http2.max_streams(), Some(u32::MAX));
    // What was allowed on an earlier connection holds until the server has spoken.
    let mut expecting = Spoken::with(1);
    assert!(!expecting.http2.has_room());
    expecting.http2.expect_streams(2);
    assert!(expecting.http2.has_room() && expecting.http2.expected_streams() == Some(2));
    expecting.hear(&settings(&[(3, 1)]));
    expecting.http2.expect_streams(2);
    assert!(!expecting.http2.has_room() && expecting.http2.expected_streams() == Some(1));
}

/// The bytes of DATA that are to be sent, by stream, and which of them end.
fn bodies(spoken: &mut Spoken) -> Vec<(u32, usize, bool)> {
    let data = spoken.says().into_iter().filter(|frame| frame.0 == kind::DATA);
    data.map(|(_, flags, stream, payload)| (stream, payload.len(), flags & END != 0)).collect()
}

#[test]
fn bodies_go_as_far_as_the_windows_let_them() {
    let mut spoken = Spoken::with(0);
    spoken.hear(&settings(&[(4, 20_000)]));
    spoken.says();
    let body = vec![b'x'; 30_000];
    spoken.http2.open(&request(&body), 0);
    spoken.http2.open(&request(&body), 1);
    assert_eq!(bodies(&mut spoken), [(1, 16_384, false), (1, 3_616, false), (3, 16_384, false), (3, 3_616, false)]);
    let update = |stream: u32, more: u32| framed(kind::WINDOW_UPDATE, 0, stream, &more.to_be_bytes());
    spoken.hear(&update(1, 10_000));
    assert_eq!(bodies(&mut spoken), [(1, 10_000, true)]);
    // A smaller first window is one of all streams: it may lie below zero for a while.
    spoken.hear(&settings(&[(4, 0)]));
    spoken.hear(&update(3, 20_001));
    assert_eq!(bodies(&mut spoken), [(3, 1, false)]);
    spoken.hear(&settings(&[(4, 5_000)]));
    assert_eq!(bodies(&mut spoken), [(3, 5_000, false)]);
    // Now it is the connection's.
    spoken.hear(&update(3, 1 << 20));
    assert_eq!(bodies(&mut spoken), [(3, 4_999, true)]);
    spoken.http2.open(&request(&body), 2);
    assert_eq!(bodies(&mut spoken), [(5, 5_000, false)]);
    let left = 65_535 - 30_000 - 30_000 - 5_000;
    spoken.hear(&update(5, 1 << 20));
    assert_eq!(bodies(&mut spoken), [(5, left, false)]);
    spoken.hear(&update(0, 1 << 20));
    assert_eq!(bodies(&mut spoken), [(5, 16_384, false), (5, 30_000 - 5_000 - left - 16_384, true)]);
}

/// The same for bodies that come in pieces, of which no more is asked for than the windows let.
#[test]
fn pieces_of_bodies_are_wanted_as_far_as_the_windows_let_them() {
    let mut spoken = Spoken::with(0);
    spoken.hear(&settings(&[(4, 20_000)]));
    spoken.says();
    let expects = [("Expect".to_owned(), "100-continue".to_owned())];
    let [plain, waiting] = [&expects[..0], &expects]
        .map(|headers| Request::http2_streamed("PUT", "http", "a", "/", headers, 50_000).unwrap());
    for (request, stream) in [(&plain, 1), (&plain, 3), (&waiting, 5), (&waiting, 7)] {
        assert_eq!(spoken.http2.open(request, 0), stream);
    }
    let wanted = |stream, from, bytes| Some(BodyDemand { stream, from, bytes });
    let piece = vec![b'x'; 20_000];
    assert_eq!(bodies(&mut spoken), []);
    assert_eq!(spoken.http2.wanted(), wanted(1, 0, 20_000));
    spoken.http2.supply(1, &piece[..17_000]);
    assert_eq!(bodies(&mut spoken), [(1, 16_384, false), (1, 616, false)]);
    assert_eq!(spoken.http2.wanted(), wanted(3, 0, 20_000), "each has its turn");
    spoken.http2.supply(3, &piece);
    assert_eq!(spoken.http2.wanted(), wanted(1, 17_000, 3_000));
    spoken.http2.supply(1, &piece[..3_000]);
    assert_eq!((spoken.http2.wanted(), bodies(&mut spoken).len()), (None, 3));
    // Those that wait are not asked before the server asks, or who sends them does.
    assert!(spoken.http2.waits(5) && spoken.http2.waits(7) && !spoken.http2.waits(1));
    spoken.hear(&headers_of(5, b"100"));
    assert_eq!((spoken.http2.waits(5), spoken.http2.wanted()), (false, wanted(5, 0, 20_000)));
    spoken.http2.supply(5, &piece[..1]);
    spoken.http2.cancel(5);
    spoken.http2.proceed(7);
    assert_eq!(spoken.http2.wanted(), wanted(7, 0, 20_000));
    // Once it has begun to answer, it has seen enough.
    spoken.http2.open(&waiting, 0);
    spoken.hear(&headers(WHOLE, 9, OK));
    spoken.http2.proceed(9);
    assert!(!spoken.http2.waits(9));
    spoken.http2.supply(7, &piece);
    spoken.says();
    assert_eq!(spoken.hear(&data(END, 9, b"no")).0, [(0, whole(200, 10, 2))]);
    assert_eq!(spoken.says(), [(kind::RST_STREAM, 0, 9, vec![0; 4])]);
    // To its end.
    let update = |stream: u32| framed(kind::WINDOW_UPDATE, 0, stream, &(1u32 << 20).to_be_bytes());
    spoken.hear(&[update(0), update(3)].concat());
    assert_eq!(spoken.http2.wanted(), wanted(3, 20_000, 30_000));
    spoken.http2.supply(3, &[&piece[..], &piece[..10_000]].concat());
    assert_eq!(bodies(&mut spoken), [(3, 16_384, false), (3, 30_000 - 16_384, true)]);
    assert_eq!(spoken.http2.wanted(), None);
}

/// An informational head.
fn headers_of(stream: u32, status: &[u8; 3]) -> Vec<u8> {
    headers(WHOLE, stream, &[&[0x08, 3][..], status].concat())
}

#[test]
fn who_answers_before_the_body_is_there_gets_no_more_of_it() {
    let mut spoken = Spoken::with(0);
    spoken.hear(&settings(&[(4, 10)]));
    spoken.http2.open(&request(b"more than ten bytes"), 7);
    spoken.says();
    assert_eq!(spoken.hear(&headers(WHOLE | END, 1, OK)).0, [(7, whole(200, 10, 0))]);
    assert_eq!(spoken.says(), [(kind::RST_STREAM, 0, 1, vec![0; 4])]);
    spoken.hear(&framed(kind::WINDOW_UPDATE, 0, 1, &[0, 0, 1, 0]));
    assert_eq!(spoken.says(), [], "nor when its window opens");
}

#[test]
fn requests_know_where_their_bytes_stand() {
    let mut spoken = Spoken::with(0);
    spoken.hear(&settings(&[(4, 2)]));
    spoken.says();
    let before = spoken.http2.handed_over();
    let mut lengths = Vec::new();
    for call in 0..3 {
        spoken.http2.open(&request(if call == 1 { b"body" } else { b"" }), call);
        lengths.push(spoken.http2.output().len() as u64);
        spoken.http2.clear_output();
    }
    assert_eq!(spoken.http2.handed_over(), before + lengths.iter().sum::<u64>());
    spoken.hear(&framed(kind::WINDOW_UPDATE, 0, 3, &[0, 0, 1, 0]));
    let all: Vec<(u64, u64)> = spoken.http2.take_all().map(|carried| (carried.position, carried.written)).collect();
    let expected = [
        (before, lengths[0]),
        (before + lengths[0], lengths[1] + 9 + 2),
        (before + lengths[0] + lengths[1], lengths[2]),
    ];
    assert_eq!(all, expected);
}

#[test]
fn a_table_that_the_server_wants_smaller_is_emptied_first() {
    let mut spoken = Spoken::with(0);
    spoken.hear(&settings(&[(1, 100)]));
    spoken.says();
    let block = request(b"").bytes().to_vec();
    for size in [&[0x20][..], &[], &[]] {
        spoken.http2.open(&request(b""), 0);
        assert_eq!(spoken.says()[0].3, [size, &block].concat());
        spoken.hear(&settings(&[(1, 0)]));
        spoken.says();
    }
}

#[test]
fn a_long_head_goes_in_several_frames() {
    let mut spoken = Spoken::with(0);
    let path = format!("/{}", "x".repeat(40_000));
    let long = Request::new("GET", "a", &path, &[], b"", Version::Http2, false).unwrap();
    spoken.http2.open(&long, 0);
    let frames = spoken.says();
    let about: Vec<_> = frames.iter().map(|frame| (frame.0, frame.1, frame.2)).collect();
    assert_eq!(about, [(kind::HEADERS, END, 1), (kind::CONTINUATION, 0, 1), (kind::CONTINUATION, WHOLE, 1)]);
    assert_eq!(frames.into_iter().flat_map(|frame| frame.3).collect::<Vec<_>>(), long.bytes());
}

#[test]
fn windows_are_given_back_half_at_a_time() {
    let mut spoken = Spoken::with(1);
    spoken.hear(&[settings(&[]), headers(WHOLE, 1, OK)].concat());
    spoken.says();
    let piece = data(0, 1, &[0; 16_384]);
    let many = piece.repeat(64);
    let mut given = Vec::new();
    for _ in 0..(RECEIVE_WINDOW / 16_384 / 64) {
        assert_eq!(spoken.hear(&many), (vec![], None));
        spoken.ear.body.clear();
        given.extend(spoken.says());
    }
    let half = (RECEIVE_WINDOW / 2 + 16_384).to_be_bytes().to_vec();
    assert_eq!(given, [(kind::WINDOW_UPDATE, 0, 0, half.clone()), (kind::WINDOW_UPDATE, 0, 1, half)]);
}

#[test]
fn goodbye_is_said_once_and_for_all() {
    let mut spoken = Spoken::with(0);
    spoken.http2.send_goaway();
    assert_eq!(spoken.says(), [(kind::GOAWAY, 0, 0, vec![0; 8])]);
    assert!(spoken.http2.is_spent() && !spoken.http2.has_room());
}
