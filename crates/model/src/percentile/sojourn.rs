//! The time that a request of a class spends at one station, as a transform.

use super::place::Place;
use super::service::{Family, Gamma, ONE};
use nalgebra::Complex;

/// The time of a class at a station.
pub(super) enum Sojourn<'a> {
    /// A service time of this mean.
    Service(f64, Family),
    /// A service time after a wait.
    Ordered(f64, Family, Wait<'a>),
    /// A service time stretched by the nodes, which have weights.
    Shared(f64, Family, [(f64, f64); 3]),
    /// The same of a constant one: constant, and something gamma on top.
    SharedConstant(f64, Gamma),
}

/// A time that may be none at all.
pub(super) enum Wait<'a> {
    /// Of M/G/m, in units of this many seconds.
    Ordered(&'a Place<'a>, f64),
    /// Gamma with the probability `.0`, else none.
    Sometimes(f64, Gamma),
}

impl Sojourn<'_> {
    /// What of it is the same for all.
    pub(super) fn constant(&self) -> f64 {
        match self {
            Sojourn::Service(mean, Family::Constant) | Sojourn::Ordered(mean, Family::Constant, _) => *mean,
            Sojourn::SharedConstant(constant, _) => *constant,
            _ => 0.0,
        }
    }

    /// E\[e^(−sT)\] of the rest.
    pub(super) fn transform(&self, s: Complex<f64>) -> Complex<f64> {
        let service = |mean: f64, family: Family| match family {
            Family::Constant => ONE,
            family => family.transform(s * mean),
        };
        match self {
            Sojourn::Service(mean, family) => service(*mean, *family),
            Sojourn::Ordered(mean, family, wait) => service(*mean, *family) * wait.transform(s),
            Sojourn::Shared(mean, family, nodes) => {
                nodes.iter().map(|(stretch, weight)| family.transform(s * (mean * stretch)) * *weight).sum()
            }
            Sojourn::SharedConstant(_, gamma) => gamma.transform(s),
        }
    }
}

impl Wait<'_> {
    fn transform(&self, s: Complex<f64>) -> Complex<f64> {
        match self {
            Wait::Ordered(place, unit) => place.wait_transform(s * *unit),
            Wait::Sometimes(often, gamma) => gamma.transform(s) * *often + (1.0 - often),
        }
    }
}
