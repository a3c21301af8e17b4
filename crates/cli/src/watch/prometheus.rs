//! `--prometheus`: serves the latest counters at `/metrics`.
//!
//! A minimal HTTP server: one request per connection, with limits on the size, the duration and the number of requests.
//! A sample is rendered only once, even if it is fetched several times. Only requests whose `Host` is this host
//! ([`hosts`]) get the metrics. The loop of the watch never waits for the exporter.

mod connections;
mod hosts;
mod metrics;

use anyhow::Context;
use brimful_core::panics::lock;
use brimful_monitor::Sample;
use connections::Connections;
use hosts::Hosts;
use std::cell::RefCell;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// Maximum size of an HTTP request in bytes. A request of Prometheus has about 500.
const MAX_REQUEST: usize = 8 << 10;
const MAX_HEADERS: usize = 64;

/// The exporter, which serves until the process ends.
pub struct Exporter {
    /// The address at which the exporter serves.
    pub address: SocketAddr,
    latest: Arc<Mutex<Latest>>,
}

/// The latest counters of each group of metrics.
#[derive(Default)]
struct Latest {
    sample: Sample,
    /// Number of samples published so far.
    samples: u64,
}

/// The responses that the exporter sends.
struct Pages {
    hosts: Hosts,
    latest: Arc<Mutex<Latest>>,
    /// The rendered metrics, and the value of `samples` at the time of rendering.
    rendered: RefCell<(u64, String)>,
}

impl Exporter {
    /// Starts to serve at an address. The `Host` of a request must be an IP address, a name of this host, or one of
    /// `names`.
    pub fn start(address: SocketAddr, names: &[String]) -> anyhow::Result<Exporter> {
        let listener = TcpListener::bind(address)
            .with_context(|| format!("cannot serve on {address}: choose another address with --prometheus"))?;
        let address = listener.local_addr()?;
        let latest = Arc::<Mutex<Latest>>::default();
        let mut connections =
            Connections::new(listener, error("408 Request Timeout", "the request was not complete within 5 seconds"))?;
        let pages = Pages::new(Hosts::new(names), latest.clone());
        let serve = move || {
            loop {
                connections.wait(Instant::now());
                connections.serve(Instant::now(), &|request| reply(request, &pages));
            }
        };
        std::thread::Builder::new().name("prometheus".to_owned()).stack_size(256 << 10).spawn(serve)?;
        Ok(Exporter { address, latest })
    }

    /// Replaces the latest counters of the groups of metrics that this sample contains.
    pub fn publish(&self, sample: &Sample) {
        let mut latest = lock(&self.latest);
        latest.sample.update(sample.clone());
        latest.samples += 1;
    }
}

impl Pages {
    fn new(hosts: Hosts, latest: Arc<Mutex<Latest>>) -> Pages {
        let rendered = RefCell::new((0, metrics::text(&Sample::default())));
        Pages { hosts, latest, rendered }
    }

    /// The response with the metrics of the latest sample.
    fn metrics(&self, wants_body: bool) -> String {
        let mut rendered = self.rendered.borrow_mut();
        let latest = lock(&self.latest);
        if latest.samples != rendered.0 {
            let sample = latest.sample.clone();
            let samples = latest.samples;
            // The lock is released before rendering, so that the watch can publish the next sample.
            drop(latest);
            *rendered = (samples, metrics::text(&sample));
        }
        response("200 OK", "text/plain; version=0.0.4; charset=utf-8", &rendered.1, wants_body)
    }
}

