//! Checks laws that are valid for every model.

use crate::closed::with_unique_names;
use brimful_core::model::{ClassKind, Model, ModelClass, Scheduling, Station, StationKind};
use brimful_model::{Method, saturation_rate, solve_open};
use proptest::prelude::*;

/// Stable models, whose load is between 1 and 98 % of their saturation rate.
fn models() -> impl Strategy<Value = Model> {
    let station =
        (0..4u8, 1..40u32, any::<bool>(), 0.0..5.0, 0.0..0.9).prop_map(|(kind, servers, ps, scv, background)| {
            let kind = if kind == 0 { StationKind::Delay } else { StationKind::Queue };
            let scheduling = if ps { Scheduling::Ps } else { Scheduling::Fcfs };
            Station { kind, servers, scheduling, scv, background, ..Station::default() }
        });
    (prop::collection::vec(station, 1..5), 1..5usize, 0.01..0.98).prop_flat_map(|(mut stations, classes, load)| {
        for (i, station) in stations.iter_mut().enumerate() {
            station.name = format!("s{i}");
        }
        let demand = prop_oneof![1 => Just(0.0), 5 => 1e-5..1.0f64];
        let rows = prop::collection::vec(prop::collection::vec(demand, classes), stations.len());
        (Just(stations), rows, prop::collection::vec(0.01..100.0, classes), Just(load)).prop_map(
            |(stations, demands, rates, load)| {
                loaded(Model { stations, classes: open(&rates), demands, ..Model::default() }, load)
            },
        )
    })
}

fn open(rates: &[f64]) -> Vec<ModelClass> {
    let class =
        |(i, rate): (usize, &f64)| ModelClass { name: format!("c{i}"), rate: Some(*rate), ..ModelClass::default() };
    rates.iter().enumerate().map(class).collect()
}

/// Scales the rates of the model to the share `load` of its saturation rate. The mix of classes is unchanged.
fn loaded(mut model: Model, load: f64) -> Model {
    let (limit, _) = saturation_rate(&model).unwrap();
    let total: f64 = model.classes.iter().filter_map(|c| c.rate).sum();
    let factor = if limit.is_finite() { load * limit / total } else { 1.0 };
    for class in &mut model.classes {
        class.rate = class.rate.map(|r| r * factor);
    }
    model
}

