//! What is sent for each call: fixed requests, rendered before the run, or such as are rendered for one call.

use crate::bodies::BodyFile;
use crate::{Close, EngineError};
use brimful_core::CallSpec;
use brimful_core::workload::{Class, Workload};
use brimful_http::{Request, RequestError, Version};
use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

/// Says what is sent for each call. One per shard, so that it may keep cookies or counters. Requests that many calls share are
/// rendered once and borrowed; whatever is rendered for one call alone is handed over.
pub trait Requests<'a> {
    /// The request of this call, about to be sent; its connection ends with it if it is the `last`.
    fn request(&mut self, call: &CallSpec, last: bool) -> Cow<'a, Request>;

    /// The file with the body of this call's request, where [`Request::streamed_bytes`] says that there is one. Such a
    /// request has its connection to itself: there is no pipeline.
    fn body(&mut self, _call: &CallSpec) -> Option<&'a BodyFile> {
        None
    }

    /// Bytes of the longest; [`usize::MAX`] where that is not known before.
    fn longest(&self) -> usize;

    /// Whether it looks at the heads of answers: those of HTTP/2 have to be written for it.
    fn reads_heads(&self) -> bool {
        true
    }

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
    body: Option<Arc<BodyFile>>,
}

impl FixedRequests {
    /// Renders all requests of a workload.
    ///
    /// # Errors
    /// [`EngineError::Request`] when method, path or headers cannot be sent as HTTP, [`EngineError::BodyFile`] when the file
    /// with a body cannot be read.
    pub fn render(workload: &Workload, wire: &Wire) -> Result<FixedRequests, EngineError> {
        let open = |class: &Class| match class.body_file.as_str() {
            "" => Ok(None),
            path => BodyFile::open(Path::new(path)).map(|file| Some(Arc::new(file))),
        };
        let files = workload.classes.iter().map(open).collect::<Result<Vec<_>, _>>()?;
        let forms = workload.requests().map(|(class, path, _)| wire.render(&workload.classes[class], path, &files[class]));
        forms.collect::<Result<_, _>>().map(FixedRequests)
    }
}

impl<'a> Requests<'a> for &'a FixedRequests {
    fn request(&mut self, call: &CallSpec, last: bool) -> Cow<'a, Request> {
        let forms = &self.0[call.request.0 as usize];
        Cow::Borrowed(if last { &forms.last } else { &forms.on_going })
    }

    fn body(&mut self, call: &CallSpec) -> Option<&'a BodyFile> {
        self.0[call.request.0 as usize].body.as_deref()
    }

    fn reads_heads(&self) -> bool {
        false
    }

    fn longest(&self) -> usize {
        let bytes = |request: &Request| request.bytes().len().saturating_add(request.streamed_bytes() as usize);
        self.0.iter().flat_map(|forms| [&forms.on_going, &forms.last]).map(bytes).max().unwrap_or(0)
    }
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
    fn render(&self, class: &Class, path: &str, file: &Option<Arc<BodyFile>>) -> Result<Forms, EngineError> {
        let headers: Vec<(String, String)> =
            class.headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        let render = |last: bool| {
            let failed = |source| EngineError::Request { class: class.name.clone(), source };
            let request = match file {
                // With HTTP/2 a body waits for windows, not for the socket: it is in memory, once for all calls.
                Some(file) if self.version == Version::Http2 => {
                    self.request(&class.method, path, &headers, &file.read()?, last)
                }
                None => self.request(&class.method, path, &headers, class.body.as_bytes(), last),
                Some(file) => self.streamed(&class.method, path, &headers, file.bytes(), last),
            };
            request.map_err(failed)
        };
        let on_going = render(false)?;
        let body = if on_going.streamed_bytes() > 0 { file.clone() } else { None };
        // HTTP/2 says goodbye in other ways.
        let last = if self.version == Version::Http2 { on_going.clone() } else { render(true)? };
        Ok(Forms { on_going, last, body })
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
        if self.version == Version::Http2 {
            let scheme = if self.is_secure { "https" } else { "http" };
            return Request::http2(method, scheme, &self.authority, path, &headers, body);
        }
        let close = last && self.close == Close::Server;
        Request::new(method, &self.authority, path, &headers, body, self.version, close)
    }

    /// The same with a body of so many bytes that is sent behind it.
    fn streamed(
        &self,
        method: &str,
        path: &str,
        headers: &[(String, String)],
        body_bytes: u64,
        last: bool,
    ) -> Result<Request, RequestError> {
        let headers = [self.headers.as_slice(), headers].concat();
        let close = last && self.close == Close::Server;
        Request::streamed(method, &self.authority, path, &headers, body_bytes, self.version, close)
    }
}
