//! The monitor's metrics of a server over an interval: a whole run (`Record.server`), the second between two lines of
//! `brimful watch`, or the interval of one line of `brimful watch --log`.
//!
//! Four groups correspond to WebMonitor's Kernel Module (Almeida, Almeida & Yates 1997, Table 2): [`Kernel`],
//! [`Program`], [`Network`] and [`Connections`]. [`Module`] corresponds to its Server Module. [`SocketRequests`]
//! describes servers without such a module. Rates, `…_per_s`, are means over the interval; shares lie between 0 and 1;
//! other metrics are values at the end of the interval. A metric that the kernel does not provide is `null`, never
//! zero, and [`Server::sources`] says why.

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

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The monitor's metrics of a server over a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Server {
    /// The source of each kind of metrics, or `none: …` with the reason and the remedy.
    pub sources: BTreeMap<String, String>,
    /// Cost of monitoring.
    pub overhead: Overhead,
    /// Offset between the server's and the generator's clocks, if the server is on another host.
    pub clock: Option<ClockOffset>,
    /// Metrics of the machine.
    #[serde(flatten)]
    pub kernel: Kernel,
    /// Metrics of the server's programs.
    pub process: Vec<Program>,
    /// Metrics of the network namespace of the server.
    pub network: Option<Network>,
    /// Metrics of the server's ports.
    #[serde(flatten)]
    pub connections: Connections,
    /// Metrics of the Server Module, if the server has loaded the module.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub module: Option<Module>,
    /// Requests observed on the server's sockets, if that was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<SocketRequests>,
    /// Speed of the server's host when `brimful watch` began there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_probe: Option<HostProbe>,
    /// The main metrics in successive intervals of the run.
    pub intervals: Vec<ServerInterval>,
}

/// Speed of one CPU of a host, measured for about ten milliseconds. Both speeds vary when other work on the machine
/// shares the cache, the core or the clock frequency. Runs are comparable if their probes are similar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostProbe {
    /// Millions of integer operations per second. Each operation depends on the result of the previous one.
    pub arithmetic_mops: f64,
    /// Millions of reads per second from random addresses in 16 MiB. Each read returns the address of the next read.
    pub memory_mreads: f64,
}

impl HostProbe {
    /// Combines two probes: the lower value of each speed.
    pub fn slower(self, other: HostProbe) -> HostProbe {
        HostProbe {
            arithmetic_mops: self.arithmetic_mops.min(other.arithmetic_mops),
            memory_mreads: self.memory_mreads.min(other.memory_mreads),
        }
    }
}

/// Cost of monitoring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Overhead {
    /// CPU time of the monitor's thread, in seconds. For `brimful watch`, it is the CPU time of the whole process.
    pub monitor_cpu_s: f64,
    /// CPU time of one sample, in microseconds.
    pub per_sample_us: f64,
    /// Number of samples taken.
    pub samples: u64,
}

/// The offset between the monotonic clocks of two hosts, measured by exchanging clock readings (Cristian 1989).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClockOffset {
    /// The server's clock minus the generator's, in seconds.
    pub offset_s: f64,
    /// Bound of the error of the offset: half the shortest round trip, plus half the drift observed over the run.
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
        // Records of older versions do not have the field `host_probe`; they are read as well.
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