fn close(a: f64, b: f64) -> bool {
    a == b || (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
}

fn methods() -> impl Strategy<Value = Method> {
    prop_oneof![Just(Method::Erlang), Just(Method::Seidmann)]
}

proptest! {
    #[test]
    fn the_operational_laws_hold(model in models(), method in methods()) {
        let s = solve_open(&model, method).unwrap();
        for (i, station) in model.stations.iter().enumerate() {
            let queue = station.kind == StationKind::Queue;
            let servers = if queue { f64::from(station.servers) } else { 1.0 };
            for (c, class) in model.classes.iter().enumerate() {
                prop_assert_eq!(Some(s.throughput[c]), class.rate);
                prop_assert!(close(s.queue_length[i][c], s.throughput[c] * s.residence[i][c]), "N = X·R");
                prop_assert!(close(s.utilization[i][c], s.throughput[c] * model.demands[i][c] / servers), "U = X·D/m");
                prop_assert!(s.residence[i][c] >= model.demands[i][c], "the residence is at least the demand");
            }
            let used: f64 = s.utilization[i].iter().sum();
            prop_assert!(!queue || used < 1.0 - station.background, "U < 1 − b");
        }
        let (x, n): (f64, f64) = (s.throughput.iter().sum(), s.queue_length.iter().flatten().sum());
        prop_assert!(close(n, x * s.mean_response_time), "Little's law for the whole network");
        prop_assert!(s.saturation_rate > x);
    }

    #[test]
    fn response_grows_with_the_rate(model in models(), method in methods(), less in 0.0..1.0) {
        let more = solve_open(&model, method).unwrap();
        let mut model = model;
        for class in &mut model.classes {
            class.rate = class.rate.map(|r| r * less);
        }
        let less = solve_open(&model, method).unwrap();
        for (a, b) in less.response_time.iter().zip(&more.response_time) {
            prop_assert!(*a <= b * (1.0 + 1e-12), "{} > {}", a, b);
        }
        prop_assert!(less.throughput.iter().sum::<f64>() == 0.0 || close(less.saturation_rate, more.saturation_rate));
    }

    #[test]
    fn with_one_server_both_methods_are_mm1(demand in 1e-6..10.0f64, rho in 0.0..0.99f64, scheduling in 0..2u8) {
        let scheduling = if scheduling == 0 { Scheduling::Ps } else { Scheduling::Fcfs };
        let station =
            Station { name: "s".into(), scheduling, ..Station::default() };
        let model = Model { stations: vec![station], classes: open(&[rho / demand]), demands: vec![vec![demand]], ..Model::default() };
        for method in [Method::Erlang, Method::Seidmann] {
            let response = solve_open(&model, method).unwrap().response_time[0];
            prop_assert!(close(response, demand / (1.0 - rho)), "{} {}", method, response);
        }
    }

    #[test]
    fn seidmann_is_never_below_erlang(model in models()) {
        let exact = solve_open(&model, Method::Erlang).unwrap();
        let approximate = solve_open(&model, Method::Seidmann).unwrap();
        for (a, e) in approximate.response_time.iter().zip(&exact.response_time) {
            prop_assert!(*a >= e * (1.0 - 1e-12));
        }
    }

    #[test]
    fn just_below_saturation_is_stable_and_just_above_is_not(model in models(), method in methods()) {
        let limited = saturation_rate(&model).unwrap().0.is_finite();
        prop_assert!(solve_open(&loaded(model.clone(), 0.999_999), method).is_ok());
        prop_assert!(!limited || solve_open(&loaded(model, 1.000_001), method).is_err());
    }

    #[test]
    fn any_model_gets_an_answer_or_an_error(model in arbitrary_model(), method in methods()) {
        match solve_open(&model, method) {
            Ok(s) => prop_assert!(s.throughput.iter().all(|x| x.is_finite() && *x >= 0.0)),
            Err(e) => prop_assert!(!e.to_string().is_empty()),
        }
        let _ = saturation_rate(&model);
    }
}

/// Numbers of which many are invalid in a document.
fn invalid_number() -> impl Strategy<Value = f64> {
    let odd = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, f64::MIN_POSITIVE, 5e-324, 0.0, -0.0, -1.0, 1.0];
    prop_oneof![2 => any::<f64>(), 2 => prop::sample::select(odd.to_vec()), 6 => 0.0..1e6f64]
}

/// Models with arbitrary numbers, most of which are invalid.
pub fn arbitrary_model() -> impl Strategy<Value = Model> {
    let station =
        (any::<bool>(), any::<bool>(), prop_oneof![0..4u32, any::<u32>()], invalid_number(), invalid_number())
            .prop_map(|(queue, ps, servers, scv, background)| Station {
                name: "s".into(),
                kind: if queue { StationKind::Queue } else { StationKind::Delay },
                servers,
                scheduling: if ps { Scheduling::Ps } else { Scheduling::Fcfs },
                scv,
                background: if background > 2.0 { 0.0 } else { background },
                ..Station::default()
            });
    let class = (0..10u8, prop::option::weighted(0.9, invalid_number())).prop_map(|(kind, rate)| ModelClass {
        name: "c".into(),
        kind: if kind == 0 { ClassKind::Closed } else { ClassKind::Open },
        rate,
        think: f64::NAN,
        ..ModelClass::default()
    });
    let row = prop::collection::vec(invalid_number(), 1..3);
    (prop::collection::vec(station, 0..3), prop::collection::vec(class, 0..3), prop::collection::vec(row, 0..3))
        .prop_map(|(stations, classes, demands)| {
            with_unique_names(Model { stations, classes, demands, ..Model::default() })
        })
}
