//! How the cost of a call depends on the load: rivals, and the one that says best what it was not fitted to.
//!
//! At each level the cost of a call is c = S + W·Iᵖ, with I the share of the CPUs that is idle. p = 1 is exceptional
//! first service (Welch 1964): a call that finds the server idle costs S + W. A greater p stands for a server that has
//! to have been idle for long; W < 0 with p = 1 for calls that get in one another's way.
//!
//! The rivals, their names and what a Model makes of them are those of [`crate::demand::load`], which finds them in the
//! Records of any runs; the least squares are the same. What differs is what is known. There, runs are many or few, of
//! any mix, and the work without requests may have to be fitted along, so the question is whether a shape shows at all
//! (an F test against constant demands). Here, the design is fixed: one mix at four levels, work without calls known, S
//! itself mostly measured. A shape is all but certain, and the question is which predicts best between the levels; so
//! each is left out in turn, and more powers can be told apart.

use crate::demand::Shape;
use crate::least_squares::fit_non_negative;
use brimful_core::model::IdleCost;
use brimful_core::survey::Law;

/// The highest power tried.
const MOST_POWER: u32 = 4;
/// Of errors well below this, the smaller one says nothing for a law.
const INDISTINCT: f64 = 0.005;
/// No server is taken to spend more on idleness than so many times what a call needs without any: of real ones, the
/// cost of a call was seen to double.
const MOST_WEIGHT: f64 = 2.0;

/// What a call costs at one level.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    /// I, 0..1.
    pub idle: f64,
    /// In CPU seconds.
    pub seconds: f64,
}

/// The cost of a call where nothing is idle, and what it costs more at leisure.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fitted {
    pub demand: f64,
    pub idle_cost: Option<IdleCost>,
}

/// Fits the law that is least off at levels left out, and tells all. `busiest` is the cost where the server had no
/// rest, if that was seen. Where it was not, it is extrapolated, and laws that fit the levels as well differ in it:
/// then `chance`, uniform between 0 and 1, draws one of them.
pub(super) fn choose(costs: &[Cost], busiest: Option<f64>, chance: Option<f64>) -> (Fitted, Vec<Law>) {
    let error = |shape| left_out_error(costs, |others| fit(shape, others, busiest));
    let rivals = [None].into_iter().chain(shapes().map(Some));
    let mut tried: Vec<(f64, Option<Shape>)> = rivals.map(|shape| (error(shape), shape)).collect();
    // In a tie the simpler stays ahead.
    tried.sort_by(|a, b| a.0.total_cmp(&b.0));
    let best = tried.first().and_then(|(_, shape)| *shape);
    let drawn = chance.filter(|_| busiest.is_none()).and_then(|chance| draw(costs, chance));
    let name = |shape: Option<Shape>| shape.map_or("constant".to_owned(), |shape| shape.to_string());
    let law = |(error, shape): &(f64, Option<Shape>)| Law { name: name(*shape), left_out_error: *error };
    let laws = tried.iter().filter(|(error, _)| error.is_finite()).map(law).collect();
    (drawn.unwrap_or_else(|| fit(best, costs, busiest)), laws)
}

fn shapes() -> impl Iterator<Item = Shape> {
    [Shape::Busy].into_iter().chain((1..=MOST_POWER).map(Shape::Idle))
}

/// One of the rivals, each as likely as its errors at n levels left out make it (pseudo-Bayesian model averaging:
/// Geisser & Eddy 1979, with normal errors of unknown variance). A constant is among them as one that has nothing to
/// add.
fn draw(costs: &[Cost], chance: f64) -> Option<Fitted> {
    let weigh = |shape| {
        let error = left_out_error(costs, |others| fit_mirrored(shape, others));
        (error.hypot(INDISTINCT).powi(-(costs.len() as i32)), shape)
    };
    let weighed: Vec<(f64, Shape)> = shapes().map(weigh).filter(|(weight, _)| weight.is_normal()).collect();
    let mut left = chance * weighed.iter().map(|(weight, _)| weight).sum::<f64>();
    let drawn = weighed.iter().find(|(weight, _)| {
        left -= weight;
        left < 0.0
    });
    drawn.map(|(_, shape)| fit_mirrored(*shape, costs))
}

