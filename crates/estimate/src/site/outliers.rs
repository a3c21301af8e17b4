//! Finds time steps whose utilization is far above a fit to the other time steps, and the period of these outliers.

use super::regression::regress;
use super::{SiteOptions, SiteStep};
use crate::demand::DemandFit;

/// Minimum residual of an outlier, as a multiple of the residuals' standard deviation.
const OUTLIER_DISTANCE: f64 = 4.0;
/// Minimum of the residuals' standard deviation, in busy servers. Monitoring tools round utilizations, so the measured
/// standard deviation may be too small.
const MIN_SCATTER: f64 = 0.005;
/// Maximum share of the time steps that may be excluded as outliers.
const MAX_OUTLIERS: f64 = 0.4;
/// Minimum number of outliers from which a period is computed.
const MIN_PERIODIC: usize = 3;

/// A time step whose utilization is far above a fit to the other time steps, such as during a cron job.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OutlyingStep {
    /// Start of the time step: seconds since 1970-01-01 00:00 UTC.
    pub from_s: i64,
    /// Duration of the time step, in seconds.
    pub seconds: f64,
    /// Mean number of servers that were busy in addition to the prediction of the fit.
    pub unexplained_busy: f64,
}

/// Returns the indices of the time steps that are not outliers, and the outliers.
pub(super) fn without_outliers(
    classes: usize,
    steps: &[SiteStep],
    options: &SiteOptions,
) -> (Vec<usize>, Vec<OutlyingStep>) {
    let mut kept: Vec<usize> = (0..steps.len()).collect();
    let mut outliers: Vec<OutlyingStep> = Vec::new();
    let fit = |kept: &[usize]| {
        let kept: Vec<&SiteStep> = kept.iter().map(|index| &steps[*index]).collect();
        regress(classes, &kept, options)
    };
    // Exclude outliers one by one, because the fit to the other time steps becomes more accurate each time.
    while let Ok(fit) = fit(&kept) {
        let Some((position, unexplained_busy)) = furthest(&fit, steps, &kept) else { break };
        if (outliers.len() + 1) as f64 > MAX_OUTLIERS * steps.len() as f64 {
            break;
        }
        let step = &steps[kept[position]];
        outliers.push(OutlyingStep { from_s: step.from_s, seconds: step.seconds, unexplained_busy });
        kept.remove(position);
    }
    outliers.sort_by_key(|step| step.from_s);
    (kept, outliers)
}

/// The outlier with the largest residual: its index in `kept`, and the residual in busy servers. `None` if there is no
/// outlier.
fn furthest(fit: &DemandFit, steps: &[SiteStep], kept: &[usize]) -> Option<(usize, f64)> {
    let unexplained_busy = |index: &usize| {
        let step = &steps[*index];
        let law: f64 = fit.demands.iter().zip(&step.requests).map(|(demand, n)| demand.value * n / step.seconds).sum();
        step.busy - law - fit.background.value
    };
    let distances: Vec<f64> = kept.iter().map(unexplained_busy).collect();
    // Compare each residual with the median residual, because many outliers shift the fit for all time steps. The
    // median absolute deviation × 1.4826 estimates the standard deviation and is robust against outliers.
    let usual = median(distances.iter().copied())?;
    let scatter = (1.4826 * median(distances.iter().map(|x| (x - usual).abs()))?).max(MIN_SCATTER);
    let (position, most) = distances.iter().map(|x| x - usual).enumerate().max_by(|a, b| a.1.total_cmp(&b.1))?;
    (most > OUTLIER_DISTANCE * scatter).then_some((position, most))
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// The period of the outliers in seconds: the median time between consecutive outliers. `None` unless at least three
/// quarters of these times are multiples of the median.
pub(super) fn period(outliers: &[OutlyingStep]) -> Option<i64> {
    if outliers.len() < MIN_PERIODIC {
        return None;
    }
    let gaps: Vec<i64> = outliers.windows(2).map(|pair| pair[1].from_s - pair[0].from_s).collect();
    let fits = |period: &i64| gaps.iter().filter(|gap| **gap % period == 0).count() * 4 >= gaps.len() * 3;
    let mut sorted = gaps.clone();
    sorted.sort_unstable();
    // The median is robust against a few additional outliers between the periodic ones.
    let usual = sorted[sorted.len() / 2];
    Some(usual).filter(|period| *period > 0 && fits(period))
}
