//! Interruptions of stations: formulas compared with the simulator, limits, changes, and invalid documents.

use brimful_core::model::{ClassKind, IdleCost, Interruptions, Model, ModelClass, Scheduling, Station, StationKind};
use brimful_model::{
    Change, HostSlowness, Method, ModelError, Quota, Scenario, Simulation, SimulationOptions, WhatIfOptions,
    asymptotic_bounds, balanced_job_bounds, response_distributions, saturation_rate, simulate, simulate_quota, solve,
    trajectory, what_if,
};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// Demand of a request in seconds.
const DEMAND: f64 = 0.001;

fn interruptions(per_second: f64, mean_length: f64) -> Interruptions {
    Interruptions { per_second, mean_length, length_scv: 0.5, ..Interruptions::default() }
}

/// A station that serves in the order of arrival.
fn cpu(servers: u32, scv: f64, interruptions: Interruptions) -> Station {
    let interruptions = Some(interruptions);
    Station { name: "cpu".into(), servers, scv, scheduling: Scheduling::Fcfs, interruptions, ..Station::default() }
}

fn open(rate: f64) -> ModelClass {
    ModelClass { name: "open".into(), rate: Some(rate), ..ModelClass::default() }
}

fn closed(population: u32, think: f64) -> ModelClass {
    let population = Some(population);
    ModelClass { name: "closed".into(), kind: ClassKind::Closed, population, think, ..ModelClass::default() }
}

/// A model of one station, where requests of all classes need [`DEMAND`] seconds.
fn model(station: Station, classes: Vec<ModelClass>) -> Model {
    let demands = vec![vec![DEMAND; classes.len()]];
    Model { stations: vec![station], classes, demands, ..Model::default() }
}

fn simulated(model: &Model, events: u64) -> Simulation {
    simulate(model, &SimulationOptions { events, precision: None, ..SimulationOptions::default() }).unwrap()
}

/// Mean response time of an open class at one server in the order of arrival (White & Christie 1958).
fn mean_response_time(rate: f64, scv: f64, it: Interruptions) -> f64 {
    let per_second = it.per_second + it.per_call * rate;
    let running = 1.0 - per_second * it.mean_length;
    let busy = rate * DEMAND;
    let remaining = rate * DEMAND * DEMAND * (1.0 + scv) / 2.0 / running;
    let interrupted = per_second * it.mean_length.powi(2) * (1.0 + it.length_scv) / 2.0 * running;
    DEMAND / running + (remaining + interrupted) / (running - busy)
}

#[test]
fn one_server_in_order_of_arrival_matches_white_and_christie() {
    for (it, scv) in [
        (interruptions(5.0, 0.01), 0.0),
        (Interruptions { per_call: 0.01, ..interruptions(0.0, 0.01) }, 1.0),
        (Interruptions { per_call: 0.005, length_scv: 0.0, ..interruptions(3.0, 0.02) }, 3.0),
    ] {
        for load in [0.01, 0.4, 0.8] {
            let saturation = (1.0 - it.per_second * it.mean_length) / (DEMAND + it.per_call * it.mean_length);
            let model = model(cpu(1, scv, it), vec![open(load * saturation)]);
            let solution = solve(&model, Method::Auto).unwrap();
            let expected = mean_response_time(load * saturation, scv, it);
            assert!(
                (solution.response_time[0] / expected - 1.0).abs() < 1e-9,
                "{it:?} {load}: {solution:?} {expected}"
            );
            assert!((solution.saturation_rate / saturation - 1.0).abs() < 1e-9, "{solution:?} {saturation}");
            assert!((solution.utilization[0][0] - load * saturation * DEMAND).abs() < 1e-12, "only by requests");
            assert!(solution.caveats.is_empty(), "{:?}", solution.caveats);
        }
    }
}

/// The tolerance of 4 % is several times the simulated half widths, which are at most 2 %.
#[test]
fn the_simulator_agrees_at_one_server_also_in_percentiles() {
    for (it, scv, load) in [
        (interruptions(5.0, 0.01), 0.0, 0.5),
        (Interruptions { per_call: 0.01, ..interruptions(10.0, 0.003) }, 1.0, 0.7),
        (interruptions(25.0, 0.002), 4.0, 0.3),
    ] {
        let model = model(cpu(1, scv, it), vec![open(load / DEMAND)]);
        let solution = solve(&model, Method::Auto).unwrap();
        let found = simulated(&model, 3_000_000);
        let times = found.response_time[0].as_ref().unwrap();
        let distribution = response_distributions(&model, &solution).unwrap();
        for (computed, simulated) in [
            (solution.response_time[0], &times.mean),
            (distribution.percentile(None, 50.0), &times.p50),
            (distribution.percentile(None, 95.0), &times.p95),
            (distribution.percentile(None, 99.0), &times.p99),
        ] {
            assert!((computed / simulated.value - 1.0).abs() < 0.04, "{it:?}: {computed} {simulated:?}");
        }
        assert!((found.utilization[0][0].value / load - 1.0).abs() < 0.01, "{:?}", found.utilization);
    }
}

