//! The `Comparison` document: two servers, or two versions of one, compared by the Records or surveys of each.
//!
//! The field names are an interface that scripts rely on. Times are seconds, rates are per second, shares are fractions
//! between 0 and 1. Differences are those of B from A.

use crate::record::Machine;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Identifier of the document's schema, and the value of [`Compared::schema`].
pub const SCHEMA: &str = "brimful.comparison/1";

/// The comparison of two sides, A and B.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Compared {
    /// Identifier of the document's schema: always [`SCHEMA`].
    pub schema: String,
    /// The version of brimful that made the document.
    pub brimful_version: String,
    /// A sentence that states how B differs from A.
    pub headline: String,
    /// The first side.
    pub a: ComparedSide,
    /// The second side.
    pub b: ComparedSide,
    /// The source of the intervals.
    pub variability: Variability,
    /// The compared figures.
    pub figures: Vec<ComparedFigure>,
    /// Upper bound of the differences of all figures that do not differ: none of them differs by more than this, in
    /// either direction, with a confidence of 97.5 % each. For shares, the bound is in percentage points, so 0.01 is
    /// one. Absent if there are no such figures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_other_difference_above: Option<f64>,
    /// The results of `--max-regression`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<LimitResult>,
    /// Reasons for caution, as text for people: differences between the runs that may have caused a difference of the
    /// figures, and runs that were left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// One side of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedSide {
    /// The file or directory, as the user named it; for several, the first.
    pub name: String,
    /// The documents of this side whose figures are compared.
    pub documents: Vec<ComparedDocument>,
    /// Labels that all documents of this side have, with the same value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// A Record or a survey of one side.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedDocument {
    /// The file that contains the document.
    pub file: String,
    /// Wall-clock time of the start of the run, RFC 3339.
    pub started_at: String,
    /// The server's software, as the server names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_software: Option<String>,
    /// The machine that generated the load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
}

/// The source of the variability that the intervals are based on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Variability {
    /// The differences between the runs of a side.
    #[default]
    BetweenRuns,
    /// The differences between the parts of one run on each side. They do not contain the differences between runs, so
    /// another pair of runs may differ by more.
    WithinRuns,
}

/// One figure of both sides.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedFigure {
    /// Name of the figure, like `p99`; `--max-regression` accepts it.
    pub name: String,
    /// Unit of the figure.
    pub unit: FigureUnit,
    /// Value of A: the mean over its runs. Absent if a run does not have the figure.
    pub a: Option<f64>,
    /// Value of B, as of A.
    pub b: Option<f64>,
    /// The difference: B/A − 1 and, for shares, B − A.
    pub difference: Option<f64>,
    /// The 95 % confidence interval of the difference. Absent if the variability of the figure is not known.
    pub interval95: Option<[f64; 2]>,
    /// The probability of such a difference between equal servers, adjusted for the number of figures (Holm 1979).
    pub p: Option<f64>,
    /// Whether the figures differ: `p` is below 0.05.
    pub differs: bool,
    /// The smallest difference that this comparison would have found with a probability of 80 %.
    pub detectable: Option<f64>,
    /// Whether a lower value is better.
    pub lower_is_better: bool,
}

/// Unit of a compared figure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FigureUnit {
    /// A rate per second.
    #[default]
    PerSecond,
    /// A time in seconds.
    Seconds,
    /// A share.
    Share,
}

/// The result of one `--max-regression`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LimitResult {
    /// The limit, like `p99:5%`.
    pub limit: String,
    /// The change for the worse: positive if B is worse than A.
    pub regression: Option<f64>,
    /// The 95 % confidence interval of `regression`.
    pub interval95: Option<[f64; 2]>,
    /// Whether B keeps the limit.
    pub outcome: LimitOutcome,
}

/// Whether a limit of regressions is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LimitOutcome {
    /// The interval is below the limit.
    Kept,
    /// The interval is above the limit.
    Exceeded,
    /// The interval contains the limit, or there is none.
    #[default]
    NotKnown,
}
