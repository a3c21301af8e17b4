//! How the CPU cost of a call depends on the load: candidate laws, and the choice between them by cross-validation.
//!
//! At each load, the CPU cost of a call is c = S + W·Iᵖ, where I is the idle share of the CPUs. p = 1 is the model of
//! exceptional first service (Welch 1964): a call that finds the server idle costs S + W, and any other call costs S. A
//! larger p describes a server that becomes slow only after a longer idle time. W < 0 with p = 1 describes contention
//! between calls.
//!
//! [`crate::demand::load`] has the same shapes for another problem. There, the number and the mix of the runs are
//! arbitrary, the background work may be unknown, and an F test decides whether the cost depends on the load at all.
//! Here, one mix is measured at four loads, the background work is known, and S is usually measured too. The cost
//! almost certainly depends on the load. So cross-validation chooses the law that predicts best: each load is left out
//! in turn, and its cost is predicted from the other loads.

use crate::demand::LoadShape;
use crate::least_squares::fit_non_negative;
use brimful_core::model::IdleCost;
use brimful_core::survey::CostFormula;

/// Maximum power p that is tried in the law c = S + W·Iᵖ (c: CPU cost of a call, I: idle share of the CPUs).
const MAX_POWER: u32 = 4;
/// Relative prediction error below which laws are hardly distinguished. It is added in quadrature to each error.
const INDISTINCT: f64 = 0.005;
/// Minimum relative error of a law that is assumed when the law is combined with the measured cost at saturation.
const MIN_LAW_ERROR: f64 = 0.01;
/// Maximum ratio of W to S in the law c = S + W·Iᵖ, where I is the idle share of the CPUs. In measurements of real
/// servers, the cost c of a call at most doubled (W = S).
const MAX_WEIGHT: f64 = 2.0;

/// The measured CPU cost of a call at one load.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallCost {
    /// Idle share of the CPUs, 0 to 1.
    pub idle: f64,
    /// Mean CPU seconds per call.
    pub seconds: f64,
    /// Number of calls over which the cost was averaged.
    pub calls: f64,
}

/// The measured CPU cost of a call at saturation, where the CPUs are never idle.
#[derive(Clone, Copy, Debug)]
pub(super) struct SaturatedCost {
    /// Mean CPU seconds per call.
    pub seconds: f64,
    /// Number of calls over which the cost was averaged.
    pub calls: f64,
    /// Squared relative standard error of the cost; 0 if it is unknown.
    pub variance: f64,
}

/// A fitted law of how the CPU cost of a call depends on the load.
#[derive(Clone, Copy, Debug)]
pub(super) struct FittedLaw {
    /// CPU seconds per call at saturation, where the CPUs are never idle.
    pub demand: f64,
    /// The additional cost of a call if the CPUs are partly idle; `None` if the cost does not depend on the load.
    pub idle_cost: Option<IdleCost>,
}

/// Fits the law with the smallest cross-validation error, and lists all tried laws.
///
/// `measured` is the cost at saturation, if it was measured. The law is chosen with this cost, which is then fitted
/// again together with the law ([`FittedLaw::refined`]). If the cost at saturation was not measured, it is
/// extrapolated, and laws that fit equally well may extrapolate differently. In a bootstrap, `chance` is then a random
/// number from 0 to 1 that selects one of the laws.
pub(super) fn choose(
    costs: &[CallCost],
    measured: Option<SaturatedCost>,
    chance: Option<f64>,
) -> (FittedLaw, Vec<CostFormula>) {
    let saturated = measured.map(|cost| cost.seconds);
    let error = |shape| cross_validation_error(costs, |others| fit(shape, others, saturated));
    let candidates = [None].into_iter().chain(shapes().map(Some));
    let mut tried: Vec<(f64, Option<LoadShape>)> = candidates.map(|shape| (error(shape), shape)).collect();
    // The sort is stable, so of two equally good laws the one with fewer parameters remains first.
    tried.sort_by(|a, b| a.0.total_cmp(&b.0));
    let best_error = tried.first().map_or(0.0, |(error, _)| *error);
    let best = tried.first().and_then(|(_, shape)| *shape);
    let drawn = chance.filter(|_| saturated.is_none()).and_then(|chance| draw(costs, chance));
    let name = |shape: Option<LoadShape>| shape.map_or("constant".to_owned(), |shape| shape.to_string());
    let law = |(error, shape): &(f64, Option<LoadShape>)| CostFormula { name: name(*shape), left_out_error: *error };
    let laws = tried.iter().filter(|(error, _)| error.is_finite()).map(law).collect();
    let fitted = || {
        let fitted = fit(best, costs, saturated);
        measured.map_or(fitted, |measured| fitted.refined(best, costs, measured, best_error))
    };
    (drawn.unwrap_or_else(fitted), laws)
}

