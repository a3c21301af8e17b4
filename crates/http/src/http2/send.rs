//! Sends header blocks, control frames, and bodies as far as the flow-control windows allow.

use super::frame::{self, Frame, HEADER_BYTES, MAX_PAYLOAD, flag, kind, setting, write_short};
use super::streams::Outgoing;
use super::{FIRST_WINDOW, Http2, RECEIVE_WINDOW, SendableBody};
use crate::MAX_HEAD_BYTES;
use std::sync::Arc;

impl<T> Http2<T> {
    /// Total number of output bytes so far, which is the offset of the next byte.
    pub(super) fn position(&self) -> u64 {
        self.submitted_bytes + self.out.len() as u64
    }

    /// Sends a header block. `ends` is true if no body follows.
    pub(super) fn write_block(&mut self, id: u32, block: &[u8], ends: bool) {
        /// A table size update to 0 (RFC 7541 §6.3).
        const TABLE_SIZE_0: u8 = 0x20;
        let block_with_update;
        let mut rest = block;
        if std::mem::take(&mut self.peer.shrink_table) {
            self.peer.table_is_shrunk = true;
            block_with_update = [&[TABLE_SIZE_0], block].concat();
            rest = &block_with_update;
        }
        self.out.reserve(HEADER_BYTES + rest.len());
        let mut kind = kind::HEADERS;
        let mut flags = if ends { flag::END_STREAM } else { 0 };
        loop {
            let (piece, tail) = rest.split_at(rest.len().min(MAX_PAYLOAD));
            if tail.is_empty() {
                flags |= flag::END_HEADERS;
            }
            Frame { length: piece.len(), kind, flags, stream: id }.write(&mut self.out);
            self.out.extend_from_slice(piece);
            if tail.is_empty() {
                return;
            }
            rest = tail;
            kind = kind::CONTINUATION;
            flags = 0;
        }
    }

    /// Sends as much of a stored body as the windows allow, unless the body waits for `100 Continue`. If the caller
    /// supplies the body in pieces, marks the stream as waiting for the next piece.
    pub(super) fn write_body(&mut self, id: u32) {
        let Some(stream) = self.streams.get(id).filter(|stream| !stream.waits()) else { return };
        match &stream.body {
            None => {}
            Some(Outgoing::Streamed { .. }) => self.waiting.push(id),
            Some(Outgoing::Held(body, from)) => {
                let (body, from) = (Arc::clone(body), *from);
                let window = self.window_of(id);
                let length = window.min(body.len() - from);
                self.write_data(id, &body[from..from + length], from + length == body.len());
                if from + length < body.len() {
                    self.keep(id, Outgoing::Held(body, from + length));
                }
            }
        }
    }

    /// The next piece of a body that the caller should supply and the server would accept now, if any.
    pub fn next_sendable_body(&self) -> Option<SendableBody> {
        self.waiting.iter().find_map(|id| {
            let stream = self.streams.get(*id).filter(|stream| !stream.waits())?;
            let Some(Outgoing::Streamed { sent, left }) = stream.body else { return None };
            let bytes = self.window_of(*id).min(usize::try_from(left).unwrap_or(usize::MAX));
            (bytes > 0).then_some(SendableBody { stream: *id, offset: sent, bytes })
        })
    }

    /// Sends the next piece of a body that the caller supplies. The piece must not be longer than
    /// [`Http2::next_sendable_body`] allows. Other waiting bodies are sent before the next piece of this body.
    pub fn add_body_bytes(&mut self, id: u32, piece: &[u8]) {
        let Some(Outgoing::Streamed { sent, left }) = self.streams.get(id).and_then(|stream| stream.body.as_ref())
        else {
            return;
        };
        let sent = sent + piece.len() as u64;
        let left = left.saturating_sub(piece.len() as u64);
        self.waiting.retain(|other| *other != id);
        self.write_data(id, piece, left == 0);
        if left > 0 {
            self.keep(id, Outgoing::Streamed { sent, left });
        }
    }

    /// Sends a body that has waited for `100 Continue`, whether or not the server has sent it.
    pub fn continue_body(&mut self, id: u32) {
        if let Some(stream) = self.streams.get_mut(id).filter(|stream| stream.waits()) {
            stream.waits = false;
            self.write_body(id);
        }
    }

    /// Whether the body on this stream waits for `100 Continue`.
    pub fn awaits_continue(&self, id: u32) -> bool {
        self.streams.get(id).is_some_and(|stream| stream.waits())
    }

    /// Number of bytes of the stream's body that the windows of stream and connection allow now.
    fn window_of(&self, id: u32) -> usize {
        let window = self.streams.get(id).map_or(0, |stream| stream.send_window.min(self.send_window));
        usize::try_from(window).unwrap_or(0)
    }

    /// Stores the rest of a body until a window allows more, or until the caller supplies the next piece.
    fn keep(&mut self, id: u32, body: Outgoing) {
        if let Some(stream) = self.streams.get_mut(id) {
            stream.body = Some(body);
        }
        self.waiting.push(id);
        if self.waiting.len() > self.streams.len() {
            self.waiting.retain(|id| self.streams.get(*id).is_some());
        }
    }

    /// Sends a piece of a body, which must fit into the windows. Drops the stored body: the caller must
    /// [`keep`](Self::keep) the rest.
    fn write_data(&mut self, id: u32, piece: &[u8], ends: bool) {
        let before = self.out.len();
        let frames = piece.len().div_ceil(MAX_PAYLOAD);
        for (nth, data) in piece.chunks(MAX_PAYLOAD).enumerate() {
            let flags = if ends && nth + 1 == frames { flag::END_STREAM } else { 0 };
            Frame { length: data.len(), kind: kind::DATA, flags, stream: id }.write(&mut self.out);
            self.out.extend_from_slice(data);
        }
        self.send_window -= piece.len() as i64;
        if let Some(stream) = self.streams.get_mut(id) {
            stream.send_window -= piece.len() as i64;
            stream.written_bytes += (self.out.len() - before) as u64;
            stream.body = None;
        }
        if self.out.len() > before {
            self.idle_frames = 0;
        }
    }

    /// Continues to send the bodies that wait for a window to open.
    pub(super) fn write_waiting(&mut self) {
        for id in std::mem::take(&mut self.waiting) {
            self.write_body(id);
        }
    }

    /// Sends RST_STREAM with this error code.
    pub(super) fn write_reset(&mut self, id: u32, code: u32) {
        write_short(&mut self.out, kind::RST_STREAM, 0, id, &code.to_be_bytes());
    }

    /// Sends GOAWAY with this error code.
    pub(super) fn write_goaway(&mut self, code: u32) {
        // The number of the last processed stream is 0, because the server opens no streams.
        write_short(&mut self.out, kind::GOAWAY, 0, 0, &u64::from(code).to_be_bytes());
    }
}

/// The connection preface and the settings of the client.
pub(super) fn client_preface() -> Vec<u8> {
    let mut out = frame::PREFACE.to_vec();
    let settings = [
        (setting::ENABLE_PUSH, 0),
        (setting::INITIAL_WINDOW_SIZE, RECEIVE_WINDOW),
        (setting::MAX_HEADER_LIST_SIZE, MAX_HEAD_BYTES as u32),
    ];
    Frame { length: 6 * settings.len(), kind: kind::SETTINGS, flags: 0, stream: 0 }.write(&mut out);
    for (name, value) in settings {
        out.extend_from_slice(&name.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
    write_short(&mut out, kind::WINDOW_UPDATE, 0, 0, &(RECEIVE_WINDOW - FIRST_WINDOW).to_be_bytes());
    out
}
