//! The part of a Record about the generator: the resources that it used, and the largest load that it can generate.

use crate::server::HostProbe;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Resources that the generator used on its host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Generator {
    /// CPU time of the generator, in seconds, exact.
    pub cpu_s: Option<f64>,
    /// CPU time in user mode, in seconds, as sampled by the kernel's clock ticks; `None` if there were too few ticks.
    pub cpu_user_s: Option<f64>,
    /// CPU time in the kernel, in seconds, as sampled by the kernel's clock ticks; `None` if there were too few ticks.
    pub cpu_system_s: Option<f64>,
    /// Share of time for which the busiest thread had work to do, excluding waiting and spinning.
    pub busy: f64,
    /// Longest time for which a thread was stalled, in seconds: it neither waited nor worked, because it was stopped or
    /// had no CPU.
    pub longest_gap_s: Option<f64>,
    /// Number of threads; each runs one shard.
    pub threads: u64,
    /// Highest number of connections open at once, over all threads.
    pub max_open_connections: u64,
    /// Name of the I/O engine.
    pub engine: String,
    /// If calls began only at clock ticks, the time between two ticks, in seconds. Calls were late by up to this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tick_s: Option<f64>,
    /// Highest measured rate that this client can generate without being the limit, in calls per second. `None` if this
    /// rate was not measured.
    pub max_rate: Option<f64>,
    /// CPU time that the host withheld from the generator.
    #[serde(default)]
    pub host: HostContention,
    /// Speed of a CPU of the generator's host right before the load began: the generator's first CPU, if the generator
    /// is pinned. For a load that several processes generated, the lowest value of each field. `None` if the speed was
    /// not measured.
    #[serde(default)]
    pub host_probe: Option<HostProbe>,
    /// Messages of the threads that panicked. The calls of these threads are counted up to the panic; the other threads
    /// continued.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub panics: Vec<String>,
    /// The first request body that could not be read from its file during the run, with the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_error: Option<String>,
}

/// CPU time that the host withheld from the generator during the run, as accounted by the host's kernel. Times and
/// shares that the kernel does not provide are absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostContention {
    /// Time for which a thread was ready to run while the CPU ran something else, in seconds: the highest value of any
    /// thread.
    pub cpu_wait_s: Option<f64>,
    /// Time for which a CPU quota throttled the generator's control group, in seconds, summed over CPUs. The quota may
    /// belong to a parent group.
    pub throttled_s: Option<f64>,
    /// Share of the time of the generator's CPUs that the hypervisor gave to other guests.
    pub steal: Option<f64>,
}

/// Measurement of the largest load that this client can generate. This is the largest load at which one generator, and
/// two generators with half of the load each, cause the same throughput of the server (Banga & Druschel 1997, §4.3).
/// Loads and throughputs are calls per second, or connection attempts per second for S-Clients.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClientCalibration {
    /// The largest load; `None` if the client was the limit at every load tried.
    pub max_rate: Option<f64>,
    /// Whether the maximum may be higher: the built-in server reached its own limit before the client did.
    pub lower_bound: bool,
    /// Whether the second generator shared CPUs with the first or with the server because no other CPUs were free. If
    /// so, the second generator adds less load than a second host would, and the client's own lateness and CPU time
    /// weigh more in the result.
    pub second_shares_cpus: bool,
    /// Every load tried, in increasing order; a load that was tried several times appears several times.
    pub curve: Vec<ClientLevel>,
}

impl ClientCalibration {
    /// The load above which the client is the limit; `None` if only a lower bound of this load is known.
    pub fn limit(&self) -> Option<f64> {
        self.max_rate.filter(|_| !self.lower_bound)
    }
}

/// One load of a [`ClientCalibration`]. Throughputs are means over several short runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClientLevel {
    /// The offered load.
    pub load: f64,
    /// Number of pairs of runs. Each pair is one run with one generator and one run with two generators.
    pub pairs: u64,
    /// Throughput with one generator.
    pub one: f64,
    /// Standard deviation of `one`.
    pub one_stddev: Option<f64>,
    /// Throughput with two generators.
    pub two: f64,
    /// Standard deviation of `two`.
    pub two_stddev: Option<f64>,
    /// Half width of the 95 % confidence interval of `two − one`, from the differences within pairs.
    pub difference_ci95_half_width: Option<f64>,
    /// The evidence that the client was the limit at this load; `None` if it was not the limit.
    pub limited: Option<String>,
}
