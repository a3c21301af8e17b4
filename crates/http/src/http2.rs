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
/// Header blocks of requests.
pub(crate) mod render;
mod send;
mod server;
mod streams;

pub use head::RecentBlock;
pub use server::{Http2Server, ServerEvent, is_http2_preface, response_header_block};

use crate::{ParseError, Request, Response};
use frame::{Fault, Frame, HEADER_BYTES, code};
use hpack::Decoder;
use send::client_preface;
use std::sync::Arc;
use streams::{Outgoing, Stream, Streams};

/// Size in bytes of the receive windows of the connection and of each stream.
const RECEIVE_WINDOW: u32 = 1 << 30;
/// Initial size in bytes of every window (§6.9.2).
const FIRST_WINDOW: u32 = 65_535;
/// Maximum size of a window in bytes (§6.9.1).
const MAX_WINDOW: i64 = 0x7fff_ffff;
/// Number of streams that may be opened before the server has announced its limit.
const FIRST_STREAMS: u32 = 1;
/// Maximum number of bytes of a GOAWAY frame's debug data (§6.8) that are passed to the observer.
pub const MAX_DEBUG_TEXT: usize = 200;
/// The error code of a RST_STREAM frame after which the request may be sent again, because the server did not process
/// the request (§8.7).
pub const REFUSED_STREAM: u32 = code::REFUSED_STREAM;
/// Maximum number of consecutive frames that do not advance a response.
pub const MAX_IDLE_FRAMES: u32 = 10_000;
/// Maximum number of CONTINUATION frames of one header block.
const MAX_CONTINUATIONS: u32 = 64;

/// Receives the responses that [`Http2::feed`] parses. `T` is the type of the value that the caller stored with a
/// stream.
pub trait StreamObserver<T> {
    /// Called when bytes of the response on a stream have been received. `bytes` includes frame headers.
    fn received(&mut self, value: &mut T, bytes: u64);

    /// Whether [`StreamObserver::head`] should be called. If false, heads are not converted to text.
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
    /// Number of bytes consumed. The caller must feed the remaining bytes again.
    pub consumed: usize,
    /// A stream that has ended. If `None`, all bytes were consumed.
    pub closed: Option<(ClosedStream<T>, StreamEnd)>,
}

/// A stream that has ended.
#[derive(Debug, PartialEq, Eq)]
pub struct ClosedStream<T> {
    /// The value that the caller stored with the stream.
    pub value: T,
    /// Offset of the request's first byte among all bytes that this connection sends.
    pub position: u64,
    /// Number of bytes of the stream's request sent so far, including frame headers.
    pub written_bytes: u64,
}

/// A piece of a request's body that the server would accept now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendableBody {
    /// Number of the stream that carries the request.
    pub stream: u32,
    /// Offset of the piece from the start of the body.
    pub offset: u64,
    /// Upper bound of the piece's length in bytes.
    pub bytes: usize,
}

/// How a stream has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamEnd {
    /// The response is complete.
    Complete(Response),
    /// The server reset the stream (RST_STREAM).
    Reset {
        /// The error code of the RST_STREAM frame.
        code: u32,
        /// Whether a part of the response had arrived.
        begun: bool,
    },
    /// The server is closing the connection, and has not processed the request (GOAWAY).
    GoneAway,
    /// The response is malformed. Other streams of the connection are not affected.
    Malformed(ParseError),
}

/// The client side of one HTTP/2 connection. A value `T` is stored with every stream.
#[derive(Debug)]
pub struct Http2<T> {
    streams: Streams<T>,
    input: Input,
    /// The header of the current frame, or the part of it that has arrived.
    header: [u8; HEADER_BYTES],
    /// The bytes received so far of a payload that is parsed only when it is complete.
    payload: Vec<u8>,
    block: Option<Block>,
    decoder: Decoder,
    /// The latest response head in the form of HTTP/1.
    text: Vec<u8>,
    out: Vec<u8>,
    /// Number of output bytes that the caller has accepted for sending.
    submitted_bytes: u64,
    /// Upper bound of the number of unsent bytes of replies to SETTINGS and PING frames.
    pending_reply_bytes: usize,
    peer: Peer,
    /// Send window of the connection: number of bytes of request bodies that the server accepts now, on all streams
    /// together.
    send_window: i64,
    /// Numbers of the streams whose bodies wait for a send window or for the caller's next piece.
    waiting: Vec<u32>,
    /// Number of bytes of DATA frames received since the last WINDOW_UPDATE of the connection.
    received_since_update: u32,
    idle_frames: u32,
    /// After GOAWAY: the number of the last stream that the server processes.
    last_stream: Option<u32>,
    /// Whether some open streams might have numbers above `last_stream`, so that the server does not process them.
    has_unprocessed: bool,
    failed: Option<ParseError>,
}

/// The part of a frame that is read next.
#[derive(Clone, Copy, Debug)]
enum Input {
    /// The header of a frame, of which this number of bytes has arrived.
    Header(usize),
    /// A payload that is parsed only when it is complete.
    Whole(Frame),
    /// The payload of a DATA frame. `left` is the number of bytes that have not arrived. `padding` is the length of the
    /// padding at the end of the payload; `None` until its length byte has arrived.
    Data { frame: Frame, left: usize, padding: Option<usize> },
}

