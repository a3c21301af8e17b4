//! Computes demands from the data of a site by a given rule.

use super::line::{Line, intercept};
use super::regression::regress;
use super::{SiteOptions, SiteRule, SiteStep};
use crate::EstimateError;
use crate::demand::attribute_by_share;
use brimful_model::Estimate;

/// The demands by a rule, and the background work that was subtracted.
pub(super) struct Attributed {
    /// Demand of each class in seconds.
    pub demands: Vec<f64>,
    /// Mean number of servers that background work keeps busy.
    pub background: f64,
}

/// Divides the busy time of the time steps among the request classes by a rule other than [`SiteRule::Automatic`].
pub(super) fn attribute(
    rule: SiteRule,
    classes: usize,
    steps: &[&SiteStep],
    options: &SiteOptions,
) -> Result<Attributed, EstimateError> {
    let totals = Totals::new(classes, steps);
    match rule {
        SiteRule::Regression => {
            let fit = regress(classes, steps, options)?;
            let demands = fit.demands.iter().map(|demand| demand.value).collect();
            Ok(Attributed { demands, background: fit.background.value })
        }
        SiteRule::Line => {
            let line = Line::fit(steps, options)?;
            Ok(Attributed { demands: values(&line_demands(&line, &totals, options)), background: line.background() })
        }
        _ => {
            let background = regress(classes, steps, options).map_or(0.0, |fit| fit.background.value);
            let busy_s = (totals.busy_s - background * totals.seconds).max(0.0);
            let mut known: Vec<Option<f64>> =
                (0..classes).map(|class| options.known(class).map(|demand| demand.value)).collect();
            if let (SiteRule::Size, Some(empty)) = (rule, options.empty_class)
                && known[empty].is_none()
            {
                let intercept = intercept(steps, options).ok_or(EstimateError::NoIntercept)?;
                known[empty] = Some(intercept.value);
            }
            let known_s: f64 =
                known.iter().zip(&totals.requests).map(|(demand, requests)| demand.unwrap_or(0.0) * requests).sum();
            if known_s > busy_s {
                return Err(EstimateError::KnownExceedBusy { known_s, busy_s });
            }
            let shares = totals.shares(rule, &known);
            Ok(Attributed { demands: attribute_by_share(busy_s, &totals.requests, &shares, &known)?, background })
        }
    }
}

/// The demand of each class: its known demand, or else the value of the fitted line at its mean response size.
pub(super) fn line_demands(line: &Line, totals: &Totals, options: &SiteOptions) -> Vec<Estimate> {
    let demand = |class: usize| {
        let mean_bytes = totals.bytes[class] / totals.requests[class].max(1.0);
        options.known(class).unwrap_or_else(|| line.demand(mean_bytes))
    };
    (0..totals.requests.len()).map(demand).collect()
}

fn values(estimates: &[Estimate]) -> Vec<f64> {
    estimates.iter().map(|estimate| estimate.value).collect()
}

/// Sums over several time steps of the data.
pub(super) struct Totals {
    /// Total duration of the time steps, in seconds.
    pub seconds: f64,
    /// Busy time of the resource, in seconds, summed over its servers.
    pub busy_s: f64,
    /// Number of requests of each class.
    pub requests: Vec<f64>,
    /// Number of bytes sent for each class.
    pub bytes: Vec<f64>,
}

impl Totals {
    /// Computes the sums over these time steps.
    pub fn new(classes: usize, steps: &[&SiteStep]) -> Totals {
        let by_class = |figure: fn(&SiteStep) -> &[f64]| {
            (0..classes).map(|class| steps.iter().map(|step| figure(step)[class]).sum()).collect()
        };
        Totals {
            seconds: steps.iter().map(|step| step.seconds).sum(),
            busy_s: steps.iter().map(|step| step.busy * step.seconds).sum(),
            requests: by_class(|step| &step.requests),
            bytes: by_class(|step| &step.bytes),
        }
    }

    /// The share of each class in the busy time that remains after the known demands are subtracted. A class with a
    /// known demand has the share 0.
    fn shares(&self, rule: SiteRule, known: &[Option<f64>]) -> Vec<f64> {
        let weight = |class: usize| match rule {
            _ if known[class].is_some() => 0.0,
            SiteRule::Class(only) => f64::from(u8::from(class == only)),
            SiteRule::Requests => self.requests[class],
            _ => self.bytes[class],
        };
        let weights: Vec<f64> = (0..known.len()).map(weight).collect();
        let all: f64 = weights.iter().sum();
        weights.iter().map(|weight| if all > 0.0 { weight / all } else { 0.0 }).collect()
    }
}
