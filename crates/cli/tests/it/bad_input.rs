//! Tests invalid input, and paths that do not exist: the exit code must be right, and the message must say what to do.

use crate::program::run;
use brimful_testkit::RefusingPort;
use std::fs;
use std::net::TcpListener;

/// A listener that never accepts a connection, for commands that must fail before they send a request. Also returns its
/// address.
fn listener() -> (TcpListener, String) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap().to_string();
    (listener, address)
}

#[test]
fn urls_that_cannot_be_loaded() {
    let pace = ["--rate", "10"];
    let load = |url: &str| run(&[&["load", url], &pace[..]].concat());
    // A label of the first name is too long; the second name as a whole is too long. Neither must be sent to a name
    // server.
    for name in ["x".repeat(64), ["x"; 128].join(".")] {
        load(&format!("http://{name}/")).fails(2, "check the spelling");
    }
    load("ftp://127.0.0.1/").fails(2, "http:// and https://, not ftp");
    load("http://").fails(2, "write it like");
    let silent = RefusingPort::reserve();
    let nobody = silent.addr();
    load(&format!("http://{nobody}/")).fails(3, "start the server first");
    run(&["load", "--rate", "10"]).fails(2, "<URL>");
}

#[test]
fn loads_that_are_not_possible() {
    let (_listener, address) = listener();
    for (pace, message) in [
        (&["--rate", "0"][..], "a rate is above zero"),
        (&["--rate", "-1"], "write it like 1000"),
        (&["--rate", "many"], "write it like 1000"),
        (&["--clients", "0"], "--clients at least 1"),
        (&["--clients", "1.5"], "write it like 1000"),
        (&["--arrivals", "poisson"], "--rate"),
        (&["--rate", "10", "--clients", "1"], "cannot be used with"),
        (&["--rate", "10", "--timeout", "10"], "write it like 500ms"),
        (&["--rate", "10", "--duration", "soon"], "write it like 500ms"),
        (&["--rate", "10", "--duration", "0s"], "--duration more than 0s"),
        (&["--rate", "10", "--requests", "0"], "--requests at least 1"),
        (&["--rate", "10", "--threads", "0"], "--threads at least 1"),
        (&["--rate", "10", "--timeout", "0s"], "--timeout"),
        (&["--rate", "10", "--calls-per-connection", "0"], "--calls-per-connection at least 1"),
        (&["--rate", "10", "--arrivals", "bursty"], "poisson"),
        (&["--rate", "10", "--cpus", "one"], "write it like 0 or 0,2-3"),
        (&["--rate", "10", "-H", "Accept"], "write it like 'Accept: text/html'"),
        (&["--rate", "10", "-H", "Accept: a\nb"], "header"),
        (&["--rate", "10", "-m", "GET /"], "method"),
        (&["--rate", "10", "--mix", "a=1"], "--workload"),
        (&["--rate", "10", "--loud"], "--loud"),
        (&["--s-clients", "0"], "--s-clients at least 1"),
        (&["--s-clients", "9", "--clients", "9"], "cannot be used with"),
        (&["--s-clients", "9", "--rate", "9", "--think", "1s"], "cannot be used with"),
        (&["--s-clients", "9", "--arrivals", "poisson"], "add --rate"),
        (&["--s-clients", "9", "--pipeline", "2"], "leave out --pipeline"),
        (&["--rate", "10", "--pipeline", "0"], "--pipeline at least 1"),
        (&["--rate", "10", "--arrivals", "onoff:6,0.5"], "onoff"),
        (&["--rate", "10", "--arrivals", "mmpp:2"], "mmpp"),
        (&["--rate", "10", "--arrivals", "selfsimilar:2"], "selfsimilar"),
        (&["--rate", "10", "--speed", "2x"], "--speed is for traces"),
        (&["--arrivals", "trace:/no/such/file"], "/no/such/file"),
        (&["--rate", "1", "--arrivals", "trace:/dev/null"], "--speed"),
        (&["--stage", "30s"], "30s:1000"),
        (&["--stage", "10s:0"], "stage"),
        (&["--rate", "10", "--source-ip", "127.0.0.0/33"], "127.0.0.0/28"),
        (&["--rate", "10", "--source-ip", "198.51.100.0/28"], "none of its addresses is this host's"),
        (&["--rate", "10", "--source-ip", "::1"], "of another family"),
        (&["--rate", "10", "--receive-buffer", "0"], "--receive-buffer more than 0"),
        (&["--rate", "10", "--send-buffer", "4GiB"], "give a smaller size"),
        (&["--rate", "10", "--engine", "kqueue"], "uring"),
        (&["--rate", "10", "--cpus", "1023"], "nproc"),
    ] {
        run(&[&["load", address.as_str()], pace].concat()).fails(2, message);
    }
}

#[test]
fn flags_of_the_other_loop_are_refused() {
    let (_listener, address) = listener();
    let load = |pace: &[&str]| run(&[&["load", &address, "--requests", "1", "--timeout", "100ms"], pace].concat());
    load(&["--clients", "1", "--arrivals", "poisson"]).fails(2, "--arrivals");
    load(&["--rate", "10", "--think", "1s"]).fails(2, "--think");
}

