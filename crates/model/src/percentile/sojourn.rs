//! The time that a request of a class spends at one station, as a transform.

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
    Ordered(OrderedWait<'a>, f64),
    /// Gamma with the probability `.0`, else none.
    Sometimes(f64, Gamma),
}

/// The wait of M/G/m for service in the order of arrival.
pub(super) struct OrderedWait<'a> {
    /// By class.
    pub(super) demands: &'a [f64],
    pub(super) throughput: &'a [f64],
    pub(super) family: Family,
    pub(super) servers: f64,
    /// Busy servers, and their share.
    pub(super) busy: f64,
    pub(super) rho: f64,
    /// Probability that an arrival must wait.
    pub(super) must_wait: f64,
    /// Mean time that a service under way still takes, and half the mean of its square.
    pub(super) left: f64,
    pub(super) left_squared: f64,
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
            Wait::Ordered(wait, unit) => wait.transform(s * *unit),
            Wait::Sometimes(often, gamma) => gamma.transform(s) * *often + (1.0 - often),
        }
    }
}

impl OrderedWait<'_> {
    /// E\[e^(−sW)\] of the wait for service in the order of arrival.
    fn transform(&self, s: Complex<f64>) -> Complex<f64> {
        let left = self.left_transform(s);
        let wait = left * (1.0 - self.rho) / (ONE - left * self.rho);
        wait * self.must_wait + (1.0 - self.must_wait)
    }

    /// E of the service left in front, at m times the speed.
    fn left_transform(&self, s: Complex<f64>) -> Complex<f64> {
        let z = s / self.servers;
        if z.norm() * self.left < 1e-4 {
            return ONE - z * self.left + z * z * self.left_squared;
        }
        let ended = |(d, x): (&f64, &f64)| {
            if *d > 0.0 { (ONE - self.family.transform(z * *d)) * *x } else { Complex::ZERO }
        };
        self.demands.iter().zip(self.throughput).map(ended).sum::<Complex<f64>>() / (z * self.busy)
    }
}
