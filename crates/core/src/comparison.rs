//! The `Comparison` document: the comparison of two servers, or of two versions of one server, based on Records or
//! surveys.
//!
//! Scripts rely on the field names. Times are seconds, rates are per second, shares are fractions between 0 and 1.
//! Differences are positive if B's value is the larger one.

use crate::JsonSchema;
use crate::record::Machine;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Identifier of the document's schema, and the value of [`ServerComparison::schema`].
pub const SCHEMA: &str = "brimful.comparison/1";

/// The results of comparing two servers or versions, called sides A and B.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Compared")]
pub struct ServerComparison {
    /// Identifier of the document's schema: always [`SCHEMA`].
    pub schema: String,
    /// The version of brimful that made the document.
    pub brimful_version: String,
    /// A sentence that states how B differs from A.
    pub headline: String,
    /// Side A: the first server or version.
    pub a: ComparedSide,
    /// Side B: the second server or version.
    pub b: ComparedSide,
    /// Whether the confidence intervals are based on the variation between runs or within runs.
    pub variability: Variability,
    /// The metrics that were compared, such as throughput and p99.
    pub figures: Vec<MetricComparison>,
    /// Upper bound of the differences of the metrics that do not differ significantly. Each of these metrics differs by
    /// less than this bound, in either direction, with a confidence of 97.5 %. The bound is a fraction; for shares,
    /// 0.01 is one percentage point. Absent if there are no such metrics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_other_difference_above: Option<f64>,
    /// For each limit given by `--max-regression`: whether B keeps the limit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<LimitResult>,
    /// Warnings for the user: differences between the runs that may have caused a difference of the metrics, and runs
    /// that the comparison excludes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// One of the two sides of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedSide {
    /// The file or directory that the user named; the first one if the user named several.
    pub name: String,
    /// The Records or surveys of this side.
    pub documents: Vec<ComparedDocument>,
    /// Labels that all documents of this side have with the same value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// A Record or survey that belongs to one side of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedDocument {
    /// The file that contains this Record or survey.
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

/// The kind of variation on which the confidence intervals of a comparison are based.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Variability {
    /// The variation between several runs of each side.
    #[default]
    BetweenRuns,
    /// The variation between parts of a single run on each side. It excludes the variation between runs, so repeated
    /// runs may differ by more than the confidence intervals indicate.
    WithinRuns,
}

/// One metric, such as throughput or p99, with its values for A and B.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ComparedFigure")]
pub struct MetricComparison {
    /// Name of the metric as in `--max-regression`, for example `p99`.
    pub name: String,
    /// Unit of the metric's values.
    pub unit: MetricUnit,
    /// Value of A: the mean over its runs. Absent if one of the runs does not have this metric.
    pub a: Option<f64>,
    /// Value of B: the mean over its runs. Absent if one of the runs does not have this metric.
    pub b: Option<f64>,
    /// The difference of B from A: B/A − 1, but B − A for a share.
    pub difference: Option<f64>,
    /// The 95 % confidence interval of the difference. Absent if the variation of the metric is unknown.
    pub interval95: Option<[f64; 2]>,
    /// The p-value: the probability of a difference of at least this size between equal servers, adjusted for the
    /// number of metrics (Holm 1979).
    pub p: Option<f64>,
    /// Whether the difference is significant: `p` is below 0.05.
    pub differs: bool,
    /// The smallest difference that this comparison would detect with a probability of 80 %.
    pub detectable: Option<f64>,
    /// Whether a lower value is better, as for a response time.
    pub lower_is_better: bool,
}

/// Unit of a compared metric.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "FigureUnit")]
pub enum MetricUnit {
    /// The metric is a rate, in events per second.
    #[default]
    PerSecond,
    /// The metric is a time, in seconds.
    Seconds,
    /// The metric is a fraction between 0 and 1.
    Share,
}

/// Whether B keeps one limit of `--max-regression`, the permitted worsening of a metric.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LimitResult {
    /// The limit as the user wrote it, like `p99:5%`.
    pub limit: String,
    /// Change of the metric in the worse direction: positive if B is worse than A.
    pub regression: Option<f64>,
    /// The 95 % confidence interval of `regression`.
    pub interval95: Option<[f64; 2]>,
    /// Whether B keeps the limit.
    pub outcome: LimitOutcome,
}

/// Whether a limit of `--max-regression` is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LimitOutcome {
    /// The confidence interval is entirely below the limit.
    Kept,
    /// The confidence interval is entirely above the limit.
    Exceeded,
    /// Undecided: the confidence interval contains the limit, or there is no interval.
    #[default]
    NotKnown,
}
