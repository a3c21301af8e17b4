//! How far measurements may be off a prediction: by drawing the blocks of calibration anew (Efron 1979; blocks, because
//! what is measured at one time hangs together: Künsch 1989), which gives other models; and by drawing the course of the
//! host for each of them, on which the arrivals of a level then are served (a queue in a random environment).

use super::blocks::{Block, Piece, pool};
use super::{Once, ServerFacts, ServerFit};
use crate::EstimateError;
use brimful_model::{Course, trajectory};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// How often blocks are drawn anew.
const DRAWS: usize = 100;
/// The most arrivals that are followed, at least in each draw.
const MOST_ARRIVALS: f64 = 50_000.0;
/// A piece with fewer calls says little of the host.
const FEW_CALLS: f64 = 20.0;

/// A predicted figure, and between which 90 % of measurements lie.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Half of them are below.
    pub median: f64,
    /// The 5th and the 95th percentile.
    pub interval90: [f64; 2],
}

/// What is to be expected of a level on a host as variable as calibration saw it. Times are seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expected {
    /// Mean response time.
    pub response: Spread,
    /// Percentiles of the response time: 50, 95, 99.
    pub percentiles: [Spread; 3],
    /// Of the servers, by the server's processes.
    pub utilization: Spread,
}

/// Fits to blocks drawn with replacement; where capacity is extrapolated, by laws drawn as well.
pub(super) fn anew(facts: &ServerFacts, blocks: &[Block], seed: u64) -> Vec<Once> {
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    let drawn = how_many(blocks.len());
    let draw = |_| {
        let drawn: Vec<&Block> = (0..drawn).map(|_| &blocks[rng.random_range(0..blocks.len())]).collect();
        let chance = (!facts.filled).then(|| rng.random());
        Once::fit(facts, &pool(drawn), chance).ok()
    };
    (0..DRAWS).filter_map(draw).collect()
}

/// How many of so many blocks are drawn. As many would make the mean of few too narrow: its variance is then that of n − 1
/// of n, and the normal distribution's instead of Student's t. Fewer widen it to what t says.
fn how_many(blocks: usize) -> usize {
    let Some(freedom) = blocks.checked_sub(1).filter(|freedom| *freedom > 0) else { return blocks };
    let quantile = StudentsT::new(0.0, 1.0, freedom as f64).map_or(NORMAL_95, |t| t.inverse_cdf(0.95));
    ((freedom as f64 * (NORMAL_95 / quantile).powi(2)).round() as usize).max(1)
}

/// The 95th percentile of the normal distribution: 90 % of it are within so many standard deviations.
const NORMAL_95: f64 = 1.645;

/// 1.96 standard deviations; none of nothing.
pub(super) fn half_width95(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.collect();
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (values.len() > 1 && variance > 0.0).then(|| 1.96 * variance.sqrt())
}

impl ServerFit {
    /// What is to be expected when requests in these proportions come at `rate` for so many seconds; `arrivals` gives
    /// instants and classes of such a load by a seed and over so many seconds.
    ///
    /// # Errors
    /// When the model cannot be followed.
    pub fn expect(
        &self,
        rate: f64,
        mix: &[f64],
        seconds: f64,
        arrivals: &mut dyn FnMut(u64, f64) -> Vec<(f64, usize)>,
    ) -> Result<Expected, EstimateError> {
        let mut rng = Pcg64Mcg::seed_from_u64(rate.to_bits());
        let (mut means, mut percentiles, mut utilizations) =
            (Vec::new(), [Vec::new(), Vec::new(), Vec::new()], Vec::new());
        // A sample of so many arrivals has nearly the whole spread of a longer one, and what is left out widens it.
        let followed = seconds.min(MOST_ARRIVALS / rate);
        for (index, once) in self.again.iter().enumerate() {
            let model = once.model_at(rate, mix);
            let stretches = self.stretches(seconds, &mut rng);
            let calls = arrivals(index as u64, followed);
            // As many as come in that time, by chance or in bursts.
            let came = calls.len() as f64 / followed;
            utilizations.push(once.utilization(&self.facts, came, mix, mean_slowness(&stretches, seconds)));
            let course = Course::of_stretches(stretches);
            let mut times: Vec<f64> =
                trajectory(&model, course, index as u64, calls)?.map(|sojourn| sojourn.response).collect();
            if times.is_empty() {
                continue;
            }
            means.push(times.iter().sum::<f64>() / times.len() as f64);
            times.sort_unstable_by(f64::total_cmp);
            for (values, q) in percentiles.iter_mut().zip([0.5, 0.95, 0.99]) {
                values.push(quantile(&times, q));
            }
        }
        if means.is_empty() {
            return Err(EstimateError::TooFewObservations { needed: 1, given: 0 });
        }
        let [p50, p95, p99] = percentiles.map(Spread::of);
        Ok(Expected {
            response: Spread::of(means),
            percentiles: [p50, p95, p99],
            utilization: Spread::of(utilizations),
        })
    }

