//! Tests the error messages of `brimful watch`.

use crate::program::run;
use brimful_testkit::RefusingPort;
use std::fs;
use std::net::TcpListener;

#[test]
fn invalid_flags() {
    for (args, message) in [
        (&["--groups", "disk"][..], "kernel, process, network, connections, module and requests"),
        (&["--interval", "0s"], "from 10ms to 1h"),
        (&["--interval", "process=2h"], "from 10ms to 1h"),
        (&["--interval", "5"], "write it like 500ms"),
        (&["--interval", "disk=1s"], "kernel, process, network, connections, module and requests"),
        (&["--groups", "kernel", "--interval", "network=1s"], "which is not in --groups"),
        (&["--once", "--duration", "1s"], "cannot be used with"),
        (&["--once", "-n", "3"], "cannot be used with"),
        (&["--duration", "0s"], "--duration of more than 0s"),
        (&["-n", "0"], "--count of at least 1"),
        (&["--port", "0"], "0"),
        (&["--port", "http"], "http"),
        (&["--process", "port:0"], "names no TCP port"),
        (&["--process", ""], "is no name"),
        (&["--cpus", "one"], "write it like 0 or 0,2-3"),
        (&["--cpus", "4000"], "CPU 4000 is not online"),
        (&["--prometheus", "localhost"], "write it like 9477"),
    ] {
        run(&[&["watch"], args].concat()).fails(2, message);
    }
}

#[test]
fn missing_programs_and_ports() {
    let once = |args: &[&str]| run(&[&["watch", "--once", "--interval", "50ms"], args].concat());
    once(&["--process", "no-such-program"]).fails(3, "no process named `no-such-program` is running");
    once(&["--process", "999999999"]).fails(3, "no process with pid 999999999 is running");
    let silent = RefusingPort::reserve();
    let port = silent.port().to_string();
    once(&["--port", &port]).fails(3, "nothing listens there");
    once(&["--netns", "no-such-namespace"]).fails(3, "no-such-namespace");
}

#[test]
fn addresses_and_files_that_cannot_be_used() {
    let taken = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = taken.local_addr().unwrap().to_string();
    run(&["watch", "--prometheus", &address]).fails(3, "choose another address with --prometheus");
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    run(&["watch", "--log", file.to_str().unwrap()]).fails(2, "this is a file; name a directory");
    run(&["watch", "--log", file.join("below").to_str().unwrap()]).fails(3, "choose another one with --log");
    run(&["watch", "--out", dir.path().to_str().unwrap()]).fails(3, "choose another place with --out");
}
