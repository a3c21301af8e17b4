//! Estimates of metrics with their standard errors: from several runs, or from successive parts of one run.
//!
//! Successive parts of a run are correlated, because queues and caches persist from one part to the next. Batch means
//! (Law & Kelton, *Simulation Modeling and Analysis*, §9.5) therefore merge neighbouring parts into longer batches,
//! until the correlation ρ of neighbouring batches is negligible. The estimate of ρ is corrected for its bias in short
//! series (Kendall, Biometrika 41, 1954): ρ = r + (1 + 3r)/m for the measured correlation r of m batches. Batches are
//! not merged further if fewer than [`ENOUGH_BATCHES`] would remain. If the remaining batches are still correlated,
//! they are treated as an autoregressive series of first order: the variance of the mean is multiplied by f = (1 +
//! ρ)/(1 − ρ), and m batches have the degrees of freedom of m/f independent ones.

use brimful_core::moments::Moments;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// Minimum number of batches for an estimate. The variance between fewer batches is too uncertain.
pub(crate) const MIN_BATCHES: usize = 8;

/// Minimum number of batches after merging neighbouring ones. The correlation of fewer batches cannot be estimated.
const ENOUGH_BATCHES: usize = 12;

/// Minimum number of batches with values above the estimated percentile. In fewer batches, the values above a high
/// percentile come from a few moments of the run, and the bootstrap underestimates how much other moments would differ.
const MIN_BATCHES_ABOVE: usize = 20;

/// Upper limit of the estimated correlation ρ of batches. At this limit, the variance of the mean is multiplied by 39,
/// which is (1 + ρ)/(1 − ρ).
const MAX_CORRELATION: f64 = 0.95;

/// Share of the values at each end (lowest and highest) that a trimmed mean leaves out.
const TRIMMED_SHARE: f64 = 0.2;

/// Number of bootstrap samples. A standard error computed from them has itself a relative standard error of 3.5 %.
const BOOTSTRAP_SAMPLES: usize = 400;

/// An estimated value with its standard error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The estimated value.
    pub value: f64,
    /// Standard error of the value.
    pub standard_error: f64,
    /// Degrees of freedom of the standard error.
    pub degrees_of_freedom: f64,
}

impl Estimate {
    /// Estimates the mean from the values of independent runs. `None` with fewer than two runs.
    pub fn from_runs(values: &[f64]) -> Option<Estimate> {
        let moments = Moments::from_values(values)?;
        Some(Estimate {
            value: moments.mean(),
            standard_error: moments.standard_error()?,
            degrees_of_freedom: moments.count() as f64 - 1.0,
        })
    }

