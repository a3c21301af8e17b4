//! The interface between the method and the outside world. [`crate::server_bench`] implements it for a real server. The
//! tests implement it for a simulated server, which needs neither a clock nor a network.

use crate::SurveyError;
use brimful_core::record::{ClientCalibration, Record};
use brimful_core::server::Server;
use brimful_core::workload::Workload;
use brimful_core::{Bytes, Nanos};
use brimful_target::ReferenceCpuTimes;

/// Connections that are opened one after another. Each makes one call and then stays open and idle.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IdleConnections {
    pub connections: u64,
    /// Number of further connections, which are opened first and make no call.
    pub idle: u64,
    /// Time within which the connections are opened; zero opens all at once.
    pub opening_time: Nanos,
    /// Timeout: a call that takes longer counts as unanswered.
    pub timeout: Nanos,
}

/// The connections that loads use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pool {
    /// The maximum number of connections of an open load. With `None`, each call that finds no idle connection opens
    /// another.
    pub size: Option<u64>,
    /// Number of connections that are opened before a load begins.
    pub opened_ahead: u64,
}

/// An answer of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub status: u16,
    /// The target of a redirect: a URL.
    pub location: Option<String>,
    pub sets_cookie: bool,
}

/// A server that loads can be offered to.
pub(crate) trait Bench {
    /// Measures the highest rate at which this client is not itself the limit, for answers of this size. The search may
    /// end at the rate `needed`. The verdicts of all later Records depend on the result.
    fn client_limit(
        &mut self,
        response: Bytes,
        needed: Option<f64>,
        note: &mut dyn FnMut(String),
    ) -> Result<ClientCalibration, SurveyError>;

    /// Makes one call. Returns its answer, or `None` if the server did not answer.
    fn answer(&mut self) -> Result<Option<Answer>, SurveyError>;

    /// Opens connections and keeps them open. Returns how many of their calls were answered.
    fn hold(&mut self, hold: &IdleConnections) -> Result<u64, SurveyError>;

    /// Sets the connections that all further loads use.
    fn use_connections(&mut self, pool: Pool) -> Result<(), SurveyError>;

    /// Observes the server without load.
    fn watch_idle(&mut self, duration: Nanos) -> Result<Server, SurveyError>;

    /// Offers the workload for the length of the window, and observes the server during that time.
    fn measure(&mut self, workload: &Workload, window: Nanos, seed: u64) -> Result<Record, SurveyError>;

    /// Returns the due times of the calls of this workload, in seconds, and the indices of their classes in the
    /// workload.
    fn schedule(&self, workload: &Workload, window: Nanos, seed: u64) -> Result<Vec<(f64, usize)>, SurveyError>;

    /// Limits the server's processes to this number of CPUs; `None` removes the limit.
    fn limit(&mut self, cpus: Option<f64>) -> Result<(), SurveyError>;

    /// Waits without offering load.
    fn rest(&mut self, duration: Nanos);

    /// Whether the server accepts connections.
    fn is_alive(&self) -> bool;

    /// Whether the user has interrupted the survey.
    fn is_interrupted(&self) -> bool;

    /// The CPU time that the reference server reports as used so far; `None` for any other server.
    fn reference_cpu_times(&self) -> Option<ReferenceCpuTimes>;
}
