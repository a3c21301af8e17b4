//! `brimful doctor`.

use crate::program::run;

#[test]
fn the_host_is_examined() {
    let text = run(&["doctor"]).exits(&[0]).stdout;
    let findings: serde_json::Value = serde_json::from_str(&run(&["doctor", "--json"]).exits(&[0]).stdout).unwrap();
    let findings = findings.as_array().unwrap();
    for topic in ["descriptors", "ports", "io_uring", "ebpf", "clock", "timer_slack", "steal", "cores", "speed"] {
        let line = text.lines().find(|line| line.split_whitespace().nth(1) == Some(topic));
        assert!(line.is_some(), "nothing about {topic} in:\n{text}");
        assert!(findings.iter().any(|finding| finding["topic"] == topic), "nothing about {topic} in:\n{findings:#?}");
    }
    for finding in findings {
        assert!(["ok", "shortfall", "unknown"].contains(&finding["status"].as_str().unwrap()), "{finding:#}");
        assert_eq!(finding["fix"].is_string(), finding["status"] == "shortfall", "{finding:#}");
        assert!(finding["value"].is_string() && finding["means"].is_string(), "{finding:#}");
    }
    // Counted in the text alone: steal and timers are measured anew each time, and may be fine once and not the next time.
    let shortfalls = text.matches("fix: ").count();
    let last = text.lines().last().unwrap();
    assert!(last.starts_with(&format!("{shortfalls} shortfall")) || (shortfalls == 0 && last.starts_with("nothing")));
}
