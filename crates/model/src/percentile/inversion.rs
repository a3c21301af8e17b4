//! Numerical inversion of a Laplace transform.
//!
//! The algorithm is EULER of Abate & Whitt (1995), "Numerical inversion of Laplace transforms of probability
//! distributions". It computes the Bromwich integral by the trapezoidal rule, and sums the resulting alternating series
//! by Euler's method. The error of the trapezoidal rule is below e^−A, about 10⁻⁸; the rounding error is smaller. The
//! method fails where a distribution jumps, so a constant part of a time must be subtracted first. Cost: [`TERMS`]
//! values of the transform.

use super::service::ONE;
use nalgebra::Complex;
use std::f64::consts::{LN_2, PI};

/// Constant A of Abate & Whitt: the error of the trapezoidal rule is at most e^−A.
const A: f64 = 18.4;
/// Number of terms that are summed before Euler's method begins to average partial sums.
const PLAIN_TERMS: usize = 15;
/// Weights of the partial sums that are averaged: the binomial coefficients C(11, k). Their sum is 2¹¹.
const AVERAGED: [f64; 12] = [1.0, 11.0, 55.0, 165.0, 330.0, 462.0, 462.0, 330.0, 165.0, 55.0, 11.0, 1.0];
/// Number of values of the transform that are computed.
#[cfg(test)]
const TERMS: usize = PLAIN_TERMS + AVERAGED.len();

/// The probability P(T > `t`) for `t` > 0. `transform` computes E\[e^(−sT)\].
pub(super) fn tail(t: f64, transform: impl Fn(Complex<f64>) -> Complex<f64>) -> f64 {
    let term = |k: usize| {
        let s = Complex::new(A, 2.0 * PI * k as f64) / (2.0 * t);
        ((ONE - transform(s)) / s).re
    };
    let mut sum = term(0) / 2.0;
    let mut averaged = 0.0;
    let total = f64::exp(AVERAGED.len() as f64 * LN_2 - LN_2);
    for k in 1..PLAIN_TERMS + AVERAGED.len() {
        sum += if k % 2 == 0 { term(k) } else { -term(k) };
        if k >= PLAIN_TERMS {
            averaged += AVERAGED[k - PLAIN_TERMS] / total * sum;
        }
    }
    ((A / 2.0).exp() / t * averaged).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_distributions_are_recovered() {
        for t in [0.01, 0.3, 1.0, 4.0, 12.0_f64] {
            let exponential = tail(t, |s| (s + 1.0).inv());
            assert!((exponential - (-t).exp()).abs() < 1e-7, "{t}: {exponential}");
            let erlang = tail(t, |s| (s + 1.0).powi(-3));
            assert!((erlang - (-t).exp() * (1.0 + t + t * t / 2.0)).abs() < 1e-7, "{t}: {erlang}");
            // With probability 1/4 the time is 0, otherwise it is exponential with mean 1: P(T > t) = ¾·e^−t.
            let atom = tail(t, |s| (s + 1.0).inv() * 0.75 + 0.25);
            assert!((atom - 0.75 * (-t).exp()).abs() < 1e-7, "{t}: {atom}");
        }
    }

    #[test]
    fn it_takes_27_values() {
        let values = std::cell::Cell::new(0);
        tail(1.0, |s| {
            values.set(values.get() + 1);
            (s + 1.0).inv()
        });
        assert_eq!(values.get(), TERMS);
    }
}