    /// Estimates the centre of values that are symmetric around it, except for a few outliers: the mean without the
    /// lowest 20 % and the highest 20 % of the values (Tukey & McLaughlin, Sankhyā A 25, 1963). The standard error is
    /// that of Yuen (Biometrika 61, 1974), from the winsorized variance. `None` with fewer than two values.
    pub fn from_trimmed(values: &[f64]) -> Option<Estimate> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let trimmed = (TRIMMED_SHARE * sorted.len() as f64) as usize;
        let kept = sorted.get(trimmed..sorted.len() - trimmed)?;
        let (lowest, highest) = (*kept.first()?, *kept.last()?);
        let winsorized: Vec<f64> = sorted.iter().map(|value| value.clamp(lowest, highest)).collect();
        let squares = Moments::from_values(&winsorized)?.population_variance() * values.len() as f64;
        let count = kept.len() as f64;
        let standard_error = (squares / (count * (count - 1.0))).sqrt();
        standard_error.is_finite().then(|| Estimate {
            value: kept.iter().sum::<f64>() / count,
            standard_error,
            degrees_of_freedom: count - 1.0,
        })
    }

    /// Estimates a ratio of two sums from successive parts of one run. Each part is a pair of numerator and
    /// denominator. `None` with fewer than [`MIN_BATCHES`] parts.
    pub fn from_parts(parts: &[(f64, f64)]) -> Option<Estimate> {
        let value = ratio_of_sums(parts)?;
        let batches = Batches::choose(parts)?;
        let batched = batches.merge(parts, |sum: &mut (f64, f64), part| *sum = (sum.0 + part.0, sum.1 + part.1));
        batches.estimate(value, ratio_standard_error(&batched)?)
    }

    /// Estimates a quantile from histograms of the values in successive parts of one run. The standard error follows
    /// from a bootstrap: batches of parts are drawn with replacement, always with the same seed. `None` with fewer than
    /// [`MIN_BATCHES`] parts, or if fewer than [`MIN_BATCHES_ABOVE`] batches, and less than half of them, have values
    /// above the quantile.
    ///
    /// The length of the batches is chosen by the correlation of the share of values above the quantile, because an
    /// estimated quantile has the same correlation (Bahadur 1966).
    pub fn quantile_from_parts(parts: &[Vec<Bucket>], q: f64) -> Option<Estimate> {
        let quantile = PooledCounts::new(parts).quantile(&vec![1.0; parts.len()], q)?;
        let total = |part: &[Bucket]| part.iter().map(|bucket| bucket.count).sum::<f64>();
        let slower =
            |part: &[Bucket]| part.iter().filter(|bucket| bucket.high > quantile).map(|bucket| bucket.count).sum();
        let shares: Vec<(f64, f64)> = parts.iter().map(|part| (slower(part), total(part))).collect();
        let batches = Batches::choose(&shares)?;
        let slower_in_batch = batches.merge(&shares, |sum: &mut f64, (slower, _)| *sum += slower);
        let above = slower_in_batch.into_iter().filter(|slower| *slower > 0.0).count();
        if above < MIN_BATCHES_ABOVE.min(batches.count / 2) {
            return None;
        }
        let counts =
            PooledCounts::new(&batches.merge(parts, |sum: &mut Vec<Bucket>, part| sum.extend_from_slice(part)));
        let mut random = Pcg64Mcg::seed_from_u64(1);
        let mut draw = |_| {
            let mut weights = vec![0.0; batches.count];
            (0..batches.count).for_each(|_| weights[random.random_range(0..batches.count)] += 1.0);
            counts.quantile(&weights, q)
        };
        let draws: Vec<f64> = (0..BOOTSTRAP_SAMPLES).filter_map(&mut draw).collect();
        let deviation = Moments::from_values(&draws)?.standard_deviation()?;
        // On average, the variance of n values drawn with replacement from n values is only (n − 1)/n of the true
        // variance. The standard error is corrected for this.
        let count = batches.count as f64;
        batches.estimate(quantile, deviation * (count / (count - 1.0)).sqrt())
    }

    /// The same estimate with a standard error of at least `error`, because the value was counted in whole numbers or
    /// rounded.
    #[must_use]
    pub fn with_resolution(self, error: f64) -> Estimate {
        Estimate { standard_error: self.standard_error.max(error), ..self }
    }
}

/// One bucket of a histogram.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bucket {
    /// Lower bound of the values in the bucket.
    pub low: f64,
    /// Upper bound of the values in the bucket.
    pub high: f64,
    /// Number of values in the bucket.
    pub count: f64,
}

/// Histograms of several batches. All of them have the same buckets.
struct PooledCounts {
    /// Bounds of each bucket, in increasing order.
    bounds: Vec<(f64, f64)>,
    /// For each batch, the number of values in each bucket and all lower buckets.
    cumulative: Vec<Vec<f64>>,
}

impl PooledCounts {
    fn new(batches: &[Vec<Bucket>]) -> PooledCounts {
        let mut bounds: Vec<(f64, f64)> = batches.iter().flatten().map(|bucket| (bucket.low, bucket.high)).collect();
        bounds.sort_by(|one, other| one.0.total_cmp(&other.0));
        bounds.dedup_by_key(|(low, _)| *low);
        let cumulative = |batch: &Vec<Bucket>| {
            let mut counts = vec![0.0; bounds.len()];
            for bucket in batch {
                counts[bounds.partition_point(|(low, _)| *low < bucket.low)] += bucket.count;
            }
            let mut sum = 0.0;
            counts.iter_mut().for_each(|count| {
                sum += *count;
                *count = sum;
            });
            counts
        };
        let cumulative = batches.iter().map(cumulative).collect();
        PooledCounts { bounds, cumulative }
    }

