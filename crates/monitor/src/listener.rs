//! The listening sockets of one port: length and limit of the accept queue, and what was dropped at it.
//!
//! SYNs that asked for a connection = connections established + drops of these sockets. The first is `PassiveOpens` of
//! /proc/net/snmp and counts for the whole network namespace: other servers' connections are in it.
//!
//! A server may open its port more than once (IPv4 and IPv6; `SO_REUSEPORT`, one socket per worker): queues, limits
//! and drops are then sums. It may also be restarted: sockets are told apart by their cookie, drops accumulate.

use crate::procfs::{self, ProcFile};
use crate::sock_diag::{ListenSocket, SockDiag};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;

/// The listening sockets of one port at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListenerSample {
    /// Connections that wait to be accepted.
    pub accept_queue: u64,
    /// The longest that `accept_queue` was since the previous sample that was kept.
    pub accept_queue_max: u64,
    /// How many may wait.
    pub backlog: u64,
    /// Dropped since the watch began.
    pub drops: u64,
    /// How many sockets these are.
    pub sockets: u64,
}

/// Reads them again and again.
#[derive(Debug)]
pub(crate) struct ListenerWatch {
    pub port: u16,
    diag: io::Result<SockDiag>,
    sockets: Vec<ListenSocket>,
    /// Why there are no sockets, as the kernel put it.
    error: Option<io::Error>,
    drops: u64,
    snmp: Option<ProcFile>,
    buffer: Vec<u8>,
}

impl ListenerWatch {
    /// Never fails: [`ListenerWatch::source`] says what is missing, and every reading tries again.
    pub fn open(net: &Path, port: u16) -> ListenerWatch {
        let snmp = ProcFile::open(&net.join("snmp")).ok();
        let diag = SockDiag::open();
        let mut watch =
            ListenerWatch { port, diag, sockets: Vec::new(), error: None, drops: 0, snmp, buffer: Vec::new() };
        watch.refresh();
        watch.drops = 0; // what was dropped before is not ours
        watch
    }

    /// `None` while nothing listens there.
    pub fn read(&mut self) -> Option<ListenerSample> {
        self.refresh();
        if self.sockets.is_empty() {
            return None;
        }
        let sum = |figure: fn(&ListenSocket) -> u32| self.sockets.iter().map(|socket| u64::from(figure(socket))).sum();
        let accept_queue = sum(|socket| socket.queue);
        Some(ListenerSample {
            accept_queue,
            accept_queue_max: accept_queue,
            backlog: sum(|socket| socket.backlog),
            drops: self.drops,
            sockets: self.sockets.len() as u64,
        })
    }

    /// Established since boot in this network namespace.
    pub fn passive_opens(&mut self) -> Option<u64> {
        let snmp = self.snmp.as_ref().and_then(|file| file.read(&mut self.buffer).ok());
        snmp.and_then(procfs::passive_opens)
    }

    /// Where the figures come from, or why there are none.
    pub fn source(&self) -> String {
        let port = self.port;
        match (&self.diag, &self.error) {
            (Err(error), _) | (_, Some(error)) => {
                format!("none: sock_diag on port {port}: {error}; try: sudo modprobe -a tcp_diag inet_diag")
            }
            _ if self.sockets.is_empty() => {
                format!("none: nothing listens on TCP port {port} in this network namespace; `ss -ltn` lists what does")
            }
            _ => {
                let sockets: Vec<String> = self.sockets.iter().map(ListenSocket::to_string).collect();
                let opens = if self.snmp.is_some() { "/proc/net/snmp PassiveOpens (all ports)" } else { "no count" };
                format!("sock_diag: {}; connections: {opens}", sockets.join(", "))
            }
        }
    }

    /// Looks each known socket up, or all of them anew when one is gone or cannot be told from another.
    fn refresh(&mut self) {
        let Ok(diag) = &mut self.diag else { return };
        let ambiguous = self
            .sockets
            .iter()
            .enumerate()
            .any(|(i, socket)| self.sockets[..i].iter().any(|other| other.shares_address(socket)));
        let looked_up = match self.sockets.is_empty() || ambiguous {
            true => Err(io::ErrorKind::NotFound.into()),
            false => self.sockets.iter().map(|socket| diag.look_up(socket)).collect(),
        };
        match looked_up.or_else(|_| diag.listening(self.port)) {
            Ok(sockets) => {
                self.drops += new_drops(&self.sockets, &sockets);
                (self.sockets, self.error) = (sockets, None);
            }
            Err(error) => (self.sockets, self.error) = (Vec::new(), Some(error)),
        }
    }
}

/// Drops between two looks; a socket opened in between has counted from zero.
fn new_drops(before: &[ListenSocket], now: &[ListenSocket]) -> u64 {
    let drops_before =
        |socket: &ListenSocket| before.iter().find(|b| b.cookie() == socket.cookie()).map_or(0, |before| before.drops);
    now.iter().map(|socket| u64::from(socket.drops.wrapping_sub(drops_before(socket)))).sum()
}
