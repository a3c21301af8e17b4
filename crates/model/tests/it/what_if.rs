//! Checks the what-ifs of Menascé, Peraino, Dinh & Dinh (CMG 1999), laws that are valid for every what-if, and invalid
//! what-ifs.

mod bad;
mod headroom;
mod intervals;

use crate::cases::model as model_of;
use crate::paper::server;
use crate::reference::cases;
use brimful_core::model::{ClassKind, Model, ModelClass, Scheduling, Station, StationKind};
use brimful_model::{Change, Method, Scenario, StationLimit, WhatIf, WhatIfOptions, curve, solve, what_if};
use proptest::prelude::*;

fn scenario(changes: &[&str]) -> Scenario {
    Scenario { changes: changes.iter().map(|text| text.parse().unwrap()).collect(), ..Scenario::default() }
}

fn with_class(text: &str) -> Scenario {
    Scenario { classes: vec![text.parse().unwrap()], ..Scenario::default() }
}

fn with_client(text: &str) -> Scenario {
    Scenario { clients: vec![text.parse().unwrap()], ..Scenario::default() }
}

fn seidmann() -> WhatIfOptions {
    WhatIfOptions { method: Method::Seidmann, ..WhatIfOptions::default() }
}

fn ask(model: &Model, changes: &[&str]) -> WhatIf {
    what_if(model, &scenario(changes), &seidmann()).unwrap()
}

fn apply(model: &Model, changes: &[&str]) -> Model {
    scenario(changes).apply(model).unwrap()
}

fn close(a: f64, b: f64) -> bool {
    a == b || (a - b).abs() <= 1e-12 * a.abs().max(b.abs())
}

/// A model of terminals and open batch jobs. The users of the terminals think, and then use the CPU and a disk.
fn terminals() -> Model {
    let station = |name: &str| Station { name: name.into(), ..Station::default() };
    let users = ModelClass {
        name: "users".into(),
        kind: ClassKind::Closed,
        population: Some(20),
        think: 5.0,
        ..ModelClass::default()
    };
    let batch = ModelClass { name: "batch".into(), rate: Some(1.0), ..ModelClass::default() };
    Model {
        stations: vec![station("cpu"), station("disk 0"), Station { kind: StationKind::Delay, ..station("lan") }],
        classes: vec![users, batch],
        demands: vec![vec![0.1, 0.2], vec![0.05, 0.0], vec![0.01, 0.0]],
        ..Model::default()
    }
}

#[test]
fn the_papers_faster_cpu() {
    // For the change of the CPU from 168 MHz to 250 MHz, Menascé et al. (CMG 1999) print "0.592 s" and "183 tps".
    let found = ask(&server(1.0), &["CPU.demand=0.672x"]);
    let after = found.after.unwrap();
    let class4 = after.solution.as_ref().unwrap().response_time[3];
    assert!((class4 - 0.592474).abs() < 5e-7, "{class4}");
    assert!((after.stations[0].saturation_rate - 183.408).abs() < 5e-4, "{:?}", after.stations);
    assert!((found.before.solution.as_ref().unwrap().response_time[3] - 6.66293).abs() < 5e-6);
    let limits: Vec<&str> = found.before.stations.iter().map(|s| s.station.as_str()).collect();
    assert_eq!(limits[..2], ["CPU", "Disk3"]);
    let order = |limits: &[StationLimit]| limits.iter().take(2).map(|s| s.station.clone()).collect::<Vec<_>>();
    assert_eq!([order(&found.before.stations), order(&after.stations)], [["CPU", "Disk3"]; 2]);
    assert!((after.stations[1].saturation_rate - 234.6223).abs() < 5e-4, "{:?}", after.stations);
    assert_eq!(found.changes, ["CPU.demand=0.672x"]);
}

#[test]
fn the_papers_slow_clients() {
    // The results printed in Figs. 8 and 9 of Menascé et al. (CMG 1999) follow from a size of 45,553 bytes. The printed
    // response times do not include the round trip.
    for (speed, printed) in [("128kbps", Some(9.51)), ("1Mbps", None), ("10Mbps", Some(6.70))] {
        let asked = with_client(&format!("class4:speed={speed},size=45553B,rtt=200ms"));
        let found = what_if(&server(1.0), &asked, &seidmann()).unwrap().after.unwrap().solution.unwrap();
        let case = cases().into_iter().find(|c| c["name"] == format!("paper_mixed_assumptionA_{speed}")).unwrap();
        let expected = solve(&model_of(&case), Method::Exact).unwrap();
        for (ours, theirs) in found.response_time.iter().zip(&expected.response_time) {
            assert!((ours / theirs - 1.0).abs() < 1e-5, "{speed}: {ours} {theirs}");
        }
        let shown = found.response_time[4] - 0.2;
        assert!(printed.is_none_or(|printed| (shown - printed).abs() < 0.005), "{speed}: {shown}");
    }
}

