//! The metrics of requests observed on the server's sockets, as text: one line for each port, or every metric with its
//! name.

use super::layout::{UNKNOWN_MARK, facts, number, rows, seconds, share, times};
use brimful_core::quantity::{self, bytes, percent, rate};
use brimful_core::server::{Elapsed, SocketClass, SocketPort, SocketRequests};

/// Minimum share of observed requests without a response that the report mentions. The monitor observes the sockets
/// only during short periods, and responses to these requests came after the end of a period.
const NOTABLE_OPEN: f64 = 0.01;

/// Describes each port in one line, like `port 80: 4,288/s, wait 12.0 µs (p99 95.0 µs), service 657 µs (p99 1.20 ms),
/// 2.87 under way; seen 20.0 % of the time`.
pub fn describe(requests: &SocketRequests) -> Vec<String> {
    let port_line = |port: &SocketPort| {
        let mut parts = vec![port.requests_per_s.map_or("not seen yet".to_owned(), rate)];
        let times = [("wait", port.wait_us), ("service", port.service_us)];
        parts.extend(times.into_iter().filter_map(|(what, times)| {
            let [mean, p99] = [times?.mean, times?.p99].map(|us| quantity::seconds(us / 1e6));
            Some(format!("{what} {mean} (p99 {p99})"))
        }));
        parts.extend(port.under_way.map(|under_way| format!("{} under way", quantity::number(under_way))));
        let open = port.open_share.filter(|&open| open >= NOTABLE_OPEN);
        parts.extend(open.map(|open| format!("{} still open when their slice ended", percent(open))));
        format!("port {}: {}; seen {} of the time", port.port, parts.join(", "), percent(requests.duty))
    };
    requests.ports.iter().map(port_line).collect()
}

/// The table of requests by size of the response that `brimful watch` prints at its end.
pub fn table(requests: &SocketRequests) -> Option<String> {
    let titles = ["answers", "req/s", "Mbit/s", "wait", "p50", "p99", "service", "p50", "p99"];
    let row = |class: &SocketClass| {
        let rates = [class.requests_per_s, class.sent_bytes_per_s.map(|bytes| bytes * 8e-6)].map(number);
        let times = [class.wait_us, class.service_us].map(|times| {
            let us = |figure: fn(Elapsed) -> f64| seconds(times.map(|times| figure(times) / 1e6));
            [us(|times| times.mean), us(|times| times.p50), us(|times| times.p99)]
        });
        [label(requests, class)].into_iter().chain(rates).chain(times.into_iter().flatten()).collect()
    };
    let seen: Vec<Vec<String>> = requests.classes.iter().map(row).collect();
    (!seen.is_empty()).then(|| rows(&titles, &seen))
}

/// Tables of all metrics with their names, and the limitations of the measurement.
pub fn text(requests: &SocketRequests) -> Vec<String> {
    let mut blocks = vec![
        facts(
            "requests at sockets",
            &[],
            vec![
                ("duty", vec![percent(requests.duty)]),
                ("slice_s", vec![seconds(requests.slice_s)]),
                ("slices", vec![quantity::count(requests.slices)]),
            ],
        ),
        ports(&requests.ports),
    ];
    let classes = |class: &SocketClass| {
        times(&label(requests, class), [("wait_us", class.wait_us), ("service_us", class.service_us)])
    };
    blocks.extend(table(requests));
    blocks.extend(requests.classes.iter().map(classes));
    let limits: String = requests.limits.iter().map(|limit| format!("  {limit}\n")).collect();
    blocks.push("limits\n".to_owned() + &limits);
    blocks
}

