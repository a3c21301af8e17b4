//! Network group: interfaces and TCP of one network namespace.
//!
//! Six files of /proc/net are read, each once per sample. They stay open. Most of the cost is the kernel's formatting,
//! half of it for the 200 counters of `netstat`, of which four are used. The files belong to the namespace in which
//! they were opened (`netns.rs`) and are never opened again. The numbers of orphaned sockets, buffer memory and the
//! CPUs' queues are those of the whole machine, in every namespace. Source: proc_pid_net(5), net/core/net-procfs.c,
//! net/ipv4/proc.c.

pub(crate) mod columns;
mod interfaces;
mod overflows;
mod tcp;

pub use interfaces::InterfaceSample;
pub use tcp::TcpSample;

use crate::MonitorError;
use crate::counter::TimeSpan;
use crate::group::{Group, PeriodMetrics, WatchContext};
use crate::procfs::ProcFile;
use brimful_core::Nanos;
use brimful_core::server::{Network, Server, ServerInterval};
use interfaces::Interfaces;
use overflows::Overflows;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use tcp::TcpWatch;

/// The network at one moment: counters since boot, or since the namespace was created. A field is `None` if the kernel
/// does not provide it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NetworkSample {
    /// The interfaces, in the kernel's order.
    pub interfaces: Option<Vec<InterfaceSample>>,
    /// Number of packets dropped since monitoring began because a CPU's receive queue was full. All network namespaces
    /// of the machine are included.
    pub queue_overflows: Option<u64>,
    /// The counters of TCP.
    pub tcp: TcpSample,
}

/// The group of metrics `network`, which are about one network namespace.
pub enum NetworkGroup {}

/// Reads samples of a network namespace.
#[derive(Debug)]
pub struct NetworkWatch {
    dev: NetFile,
    interfaces: Interfaces,
    softnet: NetFile,
    overflows: Overflows,
    tcp: TcpWatch,
}

/// An open file of /proc/net, or the reason why it could not be opened.
#[derive(Debug)]
struct NetFile {
    name: &'static str,
    file: Result<ProcFile, MonitorError>,
}

impl Group for NetworkGroup {
    type Watch = NetworkWatch;
    type Sample = NetworkSample;
    type Metrics = Network;

    const IS_PER_NETNS: bool = true;

    fn open(site: &mut WatchContext<'_>) -> Result<Option<NetworkWatch>, MonitorError> {
        site.chosen_netns.namespace.read_within(&site.root.join("proc"), NetworkWatch::open).map(Some)
    }

    fn read(watch: &mut NetworkWatch, buffer: &mut Vec<u8>) -> NetworkSample {
        watch.read(buffer)
    }

    fn sources(watch: &NetworkWatch, sources: &mut BTreeMap<String, String>) {
        watch.sources(sources);
    }

    fn since(earlier: &NetworkSample, later: &NetworkSample, over: Nanos) -> Network {
        later.since(earlier, over)
    }

    fn put(period: PeriodMetrics<Network>, _: &[&NetworkSample], _: Nanos, server: &mut Server) {
        server.network = Some(period.metrics);
    }

    fn put_interval(
        PeriodMetrics { metrics, .. }: &PeriodMetrics<Network>,
        _: &NetworkSample,
        interval: &mut ServerInterval,
    ) {
        interval.network_bytes_per_s = metrics.all.map(|all| all.rx_bytes_per_s + all.tx_bytes_per_s);
        interval.retransmitted_per_s = metrics.tcp.and_then(|tcp| tcp.retransmitted_per_s);
    }
}

impl NetworkWatch {
    /// Opens the files. `net` is the path of the namespace's /proc/net. A file that cannot be opened is no error, but
    /// `sources` reports it.
    pub fn open(net: &Path) -> NetworkWatch {
        let mut watch = NetworkWatch {
            dev: NetFile::open(net, "dev"),
            interfaces: Interfaces::default(),
            softnet: NetFile::open(net, "softnet_stat"),
            overflows: Overflows::default(),
            tcp: TcpWatch::open(net),
        };
        // The first reading starts the count of overflows, and shows which metrics the kernel provides.
        watch.read(&mut Vec::new());
        watch
    }

    /// Reads a sample. `buffer` is scratch space for the contents of files.
    pub fn read(&mut self, buffer: &mut Vec<u8>) -> NetworkSample {
        NetworkSample {
            interfaces: self.dev.read(buffer).and_then(|text| self.interfaces.read(text)),
            queue_overflows: self.softnet.read(buffer).and_then(|text| self.overflows.read(text)),
            tcp: self.tcp.read(buffer),
        }
    }

    /// Adds to `sources`, for each kind of metrics, its source or the reason why the metrics are absent.
    pub fn sources(&self, sources: &mut BTreeMap<String, String>) {
        let dev = self.dev.source();
        let softnet = self.softnet.source();
        sources.insert("network".to_owned(), format!("{dev}; queue overflows, whole machine: {softnet}"));
        sources.insert("tcp".to_owned(), self.tcp.source());
    }
}

impl NetFile {
    fn open(net: &Path, name: &'static str) -> NetFile {
        NetFile { name, file: ProcFile::open(&net.join(name)) }
    }

    fn read<'b>(&self, buffer: &'b mut Vec<u8>) -> Option<&'b [u8]> {
        self.file.as_ref().ok()?.read(buffer).ok()
    }

    fn is_open(&self) -> bool {
        self.file.is_ok()
    }

    fn is_missing(&self) -> bool {
        matches!(&self.file, Err(MonitorError::Proc { source, .. }) if source.kind() == io::ErrorKind::NotFound)
    }

    fn source(&self) -> String {
        match &self.file {
            Ok(_) => format!("/proc/net/{}", self.name),
            Err(error) => format!("none: {error}"),
        }
    }
}

