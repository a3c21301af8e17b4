//! Metrics of the load generator in a Record: the resources that it used, and the largest load that it can generate.

use crate::JsonSchema;
use crate::server::HostProbe;
use serde::{Deserialize, Serialize};

/// Resources of its host that the generator used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Generator {
    /// CPU time of the generator in seconds, measured exactly.
    pub cpu_s: Option<f64>,
    /// CPU time in user mode in seconds, estimated from the kernel's clock ticks; `None` if there were too few ticks.
    pub cpu_user_s: Option<f64>,
    /// CPU time in the kernel in seconds, estimated from the kernel's clock ticks; `None` if there were too few ticks.
    pub cpu_system_s: Option<f64>,
    /// Utilization of the busiest thread: the fraction of time for which it worked, excluding waiting and busy-waiting.
    pub busy: f64,
    /// Longest time for which a thread was not able to handle events, in seconds, because it worked, was stopped or had
    /// no CPU.
    pub longest_gap_s: Option<f64>,
    /// Number of threads, each of which generates a part of the load.
    pub threads: u64,
    /// Maximum number of simultaneously open connections, over all threads.
    pub max_open_connections: u64,
    /// Name of the kernel interface for network I/O: `uring` (io_uring) or `epoll`.
    pub engine: String,
    /// Time between two clock ticks in seconds, if calls could begin only at clock ticks. Each call was late by up to
    /// this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tick_s: Option<f64>,
    /// Highest rate, in calls per second, that this client can generate before the client itself becomes the limit.
    /// `None` if this rate was not measured.
    pub max_rate: Option<f64>,
    /// CPU time that the host did not give to the generator although the generator had work.
    #[serde(default)]
    pub host: HostContention,
    /// Speed of one CPU of the generator's host, measured just before the load began. If the generator is pinned, it is
    /// the generator's first CPU. If several processes generated the load, each field has the lowest value of all
    /// processes. `None` if the speed was not measured.
    #[serde(default)]
    pub host_probe: Option<HostProbe>,
    /// Panic messages of the threads that panicked. Calls of these threads are counted up to the panic. The other
    /// threads continued.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub panics: Vec<String>,
    /// Name of the first file with a request body that could not be read during the run, with the error message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_error: Option<String>,
}

/// CPU time that the generator did not get although it had work, measured by the kernel of its host. Fields that the
/// kernel does not provide are absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostContention {
    /// Time for which a thread was ready to run but had no CPU, in seconds: the maximum over the threads.
    pub cpu_wait_s: Option<f64>,
    /// Time for which a CPU quota throttled the generator, in seconds, summed over CPUs. The quota belongs to the
    /// generator's control group or to a parent group.
    pub throttled_s: Option<f64>,
    /// Steal time: fraction of time for which the hypervisor ran other guests on the generator's CPUs.
    pub steal: Option<f64>,
}

/// Measurement of the largest load that this client can generate (Banga & Druschel 1997, §4.3). At each load, the
/// server's throughput with one generator is compared with its throughput with two generators that each generate half
/// of the load. The client is not the limit while both throughputs are equal. Loads and throughputs are calls per
/// second, or connection attempts per second for S-Clients.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClientCalibration {
    /// The largest load at which the client is not the limit; `None` if the client was the limit at every tested load.
    pub max_rate: Option<f64>,
    /// Whether the true maximum may be higher, because the built-in server reached its limit before the client did.
    pub lower_bound: bool,
    /// Whether the second generator shared CPUs with the first one or with the server, because no other CPUs were free.
    /// If so, the comparison is less sensitive than with a second host, and the decision depends more on the client's
    /// lateness and CPU time.
    pub second_shares_cpus: bool,
    /// Every tested load, in increasing order. A load that was tested several times appears several times.
    pub curve: Vec<ClientLevel>,
}

impl ClientCalibration {
    /// The load above which the client is the limit; `None` if only a lower bound of this load is known.
    pub fn limit(&self) -> Option<f64> {
        self.max_rate.filter(|_| !self.lower_bound)
    }
}

/// Results of a [`ClientCalibration`] at one offered load. Throughputs are means over several short runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClientLevel {
    /// The offered load in calls per second, or in connection attempts per second for S-Clients.
    pub load: f64,
    /// Number of pairs of runs. A pair consists of one run with one generator and one run with two generators.
    pub pairs: u64,
    /// Mean throughput of the server with one generator.
    #[serde(rename = "one")]
    pub one_generator: f64,
    /// Standard deviation of the server's throughput with one generator.
    #[serde(rename = "one_stddev")]
    pub one_generator_stddev: Option<f64>,
    /// Mean throughput of the server with two generators.
    #[serde(rename = "two")]
    pub two_generators: f64,
    /// Standard deviation of the server's throughput with two generators.
    #[serde(rename = "two_stddev")]
    pub two_generators_stddev: Option<f64>,
    /// Half-width of the 95 % confidence interval of the difference `two − one` between the throughputs with two
    /// generators and with one. It is computed from the differences within pairs of runs.
    pub difference_ci95_half_width: Option<f64>,
    /// The evidence that the client was the limit at this load; `None` if it was not the limit.
    pub limited: Option<String>,
}
