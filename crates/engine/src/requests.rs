//! What is sent for each call: fixed requests, rendered before the run, or such as are rendered for one call.

use crate::{Close, EngineError};
use brimful_core::CallSpec;
use brimful_core::workload::{Class, Workload};
use brimful_http::{Request, RequestError, Version};
use std::borrow::Cow;

/// Says what is sent for each call. One per shard, so that it may keep cookies or counters. Requests that many calls share are
/// rendered once and borrowed; whatever is rendered for one call alone is handed over.
pub trait Requests<'a> {
    /// The request of this call, about to be sent; its connection ends with it if it is the `last`.
    fn request(&mut self, call: &CallSpec, last: bool) -> Cow<'a, Request>;

    /// Bytes of the longest; [`usize::MAX`] where that is not known before.
    fn longest(&self) -> usize;

    /// The head of an answer to this call, informational ones included: where cookies come from.
    fn answered(&mut self, _call: &CallSpec, _head: &[u8]) {}

    /// This call has ended, however, and will not be asked for again. Not every call has been.
    fn ended(&mut self, _call: &CallSpec) {}
}

/// Requests that do not change during a run, by [`RequestId`](brimful_core::RequestId).
#[derive(Clone, Debug)]
pub struct FixedRequests(Vec<Forms>);

/// One request, as it is sent on a connection that goes on and on one that ends with it.
#[derive(Clone, Debug)]
struct Forms {
    on_going: Request,
    last: Request,
}

impl FixedRequests {
    /// Renders all requests of a workload.
    ///
    /// # Errors
    /// [`EngineError::Request`] when method, path or headers cannot be sent as HTTP.
    pub fn render(workload: &Workload, wire: &Wire) -> Result<FixedRequests, EngineError> {
        let forms = workload.requests().map(|(class, path, _)| wire.render(&workload.classes[class], path));
        forms.collect::<Result<_, _>>().map(FixedRequests)
    }
}

impl<'a> Requests<'a> for &'a FixedRequests {
    fn request(&mut self, call: &CallSpec, last: bool) -> Cow<'a, Request> {
        let forms = &self.0[call.request.0 as usize];
        Cow::Borrowed(if last { &forms.last } else { &forms.on_going })
    }

    fn longest(&self) -> usize {
        self.0.iter().flat_map(|forms| [&forms.on_going, &forms.last]).map(|r| r.bytes().len()).max().unwrap_or(0)
    }
}

/// What all requests of a run have in common.
#[derive(Clone, Debug)]
pub struct Wire {
    /// `Host`.
    pub authority: String,
    /// HTTP version.
    pub version: Version,
    /// Header fields besides those of the class.
    pub headers: Vec<(String, String)>,
    /// Who closes: decides whether the last request on a connection asks the server to.
    pub close: Close,
}

impl Wire {
    fn render(&self, class: &Class, path: &str) -> Result<Forms, EngineError> {
        let headers: Vec<(String, String)> =
            class.headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        let render = |last: bool| {
            let failed = |source| EngineError::Request { class: class.name.clone(), source };
            self.request(&class.method, path, &headers, class.body.as_bytes(), last).map_err(failed)
        };
        Ok(Forms { on_going: render(false)?, last: render(true)? })
    }

    /// A request with these header fields besides those that all have; its connection ends with it if it is the `last`.
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
        let close = last && self.close == Close::Server;
        Request::new(method, &self.authority, path, &headers, body, self.version, close)
    }
}