/// An interruption stops all servers. The formula is an upper bound, and the excess is small.
#[test]
fn the_simulator_agrees_at_several_servers() {
    for order in [Scheduling::Fcfs, Scheduling::Ps] {
        for (servers, it, load) in [(4, interruptions(10.0, 0.005), 0.6), (2, interruptions(25.0, 0.002), 0.3)] {
            let station = Station { scheduling: order, ..cpu(servers, 1.0, it) };
            let model = model(station, vec![open(load * f64::from(servers) / DEMAND)]);
            let solution = solve(&model, Method::Auto).unwrap();
            let found = simulated(&model, 3_000_000);
            let mean = &found.response_time[0].as_ref().unwrap().mean;
            let error = solution.response_time[0] / mean.value - 1.0;
            assert!((-0.03..0.06).contains(&error), "{order:?} {servers}: {error} {mean:?}");
            assert!(solution.caveats[0].contains("`cpu` is approximate, as it has several servers"), "{solution:?}");
        }
    }
}

/// Service in the order of arrival: the wait for interruptions is the same for all classes. Under processor sharing,
/// long requests are delayed more; with priorities, less urgent ones.
#[test]
fn the_simulator_agrees_for_several_classes() {
    for order in [Scheduling::Fcfs, Scheduling::Ps, Scheduling::Priority, Scheduling::Preemptive] {
        let station = Station { scheduling: order, ..cpu(1, 1.0, interruptions(10.0, 0.005)) };
        let mut model = model(station, vec![open(400.0), open(60.0)]);
        model.classes[1] = ModelClass { name: "long".into(), priority: 1, ..open(60.0) };
        model.demands[0][1] = 0.005;
        let solution = solve(&model, Method::Auto).unwrap();
        let found = simulated(&model, 3_000_000);
        for class in [0, 1] {
            let mean = &found.response_time[class].as_ref().unwrap().mean;
            let error = solution.response_time[class] / mean.value - 1.0;
            assert!(error.abs() < 0.12, "{order:?} {class}: {error} {mean:?}");
        }
    }
}

/// A customer that never thinks is never elsewhere, so it always finds the station running. A customer with long think
/// times finds an interruption with the probability σ, and waits for the rest of it.
#[test]
fn one_customer_has_the_exact_response_time() {
    let it = interruptions(5.0, 0.02);
    let (running, rest) = (0.9, 0.02 * 1.5 / 2.0);
    for (think, wait) in [(0.0, 0.0), (0.005, f64::NAN), (0.05, f64::NAN), (1e4, 0.1 * rest)] {
        for method in [Method::Schweitzer, Method::Linearizer] {
            let model = model(cpu(1, 1.0, it), vec![closed(1, think)]);
            let response = solve(&model, method).unwrap().response_time[0];
            if wait.is_nan() {
                let found = simulated(&model, 3_000_000);
                let mean = &found.response_time[0].as_ref().unwrap().mean;
                assert!((response / mean.value - 1.0).abs() < 0.03, "{think}: {response} {mean:?}");
            } else {
                assert!((response / (DEMAND / running + wait) - 1.0).abs() < 1e-3, "{think}: {response}");
            }
        }
    }
}

/// The method `auto` simulates. The approximations are right for one customer, and for the capacity.
#[test]
fn closed_networks_are_simulated_and_approximated() {
    let it = interruptions(5.0, 0.02);
    for (servers, customers, think) in [(1, 10, 0.0), (1, 3, 0.1), (4, 100, 0.001), (1, 100, 0.01)] {
        let model = model(cpu(servers, 1.0, it), vec![closed(customers, think)]);
        let [simulation, linearizer, schweitzer] =
            [Method::Auto, Method::Linearizer, Method::Schweitzer].map(|method| solve(&model, method).unwrap());
        assert_eq!(simulation.method, Method::Simulation);
        for approximation in [linearizer, schweitzer] {
            let error = approximation.throughput[0] / simulation.throughput[0] - 1.0;
            assert!(error.abs() < 0.04, "{servers} {customers} {think}: {error}");
            assert!(approximation.caveats[0].contains("station `cpu` is interrupted"), "{approximation:?}");
        }
        let capacity = f64::from(servers) * 0.9 / DEMAND;
        let bounds = asymptotic_bounds(&model).unwrap()[0].bounds;
        assert!(bounds.throughput.upper <= capacity * (1.0 + 1e-9));
        let throughput = simulation.throughput[0];
        let range = 0.98 * bounds.throughput.lower..=1.02 * bounds.throughput.upper;
        assert!(range.contains(&throughput), "{bounds:?} {throughput}");
        let refused = [solve(&model, Method::Exact).unwrap_err(), solve(&model, Method::Seidmann).unwrap_err()];
        for error in refused.into_iter().chain([balanced_job_bounds(&model).unwrap_err()]) {
            assert!(matches!(error, ModelError::NoProductForm { .. }), "{error}");
            assert!(error.to_string().contains("`cpu` is interrupted"), "{error}");
        }
    }
}

