//! Checks the limits and features of this host, for `brimful doctor`. Each finding states a value and its consequence
//! for load tests. If the value is a problem, the finding also says how to fix it.
//!
//! The checks change nothing and generate no load. They try io_uring, BPF and timers, because the kernel's settings
//! alone do not show whether these work. The checks take about a third of a second, because they measure steal and
//! timers.

mod clocks;
mod kernel;
mod limits;
mod probe;
mod testbed;

pub use probe::{SpeedProbe, probe};

use serde::Serialize;
use std::path::Path;

/// A finding about this host: a value, and whether it limits load tests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The finding's identifier for scripts, such as `descriptors` or `ports`: one of [`FINDING_TOPICS`].
    pub topic: &'static str,
    /// Whether the finding is a problem.
    pub status: Status,
    /// The value as text, with its unit.
    pub value: String,
    /// The consequence of the value for load tests, in one line.
    pub means: String,
    /// The command that fixes the problem, or a text that says how to fix it. Every shortfall has a fix.
    pub fix: Option<String>,
    /// The command that fixes the problem from a script; `None` if a script cannot fix it.
    pub script: Option<String>,
}

/// The topics of all findings, in the order of the findings.
pub const FINDING_TOPICS: [&str; 16] = [
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
    "speed",
    "tun",
    "ip",
];

/// Whether a finding is a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The value is good enough for load tests.
    Ok,
    /// A problem: see [`Finding::fix`].
    Shortfall,
    /// The kernel does not provide the value.
    Unknown,
}

/// Examines this host. Returns all findings. The most likely problems come first.
pub fn examine() -> Vec<Finding> {
    let root = Path::new("/");
    let mut findings = limits::examine(root, limits::descriptor_limits());
    findings.extend(kernel::examine(root));
    findings.extend(clocks::examine(root));
    findings.extend(testbed::examine(root, std::env::var_os("PATH").unwrap_or_default()));
    findings
}

/// Examines only what the kernel permits this process: the findings `io_uring` and `ebpf`.
pub fn examine_kernel() -> Vec<Finding> {
    kernel::examine(Path::new("/"))
}

/// A correction of a value that limits load tests.
struct Fix {
    /// The command or text that is shown to the user.
    shown: String,
    /// The command that fixes the problem from a script; `None` if a script cannot fix it.
    script: Option<String>,
}

impl Fix {
    /// A correction that needs a decision by the user.
    fn by_hand(shown: impl Into<String>) -> Fix {
        Fix { shown: shown.into(), script: None }
    }
}

impl<T: Into<String>> From<T> for Fix {
    /// A command that fixes the problem without further decisions.
    fn from(command: T) -> Fix {
        let shown = command.into();
        Fix { script: Some(shown.clone()), shown }
    }
}

/// Returns a finding with [`Status::Ok`] if `good` is true, and with [`Status::Shortfall`] and this fix otherwise.
fn judged(topic: &'static str, good: bool, value: String, means: String, fix: impl Into<Fix>) -> Finding {
    if good {
        return Finding { topic, status: Status::Ok, value, means, fix: None, script: None };
    }
    let Fix { shown, script } = fix.into();
    Finding { topic, status: Status::Shortfall, value, means, fix: Some(shown), script }
}

/// A finding about a file that is missing or cannot be parsed.
fn unknown(topic: &'static str, path: &str, means: impl Into<String>) -> Finding {
    let value = format!("{path} cannot be read");
    Finding { topic, status: Status::Unknown, value, means: means.into(), fix: None, script: None }
}

/// The first `N` numbers in a file under `root`, such as a sysctl. `None` if the file cannot be read, or if one of its
/// first `N` words is missing or not a number.
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
        let topics: Vec<&str> = findings.iter().map(|finding| finding.topic).collect();
        assert_eq!(topics, FINDING_TOPICS);
        for finding in &findings {
            assert!(!finding.value.is_empty() && !finding.means.is_empty(), "{finding:?}");
            assert_eq!(finding.fix.is_some(), finding.status == Status::Shortfall, "{finding:?}");
            assert!(finding.script.is_none() || finding.fix.is_some(), "{finding:?}");
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
