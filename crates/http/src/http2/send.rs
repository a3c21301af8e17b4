//! What goes: header blocks, bodies as far as the windows let them, and what the server is told.

use super::frame::{self, Frame, HEADER, MAX_PAYLOAD, flag, kind, setting, write_short};
use super::{FIRST_WINDOW, Http2, RECEIVE_WINDOW};
use crate::MAX_HEAD_BYTES;

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

    /// Writes as much of a body as the windows let.
    pub(super) fn write_body(&mut self, id: u32) {
        let Some(stream) = self.streams.get_mut(id) else { return };
        let Some((body, from)) = &mut stream.body else { return };
        let before = self.out.len();
        while *from < body.len() {
            let window = usize::try_from(stream.send_window.min(self.send_window)).unwrap_or(0);
            let length = (body.len() - *from).min(MAX_PAYLOAD).min(window);
            if length == 0 {
                break;
            }
            let flags = if *from + length == body.len() { flag::END_STREAM } else { 0 };
            Frame { length, kind: kind::DATA, flags, stream: id }.write(&mut self.out);
            self.out.extend_from_slice(&body[*from..*from + length]);
            *from += length;
            stream.send_window -= length as i64;
            self.send_window -= length as i64;
        }
        stream.written += (self.out.len() - before) as u64;
        if self.out.len() > before {
            self.idle_frames = 0;
        }
        if *from == body.len() {
            stream.body = None;
        } else {
            self.waiting.push(id);
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
