//! Finds and replaces outliers in a series without seasons: holidays, outages, sales, measurement errors. After an
//! outlier, the series returns to its former level, so a trend that followed the outlier would be wrong.
//!
//! The method is Hampel's filter: a value is an outlier if it is more than [`MAX_DEVIATIONS`] robust standard
//! deviations from the median of its neighbours. The robust standard deviation is the median absolute deviation divided
//! by [`MAD`] (Pearson, *Mining Imperfect Data*, 2005, §3.2). A permanent change of level is not an outlier, because
//! most of the following neighbours are at the new level. If one of the last values is far from the median, it may be
//! an outlier or a new level. In that case, no outlier of the series is replaced.

/// Number of neighbours on each side of a value. If values stay at a new level for more steps than this, they are a
/// change of level, not outliers.
const NEIGHBOURS: usize = 14;

/// A value is an outlier if it is more than this many robust standard deviations from the median.
const MAX_DEVIATIONS: f64 = 5.0;

/// Ratio of the median absolute deviation to the standard deviation, for normally distributed values.
pub(crate) const MAD: f64 = 0.6745;

/// No outlier is replaced if more than this share of the values are outliers.
const MAX_OUTLIER_SHARE: f64 = 0.1;

/// Replaces each outlier by the median of its neighbours, and returns the indices of the outliers.
pub(crate) fn replace(values: &mut [f64]) -> Vec<usize> {
    let window = 2 * NEIGHBOURS + 1;
    if values.len() < window {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (i, value) in values.iter().enumerate() {
        let first = i.saturating_sub(NEIGHBOURS).min(values.len() - window);
        let around = &values[first..first + window];
        let center = median(around.to_vec());
        let spread = median(around.iter().map(|v| (v - center).abs()).collect()) / MAD;
        if spread > 0.0 && (value - center).abs() > MAX_DEVIATIONS * spread {
            found.push((i, center));
        }
    }
    let last = found.last().is_some_and(|(i, _)| i + NEIGHBOURS >= values.len());
    if last || found.len() as f64 > MAX_OUTLIER_SHARE * values.len() as f64 {
        return Vec::new();
    }
    found.iter().for_each(|(i, center)| values[*i] = *center);
    found.into_iter().map(|(i, _)| i).collect()
}

pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `n` values of a rising line with irregular noise between 0 and 1.
    fn line(n: usize) -> Vec<f64> {
        (0..n).map(|i| 100.0 + i as f64 / 10.0 + (i as f64 * 0.618_033_988_75).fract()).collect()
    }

    #[test]
    fn what_comes_back_is_an_outlier_and_what_stays_is_none() {
        let mut values = line(200);
        values[20] = 30.0;
        values[50..60].fill(20.0);
        let found = replace(&mut values);
        assert_eq!(found, [&[20][..], &(50..60).collect::<Vec<_>>()].concat());
        for (i, (value, truth)) in values.iter().zip(line(200)).enumerate() {
            assert!((value - truth).abs() < 2.5, "{i}: {value}, {truth}");
        }
        let mut jump = line(200);
        jump[60..].iter_mut().for_each(|v| *v += 50.0);
        assert!(replace(&mut jump).is_empty());
        let mut end = line(200);
        end[20] = 30.0;
        end[195..].fill(20.0);
        assert!(replace(&mut end).is_empty(), "no outlier may be replaced while the last values may be a new level");
    }

    #[test]
    fn what_is_common_is_no_outlier() {
        let mut often: Vec<f64> = line(100).iter().enumerate().map(|(i, v)| v + f64::from(i % 6 == 0) * 50.0).collect();
        assert!(replace(&mut often).is_empty());
        assert!(replace(&mut line(100)).is_empty() && replace(&mut line(28)).is_empty());
        assert!(replace(&mut [5.0; 60]).is_empty());
    }
}
