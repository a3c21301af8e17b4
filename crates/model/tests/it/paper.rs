//! Checks the results of Menascé, Peraino, Dinh & Dinh (CMG 1999), computed from their Tables 1 and 2 alone.

use brimful_core::model::{Model, ModelClass, Scheduling, Station};
use brimful_model::{Method, SimulationOptions, saturation_rate, simulate, solve_open};

/// The server of the paper at 120 requests per second in total. Its CPU demands are multiplied by `cpu`.
pub fn server(cpu: f64) -> Model {
    let station = |name: &str, servers| Station { name: name.into(), servers, ..Station::default() };
    let class = |(i, percent): (usize, f64)| ModelClass {
        name: format!("class{}", i + 1),
        rate: Some(120.0 * percent / 100.0),
        ..ModelClass::default()
    };
    let ms = |row: [f64; 4]| row.map(|d| d / 1000.0).to_vec();
    Model {
        stations: [("CPU", 2), ("Disk1", 1), ("Disk2", 1), ("Disk3", 1), ("In-link", 1), ("Out-link", 1)]
            .map(|(name, servers)| station(name, servers))
            .to_vec(),
        classes: [45.76, 43.47, 8.78, 1.99].into_iter().enumerate().map(class).collect(),
        demands: vec![
            ms([0.4, 8.52, 64.76, 334.4].map(|d| d * cpu)),
            ms([0.74; 4]),
            ms([0.67; 4]),
            ms([1.74, 1.84, 13.99, 72.25]),
            ms([0.036; 4]),
            ms([0.0, 0.409, 2.103, 5.333]),
        ],
        ..Model::default()
    }
}

const FASTER_CPU: f64 = 168.0 / 250.0;

fn class4(model: &Model) -> f64 {
    solve_open(model, Method::Seidmann).unwrap().response_time[3]
}

#[test]
fn it_saturates_around_120() {
    let (rate, station) = saturation_rate(&server(1.0)).unwrap();
    assert!((rate - 123.250).abs() < 0.0005, "{rate}");
    assert_eq!(station, "CPU");
}

#[test]
fn class_4_takes_6_66_seconds_at_120() {
    let response = class4(&server(1.0));
    assert!((response - 6.66293).abs() < 0.000005, "{response}");
}

#[test]
fn with_the_faster_cpu_class_4_takes_0_592_seconds() {
    let response = class4(&server(FASTER_CPU));
    assert!((response - 0.592474).abs() < 0.0000005, "{response}");
}

#[test]
fn with_the_faster_cpu_it_saturates_at_183() {
    let (rate, _) = saturation_rate(&server(FASTER_CPU)).unwrap();
    assert!((rate - 183.408).abs() < 0.0005, "{rate}");
}

#[test]
fn fcfs_would_yield_other_response_times() {
    // Processor sharing: class 4 takes 6.58 s (Erlang's C). FCFS: class 4 waits no longer than the other classes.
    let mut model = server(1.0);
    let sharing = solve_open(&model, Method::Erlang).unwrap().response_time[3];
    model.stations[0].scheduling = Scheduling::Fcfs;
    let fcfs = solve_open(&model, Method::Erlang).unwrap().response_time;
    assert!((sharing - 6.580).abs() < 0.001 && (fcfs[3] - 3.436).abs() < 0.001, "{sharing} {fcfs:?}");
    // At the full load, a simulation is too imprecise, so the comparison uses 80 % of the load.
    model.classes.iter_mut().for_each(|class| class.rate = class.rate.map(|rate| rate * 0.8));
    let fcfs = solve_open(&model, Method::Erlang).unwrap().response_time;
    let options = SimulationOptions { precision: None, events: 4_000_000, ..SimulationOptions::default() };
    for (class, found) in simulate(&model, &options).unwrap().response_time.iter().enumerate() {
        let mean = found.as_ref().unwrap().mean;
        assert!((fcfs[class] / mean.value - 1.0).abs() < 0.1, "{class}: {} {mean:?}", fcfs[class]);
    }
}
