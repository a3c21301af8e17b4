//! Checks laws of networks with closed classes for every method, and the robustness of the solvers.

use brimful_core::model::{ClassKind, Model, ModelClass, Scheduling, Station, StationKind};
use brimful_model::{
    Method, ModelError, SimulationOptions, Solution, asymptotic_bounds, balanced_job_bounds, simulate, solve,
    solve_open,
};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

/// A queue with processor sharing.
pub fn queue(name: &str, servers: u32) -> Station {
    Station { name: name.into(), servers, ..Station::default() }
}

/// A delay station, where no request waits.
pub fn delay(name: &str) -> Station {
    Station { kind: StationKind::Delay, ..queue(name, 1) }
}

/// A closed class of `population` customers with a mean think time of `think` seconds.
pub fn closed_class(name: &str, population: u32, think: f64) -> ModelClass {
    ModelClass {
        name: name.into(),
        kind: ClassKind::Closed,
        population: Some(population),
        think,
        ..ModelClass::default()
    }
}

/// Relative errors of `method`, compared with the exact solution, in 300 random networks with at most `servers` servers
/// at a station. Returns the mean and the largest error of the throughputs X, and then of the response times R.
fn errors(method: Method, servers: u32) -> [(f64, f64); 2] {
    let mut runner = TestRunner::deterministic();
    let models: Vec<Model> =
        (0..300).map(|_| closed_models(servers).new_tree(&mut runner).unwrap().current()).collect();
    let relative = |of: fn(&Solution) -> &Vec<f64>| {
        let error = |model: &Model| -> Vec<f64> {
            let (exact, ours) = (solve(model, Method::Exact).unwrap(), solve(model, method).unwrap());
            of(&ours).iter().zip(of(&exact)).map(|(a, e)| (a / e - 1.0).abs()).collect()
        };
        let errors: Vec<f64> = models.iter().flat_map(error).collect();
        (errors.iter().sum::<f64>() / errors.len() as f64, errors.iter().copied().fold(0.0, f64::max))
    };
    [relative(|s| &s.throughput), relative(|s| &s.response_time)]
}

#[test]
fn approximations_are_as_good_as_their_documentation_says() {
    let within = |errors: [(f64, f64); 2], limits: [(f64, f64); 2]| {
        errors.iter().zip(limits).all(|(error, limit)| error.0 <= limit.0 && error.1 <= limit.1)
    };
    for (method, servers, limits) in [
        (Method::Linearizer, 1, [(0.002, 0.05), (0.003, 0.05)]),
        (Method::Linearizer, 8, [(0.006, 0.20), (0.009, 0.20)]),
        (Method::Schweitzer, 1, [(0.025, 0.30), (0.04, 0.40)]),
        (Method::Schweitzer, 8, [(0.025, 0.30), (0.04, 0.40)]),
    ] {
        let errors = errors(method, servers);
        assert!(within(errors, limits), "{method} {servers}: {errors:?}");
    }
}