fn shapes() -> impl Iterator<Item = LoadShape> {
    [LoadShape::Busy].into_iter().chain((1..=MAX_POWER).map(LoadShape::Idle))
}

/// Draws a law at random. The probability of a law is proportional to e⁻ⁿ, where e is its cross-validation error at n
/// loads (pseudo-Bayesian model averaging: Geisser & Eddy 1979, with normal errors of unknown variance). The constant
/// law is not a candidate, because it is the special case of a weight of 0 in each other law.
fn draw(costs: &[CallCost], chance: f64) -> Option<FittedLaw> {
    let weight = |shape| {
        let error = cross_validation_error(costs, |others| fit_mirrored(shape, others));
        (error.hypot(INDISTINCT).powi(-(costs.len() as i32)), shape)
    };
    let weights: Vec<(f64, LoadShape)> = shapes().map(weight).filter(|(weight, _)| weight.is_normal()).collect();
    let mut remaining = chance * weights.iter().map(|(weight, _)| weight).sum::<f64>();
    let drawn = weights.iter().find(|(weight, _)| {
        remaining -= weight;
        remaining < 0.0
    });
    drawn.map(|(_, shape)| fit_mirrored(*shape, costs))
}

/// Cross-validation error of a law: the root mean square of its relative errors. The cost at each load is predicted by
/// a law that is fitted to all other loads.
fn cross_validation_error(costs: &[CallCost], fit: impl Fn(&[CallCost]) -> FittedLaw) -> f64 {
    let error = |index: usize| {
        let others: Vec<CallCost> =
            costs.iter().enumerate().filter(|(other, _)| *other != index).map(|(_, cost)| *cost).collect();
        fit(&others).cost_at(costs[index].idle) / costs[index].seconds - 1.0
    };
    let squares: f64 = (0..costs.len()).map(|index| error(index).powi(2)).sum();
    (squares / costs.len() as f64).sqrt()
}

/// Fits a law with this shape, or a constant cost if `shape` is `None`. The cost is also constant if the loads do not
/// determine the law. `saturated` is the cost at saturation, if it was measured.
fn fit(shape: Option<LoadShape>, costs: &[CallCost], saturated: Option<f64>) -> FittedLaw {
    let constant_column = saturated.is_none().then(|| column(costs, |_| 1.0));
    let shape_column = shape.map(|shape| column(costs, |idle| shape.beyond_saturation(idle)));
    let columns: Vec<Vec<f64>> = constant_column.into_iter().chain(shape_column).collect();
    match (solve(&columns, costs, saturated.unwrap_or(0.0)), shape) {
        (Some(values), Some(shape)) => {
            let demand = saturated.unwrap_or(values[0]);
            let fitted = FittedLaw::new(shape, demand, values[columns.len() - 1]);
            if saturated.is_none() { fitted.bounded(costs) } else { fitted }
        }
        (Some(values), None) => FittedLaw { demand: values[0], idle_cost: None },
        (None, Some(_)) => fit(None, costs, saturated),
        (None, None) => FittedLaw { demand: saturated.unwrap_or(f64::NAN), idle_cost: None },
    }
}

/// Fits a law with this shape for a bootstrap draw, with an extrapolated cost at saturation. If noise makes the law's
/// weight negative, the sign of the weight is changed. A weight of zero instead would yield the same law in many draws
/// (the bootstrap fails at a bound: Andrews 2000).
fn fit_mirrored(shape: LoadShape, costs: &[CallCost]) -> FittedLaw {
    let fitted = fit(Some(shape), costs, None);
    let falling = [column(costs, |_| 1.0), column(costs, |idle| -shape.beyond_saturation(idle))];
    let held_at_zero = fitted.idle_cost.is_none() && shape != LoadShape::Busy;
    let Some(values) = solve(&falling, costs, 0.0).filter(|_| held_at_zero) else { return fitted };
    let weights = costs.iter().map(|cost| cost.seconds.powi(-2));
    let mean = falling[1].iter().zip(weights.clone()).map(|(x, w)| x * w).sum::<f64>() / weights.sum::<f64>();
    FittedLaw::new(shape, values[0] + 2.0 * values[1] * mean, values[1]).bounded(costs)
}