/// The first part of a header block that continues in the next frame.
#[derive(Debug)]
struct Block {
    stream: u32,
    ends: bool,
    bytes: Vec<u8>,
    continuations: u32,
}

/// The settings that the server has announced, or their defaults.
#[derive(Debug)]
struct Peer {
    /// Whether the server's SETTINGS frame has arrived.
    known: bool,
    /// Maximum number of streams that may be open at once.
    max_streams: u32,
    /// Whether `max_streams` is the server's limit on an earlier connection.
    assumed: bool,
    /// Initial send window of a stream, in bytes.
    window: i64,
    /// Whether the next header block must begin with a table size update. This client does not use the table, but it
    /// must acknowledge a limit below the default.
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
            header: [0; HEADER_BYTES],
            payload: Vec::new(),
            block: None,
            decoder: Decoder::default(),
            text: Vec::new(),
            out: client_preface(),
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
            received_since_update: 0,
            idle_frames: 0,
            last_stream: None,
            has_unprocessed: false,
            failed: None,
        }
    }

    /// Number of open streams.
    pub fn streams(&self) -> usize {
        self.streams.len()
    }

    /// The server's limit on open streams. `None` until the server's settings have arrived.
    pub fn max_streams(&self) -> Option<u32> {
        self.peer.known.then_some(self.peer.max_streams)
    }

    /// The server's limit on open streams, or its limit on an earlier connection. `None` if both are unknown.
    pub fn assumed_max_streams(&self) -> Option<u32> {
        (self.peer.known || self.peer.assumed).then_some(self.peer.max_streams)
    }

    /// Sets the limit on open streams of an earlier connection to this server. It is used until the server's settings
    /// have arrived.
    pub fn assume_max_streams(&mut self, max_streams: u32) {
        if !self.peer.known {
            self.peer.max_streams = max_streams;
            self.peer.assumed = true;
        }
    }

    /// Whether no more streams can be opened: after GOAWAY, after an error, or when stream numbers are exhausted.
    pub fn refuses_new_streams(&self) -> bool {
        self.last_stream.is_some() || self.failed.is_some() || !self.streams.has_free_numbers()
    }

    /// Whether a stream can be opened now.
    pub fn can_open_stream(&self) -> bool {
        self.streams() < self.peer.max_streams as usize && !self.refuses_new_streams()
    }

    /// The value stored with a stream; `None` if the stream is not open.
    pub fn get(&self, stream: u32) -> Option<&T> {
        self.streams.get(stream).map(|stream| &stream.value)
    }

    /// The value stored with a stream, to be modified; `None` if the stream is not open.
    pub fn get_mut(&mut self, stream: u32) -> Option<&mut T> {
        self.streams.get_mut(stream).map(|stream| &mut stream.value)
    }

    /// Sends an HTTP/2 request on a new stream. Returns the stream's number. The caller must have checked
    /// [`Http2::can_open_stream`].
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
            received_since_update: 0,
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

    /// Cancels a stream by RST_STREAM and removes it. Returns `None` if the stream is not open.
    pub fn cancel(&mut self, stream: u32) -> Option<ClosedStream<T>> {
        let stream = self.streams.remove(stream)?;
        self.write_reset(stream.id, code::CANCEL);
        Some(closed_stream(stream))
    }

    /// Sends GOAWAY, because this client is about to close the connection.
    pub fn send_goaway(&mut self) {
        self.write_goaway(code::NO_ERROR);
        self.last_stream.get_or_insert(u32::MAX);
    }

    /// Removes all streams of a closed connection, and returns them in the order of their numbers.
    pub fn take_streams(&mut self) -> impl Iterator<Item = ClosedStream<T>> + use<T> {
        self.streams.take_streams().into_iter().map(closed_stream)
    }

    /// Whether there is output to send.
    pub fn has_output(&self) -> bool {
        !self.out.is_empty()
    }

    /// The output: the bytes to send on the connection.
    pub fn output(&self) -> &[u8] {
        &self.out
    }

    /// Discards the output after the caller has accepted it for sending.
    pub fn clear_output(&mut self) {
        /// Capacity in bytes up to which the empty output buffer is kept.
        const MAX_IDLE_CAPACITY: usize = 16 * 1024;
        self.submitted_bytes += self.out.len() as u64;
        self.out.clear();
        self.out.shrink_to(MAX_IDLE_CAPACITY);
    }

    /// Total number of output bytes that the caller has accepted for sending.
    pub fn submitted_bytes(&self) -> u64 {
        self.submitted_bytes
    }

    /// Number of bytes of replies to the server's SETTINGS and PING frames since [`Http2::clear_pending_replies`].
    pub fn pending_reply_bytes(&self) -> usize {
        self.pending_reply_bytes
    }

    /// Sets [`Http2::pending_reply_bytes`] to 0, because all output has been sent.
    pub fn clear_pending_replies(&mut self) {
        self.pending_reply_bytes = 0;
    }

    /// Consumes received bytes until all are consumed or a stream has ended.
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
            if let Some(stream) = self.take_unprocessed() {
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

/// A stream that has ended, and how; `None` if no stream has ended.
type Closed<T> = Option<(ClosedStream<T>, StreamEnd)>;

fn closed_stream<T>(stream: Stream<T>) -> ClosedStream<T> {
    ClosedStream { value: stream.value, position: stream.position, written_bytes: stream.written_bytes }
}

#[cfg(test)]
mod tests;
