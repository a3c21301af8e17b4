//! Estimates the Hurst parameter H of arrivals by wavelets, from the Haar coefficients of counts per epoch (Abry &
//! Veitch, *Wavelet analysis of long-range-dependent traffic*, 1998).
//!
//! A coefficient of octave j is the normalized difference between the counts of two neighbouring intervals, each of
//! 2^(j−1) epochs. The energy of octave j is the mean of its m squared coefficients. For long-range dependent arrivals,
//! it grows like 2^(j·(2H−1)), so the slope of its binary logarithm gives H. Each logarithm is weighted by the
//! reciprocal of its variance, which is 2/(m·ln²2) for independent normal coefficients. It is corrected for its bias,
//! −1/(m·ln 2). A straight line through the counts is subtracted first, because a trend of the rate would change the
//! coefficients.
//!
//! Even at a constant rate, arrivals vary like Poisson arrivals. This variation adds the mean count to the energy of
//! every octave, which hides the variation of the rate in short octaves. The mean count is subtracted if the energies
//! of at least [`MIN_OCTAVES`] octaves exceed it by two standard errors. Otherwise, the arrivals cannot be
//! distinguished from Poisson arrivals, whose energies have a slope of zero (H = 0.5), and nothing is subtracted.
//!
//! Octaves below the scaling range are not used. The first octave that is used is the smallest one from which the
//! energies lie on a straight line within random variation (χ², 95 %; similar to Veitch, Abry & Taqqu 2003).

use brimful_core::profile::Hurst;
use brimful_core::quantity::number;
use statrs::distribution::{ChiSquared, ContinuousCDF};

/// Minimum number of wavelet coefficients in an octave (a time scale of the wavelet transform) that is used.
const MIN_COEFFICIENTS: usize = 16;
/// Minimum number of octaves (time scales of the wavelet transform) for estimating the slope.
const MIN_OCTAVES: usize = 4;
/// Minimum length of the peak window from which the Hurst parameter is estimated, in seconds.
const MIN_WINDOW_S: f64 = 512.0;
/// Minimum mean number of requests per epoch (counting interval). While the mean is lower, pairs of epochs are merged.
const MIN_MEAN_COUNT: f64 = 0.5;

/// Estimates the Hurst parameter H from counts per epoch. The error states why there is no estimate.
pub(super) fn estimate(counts: &[u64], epoch_s: f64) -> Result<Hurst, String> {
    let seconds = counts.len() as f64 * epoch_s;
    if seconds < MIN_WINDOW_S {
        return Err(format!(
            "not enough data: the peak window has {} s, and {} s are needed",
            number(seconds),
            number(MIN_WINDOW_S)
        ));
    }
    let mut counts = counts.iter().map(|count| *count as f64).collect::<Vec<f64>>();
    let mut epoch_s = epoch_s;
    while mean(&counts) < MIN_MEAN_COUNT && counts.len() > 1 {
        (counts, epoch_s) = (combine_pairs(&counts, |a, b| a + b), 2.0 * epoch_s);
    }
    let octaves = octaves(&counts);
    if octaves.len() < MIN_OCTAVES {
        return Err(format!(
            "not enough data: with epochs of {} s, which have {MIN_MEAN_COUNT} requests or more on average, there are \
             {} octaves of the {MIN_OCTAVES} that are needed",
            number(epoch_s),
            octaves.len()
        ));
    }
    let poisson = mean(&counts);
    let is_more_than_poisson = octaves.iter().filter(|octave| octave.exceeds(poisson)).count() >= MIN_OCTAVES;
    let subtracted = if is_more_than_poisson { poisson } else { 0.0 };
    let points: Vec<Point> = octaves.iter().filter_map(|octave| octave.without(subtracted, poisson)).collect();
    let line = longest_good_line(&points)
        .ok_or("the energies of the octaves lie on no straight line: no one scaling holds")?;
    let value = (line.slope + 1.0) / 2.0;
    let half = 1.96 * line.error / 2.0;
    Ok(Hurst {
        value,
        interval95: [value - half, value + half],
        from_s: epoch_s * line.from.exp2(),
        to_s: epoch_s * line.to.exp2(),
    })
}

/// Mean energy of the wavelet coefficients of one octave (time scale).
#[derive(Clone, Copy, Debug)]
struct Octave {
    /// The number j of the octave: a wavelet coefficient spans 2^j epochs.
    number: f64,
    energy: f64,
    coefficients: f64,
}

/// One octave as a point of the regression: the binary logarithm of its energy, and the variance of this logarithm.
#[derive(Clone, Copy, Debug)]
struct Point {
    octave: f64,
    logarithm: f64,
    variance: f64,
}

