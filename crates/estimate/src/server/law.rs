//! How the cost of a call depends on the load: rivals, and the one that says best what it was not fitted to.
//!
//! At each level the cost of a call is c = S + W·Iᵖ, with I the share of the CPUs that is idle. p = 1 is exceptional first
//! service (Welch 1964): a call that finds the server idle costs S + W. A greater p stands for a server that has to have
//! been idle for long; W < 0 with p = 1 for calls that get in one another's way.

use brimful_core::model::IdleCost;
use brimful_core::survey::Law;

/// The highest power tried.
const MOST_POWER: u32 = 4;
/// Of errors well below this, the smaller one says nothing for a law.
const INDISTINCT: f64 = 0.005;
/// No server is taken to spend more on idleness than so many times what a call needs without any: of real ones, the cost
/// of a call was seen to double.
const MOST_WEIGHT: f64 = 2.0;

/// What a call costs at one level.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    /// I, 0..1.
    pub idle: f64,
    /// In CPU seconds.
    pub seconds: f64,
}

/// A law that may hold.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Rival {
    Constant,
    Idle(u32),
    Busy,
}

/// The cost of a call where nothing is idle, and what it costs more at leisure.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fitted {
    pub demand: f64,
    pub idle_cost: Option<IdleCost>,
}

/// Fits the law that is least off at levels left out, and tells all. `busiest` is the cost where the server had no rest,
/// if that was seen. Where it was not, it is extrapolated, and laws that fit the levels as well differ in it: then
/// `chance`, uniform between 0 and 1, draws one of them.
pub(super) fn choose(costs: &[Cost], busiest: Option<f64>, chance: Option<f64>) -> (Fitted, Vec<Law>) {
    let rivals = [Rival::Constant, Rival::Busy].into_iter().chain((1..=MOST_POWER).map(Rival::Idle));
    let error = |rival: Rival| left_out_error(costs, |others| rival.fit(others, busiest));
    let mut tried: Vec<(f64, Rival)> = rivals.map(|rival| (error(rival), rival)).collect();
    // In a tie the simpler stays ahead.
    tried.sort_by(|a, b| a.0.total_cmp(&b.0));
    let best = tried.first().map_or(Rival::Constant, |(_, rival)| *rival);
    let drawn = chance.filter(|_| busiest.is_none()).and_then(|chance| draw(costs, chance));
    let law = |(error, rival): &(f64, Rival)| Law { name: rival.name(), left_out_error: *error };
    let laws = tried.iter().filter(|(error, _)| error.is_finite()).map(law).collect();
    (drawn.unwrap_or_else(|| best.fit(costs, busiest)), laws)
}

