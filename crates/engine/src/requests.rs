//! The requests of calls. They are rendered before the run, or for one call during the run.

mod fixed;
mod template;

pub use fixed::FixedRequests;

use crate::Close;
use crate::Redirect;
use crate::body_file::BodyFile;
use brimful_core::template::is_template;
use brimful_core::url;
use brimful_core::workload::Expect;
use brimful_core::{CallSpec, ClassId, SessionId};
use brimful_http::{Request, RequestError, Version};
use std::borrow::Cow;

/// Provides the request of each call. Each shard has its own provider, which may hold cookies or counters. A request
/// that many calls share is rendered once and borrowed; a request for one call is owned.
pub trait Requests<'a> {
    /// The request of this call, which is sent next. With `last`, the connection ends after this request.
    fn request(&mut self, call: &CallSpec, last: bool) -> Cow<'a, Request>;

    /// The file with the body of this call's request, if [`Request::streamed_bytes`] is not 0. With HTTP/1, such a
    /// request is not pipelined: it is the only request under way on its connection.
    fn body(&mut self, _call: &CallSpec) -> Option<&'a BodyFile> {
        None
    }

    /// Length of the longest request in bytes; [`usize::MAX`] if the length is unknown.
    fn max_request_bytes(&self) -> usize;

    /// Whether [`Requests::read_head`] does anything. If so, HTTP/2 heads must be written out in the form of HTTP/1.
    fn reads_heads(&self) -> bool {
        true
    }

    /// The workload's expectations of responses to calls of this class; `None` for most classes.
    fn expected(&self, _class: ClassId) -> Option<&Expect> {
        None
    }

    /// Reads the cookies in the head of a response to this call; informational heads are included. Returns the redirect
    /// if the response is a redirect and redirects are followed.
    fn read_head(&mut self, _call: &CallSpec, _head: &[u8]) -> Option<Redirect> {
        None
    }

    /// Notes that a call has ended, whether its request was sent or not. The request will not be asked for again.
    fn ended(&mut self, _call: &CallSpec) {}

    /// Notes that a session has ended. A later session may reuse its number.
    fn session_ended(&mut self, _session: SessionId) {}
}

/// Settings that all requests of a run share.
#[derive(Clone, Debug)]
pub struct RequestSettings {
    /// Value of the `Host` field, or of `:authority` in HTTP/2.
    pub authority: String,
    /// HTTP version.
    pub version: Version,
    /// Whether the scheme is `https`, which each HTTP/2 request contains.
    pub is_secure: bool,
    /// Header fields in addition to the fields of the class.
    pub headers: Vec<(String, String)>,
    /// The side that closes connections. It determines whether the last request on a connection has `Connection:
    /// close`.
    pub close: Close,
}

impl RequestSettings {
    /// A request with these header fields in addition to the shared fields. With `last`, the connection ends after this
    /// request. Non-ASCII characters of the path are percent-encoded.
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
        let headers = [self.headers.as_slice(), headers].concat();
        let path = &*encode_path(path);
        if self.version == Version::Http2 {
            let scheme = if self.is_secure { "https" } else { "http" };
            return Request::http2(method, scheme, &self.authority, path, &headers, body);
        }
        let close = last && self.close == Close::Server;
        Request::new(method, &self.authority, path, &headers, body, self.version, close)
    }

    /// Like [`RequestSettings::request`], but the body, whose length in bytes is given, is sent separately.
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

/// Percent-encodes the non-ASCII characters of a path. The placeholders of a template keep their names.
fn encode_path(path: &str) -> Cow<'_, str> {
    match is_template(path) {
        true => url::encode_target(path),
        false => url::encode_non_ascii(path),
    }
}