#[test]
fn workloads_that_cannot_be_read() {
    let (_listener, address) = listener();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("workload.toml");
    let path = path.to_str().unwrap();
    let load = |rest: &[&str]| run(&[&["load", &address, "--rate", "10", "--workload", path], rest].concat());
    load(&[]).fails(2, "No such file");
    for (text, message) in [
        ("\0\u{fffd}[[[", "workload.toml: TOML parse error"),
        ("", "missing field `class`"),
        ("class = []", "add a [[class]]"),
        ("[[class]]\nname = \"a\"\npath = \"/\"\nwieght = 2\n", "unknown field `wieght`"),
        ("[[class]]\nname = \"a\"\npath = \"index.html\"\n", "a path begins with `/`"),
    ] {
        fs::write(path, text).unwrap();
        load(&[]).fails(2, message);
    }
    fs::write(path, "[[class]]\nname = \"a\"\npath = \"/\"\n").unwrap();
    load(&["--mix", "b=1"]).fails(2, "--mix: there is no class `b`; the classes are: a");
    load(&["--mix", "a"]).fails(2, "write it like light=0.7,heavy=0.3");
    load(&["--mix", "a=0"]).fails(2, "one of them is above zero");
    load(&["--method", "POST"]).fails(2, "cannot be used with");
}

#[test]
fn files_that_cannot_be_written_are_errors_before_the_load() {
    let (_listener, address) = listener();
    let dir = tempfile::tempdir().unwrap();
    let (nowhere, directory) = (dir.path().join("no/such/record.json"), dir.path());
    for path in [nowhere.to_str().unwrap(), directory.to_str().unwrap()] {
        // If the path were not checked before the load, this command would take an hour.
        let load = ["load", &address, "--rate", "10", "--duration", "1h", "--out", path];
        run(&load).fails(3, "choose another place with --out");
        let survey = ["survey", "--demo", "--report", path];
        run(&survey).fails(3, "choose another place with --report");
    }
}

#[test]
fn reference_servers_that_are_not_possible() {
    let (_listener, taken) = listener();
    for (args, code, message) in [
        (&["--service", "light"][..], 2, "write it like light=200us or heavy=2ms+sleep:5ms/16KiB"),
        (&["--service", "a=1ms+nap:1ms"], 2, "the step `nap:1ms` is none of cpu, work, lock, sleep and read"),
        (&["--service", "a=read:4GiB"], 2, "use between 1 and 16777216 bytes"),
        (&["--service", "a=1ms", "--work", "a=1ms"], 2, "two service classes are named `a`"),
        (&["--work", "a=7"], 2, "is not a duration"),
        (&["--pool", "0"], 2, "use at least one"),
        (&["--service", "a=read:4KiB", "--read-dir", "/proc"], 3, "name a directory that can be written to"),
        (&["--service", "light=200"], 2, "is not a duration"),
        (&["--service", "a=1ms,a=2ms"], 2, "give each a name of its own"),
        (&["--service", "a/b=1ms"], 2, "use letters, digits"),
        (&["--distribution", "normal"], 2, "use deterministic or exponential"),
        (&["--workers", "0"], 2, "use at least one"),
        (&["--workers", "5G"], 2, "too many"),
        (&["--backlog", "4G"], 2, "choose a smaller one"),
        (&["--listen", "127.0.0.1"], 2, "--listen"),
        (&["--listen", &taken], 3, "choose another port"),
        (&["--listen", "192.0.2.1:8080"], 3, "not an address of this host"),
    ] {
        run(&[&["target"], args].concat()).fails(code, message);
    }
}

#[test]
fn cpus_that_do_not_exist() {
    let (_listener, address) = listener();
    run(&["load", &address, "--rate", "10", "--cpus", "4000"]).fails(2, "4000");
    run(&["target", "--listen", "127.0.0.1:0", "--cpus", "4000"]).fails(2, "4000");
    let pid = std::process::id().to_string();
    run(&["survey", &address, "--process", &pid, "--server-cpus", "4000", "--report", "/dev/null"])
        .fails(2, "CPU 4000 is not online");
}

#[test]
fn surveys_that_cannot_start() {
    let (_listener, address) = listener();
    run(&["survey"]).fails(2, "<URL>");
    run(&["survey", &address, "--demo"]).fails(2, "cannot be used with");
    run(&["survey", &address, "--level", "4"]).fails(2, "write it like 500ms");
    for (objective, problem) in [
        ("p99<50", "not a duration"),
        ("p99<1x", "not a multiple of light load"),
        ("cpu.utilization<70%", "is about a utilization"),
        ("nobody:p99<1s", "is about a class that is not there"),
    ] {
        run(&["survey", &address, "--slo", objective, "--report", "/dev/null"]).fails(2, problem);
    }
    run(&["survey", &address, "--slo", "p99<1s", "--slo", "p99<10x", "--report", "/dev/null"])
        .fails(2, "limit the same figure");
    run(&["survey", "ftp://127.0.0.1/"]).fails(2, "http:// and https://, not ftp");
    let silent = RefusingPort::reserve();
    let nobody = silent.addr();
    run(&["survey", &nobody.to_string()]).fails(3, "start the server first");
    run(&["survey", &address, "--process", "no-such-program", "--report", "/dev/null"])
        .fails(3, "`no-such-program` is running: start the server first");
    let nobody = i32::MAX.to_string();
    run(&["survey", &address, "--process", &nobody, "--report", "/dev/null"]).fails(3, &nobody);
}
