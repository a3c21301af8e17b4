//! Compares percentiles with known formulas, and with the simulator.

use crate::networks::network;
use brimful_core::model::{Model, ModelClass, Scheduling, Station, StationKind};
use brimful_model::{Method, SimulationOptions, erlang_c, response_distributions, simulate, solve};

fn one(scheduling: Scheduling, servers: u32, scv: f64, classes: &[(f64, f64)]) -> Model {
    let class = |(i, (rate, _)): (usize, &(f64, f64))| ModelClass {
        name: format!("c{i}"),
        rate: Some(*rate),
        priority: i as u32,
        ..ModelClass::default()
    };
    Model {
        stations: vec![Station { name: "s".into(), scheduling, servers, scv, ..Station::default() }],
        classes: classes.iter().enumerate().map(class).collect(),
        demands: vec![classes.iter().map(|c| c.1).collect()],
        ..Model::default()
    }
}

fn share_within(model: &Model, class: Option<usize>, seconds: f64) -> f64 {
    let solution = solve(model, Method::Auto).unwrap();
    response_distributions(model, &solution).unwrap().share_within(class, seconds)
}

fn percentile(model: &Model, class: usize, percent: f64) -> f64 {
    let solution = solve(model, Method::Auto).unwrap();
    response_distributions(model, &solution).unwrap().percentile(Some(class), percent)
}

#[test]
fn mm1_in_order_of_arrival_is_exponential() {
    let model = one(Scheduling::Fcfs, 1, 1.0, &[(8.0, 0.1)]);
    for percent in [50.0, 95.0, 99.9] {
        let expected = -0.5 * f64::ln(1.0 - percent / 100.0);
        let found = percentile(&model, 0, percent);
        assert!((found / expected - 1.0).abs() < 1e-5, "p{percent}: {found} {expected}");
    }
}

#[test]
fn mmm_in_order_of_arrival_matches_its_formula() {
    // The response time of M/M/m with Erlang's C: P(R > t) = e^−μt·(1 + C·(1 − e^−(m − 1 − a)μt)/(m − 1 − a)).
    let (m, a) = (4.0, 3.2);
    let model = one(Scheduling::Fcfs, 4, 1.0, &[(32.0, 0.1)]);
    for t in [0.05, 0.2, 0.6_f64] {
        let (c, x) = (erlang_c(4, a), m - 1.0 - a);
        let expected = (-t / 0.1).exp() * (1.0 + c * (1.0 - (-x * t / 0.1).exp()) / x);
        let found = 1.0 - share_within(&model, None, t);
        assert!((found - expected).abs() < 1e-6, "{t}: {found} {expected}");
    }
}

#[test]
fn constant_service_matches_erlangs_formula() {
    // The wait W of M/D/1 (Erlang 1909): P(W ≤ t) = (1 − ρ)·Σ (λ(kD − t))ᵏ/k!·e^(−λ(kD − t)), k = 0..=t/D.
    let model = one(Scheduling::Fcfs, 1, 0.0, &[(7.0, 0.1)]);
    for t in [0.05, 0.13, 0.36] {
        let (mut sum, mut factorial) = (0.0, 1.0);
        for k in 0..=(t / 0.1) as i32 {
            let x = 7.0 * (f64::from(k) * 0.1 - t);
            factorial *= f64::from(k.max(1));
            sum += x.powi(k) / factorial * (-x).exp();
        }
        let found = share_within(&model, None, t + 0.1);
        assert!((found - 0.3 * sum).abs() < 2e-3, "{t}: {found} {}", 0.3 * sum);
    }
    assert_eq!(share_within(&model, None, 0.099), 0.0, "no response is shorter than the constant service");
}

