//! Measurements before the server is loaded: the maximum rate of this client, and the CPU usage of the idle server.

use crate::runner::{Halt, Runner};
use brimful_core::quantity;
use brimful_core::record::ReasonCode;
use brimful_core::{Bytes, Nanos};
use brimful_estimate::ProgramUsage;
use brimful_run::client_limit;

/// Minimum ratio of this client's maximum rate to the measured throughput of the server. A survey offers up to 1.3
/// times the capacity. The capacity may exceed the throughput measured so far, which may need more clients.
const REQUIRED_RATE_RATIO: f64 = 2.0;
/// Duration for which the idle server is observed.
pub(crate) const IDLE: Nanos = Nanos::from_millis(1500);

/// The measured maximum rate of this client.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ClientLimit {
    /// The highest rate, in calls per second, at which this client was not the limit; `None` if there is none.
    pub max_rate: Option<f64>,
    /// This client's maximum rate, in calls per second. `None` if only a lower bound is known, which is `max_rate`.
    pub limit: Option<f64>,
}

/// CPU usage of the server without load.
#[derive(Debug, Default)]
pub(crate) struct IdleServer {
    /// Mean number of CPUs that the server's own processes keep busy.
    pub busy: f64,
    /// Utilization of the server's CPUs by all programs. `None` if the CPUs cannot be observed.
    pub background: Option<f64>,
    /// CPU usage of each of the server's programs.
    pub programs: Vec<ProgramUsage>,
}

/// The maximum rate that the survey may offer to a server that has completed `throughput` calls per second.
pub(crate) fn needed_rate(throughput: f64) -> f64 {
    REQUIRED_RATE_RATIO * throughput
}

/// Measures the maximum rate of this client, with responses of this size. If the server's `throughput` under many
/// clients is known, the search ends as soon as it reaches a rate that suffices for the survey.
pub(crate) fn find_client_limit(
    runner: &mut Runner<'_>,
    response: Bytes,
    throughput: Option<f64>,
) -> Result<ClientLimit, Halt> {
    let needed = throughput.map(needed_rate);
    let duration = client_limit::typical_duration(needed);
    runner.begin("the highest rate of this client".to_owned(), duration);
    let calibration = runner.client_limit(response, needed)?;
    runner.note(match calibration.max_rate {
        Some(rate) if calibration.lower_bound => format!(
            "this client can offer {} and more without being the limit; above that rate each level is judged by itself",
            quantity::rate(rate)
        ),
        Some(rate) => format!("this client can offer {} without being the limit", quantity::rate(rate)),
        None if calibration.curve.is_empty() => "each level is judged by itself".to_owned(),
        None => "this client could not be trusted at any rate; each level is judged by itself".to_owned(),
    });
    Ok(ClientLimit { max_rate: calibration.max_rate, limit: calibration.limit() })
}

impl ClientLimit {
    /// Stops the survey if this client cannot offer `rate`. `saturation` is the server's saturation rate; the message
    /// states how many CPUs or generator processes (shards) are necessary to offer this rate.
    pub fn check(&self, runner: &Runner<'_>, rate: f64, saturation: f64) -> Result<(), Halt> {
        let Some(limit) = self.limit.filter(|limit| rate > *limit) else { return Ok(()) };
        let setup = runner.setup;
        let (parts, name, advice) = match setup.shards {
            Some(shards) => (shards, "shard", "(--shards, each on a CPU of its own)"),
            None => {
                let cpus = setup.client_cpus.len().max(1) as u64;
                (cpus, "CPU", "for the generator (--cpus), or a machine of its own")
            }
        };
        // The maximum rate of a client is about proportional to its number of threads or shards, because they share
        // nothing.
        let needed = (saturation / limit * parts as f64).ceil();
        let reason = format!(
            "it needs {}, but this client can offer only {} without being the limit, as measured on {}; a survey up to \
             the server's saturation needs about {needed} {name}s like these {advice}",
            quantity::rate(rate),
            quantity::rate(limit),
            if parts == 1 { format!("one {name}") } else { format!("{parts} {name}s") },
        );
        Err(runner.halt(ReasonCode::BeyondClientMax, &reason))
    }
}

/// Measures the CPU usage of the idle server.
pub(crate) fn watch_idle(runner: &mut Runner<'_>) -> Result<IdleServer, Halt> {
    if runner.setup.is_black_box() {
        runner.note(
            "nothing is seen of the server but its answers: its CPU time and its bottleneck remain unknown".to_owned(),
        );
        return Ok(IdleServer::default());
    }
    runner.begin("the idle server".to_owned(), IDLE);
    let idle = runner.bench.watch_idle(IDLE)?;
    let busy = idle.process.iter().map(|program| program.cores).sum();
    Ok(IdleServer {
        busy,
        background: idle.kernel.cpu.map(|cpu| (1.0 - cpu.idle).clamp(0.0, 0.9)),
        programs: ProgramUsage::from_server(&idle, busy),
    })
}