fn ports(ports: &[SocketPort]) -> String {
    let names: Vec<String> = ports.iter().map(|port| format!("port {}", port.port)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let row = |name, cell: fn(&SocketPort) -> String| (name, ports.iter().map(cell).collect());
    let mean = |name, times: fn(&SocketPort) -> Option<Elapsed>| {
        let cell = |port| seconds(times(port).map(|times: Elapsed| times.mean / 1e6));
        (name, ports.iter().map(cell).collect())
    };
    let per_s = |figure: Option<f64>| figure.map_or(UNKNOWN_MARK.to_owned(), bytes);
    let fields = vec![
        row("requests", |port| quantity::count(port.requests)),
        row("requests_per_s", |port| number(port.requests_per_s)),
        ("received_bytes_per_s", ports.iter().map(|port| per_s(port.received_bytes_per_s)).collect()),
        ("sent_bytes_per_s", ports.iter().map(|port| per_s(port.sent_bytes_per_s)).collect()),
        row("under_way", |port| number(port.under_way)),
        row("open_share", |port| share(port.open_share)),
        row("unanswered_share", |port| share(port.unanswered_share)),
        mean("wait_us mean", |port| port.wait_us),
        mean("service_us mean", |port| port.service_us),
    ];
    facts("requests at sockets", &names, fields)
}

/// The name of a class of response sizes, with the port if there are several.
fn label(requests: &SocketRequests, class: &SocketClass) -> String {
    if requests.ports.len() > 1 { format!("{} {}", class.port, class.name) } else { class.name.clone() }
}

/// Tests, and metrics for the tests of other modules.
#[cfg(test)]
pub mod tests {
    use super::*;

    /// Metrics of one port whose responses all have the same size.
    pub fn requests() -> SocketRequests {
        let times = |mean: f64| {
            Some(Elapsed { count: 900, mean, stddev: mean, p50: 0.7 * mean, p90: 2.3 * mean, p99: 4.6 * mean })
        };
        let port = SocketPort {
            port: 80,
            requests: 1_000,
            requests_per_s: Some(500.0),
            received_bytes_per_s: Some(60_000.0),
            sent_bytes_per_s: Some(2e6),
            under_way: Some(0.25),
            open_share: Some(0.1),
            unanswered_share: Some(0.0),
            wait_us: times(10.0),
            service_us: times(95.0),
        };
        let class = SocketClass {
            name: "under-5k".to_owned(),
            port: 80,
            requests: 900,
            requests_per_s: Some(450.0),
            sent_bytes_per_s: Some(2e6),
            wait_us: times(10.0),
            service_us: times(95.0),
        };
        SocketRequests {
            duty: 0.2,
            slice_s: Some(0.2),
            slices: 10,
            ports: vec![port],
            classes: vec![class],
            limits: vec!["a TLS handshake counts as requests of its own".to_owned()],
        }
    }

    #[test]
    fn a_port_takes_a_line() {
        let expected = "port 80: 500/s, wait 10.0 µs (p99 46.0 µs), service 95.0 µs (p99 437 µs), 0.250 under way, \
                        10.0 % still open when their slice ended; seen 20.0 % of the time";
        assert_eq!(describe(&requests()), [expected]);
        let mut none = requests();
        none.ports[0] = SocketPort { port: 80, ..SocketPort::default() };
        assert_eq!(describe(&none), ["port 80: not seen yet; seen 20.0 % of the time"]);
    }

    #[test]
    fn sizes_take_a_line_each_and_every_figure_has_its_name() {
        let text = table(&requests()).unwrap();
        let cells: Vec<Vec<&str>> =
            text.lines().map(|line| line.split("  ").map(str::trim).filter(|c| !c.is_empty()).collect()).collect();
        assert_eq!(cells[0].len(), 9);
        let expected = ["under-5k", "450", "16.0", "10.0 µs", "7.00 µs", "46.0 µs", "95.0 µs", "66.5 µs", "437 µs"];
        assert_eq!(cells[1..], [expected]);
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        let all = super::text(&requests()).join("\n");
        for name in ["duty", "slice_s", "under_way", "open_share", "unanswered_share", "service_us", "TLS handshake"] {
            assert!(all.contains(name), "{name}: {all}");
        }
        let mut two = requests();
        two.ports.push(SocketPort { port: 443, ..SocketPort::default() });
        assert!(table(&two).unwrap().contains("80 under-5k"));
        assert_eq!(table(&SocketRequests::default()), None);
    }
}