    /// The quantile of the values of all batches, interpolated within its bucket. `weights` contains how often each
    /// batch is counted. `None` without values.
    fn quantile(&self, weights: &[f64], q: f64) -> Option<f64> {
        let weighted = |counts: &Vec<f64>, weight: &f64, bucket: usize| weight * counts[bucket];
        let up_to = |bucket: usize| {
            self.cumulative.iter().zip(weights).map(|(counts, weight)| weighted(counts, weight, bucket)).sum()
        };
        let rank = q * up_to(self.bounds.len().checked_sub(1)?);
        let (mut first, mut last) = (0, self.bounds.len() - 1);
        while first < last {
            let middle = (first + last) / 2;
            if up_to(middle) < rank { first = middle + 1 } else { last = middle }
        }
        let below: f64 = first.checked_sub(1).map_or(0.0, up_to);
        let (low, high) = self.bounds[first];
        let count: f64 = up_to(first) - below;
        (count > 0.0).then(|| low + (high - low) * (rank - below) / count)
    }
}

/// The sum of the numerators divided by the sum of the denominators; `None` if the sum of the denominators is not
/// positive.
fn ratio_of_sums(parts: &[(f64, f64)]) -> Option<f64> {
    let (sum, weight) = parts.iter().fold((0.0, 0.0), |sums, part| (sums.0 + part.0, sums.1 + part.1));
    (weight > 0.0).then(|| sum / weight)
}

/// Standard error of the ratio of two sums over independent pairs, by Cochran's variance of a ratio (*Sampling
/// Techniques*, 1977, §2.11). With m pairs (Sᵢ, nᵢ), N = Σnᵢ and x̄ = ΣSᵢ/N, it is
///
/// ```text
/// var(x̄) = m/(m−1) · Σ(Sᵢ − x̄·nᵢ)² / N²
/// ```
///
/// `None` with fewer than two pairs.
pub(crate) fn ratio_standard_error(pairs: &[(f64, f64)]) -> Option<f64> {
    let ratio = ratio_of_sums(pairs)?;
    let count = pairs.len() as f64;
    let weight: f64 = pairs.iter().map(|pair| pair.1).sum();
    let squares: f64 = pairs.iter().map(|pair| (pair.0 - ratio * pair.1).powi(2)).sum();
    (pairs.len() > 1).then(|| (squares * count / (count - 1.0)).sqrt() / weight)
}

/// Batches of equally many neighbouring parts of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Batches {
    /// Number of parts in a batch. Parts at the end that do not fill a batch are left out.
    length: usize,
    /// Number of batches.
    count: usize,
    /// Correlation of neighbouring batches, at least 0.
    correlation: f64,
}

impl Batches {
    /// Chooses the length of batches: 1, 2, 4, … parts. The result is the shortest length at which neighbouring batches
    /// are not correlated, provided that [`ENOUGH_BATCHES`] remain. `None` with fewer than [`MIN_BATCHES`] parts.
    fn choose(parts: &[(f64, f64)]) -> Option<Batches> {
        let ratio = ratio_of_sums(parts)?;
        let mut deviations: Vec<f64> = parts.iter().map(|part| part.0 - ratio * part.1).collect();
        let mut length = 1;
        loop {
            let count = deviations.len();
            let correlation = lag_one_correlation(&deviations).clamp(0.0, MAX_CORRELATION);
            if count < MIN_BATCHES {
                return None;
            }
            if correlation == 0.0 || count / 2 < ENOUGH_BATCHES {
                return Some(Batches { length, count, correlation });
            }
            deviations = deviations.chunks_exact(2).map(|pair| pair.iter().sum()).collect();
            length *= 2;
        }
    }

    fn merge<P: Default + Clone, Q>(&self, parts: &[Q], add: impl Fn(&mut P, &Q)) -> Vec<P> {
        let sum = |batch: &[Q]| {
            let mut sum = P::default();
            batch.iter().for_each(|part| add(&mut sum, part));
            sum
        };
        parts.chunks_exact(self.length).take(self.count).map(sum).collect()
    }

    /// The estimate of a value, corrected for the correlation of the batches. `standard_error` is the standard error
    /// for independent batches.
    fn estimate(&self, value: f64, standard_error: f64) -> Option<Estimate> {
        let inflation = (1.0 + self.correlation) / (1.0 - self.correlation);
        let is_known = value.is_finite() && standard_error.is_finite();
        is_known.then(|| Estimate {
            value,
            standard_error: standard_error * inflation.sqrt(),
            degrees_of_freedom: (self.count as f64 / inflation - 1.0).max(2.0),
        })
    }
}