#[test]
fn interruptions_per_call_follow_the_throughput_of_closed_classes() {
    let it = Interruptions { per_call: 0.01, ..interruptions(0.0, 0.02) };
    let model = model(cpu(1, 1.0, it), vec![closed(20, 0.0)]);
    // Each call needs 1 ms of service and causes 0.2 ms of interruptions.
    for method in [Method::Linearizer, Method::Auto] {
        let throughput = solve(&model, method).unwrap().throughput[0];
        assert!((throughput * 0.0012 - 1.0).abs() < 0.02, "{method}: {throughput}");
    }
    let upper = asymptotic_bounds(&model).unwrap()[0].bounds.throughput.upper;
    assert!((upper * 0.0012 - 1.0).abs() < 1e-9, "{upper}");
}

#[test]
fn mixed_networks_include_the_open_requests_that_wait() {
    let model = model(cpu(1, 1.0, interruptions(10.0, 0.005)), vec![open(400.0), closed(3, 0.05)]);
    let [simulation, linearizer] = [Method::Auto, Method::Linearizer].map(|method| solve(&model, method).unwrap());
    assert_eq!(simulation.method, Method::Simulation);
    for class in [0, 1] {
        let error = linearizer.response_time[class] / simulation.response_time[class] - 1.0;
        assert!(error.abs() < 0.08, "{class}: {error}");
    }
}

#[test]
fn a_station_that_is_never_interrupted_is_solved_as_before() {
    let never = [
        Interruptions::default(),
        Interruptions { mean_length: 1.0, length_scv: 3.0, ..Interruptions::default() },
        Interruptions { per_second: 3.0, per_call: 1.0, ..Interruptions::default() },
    ];
    for classes in [vec![open(500.0)], vec![closed(7, 0.01)], vec![open(300.0), closed(3, 0.01)]] {
        for it in never {
            let mut model = model(cpu(2, 2.0, it), classes.clone());
            let solutions = |model: &Model| {
                let methods = [Method::Auto, Method::Linearizer, Method::Simulation];
                methods.map(|method| solve(model, method).unwrap())
            };
            let with = solutions(&model);
            model.stations[0].interruptions = None;
            assert_eq!(with, solutions(&model));
        }
    }
}

/// Very short and frequent interruptions act like a slower server. Very rare and long interruptions delay few requests,
/// each by a large part of the interruption.
#[test]
fn frequent_short_interruptions_are_lost_capacity_and_rare_long_ones_are_waits() {
    for classes in [vec![open(600.0)], vec![closed(7, 0.01)]] {
        let short = model(cpu(1, 1.0, interruptions(2e5, 1e-6)), classes.clone());
        let mut slower = short.clone();
        (slower.stations[0].interruptions, slower.stations[0].background) = (None, 0.2);
        let [short, slower] = [short, slower].map(|model| solve(&model, Method::Linearizer).unwrap());
        assert!((short.response_time[0] / slower.response_time[0] - 1.0).abs() < 1e-3, "{short:?} {slower:?}");
        assert!((short.saturation_rate / slower.saturation_rate - 1.0).abs() < 1e-9);
    }
    let rate = 500.0;
    let rare = solve(&model(cpu(1, 1.0, interruptions(1e-6, 100.0)), vec![open(rate)]), Method::Auto).unwrap();
    let without = DEMAND / (1.0 - rate * DEMAND);
    let waits = 1e-6 * 100.0 * 100.0 * 1.5 / 2.0 / (1.0 - rate * DEMAND);
    assert!((rare.response_time[0] / (without + waits) - 1.0).abs() < 1e-3, "{rare:?}");
}