#[test]
fn figure_9_is_a_curve() {
    let asked = with_client("class4:speed=128kbps..10Mbps:20:log,size=45553B,rtt=200ms");
    let found = curve(&server(1.0), &asked, Method::Seidmann).unwrap();
    assert_eq!((found.points.len(), found.axes[0].unit.as_str()), (20, "bit/s"));
    assert_eq!(found.axes[0].subject, "class4.speed");
    assert_eq!(found.classes.last().unwrap(), "client");
    let client = found.points.iter().map(|point| point.steady.as_ref().unwrap().response_time[4]);
    let client: Vec<f64> = client.collect();
    assert!(client.is_sorted_by(|slow, fast| slow > fast), "{client:?}");
    assert!((client[0] - 9.71).abs() < 0.005 && (client[19] - 6.90).abs() < 0.005, "{client:?}");
}

#[test]
fn a_range_is_a_curve_that_outlives_saturation() {
    let found = ask(&server(1.0), &["rate=100..140:5"]);
    assert!(found.after.is_none() && found.effect.is_none());
    let found = found.curve.unwrap();
    let solved: Vec<bool> = found.points.iter().map(|point| point.steady.is_some()).collect();
    assert_eq!(solved, [true, true, true, false, false]);
    for point in &found.points {
        assert!(
            (point.utilization[0] - point.x[0] / 123.25).abs() < 1e-5 && (point.saturation_rate - 123.25).abs() < 1e-3
        );
        assert_eq!(point.bottleneck, "CPU");
    }
    let last = found.points.last().unwrap();
    assert_eq!(last.x, [140.0]);
    assert!(last.unsolved.as_ref().unwrap().contains("`CPU` cannot keep up"));
}

#[test]
fn two_ranges_are_a_grid() {
    let found = curve(&server(1.0), &scenario(&["CPU.servers=2..4", "rate=+0%..+50%:2"]), Method::Auto).unwrap();
    let x: Vec<&[f64]> = found.points.iter().map(|point| point.x.as_slice()).collect();
    assert_eq!(x, [[2.0, 0.0], [2.0, 50.0], [3.0, 0.0], [3.0, 50.0], [4.0, 0.0], [4.0, 50.0]]);
    let solved: Vec<bool> = found.points.iter().map(|point| point.steady.is_some()).collect();
    assert_eq!(solved, [true, false, true, true, true, true], "184 to 180 requests per second");
    assert_eq!([found.axes[0].unit.as_str(), &found.axes[1].unit], ["", "%"]);
}

#[test]
fn a_saturated_network_is_a_result() {
    let found = ask(&server(1.0), &["rate=+30%"]);
    let after = found.after.unwrap();
    assert!(after.solution.is_none() && after.unsolved.as_ref().unwrap().contains("`CPU` cannot keep up"));
    assert!((after.stations[0].utilization - 156.0 / 123.25).abs() < 1e-4);
    let mut overloaded = server(1.0);
    overloaded.classes[0].rate = Some(1e4);
    let found = ask(&overloaded, &["class1.rate=50"]);
    assert!(found.before.solution.is_none() && found.after.unwrap().solution.is_some());
}

