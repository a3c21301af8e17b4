//! Texts in the results of both `plan solve` and `plan what-if`: the bottleneck, and the uncertainty of the results.

use super::requests;
use crate::format::{number, percent, seconds};
use crate::thresholds::NEAR_SATURATION;
use brimful_core::model::{ClassKind, Model};
use brimful_core::quantity;
use brimful_model::{Headroom, Interval90, Intervals, LoadLimit, Solution, StationLimit};

/// Names the bottleneck and the next bottleneck: `CPU is the bottleneck: 123 req/s; after it, Disk3 at 235 req/s`.
pub(super) fn limits(limits: &[StationLimit], intervals: Option<&Intervals>) -> String {
    headline(limits, intervals.map(|Intervals { saturation_rate: i, .. }| [i.lower, i.upper]))
}

/// Names the bottleneck and the next bottleneck, with a confidence interval of the bottleneck's saturation rate.
pub(super) fn headline(limits: &[StationLimit], interval: Option<[Option<f64>; 2]>) -> String {
    let Some(first) = limits.first() else {
        return "Nothing here can saturate: no queue has any work".to_owned();
    };
    let known = interval.map_or(String::new(), |[lower, upper]| interval_in_parentheses(Interval90 { lower, upper }));
    let next = limits.get(1).map(|s| format!("; after it, {} at {}", s.station, requests(s.saturation_rate)));
    format!(
        "{} is the bottleneck: {}{known}{}",
        first.station,
        requests(first.saturation_rate),
        next.unwrap_or_default()
    )
}

/// Formats an interval in parentheses after a space: ` (118–129)`. Empty if both ends are rounded to the same text.
pub(super) fn interval_in_parentheses(interval: Interval90) -> String {
    let text = interval_text(interval, number);
    if text == "-" { String::new() } else { format!(" ({text})") }
}

/// Formats an interval: `118–129`. An infinite end is `∞`. Returns `-` if both ends are rounded to the same text.
pub(super) fn interval_text(interval: Interval90, format: fn(Option<f64>) -> String) -> String {
    let end = |end: Option<f64>| end.map_or("∞".to_owned(), |end| format(Some(end)));
    match [interval.lower, interval.upper].map(end) {
        [lower, upper] if lower == upper => "-".to_owned(),
        [lower, upper] => format!("{lower}–{upper}"),
    }
}

/// Formats an interval of times in the unit of its upper end: `5.20–7.90 s`.
pub(super) fn time_interval(interval: Interval90) -> String {
    let Interval90 { lower: Some(lower), upper: Some(upper) } = interval else {
        return interval_text(interval, seconds);
    };
    let upper = seconds(Some(upper));
    let scale = match upper.rsplit_once(' ').map_or("", |(_, unit)| unit) {
        "µs" => 1e6,
        "ms" => 1e3,
        _ => 1.0,
    };
    format!("{}–{upper}", number(Some(lower * scale)))
}

/// A caveat for an open network near saturation, where small errors of the service demands change response times a lot.
pub(super) fn saturation_caveat(model: &Model, solution: &Solution) -> Option<String> {
    let total: f64 = solution.throughput.iter().sum();
    let open = model.classes.iter().all(|class| class.kind == ClassKind::Open);
    let used = total / solution.saturation_rate;
    (open && used > NEAR_SATURATION).then(|| {
        format!(
            "{} has {} of its capacity in use: an error of 1 % in its demands moves its response times by some {}",
            solution.bottleneck,
            percent(Some(used)),
            quantity::whole_percent(0.01 * used / (1.0 - used))
        )
    })
}

/// Caveats about classes whose service demands were measured only together. Their results are means over the requests
/// of all these classes.
pub(super) fn combined_class_caveats(model: &Model) -> impl Iterator<Item = String> {
    model.joint_demands.iter().map(|joint| {
        format!(
            "{} were measured only together: the values of each at {} are those of their mean request, and are \
             correct only while their proportions stay the same",
            joint.classes.join(", "),
            joint.station
        )
    })
}

/// The two table cells of an objective: the present value of its metric, and the maximum load at which it is met.
pub(super) fn objective_cells(headroom: &Headroom, interval: Option<Interval90>) -> [String; 2] {
    let measure = match headroom.slo.measure {
        brimful_core::slo::Measure::Utilization { .. } => percent(headroom.now),
        _ => seconds(headroom.now),
    };
    let now = format!("{measure} {}", if headroom.met { "✓" } else { "✗" });
    let known = interval.map_or(String::new(), interval_in_parentheses);
    let until = match headroom.until {
        LoadLimit::Never => "at no load".to_owned(),
        LoadLimit::Always => "at any load".to_owned(),
        LoadLimit::Rate(rate) => requests(rate) + &known,
        LoadLimit::Population(customers) => format!("{} customers{known}", number(Some(customers))),
    };
    [now, until]
}
