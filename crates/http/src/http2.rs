//! The client side of an HTTP/2 connection (RFC 9113, Thomson & Benfield 2022), without I/O. This module turns requests
//! into bytes, and bytes into responses with their streams. Section numbers in this folder refer to RFC 9113.
//!
//! - The caller stores a value with every stream and gets the value back when the stream ends. Until then, the caller
//!   can look the value up by the stream's number in constant time ([`streams`]).
//! - Sending a request copies its header block. The block is rendered once and is valid on every connection
//!   ([`render`]). If a response has the same header block as the previous response, parsing costs only a comparison
//!   ([`head`]).
//! - Bodies of responses are not stored. The body of a request is either shared with the request or supplied in pieces
//!   as the server accepts them ([`Http2::next_sendable_body`]).
//! - The result does not depend on how the received bytes are split.
//! - Memory is bounded, whatever the server sends: header blocks by [`MAX_HEAD_BYTES`](crate::MAX_HEAD_BYTES) and 64
//!   CONTINUATION frames, the header compression's table by 4 KiB, frames by 16 KiB, and frames without effect by
//!   [`MAX_IDLE_FRAMES`] consecutive frames. Replies to the server are counted ([`Http2::pending_reply_bytes`]), so
//!   that the caller can drop a server that does not read them.
//! - The receive windows of the connection and of each stream are 1 GiB, and are refilled whenever half of a window is
//!   used, so that these windows never delay a server.
//!
//! This module implements the framing itself. nghttp2 needs C and `unsafe`, and copies and compresses each request
//! again. Of the Rust crates, `h2` requires tokio and its I/O, and the crates for header compression panic on some
//! single-byte inputs.
//!
//! Not implemented: `Upgrade: h2c`, which RFC 9113 removed; server push, which is disabled; priorities, which RFC 9113
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
pub use server::{Http2Server, ServerEvent, is_http2_preface, response_header_block};

use crate::{ParseError, Request, Response};
use frame::{Fault, Frame, HEADER, code};
use hpack::Decoder;
use send::first_words;
use std::sync::Arc;
use streams::{Outgoing, Stream, Streams};

/// Size in bytes of the receive windows of the connection and of each stream.
const RECEIVE_WINDOW: u32 = 1 << 30;
/// Initial size in bytes of every window (§6.9.2).
const FIRST_WINDOW: u32 = 65_535;
/// Maximum size of a window in bytes (§6.9.1).
const MAX_WINDOW: i64 = 0x7fff_ffff;
/// Number of streams that may be opened before the limit of the server is known.
const FIRST_STREAMS: u32 = 1;
/// Maximum number of bytes of a GOAWAY frame's debug data (§6.8) that are reported.
pub const MAX_DEBUG_TEXT: usize = 200;
/// The error code of a RST_STREAM frame after which the request may be sent again, because the server did not process
/// the request (§8.7).
pub const REFUSED_STREAM: u32 = code::REFUSED_STREAM;
/// Maximum number of consecutive frames that do not advance a response.
pub const MAX_IDLE_FRAMES: u32 = 10_000;
/// Maximum number of CONTINUATION frames of one header block.
const MAX_CONTINUATIONS: u32 = 64;

/// Receives the events that [`Http2::feed`] finds in the bytes. `T` is the value stored with a stream.
pub trait StreamObserver<T> {
    /// Called with the number of bytes that were received for the response on a stream, including frame headers.
    fn received(&mut self, value: &mut T, bytes: u64);

    /// Whether [`StreamObserver::head`] should be called. If false, heads are not rendered.
    fn wants_heads(&self) -> bool {
        false
    }

    /// Called with each head of the response on a stream, in the form of HTTP/1, including informational heads and
    /// trailers.
    fn head(&mut self, _value: &mut T, _head: &[u8]) {}

    /// Called with each piece of the body of the response on a stream.
    fn body(&mut self, _value: &mut T, _piece: &[u8]) {}

    /// Called when the server has sent GOAWAY, with an error code and at most [`MAX_DEBUG_TEXT`] bytes of debug data.
    fn goaway(&mut self, _code: u32, _text: &[u8]) {}
}

/// The result of [`Http2::feed`].
#[derive(Debug, PartialEq, Eq)]
pub struct Http2FeedResult<T> {
    /// Number of bytes consumed.
    pub consumed: usize,
    /// A stream that has ended. If `None`, all bytes were consumed.
    pub closed: Option<(ClosedStream<T>, StreamEnd)>,
}

