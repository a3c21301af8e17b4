//! Receives frames: splits the input into frames, checks which frames are allowed, and passes on the data of bodies
//! without storing it.

use super::frame::{
    Fault, Frame, HEADER_BYTES, MAX_PAYLOAD, bad_length, code, flag, flood, kind, protocol_violation, write_short,
};
use super::{Closed, Http2, Input, MAX_IDLE_FRAMES, RECEIVE_WINDOW, RecentBlock, StreamObserver};
use crate::ParseError;

impl<T> Http2<T> {
    /// Consumes some of `bytes` and returns the number of bytes consumed. `bytes` must not be empty.
    pub(super) fn step(
        &mut self,
        recent: &mut RecentBlock,
        bytes: &[u8],
        listener: &mut impl StreamObserver<T>,
    ) -> Result<(usize, Closed<T>), Fault> {
        match self.input {
            Input::Header(received) => {
                let n = bytes.len().min(HEADER_BYTES - received);
                self.header[received..received + n].copy_from_slice(&bytes[..n]);
                if received + n < HEADER_BYTES {
                    self.input = Input::Header(received + n);
                    return Ok((n, None));
                }
                self.input = Input::Header(0);
                let frame = Frame::parse(self.header);
                self.check(&frame)?;
                self.report_received(&frame, HEADER_BYTES, listener);
                if frame.kind == kind::DATA {
                    return Ok((n, self.begin_data(frame)?));
                }
                if let Some(payload) = bytes[n..].get(..frame.length) {
                    return Ok((n + frame.length, self.handle_frame(recent, &frame, payload, listener)?));
                }
                self.payload.clear();
                self.input = Input::Whole(frame);
                Ok((n, None))
            }
            Input::Whole(frame) => {
                let n = bytes.len().min(frame.length - self.payload.len());
                self.payload.extend_from_slice(&bytes[..n]);
                if self.payload.len() < frame.length {
                    return Ok((n, None));
                }
                self.input = Input::Header(0);
                let payload = std::mem::take(&mut self.payload);
                let closed = self.handle_frame(recent, &frame, &payload, listener)?;
                self.payload = payload;
                Ok((n, closed))
            }
            Input::Data { frame, left, padding } => {
                let n = bytes.len().min(left);
                Ok((n, self.data(frame, left, padding, &bytes[..n], listener)?))
            }
        }
    }

    /// Checks that the frame is allowed in the connection's current state, and on its stream.
    fn check(&self, frame: &Frame) -> Result<(), Fault> {
        if !self.peer.known && (frame.kind, frame.flags & flag::ACK, frame.stream) != (kind::SETTINGS, 0, 0) {
            return Err(Fault { code: code::PROTOCOL_ERROR, error: ParseError::NotHttp2 });
        }
        if frame.length > MAX_PAYLOAD {
            return Err(Fault {
                code: code::FRAME_SIZE_ERROR,
                error: ParseError::BadFrame("a frame is longer than 16 KiB"),
            });
        }
        let unfinished_block = self.block.as_ref().map(|block| block.stream);
        if unfinished_block != (frame.kind == kind::CONTINUATION).then_some(frame.stream) {
            return Err(protocol_violation("a header block is interrupted, or continued without a start"));
        }
        match frame.kind {
            kind::DATA | kind::HEADERS | kind::RST_STREAM | kind::CONTINUATION
                if !self.streams.was_opened(frame.stream) =>
            {
                Err(protocol_violation("a frame is for a stream that was never opened"))
            }
            kind::SETTINGS | kind::PING | kind::GOAWAY if frame.stream != 0 => {
                Err(protocol_violation("a frame about the connection is for a stream"))
            }
            kind::WINDOW_UPDATE if frame.stream != 0 && !self.streams.was_opened(frame.stream) => {
                Err(protocol_violation("a window update is for a stream that was never opened"))
            }
            kind::PUSH_PROMISE => Err(protocol_violation("the server pushes, although push is disabled")),
            _ => Ok(()),
        }
    }

