//! The `AbTest` document: the comparison of two running servers, A and B. `brimful ab` measures them alternately or
//! simultaneously, in short slices, until the confidence interval of their difference is narrow enough.
//!
//! Scripts rely on the field names. Times are seconds, rates are per second, shares are fractions between 0 and 1.
//! Differences are positive if B's value is the larger one.

use crate::JsonSchema;
use crate::comparison::{LimitResult, MetricComparison};
use crate::record::{Machine, Verdict};
use crate::workload::Workload;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Identifier of the document's schema, and the value of [`AbTest::schema`].
pub const SCHEMA: &str = "brimful.ab/1";

/// The results of comparing two running servers, A and B.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AbTest {
    /// Identifier of the document's schema: always [`SCHEMA`].
    pub schema: String,
    /// A sentence that states how B differs from A, and whether the A/A control confirms the difference.
    pub headline: String,
    /// The program, the command and the machine that made the document, and the start time.
    pub run: AbRun,
    /// Server A.
    pub a: AbSide,
    /// Server B, which is compared with A.
    pub b: AbSide,
    /// The method of measurement and its parameters.
    pub design: AbDesign,
    /// When and why the A/B comparison ended.
    pub stopping: AbStopping,
    /// The compared metrics. `a` is the mean over the rounds, which are groups of successive slices (short
    /// measurements); `b` is `a` times the ratio B/A.
    pub figures: Vec<MetricComparison>,
    /// The A/A control: A compared with itself.
    pub control: AbControl,
    /// For each limit given by `--max-regression`: whether B keeps the limit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<LimitResult>,
    /// Whether the measurements show the performance of the servers, and not a limit of the load generator.
    pub verdict: Verdict,
    /// Warnings about the results, as text for the user.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// The program, the command and the machine that made an A/B comparison, and its start time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AbRun {
    /// The version of brimful that made the document.
    pub brimful_version: String,
    /// Wall-clock time of the start, RFC 3339.
    pub started_at: String,
    /// The brimful command that made the comparison, with its arguments.
    pub command: Vec<String>,
    /// Labels of the run, from `--label`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The machine that generated the load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
}

/// One of the two compared servers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AbSide {
    /// The URL or the command, as the user gave it.
    pub name: String,
    /// The URL that the load generator requests from this server.
    pub url: String,
    /// The server's software, as the server names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_software: Option<String>,
    /// Number of valid slices of this server. A slice is one short measurement.
    pub slices: u64,
    /// Number of slices (short measurements) that the results exclude, because the load generator was the limit or a
    /// measurement failed.
    pub left_out: u64,
}

/// The method of measurement of an A/B comparison, and its parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AbDesign {
    /// Whether the servers were loaded alternately or simultaneously.
    pub method: AbMethod,
    /// Explanation for the user of the choice of the method.
    pub method_reason: String,
    /// Results of the pilot measurements that chose the method; absent if no pilot was run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pilot: Option<AbPilot>,
    /// The load of each slice (short measurement), without secrets.
    pub workload: Workload,
    /// Length of a slice, which is one short measurement of a server, in seconds.
    pub slice_s: f64,
    /// Seed of the random numbers. The slices (short measurements) of one round have the same schedule of calls.
    pub seed: u64,
    /// Whether A was compared with a second process, started by the same command as A, to detect false differences. If
    /// false, A was compared with itself.
    pub control_is_second_process: bool,
}

/// Whether two servers are measured alternately or simultaneously.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AbMethod {
    /// The servers are measured alternately, in short slices.
    #[default]
    Interleaved,
    /// The servers are measured simultaneously, each on its own CPUs (Bulej et al. 2020).
    Duet,
}

/// Results of the pilot: short measurements that choose the method of an A/B comparison. Each value is the variance of
/// ln(B/A) of the main metric over the rounds, times the number of slices in a round. Of two methods measured for the
/// same time, the one with the smaller value has the narrower confidence interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AbPilot {
    /// Variance of the results with interleaved slices, as defined in [`AbPilot`].
    pub interleaved: f64,
    /// Variance of the results with the duet method (simultaneous slices), as defined in [`AbPilot`].
    pub duet: f64,
}

/// When and why an A/B comparison ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AbStopping {
    /// Name of the main metric: the width of its confidence interval determines when the measurement ends.
    pub figure: String,
    /// Target of the half-width of the confidence interval of the difference, as a fraction (`--until`).
    pub until: f64,
    /// Half-width of the confidence interval of the difference at the end of the measurement; absent if there is no
    /// interval.
    pub half_width: Option<f64>,
    /// The reason why the A/B comparison ended.
    pub reason: AbStopReason,
    /// Number of rounds with valid slices of both servers. A round is a group of successive slices, some of each
    /// server.
    pub rounds: u64,
    /// Time from the start of the first measurement to the end of the last, in seconds.
    pub elapsed_s: f64,
}

/// The reason why an A/B comparison ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AbStopReason {
    /// The confidence interval reached its target width.
    Narrow,
    /// The time limit of the comparison was reached.
    #[default]
    OutOfTime,
    /// The user interrupted the comparison.
    Interrupted,
    /// A slice (short measurement) failed, for example because a server exited. The verdict contains the error.
    Failed,
}

/// The A/A control, which detects false differences: it compares slices (short measurements) of A with other slices of
/// A, by the method that compares B with A.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AbControl {
    /// The metrics of the control: A compared with itself.
    pub figures: Vec<MetricComparison>,
    /// Result of the A/A control for the main metric: whether A differs from itself.
    pub outcome: ControlOutcome,
}

/// Whether the A/A control found a difference between A and itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ControlOutcome {
    /// The A/A control found no difference between A and itself: the confidence interval contains zero.
    Equal,
    /// The control found a difference, but it is clearly smaller than the difference of B from A: even its largest
    /// plausible value is nearer to zero than both ends of the confidence interval of B's difference from A.
    Small,
    /// The A/A control found a difference that is not clearly smaller than the difference of B from A. Therefore, the
    /// difference of B from A is not evidence.
    Differs,
    /// There are too few measurements for a confidence interval of the control.
    #[default]
    NotKnown,
}
