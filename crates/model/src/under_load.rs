//! Networks with closed classes whose demands or interruptions depend on the load ([`crate::idle_law`],
//! [`crate::interruptions`]).
//!
//! The throughputs (by the Linearizer), the demands and the interruptions depend on one another. They are computed
//! alternately until they converge. Networks with only open classes need no iteration, because their throughputs are
//! known.

use crate::ModelError;
use crate::closed::approximate::linearizer;
use crate::interruptions::{InterruptionLoad, interruptions};
use crate::network::Network;
use brimful_core::model::Model;

/// The demands and interruptions have converged if none changes by more than this relative amount in one iteration.
const TOLERANCE: f64 = 1e-6;

/// Maximum number of iterations.
const MAX_ITERATIONS: usize = 200;

/// Builds a network whose demands depend on its load, including the load of closed classes.
pub(crate) fn network(model: &Model) -> Result<Network<'_>, ModelError> {
    let mut network = Network::new(model)?;
    let depends = model.stations.iter().any(|station| station.idle_cost.is_some() || interruptions(station).is_some());
    if !depends || network.closed().next().is_none() {
        return Ok(network);
    }
    network.check_visits()?;
    for _ in 0..MAX_ITERATIONS {
        let (throughput, residence) = linearizer(&network)?;
        let wanted = network.demands_at(&throughput);
        let interrupted = network.interrupted_at(&throughput, &residence);
        let pairs = || network.nominal.iter().flatten().zip(wanted.iter().flatten());
        let loads = || network.interrupted.iter().flatten().zip(interrupted.iter().flatten());
        if pairs().all(|(is, wanted)| (is - wanted).abs() <= TOLERANCE * wanted)
            && loads().all(|(is, wanted)| is.is_close(wanted, TOLERANCE))
        {
            network.waking = network.waking_at(&throughput);
            return Ok(network);
        }
        let half_way =
            |(is, wanted): (&Vec<f64>, &Vec<f64>)| is.iter().zip(wanted).map(|(a, b)| 0.5 * (a + b)).collect();
        let next = network.nominal.iter().zip(&wanted).map(half_way).collect();
        network.interrupted = between(&network.interrupted, &interrupted);
        network = network.with_demands(next)?;
    }
    Err(ModelError::NotConverged { rounds: MAX_ITERATIONS })
}

/// The interruptions of each station halfway between two estimates.
fn between(a: &[Option<InterruptionLoad>], b: &[Option<InterruptionLoad>]) -> Vec<Option<InterruptionLoad>> {
    a.iter().zip(b).map(|(a, b)| Some(a.as_ref()?.halfway(b.as_ref()?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Method, SimulationOptions, saturation_rate, simulate, solve};
    use brimful_core::model::{ClassKind, IdleCost, ModelClass, Scheduling, Station, StationKind};

    const WAKING: IdleCost = IdleCost { seconds: 0.05, power: 2 };

    fn cpu(idle_cost: Option<IdleCost>) -> Station {
        Station {
            name: "cpu".into(),
            scheduling: Scheduling::Ps,
            idle_cost,
            background: 0.1,
            servers: 2,
            ..Station::default()
        }
    }

    fn open(idle_cost: Option<IdleCost>, rate: f64) -> Model {
        Model {
            stations: vec![cpu(idle_cost)],
            classes: vec![ModelClass { name: "page".into(), rate: Some(rate), ..ModelClass::default() }],
            demands: vec![vec![0.1]],
            ..Model::default()
        }
    }

    #[test]
    fn the_law_holds_at_every_load_and_saturation_is_that_of_the_demands() {
        for cost in [WAKING, IdleCost { seconds: -0.06, power: 1 }] {
            assert!((saturation_rate(&open(Some(cost), 1.0)).unwrap().0 - 18.0).abs() < 1e-12);
            for rate in [0.0, 1.0, 5.0, 12.0, 17.9] {
                let solution = solve(&open(Some(cost), rate), Method::Auto).unwrap();
                let used = solution.utilization[0][0];
                let idle: f64 = 0.9 - used;
                let demand = 0.1 + cost.seconds * idle.powi(cost.power as i32);
                assert!((used - rate * demand / 2.0).abs() < 1e-12, "{cost:?} {rate} {solution:?}");
                // With an idle cost below 0, the solution equals that of a network with these demands as constants. A
                // cost above 0 may yield shorter responses than that network, because a request that finds idle servers
                // does not wait.
                let mut plain = open(None, rate);
                plain.demands[0][0] = demand;
                let plain = solve(&plain, Method::Auto).unwrap().response_time[0];
                let same = (solution.response_time[0] / plain - 1.0).abs() < 1e-9;
                assert!(
                    same || cost.seconds > 0.0 && solution.response_time[0] < plain,
                    "{rate}: {solution:?} {plain}"
                );
                assert!((solution.saturation_rate - 18.0).abs() < 1e-12);
            }
        }
        let error = solve(&open(Some(WAKING), 18.1), Method::Auto).unwrap_err();
        assert!(matches!(error, ModelError::Unstable { .. }), "{error}");
    }

    #[test]
    fn closed_classes_find_their_demands_too() {
        let mut model = open(Some(WAKING), 1.0);
        for customers in [1, 3, 40] {
            model.classes[0] = ModelClass {
                name: "page".into(),
                kind: ClassKind::Closed,
                population: Some(customers),
                think: 1.0,
                ..ModelClass::default()
            };
            let solution = solve(&model, Method::Auto).unwrap();
            let used = solution.utilization[0][0];
            let demand = 2.0 * used / solution.throughput[0];
            let law = 0.1 + 0.05 * (0.9 - used).max(0.0).powi(2);
            // The iteration uses throughputs that the Linearizer estimates, so the demand follows the law only
            // approximately.
            assert!((demand / law - 1.0).abs() < 0.02, "{customers}: {demand} {law}");
            let simulated = simulate(&model, &SimulationOptions::default()).unwrap();
            assert!((simulated.throughput[0].value / solution.throughput[0] - 1.0).abs() < 0.03, "{customers}");
        }
    }

    #[test]
    fn invalid_idle_costs_are_an_error() {
        let wrong = |change: &dyn Fn(&mut Station)| {
            let mut model = open(Some(WAKING), 1.0);
            change(&mut model.stations[0]);
            solve(&model, Method::Auto).unwrap_err().to_string()
        };
        assert!(wrong(&|s| s.idle_cost = Some(IdleCost { seconds: f64::NAN, power: 2 })).contains("must be finite"));
        assert!(wrong(&|s| s.idle_cost = Some(IdleCost { seconds: 1.0, power: 5 })).contains("1, 2, 3 or 4"));
        assert!(wrong(&|s| s.kind = StationKind::Delay).contains("cannot have an idle_cost"));
        assert!(
            wrong(&|s| {
                s.servers = 1;
                s.rate_multipliers = vec![1.0, 2.0];
            })
            .contains("cannot have an idle_cost")
        );
    }
}
