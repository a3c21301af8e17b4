//! Solves a network by any of the methods.
//!
//! | method | open classes | closed classes | valid | cost |
//! |---|---|---|---|---|
//! | `exact` | as `erlang` | mean value analysis (Reiser & Lavenberg 1980); several servers and rate multipliers by convolution (Buzen 1973; Reiser & Kobayashi 1975), every term of which is positive | product form | Π (N + 1) × stations × classes, × min(m, N) for m servers; memory Π (N + 1) × 8 to 100 bytes |
//! | `erlang` | Erlang's C (1917), station by station ([`crate::open_network`]) | none | any; exact in product form, elsewhere at the station where requests arrive first | stations × classes |
//! | `seidmann` | m servers as one fast server and a delay (Seidmann, Schweitzer & Shalev-Oren 1987) | the same, then exact | any if open, product form if closed; response at ρ = 0.8 is 8 to 17 % too long | as `exact` with one server per station |
//! | `schweitzer` | as `erlang` | Bard (1979) & Schweitzer (1979) | any; mostly within 5 to 10 % | iterations × stations × classes |
//! | `linearizer` | as `erlang` | Chandy & Neuse (1982) | any; in 300 random networks in product form at most 0.9 % off on average and 20 % at worst (`cargo test -p brimful-model --test it approximations`). The utilization of a station may exceed its capacity by up to half a percent | as `schweitzer` × classes × rounds |
//! | `simulation` | as [`mod@crate::simulate`] | as [`mod@crate::simulate`] | any; to within 2 %, or as 1 million events allow | a fraction of a second |
//! | `auto` | `erlang` | in product form `exact` if it is quick, else `linearizer`; out of product form `simulation` | any | at most about a second |
//!
//! Product form (Baskett, Chandy, Muntz & Palacios 1975) permits processor sharing and delays with any distribution of
//! service times. It permits first come, first served if service is exponential with the same mean for all classes.
//! `schweitzer` and `linearizer` also solve stations out of product form. They use Pollaczek & Khinchine's remaining
//! service, Lee & Longton's formula for several servers, and the rules of Cobham (1954) and Jaiswal (1968) for
//! priorities. For such stations their errors are unknown, and may be several times the true value. A caveat of the
//! solution says so. The method `auto` simulates such networks instead. A first-come-first-served station with rate
//! multipliers is solved as processor sharing. Stations whose servers must be woken up ([`crate::wakeup`]) are out
//! of product form in open networks. With closed classes or priorities, the mean of the additional time is part of
//! every demand, except in a simulation.
//!
//! Mixed networks have open and closed classes. The closed classes are solved at stations that the open classes slow
//! down (Reiser & Kobayashi 1975; Zahorjan & Wong 1981; several servers and rate multipliers, Bruell, Balbo & Afshari
//! 1984). The residence time of an open request follows from the number of closed customers. This is exact in product
//! form.
//!
//! It is an error if an exact solution would not fit in memory or would take more than half a minute. The error states
//! the memory and the time.

use crate::ModelError;
use crate::closed::{approximate, effort};
use crate::network::Network;
use crate::solution::{Method, Solution};
use crate::under_load;
use crate::{by_simulation, mixed, open_network};
use brimful_core::model::Model;

/// Solves a network of open classes, closed classes, or both.
///
/// # Errors
/// When the model is invalid, a class has no demand, open classes saturate a station, or the method cannot solve the
/// network.
pub fn solve(model: &Model, method: Method) -> Result<Solution, ModelError> {
    let network = under_load::network(model)?;
    network.check_visits()?;
    let (method, why) = match method {
        Method::Auto => choose(&network),
        chosen => (chosen, "it was asked for".into()),
    };
    if method == Method::Simulation {
        return by_simulation::solve_network(&network, &why);
    }
    if network.closed().next().is_none() {
        return open_network::solve_network(&network, method);
    }
    let (throughput, residence) = match method {
        Method::Erlang => return open_network::solve_open(model, method),
        Method::Seidmann => mixed::seidmann(&network)?,
        Method::Schweitzer => approximate::schweitzer(&network)?,
        Method::Linearizer => approximate::linearizer(&network)?,
        Method::Exact | Method::Auto | Method::Simulation => mixed::exact(&network)?,
    };
    let mut solution = Solution::new(&network, method, why, throughput, residence)?;
    if let Err(ModelError::NoProductForm { station, reason }) = network.check_product_form() {
        solution.caveats.push(format!(
            "station `{station}` {reason}: no one bounds the errors of `{method}` there, which may be several times the \
             figure; `auto` simulates such a network"
        ));
    }
    Ok(solution)
}

