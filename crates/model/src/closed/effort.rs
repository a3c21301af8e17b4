//! Estimates the time and the memory of an exact solution.

use crate::ModelError;
use crate::network::Network;
use brimful_core::model::{Station, StationKind};
use std::fmt;

/// Estimated cost of an exact solution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Effort {
    /// Π (N + 1): number of populations, the combinations of 0 to N customers of each class.
    pub(crate) populations: f64,
    /// Memory of the solution's arrays, in bytes.
    pub(crate) bytes: f64,
    /// Approximate time on one core, in seconds.
    pub(crate) seconds: f64,
}

/// Maximum memory of an exact solution, in bytes.
const MAX_BYTES: f64 = (1u64 << 30) as f64;

/// Maximum time of an exact solution, in seconds.
const MAX_SECONDS: f64 = 30.0;

/// The method `auto` chooses an exact solution only if it takes at most this time, in seconds.
const QUICK_SECONDS: f64 = 1.0;

/// Time of one multiplication and addition, in seconds, in mean value analysis and in convolution.
const SECONDS_PER_OPERATION: f64 = 1.5e-9;

/// Additional cost of mean value analysis for each class and population, in units of [`SECONDS_PER_OPERATION`].
const PER_CLASS: f64 = 3.0;
/// Additional cost of convolution for each population and each pass over the populations, in units of
/// [`SECONDS_PER_OPERATION`].
const PER_PASS: f64 = 1.5;
/// Cost of the effect of open classes at a station, in units of [`SECONDS_PER_OPERATION`], for each pair of a rate
/// multiplier and a number of closed customers.
const PER_LEVEL: f64 = 3.0;

/// Estimates the cost of the exact solution of a network's closed classes.
pub(crate) fn effort(network: &Network<'_>) -> Effort {
    let sizes: Vec<f64> = network.closed().map(|c| f64::from(network.population[c]) + 1.0).collect();
    let populations: f64 = sizes.iter().product();
    let (classes, largest) = (sizes.len() as f64, sizes.iter().copied().fold(1.0, f64::max));
    let customers = network.customers() as f64;
    let queues = || network.model.stations.iter().enumerate().filter(|(_, s)| s.kind == StationKind::Queue);
    let levels = |s: &Station| (s.rate_multipliers.len() as f64).max(f64::from(s.servers));
    // The effect of open classes on a station is computed for each number of closed customers. Each of these values is
    // a sum over all rate multipliers.
    let prepared = |(k, s): (usize, &Station)| {
        if network.open_load(k) > 0.0 { PER_LEVEL * levels(s) * levels(s).min(customers + 1.0) } else { 0.0 }
    };
    let prepared: f64 = queues().map(prepared).sum();
    let reached = queues().map(|(_, s)| levels(s).min(customers));
    let (plain, changing): (Vec<f64>, Vec<f64>) = reached.partition(|levels| *levels <= 1.0);
    let plain = plain.len() as f64;
    if changing.is_empty() {
        let steps = populations * classes * (plain + PER_CLASS);
        return Effort {
            populations,
            bytes: 8.0 * populations / largest * plain,
            seconds: SECONDS_PER_OPERATION * (steps + prepared),
        };
    }
    let halvings = (changing.len() as f64).log2().ceil() + 1.0;
    let passes: f64 = changing.iter().map(|levels| levels + 3.0).sum::<f64>() * halvings + 2.0 * plain;
    let steps = 2.0 * populations * (classes + PER_PASS) * passes;
    Effort {
        populations,
        bytes: 16.0 * populations * (halvings + 3.0),
        seconds: SECONDS_PER_OPERATION * (steps + prepared),
    }
}

impl Effort {
    /// Whether the solution is quick enough for the method `auto`.
    pub(crate) fn is_quick(&self) -> bool {
        self.seconds <= QUICK_SECONDS && self.bytes <= MAX_BYTES
    }

    /// Returns an error if the solution does not fit in memory or takes too long.
    pub(crate) fn check(&self) -> Result<(), ModelError> {
        if self.bytes <= MAX_BYTES && self.seconds <= MAX_SECONDS {
            return Ok(());
        }
        Err(ModelError::TooLarge { populations: self.populations, bytes: self.bytes, seconds: self.seconds })
    }
}

impl fmt::Display for Effort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.0} populations", self.populations)
    }
}
