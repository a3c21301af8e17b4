//! Tests of the client side of HTTP/2 with frames that the tests build.

use super::frame::{self, flag, kind};
use super::*;
use crate::Version;

/// Builds a frame.
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
const END_STREAM: u8 = flag::END_STREAM;
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

/// An observer that counts received bytes, and stores heads and bodies.
#[derive(Default)]
struct RecordingListener {
    bytes: u64,
    heads: String,
    body: Vec<u8>,
}

impl StreamObserver<u32> for RecordingListener {
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

/// The client side of a connection, with the data that it has received.
struct Connection {
    http2: Http2<u32>,
    recent: RecentBlock,
    listener: RecordingListener,
}

impl Connection {
    /// A connection with `calls` requests on the streams 1, 3, 5 …. The values stored with these streams are 0, 1, 2 ….
    fn with(calls: u32) -> Connection {
        let mut http2 = Http2::new();
        (0..calls).for_each(|call| assert_eq!(http2.open(&request(b""), call), 2 * call + 1));
        http2.clear_output();
        Connection { http2, recent: RecentBlock::default(), listener: RecordingListener::default() }
    }

    /// Feeds bytes. Returns the values and ends of the streams that end, and the error that makes the connection
    /// unusable.
    fn receive(&mut self, bytes: &[u8]) -> (Vec<(u32, StreamEnd)>, Option<ParseError>) {
        let mut ended = Vec::new();
        let mut rest = bytes;
        loop {
            match self.http2.feed(&mut self.recent, rest, &mut self.listener) {
                Err(error) => return (ended, Some(error)),
                Ok(Http2FeedResult { consumed, closed: Some((stream, end)) }) => {
                    rest = &rest[consumed..];
                    ended.push((stream.value, end));
                }
                Ok(Http2FeedResult { consumed, closed: None }) => {
                    assert_eq!(consumed, rest.len(), "all bytes are consumed");
                    return (ended, None);
                }
            }
        }
    }

