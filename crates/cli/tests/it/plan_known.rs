//! Tests that the known demands of a server are recovered with real programs: `brimful target`, `load --watch`, `plan
//! calibrate`, and the commands that read a model.

use crate::documents;
use crate::plan::{Files, assert_plans_read, json, numbers, path_argument};
use crate::program::{Running, brimful, lock_machine_shared, start_target};
use brimful_core::record::{ReasonCode, Record};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;

/// Configured CPU time of each class of the server, in seconds per request.
const WORK_S: [f64; 2] = [0.002, 0.008];

#[test]
fn the_demands_of_the_target_are_recovered() {
    let files = Files::new();
    let (target, url) = start_target(&["--service", "a=2ms,b=8ms"]);
    let address = url.trim_start_matches("http://");
    // On a busy machine, runs may be disturbed. If no run is usable, all runs are made again, up to two times.
    let usable = (0..3).find_map(|_| {
        let runs = measured(&files, address);
        let records = runs.each_ref().map(|path| documents::record(&fs::read_to_string(path).unwrap()));
        let (used, left_out): (Vec<usize>, Vec<usize>) = (0..runs.len()).partition(|index| is_usable(&records[*index]));
        (!used.is_empty()).then_some((runs, used, left_out))
    });
    let (runs, used, left_out) = usable.expect("no run is usable: this machine is too busy");
    target.signal(Signal::TERM);
    target.finish().exits(&[0]);

    let out = path_argument(&files.path("model.json"));
    let args = [&["calibrate", "--servers", "1", "--out", &out], &runs.each_ref().map(String::as_str)[..]].concat();
    let found = json(&args);
    let indices =
        |list: &Value| list.as_array().unwrap().iter().map(|i| i.as_u64().unwrap() as usize).collect::<Vec<_>>();
    let reported = found["left_out"].as_array().unwrap().iter().map(|run| run["record"].clone()).collect();
    assert_eq!((indices(&found["used"]), indices(&reported)), (used.clone(), left_out), "{found:#}");
    let demands = numbers(&found["model"]["demands"][0]);
    for (class, demand) in found["model"]["classes"].as_array().unwrap().iter().zip(demands) {
        // If only one class has usable runs, the model's class is not named after the path. Runs 2 and 3 request /b.
        let of_b = class["name"] == "/b" || used.iter().all(|index| *index >= 2);
        let burnt = WORK_S[usize::from(of_b)];
        // The tolerance is large, because the runs are short. On a busy machine, the CPU time of a call may be in
        // another interval than its end.
        assert!(demand > 0.5 * burnt && demand < 2.0 * burnt + 0.001, "{demand} of {burnt}: {found:#}");
    }
    assert_eq!(found["uncertainty"][0][0]["source"], "single_class_run");

    // The model can be read from its own file, and from the calibration document.
    let whole = files.write("calibration.json", found.to_string());
    assert_eq!(assert_plans_read(&files, &out)["throughput"], assert_plans_read(&files, &whole)["throughput"]);
}

/// Makes two runs of each class, at different rates. Returns the paths of their Records.
fn measured(files: &Files, address: &str) -> [String; 4] {
    [("/a", "4"), ("/a", "90"), ("/b", "4"), ("/b", "15")].map(|(path, rate)| {
        let _machine = lock_machine_shared();
        let file = files.path(&format!("{}{rate}.json", &path[1..]));
        let (url, out) = (format!("http://{address}{path}"), file.to_str().unwrap());
        let load = ["load", &url, "--rate", rate, "--duration", "1500ms", "--watch", "--out", out, "--quiet"];
        // Exit code 4 is accepted: on a busy host, calls may be late, which does not matter here.
        Running::start(brimful(&load)).finish().exits(&[0, 4]);
        out.to_owned()
    })
}

/// Whether the load generator and the server were not disturbed too much: apart from lateness, there is no reason for
/// an invalid run, and the throughput is close to the offered load.
fn is_usable(record: &Record) -> bool {
    let late = record.verdict.reasons.iter().all(|reason| reason.code == ReasonCode::GeneratorLate);
    late && record.rates.completed >= 0.95 * record.rates.offered
}
