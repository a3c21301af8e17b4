//! Tests that a `brimful module install` that was killed can be repeated or removed.

use crate::module::{NGINX_CONF_WITH_MODULES, built_module, files_without_logs, make_prefix, module};
use crate::program::{brimful, lock_machine_shared};
use crate::safety::run_in;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::thread::sleep;
use std::time::Instant;

/// Number of trials. Each trial kills the installation at a different time; the times are spread evenly over its
/// duration.
const INSTANTS: u32 = 20;

#[test]
fn a_killed_installation_can_be_repeated_or_removed() {
    let directory = make_prefix(NGINX_CONF_WITH_MODULES);
    let temporary = tempfile::tempdir().unwrap();
    let (place, scratch) = (directory.path(), temporary.path().join("scratch"));
    fs::create_dir(&scratch).unwrap();
    let file = temporary.path().join("given.so");
    fs::write(&file, built_module()).unwrap();
    let before = files_without_logs(place);
    let prefix = place.to_str().unwrap();
    let given = format!("--module={}", file.display());
    let install = ["module", "install", "nginx", "--prefix", prefix, "--yes", &given];
    let other_classes = [&install[..], &["--class", "all=size 0-"]].concat();
    let remove = ["module", "remove", "nginx", "--prefix", prefix];

    let began = Instant::now();
    run_in(&scratch, &install).exits(&[0]);
    let whole = began.elapsed();
    run_in(&scratch, &remove).exits(&[0]);

    for instant in 0..INSTANTS {
        // In every second trial, a first installation is completed, and a second one with other files is killed. In the
        // other trials, the first installation is killed. In half of the trials, an installation follows the killed
        // one.
        let (is_second, is_repeated) = (instant % 2 == 1, instant / 2 % 2 == 1);
        if is_second {
            run_in(&scratch, &install).exits(&[0]);
        }
        let machine = lock_machine_shared();
        let mut command = brimful(if is_second { &other_classes } else { &install[..] });
        command.env("TMPDIR", &scratch).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        sleep(whole * instant / INSTANTS);
        child.kill().unwrap();
        child.wait().unwrap();
        drop(machine);
        if is_repeated {
            run_in(&scratch, &install).exits(&[0]);
        }
        let done = run_in(&scratch, &remove);
        let is_none = !is_second && !is_repeated && done.stderr.contains("has no module that brimful installed");
        assert!(done.code == 0 || (done.code == 2 && is_none), "killed at {instant} of {INSTANTS}: {done:#?}");
        assert_eq!(files_without_logs(place), before, "killed at {instant} of {INSTANTS}");
        assert_eq!(names(&scratch), Vec::<String>::new(), "killed at {instant} of {INSTANTS}");
    }
}

#[test]
fn an_unfinished_installation_is_reported() {
    let directory = make_prefix(NGINX_CONF_WITH_MODULES);
    let file = tempfile::Builder::new().suffix(".so").tempfile().unwrap();
    fs::write(file.path(), built_module()).unwrap();
    let given = format!("--module={}", file.path().display());
    module("install", "nginx", directory.path(), &["--yes", &given]).exits(&[0]);
    let manifest = directory.path().join("modules/ngx_http_brimful_module.json");
    let text = fs::read_to_string(&manifest).unwrap();
    assert!(text.contains("\"unfinished\": false"), "{text}");
    fs::write(&manifest, text.replace("\"unfinished\": false", "\"unfinished\": true")).unwrap();
    let said = module("status", "nginx", directory.path(), &[]).exits(&[0]).stdout;
    assert!(said.contains("the installation was not finished; run: brimful module install nginx"), "{said}");
}

fn names(directory: &Path) -> Vec<String> {
    fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
}
