//! Tests `brimful ab` on reference servers with known service times.

use crate::documents;
use crate::program::{Running, brimful, run, start_target, wait_until, words};
use brimful_core::ab::{AbMethod, AbStopReason, AbTest};
use rustix::process::{Pid, Signal, kill_process, test_kill_process_group};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// The command line that starts a reference server with this service time. `ab` sets the port.
fn target(service: &str) -> String {
    format!("{} target --listen 127.0.0.1:{{port}} --service page={service}", env!("CARGO_BIN_EXE_brimful"))
}

/// Flags for a short test: 10 rounds of slices of 200 ms.
const SHORT: [&str; 8] = ["--path", "/page", "--slice", "200ms", "-d", "25s", "--rate", "100"];

#[test]
fn twice_the_work_is_twice_the_cpu_time() {
    let (a, b) = (target("200us"), target("400us"));
    let args =
        [&["ab", "--a", &a, "--b", &b, "--until", "20%", "--json", "--max-regression", "cpu:5%"], &SHORT[..]].concat();
    // On a busy machine, the load generator may be late, so several exit codes are accepted.
    let done = run(&args).exits(&[1, 3, 4]);
    let tested: AbTest = documents::document(&done.stdout);
    assert_eq!((tested.stopping.figure.as_str(), tested.design.control_is_second_process), ("cpu", true));
    assert_eq!((tested.a.name.as_str(), tested.b.name.as_str()), (a.as_str(), b.as_str()));
    let cpu = tested.figures.iter().find(|figure| figure.name == "cpu").unwrap();
    if let Some([low, high]) = cpu.interval95 {
        assert!(low > 0.3 && high < 2.0, "{tested:#?}");
        assert!(tested.headline.contains("more CPU time per request"), "{}", tested.headline);
    }
    assert!(done.stderr.contains("round 2"), "{}", done.stderr);
    let control = tested.control.figures.iter().find(|figure| figure.name == "cpu").unwrap();
    assert!(control.difference.unwrap().abs() < 0.3, "{:#?}", tested.control);
}

#[test]
fn the_same_url_twice_is_a_check_of_the_method_and_is_said() {
    let (_target, url) = start_target(&["--service", "page=200us"]);
    let url = format!("{}/page", url.trim_end_matches('/'));
    let flags = ["--slice", "100ms", "-d", "4s", "-c", "1", "-q", "--design", "interleaved"];
    let done = run(&[&["ab", &url, &url, "--json"], &flags[..]].concat()).exits(&[0, 3, 4]);
    let tested: AbTest = documents::document(&done.stdout);
    assert_eq!((tested.design.method, tested.stopping.reason), (AbMethod::Interleaved, AbStopReason::OutOfTime));
    assert!(tested.warnings.iter().any(|warning| warning.contains("are the same server")), "{:?}", tested.warnings);
    assert_eq!(done.stderr, "");
    let done = run(&[&["ab", &url, &url, "--markdown"], &flags[..]].concat()).exits(&[0, 3, 4]);
    assert!(done.stdout.starts_with("**") && done.stdout.contains("| figure | A | B |"), "{}", done.stdout);
    let text = run(&[&["ab", &url, &url], &flags[..]].concat()).exits(&[0, 3, 4]).stdout;
    assert!(words(&text).contains("Method in turn (as requested)"), "{text}");
}

#[test]
fn commands_that_fail_are_named_with_what_they_wrote() {
    let a = target("100us");
    let ab = |b: &str| run(&[&["ab", "--a", &a, "--b", b], &SHORT[..]].concat());
    ab("cat /no-such-file").fails(3, "No such file or directory");
    ab("sleep 0.2; exit 3").fails(3, "B ended (exit status: 3) before it answered");
    // Server B ends while the first slices are measured.
    let dying = format!("{} & sleep 2; kill $!", target("100us"));
    let done = ab(&dying).exits(&[3]);
    assert!(done.stderr.contains("B ended") || done.stderr.contains("B ("), "{}", done.stderr);
    run(&["ab", "http://127.0.0.1:1/", "http://127.0.0.1:1/"]).fails(3, "nothing listens at 127.0.0.1:1");
    run(&["ab", "http://127.0.0.1:1/"]).fails(2, "B is missing");
    run(&["ab", "http://a/", "http://b/", "--a", "x"]).fails(2, "one server too many");
}