/// The weighted least-squares line through the points of several octaves.
#[derive(Clone, Copy, Debug)]
struct Line {
    slope: f64,
    /// Standard error of the slope.
    error: f64,
    /// Weighted sum of squared residuals (χ²).
    chi: f64,
    /// Number j of the first octave that the line uses.
    from: f64,
    to: f64,
}

/// Computes the energies of all octaves, from octave 1 on. The square of a coefficient of octave j is half the squared
/// difference of two neighbouring sums of n = 2^(j−1) counts, divided by n.
fn octaves(counts: &[f64]) -> Vec<Octave> {
    let mut sums = without_line(counts);
    let mut n = 1.0;
    let mut octaves = Vec::new();
    while sums.len() >= 2 * MIN_COEFFICIENTS {
        let squared_coefficients = combine_pairs(&sums, |a, b| (a - b).powi(2) / (2.0 * n));
        let number = (octaves.len() + 1) as f64;
        octaves.push(Octave {
            number,
            energy: mean(&squared_coefficients),
            coefficients: squared_coefficients.len() as f64,
        });
        (sums, n) = (combine_pairs(&sums, |a, b| a + b), 2.0 * n);
    }
    octaves
}

impl Octave {
    /// Whether the energy exceeds that of Poisson arrivals, `poisson`, by two standard errors.
    fn exceeds(&self, poisson: f64) -> bool {
        self.energy > poisson * (1.0 + 2.0 * (2.0 / self.coefficients).sqrt())
    }

    /// The binary logarithm of the energy after the energy `part` is subtracted; `None` if only rounding errors remain.
    /// The subtraction does not change the absolute error of the energy, so the variance of the logarithm increases.
    fn without(&self, part: f64, mean_count: f64) -> Option<Point> {
        let left = self.energy - part;
        if left < 1e-9 * mean_count {
            return None;
        }
        let bias = -1.0 / (self.coefficients * 2f64.ln());
        let variance = 2.0 / (self.coefficients * 2f64.ln().powi(2)) * (self.energy / left).powi(2);
        Some(Point { octave: self.number, logarithm: left.log2() - bias, variance })
    }
}

/// The weighted least-squares line with the smallest first octave for which the line fits well. The line uses this
/// octave and all octaves after it.
fn longest_good_line(points: &[Point]) -> Option<Line> {
    let lines = (0..points.len()).filter_map(|first| points.get(first..));
    lines.filter(|rest| rest.len() >= MIN_OCTAVES).find_map(|rest| {
        let line = line(rest);
        (line.chi <= chi_squared_limit(rest.len() - 2)).then_some(line)
    })
}

fn chi_squared_limit(freedom: usize) -> f64 {
    ChiSquared::new(freedom as f64).map_or(0.0, |chi| chi.inverse_cdf(0.95))
}

fn line(points: &[Point]) -> Line {
    let weighted = |value: &dyn Fn(&Point) -> f64| points.iter().map(|p| value(p) / p.variance).sum::<f64>();
    let weights = weighted(&|_| 1.0);
    let centre = weighted(&|p| p.octave) / weights;
    let level = weighted(&|p| p.logarithm) / weights;
    let spread = weighted(&|p| (p.octave - centre).powi(2));
    let slope = weighted(&|p| (p.octave - centre) * p.logarithm) / spread;
    let chi = weighted(&|p| (p.logarithm - level - slope * (p.octave - centre)).powi(2));
    let octave = |point: Option<&Point>| point.map_or(0.0, |p| p.octave);
    Line { slope, error: spread.sqrt().recip(), chi, from: octave(points.first()), to: octave(points.last()) }
}

/// Returns the counts after subtracting their least-squares line.
fn without_line(counts: &[f64]) -> Vec<f64> {
    let level = mean(counts);
    let centre = (counts.len() as f64 - 1.0) / 2.0;
    let times = || (0..counts.len()).map(|i| i as f64 - centre);
    let spread: f64 = times().map(|t| t * t).sum();
    let slope = times().zip(counts).map(|(t, count)| t * count).sum::<f64>() / spread;
    let slope = if slope.is_finite() { slope } else { 0.0 };
    times().zip(counts).map(|(t, count)| count - level - slope * t).collect()
}

/// Combines the values of each pair with `of_two`: the first with the second, the third with the fourth, and so on.
fn combine_pairs(values: &[f64], of_two: impl Fn(f64, f64) -> f64) -> Vec<f64> {
    values.chunks_exact(2).map(|pair| of_two(pair[0], pair[1])).collect()
}

fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_distr::{Distribution, Poisson, StandardNormal};
    use rand_pcg::Pcg64;

    /// `n` values of fractional Gaussian noise with variance 1. Each value is drawn from its distribution given all
    /// earlier values (Hosking 1984).
    fn noise(h: f64, n: usize, rng: &mut Pcg64) -> Vec<f64> {
        let power = |k: f64| k.abs().powf(2.0 * h);
        let covariance = |k: usize| (power(k as f64 + 1.0) - 2.0 * power(k as f64) + power(k as f64 - 1.0)) / 2.0;
        let covariances: Vec<f64> = (0..n).map(covariance).collect();
        let (mut values, mut weights, mut variance) = (Vec::<f64>::with_capacity(n), Vec::<f64>::new(), 1.0f64);
        for i in 0..n {
            if i > 0 {
                let known: f64 = weights.iter().zip(covariances[1..i].iter().rev()).map(|(w, c)| w * c).sum();
                let last = (covariances[i] - known) / variance;
                let next: Vec<f64> = weights.iter().zip(weights.iter().rev()).map(|(w, v)| w - last * v).collect();
                weights = next;
                weights.push(last);
                variance *= 1.0 - last * last;
            }
            let expected: f64 = weights.iter().zip(values.iter().rev()).map(|(w, v)| w * v).sum();
            let normal: f64 = StandardNormal.sample(rng);
            values.push(expected + variance.sqrt() * normal);
        }
        values
    }

    fn poisson(mean: f64, rng: &mut Pcg64) -> u64 {
        Poisson::new(mean.max(1e-9)).unwrap().sample(rng) as u64
    }

    /// Poisson counts whose rate follows fractional Gaussian noise, with a coefficient of variation of 30 %.
    fn counts(h: f64, n: usize, mean: f64, seed: u64) -> Vec<u64> {
        let mut rng = Pcg64::seed_from_u64(seed);
        noise(h, n, &mut rng).into_iter().map(|x| poisson(mean * (1.0 + 0.3 * x), &mut rng)).collect()
    }

    #[test]
    fn the_parameter_of_fractional_noise_lies_in_the_interval() {
        for h in [0.5, 0.7, 0.9] {
            for mean in [20.0, 1_000.0] {
                let seeds = 20;
                let estimates = (0..seeds).filter_map(|seed| estimate(&counts(h, 2_048, mean, seed), 1.0).ok());
                let found: Vec<Hurst> = estimates.collect();
                let holds = |hurst: &&Hurst| hurst.interval95[0] <= h && h <= hurst.interval95[1];
                let held = found.iter().filter(holds).count();
                assert!(
                    found.len() >= 18 && held >= 15,
                    "H = {h}, {mean}/s: {held} of {} intervals contain H",
                    found.len()
                );
                let average = found.iter().map(|hurst| hurst.value).sum::<f64>() / found.len() as f64;
                assert!((average - h).abs() < 0.05, "H = {h}, {mean}/s: {average} on average");
            }
        }
    }

    #[test]
    fn poisson_arrivals_have_one_half() {
        let mut near = 0;
        for seed in 0..20 {
            let mut rng = Pcg64::seed_from_u64(100 + seed);
            let counts: Vec<u64> = (0..3_600).map(|_| poisson(5.0, &mut rng)).collect();
            let hurst = estimate(&counts, 1.0).unwrap();
            near += usize::from((hurst.value - 0.5).abs() < 0.1);
        }
        assert!(near >= 18, "{near} of 20");
    }

    #[test]
    fn a_rate_that_grows_evenly_is_no_dependence() {
        let mut rng = Pcg64::seed_from_u64(3);
        let counts: Vec<u64> = (0..4_096).map(|i| poisson(10.0 + f64::from(i) / 200.0, &mut rng)).collect();
        let hurst = estimate(&counts, 1.0).unwrap();
        assert!((hurst.value - 0.5).abs() < 0.1, "{hurst:?}");
    }

    #[test]
    fn where_there_is_not_enough_there_is_a_reason() {
        let mut rng = Pcg64::seed_from_u64(4);
        let reason = |counts: &[u64]| estimate(counts, 1.0).unwrap_err();
        assert!(reason(&[9; 511]).starts_with("not enough data") && reason(&[]).starts_with("not enough data"));
        assert!(reason(&[0; 4_000]).starts_with("not enough data"));
        let rare: Vec<u64> = (0..3_600).map(|_| poisson(0.01, &mut rng)).collect();
        assert!(reason(&rare).starts_with("not enough data"), "{}", reason(&rare));
        // 0.1 requests per second over a day must be enough for an estimate, because epochs are merged to longer
        // epochs.
        let day: Vec<u64> = (0..86_400).map(|_| poisson(0.1, &mut rng)).collect();
        let hurst = estimate(&day, 1.0).unwrap();
        assert!(hurst.from_s >= 16.0 && (hurst.value - 0.5).abs() < 0.1, "{hurst:?}");
        assert!(estimate(&[7; 4_096], 1.0).is_err(), "equal counts have no energy, so H must be unknown");
    }
}
