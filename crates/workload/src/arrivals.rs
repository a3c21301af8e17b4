//! Arrival processes: reproducible sequences of due times, in [`Nanos`] from the start of the run.
//!
//! Every process combines a *rate curve* λ(t) with *ticks*. The area under the curve up to time t is Λ(t) = ∫λ, the
//! expected number of calls until then. A tick is a value a of this area; there is on average one tick per unit of
//! area. Its call is due at t = Λ⁻¹(a), when the area reaches a (Çinlar 1975, §4.7). Even ticks 0, 1, 2… follow the
//! curve exactly and never drift. Ticks with exponential gaps make a Poisson process with the rate of the curve, or a
//! Cox process if the curve is random.
//!
//! | process | ticks | rate curve |
//! |---|---|---|
//! | [`ArrivalProcess::Constant`] | even | constant |
//! | [`ArrivalProcess::Poisson`] | exponential | constant |
//! | [`OnOff`] | even | a burst at the start of every period |
//! | [`Mmpp`] | exponential | rate depends on the state of a two-state Markov chain |
//! | [`ArrivalProcess::Uniform`] | uniform | constant |
//! | [`Steps`] | even | a cycle of constant rates |
//! | [`ArrivalProcess::Fgn`], [`ArrivalProcess::Pareto`] | exponential | self-similar, with a [`Hurst`] parameter |
//! | [`Arrivals::stages`] | even or exponential | linear pieces |
//! | [`Arrivals::trace`] | even | the instants of a [`Trace`] |
//!
//! Memory use does not grow with the length of the run. All shards share one copy of a trace. A random curve has its
//! mean rate only on average over many runs. The documentation of each process states how far the rate of one run may
//! deviate.

mod error;
mod fgn;
mod mmpp;
mod on_off;
mod pareto;
mod rate_segment;
mod stages;
mod steps;
mod syntax;
mod trace;

pub use error::ArrivalsError;
pub use fgn::Hurst;
pub use mmpp::Mmpp;
pub use on_off::OnOff;
pub use steps::Steps;
pub use trace::{Speed, Trace};

use crate::{WorkloadLimits, rng};
use brimful_core::workload::Stage;
use brimful_core::{Nanos, Rate};
use rand::RngExt;
use rand_distr::{Distribution, Exp1};
use rand_pcg::Pcg64;
use rate_segment::Pieces;

/// The arrival processes with a given mean rate. [`FromStr`](std::str::FromStr) parses the notation of each variant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ArrivalProcess {
    /// `constant`: calls at equal intervals. The first call is due at time 0.
    Constant,
    /// `poisson`: independent, exponentially distributed gaps, like those between the calls of many independent users.
    Poisson,
    /// `uniform:SPREAD`: independent gaps, uniformly distributed within mean · (1 ± SPREAD).
    Uniform(f64),
    /// `steps:RATE@TIME,…`: a repeated sequence of constant rates, each with its duration.
    Steps(Steps),
    /// `onoff:RATIO,SHARE[,PERIOD]`: a burst at the start of every period (Banga & Druschel 1997).
    OnOff(OnOff),
    /// `mmpp:RATIO,SHARE,SOJOURN`: bursts that begin and end at random.
    Mmpp(Mmpp),
    /// `selfsimilar:H`: a Poisson process whose rate is fractional Gaussian noise.
    Fgn(Hurst),
    /// `selfsimilar:H,pareto`: the sum of on/off sources with Pareto distributed periods.
    Pareto(Hurst),
}

/// Maximum average number of pieces of the rate curve per call. The search for the next arrival visits every piece, so
/// with more pieces per call, calls would be sent late.
const MAX_PIECES_PER_CALL: f64 = 20_000.0;

impl ArrivalProcess {
    /// Returns an error if the process changes its rate so often, compared with `rate`, that calls would be sent late.
    fn check(&self, rate: f64) -> Result<(), ArrivalsError> {
        let pieces_per_s = match self {
            ArrivalProcess::Constant
            | ArrivalProcess::Poisson
            | ArrivalProcess::Uniform(_)
            | ArrivalProcess::OnOff(_) => 0.0,
            ArrivalProcess::Steps(steps) => steps.pieces_per_s(),
            ArrivalProcess::Mmpp(bursts) => bursts.pieces_per_s(),
            ArrivalProcess::Fgn(_) => fgn::PIECES_PER_S,
            ArrivalProcess::Pareto(_) => pareto::PIECES_PER_S,
        };
        let slowest = pieces_per_s / MAX_PIECES_PER_CALL;
        match rate < slowest {
            true => Err(ArrivalsError::TooSlow { rate, process: Box::new(*self), slowest }),
            false => Ok(()),
        }
    }
}

/// The due times of calls, in ascending order. Stages and traces end; all other processes are endless.
#[derive(Clone, Debug)]
pub struct Arrivals {
    ticks: Ticks,
    curve: Curve,
    last: Nanos,
}

