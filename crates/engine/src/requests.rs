//! What is sent for each call: fixed requests, rendered before the run, or such as are rendered for one call.

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

/// Says what is sent for each call. One per shard, so that it may keep cookies or counters. Requests that many calls share are
/// rendered once and borrowed; whatever is rendered for one call alone is handed over.
pub trait Requests<'a> {
    /// The request of this call, about to be sent; its connection ends with it if it is the `last`.
    fn request(&mut self, call: &CallSpec, last: bool) -> Cow<'a, Request>;

    /// The file with the body of this call's request, where [`Request::streamed_bytes`] says that there is one. Such a
    /// request of HTTP/1 has its connection to itself: there is no pipeline.
    fn body(&mut self, _call: &CallSpec) -> Option<&'a BodyFile> {
        None
    }

    /// Bytes of the longest; [`usize::MAX`] where that is not known before.
    fn longest(&self) -> usize;

    /// Whether it looks at the heads of answers: those of HTTP/2 have to be written for it.
    fn reads_heads(&self) -> bool {
        true
    }

    /// What an answer to a call of this class has to be like; anything will do, as a rule.
    fn expected(&self, _class: ClassId) -> Option<&Expect> {
        None
    }

    /// The head of an answer to this call, informational ones included: where cookies come from. Says where it leads if it
    /// is a redirect and they are followed.
    fn read_head(&mut self, _call: &CallSpec, _head: &[u8]) -> Option<Redirect> {
        None
    }

    /// This call has ended, however, and will not be asked for again. Not every call has been.
    fn ended(&mut self, _call: &CallSpec) {}

    /// This session has ended, and its number may be another one's later.
    fn session_ended(&mut self, _session: SessionId) {}
}

/// What all requests of a run have in common.
#[derive(Clone, Debug)]
pub struct Wire {
    /// `Host`.
    pub authority: String,
    /// HTTP version.
    pub version: Version,
    /// Whether the scheme is `https`, which HTTP/2 says in every request.
    pub is_secure: bool,
    /// Header fields besides those of the class.
    pub headers: Vec<(String, String)>,
    /// Who closes: decides whether the last request on a connection asks the server to.
    pub close: Close,
}

impl Wire {
    /// A request with these header fields besides those that all have; its connection ends with it if it is the `last`.
    /// What of the path is not ASCII is percent-encoded.
    ///
    /// # Errors
    /// [`RequestError`] when it cannot be sent as HTTP.
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

    /// The same with a body of so many bytes that is sent behind it.
    ///
    /// # Errors
    /// [`RequestError`] when it cannot be sent as HTTP.
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

/// A path in ASCII. The places of a template keep the names of their columns.
fn encode_path(path: &str) -> Cow<'_, str> {
    match is_template(path) {
        true => url::encode_target(path),
        false => url::encode_non_ascii(path),
    }
}