/// Root mean square of the relative errors at the levels, each left out in turn; the busiest always stays.
fn left_out_error(costs: &[Cost], fit: impl Fn(&[Cost]) -> Fitted) -> f64 {
    let error = |index: usize| {
        let others: Vec<Cost> =
            costs.iter().enumerate().filter(|(other, _)| *other != index).map(|(_, cost)| *cost).collect();
        fit(&others).at(costs[index].idle) / costs[index].seconds - 1.0
    };
    let squares: f64 = (0..costs.len()).map(|index| error(index).powi(2)).sum();
    (squares / costs.len() as f64).sqrt()
}

/// Of a constant without a shape. What the levels do not tell apart is one.
fn fit(shape: Option<Shape>, costs: &[Cost], busiest: Option<f64>) -> Fitted {
    let one = busiest.is_none().then(|| column(costs, |_| 1.0));
    let more = shape.map(|shape| column(costs, |idle| shape.beyond_saturation(idle)));
    let columns: Vec<Vec<f64>> = one.into_iter().chain(more).collect();
    match (solve(&columns, costs, busiest.unwrap_or(0.0)), shape) {
        (Some(values), Some(shape)) => {
            let demand = busiest.unwrap_or(values[0]);
            let fitted = Fitted::new(shape, demand, values[columns.len() - 1]);
            if busiest.is_none() { fitted.bounded(costs) } else { fitted }
        }
        (Some(values), None) => Fitted { demand: values[0], idle_cost: None },
        (None, Some(_)) => fit(None, costs, busiest),
        (None, None) => Fitted { demand: busiest.unwrap_or(f64::NAN), idle_cost: None },
    }
}

/// The same for a draw, without a busiest: where noise has a call cost less at leisure, it does so much more instead.
/// Held at nothing, draws of one that does would have no spread (the bootstrap at a bound: Andrews 2000).
fn fit_mirrored(shape: Shape, costs: &[Cost]) -> Fitted {
    let fitted = fit(Some(shape), costs, None);
    let falls = [column(costs, |_| 1.0), column(costs, |idle| -shape.beyond_saturation(idle))];
    let is_held = fitted.idle_cost.is_none() && shape != Shape::Busy;
    let Some(values) = solve(&falls, costs, 0.0).filter(|_| is_held) else { return fitted };
    let weights = costs.iter().map(|cost| cost.seconds.powi(-2));
    let mean = falls[1].iter().zip(weights.clone()).map(|(x, w)| x * w).sum::<f64>() / weights.sum::<f64>();
    Fitted::new(shape, values[0] + 2.0 * values[1] * mean, values[1]).bounded(costs)
}

fn column(costs: &[Cost], of: impl Fn(f64) -> f64) -> Vec<f64> {
    costs.iter().map(|cost| of(cost.idle)).collect()
}

/// Least squares of the relative errors of `known` and so much of each column; `None` where the levels do not tell.
fn solve(columns: &[Vec<f64>], costs: &[Cost], known: f64) -> Option<Vec<f64>> {
    let (rest, weights): (Vec<f64>, Vec<f64>) =
        costs.iter().map(|cost| (cost.seconds - known, cost.seconds.powi(-2))).unzip();
    if columns.is_empty() { None } else { fit_non_negative(columns, &rest, &weights).ok().map(|fit| fit.values) }
}

impl Fitted {
    fn new(shape: Shape, demand: f64, weight: f64) -> Fitted {
        Fitted { demand, idle_cost: shape.idle_cost(weight).filter(|_| weight > 0.0) }
    }

    /// With no more spent on idleness than is taken to be possible.
    fn bounded(self, costs: &[Cost]) -> Fitted {
        let Some(cost) = self.idle_cost.filter(|cost| cost.seconds > MOST_WEIGHT * self.demand) else { return self };
        let shape = Shape::Idle(cost.power);
        let most = column(costs, |idle| 1.0 + MOST_WEIGHT * shape.beyond_saturation(idle));
        solve(&[most], costs, 0.0).map_or(self, |values| Fitted::new(shape, values[0], MOST_WEIGHT * values[0]))
    }

