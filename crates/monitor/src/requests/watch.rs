//! A thread that attaches and detaches the eBPF programs for slices of time, and the counters of all slices so far.
//! With a duty cycle of 1 there is no thread: the programs are attached once, for an endless slice.
//!
//! Counters are read when a slice has ended and they do not change any more, so the counters of a sample belong
//! together. In an endless slice they are read while they change. A counter that seems to fall then keeps its previous
//! value. The reason is that a request may be moving from one size class to another at the time of the reading.

use super::slices::{DutyCycle, SlicePlan};
use super::{PortRequests, RequestsSample, SizeRequests};
use crate::ebpf::{RequestProbe, own_network_namespace};
use crate::module::TimesSample;
use crate::sys;
use brimful_core::Nanos;
use brimful_core::panics::lock;
use rustix::rand::{GetRandomFlags, getrandom};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// Time between the start of attaching and the moment from which requests are counted. By then the programs are
/// normally attached.
const ATTACHING: Nanos = Nanos::from_millis(5);

/// Reads the counters of requests as of the end of the last slice. Dropping this value detaches the programs.
pub struct RequestsWatch {
    shared: Arc<Mutex<Shared>>,
    /// Dropping this channel ends the thread.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// The state that the thread and the reader share.
struct Shared {
    probe: RequestProbe,
    ports: Vec<u16>,
    slices: SlicePlan,
    /// The slice (a time for which the tracepoints are attached) that is in progress.
    current: Option<Slice>,
    sample: RequestsSample,
    /// The reason why there are no metrics any more, if something failed.
    failed: Option<String>,
}

#[derive(Clone, Copy)]
struct Slice {
    /// The time at which attaching the programs began.
    attached: Nanos,
    /// The start of the time in which new requests are counted; `until` is its end.
    from: Nanos,
    until: Nanos,
}

impl RequestsWatch {
    /// Starts to measure. Must be called by a thread in the network namespace of the ports.
    pub(super) fn open(ports: &[u16], duty: DutyCycle) -> Result<RequestsWatch, String> {
        if ports.is_empty() {
            return Err("no TCP port was found on which the watched programs listen: name it with --port".to_owned());
        }
        let namespace = own_network_namespace().map_err(|error| error.to_string())?;
        let probe = RequestProbe::load(ports, namespace).map_err(|error| error.to_string())?;
        let slices = SlicePlan::new(duty);
        let mut shared = Shared {
            probe,
            ports: ports.to_vec(),
            slices,
            current: None,
            sample: RequestsSample { slice: slices.length(), ..RequestsSample::default() },
            failed: None,
        };
        if slices.length().is_none() {
            shared.begin(Nanos::ZERO, Nanos::MAX)?;
            let shared = Arc::new(Mutex::new(shared));
            return Ok(RequestsWatch { shared, stop: None, thread: None });
        }
        // Attaches the programs once, to find out whether this fails. The error then explains why the metrics are
        // absent.
        shared.begin(Nanos::ZERO, Nanos::ZERO)?;
        shared.abandon();
        shared.read_ports()?;
        let shared = Arc::new(Mutex::new(shared));
        let (stop, stopped) = channel();
        let body = {
            let shared = Arc::clone(&shared);
            move || run_slices(&shared, &stopped)
        };
        let thread = std::thread::Builder::new().name("requests".to_owned()).spawn(body);
        let thread =
            thread.map_err(|error| format!("cannot start a thread: {error}; raise the limit (`ulimit -u`)"))?;
        Ok(RequestsWatch { shared, stop: Some(stop), thread: Some(thread) })
    }

    /// The counters as of the end of the last slice. If the tracepoints are always attached, the current counters.
    pub(super) fn read(&mut self) -> RequestsSample {
        let mut shared = lock(&self.shared);
        if shared.slices.length().is_none() {
            shared.read_endless();
        }
        shared.sample.clone()
    }

    /// The source of the metrics, or the reason why there are none.
    pub(super) fn source(&self) -> String {
        let shared = lock(&self.shared);
        let ports: Vec<String> = shared.ports.iter().map(u16::to_string).collect();
        let tracepoints = format!("eBPF: tracepoints on the sockets of TCP port {}", ports.join(", "));
        match (&shared.failed, shared.slices.length()) {
            (Some(why), _) => format!("none: {why}"),
            (None, None) => format!("{tracepoints}, attached all the time"),
            (None, Some(length)) => {
                let period = shared.slices.period();
                format!("{tracepoints}, attached for {length} at a random instant of every {period}")
            }
        }
    }
}

impl Drop for RequestsWatch {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic in the thread has already been printed.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for RequestsWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestsWatch").field("slices", &lock(&self.shared).slices).finish_non_exhaustive()
    }
}

/// The function of the thread: runs slices (attaches the tracepoints for a time) until it is stopped or a slice fails.
fn run_slices(shared: &Mutex<Shared>, stopped: &Receiver<()>) {
    let mut period_begins = sys::now();
    loop {
        let (offset, period, length) = {
            let Shared { slices, .. } = *lock(shared);
            let Some(length) = slices.length() else { return };
            (slices.offset(random()), slices.period(), length)
        };
        if !wait(stopped, period_begins + offset) {
            return;
        }
        let begun = lock(shared).begin_slice();
        if !begun || !wait(stopped, sys::now() + length) {
            break;
        }
        if !lock(shared).end_slice() {
            break;
        }
        period_begins += period;
        // If this thread did not run for a while, or if the machine was suspended, the next period begins at once.
        let now = sys::now();
        if !wait(stopped, period_begins.min(now + period)) {
            return;
        }
        period_begins = period_begins.max(now);
    }
    lock(shared).abandon();
}

