//! Finds and replaces spikes: single values far outside the usual range, such as a day of an attack, of news, or of an
//! outage.
//!
//! Spikes are replaced before anything is fitted. A least-squares fit of a season would distribute a spike over all
//! future weeks: one day at 20 times the usual rate raises that weekday by 95 % in a history of 20 weeks.
//!
//! The expected value of a step is a median seasonal pattern plus the median of the neighbours (Hampel's filter, as in
//! [`crate::outliers`], on seasonally adjusted values). `tsclean` of Hyndman's R package `forecast` works in the same
//! way, but uses STL for the adjustment. A value is a spike only if it is far from the expected value on both scales,
//! rates and logarithms. So neither proportional growth nor a steady swing is mistaken for a spike. Values that recur
//! in each period are a season, not spikes. Values at the end of the history are not spikes if they may be a new level.

use crate::outliers::{MAD, median};

/// Number of neighbours on each side of a step from which its expected value is computed.
const NEIGHBOURS: usize = 14;
/// Minimum length of a history, in values, for the detection of spikes.
const MIN_VALUES: usize = 21;
/// Minimum number of periods, such as weeks, from which a median seasonal pattern is computed.
const MIN_PERIODS: usize = 3;
/// A value is a spike if it is more than this many robust standard deviations from the expected value.
const MAX_DEVIATIONS: f64 = 6.0;
/// Lower bound of the spread (the robust standard deviation), as a share of the mean rate. Without this bound, any
/// deviation in a series without noise would be a spike.
const MIN_SPREAD: f64 = 0.01;
/// No spike is replaced if more than this share of the values are spikes.
const MAX_SPIKE_SHARE: f64 = 0.1;
/// Outliers at the same index in this many consecutive periods, such as weeks, are a season.
const MIN_RECURRENCES: usize = 3;
/// If at least this share of the last values are outliers, they are a permanent change of the rate, not spikes.
const MIN_LASTING_SHARE: f64 = 0.6;
/// Rates below this share of the median rate are raised to it, because zero has no logarithm.
const ZERO_SHARE: f64 = 1e-3;

/// Replaces spikes by expected values, and returns the indices of the spikes. `periods` are the possible lengths of a
/// season, in steps.
pub(crate) fn replace(rates: &mut [f64], periods: &[usize]) -> Vec<usize> {
    if rates.len() < MIN_VALUES {
        return Vec::new();
    }
    let fitting = periods.iter().copied().filter(|period| *period > 1 && rates.len() / period >= MIN_PERIODS);
    let period = fitting.max();
    let linear = Expected::new(rates, period);
    let least = ZERO_SHARE * median(rates.to_vec());
    let positive = least > 0.0;
    let logarithms: Vec<f64> = rates.iter().map(|rate| rate.max(least).ln()).collect();
    let log = positive.then(|| Expected::new(&logarithms, period));
    let mut signs: Vec<i8> = (0..rates.len())
        .map(|i| {
            let far = linear.distance(i, rates[i], MIN_SPREAD * level(rates));
            let far_in_proportion = log.as_ref().map_or(far, |log| log.distance(i, logarithms[i], MIN_SPREAD));
            if far.abs().min(far_in_proportion.abs()) > MAX_DEVIATIONS { far.signum() as i8 } else { 0 }
        })
        .collect();
    keep_recurring(&mut signs, period);
    keep_lasting(&mut signs);
    let found: Vec<usize> = (0..rates.len()).filter(|i| signs[*i] != 0).collect();
    if found.len() as f64 > MAX_SPIKE_SHARE * rates.len() as f64 {
        return Vec::new();
    }
    let in_proportion = log.filter(|log| {
        let median_error = |expected: &dyn Fn(usize) -> f64| {
            median((0..rates.len()).map(|i| (rates[i] - expected(i)).abs()).collect())
        };
        median_error(&|i| log.values[i].exp()) < median_error(&|i| linear.values[i])
    });
    for i in &found {
        rates[*i] = in_proportion.as_ref().map_or(linear.values[*i].max(0.0), |log| log.values[*i].exp());
    }
    found
}

/// The expected value of each step, and its spread: the robust standard deviation of actual values from it.
struct Expected {
    values: Vec<f64>,
    spreads: Vec<f64>,
}

impl Expected {
    fn new(values: &[f64], period: Option<usize>) -> Expected {
        let season = period.map_or_else(Vec::new, |period| median_season(values, period));
        let season_at = |i: usize| if season.is_empty() { 0.0 } else { season[i % season.len()] };
        let adjusted: Vec<f64> = values.iter().enumerate().map(|(i, value)| value - season_at(i)).collect();
        let (centers, near): (Vec<f64>, Vec<f64>) = (0..adjusted.len()).map(|i| neighbourhood(&adjusted, i)).unzip();
        let median_error: Vec<f64> =
            adjusted.iter().zip(&centers).map(|(value, center)| (value - center).abs()).collect();
        // The spread is computed for each index within the period, because busy hours vary more than quiet hours.
        let by_index: Vec<f64> = (0..season.len())
            .map(|index| median(median_error.iter().skip(index).step_by(season.len()).copied().collect()))
            .collect();
        let spread = |i: usize| near[i].max(if by_index.is_empty() { 0.0 } else { by_index[i % by_index.len()] }) / MAD;
        Expected {
            values: centers.iter().enumerate().map(|(i, center)| center + season_at(i)).collect(),
            spreads: (0..adjusted.len()).map(spread).collect(),
        }
    }

    /// The difference between a value and its expected value, in units of the spread, which is at least `least`.
    fn distance(&self, i: usize, value: f64, least: f64) -> f64 {
        let spread = self.spreads[i].max(least);
        if spread > 0.0 { (value - self.values[i]) / spread } else { 0.0 }
    }
}

