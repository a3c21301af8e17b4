//! Derives metrics from counters. All metrics are derived from the growth between an earlier and a later sample. Rates
//! are per second of the time in which new requests were counted, which is only a part of the time between the samples.

use super::{PortRequests, RequestsSample, SizeRequests};
use crate::module::{TimesSample, elapsed_between};
use brimful_core::Nanos;
use brimful_core::quantity::small_percent;
use brimful_core::server::{SocketClass, SocketPort, SocketRequests};
use std::collections::BTreeMap;

/// Names of the size classes, in order. They are the names of the Server Module's default classes, without its class of
/// responses with an empty body: here, the size includes the head, so it is never zero.
pub const CLASS_NAMES: [&str; crate::ebpf::CLASSES] = ["under-5k", "5k-50k", "50k-100k", "100k-500k", "over-500k"];

/// Limitations of every measurement of requests at sockets.
const SOCKET_LIMITS: [&str; 6] = [
    "requests sent before the answer to the one before (pipelining) count as one",
    "a TLS handshake counts as requests of its own",
    "streams of HTTP/2 cannot be distinguished: what is sent and answered in turn on a connection is a request",
    "an answer ends with the last bytes before the next request: pauses of a stream are service, and 100 Continue ends one",
    "of a server that reads several requests before it works on the first (event loops do), part of the queueing is service",
    "of a request that was being received when a slice began, only the rest is seen",
];
/// Minimum share of open requests (still without a response at the end of a slice) for which the limitations mention
/// them.
const MIN_OPEN_SHARE: f64 = 0.0005;

/// The metrics of the period between two samples.
pub(super) fn between(earlier: &RequestsSample, later: &RequestsSample, over: Nanos) -> SocketRequests {
    let attached = (later.attached - earlier.attached).as_secs_f64();
    let counting = Some((later.counting - earlier.counting).as_secs_f64()).filter(|&seconds| seconds > 0.0);
    let none = PortRequests::default();
    let pairs = later.ports.iter().map(|later| {
        let earlier = earlier.ports.iter().find(|port| port.port == later.port).unwrap_or(&none);
        (earlier, later)
    });
    let ports: Vec<SocketPort> =
        pairs.clone().map(|(earlier, now)| of_port(earlier, now, counting, later.slice.is_none())).collect();
    SocketRequests {
        duty: (attached / over.as_secs_f64().max(f64::MIN_POSITIVE)).min(1.0),
        slice_s: later.slice.map(Nanos::as_secs_f64),
        slices: later.slices.saturating_sub(earlier.slices),
        limits: limits(&ports),
        ports,
        classes: pairs.flat_map(|(earlier, now)| classes(earlier, now, counting)).collect(),
    }
}

/// The metrics of one port. If `endless` is true (one slice that never ends), every request that is open at the end of
/// the period counts as open, whenever it began.
fn of_port(earlier: &PortRequests, later: &PortRequests, counting: Option<f64>, endless: bool) -> SocketPort {
    let requests = later.begun.saturating_sub(earlier.begun);
    let unanswered = later.unanswered.saturating_sub(earlier.unanswered);
    let open = if endless { later.open() } else { later.open().saturating_sub(earlier.open()) };
    let share = |part: u64| (requests > 0).then(|| (part as f64 / requests as f64).min(1.0));
    let [before, after] = [earlier, later].map(Sums::over_sizes);
    let (wait, service) =
        (elapsed_between(&before.wait, &after.wait), elapsed_between(&before.service, &after.service));
    let residence_us = [wait, service].iter().flatten().fold(0.0, |sum, times| sum + times.mean * times.count as f64);
    let per_s = |from: u64, to: u64| counting.map(|seconds| to.saturating_sub(from) as f64 / seconds);
    SocketPort {
        port: later.port,
        requests,
        requests_per_s: per_s(earlier.begun, later.begun),
        received_bytes_per_s: per_s(before.received, after.received),
        sent_bytes_per_s: per_s(before.sent, after.sent),
        under_way: counting.map(|seconds| residence_us / 1e6 / seconds),
        open_share: share(open),
        unanswered_share: share(unanswered),
        wait_us: wait,
        service_us: service,
    }
}

