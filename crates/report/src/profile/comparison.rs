//! The comparison of two traffic profiles: a table for people, and a document for scripts.

use super::foreign;
use crate::format::{error, fact, figure, narrow, number, percent, rate, seconds, words};
use brimful_accesslog::compare::{Comparison, Difference, Unit};
use brimful_core::profile::Profile;
use brimful_core::quantity;
use serde::Serialize;

/// Maximum number of differing metrics that the result names.
const MAX_NAMED: usize = 4;

/// A profile and its comparison with an earlier profile.
#[derive(Debug, Serialize)]
pub struct Compared<'a> {
    /// The profile, with its keys at the top level.
    #[serde(flatten)]
    pub profile: &'a Profile,
    /// The comparison of this profile with the earlier profile.
    pub against: Against,
}

/// The comparison of a profile with an earlier profile.
#[derive(Debug, Serialize)]
pub struct Against {
    /// Path of the file with the earlier profile.
    pub path: String,
    /// Whether all differences of metrics that are known in both profiles are within the permitted limits.
    pub alike: bool,
    /// The compared metrics.
    pub differences: Vec<ComparedMetric>,
}

/// The values of one metric in both profiles.
#[derive(Debug, Serialize)]
pub struct ComparedMetric {
    /// Name of the metric.
    pub figure: String,
    /// Value of the metric in the earlier profile, if it is known.
    pub before: Option<f64>,
    /// Value of the metric in this profile, if it is known.
    pub after: Option<f64>,
    /// Relative difference: `after`/`before` − 1.
    #[serde(rename = "off")]
    pub relative_difference: Option<f64>,
    /// The maximum permitted difference, in the metric's unit.
    pub allowed: f64,
    /// Whether the difference is permitted; `null` if one of the two values is unknown.
    pub holds: Option<bool>,
}

impl Against {
    /// Makes the comparison with the profile in the file `path`.
    pub fn new(path: String, comparison: &Comparison) -> Against {
        let figure = |d: &Difference| ComparedMetric {
            figure: d.metric.clone(),
            before: d.before,
            after: d.after,
            relative_difference: d.relative_difference,
            allowed: d.tolerance,
            holds: d.is_within_tolerance,
        };
        Against {
            path,
            alike: comparison.all_within_tolerance,
            differences: comparison.differences.iter().map(figure).collect(),
        }
    }
}

/// Formats the comparison with the profile in the file `path`, as text that ends in a newline.
pub fn comparison(path: &str, comparison: &Comparison) -> String {
    let columns = vec![
        words("figure", 0),
        figure("before", 2, None),
        figure("after", 2, None),
        words("", 1),
        figure("off", 2, None),
        figure("may differ by", 2, None),
    ];
    let row = |difference: &Difference| {
        let shown = unit(difference.unit);
        let mark = match difference.is_within_tolerance {
            Some(true) => "✓",
            Some(false) => "✗",
            None => "",
        };
        let allowed =
            if difference.is_within_tolerance.is_some() { shown(Some(difference.tolerance)) } else { "-".to_owned() };
        vec![
            foreign(&difference.metric, 44),
            shown(difference.before),
            shown(difference.after),
            mark.to_owned(),
            error(difference.relative_difference),
            allowed,
        ]
    };
    let rows = comparison.differences.iter().map(row).collect();
    narrow(columns, rows, &["off"]) + &fact("against", &foreign(path, 80)) + &fact("verdict", &verdict(comparison))
}

fn unit(unit: Unit) -> fn(Option<f64>) -> String {
    match unit {
        Unit::Rate => rate,
        Unit::Share => percent,
        Unit::Bytes => |size| size.map_or("-".to_owned(), quantity::bytes),
        Unit::Seconds => seconds,
        Unit::Number => number,
    }
}

fn verdict(comparison: &Comparison) -> String {
    let held = comparison.differences.iter().filter(|d| d.is_within_tolerance.is_some()).count();
    let apart: Vec<&Difference> =
        comparison.differences.iter().filter(|d| d.is_within_tolerance == Some(false)).collect();
    if held == 0 {
        return "the two profiles have no measured value in common".to_owned();
    }
    if apart.is_empty() {
        return format!("alike in all {held} figures that both have");
    }
    let named: Vec<String> = apart.iter().take(MAX_NAMED).map(|d| foreign(&d.metric, 60)).collect();
    let more = match apart.len().saturating_sub(MAX_NAMED) {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    format!("apart in {} of {held} figures: {}{more}", apart.len(), named.join("; "))
}
