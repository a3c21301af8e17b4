//! The server side of a connection, for the reference server: parses requests and frames responses, without I/O.
//!
//! - The caller makes a value `T` from the method and path of each request when its head has arrived. The caller gets
//!   the value back when the body has also arrived. Bodies are not stored.
//! - Only whole frames are consumed: the caller must keep an incomplete frame, which has at most 16 KiB.
//! - Memory is bounded, whatever the client sends: by [`MAX_STREAMS`] requests at once and by the same bounds of heads
//!   as in the client. Responses are framed only while fewer than [`MAX_OUTPUT`] bytes wait to be sent. Replies to
//!   control frames grow with the input, so the caller must not feed more while there is output.

use super::frame::{
    self, Fault, Frame, HEADER_BYTES, MAX_PAYLOAD, PREFACE, bad_length, code, flag, flood, kind, protocol_violation,
    setting, write_short,
};
use super::hpack::{Decoder, HpackError};
use super::render;
use super::{Block, FIRST_WINDOW, MAX_CONTINUATIONS, MAX_WINDOW};
use crate::{MAX_HEAD_BYTES, ParseError};
use std::sync::Arc;

/// Maximum number of concurrent requests on one connection.
const MAX_STREAMS: usize = 256;
/// While at least this number of output bytes wait to be sent, bodies of responses are not turned into frames.
const MAX_OUTPUT: usize = 256 * 1024;

/// The server side of one connection. A value `T` is stored with every request until the request is complete.
#[derive(Debug)]
pub struct Http2Server<T> {
    /// Whether the client's connection preface has arrived.
    greeted: bool,
    decoder: Decoder,
    block: Option<Block>,
    streams: Vec<Exchange<T>>,
    /// The highest stream number that the client has opened.
    last: u32,
    out: Vec<u8>,
    /// Number of bytes at the start of `out` that have already been sent.
    gone: usize,
    send_window: i64,
    /// Initial send window of a stream, in bytes.
    first_window: i64,
    /// Number of bytes of DATA frames received since the last WINDOW_UPDATE of the connection.
    received_since_update: u32,
}

/// The result of [`Http2Server::feed`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerEvent<T> {
    /// All whole frames were consumed, and no request is complete.
    NeedMore,
    /// The request on this stream is complete. The value is the one that was made from its head.
    Request(u32, T),
    /// The connection is unusable. The output contains a GOAWAY frame for the client.
    Broken(ParseError),
}

#[derive(Debug)]
struct Exchange<T> {
    id: u32,
    send_window: i64,
    state: State<T>,
}

#[derive(Debug)]
enum State<T> {
    /// The body of the request is being received. The number counts the bytes of DATA frames since the stream's last
    /// WINDOW_UPDATE.
    Receiving(T, u32),
    /// The request is complete and has no response yet.
    Complete,
    /// The response is being sent. The first `at` bytes of its body have been turned into frames.
    Responding { bytes: Arc<[u8]>, at: usize },
}

impl<T> Default for Http2Server<T> {
    fn default() -> Http2Server<T> {
        Http2Server {
            greeted: false,
            decoder: Decoder::default(),
            block: None,
            streams: Vec::new(),
            last: 0,
            out: server_preface(),
            gone: 0,
            send_window: i64::from(FIRST_WINDOW),
            first_window: i64::from(FIRST_WINDOW),
            received_since_update: 0,
        }
    }
}

/// Whether `bytes`, the first bytes that a client sends, are the start of an HTTP/2 connection (with prior knowledge).
/// `None` if more bytes are needed.
pub fn is_http2_preface(bytes: &[u8]) -> Option<bool> {
    match bytes.len() {
        n if n < PREFACE.len() => (!PREFACE.starts_with(bytes)).then_some(false),
        _ => Some(bytes.starts_with(PREFACE)),
    }
}

/// Renders the header block of a response, once for all connections. Names in `fields` must be in lower case.
pub fn response_header_block(status: u16, fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    render::field(&mut block, ":status", &status.to_string());
    fields.iter().for_each(|(name, value)| render::field(&mut block, name, value));
    block
}

