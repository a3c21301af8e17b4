//! Compares the simulator with formulas and reference cases, and checks laws that are valid for every run.

use crate::cases::model as model_of;
use crate::closed::with_unique_names;
use crate::networks::{errors, network};
use crate::reference::cases;
use brimful_core::model::{ClassKind, Model, ModelClass, Scheduling, Station, StationKind};
use brimful_model::{
    Arrivals, Ended, Estimate, Method, ModelError, Service, Simulation, SimulationOptions, mmm_wait, simulate, solve,
};
use proptest::prelude::*;

fn station(scheduling: Scheduling, servers: u32, scv: f64) -> Station {
    Station { name: "s".into(), scheduling, servers, scv, ..Station::default() }
}

fn open(rate: f64) -> ModelClass {
    ModelClass { name: format!("open {rate}"), rate: Some(rate), ..ModelClass::default() }
}

fn closed(population: u32, think: f64) -> ModelClass {
    ModelClass {
        name: "closed".into(),
        kind: ClassKind::Closed,
        population: Some(population),
        think,
        ..ModelClass::default()
    }
}

fn one(station: Station, rate: f64, demand: f64) -> Model {
    Model { stations: vec![station], classes: vec![open(rate)], demands: vec![vec![demand]], ..Model::default() }
}

fn events(events: u64) -> SimulationOptions {
    SimulationOptions { precision: None, events, ..SimulationOptions::default() }
}

fn run(model: &Model, options: &SimulationOptions) -> Simulation {
    let simulation = simulate(model, options).unwrap();
    assert!(simulation.run.settled, "{:?}", simulation.run);
    simulation
}

fn mean(simulation: &Simulation, class: usize) -> Estimate {
    simulation.response_time[class].as_ref().unwrap().mean
}

/// Checks that the true value is within 1.5 half widths (about three standard errors), and that the half width is at
/// most `share` of the true value.
#[track_caller]
fn assert_known(figure: Estimate, truth: f64, share: f64) {
    let half = figure.ci95_half_width.unwrap();
    assert!((figure.value - truth).abs() <= 1.5 * half + 1e-9 * truth, "{figure:?} is not {truth}");
    assert!(half <= share * truth, "the interval of {figure:?} is too wide");
}

#[test]
fn mm1_is_known_in_every_figure() {
    // The queue has λ = 80/s and D = 10 ms, so ρ = 0.8, R = 50 ms and N = 4.
    for scheduling in [Scheduling::Ps, Scheduling::Fcfs] {
        let found = run(&one(station(scheduling, 1, 1.0), 80.0, 0.01), &events(2_000_000));
        assert_known(found.throughput[0], 80.0, 0.01);
        assert_known(mean(&found, 0), 0.05, 0.04);
        assert_known(found.residence[0][0].unwrap(), 0.05, 0.04);
        assert_known(found.queue_length[0][0], 4.0, 0.04);
        assert_known(found.utilization[0][0], 0.8, 0.01);
    }
}

#[test]
fn the_response_time_of_mm1_fcfs_is_exponential() {
    let found = run(&one(station(Scheduling::Fcfs, 1, 1.0), 50.0, 0.01), &events(2_000_000));
    let times = found.response_time[0].as_ref().unwrap();
    for (figure, share) in [(times.p50, 0.5f64), (times.p90, 0.9), (times.p95, 0.95), (times.p99, 0.99)] {
        assert_known(figure, -0.02 * (1.0 - share).ln(), 0.05);
    }
}

#[test]
fn mmm_matches_erlangs_formula() {
    for (servers, scheduling) in [(2, Scheduling::Ps), (4, Scheduling::Fcfs), (16, Scheduling::Ps)] {
        let rate = 0.8 * f64::from(servers) / 0.01;
        let found = run(&one(station(scheduling, servers, 1.0), rate, 0.01), &events(2_000_000));
        assert_known(mean(&found, 0), 0.01 + mmm_wait(rate, 0.01, servers, 0.0), 0.03);
        assert_known(found.utilization[0][0], 0.8, 0.01);
    }
}

