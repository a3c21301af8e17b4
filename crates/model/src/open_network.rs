//! Open networks with several classes: requests arrive at given rates.
//!
//! Each station is solved separately (Jackson 1957; Baskett, Chandy, Muntz & Palacios, 1975). This is exact for
//! processor sharing with any distribution of service times, and for exponential FCFS stations with equal demands of
//! all classes. In other networks, arrivals at each station are assumed to be Poisson, as at the first station.
//! `residence.rs` has the rules for several servers (Erlang's C or Seidmann's approximation), for first come, first
//! served with any variability of service, and for priorities. Cost: stations × classes (× classes where the order of
//! service matters).
//!
//! Background work b slows a queue to 1 − b of its nominal rate. A delay station has no capacity, so it has no
//! background work. Matrices are stations × classes. Times are in seconds, rates per second.

use crate::ModelError;
use crate::network::{Network, check_open, mix};
use crate::residence::{MustWait, StateAtArrival, residence};
use crate::solution::{Method, Solution};
use crate::station::{max_speed, products};
use brimful_core::model::{Model, Scheduling, StationKind};

/// Solves an open network. Several servers are solved by Erlang's C unless the method is Seidmann's. Means over all
/// requests weight the classes by their rates, or equally if all rates are 0.
///
/// # Errors
/// When the model is invalid, a class is closed, or a station is saturated. With the method `exact`, also when a
/// station is out of product form.
pub fn solve_open(model: &Model, method: Method) -> Result<Solution, ModelError> {
    check_open(model)?;
    solve_network(&Network::new(model)?, method)
}

/// Solves a network without closed classes.
pub(crate) fn solve_network(network: &Network<'_>, method: Method) -> Result<Solution, ModelError> {
    let (method, must_wait) = match method {
        Method::Seidmann => (method, MustWait::Seidmann),
        Method::Exact => (method, MustWait::Erlang),
        _ => (Method::Erlang, MustWait::Erlang),
    };
    let alone = "no class is closed, so each station can be solved on its own";
    let why = match network.check_product_form() {
        Err(error) if method == Method::Exact => return Err(error),
        Err(ModelError::NoProductForm { station, reason }) => {
            format!("{alone}; approximately, as station `{station}` {reason}")
        }
        _ => alone.into(),
    };
    let residence = (0..network.demands.len()).map(|k| station(network, k, must_wait)).collect();
    let mut solution = Solution::new(network, method, why, network.rates.clone(), residence)?;
    solution.caveats.extend(approximate(network));
    Ok(solution)
}

/// Returns a caveat if the formulas are approximations. They are approximations at stations of several servers out of
/// product form, and where arrivals are not Poisson because of another station out of product form.
fn approximate(network: &Network<'_>) -> Option<String> {
    let stations = || (0..network.demands.len()).filter(|k| network.model.stations[*k].kind == StationKind::Queue);
    let name = |k: usize| &network.model.stations[k].name;
    let visits = |k: usize, c: usize| network.demands[k][c] * network.rates[c] > 0.0;
    let share_class = |j: usize, k: usize| (0..network.rates.len()).any(|c| visits(j, c) && visits(k, c));
    let several = |k: &usize| max_speed(&network.model.stations[*k]) != 1.0 && network.no_product_form(*k).is_some();
    let before = |k: usize| stations().find(|j| *j < k && network.no_product_form(*j).is_some() && share_class(*j, k));
    let inexact = |k: &usize| network.is_interruption_approximate(*k);
    if let Some(k) = stations().find(inexact) {
        return Some(format!(
            "the wait for interruptions of station `{}` is approximate, as it {}; `simulation` tells",
            name(k),
            if max_speed(&network.model.stations[k]) == 1.0 {
                "does not serve exponential requests of equal demand, or not in order of arrival"
            } else {
                "has several servers"
            }
        ));
    }
    let several = stations().find(several).map(|k| {
        format!("station `{}` {} at several servers", name(k), network.no_product_form(k).unwrap_or_default())
    });
    let bunched = || {
        let (k, j) = stations().find_map(|k| Some((k, before(k)?)))?;
        Some(format!("requests arrive at station `{}` when they leave `{}`, not at random", name(k), name(j)))
    };
    let where_ = several.or_else(bunched)?;
    Some(format!(
        "{where_}: response times are approximate, with an error of at most {USUAL_ERROR_PERCENT} % in nine of ten random networks and of \
         {WORST_ERROR_PERCENT} % in the worst one; `simulation` has no such error"
    ))
}

impl Network<'_> {
    /// Whether the formula for the wait for interruptions of station `k` is an approximation. It is exact at one server
    /// if service is in the order of arrival, or if it is exponential with equal demands of all classes.
    fn is_interruption_approximate(&self, k: usize) -> bool {
        let station = &self.model.stations[k];
        if self.interrupted[k].is_none() {
            return false;
        }
        let demands = || self.demands[k].iter().filter(|demand| **demand > 0.0);
        let is_exponential = self.scv[k] == 1.0 && demands().is_sorted_by(|a, b| a == b);
        let is_exact = match station.scheduling {
            Scheduling::Fcfs => true,
            Scheduling::Ps => is_exponential,
            Scheduling::Priority | Scheduling::Preemptive => false,
        };
        max_speed(station) != 1.0 || station.idle_cost.is_some() || !is_exact
    }
}