    pub fn at(&self, idle: f64) -> f64 {
        self.demand + self.idle_cost.map_or(0.0, |cost| cost.seconds * idle.powi(cost.power as i32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn costs(of: impl Fn(f64) -> f64) -> Vec<Cost> {
        [0.9, 0.8, 0.6, 0.4].map(|idle| Cost { idle, seconds: of(idle) }).to_vec()
    }

    #[test]
    fn each_law_is_found_where_it_holds() {
        for (name, law) in [
            ("constant", costs(|_| 0.01)),
            ("idle^1", costs(|idle| 0.01 + 0.005 * idle)),
            ("idle^3", costs(|idle| 0.01 + 0.005 * idle.powi(3))),
            ("busy", costs(|idle| 0.01 - 0.004 * idle)),
        ] {
            let (fitted, laws) = choose(&law, Some(0.01), None);
            assert_eq!(laws[0].name, name, "{laws:?}");
            assert!(laws[0].left_out_error < 1e-9 && (fitted.demand - 0.01).abs() < 1e-12, "{laws:?}");
            assert!(law.iter().all(|cost| (fitted.at(cost.idle) - cost.seconds).abs() < 1e-9));
        }
    }

    #[test]
    fn what_a_call_costs_without_rest_is_extrapolated_where_it_was_not_seen() {
        let (fitted, laws) = choose(&costs(|idle| 0.01 + 0.005 * idle.powi(2)), None, None);
        assert_eq!(laws[0].name, "idle^2");
        assert!((fitted.demand - 0.01).abs() < 1e-9, "{fitted:?}");
    }

    #[test]
    fn what_is_drawn_where_it_was_not_seen_spreads_over_all_laws_that_fit_as_well() {
        let drawn = |costs: &[Cost]| {
            let of = |chance: u32| choose(costs, None, Some(f64::from(chance) / 100.0)).0.demand;
            let mut demands: Vec<f64> = (0..100).map(of).collect();
            demands.sort_by(f64::total_cmp);
            (demands[5], demands[95])
        };
        let seen = |noise: [f64; 4], power| {
            let of = |(idle, noise): (f64, f64)| Cost { idle, seconds: 0.01 + 0.005 * f64::powi(idle, power) + noise };
            [0.95, 0.9, 0.8, 0.7].into_iter().zip(noise).map(of).collect::<Vec<_>>()
        };
        for noise in [[1e-4, -1e-4, 1e-4, -1e-4], [-1e-4, 1e-4, 1e-4, -1e-4]] {
            let (low, high) = drawn(&seen(noise, 2));
            assert!(low < 0.007 && (0.011..0.012).contains(&high), "{low} … {high}");
        }
        // Noise that has a call cost less at leisure hides what it costs more.
        let noisy = seen([-1e-3, -5e-4, 5e-4, 6e-4], 1);
        let ((low, high), constant) = (drawn(&noisy), fit(None, &noisy, None).demand);
        assert!(low < 0.93 * constant && high > 1.07 * constant, "{low} … {high}");
        // Whoever saw it draws nothing.
        assert_eq!(choose(&seen([0.0; 4], 1), Some(0.012), Some(0.9)).0.demand, 0.012);
    }

    #[test]
    fn no_demand_is_extrapolated_to_nothing() {
        let steep = [0.95, 0.9, 0.8, 0.7].map(|idle| Cost { idle, seconds: 0.01 * idle.powi(6) });
        for chance in [None, Some(0.1), Some(0.9)] {
            let (fitted, _) = choose(&steep, None, chance);
            assert!(fitted.demand > 0.000_5 && fitted.at(1.0) < 3.001 * fitted.demand, "{fitted:?}");
        }
    }

    #[test]
    fn nothing_measured_and_one_level_make_a_constant() {
        let one = [Cost { idle: 0.5, seconds: 0.02 }];
        assert_eq!(choose(&one, None, None).0.demand, 0.02);
        assert!(choose(&[], Some(0.03), None).0.idle_cost.is_none());
    }
}
