//! Tests the intervals of results that follow from the intervals of the demands.

use super::{scenario, terminals};
use crate::paper::server;
use brimful_core::model::Model;
use brimful_model::{Interval90, Method, Scenario, WhatIf, WhatIfOptions, what_if};

/// Sets the 95 % confidence interval of each demand of the model to the relative half width `share`.
fn with_intervals(mut model: Model, share: f64) -> Model {
    model.demand_ci95_half_width =
        model.demands.iter().map(|row| row.iter().map(|demand| demand * share).collect()).collect();
    model
}

fn ask(model: &Model, changes: &[&str], draws: usize) -> WhatIf {
    let slos = vec!["class4:mean<1s".parse().unwrap()];
    let slos = if model.classes.len() == 4 { slos } else { Vec::new() };
    what_if(model, &scenario(changes), &WhatIfOptions { draws, slos, ..WhatIfOptions::default() }).unwrap()
}

fn width(interval: Interval90) -> f64 {
    (interval.upper.unwrap() - interval.lower.unwrap()) / (interval.upper.unwrap() + interval.lower.unwrap())
}

#[test]
fn intervals_contain_the_results_of_the_means() {
    let found = ask(&with_intervals(server(0.8), 0.05), &["CPU.speed=1.2x"], 400);
    for results in [&found.before, found.after.as_ref().unwrap()] {
        let (intervals, solution) = (results.intervals.as_ref().unwrap(), results.solution.as_ref().unwrap());
        let holds =
            |interval: &Interval90, value: f64| interval.lower.unwrap() < value && value < interval.upper.unwrap();
        assert!(holds(&intervals.saturation_rate, solution.saturation_rate));
        assert!(intervals.response_time.iter().zip(&solution.response_time).all(|(i, r)| holds(i, *r)));
        let brimful_model::LoadLimit::Rate(rate) = results.headroom[0].until else { panic!("{results:?}") };
        assert!(holds(&intervals.headroom[0], rate));
        assert_eq!((intervals.draws, intervals.unstable_share), (400, 0.0));
    }
}

#[test]
fn quantiles_of_a_single_demand_match_their_formula() {
    // With one class at one station, the saturation rate is 1/D. Its 5 % quantile is 1/(D + 1.645·σ), where σ is the
    // standard error of D.
    let mut model = server(1.0);
    model.classes.truncate(1);
    model.stations.truncate(1);
    model.demands = vec![vec![0.01]];
    model.classes[0].rate = Some(10.0);
    model.demand_ci95_half_width = vec![vec![0.001]];
    let sigma = 0.001 / 1.96;
    let found = ask(&model, &[], 4000).before.intervals.unwrap().saturation_rate;
    assert!((found.lower.unwrap() - 2.0 / (0.01 + 1.645 * sigma)).abs() < 0.6, "{found:?}");
    assert!((found.upper.unwrap() - 2.0 / (0.01 - 1.645 * sigma)).abs() < 0.6, "{found:?}");
}

#[test]
fn a_ratio_is_more_precise_than_the_figures() {
    let found = ask(&with_intervals(server(0.8), 0.1), &["CPU.speed=1.05x"], 400);
    let effect = found.effect.unwrap();
    let saturation = effect.saturation_rate;
    assert!((saturation.lower.unwrap() - 1.05).abs() < 1e-9 && (saturation.upper.unwrap() - 1.05).abs() < 1e-9);
    let before = found.before.intervals.unwrap();
    for (ratio, response) in effect.response_time.iter().zip(&before.response_time) {
        assert!(width(*ratio) < 0.8 * width(*response), "{ratio:?} {response:?}");
    }
}

#[test]
fn an_interval_with_saturated_draws_is_unbounded() {
    let found = ask(&with_intervals(server(1.0), 0.1), &[], 400).before.intervals.unwrap();
    assert!(found.unstable_share > 0.05 && found.unstable_share < 0.6, "{found:?}");
    assert!(found.response_time.iter().all(|r| r.lower.is_some() && r.upper.is_none()), "{found:?}");
    assert!(found.saturation_rate.upper.is_some());
}

#[test]
fn the_same_seed_yields_the_same_intervals() {
    let model = with_intervals(server(0.8), 0.1);
    let asked = |seed| {
        let options = WhatIfOptions { seed, ..WhatIfOptions::default() };
        what_if(&model, &Scenario::default(), &options).unwrap().before.intervals.unwrap()
    };
    assert_eq!(asked(1), asked(1));
    let (one, other) = (asked(1).saturation_rate, asked(2).saturation_rate);
    assert!(one != other && (one.lower.unwrap() / other.lower.unwrap() - 1.0).abs() < 0.02);
}