/// Rare interruptions may not occur at all in a simulation of limited length, so its result would ignore them.
#[test]
fn a_simulation_does_not_ignore_rare_interruptions() {
    let rare = model(cpu(1, 4.0, interruptions(1e-4, 100.0)), vec![closed(3, 0.01)]);
    let solution = solve(&rare, Method::Auto).unwrap();
    assert_eq!(solution.method, Method::Linearizer);
    assert!(solution.caveats[0].contains("`cpu` is interrupted too rarely"), "{:?}", solution.caveats);
    let found = simulate(&rare, &SimulationOptions { events: 200_000, ..SimulationOptions::default() }).unwrap();
    assert!(found.run.caveats.iter().any(|caveat| caveat.contains("interrupted too rarely")), "{:?}", found.run);
}

/// Interruptions per call are fewer at lower load, so they also limit the rate at which a station saturates.
#[test]
fn a_saturated_station_is_named_with_its_limit() {
    let it = Interruptions { per_call: 0.01, ..interruptions(5.0, 0.02) };
    let full = model(cpu(2, 1.0, it), vec![open(2_000.0)]);
    let limit = 0.9 / (0.0005 + 0.0002);
    assert!((saturation_rate(&full).unwrap().0 / limit - 1.0).abs() < 1e-9);
    let error = solve(&full, Method::Auto).unwrap_err();
    let ModelError::Unstable { station, utilization, saturation_rate } = error else { panic!("{error}") };
    assert!(station == "cpu" && (utilization / (2_000.0 / limit) - 1.0).abs() < 1e-9, "{utilization}");
    assert!((saturation_rate / limit - 1.0).abs() < 1e-9);
}

/// Servers are idle only between interruptions.
#[test]
fn interrupted_servers_may_also_have_to_wake_up() {
    let idle_cost = Some(IdleCost { seconds: 0.0005, power: 1 });
    for order in [Scheduling::Fcfs, Scheduling::Ps] {
        let it = interruptions(10.0, 0.005);
        let station = Station { scheduling: order, idle_cost, background: 0.1, ..cpu(1, 1.0, it) };
        let model = model(station, vec![open(400.0)]);
        let solution = solve(&model, Method::Auto).unwrap();
        let found = simulated(&model, 3_000_000);
        let mean = &found.response_time[0].as_ref().unwrap().mean;
        assert!((solution.response_time[0] / mean.value - 1.0).abs() < 0.05, "{order:?} {solution:?} {mean:?}");
        let used = (solution.utilization[0][0], found.utilization[0][0].value);
        assert!((used.0 / used.1 - 1.0).abs() < 0.02, "{used:?}");
    }
}

#[test]
fn a_trajectory_is_interrupted_as_the_model_says() {
    let it = Interruptions { per_call: 0.005, ..interruptions(3.0, 0.01) };
    let delay = Station { kind: StationKind::Delay, scv: 0.0, ..Station::default() };
    let rate = 500.0;
    let mut model = model(cpu(1, 1.0, it), vec![open(rate)]);
    model.stations.push(delay);
    model.demands.push(vec![0.002]);
    let mut rng = Pcg64Mcg::seed_from_u64(5);
    let mut at = 0.0;
    let arrivals: Vec<(f64, usize)> = std::iter::from_fn(|| {
        at -= (-rng.random::<f64>()).ln_1p() / rate;
        (at < 3_000.0).then_some((at, 0))
    })
    .collect();
    let requests: Vec<f64> = trajectory(&model, HostSlowness::default(), 1, arrivals.iter().copied())
        .unwrap()
        .map(|request| request.response)
        .collect();
    let mean = requests.iter().sum::<f64>() / requests.len() as f64;
    let expected = solve(&model, Method::Auto).unwrap().response_time[0];
    assert!((mean / expected - 1.0).abs() < 0.04, "{mean} {expected}");
    let paused = HostSlowness::default().with_pauses([(1.0, 0.1)]);
    let Err(error) = trajectory(&model, paused, 1, arrivals) else { panic!("pauses would count twice") };
    assert!(error.to_string().contains("leave out one of them"), "{error}");
}

#[test]
fn a_quota_cannot_be_simulated_with_interruptions() {
    let quota = Quota { servers: 0.5, period_s: 0.1 };
    let error = simulate_quota(&cpu(1, 1.0, interruptions(1.0, 0.01)), &[DEMAND], &[100.0], quota, 100, 1).unwrap_err();
    assert!(error.to_string().contains("station `cpu` has interruptions"), "{error}");
}

fn after(model: &Model, changes: &[&str]) -> Result<Model, ModelError> {
    let changes = changes.iter().map(|change| change.parse()).collect::<Result<Vec<Change>, _>>()?;
    let results = what_if(model, &Scenario { changes, ..Scenario::default() }, &WhatIfOptions::default())?;
    Ok(results.after.unwrap().model)
}

