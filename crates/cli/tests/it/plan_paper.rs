//! Tests `brimful plan calibrate --as-the-paper`: from a log and utilizations with the paper's proportions, it must
//! derive Table 2 of Menascé et al. (CMG 1999), and its prediction errors must not exceed those in the paper.

use crate::plan::{Files, json, numbers, path_argument, plan};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Table 2 of Menascé et al. (CMG 1999) without the rows of network links. Demands are in seconds, with a row for each
/// resource and a column for each class.
const TABLE_2: [(&str, [f64; 4]); 4] = [
    ("cpu", [0.000_4, 0.008_52, 0.064_76, 0.334_4]),
    ("disk1", [0.000_74; 4]),
    ("disk2", [0.000_67; 4]),
    ("disk3", [0.001_74, 0.001_84, 0.013_99, 0.072_25]),
];
/// Relative errors of the paper's predictions: of the throughput (131 instead of 120 per second), and of the
/// utilization.
const PAPER_THROUGHPUT_ERROR: f64 = 0.092;
const PAPER_UTILIZATION_ERROR: f64 = 0.065;
/// Requests per second at which the paper's server saturates, according to its Tables 1 and 2.
const SATURATION: f64 = 123.25;

/// Writes the log and the utilizations. Returns their paths.
fn traffic(files: &Files) -> [String; 2] {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/paper/traffic.awk");
    let done = Command::new("awk").arg("-f").arg(&script).current_dir(files.path("")).output();
    let done = done.expect("awk is needed: it makes the log");
    assert!(done.status.success(), "{done:?}");
    ["access.log", "utilization.csv"].map(|name| path_argument(&files.path(name)))
}

fn calibrate<'a>(traffic: &'a [String; 2], more: &[&'a str]) -> Vec<&'a str> {
    let site = ["calibrate", "--servers", "2", "--log", &traffic[0], "--utilization", &traffic[1]];
    [&site, more].concat()
}

/// Flags with the demands of class 1, which the paper measured separately.
const MEASURED: [&str; 4] = ["--demand", "cpu.class1=0.4ms", "--demand", "disk3.class1=1.74ms"];

fn resource<'a>(site: &'a Value, name: &str) -> &'a Value {
    site["resources"].as_array().unwrap().iter().find(|resource| resource["name"] == name).unwrap()
}

#[test]
fn table_2_is_derived_from_a_log_and_utilizations() {
    let files = Files::new();
    let traffic = traffic(&files);
    let out = path_argument(&files.path("model.json"));
    let site = json(&calibrate(&traffic, &[&["--as-the-paper", "--out", &out], &MEASURED[..]].concat()));
    for (name, row) in TABLE_2 {
        let resource = resource(&site, name);
        for (demand, truth) in resource["demands"].as_array().unwrap().iter().zip(row) {
            let value = demand["demand"].as_f64().unwrap();
            if demand["known"].is_string() {
                assert_eq!(value, truth);
                continue;
            }
            let [low, high] = ["low", "high"].map(|end| demand["demand_ci95"][end].as_f64().unwrap());
            assert!((low..=high).contains(&truth), "{name}: {truth} is not in {low}..{high}");
            assert!(high - low < 0.2 * truth, "{name}: {low}..{high} is too wide");
        }
        let check = resource["check"]["error"].as_f64().unwrap();
        assert!(check.abs() < PAPER_UTILIZATION_ERROR, "{name}: {resource}");
    }
    assert_eq!(
        (&resource(&site, "cpu")["rule"], &resource(&site, "disk1")["rule"]),
        (&"size".into(), &"requests".into())
    );
    assert!(resource(&site, "cpu")["why"].as_str().unwrap().contains("as in the paper"), "{site}");

    // The model must predict the throughput, and the CPU utilization by each class.
    let model: Value = serde_json::from_str(&fs::read_to_string(&out).unwrap()).unwrap();
    let solved = json(&["solve", &out]);
    let saturation = solved["saturation_rate"].as_f64().unwrap();
    assert!((saturation / SATURATION - 1.0).abs() < PAPER_THROUGHPUT_ERROR, "{saturation}");
    for (found, truth) in numbers(&model["demands"][0]).iter().zip(TABLE_2[0].1) {
        // At a given rate, utilizations are proportional to demands.
        assert!((found / truth - 1.0).abs() < PAPER_UTILIZATION_ERROR, "{found} and {truth}");
    }
}

