//! The settings that all requests of a run share, and the rendering of requests with them.

use crate::Close;
use brimful_core::template::is_template;
use brimful_core::url;
use brimful_http::{Request, RequestError, Version};
use std::borrow::Cow;

/// Settings that all requests of a run share.
#[derive(Clone, Debug)]
pub struct RequestSettings {
    /// Value of the `Host` header field, or of `:authority` in HTTP/2.
    pub authority: String,
    /// HTTP version.
    pub version: Version,
    /// Whether the scheme is `https`. Each HTTP/2 request contains the scheme.
    pub is_secure: bool,
    /// Header fields that every request contains in addition to those of its class.
    pub headers: Vec<(String, String)>,
    /// The side that closes connections. If it is the server, the last request on a connection has `Connection: close`.
    pub close: Close,
}

impl RequestSettings {
    /// Renders a request with these header fields and those of the settings. `last` says that it is the last request on
    /// its connection. Non-ASCII characters of the path are percent-encoded.
    ///
    /// # Errors
    /// [`RequestError`] if the request cannot be sent as HTTP.
    pub fn request(
        &self,
        method: &str,
        path: &str,
        headers: &[(String, String)],
        body: &[u8],
        last: bool,
    ) -> Result<Request, RequestError> {
        Ok(self.streamed(method, path, headers, body.len() as u64, last)?.with_body(body))
    }

    /// Like [`RequestSettings::request`], but for a body of `body_bytes` bytes that is sent separately.
    ///
    /// # Errors
    /// [`RequestError`] if the request cannot be sent as HTTP.
    pub fn streamed(
        &self,
        method: &str,
        path: &str,
        headers: &[(String, String)],
        body_bytes: u64,
        last: bool,
    ) -> Result<Request, RequestError> {
        let headers = [self.headers.as_slice(), headers].concat();
        let path = &*encode_path(path);
        if self.version == Version::Http2 {
            let scheme = if self.is_secure { "https" } else { "http" };
            return Request::http2_streamed(method, scheme, &self.authority, path, &headers, body_bytes);
        }
        let close = last && self.close == Close::Server;
        Request::streamed(method, &self.authority, path, &headers, body_bytes, self.version, close)
    }
}

/// Percent-encodes the non-ASCII characters of a path, except in the names of placeholders.
fn encode_path(path: &str) -> Cow<'_, str> {
    match is_template(path) {
        true => url::encode_target(path),
        false => url::encode_non_ascii(path),
    }
}