#[test]
fn changes_of_interruptions_are_those_that_are_named() {
    let it = Interruptions { per_call: 0.01, ..interruptions(2.0, 0.02) };
    let before = model(cpu(2, 1.0, it), vec![open(100.0)]);
    let changed = |changes: &[&str]| after(&before, changes).unwrap().stations[0].interruptions.unwrap();
    assert_eq!(changed(&["cpu.speed=2x", "cpu.servers=4", "rate=2x"]), it, "only named changes change interruptions");
    assert_eq!(changed(&["cpu.interruptions=0.5x"]), Interruptions { per_second: 1.0, per_call: 0.005, ..it });
    assert_eq!(changed(&["interruptions=+1/s"]), Interruptions { per_second: 3.0, ..it });
    assert_eq!(changed(&["cpu.interruptions=5/s"]), Interruptions { per_second: 5.0, per_call: 0.0, ..it });
    assert_eq!(changed(&["cpu.interruption_length=5ms"]), Interruptions { mean_length: 0.005, ..it });
    let none = after(&before, &["cpu.interruptions=0"]).unwrap();
    let plain = Model { stations: vec![Station { interruptions: None, ..none.stations[0].clone() }], ..none.clone() };
    assert_eq!(solve(&none, Method::Auto).unwrap(), solve(&plain, Method::Auto).unwrap());
    let both = ["cpu.interruptions=2/s", "cpu.interruption_length=20ms"];
    assert_eq!(
        after(&plain, &both).unwrap().stations[0].interruptions,
        Some(Interruptions { per_second: 2.0, mean_length: 0.02, ..Interruptions::default() })
    );
    for (model, change, problem) in [
        (&plain, "cpu.interruptions=2/s", "give their rate and their length"),
        (&plain, "cpu.interruptions=2x", "station without interruptions (`cpu`)"),
        (&before, "cpu.interruptions=50/s", "the share of time in interruptions 1"),
        (&before, "cpu.interruption_length=1s", "the share of time in interruptions 2"),
        (&before, "cpu.interruptions=-3/s", "the rate of interruptions -1"),
        (&before, "cpu.interruption_length=3", "500ms"),
    ] {
        let error = after(model, &[change]).unwrap_err().to_string();
        assert!(error.contains(problem), "{change}: {error}");
    }
}

#[test]
fn impossible_interruptions_are_refused() {
    let refused = |it: Interruptions| {
        let model = model(cpu(1, 1.0, it), vec![open(100.0)]);
        let error = solve(&model, Method::Auto).unwrap_err().to_string();
        assert_eq!(simulate(&model, &SimulationOptions::default()).unwrap_err().to_string(), error);
        error
    };
    let it = interruptions(2.0, 0.01);
    for bad in [-1.0, f64::NAN, f64::INFINITY] {
        assert!(refused(Interruptions { per_second: bad, ..it }).contains("interruptions per second of station `cpu`"));
        assert!(refused(Interruptions { per_call: bad, ..it }).contains("interruptions per call of station `cpu`"));
        assert!(refused(Interruptions { mean_length: bad, ..it }).contains("mean length of the interruptions"));
        assert!(refused(Interruptions { length_scv: bad, ..it }).contains("of the interruptions' lengths"));
    }
    for share in [1.0, 7.0, 1e300] {
        let error = refused(Interruptions { per_second: 100.0 * share, ..it });
        assert!(error.contains("below 1: give fewer or shorter interruptions"), "{error}");
    }
    assert!(refused(Interruptions { per_call: f64::MAX, mean_length: 1e3, per_second: 0.0, ..it }).contains("finite"));
    let mut delayed = model(cpu(1, 1.0, it), vec![open(100.0)]);
    delayed.stations[0].kind = StationKind::Delay;
    assert!(solve(&delayed, Method::Auto).unwrap_err().to_string().contains("cannot have interruptions"));
    let mut levels = model(cpu(1, 1.0, it), vec![open(100.0)]);
    levels.stations[0].rate_multipliers = vec![1.0, 2.0];
    assert!(solve(&levels, Method::Auto).unwrap_err().to_string().contains("leave out one"));
    let unknown = r#"{"per_second": 1.0, "mean_length": 0.1, "length": 3}"#;
    assert!(serde_json::from_str::<Interruptions>(unknown).is_err());
    let old = r#"{"name": "cpu", "type": "queue"}"#;
    assert_eq!(serde_json::from_str::<Station>(old).unwrap().interruptions, None);
}
