//! Tests whether the demand of a request depends on the load, and how.
//!
//! The utilization law with constant demands, busy = b₀ + Σ X_r·D_r, is tested against the same law with one more term.
//! b₀ is the number of servers that background work keeps busy, X_r the throughput of class r, and D_r its demand. The
//! weight w of the additional term is fitted.
//!
//! | shape | term | meaning |
//! |---|---|---|
//! | [`LoadShape::PerSecond`] | w | a constant cost per second as soon as there is load, such as timers |
//! | [`LoadShape::Idle`] of 2 | w·X·I² | a request that finds the server idle costs more |
//! | [`LoadShape::Busy`] | w·X·(1 − I) | contention between requests |
//!
//! I is the share of time in which a server is idle, and X the total throughput. A Model has the demands at saturation,
//! and represents the second and third shape by its `IdleCost`. With probability I, a request arrives while its server
//! is idle and must wake it. The square is empirical: on nginx and on brimful's reference server, I² predicts the cost
//! of a request at saturation from measurements at up to 60 % load, and I does not. A survey (an automatic measurement
//! at several loads) can distinguish other powers of I (see `server::law`).
//!
//! The term is tested by the F test of nested models (Seber & Lee, *Linear Regression Analysis*, 2003, §4.3), with
//! Bonferroni's correction for the number of shapes. The shape with the smallest residuals is chosen. The terms are
//! parametric, because the demand at saturation is extrapolated: an isotonic or segmented curve can only repeat the
//! demand at the highest measured load. Example: an nginx worker saturated at 60,000 requests per second, and was
//! measured at four loads up to a third of this rate. The predicted saturation rate is 19 % too low with constant
//! demands, 12 % too low with a step function, and 4 % too low with the first term.

use super::collinear::COLLINEAR;
use super::fit::DemandFit;
use super::law::UtilizationLaw;
use super::observation::{Background, Observation, check, counted};
use super::term::{LoadShape, LoadTerm, StationServers};
use crate::EstimateError;
use crate::least_squares::SIGNIFICANCE;
use brimful_core::JsonSchema;
use brimful_model::Estimate;
use serde::Serialize;
use statrs::distribution::{ContinuousCDF, FisherSnedecor};

/// Residuals below this share of the number of busy servers are considered rounding errors.
const ROUNDING: f64 = 1e-9;
/// The shape for the cost of waking an idle server: the square of the idle share.
const WAKING: LoadShape = LoadShape::Idle(2);

/// Demands that depend on the load: the utilization law that was fitted with a load-dependent term.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LoadDependence {
    /// The shape of the dependence. `per_second`: a constant number of servers is busy as soon as there are requests.
    /// `idle^2`: the additional cost of a request is proportional to the square of the servers' idle share. `busy`: the
    /// additional cost of a request is proportional to the servers' utilization.
    #[schemars(with = "String")]
    pub shape: LoadShape,
    /// The fitted weight of the load-dependent term, in busy servers for `per_second` and in seconds per request
    /// otherwise.
    pub weight: Estimate,
    /// The F statistic of the test of the load-dependent demands against constant demands.
    pub f: f64,
    /// The p-value of the F test: the probability of at least this F statistic if demands are constant, multiplied by
    /// the number of shapes tried (Bonferroni's correction).
    pub p: f64,
    /// Demand of each class without the load-dependent term, in seconds.
    pub demands: Vec<Estimate>,
    #[serde(skip)]
    fit: DemandFit,
    #[serde(skip)]
    term: LoadTerm,
    #[serde(skip)]
    lowest_rate: f64,
    #[serde(skip)]
    rivals: Vec<LoadDependence>,
}

/// Tests whether demands depend on the load, at a station with this number of servers. Returns `None` if constant
/// demands fit about as well, or if there are too few observations: at least two more than classes are needed.
///
/// `background` is as in [`fit_demands`](super::fit_demands). With a fitted background, [`LoadShape::PerSecond`] is not
/// tried, because both would describe the same constant number of busy servers.
pub fn fit_load_dependence(
    classes: usize,
    observations: &[Observation],
    background: Background,
    servers: u32,
) -> Result<Option<LoadDependence>, EstimateError> {
    check(classes, observations, background)?;
    let counted = counted(observations);
    let law = UtilizationLaw::with_unknown_per_class(classes, &counted, background)?;
    let constant = law.fit(&counted)?;
    Ok(detect_load_dependence(&law, &constant, &counted, StationServers::new(servers, 0.0)))
}

