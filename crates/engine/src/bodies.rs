//! Request bodies that are sent after their heads: bodies that wait until the server requests them (`Expect:
//! 100-continue`; RFC 9110 §10.1.1), and bodies that are read from files while they are sent.
//!
//! Invariants: of each connection, at most two pieces of 64 KiB of a file are in memory, whatever the file's size. An
//! HTTP/1 connection carries no second call while a body is being sent, because the second request would come between
//! the pieces. If a server responds before it has received the whole body, the rest is not sent. With HTTP/1, the
//! connection is then closed, because the server would take the next request for the rest of the body. With HTTP/2, the
//! connection stays open, and only the stream is reset.

use crate::EngineError;
use crate::body_file::{BodyFile, PIECE_BYTES};
use crate::connections::Connections;
use crate::deadlines::{Deadlines, TimerKey};
use brimful_core::Nanos;
use std::borrow::Cow;
use std::collections::HashMap;

/// Time after which a body is sent although the server has not requested it with `100 Continue`. The server may not
/// support `Expect: 100-continue`.
const CONTINUE_TIMEOUT: Nanos = Nanos::from_secs(1);

/// The request bodies of one shard that have not been sent completely.
#[derive(Debug)]
pub struct UnsentBodies<'a> {
    /// The bodies of HTTP/1 calls, indexed by the slot of their connection.
    by_slot: HashMap<u32, Body<'a>>,
    /// Times at which bodies are sent although the server has not requested them with `100 Continue`.
    continues: Deadlines,
    /// Calls whose bodies could not be read.
    unreadable: Vec<TimerKey>,
    /// The error of the first body that could not be read.
    error: Option<EngineError>,
}

#[derive(Debug)]
struct Body<'a> {
    rest: UnsentBody<'a>,
    /// A number that identifies the body's call; see [`Call::stamp`](crate::call::Call::stamp).
    stamp: u32,
    /// Whether the body is held back until the server sends `100 Continue`.
    waits: bool,
}

/// The part of a request body that has not been sent yet.
#[derive(Debug)]
pub enum UnsentBody<'a> {
    Bytes(Cow<'a, [u8]>),
    File { file: &'a BodyFile, offset: u64 },
}

/// The next bytes of a request body to send.
#[derive(Debug)]
pub struct BodyChunk<'a> {
    /// The bytes to send.
    pub bytes: Cow<'a, [u8]>,
    /// Whether the body ends with these bytes.
    pub is_last: bool,
    /// Whether the bytes were read from a file.
    pub is_from_file: bool,
}

