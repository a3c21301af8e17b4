//! What this host allows, for `brimful doctor`: each finding says what it limits, and each shortfall what mends it.
//!
//! Nothing is changed and nothing is loaded; what can be tried (io_uring, BPF, a timer) is tried, because settings
//! tell less than an attempt. Takes about a third of a second, for steal and timers are measured.

mod clocks;
mod kernel;
mod limits;
mod probe;

pub use probe::{Prober, probe};

use serde::Serialize;
use std::path::Path;

/// One fact about this host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// For scripts: `descriptors`, `ports`, …
    pub topic: &'static str,
    /// Whether it is in the way.
    pub status: Status,
    /// What was found.
    pub value: String,
    /// What it limits, in one line.
    pub means: String,
    /// The command that mends it; always there for a shortfall.
    pub fix: Option<String>,
}

/// Whether a finding is in the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// No.
    Ok,
    /// Yes: see [`Finding::fix`].
    Shortfall,
    /// The kernel did not say.
    Unknown,
}

/// Every finding, the most likely trouble first.
pub fn examine() -> Vec<Finding> {
    let root = Path::new("/");
    let mut findings = limits::examine(root, limits::descriptor_limits());
    findings.extend(kernel::examine(root));
    findings.extend(clocks::examine(root));
    findings
}

/// A finding that is fine if `good`, and mended by `fix` if not.
fn judged(topic: &'static str, good: bool, value: String, means: String, fix: impl Into<String>) -> Finding {
    match good {
        true => Finding { topic, status: Status::Ok, value, means, fix: None },
        false => Finding { topic, status: Status::Shortfall, value, means, fix: Some(fix.into()) },
    }
}

/// A finding about a file that is not there or makes no sense.
fn unknown(topic: &'static str, path: &str, means: impl Into<String>) -> Finding {
    Finding { topic, status: Status::Unknown, value: format!("{path} says nothing"), means: means.into(), fix: None }
}

/// The numbers in a file under `root`, such as a sysctl's; `None` unless there are N of them at its beginning.
fn numbers<const N: usize>(root: &Path, path: &str) -> Option<[u64; N]> {
    let text = std::fs::read_to_string(root.join(path)).ok()?;
    let mut words = text.split_ascii_whitespace().map(|word| word.parse().ok());
    let mut found = [0; N];
    for number in &mut found {
        *number = words.next()??;
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_topic_is_reported_once_and_every_shortfall_with_its_fix() {
        let findings = examine();
        let mut topics: Vec<&str> = findings.iter().map(|finding| finding.topic).collect();
        assert_eq!(
            topics,
            [
                "descriptors",
                "ports",
                "time_wait",
                "somaxconn",
                "syn_backlog",
                "syncookies",
                "memory",
                "io_uring",
                "ebpf",
                "cores",
                "clock",
                "timer_slack",
                "steal",
                "speed"
            ]
        );
        topics.dedup();
        assert_eq!(topics.len(), findings.len());
        for finding in &findings {
            assert!(!finding.value.is_empty() && !finding.means.is_empty(), "{finding:?}");
            assert_eq!(finding.fix.is_some(), finding.status == Status::Shortfall, "{finding:?}");
        }
    }

    #[test]
    fn an_empty_root_leaves_nothing_but_unknowns_and_never_a_panic() {
        let empty = tempfile::tempdir().unwrap();
        for finding in limits::examine(empty.path(), (1024, 4096)) {
            let known = finding.topic == "descriptors";
            assert_eq!(finding.status == Status::Unknown, !known, "{finding:?}");
        }
        assert_eq!(numbers::<1>(empty.path(), "proc/none"), None);
    }
}