#[test]
fn mg1_waits_as_pollaczek_and_khinchine_said() {
    let pareto = Service::BoundedPareto { shape: 1.5 };
    for (scv, service) in [
        (0.0, Service::Standard),
        (0.5, Service::Standard),
        (4.0, Service::Standard),
        (4.0, Service::Lognormal),
        (4.0, pareto),
    ] {
        let options = SimulationOptions { service: vec![service], ..events(2_000_000) };
        let found = run(&one(station(Scheduling::Fcfs, 1, scv), 70.0, 0.01), &options);
        let wait = 0.7 * 0.01 * (1.0 + scv) / 2.0 / 0.3;
        assert_known(mean(&found, 0), 0.01 + wait, 0.08);
    }
}

#[test]
fn processor_sharing_is_insensitive_to_the_distribution() {
    let pareto = Service::BoundedPareto { shape: 1.2 };
    for (scv, service) in [(0.0, Service::Standard), (1.0, Service::Standard), (8.0, Service::Standard), (8.0, pareto)]
    {
        let options = SimulationOptions { service: vec![service], ..events(2_000_000) };
        let found = run(&one(station(Scheduling::Ps, 1, scv), 70.0, 0.01), &options);
        assert_known(mean(&found, 0), 0.01 / 0.3, 0.04);
    }
}

#[test]
fn background_slows_the_servers() {
    let busy = Station { background: 0.25, ..station(Scheduling::Fcfs, 1, 1.0) };
    let found = run(&one(busy, 45.0, 0.01), &events(1_000_000));
    assert_known(mean(&found, 0), (0.01 / 0.75) / 0.4, 0.04);
    assert_known(found.utilization[0][0], 0.45, 0.01);
}

#[test]
fn priorities_match_cobhams_formula() {
    // Two open classes of different priority, with ρ = 0.3 and ρ = 0.4. The last class is more urgent.
    let classes = |urgent: f64, other: f64| {
        vec![ModelClass { priority: 7, ..open(other) }, ModelClass { priority: 3, ..open(urgent) }]
    };
    let model = |scheduling, scv| Model {
        stations: vec![station(scheduling, 1, scv)],
        classes: classes(30.0, 20.0),
        demands: vec![vec![0.02, 0.01]],
        ..Model::default()
    };
    for scv in [0.0, 1.0, 3.0] {
        // The mean residual service time that an arrival finds. It is a part of the waits by Cobham (1954) and, for
        // preemptive resume, by Miller (1960).
        let residual = |rate: f64, demand: f64| rate * demand * demand * (1.0 + scv) / 2.0;
        let (urgent, all) = (residual(30.0, 0.01), residual(30.0, 0.01) + residual(20.0, 0.02));
        let found = run(&model(Scheduling::Priority, scv), &events(2_000_000));
        assert_known(mean(&found, 1), 0.01 + all / 0.7, 0.04);
        assert_known(mean(&found, 0), 0.02 + all / (0.7 * 0.3), 0.08);
        let found = run(&model(Scheduling::Preemptive, scv), &events(2_000_000));
        assert_known(mean(&found, 1), 0.01 + urgent / 0.7, 0.04);
        assert_known(mean(&found, 0), 0.02 / 0.7 + all / (0.7 * 0.3), 0.08);
        assert_known(found.utilization[0][0], 0.4, 0.02);
    }
}

#[test]
fn it_agrees_with_the_reference_cases() {
    let exact = ["closed_exact_mva", "closed_exact_ms", "mixed_exact", "open_product_form", "open_mmm_erlangc"];
    let mut done = 0;
    for case in cases().iter().filter(|case| exact.iter().any(|solver| case["solver"] == *solver)) {
        let model = model_of(case);
        let solution = solve(&model, Method::Exact).unwrap();
        // At a utilization above 0.95, a short simulation is too imprecise.
        if solution.utilization.iter().any(|row| row.iter().sum::<f64>() > 0.95) && model.classes[0].rate.is_some() {
            continue;
        }
        let found = simulate(&model, &events(1_000_000)).unwrap();
        for error in errors(&model, &found, Method::Exact).unwrap() {
            assert!(error.abs() <= 3.5, "{}: {error} in {found:?}", case["name"]);
        }
        done += 1;
    }
    assert!(done >= 8, "{done}");
}

