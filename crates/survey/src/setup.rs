//! The task of a survey: the server's address, the workload, and how gently the server must be treated.

use brimful_core::workload::{Load, Workload};
use brimful_core::{Nanos, SloSpec};
use std::fmt;
use std::str::FromStr;
use std::time::SystemTime;

/// The server and the workload to survey, and the options of the survey.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub header: Header,
    pub seed: u64,
    /// The classes and their mix; the survey chooses the arrivals.
    pub workload: Workload,
    /// CPUs of the server; empty if the monitor cannot observe the server.
    pub server_cpus: Vec<usize>,
    pub client_cpus: Vec<usize>,
    /// The unit of the survey's durations. Most runs last a fixed multiple of it.
    pub level: Nanos,
    /// The objectives whose rates are predicted and measured.
    pub objectives: Vec<SloSpec>,
    /// Whether all held-out levels are measured, or only those that the result needs.
    pub thorough: bool,
    pub impact_limits: ImpactLimits,
    pub change: Option<PlannedChange>,
    pub connections: ConnectionPolicy,
    /// Number of generator processes that share each load; `None` if this process makes the load alone.
    pub shards: Option<u64>,
}

/// The properties of the survey itself that the document states.
#[derive(Clone, Debug)]
pub(crate) struct Header {
    pub started_at: SystemTime,
    pub version: String,
    pub command: Vec<String>,
    pub url: String,
}

/// Limits of the survey's impact on the server's other clients.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ImpactLimits {
    /// Upper bound of the mean load during calibration, as a share of the server's capacity.
    pub max_load: f64,
    /// The longest time that a call of another client may have to wait for our calls during calibration.
    pub max_delay: Nanos,
    /// Whether levels above `max_load` are left out after calibration, too.
    pub after_calibration: bool,
}

/// A change of the server that the survey makes at its end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlannedChange {
    pub change: Change,
    /// Whether the survey goes on without the change if the host does not permit it.
    pub optional: bool,
}

/// A change whose effect is predicted and then measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change {
    /// Limits the server's processes to this share of the server's CPUs.
    Quota(f64),
}

/// How the generator opens connections.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionPolicy {
    pub limit: ConnectionLimit,
    /// Whether each call opens a connection of its own.
    pub one_call_each: bool,
    /// Whether connections are opened before a load begins, except on servers where an idle connection occupies a worker.
    /// TLS needs this because a handshake is expensive. HTTP/2 needs this because a call opens no connection while an
    /// existing one has a free stream.
    pub opened_ahead: bool,
}

/// The maximum number of connections of an open load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConnectionLimit {
    /// A pool whose size fits the server.
    #[default]
    Pool,
    /// A pool of at most this many connections.
    AtMost(u64),
    /// No limit: each call that finds no idle connection opens a new one.
    Unlimited,
}

impl Setup {
    /// Number of CPUs of the server; 1 if they cannot be observed.
    pub fn servers(&self) -> u32 {
        self.server_cpus.len().max(1) as u32
    }

    /// Whether only the answers of the server can be observed.
    pub fn is_black_box(&self) -> bool {
        self.server_cpus.is_empty()
    }

    /// The mix of calls under this load.
    pub fn workload_with(&self, load: Load) -> Workload {
        with_load(&self.workload, load)
    }
}

pub(crate) fn with_load(workload: &Workload, load: Load) -> Workload {
    Workload { load: Some(load), ..workload.clone() }
}

/// A closed load without think time: each client makes its next call when the previous call is answered.
pub(crate) fn closed(clients: u64) -> Load {
    Load::Closed { clients, think: Nanos::ZERO }
}

/// `factor` times a duration; zero if the factor is negative.
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
