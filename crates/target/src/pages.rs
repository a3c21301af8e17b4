//! The responses of the server. All responses except the true CPU times are rendered once at the start, so that no
//! memory is copied or allocated for a response over HTTP/1.

use crate::service::{ServiceClass, TRUTH};
use brimful_http::response_header_block;
use std::sync::Arc;

/// The kind of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Page {
    /// The response for requests of the class with this index.
    Class(usize),
    /// The true CPU times as JSON, rendered for each request.
    ReferenceCpuTimes,
    NotFound,
    MethodNotAllowed,
    BadRequest,
    BodyTooLarge,
    HeadTooLarge,
    /// The response to a request that exceeds the rate limit.
    TooManyRequests,
}

/// A rendered response, for HTTP/1 and for HTTP/2.
#[derive(Clone, Debug)]
pub(crate) struct Response {
    /// The head and the body for HTTP/1.
    pub(crate) bytes: Arc<[u8]>,
    /// Length of the head in `bytes`.
    pub(crate) head: usize,
    /// The header block for HTTP/2.
    pub(crate) block: Arc<[u8]>,
}

/// All responses. Each is rendered in two variants: for a connection that stays open, and for a connection that the
/// server closes.
#[derive(Debug)]
pub(crate) struct Pages {
    names: Vec<String>,
    /// The responses of the classes, followed by those for [`FAILURES`].
    rendered: Vec<[Response; 2]>,
    /// The interim response `100 Continue`.
    pub(crate) proceed: Response,
}

/// The allowed request methods.
const METHODS: [&str; 6] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];
/// The responses to requests that are not served.
const FAILURES: [Page; 6] = [
    Page::NotFound,
    Page::MethodNotAllowed,
    Page::BadRequest,
    Page::BodyTooLarge,
    Page::HeadTooLarge,
    Page::TooManyRequests,
];

impl Pages {
    /// Renders the responses of the classes, and those to requests that are not served.
    pub(crate) fn new(classes: &[ServiceClass]) -> Pages {
        let names: Vec<String> = classes.iter().map(|c| c.name.clone()).collect();
        let allow = format!("Allow: {}\r\n", METHODS.join(", "));
        let render_failure = |page| {
            let (status, extra, body) = match page {
                Page::NotFound => {
                    let known = names.iter().map(|n| format!("/{n}")).collect::<Vec<_>>().join(", ");
                    ("404 Not Found", "", format!("There is no such class here. Request {known}, or /{TRUTH}.\n"))
                }
                Page::MethodNotAllowed => {
                    let methods = METHODS.join(", ");
                    ("405 Method Not Allowed", allow.as_str(), format!("Classes are requested with {methods}.\n"))
                }
                Page::BodyTooLarge => {
                    ("413 Content Too Large", "", "The request's body is longer than 64 MiB.\n".to_owned())
                }
                Page::HeadTooLarge => (
                    "431 Request Header Fields Too Large",
                    "",
                    "The request's head is longer than 16 KiB or has more than 64 fields.\n".to_owned(),
                ),
                Page::TooManyRequests => (
                    "429 Too Many Requests",
                    "Retry-After: 1\r\n",
                    "The rate of requests is above the limit.\n".to_owned(),
                ),
                _ => ("400 Bad Request", "", "This is not an HTTP/1.1 or HTTP/1.0 request.\n".to_owned()),
            };
            [false, true].map(|close| render(status, "text/plain", extra, close, body.as_bytes()))
        };
        let render_class = |c: &ServiceClass| {
            let body = filler(c.response.0 as usize);
            [false, true].map(|close| render("200 OK", "text/plain", "", close, &body))
        };
        let rendered = classes.iter().map(render_class).chain(FAILURES.map(render_failure)).collect();
        let proceed = b"HTTP/1.1 100 Continue\r\n\r\n";
        // `block` is empty, because the HTTP/2 codec renders its own `100 Continue`.
        let proceed = Response { bytes: proceed.as_slice().into(), head: proceed.len(), block: Arc::default() };
        Pages { names, rendered, proceed }
    }

