//! What-ifs: the paper's, the laws that hold for all of them, and what cannot be asked.

use crate::cases::{cases, model as model_of};
use crate::paper::server;
use brimful_core::model::Model;
use brimful_model::{Method, Scenario, Until, WhatIf, WhatIfOptions, curve, headroom, solve, what_if};

fn scenario(changes: &[&str]) -> Scenario {
    Scenario { changes: changes.iter().map(|text| text.parse().unwrap()).collect(), ..Scenario::default() }
}

fn seidmann() -> WhatIfOptions {
    WhatIfOptions { method: Method::Seidmann, ..WhatIfOptions::default() }
}

fn ask(model: &Model, changes: &[&str]) -> WhatIf {
    what_if(model, &scenario(changes), &seidmann()).unwrap()
}

#[test]
fn the_papers_faster_cpu() {
    // 168 MHz to 250 MHz: "0.592 s", "183 tps".
    let found = ask(&server(1.0), &["CPU.demand=0.672x"]);
    let after = found.after.unwrap();
    let class4 = after.solution.unwrap().response_time[3];
    assert!((class4 - 0.592474).abs() < 5e-7, "{class4}");
    assert!((after.stations[0].saturation_rate - 183.408).abs() < 5e-4, "{:?}", after.stations);
    assert!((found.before.solution.as_ref().unwrap().response_time[3] - 6.66293).abs() < 5e-6);
    let limits: Vec<&str> = found.before.stations.iter().map(|s| s.station.as_str()).collect();
    assert_eq!(limits[..2], ["CPU", "Disk3"]);
    assert_eq!(found.changes, ["CPU.demand=0.672x"]);
}

#[test]
fn the_papers_slow_clients() {
    // Figs. 8 and 9, with what was fitted to them: 45,553 bytes; the figure leaves out the round trip.
    for (speed, case) in [("128kbps", "128kbps"), ("1Mbps", "1Mbps"), ("10Mbps", "10Mbps")] {
        let client = format!("class4:speed={speed},size=45553B,rtt=200ms").parse().unwrap();
        let asked = Scenario { clients: vec![client], ..Scenario::default() };
        let found = what_if(&server(1.0), &asked, &seidmann()).unwrap().after.unwrap().solution.unwrap();
        let case = cases().into_iter().find(|c| c["name"] == format!("paper_mixed_assumptionA_{case}")).unwrap();
        let expected = solve(&model_of(&case), Method::Exact).unwrap();
        for (ours, theirs) in found.response_time.iter().zip(&expected.response_time) {
            assert!((ours / theirs - 1.0).abs() < 1e-5, "{speed}: {ours} {theirs}");
        }
    }
}

#[test]
fn a_range_is_a_curve_that_outlives_saturation() {
    let found = curve(&server(1.0), &scenario(&["rate=100..140:5"]), Method::Seidmann).unwrap();
    let solved: Vec<bool> = found.points.iter().map(|point| point.steady.is_some()).collect();
    assert_eq!(solved, [true, true, true, false, false]);
    let last = found.points.last().unwrap();
    assert_eq!((last.x.as_slice(), last.bottleneck.as_str()), ([140.0].as_slice(), "CPU"));
    assert!((last.utilization[0] - 140.0 / 123.25).abs() < 1e-5 && (last.saturation_rate - 123.25).abs() < 1e-3);
    assert!(last.unsolved.as_ref().unwrap().contains("`CPU` cannot keep up"));
}

#[test]
fn headroom_is_where_the_objective_is_just_met() {
    let model = server(1.0);
    let found = headroom(&model, Method::Seidmann, &"class4:mean<1s".parse().unwrap()).unwrap();
    assert!(!found.met && found.now.unwrap() > 6.0);
    let Until::Rate(rate) = found.until else { panic!("{found:?}") };
    let at = |rate: f64| {
        let after = scenario(&[&format!("rate={rate}")]).apply(&model).unwrap();
        solve(&after, Method::Seidmann).unwrap().response_time[3]
    };
    assert!(at(rate) < 1.0 && at(rate * 1.000_001) > 1.0, "{rate}");
}
