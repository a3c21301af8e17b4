//! How the speed of the host changed in the course of calibration, and what it may do in the course of a level.
//!
//! Each piece tells of short stretches how slow the host was: the CPU time of a call over what is usual at that place.
//! From one piece to the next it is taken to go on as in the first. What a level meets is then a part of that course,
//! as long as the level, from an instant drawn at random (a moving block: Künsch 1989).

use super::blocks::{Piece, Place, Pooled, Replayed};
use super::{Once, ServerFacts};
use rand::RngExt;
use rand_pcg::Pcg64Mcg;
use statrs::distribution::{ContinuousCDF, StudentsT};
use std::collections::BTreeMap;

/// A server that is less busy tells more of what waking it costs than of the speed of its host.
const BUSY: f64 = 0.3;
/// A piece with fewer calls says little of the host.
const FEW_CALLS: f64 = 20.0;
/// The 95th percentile of the normal distribution: 90 % of it are within so many standard deviations.
const NORMAL_95: f64 = 1.645;

/// The course of the host.
#[derive(Clone, Debug, Default)]
pub(super) struct Drift {
    /// Lengths in seconds and slowness, one after another.
    course: Vec<(f64, f64)>,
    /// Length of all.
    seconds: f64,
    /// How much further the mean of a part of it may be off the mean of all than those that were seen: few blocks know
    /// the spread no better than Student's t.
    wider: f64,
    /// Speed of the host in each block, over the mean of all.
    pub by_block: Vec<f64>,
}

/// How slow the host was in a piece.
struct Seen {
    /// Of the whole piece.
    level: f64,
    calls: f64,
    /// Its stretches: length in seconds, slowness over the piece's, calls.
    stretches: Vec<(f64, f64, f64)>,
    /// How long until the next piece, from its beginning.
    lasts: f64,
}

impl Drift {
    pub fn of(once: &Once, facts: &ServerFacts, places: &BTreeMap<Place, Pooled>, blocks: &[Vec<Replayed>]) -> Drift {
        let seen: Vec<Vec<Seen>> = blocks
            .iter()
            .map(|block| block.iter().filter_map(|replayed| once.seen(facts, places, &replayed.piece)).collect())
            .collect();
        let all = || seen.iter().flatten();
        let lasts: f64 = all().map(|piece| piece.lasts).sum();
        let mean = all().map(|piece| piece.level * piece.lasts).sum::<f64>() / lasts;
        if !(mean.is_finite() && mean > 0.0) {
            return Drift { wider: 1.0, ..Drift::default() };
        }
        // What the calls happened to need is not the host's.
        let variability = once.variability(&facts.mix);
        let of_pieces = drift_share(all().map(|piece| (piece.level / mean, piece.calls)), variability);
        let stretches = all().flat_map(|piece| piece.stretches.iter().map(|(_, slowness, calls)| (*slowness, *calls)));
        let of_stretches = drift_share(stretches, variability);
        let mut drift = Drift { wider: wider(blocks.len()), ..Drift::default() };
        for block in &seen {
            let before = drift.course.len();
            for piece in block {
                let level = 1.0 + of_pieces * (piece.level / mean - 1.0);
                let mut left = piece.lasts;
                for (length, slowness, _) in piece.stretches.iter().cycle() {
                    if left <= 0.0 {
                        break;
                    }
                    let length = length.min(left);
                    drift.course.push((length, level * (1.0 + of_stretches * (slowness - 1.0))));
                    left -= length;
                }
            }
            drift.by_block.extend(mean_of(&drift.course[before..]).map(|slowness| 1.0 / slowness));
        }
        drift.seconds = drift.course.iter().map(|(length, _)| length).sum();
        let mean = drift.by_block.iter().sum::<f64>() / drift.by_block.len() as f64;
        drift.by_block.iter_mut().for_each(|speed| *speed /= mean);
        drift
    }

    /// What it may be for so long: lengths in seconds and slowness. Nothing where nothing was seen.
    pub fn draw(&self, seconds: f64, rng: &mut Pcg64Mcg) -> Vec<(f64, f64)> {
        let Some(mean) = mean_of(&self.course) else { return Vec::new() };
        let mut from = rng.random::<f64>() * self.seconds;
        let (mut drawn, mut left) = (Vec::new(), seconds);
        for (length, slowness) in self.course.iter().cycle() {
            let skipped = from.min(*length);
            from -= skipped;
            let length = (length - skipped).min(left);
            if length > 0.0 {
                drawn.push((length, *slowness));
                left -= length;
            }
            if left <= 0.0 {
                break;
            }
        }
        let apart = mean_of(&drawn).map_or(1.0, |part| part / mean);
        let factor = apart.powf(self.wider - 1.0);
        drawn.iter_mut().for_each(|(_, slowness)| *slowness *= factor);
        drawn
    }
}

