//! Handles the frames that are parsed only when their whole payload has arrived: all frames except DATA.

use super::frame::{
    self, Fault, Frame, HEADER_BYTES, bad_length, code, flag, kind, protocol_violation, setting, write_short,
};
use super::streams::Stream;
use super::{Block, Closed, Http2, MAX_DEBUG_TEXT, MAX_WINDOW, RecentBlock, StreamEnd, StreamObserver, closed_stream};
use crate::ParseError;

impl<T> Http2<T> {
    /// Handles a frame whose whole payload has arrived.
    pub(super) fn handle_frame(
        &mut self,
        recent: &mut RecentBlock,
        frame: &Frame,
        payload: &[u8],
        listener: &mut impl StreamObserver<T>,
    ) -> Result<Closed<T>, Fault> {
        self.report_received(frame, payload.len(), listener);
        match frame.kind {
            kind::HEADERS => {
                let (stream, ends) = (frame.stream, frame.has(flag::END_STREAM));
                let block = frame::unpadded(frame, payload)?;
                if frame.has(flag::END_HEADERS) {
                    return self.head(recent, stream, ends, block, listener);
                }
                self.block = Some(Block { stream, ends, bytes: block.to_vec(), continuations: 0 });
            }
            kind::CONTINUATION => return self.continuation(recent, frame, payload, listener),
            kind::RST_STREAM => {
                if payload.len() != 4 {
                    return Err(bad_length());
                }
                let code = frame::leading_u32(payload).unwrap_or_default();
                match self.streams.remove(frame.stream) {
                    Some(stream) => {
                        let begun = stream.head_bytes > 0;
                        return Ok(Some((closed_stream(stream), StreamEnd::Reset { code, begun })));
                    }
                    None => self.count_idle_frame("RST_STREAM frames")?,
                }
            }
            kind::SETTINGS => self.settings(frame, payload)?,
            kind::PING => {
                if payload.len() != 8 {
                    return Err(bad_length());
                }
                self.count_idle_frame("PING frames")?;
                if !frame.has(flag::ACK) {
                    write_short(&mut self.out, kind::PING, flag::ACK, 0, payload);
                    self.pending_reply_bytes += HEADER_BYTES + payload.len();
                }
            }
            kind::GOAWAY => {
                let last = frame::leading_u32(payload).filter(|_| payload.len() >= 8).ok_or_else(bad_length)?;
                self.count_idle_frame("GOAWAY frames")?;
                // A later GOAWAY must not increase the number of the last stream that the server processes.
                let last = last & 0x7fff_ffff;
                self.last_stream = Some(self.last_stream.map_or(last, |earlier| earlier.min(last)));
                self.has_unprocessed = true;
                let code = payload.get(4..).and_then(frame::leading_u32).unwrap_or_default();
                let text = payload.get(8..).unwrap_or_default();
                listener.goaway(code, &text[..text.len().min(MAX_DEBUG_TEXT)]);
            }
            kind::WINDOW_UPDATE => return self.window(frame, payload),
            _ => self.count_idle_frame("frames without effect")?,
        }
        Ok(None)
    }

    /// Removes and returns one of the open streams that the server does not process after its GOAWAY, if any.
    pub(super) fn take_unprocessed(&mut self) -> Option<Stream<T>> {
        if !self.has_unprocessed {
            return None;
        }
        let id = self.streams.first_above(self.last_stream?);
        self.has_unprocessed = id.is_some();
        self.streams.remove(id?)
    }

    fn settings(&mut self, frame: &Frame, payload: &[u8]) -> Result<(), Fault> {
        let entries = payload.chunks_exact(6);
        if !entries.remainder().is_empty() || frame.has(flag::ACK) && !payload.is_empty() {
            return Err(bad_length());
        }
        self.count_idle_frame("SETTINGS frames")?;
        if frame.has(flag::ACK) {
            return Ok(());
        }
        if !self.peer.known {
            self.peer.known = true;
            self.peer.max_streams = u32::MAX;
        }
        for entry in entries {
            if let [a, b, value @ ..] = entry
                && let Some(value) = frame::leading_u32(value)
            {
                self.setting(u16::from_be_bytes([*a, *b]), value)?;
            }
        }
        write_short(&mut self.out, kind::SETTINGS, flag::ACK, 0, &[]);
        self.pending_reply_bytes += HEADER_BYTES;
        self.write_waiting();
        Ok(())
    }

    fn setting(&mut self, name: u16, value: u32) -> Result<(), Fault> {
        match name {
            setting::HEADER_TABLE_SIZE => self.peer.shrink_table |= value < 4096 && !self.peer.table_is_shrunk,
            setting::ENABLE_PUSH if value != 0 => {
                return Err(protocol_violation("the server enables push, which only a client can"));
            }
            setting::MAX_CONCURRENT_STREAMS => self.peer.max_streams = value,
            setting::INITIAL_WINDOW_SIZE => {
                let window = i64::from(value);
                let difference = window - std::mem::replace(&mut self.peer.window, window);
                let mut largest = window;
                for stream in self.streams.iter_mut() {
                    stream.send_window += difference;
                    largest = largest.max(stream.send_window);
                }
                if largest > MAX_WINDOW {
                    return Err(bad_window_update());
                }
            }
            setting::MAX_FRAME_SIZE if !(16_384..=16_777_215).contains(&value) => {
                return Err(protocol_violation("it sets a frame size out of range"));
            }
            _ => {}
        }
        Ok(())
    }

    fn window(&mut self, frame: &Frame, payload: &[u8]) -> Result<Closed<T>, Fault> {
        let [_, _, _, _] = payload else { return Err(bad_length()) };
        let more = i64::from(frame::leading_u32(payload).unwrap_or_default() & 0x7fff_ffff);
        self.count_idle_frame("WINDOW_UPDATE frames")?;
        if frame.stream == 0 {
            self.send_window += more;
            if more == 0 || self.send_window > MAX_WINDOW {
                return Err(bad_window_update());
            }
        } else if let Some(stream) = self.streams.get_mut(frame.stream) {
            stream.send_window += more;
            if more == 0 || stream.send_window > MAX_WINDOW {
                return Ok(self.malformed(frame.stream, "its window is increased by 0 or beyond the limit"));
            }
        }
        self.write_waiting();
        Ok(None)
    }
}

fn bad_window_update() -> Fault {
    let error = ParseError::BadFrame("a window is increased by 0 or beyond the limit");
    Fault { code: code::FLOW_CONTROL_ERROR, error }
}
