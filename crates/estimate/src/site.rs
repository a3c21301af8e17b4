//! Demands from the data of a running site, in time steps. The access log has the requests of each class, and `sar`,
//! `iostat` or `vmstat` has the utilization of each resource (Menascé et al., CMG 1999).
//!
//! Two methods are compared. *Regression* uses each step: busy = background + Σ X_r·D_r. *Attribution* divides the busy
//! time of all steps together: in proportion to the bytes sent (Eq. 2 of the paper), or equally among requests (Eq. 4).
//! The paper had a single step, so it used only attribution.
//!
//! Work that is not in the log uses resources too. In the paper, a job ran every hour and used 37 % of the CPU. A step
//! is an outlier if its utilization is far above the prediction of a fit to the other steps. Outliers are excluded and
//! listed, and the module checks whether they recur with a period.

use crate::EstimateError;
use crate::demand::{Background, DemandFit, Observation, attribute_by_share, attribute_equally, fit_demands};

/// A step is an outlier if its distance above the fit to the other steps exceeds this multiple of their scatter.
const OUTLIER_DISTANCE: f64 = 4.0;
/// Lower bound of the scatter, in busy servers. Tools print rounded figures, so the scatter may seem smaller.
const MIN_SCATTER: f64 = 0.005;
/// Largest share of the steps that may be excluded as outliers.
const MAX_OUTLIERS: f64 = 0.4;
/// Minimum number of outliers in which a period is searched.
const MIN_PERIODIC: usize = 3;

/// The requests and the busy time of one time step.
#[derive(Clone, Debug, PartialEq)]
pub struct SiteStep {
    /// Start of the step, in seconds since 1970.
    pub from_s: i64,
    /// Length of the step in seconds.
    pub seconds: f64,
    /// Number of requests of each class that were completed in the step.
    pub requests: Vec<f64>,
    /// Number of bytes that were sent for each class in the step.
    pub bytes: Vec<f64>,
    /// Mean number of busy servers of the resource: utilization × servers.
    pub busy: f64,
}

/// The demands at one resource.
#[derive(Clone, Debug, PartialEq)]
pub struct SiteDemands {
    /// The demands by regression over the steps that are not outliers, or the reason why regression is impossible.
    pub regression: Result<DemandFit, EstimateError>,
    /// Demand of each class in seconds, by attribution in proportion to the bytes sent (Eq. 2). The background is first
    /// subtracted from the busy time.
    pub by_bytes: Vec<f64>,
    /// Demand of each class in seconds, by attribution in equal parts to all requests (Eq. 4). The background is first
    /// subtracted from the busy time.
    pub by_requests: Vec<f64>,
    /// Number of servers that are busy without any requests.
    pub background: f64,
    /// Steps with work that is not in the log.
    pub outliers: Vec<OutlyingStep>,
    /// Period of the outliers in seconds; `None` if they have no period.
    pub period_s: Option<i64>,
}

/// A step whose utilization is far above the prediction of a fit to the other steps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OutlyingStep {
    /// Start of the step, in seconds since 1970.
    pub from_s: i64,
    /// Number of busy servers that the step's requests do not explain.
    pub unexplained_busy: f64,
}

/// Fits the demands of `classes` classes at one resource. Outliers are excluded.
///
/// # Errors
/// When no step has requests, or a number is invalid.
pub fn site_demands(classes: usize, steps: &[SiteStep]) -> Result<SiteDemands, EstimateError> {
    let mut kept: Vec<usize> = (0..steps.len()).collect();
    let mut outliers: Vec<OutlyingStep> = Vec::new();
    // Each excluded outlier makes the fit to the other steps more accurate, so outliers are excluded one by one.
    while let Ok(fit) = fit(classes, steps, &kept) {
        let Some((position, unexplained_busy)) = furthest(&fit, steps, &kept) else { break };
        if (outliers.len() + 1) as f64 > MAX_OUTLIERS * steps.len() as f64 {
            break;
        }
        outliers.push(OutlyingStep { from_s: steps[kept[position]].from_s, unexplained_busy });
        kept.remove(position);
    }
    outliers.sort_by_key(|step| step.from_s);
    let regression = fit(classes, steps, &kept);
    let background = regression.as_ref().map_or(0.0, |fit| fit.background.value);
    let seconds: f64 = kept.iter().map(|index| steps[*index].seconds).sum();
    let busy: f64 = kept.iter().map(|index| steps[*index].busy * steps[*index].seconds).sum();
    let busy_with_requests = (busy - background * seconds).max(0.0);
    let sum = |figure: &dyn Fn(&SiteStep) -> &Vec<f64>| -> Vec<f64> {
        (0..classes)
            .map(|class| kept.iter().map(|index| figure(&steps[*index]).get(class).copied().unwrap_or(0.0)).sum())
            .collect()
    };
    let (requests, bytes) = (sum(&|step| &step.requests), sum(&|step| &step.bytes));
    let all_bytes: f64 = bytes.iter().sum();
    let shares: Vec<f64> = bytes.iter().map(|own| if all_bytes > 0.0 { own / all_bytes } else { 0.0 }).collect();
    Ok(SiteDemands {
        by_bytes: attribute_by_share(busy_with_requests, &requests, &shares, &vec![None; classes])?,
        by_requests: attribute_equally(busy_with_requests, &requests)?,
        regression,
        background,
        period_s: period(&outliers),
        outliers,
    })
}

