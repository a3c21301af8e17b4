//! MMPP(2)/M/1: arrivals that switch between two Poisson rates, at one exponential server.
//!
//! The arrival process and its index of dispersion for counts: Heffes & Lucantoni (1986), Fischer & Meier-Hellstern
//! (1993). The queue is a quasi-birth-death process of two phases. The matrix G of this process is computed by
//! logarithmic reduction (Latouche & Ramaswami, 1993), which converges quadratically. Then R = A0·(−A1 − A0·G)⁻¹ and
//! the matrix-geometric probabilities are π(n) = π(0)·Rⁿ (Neuts, 1981). This is exact for ρ < 1. Cost: about ten
//! products of 2 × 2 matrices.

use crate::ModelError;
use crate::error::stable_utilization;
use brimful_core::number::{check_non_negative, check_positive};
use serde::Serialize;

/// A Markov-modulated Poisson process of two phases.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Mmpp2 {
    /// λ: arrivals per second in each phase; one of them may be 0.
    pub rates: [f64; 2],
    /// Rate at which the process leaves each phase, per second.
    pub leave: [f64; 2],
}

/// A solved MMPP(2)/M/1 queue.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MmppM1 {
    /// U: utilization of the server.
    pub utilization: f64,
    /// N: mean number of requests present.
    pub number: f64,
    /// R: mean response time, in seconds.
    pub response_time: f64,
    /// π(0): the probability that no request is present, for each phase.
    empty: [f64; 2],
    /// R: the rate matrix of the matrix-geometric solution π(n) = π(0)·Rⁿ.
    growth: Matrix,
}

type Matrix = [[f64; 2]; 2];

/// Maximum number of squarings of the logarithmic reduction. Each squaring doubles the largest number of requests that
/// the result includes.
const SQUARINGS: usize = 64;

impl Mmpp2 {
    /// Returns an error if a rate is invalid, there are no arrivals, or a phase is never left.
    fn check(&self) -> Result<(), ModelError> {
        for rate in self.rates {
            check_non_negative(rate, || "an arrival rate of the bursty process".into())?;
        }
        for leave in self.leave {
            check_positive(leave, || "a rate of leaving a phase of the bursty process".into())?;
        }
        check_positive(self.mean_rate(), || "the mean arrival rate of the bursty process".into())?;
        Ok(())
    }

    /// λ: mean arrivals per second over all time.
    pub fn mean_rate(&self) -> f64 {
        let share = self.share();
        share[0] * self.rates[0] + share[1] * self.rates[1]
    }

    /// Index of dispersion of the number of arrivals in a period of `seconds`: the ratio of its variance to its mean.
    /// It is 1 for a Poisson process.
    pub fn index_of_dispersion(&self, seconds: f64) -> f64 {
        let both = (self.leave[0] + self.leave[1]) * seconds;
        // (1 − e⁻ˣ)/x for x = `both`; its limit at 0 is 1.
        let faded = if both > 0.0 { -(-both).exp_m1() / both } else { 1.0 };
        1.0 + (self.index_of_dispersion_limit() - 1.0) * (1.0 - faded)
    }

    /// The limit of [`Mmpp2::index_of_dispersion`] for an infinitely long period.
    pub fn index_of_dispersion_limit(&self) -> f64 {
        let share = self.share();
        let difference = self.rates[0] - self.rates[1];
        1.0 + 2.0 * share[0] * share[1] * difference * difference / ((self.leave[0] + self.leave[1]) * self.mean_rate())
    }

    /// Share of the time that the process spends in each phase.
    fn share(&self) -> [f64; 2] {
        let both = self.leave[0] + self.leave[1];
        [self.leave[1] / both, self.leave[0] / both]
    }
}

/// Solves the queue for a mean service time in seconds.
pub fn mmpp_m1(arrivals: &Mmpp2, mean_service: f64) -> Result<MmppM1, ModelError> {
    arrivals.check()?;
    let service = check_positive(mean_service, || "the mean service time".into())?;
    let rate = arrivals.mean_rate();
    let utilization = stable_utilization(rate, service)?;
    // From here on, the unit of time is the mean service time.
    let (rates, leave) = (arrivals.rates.map(|r| r * service), arrivals.leave.map(|r| r * service));
    let up = [[rates[0], 0.0], [0.0, rates[1]]];
    let local = [[-(leave[0] + rates[0] + 1.0), leave[0]], [leave[1], -(leave[1] + rates[1] + 1.0)]];
    let first_down = reduce(up, local);
    let growth = product(up, inverse(minus(negated(local), product(up, first_down))));
    // With 0 requests present, there is no service, so π(0)·(B + R·A2) = 0. B has the rates at which the phase changes
    // without a request, and A2 the rates of services. The probabilities sum to 1: Σ π(0)·Rⁿ·1 = 1.
    let spread = inverse(minus(IDENTITY, growth));
    let flow = plus([[-(leave[0] + rates[0]), leave[0]], [leave[1], -(leave[1] + rates[1])]], growth);
    let ray = if flow[0][0].abs() >= flow[0][1].abs() { [-flow[1][0], flow[0][0]] } else { [-flow[1][1], flow[0][1]] };
    let total: f64 = apply(ray, spread).iter().sum();
    let empty = ray.map(|p| p / total);
    let number: f64 = apply(apply(apply(empty, growth), spread), spread).iter().sum();
    Ok(MmppM1 { utilization, number, response_time: number / rate, empty, growth })
}

