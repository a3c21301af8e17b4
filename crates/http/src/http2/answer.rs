//! Handles the heads of responses, including informational heads and trailers, and the ends of responses.

use super::frame::{Fault, Frame, HEADER_BYTES, code, flag, flood};
use super::head;
use super::hpack::HpackError;
use super::{Closed, Http2, MAX_CONTINUATIONS, RecentBlock, StreamEnd, StreamObserver, closed_stream};
use crate::{MAX_HEAD_BYTES, ParseError, Response};

impl<T> Http2<T> {
    /// Handles a CONTINUATION frame: the next part of a header block.
    pub(super) fn continuation(
        &mut self,
        recent: &mut RecentBlock,
        frame: &Frame,
        payload: &[u8],
        listener: &mut impl StreamObserver<T>,
    ) -> Result<Closed<T>, Fault> {
        let Some(mut block) = self.block.take() else { return Ok(None) };
        block.bytes.extend_from_slice(payload);
        block.continuations += 1;
        if block.bytes.len() > MAX_HEAD_BYTES || block.continuations > MAX_CONTINUATIONS {
            return Err(flood("CONTINUATION frames"));
        }
        if frame.has(flag::END_HEADERS) {
            return self.head(recent, block.stream, block.ends, &block.bytes, listener);
        }
        self.block = Some(block);
        Ok(None)
    }

    /// Handles a whole header block: an informational head, a final head, or trailers.
    pub(super) fn head(
        &mut self,
        recent: &mut RecentBlock,
        id: u32,
        ends: bool,
        block: &[u8],
        listener: &mut impl StreamObserver<T>,
    ) -> Result<Closed<T>, Fault> {
        let text = listener.wants_heads().then_some(&mut self.text);
        let head = head::read(&mut self.decoder, recent, block, text).map_err(|error| match error {
            HpackError::Broken => Fault {
                code: code::COMPRESSION_ERROR,
                error: ParseError::BadFrame("a header block cannot be decompressed"),
            },
            HpackError::TooLarge => Fault { code: code::ENHANCE_YOUR_CALM, error: ParseError::HeadTooLarge },
        })?;
        let Some(stream) = self.streams.get_mut(id) else {
            self.count_idle_frame("heads of streams that have ended")?;
            return Ok(None);
        };
        stream.head_bytes += (HEADER_BYTES + block.len()) as u64;
        let wrong = match (head.status, stream.status) {
            _ if head.fault.is_some() => head.fault,
            (None, None) => Some("it has no status"),
            (Some(_), Some(_)) => Some("it has a second head"),
            (None, Some(_)) if !ends => Some("it continues after its trailers"),
            (Some(101), _) => Some("it switches protocols, which HTTP/2 does not allow"),
            (Some(100..=199), _) if ends => Some("it ends with an informational head"),
            _ => None,
        };
        if let Some(why) = wrong {
            return Ok(self.malformed(id, why));
        }
        if listener.wants_heads() {
            listener.head(&mut stream.value, &self.text);
        }
        if matches!(head.status, Some(100..=199)) {
            self.count_idle_frame("informational heads")?;
            if head.status == Some(100) {
                self.continue_body(id);
            }
            return Ok(None);
        }
        if head.status.is_some() {
            (stream.status, stream.content_length) = (head.status, head.content_length);
        }
        self.idle_frames = 0;
        Ok(if ends { self.finish(id) } else { None })
    }

    /// Ends a stream whose response is complete. If a part of the request has not been sent, the stream is also reset.
    pub(super) fn finish(&mut self, id: u32) -> Closed<T> {
        let stream = self.streams.remove(id)?;
        if stream.body.is_some() {
            self.write_reset(id, code::NO_ERROR);
        }
        let response = Response {
            status: stream.status.unwrap_or_default(),
            keep_alive: true,
            head_bytes: stream.head_bytes,
            body_bytes: stream.body_bytes,
        };
        let ended = stream.check_length().map_or_else(StreamEnd::Malformed, |()| StreamEnd::Complete(response));
        Some((closed_stream(stream), ended))
    }

    /// Ends a stream whose response is malformed. The connection's other streams continue.
    pub(super) fn malformed(&mut self, id: u32, why: &'static str) -> Closed<T> {
        let stream = self.streams.remove(id)?;
        self.write_reset(id, code::PROTOCOL_ERROR);
        Some((closed_stream(stream), StreamEnd::Malformed(ParseError::BadResponse(why))))
    }
}
