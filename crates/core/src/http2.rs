//! The HTTP/2 errors that a server sends, with their names from RFC 9113 (Thomson & Benfield 2022), §7.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The code that stands for all error codes without a name in RFC 9113.
pub const UNKNOWN_CODE: u32 = u32::MAX;

/// The frames that carry an error code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum Http2Frame {
    /// GOAWAY: the server ends the connection.
    #[serde(rename = "GOAWAY")]
    Goaway,
    /// RST_STREAM: the server resets a stream.
    #[serde(rename = "RST_STREAM")]
    RstStream,
}

/// The frames of one kind that a server sent with one error code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Http2Error {
    /// The kind of frame.
    pub frame: Http2Frame,
    /// The error code; 4294967295 stands for all codes that RFC 9113 does not name.
    pub code: u32,
    /// The name of the error code, like `ENHANCE_YOUR_CALM`.
    pub name: String,
    /// One of the texts that the server sent with this code, at most 200 bytes: the first in alphabetical order.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// The number of frames of this kind with this code.
    pub frames: u64,
}

/// Returns the code itself if RFC 9113 names it, otherwise [`UNKNOWN_CODE`].
pub fn known_code(code: u32) -> u32 {
    if error_name(code).is_some() { code } else { UNKNOWN_CODE }
}

/// The name of an error code, if RFC 9113 names it.
pub fn error_name(code: u32) -> Option<&'static str> {
    const NAMES: [&str; 14] = [
        "NO_ERROR",
        "PROTOCOL_ERROR",
        "INTERNAL_ERROR",
        "FLOW_CONTROL_ERROR",
        "SETTINGS_TIMEOUT",
        "STREAM_CLOSED",
        "FRAME_SIZE_ERROR",
        "REFUSED_STREAM",
        "CANCEL",
        "COMPRESSION_ERROR",
        "CONNECT_ERROR",
        "ENHANCE_YOUR_CALM",
        "INADEQUATE_SECURITY",
        "HTTP_1_1_REQUIRED",
    ];
    NAMES.get(usize::try_from(code).ok()?).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_their_names() {
        assert_eq!(
            [0, 7, 11, 13].map(error_name).map(Option::unwrap_or_default),
            ["NO_ERROR", "REFUSED_STREAM", "ENHANCE_YOUR_CALM", "HTTP_1_1_REQUIRED"]
        );
        assert_eq!((known_code(13), known_code(14), known_code(u32::MAX)), (13, UNKNOWN_CODE, UNKNOWN_CODE));
    }
}
