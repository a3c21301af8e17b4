//! The monitor's metrics of a server over an interval. The interval is a whole run (`Record.server`), the second
//! between two lines of `brimful watch`, or the time between two lines of `brimful watch --log`.
//!
//! Four groups of metrics correspond to WebMonitor's Kernel Module (Almeida, Almeida & Yates 1997, Table 2):
//! [`Kernel`], [`Program`], [`Network`] and [`Connections`]. [`Module`] corresponds to WebMonitor's Server Module.
//! [`SocketRequests`] describes requests to servers without such a module. Rates (`…_per_s`) are means over the
//! interval; shares are between 0 and 1; other metrics are values at the end of the interval. A metric that the kernel
//! does not provide is `null`, never zero, and [`Server::sources`] states the reason.

mod connections;
mod interval;
mod kernel;
mod module;
mod network;
mod process;
mod socket;

pub use connections::{AcceptQueue, Connections, Listener, Port, State};
pub use interval::{LogLine, ServerInterval};
pub use kernel::{
    Core, CpuShares, DISK_BLOCK_BYTES, Disk, Interrupts, Kernel, KernelThreads, MAX_OTHER_WORK, Memory, Paging,
    Pressure, Stall,
};
pub use module::{CpuDemand, CpuParts, Elapsed, Module, ModuleClass, ModuleServer, Phases, Sampled};
pub use network::{Network, NetworkTraffic, Tcp};
pub use process::{CpuQuota, Program, ProgramMeans, Programs};
pub use socket::{SocketClass, SocketPort, SocketRequests};

use crate::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The monitor's metrics of a server over a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Server {
    /// The source of each group of metrics. For a missing group, the value is `none: …` with the reason and the remedy.
    pub sources: BTreeMap<String, String>,
    /// CPU time and samples of the monitor itself.
    pub overhead: Overhead,
    /// Offset between the clocks of server and generator, if they run on different hosts.
    pub clock: Option<ClockOffset>,
    /// Metrics of the server's machine.
    #[serde(flatten)]
    pub kernel: Kernel,
    /// Metrics of each of the server's programs.
    pub process: Vec<Program>,
    /// Metrics of the server's network namespace.
    pub network: Option<Network>,
    /// Metrics of the server's TCP ports.
    #[serde(flatten)]
    pub connections: Connections,
    /// Metrics of the Server Module, a module that measures requests inside the server, if the server has loaded it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub module: Option<Module>,
    /// Requests observed on the server's sockets by tracepoints, if the user requested them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<SocketRequests>,
    /// Speed of a CPU of the server's host when `brimful watch` started on that host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_probe: Option<HostProbe>,
    /// The main metrics as a time series, for charts.
    pub intervals: Vec<ServerInterval>,
}

/// Speed of one CPU of a host, measured for about ten milliseconds. The speed depends on other work that shares the
/// cache, the core or the clock frequency. Runs are comparable if the speeds are similar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostProbe {
    /// Millions of dependent integer operations per second: each operation needs the result of the previous one.
    pub arithmetic_mops: f64,
    /// Millions of dependent memory reads per second from random addresses in 16 MiB: each read yields the address of
    /// the next read.
    pub memory_mreads: f64,
}

impl HostProbe {
    /// Combines two measurements: the lower value of each field.
    pub fn slower(self, other: HostProbe) -> HostProbe {
        HostProbe {
            arithmetic_mops: self.arithmetic_mops.min(other.arithmetic_mops),
            memory_mreads: self.memory_mreads.min(other.memory_mreads),
        }
    }
}

/// CPU time and number of samples of the monitor itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Overhead {
    /// CPU time of the monitor's thread, in seconds; for `brimful watch`, of the whole process.
    pub monitor_cpu_s: f64,
    /// Mean CPU time of one sample, in microseconds.
    pub per_sample_us: f64,
    /// Number of times that the monitor sampled the metrics.
    pub samples: u64,
}

/// The offset between the monotonic clocks of two hosts, measured by exchanging clock readings (Cristian 1989).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClockOffset {
    /// The server's clock minus the generator's, in seconds.
    pub offset_s: f64,
    /// Upper bound of the error of `offset_s`: half of the shortest round-trip time, plus half of the drift observed
    /// over the run.
    pub uncertainty_s: f64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Generator;

    #[test]
    fn a_probe_is_read_back_and_may_be_missing() {
        let probe = HostProbe { arithmetic_mops: 2_310.25, memory_mreads: 25.3 };
        let other = HostProbe { arithmetic_mops: 1_999.0, memory_mreads: 30.0 };
        assert_eq!(probe.slower(other), HostProbe { arithmetic_mops: 1_999.0, memory_mreads: 25.3 });
        for host_probe in [None, Some(probe)] {
            let generator = Generator { host_probe, ..Generator::default() };
            let text = serde_json::to_string(&generator).unwrap();
            assert_eq!(serde_json::from_str::<Generator>(&text).unwrap(), generator);
            let server = Server { host_probe, ..Server::default() };
            let text = serde_json::to_string(&server).unwrap();
            assert_eq!(text.contains("host_probe"), host_probe.is_some(), "{text}");
            assert_eq!(serde_json::from_str::<Server>(&text).unwrap(), server);
        }
        // Records of older versions do not contain the field `host_probe`. Parsing such a Record must succeed.
        let mut old = serde_json::to_value(Generator::default()).unwrap();
        assert!(old.as_object_mut().unwrap().remove("host_probe").is_some());
        assert_eq!(serde_json::from_value::<Generator>(old).unwrap().host_probe, None);
    }

    #[test]
    fn traffic_that_is_not_known_is_read_back_so() {
        let traffic = NetworkTraffic { rx_bytes_per_s: 5.0, ..NetworkTraffic::default() };
        for all in [None, Some(traffic)] {
            let network = Network { all, queue_overflows_per_s: Some(1.0), ..Network::default() };
            let text = serde_json::to_string(&network).unwrap();
            assert_eq!(text.contains("rx_bytes_per_s"), all.is_some(), "{text}");
            assert_eq!(serde_json::from_str::<Network>(&text).unwrap(), network);
        }
    }
}