    /// The rate at which requests in these proportions saturate the server, over so many seconds.
    pub fn expect_saturation(&self, mix: &[f64], seconds: f64) -> Option<Spread> {
        let mut rng = Pcg64Mcg::seed_from_u64(seconds.to_bits());
        let rate = |once: &Once| once.saturation_of(mix) / mean_slowness(&self.stretches(seconds, &mut rng), seconds);
        let rates: Vec<f64> = self.again.iter().map(rate).filter(|rate| rate.is_finite()).collect();
        (!rates.is_empty()).then(|| Spread::of(rates))
    }

    /// Speed of the host in each block, over the mean of all.
    pub fn speed_by_block(&self) -> Vec<f64> {
        let speed = |block: &Block| {
            let stretches = self.stretches_of(block);
            let length: f64 = stretches.iter().map(|(length, _)| length).sum();
            1.0 / mean_slowness(&stretches, length)
        };
        let speeds: Vec<f64> = self.blocks.iter().map(speed).filter(|speed| speed.is_finite()).collect();
        let mean = speeds.iter().sum::<f64>() / speeds.len() as f64;
        speeds.into_iter().map(|speed| speed / mean).collect()
    }

    /// A course of the host for so long: those of blocks drawn at random, one after another.
    fn stretches(&self, seconds: f64, rng: &mut Pcg64Mcg) -> Vec<(f64, f64)> {
        let (mut stretches, mut length) = (Vec::new(), 0.0);
        // A block that says nothing is passed over, and there are not so many draws that none says anything.
        for _ in 0..10_000 {
            if length >= seconds || self.blocks.is_empty() {
                break;
            }
            let block = self.stretches_of(&self.blocks[rng.random_range(0..self.blocks.len())]);
            length += block.iter().map(|(length, _)| length).sum::<f64>();
            stretches.extend(block);
        }
        stretches
    }

    /// Lengths of the stretches of a block's pieces, and how slow the host was in each.
    fn stretches_of(&self, block: &Block) -> Vec<(f64, f64)> {
        let of = |seen: (f64, f64, f64)| (seen.0, 1.0 + self.drift_share * (seen.1 - 1.0));
        block.iter().flat_map(|piece| self.course(piece)).map(of).collect()
    }

    /// What of the differences between stretches is the host's, and not that of the calls that happened to be in them.
    pub(super) fn share_of_drift(&self) -> f64 {
        let variability = self.once.variability(&self.facts.mix);
        let seen = self.blocks.iter().flatten().flat_map(|piece| self.course(piece));
        drift_share(seen.map(|(_, slowness, calls)| (slowness, calls)), variability)
    }

    /// Lengths of a piece's stretches, how slow the host was in each, and how many calls say so.
    fn course(&self, piece: &Piece) -> Vec<(f64, f64, f64)> {
        let Some(all) = self.places.get(&piece.place).map(|all| &all.piece) else { return Vec::new() };
        let is_slow = |(_, slowness, _): &(f64, f64, f64)| slowness.is_finite() && *slowness > 0.0;
        if let Some(here) = all.cost(self.facts.idle_busy).filter(|_| !piece.course.is_empty()) {
            let mix: Vec<f64> = all.throughput.iter().map(|rate| rate / all.rate()).collect();
            let busiest = mix.iter().zip(&self.once.cpu.1).map(|(share, demand)| share * demand).sum();
            let usual = self.usual(busiest, here, all.rate());
            return piece.course.iter().map(|s| (s.seconds, usual.slowness(s), s.calls)).filter(is_slow).collect();
        }
        // Clients who leave no rest are served as fast as the server can.
        let closed = matches!(piece.place, super::Place::Clients(_) | super::Place::Alone(..));
        let calls = piece.rate() * piece.seconds;
        let whole = (piece.seconds, all.rate() / piece.rate(), calls);
        if closed && calls >= FEW_CALLS && is_slow(&whole) { vec![whole] } else { Vec::new() }
    }
}

/// The share of the variance of what was seen (factors about 1, and of how many calls each is the mean) that is not that
/// of calls whose squared coefficient of variation is `variability` (shrinkage, as James & Stein 1961).
pub(super) fn drift_share(seen: impl Iterator<Item = (f64, f64)>, variability: f64) -> f64 {
    let (mut n, mut squares, mut of_calls) = (0.0, 0.0, 0.0);
    for (factor, calls) in seen {
        n += 1.0;
        squares += (factor - 1.0).powi(2);
        of_calls += variability / calls;
    }
    if n > 1.0 && squares > 0.0 { (1.0 - of_calls / squares).clamp(0.0, 1.0).sqrt() } else { 0.0 }
}

/// Over the first so many seconds of stretches.
fn mean_slowness(stretches: &[(f64, f64)], seconds: f64) -> f64 {
    let (mut left, mut sum) = (seconds, 0.0);
    for (length, slowness) in stretches {
        let length = length.min(left);
        sum += length * slowness;
        left -= length;
    }
    if left < seconds { sum / (seconds - left) } else { 1.0 }
}

/// Of values in order, at least one.
fn quantile(values: &[f64], q: f64) -> f64 {
    values[((values.len() as f64 * q) as usize).min(values.len() - 1)]
}

impl Spread {
    /// Of drawn figures, at least one.
    fn of(mut values: Vec<f64>) -> Spread {
        values.sort_unstable_by(f64::total_cmp);
        Spread { median: quantile(&values, 0.5), interval90: [quantile(&values, 0.05), quantile(&values, 0.95)] }
    }
}
