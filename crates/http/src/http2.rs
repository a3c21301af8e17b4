//! One HTTP/2 connection of a client (RFC 9113, Thomson & Benfield 2022; section numbers in this folder are its own),
//! without I/O: requests in and bytes out, bytes in and answers out, each with the stream that it belongs to.
//!
//! - The user keeps a value with every stream, gets it back when the stream ends, and finds it by the stream's number
//!   in constant time ([`streams`]).
//! - A request costs a copy of its block, which was rendered once ([`render`]) and is right on every connection. An
//!   answer whose block came before costs a comparison ([`head`]).
//! - Nothing is kept of a body that comes; one that goes is shared with the request, or asked for piece by piece as the
//!   server takes it ([`Http2::wanted`]).
//! - Any split of the bytes that come brings the same answers.
//! - Bounded, whatever the server sends: a block by [`MAX_HEAD_BYTES`](crate::MAX_HEAD_BYTES) and 64 CONTINUATION
//!   frames, the table of the header compression by 4 KiB, frames by 16 KiB, and frames that bring nothing by
//!   [`MAX_IDLE_FRAMES`] in a row; what the server must be answered is counted ([`Http2::owed`]), so that one who
//!   does not read it can be left.
//! - The windows for what comes are 1 GiB, of the connection and of each stream, and half of one is given back at a
//!   time: a server is never held up by them.
//!
//! The framing is our own. nghttp2 brings C and `unsafe`, and copies and compresses each request anew; of the Rust
//! crates, `h2` cannot be had without tokio and its kind of I/O, and those for the header compression panic on a
//! single byte.
//!
//! Not done: `Upgrade: h2c`, which RFC 9113 has removed; server push, which is switched off; priorities, which it
//! deprecates.

mod answer;
mod control;
mod frame;
mod head;
mod hpack;
mod receive;
pub(crate) mod render;
mod send;
mod server;
mod streams;

pub use head::RecentBlock;
pub use server::{Asked, Http2Server, answer_block, begins_http2};

use crate::{ParseError, Request, Response};
use frame::{Fault, Frame, HEADER, code};
use hpack::Decoder;
use send::first_words;
use std::sync::Arc;
use streams::{Outgoing, Stream, Streams};

/// Bytes of answers that a server may send before it hears that they were taken.
const RECEIVE_WINDOW: u32 = 1 << 30;
/// What every window begins with (§6.9.2), and the most it can grow to.
const FIRST_WINDOW: u32 = 65_535;
const MOST_WINDOW: i64 = 0x7fff_ffff;
/// Streams that are opened before the server has said how many it allows, on this connection or an earlier one.
const FIRST_STREAMS: u32 = 1;
/// Bytes kept of the text in which a server says why it goes away (GOAWAY, §6.8).
pub const MAX_DEBUG_TEXT: usize = 200;
/// RST_STREAM with this code says that the server has done nothing about the request: it may be sent again (§8.7).
pub const REFUSED_STREAM: u32 = code::REFUSED_STREAM;
/// Frames in a row that bring no answer any further.
pub const MAX_IDLE_FRAMES: u32 = 10_000;
/// CONTINUATION frames of one block.
const MOST_CONTINUATIONS: u32 = 64;

/// What a user is told while bytes are read.
pub trait Listener<T> {
    /// So many bytes of the answer to this request have come, those of frames included.
    fn received(&mut self, value: &mut T, bytes: u64);

    /// Whether heads are wanted, which have to be written for it.
    fn wants_heads(&self) -> bool {
        false
    }

    /// The head of an answer to this request as HTTP/1 would have it, informational ones and trailers included.
    fn head(&mut self, _value: &mut T, _head: &[u8]) {}

    /// A piece of the answer's body.
    fn body(&mut self, _value: &mut T, _piece: &[u8]) {}

    /// The server goes away (GOAWAY), with this error code and at most [`MAX_DEBUG_TEXT`] bytes of text.
    fn goaway(&mut self, _code: u32, _text: &[u8]) {}
}

/// What became of some bytes.
#[derive(Debug, PartialEq, Eq)]
pub struct Heard<T> {
    /// How many of them were read.
    pub consumed: usize,
    /// A stream that has ended. If there is none, all bytes were read.
    pub over: Option<(ClosedStream<T>, Ended)>,
}

/// What was kept with a stream.
#[derive(Debug, PartialEq, Eq)]
pub struct ClosedStream<T> {
    /// The user's own.
    pub value: T,
    /// Where its request begins in all that this connection sends, in bytes.
    pub position: u64,
    /// Bytes of its request so far, those of frames included.
    pub written: u64,
}

