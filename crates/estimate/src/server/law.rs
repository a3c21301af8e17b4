//! The dependence of the cost of a call on the load: candidate laws, and the choice between them by cross-validation.
//!
//! At each level the cost of a call is c = S + W·Iᵖ, where I is the idle share of the CPUs. p = 1 is exceptional first
//! service (Welch 1964): a call that finds the server idle costs S + W. A larger p describes a server that becomes slow
//! only after a longer idle time. W < 0 with p = 1 describes contention between calls.
//!
//! The shapes, their names, their form in a Model and the least squares are as in [`crate::demand::load`], but the
//! problem differs. There, the number and the mix of the runs are arbitrary, and the background work may be unknown.
//! That module asks whether the cost depends on the load at all (an F test against constant demands). Here, one mix is
//! measured at four levels, the background work is known, and S is usually measured too. The cost almost certainly
//! depends on the load, and the question is which law predicts best between the levels. So each level is left out in
//! turn, and more powers can be distinguished.

use crate::demand::Shape;
use crate::least_squares::fit_non_negative;
use brimful_core::model::IdleCost;
use brimful_core::survey::Law;

/// The highest power p that is tried.
const MAX_POWER: u32 = 4;
/// Laws with cross-validation errors well below this value count as equally good.
const INDISTINCT: f64 = 0.005;
/// Smallest error that is assumed for a law.
const MIN_LAW_ERROR: f64 = 0.01;
/// Largest ratio of W to S. On real servers, the cost of a call doubled.
const MAX_WEIGHT: f64 = 2.0;

/// The cost of a call at one level.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallCost {
    /// I: idle share of the CPUs, 0..1.
    pub idle: f64,
    /// Cost of the call in CPU seconds.
    pub seconds: f64,
    /// Number of calls over which the cost was averaged.
    pub calls: f64,
}

/// The measured cost of a call on a server that is never idle.
#[derive(Clone, Copy, Debug)]
pub(super) struct SaturatedCost {
    /// Cost of the call in CPU seconds.
    pub seconds: f64,
    /// Number of calls over which the cost was averaged.
    pub calls: f64,
    /// Variance of the cost, relative to its square; 0 if it is not known.
    pub variance: f64,
}

/// A fitted law of the cost of a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct FittedLaw {
    /// S: the cost of a call in CPU seconds if the CPUs are never idle.
    pub demand: f64,
    /// W and p; `None` if the cost is constant.
    pub idle_cost: Option<IdleCost>,
}

/// Fits the law with the smallest cross-validation error, and lists all laws.
///
/// `measured` is the cost without idle CPUs, if it was measured. The law is chosen with exactly this cost; then the
/// levels also improve the cost itself ([`FittedLaw::refined`]). If it was not measured, this cost is extrapolated, and
/// laws that fit the levels equally well may extrapolate differently. In that case one of the laws is drawn at random:
/// `chance` is a random number between 0 and 1.
pub(super) fn choose(
    costs: &[CallCost],
    measured: Option<SaturatedCost>,
    chance: Option<f64>,
) -> (FittedLaw, Vec<Law>) {
    let saturated = measured.map(|cost| cost.seconds);
    let error = |shape| cross_validation_error(costs, |others| fit(shape, others, saturated));
    let candidates = [None].into_iter().chain(shapes().map(Some));
    let mut tried: Vec<(f64, Option<Shape>)> = candidates.map(|shape| (error(shape), shape)).collect();
    // The sort is stable, so the simpler one of two equally good laws remains first.
    tried.sort_by(|a, b| a.0.total_cmp(&b.0));
    let best_error = tried.first().map_or(0.0, |(error, _)| *error);
    let best = tried.first().and_then(|(_, shape)| *shape);
    let drawn = chance.filter(|_| saturated.is_none()).and_then(|chance| draw(costs, chance));
    let name = |shape: Option<Shape>| shape.map_or("constant".to_owned(), |shape| shape.to_string());
    let law = |(error, shape): &(f64, Option<Shape>)| Law { name: name(*shape), left_out_error: *error };
    let laws = tried.iter().filter(|(error, _)| error.is_finite()).map(law).collect();
    let fitted = || {
        let fitted = fit(best, costs, saturated);
        measured.map_or(fitted, |measured| fitted.refined(best, costs, measured, best_error))
    };
    (drawn.unwrap_or_else(fitted), laws)
}

fn shapes() -> impl Iterator<Item = Shape> {
    [Shape::Busy].into_iter().chain((1..=MAX_POWER).map(Shape::Idle))
}

/// Draws a law at random. Its probability follows from its cross-validation errors at n levels (pseudo-Bayesian model
/// averaging: Geisser & Eddy 1979, with normal errors of unknown variance). With W = 0, each law is a constant cost.
fn draw(costs: &[CallCost], chance: f64) -> Option<FittedLaw> {
    let weight = |shape| {
        let error = cross_validation_error(costs, |others| fit_mirrored(shape, others));
        (error.hypot(INDISTINCT).powi(-(costs.len() as i32)), shape)
    };
    let weights: Vec<(f64, Shape)> = shapes().map(weight).filter(|(weight, _)| weight.is_normal()).collect();
    let mut remaining = chance * weights.iter().map(|(weight, _)| weight).sum::<f64>();
    let drawn = weights.iter().find(|(weight, _)| {
        remaining -= weight;
        remaining < 0.0
    });
    drawn.map(|(_, shape)| fit_mirrored(*shape, costs))
}

