//! TCP of a network namespace. Counters are read from /proc/net/snmp and netstat, current numbers of sockets from
//! sockstat and sockstat6.

use super::NetFile;
use super::columns::Columns;
use crate::counter::TimeSpan;
use crate::procfs::{number, words};
use brimful_core::server::Tcp;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// TCP at one moment: counters since the namespace was created, and current numbers of sockets. A field is `None` if
/// the kernel does not provide it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TcpSample {
    /// Number of segments received.
    pub segments_in: Option<u64>,
    /// Number of segments sent, without retransmissions.
    pub segments_out: Option<u64>,
    /// Number of segments retransmitted.
    pub retransmitted: Option<u64>,
    /// Number of resets sent.
    pub resets_out: Option<u64>,
    /// Number of connections that this host initiated.
    pub active_opens: Option<u64>,
    /// Number of connections that another host initiated and that were established.
    pub passive_opens: Option<u64>,
    /// Number of packets that arrived while the accept queue of a listening socket was full.
    pub listen_overflows: Option<u64>,
    /// Number of packets dropped by listening sockets for any reason.
    pub listen_drops: Option<u64>,
    /// Number of SYN cookies sent.
    pub syn_cookies: Option<u64>,
    /// Number of segments dropped because a socket's backlog was full.
    pub backlog_drops: Option<u64>,
    /// Current number of sockets in TIME_WAIT. Before Linux 4.11, sockets of all network namespaces are included.
    pub time_wait: Option<u64>,
    /// Current number of sockets in use.
    pub in_use: Option<u64>,
    /// Current number of orphaned sockets on the whole machine: sockets that no process has open any more.
    pub orphans: Option<u64>,
    /// Bytes of memory in the buffers of all sockets, for the whole machine.
    pub memory_bytes: Option<u64>,
}

/// Reads the TCP counters of a network namespace from /proc.
#[derive(Debug)]
pub(super) struct TcpWatch {
    snmp: NetFile,
    counters: Columns<6>,
    netstat: NetFile,
    more_counters: Columns<4>,
    sockstat: NetFile,
    sockstat6: NetFile,
    page_bytes: u64,
}

impl TcpWatch {
    /// Opens the files. `net` is the path of the namespace's /proc/net.
    pub fn open(net: &Path) -> TcpWatch {
        let counters = ["ActiveOpens", "PassiveOpens", "InSegs", "OutSegs", "RetransSegs", "OutRsts"];
        let more_counters = ["SyncookiesSent", "ListenOverflows", "ListenDrops", "TCPBacklogDrop"];
        TcpWatch {
            snmp: NetFile::open(net, "snmp"),
            counters: Columns::new("Tcp:", counters),
            netstat: NetFile::open(net, "netstat"),
            more_counters: Columns::new("TcpExt:", more_counters),
            sockstat: NetFile::open(net, "sockstat"),
            sockstat6: NetFile::open(net, "sockstat6"),
            page_bytes: rustix::param::page_size() as u64,
        }
    }

    /// Reads a sample. `buffer` is scratch space for the contents of files.
    pub fn read(&mut self, buffer: &mut Vec<u8>) -> TcpSample {
        let snmp = self.snmp.read(buffer).map(|text| self.counters.read(text)).unwrap_or_default();
        let netstat = self.netstat.read(buffer).map(|text| self.more_counters.read(text)).unwrap_or_default();
        let sockstat = self.sockstat.read(buffer).map(sockets).unwrap_or_default();
        // A kernel without IPv6 has neither /proc/net/sockstat6 nor IPv6 sockets.
        let in_use_6 = match self.sockstat6.is_missing() {
            true => Some(0),
            false => self.sockstat6.read(buffer).and_then(|text| number_after(line(text, b"TCP6:")?, b"inuse")),
        };
        let [active_opens, passive_opens, segments_in, segments_out, retransmitted, resets_out] = snmp;
        let [syn_cookies, listen_overflows, listen_drops, backlog_drops] = netstat;
        TcpSample {
            segments_in,
            segments_out,
            retransmitted,
            resets_out,
            active_opens,
            passive_opens,
            listen_overflows,
            listen_drops,
            syn_cookies,
            backlog_drops,
            time_wait: sockstat.time_wait,
            in_use: sockstat.in_use.zip(in_use_6).map(|(four, six)| four.saturating_add(six)),
            orphans: sockstat.orphans,
            memory_bytes: sockstat.memory_pages.map(|pages| pages.saturating_mul(self.page_bytes)),
        }
    }