impl Arrivals {
    /// Creates arrivals with the mean rate `rate`, in calls per second. The rate must be finite and above zero.
    ///
    /// # Errors
    /// [`ArrivalsError::TooSlow`] if the process changes its rate far more often than calls are due.
    pub fn new(process: ArrivalProcess, rate: Rate, seed: u64) -> Result<Arrivals, ArrivalsError> {
        let rate = rate.0;
        process.check(rate)?;
        // The rate curve has a random stream of its own. So the other random numbers do not depend on how many numbers
        // the curve draws.
        let curve_rng = || rng(seed, 3);
        let curve = match process {
            ArrivalProcess::Constant | ArrivalProcess::Poisson | ArrivalProcess::Uniform(_) => Curve::Steady(rate),
            ArrivalProcess::Steps(steps) => Curve::Steps(Box::new(Pieces::new(steps.curve(rate)))),
            ArrivalProcess::OnOff(bursts) => Curve::OnOff(bursts.curve(rate)),
            ArrivalProcess::Mmpp(bursts) => Curve::Mmpp(Pieces::new(bursts.curve(rate, curve_rng()))),
            ArrivalProcess::Fgn(hurst) => Curve::Fgn(Pieces::new(fgn::Curve::new(hurst, rate, curve_rng()))),
            ArrivalProcess::Pareto(hurst) => Curve::Pareto(Pieces::new(pareto::Curve::new(hurst, rate, curve_rng()))),
        };
        let ticks = match process {
            ArrivalProcess::Constant | ArrivalProcess::OnOff(_) | ArrivalProcess::Steps(_) => Ticks::even(),
            ArrivalProcess::Uniform(spread) => Ticks::Uniform { area: 0.0, spread, rng: rng(seed, 1) },
            ArrivalProcess::Poisson | ArrivalProcess::Mmpp(_) | ArrivalProcess::Fgn(_) | ArrivalProcess::Pareto(_) => {
                Ticks::exponential(seed)
            }
        };
        Ok(Arrivals::from_parts(ticks, curve))
    }

    /// Arrivals whose rate follows `stages`. In each stage, the rate changes linearly from the previous stage's rate
    /// (`start` for the first stage) to the stage's own rate. There are no calls after the last stage. With
    /// [`ArrivalProcess::Constant`], the gaps between calls follow the rate exactly. With [`ArrivalProcess::Poisson`],
    /// the calls are a Poisson process.
    ///
    /// # Errors
    /// [`ArrivalsError::StagesWithProcess`] for any other process, [`ArrivalsError::EmptyStages`] if no call is due in
    /// the stages.
    pub fn stages(
        process: ArrivalProcess,
        start: Rate,
        stages: &[Stage],
        seed: u64,
    ) -> Result<Arrivals, ArrivalsError> {
        let ticks = match process {
            ArrivalProcess::Constant => Ticks::even(),
            ArrivalProcess::Poisson => Ticks::exponential(seed),
            other => return Err(ArrivalsError::StagesWithProcess(Box::new(other))),
        };
        Ok(Arrivals::from_parts(ticks, Curve::Stages(Pieces::new(stages::curve(start, stages)?))))
    }

    /// The arrivals of `trace`, the first at time 0. Every gap is divided by `speed`. Simultaneous arrivals remain
    /// simultaneous. There are no calls after the last arrival.
    pub fn trace(trace: Trace, speed: Speed) -> Arrivals {
        Arrivals::from_parts(Ticks::even(), Curve::Trace(trace, speed))
    }

    /// Skips `n` calls. Evenly spaced calls are skipped in one step. Random gaps are drawn one by one, because a due
    /// time depends on the sum of all gaps before it.
    pub(crate) fn skip_calls(&mut self, n: u64) {
        let Some(all_but_last) = n.checked_sub(1) else { return };
        match &mut self.ticks {
            Ticks::Even { index } => *index = index.saturating_add(all_but_last),
            ticks @ (Ticks::Exponential { .. } | Ticks::Uniform { .. }) => {
                for _ in 0..all_but_last {
                    ticks.next();
                }
            }
        }
        // The last skipped call is generated like any other call, because this updates `last`: the next call must not
        // be due before it.
        self.next();
    }

    fn from_parts(ticks: Ticks, curve: Curve) -> Arrivals {
        Arrivals { ticks, curve, last: Nanos::ZERO }
    }

