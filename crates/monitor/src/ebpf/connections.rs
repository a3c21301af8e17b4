//! Number of TCP connections of a few local ports by state, and number of connections accepted. The kernel updates the
//! numbers at every change of a socket's state (tracepoint `sock:inet_sock_set_state`). brimful reads the numbers
//! without a system call.
//!
//! A gauge is a *change since the program was attached*. To get the number of connections, add the number that
//! `sock_diag` reported when the program was attached. A connection is counted by its local port, in one network
//! namespace, with IPv4 and IPv6. The socket of a client on the same host is counted only if the client's own port is
//! one of these ports.
//!
//! Some states are visible to the tracepoint, others are not (net/ipv4/tcp.c, inet_connection_sock.c, tcp_minisocks.c):
//!
//! - ESTABLISHED, FIN_WAIT1, CLOSE_WAIT, LAST_ACK and CLOSING are **exact**: the tracepoint shows every change by which
//!   sockets enter and leave these states, including reset, abort, and the end of a listener with connections in its
//!   queue.
//! - FIN_WAIT2 is exact for sockets that some process still has open. Once no process has the socket open, the kernel
//!   replaces it by a small record. `sock_diag` lists the record as FIN_WAIT2, but the gauge does not count it. A dump
//!   that is compared with the gauges must exclude these records: their timer (`idiag_timer`) is 3, as in TIME_WAIT.
//! - TIME_WAIT is never visible, because the kernel stores a connection in TIME_WAIT as a small record of this kind.
//! - SYN_RECV is not counted: a half-open connection is a request in the listener's queue, not a socket. SYN_SENT is
//!   not counted: a socket may enter this state before it has a port. LISTEN and CLOSE are not connections.
//!
//! `accepted` counts connections whose handshake the listening side completed, whether or not the server has called
//! accept(2) for them yet. It excludes abandoned handshakes and handshakes that ended when the accept queue was full.
//! It would include a simultaneous open (RFC 9293 §3.5, figure 7), although no socket listens there.

use super::object::{AttachedProgram, Program};
use super::{EbpfError, at_least_zero};
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::{fs, io};

/// Maximum number of ports at once: `MAX_PORTS` in `bpf/connections.bpf.c`.
pub(crate) const MAX_PORTS: usize = 16;
/// Number of TCP states: one more than the highest state number (include/net/tcp_states.h).
const STATES: usize = 13;
/// Number of 64-bit words per port: one for each state, one for `accepted`, and padding to whole cache lines.
const WORDS: usize = 16;

/// The attached program and its counts of connections.
pub(crate) struct Gauges {
    attached: AttachedProgram,
    /// For each requested port, the index of its counts. A port that is listed twice has one index.
    indices: Vec<usize>,
}

/// Changes in the number of connections of one local port since the program was attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PortGauges {
    /// For each state, by its number: the number of connections that entered the state since the program was attached,
    /// minus the number that left. Only the states 1, 4, 5, 8, 9 and 11 are counted (see the comment at the start of
    /// this file). All other states have zero.
    pub(crate) states: [i64; STATES],
    /// Number of handshakes that the listening side completed since the program was attached.
    pub(crate) accepted: u64,
}

impl Gauges {
    /// Starts to count the connections of these ports in the network namespace with this inode number.
    pub(crate) fn attach(ports: &[u16], network_namespace: u32) -> Result<Gauges, EbpfError> {
        if ports.len() > MAX_PORTS {
            return Err(EbpfError::TooManyPorts(ports.len()));
        }
        let settings = settings(ports, network_namespace, u16::to_be_bytes);
        let attached = AttachedProgram::attach(Program::Connections, &settings, MAX_PORTS * WORDS * size_of::<u64>())?;
        let place = |port| ports.iter().position(|other| other == port);
        Ok(Gauges { attached, indices: ports.iter().filter_map(place).collect() })
    }

    /// The changes in the numbers of connections of one port. `port_index` is the port's index in the list passed to
    /// [`attach`](Self::attach).
    pub(crate) fn read(&self, port_index: usize) -> PortGauges {
        let words: &[AtomicU64] = &self.attached.globals()[self.indices[port_index] * WORDS..][..WORDS];
        PortGauges {
            states: std::array::from_fn(|state| words[state].load(Relaxed).cast_signed()),
            accepted: at_least_zero(words[STATES].load(Relaxed)),
        }
    }
}

/// The inode number of this thread's network namespace.
pub(crate) fn own_network_namespace() -> io::Result<u32> {
    let inode = fs::metadata("/proc/thread-self/ns/net")?.ino();
    u32::try_from(inode).map_err(io::Error::other)
}

/// Encodes the constants `settings` of `bpf/connections.bpf.c` and `bpf/requests.bpf.c`. `number` encodes a port in the
/// byte order that the program expects.
pub(super) fn settings(ports: &[u16], network_namespace: u32, number: fn(u16) -> [u8; 2]) -> [u8; 8 + 2 * MAX_PORTS] {
    let mut bytes = [0; _];
    bytes[..4].copy_from_slice(&network_namespace.to_ne_bytes());
    bytes[4..8].copy_from_slice(&(ports.len() as u32).to_ne_bytes());
    for (place, port) in bytes[8..].chunks_exact_mut(2).zip(ports) {
        place.copy_from_slice(&number(*port));
    }
    bytes
}

#[cfg(test)]
#[cfg(feature = "ebpf")]
pub(super) mod tests;