impl MmppM1 {
    /// The probability that `n` requests are present.
    pub fn probability(&self, n: u32) -> f64 {
        apply(self.empty, power(self.growth, n)).iter().sum()
    }

    /// Quantile of the number of requests present; `p` must be between 0 and 1, exclusive.
    pub fn number_quantile(&self, p: f64) -> Option<u32> {
        if !(p > 0.0 && p < 1.0) {
            return None;
        }
        let spread = inverse(minus(IDENTITY, self.growth));
        // P(N > n) = π(0)·Rⁿ⁺¹·(1 − R)⁻¹·1 decreases as n grows, so bisection finds the smallest n for which it is at
        // most 1 − p.
        let beyond = |n: u32| apply(apply(self.empty, product(power(self.growth, n), self.growth)), spread);
        let enough = |n: u32| beyond(n).iter().sum::<f64>() <= 1.0 - p;
        let (mut low, mut high) = (0, u32::MAX - 1);
        while low < high {
            let middle = low + (high - low) / 2;
            if enough(middle) { high = middle } else { low = middle + 1 }
        }
        Some(low)
    }
}

/// G: for each phase, the probabilities of the phase in which the number of requests first falls by 1. It is computed
/// by logarithmic reduction. The arguments are the rates of arrivals A0 = `up`, and A1 = `local`, the rates of changes
/// that keep the number of requests. The rates of services A2 are 1.
fn reduce(up: Matrix, local: Matrix) -> Matrix {
    let stay = inverse(negated(local));
    let (mut high, mut low) = (product(stay, up), stay);
    let (mut first_down, mut ups) = (low, high);
    for _ in 0..SQUARINGS {
        let both = inverse(minus(IDENTITY, plus(product(high, low), product(low, high))));
        (high, low) = (product(both, product(high, high)), product(both, product(low, low)));
        let gained = product(ups, low);
        first_down = plus(first_down, gained);
        ups = product(ups, high);
        if gained.iter().flatten().all(|g| *g <= 1e-17) {
            break;
        }
    }
    first_down
}

const IDENTITY: Matrix = [[1.0, 0.0], [0.0, 1.0]];

fn product(a: Matrix, b: Matrix) -> Matrix {
    a.map(|row| apply(row, b))
}

/// Multiplies a row by a matrix.
fn apply(row: [f64; 2], m: Matrix) -> [f64; 2] {
    [row[0] * m[0][0] + row[1] * m[1][0], row[0] * m[0][1] + row[1] * m[1][1]]
}

fn plus(a: Matrix, b: Matrix) -> Matrix {
    [[a[0][0] + b[0][0], a[0][1] + b[0][1]], [a[1][0] + b[1][0], a[1][1] + b[1][1]]]
}

fn minus(a: Matrix, b: Matrix) -> Matrix {
    plus(a, negated(b))
}

fn negated(m: Matrix) -> Matrix {
    m.map(|row| row.map(|v| -v))
}

fn inverse(m: Matrix) -> Matrix {
    let determinant = m[0][0] * m[1][1] - m[0][1] * m[1][0];
    [[m[1][1] / determinant, -m[0][1] / determinant], [-m[1][0] / determinant, m[0][0] / determinant]]
}

