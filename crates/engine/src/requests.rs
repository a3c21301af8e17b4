//! The source of the requests that calls send. A request that many calls share is rendered before the run; any other is
//! rendered for its call.

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
    /// Returns the request of this call, which the engine sends next. `last` says that it is the last request on its
    /// connection.
    fn request(&mut self, call: &CallSpec, last: bool) -> Cow<'a, Request>;

    /// The file with the request's body, if [`Request::streamed_bytes`] is not 0. With HTTP/1, such a request is not
    /// pipelined: it is the only request under way on its connection.
    fn body(&mut self, _call: &CallSpec) -> Option<&'a BodyFile> {
        None
    }

    /// Length of the longest request in bytes; [`usize::MAX`] if the length is unknown.
    fn max_request_bytes(&self) -> usize;

    /// Whether [`Requests::read_head`] must be called. If so, the engine converts HTTP/2 heads to the form of HTTP/1
    /// for it.
    fn reads_heads(&self) -> bool {
        true
    }

    /// The status, length and content that a response to a call of this class must have; `None` if any response is
    /// valid.
    fn expected(&self, _class: ClassId) -> Option<&Expect> {
        None
    }

    /// Handles the head of a response to this call, even of an informational response: reads its cookies. Returns the
    /// redirect if the response is a redirect and redirects are followed.
    fn read_head(&mut self, _call: &CallSpec, _head: &[u8]) -> Option<Redirect> {
        None
    }

    /// Notifies that a call has ended, whether or not its request was sent. The engine does not request this call
    /// again.
    fn ended(&mut self, _call: &CallSpec) {}

    /// Notifies that a session has ended. A later session may reuse its number.
    fn session_ended(&mut self, _session: SessionId) {}
}
