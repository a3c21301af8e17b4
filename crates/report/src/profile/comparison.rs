//! Two profiles compared: a table for people, and for scripts the profile with what it was compared with.

use super::foreign;
use crate::format::{error, fact, figure, narrow, number, percent, rate, seconds, words};
use brimful_accesslog::compare::{Comparison, Difference, Unit};
use brimful_core::profile::Profile;
use brimful_core::quantity;
use serde::Serialize;

/// So many figures that are apart are named in the verdict.
const MOST: usize = 4;

/// A profile, and how far it is from another one.
#[derive(Debug, Serialize)]
pub struct Compared<'a> {
    /// The profile, key by key as it is alone.
    #[serde(flatten)]
    pub profile: &'a Profile,
    /// The other.
    pub against: Against,
}

/// How far it is from it.
#[derive(Debug, Serialize)]
pub struct Against {
    /// The file of the other one.
    pub path: String,
    /// Whether all figures are as close as they may be.
    pub alike: bool,
    /// Figure by figure.
    pub differences: Vec<Figure>,
}

/// One figure of both.
#[derive(Debug, Serialize)]
pub struct Figure {
    /// Which one.
    pub figure: String,
    /// In the other profile, if that knows it.
    pub before: Option<f64>,
    /// In this one.
    pub after: Option<f64>,
    /// `after`/`before` − 1.
    pub off: Option<f64>,
    /// By how much they may differ, in the figure's unit.
    pub allowed: f64,
    /// Whether they differ by no more; `null` where one of the two is not known.
    pub holds: Option<bool>,
}

impl Against {
    /// What was found by the comparison with this file.
    pub fn new(path: String, comparison: &Comparison) -> Against {
        let figure = |d: &Difference| Figure {
            figure: d.figure.clone(),
            before: d.before,
            after: d.after,
            off: d.off,
            allowed: d.allowed,
            holds: d.holds,
        };
        Against { path, alike: comparison.alike, differences: comparison.differences.iter().map(figure).collect() }
    }
}

/// The comparison for people, with the file of the other profile; ends in a newline.
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
        let mark = match difference.holds {
            Some(true) => "✓",
            Some(false) => "✗",
            None => "",
        };
        let allowed = if difference.holds.is_some() { shown(Some(difference.allowed)) } else { "-".to_owned() };
        vec![
            foreign(&difference.figure, 44),
            shown(difference.before),
            shown(difference.after),
            mark.to_owned(),
            error(difference.off),
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
    let held = comparison.differences.iter().filter(|d| d.holds.is_some()).count();
    let apart: Vec<&Difference> = comparison.differences.iter().filter(|d| d.holds == Some(false)).collect();
    if held == 0 {
        return "the two have no figure in common".to_owned();
    }
    if apart.is_empty() {
        return format!("alike in all {held} figures that both have");
    }
    let named: Vec<String> = apart.iter().take(MOST).map(|d| foreign(&d.figure, 60)).collect();
    let more = match apart.len().saturating_sub(MOST) {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    format!("apart in {} of {held} figures: {}{more}", apart.len(), named.join("; "))
}
