//! How the cost of a call depends on the load: rivals, and the one that says best what it was not fitted to.
//!
//! At each level the cost of a call is c = S + W·Iᵖ, with I the share of the CPUs that is idle. p = 1 is exceptional first
//! service (Welch 1964): a call that finds the server idle costs S + W. A greater p stands for a server that has to have
//! been idle for long; W < 0 with p = 1 for calls that get in one another's way.

use brimful_core::model::IdleCost;
use brimful_core::survey::Law;

/// The highest power tried.
const MOST_POWER: u32 = 4;

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
/// if that was seen.
pub(super) fn choose(costs: &[Cost], busiest: Option<f64>) -> (Fitted, Vec<Law>) {
    let rivals = [Rival::Constant, Rival::Busy].into_iter().chain((1..=MOST_POWER).map(Rival::Idle));
    let mut tried: Vec<(f64, Rival)> = rivals.map(|rival| (left_out_error(rival, costs, busiest), rival)).collect();
    // In a tie the simpler stays ahead.
    tried.sort_by(|a, b| a.0.total_cmp(&b.0));
    let best = tried.first().map_or(Rival::Constant, |(_, rival)| *rival);
    let law = |(error, rival): &(f64, Rival)| Law { name: rival.name(), left_out_error: *error };
    (best.fit(costs, busiest), tried.iter().filter(|(error, _)| error.is_finite()).map(law).collect())
}

/// Root mean square of the relative errors at the levels, each left out in turn; the busiest always stays.
fn left_out_error(rival: Rival, costs: &[Cost], busiest: Option<f64>) -> f64 {
    let error = |index: usize| {
        let others: Vec<Cost> =
            costs.iter().enumerate().filter(|(other, _)| *other != index).map(|(_, cost)| *cost).collect();
        rival.fit(&others, busiest).at(costs[index].idle) / costs[index].seconds - 1.0
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
        let power = match self {
            Rival::Constant => {
                let all = costs.iter().map(|cost| cost.seconds).chain(busiest);
                let (sum, n) = all.fold((0.0, 0.0), |(sum, n), seconds| (sum + seconds, n + 1.0));
                return Fitted { demand: busiest.unwrap_or(sum / n), idle_cost: None };
            }
            Rival::Idle(power) => power,
            Rival::Busy => 1,
        };
        let leisure = |cost: &Cost| cost.idle.powi(power as i32);
        let (demand, weight) = match busiest {
            Some(demand) => (demand, through(demand, costs, leisure)),
            None => line(costs, leisure),
        };
        let held = if self == Rival::Busy { weight.min(0.0) } else { weight.max(0.0) };
        // Held at nothing, the demand is that of a constant.
        let demand = if held == weight { demand } else { Rival::Constant.fit(costs, busiest).demand };
        let cost = IdleCost { seconds: held, power };
        Fitted { demand, idle_cost: (held != 0.0 && held.is_finite()).then_some(cost) }
    }
}

/// W of c = S + W·x with S known.
fn through(demand: f64, costs: &[Cost], x: impl Fn(&Cost) -> f64) -> f64 {
    let sum = |of: &dyn Fn(&Cost) -> f64| costs.iter().map(|cost| of(cost) / cost.seconds.powi(2)).sum::<f64>();
    sum(&|cost| (cost.seconds - demand) * x(cost)) / sum(&|cost| x(cost).powi(2))
}

/// S and W of c = S + W·x.
fn line(costs: &[Cost], x: impl Fn(&Cost) -> f64) -> (f64, f64) {
    let sum = |of: &dyn Fn(&Cost) -> f64| costs.iter().map(|cost| of(cost) / cost.seconds.powi(2)).sum::<f64>();
    let (n, sx, sxx) = (sum(&|_| 1.0), sum(&|cost| x(cost)), sum(&|cost| x(cost).powi(2)));
    let (sy, sxy) = (sum(&|cost| cost.seconds), sum(&|cost| x(cost) * cost.seconds));
    let determinant = n * sxx - sx * sx;
    if determinant <= 1e-9 * n * sxx {
        return (sy / n, 0.0);
    }
    ((sxx * sy - sx * sxy) / determinant, (n * sxy - sx * sy) / determinant)
}

impl Fitted {
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
            let (fitted, laws) = choose(&law, Some(0.01));
            assert_eq!(laws[0].name, name, "{laws:?}");
            assert!(laws[0].left_out_error < 1e-9 && (fitted.demand - 0.01).abs() < 1e-12, "{laws:?}");
            assert!(law.iter().all(|cost| (fitted.at(cost.idle) - cost.seconds).abs() < 1e-9));
        }
    }

    #[test]
    fn what_a_call_costs_without_rest_is_extrapolated_where_it_was_not_seen() {
        let (fitted, laws) = choose(&costs(|idle| 0.01 + 0.005 * idle.powi(2)), None);
        assert_eq!(laws[0].name, "idle^2");
        assert!((fitted.demand - 0.01).abs() < 1e-9, "{fitted:?}");
    }

    #[test]
    fn nothing_measured_and_one_level_make_a_constant() {
        let one = [Cost { idle: 0.5, seconds: 0.02 }];
        assert_eq!(choose(&one, None).0.demand, 0.02);
        assert!(choose(&[], Some(0.03)).0.idle_cost.is_none());
    }
}