fn fit(classes: usize, steps: &[SiteStep], kept: &[usize]) -> Result<DemandFit, EstimateError> {
    let observe = |index: &usize| {
        let step = &steps[*index];
        let rates = step.requests.iter().map(|requests| requests / step.seconds).collect();
        // All steps of the same length have the same variance, because rounding and other work do not depend on the
        // load.
        Observation { throughput: rates, busy: step.busy, weight: step.seconds }
    };
    let observations: Vec<Observation> = kept.iter().map(observe).collect();
    fit_demands(classes, &observations, Background::Fitted)
}

/// The outlier that is farthest above the fit: its index among the kept steps, and its distance in busy servers. `None`
/// if there is no outlier.
fn furthest(fit: &DemandFit, steps: &[SiteStep], kept: &[usize]) -> Option<(usize, f64)> {
    let unexplained_busy = |index: &usize| {
        let step = &steps[*index];
        let law: f64 = fit.demands.iter().zip(&step.requests).map(|(demand, n)| demand.value * n / step.seconds).sum();
        step.busy - law - fit.background.value
    };
    let distances: Vec<f64> = kept.iter().map(unexplained_busy).collect();
    // Many outliers raise the fit for all steps, so distances are measured from their median. Medians are robust
    // against outliers: 1.4826 times the median absolute deviation estimates the standard deviation.
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

/// The median gap between outliers in seconds, if it divides at least three quarters of all gaps.
fn period(outliers: &[OutlyingStep]) -> Option<i64> {
    if outliers.len() < MIN_PERIODIC {
        return None;
    }
    let gaps: Vec<i64> = outliers.windows(2).map(|pair| pair[1].from_s - pair[0].from_s).collect();
    let fits = |period: &i64| gaps.iter().filter(|gap| **gap % period == 0).count() * 4 >= gaps.len() * 3;
    let mut sorted = gaps.clone();
    sorted.sort_unstable();
    // Occasional outliers shorten a few gaps, but do not change the median gap.
    let usual = sorted[sorted.len() / 2];
    Some(usual).filter(|period| *period > 0 && fits(period))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps of a quarter of an hour. There are two classes whose proportion changes, 0.05 servers of background, and
    /// an occasional job.
    fn steps(job: impl Fn(i64) -> f64) -> Vec<SiteStep> {
        let step = |index: i64| {
            let (a, b) = (900.0 * (5.0 + (index % 7) as f64), 900.0 * (1.0 + (index % 3) as f64));
            let noise = 0.001 * ((index * 7919 % 13) as f64 - 6.0);
            SiteStep {
                from_s: 1_700_000_000 / 3600 * 3600 + 900 * index,
                seconds: 900.0,
                requests: vec![a, b],
                bytes: vec![1000.0 * a, 20_000.0 * b],
                busy: 0.05 + (0.01 * a + 0.08 * b) / 900.0 + noise + job(index),
            }
        };
        (0..96).map(step).collect()
    }

    #[test]
    fn demands_come_from_counts_and_utilizations() {
        let found = site_demands(2, &steps(|_| 0.0)).unwrap();
        let fit = found.regression.unwrap();
        assert!((fit.demands[0].value - 0.01).abs() < 5e-4 && (fit.demands[1].value - 0.08).abs() < 2e-3, "{fit:?}");
        assert!((found.background - 0.05).abs() < 0.01 && found.outliers.is_empty());
        // Both rules attribute the whole busy time that is due to requests.
        let handed = |demands: &[f64]| {
            steps(|_| 0.0).iter().map(|s| s.requests.iter().zip(demands).map(|(n, d)| n * d).sum::<f64>()).sum::<f64>()
        };
        let truth = handed(&[0.01, 0.08]);
        for demands in [&found.by_bytes, &found.by_requests] {
            assert!((handed(demands) / truth - 1.0).abs() < 0.03, "{demands:?}");
        }
        assert!(found.by_bytes[1] > found.by_bytes[0] && found.by_requests[0] == found.by_requests[1]);
    }

    #[test]
    fn a_job_that_runs_every_hour_is_found_and_named() {
        let found = site_demands(2, &steps(|index| if index % 4 == 2 { 0.37 } else { 0.0 })).unwrap();
        assert_eq!((found.outliers.len(), found.period_s), (24, Some(3600)));
        assert!(found.outliers.iter().all(|step| (step.unexplained_busy - 0.37).abs() < 0.05), "{:?}", found.outliers);
        let fit = found.regression.unwrap();
        assert!((fit.demands[0].value - 0.01).abs() < 1e-3 && (fit.background.value - 0.05).abs() < 0.01, "{fit:?}");
    }

    #[test]
    fn what_cannot_be_regressed_is_still_attributed() {
        let one = &steps(|_| 0.0)[..1];
        let found = site_demands(2, one).unwrap();
        assert!(found.regression.is_err() && found.by_bytes.iter().all(|demand| *demand > 0.0));
        assert!(site_demands(2, &[]).is_err());
    }
}
