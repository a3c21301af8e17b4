//! HTTP/2 errors that the server sent. For each frame type (RST_STREAM or GOAWAY) and each error code, this module
//! keeps the number of frames and one of their debug texts.
//!
//! Memory is bounded, whatever a server sends. Error codes that the standard does not define are counted together. If
//! frames with one code have different texts, the alphabetically first text is kept. So merging is exact, associative
//! and commutative.

use crate::error::StatsError;
use crate::histogram::MAX_COUNT;
use brimful_core::Http2Frame;
use brimful_core::http2::{Http2Error, code_or_unknown, error_name};
use std::collections::BTreeMap;

/// Maximum length of a debug text, in bytes. A text has at most 200 bytes of a frame, and each of them may be replaced
/// by the three bytes of U+FFFD.
const MAX_TEXT: usize = 3 * 200;

/// The HTTP/2 errors that the server sent, by frame type and error code.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Http2Errors(BTreeMap<(Http2Frame, u32), FramesOfCode>);

/// The frames of one type with one error code: their number and one debug text.
#[derive(Clone, Debug, Default, PartialEq)]
struct FramesOfCode {
    frames: u64,
    text: String,
}

impl Http2Errors {
    /// Counts one frame. `text` is its debug data.
    pub(crate) fn note(&mut self, frame: Http2Frame, code: u32, text: &[u8]) {
        let text = String::from_utf8_lossy(text);
        self.add(frame, code, text.trim_matches(['\0', ' ', '\r', '\n']), 1);
    }

    fn add(&mut self, frame: Http2Frame, code: u32, text: &str, frames: u64) {
        let seen = self.0.entry((frame, code_or_unknown(code))).or_default();
        seen.frames += frames;
        if !text.is_empty() && (seen.text.is_empty() || text < seen.text.as_str()) {
            text.clone_into(&mut seen.text);
        }
    }

    /// Adds the errors of `other`.
    pub(crate) fn merge(&mut self, other: &Http2Errors) {
        for ((frame, code), seen) in &other.0 {
            self.add(*frame, *code, &seen.text, seen.frames);
        }
    }

    /// Removes all errors.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// The list of errors for a document.
    pub(crate) fn list(&self) -> Vec<Http2Error> {
        let listed = |((frame, code), seen): (&(Http2Frame, u32), &FramesOfCode)| Http2Error {
            frame: *frame,
            code: *code,
            name: error_name(*code).unwrap_or("unknown").to_owned(),
            text: seen.text.clone(),
            frames: seen.frames,
        };
        self.0.iter().map(listed).collect()
    }

    /// Adds the output of [`Http2Errors::list`].
    pub(crate) fn add_list(&mut self, errors: &[Http2Error]) -> Result<(), StatsError> {
        if errors.iter().any(|error| error.frames > MAX_COUNT || error.text.len() > MAX_TEXT) {
            return Err(StatsError::Damaged("more errors of HTTP/2, or longer ones, than any run has".to_owned()));
        }
        errors.iter().for_each(|error| self.add(error.frame, error.code, &error.text, error.frames));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_counted_by_code_and_survive_documents() {
        let mut errors = Http2Errors::default();
        errors.note(Http2Frame::Goaway, 11, b"too_many_pings\0");
        errors.note(Http2Frame::Goaway, 11, b"");
        errors.note(Http2Frame::Goaway, 11, b"a \xff");
        (100..200).for_each(|code| errors.note(Http2Frame::RstStream, code, b""));
        let list = errors.list();
        let said: Vec<_> = list.iter().map(|error| (error.name.as_str(), error.text.as_str(), error.frames)).collect();
        assert_eq!(said, [("ENHANCE_YOUR_CALM", "a \u{fffd}", 3), ("unknown", "", 100)]);
        let mut read = Http2Errors::default();
        read.add_list(&list).unwrap();
        assert_eq!(read, errors);
        read.merge(&errors);
        assert_eq!(read.list()[0].frames, 6);
        let long = Http2Error { text: "x".repeat(MAX_TEXT + 1), ..list[0].clone() };
        assert!(read.add_list(&[long]).is_err());
    }
}