/// Error of approximate mean response times in random networks, in percent: 90 % of the classes have at most this
/// error. The test `tests/it/ordered.rs` checks it.
const USUAL_ERROR_PERCENT: u32 = 12;
/// Largest error of an approximate mean response time in random networks, in percent. The test `tests/it/ordered.rs`
/// checks it.
const WORST_ERROR_PERCENT: u32 = 40;

/// Returns the rate of all classes together at which the first station saturates, and the station's name. The
/// proportions of the classes are those of their rates, or equal if all rates are 0. The network may already be
/// saturated. If no queue has any work, the rate is infinite and the name is empty.
pub fn saturation_rate(model: &Model) -> Result<(f64, String), ModelError> {
    check_open(model)?;
    let network = Network::unchecked_stability(model)?;
    let (rate, bottleneck) = network.capacity(&mix(&network.rates));
    Ok((rate, network.name(bottleneck)))
}

/// The residence time R of each class at station `k`, in seconds.
fn station(network: &Network<'_>, k: usize, must_wait: MustWait) -> Vec<f64> {
    let busy: Vec<f64> = products(&network.demands[k], &network.rates).collect();
    let waiting = vec![0.0; busy.len()];
    (0..busy.len())
        .map(|c| residence(network, k, c, must_wait, &StateAtArrival { busy: &busy, waiting: &waiting }))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use brimful_core::model::{ClassKind, ModelClass, Station};

    fn station(servers: u32, scheduling: Scheduling, scv: f64, background: f64) -> Station {
        Station { name: "CPU".into(), servers, scheduling, scv, background, ..Station::default() }
    }

    fn model(station: Station, classes: &[(f64, f64)]) -> Model {
        let class = |(i, (rate, _)): (usize, &(f64, f64))| ModelClass {
            name: format!("c{i}"),
            rate: Some(*rate),
            ..ModelClass::default()
        };
        Model {
            stations: vec![station],
            classes: classes.iter().enumerate().map(class).collect(),
            demands: vec![classes.iter().map(|c| c.1).collect()],
            ..Model::default()
        }
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-12 * b.abs()
    }

    #[test]
    fn fcfs_is_pollaczek_khinchine_with_one_server() {
        for scv in [0.0, 0.5, 1.0, 4.0] {
            let solution = solve_open(&model(station(1, Scheduling::Fcfs, scv, 0.0), &[(7.0, 0.1)]), Method::Erlang);
            let wait = 7.0 * 0.1 * 0.1 * (1.0 + scv) / (2.0 * 0.3);
            assert!(close(solution.unwrap().response_time[0], 0.1 + wait), "scv {scv}");
        }
    }

    #[test]
    fn under_fcfs_all_visiting_classes_wait_equally_long() {
        let classes = [(1.0, 0.1), (0.5, 0.8), (100.0, 0.0)];
        let residence = solve_open(&model(station(2, Scheduling::Fcfs, 1.0, 0.0), &classes), Method::Erlang);
        let residence = residence.unwrap().residence.remove(0);
        let wait = crate::exponential_wait(&[1.0, 0.5], &[0.1, 0.8], 2, 0.0);
        assert!(close(residence[0], 0.1 + wait) && close(residence[1], 0.8 + wait));
        assert_eq!(residence[2], 0.0);
    }

    #[test]
    fn under_fcfs_short_requests_wait_for_long_ones() {
        // Pollaczek and Khinchine: the mean wait is λE[S²]/2 divided by 1 − ρ. With 40 requests/s of 0.01 s and 0.8/s
        // of 0.5 s, λE[S²]/2 = (40·0.01² + 0.8·0.5²)·(1 + scv)/2 and 1 − ρ = 0.2.
        for scv in [0.0, 1.0, 3.0] {
            let unequal = model(station(1, Scheduling::Fcfs, scv, 0.0), &[(40.0, 0.01), (0.8, 0.5)]);
            let response = solve_open(&unequal, Method::Erlang).unwrap().response_time;
            let wait = 0.51 * (1.0 + scv);
            assert!(close(response[0], 0.01 + wait) && close(response[1], 0.5 + wait), "{response:?}");
        }
    }

    #[test]
    fn a_total_scv_is_that_of_all_classes_together() {
        let classes = [(1.0, 0.1), (0.5, 0.8)];
        let total = |total| Station { total_scv: Some(total), ..station(2, Scheduling::Fcfs, 1.0, 0.0) };
        let response = |station| solve_open(&model(station, &classes), Method::Erlang).map(|s| s.response_time);
        // Constant service times of 0.1 s and 0.8 s already cause an scv of 1.5·0.33/0.5² − 1 = 0.98 over both classes,
        // so a smaller total is an error.
        for scv in [1.0, 4.0] {
            let wait = crate::mmm_wait(1.5, 0.5 / 1.5, 2, 0.0) * (1.0 + scv) / 2.0;
            let found = response(total(scv)).unwrap();
            assert!(close(found[0], 0.1 + wait) && close(found[1], 0.8 + wait), "{found:?}");
        }
        let impossible = response(total(0.97)).unwrap_err().to_string();
        assert!(impossible.contains("alone make it 0.980") && impossible.contains("`scv`"), "{impossible}");
        let both = Station { scv: 2.0, ..total(4.0) };
        assert!(response(both).unwrap_err().to_string().contains("both `scv` and `total_scv`"));
        let mut closed = model(total(4.0), &classes);
        let class = &mut closed.classes[0];
        (class.kind, class.rate, class.population) = (ClassKind::Closed, None, Some(3));
        assert!(crate::solve(&closed, Method::Auto).unwrap_err().to_string().contains("before the network is solved"));
    }

    #[test]
    fn background_is_a_slower_server() {
        for scheduling in [Scheduling::Ps, Scheduling::Fcfs] {
            for method in [Method::Erlang, Method::Seidmann] {
                let shared = solve_open(&model(station(3, scheduling, 2.0, 0.6), &[(4.0, 0.2)]), method).unwrap();
                let slower = solve_open(&model(station(3, scheduling, 2.0, 0.0), &[(4.0, 0.5)]), method).unwrap();
                assert!(close(shared.response_time[0], slower.response_time[0]));
                assert!(close(shared.saturation_rate, 3.0 * 0.4 / 0.2));
                assert!(close(shared.utilization[0][0], 4.0 * 0.2 / 3.0), "utilization refers to the nominal capacity");
            }
        }
    }

    #[test]
    fn without_load_a_request_takes_its_demand_and_the_mix_is_even() {
        let solution =
            solve_open(&model(station(1, Scheduling::Fcfs, 1.0, 0.0), &[(0.0, 0.1), (0.0, 0.3)]), Method::Erlang);
        let solution = solution.unwrap();
        assert_eq!(solution.response_time, [0.1, 0.3]);
        assert!(close(solution.saturation_rate, 5.0) && close(solution.mean_response_time, 0.2));
    }

    #[test]
    fn without_a_loaded_queue_nothing_saturates() {
        let mut idle = model(station(1, Scheduling::Ps, 1.0, 0.0), &[(5.0, 2.0)]);
        idle.stations[0].kind = StationKind::Delay;
        let solution = solve_open(&idle, Method::Erlang).unwrap();
        assert_eq!((solution.saturation_rate, solution.bottleneck.as_str()), (f64::INFINITY, ""));
        assert_eq!(solution.utilization, [[10.0]], "a delay's utilization is the number present");
        assert_eq!(saturation_rate(&idle).unwrap(), (f64::INFINITY, String::new()));
    }

    #[test]
    fn a_station_that_cannot_keep_up_is_named_with_its_limit() {
        let full = model(station(2, Scheduling::Ps, 1.0, 0.0), &[(20.0, 0.1)]);
        let error = solve_open(&full, Method::Erlang).unwrap_err();
        assert!(
            matches!(&error, ModelError::Unstable { station, utilization, .. } if station == "CPU" && *utilization == 1.0)
        );
        assert!(error.to_string().contains("`CPU`") && error.to_string().contains("20.00"), "{error}");
        assert_eq!(
            saturation_rate(&full).unwrap(),
            (20.0, "CPU".to_string()),
            "the saturation rate of an unstable network exists"
        );
    }

    #[test]
    fn invalid_models_are_an_error() {
        let good = || model(station(1, Scheduling::Ps, 1.0, 0.0), &[(1.0, 0.1)]);
        let broken = |f: &dyn Fn(&mut Model)| {
            let mut model = good();
            f(&mut model);
            solve_open(&model, Method::Erlang).unwrap_err().to_string()
        };
        assert!(solve_open(&good(), Method::Erlang).is_ok());
        assert!(broken(&|m| m.demands[0][0] = -0.1).contains("demand of class `c0`"));
        assert!(broken(&|m| m.demands[0][0] = f64::NAN).contains("NaN"));
        assert!(broken(&|m| m.demands[0].clear()).contains("0 demands for 1 classes"));
        assert!(broken(&|m| m.demands.clear()).contains("rows of demands"));
        assert!(broken(&|m| m.classes.clear()).contains("needs stations and classes"));
        assert!(broken(&|m| m.classes[0].kind = ClassKind::Closed).contains("`c0` is closed"));
        assert!(broken(&|m| m.classes[0].rate = None).contains("needs a rate"));
        assert!(broken(&|m| m.classes[0].rate = Some(f64::INFINITY)).contains("rate of class `c0`"));
        assert!(broken(&|m| m.stations[0].servers = 0).contains("at least 1"));
        assert!(broken(&|m| m.stations[0].background = 1.0).contains("below 1"));
        assert!(broken(&|m| m.stations[0].scv = -1.0).contains("variation"));
    }
}