    /// Removes the output, and returns its frames: type, flags, stream and payload.
    fn take_output(&mut self) -> Vec<(u8, u8, u32, Vec<u8>)> {
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
    StreamEnd::Complete(Response { status, keep_alive: true, head_bytes, body_bytes })
}

#[test]
fn a_connection_begins_with_the_preface_and_settings() {
    let http2: Http2<()> = Http2::new();
    let behind = http2.output().strip_prefix(frame::PREFACE).unwrap();
    let frames = frames(behind);
    assert_eq!(frames.iter().map(|frame| frame.0).collect::<Vec<_>>(), [kind::SETTINGS, kind::WINDOW_UPDATE]);
    assert!(frames[0].3.chunks(6).any(|entry| entry == [0, 2, 0, 0, 0, 0]), "server push is disabled");
}

#[test]
fn responses_may_arrive_in_any_order_and_interleaved() {
    let mut connection = Connection::with(3);
    let bytes = [
        settings(&[]),
        headers(WHOLE, 5, OK),
        headers(WHOLE, 1, &[0x88, 0x0f, 0x0d, 1, b'3']),
        data(0, 5, b"12"),
        data(END_STREAM, 1, b"abc"),
        headers(WHOLE | END_STREAM, 3, &[0x8d]),
        data(END_STREAM, 5, b"3456"),
    ]
    .concat();
    let expected = vec![(0, whole(200, 14, 3)), (1, whole(404, 10, 0)), (2, whole(200, 10, 6))];
    assert_eq!(connection.receive(&bytes), (expected, None));
    assert_eq!(connection.listener.bytes, bytes.len() as u64 - 9);
    assert_eq!(connection.listener.heads, "2: HTTP/2 200;;|0: HTTP/2 200;content-length: 3;;|1: HTTP/2 404;;|");
    assert_eq!(connection.listener.body, b"12abc3456");
    assert_eq!(connection.take_output(), [(kind::SETTINGS, flag::ACK, 0, vec![])]);
    assert_eq!((connection.http2.streams(), connection.http2.can_open_stream()), (0, true));
}

#[test]
fn informational_heads_padding_priorities_and_trailers_are_not_responses() {
    let mut connection = Connection::with(1);
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
        headers(WHOLE | END_STREAM, 1, &[0, 1, b't', 1, b'v']),
    ]
    .concat();
    assert_eq!(connection.receive(&bytes), (vec![(0, whole(200, 14 + 10 + 14, 3))], None));
    assert_eq!(connection.listener.heads, "0: HTTP/2 103;;|0: HTTP/2 200;;|0: t: v;;|");
}

#[test]
fn a_block_may_continue_in_further_frames() {
    let mut connection = Connection::with(1);
    let bytes = [
        settings(&[]),
        headers(END_STREAM, 1, &[0x88, 0x0f]),
        framed(kind::CONTINUATION, 0, 1, &[0x0d, 1]),
        framed(kind::CONTINUATION, WHOLE, 1, b"0"),
    ]
    .concat();
    assert_eq!(connection.receive(&bytes), (vec![(0, whole(200, 14, 0))], None));
}

#[test]
fn a_malformed_response_ends_only_its_own_call() {
    let of_stream = |bytes: &[&[u8]]| {
        let mut connection = Connection::with(2);
        let (over, error) =
            connection.receive(&[&settings(&[])[..], &bytes.concat(), &headers(WHOLE | END_STREAM, 3, OK)].concat());
        assert_eq!(error, None);
        assert_eq!(over[1], (1, whole(200, 10, 0)), "the other stream continues");
        let (StreamEnd::Malformed(ParseError::BadResponse(why)), 0) = (over[0].1, over[0].0) else {
            panic!("{over:?}")
        };
        let reported = connection.take_output().into_iter().any(|frame| frame.0 == kind::RST_STREAM && frame.2 == 1);
        (why, reported)
    };
    let text = |name: &str, value: &str| {
        [&[0, name.len() as u8][..], name.as_bytes(), &[value.len() as u8], value.as_bytes()].concat()
    };
    for (bytes, part, reported) in [
        (vec![headers(WHOLE, 1, &text("a", "b"))], "no status", true),
        (vec![headers(WHOLE, 1, OK), headers(WHOLE | END_STREAM, 1, OK)], "second head", true),
        (vec![headers(WHOLE, 1, OK), headers(WHOLE, 1, &text("a", "b"))], "after its trailers", true),
        (vec![headers(WHOLE | END_STREAM, 1, &[0x08, 3, b'1', b'0', b'0'])], "ends with an informational", true),
        (vec![headers(WHOLE, 1, &[0x08, 3, b'1', b'0', b'1'])], "switches", true),
        (vec![data(0, 1, b"x"), data(END_STREAM, 1, b"y")], "precedes its head", true),
        (vec![data(END_STREAM, 1, b"")], "precedes its head", true),
        (vec![headers(WHOLE, 1, &[OK, &text("A", "b")].concat())], "capital", true),
        (vec![headers(WHOLE, 1, &[0x88, 0x0f, 0x0d, 1, b'3']), data(END_STREAM, 1, b"ab")], "Content-Length", false),
        (vec![headers(WHOLE, 1, &[0x89]), data(END_STREAM, 1, b"ab")], "not allowed here", false),
        (vec![framed(kind::WINDOW_UPDATE, 0, 1, &[0; 4])], "increased by 0", true),
        (vec![framed(kind::WINDOW_UPDATE, 0, 1, &[0x7f, 0xff, 0xff, 0xff])], "beyond the limit", true),
    ] {
        let bytes: Vec<&[u8]> = bytes.iter().map(Vec::as_slice).collect();
        let (why, has_reported) = of_stream(&bytes);
        assert!(why.contains(part) && has_reported == reported, "{part}: {why}, reported: {has_reported}");
    }
}

#[test]
fn violations_of_the_connection_are_named_and_reported_to_the_server() {
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
        let mut connection = Connection::with(3);
        let (_, error) = connection.receive(&bytes);
        let error = error.unwrap_or_else(|| panic!("{part} causes no error"));
        assert!(error.to_string().contains(part), "{part}: {error}");
        let last = connection.take_output().pop().unwrap();
        let reported = [[0; 4], code.to_be_bytes()].concat();
        assert_eq!((last.0, &last.3), (kind::GOAWAY, &reported), "{part}");
        assert_eq!(connection.receive(b"more"), (vec![], Some(error)), "the connection stays unusable");
        assert!(connection.http2.refuses_new_streams() && !connection.http2.can_open_stream());
        assert_eq!(connection.http2.take_streams().map(|stream| stream.value).collect::<Vec<_>>().last(), Some(&2));
    }
}

