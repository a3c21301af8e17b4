//! The options of a survey: the server, the workload, and limits on the survey's impact on the server.

use brimful_core::workload::{Load, Workload};
use brimful_core::{Nanos, SloSpec};
use std::fmt;
use std::str::FromStr;
use std::time::SystemTime;

/// The options of a survey.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    /// How and when the survey was started, for the document.
    pub header: Header,
    /// Seed of all random numbers of the survey.
    pub seed: u64,
    /// The request classes and their mix. The survey chooses the arrivals.
    pub workload: Workload,
    /// The server's CPUs; empty if they cannot be observed.
    pub server_cpus: Vec<usize>,
    /// The CPUs of the load generator; empty if it is not pinned.
    pub client_cpus: Vec<usize>,
    /// Duration of the measurement of a load level (`--level`). Most runs last a fixed multiple of it.
    pub level_duration: Nanos,
    /// The performance objectives. For each, the survey predicts and measures the highest rate that meets it.
    pub objectives: Vec<SloSpec>,
    /// Whether to measure additional load levels after calibration, which test the model but are not needed for the
    /// result.
    pub thorough: bool,
    /// Limits on the survey's impact on other clients of the server.
    pub impact_limits: ImpactLimits,
    /// A change of the server whose effect is predicted and measured at the end of the survey.
    pub change: Option<PlannedChange>,
    /// How the load generator opens connections.
    pub connections: ConnectionPolicy,
    /// Number of generator processes that share each load; `None` if this process generates the load.
    pub shards: Option<u64>,
}

/// How and when the survey was started, for the document.
#[derive(Clone, Debug)]
pub(crate) struct Header {
    /// Start time of the survey.
    pub started_at: SystemTime,
    /// Version of brimful that makes the survey.
    pub version: String,
    /// The brimful command that makes the survey, with its arguments.
    pub command: Vec<String>,
    /// The URL of the surveyed server.
    pub url: String,
}

/// Limits on the survey's impact on other clients of the server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ImpactLimits {
    /// Maximum mean load during calibration, as a share of the server's capacity.
    pub max_load: f64,
    /// Maximum time for which a call of another client may wait during calibration because of the survey's calls.
    pub max_delay: Nanos,
    /// Whether loads above `max_load` are also left out after calibration.
    pub applies_after_calibration: bool,
}

/// A change of the server that the survey makes and measures at its end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlannedChange {
    /// The change to make.
    pub change: Change,
    /// Whether the survey continues without the change if the host does not permit it. Otherwise that is an error.
    pub optional: bool,
}

/// A change of the server whose effect is predicted and then measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change {
    /// Limits the CPU time of the server's processes to this share of the server's CPUs.
    Quota(f64),
}

/// How the load generator opens connections.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionPolicy {
    /// The maximum number of connections of an open load.
    pub limit: ConnectionLimit,
    /// Whether each call opens its own connection.
    pub one_call_each: bool,
    /// Whether connections are opened before a load begins, unless idle connections occupy the server's workers. TLS
    /// needs this because handshakes are expensive. HTTP/2 needs this because a call opens no connection while an
    /// existing one has a free stream.
    pub opened_ahead: bool,
}

/// The maximum number of connections of an open load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConnectionLimit {
    /// A pool of connections whose size the survey chooses for the server.
    #[default]
    Pool,
    /// A pool of at most this many connections.
    AtMost(u64),
    /// No limit: each call that finds no idle connection opens a new one.
    Unlimited,
}

impl Setup {
    /// Number of the server's CPUs; 1 if they cannot be observed.
    pub fn servers(&self) -> u32 {
        self.server_cpus.len().max(1) as u32
    }

    /// Whether only the responses of the server can be observed, not its processes.
    pub fn is_black_box(&self) -> bool {
        self.server_cpus.is_empty()
    }

    /// The survey's mix of requests with this load.
    pub fn workload_with(&self, load: Load) -> Workload {
        with_load(&self.workload, load)
    }
}

/// The same workload with this load.
pub(crate) fn with_load(workload: &Workload, load: Load) -> Workload {
    Workload { load: Some(load), ..workload.clone() }
}

/// A closed load without think time: each client makes its next call as soon as the previous call ends.
pub(crate) fn closed(clients: u64) -> Load {
    Load::Closed { clients, think: Nanos::ZERO }
}

/// `factor` × `duration`; zero if the factor is negative.
pub(crate) fn times(factor: f64, duration: Nanos) -> Nanos {
    Nanos::from_secs_f64(factor.max(0.0) * duration.as_secs_f64())
}

impl FromStr for Change {
    type Err = String;

    fn from_str(text: &str) -> Result<Change, String> {
        let share = text.strip_prefix("quota=").and_then(|share| share.strip_suffix('%'));
        let share = share.and_then(|percent| percent.parse::<f64>().ok()).map(|percent| percent / 100.0);
        match share.filter(|share| (0.05..1.0).contains(share)) {
            Some(share) => Ok(Change::Quota(share)),
            None => Err(format!(
                "`{text}` is not a change that can be made: use quota=SHARE, like quota=50%, from 5 to 99 %"
            )),
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Change::Quota(share) = self;
        write!(f, "quota={}%", (1e4 * share).round() / 1e2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_parsed_and_formatted() {
        assert_eq!("quota=50%".parse(), Ok(Change::Quota(0.5)));
        assert_eq!("quota=12.5%".parse::<Change>().unwrap().to_string(), "quota=12.5%");
        for text in ["quota=0%", "quota=100%", "quota=0.5", "workers=2", "quota=NaN%", ""] {
            assert!(text.parse::<Change>().is_err_and(|error| error.contains("quota=SHARE")), "{text}");
        }
    }
}
