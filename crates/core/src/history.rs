//! The `History` document: the metrics of a series of runs with the same load, and the points at which the metrics
//! changed.
//!
//! Scripts rely on the field names. Times are seconds, rates are per second, shares are fractions between 0 and 1.

use crate::JsonSchema;
use crate::comparison::MetricUnit;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Identifier of the document's schema, and the value of [`History::schema`].
pub const SCHEMA: &str = "brimful.history/1";

/// The history of a server: metrics of many runs, and the detected changes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct History {
    /// Identifier of the document's schema: always [`SCHEMA`].
    pub schema: String,
    /// The version of brimful that made the document.
    pub brimful_version: String,
    /// A sentence that states the new changes.
    pub headline: String,
    /// Number of newest runs (`--new`). A change is called new if the first run after the change is one of these runs.
    pub new_runs: u64,
    /// The runs, in the order of their start times.
    pub runs: Vec<PastRun>,
    /// The metrics, each with its value in every run.
    pub figures: Vec<MetricHistory>,
    /// The detected changes of all metrics, newest first.
    pub changes: Vec<MetricChange>,
    /// Warnings for the user, such as runs that the analysis excludes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// One run in the history of a server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PastRun {
    /// The file that contains the run's document. For a file with one JSON document per line, the line number follows:
    /// `history.jsonl:12`.
    pub file: String,
    /// Wall-clock time of the start of the run, RFC 3339.
    pub started_at: String,
    /// Labels of the run, from `--label`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// The values of one metric in each run of the history.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "FigureHistory")]
pub struct MetricHistory {
    /// Name of the metric, like `p99`.
    pub name: String,
    /// Unit of the metric's values.
    pub unit: MetricUnit,
    /// Whether a lower value of the metric is better.
    pub lower_is_better: bool,
    /// Value of each run, in the order of [`History::runs`]; null if the run does not have this metric.
    pub values: Vec<Option<f64>>,
    /// The segments into which the detected changes divide the series. Without changes, the whole series is one
    /// segment.
    pub segments: Vec<Segment>,
    /// Standard deviation of the values within a segment: as a fraction of the mean, or as an absolute value if the
    /// metric is a share. Null if too few runs have the metric.
    pub noise: Option<f64>,
    /// Number of further runs that are needed before a change can be detected. Absent if there are enough runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs_needed: Option<u64>,
}

/// Successive runs of a metric without a detected change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Segment {
    /// Index in [`History::runs`] of the segment's first run.
    pub first: u64,
    /// Index in [`History::runs`] of the segment's last run.
    pub last: u64,
    /// Number of runs of the segment that have the metric.
    pub runs: u64,
    /// Mean of the metric over the runs of the segment.
    pub mean: f64,
}

/// A detected change of a metric between two segments.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "FigureChange")]
pub struct MetricChange {
    /// Name of the metric that changed.
    pub figure: String,
    /// Index in [`History::runs`] of the first run after the change.
    pub index: u64,
    /// The last run before the metric changed.
    pub before: PastRun,
    /// The first run after the metric changed.
    pub after: PastRun,
    /// Mean of the metric in the segment before the change.
    pub from: f64,
    /// Mean of the metric in the segment after the change.
    pub to: f64,
    /// Size of the change: `to/from − 1`, but `to − from` for a share. Null if `from` is zero.
    pub size: Option<f64>,
    /// The 95 % confidence interval of `size`.
    pub interval95: Option<[f64; 2]>,
    /// Whether the metric improved or became worse.
    pub direction: Direction,
    /// Whether `after` is among the newest runs ([`History::new_runs`]).
    pub is_new: bool,
    /// Other differences between the runs `before` and `after`, as text for the user: for example, another version of
    /// brimful or of the kernel.
    #[serde(rename = "also_changed")]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_changes: Vec<String>,
}

/// Whether a detected change is an improvement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// The metric improved.
    Better,
    /// The metric became worse.
    Worse,
    /// The variance changed, but the mean did not change significantly: the confidence interval of the size contains
    /// zero.
    #[default]
    Neither,
}