impl<T> Http2Server<T> {
    /// Consumes whole frames until a request is complete or no whole frame is left. Returns the number of bytes
    /// consumed. The caller must feed the remaining bytes again, followed by later bytes. `request` makes the value to
    /// store from the method and the path.
    pub fn feed(&mut self, bytes: &[u8], mut request: impl FnMut(&[u8], &[u8]) -> T) -> (usize, ServerEvent<T>) {
        let mut used = 0;
        if !self.greeted {
            if bytes.len() < PREFACE.len() {
                return (0, ServerEvent::NeedMore);
            }
            if !bytes.starts_with(PREFACE) {
                return (bytes.len(), self.fail(protocol_violation("the connection does not begin with the preface")));
            }
            self.greeted = true;
            used = PREFACE.len();
        }
        while let Some(header) = bytes[used..].first_chunk::<HEADER_BYTES>() {
            let frame = Frame::parse(*header);
            if frame.length > MAX_PAYLOAD {
                let error = ParseError::BadFrame("a frame is longer than 16 KiB");
                return (bytes.len(), self.fail(Fault { code: code::FRAME_SIZE_ERROR, error }));
            }
            let Some(payload) = bytes[used + HEADER_BYTES..].get(..frame.length) else { break };
            used += HEADER_BYTES + frame.length;
            match self.read(&frame, payload, &mut request) {
                Ok(None) => {}
                Ok(Some((stream, asked))) => return (used, ServerEvent::Request(stream, asked)),
                Err(fault) => return (bytes.len(), self.fail(fault)),
            }
        }
        (used, ServerEvent::NeedMore)
    }

    /// Responds to the request on a stream with this header block. The body is the part of `bytes` from offset `at` to
    /// the end.
    pub fn respond(&mut self, stream: u32, block: &[u8], bytes: &Arc<[u8]>, at: usize) {
        let Some(index) = self.find(stream) else { return };
        let ends = at >= bytes.len();
        self.write_head(stream, block, ends);
        if ends {
            self.streams.swap_remove(index);
            return;
        }
        self.streams[index].state = State::Responding { bytes: Arc::clone(bytes), at };
        self.write_bodies();
    }

    /// Sends GOAWAY. Requests that arrive later are not processed.
    pub fn send_goaway(&mut self) {
        self.write_goaway(code::NO_ERROR);
    }

    /// The output: the bytes to send on the connection.
    pub fn output(&self) -> &[u8] {
        &self.out[self.gone..]
    }

    /// Removes the first `bytes` of the output, which have been sent.
    pub fn consume_output(&mut self, bytes: usize) {
        self.gone += bytes;
        if self.gone == self.out.len() {
            self.out.clear();
            self.gone = 0;
            self.write_bodies();
        }
    }

    fn read(
        &mut self,
        frame: &Frame,
        payload: &[u8],
        request: &mut impl FnMut(&[u8], &[u8]) -> T,
    ) -> Result<Option<(u32, T)>, Fault> {
        if self.block.as_ref().map(|block| block.stream) != (frame.kind == kind::CONTINUATION).then_some(frame.stream) {
            return Err(protocol_violation("a header block is interrupted, or continued without a start"));
        }
        let opened = frame.stream % 2 == 1 && frame.stream <= self.last;
        match frame.kind {
            kind::HEADERS => {
                if frame.stream.is_multiple_of(2) || (opened && self.find(frame.stream).is_none()) {
                    return Err(protocol_violation("a head has the number of a stream that cannot be opened"));
                }
                let bytes = frame::unpadded(frame, payload)?.to_vec();
                let ends = frame.has(flag::END_STREAM);
                return self.block(Block { stream: frame.stream, ends, bytes, continuations: 0 }, frame, request);
            }
            kind::CONTINUATION => {
                let Some(mut block) = self.block.take() else { return Ok(None) };
                block.bytes.extend_from_slice(payload);
                block.continuations += 1;
                if block.bytes.len() > MAX_HEAD_BYTES || block.continuations > MAX_CONTINUATIONS {
                    return Err(flood("CONTINUATION frames"));
                }
                return self.block(block, frame, request);
            }
            kind::DATA if !opened => return Err(protocol_violation("data is for a stream that was never opened")),
            kind::DATA => return Ok(self.data(frame)),
            kind::RST_STREAM if payload.len() != 4 => return Err(bad_length()),
            kind::RST_STREAM if !opened => return Err(protocol_violation("a stream is reset that was never opened")),
            kind::RST_STREAM => self.streams.retain(|stream| stream.id != frame.stream),
            kind::SETTINGS => self.settings(frame, payload)?,
            kind::PING if payload.len() != 8 => return Err(bad_length()),
            kind::PING if !frame.has(flag::ACK) => write_short(&mut self.out, kind::PING, flag::ACK, 0, payload),
            kind::WINDOW_UPDATE => self.window(frame, payload)?,
            kind::PUSH_PROMISE => return Err(protocol_violation("a client cannot push")),
            _ => {}
        }
        Ok(None)
    }

