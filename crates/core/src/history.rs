//! The `History` document: a series of runs of one load in the order of their times, and where their figures changed.
//!
//! The field names are an interface that scripts rely on. Times are seconds, rates are per second, shares are fractions
//! between 0 and 1.

use crate::comparison::FigureUnit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Identifier of the document's schema, and the value of [`History::schema`].
pub const SCHEMA: &str = "brimful.history/1";

/// The history of a server: figures of many runs, and their changes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct History {
    /// Identifier of the document's schema: always [`SCHEMA`].
    pub schema: String,
    /// The version of brimful that made the document.
    pub brimful_version: String,
    /// A sentence that states the new changes.
    pub headline: String,
    /// A change is new if its first run is among this number of newest runs (`--new`).
    pub new_runs: u64,
    /// The runs, in the order of their start times.
    pub runs: Vec<PastRun>,
    /// The figures, each with its value in every run.
    pub figures: Vec<FigureHistory>,
    /// The changes of all figures. Changes with the newest first run come first.
    pub changes: Vec<FigureChange>,
    /// Runs that were left out, and other reasons for caution, as text for people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A run of a history.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PastRun {
    /// The file that contains the run's document. For a file of JSON lines, the line follows: `history.jsonl:12`.
    pub file: String,
    /// Wall-clock time of the start of the run, RFC 3339.
    pub started_at: String,
    /// Labels of the run, from `--label`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// One figure in all runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FigureHistory {
    /// Name of the figure, like `p99`.
    pub name: String,
    /// Unit of the figure.
    pub unit: FigureUnit,
    /// Whether a lower value is better.
    pub lower_is_better: bool,
    /// The value in each run, in the order of [`History::runs`]; null if a run does not have the figure.
    pub values: Vec<Option<f64>>,
    /// The parts of the series between its changes. Without changes, the whole series is one segment.
    pub segments: Vec<Segment>,
    /// Standard deviation within segments, as a share of the mean; for shares, in the unit of the values. Null if too
    /// few runs have the figure.
    pub noise: Option<f64>,
    /// How many more runs are needed before changes can be found. Absent if there are enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs_needed: Option<u64>,
}

/// Successive runs between two changes of a figure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Segment {
    /// Index of the first run with the figure, in [`History::runs`].
    pub first: u64,
    /// Index of the last run with the figure.
    pub last: u64,
    /// Number of runs in between that have the figure, including both.
    pub runs: u64,
    /// Mean of the figure over these runs.
    pub mean: f64,
}

/// A change of a figure between two segments.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FigureChange {
    /// Name of the figure.
    pub figure: String,
    /// Index of the first run after the change, in [`History::runs`].
    pub index: u64,
    /// The last run before the change.
    pub before: PastRun,
    /// The first run after the change.
    pub after: PastRun,
    /// Mean of the figure over the segment before the change.
    pub from: f64,
    /// Mean of the figure over the segment after the change.
    pub to: f64,
    /// Size of the change: `to/from − 1` and, for shares, `to − from`. Null if `from` is zero.
    pub size: Option<f64>,
    /// The 95 % confidence interval of the size.
    pub interval95: Option<[f64; 2]>,
    /// Whether the change is for the better or for the worse.
    pub direction: Direction,
    /// Whether `after` is among the newest runs ([`History::new_runs`]).
    pub is_new: bool,
    /// What else changed between the two runs, as text for people, like the version of brimful or of the kernel.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also_changed: Vec<String>,
}

/// Direction of a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// The figure improved.
    Better,
    /// The figure became worse.
    Worse,
    /// The interval of the size contains zero: the scatter changed rather than the mean.
    #[default]
    Neither,
}
