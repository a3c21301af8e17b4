//! All that the method asks of the world. What answers is a server under load ([`crate::server_bench`]) or, in tests, a
//! simulated one, which needs neither time nor network.

use crate::SurveyError;
use crate::connections::Pool;
use brimful_core::record::{ClientCalibration, Record};
use brimful_core::server::Server;
use brimful_core::workload::Workload;
use brimful_core::{Bytes, Nanos};
use brimful_target::Truth;

/// Connections that are to be opened one after another, make one call each, and then stay open and idle.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hold {
    /// How many.
    pub connections: u64,
    /// Connections that make no call at all, and are open before the first one.
    pub idle: u64,
    /// Time in which the connections are opened; zero is all at once.
    pub lasts: Nanos,
    /// A call that takes longer counts as not answered.
    pub patience: Nanos,
}

/// An answer of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub status: u16,
    /// Where it leads, if it says so: a URL.
    pub location: Option<String>,
    /// Whether it sets a cookie.
    pub sets_cookie: bool,
}

/// A server on which loads can be tried.
pub(crate) trait Bench {
    /// Finds what this client can offer, with answers of this size, before it is the limit itself. Records that are
    /// made later know of it.
    fn client_limit(&mut self, response: Bytes, note: &mut dyn FnMut(String))
    -> Result<ClientCalibration, SurveyError>;

    /// Makes one call, and says what was answered; `None` where nothing was.
    fn answer(&mut self) -> Result<Option<Answer>, SurveyError>;

    /// Opens connections and holds them. Returns how many of their calls were answered.
    fn hold(&mut self, hold: &Hold) -> Result<u64, SurveyError>;

    /// Has all further loads use these connections.
    fn use_connections(&mut self, pool: Pool) -> Result<(), SurveyError>;

    /// Watches the server while nothing is asked of it.
    fn watch_idle(&mut self, lasts: Nanos) -> Result<Server, SurveyError>;

    /// Offers the workload with its load for so long, and watches the server meanwhile.
    fn measure(&mut self, workload: &Workload, window: Nanos, seed: u64) -> Result<Record, SurveyError>;

    /// When the calls of such a load are due, in seconds, and their classes, by their place in the workload.
    fn schedule(&self, workload: &Workload, window: Nanos, seed: u64) -> Result<Vec<(f64, usize)>, SurveyError>;

    /// Lets the server's processes use so many CPUs; `None` takes that limit away.
    fn limit(&mut self, cpus: Option<f64>) -> Result<(), SurveyError>;

    /// Leaves the server alone for so long.
    fn rest(&mut self, lasts: Nanos);

    /// Whether the server accepts connections.
    fn is_alive(&self) -> bool;

    /// Whether the user wants the survey to end.
    fn is_interrupted(&self) -> bool;

    /// What the server says that it has spent so far, if it is one that does.
    fn truth(&self) -> Option<Truth>;
}