    /// Handles a header block, which may continue in another frame.
    fn block(
        &mut self,
        block: Block,
        frame: &Frame,
        request: &mut impl FnMut(&[u8], &[u8]) -> T,
    ) -> Result<Option<(u32, T)>, Fault> {
        if !frame.has(flag::END_HEADERS) {
            self.block = Some(block);
            return Ok(None);
        }
        let Head { method, path, waits } = self.decode(&block.bytes)?;
        let Block { stream: id, ends, .. } = block;
        if self.find(id).is_some() {
            // A second header block on a stream contains trailers.
            return Ok(if ends { self.whole(id) } else { None });
        }
        self.last = id;
        if self.streams.len() >= MAX_STREAMS {
            write_short(&mut self.out, kind::RST_STREAM, 0, id, &code::REFUSED_STREAM.to_be_bytes());
            return Ok(None);
        }
        let receiving = State::Receiving(request(&method, &path), 0);
        self.streams.push(Exchange { id, send_window: self.first_window, state: receiving });
        if waits && !ends {
            self.write_head(id, &response_header_block(100, &[]), false);
        }
        Ok(if ends { self.whole(id) } else { None })
    }

    fn decode(&mut self, block: &[u8]) -> Result<Head, Fault> {
        let mut head = Head::default();
        let note = |name: &[u8], value: &[u8]| match name {
            b":method" => head.method = value.to_vec(),
            b":path" => head.path = value.to_vec(),
            b"expect" => head.waits = value.eq_ignore_ascii_case(b"100-continue"),
            _ => {}
        };
        match self.decoder.decode(block, note) {
            Ok(_) => Ok(head),
            Err(HpackError::Broken) => Err(Fault {
                code: code::COMPRESSION_ERROR,
                error: ParseError::BadFrame("a header block cannot be decompressed"),
            }),
            Err(HpackError::TooLarge) => Err(Fault { code: code::ENHANCE_YOUR_CALM, error: ParseError::HeadTooLarge }),
        }
    }

    /// Returns the stream and the value of a request that is now complete.
    fn whole(&mut self, id: u32) -> Option<(u32, T)> {
        let index = self.find(id)?;
        match std::mem::replace(&mut self.streams[index].state, State::Complete) {
            State::Receiving(value, _) => Some((id, value)),
            other => {
                self.streams[index].state = other;
                None
            }
        }
    }

    /// Discards the data of a request body. Sends WINDOW_UPDATE for each receive window of which half is used.
    fn data(&mut self, frame: &Frame) -> Option<(u32, T)> {
        let length = frame.length as u32;
        self.received_since_update += length;
        if self.received_since_update >= FIRST_WINDOW / 2 {
            write_short(
                &mut self.out,
                kind::WINDOW_UPDATE,
                0,
                0,
                &std::mem::take(&mut self.received_since_update).to_be_bytes(),
            );
        }
        let index = self.find(frame.stream)?;
        let State::Receiving(_, taken) = &mut self.streams[index].state else { return None };
        *taken += length;
        if frame.has(flag::END_STREAM) {
            return self.whole(frame.stream);
        }
        if *taken >= FIRST_WINDOW / 2 {
            let taken = std::mem::take(taken);
            write_short(&mut self.out, kind::WINDOW_UPDATE, 0, frame.stream, &taken.to_be_bytes());
        }
        None
    }

    fn settings(&mut self, frame: &Frame, payload: &[u8]) -> Result<(), Fault> {
        if !payload.len().is_multiple_of(6) {
            return Err(bad_length());
        }
        if frame.has(flag::ACK) {
            return Ok(());
        }
        for entry in payload.chunks_exact(6) {
            let (name, value) = entry.split_at(2);
            let value = i64::from(frame::leading_u32(value).unwrap_or_default());
            if name == setting::INITIAL_WINDOW_SIZE.to_be_bytes() {
                let more = value - std::mem::replace(&mut self.first_window, value);
                self.streams.iter_mut().for_each(|stream| stream.send_window += more);
            }
        }
        write_short(&mut self.out, kind::SETTINGS, flag::ACK, 0, &[]);
        self.write_bodies();
        Ok(())
    }

    fn window(&mut self, frame: &Frame, payload: &[u8]) -> Result<(), Fault> {
        let [_, _, _, _] = payload else { return Err(bad_length()) };
        let more = i64::from(frame::leading_u32(payload).unwrap_or_default() & 0x7fff_ffff);
        let window = match self.find(frame.stream) {
            _ if frame.stream == 0 => &mut self.send_window,
            Some(index) => &mut self.streams[index].send_window,
            None => return Ok(()),
        };
        *window += more;
        if *window > MAX_WINDOW {
            let error = ParseError::BadFrame("a window is increased beyond the limit");
            return Err(Fault { code: code::FLOW_CONTROL_ERROR, error });
        }
        self.write_bodies();
        Ok(())
    }