#[test]
fn it_agrees_with_the_exact_solutions_of_random_networks() {
    let mut all = Vec::new();
    for number in 0..12 {
        let model = network(number);
        let errors = errors(&model, &simulate(&model, &events(400_000)).unwrap(), Method::Exact).unwrap();
        assert!(errors.iter().all(|error| error.abs() <= 4.0), "{number}: {errors:?} of {model:?}");
        all.extend(errors);
    }
    let covered = all.iter().filter(|error| error.abs() <= 1.96).count();
    assert!(covered as f64 >= 0.85 * all.len() as f64, "{covered} of {}", all.len());
}

#[test]
fn bursts_cost_what_the_matrix_geometric_solution_says() {
    let case = cases().into_iter().find(|case| case["name"] == "mmpp2_m1_a").unwrap();
    let input = |name: &str| case["inputs"][name].as_f64().unwrap();
    let model = model_of(&case);
    let arrivals = Arrivals::Mmpp {
        rates: [input("lambda1"), input("lambda2")],
        switching: [input("rate_1_to_2"), input("rate_2_to_1")],
    };
    let found = run(&model, &SimulationOptions { arrivals: vec![arrivals], ..events(3_000_000) });
    assert_known(mean(&found, 0), case["expected"]["mean_response_time"].as_f64().unwrap(), 0.03);
    assert_known(found.throughput[0], case["expected"]["mean_rate"].as_f64().unwrap(), 0.06);
}

#[test]
fn periodic_bursts_match_their_queue() {
    // The rate is twice the mean for the first half of every 6 s, and then 0. So half of the time, the queue is an
    // M/M/1 with ρ = 0.8, almost in its steady state.
    let bursts = Arrivals::OnOff { ratio: 2.0, share: 0.5, period_s: 6.0 };
    let options = SimulationOptions { arrivals: vec![bursts], ..events(3_000_000) };
    let found = run(&one(station(Scheduling::Fcfs, 1, 1.0), 400.0, 0.001), &options);
    assert_known(found.throughput[0], 400.0, 0.02);
    let response = mean(&found, 0);
    assert!((response.value - 0.005).abs() < 0.0003, "{response:?}");
}

#[test]
fn littles_law_holds_within_a_run() {
    let found = run(&busy_network(), &events(1_000_000));
    for (i, row) in found.residence.iter().enumerate() {
        for (class, residence) in row.iter().enumerate() {
            let (n, x) = (found.queue_length[i][class].value, found.throughput[class].value);
            assert!((n - x * residence.unwrap().value).abs() <= 0.002 * n, "{i} {class}: {n}");
        }
    }
    for class in 0..3 {
        let sum: f64 = found.residence.iter().map(|row| row[class].unwrap().value).sum();
        assert!((sum / mean(&found, class).value - 1.0).abs() < 0.002);
    }
}

/// A network with open and closed classes, every order of service, and several variabilities of service.
fn busy_network() -> Model {
    let delay = Station { kind: StationKind::Delay, ..station(Scheduling::Ps, 1, 0.3) };
    let urgent = ModelClass { priority: 1, ..open(20.0) };
    with_unique_names(Model {
        stations: vec![
            station(Scheduling::Ps, 2, 5.0),
            station(Scheduling::Fcfs, 3, 0.5),
            station(Scheduling::Preemptive, 1, 2.0),
            delay,
            station(Scheduling::Priority, 1, 1.0),
        ],
        classes: vec![ModelClass { priority: 2, ..open(10.0) }, closed(5, 0.1), urgent],
        demands: vec![
            vec![0.03, 0.02, 0.01],
            vec![0.04, 0.05, 0.0],
            vec![0.02, 0.01, 0.005],
            vec![0.0, 0.1, 0.05],
            vec![0.01, 0.01, 0.01],
        ],
        ..Model::default()
    })
}

