//! HTTP/2 errors that a server sends, with their names from RFC 9113 §7 (Thomson & Benfield 2022).

use crate::JsonSchema;
use serde::{Deserialize, Serialize};

/// The code under which all codes are counted that RFC 9113 does not name.
pub const UNKNOWN_CODE: u32 = u32::MAX;

/// The kinds of HTTP/2 frames that contain an error code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum Http2Frame {
    /// GOAWAY: the server ends the connection.
    #[serde(rename = "GOAWAY")]
    Goaway,
    /// RST_STREAM: the server resets a stream.
    #[serde(rename = "RST_STREAM")]
    RstStream,
}

/// Number of frames that a server sent with one error code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Http2Error {
    /// The kind of the frames that contained the error code.
    pub frame: Http2Frame,
    /// The error code; 4294967295 represents all codes that RFC 9113 does not name.
    pub code: u32,
    /// The name of the error code, like `ENHANCE_YOUR_CALM`.
    pub name: String,
    /// An example of the error texts that the server sent with this code, at most 200 bytes: the first in alphabetical
    /// order.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// The number of frames of this kind with this code.
    pub frames: u64,
}

/// Returns `code` if RFC 9113 names it, otherwise [`UNKNOWN_CODE`].
pub fn code_or_unknown(code: u32) -> u32 {
    if error_name(code).is_some() { code } else { UNKNOWN_CODE }
}

/// Returns the name of an error code, or `None` if RFC 9113 does not name it.
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
        assert_eq!(
            (code_or_unknown(13), code_or_unknown(14), code_or_unknown(u32::MAX)),
            (13, UNKNOWN_CODE, UNKNOWN_CODE)
        );
    }
}