#[test]
fn without_intervals_there_are_none() {
    for (model, draws) in
        [(server(1.0), 400), (with_intervals(server(1.0), 0.0), 400), (with_intervals(server(1.0), 0.1), 0)]
    {
        let found = ask(&model, &["CPU.speed=2x"], draws);
        assert!(found.before.intervals.is_none() && found.effect.is_none());
    }
}

#[test]
fn closed_and_mixed_networks_have_them_too() {
    let found = ask(&with_intervals(terminals(), 0.1), &["users.population=40"], 50);
    let (before, after) = (found.before.intervals.unwrap(), found.after.unwrap().intervals.unwrap());
    assert!(before.response_time[0].upper < after.response_time[0].upper);
    let ranged = ask(&with_intervals(terminals(), 0.1), &["cpu.speed=1x..2x:3"], 50);
    assert!(ranged.before.intervals.is_some() && ranged.curve.is_some());
}

#[test]
fn the_requested_method_is_used() {
    let options = WhatIfOptions { method: Method::Seidmann, draws: 20, ..WhatIfOptions::default() };
    let found = what_if(&with_intervals(server(0.8), 0.01), &Scenario::default(), &options).unwrap().before;
    let class4 = found.solution.unwrap().response_time[3];
    let interval = found.intervals.unwrap().response_time[3];
    assert!(interval.lower.unwrap() < class4 && class4 < interval.upper.unwrap(), "{class4} {interval:?}");
}

/// Two classes at one station. Each demand is 10 ms ± 2 ms. `correlation` is the correlation of the errors of the two
/// demands.
fn pair(correlation: f64) -> Model {
    let mut model = server(1.0);
    model.stations.truncate(1);
    model.classes.truncate(2);
    model.classes.iter_mut().for_each(|class| class.rate = Some(10.0));
    model.demands = vec![vec![0.01, 0.01]];
    model.demand_ci95_half_width = vec![vec![0.002, 0.002]];
    model.demand_correlation = vec![vec![vec![1.0, correlation], vec![correlation, 1.0]]];
    model
}

#[test]
fn correlated_errors_add_up_or_cancel() {
    let name = pair(0.0).classes[0].name.clone();
    let width_at = |correlation: f64, changes: &[&str]| {
        let found = ask(&pair(correlation), changes, 2000);
        [found.before.intervals, found.after.unwrap().intervals].map(|i| width(i.unwrap().saturation_rate))
    };
    let change = format!("{name}.rate=3x");
    let [[opposed, opposed_after], [independent, _], [alike, alike_after]] =
        [-1.0, 0.0, 1.0].map(|correlation| width_at(correlation, &[&change]));
    assert!(opposed < 1e-9, "opposite errors of the two demands cancel: {opposed}");
    // After the change, the first class has three times its rate. Opposite errors e and −e then cause the error (3·e −
    // e)/4 = e/2 of the mean demand. Equal errors e cause the error e both before and after the change.
    assert!((opposed_after / alike - 0.5).abs() < 0.05 && (alike_after / alike - 1.0).abs() < 0.05, "{opposed_after}");
    assert!((alike / independent - 2f64.sqrt()).abs() < 0.1, "{alike} {independent}");
}

#[test]
fn a_copied_class_has_the_correlations_of_its_original() {
    let name = &pair(0.0).classes[0].name;
    let asked = Scenario { classes: vec![format!("copy:rate=5,like={name}").parse().unwrap()], ..Scenario::default() };
    let model = asked.apply(&pair(0.5)).unwrap();
    assert_eq!(model.demand_correlation[0], [[1.0, 0.5, 1.0], [0.5, 1.0, 0.5], [1.0, 0.5, 1.0]]);
    assert!(what_if(&model, &Scenario::default(), &WhatIfOptions::default()).is_ok());
    let client = format!("{name}:speed=1Mbps,size=1KB,rtt=1ms").parse().unwrap();
    let model = Scenario { clients: vec![client], ..Scenario::default() }.apply(&pair(0.5)).unwrap();
    assert_eq!((model.demand_correlation.len(), model.demand_correlation[0][2].as_slice()), (3, &[1.0, 0.5, 1.0][..]));
    assert!(what_if(&model, &Scenario::default(), &WhatIfOptions::default()).is_ok());
}

#[test]
fn invalid_correlations_are_rejected() {
    for matrix in [vec![vec![1.0, 1.5], vec![1.5, 1.0]], vec![vec![1.0]], vec![vec![1.0, 0.2], vec![0.3, 1.0]]] {
        let model = Model { demand_correlation: vec![matrix], ..pair(0.0) };
        let error = what_if(&model, &Scenario::default(), &WhatIfOptions::default()).unwrap_err().to_string();
        assert!(error.contains("demand_correlation needs"), "{error}");
    }
}
