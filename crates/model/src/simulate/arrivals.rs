//! Arrival process of an open class: a Poisson process with a constant rate, or with a rate that switches between two
//! values.
//!
//! The model determines the mean rate. The time to the next arrival is drawn at the current rate. If the rate changes
//! before that arrival, a new time is drawn at the new rate, starting at the change. This is correct because
//! exponential times have no memory.

use crate::ModelError;
use rand::{Rng, RngExt};
use rand_distr::{Distribution, Exp1};

/// Arrival process of an open class. The model determines its mean rate.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Arrivals {
    /// A Poisson process: the arrivals of many independent users.
    #[default]
    Poisson,
    /// A Poisson process whose rate depends on the state of a Markov chain with two states, MMPP(2) (Heffes & Lucantoni
    /// 1986).
    Mmpp {
        /// The rates in the two states. Only their ratio matters, because they are scaled to the mean rate of the
        /// class.
        rates: [f64; 2],
        /// Rates of the changes between the states, per second: from the first state to the second, and from the second
        /// to the first.
        switching: [f64; 2],
    },
    /// Bursts at regular intervals (Banga & Druschel 1997). In a burst, the arrival rate is `ratio` times the mean
    /// rate. A burst lasts for the share `share` of each period.
    OnOff {
        /// Ratio of the rate in a burst to the mean rate. It is above 1, and `ratio · share` is at most 1.
        ratio: f64,
        /// Length of a burst divided by the length of a period, between 0 and 1.
        share: f64,
        /// Length of a period, in seconds.
        period_s: f64,
    },
}

/// The state of the arrival process of one class. The process alternates between two phases, each with its own rate.
#[derive(Clone, Debug)]
pub(super) struct Source {
    phases: [Phase; 2],
    /// Whether the lengths of the phases are exponentially distributed. Otherwise they are constant.
    random: bool,
    current: usize,
    /// The end of the current phase, in seconds.
    until: f64,
    /// Whether the current phase ends before the next arrival would occur.
    switches: bool,
}

#[derive(Clone, Copy, Debug)]
struct Phase {
    /// Mean time between arrivals in seconds; ∞ if there are no arrivals in this phase.
    gap: f64,
    /// Mean length of the phase in seconds.
    length: f64,
}

impl Source {
    /// Creates the arrival process of a class with a mean rate of `rate` requests per second, above 0. Errors name the
    /// class.
    pub(super) fn new(arrivals: Arrivals, rate: f64, class: &str) -> Result<Source, ModelError> {
        let (phases, random) = match arrivals {
            Arrivals::Poisson => ([Phase { gap: 1.0 / rate, length: f64::INFINITY }; 2], true),
            Arrivals::Mmpp { rates, switching } => {
                let valid = |x: &f64| x.is_finite() && *x >= 0.0;
                let mean = (rates[0] * switching[1] + rates[1] * switching[0]) / (switching[0] + switching[1]);
                if !rates.iter().chain(&switching).all(valid) || switching.contains(&0.0) || mean <= 0.0 {
                    return Err(ModelError::Inconsistent(format!(
                        "the MMPP of class `{class}` needs two rates, not both 0, and two switching rates above 0"
                    )));
                }
                ([0, 1].map(|i| Phase { gap: mean / (rates[i] * rate), length: 1.0 / switching[i] }), true)
            }
            Arrivals::OnOff { ratio, share, period_s } => {
                let bursts = ratio >= 1.0 && share > 0.0 && share < 1.0 && ratio * share <= 1.0 + 1e-12;
                if !bursts || period_s.is_nan() || period_s <= 0.0 || period_s.is_infinite() {
                    return Err(ModelError::Inconsistent(format!(
                        "the bursts of class `{class}` need a ratio of at least 1, a share of the period between 0 and 1 \
                         with ratio × share at most 1, and a period above 0 s"
                    )));
                }
                let rest = ((1.0 - ratio * share) / (1.0 - share)).max(0.0);
                let phase = |factor: f64, share: f64| Phase { gap: 1.0 / (factor * rate), length: share * period_s };
                ([phase(ratio, share), phase(rest, 1.0 - share)], false)
            }
        };
        Ok(Source { phases, random, current: 0, until: 0.0, switches: false })
    }

    /// Starts the process at time 0 in a random phase. Returns the time at which [`Source::wake`] must first be called.
    pub(super) fn start(&mut self, rng: &mut impl Rng) -> f64 {
        let [first, second] = self.phases.map(|p| p.length);
        let share = if second.is_finite() { second / (first + second) } else { 0.0 };
        self.current = usize::from(self.random && rng.random::<f64>() < share);
        self.begin_phase(0.0, rng);
        self.next(0.0, rng)
    }

