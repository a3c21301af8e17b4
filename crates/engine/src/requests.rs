//! The bytes of each class's request, rendered once before the run.

use crate::{Close, EngineError};
use brimful_core::workload::Class;
use brimful_http::{Request, Version};

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

/// One class's request, as it is sent on a connection that goes on and on one that ends with it.
#[derive(Clone, Debug)]
pub struct ClassRequests {
    on_going: Request,
    last: Request,
}

impl ClassRequests {
    /// Renders the class's requests.
    ///
    /// # Errors
    /// [`EngineError::Request`] when method, path or headers cannot be sent as HTTP.
    pub fn render(class: &Class, wire: &Wire) -> Result<ClassRequests, EngineError> {
        let mut headers = wire.headers.clone();
        headers.extend(class.headers.iter().map(|(name, value)| (name.clone(), value.clone())));
        let render = |close: bool| {
            let body = class.body.as_bytes();
            Request::new(&class.method, &wire.authority, &class.path, &headers, body, wire.version, close)
                .map_err(|source| EngineError::Request { class: class.name.clone(), source })
        };
        Ok(ClassRequests { on_going: render(false)?, last: render(wire.close == Close::Server)? })
    }

    /// Bytes of the longer one.
    pub(crate) fn longest(&self) -> usize {
        self.on_going.bytes().len().max(self.last.bytes().len())
    }

    /// The request to send.
    pub(crate) fn get(&self, last: bool) -> &Request {
        if last { &self.last } else { &self.on_going }
    }
}