impl NetworkSample {
    /// Computes the metrics of the period since an earlier sample; `over` is the length of this period.
    pub(crate) fn since(&self, earlier: &NetworkSample, over: Nanos) -> Network {
        let over = TimeSpan(over);
        let of_interfaces = earlier.interfaces.as_ref().zip(self.interfaces.as_ref());
        let interfaces = of_interfaces.map(|(earlier, now)| interfaces::since(earlier, now, over)).unwrap_or_default();
        Network {
            all: interfaces::together(interfaces.values()),
            interfaces,
            queue_overflows_per_s: over.optional_per_s(earlier.queue_overflows, self.queue_overflows),
            tcp: self.tcp.since(&earlier.tcp, over),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory with files of /proc/net in the format of this kernel release. The formats differ between releases,
    /// but the values are the same.
    fn kernel(release: &str) -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/data/linux-{release}/proc/net"))
    }

    #[test]
    fn kernels_old_and_new_are_understood() {
        for release in ["3.10", "4.19", "5.10", "6.1", "6.18"] {
            let mut watch = NetworkWatch::open(&kernel(release));
            let sample = watch.read(&mut Vec::new());
            let expected = TcpSample {
                segments_in: Some(91_004_417),
                segments_out: Some(143_900_128),
                retransmitted: Some(20_871),
                resets_out: Some(3_319),
                active_opens: Some(5_210),
                passive_opens: Some(884_213),
                listen_overflows: Some(1_203),
                listen_drops: Some(1_277),
                syn_cookies: Some(41),
                backlog_drops: Some(19),
                time_wait: Some(1_871),
                in_use: Some(247),
                orphans: Some(4),
                memory_bytes: Some(96 * rustix::param::page_size() as u64),
            };
            assert_eq!(sample.tcp, expected, "{release}");
            let [lo, eth0] = sample.interfaces.as_deref().unwrap() else { panic!("two interfaces: {release}") };
            assert_eq!((&*lo.name, lo.rx_bytes, lo.tx_packets), ("lo", 884_213_990, 120_044));
            assert_eq!((&*eth0.name, eth0.rx_dropped, eth0.tx_errors, eth0.collisions), ("eth0", 340, 3, 7));
            assert_eq!(sample.queue_overflows, Some(0), "no overflows since the watch began: {release}");
            let mut sources = BTreeMap::new();
            watch.sources(&mut sources);
            assert!(!sources.values().any(|source| source.contains("none")), "{release}: {sources:?}");
        }
    }

    #[test]
    fn what_is_missing_is_absent_and_said() {
        let directory = tempfile::tempdir().unwrap();
        let net = directory.path();
        let mut watch = NetworkWatch::open(net);
        let nothing = watch.read(&mut Vec::new());
        assert_eq!(nothing, NetworkSample::default());
        assert_eq!(nothing.since(&nothing, Nanos::from_secs(1)), Network::default());
        let mut sources = BTreeMap::new();
        watch.sources(&mut sources);
        assert!(sources["network"].starts_with("none: cannot read") && sources["tcp"].starts_with("none: cannot read"));

        std::fs::write(net.join("snmp"), "Tcp: RtoMin\nTcp: 200\n").unwrap();
        std::fs::write(net.join("netstat"), "TcpExt: ListenDrops\nTcpExt: 5\n").unwrap();
        std::fs::write(net.join("sockstat"), "TCP: inuse 5 orphan 0\n").unwrap();
        let mut watch = NetworkWatch::open(net);
        let tcp = watch.read(&mut Vec::new()).tcp;
        // Without IPv6, the file sockstat6 does not exist.
        let expected = TcpSample { listen_drops: Some(5), in_use: Some(5), orphans: Some(0), ..TcpSample::default() };
        assert_eq!(tcp, expected);
        watch.sources(&mut sources);
        let unknown = "OutRsts, SyncookiesSent, ListenOverflows, TCPBacklogDrop, which this kernel does not count";
        assert!(sources["tcp"].ends_with(unknown), "{}", sources["tcp"]);
    }

    #[test]
    fn figures_are_differences_over_time() {
        let directory = tempfile::tempdir().unwrap();
        let net = directory.path();
        for file in std::fs::read_dir(kernel("6.18")).unwrap().flatten() {
            std::fs::copy(file.path(), net.join(file.file_name())).unwrap();
        }
        let change = |file: &str, from: &str, to: &str| {
            let text = std::fs::read_to_string(net.join(file)).unwrap();
            assert!(text.contains(from), "{from} in {file}");
            std::fs::write(net.join(file), text.replacen(from, to, 1)).unwrap();
        };
        let mut watch = NetworkWatch::open(net);
        let earlier = watch.read(&mut Vec::new());
        change("snmp", " 20871 ", " 20971 ");
        change("netstat", " 1277 ", " 1297 ");
        change("sockstat", "tw 1871", "tw 7");
        change("softnet_stat", "0000001f", "00000023");
        change("dev", "61790412214", "61790416214");
        let network = watch.read(&mut Vec::new()).since(&earlier, Nanos::from_secs(2));
        let tcp = network.tcp.unwrap();
        assert_eq!((tcp.retransmitted_per_s, tcp.listen_drops_per_s), (Some(50.0), Some(10.0)));
        assert_eq!((tcp.segments_in_per_s, tcp.time_wait), (Some(0.0), Some(7)));
        assert_eq!(network.queue_overflows_per_s, Some(2.0));
        assert_eq!(network.all.unwrap().rx_bytes_per_s, 2000.0);
        assert_eq!((network.interfaces["eth0"].rx_bytes_per_s, network.interfaces["lo"].rx_bytes_per_s), (2000.0, 0.0));
    }
}
