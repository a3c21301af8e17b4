//! Compares the formulas for servers that must be woken up with known results and with the simulator.

use brimful_core::model::{ClassKind, IdleCost, Model, ModelClass, Scheduling, Station};
use brimful_model::simulate::simulate_intervals;
use brimful_model::{
    Estimate, Method, SimulationOptions, exponential_wait, mg1, response_distributions, saturation_rate, simulate,
    solve, station_demands, wait_with_idle_cost,
};

/// S: service time of the only class, in seconds.
const DEMAND: f64 = 0.01;

fn station(servers: u32, scv: f64, idle_cost: IdleCost) -> Station {
    Station {
        name: "cpu".into(),
        servers,
        scv,
        scheduling: Scheduling::Fcfs,
        idle_cost: Some(idle_cost),
        ..Station::default()
    }
}

fn one(station: Station, rate: f64) -> Model {
    Model {
        stations: vec![station],
        classes: vec![ModelClass { name: "page".into(), rate: Some(rate), ..ModelClass::default() }],
        demands: vec![vec![DEMAND]],
        ..Model::default()
    }
}

/// A model of one station, whose servers must be woken up. The load uses the share `utilization` of the capacity that
/// background work leaves.
fn at(station: Station, utilization: f64) -> Model {
    let (cost, free) = (station.idle_cost.unwrap(), 1.0 - station.background);
    let idle = free * (1.0 - utilization);
    let demand = DEMAND + cost.seconds * idle.powi(cost.power as i32);
    let rate = utilization * free * f64::from(station.servers) / demand;
    one(station, rate)
}

fn simulated(model: &Model, events: u64) -> brimful_model::Simulation {
    simulate(model, &SimulationOptions { precision: None, events, ..SimulationOptions::default() }).unwrap()
}

/// Checks that a simulated value is within 1.5 half widths (about three standard errors) plus the relative tolerance
/// `share`.
#[track_caller]
fn assert_near(simulated: Estimate, ours: f64, share: f64) {
    let half = simulated.ci95_half_width.unwrap();
    let off = (ours - simulated.value).abs();
    assert!(off <= 1.5 * half + share * simulated.value, "computed {ours}, simulated {simulated:?}");
}

const LOADS: [f64; 4] = [0.2, 0.5, 0.8, 0.95];
const WAKING: IdleCost = IdleCost { seconds: DEMAND, power: 1 };

#[test]
fn one_server_matches_welchs_formula() {
    for rate in [0.1, 10.0, 40.0, 77.0, 99.0, 99.99] {
        for seconds in [0.001, DEMAND, 0.05] {
            let model = one(station(1, 3.0, IdleCost { seconds, power: 1 }), rate);
            let solution = solve(&model, Method::Auto).unwrap();
            let first = DEMAND + seconds;
            let utilization = rate * first / (1.0 - rate * (DEMAND - first));
            assert!((solution.utilization[0][0] / utilization - 1.0).abs() < 1e-9, "{rate} {seconds}");
            // The mean wait is λE[S²]/2 divided by 1 − λS. A share 1 − U of all requests finds the server idle and
            // takes `first` seconds on average; the others take [`DEMAND`].
            let square = 4.0 * ((1.0 - utilization) * first * first + utilization * DEMAND * DEMAND);
            let response = utilization / rate + rate * square / 2.0 / (1.0 - rate * DEMAND);
            assert!((solution.response_time[0] / response - 1.0).abs() < 1e-9, "{rate} {seconds}: {solution:?}");
        }
    }
}

#[test]
fn saturation_does_not_depend_on_the_wake_up_cost() {
    for (servers, power) in [(1, 1), (1, 4), (4, 2)] {
        let model = one(station(servers, 1.0, IdleCost { seconds: 0.05, power }), 1.0);
        let (rate, _) = saturation_rate(&model).unwrap();
        assert!((rate * DEMAND / f64::from(servers) - 1.0).abs() < 1e-12);
        assert!(solve(&one(model.stations[0].clone(), 0.999_999 * rate), Method::Auto).is_ok());
        assert!(solve(&one(model.stations[0].clone(), 1.000_001 * rate), Method::Auto).is_err());
        assert_eq!(wait_with_idle_cost(&model.stations[0], &[DEMAND], &[1.000_001 * rate]), f64::INFINITY);
    }
}

#[test]
fn results_are_continuous_in_the_wake_up_cost() {
    for scheduling in [Scheduling::Fcfs, Scheduling::Ps] {
        for (servers, background) in [(1, 0.0), (3, 0.2)] {
            let with = |idle_cost| {
                let free = f64::from(servers) * (1.0 - background);
                let station = Station { servers, background, scheduling, idle_cost, scv: 2.0, ..Station::default() };
                let mut model = one(station, 60.0 * free);
                model.classes.push(ModelClass { name: "rare".into(), rate: Some(2.0 * free), ..ModelClass::default() });
                model.demands[0].push(0.1);
                let solution = solve(&model, Method::Auto).unwrap();
                let times = response_distributions(&model, &solution).unwrap();
                (solution.response_time.clone(), times.percentile(None, 95.0))
            };
            let (plain, p95) = with(None);
            assert_eq!(with(Some(IdleCost { seconds: 0.0, power: 1 })), (plain.clone(), p95));
            let (little, _) = with(Some(IdleCost { seconds: 1e-10, power: 1 }));
            for (little, plain) in little.iter().zip(&plain) {
                assert!((little / plain - 1.0).abs() < 1e-6, "{scheduling:?} {servers}: {little} {plain}");
            }
        }
    }
}