fn column(costs: &[CallCost], term: impl Fn(f64) -> f64) -> Vec<f64> {
    costs.iter().map(|cost| term(cost.idle)).collect()
}

/// Fits coefficients of the columns to the costs minus `known`, by least squares of the relative errors. `None` if the
/// loads do not determine the coefficients.
fn solve(columns: &[Vec<f64>], costs: &[CallCost], known: f64) -> Option<Vec<f64>> {
    if columns.is_empty() {
        return None;
    }
    let beyond_known: Vec<f64> = costs.iter().map(|cost| cost.seconds - known).collect();
    let weights: Vec<f64> = costs.iter().map(|cost| cost.seconds.powi(-2)).collect();
    fit_non_negative(columns, &beyond_known, &weights).ok().map(|fit| fit.values)
}

impl FittedLaw {
    fn new(shape: LoadShape, demand: f64, weight: f64) -> FittedLaw {
        FittedLaw { demand, idle_cost: shape.idle_cost(weight).filter(|_| weight > 0.0) }
    }

    /// Fits the law again, to the costs at all loads and at saturation. The measured cost at saturation is a mean over
    /// few calls, and the other loads also contain information about it. The variance of each mean is inversely
    /// proportional to its number of calls. In addition, the law itself has the relative error `law_error`, from
    /// cross-validation.
    fn refined(
        self,
        shape: Option<LoadShape>,
        costs: &[CallCost],
        saturated: SaturatedCost,
        law_error: f64,
    ) -> FittedLaw {
        let has_calls = saturated.variance > 0.0 && saturated.calls > 0.0 && costs.iter().all(|cost| cost.calls > 0.0);
        if !has_calls || !law_error.is_finite() {
            return self;
        }
        let per_call = saturated.variance * saturated.calls;
        let law_variance = law_error.max(MIN_LAW_ERROR).powi(2);
        let weight = |cost: &CallCost| 1.0 / (per_call / cost.calls + law_variance) / cost.seconds.powi(2);
        let highest = CallCost { idle: 0.0, seconds: saturated.seconds, calls: saturated.calls };
        let all: Vec<CallCost> = costs.iter().copied().chain([highest]).collect();
        let mut weights: Vec<f64> = costs.iter().map(weight).collect();
        weights.push(1.0 / saturated.variance / saturated.seconds.powi(2));
        let seconds: Vec<f64> = all.iter().map(|cost| cost.seconds).collect();
        let shape = shape.filter(|_| self.idle_cost.is_some());
        let shape_column = shape.map(|shape| column(&all, |idle| shape.beyond_saturation(idle)));
        let columns: Vec<Vec<f64>> = [column(&all, |_| 1.0)].into_iter().chain(shape_column).collect();
        match (fit_non_negative(&columns, &seconds, &weights), shape) {
            (Ok(fit), Some(shape)) => FittedLaw::new(shape, fit.values[0], fit.values[1]),
            (Ok(fit), None) => FittedLaw { demand: fit.values[0], idle_cost: None },
            (Err(_), _) => self,
        }
    }

    /// Limits the weight of the law to [`MAX_WEIGHT`] times the cost at saturation, and fits this cost again.
    fn bounded(self, costs: &[CallCost]) -> FittedLaw {
        let Some(cost) = self.idle_cost.filter(|cost| cost.seconds > MAX_WEIGHT * self.demand) else { return self };
        let shape = LoadShape::Idle(cost.power);
        let limited = column(costs, |idle| 1.0 + MAX_WEIGHT * shape.beyond_saturation(idle));
        solve(&[limited], costs, 0.0).map_or(self, |values| FittedLaw::new(shape, values[0], MAX_WEIGHT * values[0]))
    }