#[test]
fn one_seed_is_one_result() {
    let with = |seed| run(&busy_network(), &SimulationOptions { seed, ..events(200_000) });
    assert_eq!(with(5), with(5));
    assert_ne!(with(5).throughput, with(6).throughput);
}

#[test]
fn intervals_cover_the_truth_nineteen_times_in_twenty() {
    // In 200 short runs of an M/M/1 with ρ = 0.7, correct intervals contain the true value in 95 % ± 1.5 % of the runs.
    // A share of 90 % would be more than three standard errors lower.
    let model = one(station(Scheduling::Ps, 1, 1.0), 70.0, 0.01);
    let covers = |figure: Estimate, truth: f64| (figure.value - truth).abs() <= figure.ci95_half_width.unwrap();
    let mut covered = [0; 3];
    for seed in 0..200 {
        let found = simulate(&model, &SimulationOptions { seed, ..events(60_000) }).unwrap();
        let times = found.response_time[0].as_ref().unwrap();
        covered[0] += u32::from(covers(times.mean, 0.01 / 0.3));
        covered[1] += u32::from(covers(found.throughput[0], 70.0));
        covered[2] += u32::from(covers(found.queue_length[0][0], 7.0 / 3.0));
    }
    assert!(covered.iter().all(|c| (180..=199).contains(c)), "{covered:?} of 200");
}

#[test]
fn a_run_ends_when_it_is_precise_enough() {
    let model = one(station(Scheduling::Ps, 1, 1.0), 70.0, 0.01);
    let options = |precision| SimulationOptions { precision: Some(precision), events: 1_000_000, ..Default::default() };
    let found = simulate(&model, &options(0.05)).unwrap();
    assert_eq!(found.run.ended, Ended::Precision);
    assert!(found.run.precision.unwrap() <= 0.05 && found.run.events < 1_000_000, "{:?}", found.run);
    assert!(found.run.caveats.is_empty(), "{:?}", found.run.caveats);
    let found = simulate(&model, &options(0.001)).unwrap();
    assert_eq!((found.run.ended, found.run.events), (Ended::Events, 1_000_000));
    assert!(found.run.caveats[0].contains("±0.1 % was asked for: allow more events"), "{:?}", found.run.caveats);
}

#[test]
fn a_run_ends_when_its_time_is_over() {
    let model = one(station(Scheduling::Ps, 1, 1.0), 70.0, 0.01);
    let found = simulate(&model, &SimulationOptions { time_s: Some(1000.0), ..events(1_000_000) }).unwrap();
    assert_eq!(found.run.ended, Ended::Time);
    assert!(found.run.time_s > 995.0 && found.run.time_s <= 1000.1, "{:?}", found.run);
    assert!((found.run.batch_s * 32.0 + found.run.warm_up_s - found.run.time_s).abs() < 1e-6);
}

#[test]
fn warm_up_is_left_out() {
    // All 200 customers begin by thinking, for 100 s on average. In the steady state, a third of the customers is at
    // the delay station, whose delay is 50 s.
    let delay = Station { kind: StationKind::Delay, ..Station::default() };
    let model = Model {
        stations: vec![delay],
        classes: vec![closed(200, 100.0)],
        demands: vec![vec![50.0]],
        ..Model::default()
    };
    let found = run(&model, &SimulationOptions { time_s: Some(3000.0), ..events(1_000_000) });
    assert!(found.run.warm_up_s >= 60.0, "{:?}", found.run);
    assert_known(found.queue_length[0][0], 200.0 / 3.0, 0.1);
}

