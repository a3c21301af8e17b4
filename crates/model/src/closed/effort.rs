//! What an exact solution would take, before it is begun.

use crate::ModelError;
use crate::network::Network;
use brimful_core::model::{Station, StationKind};
use std::fmt;

/// What an exact solution must go through.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Effort {
    /// Π (N + 1): combinations of how many customers of each class there are.
    pub(crate) populations: f64,
    /// Memory for what the recursion carries along.
    pub(crate) bytes: f64,
    /// Time on one core, roughly.
    pub(crate) seconds: f64,
}

/// Not more than this is held in memory.
const MOST_BYTES: f64 = (1u64 << 30) as f64;

/// Nor is anyone kept waiting for longer.
const MOST_SECONDS: f64 = 30.0;

/// What `auto` takes for quick.
const QUICK_SECONDS: f64 = 1.0;

/// One addition of both recursions, with its multiplication and what goes with it; in seconds.
const STEP: f64 = 1.5e-9;

/// What else it costs in such additions: mean value analysis for each class and population, convolution for each
/// population and pass. And what it costs to sum up one level of a station for the open classes.
const PER_CLASS: f64 = 3.0;
const PER_PASS: f64 = 1.5;
const PER_LEVEL: f64 = 3.0;

/// What the exact solution of a network's closed classes would take.
pub(crate) fn effort(network: &Network<'_>) -> Effort {
    let sizes: Vec<f64> = network.closed().map(|c| f64::from(network.population[c]) + 1.0).collect();
    let populations: f64 = sizes.iter().product();
    let (classes, largest) = (sizes.len() as f64, sizes.iter().copied().fold(1.0, f64::max));
    let customers = network.customers() as f64;
    let queues = || network.model.stations.iter().enumerate().filter(|(_, s)| s.kind == StationKind::Queue);
    let levels = |s: &Station| (s.rate_multipliers.len() as f64).max(f64::from(s.servers));
    // What open classes do to a station takes all its levels for each that the closed ones can reach.
    let prepared = |(k, s): (usize, &Station)| {
        if network.open_load(k) > 0.0 { PER_LEVEL * levels(s) * levels(s).min(customers + 1.0) } else { 0.0 }
    };
    let prepared: f64 = queues().map(prepared).sum();
    let reached = queues().map(|(_, s)| levels(s).min(customers));
    let (plain, changing): (Vec<f64>, Vec<f64>) = reached.partition(|levels| *levels <= 1.0);
    let plain = plain.len() as f64;
    if changing.is_empty() {
        let steps = populations * classes * (plain + PER_CLASS);
        return Effort { populations, bytes: 8.0 * populations / largest * plain, seconds: STEP * (steps + prepared) };
    }
    let halvings = (changing.len() as f64).log2().ceil() + 1.0;
    let passes: f64 = changing.iter().map(|levels| levels + 3.0).sum::<f64>() * halvings + 2.0 * plain;
    let steps = 2.0 * populations * (classes + PER_PASS) * passes;
    Effort { populations, bytes: 16.0 * populations * (halvings + 3.0), seconds: STEP * (steps + prepared) }
}

impl Effort {
    /// Whether no one minds waiting for it.
    pub(crate) fn is_quick(&self) -> bool {
        self.seconds <= QUICK_SECONDS && self.bytes <= MOST_BYTES
    }

    /// An error if it does not fit in memory or takes too long.
    pub(crate) fn check(&self) -> Result<(), ModelError> {
        if self.bytes <= MOST_BYTES && self.seconds <= MOST_SECONDS {
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