    fn find(&self, id: u32) -> Option<usize> {
        self.streams.iter().position(|stream| stream.id == id)
    }

    fn write_head(&mut self, stream: u32, block: &[u8], ends: bool) {
        let flags = flag::END_HEADERS | if ends { flag::END_STREAM } else { 0 };
        Frame { length: block.len(), kind: kind::HEADERS, flags, stream }.write(&mut self.out);
        self.out.extend_from_slice(block);
    }

    /// Turns as much of the responses into frames as the windows and [`MAX_OUTPUT`] allow.
    fn write_bodies(&mut self) {
        let (out, connection) = (&mut self.out, &mut self.send_window);
        self.streams.retain_mut(|stream| {
            let State::Responding { bytes, at } = &mut stream.state else { return true };
            while *at < bytes.len() && out.len() < MAX_OUTPUT {
                let window = usize::try_from(stream.send_window.min(*connection)).unwrap_or(0);
                let length = (bytes.len() - *at).min(MAX_PAYLOAD).min(window);
                if length == 0 {
                    break;
                }
                let flags = if *at + length == bytes.len() { flag::END_STREAM } else { 0 };
                Frame { length, kind: kind::DATA, flags, stream: stream.id }.write(out);
                out.extend_from_slice(&bytes[*at..*at + length]);
                *at += length;
                stream.send_window -= length as i64;
                *connection -= length as i64;
            }
            *at < bytes.len()
        });
    }

    fn fail(&mut self, fault: Fault) -> ServerEvent<T> {
        self.write_goaway(fault.code);
        ServerEvent::Broken(fault.error)
    }

    fn write_goaway(&mut self, code: u32) {
        write_short(&mut self.out, kind::GOAWAY, 0, 0, &[self.last.to_be_bytes(), code.to_be_bytes()].concat());
    }
}

/// The relevant fields of a request's head.
#[derive(Default)]
struct Head {
    method: Vec<u8>,
    path: Vec<u8>,
    /// Whether the client waits for `100 Continue` before it sends the body.
    waits: bool,
}