/// Correlation of neighbouring values, corrected for the bias of short series. It is 0 if all values are equal.
fn lag_one_correlation(deviations: &[f64]) -> f64 {
    let Some(moments) = Moments::from_values(deviations) else { return 0.0 };
    let (mean, count) = (moments.mean(), deviations.len() as f64);
    let squares = moments.population_variance() * count;
    let products: f64 = deviations.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum();
    let correlation = products / squares;
    if squares > 0.0 { correlation + (1.0 + 3.0 * correlation) / count } else { 0.0 }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// An autoregressive series of first order with the mean 10 and the variance 1. `correlation` is the correlation of
    /// neighbouring values.
    pub(crate) fn correlated(random: &mut Pcg64Mcg, correlation: f64, count: usize) -> Vec<f64> {
        let mut normal = || (0..12).map(|_| random.random_range(0.0..1.0)).sum::<f64>() - 6.0;
        let mut deviation = normal();
        let mut next = || {
            deviation = correlation * deviation + (1.0 - correlation * correlation).sqrt() * normal();
            10.0 + deviation
        };
        (0..count).map(|_| next()).collect()
    }

    fn ones(values: &[f64]) -> Vec<(f64, f64)> {
        values.iter().map(|value| (*value, 1.0)).collect()
    }

    #[test]
    fn runs_have_the_textbook_error() {
        let estimate = Estimate::from_runs(&[1.0, 2.0, 3.0]).unwrap();
        assert_eq!((estimate.value, estimate.degrees_of_freedom), (2.0, 2.0));
        assert!((estimate.standard_error - 1.0 / 3_f64.sqrt()).abs() < 1e-15);
        assert_eq!(Estimate::from_runs(&[1.0]), None);
    }

    #[test]
    fn a_trimmed_mean_ignores_the_ends_and_has_yuens_error() {
        // With five values, one is left out at each end. The winsorized values 2, 2, 3, 5, 5 have a sum of squared
        // deviations of 9.2, so the squared standard error must be 9.2 / (3·2).
        let estimate = Estimate::from_trimmed(&[900.0, 2.0, 3.0, 5.0, -700.0]).unwrap();
        assert_eq!((estimate.value, estimate.degrees_of_freedom), (10.0 / 3.0, 2.0));
        assert!((estimate.standard_error - (9.2_f64 / 6.0).sqrt()).abs() < 1e-12, "{estimate:?}");
        assert_eq!(Estimate::from_trimmed(&[1.0]), None);
        assert_eq!(Estimate::from_trimmed(&[]), None);
    }

    #[test]
    fn parts_that_alternate_are_batches_of_their_own() {
        // Alternating values of 1 and 3 have a variance of 16/15. Their negative correlation must not reduce the
        // standard error.
        let parts = ones(&[1.0, 3.0].repeat(8));
        assert_eq!(Batches::choose(&parts), Some(Batches { length: 1, count: 16, correlation: 0.0 }));
        let estimate = Estimate::from_parts(&parts).unwrap();
        assert_eq!((estimate.value, estimate.degrees_of_freedom), (2.0, 15.0));
        assert!((estimate.standard_error - (16.0_f64 / 15.0 / 16.0).sqrt()).abs() < 1e-12, "{estimate:?}");
        assert_eq!(Estimate::from_parts(&parts[..7]), None);
    }

    #[test]
    fn parts_in_a_long_wave_are_few_independent_batches() {
        let wave: Vec<f64> = (0..64).map(|i| if i / 16 % 2 == 0 { 1.0 } else { 3.0 }).collect();
        let batches = Batches::choose(&ones(&wave)).unwrap();
        assert_eq!((batches.length, batches.count), (4, 16));
        assert!(batches.correlation > 0.1, "{batches:?}");
        let mixed = Estimate::from_parts(&ones(&[1.0, 3.0].repeat(32))).unwrap();
        let wave = Estimate::from_parts(&ones(&wave)).unwrap();
        assert!(wave.standard_error > 3.0 * mixed.standard_error && wave.degrees_of_freedom < 7.0, "{wave:?}");
    }

    #[test]
    fn a_quantile_is_interpolated_in_its_bucket() {
        let bucket = |low: f64, count: f64| Bucket { low, high: low + 1.0, count };
        let parts = [vec![bucket(1.0, 2.0), bucket(4.0, 1.0)], vec![bucket(1.0, 2.0), bucket(4.0, 3.0)]];
        let counts = PooledCounts::new(&parts);
        assert_eq!(counts.quantile(&[1.0, 1.0], 0.25), Some(1.5));
        assert_eq!(counts.quantile(&[1.0, 1.0], 0.75), Some(4.5));
        assert_eq!(counts.quantile(&[1.0, 1.0], 1.0), Some(5.0));
        // The first histogram alone has two of its three values in the first bucket.
        assert_eq!(counts.quantile(&[1.0, 0.0], 0.5), Some(1.75));
        assert_eq!(PooledCounts::new(&[]).quantile(&[], 0.5), None);
    }

    #[test]
    fn a_quantile_that_few_parts_exceed_has_no_known_error() {
        let part = |slow: bool| {
            let bucket = |low: f64, count: f64| Bucket { low, high: low + 1.0, count };
            vec![bucket(1.0, 100.0), bucket(50.0, if slow { 4.0 } else { 0.0 })]
        };
        let run = |slow_in: usize| (0..64).map(|i| part(i % slow_in == 0)).collect::<Vec<_>>();
        assert!(Estimate::quantile_from_parts(&run(2), 0.99).is_some());
        // Only 8 parts have slow values. These are too few to estimate how much the quantile varies between runs.
        assert_eq!(Estimate::quantile_from_parts(&run(8), 0.997), None);
    }

    /// `missed` of `of` intervals do not contain the true value. Checks that this share is at most `share`, plus three
    /// standard deviations √(p(1−p)/n) for p = `share` and n = `of`. If each interval misses the true value with the
    /// probability p, this fails only once in 700 times. The seeds are fixed.
    #[track_caller]
    fn assert_at_most(missed: usize, of: usize, share: f64) {
        let bound = share + 3.0 * (share * (1.0 - share) / of as f64).sqrt();
        assert!(
            missed as f64 <= bound * of as f64,
            "{missed} of {of} missed, at most {bound:.3} of them were expected"
        );
    }

    #[test]
    fn intervals_cover_the_mean_of_correlated_parts() {
        const SERIES: usize = 1_000;
        let mut random = Pcg64Mcg::seed_from_u64(7);
        for correlation in [0.0, 0.5, 0.8] {
            let mut is_missed = |_: &usize| {
                let estimate = Estimate::from_parts(&ones(&correlated(&mut random, correlation, 64))).unwrap();
                let t = crate::student::t_quantile(estimate.degrees_of_freedom, 0.975).unwrap();
                (estimate.value - 10.0).abs() > t * estimate.standard_error
            };
            assert_at_most((0..SERIES).filter(|i| is_missed(i)).count(), SERIES, 0.05);
        }
    }

    #[test]
    fn intervals_cover_the_median_of_correlated_parts() {
        const SERIES: usize = 200;
        let mut random = Pcg64Mcg::seed_from_u64(8);
        let mut is_missed = |_: &usize| {
            // The values of each part are uniformly distributed within 0.5 of the mean of the part.
            let parts: Vec<Vec<Bucket>> = correlated(&mut random, 0.5, 48)
                .into_iter()
                .map(|level| {
                    let low = (level * 20.0).floor() / 20.0;
                    (0..20)
                        .map(|i| low - 0.5 + f64::from(i) / 20.0)
                        .map(|low| Bucket { low, high: low + 0.05, count: 5.0 })
                        .collect()
                })
                .collect();
            let estimate = Estimate::quantile_from_parts(&parts, 0.5).unwrap();
            assert_eq!(Estimate::quantile_from_parts(&parts, 0.5), Some(estimate), "the draws have a fixed seed");
            let t = crate::student::t_quantile(estimate.degrees_of_freedom, 0.975).unwrap();
            (estimate.value - 10.0).abs() > t * estimate.standard_error
        };
        assert_at_most((0..SERIES).filter(|i| is_missed(i)).count(), SERIES, 0.05);
    }
}