    /// The time at which an open load of these arrivals ends. It is the end of the load's window, or the time at which
    /// one more call than `limits` permits would be due, whichever is earlier. Up to that time, even arrivals keep
    /// their rate exactly. A Poisson process of n calls keeps its rate on average, because n divided by the sum of n +
    /// 1 gaps is an unbiased estimate of the rate.
    pub fn end_time(mut self, limits: WorkloadLimits) -> Nanos {
        let WorkloadLimits { window, calls } = limits;
        if calls == u64::MAX {
            return window;
        }
        if let Ticks::Even { index } = &mut self.ticks {
            *index = calls;
            return self.next().map_or(window, |due| due.min(window));
        }
        let mut left = calls;
        for due in self {
            if left == 0 || due >= window {
                return due.min(window);
            }
            left -= 1;
        }
        window
    }
}

impl Iterator for Arrivals {
    type Item = Nanos;

    fn next(&mut self) -> Option<Nanos> {
        let tick = self.ticks.next();
        let due = match &mut self.curve {
            Curve::Steady(rate) => Nanos::from_secs_f64(tick / *rate),
            Curve::OnOff(curve) => Nanos::from_secs_f64(curve.time_at_area(tick)),
            Curve::Mmpp(pieces) => Nanos::from_secs_f64(pieces.time_at_area(tick)?),
            Curve::Fgn(pieces) => Nanos::from_secs_f64(pieces.time_at_area(tick)?),
            Curve::Pareto(pieces) => Nanos::from_secs_f64(pieces.time_at_area(tick)?),
            Curve::Stages(pieces) => Nanos::from_secs_f64(pieces.time_at_area(tick)?),
            Curve::Steps(pieces) => Nanos::from_secs_f64(pieces.time_at_area(tick)?),
            Curve::Trace(trace, speed) => trace.due_time(tick as usize, *speed)?,
        };
        // Where two pieces of the rate curve meet, rounding may yield a due time that is one nanosecond before that of
        // the previous call.
        self.last = self.last.max(due);
        Some(self.last)
    }
}

/// The values of the area under the rate curve at which calls are due (ticks), on average one per unit of area.
#[derive(Clone, Debug)]
enum Ticks {
    /// The values 0, 1, 2…; because they are counted by an integer, they do not drift.
    Even { index: u64 },
    /// Values with exponentially distributed gaps of mean 1, as in a Poisson process of rate 1.
    Exponential { area: f64, rng: Pcg64 },
    /// The first value is 0. The gaps after it are uniformly distributed between 1 − `spread` and 1 + `spread`.
    Uniform { area: f64, spread: f64, rng: Pcg64 },
}

impl Ticks {
    fn even() -> Ticks {
        Ticks::Even { index: 0 }
    }

    fn exponential(seed: u64) -> Ticks {
        Ticks::Exponential { area: 0.0, rng: rng(seed, 1) }
    }

    fn next(&mut self) -> f64 {
        match self {
            Ticks::Even { index } => {
                let area = *index as f64;
                *index += 1;
                area
            }
            Ticks::Exponential { area, rng } => {
                let gap: f64 = Exp1.sample(rng);
                *area += gap;
                *area
            }
            Ticks::Uniform { area, spread, rng } => {
                let due = *area;
                let uniform: f64 = rng.random();
                *area += 1.0 + *spread * (2.0 * uniform - 1.0);
                due
            }
        }
    }
}

/// The rate curve λ(t) of a process. Each variant computes the time at which the area under it reaches a given value.
#[derive(Clone, Debug)]
enum Curve {
    Steady(f64),
    OnOff(on_off::Curve),
    Mmpp(Pieces<mmpp::Curve>),
    Fgn(Pieces<fgn::Curve>),
    Pareto(Pieces<pareto::Curve>),
    Stages(Pieces<std::vec::IntoIter<rate_segment::RateSegment>>),
    Steps(Box<Pieces<steps::Curve>>),
    Trace(Trace, Speed),
}

