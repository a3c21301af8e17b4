//! What a survey is told, what it has found out so far, and why it goes on no longer: for the method, the judge and the
//! document.

use crate::SurveyError;
use brimful_core::Nanos;
use brimful_core::record::ReasonCode;
use brimful_core::survey::{Level, Stopped};
use brimful_core::workload::Workload;
use brimful_estimate::ServerFit;
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
    /// Length of a calibration run.
    pub level: Nanos,
}

impl Setup {
    /// Servers of the queue that the CPUs make.
    pub fn servers(&self) -> u32 {
        self.server_cpus.len() as u32
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
    pub client_max: Option<f64>,
    /// Share of the server's CPUs that was busy before any load.
    pub background: Option<f64>,
    pub fit: Option<ServerFit>,
    pub levels: Vec<Level>,
    /// Throughput of the closed level, with its interval, if that level can be trusted.
    pub saturation: Option<(f64, Option<f64>)>,
    /// What the reference server told before and after that level.
    pub truth: Option<(Truth, Truth)>,
}