/// A stream that has ended.
#[derive(Debug, PartialEq, Eq)]
pub struct ClosedStream<T> {
    /// The value that the caller stored with the stream.
    pub value: T,
    /// Offset of the stream's request in all bytes that this connection sends.
    pub position: u64,
    /// Number of bytes of the stream's request sent so far, including frame headers.
    pub written_bytes: u64,
}

/// A piece of a request's body that the server would accept now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendableBody {
    /// The stream of the request.
    pub stream: u32,
    /// Offset of the piece from the start of the body.
    pub offset: u64,
    /// Upper bound of the piece's length in bytes.
    pub bytes: usize,
}

/// The way in which a stream has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamEnd {
    /// The response is complete.
    Complete(Response),
    /// The server reset the stream (RST_STREAM).
    Reset {
        /// The error code.
        code: u32,
        /// Whether a part of the response had arrived.
        begun: bool,
    },
    /// The server closes the connection and did not process the request (GOAWAY).
    GoneAway,
    /// The response is malformed. The connection stays usable.
    Malformed(ParseError),
}

/// The client side of one connection. A `T` is stored with every stream.
#[derive(Debug)]
pub struct Http2<T> {
    streams: Streams<T>,
    input: Input,
    /// The header of a frame, or its first bytes.
    header: [u8; HEADER],
    /// The received part of a payload that is parsed only when it is complete.
    payload: Vec<u8>,
    block: Option<Block>,
    decoder: Decoder,
    /// The latest head in the form of HTTP/1.
    text: Vec<u8>,
    out: Vec<u8>,
    /// Number of bytes that the caller has passed on to be sent.
    submitted_bytes: u64,
    /// Bytes of replies to SETTINGS and PING that may not have been sent yet.
    pending_reply_bytes: usize,
    peer: Peer,
    /// Bytes of bodies that the server would accept now, on all streams.
    send_window: i64,
    /// Numbers of the streams whose bodies wait for a send window or for the caller's next piece.
    waiting: Vec<u32>,
    /// Bytes of bodies received since the last WINDOW_UPDATE of the connection.
    taken: u32,
    idle_frames: u32,
    /// After GOAWAY: the number of the last stream that the server processes.
    last_stream: Option<u32>,
    /// Whether streams above `last_stream`, which the server does not process, may still be open.
    gives_up: bool,
    failed: Option<ParseError>,
}

/// The part of a frame that is read next.
#[derive(Clone, Copy, Debug)]
enum Input {
    /// The header of a frame, of which this many bytes have arrived.
    Header(usize),
    /// A payload that is parsed only when it is complete.
    Whole(Frame),
    /// The payload of a DATA frame, of which `left` bytes are left. `padding` is the length of the padding at the end
    /// of the payload, once known.
    Data { frame: Frame, left: usize, padding: Option<usize> },
}

/// A header block that continues in the next frame.
#[derive(Debug)]
struct Block {
    stream: u32,
    ends: bool,
    bytes: Vec<u8>,
    continuations: u32,
}

/// The settings of the server.
#[derive(Debug)]
struct Peer {
    /// Whether the server's SETTINGS frame has arrived.
    known: bool,
    /// Maximum number of open streams.
    max_streams: u32,
    /// Whether `max_streams` is the limit of an earlier connection.
    assumed: bool,
    /// Initial send window of a stream.
    window: i64,
    /// Whether the next header block must begin with a table size update. The client uses no table, but must
    /// acknowledge a smaller limit of the server.
    shrink_table: bool,
    table_is_shrunk: bool,
}

impl<T> Default for Http2<T> {
    fn default() -> Http2<T> {
        Http2::new()
    }
}

impl<T> Http2<T> {
    /// Starts a new connection. The client's preface and settings are the first output.
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
            submitted_bytes: 0,
            pending_reply_bytes: 0,
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

    /// Number of open streams.
    pub fn streams(&self) -> usize {
        self.streams.len()
    }

    /// The server's limit of open streams; `None` until its settings have arrived.
    pub fn max_streams(&self) -> Option<u32> {
        self.peer.known.then_some(self.peer.max_streams)
    }

    /// The server's limit of open streams, or the limit of an earlier connection; `None` if both are unknown.
    pub fn assumed_max_streams(&self) -> Option<u32> {
        (self.peer.known || self.peer.assumed).then_some(self.peer.max_streams)
    }

    /// Uses the limit of an earlier connection to this server until its settings have arrived.
    pub fn assume_max_streams(&mut self, max_streams: u32) {
        if !self.peer.known {
            self.peer.max_streams = max_streams;
            self.peer.assumed = true;
        }
    }

