//! Tests `brimful doctor`.

use crate::program::{brimful, run};
use brimful_testkit::with_descriptor_limit;
use std::io::Write;
use std::process::{Command, Stdio};

#[test]
fn the_host_is_examined() {
    let text = run(&["doctor"]).exits(&[0, 3]).stdout;
    let findings: serde_json::Value = serde_json::from_str(&run(&["doctor", "--json"]).exits(&[0, 3]).stdout).unwrap();
    let findings = findings.as_array().unwrap();
    for topic in
        ["descriptors", "ports", "io_uring", "ebpf", "clock", "timer_slack", "steal", "cores", "speed", "tun", "ip"]
    {
        let line = text.lines().find(|line| line.split_whitespace().nth(1) == Some(topic));
        assert!(line.is_some(), "nothing about {topic} in:\n{text}");
        assert!(findings.iter().any(|finding| finding["topic"] == topic), "nothing about {topic} in:\n{findings:#?}");
    }
    for finding in findings {
        assert!(["ok", "shortfall", "unknown"].contains(&finding["status"].as_str().unwrap()), "{finding:#}");
        assert_eq!(finding["fix"].is_string(), finding["status"] == "shortfall", "{finding:#}");
        assert!(finding["value"].is_string() && finding["means"].is_string(), "{finding:#}");
    }
    // Count the problems in the text, not in the JSON output: steal and timers are measured for each output, and may
    // differ.
    let shortfalls = text.matches("fix: ").count();
    let last = text.lines().last().unwrap();
    assert!(last.starts_with(&format!("{shortfalls} shortfall")) || (shortfalls == 0 && last.starts_with("nothing")));
}

#[test]
fn the_exit_code_tells_whether_a_limit_is_too_low() {
    // The speed of a host is never reported as a problem.
    let done = run(&["doctor", "speed"]).exits(&[0]);
    assert_eq!(done.stdout.lines().filter(|line| line.starts_with("ok ")).count(), 1, "{}", done.stdout);
    // A process that may open only 16 file descriptors cannot make a load, so this is a problem.
    let few = with_descriptor_limit(16, &brimful(&["doctor", "descriptors", "--json"])).output().unwrap();
    let findings: serde_json::Value = serde_json::from_slice(&few.stdout).unwrap();
    assert_eq!((few.status.code(), &findings[0]["status"]), (Some(3), &serde_json::json!("shortfall")));
    run(&["doctor", "ulimits"]).fails(2, "descriptors, ports");
}

#[test]
fn the_script_is_a_shell_script() {
    let script = run(&["doctor", "--script"]).exits(&[0, 3]).stdout;
    let mut shell = Command::new("sh").args(["-n"]).stdin(Stdio::piped()).spawn().unwrap();
    shell.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    assert!(shell.wait().unwrap().success(), "{script}");
}
