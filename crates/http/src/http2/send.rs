//! What goes: header blocks, bodies as far as the windows let them, and what the server is told.

use super::frame::{self, Frame, HEADER, MAX_PAYLOAD, flag, kind, setting, write_short};
use super::streams::Outgoing;
use super::{FIRST_WINDOW, Http2, RECEIVE_WINDOW, Wanted};
use crate::MAX_HEAD_BYTES;
use std::sync::Arc;

impl<T> Http2<T> {
    /// Bytes there were to be sent so far.
    pub(super) fn position(&self) -> u64 {
        self.handed_over + self.out.len() as u64
    }

    pub(super) fn write_block(&mut self, id: u32, block: &[u8], ends: bool) {
        /// A table of no size (RFC 7541 §6.3).
        const SHRUNK: u8 = 0x20;
        let with_size;
        let mut rest = block;
        if std::mem::take(&mut self.peer.shrink_table) {
            self.peer.table_is_shrunk = true;
            with_size = [&[SHRUNK], block].concat();
            rest = &with_size;
        }
        self.out.reserve(HEADER + rest.len());
        let mut kind = kind::HEADERS;
        let mut flags = if ends { flag::END_STREAM } else { 0 };
        loop {
            let (piece, behind) = rest.split_at(rest.len().min(MAX_PAYLOAD));
            if behind.is_empty() {
                flags |= flag::END_HEADERS;
            }
            Frame { length: piece.len(), kind, flags, stream: id }.write(&mut self.out);
            self.out.extend_from_slice(piece);
            if behind.is_empty() {
                return;
            }
            (rest, kind, flags) = (behind, kind::CONTINUATION, 0);
        }
    }

    /// Writes as much of a body as the windows let, if it is here and does not wait for the server to ask.
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

    /// Of the streams whose bodies come in pieces, one of which the server would take more now.
    pub fn wanted(&self) -> Option<Wanted> {
        self.waiting.iter().find_map(|id| {
            let stream = self.streams.get(*id).filter(|stream| !stream.waits())?;
            let Some(Outgoing::Streamed { sent, left }) = stream.body else { return None };
            let bytes = self.window_of(*id).min(usize::try_from(left).unwrap_or(usize::MAX));
            (bytes > 0).then_some(Wanted { stream: *id, from: sent, bytes })
        })
    }

    /// The next piece of a stream's body, no longer than is wanted. Others have their turn before the one after it.
    pub fn supply(&mut self, id: u32, piece: &[u8]) {
        let Some(Outgoing::Streamed { sent, left }) = self.streams.get(id).and_then(|stream| stream.body.as_ref())
        else {
            return;
        };
        let (sent, left) = (sent + piece.len() as u64, left.saturating_sub(piece.len() as u64));
        self.waiting.retain(|other| *other != id);
        self.write_data(id, piece, left == 0);
        if left > 0 {
            self.keep(id, Outgoing::Streamed { sent, left });
        }
    }

    /// The body of this stream waits no longer for the server to ask for it.
    pub fn proceed(&mut self, id: u32) {
        if let Some(stream) = self.streams.get_mut(id).filter(|stream| stream.waits()) {
            stream.waits = false;
            self.write_body(id);
        }
    }

    /// Whether the body of this stream waits for the server to ask for it.
    pub fn waits(&self, id: u32) -> bool {
        self.streams.get(id).is_some_and(|stream| stream.waits())
    }

    /// How much of a stream's body the server would take now.
    fn window_of(&self, id: u32) -> usize {
        let window = self.streams.get(id).map_or(0, |stream| stream.send_window.min(self.send_window));
        usize::try_from(window).unwrap_or(0)
    }

    /// What is left of a body waits for a window, or for its next piece.
    fn keep(&mut self, id: u32, body: Outgoing) {
        if let Some(stream) = self.streams.get_mut(id) {
            stream.body = Some(body);
        }
        self.waiting.push(id);
        if self.waiting.len() > self.streams.len() {
            self.waiting.retain(|id| self.streams.get(*id).is_some());
        }
    }

    /// Writes a piece of a body, which the windows have room for; nothing is left of the body unless it is kept.
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
            stream.written += (self.out.len() - before) as u64;
            stream.body = None;
        }
        if self.out.len() > before {
            self.idle_frames = 0;
        }
    }

    /// Goes on with the bodies that have waited for a window.
    pub(super) fn write_waiting(&mut self) {
        for id in std::mem::take(&mut self.waiting) {
            self.write_body(id);
        }
    }

    pub(super) fn write_reset(&mut self, id: u32, code: u32) {
        write_short(&mut self.out, kind::RST_STREAM, 0, id, &code.to_be_bytes());
    }

    pub(super) fn write_goaway(&mut self, code: u32) {
        // The last stream of the server's that was looked at: there is none.
        write_short(&mut self.out, kind::GOAWAY, 0, 0, &u64::from(code).to_be_bytes());
    }
}

/// The preface, and what this side says of itself.
pub(super) fn first_words() -> Vec<u8> {
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