    /// The source of the metrics, or the reason why there are none.
    pub fn source(&self) -> String {
        let mut source = format!("{}, {}", self.snmp.source(), self.netstat.source());
        let sockets = self.sockstat.source();
        source += &format!("; sockets: {sockets} and sockstat6, where orphans and memory are of the whole machine");
        let mut unknown: Vec<&str> = Vec::new();
        unknown.extend(self.snmp.is_open().then(|| self.counters.missing_names()).into_iter().flatten());
        unknown.extend(self.netstat.is_open().then(|| self.more_counters.missing_names()).into_iter().flatten());
        if !unknown.is_empty() {
            source += &format!("; none: {}, which this kernel does not count", unknown.join(", "));
        }
        source
    }
}

/// The fields of /proc/net/sockstat that are used.
#[derive(Default)]
struct Sockets {
    in_use: Option<u64>,
    orphans: Option<u64>,
    time_wait: Option<u64>,
    memory_pages: Option<u64>,
}

/// Parses a line `TCP: inuse 5 orphan 0 tw 3 alloc 8 mem 2`.
fn sockets(text: &[u8]) -> Sockets {
    let Some(line) = line(text, b"TCP:") else { return Sockets::default() };
    Sockets {
        in_use: number_after(line, b"inuse"),
        orphans: number_after(line, b"orphan"),
        time_wait: number_after(line, b"tw"),
        memory_pages: number_after(line, b"mem"),
    }
}

/// The first complete line with this prefix. An incomplete line is ignored, because its last number may be cut off.
fn line<'t>(text: &'t [u8], prefix: &[u8]) -> Option<&'t [u8]> {
    let mut lines = text.split_inclusive(|&byte| byte == b'\n');
    lines.find(|line| line.starts_with(prefix) && line.ends_with(b"\n"))
}

/// The number after the word `name` in a line.
fn number_after(line: &[u8], name: &[u8]) -> Option<u64> {
    let mut words = words(line);
    words.find(|word| *word == name)?;
    number(words.next()?)
}

impl TcpSample {
    /// The metrics since an earlier sample; `None` if the kernel provides no counter of TCP.
    pub(super) fn since(&self, earlier: &TcpSample, over: TimeSpan) -> Option<Tcp> {
        let per_s = |counter: fn(&TcpSample) -> Option<u64>| over.optional_per_s(counter(earlier), counter(self));
        let tcp = Tcp {
            segments_in_per_s: per_s(|tcp| tcp.segments_in),
            segments_out_per_s: per_s(|tcp| tcp.segments_out),
            retransmitted_per_s: per_s(|tcp| tcp.retransmitted),
            resets_out_per_s: per_s(|tcp| tcp.resets_out),
            active_opens_per_s: per_s(|tcp| tcp.active_opens),
            passive_opens_per_s: per_s(|tcp| tcp.passive_opens),
            listen_overflows_per_s: per_s(|tcp| tcp.listen_overflows),
            listen_drops_per_s: per_s(|tcp| tcp.listen_drops),
            syn_cookies_per_s: per_s(|tcp| tcp.syn_cookies),
            backlog_drops_per_s: per_s(|tcp| tcp.backlog_drops),
            time_wait: self.time_wait,
            in_use: self.in_use,
            orphans: self.orphans,
            memory_bytes: self.memory_bytes,
        };
        (tcp != Tcp::default()).then_some(tcp)
    }
}