/// The response to a request; `None` while the request is incomplete.
fn reply(request: &[u8], pages: &Pages) -> Option<String> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut parsed = httparse::Request::new(&mut headers);
    match parsed.parse(request) {
        Ok(httparse::Status::Partial) if request.len() < MAX_REQUEST => return None,
        Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
            return Some(error("431 Request Header Fields Too Large", "the request is too large"));
        }
        Err(_) => return Some(error("400 Bad Request", "this is not an HTTP/1 request")),
        Ok(httparse::Status::Complete(_)) => {}
    }
    let mut hosts = parsed.headers.iter().filter(|header| header.name.eq_ignore_ascii_case("host"));
    if !hosts.all(|header| pages.hosts.accepts(header.value)) {
        return Some(error("421 Misdirected Request", &pages.hosts.refusal()));
    }
    let path = parsed.path.unwrap_or_default().split('?').next().unwrap_or_default();
    let wants_body = match parsed.method {
        Some("GET") => true,
        Some("HEAD") => false,
        _ => return Some(error("405 Method Not Allowed", "only GET and HEAD are allowed")),
    };
    if path != "/metrics" {
        return Some(error("404 Not Found", "the metrics are at /metrics"));
    }
    Some(pages.metrics(wants_body))
}

fn error(status: &str, why: &str) -> String {
    response(status, "text/plain; charset=utf-8", &format!("{why}\n"), true)
}

fn response(status: &str, content_type: &str, body: &str, with_body: bool) -> String {
    let length = body.len();
    let body = if with_body { body } else { "" };
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(request: &str) -> Option<String> {
        let reply = reply(request.as_bytes(), &Pages::new(Hosts::new(&[]), Arc::default()))?;
        let (head, body) = reply.split_once("\r\n\r\n").unwrap();
        let length: usize =
            head.split("Content-Length: ").nth(1).unwrap().split("\r\n").next().unwrap().parse().unwrap();
        assert!(body.len() == length || request.starts_with("HEAD") && body.is_empty(), "{reply}");
        Some(head.split(' ').nth(1).unwrap().to_owned())
    }

    #[test]
    fn the_status_depends_on_the_request() {
        let long = format!("GET /metrics HTTP/1.1\r\nA: {}", "b".repeat(MAX_REQUEST));
        let many = format!("GET /metrics HTTP/1.1\r\n{}", "A: b\r\n".repeat(MAX_HEADERS + 1));
        for (request, expected) in [
            ("GET /metrics HTTP/1.1\r\nHost: localhost:9477\r\n\r\n", Some("200")),
            ("GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n", Some("421")),
            ("GET /metrics HTTP/1.1\r\nHost: localhost\r\nhost: evil.example\r\n\r\n", Some("421")),
            ("GET /metrics?name=x HTTP/1.0\r\n\r\n", Some("200")),
            ("HEAD /metrics HTTP/1.1\r\n\r\n", Some("200")),
            ("GET / HTTP/1.1\r\n\r\n", Some("404")),
            ("POST /metrics HTTP/1.1\r\n\r\n", Some("405")),
            ("\x16\x03\x01 TLS\r\n\r\n", Some("400")),
            (&long, Some("431")),
            (&many, Some("431")),
            ("GET /metrics HTTP/1.1\r\nHost", None),
            ("", None),
        ] {
            assert_eq!(status(request).as_deref(), expected, "{request:.60}");
        }
    }

    #[test]
    fn a_sample_is_rendered_once_however_often_it_is_fetched() {
        let latest = Arc::<Mutex<Latest>>::default();
        let exporter = Exporter { address: ([127, 0, 0, 1], 1).into(), latest: latest.clone() };
        let pages = Pages::new(Hosts::new(&[]), latest);
        // The test adds this mark to the rendered page. A page that is rendered again does not contain the mark.
        let mark = "marked as rendered\n";
        let fetch = || reply(b"GET /metrics HTTP/1.1\r\n\r\n", &pages).unwrap();
        exporter.publish(&Sample::default());
        assert!(!fetch().contains(mark));
        pages.rendered.borrow_mut().1 += mark;
        assert!(fetch().ends_with(mark) && fetch().ends_with(mark));
        exporter.publish(&Sample::default());
        assert!(!fetch().contains(mark), "another sample is rendered again");
    }
}
