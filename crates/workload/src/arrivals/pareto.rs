//! Self-similar arrivals from on/off sources (Willinger, Taqqu, Sherman & Wilson 1997, Theorem 1): 16 sources switch on
//! and off. On and off times have a Pareto distribution with α = 3 − 2H and a mean of 100 ms. Calls are a Poisson
//! process whose rate is proportional to the number of sources that are on.
//!
//! The coefficient of variation of the rate is 25 %. Self-similarity is exact only in the limit of large time scales.
//! An estimate of H at scales of 6 s and more is 0.02 to 0.06 too high; the error is largest for H near ½. Each source
//! starts in its stationary state: it is on with probability ½, and its first switch is due after a residual time. So
//! the expected rate equals the mean rate from the first instant. The closer H is to 1, the more sources do not switch
//! during the whole run. At H = 0.9, one source in four does not switch within the first ten seconds.

use super::fgn::Hurst;
use super::rate_segment::RateSegment;
use brimful_core::Nanos;
use rand::RngExt;
use rand_distr::{Distribution, OpenClosed01};
use rand_pcg::Pcg64;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

const SOURCES: u32 = 16;
const MEAN_S: f64 = 0.1;
/// Average number of times per second that any source switches on or off.
pub(super) const PIECES_PER_S: f64 = SOURCES as f64 / MEAN_S;

/// The rate curve. Each piece lasts from one switch of a source (on or off) to the next switch of any source.
#[derive(Clone, Debug)]
pub(super) struct Curve {
    /// Rate that one source contributes while it is on, in calls per second.
    rate: f64,
    times: Pareto,
    /// For each source: the time at which it switches next, and whether it is on until then.
    sources: BinaryHeap<Reverse<(Nanos, bool)>>,
    on: u32,
    now: Nanos,
    rng: Pcg64,
}

impl Curve {
    /// Creates a curve with the mean rate `mean`, in calls per second.
    pub fn new(hurst: Hurst, mean: f64, mut rng: Pcg64) -> Curve {
        let times = Pareto::new(3.0 - 2.0 * hurst.get());
        let sources: BinaryHeap<_> = (0..SOURCES)
            .map(|_| {
                let residual = times.draw_residual(&mut rng);
                Reverse((residual, rng.random_bool(0.5)))
            })
            .collect();
        let on = sources.iter().filter(|Reverse((_, on))| *on).count() as u32;
        Curve { rate: mean * 2.0 / f64::from(SOURCES), times, sources, on, now: Nanos::ZERO, rng }
    }
}

impl Iterator for Curve {
    type Item = RateSegment;

    fn next(&mut self) -> Option<RateSegment> {
        let Reverse((until, was_on)) = self.sources.pop()?;
        let piece = RateSegment::constant((until - self.now).as_secs_f64(), f64::from(self.on) * self.rate);
        self.now = until;
        self.on = if was_on { self.on - 1 } else { self.on + 1 };
        self.sources.push(Reverse((until + self.times.draw(&mut self.rng), !was_on)));
        Some(piece)
    }
}

/// The Pareto distribution P(X > x) = (x/least_s)^−α for x ≥ `least_s`, with the mean [`MEAN_S`].
#[derive(Clone, Copy, Debug)]
struct Pareto {
    alpha: f64,
    least_s: f64,
}

impl Pareto {
    fn new(alpha: f64) -> Pareto {
        Pareto { alpha, least_s: MEAN_S * (alpha - 1.0) / alpha }
    }

    fn draw(self, rng: &mut Pcg64) -> Nanos {
        let u: f64 = OpenClosed01.sample(rng);
        Nanos::from_secs_f64(self.least_s * u.powf(-1.0 / self.alpha))
    }

    /// Draws the time from a random instant until a source switches, by inverting P(rest > x) = ∫ₓ P(X > y) dy / mean.
    /// Up to `least_s`, this probability falls linearly to 1/α. Beyond `least_s`, it has a Pareto tail with the
    /// exponent α − 1.
    fn draw_residual(self, rng: &mut Pcg64) -> Nanos {
        let u: f64 = OpenClosed01.sample(rng);
        let tail = u * self.alpha;
        Nanos::from_secs_f64(if tail > 1.0 {
            (1.0 - u) * MEAN_S
        } else {
            self.least_s * tail.powf(-1.0 / (self.alpha - 1.0))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expects that the empirical distributions equal the theoretical ones at several points. With n draws, the share
    /// of values above a point has a standard error of at most ½/√n.
    #[test]
    fn times_and_residual_times_have_their_distributions() {
        let (times, mut rng, n) = (Pareto::new(1.4), crate::rng(2, 3), 100_000);
        let share_above = |draws: &[f64], x: f64| draws.iter().filter(|d| **d > x).count() as f64 / n as f64;
        let five = 2.5 / f64::from(n).sqrt();
        let whole: Vec<f64> = (0..n).map(|_| times.draw(&mut rng).as_secs_f64()).collect();
        let rest: Vec<f64> = (0..n).map(|_| times.draw_residual(&mut rng).as_secs_f64()).collect();
        let least = times.least_s;
        assert!((least - 0.1 * 0.4 / 1.4).abs() < 1e-12);
        for x in [1.0, 1.5, 3.0, 10.0, 1000.0] {
            let expected = f64::powf(x, -1.4);
            assert!((share_above(&whole, x * least - 1e-9) - expected).abs() < five, "beyond {x} least times");
            let expected = f64::powf(x, -0.4) / 1.4;
            assert!((share_above(&rest, x * least) - expected).abs() < five, "residual time beyond {x} least times");
        }
        assert!((share_above(&rest, least / 2.0) - (1.0 - least / 2.0 / 0.1)).abs() < five);
    }

    #[test]
    fn sources_start_in_their_stationary_state() {
        let (hurst, seeds) = (Hurst::new(0.9).unwrap(), 1000);
        let late = |seed| {
            let curve = Curve::new(hurst, 1.0, crate::rng(seed, 3));
            curve.sources.iter().filter(|Reverse((until, _))| *until > Nanos::from_secs(10)).count()
        };
        let share = (0..seeds).map(late).sum::<usize>() as f64 / (seeds * 16) as f64;
        // α is 1.2 and the least time is 100/6 ms, so P(rest > 10 s) = 600^−0.2 / 1.2. If sources started with a
        // complete time instead of a residual time, the probability would be 600^−1.2.
        let expected = 600f64.powf(-0.2) / 1.2;
        assert!((share - expected).abs() < 2.5 / ((seeds * 16) as f64).sqrt(), "{share} not {expected}");
    }
}