/// One of the rivals, each as likely as its errors at n levels left out make it (pseudo-Bayesian model averaging: Geisser &
/// Eddy 1979, with normal errors of unknown variance). A constant is among them as one that has nothing to add.
fn draw(costs: &[Cost], chance: f64) -> Option<Fitted> {
    let weigh = |rival: Rival| {
        let error = left_out_error(costs, |others| rival.fit_mirrored(others));
        (error.hypot(INDISTINCT).powi(-(costs.len() as i32)), rival)
    };
    let rivals = [Rival::Busy].into_iter().chain((1..=MOST_POWER).map(Rival::Idle));
    let weighed: Vec<(f64, Rival)> = rivals.map(weigh).filter(|(weight, _)| weight.is_normal()).collect();
    let mut left = chance * weighed.iter().map(|(weight, _)| weight).sum::<f64>();
    let drawn = weighed.iter().find(|(weight, _)| {
        left -= weight;
        left < 0.0
    });
    drawn.map(|(_, rival)| rival.fit_mirrored(costs))
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

impl Rival {
    fn name(self) -> String {
        match self {
            Rival::Constant => "constant".to_owned(),
            Rival::Idle(power) => format!("idle^{power}"),
            Rival::Busy => "busy".to_owned(),
        }
    }

    /// Least squares of relative errors.
    fn fit(self, costs: &[Cost], busiest: Option<f64>) -> Fitted {
        let Some(power) = self.power() else { return constant(costs, busiest) };
        let leisure = |cost: &Cost| cost.idle.powi(power as i32);
        let (demand, weight) = match busiest {
            Some(demand) => (demand, through(demand, costs, leisure)),
            None => line(costs, leisure),
        };
        let held = if self == Rival::Busy { weight.min(0.0) } else { weight.max(0.0) };
        // Held at nothing, the demand is that of a constant.
        let fitted = if held == weight { Fitted::new(demand, held, power) } else { constant(costs, busiest) };
        if busiest.is_none() { fitted.bounded(costs) } else { fitted }
    }

    /// The same for a draw, without a busiest: where noise has a call cost less at leisure, it does so much more instead.
    /// Held at nothing, draws of one that does would have no spread (the bootstrap at a bound: Andrews 2000).
    fn fit_mirrored(self, costs: &[Cost]) -> Fitted {
        let Rival::Idle(power) = self else { return self.fit(costs, None) };
        let leisure = |cost: &Cost| cost.idle.powi(power as i32);
        let (demand, weight) = line(costs, leisure);
        if weight >= 0.0 {
            return self.fit(costs, None);
        }
        let mean = relative(costs, leisure) / relative(costs, |_| 1.0);
        Fitted::new(demand + 2.0 * weight * mean, -weight, power).bounded(costs)
    }

    fn power(self) -> Option<u32> {
        match self {
            Rival::Constant => None,
            Rival::Idle(power) => Some(power),
            Rival::Busy => Some(1),
        }
    }
}

fn constant(costs: &[Cost], busiest: Option<f64>) -> Fitted {
    let sum: f64 = costs.iter().map(|cost| cost.seconds).sum();
    Fitted { demand: busiest.unwrap_or(sum / costs.len() as f64), idle_cost: None }
}

/// W of c = S + W·x with S known.
fn through(demand: f64, costs: &[Cost], x: impl Fn(&Cost) -> f64) -> f64 {
    relative(costs, |cost| (cost.seconds - demand) * x(cost)) / relative(costs, |cost| x(cost).powi(2))
}

/// S and W of c = S + W·x.
fn line(costs: &[Cost], x: impl Fn(&Cost) -> f64) -> (f64, f64) {
    let (n, sx, sxx) = (relative(costs, |_| 1.0), relative(costs, &x), relative(costs, |cost| x(cost).powi(2)));
    let (sy, sxy) = (relative(costs, |cost| cost.seconds), relative(costs, |cost| x(cost) * cost.seconds));
    let determinant = n * sxx - sx * sx;
    if determinant <= 1e-9 * n * sxx {
        return (sy / n, 0.0);
    }
    ((sxx * sy - sx * sxy) / determinant, (n * sxy - sx * sy) / determinant)
}

/// A sum in which each cost counts as its relative error does.
fn relative(costs: &[Cost], of: impl Fn(&Cost) -> f64) -> f64 {
    costs.iter().map(|cost| of(cost) / cost.seconds.powi(2)).sum()
}

impl Fitted {
    fn new(demand: f64, seconds: f64, power: u32) -> Fitted {
        let cost = IdleCost { seconds, power };
        Fitted { demand, idle_cost: (seconds != 0.0 && seconds.is_finite()).then_some(cost) }
    }

    /// With no more spent on idleness than is taken to be possible.
    fn bounded(self, costs: &[Cost]) -> Fitted {
        let Some(cost) = self.idle_cost.filter(|cost| cost.seconds > MOST_WEIGHT * self.demand) else { return self };
        let most = |at: &Cost| 1.0 + MOST_WEIGHT * at.idle.powi(cost.power as i32);
        let demand = relative(costs, |at| most(at) * at.seconds) / relative(costs, |at| most(at).powi(2));
        Fitted::new(demand, MOST_WEIGHT * demand, cost.power)
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
        let ((low, high), constant) = (drawn(&noisy), constant(&noisy, None).demand);
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