fn classes(earlier: &PortRequests, later: &PortRequests, counting: Option<f64>) -> Vec<SocketClass> {
    let none = SizeRequests::default();
    let of_size = |(index, now): (usize, &SizeRequests)| {
        let before = earlier.sizes.get(index).unwrap_or(&none);
        let requests = now.service.count.saturating_sub(before.service.count);
        let per_s = |count: u64| counting.map(|seconds| count as f64 / seconds);
        let elapsed = |times: fn(&SizeRequests) -> &TimesSample| elapsed_between(times(before), times(now));
        SocketClass {
            name: CLASS_NAMES.get(index).copied().unwrap_or("other").to_owned(),
            port: later.port,
            requests,
            requests_per_s: per_s(requests),
            sent_bytes_per_s: per_s(now.sent.saturating_sub(before.sent)),
            wait_us: elapsed(|size| &size.wait),
            service_us: elapsed(|size| &size.service),
        }
    };
    let found: Vec<SocketClass> = later.sizes.iter().enumerate().map(of_size).collect();
    found.into_iter().filter(|class| class.requests > 0).collect()
}

/// The limitations of these metrics, as sentences for the reader of a report.
fn limits(ports: &[SocketPort]) -> Vec<String> {
    let open = |port: &SocketPort| {
        let share = port.open_share.filter(|&share| share >= MIN_OPEN_SHARE)?;
        let share = small_percent(share);
        Some(format!(
            "{share} of the requests at port {} had no answer yet when their slice ended: times are those of the others",
            port.port
        ))
    };
    ports.iter().filter_map(open).chain(SOCKET_LIMITS.map(str::to_owned)).collect()
}

/// Sums over the requests of all size classes.
#[derive(Default)]
struct Sums {
    received: u64,
    sent: u64,
    wait: TimesSample,
    service: TimesSample,
}

impl Sums {
    fn over_sizes(port: &PortRequests) -> Sums {
        let mut sums = Sums::default();
        for size in &port.sizes {
            sums.received = sums.received.saturating_add(size.received);
            sums.sent = sums.sent.saturating_add(size.sent);
            add(&mut sums.wait, &size.wait);
            add(&mut sums.service, &size.service);
        }
        sums
    }
}

