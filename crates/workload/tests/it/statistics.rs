//! Statistics of the due times of calls.

use brimful_core::moments::{self, Moments};
use brimful_core::{Nanos, Rate};
use brimful_workload::Arrivals;

pub fn arrivals(process: &str, rate: f64, seed: u64) -> Arrivals {
    Arrivals::new(process.parse().unwrap(), Rate(rate), seed).unwrap()
}

/// Number of calls in each of the first `slots` slots, each of length `slot`.
pub fn counts(arrivals: Arrivals, slot: Nanos, slots: usize) -> Vec<f64> {
    let mut counts = vec![0.0; slots];
    for due in arrivals {
        let Some(count) = counts.get_mut((due.0 / slot.0) as usize) else { break };
        *count += 1.0;
    }
    counts
}

/// Sums of `n` successive counts.
pub fn aggregate(counts: &[f64], n: usize) -> Vec<f64> {
    counts.chunks_exact(n).map(|chunk| chunk.iter().sum()).collect()
}

pub fn mean(values: &[f64]) -> f64 {
    moments::mean(values).unwrap()
}

pub fn variance(values: &[f64]) -> f64 {
    Moments::from_values(values).unwrap().variance().unwrap()
}

/// The mean square of the Haar wavelet details of the counts at each octave, with the number of details (Abry & Veitch
/// 1998, with the simplest wavelet). The octaves begin with 1 and end with the last that has at least 16 details. The
/// square of a detail is half the squared difference of two neighbouring sums of n = 2^(octave−1) counts, divided by n.
///
/// The Poisson process adds its rate to the energy of every octave. This rate is subtracted, so that the result depends
/// only on the rate curve. For fractional Gaussian noise of variance σ² the result is σ²·n^(2H−1)·(2 − 2^(2H−1)) at
/// every octave.
pub fn energies(counts: &[f64]) -> Vec<(f64, usize)> {
    let poisson = mean(counts);
    let (mut sums, mut n) = (counts.to_vec(), 1.0);
    let mut energies = Vec::new();
    while sums.len() >= 32 {
        let details: Vec<f64> = sums.chunks_exact(2).map(|pair| (pair[0] - pair[1]).powi(2) / (2.0 * n)).collect();
        energies.push((mean(&details) - poisson, details.len()));
        sums = aggregate(&sums, 2);
        n *= 2.0;
    }
    energies
}

/// Estimates H from the energies of octave `first` and above, and returns it with its standard error. The binary
/// logarithms of the energies have the slope 2H − 1 over the octaves. Each logarithm is weighted by its number of
/// details m, because its variance is 2/(m·ln²2) (Abry & Veitch 1998).
pub fn hurst(energies: &[(f64, usize)], first: usize) -> (f64, f64) {
    let points: Vec<(f64, f64, f64)> = energies
        .iter()
        .enumerate()
        .skip(first - 1)
        .map(|(index, &(energy, m))| (index as f64, energy.log2(), m as f64 * 2f64.ln().powi(2) / 2.0))
        .collect();
    let weights: f64 = points.iter().map(|(_, _, w)| w).sum();
    let centre = points.iter().map(|(x, _, w)| w * x).sum::<f64>() / weights;
    let spread: f64 = points.iter().map(|(x, _, w)| w * (x - centre).powi(2)).sum();
    let slope = points.iter().map(|(x, y, w)| w * (x - centre) * y).sum::<f64>() / spread;
    ((slope + 1.0) / 2.0, spread.sqrt().recip() / 2.0)
}