    /// Whether no further stream can be opened: after GOAWAY or an error, or when stream numbers are exhausted.
    pub fn refuses_new_streams(&self) -> bool {
        self.last_stream.is_some() || self.failed.is_some() || !self.streams.has_numbers()
    }

    /// Whether a stream can be opened now.
    pub fn has_room(&self) -> bool {
        self.streams() < self.peer.max_streams as usize && !self.refuses_new_streams()
    }

    /// The value stored with a stream; `None` if the stream is not open.
    pub fn get(&self, stream: u32) -> Option<&T> {
        self.streams.get(stream).map(|stream| &stream.value)
    }

    /// The value stored with a stream, mutably; `None` if the stream is not open.
    pub fn get_mut(&mut self, stream: u32) -> Option<&mut T> {
        self.streams.get_mut(stream).map(|stream| &mut stream.value)
    }

    /// Sends an HTTP/2 request on a new stream and returns the stream's number. [`Http2::has_room`] must be true.
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
            written_bytes: self.position() - position,
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

    /// Cancels a stream (RST_STREAM).
    pub fn cancel(&mut self, stream: u32) -> Option<ClosedStream<T>> {
        let stream = self.streams.remove(stream)?;
        self.write_reset(stream.id, code::CANCEL);
        Some(closed_stream(stream))
    }

    /// Sends GOAWAY. No further stream is opened.
    pub fn send_goaway(&mut self) {
        self.write_goaway(code::NO_ERROR);
        self.last_stream.get_or_insert(u32::MAX);
    }

    /// Removes all streams of a closed connection, in the order of their numbers.
    pub fn take_streams(&mut self) -> impl Iterator<Item = ClosedStream<T>> + use<T> {
        self.streams.take_streams().into_iter().map(closed_stream)
    }

    /// Whether there are bytes to send.
    pub fn has_output(&self) -> bool {
        !self.out.is_empty()
    }

    /// The bytes to send.
    pub fn output(&self) -> &[u8] {
        &self.out
    }

    /// Discards the output, which the caller has passed on to be sent.
    pub fn clear_output(&mut self) {
        /// Capacity in bytes that the empty buffer keeps.
        const MAX_IDLE_CAPACITY: usize = 16 * 1024;
        self.submitted_bytes += self.out.len() as u64;
        self.out.clear();
        self.out.shrink_to(MAX_IDLE_CAPACITY);
    }

    /// Number of bytes that the caller has passed on to be sent, in total.
    pub fn submitted_bytes(&self) -> u64 {
        self.submitted_bytes
    }

    /// Bytes of replies to the server's SETTINGS and PING frames since [`Http2::clear_pending_replies`].
    pub fn pending_reply_bytes(&self) -> usize {
        self.pending_reply_bytes
    }

    /// Resets [`Http2::pending_reply_bytes`]: all output has been sent.
    pub fn clear_pending_replies(&mut self) {
        self.pending_reply_bytes = 0;
    }

    /// Consumes bytes until all are consumed or a stream has ended.
    ///
    /// # Errors
    /// [`ParseError`] if the connection is unusable. The output then contains a GOAWAY frame for the server.
    pub fn feed(
        &mut self,
        recent: &mut RecentBlock,
        bytes: &[u8],
        listener: &mut impl StreamObserver<T>,
    ) -> Result<Http2FeedResult<T>, ParseError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let mut consumed = 0;
        loop {
            if let Some(stream) = self.given_up() {
                return Ok(Http2FeedResult { consumed, closed: Some((closed_stream(stream), StreamEnd::GoneAway)) });
            }
            let rest = &bytes[consumed..];
            if rest.is_empty() {
                return Ok(Http2FeedResult { consumed, closed: None });
            }
            match self.step(recent, rest, listener) {
                Ok((n, None)) => consumed += n,
                Ok((n, closed)) => return Ok(Http2FeedResult { consumed: consumed + n, closed }),
                Err(Fault { code, error }) => {
                    self.write_goaway(code);
                    self.failed = Some(error);
                    return Err(error);
                }
            }
        }
    }
}

/// A stream that has ended; `None` if no stream has ended.
type Closed<T> = Option<(ClosedStream<T>, StreamEnd)>;

fn closed_stream<T>(stream: Stream<T>) -> ClosedStream<T> {
    ClosedStream { value: stream.value, position: stream.position, written_bytes: stream.written_bytes }
}

#[cfg(test)]
mod tests;
