//! Demands from what operators have: how many requests of each class came in each step of time, as the access log says,
//! and how busy each resource was meanwhile, as `sar`, `iostat` or `vmstat` say. Menascé et al. (CMG 1999) end to end.
//!
//! Two ways stand side by side. *Regression*: over all steps, busy = background + Σ X_r·D_r. *Attribution*, their Eq. 2
//! and 4, of the busy time of all steps together: by the bytes sent, and alike for each request. The paper had only the
//! second, as it had a single step.
//!
//! What the log knows nothing of uses resources as well; theirs was a job that ran every hour and took 37 % of the CPU.
//! Steps that are far above the law of the others are left out, named, and looked at for a period.

use crate::EstimateError;
use crate::demand::{Background, DemandFit, Observation, attribute_by_share, attribute_equally, fit_demands};

/// A step this many times the scatter of the others above their law is not made by requests alone.
const OUTLYING: f64 = 4.0;
/// No scatter is taken to be smaller than this share of a server: what tools print is rounded.
const ROUNDED: f64 = 0.005;
/// From this share of the steps on, what is outlying is the rule.
const MOST_OUTLYING: f64 = 0.4;
/// Outlying steps, at least, that make a period.
const PERIODIC: usize = 3;

/// One step of time.
#[derive(Clone, Debug, PartialEq)]
pub struct SiteStep {
    /// When it begins, in seconds since 1970.
    pub from_s: i64,
    /// How long it is.
    pub seconds: f64,
    /// Completed requests, by class.
    pub requests: Vec<f64>,
    /// Bytes sent, by class.
    pub bytes: Vec<f64>,
    /// Busy servers of the resource: utilization × servers.
    pub busy: f64,
}

/// What was found of one resource.
#[derive(Clone, Debug, PartialEq)]
pub struct SiteDemands {
    /// By regression over the steps that the log explains; `None` with the reason where that is not possible.
    pub regression: Result<DemandFit, EstimateError>,
    /// In seconds by class: the busy time without the background, in proportion to the bytes sent (Eq. 2).
    pub by_bytes: Vec<f64>,
    /// The same, every request alike (Eq. 4).
    pub by_requests: Vec<f64>,
    /// Busy servers that no request explains, in all steps that count.
    pub background: f64,
    /// Steps with work that the log knows nothing of.
    pub outliers: Vec<Outlying>,
    /// The period of these, in seconds, if they have one.
    pub period_s: Option<i64>,
}

/// A step that the law of the others does not explain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outlying {
    /// When it begins, in seconds since 1970.
    pub from_s: i64,
    /// Busy servers beyond what its requests explain.
    pub beyond: f64,
}

/// Fits the demands of `classes` classes at one resource.
///
/// # Errors
/// [`EstimateError`] where there is no step with requests, or a number makes no sense.
pub fn site_demands(classes: usize, steps: &[SiteStep]) -> Result<SiteDemands, EstimateError> {
    let mut kept: Vec<usize> = (0..steps.len()).collect();
    let mut outliers: Vec<Outlying> = Vec::new();
    // Each step that goes out makes the law of the others clearer.
    while let Ok(fit) = fit(classes, steps, &kept) {
        let Some((position, beyond)) = furthest(&fit, steps, &kept) else { break };
        if (outliers.len() + 1) as f64 > MOST_OUTLYING * steps.len() as f64 {
            break;
        }
        outliers.push(Outlying { from_s: steps[kept[position]].from_s, beyond });
        kept.remove(position);
    }
    outliers.sort_by_key(|step| step.from_s);
    let regression = fit(classes, steps, &kept);
    let background = regression.as_ref().map_or(0.0, |fit| fit.background.value);
    let seconds: f64 = kept.iter().map(|index| steps[*index].seconds).sum();
    let busy: f64 = kept.iter().map(|index| steps[*index].busy * steps[*index].seconds).sum();
    let of_requests = (busy - background * seconds).max(0.0);
    let sum = |of: &dyn Fn(&SiteStep) -> &Vec<f64>| -> Vec<f64> {
        (0..classes)
            .map(|class| kept.iter().map(|index| of(&steps[*index]).get(class).copied().unwrap_or(0.0)).sum())
            .collect()
    };
    let (requests, bytes) = (sum(&|step| &step.requests), sum(&|step| &step.bytes));
    let all_bytes: f64 = bytes.iter().sum();
    let shares: Vec<f64> = bytes.iter().map(|own| if all_bytes > 0.0 { own / all_bytes } else { 0.0 }).collect();
    Ok(SiteDemands {
        by_bytes: attribute_by_share(of_requests, &requests, &shares, &vec![None; classes])?,
        by_requests: attribute_equally(of_requests, &requests)?,
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
        // All steps scatter alike: what they are rounded to, and what else runs, does not grow with the load.
        Observation { throughput: rates, busy: step.busy, weight: step.seconds }
    };
    let observations: Vec<Observation> = kept.iter().map(observe).collect();
    fit_demands(classes, &observations, Background::Fitted)
}

/// The step that is furthest above the law, if it is beyond the scatter of the others: its place among those kept, and
/// by how much.
fn furthest(fit: &DemandFit, steps: &[SiteStep], kept: &[usize]) -> Option<(usize, f64)> {
    let beyond = |index: &usize| {
        let step = &steps[*index];
        let law: f64 = fit.demands.iter().zip(&step.requests).map(|(demand, n)| demand.value * n / step.seconds).sum();
        step.busy - law - fit.background.value
    };
    let off: Vec<f64> = kept.iter().map(beyond).collect();
    // What many outliers do to the law is to lift it, for all steps alike: distances are from the usual one. By
    // medians, which outliers do not move; 1.4826 times that of the distances is a standard deviation.
    let usual = median(off.iter().copied())?;
    let scatter = (1.4826 * median(off.iter().map(|x| (x - usual).abs()))?).max(ROUNDED);
    let (position, most) = off.iter().map(|x| x - usual).enumerate().max_by(|a, b| a.1.total_cmp(&b.1))?;
    (most > OUTLYING * scatter).then_some((position, most))
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// The distance that most of them lie at whole multiples of, if there is one.
fn period(outliers: &[Outlying]) -> Option<i64> {
    if outliers.len() < PERIODIC {
        return None;
    }
    let gaps: Vec<i64> = outliers.windows(2).map(|pair| pair[1].from_s - pair[0].from_s).collect();
    let fits = |period: &i64| gaps.iter().filter(|gap| **gap % period == 0).count() * 4 >= gaps.len() * 3;
    let mut sorted = gaps.clone();
    sorted.sort_unstable();
    // One that is met by chance is shorter than the usual gap.
    let usual = sorted[sorted.len() / 2];
    Some(usual).filter(|period| *period > 0 && fits(period))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Quarters of an hour: two classes whose proportion changes, 0.05 servers of background, and now and then a job.
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
        // Either rule hands out all the busy time that requests have.
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
        assert!(found.outliers.iter().all(|step| (step.beyond - 0.37).abs() < 0.05), "{:?}", found.outliers);
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