#[test]
fn after_goaway_the_streams_that_the_server_processes_are_completed() {
    let mut connection = Connection::with(4);
    let bytes = [settings(&[]), goaway(u32::MAX), headers(WHOLE | END_STREAM, 1, OK), goaway(3)].concat();
    let over = vec![(0, whole(200, 10, 0)), (2, StreamEnd::GoneAway), (3, StreamEnd::GoneAway)];
    assert_eq!(connection.receive(&bytes), (over, None));
    assert!(
        connection.http2.refuses_new_streams()
            && !connection.http2.can_open_stream()
            && connection.http2.streams() == 1
    );
    assert_eq!(connection.receive(&headers(WHOLE | END_STREAM, 3, OK)), (vec![(1, whole(200, 10, 0))], None));
    // A later GOAWAY cannot increase the number of the last stream.
    assert_eq!(connection.receive(&goaway(9)), (vec![], None));
    assert!(connection.http2.refuses_new_streams());
}

#[test]
fn a_reset_by_either_side_ends_only_its_own_stream() {
    let mut connection = Connection::with(3);
    let refused = StreamEnd::Reset { code: REFUSED_STREAM, begun: false };
    assert_eq!(
        connection.receive(&[settings(&[]), framed(kind::RST_STREAM, 0, 3, &[0, 0, 0, 7])].concat()).0,
        [(1, refused)]
    );
    connection.take_output();
    assert_eq!(connection.http2.cancel(1).map(|stream| stream.value), Some(0));
    assert_eq!(connection.http2.cancel(1), None);
    assert_eq!(connection.take_output(), [(kind::RST_STREAM, 0, 1, vec![0, 0, 0, 8])]);
    // The server sent these frames before it received the reset, so they arrive after it. Their header block still
    // changes the dynamic table.
    let late = [headers(WHOLE, 1, &[0x88, 0x40, 1, b'a', 1, b'b']), data(END_STREAM, 1, b"late")].concat();
    assert_eq!(connection.receive(&late), (vec![], None));
    assert_eq!(
        connection.receive(&headers(WHOLE | END_STREAM, 5, &[0x88, 0xbe])),
        (vec![(2, whole(200, 11, 0))], None)
    );
    assert_eq!(connection.listener.heads, "2: HTTP/2 200;a: b;;|");
}

#[test]
fn pings_are_answered_and_counted() {
    let mut connection = Connection::with(1);
    let ping = framed(kind::PING, 0, 0, b"12345678");
    connection.receive(&[settings(&[]), ping.clone(), framed(kind::PING, flag::ACK, 0, b"12345678")].concat());
    assert_eq!(
        connection.take_output(),
        [(kind::SETTINGS, flag::ACK, 0, vec![]), (kind::PING, flag::ACK, 0, b"12345678".to_vec())]
    );
    assert_eq!(connection.http2.pending_reply_bytes(), 9 + 17);
    connection.http2.clear_pending_replies();
    assert_eq!(connection.http2.pending_reply_bytes(), 0);
    // A response resets the count of frames that do not advance a response.
    for _ in 0..3 {
        assert_eq!(connection.receive(&ping.repeat(MAX_IDLE_FRAMES as usize - 10)), (vec![], None));
        let id = connection.http2.open(&request(b""), 9);
        assert_eq!(connection.receive(&headers(WHOLE | END_STREAM, id, OK)).0, [(9, whole(200, 10, 0))]);
    }
}

