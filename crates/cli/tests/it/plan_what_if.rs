//! Tests `brimful plan what-if`: changes, curves, objectives, and errors.

use crate::plan::{
    Files, assert_same_keys_as_example, case, check_golden, embedded_document, json, model, paper_model, path_argument,
    plan,
};
use std::fs;

#[test]
fn the_papers_faster_cpu() {
    // Reproduces a result of Menascé et al. (CMG 1999), who replaced a CPU of 168 MHz by one of 250 MHz: a response
    // time of "0.592 s", and "183 tps".
    let files = Files::new();
    let path = files.write("paper.json", model(&case("paper_open_120tps")).to_string());
    let found = json(&["what-if", &path, "--method", "seidmann", "--set", "CPU.demand=0.672x"]);
    let after = &found["after"];
    assert!((after["solution"]["response_time"][3].as_f64().unwrap() - 0.592474).abs() < 5e-7, "{found}");
    assert!((after["solution"]["saturation_rate"].as_f64().unwrap() - 183.408).abs() < 5e-4, "{found}");
    assert!((found["before"]["solution"]["response_time"][3].as_f64().unwrap() - 6.66293).abs() < 5e-6, "{found}");
}

#[test]
fn the_text_shows_before_and_after() {
    let files = Files::new();
    let path = files.write("paper.json", paper_model().to_string());
    let asked = ["what-if", &path, "--set", "CPU.speed=1.5x", "--add-class", "batch:rate=2,CPU=5ms,Disk1=2ms"];
    let objectives = ["--slo", "class4:p95<2s", "--slo", "CPU.utilization<70%"];
    check_golden("plan-what-if.txt", &plan(&[&asked[..], &objectives].concat()).exits(&[0]).stdout);

    let html = path_argument(&files.path("page.html"));
    let found = json(&[&asked[..], &objectives, &["--html", &html]].concat());
    assert_eq!(embedded_document("what-if", &html), found);
    // The document contains the changed model, so another command can read it.
    let next = json(&["solve", &files.write("next.json", found.to_string())]);
    assert_eq!(next["throughput"], found["after"]["solution"]["throughput"]);
    assert_same_keys_as_example("what-if.json", &found);
}

#[test]
fn a_missed_objective_exits_1() {
    let files = Files::new();
    let path = files.write("paper.json", paper_model().to_string());
    let ask = |more: &[&str]| plan(&[&["what-if", &path, "--slo", "class4:mean<1s"], more].concat());
    assert!(ask(&[]).exits(&[1]).stdout.contains("✗"));
    assert!(ask(&["--set", "CPU.servers=4"]).exits(&[0]).stdout.contains("✓"));
    assert!(ask(&["--set", "CPU.speed=0.5x"]).exits(&[1]).stdout.contains("`CPU` cannot keep up"));
}

#[test]
fn a_range_gives_a_curve_in_text_and_in_a_file() {
    let files = Files::new();
    let path = files.write("paper.json", model(&case("paper_open_120tps")).to_string());
    let csv = path_argument(&files.path("curve.csv"));
    let text = plan(&["what-if", &path, "--set", "class4.rate=1..9:41", "--csv", &csv]).exits(&[0]).stdout;
    check_golden("plan-what-if-curve.txt", &text);
    assert_same_keys_as_example("what-if-curve.json", &json(&["what-if", &path, "--set", "class4.rate=1..9:41"]));
    let rows = fs::read_to_string(&csv).unwrap();
    let mut lines = rows.lines();
    let header: Vec<&str> = lines.next().unwrap().split(',').collect();
    assert_eq!(header[0], "class4.rate (1/s)");
    assert_eq!(rows.lines().count(), 42);
    assert!(rows.contains("keep up"), "{rows}");
    plan(&["what-if", &path, "--set", "CPU.speed=2x", "--csv", &csv]).exits(&[2]);
}

#[test]
fn slow_clients_can_be_added() {
    let files = Files::new();
    let path = files.write("paper.json", model(&case("paper_open_120tps")).to_string());
    let found = json(&["what-if", &path, "--client", "class4:speed=128kbps,size=45.5KB,rtt=200ms"]);
    let classes = found["after"]["model"]["classes"].as_array().unwrap();
    assert_eq!(classes.len(), 5, "{classes:?}");
    assert!(found["after"]["solution"]["response_time"][4].as_f64().unwrap() > 3.0, "{found}");
}

#[test]
fn impossible_changes_are_refused() {
    let files = Files::new();
    let path = files.write("paper.json", model(&case("paper_open_120tps")).to_string());
    let fails = |more: &[&str], words: &str| plan(&[&["what-if", &path], more].concat()).fails(2, words);
    fails(&[], "nothing to do");
    fails(&["--set", "GPU.speed=2x"], "`Disk1`");
    fails(&["--set", "CPU.sped=2x"], "speed");
    fails(&["--set", "CPU.speed=2"], "write 1.5x");
    fails(&["--set", "CPU.servers=4", "--set", "CPU.servers=8"], "CPU.servers");
    fails(&["--slo", "p95"], "write it like p95<200ms");
    fails(&["--slo", "class9:p95<1s"], "`class1`");
    fails(&["--client", "class4:speed=fast"], "128kbps");
    fails(&["--add-class", "batch"], "write it like");
    plan(&["what-if"]).fails(2, "<MODEL>");
}
