//! How far measurements may be off a prediction: by drawing the blocks of calibration anew (Efron 1979; blocks, because
//! what is measured at one time hangs together: Künsch 1989), which gives other models; and by drawing the course of
//! the host for each of them, on which the arrivals of a level then are served (a queue in a random environment).

use super::blocks::{Replayed, pool};
use super::drift::{how_many, mean_of};
use super::host::Answered;
use super::{Once, ServerFacts, ServerFit};
use crate::EstimateError;
use brimful_model::{Course, trajectory};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// How often blocks are drawn anew.
const DRAWS: usize = 100;
/// The most arrivals that are followed, at least in each draw.
const MOST_ARRIVALS: f64 = 50_000.0;

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
pub(super) fn anew(facts: &ServerFacts, blocks: &[Vec<Replayed>], seed: u64) -> Vec<Once> {
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    let drawn = how_many(blocks.len());
    let draw = |_| {
        let drawn: Vec<&Vec<Replayed>> = (0..drawn).map(|_| &blocks[rng.random_range(0..blocks.len())]).collect();
        let chance = (!facts.filled).then(|| rng.random());
        Once::fit(facts, &pool(drawn), chance).ok()
    };
    (0..DRAWS).filter_map(draw).collect()
}

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
            let stretches = self.drift.draw(seconds, &mut rng);
            let calls = arrivals(index as u64, followed);
            // As many as come in that time, by chance or in bursts.
            let came = calls.len() as f64 / followed;
            utilizations.push(once.utilization(&self.facts, came, mix, mean_of(&stretches).unwrap_or(1.0)));
            let course = Course::of_stretches(stretches);
            let times = trajectory(&model, course, index as u64, calls)?.map(|sojourn| sojourn.response).collect();
            let Some(answered) = Answered::of(times, once.shape) else { continue };
            means.push(answered.mean);
            percentiles.iter_mut().zip(answered.percentiles).for_each(|(values, value)| values.push(value));
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
        let rate = |once: &Once| once.saturation_of(mix) / mean_of(&self.drift.draw(seconds, &mut rng)).unwrap_or(1.0);
        let rates: Vec<f64> = self.again.iter().map(rate).filter(|rate| rate.is_finite()).collect();
        (!rates.is_empty()).then(|| Spread::of(rates))
    }

    /// Speed of the host in each block, over the mean of all.
    pub fn speed_by_block(&self) -> Vec<f64> {
        self.drift.by_block.clone()
    }
}

/// Of values in order, at least one.
pub(super) fn quantile(values: &[f64], q: f64) -> f64 {
    values[((values.len() as f64 * q) as usize).min(values.len() - 1)]
}

impl Spread {
    /// Of drawn figures, at least one.
    fn of(mut values: Vec<f64>) -> Spread {
        values.sort_unstable_by(f64::total_cmp);
        Spread { median: quantile(&values, 0.5), interval90: [quantile(&values, 0.05), quantile(&values, 0.95)] }
    }
}