/// Whether this method solves the network by simulation.
pub(crate) fn is_simulated(network: &Network<'_>, method: Method) -> bool {
    let ordered = || network.closed().next().is_some() && network.check_product_form().is_err();
    method == Method::Simulation || method == Method::Auto && ordered()
}

/// Returns the method that `auto` uses for this network, and the reason.
fn choose(network: &Network<'_>) -> (Method, String) {
    if network.closed().next().is_none() {
        return (Method::Erlang, String::new());
    }
    let effort = effort(network);
    match network.check_product_form() {
        Err(ModelError::NoProductForm { station, reason }) => {
            (Method::Simulation, format!("no formula is known to hold, as station `{station}` {reason}"))
        }
        _ if effort.is_quick() => (Method::Exact, format!("{effort} are quickly gone through")),
        _ => (Method::Linearizer, format!("the exact solution would go through {effort}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{closed, is_close, model, open, queue};
    use brimful_core::model::{ModelClass, Scheduling, StationKind};

    #[test]
    fn auto_chooses_the_exact_solution_if_it_is_quick() {
        let one = |class: ModelClass| model(queue(Scheduling::Ps, 2, 1.0), &[(class, 0.1)]);
        let chosen = |model: &Model| solve(model, Method::Auto).map(|s| (s.method, s.why)).unwrap();
        assert_eq!(chosen(&one(open(5.0, 0))).0, Method::Erlang);
        let (method, why) = chosen(&one(closed(50, 1.0)));
        assert!(method == Method::Exact && why.contains("51 populations"), "{why}");
        let (method, why) = chosen(&one(closed(u32::MAX, 1.0)));
        assert!(method == Method::Linearizer && why.contains("4294967296 populations"), "{why}");
        let mut ordered = one(closed(5, 1.0));
        ordered.stations[0].scheduling = Scheduling::Fcfs;
        assert_eq!(chosen(&ordered).0, Method::Exact, "FCFS with one exponential class has a product form");
        ordered.stations[0].scv = 4.0;
        let (method, why) = chosen(&ordered);
        assert!(method == Method::Simulation && why.contains("`cpu` serves in order of arrival"), "{why}");
    }

    #[test]
    fn a_solution_that_is_too_large_is_rejected_with_its_size() {
        let crowd = vec![(closed(1_000_000, 1.0), 0.1), (closed(2_000_000, 1.0), 0.1)];
        let crowd = model(queue(Scheduling::Ps, 4, 1.0), &crowd);
        for method in [Method::Exact, Method::Seidmann] {
            let error = solve(&crowd, method).unwrap_err();
            assert!(matches!(error, ModelError::TooLarge { .. }), "{error}");
            assert!(
                error.to_string().contains("2000003000001 populations") && error.to_string().contains("linearizer")
            );
        }
        for method in [Method::Schweitzer, Method::Linearizer, Method::Auto] {
            let solution = solve(&crowd, method).unwrap();
            assert!((solution.throughput.iter().sum::<f64>() / 40.0 - 1.0).abs() < 1e-3, "{solution:?}");
        }
    }

    #[test]
    fn the_maximum_number_of_servers_is_solved_quickly() {
        let classes = [(open(1e9, 0), 1.0), (closed(1, 1.0), 1.0)];
        let endless = model(queue(Scheduling::Ps, u32::MAX, 1.0), &classes);
        for method in [Method::Auto, Method::Seidmann, Method::Linearizer] {
            let solution = solve(&endless, method).unwrap();
            let near = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-9;
            assert!(near(solution.response_time[0], 1.0) && near(solution.throughput[1], 0.5), "{solution:?}");
        }
        let error = solve(&endless, Method::Exact).unwrap_err();
        assert!(matches!(error, ModelError::TooLarge { .. }), "{error}");
    }

    #[test]
    fn only_exact_solutions_are_called_exact() {
        let why = |order, classes: &[(ModelClass, f64)], method| {
            solve(&model(queue(order, 1, 1.0), classes), method).map(|s| (s.method, s.why)).unwrap()
        };
        let alike = [(open(2.0, 1), 0.1), (open(1.0, 2), 0.1)];
        let unlike = [(open(2.0, 1), 0.1), (open(1.0, 2), 0.3)];
        let (method, reason) = why(Scheduling::Fcfs, &alike, Method::Exact);
        assert!(method == Method::Exact && !reason.contains("approximately"), "{reason}");
        let (method, reason) = why(Scheduling::Fcfs, &unlike, Method::Auto);
        assert!(
            method == Method::Erlang && reason.contains("approximately, as station `cpu` serves in order"),
            "{reason}"
        );
        let refused = solve(&model(queue(Scheduling::Fcfs, 1, 1.0), &unlike), Method::Exact).unwrap_err();
        assert!(matches!(refused, ModelError::NoProductForm { .. }), "{refused}");
    }

    #[test]
    fn no_station_exceeds_its_capacity() {
        // Without the limit of the throughput in `approximate.rs`, the rule for priorities would use 1.17 times the
        // capacity of this station.
        let classes = [(closed(3, 1.0), 0.1), (closed(4, 0.0), 0.1), (closed(5, 1.0), 0.1)];
        let mut network = model(queue(Scheduling::Priority, 2, 0.0), &classes);
        network.classes[0].priority = 2;
        let solution = solve(&network, Method::Linearizer).unwrap();
        let used: f64 = solution.utilization[0].iter().sum();
        assert!(used <= 1.0 + 0.005 + 1e-9 && used > 0.99, "{solution:?}");
        for (c, class) in network.classes.iter().enumerate() {
            let customers = solution.throughput[c] * (solution.response_time[c] + class.think);
            assert!((customers / f64::from(class.population.unwrap()) - 1.0).abs() < 1e-9, "{solution:?}");
        }
    }

    #[test]
    fn invalid_models_are_an_error() {
        let broken = |f: &dyn Fn(&mut Model), method| {
            let mut model = model(queue(Scheduling::Ps, 2, 1.0), &[(closed(3, 0.0), 0.1), (open(5.0, 1), 0.2)]);
            f(&mut model);
            solve(&model, method).unwrap_err().to_string()
        };
        let auto = Method::Auto;
        assert!(broken(&|m| m.classes[0].population = Some(0), auto).contains("population of class `c of 3` is 0"));
        assert!(broken(&|m| m.classes[0].population = None, auto).contains("needs a population"));
        assert!(broken(&|m| m.classes[0].think = -1.0, auto).contains("think time of class `c of 3`"));
        assert!(broken(&|m| m.demands[0][0] = 0.0, auto).contains("`c of 3` visits no station"));
        assert!(
            broken(&|m| m.demands[0][1] = f64::NAN, auto).contains("demand of class `o1 of 5` at station `cpu` is NaN")
        );
        assert!(broken(&|m| m.classes[1].rate = Some(10.0), auto).contains("`cpu` cannot keep up"));
        assert!(broken(&|m| m.stations[0].rate_multipliers = vec![1.0, 0.0], auto).contains("rate multiplier"));
        assert!(broken(&|m| m.stations[0].rate_multipliers = vec![1.0, 2.0], auto).contains("count its servers twice"));
        assert!(broken(&|m| m.stations[0].rate_multipliers = vec![1.0; 10_001], auto).contains("at most 10,000"));
        assert!(
            broken(&|m| m.classes[1].name = m.classes[0].name.clone(), auto)
                .contains("two classes are called `c of 3`")
        );
        assert!(broken(&|_| (), Method::Erlang).contains("`c of 3` is closed"));
        let ordered = broken(&|m| m.stations[0].scheduling = Scheduling::Fcfs, Method::Exact);
        assert!(ordered.contains("unequal demands") && ordered.contains("simulation"), "{ordered}");
        assert!(broken(&|m| m.demands[0][0] = 5e-324, auto).contains("must be finite"));
    }

    #[test]
    fn a_closed_class_without_queues_only_thinks() {
        let mut idle = model(queue(Scheduling::Ps, 1, 1.0), &[(closed(6, 1.0), 2.0)]);
        idle.stations[0].kind = StationKind::Delay;
        for method in [Method::Auto, Method::Exact, Method::Seidmann, Method::Schweitzer, Method::Linearizer] {
            let solution = solve(&idle, method).unwrap();
            assert!(is_close(solution.throughput[0], 2.0) && is_close(solution.response_time[0], 2.0), "{solution:?}");
            assert_eq!((solution.saturation_rate, solution.bottleneck.as_str()), (f64::INFINITY, ""));
        }
    }
}
