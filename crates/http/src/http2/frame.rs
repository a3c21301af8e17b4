//! The frames of HTTP/2 (RFC 9113 §4.1 and §6).

use crate::ParseError;

/// Length of a frame header in bytes.
pub(super) const HEADER_BYTES: usize = 9;
/// Maximum length in bytes of the payloads that are sent or accepted. It is the default of the protocol (§4.2).
pub(super) const MAX_PAYLOAD: usize = 16_384;
/// The first bytes that a client sends (§3.4).
pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Frame types.
pub(super) mod kind {
    pub(crate) const DATA: u8 = 0;
    pub(crate) const HEADERS: u8 = 1;
    pub(crate) const RST_STREAM: u8 = 3;
    pub(crate) const SETTINGS: u8 = 4;
    pub(crate) const PUSH_PROMISE: u8 = 5;
    pub(crate) const PING: u8 = 6;
    pub(crate) const GOAWAY: u8 = 7;
    pub(crate) const WINDOW_UPDATE: u8 = 8;
    pub(crate) const CONTINUATION: u8 = 9;
}

/// Frame flags.
pub(super) mod flag {
    pub(crate) const END_STREAM: u8 = 0x01;
    pub(crate) const ACK: u8 = 0x01;
    pub(crate) const END_HEADERS: u8 = 0x04;
    pub(crate) const PADDED: u8 = 0x08;
    pub(crate) const PRIORITY: u8 = 0x20;
}

/// Identifiers of settings (§6.5.2).
pub(super) mod setting {
    pub(crate) const HEADER_TABLE_SIZE: u16 = 1;
    pub(crate) const ENABLE_PUSH: u16 = 2;
    pub(crate) const MAX_CONCURRENT_STREAMS: u16 = 3;
    pub(crate) const INITIAL_WINDOW_SIZE: u16 = 4;
    pub(crate) const MAX_FRAME_SIZE: u16 = 5;
    pub(crate) const MAX_HEADER_LIST_SIZE: u16 = 6;
}

/// Error codes (§7).
pub(super) mod code {
    pub(crate) const NO_ERROR: u32 = 0;
    pub(crate) const PROTOCOL_ERROR: u32 = 1;
    pub(crate) const FLOW_CONTROL_ERROR: u32 = 3;
    pub(crate) const FRAME_SIZE_ERROR: u32 = 6;
    pub(crate) const REFUSED_STREAM: u32 = 7;
    pub(crate) const CANCEL: u32 = 8;
    pub(crate) const COMPRESSION_ERROR: u32 = 9;
    pub(crate) const ENHANCE_YOUR_CALM: u32 = 11;
}

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    /// Length of the payload in bytes.
    pub(super) length: usize,
    /// The frame type, as in [`kind`].
    pub(super) kind: u8,
    /// The frame flags, as in [`flag`].
    pub(super) flags: u8,
    /// Number of the stream; 0 for the connection.
    pub(super) stream: u32,
}

impl Frame {
    /// Parses a frame header.
    pub(super) fn parse(bytes: [u8; HEADER_BYTES]) -> Frame {
        let [a, b, c, kind, flags, s, t, u, v] = bytes;
        Frame {
            length: u32::from_be_bytes([0, a, b, c]) as usize,
            kind,
            flags,
            // The first bit is reserved and must be ignored.
            stream: u32::from_be_bytes([s, t, u, v]) & 0x7fff_ffff,
        }
    }

    /// Whether the frame has this flag.
    pub(super) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Appends the frame's header to `out`. The caller must append the payload.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&(self.length as u32).to_be_bytes()[1..]);
        out.extend_from_slice(&[self.kind, self.flags]);
        out.extend_from_slice(&self.stream.to_be_bytes());
    }
}

/// Appends a frame with a short payload, as most frames other than HEADERS and DATA have.
pub(super) fn write_short(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    Frame { length: payload.len(), kind, flags, stream }.write(out);
    out.extend_from_slice(payload);
}

/// Parses the first four bytes of a payload as a big-endian number; `None` if there are fewer bytes.
pub(super) fn leading_u32(payload: &[u8]) -> Option<u32> {
    payload.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
}

/// An error that makes the connection unusable: `code` is sent to the server, `error` is returned to the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// The error code, as in [`code`].
    pub(super) code: u32,
    /// The reason, for the caller.
    pub(super) error: ParseError,
}

/// The fault of a peer that violates the protocol. `why` describes the violation for the user.
pub(super) fn protocol_violation(why: &'static str) -> Fault {
    Fault { code: code::PROTOCOL_ERROR, error: ParseError::BadFrame(why) }
}

/// The fault of a frame whose length is not valid for its type.
pub(super) fn bad_length() -> Fault {
    Fault { code: code::FRAME_SIZE_ERROR, error: ParseError::BadFrame("the length of a frame is not valid") }
}

/// The fault of a peer that sends too many useless frames. `what` names these frames for the user.
pub(super) fn flood(what: &'static str) -> Fault {
    Fault { code: code::ENHANCE_YOUR_CALM, error: ParseError::Flood(what) }
}

/// Returns the payload without its padding and priority fields (§6.1, §6.2).
pub(super) fn unpadded<'b>(frame: &Frame, payload: &'b [u8]) -> Result<&'b [u8], Fault> {
    let mut rest = payload;
    let mut padding = 0;
    if frame.has(flag::PADDED) {
        let (&length, tail) = rest.split_first().ok_or_else(bad_length)?;
        padding = usize::from(length);
        rest = tail;
    }
    if frame.kind == kind::HEADERS && frame.has(flag::PRIORITY) {
        rest = rest.get(5..).ok_or_else(bad_length)?;
    }
    let length = rest
        .len()
        .checked_sub(padding)
        .ok_or_else(|| protocol_violation("the padding of a frame is longer than the frame"))?;
    Ok(&rest[..length])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_round_trip() {
        let frame = Frame { length: 0x01_02_03, kind: 7, flags: 0x25, stream: 0x7fff_fffe };
        let mut bytes = Vec::new();
        frame.write(&mut bytes);
        let mut header: [u8; HEADER_BYTES] = bytes.try_into().unwrap();
        assert_eq!(Frame::parse(header), frame);
        header[5] |= 0x80;
        assert_eq!(Frame::parse(header), frame, "the reserved bit is ignored");
    }

    #[test]
    fn padding_is_removed() {
        let frame = |flags| Frame { length: 0, kind: kind::HEADERS, flags, stream: 1 };
        let padded = frame(flag::PADDED);
        assert_eq!(unpadded(&frame(0), b"\x02ab"), Ok(&b"\x02ab"[..]));
        assert_eq!(unpadded(&padded, b"\x02ab\0\0"), Ok(&b"ab"[..]));
        assert_eq!(unpadded(&padded, b"\x02\0\0"), Ok(&b""[..]));
        assert_eq!(unpadded(&frame(flag::PRIORITY), b"\0\0\0\x01\x10ab"), Ok(&b"ab"[..]));
        assert_eq!(unpadded(&frame(flag::PRIORITY | flag::PADDED), b"\x01\0\0\0\x01\x10ab\0"), Ok(&b"ab"[..]));
        assert!(unpadded(&padded, b"").is_err() && unpadded(&padded, b"\x03ab").is_err());
        assert!(unpadded(&frame(flag::PRIORITY), b"\0\0\0\0").is_err());
    }
}