#[test]
fn each_resource_has_its_own_rule_and_says_why() {
    let files = Files::new();
    let traffic = traffic(&files);
    let paper_classes = ["--size-classes", "0,4372,19284"];
    let rules = ["--attribution", "cpu=size,disk1=bytes,disk3=from-19285", "--demand", "cpu.empty=0.4ms"];
    let site = json(&calibrate(&traffic, &[&paper_classes[..], &rules].concat()));
    let names: Vec<&str> =
        site["model"]["classes"].as_array().unwrap().iter().map(|class| class["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["empty", "1-4372", "4373-19284", "from-19285"]);
    let demands = |name: &str| -> Vec<f64> {
        let rows = resource(&site, name)["demands"].as_array().unwrap();
        rows.iter().map(|demand| demand["demand"].as_f64().unwrap()).collect()
    };
    assert!((demands("cpu")[3] / 0.3344 - 1.0).abs() < 0.05, "{site}");
    let disk1 = demands("disk1");
    assert!(disk1[0] == 0.0 && disk1[3] > 10.0 * disk1[1], "{disk1:?}");
    let disk3 = demands("disk3");
    assert!(disk3[..3].iter().all(|demand| *demand == 0.0) && disk3[3] > 0.0, "{disk3:?}");
    let text = plan(&calibrate(&traffic, &[&paper_classes[..], &rules].concat())).exits(&[0]).stdout;
    for words in ["chosen with --attribution", "empty is known from --demand", "only from-19285 uses it"] {
        assert!(text.contains(words), "{words:?} was expected in\n{text}");
    }
}

#[test]
fn wrong_rules_name_what_there_is() {
    let files = Files::new();
    let traffic = traffic(&files);
    let fails = |more: &[&str], words: &str| plan(&calibrate(&traffic, more)).fails(2, words);
    fails(&["--attribution", "gpu=size"], "it has cpu, disk1, disk2, disk3");
    fails(&["--attribution", "cpu=weight"], "neither a rule nor a class");
    fails(&["--attribution", "cpu="], "cpu=size");
    fails(&["--attribution", "cpu=size,cpu=bytes"], "two rules for cpu");
    fails(&["--as-the-paper", "--demand", "cpu.empty=1ms"], "it has class1, class2, class3, class4");
    fails(&["--as-the-paper", "--demand", "gpu.class1=1ms"], "--demand: there is no resource `gpu`");
    fails(&["--as-the-paper", "--demand", "cpu.class1=1s"], "check their units");
    fails(&["--as-the-paper", "--demand", "cpu.class1=1ms", "--demand", "cpu.class1=2ms"], "given twice");
    fails(&["--attribution", "bytes", "--size-classes", "0,4372"], "class `empty` no time at any resource");
    fails(&["--size-classes", "10k,1k"], "ascending order");
    fails(&["--mss", "536"], "--mss has no effect");
    fails(&["--alone", "/no/such/file"], "cannot read /no/such/file");
    fails(&["--programs", "/no/such/file"], "cannot read /no/such/file");
    fails(&["--access", "images=1mbit"], "there is no class `images`");
    // With only two time steps, the demand of a response without a body cannot be determined, so it must be given.
    let utilization = fs::read_to_string(&traffic[1]).unwrap();
    let two: String = utilization.lines().take(3).map(|line| format!("{line}\n")).collect();
    let short = [traffic[0].clone(), files.write("short.csv", two)];
    plan(&calibrate(&short, &["--as-the-paper"])).fails(2, "--demand cpu.class1=TIME");
    plan(&calibrate(&short, &[&["--as-the-paper"], &MEASURED[..]].concat())).exits(&[0]);
    let renamed = fs::read_to_string(&traffic[1]).unwrap().replace("disk2", "sda");
    let renamed = [traffic[0].clone(), files.write("renamed.csv", renamed)];
    plan(&calibrate(&renamed, &[&["--as-the-paper"], &MEASURED[..]].concat())).fails(2, "--attribution sda=requests");
    plan(&["calibrate", "a.json", "--attribution", "cpu=size"]).fails(2, "for --log");
    for flag in [&["--as-the-paper"][..], &["--demand", "cpu.a=1ms"], &["--link", "10mbit"], &["--size-classes", "1k"]]
    {
        plan(&[&["calibrate", "a.json"], flag].concat()).fails(2, "cannot be used with");
    }
    plan(&calibrate(&[String::from("-"), traffic[1].clone()], &[])).fails(2, "logs are read twice");
}

#[test]
fn the_network_follows_from_the_sizes() {
    let files = Files::new();
    let traffic = traffic(&files);
    let network =
        ["--link", "10mbit", "--rtt", "60ms", "--mss", "1460", "--access", "128kbit", "--access", "class4=1mbit"];
    let out = path_argument(&files.path("model.json"));
    let more = [&["--as-the-paper", "--out", &out], &MEASURED[..], &network].concat();
    let site = json(&calibrate(&traffic, &more));
    let model = &site["model"];
    let names: Vec<&str> =
        model["stations"].as_array().unwrap().iter().map(|station| station["name"].as_str().unwrap()).collect();
    assert_eq!(names[4..], ["in-link", "out-link", "round-trips", "access-link"]);
    let row = |station: usize| numbers(&model["demands"][station]);
    // A response without a body has 300 bytes of header fields. There are six segments, each with 40 bytes of TCP and
    // IP headers: the response, an acknowledgement, and four to open and close the connection.
    let bytes = 300.0 + 6.0 * 40.0;
    assert!((row(5)[0] - bytes * 8.0 / 10e6).abs() < 1e-12 && (row(6)[0] - 0.120).abs() < 1e-12, "{model}");
    assert!((row(7)[0] - 2.0 * bytes * 8.0 / 128e3).abs() < 1e-9, "{model}");
    // A response of 45 kB needs 32 segments. With slow start, these take three round trips; opening the connection
    // takes another.
    assert!((row(6)[3] - 0.240).abs() < 1e-12, "{model}");
    assert!((row(5)[3] / (45_553.0 * 8.0 / 10e6) - 1.0).abs() < 0.1, "{model}");
    let solved = json(&["solve", &out]);
    assert!(solved["response_time"][3].as_f64().unwrap() > 0.24, "{solved}");
}