#[test]
fn the_wait_of_the_solver_is_exceptional_wait() {
    let mut station = Station { background: 0.3, ..station(2, 2.5, IdleCost { seconds: 0.02, power: 3 }) };
    for (a, b) in [(10.0, 3.0), (60.0, 9.0), (0.5, 0.0)] {
        let model = Model {
            stations: vec![station.clone()],
            classes: [a, b]
                .map(|rate| ModelClass { name: format!("{rate}"), rate: Some(rate), ..ModelClass::default() })
                .into(),
            demands: vec![vec![DEMAND, 0.03]],
            ..Model::default()
        };
        let solution = solve(&model, Method::Auto).unwrap();
        let wait = wait_with_idle_cost(&station, &model.demands[0], &[a, b]) * (1.0 + 2.5) / 2.0;
        let under_load = station_demands(&station, &model.demands[0], &[a, b]);
        for (residence, demand) in solution.residence[0].iter().zip(under_load) {
            assert!((residence / (demand / 0.7 + wait) - 1.0).abs() < 1e-12);
        }
    }
    station.idle_cost = None;
    let (demands, rates) = ([DEMAND, 0.03], [60.0, 9.0]);
    assert_eq!(wait_with_idle_cost(&station, &demands, &rates), exponential_wait(&rates, &demands, 2, 0.3));
    station.idle_cost = Some(IdleCost { seconds: -0.005, power: 1 });
    let under_load = station_demands(&station, &demands, &rates);
    assert_eq!(wait_with_idle_cost(&station, &demands, &rates), exponential_wait(&rates, &under_load, 2, 0.3));
}

#[test]
fn waits_and_utilization_grow_with_the_rate_and_the_wake_up_cost() {
    let solved = |seconds: f64, rate: f64, servers| {
        let station = station(servers, 1.0, IdleCost { seconds, power: 1 });
        let wait = wait_with_idle_cost(&station, &[DEMAND], &[rate]);
        let solution = solve(&one(station, rate), Method::Auto).unwrap();
        (wait, solution.utilization[0][0], solution.response_time[0])
    };
    for servers in [1, 2, 8] {
        let most = f64::from(servers) / DEMAND;
        for seconds in [0.001, DEMAND, 0.04] {
            let levels: Vec<_> = (1..100).map(|i| solved(seconds, most * f64::from(i) / 100.0, servers)).collect();
            assert!(levels.windows(2).all(|w| w[0].0 < w[1].0 && w[0].1 < w[1].1), "{servers} {seconds}");
        }
        for rate in [0.1, 0.5, 0.9].map(|share| share * most) {
            let levels: Vec<_> = (1..50).map(|i| solved(0.001 * f64::from(i), rate, servers)).collect();
            assert!(levels.windows(2).all(|w| w[0].2 < w[1].2), "{servers} {rate}");
        }
    }
}

#[test]
fn one_server_is_simulated_as_it_is_computed() {
    for scv in [0.0, 1.0, 4.0] {
        for load in LOADS {
            let model = at(station(1, scv, WAKING), load);
            let (solution, found) = (solve(&model, Method::Auto).unwrap(), simulated(&model, 1_000_000));
            let times = found.response_time[0].as_ref().unwrap();
            assert_near(times.mean, solution.response_time[0], 0.0);
            assert_near(found.utilization[0][0], load, 0.0);
            // The computed percentiles must be near the simulated percentiles.
            let ours = response_distributions(&model, &solution).unwrap();
            for (percent, simulated) in [(50.0, times.p50), (90.0, times.p90), (95.0, times.p95)] {
                assert_near(simulated, ours.percentile(None, percent), 0.005);
            }
        }
    }
}

#[test]
fn several_classes_other_work_and_any_power_are_simulated_as_they_are_computed() {
    for power in 1..=4 {
        let station = Station { background: 0.2, ..station(1, 0.5, IdleCost { seconds: 0.03, power }) };
        let model = Model {
            stations: vec![station],
            classes: [30.0, 3.0]
                .map(|rate| ModelClass { name: format!("{rate}"), rate: Some(rate), ..ModelClass::default() })
                .into(),
            demands: vec![vec![DEMAND, 0.05]],
            ..Model::default()
        };
        let (solution, found) = (solve(&model, Method::Auto).unwrap(), simulated(&model, 1_000_000));
        let ours = response_distributions(&model, &solution).unwrap();
        for (c, times) in found.response_time.iter().enumerate() {
            let times = times.as_ref().unwrap();
            assert_near(times.mean, solution.response_time[c], 0.0);
            assert_near(times.p50, ours.percentile(Some(c), 50.0), 0.005);
            assert_near(times.p95, ours.percentile(Some(c), 95.0), 0.005);
            assert_near(found.utilization[0][c], solution.utilization[0][c], 0.0);
        }
    }
}