/// The first bytes that the server sends: its SETTINGS frame.
fn server_preface() -> Vec<u8> {
    let mut out = Vec::new();
    let settings =
        [(setting::MAX_CONCURRENT_STREAMS, MAX_STREAMS as u32), (setting::MAX_HEADER_LIST_SIZE, MAX_HEAD_BYTES as u32)];
    Frame { length: 6 * settings.len(), kind: kind::SETTINGS, flags: 0, stream: 0 }.write(&mut out);
    for (name, value) in settings {
        out.extend_from_slice(&name.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Http2, RecentBlock, Request, StreamEnd, StreamObserver, Version};
    use proptest::prelude::*;

    struct IgnoreAll;
    impl<T> StreamObserver<T> for IgnoreAll {
        fn received(&mut self, _: &mut T, _: u64) {}
    }

    /// Makes requests with this crate's client. `requests` are pairs: the length of the response, and the length of the
    /// request's body, in bytes. The bytes in both directions are split into pieces of the lengths `pieces`, repeated
    /// cyclically. Returns the status and body length of each response.
    fn talk(requests: &[(usize, usize)], pieces: &[usize]) -> Vec<(u16, u64)> {
        let (mut client, mut server) = (Http2::new(), Http2Server::default());
        let mut recent = RecentBlock::default();
        for (nth, (asked, body)) in requests.iter().enumerate() {
            let (path, body) = (format!("/{asked}"), vec![b'x'; *body]);
            let request = Request::new("POST", "a", &path, &[], &body, Version::Http2, false).unwrap();
            client.open(&request, nth);
        }
        let (mut pieces, mut answers) = (pieces.iter().copied().cycle(), vec![(0, 0); requests.len()]);
        let (mut to_server, mut to_client): (Vec<u8>, Vec<u8>) = Default::default();
        let (mut at_server, mut idle) = (Vec::new(), 0);
        // At most three consecutive pieces have the length 0. So after eight rounds without progress, nothing is left
        // to send.
        while idle < 8 {
            to_server.extend_from_slice(client.output());
            client.clear_output();
            to_client.extend_from_slice(server.output());
            server.consume_output(server.output().len());
            let piece = pieces.next().unwrap_or(1);
            let there = piece.min(to_server.len());
            at_server.extend(to_server.drain(..there));
            loop {
                let page = |method: &[u8], path: &[u8]| {
                    assert_eq!(method, b"POST");
                    std::str::from_utf8(&path[1..]).unwrap().parse::<usize>().unwrap()
                };
                let (used, asked) = server.feed(&at_server, page);
                at_server.drain(..used);
                match asked {
                    ServerEvent::NeedMore => break,
                    ServerEvent::Request(stream, size) => {
                        let length = size.to_string();
                        let block = response_header_block(200, &[("content-length", &length)]);
                        server.respond(stream, &block, &vec![b'y'; size + 3].into(), 3);
                    }
                    ServerEvent::Broken(error) => panic!("{error}"),
                }
            }
            let there = piece.min(to_client.len());
            let mut bytes: Vec<u8> = to_client.drain(..there).collect();
            loop {
                let fed = client.feed(&mut recent, &bytes, &mut IgnoreAll).unwrap();
                bytes.drain(..fed.consumed);
                match fed.closed {
                    None => break,
                    Some((stream, StreamEnd::Complete(response))) => {
                        answers[stream.value] = (response.status, response.body_bytes);
                    }
                    Some((_, other)) => panic!("{other:?}"),
                }
            }
            let silent = there == 0 && to_server.is_empty() && !client.has_output() && server.output().is_empty();
            idle = if silent { idle + 1 } else { 0 };
        }
        assert!(server.streams.is_empty());
        answers
    }

    #[test]
    fn bodies_larger_than_every_window_are_transferred_both_ways() {
        let requests = [(3_000_000, 0), (0, 1_000_000), (70_000, 70_000)];
        assert_eq!(talk(&requests, &[usize::MAX]), requests.map(|(size, _)| (200, size as u64)));
    }

    #[test]
    fn waiting_clients_get_100_continue_and_a_broken_connection_gets_goaway() {
        let mut server = Http2Server::default();
        let block = render::block("PUT", "http", "a", "/", &[("expect", "100-continue")]);
        let mut bytes = PREFACE.to_vec();
        Frame { length: block.len(), kind: kind::HEADERS, flags: flag::END_HEADERS, stream: 1 }.write(&mut bytes);
        bytes.extend_from_slice(&block);
        assert_eq!(server.feed(&bytes, |_, _| ()), (bytes.len(), ServerEvent::NeedMore));
        let output = server.output().to_vec();
        assert!(output.ends_with(&response_header_block(100, &[])), "{output:?}");
        server.consume_output(output.len());
        let mut data = Vec::new();
        write_short(&mut data, kind::DATA, flag::END_STREAM, 1, b"body");
        assert_eq!(server.feed(&data, |_, _| ()), (data.len(), ServerEvent::Request(1, ())));
        // DATA for a stream that was never opened.
        write_short(&mut data, kind::DATA, 0, 3, b"body");
        assert!(matches!(server.feed(&data[13..], |_, _| ()), (_, ServerEvent::Broken(_))));
        assert_eq!(server.output()[3..], [kind::GOAWAY, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1]);
    }

    #[test]
    fn the_preface_is_recognised_as_early_as_possible() {
        assert_eq!([&b""[..], b"PRI * HTTP/2.0"].map(is_http2_preface), [None, None]);
        assert_eq!([&b"G"[..], b"PRIX", b"POST / HTTP/1.1\r\nHost: a\r\n\r\n"].map(is_http2_preface), [Some(false); 3]);
        assert_eq!(is_http2_preface(PREFACE), Some(true));
    }

    proptest! {
        #[test]
        fn however_the_bytes_are_cut_all_is_answered(
            requests in prop::collection::vec((0usize..100_000, 0usize..100_000), 1..8),
            pieces in prop::collection::vec(1usize..20_000, 1..6),
        ) {
            let expected: Vec<(u16, u64)> = requests.iter().map(|(size, _)| (200, *size as u64)).collect();
            prop_assert_eq!(talk(&requests, &pieces), expected);
        }

        #[test]
        fn no_bytes_panic(
            greets in any::<bool>(),
            frames in prop::collection::vec((0u8..12, any::<u8>(), 0u32..6, prop::collection::vec(any::<u8>(), 0..60)), 0..20),
            rest in prop::collection::vec(any::<u8>(), 0..60),
        ) {
            let mut bytes = if greets { PREFACE.to_vec() } else { Vec::new() };
            frames.iter().for_each(|(kind, flags, stream, payload)| {
                write_short(&mut bytes, *kind, *flags, *stream, payload);
            });
            bytes.extend(rest);
            let mut server = Http2Server::default();
            while let (used, ServerEvent::Request(stream, ())) = server.feed(&bytes, |_, _| ()) {
                bytes.drain(..used);
                server.respond(stream, &response_header_block(404, &[]), &vec![1; 100_000].into(), 0);
            }
        }
    }
}
