//! Measures requests at the sockets of a few local TCP ports, whatever the server. Four tracepoints are used:
//!
//! | tracepoint | meaning of the event |
//! |---|---|
//! | `sock:sk_data_ready` | bytes can be read: a request is ready, even on a connection that has not been accepted yet |
//! | `sock:sock_recv_length` | the server has read bytes: by read(2), recvmsg(2) or io_uring |
//! | `sock:sock_send_length` | the server has handed bytes to the kernel: by write(2), sendmsg(2), sendfile(2) or io_uring |
//! | `sock:inet_sock_set_state` | the connection is being closed |
//!
//! A request begins with the first bytes that are ready after a response, and ends with the last bytes that are sent
//! before the next request is read. At a send, the program cannot know whether the send is the last of the response. So
//! every send records the request's times, and the next send of the response subtracts them again. A send that fills
//! the socket's buffer records nothing, because a full buffer makes a server stop in the middle of a response.
//!
//! The programs are attached for slices of time, and no state passes from one slice to the next. A request **counts**
//! if its first bytes become ready in a slice between the instants `from` and `until`. Only the instant of the first
//! bytes decides, so slow requests count as often as fast requests. A request that counts is followed until the slice
//! ends. At the end of the slice, the request has a response (`answered`), has lost its connection (`unanswered`), or
//! is open. An open request takes longer than the time from `until` to the end of the slice; nothing more is known
//! about its duration.
//!
//! The numbers of a tally only grow, with one exception. While the programs are attached, a response may move from one
//! size class to another between two readings, because a later send of the response subtracts its earlier record.
//!
//! The tracepoints do not see data that splice(2) reads from a socket. In a kernel with full preemption, one run of a
//! program may interrupt another run on the same CPU. The kernel then skips the interrupting run.

use super::connections::{MAX_PORTS, settings};
use super::object::{Program, SwitchedPrograms};
use super::{EbpfError, at_least_zero};
use brimful_core::Nanos;
use std::fmt;
use std::io;

/// Number of size classes of responses: `CLASSES` in `bpf/requests.bpf.c`.
pub(crate) const CLASSES: usize = 5;
/// Number of buckets of a histogram of times, as in the Server Module: `BUCKETS` in `bpf/requests.bpf.c`.
const BUCKETS: usize = 112;
/// Number of 64-bit words of `struct times` in `bpf/requests.bpf.c`.
const TIMES_WORDS: usize = 2 + BUCKETS;
/// Number of 64-bit words of `struct tally` in `bpf/requests.bpf.c`.
const TALLY_WORDS: usize = 5 + 2 * TIMES_WORDS;

/// The loaded eBPF programs that measure requests. They are attached only during slices of time, from
/// [`begin`](Self::begin) to [`end`](Self::end).
pub(crate) struct RequestProbe {
    programs: SwitchedPrograms,
    /// For each requested port, its index in the programs' list of ports. The list has no duplicates.
    indices: Vec<usize>,
    slices: u64,
}

/// The requests of one port since the programs were loaded. Only requests that begin between the instants `from` and
/// `until` of a slice are included ([`RequestProbe::begin`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PortTally {
    /// Number of requests: their first bytes became ready between `from` and `until` of a slice.
    pub begun: u64,
    /// Number of the requests in `begun` whose connection ended before a byte of the response was sent.
    pub unanswered: u64,
    /// The requests with a response, by size class of the response.
    pub sizes: [SizeTally; CLASSES],
}

/// The requests whose responses are of one size class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SizeTally {
    /// Number of requests.
    pub answered: u64,
    /// Number of bytes of the requests.
    pub received: u64,
    /// Number of bytes of the responses.
    pub sent: u64,
    /// Times from the arrival of a request's first bytes until the server read them.
    pub wait: TimesTally,
    /// Times from the read of a request's first bytes until the last send of its response.
    pub service: TimesTally,
}

/// Sums and histogram of the waits, or of the service times, of requests with a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TimesTally {
    /// Sum of the times, in nanoseconds.
    pub sum_ns: u64,
    /// Sum of the squares of the times, in square microseconds.
    pub sum_us2: u64,
    /// Number of times in each bucket of the histogram.
    pub buckets: [u64; BUCKETS],
}

impl RequestProbe {
    /// Loads the programs for these ports in the network namespace with this inode number.
    pub(crate) fn load(ports: &[u16], network_namespace: u32) -> Result<RequestProbe, EbpfError> {
        if ports.len() > MAX_PORTS {
            return Err(EbpfError::TooManyPorts(ports.len()));
        }
        let mut distinct: Vec<u16> = Vec::new();
        let mut place = |port: u16| {
            distinct.iter().position(|&other| other == port).unwrap_or_else(|| {
                distinct.push(port);
                distinct.len() - 1
            })
        };
        let indices: Vec<usize> = ports.iter().map(|&port| place(port)).collect();
        let entries = distinct.len().max(1) * CLASSES;
        let settings = settings(&distinct, network_namespace, u16::to_ne_bytes);
        let programs = SwitchedPrograms::load(Program::Requests, &settings, entries as u32)?;
        Ok(RequestProbe { programs, indices, slices: 0 })
    }

    /// Begins a slice: attaches the programs. A request counts if it begins between the instants `from` and `until` of
    /// `CLOCK_MONOTONIC`.
    pub(crate) fn begin(&mut self, from: Nanos, until: Nanos) -> Result<(), EbpfError> {
        self.slices += 1;
        let control = [self.slices, from.0, until.0].map(u64::to_ne_bytes);
        self.programs.attach(control.as_flattened())
    }

    /// Ends the slice: detaches the programs. The counters do not change until the next slice begins.
    pub(crate) fn end(&mut self) {
        self.programs.detach();
    }

