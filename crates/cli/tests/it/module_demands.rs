//! Tests service demands that the Server Module measures: a load of two classes, `brimful plan calibrate`, and a
//! survey. The values of the demands depend on the machine, so only their sources and relations are asserted.

use crate::documents;
use crate::plan::{Files, path_argument, plan};
use crate::program::{Running, brimful, lock_machine_shared, run, wait_until, words};
use brimful_core::model::Model;
use brimful_testkit::{Apache, ApacheOptions, Daemon, Mpm, Nginx, NginxOptions};
use serde_json::Value;
use std::fs;

/// Size of the small file, which is requested by the light class, in bytes.
const LIGHT: usize = 500;
const HEAVY: usize = 1 << 20;
const CLASSES: [&str; 4] = ["--class", "light=url /light", "--class", "heavy=url /heavy"];

fn files() -> Vec<(String, Vec<u8>)> {
    let file = |name: &str, size: usize| (name.to_owned(), vec![b'x'; size]);
    vec![file("index.html", 6), file("light", LIGHT), file("heavy", HEAVY)]
}

fn nginx() -> Nginx {
    Nginx::start(NginxOptions {
        files: files(),
        main: "include modules-enabled/*.conf;".to_owned(),
        http: "include conf.d/*.conf;".to_owned(),
        ..Default::default()
    })
}

fn apache() -> Apache {
    Apache::start(ApacheOptions {
        mpm: Mpm::Event,
        // With fewer workers, Apache closes connections that should stay open when some calls are late, even if a
        // request has just been sent.
        max_workers: 64,
        files: files(),
        extra: "IncludeOptional conf.d/*.conf\n".to_owned(),
    })
}

/// Installs the Server Module with these classes. It measures the CPU time of every request instead of a sample.
fn install(server: &Daemon, name: &str, classes: &[&str]) {
    let directory = server.directory();
    for made in ["modules-enabled", "conf.d"] {
        fs::create_dir(directory.join(made)).unwrap();
    }
    let prefix = path_argument(directory);
    let [config, memory] = ["server.conf", "brimful-memory"].map(|path| path_argument(&directory.join(path)));
    let place = ["--prefix", &prefix, "--config", &config, "--memory", &memory];
    let former = server.workers();
    let install = ["module", "install", name, "--yes", "--reload", "--cpu-one-in", "1"];
    run(&[&install[..], &place, classes].concat()).exits(&[0]);
    wait_until(|| !server.workers().iter().any(|worker| former.contains(worker)));
    // Apache starts further workers only once per second, so they may not exist yet.
    run(&["load", &server.url(), "--clients", "1", "-n", "1", "--quiet"]).exits(&[0, 4]);
}

fn workload(files: &Files) -> String {
    let class =
        |name: &str, weight: u32| format!("[[class]]\nname = \"{name}\"\npath = \"/{name}\"\nweight = {weight}\n\n");
    files.write("two.toml", class("light", 2) + &class("heavy", 1))
}

/// Runs a load while the server is watched, and returns the path of its Record.
fn record(server: &Daemon, files: &Files, name: &str) -> String {
    let (url, workload, out) = (server.url(), workload(files), path_argument(&files.path(name)));
    let load = ["load", &url, "--workload", &workload, "--rate", "150", "--duration", "4s", "--watch"];
    run(&[&load[..], &["--out", &out, "--quiet"]].concat()).exits(&[0, 4]);
    let record = documents::record(&fs::read_to_string(&out).unwrap());
    assert!(record.server.unwrap().module.is_some(), "the monitor found the module");
    out
}

fn calibrated(record: &str) -> Value {
    serde_json::from_str(&plan(&["calibrate", record, "--servers", "1", "--json"]).exits(&[0]).stdout).unwrap()
}

fn calibrates(server: &Daemon, name: &str) {
    install(server, name, &CLASSES);
    let files = Files::new();
    let record = record(server, &files, "record.json");
    let found = calibrated(&record);
    let inside = &found["inside"]["classes"];
    let class = |index: usize, key: &str| inside[index][key].as_f64().unwrap_or_else(|| panic!("{key}: {found:#}"));
    assert_eq!((inside[0]["class"].as_str(), inside[1]["class"].as_str()), (Some("heavy"), Some("light")));
    assert!(class(0, "demand_s") > class(1, "demand_s"), "a megabyte costs more than half a kilobyte: {inside:#}");
    assert!((0..2).all(|index| class(index, "sampled") > 20.0), "{inside:#}");
    // The Record contains only one mix of the classes. So regression cannot separate them, only the module's
    // measurements can.
    assert!(inside[0]["regression_s"].is_null() && found["merged"] == serde_json::json!([]), "{found:#}");
    assert_eq!(found["uncertainty"][0][0]["source"], "direct");
    let text = plan(&["calibrate", &record, "--servers", "1"]).exits(&[0]).stdout;
    let said = words(&text);
    assert!(said.contains("inside the server") && said.contains("cannot tell the classes apart"), "{text}");
    let model = path_argument(&files.path("model.json"));
    plan(&["calibrate", &record, "--servers", "1", "--out", &model]).exits(&[0]);
    let model: Model = serde_json::from_str(&fs::read_to_string(model).unwrap()).unwrap();
    // If the load also used a disk, the demands at the disk may have been measured only together. So only the CPU is
    // checked.
    assert!(model.joint_demands.iter().all(|joint| joint.station != "cpu"), "{model:?}");
    assert!(model.demands[0][0] > model.demands[0][1], "{model:?}");
}

#[test]
fn nginx_measures_its_demands_by_class() {
    calibrates(&nginx(), "nginx");
}

#[test]
fn apache_measures_its_demands_by_class() {
    calibrates(&apache(), "apache");
}

#[test]
fn classes_with_other_names_are_not_used() {
    let nginx = nginx();
    install(&nginx, "nginx", &[]);
    let found = calibrated(&record(&nginx, &Files::new(), "record.json"));
    assert!(found["inside"].is_null(), "{found:#}");
    let warnings = found["warnings"].to_string();
    let remedy = "brimful module install nginx --class 'light=url /light' --class 'heavy=url /heavy'";
    assert!(warnings.contains("it knows no class") && warnings.contains(remedy), "{warnings}");
}

/// A survey uses the Server Module's measurements if the module has the same classes as the load; otherwise, it says
/// that it does not. The accuracy of the demands is tested in `brimful-survey`, with simulated servers.
#[test]
fn a_survey_uses_the_servers_measurements_of_classes_with_the_same_names() {
    const NOT_USED: &str = "what the Server Module measures is not used";
    let (of_ours, of_others) = (nginx(), nginx());
    install(&of_ours, "nginx", &CLASSES);
    install(&of_others, "nginx", &[]);
    let _machine = lock_machine_shared();
    let files = Files::new();
    let workload = workload(&files);
    let survey_until = |url: &str, line: &str| {
        let survey = ["survey", url, "--workload", &workload, "--level", "300ms", "--max-load", "100%"];
        let mut running = Running::start(brimful(&[&survey[..], &["--json", "--report", "/dev/null"]].concat()));
        running.stderr_line(line);
        running.ctrl_c();
        running.finish().exits(&[130])
    };
    let done = survey_until(&of_ours.url(), "calibration, block 2");
    assert!(!done.stderr.contains(NOT_USED), "{}", done.stderr);
    survey_until(&of_others.url(), NOT_USED);
}