/// Of the 95th percentile of what is to come, by the spread of so many blocks, over that of what was seen.
fn wider(blocks: usize) -> f64 {
    let n = blocks as f64;
    let Ok(t) = StudentsT::new(0.0, 1.0, n - 1.0) else { return 1.0 };
    t.inverse_cdf(0.95) / NORMAL_95 * (1.0 + 1.0 / n).sqrt()
}

/// How many of so many blocks are drawn anew. As many would make the mean of few too narrow: its variance is then that
/// of n − 1 of n, and the normal distribution's instead of Student's t. Fewer widen it to what t says.
pub(super) fn how_many(blocks: usize) -> usize {
    let Some(freedom) = blocks.checked_sub(1).filter(|freedom| *freedom > 0) else { return blocks };
    let quantile = StudentsT::new(0.0, 1.0, freedom as f64).map_or(NORMAL_95, |t| t.inverse_cdf(0.95));
    ((freedom as f64 * (NORMAL_95 / quantile).powi(2)).round() as usize).max(1)
}

impl Once {
    /// How slow the host was in a piece, by what is usual at its place.
    fn seen(&self, facts: &ServerFacts, places: &BTreeMap<Place, Pooled>, piece: &Piece) -> Option<Seen> {
        let all = &places.get(&piece.place)?.piece;
        let lasts = piece.warm_up + piece.seconds + piece.rest;
        let is_slow = |slowness: f64| slowness.is_finite() && slowness > 0.0;
        if let Some(here) = all.cost(facts.idle_busy).filter(|_| !piece.course.is_empty()) {
            if all.busy? < BUSY * f64::from(facts.servers) {
                return None;
            }
            let mix: Vec<f64> = all.throughput.iter().map(|rate| rate / all.rate()).collect();
            let busiest = mix.iter().zip(&self.cpu.1).map(|(share, demand)| share * demand).sum();
            let usual = self.usual(facts, busiest, here, all.rate());
            let counted = piece.course.iter().filter(|stretch| stretch.begins >= piece.warm_up);
            let mut stretches: Vec<(f64, f64, f64)> =
                counted.map(|s| (s.seconds, usual.slowness(s), s.calls)).filter(|s| is_slow(s.1)).collect();
            let seconds: f64 = stretches.iter().map(|(length, ..)| length).sum();
            let level = stretches.iter().map(|(length, slowness, _)| length * slowness).sum::<f64>() / seconds;
            let calls = stretches.iter().map(|(.., calls)| calls).sum();
            stretches.iter_mut().for_each(|(_, slowness, _)| *slowness /= level);
            return is_slow(level).then_some(Seen { level, calls, stretches, lasts });
        }
        // Clients who leave no rest are served as fast as the server can.
        let closed = matches!(piece.place, Place::Clients(_) | Place::Alone(..));
        let calls = piece.rate() * piece.seconds;
        let level = all.rate() / piece.rate();
        let stretches = vec![(piece.seconds, 1.0, calls)];
        (closed && calls >= FEW_CALLS && is_slow(level)).then_some(Seen { level, calls, stretches, lasts })
    }
}

/// The share of the variance of what was seen (factors about 1, and of how many calls each is the mean) that is not
/// that of calls whose squared coefficient of variation is `variability` (shrinkage, as James & Stein 1961).
pub(super) fn drift_share(seen: impl Iterator<Item = (f64, f64)>, variability: f64) -> f64 {
    let (mut n, mut squares, mut of_calls) = (0.0, 0.0, 0.0);
    for (factor, calls) in seen {
        n += 1.0;
        squares += (factor - 1.0).powi(2);
        of_calls += variability / calls;
    }
    if n > 1.0 && squares > 0.0 { (1.0 - of_calls / squares).clamp(0.0, 1.0).sqrt() } else { 0.0 }
}

/// Of stretches, by their lengths.
pub(super) fn mean_of(stretches: &[(f64, f64)]) -> Option<f64> {
    let seconds: f64 = stretches.iter().map(|(length, _)| length).sum();
    let sum: f64 = stretches.iter().map(|(length, slowness)| length * slowness).sum();
    (seconds > 0.0).then(|| sum / seconds)
}
