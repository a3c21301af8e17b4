//! From a server of known demands to its model, and nothing made up: `brimful target`, `load --watch`, `plan calibrate`.

use crate::plan::{Files, json, numbers};
use crate::program::{Running, brimful, share_machine};
use rustix::process::Signal;

/// CPU seconds that the server burns for each request, beside handling it.
const BURNT: [f64; 2] = [0.002, 0.008];

#[test]
fn what_the_target_burns_is_found_again() {
    let files = Files::new();
    let service = ["target", "--listen", "127.0.0.1:0", "--service", "a=2ms,b=8ms"];
    let mut target = Running::start(brimful(&service));
    let address = target.stdout_line().trim_end().replace("listening on http://", "");
    let runs = [("/a", "4"), ("/a", "90"), ("/b", "4"), ("/b", "15")].map(|(path, rate)| {
        let _machine = share_machine();
        let file = files.path(&format!("{}{rate}.json", &path[1..]));
        let (url, out) = (format!("http://{address}{path}"), file.to_str().unwrap());
        let load = ["load", &url, "--rate", rate, "--duration", "1500ms", "--watch", "--out", out, "--quiet"];
        // A busy host may make calls late, which is in the Record and no matter here.
        Running::start(brimful(&load)).finish().exits(&[0, 4]);
        out.to_owned()
    });
    target.signal(Signal::TERM);
    target.finish().exits(&[0]);

    let args: Vec<&str> = ["calibrate", "--servers", "1"].into_iter().chain(runs.iter().map(String::as_str)).collect();
    let found = json(&args);
    let demands = numbers(&found["model"]["demands"][0]);
    for (demand, burnt) in demands.into_iter().zip(BURNT) {
        assert!(demand > 0.9 * burnt && demand < burnt + 0.001, "{demand} of {burnt}: {found:#}");
    }
    assert!(found["uncertainty"][0][0]["source"] == "single_class_run" && found["used"].as_array().unwrap().len() == 4);
}
