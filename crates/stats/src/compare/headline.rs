//! The headline of a comparison: one sentence that states how B differs from A.

use brimful_core::comparison::{MetricComparison, MetricUnit};
use brimful_core::quantity::{percent, whole_percent};

/// Maximum number of differences that the sentence names.
const MAX_NAMED: usize = 3;

/// The metrics that the headline names before all others, in this order.
const MAIN_FIGURES: [&str; 5] = ["throughput", "capacity", "p99", "cpu", "errors"];

/// The headline states an upper bound for the differences that are not significant, but only up to this value. A larger
/// bound is of no use.
const MAX_STATED_BOUND: f64 = 0.5;

/// Writes the headline about the differences of these metrics. `bound` is an upper bound of the differences that are
/// not significant.
pub(crate) fn headline(figures: &[MetricComparison], bound: Option<f64>) -> String {
    let (mut differing, others): (Vec<_>, Vec<_>) = figures.iter().partition(|figure| figure.differs);
    let place = |name: &str| MAIN_FIGURES.iter().position(|main| *main == name).unwrap_or(MAIN_FIGURES.len());
    differing.sort_by_key(|figure| place(&figure.name));
    let named = differing.iter().take(MAX_NAMED).enumerate();
    let mut clauses: Vec<String> = named
        .map(|(place, figure)| if place == 0 { clause(figure, "B", "B's") } else { clause(figure, "it", "its") })
        .collect();
    match differing.len().saturating_sub(MAX_NAMED) {
        0 => {}
        1 => clauses.push("one more figure differs".to_owned()),
        more => clauses.push(format!("{more} more figures differ")),
    }
    let bound = bound.map(rounded_up);
    let is_useful = bound.is_some_and(|bound| bound <= MAX_STATED_BOUND);
    let bound = bound.map(|bound| whole_percent(bound.min(MAX_STATED_BOUND)));
    let mut text = match (clauses.is_empty(), bound) {
        (true, Some(bound)) if is_useful => format!("No figure of B differs by more than {bound} from that of A."),
        (true, Some(bound)) => {
            format!("A and B cannot be distinguished: their figures could differ by more than {bound}.")
        }
        (true, None) => "A and B cannot be distinguished.".to_owned(),
        (false, Some(bound)) if is_useful => {
            format!("{}; no other figure differs by more than {bound}.", join(&clauses))
        }
        (false, Some(bound)) => format!("{}; other figures could differ by more than {bound}.", join(&clauses)),
        (false, None) => format!("{}.", join(&clauses)),
    };
    let is_unknown = |figure: &&&MetricComparison| figure.interval95.is_none() && figure.difference.is_some();
    let unknown: Vec<&str> = others.iter().filter(is_unknown).map(|figure| figure.name.as_str()).collect();
    if !unknown.is_empty() {
        text += &format!(" How much {} vary is not known.", unknown.join(", "));
    }
    text
}

/// Joins clauses to one text, with commas and `and`.
pub(crate) fn join(clauses: &[String]) -> String {
    match clauses {
        [] => String::new(),
        [only] => only.clone(),
        [rest @ .., last] => format!("{}, and {last}", rest.join(", ")),
    }
}

/// Rounds a bound up to the precision with which it is printed, so that it remains an upper bound.
fn rounded_up(bound: f64) -> f64 {
    let unit = if bound < 0.0095 { 0.001 } else { 0.01 };
    (bound / unit - 1e-9).ceil() * unit
}

/// Writes a clause about the difference of one metric. `subject` and `owner` are the words for side B, such as `B` and
/// `B's`.
pub(crate) fn clause(figure: &MetricComparison, subject: &str, owner: &str) -> String {
    let difference = figure.difference.unwrap_or_default();
    let is_more = difference > 0.0;
    let sign = if is_more { 1.0 } else { -1.0 };
    let size = whole_percent(difference.abs());
    let interval = figure.interval95.map_or(String::new(), |ends| {
        let [one, other] = ends.map(|end| sign * end);
        let ends = [one.min(other), one.max(other)];
        let [low, high] = ends.map(whole_percent);
        // If both ends of the interval are equal in whole percent, they are printed with a decimal.
        let [low, high] = if low == high { ends.map(percent) } else { [low, high] };
        format!(" ({} … {high})", low.trim_end_matches(" %"))
    });
    let more = if is_more { "more" } else { "fewer" };
    let less = if is_more { "more" } else { "less" };
    let higher = if is_more { "higher" } else { "lower" };
    let longer = if is_more { "longer" } else { "shorter" };
    let name = figure.name.as_str();
    let clause = match (name, figure.unit) {
        ("throughput", _) => format!("{subject} takes {size} {more} requests per second"),
        ("cpu", _) => format!("{subject} uses {size} {less} CPU time per request"),
        ("errors", _) => format!("{owner} share of failed calls is {size} {higher}, in percentage points"),
        ("mean", _) => format!("{owner} mean response time is {size} {longer}"),
        (_, MetricUnit::PerSecond) => format!("{owner} {name} is {size} {higher}"),
        (_, MetricUnit::Share) => format!("{owner} {name} is {size} {higher}, in percentage points"),
        (_, MetricUnit::Seconds) if name.contains(' ') => format!("{owner} demand of {name} is {size} {higher}"),
        (_, MetricUnit::Seconds) => format!("{owner} {name} is {size} {longer}"),
    };
    clause + &interval
}