/// Tests whether demands depend on the load. `constant` is the fit of `law` with constant demands; `counted` has the
/// observations of positive weight. Returns `None` if constant demands fit about as well.
pub(crate) fn detect_load_dependence(
    law: &UtilizationLaw,
    constant: &DemandFit,
    counted: &[&Observation],
    servers: StationServers,
) -> Option<LoadDependence> {
    let unexplained = residual_sum(constant)?;
    let busy = counted.iter().map(|o| o.busy).fold(0.0, f64::max);
    if unexplained.sqrt() <= ROUNDING * busy {
        return None;
    }
    let shapes: &[LoadShape] = match law.background {
        Background::Known(_) => &[LoadShape::PerSecond, WAKING, LoadShape::Busy],
        Background::Fitted => &[WAKING, LoadShape::Busy],
    };
    let rates = counted.iter().map(|o| o.throughput.iter().sum::<f64>()).filter(|x| *x > 0.0);
    let lowest_rate = rates.fold(f64::INFINITY, f64::min);
    let tried = shapes.iter().filter_map(|shape| {
        let term = LoadTerm { shape: *shape, servers };
        let (fit, weight) = with_term(law, term, counted)?;
        let left = residual_sum(&fit)?.max((ROUNDING * busy).powi(2));
        let freedom = fit.degrees_of_freedom as f64;
        let f = (unexplained - left) * freedom / left;
        let tail = FisherSnedecor::new(1.0, freedom).map_or(1.0, |d| d.sf(f.max(0.0)));
        let p = (tail * shapes.len() as f64).min(1.0);
        let demands = fit.demands.clone();
        let rivals = Vec::new();
        Some((left, LoadDependence { shape: *shape, weight, f, p, demands, fit, term, lowest_rate, rivals }))
    });
    let mut tried: Vec<(f64, LoadDependence)> = tried.collect();
    tried.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut tried = tried.into_iter();
    let (left, best) = tried.next().filter(|(_, best)| best.p < SIGNIFICANCE)?;
    let freedom = best.fit.degrees_of_freedom as f64;
    let as_good = left * FisherSnedecor::new(freedom, freedom).map_or(1.0, |d| d.inverse_cdf(1.0 - SIGNIFICANCE));
    Some(LoadDependence {
        rivals: tried.filter(|(left, _)| *left <= as_good).map(|(_, rival)| rival).collect(),
        ..best
    })
}

/// Fits the utilization law with this load-dependent term. Returns the fit and the weight of the term. `None` if the
/// weight is not positive, or if the observations cannot distinguish the term from the demands.
pub(crate) fn with_term(
    law: &UtilizationLaw,
    term: LoadTerm,
    counted: &[&Observation],
) -> Option<(DemandFit, Estimate)> {
    let fit = UtilizationLaw { term: Some(term), ..law.clone() }.fit(counted).ok()?;
    let weight = fit.term.filter(|w| w.value > 0.0 && fit.condition_number <= COLLINEAR)?;
    Some((fit, weight))
}

fn residual_sum(fit: &DemandFit) -> Option<f64> {
    Some(fit.residual_stddev?.powi(2) * fit.degrees_of_freedom as f64)
}

impl LoadDependence {
    /// Demand of an average request at `rate` requests per second, in seconds. `mix` has the share of each class; the
    /// shares need not sum to 1. The demand is constant below the lowest measured rate and above saturation.
    pub fn demand(&self, rate: f64, mix: &[f64]) -> f64 {
        let base = self.base(mix);
        let rate = rate.min(self.saturation(mix)).max(self.lowest_rate);
        (self.busy(rate, base) - self.fit.background.value) / rate
    }

    /// Saturation rate of this mix of classes: requests per second at which all servers are always busy.
    pub fn saturation(&self, mix: &[f64]) -> f64 {
        self.saturation_beside(0.0, mix)
    }

    /// The saturation rates that the other shapes predict, if they fit about as well as the chosen shape (F test of the
    /// residuals). The observations do not show which shape is right at higher loads. `others` is the number of servers
    /// that are busy with other work.
    pub(crate) fn rival_saturations(&self, others: f64, mix: &[f64]) -> impl Iterator<Item = f64> {
        self.rivals.iter().map(move |rival| rival.saturation_beside(others, mix))
    }

    fn saturation_beside(&self, others: f64, mix: &[f64]) -> f64 {
        let (per_request, fixed) = self.shape.at_saturation();
        let weight = self.weight.value;
        let free = self.term.servers.count - others - self.fit.background.value - fixed * weight;
        free.max(0.0) / (self.base(mix) + per_request * weight)
    }

    /// The lowest measured rate, in requests per second of all classes.
    pub fn lowest_rate(&self) -> f64 {
        self.lowest_rate
    }

    /// The fit of the utilization law with the load-dependent term.
    pub(crate) fn fit(&self) -> &DemandFit {
        &self.fit
    }

    /// Demand of an average request of the mix without the load-dependent term, in seconds.
    fn base(&self, mix: &[f64]) -> f64 {
        let total: f64 = mix.iter().sum();
        mix.iter().zip(&self.demands).map(|(share, demand)| share * demand.value).sum::<f64>() / total
    }

