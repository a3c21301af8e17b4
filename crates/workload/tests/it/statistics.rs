//! Statistics of arrivals that several tests use.

use brimful_core::moments::{self, Moments};
use brimful_core::{Nanos, Rate};
use brimful_workload::Arrivals;

/// The arrivals of the process with the notation `process`, at `rate` calls per second.
pub fn arrivals(process: &str, rate: f64, seed: u64) -> Arrivals {
    Arrivals::new(process.parse().unwrap(), Rate(rate), seed).unwrap()
}

/// Number of calls in each of the first `slots` slots. A slot has the length `slot`.
pub fn counts(arrivals: Arrivals, slot: Nanos, slots: usize) -> Vec<f64> {
    let mut counts = vec![0.0; slots];
    for due in arrivals {
        let Some(count) = counts.get_mut((due.0 / slot.0) as usize) else { break };
        *count += 1.0;
    }
    counts
}

/// The sum of each group of `n` successive counts.
pub fn aggregate(counts: &[f64], n: usize) -> Vec<f64> {
    counts.chunks_exact(n).map(|chunk| chunk.iter().sum()).collect()
}

/// The mean of at least one value.
pub fn mean(values: &[f64]) -> f64 {
    moments::mean(values).unwrap()
}

/// The sample variance of at least two values.
pub fn variance(values: &[f64]) -> f64 {
    Moments::from_values(values).unwrap().variance().unwrap()
}

/// The variation of the counts on each time scale (octave), with the number of squares that were averaged. Octave j =
/// 1, 2, … compares neighbouring sums of n = 2^(j−1) counts: the result is the mean of (difference of the two
/// sums)²/(2n). The last octave is the last one with at least 16 such differences. In the literature, these means are
/// the energies of the Haar wavelet transform (Abry & Veitch 1998).
///
/// Poisson arrivals add the mean count to the energy of every octave. It is subtracted, so that the result depends only
/// on the rate curve. For fractional Gaussian noise of variance σ², the result is σ²·n^(2H−1)·(2 − 2^(2H−1)).
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

/// Estimates the Hurst parameter H from the results of [`energies`] for the time scale `first` and larger ones. Returns
/// H and its standard error. The binary logarithm of the energy grows by 2H − 1 from one scale to the next; this slope
/// is fitted. The mean of m squares has the weight m, because the variance of its logarithm is 2/(m·ln²2) (Abry &
/// Veitch 1998).
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