#[test]
fn what_each_change_does() {
    let model = terminals();
    let changed = |text: &str| apply(&model, &[text]);
    assert_eq!(changed("cpu.servers=4").stations[0].servers, 4);
    assert_eq!(changed("cpu.servers=+2").stations[0].servers, 3);
    assert_eq!(changed("cpu.servers=2x").stations[0].servers, 2);
    assert_eq!(changed("cpu.speed=2x").demands[0], [0.05, 0.1]);
    assert_eq!(changed("cpu.demand=0.5x").demands[0], [0.05, 0.1]);
    assert_eq!(changed("users.demand=2x").demands, [[0.2, 0.2], [0.1, 0.0], [0.02, 0.0]]);
    assert_eq!(changed("disk 0.demand=7ms").demands[1], [0.007, 0.0], "only classes that visit the station change");
    assert_eq!(
        changed("disk 0.batch.demand=7ms").demands[1],
        [0.05, 0.007],
        "only the with_unique_names class changes"
    );
    assert_eq!(changed("demand=2x").demands, [[0.2, 0.4], [0.1, 0.0], [0.02, 0.0]]);
    assert_eq!(changed("lan.speed=2x").demands[2], [0.005, 0.0]);
    assert_eq!(changed("cpu.background=20%").stations[0].background, 0.2);
    assert_eq!(changed("cpu.scheduling=fcfs").stations[0].scheduling, Scheduling::Fcfs);
    assert_eq!(changed("scheduling=fcfs").stations[2].scheduling, Scheduling::Ps, "a delay keeps its order of service");
    assert_eq!(changed("cpu.scv=4").stations[0].scv, 4.0);
    assert_eq!(changed("batch.rate=+30%").classes[1].rate, Some(1.3));
    assert_eq!(changed("rate=1.5k").classes[1].rate, Some(1500.0));
    assert_eq!(changed("all.rate=+0.5/s").classes[1].rate, Some(1.5));
    assert_eq!(changed("users.population=200").classes[0].population, Some(200));
    assert_eq!(changed("population=+10%").classes[0].population, Some(22));
    assert_eq!(changed("users.think=-2s").classes[0].think, 3.0);
    assert_eq!(changed("users.priority=3").classes[0].priority, 3);
    let paper = apply(&server(1.0), &["rate=240"]);
    assert!(paper.classes.iter().zip(&server(1.0).classes).all(|(a, b)| close(a.rate.unwrap(), 2.0 * b.rate.unwrap())));
}

#[test]
fn names_may_contain_any_characters() {
    let mut model = terminals();
    for (station, name) in model.stations.iter_mut().zip(["a.b", "a", "x=y.speed"]) {
        station.name = name.into();
    }
    model.classes[0].name = "c.d=e".into();
    assert_eq!(apply(&model, &["a.b.c.d=e.demand=1s"]).demands[0][0], 1.0);
    assert_eq!(apply(&model, &["a.batch.demand=1s"]).demands[1][1], 1.0);
    assert_eq!(apply(&model, &["x=y.speed.speed=2x"]).demands[2][0], 0.005);
}

#[test]
fn background_is_an_amount_of_work() {
    let mut model = terminals();
    model.stations[0].background = 0.4;
    assert!(close(apply(&model, &["cpu.speed=2x"]).stations[0].background, 0.2));
    assert!(close(apply(&model, &["cpu.servers=4"]).stations[0].background, 0.1));
    let both = ["cpu.background=30%", "cpu.speed=2x"];
    assert_eq!(apply(&model, &both).stations[0].background, 0.3, "an explicit background is not scaled by the speed");
    // The amount of background work does not change. So a second server adds its whole capacity for requests.
    let left = |m: &Model| f64::from(m.stations[0].servers) * (1.0 - m.stations[0].background);
    assert!(
        close(left(&apply(&model, &["cpu.servers=2"])) - left(&model), 1.0),
        "the new server does no background work"
    );
}

#[test]
fn more_servers_also_scale_the_rate_multipliers() {
    let mut model = terminals();
    model.stations[0].rate_multipliers = vec![1.0, 1.6, 2.0];
    let doubled = apply(&model, &["cpu.servers=2x"]).stations[0].clone();
    for (ours, expected) in doubled.rate_multipliers.iter().zip([1.0, 2.0, 2.6, 3.2, 3.6, 4.0]) {
        assert!(close(*ours, expected), "two such stations would each have half of the requests: {doubled:?}");
    }
    assert_eq!((doubled.servers, doubled.rate_multipliers.len()), (1, 6));
    assert_eq!(apply(&model, &["cpu.speed=2x"]).stations[0].rate_multipliers, [1.0, 1.6, 2.0]);
    let capacity = |m: &Model| what_if(m, &Scenario::default(), &WhatIfOptions::default()).unwrap().before.stations;
    let of_cpu = |m: &Model| capacity(m).into_iter().find(|s| s.station == "cpu").unwrap();
    assert!(of_cpu(&apply(&model, &["cpu.servers=2x"])).utilization < of_cpu(&model).utilization);
}

