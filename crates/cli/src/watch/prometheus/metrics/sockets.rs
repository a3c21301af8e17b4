//! Metrics of requests that are counted at the server's sockets. Requests are counted only part of the time. A second
//! counter measures the time during which they are counted, so a rate is the number of requests divided by that time.

use super::Page;
use super::requests::{cumulative_buckets, seconds};
use brimful_monitor::requests::{CLASS_NAMES, PortRequests, RequestsSample, SizeRequests};
use std::fmt::Display;

/// Writes all metrics of the requests at the ports in `sample`.
pub fn sockets(page: &mut Page, sample: &RequestsSample) {
    page.counter("brimful_socket_attached_seconds_total", "Time in which tracepoints on sockets were attached.")
        .add(&[], Some(sample.attached.as_secs_f64()));
    page.counter("brimful_socket_counting_seconds_total", "Time in which new requests were counted.")
        .add(&[], Some(sample.counting.as_secs_f64()));
    let mut of_ports = |name, help, figure: fn(&PortRequests) -> u64| {
        let mut metric = page.counter(name, help);
        for port in &sample.ports {
            metric.add(&[("port", &port.port)], Some(figure(port)));
        }
    };
    of_ports("brimful_socket_requests_total", "Requests that started while requests were counted.", |port| port.begun);
    of_ports(
        "brimful_socket_requests_unanswered_total",
        "Counted requests whose connection ended before a response.",
        |p| p.unanswered,
    );
    let mut of_sizes = |name, help, figure: fn(&SizeRequests) -> u64| {
        let mut metric = page.counter(name, help);
        for (port, class, size) in used(sample) {
            metric.add(&[("port", &port), ("class", &class)], Some(figure(size)));
        }
    };
    of_sizes("brimful_socket_received_bytes_total", "Bytes of answered requests.", |size| size.received);
    of_sizes("brimful_socket_sent_bytes_total", "Bytes of responses.", |size| size.sent);
    let mut times = page.histogram("brimful_socket_request_seconds", "Times of answered requests.");
    for (port, class, size) in used(sample) {
        for (part, of_part) in [("wait", &size.wait), ("service", &size.service)] {
            let labels: [(&str, &dyn Display); 3] = [("port", &port), ("class", &class), ("part", &part)];
            let buckets: Vec<(f64, u64)> = cumulative_buckets(of_part).collect();
            times.add_histogram(&labels, &buckets, of_part.count, seconds(of_part.sum_ns));
        }
    }
}

/// The size classes with at least one response, each with its port and name.
fn used(sample: &RequestsSample) -> impl Iterator<Item = (u16, &'static str, &SizeRequests)> {
    sample.ports.iter().flat_map(move |port| {
        let sizes = CLASS_NAMES.into_iter().zip(&port.sizes).filter(|(_, size)| size.service.count > 0);
        sizes.map(move |(class, size)| (port.port, class, size))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use brimful_core::Nanos;
    use brimful_monitor::module::TimesSample;

    #[test]
    fn counters_come_with_the_time_that_they_cover() {
        let times =
            |ns: u64| TimesSample { count: 10, sum_ns: 10 * ns, buckets: vec![(34, 10)], ..TimesSample::default() };
        let size = SizeRequests { received: 1_000, sent: 20_000, wait: times(100_000), service: times(100_000) };
        let port = PortRequests { port: 80, begun: 12, unanswered: 1, sizes: vec![size, SizeRequests::default()] };
        let sample = RequestsSample {
            attached: Nanos::from_millis(400),
            counting: Nanos::from_millis(300),
            slices: 2,
            slice: Some(Nanos::from_millis(200)),
            ports: vec![port],
        };
        let mut page = Page::default();
        sockets(&mut page, &sample);
        for line in [
            "brimful_socket_attached_seconds_total 0.4\n",
            "brimful_socket_counting_seconds_total 0.3\n",
            "brimful_socket_requests_total{port=\"80\"} 12\n",
            "brimful_socket_requests_unanswered_total{port=\"80\"} 1\n",
            "brimful_socket_sent_bytes_total{port=\"80\",class=\"under-5k\"} 20000\n",
            "brimful_socket_request_seconds_count{port=\"80\",class=\"under-5k\",part=\"wait\"} 10\n",
            "brimful_socket_request_seconds_sum{port=\"80\",class=\"under-5k\",part=\"service\"} 0.001\n",
        ] {
            assert!(page.0.contains(line), "{line}{}", page.0);
        }
        assert!(!page.0.contains("5k-50k"), "{}", page.0);
    }
}