fn power(m: Matrix, n: u32) -> Matrix {
    let (mut result, mut square, mut rest) = (IDENTITY, m, n);
    while rest > 0 {
        if rest % 2 == 1 {
            result = product(result, square);
        }
        (square, rest) = (product(square, square), rest / 2);
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64, tolerance: f64) -> bool {
        (a - b).abs() <= tolerance * b.abs()
    }

    /// P(n) of the same process with at most `levels` requests present. The probabilities of the phases satisfy π(n) =
    /// π(n − 1)·S(n) with S(n) = A0·(−A1 − S(n + 1)·A2)⁻¹. The matrices S are computed from the largest n down.
    fn truncated(arrivals: &Mmpp2, service: f64, levels: usize) -> Vec<f64> {
        let (rates, leave) = (arrivals.rates.map(|r| r * service), arrivals.leave.map(|r| r * service));
        let up = [[rates[0], 0.0], [0.0, rates[1]]];
        let out = |served: f64, above: f64| {
            [[leave[0] + above * rates[0] + served, -leave[0]], [-leave[1], leave[1] + above * rates[1] + served]]
        };
        let mut step = vec![[[0.0; 2]; 2]; levels + 1];
        step[levels] = product(up, inverse(out(1.0, 0.0)));
        for n in (1..levels).rev() {
            step[n] = product(up, inverse(minus(out(1.0, 1.0), step[n + 1])));
        }
        let balance = minus(out(0.0, 1.0), step[1]);
        let mut row = [balance[1][0].abs(), balance[0][0].abs()];
        let mut p = vec![row];
        for s in &step[1..] {
            row = apply(row, *s);
            p.push(row);
        }
        let all: f64 = p.iter().flatten().sum();
        p.iter().map(|row| (row[0] + row[1]) / all).collect()
    }

    #[test]
    fn probabilities_match_a_truncated_chain() {
        let cases = [
            (Mmpp2 { rates: [30.0, 5.0], leave: [0.2, 0.1] }, 1.0 / 61.6),
            (Mmpp2 { rates: [90.0, 1.0], leave: [0.5, 0.05] }, 1.0 / 50.0),
            (Mmpp2 { rates: [0.0, 10.0], leave: [3.0, 1.0] }, 0.09),
            (Mmpp2 { rates: [40.0, 0.0], leave: [20.0, 5.0] }, 0.1),
        ];
        for (arrivals, service) in cases {
            let p = truncated(&arrivals, service, 20_000);
            let solved = mmpp_m1(&arrivals, service).unwrap();
            let number: f64 = p.iter().enumerate().map(|(n, p)| n as f64 * p).sum();
            assert!(close(solved.number, number, 1e-8), "{arrivals:?}: {} {number}", solved.number);
            for n in [0, 1, 2, 10, 50] {
                assert!(close(solved.probability(n), p[n as usize], 1e-7), "{arrivals:?} at {n}");
            }
            let p95 = solved.number_quantile(0.95).unwrap() as usize;
            assert!(p[..=p95].iter().sum::<f64>() >= 0.95 && p[..p95].iter().sum::<f64>() < 0.95, "{p95}");
        }
    }

    #[test]
    fn two_equal_phases_are_poisson() {
        let poisson = Mmpp2 { rates: [9.9; 2], leave: [1e-3, 7.0] };
        let solved = mmpp_m1(&poisson, 0.1).unwrap();
        assert!(close(solved.number, 99.0, 1e-9) && close(solved.probability(3), 0.01 * 0.99f64.powi(3), 1e-9));
        assert!(close(poisson.index_of_dispersion(5.0), 1.0, 1e-15));
    }

    #[test]
    fn the_busiest_hour_of_a_slow_process_decides() {
        // A phase lasts far longer than the queue needs to reach a steady state, so in each phase the queue is M/M/1.
        let slow = Mmpp2 { rates: [8.0, 2.0], leave: [1e-9, 1e-9] };
        assert!(close(mmpp_m1(&slow, 0.1).unwrap().number, (4.0 + 0.25) / 2.0, 1e-5));
        let quick = Mmpp2 { rates: [8.0, 2.0], leave: [1e9, 1e9] };
        assert!(close(mmpp_m1(&quick, 0.1).unwrap().number, 1.0, 1e-5), "very short phases equal Poisson arrivals");
    }

    #[test]
    fn invalid_parameters_are_an_error() {
        let bursty = Mmpp2 { rates: [30.0, 5.0], leave: [0.2, 0.1] };
        assert!(matches!(mmpp_m1(&bursty, 0.1).unwrap_err(), ModelError::Unstable { .. }));
        assert!(mmpp_m1(&bursty, f64::NAN).is_err());
        assert!(mmpp_m1(&Mmpp2 { rates: [0.0; 2], ..bursty }, 0.01).is_err());
        assert!(mmpp_m1(&Mmpp2 { leave: [0.0, 1.0], ..bursty }, 0.01).is_err());
        assert!(mmpp_m1(&Mmpp2 { rates: [-1.0, 5.0], ..bursty }, 0.01).is_err());
        assert_eq!(mmpp_m1(&bursty, 0.01).unwrap().number_quantile(1.0), None);
    }
}
