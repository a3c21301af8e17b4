//! Distributions of service times with a mean of 1 and a given squared coefficient of variation (scv).
//!
//! | scv | [`Service::Standard`] |
//! |---|---|
//! | 0 | constant |
//! | below 1 | gamma |
//! | 1 | exponential |
//! | above 1 | hyperexponential, two branches that carry the same work ("balanced means") |
//!
//! Balanced means: Allen (1990), *Probability, Statistics, and Queueing Theory*, §3.2.9. The bounded Pareto
//! distribution has a density proportional to x^(−a−1) between two bounds (Harchol-Balter, Crovella & Murta 1999). The
//! bounds follow from the mean and the scv.

use crate::ModelError;
use brimful_core::number::NumberError;
use rand::{Rng, RngExt};
use rand_distr::{Distribution, Exp1, Gamma, StandardNormal};

/// The family of distributions to which a station's service times belong. The model determines their mean and their
/// squared coefficient of variation (scv).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Service {
    /// Constant, gamma, exponential or hyperexponential service times, depending on the scv.
    #[default]
    Standard,
    /// Lognormal service times, which have a moderately heavy tail.
    Lognormal,
    /// Service times with a Pareto distribution between two bounds, which has a heavy tail up to the upper bound.
    BoundedPareto {
        /// The exponent a of the tail, above 0. Times and sizes on the Web have exponents between 1 and 2.
        shape: f64,
    },
}

/// Draws service times with a mean of 1.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Sampler {
    Constant,
    Exponential,
    Gamma(Gamma<f64>),
    /// A hyperexponential distribution: probability of the first branch, and the means of both branches.
    Hyperexponential(f64, [f64; 2]),
    /// A lognormal distribution: mean and standard deviation of the logarithm.
    Lognormal(f64, f64),
    /// A bounded Pareto distribution: the lower bound, the probability 1 − (lower/upper)^a, and −1/a.
    Pareto(f64, f64, f64),
}

impl Sampler {
    /// Creates a sampler of the family `service` with this scv. `station` is the name of the station in error messages.
    pub(crate) fn new(service: Service, scv: f64, station: &str) -> Result<Sampler, ModelError> {
        if scv < 1e-12 {
            return Ok(Sampler::Constant);
        }
        match service {
            Service::Standard if scv == 1.0 => Ok(Sampler::Exponential),
            Service::Standard if scv < 1.0 => Ok(Gamma::new(1.0 / scv, scv).map_or(Sampler::Constant, Sampler::Gamma)),
            Service::Standard => {
                let spread = ((scv - 1.0) / (scv + 1.0)).sqrt();
                // The probability of the second branch. Computing it as 1 minus the probability of the first branch
                // would lose digits if the scv is large.
                let rare = 1.0 / ((scv + 1.0) * (1.0 + spread));
                Ok(Sampler::Hyperexponential(1.0 - rare, [0.5 / (1.0 - rare), 0.5 / rare]))
            }
            Service::Lognormal => {
                let variance = scv.ln_1p();
                Ok(Sampler::Lognormal(-variance / 2.0, variance.sqrt()))
            }
            Service::BoundedPareto { shape } => bounded_pareto(shape, scv, station),
        }
    }

    #[inline]
    pub(crate) fn sample(&self, rng: &mut impl Rng) -> f64 {
        match *self {
            Sampler::Constant => 1.0,
            Sampler::Exponential => Exp1.sample(rng),
            Sampler::Gamma(gamma) => gamma.sample(rng),
            Sampler::Hyperexponential(first, means) => {
                let branch = usize::from(rng.random::<f64>() >= first);
                let unit: f64 = Exp1.sample(rng);
                unit * means[branch]
            }
            Sampler::Lognormal(mean, deviation) => {
                let normal: f64 = StandardNormal.sample(rng);
                (mean + deviation * normal).exp()
            }
            Sampler::Pareto(lower, probability, exponent) => {
                lower * (1.0 - rng.random::<f64>() * probability).powf(exponent)
            }
        }
    }
}

/// Maximum of ln(upper/lower) for the two bounds of a Pareto distribution.
const MAX_WIDTH: f64 = 300.0;

fn bounded_pareto(shape: f64, scv: f64, station: &str) -> Result<Sampler, ModelError> {
    if !(shape > 0.0 && shape.is_finite()) {
        let what = format!("the shape of the bounded Pareto distribution at station `{station}`");
        return Err(ModelError::Number(NumberError {
            what,
            value: shape,
            requirement: "above 0 and finite; 1.1 to 2 is usual",
        }));
    }
    // The k-th moment of a Pareto distribution with the lower bound 1 and the upper bound e^width.
    let moment = |k: f64, width: f64| power_integral(k - shape, width) / power_integral(-shape, width);
    let scv_at = |width: f64| moment(2.0, width) / moment(1.0, width).powi(2) - 1.0;
    if scv_at(MAX_WIDTH) < scv {
        let what = format!("the squared coefficient of variation of station `{station}`");
        let requirement = "one that a bounded Pareto distribution of this shape can have: choose a smaller shape";
        return Err(ModelError::Number(NumberError { what, value: scv, requirement }));
    }
    let (mut low, mut high) = (0.0, MAX_WIDTH);
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if scv_at(middle) < scv { low = middle } else { high = middle }
    }
    Ok(Sampler::Pareto(1.0 / moment(1.0, high), -(-shape * high).exp_m1(), -1.0 / shape))
}

/// The integral of x^(exponent − 1) for x from 1 to e^width.
fn power_integral(exponent: f64, width: f64) -> f64 {
    let z = exponent * width;
    if z.abs() < 1e-9 { width } else { z.exp_m1() / exponent }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_pcg::Pcg64Mcg;

    #[test]
    fn samples_have_unit_mean_and_the_scv() {
        let pareto = |shape| Service::BoundedPareto { shape };
        let families = [
            (Service::Standard, 0.0),
            (Service::Standard, 0.25),
            (Service::Standard, 1.0),
            (Service::Standard, 8.0),
            (Service::Lognormal, 0.5),
            (Service::Lognormal, 2.0),
            (pareto(1.0), 3.0),
            (pareto(1.5), 8.0),
            (pareto(2.0), 0.3),
            (pareto(2.5), 0.5),
        ];
        for (service, scv) in families {
            let sampler = Sampler::new(service, scv, "s").unwrap();
            let mut rng = Pcg64Mcg::new(0xcafe_f00d_d15e_a5e5);
            let n = 1_000_000;
            let (mut sum, mut squares) = (0.0, 0.0);
            for _ in 0..n {
                let x = sampler.sample(&mut rng);
                sum += x;
                squares += x * x;
            }
            let mean = sum / f64::from(n);
            let found = squares / f64::from(n) / mean.powi(2) - 1.0;
            assert!((mean - 1.0).abs() < 5.0 * ((scv + 1e-20) / f64::from(n)).sqrt(), "{service:?} {scv}: mean {mean}");
            assert!((found - scv).abs() <= 0.05 * scv, "{service:?} {scv}: {found}");
        }
    }

    #[test]
    fn an_scv_that_a_family_cannot_have_is_explained() {
        let steep = Sampler::new(Service::BoundedPareto { shape: 3.0 }, 1.0, "disk").unwrap_err().to_string();
        assert!(steep.contains("`disk`") && steep.contains("smaller shape"), "{steep}");
        assert!(Sampler::new(Service::BoundedPareto { shape: f64::NAN }, 1.0, "disk").is_err());
        assert!(Sampler::new(Service::Standard, f64::MAX, "disk").is_ok());
    }
}
