//! Bursts at random times: the Markov-modulated Poisson process with two states, MMPP(2) (Heffes & Lucantoni 1986;
//! Fischer & Meier-Hellstern 1993).

use super::exact;
use super::on_off::{check_burst, rest_ratio};
use super::rate_segment::RateSegment;
use crate::ArrivalsError;
use brimful_core::Nanos;
use rand::RngExt;
use rand_distr::{Distribution, Exp1};
use rand_pcg::Pcg64;
use std::fmt;

/// The parameters of `mmpp:RATIO,SHARE,SOJOURN`: a Poisson process whose rate is `ratio` times the mean rate during
/// bursts. A burst lasts `sojourn` on average. In the long run, bursts are in progress for the share `share` of the
/// time.
///
/// In the literature's symbols, for a mean rate m: λ₁ = m·ratio, λ₂ = m·(1 − ratio·share)/(1 − share), r₁ = 1/sojourn,
/// r₂ = r₁·share/(1 − share). The initial state is drawn from the stationary distribution, so the expected rate equals
/// m from the first instant. The number of calls varies from run to run: for long runs, its index of dispersion
/// approaches 1 + 2(λ₁−λ₂)²r₁r₂ / ((r₁+r₂)²(λ₁r₂+λ₂r₁)). The mean rate of a run is close to m only if the run lasts for
/// hundreds of bursts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mmpp {
    ratio: f64,
    share: f64,
    sojourn: Nanos,
}

impl Mmpp {
    /// Minimum of the mean length of a burst. At usual rates, most shorter bursts would contain no call, so the process
    /// would practically be a Poisson process.
    pub const SHORTEST_SOJOURN: Nanos = Nanos::from_millis(1);

    /// Checks and sets the parameters. `ratio` must be at least 1, `share` between 0 and 1, their product at most 1,
    /// and `sojourn` at least 1 ms.
    ///
    /// # Errors
    /// [`ArrivalsError`] names the condition that is violated.
    pub fn new(ratio: f64, share: f64, sojourn: Nanos) -> Result<Mmpp, ArrivalsError> {
        check_burst(ratio, share)?;
        if sojourn < Mmpp::SHORTEST_SOJOURN {
            return Err(ArrivalsError::Sojourn(sojourn));
        }
        Ok(Mmpp { ratio, share, sojourn })
    }

    /// Average number of changes of the rate per second.
    pub(super) fn pieces_per_s(&self) -> f64 {
        2.0 * self.share / self.sojourn.as_secs_f64()
    }

    /// Creates the rate curve of this process for a mean rate in calls per second.
    pub(super) fn curve(self, mean: f64, mut rng: Pcg64) -> Curve {
        let burst_s = self.sojourn.as_secs_f64();
        let rest_s = burst_s * (1.0 - self.share) / self.share;
        let burst = RateSegment::constant(burst_s, mean * self.ratio);
        let rest = RateSegment::constant(rest_s, mean * rest_ratio(self.ratio, self.share));
        Curve { states: [rest, burst], next: usize::from(rng.random_bool(self.share)), rng }
    }
}

impl fmt::Display for Mmpp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "mmpp:{},{},{}", self.ratio, self.share, exact(self.sojourn))
    }
}

/// The rate curve: two states alternate, and each of them lasts for an exponentially distributed time. This is also the
/// distribution of the initial state's remaining time, because an exponential time has no memory.
#[derive(Clone, Debug)]
pub(super) struct Curve {
    /// The rate and the mean length of each state: between bursts, and in a burst.
    states: [RateSegment; 2],
    next: usize,
    rng: Pcg64,
}

impl Iterator for Curve {
    type Item = RateSegment;

    fn next(&mut self) -> Option<RateSegment> {
        let state = self.states[self.next];
        self.next = 1 - self.next;
        let length: f64 = Exp1.sample(&mut self.rng);
        Some(RateSegment { length_s: state.length_s * length, ..state })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_have_their_share_their_length_and_their_rate() {
        let bursts = Mmpp::new(4.0, 0.1, Nanos::from_secs(2)).unwrap();
        let n = 100_000;
        let pieces: Vec<RateSegment> = bursts.curve(50.0, crate::rng(5, 3)).take(n).collect();
        let (burst, rest): (Vec<RateSegment>, Vec<RateSegment>) =
            pieces.into_iter().partition(|piece| piece.start_rate == 200.0);
        let mean =
            |pieces: &[RateSegment]| pieces.iter().map(|piece| piece.length_s).sum::<f64>() / pieces.len() as f64;
        // The tolerance is five standard errors of the mean of n/2 exponentially distributed times.
        let five = 5.0 / (n as f64 / 2.0).sqrt();
        assert!((mean(&burst) / 2.0 - 1.0).abs() < five, "mean burst {}", mean(&burst));
        assert!((mean(&rest) / 18.0 - 1.0).abs() < five, "mean time between {}", mean(&rest));
        assert!((rest[0].end_rate - 50.0 * 0.6 / 0.9).abs() < 1e-9);
    }

    #[test]
    fn it_starts_in_its_stationary_state() {
        let bursts = Mmpp::new(2.0, 0.3, Nanos::from_secs(1)).unwrap();
        let n = 10_000;
        let first = |seed| bursts.curve(1.0, crate::rng(seed, 3)).next().unwrap().start_rate;
        let share = (0..n).filter(|seed| first(*seed) == 2.0).count() as f64 / n as f64;
        assert!((share - 0.3).abs() < 5.0 * (0.21 / n as f64).sqrt(), "{share}");
    }
}