#[test]
fn the_servers_limit_of_streams_is_kept() {
    let mut connection = Connection::with(2);
    assert_eq!((connection.http2.max_streams(), connection.http2.assumed_max_streams()), (None, None));
    assert!(!connection.http2.can_open_stream());
    connection.receive(&settings(&[(3, 3)]));
    assert!(connection.http2.can_open_stream());
    connection.http2.open(&request(b""), 2);
    assert!(!connection.http2.can_open_stream() && connection.http2.max_streams() == Some(3));
    connection.receive(&headers(WHOLE | END_STREAM, 3, OK));
    assert!(connection.http2.can_open_stream());
    let mut unlimited = Connection::with(0);
    unlimited.receive(&settings(&[]));
    assert_eq!(unlimited.http2.max_streams(), Some(u32::MAX));
    // The limit of an earlier connection applies until the server's settings arrive.
    let mut expecting = Connection::with(1);
    assert!(!expecting.http2.can_open_stream());
    expecting.http2.assume_max_streams(2);
    assert!(expecting.http2.can_open_stream() && expecting.http2.assumed_max_streams() == Some(2));
    expecting.receive(&settings(&[(3, 1)]));
    expecting.http2.assume_max_streams(2);
    assert!(!expecting.http2.can_open_stream() && expecting.http2.assumed_max_streams() == Some(1));
}

/// Removes the output, and returns its DATA frames: stream, length, and whether the frame ends the stream.
fn bodies(connection: &mut Connection) -> Vec<(u32, usize, bool)> {
    let data = connection.take_output().into_iter().filter(|frame| frame.0 == kind::DATA);
    data.map(|(_, flags, stream, payload)| (stream, payload.len(), flags & END_STREAM != 0)).collect()
}

#[test]
fn bodies_are_sent_as_far_as_the_windows_allow() {
    let mut connection = Connection::with(0);
    connection.receive(&settings(&[(4, 20_000)]));
    connection.take_output();
    let body = vec![b'x'; 30_000];
    connection.http2.open(&request(&body), 0);
    connection.http2.open(&request(&body), 1);
    assert_eq!(bodies(&mut connection), [(1, 16_384, false), (1, 3_616, false), (3, 16_384, false), (3, 3_616, false)]);
    let update = |stream: u32, more: u32| framed(kind::WINDOW_UPDATE, 0, stream, &more.to_be_bytes());
    connection.receive(&update(1, 10_000));
    assert_eq!(bodies(&mut connection), [(1, 10_000, true)]);
    // A smaller initial window applies to all open streams, whose windows may become negative.
    connection.receive(&settings(&[(4, 0)]));
    connection.receive(&update(3, 20_001));
    assert_eq!(bodies(&mut connection), [(3, 1, false)]);
    connection.receive(&settings(&[(4, 5_000)]));
    assert_eq!(bodies(&mut connection), [(3, 5_000, false)]);
    connection.receive(&update(3, 1 << 20));
    assert_eq!(bodies(&mut connection), [(3, 4_999, true)]);
    connection.http2.open(&request(&body), 2);
    assert_eq!(bodies(&mut connection), [(5, 5_000, false)]);
    // The window of the connection, not of the stream, now limits the body.
    let left = 65_535 - 30_000 - 30_000 - 5_000;
    connection.receive(&update(5, 1 << 20));
    assert_eq!(bodies(&mut connection), [(5, left, false)]);
    connection.receive(&update(0, 1 << 20));
    assert_eq!(bodies(&mut connection), [(5, 16_384, false), (5, 30_000 - 5_000 - left - 16_384, true)]);
}

