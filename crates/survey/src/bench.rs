//! The interface between the survey's method and the server. [`crate::server_bench`] implements it for a real server.
//! The tests implement it with a simulated server, without a clock or a network.

use crate::SurveyError;
use brimful_core::record::{ClientCalibration, Record};
use brimful_core::server::Server;
use brimful_core::workload::Workload;
use brimful_core::{Bytes, Nanos};
use brimful_target::ReferenceCpuTimes;

/// Connections to open and keep open: some make one call each and then stay idle, the others make no call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IdleConnections {
    /// Number of connections that make one call each.
    pub connections: u64,
    /// Number of additional connections that make no call. They are opened first.
    pub idle: u64,
    /// Duration over which the connections are opened one after another; zero opens all of them at once.
    pub opening_time: Nanos,
    /// Timeout of a call: a call that takes longer counts as unanswered.
    pub timeout: Nanos,
}

/// The limit on the connections of all later loads, and the number that is opened in advance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pool {
    /// The maximum number of connections of an open load. With `None`, each call that finds no idle connection opens a
    /// new one.
    pub size: Option<u64>,
    /// Number of connections that are opened before each load begins.
    pub opened_ahead: u64,
}

/// A response of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// The HTTP status code.
    pub status: u16,
    /// The URL that a redirect leads to.
    pub location: Option<String>,
    /// Whether the response has a `Set-Cookie` header field.
    pub sets_cookie: bool,
}

/// A server to survey, and the means to load and observe it.
pub(crate) trait Bench {
    /// Measures the maximum rate of this client with responses of this size. The search may end at the rate `needed`.
    /// The verdicts of all later Records use the result. `note` receives messages for the user.
    fn client_limit(
        &mut self,
        response: Bytes,
        needed: Option<f64>,
        note: &mut dyn FnMut(String),
    ) -> Result<ClientCalibration, SurveyError>;

    /// Makes one call. Returns the response, or `None` if the server did not respond.
    fn answer(&mut self) -> Result<Option<Answer>, SurveyError>;

    /// Opens connections and keeps them open. Returns the number of calls on these connections that were answered.
    fn open_idle_connections(&mut self, hold: &IdleConnections) -> Result<u64, SurveyError>;

    /// Sets the connections that all later loads use.
    fn use_connections(&mut self, pool: Pool) -> Result<(), SurveyError>;

    /// Monitors the server without load for this duration. Returns the monitor's report.
    fn watch_idle(&mut self, duration: Nanos) -> Result<Server, SurveyError>;

    /// Offers the workload for the duration `window`, and monitors the server during that time.
    fn measure(&mut self, workload: &Workload, window: Nanos, seed: u64) -> Result<Record, SurveyError>;

    /// Returns the arrivals of this workload without making calls: due times in seconds, and indices of the classes.
    fn schedule(&self, workload: &Workload, window: Nanos, seed: u64) -> Result<Vec<(f64, usize)>, SurveyError>;

    /// Limits the CPU time of the server's processes to this number of CPUs; `None` removes the limit.
    fn set_cpu_quota(&mut self, cpus: Option<f64>) -> Result<(), SurveyError>;

    /// Waits for this duration without load.
    fn rest(&mut self, duration: Nanos);

    /// Whether the server accepts connections.
    fn is_alive(&self) -> bool;

    /// Whether the user has interrupted the survey.
    fn is_interrupted(&self) -> bool;

    /// The CPU time that the reference server reports for each class so far; `None` for any other server.
    fn reference_cpu_times(&self) -> Option<ReferenceCpuTimes>;
}