#[test]
fn bounds_are_valid_out_of_product_form() {
    let rough = |order| Station { scheduling: order, scv: 9.0, ..queue("a", 1) };
    let two = |classes: Vec<ModelClass>, order| {
        let demands = [1.0, 0.3].map(|d| vec![d; classes.len()]).to_vec();
        Model { stations: vec![rough(order), queue("b", 1)], classes, demands, ..Model::default() }
    };
    // With one class, the asymptotic bounds are valid for any distribution of service times, not only in product form.
    let one = two(vec![closed_class("c", 6, 2.0)], Scheduling::Fcfs);
    let bounds = asymptotic_bounds(&one).unwrap()[0].bounds;
    let options = SimulationOptions { precision: None, events: 400_000, ..SimulationOptions::default() };
    let found = simulate(&one, &options).unwrap().throughput[0].value;
    assert!(bounds.throughput.lower < 0.99 * found && found < 0.99 * bounds.throughput.upper, "{bounds:?} {found}");
    assert!(matches!(balanced_job_bounds(&one), Err(ModelError::NoProductForm { .. })));
    // With several classes, a class may never be served, so its lower bound of X is 0.
    let urgent = ModelClass { priority: 1, ..closed_class("d", 6, 0.0) };
    let both = two(vec![closed_class("c", 6, 2.0), urgent], Scheduling::Priority);
    let bounds = asymptotic_bounds(&both).unwrap()[0].bounds;
    assert_eq!((bounds.throughput.lower, bounds.response_time.upper), (0.0, f64::INFINITY));
    assert_eq!((bounds.throughput.upper, bounds.response_time.lower), (1.0, 4.0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn the_operational_laws_hold(model in mixed_models(), method in closed_methods()) {
        let s = solve(&model, method).unwrap();
        for (c, class) in model.classes.iter().enumerate() {
            let present: f64 = s.queue_length.iter().map(|row| row[c]).sum();
            prop_assert!(close(present, s.throughput[c] * s.response_time[c], 1e-9), "Little's law for one class");
            if let Some(n) = class.population {
                let thinking = s.throughput[c] * class.think;
                prop_assert!(close(present + thinking, f64::from(n), 1e-9), "{} of {n} customers exist", present + thinking);
            }
        }
        for (k, station) in model.stations.iter().enumerate() {
            let used: f64 = s.utilization[k].iter().sum();
            let most = if station.kind == StationKind::Delay { f64::INFINITY } else { 1.0 - station.background };
            let over = if method == Method::Linearizer { 0.005 } else { 1e-9 };
            prop_assert!(used <= most * (1.0 + over), "U = {used}");
            for (c, demand) in model.demands[k].iter().enumerate() {
                prop_assert!(s.residence[k][c] >= demand * (1.0 - 1e-9), "the residence is at least the demand");
            }
        }
        let (x, n): (f64, f64) = (s.throughput.iter().sum(), s.queue_length.iter().flatten().sum());
        prop_assert!(close(n, x * s.mean_response_time, 1e-9), "Little's law for the whole network");
    }

    #[test]
    fn bounds_contain_the_exact_result(model in closed_models(4)) {
        let exact = solve(&model, Method::Exact).unwrap();
        let mut bounds: Vec<_> = asymptotic_bounds(&model).unwrap().iter().map(|b| b.bounds).collect();
        let single = model.classes.len() == 1 && model.stations.iter().all(|s| s.servers == 1);
        if single {
            let tighter = balanced_job_bounds(&model).unwrap();
            prop_assert!(tighter.throughput.lower >= bounds[0].throughput.lower * (1.0 - 1e-9));
            prop_assert!(tighter.throughput.upper <= bounds[0].throughput.upper * (1.0 + 1e-9));
            bounds.push(tighter);
        }
        for (i, bounds) in bounds.iter().enumerate() {
            let c = i % model.classes.len();
            for (range, value) in [(bounds.throughput, exact.throughput[c]), (bounds.response_time, exact.response_time[c])] {
                prop_assert!(range.lower <= value * (1.0 + 1e-9), "{range:?} {value}");
                prop_assert!(value <= range.upper * (1.0 + 1e-9), "{range:?} {value}");
            }
        }
    }

    #[test]
    fn the_order_of_the_classes_does_not_matter(model in mixed_models(), method in closed_methods()) {
        let classes = model.classes.len();
        let mut turned = model.clone();
        turned.classes.rotate_left(1);
        turned.demands.iter_mut().for_each(|row| row.rotate_left(1));
        let (one, other) = (solve(&model, method).unwrap(), solve(&turned, method).unwrap());
        // Exact solutions differ only by rounding errors. Solutions by a fixed point differ by its tolerance.
        let tolerance = if method == Method::Exact || method == Method::Seidmann { 1e-9 } else { 1e-4 };
        for c in 0..classes {
            let c2 = (c + classes - 1) % classes;
            prop_assert!(close(one.throughput[c], other.throughput[c2], tolerance));
            for k in 0..model.stations.len() {
                prop_assert!(close(one.residence[k][c], other.residence[k][c2], tolerance));
            }
        }
    }

    #[test]
    fn the_order_of_the_stations_does_not_matter(model in mixed_models(), method in closed_methods()) {
        let mut turned = model.clone();
        turned.stations.rotate_left(1);
        turned.demands.rotate_left(1);
        let (one, mut other) = (solve(&model, method).unwrap(), solve(&turned, method).unwrap());
        for rows in [&mut other.residence, &mut other.queue_length, &mut other.utilization] {
            rows.rotate_right(1);
        }
        let tolerance = if method == Method::Exact || method == Method::Seidmann { 1e-9 } else { 1e-4 };
        agree(&one, &other, tolerance)?;
    }

    #[test]
    fn time_is_a_matter_of_units(model in mixed_models(), method in closed_methods(), unit in -9..4i32) {
        let unit = 10f64.powi(unit);
        let mut scaled = model.clone();
        scaled.demands.iter_mut().flatten().for_each(|d| *d *= unit);
        for class in &mut scaled.classes {
            class.think *= unit;
            class.rate = class.rate.map(|r| r / unit);
        }
        let (one, mut other) = (solve(&model, method).unwrap(), solve(&scaled, method).unwrap());
        other.throughput.iter_mut().for_each(|x| *x *= unit);
        other.response_time.iter_mut().chain(other.residence.iter_mut().flatten()).for_each(|r| *r /= unit);
        let tolerance = if method == Method::Exact || method == Method::Seidmann { 1e-9 } else { 1e-4 };
        agree(&one, &other, tolerance)?;
    }

    #[test]
    fn constant_multipliers_are_a_plain_station(model in mixed_models(), method in closed_methods(), levels in 1..4usize) {
        let mut same = model.clone();
        for station in same.stations.iter_mut().filter(|s| s.kind == StationKind::Queue && s.servers == 1) {
            station.rate_multipliers = vec![1.0; levels];
        }
        let tolerance = if method == Method::Exact || method == Method::Seidmann { 1e-9 } else { 1e-4 };
        agree(&solve(&model, method).unwrap(), &solve(&same, method).unwrap(), tolerance)?;
    }

    #[test]
    fn servers_are_multipliers_that_count_up(model in mixed_models()) {
        let mut same = model.clone();
        for station in same.stations.iter_mut().filter(|s| s.kind == StationKind::Queue) {
            station.rate_multipliers = (1..=station.servers).map(f64::from).collect();
            station.servers = 1;
        }
        let mut plain = solve(&model, Method::Exact).unwrap();
        let mut counted = solve(&same, Method::Exact).unwrap();
        // Utilization is not compared, because the two models divide it by different numbers of servers.
        plain.utilization.clear();
        counted.utilization.clear();
        agree(&plain, &counted, 1e-9)?;
    }

    #[test]
    fn open_classes_that_never_come_change_nothing(model in closed_models(4), method in closed_methods(), demand in 0.01..1.0) {
        let mut mixed = model.clone();
        mixed.classes.push(ModelClass { name: "open".into(), rate: Some(0.0), ..ModelClass::default() });
        mixed.demands.iter_mut().for_each(|row| row.push(demand));
        let (closed, mixed) = (solve(&model, method).unwrap(), solve(&mixed, method).unwrap());
        for (c, x) in closed.throughput.iter().enumerate() {
            prop_assert!(close(*x, mixed.throughput[c], 1e-9));
        }
    }

    #[test]
    fn a_lone_customer_who_hardly_comes_leaves_the_open_classes_alone(model in mixed_models()) {
        let mut alone = model.clone();
        let open: Vec<bool> = model.classes.iter().map(|c| c.kind == ClassKind::Open).collect();
        let mut model = model;
        for class in model.classes.iter_mut().filter(|c| c.kind == ClassKind::Closed) {
            (class.population, class.think) = (Some(1), 1e12);
        }
        let keep = |c: &usize| open[*c];
        let kept: Vec<usize> = (0..open.len()).filter(keep).collect();
        alone.classes = kept.iter().map(|c| alone.classes[*c].clone()).collect();
        alone.demands = alone.demands.iter().map(|row| kept.iter().map(|c| row[*c]).collect()).collect();
        for method in [Method::Exact, Method::Linearizer] {
            let (mixed, alone) = (solve(&model, method).unwrap(), solve_open(&alone, Method::Erlang).unwrap());
            for (i, c) in kept.iter().enumerate() {
                prop_assert!(close(alone.response_time[i], mixed.response_time[*c], 1e-6), "{method}");
            }
        }
    }

    #[test]
    fn more_customers_bring_more_throughput_and_more_waiting(model in closed_models(4)) {
        // With several classes, an additional customer can even speed up another class. So the law is checked only for
        // one class.
        let mut model = model;
        model.classes.truncate(1);
        model.demands.iter_mut().for_each(|row| row.truncate(1));
        let fewer = solve(&model, Method::Exact).unwrap();
        model.classes[0].population = model.classes[0].population.map(|n| n + 1);
        let more = solve(&model, Method::Exact).unwrap();
        prop_assert!(more.throughput[0] >= fewer.throughput[0] * (1.0 - 1e-12));
        prop_assert!(more.response_time[0] >= fewer.response_time[0] * (1.0 - 1e-12));
    }

    #[test]
    fn any_order_of_service_settles_and_conserves(model in ordered_models()) {
        let s = match solve(&model, Method::Linearizer) {
            Err(ModelError::Starved { .. }) => return Ok(()),
            solved => solved.unwrap(),
        };
        for (station, used) in model.stations.iter().zip(&s.utilization) {
            let delay = station.kind == StationKind::Delay;
            prop_assert!(delay || used.iter().sum::<f64>() <= (1.0 - station.background) * 1.005, "{used:?}");
        }
        for (c, class) in model.classes.iter().enumerate() {
            let n = class.population.map_or(s.throughput[c] * s.response_time[c], f64::from);
            prop_assert!(close(s.throughput[c] * (s.response_time[c] + class.think), n, 1e-9));
        }
    }

    #[test]
    fn any_model_gets_an_answer_or_an_error(model in arbitrary_model(), method in any_method()) {
        // An exact solution for thousands of customers may be refused because it takes too long.
        let many = model.classes.iter().any(|class| class.population.is_some_and(|n| n > 100));
        let method = if many && matches!(method, Method::Exact | Method::Seidmann) { Method::Auto } else { method };
        match solve(&model, method) {
            Ok(s) => prop_assert!(s.throughput.iter().chain(&s.response_time).all(|x| x.is_finite() && *x >= 0.0), "{s:?}"),
            Err(e) => prop_assert!(!e.to_string().is_empty()),
        }
        let _ = asymptotic_bounds(&model);
        let _ = balanced_job_bounds(&model);
    }
}

fn agree(a: &Solution, b: &Solution, tolerance: f64) -> Result<(), TestCaseError> {
    let all = |s: &Solution| -> Vec<f64> {
        let rows = [&s.residence, &s.queue_length, &s.utilization].into_iter().flatten().flatten();
        s.throughput.iter().chain(&s.response_time).chain(rows).copied().collect()
    };
    for (a, b) in all(a).iter().zip(all(b)) {
        prop_assert!(close(*a, b, tolerance), "{a} {b}");
    }
    Ok(())
}

fn close(a: f64, b: f64, tolerance: f64) -> bool {
    (a - b).abs() <= tolerance * a.abs().max(b.abs())
}

fn closed_methods() -> impl Strategy<Value = Method> {
    prop::sample::select(vec![Method::Exact, Method::Seidmann, Method::Schweitzer, Method::Linearizer])
}

fn any_method() -> impl Strategy<Value = Method> {
    prop_oneof![Just(Method::Auto), Just(Method::Erlang), closed_methods()]
}

/// Closed models with added open classes, which use a part of the capacity.
fn mixed_models() -> impl Strategy<Value = Model> {
    (closed_models(4), prop::collection::vec(0.0..1.0f64, 1..3), 0.05..0.9).prop_flat_map(|(model, rates, load)| {
        let rows = prop::collection::vec(prop::collection::vec(0.01..1.0f64, rates.len()), model.stations.len());
        (Just(model), Just(rates), rows, Just(load)).prop_map(|(mut model, rates, rows, load)| {
            let capacity = |(station, row): (&Station, &Vec<f64>)| {
                let work: f64 = row.iter().zip(&rates).map(|(d, r)| d * r).sum();
                f64::from(station.servers) * (1.0 - station.background) / work
            };
            let factor = model.stations.iter().zip(&rows).map(capacity).fold(1e3, f64::min);
            for (i, rate) in rates.iter().enumerate() {
                let (name, rate) = (format!("o{i}"), Some(rate * factor * load));
                model.classes.push(ModelClass { name, rate, ..ModelClass::default() });
            }
            model.demands.iter_mut().zip(rows).for_each(|(row, more)| row.extend(more));
            model
        })
    })
}

/// Mixed models with stations where the order of service matters.
fn ordered_models() -> impl Strategy<Value = Model> {
    let orders = prop::collection::vec((0..4u8, 0.0..4.0f64), 4);
    (mixed_models(), orders, prop::collection::vec(0..3u32, 6)).prop_map(|(mut model, orders, priorities)| {
        for (station, (order, scv)) in model.stations.iter_mut().zip(orders) {
            station.scv = scv;
            station.scheduling =
                [Scheduling::Ps, Scheduling::Fcfs, Scheduling::Priority, Scheduling::Preemptive][usize::from(order)];
        }
        model.classes.iter_mut().zip(priorities).for_each(|(class, priority)| class.priority = priority);
        model
    })
}

fn arbitrary_model() -> impl Strategy<Value = Model> {
    let wild = || {
        let odd = vec![f64::NAN, f64::INFINITY, f64::MAX, f64::MIN_POSITIVE, 5e-324, 0.0, -0.0, -1.0, 1.0, 1e-300];
        prop_oneof![1 => prop::sample::select(odd), 9 => 0.0..1e3f64, 2 => 0.0..1e-6f64]
    };
    let order =
        prop::sample::select(vec![Scheduling::Ps, Scheduling::Fcfs, Scheduling::Priority, Scheduling::Preemptive]);
    let multipliers = prop_oneof![4 => Just(vec![]), 1 => prop::collection::vec(wild(), 0..4)];
    let servers = prop_oneof![6 => Just(1u32), 2 => 0..9u32, 1 => any::<u32>()];
    let station = (any::<bool>(), order, servers, multipliers, wild(), 0.0..1.1f64).prop_map(
        |(queues, scheduling, servers, rate_multipliers, scv, background)| Station {
            kind: if queues { StationKind::Queue } else { StationKind::Delay },
            scheduling,
            servers,
            rate_multipliers,
            scv,
            background: if background < 0.5 { 0.0 } else { background },
            ..queue("s", 1)
        },
    );
    let population = prop_oneof![6 => 0..12u32, 1 => any::<u32>()];
    let class = (0..3u8, wild(), prop::option::weighted(0.9, population), wild(), 0..3u32).prop_map(
        |(open, rate, population, think, priority)| ModelClass {
            name: "c".into(),
            kind: if open == 0 { ClassKind::Open } else { ClassKind::Closed },
            rate: Some(rate),
            population,
            think,
            priority,
        },
    );
    (prop::collection::vec(station, 1..4), prop::collection::vec(class, 1..4)).prop_flat_map(
        move |(stations, classes)| {
            let rows = prop::collection::vec(prop::collection::vec(wild(), classes.len()), stations.len());
            (Just(stations), Just(classes), rows).prop_map(|(stations, classes, demands)| {
                with_unique_names(Model { stations, classes, demands, ..Model::default() })
            })
        },
    )
}

/// Gives the stations and classes of the model unique names.
pub fn with_unique_names(mut model: Model) -> Model {
    model.stations.iter_mut().enumerate().for_each(|(i, station)| station.name = format!("s{i}"));
    model.classes.iter_mut().enumerate().for_each(|(i, class)| class.name = format!("c{i}"));
    model
}

/// Closed networks in product form, with at most `servers` servers at a station.
fn closed_models(servers: u32) -> impl Strategy<Value = Model> {
    let station = (0..5u8, 1..=servers, 0..3u8).prop_map(|(kind, servers, background)| {
        let kind = if kind == 0 { StationKind::Delay } else { StationKind::Queue };
        Station { kind, servers, background: f64::from(background) * 0.2, ..Station::default() }
    });
    let class = (1..9u32, prop_oneof![Just(0.0), 0.01..20.0f64]);
    (prop::collection::vec(station, 1..5), prop::collection::vec(class, 1..4)).prop_flat_map(
        |(mut stations, classes)| {
            for (i, station) in stations.iter_mut().enumerate() {
                station.name = format!("s{i}");
            }
            let demand = prop_oneof![1 => Just(0.0), 6 => 1e-3..1.0f64];
            let rows = prop::collection::vec(prop::collection::vec(demand, classes.len()), stations.len());
            let class = |(i, (n, z)): (usize, &(u32, f64))| closed_class(&format!("c{i}"), *n, *z);
            let classes: Vec<ModelClass> = classes.iter().enumerate().map(class).collect();
            (Just(stations), Just(classes), rows, 1e-2..1.0f64).prop_map(|(stations, classes, mut demands, some)| {
                // Ensures that every class has a demand.
                for c in 0..classes.len() {
                    if demands.iter().all(|row| row[c] == 0.0) {
                        demands[0][c] = some;
                    }
                }
                Model { stations, classes, demands, ..Model::default() }
            })
        },
    )
}