    /// Chooses the response to a request. `target` is the request target: a path with or without a query, or an
    /// absolute URL (RFC 9112 §3.2).
    pub(crate) fn find(&self, method: &str, target: &str) -> Page {
        if !METHODS.contains(&method) {
            return Page::MethodNotAllowed;
        }
        let path = match target.split_once("://") {
            Some(("http" | "https", rest)) => rest.find('/').map_or("/", |slash| &rest[slash..]),
            _ => target,
        };
        let path = path.split('?').next().unwrap_or(path);
        match path.strip_prefix('/') {
            Some("") => Page::Class(0),
            Some(TRUTH) => Page::ReferenceCpuTimes,
            Some(name) => self.names.iter().position(|n| n == name).map_or(Page::NotFound, Page::Class),
            None => Page::NotFound,
        }
    }

    /// The rendered response; `None` for [`Page::ReferenceCpuTimes`], which is rendered for each request. `close`
    /// selects the variant for a connection that the server closes.
    pub(crate) fn get(&self, page: Page, close: bool) -> Option<&Response> {
        let index = match page {
            Page::Class(class) => class,
            other => self.names.len() + FAILURES.iter().position(|&p| p == other)?,
        };
        self.rendered.get(index).map(|pair| &pair[usize::from(close)])
    }
}

/// Renders a response. `status` contains the status code and the reason phrase; `extra` consists of whole header lines,
/// or is empty.
pub(crate) fn render(status: &str, content_type: &str, extra: &str, close: bool, body: &[u8]) -> Response {
    let connection = if close { "close" } else { "keep-alive" };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n{extra}Connection: {connection}\r\n\r\n"
    );
    let length = length.to_string();
    let mut fields = vec![("content-type".to_owned(), content_type), ("content-length".to_owned(), length.as_str())];
    let extra = extra.lines().filter_map(|line| line.split_once(": "));
    fields.extend(extra.map(|(name, value)| (name.to_ascii_lowercase(), value)));
    let fields: Vec<(&str, &str)> = fields.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    let number = status.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or_default();
    let block = response_header_block(number, &fields).into();
    Response { bytes: [head.as_bytes(), body].concat().into(), head: head.len(), block }
}

/// A body of this length. It consists of lines of text, so that a terminal can display it.
fn filler(length: usize) -> Vec<u8> {
    b"brimful\n".iter().copied().cycle().take(length).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages() -> Pages {
        Pages::new(&ServiceClass::parse_list("light=1ms,heavy=2ms/3").unwrap())
    }

    #[test]
    fn a_target_selects_a_page() {
        for (target, page) in [
            ("/", Page::Class(0)),
            ("/?x=/heavy", Page::Class(0)),
            ("/light", Page::Class(0)),
            ("/heavy?x=1", Page::Class(1)),
            ("http://host:80/heavy", Page::Class(1)),
            ("http://host", Page::Class(0)),
            ("/heavy/", Page::NotFound),
            ("/Heavy", Page::NotFound),
            ("heavy", Page::NotFound),
            ("*", Page::NotFound),
            ("/__truth", Page::ReferenceCpuTimes),
        ] {
            assert_eq!(pages().find("GET", target), page, "{target}");
        }
        assert_eq!(pages().find("OPTIONS", "*"), Page::MethodNotAllowed);
    }

    #[test]
    fn every_page_has_its_status() {
        let pages = pages();
        let text = |page, close| String::from_utf8(pages.get(page, close).unwrap().bytes.to_vec()).unwrap();
        let ok = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 3\r\nConnection: close\r\n\r\nbri";
        assert_eq!(text(Page::Class(1), true), ok);
        for (page, status) in [
            (Page::NotFound, "404"),
            (Page::MethodNotAllowed, "405"),
            (Page::BadRequest, "400"),
            (Page::BodyTooLarge, "413"),
            (Page::HeadTooLarge, "431"),
        ] {
            assert!(text(page, false).starts_with(&format!("HTTP/1.1 {status} ")), "{page:?}");
            assert!(text(page, false).contains("Connection: keep-alive\r\n"));
        }
        assert!(text(Page::NotFound, false).contains("/light, /heavy"));
        assert!(pages.get(Page::ReferenceCpuTimes, false).is_none());
    }
}