#[test]
fn several_servers_are_simulated_nearly_as_they_are_computed() {
    for servers in [2, 4] {
        for (scv, power) in [(0.0, 1), (1.0, 1), (1.0, 2)] {
            for load in LOADS {
                let model = at(station(servers, scv, IdleCost { power, ..WAKING }), load);
                let (solution, found) = (solve(&model, Method::Auto).unwrap(), simulated(&model, 1_000_000));
                let times = found.response_time[0].as_ref().unwrap();
                assert_near(times.mean, solution.response_time[0], 0.05);
                assert_near(found.utilization[0][0], load, 0.001);
                let ours = response_distributions(&model, &solution).unwrap();
                assert_near(times.p50, ours.percentile(None, 50.0), 0.08);
                assert_near(times.p95, ours.percentile(None, 95.0), 0.1);
            }
        }
    }
}

#[test]
fn shared_servers_are_simulated_nearly_as_they_are_computed() {
    for (servers, scv, mean, spread) in
        [(1, 1.0, 0.0, 0.08), (1, 0.0, 0.05, 0.12), (1, 4.0, 0.03, 0.11), (4, 1.0, 0.03, 0.08)]
    {
        for load in LOADS {
            let model = at(Station { scheduling: Scheduling::Ps, ..station(servers, scv, WAKING) }, load);
            let (solution, found) = (solve(&model, Method::Auto).unwrap(), simulated(&model, 1_000_000));
            let times = found.response_time[0].as_ref().unwrap();
            assert_near(times.mean, solution.response_time[0], mean);
            let ours = response_distributions(&model, &solution).unwrap();
            assert_near(times.p50, ours.percentile(None, 50.0), spread);
            assert_near(times.p95, ours.percentile(None, 95.0), spread);
        }
    }
}

#[test]
fn the_distribution_has_the_mean_of_the_solver() {
    for scheduling in [Scheduling::Fcfs, Scheduling::Ps] {
        for (servers, scv) in [(1, 0.0), (1, 1.0), (2, 0.5), (40, 1.0)] {
            let model = at(Station { scheduling, ..station(servers, scv, WAKING) }, 0.7);
            let solution = solve(&model, Method::Auto).unwrap();
            let times = response_distributions(&model, &solution).unwrap();
            let mean = solution.mean_response_time;
            let step = mean / 200.0;
            let tail = |i: u32| 1.0 - times.share_within(None, (f64::from(i) + 0.5) * step);
            let found: f64 = (0..6000).map(|i| tail(i) * step).sum();
            assert!((found / mean - 1.0).abs() < 0.003, "{scheduling:?} {servers} {scv}: {found} {mean}");
        }
    }
}

#[test]
fn a_lone_customer_always_wakes_the_server_up() {
    let mut model = one(station(1, 0.0, WAKING), 1.0);
    model.classes[0] = ModelClass {
        name: "alone".into(),
        kind: ClassKind::Closed,
        population: Some(1),
        think: 0.1,
        ..ModelClass::default()
    };
    let times = simulated(&model, 10_000).response_time.remove(0).unwrap();
    assert!((times.mean.value / (2.0 * DEMAND) - 1.0).abs() < 1e-9, "{times:?}");
}

#[test]
fn simulated_intervals_agree_with_the_solver() {
    let model = at(station(1, 1.0, WAKING), 0.5);
    let (mut count, mut seconds, mut work, mut intervals) = (0.0, 0.0, 0.0, 0);
    let options = SimulationOptions::default();
    simulate_intervals(&model, &options, 1.0, |interval| {
        let took = |request: &brimful_model::simulate::SimulatedRequest| request.ended.unwrap() - request.began;
        count += interval.completed.len() as f64;
        seconds += interval.completed.iter().map(took).sum::<f64>();
        work += interval.work[0][0];
        intervals += 1;
        intervals < 20_000
    })
    .unwrap();
    let response = solve(&model, Method::Auto).unwrap().mean_response_time;
    assert!((seconds / count / response - 1.0).abs() < 0.01 && (work / 20_000.0 - 0.5).abs() < 0.003, "{work}");
    // A saturated server is never idle, so no request needs the additional time.
    let (mut count, mut intervals) = (0.0, 0);
    simulate_intervals(&one(model.stations[0].clone(), 150.0), &options, 1.0, |interval| {
        count += interval.completed.len() as f64;
        intervals += 1;
        intervals < 2000
    })
    .unwrap();
    assert!((count / 2000.0 * DEMAND - 1.0).abs() < 0.01, "{count}");
}

#[test]
fn the_queue_differs_from_one_with_the_mean_cost_for_all() {
    let model = at(station(1, 1.0, WAKING), 0.8);
    let rate = model.classes[0].rate.unwrap();
    let all_pay = mg1(rate, 0.8 / rate, 1.0).unwrap().response_time;
    let response = solve(&model, Method::Auto).unwrap().mean_response_time;
    assert!(response < 0.8 * all_pay, "{response} {all_pay}");
}