#[test]
fn unlike_answers_are_refused() {
    let (_target, url) = start_target(&["--service", "page=100us"]);
    let url = url.trim_end_matches('/');
    let [page, missing] = ["page", "missing"].map(|path| format!("{url}/{path}"));
    run(&["ab", &page, &missing, "--rate", "100", "--slice", "200ms", "-q"])
        .fails(2, "they answer differently: A 200 (100 %), B 404 (100 %)");
}

/// The process groups of the servers that `ab` has started. The shell command that starts a server also creates a file
/// in `directory`. The file's name is the number of the server's process group.
fn groups(directory: &Path) -> Vec<Pid> {
    let numbers = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    numbers.filter_map(|name| Pid::from_raw(name.parse().ok()?)).collect()
}

#[test]
fn servers_end_with_ab_whether_it_is_interrupted_or_killed() {
    for signal in [Signal::INT, Signal::KILL] {
        let directory = tempfile::tempdir().unwrap();
        // The command runs in a shell with a child process, so that `ab` must end the whole process group.
        let command = format!("touch {}/$$; {}; true", directory.path().display(), target("100us"));
        let args = [&["ab", "--a", &command, "--b", &command], &SHORT[..]].concat();
        let mut ab = Running::start(brimful(&args));
        ab.stderr_line("round 1");
        assert_eq!(groups(directory.path()).len(), 3);
        kill_process(Pid::from_raw(ab.pid() as i32).unwrap(), signal).unwrap();
        match signal {
            Signal::KILL => drop(ab),
            _ => drop(ab.finish().exits(&[130])),
        }
        wait_until(|| groups(directory.path()).into_iter().all(|group| test_kill_process_group(group).is_err()));
    }
}

/// Writes an executable shell script.
fn script(path: &Path, text: &str) {
    fs::write(path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Runs the recipe in docs/ci.md with a shorter measurement. Scripts replace git, make and gh.
#[test]
fn the_recipe_for_a_pull_request_posts_the_comparison() {
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/ci.md")).unwrap();
    let recipe =
        page.split("```sh\n").skip(1).find(|block| block.contains("brimful ab")).unwrap().split("```").next().unwrap();
    let short = recipe.replace("--until 2% --duration 5m", "--path /page --slice 100ms --duration 5s --rate 50");
    assert_ne!(short, recipe);
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    for name in ["bin", "base", "branch"] {
        fs::create_dir(path(name)).unwrap();
    }
    let program = env!("CARGO_BIN_EXE_brimful");
    let server = format!("exec {program} target --listen 127.0.0.1:$2 --service page=100us");
    script(&path("base/server"), &server);
    script(&path("branch/server"), &server);
    script(&path("bin/git"), "true");
    script(&path("bin/make"), "true");
    script(&path("bin/gh"), "cp comment.md posted.md");
    std::os::unix::fs::symlink(program, path("bin/brimful")).unwrap();
    let mut shell = Command::new("sh");
    let search = format!("{}:{}", path("bin").display(), std::env::var("PATH").unwrap());
    shell.args(["-e", "-c", &short.replace("--path / ", "")]).env("PATH", search).current_dir(path("branch"));
    Running::start(shell).finish().exits(&[0, 1, 3, 4]);
    let posted = fs::read_to_string(path("branch/posted.md")).unwrap();
    assert!(posted.contains("| figure | A | B |") && posted.contains("cpu:3%"), "{posted}");
}