/// Root mean square of the relative errors at the levels. For the error at a level, the law is fitted to all other
/// levels.
fn cross_validation_error(costs: &[CallCost], fit: impl Fn(&[CallCost]) -> FittedLaw) -> f64 {
    let error = |index: usize| {
        let others: Vec<CallCost> =
            costs.iter().enumerate().filter(|(other, _)| *other != index).map(|(_, cost)| *cost).collect();
        fit(&others).cost_at(costs[index].idle) / costs[index].seconds - 1.0
    };
    let squares: f64 = (0..costs.len()).map(|index| error(index).powi(2)).sum();
    (squares / costs.len() as f64).sqrt()
}

/// Fits a shape, or a constant if `shape` is `None`. If the levels do not determine the shape, the fit is a constant.
fn fit(shape: Option<Shape>, costs: &[CallCost], saturated: Option<f64>) -> FittedLaw {
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

/// Fits a shape for a draw, and extrapolates S. If noise makes W negative, its sign is changed. If W were set to zero
/// instead, the draws would have no spread (the bootstrap at a bound: Andrews 2000).
fn fit_mirrored(shape: Shape, costs: &[CallCost]) -> FittedLaw {
    let fitted = fit(Some(shape), costs, None);
    let falling = [column(costs, |_| 1.0), column(costs, |idle| -shape.beyond_saturation(idle))];
    let held_at_zero = fitted.idle_cost.is_none() && shape != Shape::Busy;
    let Some(values) = solve(&falling, costs, 0.0).filter(|_| held_at_zero) else { return fitted };
    let weights = costs.iter().map(|cost| cost.seconds.powi(-2));
    let mean = falling[1].iter().zip(weights.clone()).map(|(x, w)| x * w).sum::<f64>() / weights.sum::<f64>();
    FittedLaw::new(shape, values[0] + 2.0 * values[1] * mean, values[1]).bounded(costs)
}

fn column(costs: &[CallCost], term: impl Fn(f64) -> f64) -> Vec<f64> {
    costs.iter().map(|cost| term(cost.idle)).collect()
}

/// Coefficients of the columns that explain the part of the costs beyond `known`, by least squares of the relative
/// errors. `None` if the levels do not determine the coefficients.
fn solve(columns: &[Vec<f64>], costs: &[CallCost], known: f64) -> Option<Vec<f64>> {
    if columns.is_empty() {
        return None;
    }
    let beyond_known: Vec<f64> = costs.iter().map(|cost| cost.seconds - known).collect();
    let weights: Vec<f64> = costs.iter().map(|cost| cost.seconds.powi(-2)).collect();
    fit_non_negative(columns, &beyond_known, &weights).ok().map(|fit| fit.values)
}

impl FittedLaw {
    fn new(shape: Shape, demand: f64, weight: f64) -> FittedLaw {
        FittedLaw { demand, idle_cost: shape.idle_cost(weight).filter(|_| weight > 0.0) }
    }

    /// Fits S and W once more, to the levels and to the cost at saturation together. The cost at saturation is a mean
    /// over few calls, and the levels show S as well. Each mean has a variance in inverse proportion to its number of
    /// calls. The law itself is wrong by about `law_error`, its cross-validation error.
    fn refined(self, shape: Option<Shape>, costs: &[CallCost], saturated: SaturatedCost, law_error: f64) -> FittedLaw {
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

    /// Limits W to [`MAX_WEIGHT`] times S.
    fn bounded(self, costs: &[CallCost]) -> FittedLaw {
        let Some(cost) = self.idle_cost.filter(|cost| cost.seconds > MAX_WEIGHT * self.demand) else { return self };
        let shape = Shape::Idle(cost.power);
        let limited = column(costs, |idle| 1.0 + MAX_WEIGHT * shape.beyond_saturation(idle));
        solve(&[limited], costs, 0.0).map_or(self, |values| FittedLaw::new(shape, values[0], MAX_WEIGHT * values[0]))
    }

    /// Cost of a call in CPU seconds at the idle share `idle` of the CPUs.
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

    /// If few calls were measured at saturation, expects that the many calls at the levels correct the cost at
    /// saturation. If many were measured, expects that this cost does not change.
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
        // Here noise makes calls on an idle server cheaper, which hides their additional cost.
        let noisy = seen([-1e-3, -5e-4, 5e-4, 6e-4], 1);
        let ((low, high), constant) = (drawn(&noisy), fit(None, &noisy, None).demand);
        assert!(low < 0.93 * constant && high > 1.07 * constant, "{low} … {high}");
        // No law is drawn if the cost at saturation was measured, so the demand is the measured cost.
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
