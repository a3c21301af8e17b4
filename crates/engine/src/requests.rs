//! The requests of calls. A request is rendered before the run if many calls share it, otherwise for its call.

mod fixed;
mod settings;
mod template;

pub use fixed::FixedRequests;
pub use settings::RequestSettings;

use crate::Redirect;
use crate::body_file::BodyFile;
use brimful_core::workload::Expect;
use brimful_core::{CallSpec, ClassId, SessionId};
use brimful_http::Request;
use std::borrow::Cow;

/// Provides the request of each call. Each shard has its own provider, which may have state, such as cookies. A request
/// that many calls share is rendered once and borrowed; a request for one call is owned.
pub trait Requests<'a> {
    /// Returns the request of this call, which is sent next. If `last` is set, it is the last request on its
    /// connection.
    fn request(&mut self, call: &CallSpec, last: bool) -> Cow<'a, Request>;

    /// The file with the body of this call's request, if [`Request::streamed_bytes`] is not 0. With HTTP/1, such a
    /// request is not pipelined: it is the only request under way on its connection.
    fn body(&mut self, _call: &CallSpec) -> Option<&'a BodyFile> {
        None
    }

    /// Length of the longest request in bytes; [`usize::MAX`] if the length is unknown.
    fn max_request_bytes(&self) -> usize;

    /// Whether [`Requests::read_head`] does anything. If so, the engine converts HTTP/2 heads to the form of HTTP/1 for
    /// it.
    fn reads_heads(&self) -> bool {
        true
    }

    /// The properties that the workload requires of responses to calls of this class; `None` if it requires nothing.
    fn expected(&self, _class: ClassId) -> Option<&Expect> {
        None
    }

    /// Reads cookies from the head of a response to this call, even of an informational response. Returns the redirect
    /// if the response is a redirect and redirects are followed.
    fn read_head(&mut self, _call: &CallSpec, _head: &[u8]) -> Option<Redirect> {
        None
    }

    /// Notes that a call has ended, whether or not its request was sent. The engine does not call [`Requests::request`]
    /// for this call again.
    fn ended(&mut self, _call: &CallSpec) {}

    /// Notes that a session has ended. A later session may reuse its number.
    fn session_ended(&mut self, _session: SessionId) {}
}