#[test]
fn pieces_of_streamed_bodies_are_wanted_as_far_as_the_windows_allow() {
    let mut connection = Connection::with(0);
    connection.receive(&settings(&[(4, 20_000)]));
    connection.take_output();
    let expects = [("Expect".to_owned(), "100-continue".to_owned())];
    let [plain, waiting] = [&expects[..0], &expects]
        .map(|headers| Request::http2_streamed("PUT", "http", "a", "/", headers, 50_000).unwrap());
    for (request, stream) in [(&plain, 1), (&plain, 3), (&waiting, 5), (&waiting, 7)] {
        assert_eq!(connection.http2.open(request, 0), stream);
    }
    let wanted = |stream, offset, bytes| Some(SendableBody { stream, offset, bytes });
    let piece = vec![b'x'; 20_000];
    assert_eq!(bodies(&mut connection), []);
    assert_eq!(connection.http2.next_sendable_body(), wanted(1, 0, 20_000));
    connection.http2.add_body_bytes(1, &piece[..17_000]);
    assert_eq!(bodies(&mut connection), [(1, 16_384, false), (1, 616, false)]);
    assert_eq!(connection.http2.next_sendable_body(), wanted(3, 0, 20_000), "the streams take turns");
    connection.http2.add_body_bytes(3, &piece);
    assert_eq!(connection.http2.next_sendable_body(), wanted(1, 17_000, 3_000));
    connection.http2.add_body_bytes(1, &piece[..3_000]);
    assert_eq!((connection.http2.next_sendable_body(), bodies(&mut connection).len()), (None, 3));
    // While a body waits for 100 Continue, its next piece is not requested from the caller. The wait ends when the
    // server sends 100 Continue or the caller ends it.
    assert!(
        connection.http2.awaits_continue(5)
            && connection.http2.awaits_continue(7)
            && !connection.http2.awaits_continue(1)
    );
    connection.receive(&headers_of(5, b"100"));
    assert_eq!(
        (connection.http2.awaits_continue(5), connection.http2.next_sendable_body()),
        (false, wanted(5, 0, 20_000))
    );
    connection.http2.add_body_bytes(5, &piece[..1]);
    connection.http2.cancel(5);
    connection.http2.continue_body(7);
    assert_eq!(connection.http2.next_sendable_body(), wanted(7, 0, 20_000));
    // A final response ends the wait for 100 Continue.
    connection.http2.open(&waiting, 0);
    connection.receive(&headers(WHOLE, 9, OK));
    connection.http2.continue_body(9);
    assert!(!connection.http2.awaits_continue(9));
    connection.http2.add_body_bytes(7, &piece);
    connection.take_output();
    assert_eq!(connection.receive(&data(END_STREAM, 9, b"no")).0, [(0, whole(200, 10, 2))]);
    assert_eq!(connection.take_output(), [(kind::RST_STREAM, 0, 9, vec![0; 4])]);
    // With larger windows, the rest of the body on stream 3 is sent.
    let update = |stream: u32| framed(kind::WINDOW_UPDATE, 0, stream, &(1u32 << 20).to_be_bytes());
    connection.receive(&[update(0), update(3)].concat());
    assert_eq!(connection.http2.next_sendable_body(), wanted(3, 20_000, 30_000));
    connection.http2.add_body_bytes(3, &[&piece[..], &piece[..10_000]].concat());
    assert_eq!(bodies(&mut connection), [(3, 16_384, false), (3, 30_000 - 16_384, true)]);
    assert_eq!(connection.http2.next_sendable_body(), None);
}

/// Builds a response head with this status, informational or final, without END_STREAM.
fn headers_of(stream: u32, status: &[u8; 3]) -> Vec<u8> {
    headers(WHOLE, stream, &[&[0x08, 3][..], status].concat())
}