#[test]
fn the_scv_of_an_fcfs_station_is_that_of_each_class() {
    let model = |scv, total_scv| Model {
        stations: vec![Station { total_scv, ..station(Scheduling::Fcfs, 1, scv) }],
        classes: vec![open(40.0), open(5.0)],
        demands: vec![vec![0.005, 0.1]],
        ..Model::default()
    };
    // The service time of each class is constant, so E[D²] = (40·0.005² + 5·0.1²)/45. All requests together then have
    // an scv of 3.68.
    let constant = (40.0 * 0.005f64.powi(2) + 5.0 * 0.1f64.powi(2)) / 2.0 / 0.3;
    for scv in [0.0, 1.0, 2.0] {
        let found = run(&model(scv, None), &events(2_000_000));
        assert_known(mean(&found, 0), 0.005 + constant * (1.0 + scv), 0.12);
        assert_known(mean(&found, 1), 0.1 + constant * (1.0 + scv), 0.12);
        assert!(errors(&model(scv, None), &found, Method::Erlang).unwrap().iter().all(|error| error.abs() < 3.5));
    }
    let found = run(&model(1.0, Some(6.0)), &events(2_000_000));
    let error = errors(&model(1.0, Some(6.0)), &found, Method::Erlang).unwrap();
    assert!(error.iter().all(|error| error.abs() < 3.0), "{found:?}");
}

#[test]
fn a_saturated_network_is_an_error() {
    let model = one(Station { name: "CPU".into(), ..Station::default() }, 110.0, 0.01);
    match simulate(&model, &SimulationOptions::default()).unwrap_err() {
        ModelError::Unstable { station, saturation_rate, .. } => {
            assert_eq!(station, "CPU");
            assert!((saturation_rate - 100.0).abs() < 1e-9);
        }
        other => panic!("{other}"),
    }
    // A customer without think time has the higher priority, so it uses the whole server.
    let greedy = Model {
        stations: vec![station(Scheduling::Preemptive, 1, 1.0)],
        classes: vec![ModelClass { priority: 1, ..open(1000.0) }, closed(1, 0.0)],
        demands: vec![vec![0.0001, 1.0]],
        ..Model::default()
    };
    let error = simulate(&greedy, &SimulationOptions::default()).unwrap_err();
    assert!(matches!(error, ModelError::GrowingQueue { present: 1_000_000.., .. }), "{error}");
    // With fewer events, the limit of requests is not reached, but the growth of the queue is detected.
    let found = simulate(&greedy, &events(300_000)).unwrap();
    assert!(!found.run.settled && found.run.caveats.iter().any(|c| c.contains("grow")), "{:?}", found.run);
    assert_eq!(found.response_time[0], None);
}

#[test]
fn invalid_input_is_rejected_with_advice() {
    let model = || one(station(Scheduling::Ps, 1, 1.0), 70.0, 0.01);
    let refused = |model: &Model, options: &SimulationOptions, part: &str| {
        let error = simulate(model, options).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    };
    let options = SimulationOptions::default;
    refused(&Model { demands: vec![vec![0.0]], ..model() }, &options(), "visits no station");
    refused(&Model { demands: vec![vec![f64::NAN]], ..model() }, &options(), "not negative");
    refused(&Model { demands: vec![vec![0.1, 0.2]], ..model() }, &options(), "2 demands for 1 classes");
    refused(&Model { classes: vec![open(0.0)], ..model() }, &options(), "no class sends any request");
    refused(&Model { classes: vec![closed(0, 1.0)], ..model() }, &options(), "at least 1");
    refused(&Model { classes: vec![closed(u32::MAX, 1.0)], ..model() }, &options(), "at most 1,000,000");
    refused(&Model { stations: vec![], ..model() }, &options(), "a model needs stations");
    refused(&model(), &SimulationOptions { precision: Some(f64::NAN), ..options() }, "precision");
    refused(&model(), &SimulationOptions { time_s: Some(0.0), ..options() }, "must be above 0");
    refused(&model(), &SimulationOptions { arrivals: vec![Arrivals::Poisson; 2], ..options() }, "where 1 are needed");
    refused(&model(), &events(10), "allow at least");
}