#[test]
fn changes_also_scale_the_intervals_of_demands() {
    let mut model = terminals();
    model.demand_ci95_half_width = vec![vec![0.01, 0.02], vec![0.005, 0.0], vec![0.0, 0.0]];
    assert_eq!(apply(&model, &["cpu.speed=2x"]).demand_ci95_half_width[0], [0.005, 0.01]);
    assert_eq!(apply(&model, &["cpu.demand=+100%"]).demand_ci95_half_width[0], [0.02, 0.04]);
    assert_eq!(
        apply(&model, &["cpu.users.demand=1s"]).demand_ci95_half_width[0],
        [0.0, 0.02],
        "a demand that is set has no interval"
    );
    assert_eq!(apply(&model, &["cpu.users.demand=+1s"]).demand_ci95_half_width[0], [0.01, 0.02]);
    let copied = with_class("more:rate=1,like=users,cpu=2x").apply(&model).unwrap();
    assert_eq!(copied.demand_ci95_half_width, [[0.01, 0.02, 0.02], [0.005, 0.0, 0.005], [0.0; 3]]);
}

#[test]
fn a_new_class_joins() {
    let model = terminals();
    let joined = with_class("report:rate=0.5,cpu=20ms,disk 0=3ms").apply(&model).unwrap();
    assert_eq!(joined.classes[2].rate, Some(0.5));
    assert_eq!(joined.demands, [vec![0.1, 0.2, 0.02], vec![0.05, 0.0, 0.003], vec![0.01, 0.0, 0.0]]);
    let copied = with_class("more users:like=users,population=7,think=1s,disk 0=+100%").apply(&model).unwrap();
    assert_eq!((copied.classes[2].population, copied.classes[2].think), (Some(7), 1.0));
    assert_eq!(copied.demands[1], [0.05, 0.0, 0.1]);
    let all =
        Scenario { changes: scenario(&["cpu.speed=2x", "batch.rate=3"]).changes, ..with_class("r:rate=1,cpu=20ms") };
    let found = all.apply(&model).unwrap();
    assert_eq!(found.demands[0], [0.05, 0.1, 0.01], "a change of speed also changes a new class");
    let curve = curve(&model, &with_class("report:rate=0..5:6,cpu=20ms"), Method::Auto).unwrap();
    assert_eq!((curve.points.len(), curve.axes[0].subject.as_str()), (6, "report.rate"));
}

#[test]
fn clients_behind_one_line_wait_for_it() {
    let own = with_client("users:speed=1Mbps,size=125KB,clients=10,think=10s");
    let shared = with_client("users:speed=1Mbps,size=125KB,clients=10,think=10s,link=shared");
    let response = |asked: &Scenario| {
        let after = what_if(&terminals(), asked, &WhatIfOptions::default()).unwrap().after.unwrap();
        (after.model.clone(), after.solution.unwrap().response_time[2])
    };
    let ((model, own), (_, shared)) = (response(&own), response(&shared));
    assert!(own > 1.0 && shared > own + 0.5, "each client needs one second on the line: {own} {shared}");
    let names: Vec<&str> = model.stations.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(
        names,
        ["cpu", "disk 0", "lan", "access-link"],
        "without a round trip, there is no station for the Internet"
    );
    let two = Scenario { clients: [own_line("8Mbps"), own_line("16Mbps")].concat(), ..Scenario::default() };
    let names: Vec<String> = two.apply(&terminals()).unwrap().classes.into_iter().map(|c| c.name).collect();
    assert_eq!(names, ["users", "batch", "client", "client 2"]);
}

fn own_line(speed: &str) -> Vec<brimful_model::Client> {
    with_client(&format!("batch:speed={speed},size=1MB,rtt=50ms")).clients
}

#[test]
fn a_client_has_the_demands_of_its_class_after_the_changes() {
    let faster =
        Scenario { changes: scenario(&["batch.demand=0.5x"]).changes, ..with_client("batch:speed=8Mbps,size=1MB") };
    assert_eq!(faster.apply(&terminals()).unwrap().demands[0], [0.1, 0.1, 0.1]);
}

#[test]
fn documents_contain_the_changes_and_the_results() {
    let options = WhatIfOptions { slos: vec!["class4:p95<10s".parse().unwrap()], ..seidmann() };
    let found = what_if(&server(1.0), &scenario(&["CPU.speed=1.5x"]), &options).unwrap();
    let json = serde_json::to_value(&found).unwrap();
    assert_eq!(json["changes"][0], "CPU.speed=1.5x");
    assert_eq!(json["after"]["headroom"][0]["slo"], "class4:p95<10s");
    assert!(json["after"]["headroom"][0]["until"]["rate"].as_f64().unwrap() > 100.0);
    assert_eq!(json["after"]["stations"][0]["station"], "CPU");
}

