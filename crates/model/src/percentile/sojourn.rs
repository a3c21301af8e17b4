//! The Laplace–Stieltjes transform of the time that a request of a class spends at one station.

use super::service::{Family, Gamma, ONE};
use nalgebra::Complex;

/// The time that a request spends at a station, as a random variable.
#[derive(Clone)]
pub(super) enum Sojourn<'a> {
    /// A service time. The number is the mean of the service time, in seconds.
    Service(f64, Family),
    /// A wait, followed by a service time. The number is the mean of the service time, in seconds.
    Ordered(f64, Family, Wait<'a>),
    /// A service time, multiplied by one of three factors. The first number is the mean of the service time in seconds.
    /// The array has the factors and their probabilities.
    Shared(f64, Family, [(f64, f64); 3]),
    /// A constant service time that other requests prolong: the sum of a constant (in seconds) and a gamma distributed
    /// time.
    SharedConstant(f64, Gamma),
    /// One of several alternative times, each with its probability.
    OneOf(Vec<Alternative<'a>>),
    /// A time at a station with interruptions, which prolong it.
    Interrupted(Box<Sojourn<'a>>, Interruption),
    /// A wait in the order of arrival at a station that is interrupted, followed by a service time. The first number is
    /// the mean of the service time in seconds, without waiting for an interruption on arrival. The last one is a
    /// factor on the wait for other requests. With this factor, its mean is the mean that the solver computed.
    InterruptedOrder(f64, Family, OrderedWait<'a>, Interruption, f64),
}

/// The interruptions of a station. Times are in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Interruption {
    /// σ: share of the time in interruptions.
    pub(super) share: f64,
    /// ν': interruptions per second of the time outside of interruptions.
    pub(super) hazard: f64,
    /// Mean length of an interruption, in seconds.
    pub(super) mean: f64,
    /// The distribution of the lengths of interruptions.
    pub(super) family: Family,
    /// Probability that an arrival waits for an interruption.
    pub(super) must_wait: f64,
    /// An arrival that waits for an interruption waits for its remaining length times this factor.
    pub(super) factor: f64,
}

/// One of several times that a request may spend at a station, with its probability.
#[derive(Clone)]
pub(super) struct Alternative<'a> {
    pub(super) probability: f64,
    /// Mean of the time, in seconds.
    pub(super) mean: f64,
    /// Distribution of the time.
    pub(super) sojourn: Sojourn<'a>,
}

/// A waiting time, which may be 0.
#[derive(Clone)]
pub(super) enum Wait<'a> {
    /// The wait of M/G/m for service in the order of arrival, multiplied by a factor. With this factor, its mean is the
    /// mean wait that the solver computed.
    Ordered(OrderedWait<'a>, f64),
    /// A wait that occurs with the given probability and then has a gamma distribution. Otherwise the wait is 0.
    Sometimes(f64, Gamma),
    /// The wait of M/G/m with servers that must be woken up, for a request that finds all servers busy, multiplied by a
    /// factor. With this factor, its mean is the mean wait that the solver computed.
    Waking(WakingWait<'a>, f64),
}

/// The wait of M/G/m for service in the order of arrival. Times are in seconds.
#[derive(Clone)]
pub(super) struct OrderedWait<'a> {
    /// Demand of each class, in seconds.
    pub(super) demands: &'a [f64],
    /// Throughput of each class, in requests per second.
    pub(super) throughput: &'a [f64],
    /// Distribution of the service times.
    pub(super) family: Family,
    /// Number of servers.
    pub(super) servers: f64,
    /// Mean number of busy servers.
    pub(super) busy: f64,
    /// Utilization of the capacity that background work and interruptions leave.
    pub(super) rho: f64,
    /// Probability that an arrival must wait.
    pub(super) must_wait: f64,
    /// Mean remaining time of a service in progress, in seconds.
    pub(super) left: f64,
    /// Half the mean square of the remaining time of a service in progress.
    pub(super) left_squared: f64,
}

/// The wait of a request that finds all servers busy, at a station whose idle servers must be woken up. Times are in
/// seconds.
#[derive(Clone)]
pub(super) struct WakingWait<'a> {
    /// For each class: the demand of a request that finds all servers busy.
    pub(super) demands: &'a [f64],
    /// Throughput of each class, in requests per second.
    pub(super) rates: &'a [f64],
    /// Distribution of the service times.
    pub(super) family: Family,
    /// Number of servers.
    pub(super) servers: f64,
    /// Additional service time of a request that finds all servers idle, in seconds.
    pub(super) max_extra_s: f64,
    /// Shares of the servers that an arrival may find idle, including 0, each with its probability.
    pub(super) found: Vec<(f64, f64)>,
    /// Mean number of busy servers, including the additional service times.
    pub(super) busy: f64,
    /// Mean number of busy servers, excluding the additional service times.
    pub(super) work: f64,
    /// Mean remaining time of a service in progress. The first value includes the additional service times.
    pub(super) left: [f64; 2],
    /// Half the mean square of the remaining time of a service in progress. The first value includes the additional
    /// service times.
    pub(super) left_squared: [f64; 2],
}

