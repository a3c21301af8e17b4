//! Request bodies that are sent after their heads: bodies that wait until the server requests them (`Expect:
//! 100-continue`; RFC 9110 §10.1.1), and bodies that are read from files while they are sent.
//!
//! Invariants: each connection holds at most two pieces of a file that the kernel has not accepted yet, whatever the
//! file's size. An HTTP/1 connection carries no second call while a body is being sent, because the second request
//! would come between the pieces. If a server responds before it has received the whole body, the rest is not sent.
//! With HTTP/1, the connection is then closed, because the server would take the next request for the rest of the body.
//! With HTTP/2, the connection stays open, and only the stream is reset.

use crate::EngineError;
use crate::body_file::{BodyFile, PIECE_BYTES};
use crate::connections::Connections;
use crate::deadlines::{Deadlines, TimerKey};
use brimful_core::Nanos;
use std::borrow::Cow;
use std::collections::HashMap;

/// A body is sent this long after its head even if the server has not requested it: the server may not support
/// `Expect: 100-continue`.
const CONTINUE_TIMEOUT: Nanos = Nanos::from_secs(1);

/// The bodies of a shard that have not been sent completely.
#[derive(Debug)]
pub struct UnsentBodies<'a> {
    /// The bodies of HTTP/1 calls, indexed by the slot of their connection.
    by_slot: HashMap<u32, Body<'a>>,
    /// The deadlines of bodies that wait for the server to request them.
    continues: Deadlines,
    /// Calls whose bodies could not be read.
    unreadable: Vec<TimerKey>,
    /// The error that occurred when the first of the unreadable bodies was read.
    error: Option<EngineError>,
}

#[derive(Debug)]
struct Body<'a> {
    rest: UnsentBody<'a>,
    /// Stamp of the call that the body belongs to; see [`Call::stamp`](crate::call::Call::stamp).
    stamp: u32,
    /// Whether the body waits for the server to request it.
    waits: bool,
}

/// The part of a body that has not been sent.
#[derive(Debug)]
pub enum UnsentBody<'a> {
    Bytes(Cow<'a, [u8]>),
    File { file: &'a BodyFile, offset: u64 },
}

/// The next part of a body to send.
#[derive(Debug)]
pub struct BodyChunk<'a> {
    /// The bytes to send.
    pub bytes: Cow<'a, [u8]>,
    /// Whether this is the last part of the body.
    pub is_last: bool,
    /// Whether the bytes were read from a file.
    pub is_from_file: bool,
}

impl<'a> UnsentBodies<'a> {
    /// Creates an empty set of bodies.
    pub fn new() -> UnsentBodies<'a> {
        let continues = Deadlines::new(CONTINUE_TIMEOUT);
        UnsentBodies { by_slot: HashMap::new(), continues, unreadable: Vec::new(), error: None }
    }

    /// HTTP/1: adds a body that is sent after its head. No other call is under way on the connection.
    pub fn insert(&mut self, call: TimerKey, rest: UnsentBody<'a>, waits: bool) {
        self.by_slot.insert(call.slot, Body { rest, stamp: call.stamp, waits });
    }

    /// Starts the timeout of a body that waits for the server to request it.
    pub fn start_continue_timeout(&mut self, now: Nanos, call: TimerKey) {
        self.continues.arm(now, call);
    }

    /// HTTP/1: allows the body on this connection to be sent. Returns whether the body was waiting for the server's
    /// request.
    pub fn release(&mut self, slot: u32) -> bool {
        self.by_slot.get_mut(&slot).is_some_and(|body| std::mem::take(&mut body.waits))
    }

    /// Drops the body of a connection or call that ends. Returns whether part of the body had not been sent.
    #[inline]
    pub fn forget(&mut self, slot: u32) -> bool {
        !self.by_slot.is_empty() && self.by_slot.remove(&slot).is_some()
    }

    /// The earliest time at which a waiting body is sent although the server has not requested it.
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

    /// HTTP/1: the next piece of the body on this connection; `None` if the body waits or cannot be read.
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

    /// Removes and returns a call whose body the server has not requested in time.
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
        // The file is truncated during the run: the next piece cannot be read, and the error says why.
        bodies.insert(CALL, UnsentBody::File { file: &file, offset: PIECE_BYTES as u64 }, false);
        std::fs::write(&path, b"short").unwrap();
        assert!(bodies.next_chunk(7).is_none() && bodies.by_slot.is_empty());
        let error = bodies.take_error().unwrap().to_string();
        assert!(error.contains("shorter during the run") && bodies.unreadable.len() == 1, "{error}");
        std::fs::remove_file(&path).unwrap();
    }
}