/// Formats a duration exactly, to the nanosecond, in the syntax of arrival processes. The `Display` of [`Nanos`]
/// rounds.
fn exact(duration: Nanos) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    let whole = units.into_iter().find(|(unit, _)| duration.0.is_multiple_of(*unit));
    let (unit, name) = whole.unwrap_or((1, "ns"));
    format!("{}{name}", duration.0 / unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use brimful_core::moments::Moments;

    fn due_times(process: ArrivalProcess, rate: f64, n: usize, seed: u64) -> Vec<Nanos> {
        Arrivals::new(process, Rate(rate), seed).unwrap().take(n).collect()
    }

    #[test]
    fn uniform_gaps_lie_about_their_mean() {
        let due = due_times(ArrivalProcess::Uniform(0.5), 10.0, 20_001, 3);
        let gaps: Vec<f64> = due.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64()).collect();
        assert_eq!(due[0], Nanos::ZERO);
        assert!(gaps.iter().all(|gap| (0.0499..0.1501).contains(gap)));
        let moments = Moments::from_values(&gaps).unwrap();
        let mean = moments.mean();
        let variance = moments.population_variance();
        // The variance of a uniform distribution over an interval of width w is w²/12.
        assert!((mean / 0.1 - 1.0).abs() < 0.01 && (variance / (0.01 / 12.0) - 1.0).abs() < 0.05, "{mean} {variance}");
        let mut part = Arrivals::new(ArrivalProcess::Uniform(0.5), Rate(10.0), 3).unwrap();
        part.skip_calls(7);
        assert_eq!(part.next(), Some(due[7]));
    }

    #[test]
    fn constant_arrivals_do_not_drift() {
        let due = due_times(ArrivalProcess::Constant, 3.0, 3_000_001, 0);
        assert_eq!(due[0], Nanos::ZERO);
        assert_eq!(due[1], Nanos(333_333_333));
        assert_eq!(due[3_000_000], Nanos::from_secs(1_000_000));
    }

    #[test]
    fn poisson_gaps_are_exponential_and_independent() {
        let n = 200_000;
        let due = due_times(ArrivalProcess::Poisson, 1000.0, n, 7);
        let gaps: Vec<f64> = due.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64()).collect();
        let moments = Moments::from_values(&gaps).unwrap();
        let mean = moments.mean();
        let variance = moments.population_variance();
        let covariance =
            gaps.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum::<f64>() / gaps.len() as f64;
        // Each tolerance is five standard errors. For n exponential gaps, the standard errors are 1/√n for the relative
        // mean, √8/√n for the squared coefficient of variation, and 1/√n for the autocorrelation.
        let five = 5.0 / (n as f64).sqrt();
        assert!((mean * 1000.0 - 1.0).abs() < five, "mean gap {mean}");
        assert!((variance / mean.powi(2) - 1.0).abs() < five * 8f64.sqrt(), "variance {variance}");
        assert!((covariance / variance).abs() < five, "lag-1 autocorrelation {}", covariance / variance);
        // For a Poisson process, the index of dispersion of counts is 1 at every time scale.
        for window_ms in [1u64, 10, 100] {
            let mut counts = vec![0f64; (due[n - 1].0 / 1_000_000 / window_ms) as usize];
            for d in &due {
                if let Some(count) = counts.get_mut((d.0 / 1_000_000 / window_ms) as usize) {
                    *count += 1.0;
                }
            }
            let moments = Moments::from_values(&counts).unwrap();
            let dispersion = moments.population_variance() / moments.mean();
            let tolerance = 5.0 * (2.0 / counts.len() as f64).sqrt();
            assert!((dispersion - 1.0).abs() < tolerance, "dispersion {dispersion} over {window_ms} ms");
        }
    }

    #[test]
    fn a_load_with_a_number_of_calls_ends_when_the_call_after_the_last_would_be_due() {
        let second = Nanos::from_secs(1);
        let end = |arrivals: &Arrivals, calls, window| arrivals.clone().end_time(WorkloadLimits { window, calls });
        let constant = Arrivals::new(ArrivalProcess::Constant, Rate(1000.0), 0).unwrap();
        assert_eq!(end(&constant, 1000, Nanos::MAX), second);
        assert_eq!(end(&constant, 1001, second), second, "the window must end the load if it ends first");
        assert_eq!(end(&constant, u64::MAX, second), second);
        let bursts = Arrivals::new("onoff:4,10%,20ms".parse().unwrap(), Rate(1000.0), 0).unwrap();
        assert_eq!(end(&bursts, 1000, Nanos::MAX), second);
        let ramp = [Stage { length_s: 1.0, rate: 1000.0 }];
        let ramp = Arrivals::stages(ArrivalProcess::Constant, Rate(0.0), &ramp, 0).unwrap();
        assert_eq!(end(&ramp, 125, second), Nanos::from_millis(500));
        assert_eq!(end(&ramp, 5000, second), second, "the stages have fewer than 5,000 calls");
        let trace = Arrivals::trace(Trace::parse(b"0\n0.5\n2\n").unwrap(), Speed::ORIGINAL);
        assert_eq!(end(&trace, 2, Nanos::MAX), Nanos::from_secs(2));
        assert_eq!(end(&trace, 3, Nanos::from_secs(9)), Nanos::from_secs(9));
        let poisson = Arrivals::new(ArrivalProcess::Poisson, Rate(1000.0), 5).unwrap();
        assert_eq!(end(&poisson, 1000, Nanos::MAX), poisson.clone().nth(1000).unwrap());
        assert_eq!(end(&poisson, u64::MAX, second), second);
    }

    #[test]
    fn the_seed_decides() {
        assert_eq!(due_times(ArrivalProcess::Poisson, 10.0, 100, 1), due_times(ArrivalProcess::Poisson, 10.0, 100, 1));
        assert_ne!(due_times(ArrivalProcess::Poisson, 10.0, 100, 1), due_times(ArrivalProcess::Poisson, 10.0, 100, 2));
    }
}
