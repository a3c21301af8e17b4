//! Laplace–Stieltjes transforms of service times, for the families that the simulator uses
//! ([`crate::Service::Standard`]), and of gamma distributed times.

use nalgebra::Complex;
use std::f64::consts::PI;

pub(super) const ONE: Complex<f64> = Complex::new(1.0, 0.0);

/// The distribution of a service time, chosen by its squared coefficient of variation (scv): constant for 0, gamma
/// below 1, exponential for 1, hyperexponential with balanced means above 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Family {
    Constant,
    /// A gamma distribution with this scv.
    Gamma(f64),
    Exponential,
    /// A hyperexponential distribution whose first branch has this probability.
    Hyperexponential(f64),
}

/// A gamma distribution of a time in seconds. If `shape` is 0, the time is the constant `scale`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Gamma {
    shape: f64,
    scale: f64,
}

/// Range of scv for which a time has a gamma distribution. Outside this range, the time is assumed to be constant.
const GAMMA_SCV: std::ops::Range<f64> = 1e-6..1e12;

/// Smallest scv that is not treated as 0. A smaller scv would not change results, but would cause rounding errors.
const MIN_SCV: f64 = 1e-4;

impl Family {
    /// The family of distributions for this squared coefficient of variation.
    pub(crate) fn new(scv: f64) -> Family {
        match scv {
            _ if scv < MIN_SCV => Family::Constant,
            _ if scv < 1.0 => Family::Gamma(scv),
            _ if scv == 1.0 => Family::Exponential,
            _ => Family::Hyperexponential((1.0 + ((scv - 1.0) / (scv + 1.0)).sqrt()) / 2.0),
        }
    }

    /// E\[e^(−zS)\] for a service time S with mean 1.
    pub(crate) fn transform(self, z: Complex<f64>) -> Complex<f64> {
        match self {
            Family::Constant => (-z).exp(),
            Family::Gamma(scv) => (z * scv + 1.0).powf(-1.0 / scv),
            Family::Exponential => (z + 1.0).inv(),
            Family::Hyperexponential(p) => {
                let branch = |p: f64| (z / (2.0 * p) + 1.0).inv() * p;
                branch(p) + branch(1.0 - p)
            }
        }
    }

    /// E\[S³\] for a service time S with mean 1.
    pub(super) fn third_moment(self) -> f64 {
        match self {
            Family::Constant => 1.0,
            Family::Gamma(scv) => (1.0 + scv) * (1.0 + 2.0 * scv),
            Family::Exponential => 6.0,
            Family::Hyperexponential(p) => 0.75 * (1.0 / (p * p) + 1.0 / ((1.0 - p) * (1.0 - p))),
        }
    }

    /// E\[zS − 1 + e^(−zS)\] for a service time S with mean 1 and this scv.
    pub(crate) fn settled(self, z: f64, scv: f64) -> f64 {
        if z < 1e-3 {
            // For small z, the difference would cancel, so the first terms of the series are used.
            return z * z * (1.0 + scv) / 2.0 - z * z * z * self.third_moment() / 6.0;
        }
        z - 1.0 + self.transform(Complex::new(z, 0.0)).re
    }
}

impl Gamma {
    /// The gamma distribution with this mean in seconds and squared coefficient of variation.
    pub(super) fn new(mean: f64, scv: f64) -> Gamma {
        if mean > 0.0 && GAMMA_SCV.contains(&scv) {
            Gamma { shape: 1.0 / scv, scale: mean * scv }
        } else {
            Gamma { shape: 0.0, scale: mean.max(0.0) }
        }
    }

    /// The distribution of the time multiplied by `factor`.
    pub(super) fn times(self, factor: f64) -> Gamma {
        Gamma { scale: self.scale * factor, ..self }
    }

    /// E\[e^(−sT)\] of the time T.
    pub(super) fn transform(self, s: Complex<f64>) -> Complex<f64> {
        if self.shape > 0.0 { (s * self.scale + 1.0).powf(-self.shape) } else { (-s * self.scale).exp() }
    }

    /// Three values and their weights: a discrete distribution with the same first five moments as the gamma
    /// distribution (Gauss–Laguerre quadrature, in closed form).
    pub(super) fn nodes(self) -> [(f64, f64); 3] {
        let (k, scale) = (self.shape, self.scale);
        if k == 0.0 {
            return [(scale, 1.0), (0.0, 0.0), (0.0, 0.0)];
        }
        // With shape k, the values are the roots of x³ − 3(k + 2)x² + 3(k + 1)(k + 2)x − k(k + 1)(k + 2). The weight of
        // a value x is 1/Σ pᵢ²(x), where pᵢ are the orthonormal polynomials.
        let root = (k + 2.0).sqrt();
        let angle = (1.0 / root).acos();
        [0.0, 1.0, 2.0].map(|j| {
            let x = k + 2.0 + 2.0 * root * ((angle + 2.0 * PI * j) / 3.0).cos();
            let first = (x - k) * (x - k) / k;
            let second = (x * x - 2.0 * (k + 1.0) * x + k * (k + 1.0)).powi(2) / (2.0 * k * (k + 1.0));
            (scale * x, 1.0 / (1.0 + first + second))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The moment E[S^k], computed from the three nodes of the quadrature.
    fn moment(gamma: Gamma, k: i32) -> f64 {
        gamma.nodes().iter().map(|(x, weight)| weight * x.powi(k)).sum()
    }

    #[test]
    fn nodes_have_the_moments_of_gamma() {
        for scv in [0.01, 0.5, 1.0, 3.0, 50.0] {
            let gamma = Gamma::new(2.0, scv);
            let mut expected = 1.0;
            for k in 0..=5 {
                assert!((moment(gamma, k) / expected - 1.0).abs() < 1e-7, "scv {scv}, moment {k}");
                expected *= 2.0 * scv * (1.0 / scv + f64::from(k));
            }
        }
        assert_eq!(moment(Gamma::new(2.0, 0.0), 1), 2.0);
        assert_eq!(moment(Gamma::new(0.0, 1.0), 1), 0.0);
        assert_eq!(moment(Gamma::new(2.0, f64::NAN), 1), 2.0, "a NaN variation counts as 0");
    }

    #[test]
    fn families_have_the_given_moments() {
        for scv in [0.0, 0.3, 1.0, 4.0] {
            let family = Family::new(scv);
            let at = |z: f64| family.transform(Complex::new(z, 0.0)).re;
            let h = 1e-3;
            let mean = (at(-h) - at(h)) / (2.0 * h);
            let square = (at(-h) - 2.0 + at(h)) / (h * h);
            let third = (at(-2.0 * h) - 2.0 * at(-h) + 2.0 * at(h) - at(2.0 * h)) / (2.0 * h * h * h);
            assert!(
                (mean - 1.0).abs() < 1e-3 && (square - 1.0 - scv).abs() < 1e-2 * (1.0 + scv),
                "{scv}: {mean} {square}"
            );
            assert!((third / family.third_moment() - 1.0).abs() < 1e-2, "{scv}: {third}");
            let (below, above) = (family.settled(0.999e-3, scv), family.settled(1.001e-3, scv));
            assert!(
                (above / below - (1.001f64 / 0.999).powi(2)).abs() < 1e-4,
                "{scv}: both ways agree where they meet"
            );
        }
    }
}