/// Changes of [`server`], no two of which contradict each other.
const CHANGES: [&str; 8] = [
    "CPU.speed=1.3x",
    "CPU.demand=0.9x",
    "rate=-20%",
    "class4.rate=1.1x",
    "Disk3.class4.demand=12ms",
    "class1.demand=+10%",
    "Disk1.servers=2",
    "Disk2.background=10%",
];

proptest! {
    #[test]
    fn no_change_changes_nothing(factor in 0.2..1.02f64) {
        let model = server(factor);
        let found = ask(&model, &[]);
        prop_assert_eq!(found.before.solution.as_ref(), Some(&solve(&model, Method::Seidmann).unwrap()));
        prop_assert_eq!(Some(found.before), found.after);
    }

    #[test]
    fn twice_the_speed_is_half_the_demand(factor in 0.1..10.0f64) {
        let speed = apply(&server(1.0), &[&format!("CPU.speed={factor}x")]);
        let demand = apply(&server(1.0), &[&format!("CPU.demand={}x", 1.0 / factor)]);
        for (a, b) in speed.demands.iter().flatten().zip(demand.demands.iter().flatten()) {
            prop_assert!(close(*a, *b));
        }
    }

    #[test]
    fn order_does_not_matter(order in Just(CHANGES.to_vec()).prop_shuffle()) {
        let (one, other) = (apply(&server(1.0), &CHANGES), apply(&server(1.0), &order));
        for (a, b) in one.demands.iter().flatten().zip(other.demands.iter().flatten()) {
            prop_assert!(close(*a, *b));
        }
        for (a, b) in one.classes.iter().zip(&other.classes) {
            prop_assert!(close(a.rate.unwrap(), b.rate.unwrap()));
        }
        prop_assert_eq!(one.stations, other.stations);
    }

    #[test]
    fn more_of_it_is_never_worse(change in prop_oneof![
        Just("CPU.speed=1x..4x:9"), Just("CPU.servers=2..9"), Just("rate=+0%..-90%:9"), Just("CPU.demand=1x..0.1x:9"),
        Just("Disk3.background=90%..0%:9"),
    ]) {
        let found = curve(&server(0.9), &scenario(&[change]), Method::Auto).unwrap();
        let mean = found.points.iter().map(|point| point.steady.as_ref().map_or(f64::INFINITY, |s| s.mean_response_time));
        let mean: Vec<f64> = mean.collect();
        prop_assert!(mean.is_sorted_by(|worse, better| better <= worse), "{:?}", mean);
    }

    #[test]
    fn any_text_reads_back_or_is_refused(text in ".*", name in "[a-z.= ]{0,9}", value in value()) {
        for text in [text, format!("{name}.demand={value}"), format!("speed={value}"), format!("{name}.rate={value}")] {
            if let Ok(change) = text.parse::<Change>() {
                prop_assert_eq!(change.to_string().parse(), Ok(change));
            }
        }
    }

    #[test]
    fn any_new_class_or_client_reads_back_or_is_refused(text in ".*", a in value(), b in value(), c in value()) {
        for text in [text, format!("n:rate={a},cpu={b},disk 1={c},like=x"), format!("n: population={a},think={b}")] {
            if let Ok(class) = text.parse::<brimful_model::NewClass>() {
                prop_assert_eq!(class.to_string().parse(), Ok(class));
            }
        }
        for text in [format!("a:b:speed={a}bps,size={b}B,rtt={c}"), format!(":size={b},speed={a}kbps,link=shared,clients={c}")] {
            if let Ok(client) = text.parse::<brimful_model::Client>() {
                prop_assert_eq!(client.to_string().parse(), Ok(client));
            }
        }
    }
}

/// Text that resembles a number or a range.
fn value() -> impl Strategy<Value = String> {
    let number = prop_oneof![(0..1000u32).prop_map(|n| n.to_string()), (0.0..100.0f64).prop_map(|n| n.to_string())];
    let one = ("[+-]?", number, "(x|%|ms|s|/s|k|)").prop_map(|(sign, number, unit)| format!("{sign}{number}{unit}"));
    let one = one.boxed();
    prop_oneof![
        3 => one.clone(),
        2 => (one.clone(), one, "(:[0-9]{1,2})?(:log)?").prop_map(|(a, b, more)| format!("{a}..{b}{more}")),
    ]
}