    /// Number of busy servers at this request rate. It is computed by bisection, because the demand itself depends on
    /// the number of busy servers.
    fn busy(&self, rate: f64, base: f64) -> f64 {
        let needed = |busy: f64| self.fit.background.value + rate * base + self.weight.value * self.term.at(rate, busy);
        let (mut low, mut high) = (0.0, self.term.servers.count);
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if middle < needed(middle) { low = middle } else { high = middle }
        }
        high
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demand::fit_demands;

    /// Measurements of one nginx worker: requests per second, and CPU µs per request. Responses had 1294 bytes, on
    /// keep-alive connections. The worker saturated at about 60,000 requests per second.
    const NGINX: [(f64, f64); 8] =
        [(2e3, 37.6), (5e3, 25.3), (10e3, 20.0), (20e3, 19.0), (30e3, 17.6), (40e3, 19.0), (50e3, 18.2), (55e3, 16.8)];

    /// An observation whose weight is the inverse of the variance of `busy`. The variance grows with the load.
    fn observe(rate: f64, busy: f64) -> Observation {
        Observation { throughput: vec![rate], busy, weight: 1.0 / busy }
    }

    fn nginx(levels: usize) -> Vec<Observation> {
        NGINX[..levels].iter().map(|(rate, us)| observe(*rate, rate * us * 1e-6)).collect()
    }

    #[test]
    fn the_cost_of_an_idle_nginx_predicts_its_saturation() {
        for (levels, within) in [(4, 0.05), (5, 0.05), (8, 0.06)] {
            let fit = fit_load_dependence(1, &nginx(levels), Background::Known(0.0), 1).unwrap().unwrap();
            assert_eq!(fit.shape, LoadShape::PerSecond);
            assert!((fit.saturation(&[1.0]) / 60e3 - 1.0).abs() < within, "{fit:?}");
            let constant = fit_demands(1, &nginx(levels), Background::Known(0.0)).unwrap();
            assert!(1.0 / constant.demands[0].value < fit.saturation(&[1.0]), "constant demands predict less");
            for (rate, us) in NGINX {
                let d = fit.demand(rate, &[1.0]) * 1e6;
                assert!((d - us).abs() < 1.6, "D({rate}) = {d:.1}, measured {us}");
            }
        }
    }

    #[test]
    fn each_shape_is_distinguished_and_recovered() {
        let (d, w) = (100e-6, 60e-6);
        for (shape, rate_at) in [
            (LoadShape::Idle(2), (|u: f64| u / (100e-6 + 60e-6 * (1.0 - u).powi(2))) as fn(f64) -> f64),
            (LoadShape::Busy, |u| u / (100e-6 + 60e-6 * u)),
            (LoadShape::PerSecond, |u| (u - 60e-6) / 100e-6),
        ] {
            let levels: Vec<Observation> =
                (1..8).map(|k| observe(rate_at(0.1 * f64::from(k)), 0.1 * f64::from(k))).collect();
            let fit = fit_load_dependence(1, &levels, Background::Known(0.0), 1).unwrap();
            let fit = fit.unwrap_or_else(|| panic!("{shape:?} is not found"));
            assert_eq!(fit.shape, shape);
            assert!(
                (fit.demands[0].value / d - 1.0).abs() < 1e-6 && (fit.weight.value / w - 1.0).abs() < 1e-5,
                "{fit:?}"
            );
            assert!((fit.saturation(&[2.0]) / rate_at(1.0) - 1.0).abs() < 1e-6, "{fit:?}");
            let half = rate_at(0.5);
            assert!((fit.demand(half, &[1.0]) - 0.5 / half).abs() < 1e-11);
            assert_eq!(fit.demand(1e9, &[1.0]), fit.demand(fit.saturation(&[1.0]), &[1.0]));
        }
    }

    #[test]
    fn constant_demands_are_left_alone() {
        let levels: Vec<Observation> = (1..8).map(|k| observe(f64::from(k) * 100.0, f64::from(k) * 0.1)).collect();
        assert_eq!(fit_load_dependence(1, &levels, Background::Known(0.0), 1), Ok(None));
        let noise = [0.004, -0.005, 0.002, 0.006, -0.006, -0.001, 0.003];
        let noisy: Vec<Observation> =
            levels.into_iter().zip(noise).map(|(o, e)| Observation { busy: o.busy + e, weight: 1.0, ..o }).collect();
        assert_eq!(fit_load_dependence(1, &noisy, Background::Known(0.0), 1), Ok(None));
        assert_eq!(fit_load_dependence(1, &noisy[..2], Background::Known(0.0), 1), Ok(None), "two levels are too few");
        assert!(fit_load_dependence(1, &[], Background::Known(0.0), 1).is_err());
    }
}