impl<'a> UnsentBodies<'a> {
    /// Creates an empty collection of unsent bodies.
    pub fn new() -> UnsentBodies<'a> {
        let continues = Deadlines::new(CONTINUE_TIMEOUT);
        UnsentBodies { by_slot: HashMap::new(), continues, unreadable: Vec::new(), error: None }
    }

    /// HTTP/1: adds a body that is sent after its head. The connection must carry no other call.
    pub fn insert(&mut self, call: TimerKey, rest: UnsentBody<'a>, waits: bool) {
        self.by_slot.insert(call.slot, Body { rest, stamp: call.stamp, waits });
    }

    /// Starts the timeout of a body that waits for the server to request it.
    pub fn start_continue_timeout(&mut self, now: Nanos, call: TimerKey) {
        self.continues.arm(now, call);
    }

    /// HTTP/1: allows the body on the connection in this slot to be sent. Returns whether the body was waiting for `100
    /// Continue`.
    pub fn release(&mut self, slot: u32) -> bool {
        self.by_slot.get_mut(&slot).is_some_and(|body| std::mem::take(&mut body.waits))
    }

    /// Drops the body of an ended connection or call. Returns whether part of the body had not been sent.
    #[inline]
    pub fn forget(&mut self, slot: u32) -> bool {
        !self.by_slot.is_empty() && self.by_slot.remove(&slot).is_some()
    }

    /// The earliest time at which a body is sent although the server has not requested it.
    pub fn next_deadline(&self) -> Option<Nanos> {
        self.continues.next_deadline()
    }

    /// Records that the body of this call could not be read.
    #[cold]
    pub fn note_unreadable(&mut self, call: TimerKey, error: EngineError) {
        self.unreadable.push(call);
        self.error.get_or_insert(error);
    }

    /// Removes and returns a call whose body could not be read.
    pub fn pop_unreadable(&mut self) -> Option<TimerKey> {
        self.unreadable.pop()
    }

    /// Removes and returns the error of the first body that could not be read.
    pub fn take_error(&mut self) -> Option<EngineError> {
        self.error.take()
    }

    /// HTTP/1: the next bytes of the body on the connection in this slot. Returns `None` if the body waits for `100
    /// Continue` or cannot be read.
    pub fn next_chunk(&mut self, slot: u32) -> Option<BodyChunk<'a>> {
        if self.by_slot.get(&slot).is_none_or(|body| body.waits) {
            return None;
        }
        let Body { rest, stamp, .. } = self.by_slot.remove(&slot)?;
        let (file, offset) = match rest {
            UnsentBody::Bytes(bytes) => return Some(BodyChunk { bytes, is_last: true, is_from_file: false }),
            UnsentBody::File { file, offset } => (file, offset),
        };
        match file.read_piece(offset, PIECE_BYTES) {
            Ok(bytes) => {
                let offset = offset + bytes.len() as u64;
                let is_last = offset >= file.bytes();
                if !is_last {
                    self.by_slot.insert(slot, Body { rest: UnsentBody::File { file, offset }, stamp, waits: false });
                }
                Some(BodyChunk { bytes: bytes.into(), is_last, is_from_file: true })
            }
            Err(error) => {
                self.note_unreadable(TimerKey { slot, stamp, stream: 0 }, error);
                None
            }
        }
    }

    /// Removes and returns a call whose wait for `100 Continue` has timed out.
    pub fn pop_overdue<P>(&mut self, now: Nanos, connections: &Connections<P>) -> Option<TimerKey> {
        self.continues.next_deadline()?;
        let by_slot = &self.by_slot;
        let is_waiting = |call: TimerKey| match connections.get(call.slot).and_then(|open| open.protocol.http2()) {
            Some(http2) => {
                http2.awaits_continue(call.stream)
                    && http2.get(call.stream).is_some_and(|found| found.stamp == call.stamp)
            }
            None => by_slot.get(&call.slot).is_some_and(|body| body.waits && body.stamp == call.stamp),
        };
        self.continues.pop_expired(now, is_waiting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: TimerKey = TimerKey { slot: 7, stamp: 1, stream: 0 };

    #[test]
    fn a_file_is_sent_piece_by_piece() {
        let path = std::env::temp_dir().join(format!("brimful-body-{}", std::process::id()));
        let content: Vec<u8> = (0..2 * PIECE_BYTES + 10).map(|i| (i ^ i >> 8) as u8).collect();
        std::fs::write(&path, &content).unwrap();
        let file = BodyFile::open(&path).unwrap();
        assert_eq!(file.bytes(), content.len() as u64);
        let mut bodies = UnsentBodies::new();
        bodies.insert(CALL, UnsentBody::File { file: &file, offset: 0 }, false);
        let mut taken = Vec::new();
        while let Some(BodyChunk { bytes, is_last, .. }) = bodies.next_chunk(7) {
            assert!(bytes.len() <= PIECE_BYTES);
            taken.extend_from_slice(&bytes);
            assert_eq!(is_last, taken.len() == content.len());
        }
        assert_eq!(taken, content);
        assert!(bodies.by_slot.is_empty() && bodies.error.is_none());
        // The file becomes shorter during the run, so the next bytes cannot be read. Expects an error that says so.
        bodies.insert(CALL, UnsentBody::File { file: &file, offset: PIECE_BYTES as u64 }, false);
        std::fs::write(&path, b"short").unwrap();
        assert!(bodies.next_chunk(7).is_none() && bodies.by_slot.is_empty());
        let error = bodies.take_error().unwrap().to_string();
        assert!(error.contains("shorter during the run") && bodies.unreadable.len() == 1, "{error}");
        std::fs::remove_file(&path).unwrap();
    }
}