    /// The requests of each port, in the order in which the ports were passed to [`load`](Self::load).
    pub(crate) fn read(&self) -> io::Result<Vec<PortTally>> {
        self.indices.iter().map(|&place| self.read_port(place)).collect()
    }

    fn read_port(&self, place: usize) -> io::Result<PortTally> {
        let entry = |class: usize| total(&self.programs.entry_of_each_cpu((place * CLASSES + class) as u32)?);
        let entries = (0..CLASSES).map(entry).collect::<io::Result<Vec<_>>>()?;
        let [first, ..] = entries.as_slice() else { return Err(io::ErrorKind::InvalidData.into()) };
        let (begun, unanswered) = (first[0], first[1]);
        let mut sizes = <[SizeTally; CLASSES]>::default();
        sizes.iter_mut().zip(&entries).for_each(|(size, words)| *size = SizeTally::parse(words));
        Ok(PortTally { begun, unanswered, sizes })
    }
}

impl fmt::Debug for RequestProbe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestProbe").field("slices", &self.slices).finish_non_exhaustive()
    }
}

impl SizeTally {
    fn parse(words: &[u64; TALLY_WORDS]) -> SizeTally {
        let [_, _, answered, received, sent, times @ ..] = words;
        let (wait, service) = times.split_at(TIMES_WORDS);
        let [wait, service] = [wait, service].map(TimesTally::parse);
        SizeTally { answered: *answered, received: *received, sent: *sent, wait, service }
    }
}

impl TimesTally {
    fn parse(words: &[u64]) -> TimesTally {
        let mut tally = TimesTally::default();
        if let [sum_ns, squares, buckets @ ..] = words {
            tally.sum_ns = *sum_ns;
            tally.sum_us2 = square_microseconds(*squares);
            tally.buckets.iter_mut().zip(buckets).for_each(|(to, from)| *to = *from);
        }
        tally
    }
}

impl Default for TimesTally {
    fn default() -> TimesTally {
        TimesTally { sum_ns: 0, sum_us2: 0, buckets: [0; BUCKETS] }
    }
}

/// Converts squares in units of (1024 ns)² to square microseconds. The eBPF programs use these units because a bit
/// shift converts nanoseconds to them without a division.
fn square_microseconds(squares: u64) -> u64 {
    let scaled = u128::from(squares) * (1024 * 1024) / 1_000_000;
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

/// Sums each word of a map entry over all CPUs. The word of a single CPU may be negative, and wrap around, because one
/// CPU may subtract a time that another CPU has added. While the programs are attached, a sum may be negative too; then
/// zero is returned.
fn total(copies: &[Vec<u8>]) -> io::Result<[u64; TALLY_WORDS]> {
    let mut sum = [0_u64; TALLY_WORDS];
    for copy in copies {
        let (words, rest) = copy.as_chunks::<8>();
        if words.len() != TALLY_WORDS || !rest.is_empty() {
            return Err(io::ErrorKind::InvalidData.into());
        }
        for (sum, word) in sum.iter_mut().zip(words) {
            *sum = sum.wrapping_add(u64::from_ne_bytes(*word));
        }
    }
    Ok(sum.map(at_least_zero))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    fn what_one_cpu_recorded_another_may_take_back() {
        let mut one = vec![0; TALLY_WORDS];
        let mut other = one.clone();
        (one[0], one[2], one[5], one[6]) = (7, 5, 9_000, 4_000);
        (other[0], other[2], other[5]) = (1, 2_u64.wrapping_neg(), 1_000_u64.wrapping_neg());
        one[7 + 20] = 5;
        other[7 + 20] = 2_u64.wrapping_neg();
        let words = total(&[bytes(&one), bytes(&other)]).unwrap();
        let size = SizeTally::parse(&words);
        assert_eq!((words[0], size.answered, size.wait.sum_ns, size.wait.buckets[20]), (8, 3, 8_000, 3));
        assert_eq!(size.wait.sum_us2, 4_194, "4000 units of (1.024 µs)² are 4194 µs²");
        assert_eq!(size.service, TimesTally::default());
    }

    #[test]
    fn a_sum_below_zero_is_zero() {
        let mut one = vec![0; TALLY_WORDS];
        let mut other = one.clone();
        (one[0], one[2], one[5]) = (1, 1_u64.wrapping_neg(), 500);
        (other[2], other[3], other[5]) = (0, 7, 900_u64.wrapping_neg());
        let words = total(&[bytes(&one), bytes(&other)]).unwrap();
        let size = SizeTally::parse(&words);
        assert_eq!((words[0], size.answered, size.received, size.wait.sum_ns), (1, 0, 7, 0));
    }

    proptest! {
        #[test]
        fn no_bytes_panic_and_only_whole_entries_are_read(
            copies in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..2 * 8 * TALLY_WORDS), 0..4),
            whole in prop::collection::vec(any::<u64>(), TALLY_WORDS),
        ) {
            prop_assert_eq!(total(&copies).is_ok(), copies.iter().all(|copy| copy.len() == 8 * TALLY_WORDS));
            let words = total(&[bytes(&whole)]).unwrap();
            let size = SizeTally::parse(&words);
            let counted = |word: u64| if word > i64::MAX as u64 { 0 } else { word };
            prop_assert!(words.iter().zip(&whole).all(|(found, word)| *found == counted(*word)));
            prop_assert_eq!(size.service.buckets[BUCKETS - 1], counted(whole[TALLY_WORDS - 1]));
        }
    }
}

#[cfg(test)]
#[cfg(feature = "ebpf")]
#[path = "requests/sockets.rs"]
mod sockets;