#[test]
fn times_too_far_apart_for_the_clock_end_the_run() {
    let model = Model {
        stations: vec![station(Scheduling::Ps, 1, 1.0)],
        classes: vec![closed(100, 1e9)],
        demands: vec![vec![1e-6]],
        ..Model::default()
    };
    let found = simulate(&model, &SimulationOptions { precision: Some(1e-3), ..SimulationOptions::default() });
    let error = found.unwrap_err().to_string();
    assert!(error.contains("too short to be simulated together"), "{error}");
}

/// Small stable networks of all kinds.
fn networks() -> impl Strategy<Value = Model> {
    let kind = prop_oneof![
        Just(Scheduling::Ps),
        Just(Scheduling::Fcfs),
        Just(Scheduling::Priority),
        Just(Scheduling::Preemptive)
    ];
    let station =
        (any::<bool>(), kind, 1..4u32, 0.0..4.0f64, 0.0..0.5f64).prop_map(|(queue, scheduling, servers, scv, b)| {
            let kind = if queue { StationKind::Queue } else { StationKind::Delay };
            Station { kind, background: b, ..station(scheduling, servers, scv) }
        });
    let class = (any::<bool>(), 1..6u32, prop_oneof![Just(0.0), 0.1..2.0f64], 0..3u32).prop_map(
        |(is_open, n, think, priority)| ModelClass {
            priority,
            ..if is_open { open(f64::from(n) / 100.0) } else { closed(n, think) }
        },
    );
    (prop::collection::vec(station, 1..5), prop::collection::vec(class, 1..4)).prop_flat_map(|(stations, classes)| {
        let demand = prop_oneof![1 => Just(0.0), 4 => 0.1..1.0f64];
        let row = prop::collection::vec(demand, classes.len());
        let mut first = prop::collection::vec(prop::collection::vec(0.1..1.0f64, classes.len()), 1).boxed();
        if stations.len() > 1 {
            first = (first, prop::collection::vec(row, stations.len() - 1)).prop_map(|(a, b)| [a, b].concat()).boxed();
        }
        first.prop_map(move |demands| {
            with_unique_names(Model {
                stations: stations.clone(),
                classes: classes.clone(),
                demands,
                ..Model::default()
            })
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn customers_are_conserved_and_servers_are_not_more_than_busy(model in networks(), seed: u64) {
        let found = match simulate(&model, &SimulationOptions { seed, ..events(40_000) }) {
            Err(ModelError::Unstable { .. }) => return Ok(()),
            found => found.unwrap(),
        };
        for (c, class) in model.classes.iter().enumerate() {
            let present: f64 = found.queue_length.iter().map(|row| row[c].value).sum();
            if let Some(population) = class.population {
                let population = f64::from(population);
                prop_assert!(present <= population * (1.0 + 1e-9));
                // All other customers think. Their mean number is X·Z, except for customers that began to think before
                // the batches.
                prop_assert!(class.think > 0.0 || (present / population - 1.0).abs() < 1e-9, "{present} of {population}");
                let thinking = found.throughput[c].value * class.think;
                prop_assert!((present + thinking - population).abs() <= 0.15 * population, "{present} + {thinking}");
            }
        }
        for (station, row) in model.stations.iter().zip(&found.utilization) {
            let used: f64 = row.iter().map(|u| u.value).sum();
            let most = if station.kind == StationKind::Queue { 1.0 - station.background } else { f64::INFINITY };
            prop_assert!(used <= most * (1.0 + 1e-9), "{used} of {most}");
        }
    }

    #[test]
    fn any_model_gets_an_answer_or_an_error(model in crate::laws::arbitrary_model(), seed: u64) {
        if let Ok(found) = simulate(&model, &SimulationOptions { seed, precision: Some(0.1), ..events(20_000) }) {
            prop_assert!(found.throughput.iter().all(|x| x.value.is_finite()));
        }
    }
}