#[test]
fn shared_mm1_has_the_variance_of_coffman_muntz_and_trotter() {
    for rho in [0.2, 0.7, 0.9] {
        let model = one(Scheduling::Ps, 1, 1.0, &[(rho / 0.1, 0.1)]);
        let solution = solve(&model, Method::Auto).unwrap();
        let times = response_distributions(&model, &solution).unwrap();
        let mean = 0.1 / (1.0 - rho);
        // The second moment of the response time is ∫ 2t·P(R > t) dt.
        let step = mean / 50.0;
        let at = |i: u32| (f64::from(i) + 0.5) * step;
        let square: f64 = (0..4000).map(|i| 2.0 * at(i) * (1.0 - times.share_within(None, at(i))) * step).sum();
        let (found, expected) = (square / (mean * mean) - 1.0, (2.0 + rho) / (2.0 - rho));
        assert!((found / expected - 1.0).abs() < 0.01, "ρ {rho}: {found} {expected}");
    }
}

#[test]
fn a_constant_time_shifts_the_distribution() {
    let mut model = one(Scheduling::Fcfs, 1, 1.0, &[(8.0, 0.1)]);
    let delay = Station { name: "net".into(), kind: StationKind::Delay, scv: 0.0, ..Station::default() };
    model.stations.push(delay);
    model.demands.push(vec![2.0]);
    let found = percentile(&model, 0, 95.0);
    assert!((found - 2.0 - 0.5 * f64::ln(20.0)).abs() < 1e-5, "{found}");
    model.stations.remove(0);
    model.demands.remove(0);
    assert_eq!((share_within(&model, None, 1.999), share_within(&model, None, 2.0)), (0.0, 1.0));
    assert!((percentile(&model, 0, 99.0) - 2.0).abs() < 1e-6);
}

#[test]
fn the_most_urgent_class_is_not_affected_by_others() {
    let model = one(Scheduling::Preemptive, 1, 1.0, &[(4.0, 0.1), (4.0, 0.1)]);
    let found = percentile(&model, 0, 99.0);
    assert!((found / (0.1 / 0.6 * f64::ln(100.0)) - 1.0).abs() < 1e-5, "{found}");
    assert!(percentile(&model, 1, 99.0) > 2.0 * found);
}

#[test]
fn all_requests_together_are_the_mixture() {
    let model = one(Scheduling::Ps, 2, 2.0, &[(8.0, 0.01), (2.0, 0.5)]);
    let share = |class| share_within(&model, class, 0.1);
    assert!((share(None) - 0.8 * share(Some(0)) - 0.2 * share(Some(1))).abs() < 1e-12);
}

#[test]
fn invalid_arguments_yield_nan() {
    let model = one(Scheduling::Ps, 1, 1.0, &[(8.0, 0.1)]);
    let solution = solve(&model, Method::Auto).unwrap();
    let times = response_distributions(&model, &solution).unwrap();
    assert!(times.share_within(Some(1), 1.0).is_nan() && times.percentile(Some(1), 50.0).is_nan());
    assert!([0.0, 100.0, -1.0, f64::NAN].iter().all(|percent| times.percentile(None, *percent).is_nan()));
    let other = one(Scheduling::Ps, 1, 1.0, &[(1.0, 0.1), (1.0, 0.1)]);
    assert!(response_distributions(&other, &solution).is_err());
}

#[test]
fn the_simulator_agrees() {
    // Open, closed and mixed networks alternate. The header of `src/percentile.rs` has the errors of many more
    // networks.
    let mut compared = 0;
    for number in 0..9 {
        let model = network(number);
        let solution = solve(&model, Method::Auto).unwrap();
        let times = response_distributions(&model, &solution).unwrap();
        let options = SimulationOptions { precision: None, events: 400_000, ..SimulationOptions::default() };
        let found = simulate(&model, &options).unwrap();
        for (c, response) in found.response_time.iter().enumerate() {
            let response = response.as_ref().unwrap();
            for (percent, simulated) in [(50.0, response.p50), (95.0, response.p95), (99.0, response.p99)] {
                // If there is no interval, too few requests were simulated beyond this percentile.
                let Some(half) = simulated.ci95_half_width else { continue };
                let ours = times.percentile(Some(c), percent);
                let allowed = 0.1 * simulated.value + 2.0 * half;
                compared += 1;
                assert!(
                    (ours - simulated.value).abs() < allowed,
                    "network {number}, class {c}, p{percent}: {ours} {simulated:?}"
                );
            }
        }
    }
    assert!(compared >= 40, "{compared}");
}