/// A piece of a request's body that the server would take now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// On this stream.
    pub stream: u32,
    /// From this offset on.
    pub from: u64,
    /// At most so many bytes.
    pub bytes: usize,
}

/// How a stream has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// By a whole answer.
    Whole(Response),
    /// The server gave it up (RST_STREAM).
    Reset {
        /// The error code.
        code: u32,
        /// Some of the answer had come.
        begun: bool,
    },
    /// The server goes away, and has not looked at it (GOAWAY).
    GoneAway,
    /// What came is not an answer. The connection goes on.
    Malformed(ParseError),
}

/// One connection, on which a `T` is kept with every stream.
#[derive(Debug)]
pub struct Http2<T> {
    streams: Streams<T>,
    input: Input,
    /// The frame's header, or what of it is there.
    header: [u8; HEADER],
    /// What is there of a payload that is read whole.
    payload: Vec<u8>,
    block: Option<Block>,
    decoder: Decoder,
    /// The latest head as HTTP/1 would have it.
    text: Vec<u8>,
    out: Vec<u8>,
    /// Bytes handed over to be sent.
    handed_over: u64,
    /// Bytes of answers to SETTINGS and PING, since they were last known to have gone.
    owed: usize,
    peer: Peer,
    /// How much of bodies the server would take now.
    send_window: i64,
    /// Streams whose bodies wait for a window or for their next piece, by number.
    waiting: Vec<u32>,
    /// What was read of bodies since the server was last told.
    taken: u32,
    idle_frames: u32,
    /// The last stream that a server that goes away looks at, and whether those above are still to be given up.
    last_stream: Option<u32>,
    gives_up: bool,
    failed: Option<ParseError>,
}

/// What is read next.
#[derive(Clone, Copy, Debug)]
enum Input {
    /// A frame's header, of which so many bytes are there.
    Header(usize),
    /// A payload, to be read whole.
    Whole(Frame),
    /// The payload of DATA: so much of it is left, the last `padding` bytes of which say nothing, once that is known.
    Data { frame: Frame, left: usize, padding: Option<usize> },
}

/// A block that goes on in the next frame.
#[derive(Debug)]
struct Block {
    stream: u32,
    ends: bool,
    bytes: Vec<u8>,
    continuations: u32,
}

/// What the server has said of itself.
#[derive(Debug)]
struct Peer {
    /// Whether it has.
    known: bool,
    /// How many streams it allows; until it is known, how many are opened.
    max_streams: u32,
    /// `max_streams` is what the server said on an earlier connection.
    assumed: bool,
    window: i64,
    /// It has no room for a table that we do not use, which it wants to be told.
    shrink_table: bool,
    table_is_shrunk: bool,
}

impl<T> Default for Http2<T> {
    fn default() -> Http2<T> {
        Http2::new()
    }
}

impl<T> Http2<T> {
    /// A connection on which nothing has been sent: its first words are the first to go.
    pub fn new() -> Http2<T> {
        Http2 {
            streams: Streams::new(),
            input: Input::Header(0),
            header: [0; HEADER],
            payload: Vec::new(),
            block: None,
            decoder: Decoder::default(),
            text: Vec::new(),
            out: first_words(),
            handed_over: 0,
            owed: 0,
            peer: Peer {
                known: false,
                max_streams: FIRST_STREAMS,
                assumed: false,
                window: i64::from(FIRST_WINDOW),
                shrink_table: false,
                table_is_shrunk: false,
            },
            send_window: i64::from(FIRST_WINDOW),
            waiting: Vec::new(),
            taken: 0,
            idle_frames: 0,
            last_stream: None,
            gives_up: false,
            failed: None,
        }
    }

    /// Streams that are open.
    pub fn streams(&self) -> usize {
        self.streams.len()
    }

    /// The most streams that the server allows, once it has said so on this connection.
    pub fn max_streams(&self) -> Option<u32> {
        self.peer.known.then_some(self.peer.max_streams)
    }

    /// The same, or what the server allowed on an earlier connection.
    pub fn expected_streams(&self) -> Option<u32> {
        (self.peer.known || self.peer.assumed).then_some(self.peer.max_streams)
    }

    /// Until the server has said how many streams it allows, this many are opened: it did so on an earlier connection.
    pub fn expect_streams(&mut self, max_streams: u32) {
        if !self.peer.known {
            self.peer.max_streams = max_streams;
            self.peer.assumed = true;
        }
    }

    /// Whether no stream can be opened any more: the server goes away, or the numbers have come to an end.
    pub fn is_spent(&self) -> bool {
        self.last_stream.is_some() || self.failed.is_some() || !self.streams.has_numbers()
    }