fn add(sum: &mut TimesSample, times: &TimesSample) {
    sum.count = sum.count.saturating_add(times.count);
    sum.sum_ns = sum.sum_ns.saturating_add(times.sum_ns);
    sum.sum_us2 = sum.sum_us2.saturating_add(times.sum_us2);
    let mut buckets: BTreeMap<u8, u64> = sum.buckets.iter().copied().collect();
    for &(bucket, count) in &times.buckets {
        let all = buckets.entry(bucket).or_default();
        *all = all.saturating_add(count);
    }
    sum.buckets = buckets.into_iter().collect();
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The counters of a size class with `count` requests, each with 100 µs of wait and 300 µs of service.
    fn size(count: u64) -> SizeRequests {
        let times = |ns: u64, bucket| TimesSample {
            count,
            sum_ns: ns * count,
            sum_us2: ns / 1000 * (ns / 1000) * count,
            buckets: vec![(bucket, count)],
        };
        SizeRequests {
            received: 100 * count,
            sent: 2_000 * count,
            wait: times(100_000, 34),
            service: times(300_000, 40),
        }
    }

    fn sample(slices: u64, begun: u64, unanswered: u64, answered: [u64; 2]) -> RequestsSample {
        RequestsSample {
            attached: Nanos::from_millis(200 * slices),
            counting: Nanos::from_millis(150 * slices),
            slices,
            slice: Some(Nanos::from_millis(200)),
            ports: vec![PortRequests { port: 80, begun, unanswered, sizes: answered.map(size).to_vec() }],
        }
    }

    #[test]
    fn rates_are_of_the_time_that_counts_and_times_of_those_answered() {
        let (earlier, later) = (sample(5, 100, 1, [80, 9]), sample(15, 1_600, 4, [980, 589]));
        let found = between(&earlier, &later, Nanos::from_secs(10));
        assert_eq!((found.duty, found.slice_s, found.slices), (0.2, Some(0.2), 10));
        let [port] = found.ports.as_slice() else { panic!("{found:?}") };
        assert_eq!((port.port, port.requests, port.requests_per_s), (80, 1_500, Some(1_000.0)));
        // Of the 1,500 requests that began, 3 lost their connection, 1,480 have a response, and 17 are open.
        assert_eq!((port.unanswered_share, port.open_share), (Some(0.002), Some(17.0 / 1_500.0)));
        let sent = port.sent_bytes_per_s.unwrap();
        assert!((sent - 2_000.0 * 1_480.0 / 1.5).abs() < 1e-6, "{sent}");
        assert_eq!((port.wait_us.unwrap().mean, port.service_us.unwrap().mean), (100.0, 300.0));
        let under_way = port.under_way.unwrap();
        assert!((under_way - 1_480.0 * 400e-6 / 1.5).abs() < 1e-9, "{under_way}");
        let [small, large] = found.classes.as_slice() else { panic!("{found:?}") };
        assert_eq!(
            (small.name.as_str(), small.requests, large.name.as_str(), large.requests),
            ("under-5k", 900, "5k-50k", 580)
        );
        let p50 = large.service_us.unwrap().p50;
        assert!((250.0..400.0).contains(&p50), "{p50}");
        assert!(found.limits[0].starts_with("1.13 % of the requests at port 80 had no answer"), "{:?}", found.limits);
        assert_eq!(found.limits.len(), 1 + SOCKET_LIMITS.len());
    }

    #[test]
    fn without_a_slice_there_is_no_rate_and_none_of_nothing() {
        let now = sample(5, 100, 1, [80, 9]);
        let found = between(&now, &now, Nanos::from_millis(300));
        let [port] = found.ports.as_slice() else { panic!("{found:?}") };
        assert_eq!((found.duty, port.requests_per_s, port.open_share, port.wait_us), (0.0, None, None, None));
        assert_eq!((found.classes.as_slice(), found.limits.len()), ([].as_slice(), SOCKET_LIMITS.len()));
        assert_eq!(between(&now, &RequestsSample::default(), Nanos::ZERO).ports, []);
    }

    #[test]
    fn in_an_endless_slice_those_are_open_that_are_so_now() {
        let endless = |begun, answered| RequestsSample { slice: None, slices: 0, ..sample(1, begun, 0, [answered, 0]) };
        let open = |earlier, later| between(&earlier, &later, Nanos::from_secs(1)).ports[0].open_share;
        assert_eq!(open(endless(100, 50), endless(200, 195)), Some(0.05));
        assert_eq!(open(endless(100, 0), endless(110, 0)), Some(1.0));
    }

    fn times() -> impl Strategy<Value = TimesSample> {
        let buckets = prop::collection::vec((any::<u8>(), any::<u64>()), 0..5);
        (any::<u64>(), any::<u64>(), any::<u64>(), buckets).prop_map(|(count, sum_ns, sum_us2, buckets)| TimesSample {
            count,
            sum_ns,
            sum_us2,
            buckets,
        })
    }

    fn any_sample() -> impl Strategy<Value = RequestsSample> {
        let size = (any::<u64>(), any::<u64>(), times(), times())
            .prop_map(|(received, sent, wait, service)| SizeRequests { received, sent, wait, service });
        let port = (0..3_u16, any::<u64>(), any::<u64>(), prop::collection::vec(size, 0..7))
            .prop_map(|(port, begun, unanswered, sizes)| PortRequests { port, begun, unanswered, sizes });
        (any::<[u64; 4]>(), prop::collection::vec(port, 0..3)).prop_map(
            |([attached, counting, slices, slice], ports)| {
                let slice = (slice % 2 == 0).then_some(Nanos(slice));
                RequestsSample { attached: Nanos(attached), counting: Nanos(counting), slices, slice, ports }
            },
        )
    }

    proptest! {
        /// Samples come from other hosts and may contain any numbers. The metrics must still be finite, and shares must
        /// be from 0 to 1.
        #[test]
        fn whatever_the_counters_are_figures_are_numbers(earlier in any_sample(), later in any_sample(), over in any::<u64>()) {
            let found = between(&earlier, &later, Nanos(over));
            let text = serde_json::to_string(&found).unwrap();
            prop_assert_eq!(serde_json::from_str::<SocketRequests>(&text).unwrap().ports.len(), later.ports.len());
            for port in &found.ports {
                let shares = [port.open_share, port.unanswered_share];
                prop_assert!(shares.iter().flatten().all(|share| (0.0..=1.0).contains(share)), "{:?}", port);
                let times = [port.wait_us, port.service_us];
                prop_assert!(times.iter().flatten().all(|times| times.mean.is_finite() && times.p99.is_finite()));
            }
        }
    }
}
