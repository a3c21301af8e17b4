//! All that the method asks of the world. What answers is a server under load ([`crate::server_bench`]) or, in tests, a
//! simulated one, which needs neither time nor network.

use crate::SurveyError;
use brimful_core::record::{ClientCalibration, Record};
use brimful_core::server::Server;
use brimful_core::workload::Workload;
use brimful_core::{Bytes, Nanos};
use brimful_target::Truth;

/// A server on which loads can be tried.
pub(crate) trait Bench {
    /// Finds what this client can offer, with answers of this size, before it is the limit itself. Records that are
    /// made later know of it.
    fn client_limit(&mut self, response: Bytes, note: &mut dyn FnMut(String))
    -> Result<ClientCalibration, SurveyError>;

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
