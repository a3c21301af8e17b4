//! Tests `watch --log`: all lines are complete, even if the disk is full or files in the directory are removed.

use super::{OFTEN, nginx};
use crate::program::{Running, brimful, lock_machine_shared, run, wait_until};
use crate::small_disk::SmallDisk;
use brimful_core::server::{Connections, Kernel, LogLine, Network, Programs};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs;
use std::path::Path;

/// Parses every line, and asserts that the lines are in the order of time.
fn lines<T: Serialize + DeserializeOwned>(path: &Path) -> Vec<LogLine<T>> {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.ends_with('\n') || text.is_empty(), "the last line is incomplete:\n{text}");
    let line = |line: &str| {
        let value: serde_json::Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e} in:\n{line}"));
        let parsed: LogLine<T> = serde_json::from_str(line).unwrap();
        assert_eq!(serde_json::to_value(&parsed).unwrap(), value);
        parsed
    };
    let lines: Vec<LogLine<T>> = text.lines().map(line).collect();
    for pair in lines.windows(2) {
        assert!(pair[0].t_s < pair[1].t_s && pair[0].at <= pair[1].at);
    }
    for line in &lines {
        assert!(line.length_s > 0.0 && line.length_s < line.t_s && line.suspended_s == 0.0);
        assert!(line.at.len() == "2026-01-01T00:00:00.000Z".len() && line.at.ends_with('Z'), "{}", line.at);
    }
    lines
}

#[test]
fn each_group_has_its_own_file_that_is_appended_to() {
    let (_nginx, port) = nginx();
    let dir = tempfile::tempdir().unwrap();
    let logs = dir.path().join("new/logs");
    let args = [&["watch", "--port", &port, "-q", "-n", "4", "--log", logs.to_str().unwrap()], &OFTEN[..]].concat();
    run(&args).exits(&[0]);
    // The file ends in an incomplete line, as after a crash.
    let kernel = logs.join("kernel.jsonl");
    let torn = fs::read_to_string(&kernel).unwrap() + "{\"at\":\"20";
    fs::write(&kernel, &torn).unwrap();
    run(&args).exits(&[0]);
    let mended = fs::read_to_string(&kernel).unwrap();
    assert!(mended.starts_with(&(torn.clone() + "\n")), "{mended}");
    fs::write(&kernel, mended.replace("{\"at\":\"20\n", "")).unwrap();

    let kernel: Vec<LogLine<Kernel>> = lines(&kernel);
    assert!(kernel.len() == 8 && kernel.iter().all(|line| line.figures.cpu.is_some()), "{}", kernel.len());
    let process: Vec<LogLine<Programs>> = lines(&logs.join("process.jsonl"));
    assert!(process.iter().all(|line| line.figures.process[0].processes == 2));
    let network: Vec<LogLine<Network>> = lines(&logs.join("network.jsonl"));
    assert!(network.iter().all(|line| line.figures.tcp.is_some()));
    let connections: Vec<LogLine<Connections>> = lines(&logs.join("connections.jsonl"));
    assert!(connections.iter().all(|line| line.figures.ports[0].listener.is_some()));
    assert_eq!([process.len(), network.len(), connections.len()], [8; 3]);
}

#[test]
fn a_group_with_a_longer_interval_has_fewer_and_longer_lines() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().to_str().unwrap();
    run(&["watch", "-q", "-d", "1s", "--interval", "50ms,network=300ms", "--log", log]).exits(&[0]);
    let kernel: Vec<LogLine<Kernel>> = lines(&dir.path().join("kernel.jsonl"));
    let network: Vec<LogLine<Network>> = lines(&dir.path().join("network.jsonl"));
    assert!((1..=3).contains(&network.len()) && kernel.len() > 2 * network.len(), "{} {}", kernel.len(), network.len());
    assert!(network.iter().all(|line| line.length_s > 0.2));
    assert!(!dir.path().join("process.jsonl").exists(), "without programs there is no log of processes");
}

#[test]
fn no_line_is_lost_if_a_full_disk_gets_space_again() {
    let _machine = lock_machine_shared();
    let small = SmallDisk::mount("64k");
    small.fill();
    let log = small.path().to_str().unwrap();
    let mut watch = Running::start(brimful(&[&["watch", "--groups", "kernel", "--log", log], &OFTEN[..]].concat()));
    let said = watch.stderr_line("cannot write");
    assert!(said.contains("kernel.jsonl") && said.contains("No space left"), "{said}");
    for _ in 0..8 {
        watch.stdout_line();
    }
    fs::remove_file(small.path().join("other")).unwrap();
    watch.stderr_line("can be written again");
    watch.ctrl_c();
    let done = watch.finish().exits(&[0]);
    assert_eq!(done.stderr.matches("cannot write").count(), 1, "the error is printed once: {}", done.stderr);
    let kernel: Vec<LogLine<Kernel>> = lines(&small.path().join("kernel.jsonl"));
    let gaps = kernel.windows(2).filter(|pair| pair[1].t_s - pair[1].length_s > pair[0].t_s + 1e-6).count();
    assert!(kernel.len() >= 6 && gaps == 0, "{} lines, {gaps} gaps", kernel.len());
}

#[test]
fn lines_stay_complete_on_a_full_disk_and_missing_ones_are_counted() {
    let small = SmallDisk::mount("64k");
    let log = small.path().to_str().unwrap();
    // The file system has 64 KiB, enough for about 50 lines.
    let done = run(&["watch", "-q", "-d", "3s", "--groups", "kernel", "--interval", "10ms", "--log", log]).exits(&[3]);
    let kernel: Vec<LogLine<Kernel>> = lines(&small.path().join("kernel.jsonl"));
    assert!(!kernel.is_empty());
    let missing = done.stderr.lines().find(|line| line.contains("lines are missing")).expect("lines are missing");
    let missing: usize = missing.split_ascii_whitespace().find_map(|word| word.parse().ok()).unwrap();
    assert!(missing > 0 && kernel.len() + missing <= 300, "{} written, {missing} missing", kernel.len());
    assert!(done.stdout.contains("this machine for "), "the summary is shown nevertheless: {}", done.stdout);
}

#[test]
fn a_removed_directory_is_reported_once_and_used_again() {
    let _machine = lock_machine_shared();
    let dir = tempfile::tempdir().unwrap();
    let (log, away) = (dir.path().join("log"), dir.path().join("away"));
    let mut watch = Running::start(brimful(
        &[&["watch", "--groups", "kernel", "--log", log.to_str().unwrap()], &OFTEN[..]].concat(),
    ));
    wait_until(|| fs::read_to_string(log.join("kernel.jsonl")).is_ok_and(|text| text.lines().count() >= 2));
    fs::rename(&log, &away).unwrap();
    watch.stderr_line("cannot write");
    fs::create_dir(&log).unwrap();
    watch.stderr_line("can be written again");
    watch.ctrl_c();
    watch.finish().exits(&[0]);
    let (before, after): (Vec<LogLine<Kernel>>, Vec<LogLine<Kernel>>) =
        (lines(&away.join("kernel.jsonl")), lines(&log.join("kernel.jsonl")));
    let (last, next) = (&before[before.len() - 1], &after[0]);
    assert!(next.t_s - next.length_s < last.t_s + 1e-6, "the intervals follow one another without a gap");
}