    /// Whether a stream can be opened now.
    pub fn has_room(&self) -> bool {
        self.streams() < self.peer.max_streams as usize && !self.is_spent()
    }

    /// What is kept with a stream, if it is open.
    pub fn get(&self, stream: u32) -> Option<&T> {
        self.streams.get(stream).map(|stream| &stream.value)
    }

    /// The same to change it.
    pub fn get_mut(&mut self, stream: u32) -> Option<&mut T> {
        self.streams.get_mut(stream).map(|stream| &mut stream.value)
    }

    /// Sends a request, which was made for HTTP/2, on a stream of its own, whose number is returned. Only where there
    /// is room.
    pub fn open(&mut self, request: &Request, value: T) -> u32 {
        let id = self.streams.next();
        let body = match request.body().filter(|body| !body.is_empty()) {
            Some(body) => Some(Outgoing::Held(Arc::clone(body), 0)),
            None if request.streamed_bytes() > 0 => {
                Some(Outgoing::Streamed { sent: 0, left: request.streamed_bytes() })
            }
            None => None,
        };
        let has_body = body.is_some();
        let position = self.position();
        self.write_block(id, request.bytes(), !has_body);
        self.streams.insert(Stream {
            id,
            value,
            is_head: request.is_head(),
            position,
            written: self.position() - position,
            body,
            waits: request.expects_continue(),
            send_window: self.peer.window,
            receive_window: RECEIVE_WINDOW,
            taken: 0,
            status: None,
            content_length: None,
            head_bytes: 0,
            body_bytes: 0,
        });
        if has_body {
            self.write_body(id);
        }
        id
    }

    /// Gives a stream up, which the server is told.
    pub fn cancel(&mut self, stream: u32) -> Option<ClosedStream<T>> {
        let stream = self.streams.remove(stream)?;
        self.write_reset(stream.id, code::CANCEL);
        Some(carried(stream))
    }

    /// Says goodbye: no stream is opened after that.
    pub fn send_goaway(&mut self) {
        self.write_goaway(code::NO_ERROR);
        self.last_stream.get_or_insert(u32::MAX);
    }

    /// The connection is gone, and its streams with it: takes what was kept with them, in the order of their numbers.
    pub fn take_all(&mut self) -> impl Iterator<Item = ClosedStream<T>> + use<T> {
        self.streams.take_all().into_iter().map(carried)
    }

    /// Whether there is something to be sent.
    pub fn has_output(&self) -> bool {
        !self.out.is_empty()
    }

    /// What is to be sent.
    pub fn output(&self) -> &[u8] {
        &self.out
    }

    /// All of it was handed over to be sent.
    pub fn clear_output(&mut self) {
        /// What a buffer may keep for the next time.
        const ROOM: usize = 16 * 1024;
        self.handed_over += self.out.len() as u64;
        self.out.clear();
        self.out.shrink_to(ROOM);
    }

    /// Bytes handed over to be sent, in all.
    pub fn handed_over(&self) -> u64 {
        self.handed_over
    }

    /// Bytes of answers that the server has asked for, by SETTINGS and PING, since [`Http2::paid`].
    pub fn owed(&self) -> usize {
        self.owed
    }

    /// All that was handed over has gone.
    pub fn paid(&mut self) {
        self.owed = 0;
    }

    /// Reads bytes until they are all read or a stream has ended.
    ///
    /// # Errors
    /// [`ParseError`] when the connection cannot go on; what the server is to hear of it is there to be sent.
    pub fn feed(
        &mut self,
        recent: &mut RecentBlock,
        bytes: &[u8],
        listener: &mut impl Listener<T>,
    ) -> Result<Heard<T>, ParseError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let mut consumed = 0;
        loop {
            if let Some(stream) = self.given_up() {
                return Ok(Heard { consumed, over: Some((carried(stream), Ended::GoneAway)) });
            }
            let rest = &bytes[consumed..];
            if rest.is_empty() {
                return Ok(Heard { consumed, over: None });
            }
            match self.step(recent, rest, listener) {
                Ok((n, None)) => consumed += n,
                Ok((n, over)) => return Ok(Heard { consumed: consumed + n, over }),
                Err(Fault { code, error }) => {
                    self.write_goaway(code);
                    self.failed = Some(error);
                    return Err(error);
                }
            }
        }
    }
}

/// A stream that has ended, if one has.
type Over<T> = Option<(ClosedStream<T>, Ended)>;

fn carried<T>(stream: Stream<T>) -> ClosedStream<T> {
    ClosedStream { value: stream.value, position: stream.position, written: stream.written }
}

#[cfg(test)]
mod tests;