#[test]
fn a_response_before_the_whole_body_stops_the_body() {
    let mut connection = Connection::with(0);
    connection.receive(&settings(&[(4, 10)]));
    connection.http2.open(&request(b"more than ten bytes"), 7);
    connection.take_output();
    assert_eq!(connection.receive(&headers(WHOLE | END_STREAM, 1, OK)).0, [(7, whole(200, 10, 0))]);
    assert_eq!(connection.take_output(), [(kind::RST_STREAM, 0, 1, vec![0; 4])]);
    connection.receive(&framed(kind::WINDOW_UPDATE, 0, 1, &[0, 0, 1, 0]));
    assert_eq!(connection.take_output(), [], "a larger window does not continue the body");
}

#[test]
fn requests_know_the_offset_of_their_bytes() {
    let mut connection = Connection::with(0);
    connection.receive(&settings(&[(4, 2)]));
    connection.take_output();
    let before = connection.http2.submitted_bytes();
    let mut lengths = Vec::new();
    for call in 0..3 {
        connection.http2.open(&request(if call == 1 { b"body" } else { b"" }), call);
        lengths.push(connection.http2.output().len() as u64);
        connection.http2.clear_output();
    }
    assert_eq!(connection.http2.submitted_bytes(), before + lengths.iter().sum::<u64>());
    connection.receive(&framed(kind::WINDOW_UPDATE, 0, 3, &[0, 0, 1, 0]));
    let all: Vec<(u64, u64)> =
        connection.http2.take_streams().map(|stream| (stream.position, stream.written_bytes)).collect();
    let expected = [
        (before, lengths[0]),
        (before + lengths[0], lengths[1] + 9 + 2),
        (before + lengths[0] + lengths[1], lengths[2]),
    ];
    assert_eq!(all, expected);
}

#[test]
fn a_smaller_table_of_the_server_is_acknowledged_in_the_next_block() {
    let mut connection = Connection::with(0);
    connection.receive(&settings(&[(1, 100)]));
    connection.take_output();
    let block = request(b"").bytes().to_vec();
    for size in [&[0x20][..], &[], &[]] {
        connection.http2.open(&request(b""), 0);
        assert_eq!(connection.take_output()[0].3, [size, &block].concat());
        connection.receive(&settings(&[(1, 0)]));
        connection.take_output();
    }
}

#[test]
fn a_long_head_is_sent_in_several_frames() {
    let mut connection = Connection::with(0);
    let path = format!("/{}", "x".repeat(40_000));
    let long = Request::new("GET", "a", &path, &[], b"", Version::Http2, false).unwrap();
    connection.http2.open(&long, 0);
    let frames = connection.take_output();
    let about: Vec<_> = frames.iter().map(|frame| (frame.0, frame.1, frame.2)).collect();
    assert_eq!(about, [(kind::HEADERS, END_STREAM, 1), (kind::CONTINUATION, 0, 1), (kind::CONTINUATION, WHOLE, 1)]);
    assert_eq!(frames.into_iter().flat_map(|frame| frame.3).collect::<Vec<_>>(), long.bytes());
}

#[test]
fn windows_are_given_back_half_at_a_time() {
    let mut connection = Connection::with(1);
    connection.receive(&[settings(&[]), headers(WHOLE, 1, OK)].concat());
    connection.take_output();
    let piece = data(0, 1, &[0; 16_384]);
    let many = piece.repeat(64);
    let mut given = Vec::new();
    for _ in 0..(RECEIVE_WINDOW / 16_384 / 64) {
        assert_eq!(connection.receive(&many), (vec![], None));
        connection.listener.body.clear();
        given.extend(connection.take_output());
    }
    let half = (RECEIVE_WINDOW / 2 + 16_384).to_be_bytes().to_vec();
    assert_eq!(given, [(kind::WINDOW_UPDATE, 0, 0, half.clone()), (kind::WINDOW_UPDATE, 0, 1, half)]);
}

#[test]
fn after_goaway_no_stream_can_be_opened() {
    let mut connection = Connection::with(0);
    connection.http2.send_goaway();
    assert_eq!(connection.take_output(), [(kind::GOAWAY, 0, 0, vec![0; 8])]);
    assert!(connection.http2.refuses_new_streams() && !connection.http2.can_open_stream());
}