    /// Reports `bytes` of a frame to the observer if the frame belongs to the response on an open stream.
    pub(super) fn report_received(&mut self, frame: &Frame, bytes: usize, listener: &mut impl StreamObserver<T>) {
        let is_answer = matches!(frame.kind, kind::DATA | kind::HEADERS | kind::CONTINUATION | kind::RST_STREAM);
        if is_answer && let Some(stream) = self.streams.get_mut(frame.stream) {
            listener.received(&mut stream.value, bytes as u64);
        }
    }

    /// Counts a frame that does not advance a response, named `what` in the error. Too many such frames are an error.
    pub(super) fn count_idle_frame(&mut self, what: &'static str) -> Result<(), Fault> {
        self.idle_frames += 1;
        if self.idle_frames > MAX_IDLE_FRAMES { Err(flood(what)) } else { Ok(()) }
    }

    /// Begins a DATA frame. Sends WINDOW_UPDATE for each receive window of which more than half is used.
    fn begin_data(&mut self, frame: Frame) -> Result<Closed<T>, Fault> {
        let exceeded = Fault { code: code::FLOW_CONTROL_ERROR, error: ParseError::BadFrame("a window was exceeded") };
        self.input = Input::Data { frame, left: frame.length, padding: (!frame.has(flag::PADDED)).then_some(0) };
        self.received_since_update += frame.length as u32;
        if self.received_since_update > RECEIVE_WINDOW / 2 {
            write_short(
                &mut self.out,
                kind::WINDOW_UPDATE,
                0,
                0,
                &std::mem::take(&mut self.received_since_update).to_be_bytes(),
            );
        }
        let Some(stream) = self.streams.get_mut(frame.stream) else {
            self.count_idle_frame("DATA of streams that have ended")?;
            return self.end_data(frame);
        };
        if stream.status.is_none() {
            let closed = self.malformed(frame.stream, "its body precedes its head");
            self.end_data(frame)?;
            return Ok(closed);
        }
        stream.receive_window = stream.receive_window.checked_sub(frame.length as u32).ok_or(exceeded)?;
        stream.received_since_update += frame.length as u32;
        if stream.received_since_update > RECEIVE_WINDOW / 2 && !frame.has(flag::END_STREAM) {
            let taken = std::mem::take(&mut stream.received_since_update);
            stream.receive_window += taken;
            write_short(&mut self.out, kind::WINDOW_UPDATE, 0, frame.stream, &taken.to_be_bytes());
        }
        if frame.length > 0 || frame.has(flag::END_STREAM) {
            self.idle_frames = 0;
        } else {
            self.count_idle_frame("empty DATA frames")?;
        }
        self.end_data(frame)
    }

    fn data(
        &mut self,
        frame: Frame,
        mut left: usize,
        padding: Option<usize>,
        bytes: &[u8],
        listener: &mut impl StreamObserver<T>,
    ) -> Result<Closed<T>, Fault> {
        self.report_received(&frame, bytes.len(), listener);
        let (padding, piece) = match (padding, bytes.split_first()) {
            (Some(padding), _) => (padding, bytes),
            (None, Some((&length, tail))) => {
                left -= 1;
                if usize::from(length) > left {
                    return Err(protocol_violation("the padding of a frame is longer than the frame"));
                }
                (usize::from(length), tail)
            }
            (None, None) => return Ok(None),
        };
        let data = &piece[..piece.len().min(left - padding.min(left))];
        if let Some(stream) = self.streams.get_mut(frame.stream) {
            stream.body_bytes += data.len() as u64;
            if !data.is_empty() {
                listener.body(&mut stream.value, data);
            }
        }
        left -= piece.len();
        self.input = Input::Data { frame, left, padding: Some(padding) };
        self.end_data(frame)
    }

    /// Ends a DATA frame if its whole payload has been consumed. This may also end the stream of the frame.
    pub(super) fn end_data(&mut self, frame: Frame) -> Result<Closed<T>, Fault> {
        match self.input {
            Input::Data { left: 0, padding: None, .. } => Err(bad_length()),
            Input::Data { left: 0, .. } => {
                self.input = Input::Header(0);
                Ok(if frame.has(flag::END_STREAM) { self.finish(frame.stream) } else { None })
            }
            _ => Ok(None),
        }
    }
}
