//! What a survey is told, what it has found out so far, and why it goes on no longer: for the method, the judge and the
//! document.

use crate::SurveyError;
use crate::connections::ConnectionLimit;
use crate::inflicted::Toll;
use crate::level::Throttled;
use crate::what_if::Change;
use brimful_core::Nanos;
use brimful_core::record::{Reason, ReasonCode};
use brimful_core::survey::{Connections, Inflicted, Level, Stopped, WhatIf};
use brimful_core::workload::Workload;
use brimful_estimate::{ProgramSeen, ServerFit};
use brimful_target::Truth;
use std::time::SystemTime;

/// What is surveyed, and how.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub started_at: SystemTime,
    pub version: String,
    pub command: Vec<String>,
    pub url: String,
    pub seed: u64,
    /// The classes and their mix; how calls come is the method's business.
    pub workload: Workload,
    pub server_cpus: Vec<usize>,
    pub client_cpus: Vec<usize>,
    /// What the lengths of all runs are shares of.
    pub level: Nanos,
    /// The mean load of calibration, as a share of what the server can take.
    pub max_load: f64,
    /// How long a stranger's call may have to wait for ours during calibration.
    pub max_delay: Nanos,
    /// Whether no load is to be measured that is not as gentle as calibration.
    pub gentle: bool,
    /// What is to be changed in the end.
    pub change: Option<Change>,
    /// Whether a change that cannot be made is left out.
    pub lenient: bool,
    /// How many processes make a load together, where a crew makes it.
    pub shards: Option<u64>,
    /// How many connections open loads may have at once.
    pub connection_limit: ConnectionLimit,
    /// Whether each call is to have a connection of its own.
    pub new_connections: bool,
    /// Whether connections are opened before a load begins, if they harm nobody: by TLS, where a handshake costs much, and
    /// by HTTP/2, where a call opens no connection as long as another one has a stream for it.
    pub opens_ahead: bool,
}

impl Setup {
    /// Servers of the queue that the CPUs make. One whose CPUs nobody sees is one.
    pub fn servers(&self) -> u32 {
        self.server_cpus.len().max(1) as u32
    }

    /// Whether nothing is seen of the server but its answers.
    pub fn is_black_box(&self) -> bool {
        self.server_cpus.is_empty()
    }
}

/// Why a survey does not go on.
#[derive(Debug)]
pub(crate) enum Halt {
    Error(SurveyError),
    Stopped(ReasonCode, Stopped),
}

impl<E: Into<SurveyError>> From<E> for Halt {
    fn from(error: E) -> Halt {
        Halt::Error(error.into())
    }
}

/// What has been found out so far.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// What the survey is at.
    pub step: String,
    /// Which connections the loads use.
    pub connections: Connections,
    /// How long a call takes while there is no other, by the first look, in seconds.
    pub alone_s: f64,
    /// What this client was shown to offer.
    pub client_max: Option<f64>,
    /// The same where it can offer no more.
    pub client_limit: Option<f64>,
    /// Share of the server's CPUs that was busy before any load.
    pub background: Option<f64>,
    /// The server's programs then.
    pub idle_programs: Vec<ProgramSeen>,
    pub fit: Option<ServerFit>,
    /// What the host's speed is compared with: calls per second of so many clients during calibration.
    pub calibrated_at: Option<f64>,
    pub clients: u64,
    /// Whether more of them would get no more done.
    pub filled: bool,
    /// So many clients were more than the generator could be.
    pub too_much_for_client: Option<u64>,
    /// Whether it was said why what the server measured of itself is not used.
    pub noted_unmatched: bool,
    /// What calibration has done to the server so far, and in all.
    pub toll: Toll,
    pub inflicted: Option<Inflicted>,
    /// What speaks against calibration.
    pub doubts: Vec<Reason>,
    /// The time for which a quota stopped the server most.
    pub throttled: Option<Throttled>,
    /// Between which rates 90 % of measurements of the capacity lie.
    pub saturation_interval: Option<[f64; 2]>,
    /// The host's speed when it was measured, over that during calibration.
    pub saturation_speed: Option<f64>,
    pub levels: Vec<Level>,
    /// Pieces of calibration so far, until they are made levels of.
    pub pieces: Vec<Level>,
    /// Throughput of the closed level, with its interval, if that level can be trusted.
    pub saturation: Option<(f64, Option<f64>)>,
    /// What a change of the server did.
    pub what_if: Option<WhatIf>,
    /// What the reference server told before and after that level.
    pub truth: Option<(Truth, Truth)>,
}

impl Found {
    /// Keeps the worst.
    pub fn note_throttled(&mut self, throttled: Option<Throttled>) {
        let worse = |new: &Throttled| self.throttled.as_ref().is_none_or(|old| old.share < new.share);
        if let Some(new) = throttled.filter(worse) {
            self.throttled = Some(new);
        }
    }
}
