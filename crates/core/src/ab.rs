//! The `AbTest` document: two running servers, A and B, measured in turn or at the same time until the confidence
//! interval of the difference was narrow.
//!
//! The field names are an interface that scripts rely on. Times are seconds, rates are per second, shares are fractions
//! between 0 and 1. Differences are those of B from A.

use crate::comparison::{ComparedFigure, LimitResult};
use crate::record::{Machine, Verdict};
use crate::workload::Workload;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Identifier of the document's schema, and the value of [`AbTest::schema`].
pub const SCHEMA: &str = "brimful.ab/1";

/// The comparison of two running servers, A and B.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AbTest {
    /// Identifier of the document's schema: always [`SCHEMA`].
    pub schema: String,
    /// A sentence that states how B differs from A, and whether the control confirms it.
    pub headline: String,
    /// The origin of the document.
    pub run: AbRun,
    /// The first server.
    pub a: AbSide,
    /// The second server.
    pub b: AbSide,
    /// How the servers were measured.
    pub design: AbDesign,
    /// When and why the measurement ended.
    pub stopping: AbStopping,
    /// The compared figures. The value of `a` is the typical value of its rounds; `b` is that value times the ratio.
    pub figures: Vec<ComparedFigure>,
    /// The A/A control: A compared with itself.
    pub control: AbControl,
    /// The results of `--max-regression`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<LimitResult>,
    /// Whether the slices measured the servers, or the load generator.
    pub verdict: Verdict,
    /// Reasons for caution, as text for people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// The origin of the document.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AbRun {
    /// The version of brimful that made the document.
    pub brimful_version: String,
    /// Wall-clock time of the start, RFC 3339.
    pub started_at: String,
    /// The command line.
    pub command: Vec<String>,
    /// Labels of the run, from `--label`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The machine that generated the load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
}

/// One server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AbSide {
    /// The URL or the command, as the user gave it.
    pub name: String,
    /// The URL that was requested.
    pub url: String,
    /// The server's software, as the server names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_software: Option<String>,
    /// Number of valid slices.
    pub slices: u64,
    /// Number of slices that were left out because they are not valid.
    pub left_out: u64,
}

/// How the servers were measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AbDesign {
    /// Whether the servers were loaded in turn or at the same time.
    pub method: AbMethod,
    /// Why this method was chosen, as text for people.
    pub method_reason: String,
    /// The results of the pilot that chose the method; absent if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pilot: Option<AbPilot>,
    /// The load of each slice, without secrets.
    pub workload: Workload,
    /// Length of a slice in seconds.
    pub slice_s: f64,
    /// Seed of all randomness. All slices of a round have the same schedule of calls.
    pub seed: u64,
    /// Whether the control is a process of its own, started by A's command, rather than A itself.
    pub control_is_second_process: bool,
}

/// The way in which two servers are measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AbMethod {
    /// One server at a time, in short slices.
    #[default]
    Interleaved,
    /// Both servers at the same time, on CPUs of their own (Bulej et al. 2020).
    Duet,
}

/// The results of the pilot. Each value is the variance of ln(B/A) of the chosen figure in one round, times the length
/// of the round in slices: the method with the smaller value has the narrower interval after the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AbPilot {
    /// Of interleaved slices.
    pub interleaved: f64,
    /// Of the duet.
    pub duet: f64,
}

/// When and why the measurement ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AbStopping {
    /// Name of the figure whose interval decides when the measurement ends.
    pub figure: String,
    /// The half width that its interval must reach, as a share (`--until`).
    pub until: f64,
    /// The half width that its interval has; absent without an interval.
    pub half_width: Option<f64>,
    /// The reason why the measurement ended.
    pub reason: AbStopReason,
    /// Number of rounds whose slices are compared.
    pub rounds: u64,
    /// Time from the first slice to the last, in seconds.
    pub elapsed_s: f64,
}

/// The reason why a measurement ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AbStopReason {
    /// The interval was narrow enough.
    Narrow,
    /// The time was used up.
    #[default]
    OutOfTime,
    /// The user ended it.
    Interrupted,
    /// A slice failed, for example because a server ended. The verdict has the error.
    Failed,
}

/// The A/A control: slices of A compared with other slices of A, measured and computed like those of B.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AbControl {
    /// The figures of the control, as differences from A.
    pub figures: Vec<ComparedFigure>,
    /// The result for the chosen figure.
    pub outcome: ControlOutcome,
}

/// The result of a control.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ControlOutcome {
    /// A does not differ from itself.
    Equal,
    /// A differs from itself, but by less than B differs from A: the intervals do not overlap.
    Small,
    /// A differs from itself, so a difference between A and B of this size shows nothing.
    Differs,
    /// There are too few rounds for an interval.
    #[default]
    NotKnown,
}