/// The median of the values around index `i`, and the median absolute deviation of these values from it.
fn neighbourhood(values: &[f64], i: usize) -> (f64, f64) {
    let window = (2 * NEIGHBOURS + 1).min(values.len());
    let first = i.saturating_sub(window / 2).min(values.len() - window);
    let near = &values[first..first + window];
    let center = median(near.to_vec());
    (center, median(near.iter().map(|value| (value - center).abs()).collect()))
}

/// The median seasonal pattern. For each index within the period, it contains the median over all periods of the
/// difference between the value and the level (the interpolated median of the periods).
fn median_season(values: &[f64], period: usize) -> Vec<f64> {
    let whole = values.len() / period;
    let levels: Vec<f64> = (0..whole).map(|nth| median(values[nth * period..(nth + 1) * period].to_vec())).collect();
    // The level in the middle of each period is the median of the period. Between these, it is interpolated.
    let level_at = |i: usize| {
        let place = ((i as f64 + 0.5) / period as f64 - 0.5).clamp(0.0, (whole - 1) as f64);
        let before = place as usize;
        let after = (before + 1).min(whole - 1);
        levels[before] + (levels[after] - levels[before]) * (place - before as f64)
    };
    let above = |i: usize| values[i] - level_at(i);
    (0..period).map(|place| median((place..whole * period).step_by(period).map(above).collect())).collect()
}

/// The mean rate, from which the lower bound of the spread is computed. It includes spikes, because the bound need not
/// be exact.
fn level(rates: &[f64]) -> f64 {
    rates.iter().sum::<f64>() / rates.len() as f64
}

/// Removes the marks of outliers that recur at the same index in several consecutive periods: they are a season.
fn keep_recurring(signs: &mut [i8], period: Option<usize>) {
    let Some(period) = period else { return };
    let recurring = |i: usize| {
        let in_a_row = |next: &dyn Fn(usize) -> Option<usize>| {
            std::iter::successors(next(i), |at| next(*at)).take_while(|at| signs.get(*at) == Some(&signs[i])).count()
        };
        1 + in_a_row(&|at| at.checked_sub(period)) + in_a_row(&|at| (at + period < signs.len()).then_some(at + period))
            >= MIN_RECURRENCES
    };
    let kept: Vec<usize> = (0..signs.len()).filter(|i| signs[*i] != 0 && recurring(*i)).collect();
    kept.into_iter().for_each(|i| signs[i] = 0);
}

/// Removes the marks of outliers at the end of a history if there are several: they may be a new level.
fn keep_lasting(signs: &mut [i8]) {
    let n = signs.len();
    let mut found = 0;
    let mut lasting_from = n;
    for i in (n.saturating_sub(NEIGHBOURS)..n).rev() {
        found += usize::from(signs[i] != 0);
        if n - i > 1 && signs[i] != 0 && found as f64 >= MIN_LASTING_SHARE * (n - i) as f64 {
            lasting_from = i;
        }
    }
    signs[lasting_from..].fill(0);
}

#[cfg(test)]
mod tests {
    use super::*;

    const WEEK: [f64; 7] = [1.0, 1.1, 1.05, 1.0, 1.2, 0.7, 0.6];

    /// `n` growing daily rates around 100 with a weekly pattern. `noise` is the size of the irregular deviations, as a
    /// share of the rate.
    fn days(n: usize, noise: f64) -> Vec<f64> {
        let value = |i: usize| {
            let median_error = 2.0 * (i as f64 * 0.618_033_988_75).fract() - 1.0;
            100.0 * (1.0 + i as f64 / 200.0) * WEEK[i % 7] * (1.0 + noise * median_error)
        };
        (0..n).map(value).collect()
    }

    #[test]
    fn a_spike_or_an_outage_at_any_place_is_replaced_by_what_was_expected() {
        for noise in [0.0, 0.1] {
            for i in [0, 3, 70, 77, 132, 138, 139] {
                for factor in [0.0, 10.0, 20.0, 50.0] {
                    let truth = days(140, noise);
                    let mut rates = truth.clone();
                    rates[i] *= factor;
                    assert_eq!(replace(&mut rates, &[7]), [i], "{factor} times at {i}, noise {noise}");
                    let median_error = rates[i] / truth[i] - 1.0;
                    assert!(median_error.abs() < 0.1 + 1.5 * noise, "{i}: {} in place of {}", rates[i], truth[i]);
                }
            }
        }
    }

    #[test]
    fn what_recurs_lasts_or_is_common_is_none() {
        for noise in [0.0, 0.02, 0.2] {
            assert_eq!(replace(&mut days(140, noise), &[7]), [0_usize; 0], "{noise}");
            let mut sales = days(140, noise);
            sales.iter_mut().skip(5).step_by(7).for_each(|rate| *rate *= 5.0);
            assert_eq!(replace(&mut sales, &[7]), [0_usize; 0], "a weekly sale must count as a season, noise {noise}");
            let mut begun = days(140, noise);
            begun.iter_mut().skip(110).step_by(7).for_each(|rate| *rate *= 5.0);
            assert_eq!(replace(&mut begun, &[7]), [0_usize; 0], "a new weekly sale must be a season, noise {noise}");
            for from in [60, 100, 130, 137] {
                let mut jump = days(140, noise);
                jump[from..].iter_mut().for_each(|rate| *rate *= 3.0);
                assert_eq!(
                    replace(&mut jump, &[7]),
                    [0_usize; 0],
                    "a threefold rate from {from} on must count as a new level, noise {noise}"
                );
            }
        }
    }
}
