//! Errors in the bytes that a server sends. The reasons are static strings, so that creating an error does not
//! allocate.

/// The reason why the received bytes are not a response.
#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq, Eq)]
pub enum ParseError {
    /// The bytes do not begin like an HTTP/1 response.
    #[error(
        "what the server sent is not HTTP/1: check the URL's scheme and port, for a TLS port does not speak plain HTTP"
    )]
    NotHttp,
    /// The server's first frame is not a SETTINGS frame, which HTTP/2 requires.
    #[error(
        "what the server sent is not HTTP/2: enable HTTP/2 at the server (for http:// URLs, HTTP/2 without TLS), or \
         leave out --http 2"
    )]
    NotHttp2,
    /// The server violates the HTTP/2 protocol, so the whole connection is unusable.
    #[error("the server violates HTTP/2, {0}: see what it sends with `nghttp --verbose`")]
    BadFrame(&'static str),
    /// The response on one HTTP/2 stream is malformed.
    #[error("an HTTP/2 response is malformed, {0}: see what the server sends with `nghttp --verbose`")]
    BadResponse(&'static str),
    /// The server sends too many frames that do not advance a response.
    #[error("the server floods the HTTP/2 connection with {0}: look for the reason in its error log")]
    Flood(&'static str),
    /// The head of a response violates the grammar.
    #[error("the response head is malformed, {0}: see what the server sends with `curl --include`")]
    BadHead(&'static str),
    /// The head is longer than [`MAX_HEAD_BYTES`](crate::MAX_HEAD_BYTES) or has more than
    /// [`MAX_FIELDS`](crate::MAX_FIELDS) fields.
    #[error("the response head exceeds 64 KiB or 256 fields: make the server send fewer or shorter ones")]
    HeadTooLarge,
    /// The Content-Length is not a number, does not fit 64 bits, or occurs twice with different values.
    #[error("the response's Content-Length is not one number: correct it at the server or at the proxy in front of it")]
    BadContentLength,
    /// The chunked coding violates the grammar.
    #[error("a chunk of the response is malformed, {0}: see what the server sends with `curl --raw --include`")]
    BadChunk(&'static str),
    /// The connection ended before the response was complete.
    #[error("the connection ended {received} bytes into the response: look for the reason in the server's error log")]
    Truncated {
        /// Number of bytes of the response that had arrived, including heads; 0 if the response had not begun.
        received: u64,
    },
}
