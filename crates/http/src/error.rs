//! What can be wrong with what a server sends. The reasons are fixed texts, so that an error is as cheap as a response.

/// Why what arrived is not a response.
#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq, Eq)]
pub enum ParseError {
    /// The first bytes are not those of an HTTP/1 response.
    #[error(
        "what the server sent is not HTTP/1: check the URL's scheme and port, for a TLS port does not speak plain HTTP"
    )]
    NotHttp,
    /// The first frame is not the one by which a server of HTTP/2 begins.
    #[error(
        "what the server sent is not HTTP/2: switch HTTP/2 on at the server, for connections without TLS as well where \
         there is none, or leave out --http 2"
    )]
    NotHttp2,
    /// The server breaks the protocol of an HTTP/2 connection.
    #[error("the server breaks HTTP/2, {0}: see what it sends with `nghttp --verbose`")]
    BadFrame(&'static str),
    /// What it sends on one stream of HTTP/2 is not an answer.
    #[error("an answer by HTTP/2 is malformed, {0}: see what the server sends with `nghttp --verbose`")]
    BadAnswer(&'static str),
    /// It sends without end what is of no use.
    #[error("the server floods the HTTP/2 connection with {0}: look for the reason in its error log")]
    Flood(&'static str),
    /// The head breaks the grammar.
    #[error("the response head is malformed, {0}: see what the server sends with `curl --include`")]
    BadHead(&'static str),
    /// The head is longer than [`MAX_HEAD_BYTES`](crate::MAX_HEAD_BYTES) or has more than
    /// [`MAX_FIELDS`](crate::MAX_FIELDS) fields.
    #[error("the response head exceeds 64 KiB or 256 fields: make the server send fewer or shorter ones")]
    HeadTooLarge,
    /// The length of the body is not a number, does not fit 64 bits, or is given twice and differently.
    #[error("the response's Content-Length is not one number: correct it at the server or at the proxy before it")]
    BadContentLength,
    /// The chunked coding breaks the grammar.
    #[error("a chunk of the response is malformed, {0}: see what the server sends with `curl --raw --include`")]
    BadChunk(&'static str),
    /// The connection ended before the response did.
    #[error("the connection ended {received} bytes into the response: look for the reason in the server's error log")]
    Truncated {
        /// Bytes of the response that had arrived, heads included; none if it had not begun.
        received: u64,
    },
}
