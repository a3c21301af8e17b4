//! The time that a request of a class spends at one station, as a transform.

use super::service::{Family, Gamma, ONE};
use nalgebra::Complex;

/// The time of a class at a station.
#[derive(Clone)]
pub(super) enum Sojourn<'a> {
    /// A service time of this mean.
    Service(f64, Family),
    /// A service time after a wait.
    Ordered(f64, Family, Wait<'a>),
    /// A service time stretched by the nodes, which have weights.
    Shared(f64, Family, [(f64, f64); 3]),
    /// The same of a constant one: constant, and something gamma on top.
    SharedConstant(f64, Gamma),
    /// One of several.
    OneOf(Vec<Way<'a>>),
}

/// One of several times that it may take.
#[derive(Clone)]
pub(super) struct Way<'a> {
    pub(super) probability: f64,
    pub(super) mean: f64,
    pub(super) sojourn: Sojourn<'a>,
}

/// A time that may be none at all.
#[derive(Clone)]
pub(super) enum Wait<'a> {
    /// Of M/G/m, in units of this many seconds.
    Ordered(OrderedWait<'a>, f64),
    /// Gamma with the probability `.0`, else none.
    Sometimes(f64, Gamma),
    /// Of M/G/m where those who find servers idle pay for it, for one that does not; in units of this many seconds.
    Behind(PaidWait<'a>, f64),
}

/// The wait of M/G/m for service in the order of arrival.
#[derive(Clone)]
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

/// The wait of those who wait where others have paid for idle servers.
#[derive(Clone)]
pub(super) struct PaidWait<'a> {
    /// Those who find all servers busy, by class: at saturation.
    pub(super) demands: &'a [f64],
    pub(super) rates: &'a [f64],
    pub(super) family: Family,
    pub(super) servers: f64,
    /// What one pays that finds all servers idle; and with which probabilities which shares are found so, none
    /// included.
    pub(super) most: f64,
    pub(super) found: Vec<(f64, f64)>,
    /// Busy servers, and how many would be without anything extra.
    pub(super) busy: f64,
    pub(super) work: f64,
    /// Mean time that a service under way still takes and half the mean of its square, with what is extra and without.
    pub(super) left: [f64; 2],
    pub(super) left_squared: [f64; 2],
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
            Sojourn::OneOf(ways) => ways.iter().map(|way| way.sojourn.whole_transform(s) * way.probability).sum(),
        }
    }

    /// E\[e^(−sT)\] of all of it.
    fn whole_transform(&self, s: Complex<f64>) -> Complex<f64> {
        (-s * self.constant()).exp() * self.transform(s)
    }
}

impl Wait<'_> {
    fn transform(&self, s: Complex<f64>) -> Complex<f64> {
        match self {
            Wait::Ordered(wait, unit) => wait.transform(s * *unit),
            Wait::Sometimes(often, gamma) => gamma.transform(s) * *often + (1.0 - often),
            Wait::Behind(wait, unit) => wait.transform(s * *unit),
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

impl PaidWait<'_> {
    /// E\[e^(−sW)\], the wait in order of arrival of one that has to. With E the service still left of all and F that
    /// of those who did not pay, (E − ρ·F)/(1 − ρ·F), and ρ the load without anything extra. At one server E − ρ·F is
    /// (1 − ρ) times what is left of a service that was paid for, and this is Welch's (1964).
    fn transform(&self, s: Complex<f64>) -> Complex<f64> {
        let z = s / self.servers;
        let near = |k: usize| ONE - z * self.left[k] + z * z * self.left_squared[k];
        let ended = |extra: f64| {
            let of = |(d, x): (&f64, &f64)| {
                if *d > 0.0 { (ONE - self.family.transform(z * (*d + extra))) * *x } else { Complex::ZERO }
            };
            self.demands.iter().zip(self.rates).map(of).sum::<Complex<f64>>()
        };
        let rho = self.work / self.servers;
        let small = |left: f64| z.norm() * left < 1e-4;
        let plain = if small(self.left[1]) { near(1) } else { ended(0.0) / (z * self.work) };
        let all = if small(self.left[0]) {
            near(0)
        } else {
            let paid = |(share, often): &(f64, f64)| ended(self.most * share) * *often;
            self.found.iter().map(paid).sum::<Complex<f64>>() / (z * self.busy)
        };
        (all - plain * rho) / (ONE - plain * rho)
    }
}