    /// Advances the process to `now`, which must be the time that the previous call of `start` or `wake` returned.
    /// Returns whether a request arrives at `now`, and the time of the next call.
    pub(super) fn wake(&mut self, now: f64, rng: &mut impl Rng) -> (bool, f64) {
        let arrives = !self.switches;
        if self.switches {
            self.current = 1 - self.current;
            self.begin_phase(now, rng);
        }
        (arrives, self.next(now, rng))
    }

    fn begin_phase(&mut self, now: f64, rng: &mut impl Rng) {
        let length = self.phases[self.current].length;
        let times: f64 = if self.random { Exp1.sample(rng) } else { 1.0 };
        self.until = now + length * times;
    }

    fn next(&mut self, now: f64, rng: &mut impl Rng) -> f64 {
        let unit: f64 = Exp1.sample(rng);
        let arrival = now + self.phases[self.current].gap * unit;
        self.switches = self.until < arrival;
        arrival.min(self.until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_pcg::Pcg64Mcg;

    /// Counts the arrivals in windows of `window` seconds. Returns the mean arrival rate, and the index of dispersion
    /// of the counts.
    fn counted(arrivals: Arrivals, rate: f64, window: f64, windows: usize) -> (f64, f64) {
        let mut rng = Pcg64Mcg::new(0xcafe_f00d_d15e_a5e5);
        let mut source = Source::new(arrivals, rate, "c").unwrap();
        let mut counts = vec![0.0; windows];
        let mut now = source.start(&mut rng);
        while now < window * windows as f64 {
            let (arrives, next) = source.wake(now, &mut rng);
            counts[(now / window) as usize] += f64::from(u8::from(arrives));
            now = next;
        }
        let n = windows as f64;
        let mean = counts.iter().sum::<f64>() / n;
        let variance = counts.iter().map(|c| (c - mean).powi(2)).sum::<f64>() / n;
        (mean / window, variance / mean)
    }

    #[test]
    fn a_poisson_process_is_one() {
        let (rate, dispersion) = counted(Arrivals::Poisson, 10.0, 1.0, 20_000);
        assert!((rate - 10.0).abs() < 0.1 && (dispersion - 1.0).abs() < 0.05, "{rate} {dispersion}");
    }

    #[test]
    fn mmpp_has_the_dispersion_of_heffes_and_lucantoni() {
        // In `tests/data/cases.json`, the process of the case `mmpp2_m1_a` has an index of dispersion of 10.4487 for
        // windows of 1 s.
        let arrivals = Arrivals::Mmpp { rates: [30.0, 5.0], switching: [0.2, 0.1] };
        let (rate, dispersion) = counted(arrivals, 40.0 / 3.0, 1.0, 100_000);
        assert!((rate - 40.0 / 3.0).abs() < 0.3 && (dispersion - 10.4487).abs() < 0.4, "{rate} {dispersion}");
        let (scaled, _) = counted(arrivals, 100.0, 1.0, 20_000);
        assert!((scaled - 100.0).abs() < 5.0, "{scaled}");
    }

    #[test]
    fn bursts_take_their_share() {
        // The rate is 5 times the mean for 10 s of each period of 100 s, and 5/9 of the mean for the rest. So the
        // variance of the rate is mean² · 16/9.
        let (rate, dispersion) =
            counted(Arrivals::OnOff { ratio: 5.0, share: 0.1, period_s: 100.0 }, 50.0, 1.0, 20_000);
        let expected = 1.0 + 50.0 * (25.0 * 0.1 + 0.9 * (5.0f64 / 9.0).powi(2) - 1.0);
        assert!((rate - 50.0).abs() < 0.3 && (dispersion / expected - 1.0).abs() < 0.03, "{rate} {dispersion}");
    }

    #[test]
    fn invalid_processes_are_rejected() {
        let refused = |arrivals| Source::new(arrivals, 1.0, "users").unwrap_err().to_string();
        for rates in [[0.0, 0.0], [f64::NAN, 1.0], [-1.0, 1.0]] {
            assert!(refused(Arrivals::Mmpp { rates, switching: [1.0, 1.0] }).contains("`users`"));
        }
        refused(Arrivals::Mmpp { rates: [1.0, 2.0], switching: [0.0, 1.0] });
        for (ratio, share, period_s) in [(0.5, 0.5, 1.0), (3.0, 0.5, 1.0), (2.0, 0.0, 1.0), (2.0, 0.1, 0.0)] {
            refused(Arrivals::OnOff { ratio, share, period_s });
        }
    }
}
