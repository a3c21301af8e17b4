//! The report of `brimful ab`: one sentence, the two servers that were compared, a table of metrics, the control runs,
//! and warnings. It is text for a terminal, or Markdown for a pull request.

use crate::compare::{change, describe_limit, figures_table, markdown_rows, markdown_titles};
use crate::format::{error, fact, interval, seconds, wrap};
use crate::markdown::escaped;
use brimful_core::ab::{AbMethod, AbSide, AbStopReason, AbTest};
use brimful_core::quantity::{percent, pluralize};
use brimful_core::text::one_line;

/// The explanation below the table of metrics in the report.
const LEGEND: &str = "* differs. The p-value of the figure of --until is not adjusted; those of the others are adjusted for \
                      their number (Holm).";

/// Formats the A/B test as plain text that ends in a newline.
pub fn text(tested: &AbTest) -> String {
    let warnings = tested.warnings.iter().map(|warning| wrap(&format!("WARNING: {}.", one_line(warning)), 0));
    let reasons =
        tested.verdict.reasons.iter().map(|reason| wrap(&format!("NOT VALID: {}", one_line(&reason.message)), 0));
    let mut parts = vec![
        wrap(&one_line(&tested.headline), 0),
        facts(tested).into_iter().map(|(name, text)| fact(name, &one_line(&text))).collect(),
        figures_table(&tested.figures),
        tested.limits.iter().map(|limit| fact("Limit", &one_line(&describe_limit(limit)))).collect(),
        wrap(LEGEND, 0),
        reasons.chain(warnings).collect(),
    ];
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

/// Formats the A/B test as GitHub Markdown that ends in a newline. Escapes names from result files, so that they cannot
/// become markup.
pub fn markdown(tested: &AbTest) -> String {
    let mut text =
        format!("**{}**\n\n{}{}\n", escaped(&tested.headline), markdown_titles(), markdown_rows(&tested.figures));
    for (name, fact) in facts(tested) {
        text += &format!("- {name}: {}\n", escaped(&fact));
    }
    for limit in &tested.limits {
        text += &format!("- Limit {}\n", escaped(&describe_limit(limit)));
    }
    for reason in &tested.verdict.reasons {
        text += &format!("- **Not valid:** {}\n", escaped(&reason.message));
    }
    for warning in &tested.warnings {
        text += &format!("- **Warning:** {}.\n", escaped(warning));
    }
    text + "\n" + &escaped(LEGEND) + "\n"
}

fn facts(tested: &AbTest) -> Vec<(&'static str, String)> {
    vec![
        ("A", side(&tested.a)),
        ("B", side(&tested.b)),
        ("Control", control(tested)),
        ("Method", method(tested)),
        ("Rounds", rounds(tested)),
    ]
}

fn side(side: &AbSide) -> String {
    let software = side.server_software.as_ref().map_or(String::new(), |name| format!(", {name}"));
    let left_out = if side.left_out > 0 { format!(", {} left out", side.left_out) } else { String::new() };
    format!("{} ({}{left_out}{software})", side.name, pluralize(side.slices, "slice"))
}

fn control(tested: &AbTest) -> String {
    let name = &tested.stopping.figure;
    let what = if tested.design.control_is_second_process { "a second process of A" } else { "A itself" };
    let figure = tested.control.figures.iter().find(|figure| figure.name == *name);
    match figure.and_then(|figure| Some((figure.difference?, figure.interval95?))) {
        Some((difference, [low, high])) => {
            format!("{what}: {name} {} ({})", change(Some(difference)), interval(low, high, error))
        }
        None => format!("{what}: no interval"),
    }
}

fn method(tested: &AbTest) -> String {
    let design = &tested.design;
    let method = match design.method {
        AbMethod::Interleaved => "in turn",
        AbMethod::Duet => "at the same time",
    };
    format!("{method} ({})", design.method_reason)
}

fn rounds(tested: &AbTest) -> String {
    let stopping = &tested.stopping;
    let end = match stopping.reason {
        AbStopReason::Narrow => "the interval is narrow enough",
        AbStopReason::OutOfTime => "the time is used up",
        AbStopReason::Interrupted => "interrupted",
        AbStopReason::Failed => "a slice failed",
    };
    let width = stopping.half_width.map_or("no interval".to_owned(), |width| format!("± {}", percent(width)));
    format!(
        "{} of {} slices in {}: {} {width} of ± {} ({end})",
        stopping.rounds,
        seconds(Some(tested.design.slice_s)),
        seconds(Some(stopping.elapsed_s)),
        stopping.figure,
        percent(stopping.until)
    )
}