impl Sojourn<'_> {
    /// The constant part of the time, in seconds. The rest of the time is random.
    pub(super) fn constant(&self) -> f64 {
        match self {
            Sojourn::Service(mean, Family::Constant) | Sojourn::Ordered(mean, Family::Constant, _) => *mean,
            Sojourn::SharedConstant(constant, _) => *constant,
            Sojourn::Interrupted(uninterrupted, interruption) => uninterrupted.constant() * (1.0 - interruption.share),
            Sojourn::InterruptedOrder(mean, Family::Constant, _, interruption, _) => mean * (1.0 - interruption.share),
            _ => 0.0,
        }
    }

    /// E\[e^(−sT)\] of the random part T of the time, without the constant part.
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
            Sojourn::OneOf(alternatives) => alternatives
                .iter()
                .map(|alternative| alternative.sojourn.whole_transform(s) * alternative.probability)
                .sum(),
            Sojourn::Interrupted(uninterrupted, interruption) => {
                let prolonged = interruption.prolonged(s);
                let constant = interruption.transform_during(uninterrupted.constant(), s);
                constant * uninterrupted.transform(prolonged) * interruption.wait_transform(s)
            }
            Sojourn::InterruptedOrder(mean, family, wait, interruption, factor) => {
                let service = match family {
                    Family::Constant => interruption.transform_during(*mean, s),
                    family => family.transform(interruption.prolonged(s) * *mean),
                };
                service * wait.interrupted_transform(s * *factor, interruption) * interruption.wait_transform(s)
            }
        }
    }

    /// E\[e^(−sT)\] of the whole time T, including the constant part.
    fn whole_transform(&self, s: Complex<f64>) -> Complex<f64> {
        (-s * self.constant()).exp() * self.transform(s)
    }
}

impl Interruption {
    /// (1 − σ)·(s + ν'·(1 − E\[e^(−sL)\])). A request with the time T at the station is in service, or waits for other
    /// requests, for (1 − σ)·T. Interruptions prolong this time to T on average. The transform of the prolonged time at
    /// s is the transform of T at the returned value.
    fn prolonged(&self, s: Complex<f64>) -> Complex<f64> {
        (s + (ONE - self.family.transform(s * self.mean)) * self.hazard) * (1.0 - self.share)
    }

    /// The transform, at `s`, of the total length of the interruptions during a constant time. With these
    /// interruptions, the time has the mean `constant`, in seconds.
    fn transform_during(&self, constant: f64, s: Complex<f64>) -> Complex<f64> {
        (-(self.prolonged(s) - s * (1.0 - self.share)) * constant).exp()
    }

    /// E\[e^(−sV)\] of the wait V for an interruption: 0, or the remaining length of an interruption times a factor.
    fn wait_transform(&self, s: Complex<f64>) -> Complex<f64> {
        let z = s * (self.mean * self.factor);
        let remaining = if z.norm() > 1e-9 { (ONE - self.family.transform(z)) / z } else { ONE };
        remaining * self.must_wait + (1.0 - self.must_wait)
    }
}

impl Wait<'_> {
    fn transform(&self, s: Complex<f64>) -> Complex<f64> {
        match self {
            Wait::Ordered(wait, factor) => wait.transform(s * *factor),
            Wait::Sometimes(often, gamma) => gamma.transform(s) * *often + (1.0 - often),
            Wait::Waking(wait, factor) => wait.transform(s * *factor),
        }
    }
}

impl OrderedWait<'_> {
    /// E\[e^(−sW)\] of the wait W for service in the order of arrival.
    fn transform(&self, s: Complex<f64>) -> Complex<f64> {
        self.wait_transform(self.left_transform(s))
    }

    /// E\[e^(−sW)\] of the wait W for service at a station that is interrupted, without the wait for an interruption on
    /// arrival. The service of a request includes the interruptions during it (completion time; Gaver 1962), so the
    /// remaining service has the transform (1 − C(s))/(s·E\[C\]), where C is the transform of the completion time.
    fn interrupted_transform(&self, s: Complex<f64>, interruption: &Interruption) -> Complex<f64> {
        let prolonged = interruption.prolonged(s);
        self.wait_transform(self.left_transform(prolonged) * prolonged / s)
    }

    fn wait_transform(&self, left: Complex<f64>) -> Complex<f64> {
        let wait = left * (1.0 - self.rho) / (ONE - left * self.rho);
        wait * self.must_wait + (1.0 - self.must_wait)
    }

    /// E, the Laplace–Stieltjes transform of the remaining time of a service in progress. The m servers are treated as
    /// one server of m times the speed.
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

impl WakingWait<'_> {
    /// E\[e^(−sW)\] of the wait W in order of arrival, for a request that must wait: (E − ρ·F)/(1 − ρ·F). E and F are
    /// the transforms of the remaining service: E for all requests, F for requests without additional service time. ρ
    /// is the load of the requests without additional time. With one server, E − ρ·F is 1 − ρ times the remaining
    /// service of a request with additional time, as in the formula of Welch (1964).
    fn transform(&self, s: Complex<f64>) -> Complex<f64> {
        let z = s / self.servers;
        let near = |k: usize| ONE - z * self.left[k] + z * z * self.left_squared[k];
        let ended = |extra: f64| {
            let class = |(d, x): (&f64, &f64)| {
                if *d > 0.0 { (ONE - self.family.transform(z * (*d + extra))) * *x } else { Complex::ZERO }
            };
            self.demands.iter().zip(self.rates).map(class).sum::<Complex<f64>>()
        };
        let rho = self.work / self.servers;
        let small = |left: f64| z.norm() * left < 1e-4;
        let plain = if small(self.left[1]) { near(1) } else { ended(0.0) / (z * self.work) };
        let all = if small(self.left[0]) {
            near(0)
        } else {
            let woken = |(share, often): &(f64, f64)| ended(self.max_extra_s * share) * *often;
            self.found.iter().map(woken).sum::<Complex<f64>>() / (z * self.busy)
        };
        (all - plain * rho) / (ONE - plain * rho)
    }
}