/// Waits until the time `until`. Returns false if the thread is stopped earlier.
fn wait(stopped: &Receiver<()>, until: Nanos) -> bool {
    matches!(stopped.recv_timeout((until - sys::now()).into()), Err(RecvTimeoutError::Timeout))
}

/// A random number from the kernel or, if that fails, from the clock. It need not be secret, but must be independent of
/// the server's periodic work.
fn random() -> u64 {
    let mut bytes = [0; 8];
    match getrandom(&mut bytes, GetRandomFlags::NONBLOCK) {
        Ok(_) => u64::from_ne_bytes(bytes),
        Err(_) => sys::now().0.wrapping_mul(0x9e37_79b9_7f4a_7c15),
    }
}

impl Shared {
    /// Begins a slice: attaches the tracepoints. Returns false if that fails.
    fn begin_slice(&mut self) -> bool {
        let from = sys::now() + ATTACHING;
        let begun = self.begin(from, from + self.slices.counting_time());
        self.keep(begun)
    }

    fn begin(&mut self, from: Nanos, until: Nanos) -> Result<(), String> {
        let attached = sys::now();
        self.probe.begin(from, until).map_err(|error| error.to_string())?;
        self.current = Some(Slice { attached, from: from.max(sys::now()), until });
        Ok(())
    }

    /// Ends the slice: detaches the tracepoints, and reads the counters. Returns false if the reading fails.
    fn end_slice(&mut self) -> bool {
        let ending = sys::now();
        self.probe.end();
        let Some(slice) = self.current.take() else { return true };
        self.sample.attached += sys::now() - slice.attached;
        self.sample.counting += slice.until.min(ending) - slice.from;
        let before = self.totals();
        let read = self.read_ports();
        if !self.keep(read) {
            return false;
        }
        let after = self.totals();
        self.slices.end_slice(after.0.saturating_sub(before.0), after.1.saturating_sub(before.1));
        self.sample.slices += 1;
        self.sample.slice = self.slices.length();
        true
    }

    /// Detaches the programs without counting the slice.
    fn abandon(&mut self) {
        self.probe.end();
        self.current = None;
    }

    /// Reads the counters while the tracepoints are always attached.
    fn read_endless(&mut self) {
        let read = self.read_ports();
        if self.keep(read)
            && let Some(slice) = self.current
        {
            let now = sys::now();
            self.sample.attached = now - slice.attached;
            self.sample.counting = now - slice.from;
        }
    }

    fn read_ports(&mut self) -> Result<(), String> {
        let tallies = self.probe.read().map_err(|error| format!("cannot read what was counted: {error}"))?;
        let ports = self.ports.iter().zip(&tallies).map(|(&port, tally)| PortRequests::from_tally(port, tally));
        let now: Vec<PortRequests> = ports.collect();
        let before = std::mem::take(&mut self.sample.ports);
        self.sample.ports = now.into_iter().enumerate().map(|(i, port)| port.not_below(before.get(i))).collect();
        Ok(())
    }

    /// Number of counted requests of all ports, and the number of these requests that are open.
    fn totals(&self) -> (u64, u64) {
        let add = |(begun, open): (u64, u64), port: &PortRequests| (begun + port.begun, open + port.open());
        self.sample.ports.iter().fold((0, 0), add)
    }

    /// Stores the reason of a failure, after which there are no metrics. Returns true if there was no failure.
    fn keep(&mut self, done: Result<(), String>) -> bool {
        self.failed = done.err();
        self.failed.is_none()
    }
}

impl PortRequests {
    /// Raises each counter to its previous value, if it has fallen.
    fn not_below(mut self, before: Option<&PortRequests>) -> PortRequests {
        let Some(before) = before else { return self };
        self.begun = self.begun.max(before.begun);
        self.unanswered = self.unanswered.max(before.unanswered);
        self.sizes.iter_mut().zip(&before.sizes).for_each(|(size, before)| size.rise_to(before));
        self
    }
}

impl SizeRequests {
    fn rise_to(&mut self, before: &SizeRequests) {
        self.received = self.received.max(before.received);
        self.sent = self.sent.max(before.sent);
        rise_to(&mut self.wait, &before.wait);
        rise_to(&mut self.service, &before.service);
    }
}

fn rise_to(times: &mut TimesSample, before: &TimesSample) {
    times.count = times.count.max(before.count);
    times.sum_ns = times.sum_ns.max(before.sum_ns);
    times.sum_us2 = times.sum_us2.max(before.sum_us2);
    let mut buckets: BTreeMap<u8, u64> = times.buckets.iter().copied().collect();
    for &(bucket, count) in &before.buckets {
        let now = buckets.entry(bucket).or_default();
        *now = count.max(*now);
    }
    times.buckets = buckets.into_iter().collect();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_recorded_and_taken_back_makes_no_counter_fall() {
        let times = |count, sum_ns, buckets: &[(u8, u64)]| TimesSample {
            count,
            sum_ns,
            buckets: buckets.to_vec(),
            ..TimesSample::default()
        };
        let port = |begun, service| PortRequests {
            port: 80,
            begun,
            unanswered: 0,
            sizes: vec![SizeRequests { sent: begun, service, ..SizeRequests::default() }],
        };
        let before = port(10, times(10, 500, &[(3, 7), (5, 3)]));
        let now = port(12, times(9, 800, &[(3, 6), (4, 1), (5, 2)])).not_below(Some(&before));
        assert_eq!(now, port(12, times(10, 800, &[(3, 7), (4, 1), (5, 3)])));
        assert_eq!(before.clone().not_below(None), before);
    }
}