    /// CPU seconds per call if the idle share of the CPUs is `idle`.
    pub fn cost_at(&self, idle: f64) -> f64 {
        self.demand + self.idle_cost.map_or(0.0, |cost| cost.seconds * idle.powi(cost.power as i32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn costs(cost: impl Fn(f64) -> f64) -> Vec<CallCost> {
        [0.9, 0.8, 0.6, 0.4].map(|idle| CallCost { idle, seconds: cost(idle), calls: 1e4 }).to_vec()
    }

    fn exactly(seconds: f64) -> SaturatedCost {
        SaturatedCost { seconds, calls: 1e4, variance: 0.0 }
    }

    /// The other loads correct the cost at saturation if it was measured over few calls. If it was measured over many
    /// calls, it does not change.
    #[test]
    fn the_levels_improve_the_cost_at_saturation() {
        let levels = costs(|idle| 0.01 + 0.005 * idle);
        let few = SaturatedCost { seconds: 0.0105, calls: 400.0, variance: 0.05_f64.powi(2) };
        let (fitted, _) = choose(&levels, Some(few), None);
        assert!((fitted.demand / 0.01 - 1.0).abs() < 0.02, "{fitted:?}");
        let many = SaturatedCost { calls: 1e6, variance: 1e-8, ..few };
        let (fitted, _) = choose(&levels, Some(many), None);
        assert!((fitted.demand / 0.0105 - 1.0).abs() < 0.001, "{fitted:?}");
    }

    #[test]
    fn each_law_is_recovered() {
        for (name, law) in [
            ("constant", costs(|_| 0.01)),
            ("idle^1", costs(|idle| 0.01 + 0.005 * idle)),
            ("idle^3", costs(|idle| 0.01 + 0.005 * idle.powi(3))),
            ("busy", costs(|idle| 0.01 - 0.004 * idle)),
        ] {
            let (fitted, laws) = choose(&law, Some(exactly(0.01)), None);
            assert_eq!(laws[0].name, name, "{laws:?}");
            assert!(laws[0].left_out_error < 1e-9 && (fitted.demand - 0.01).abs() < 1e-12, "{laws:?}");
            assert!(law.iter().all(|cost| (fitted.cost_at(cost.idle) - cost.seconds).abs() < 1e-9));
        }
    }

    #[test]
    fn the_cost_at_saturation_is_extrapolated_where_it_was_not_measured() {
        let (fitted, laws) = choose(&costs(|idle| 0.01 + 0.005 * idle.powi(2)), None, None);
        assert_eq!(laws[0].name, "idle^2");
        assert!((fitted.demand - 0.01).abs() < 1e-9, "{fitted:?}");
    }

    #[test]
    fn draws_of_the_extrapolated_cost_spread_over_all_laws_that_fit_equally_well() {
        let drawn = |costs: &[CallCost]| {
            let demand = |chance: u32| choose(costs, None, Some(f64::from(chance) / 100.0)).0.demand;
            let mut demands: Vec<f64> = (0..100).map(demand).collect();
            demands.sort_by(f64::total_cmp);
            (demands[5], demands[95])
        };
        let seen = |noise: [f64; 4], power| {
            let cost = |(idle, noise): (f64, f64)| CallCost {
                idle,
                seconds: 0.01 + 0.005 * f64::powi(idle, power) + noise,
                calls: 1e4,
            };
            [0.95, 0.9, 0.8, 0.7].into_iter().zip(noise).map(cost).collect::<Vec<_>>()
        };
        for noise in [[1e-4, -1e-4, 1e-4, -1e-4], [-1e-4, 1e-4, 1e-4, -1e-4]] {
            let (low, high) = drawn(&seen(noise, 2));
            assert!(low < 0.007 && (0.011..0.012).contains(&high), "{low} … {high}");
        }
        // In this sample, noise makes calls on an idle server appear cheaper than on a busy server.
        let noisy = seen([-1e-3, -5e-4, 5e-4, 6e-4], 1);
        let ((low, high), constant) = (drawn(&noisy), fit(None, &noisy, None).demand);
        assert!(low < 0.93 * constant && high > 1.07 * constant, "{low} … {high}");
        // If the cost at saturation was measured, no law is drawn, and the law has the measured cost.
        assert_eq!(choose(&seen([0.0; 4], 1), Some(exactly(0.012)), Some(0.9)).0.demand, 0.012);
    }

    #[test]
    fn no_demand_is_extrapolated_to_nothing() {
        let steep = [0.95, 0.9, 0.8, 0.7].map(|idle| CallCost { idle, seconds: 0.01 * idle.powi(6), calls: 1e4 });
        for chance in [None, Some(0.1), Some(0.9)] {
            let (fitted, _) = choose(&steep, None, chance);
            assert!(fitted.demand > 0.000_5 && fitted.cost_at(1.0) < 3.001 * fitted.demand, "{fitted:?}");
        }
    }

    #[test]
    fn one_level_or_none_yields_a_constant() {
        let one = [CallCost { idle: 0.5, seconds: 0.02, calls: 1e4 }];
        assert_eq!(choose(&one, None, None).0.demand, 0.02);
        assert!(choose(&[], Some(exactly(0.03)), None).0.idle_cost.is_none());
    }
}
