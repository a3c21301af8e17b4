//! The report of a comparison of runs: one sentence, the two groups of runs that are compared, a table of metrics, and
//! warnings. It is text for a terminal, or Markdown for a pull request.

use crate::format::{Column, error, fact, figure, in_unit, interval, labels, narrow, percent, words, wrap};
use crate::markdown::{escaped, row as cells};
use brimful_core::comparison::{
    ComparedSide, LimitOutcome, LimitResult, MetricComparison, ServerComparison, Variability,
};
use brimful_core::quantity::pluralize;
use brimful_core::text::one_line;
use std::collections::BTreeSet;

/// The titles of the columns in the table of compared metrics.
const TITLES: [&str; 7] = ["figure", "A", "B", "difference", "95 % interval", "p", "detectable"];

/// A p-value below this is shown as `<0.001`.
const SMALLEST_P: f64 = 0.001;

/// A relative change above this (10 means +1,000 %) is shown as a lower bound.
const LARGEST_CHANGE: f64 = 10.0;

/// Formats the comparison as plain text that ends in a newline.
pub fn text(compared: &ServerComparison) -> String {
    let limits: String = compared.limits.iter().map(|limit| fact("Limit", &one_line(&describe_limit(limit)))).collect();
    let mut parts = vec![
        wrap(&one_line(&compared.headline), 0),
        fact("A", &side(&compared.a)) + &fact("B", &side(&compared.b)),
        figures_table(&compared.figures),
        limits,
        wrap(variability(compared), 0),
        compared.warnings.iter().map(|warning| wrap(&format!("WARNING: {}.", one_line(warning)), 0)).collect(),
    ];
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

/// Formats the comparison as GitHub Markdown that ends in a newline. Escapes names from result files, so that they
/// cannot become markup.
pub fn markdown(compared: &ServerComparison) -> String {
    let sides =
        [("A", &compared.a), ("B", &compared.b)].map(|(name, of)| format!("- {name}: {}\n", escaped(&side(of))));
    let limits = compared.limits.iter().map(|limit| format!("- Limit {}\n", escaped(&describe_limit(limit))));
    let warnings = compared.warnings.iter().map(|warning| format!("- **Warning:** {}.\n", escaped(warning)));
    format!(
        "**{}**\n\n{}{}\n{}{}{}\n{}\n",
        escaped(&compared.headline),
        markdown_titles(),
        markdown_rows(&compared.figures),
        sides.concat(),
        limits.collect::<String>(),
        warnings.collect::<String>(),
        escaped(variability(compared))
    )
}

/// The table of compared metrics as text, one row per metric.
pub(crate) fn figures_table(figures: &[MetricComparison]) -> String {
    let columns: Vec<Column<'_>> = TITLES
        .iter()
        .enumerate()
        .map(|(i, title)| if i == 0 { words(title, 0) } else { figure(title, 2, None) })
        .collect();
    let rows = figures.iter().map(|figure| row(figure).map(|cell| one_line(&cell).into_owned()).to_vec()).collect();
    narrow(columns, rows, &["detectable", "p"])
}

/// The title row of the table of compared metrics in Markdown.
pub(crate) fn markdown_titles() -> String {
    cells(&TITLES.map(str::to_owned)) + "|---|---:|---:|---:|---:|---:|---:|\n"
}

/// The rows of the table of compared metrics in Markdown. A metric that differs significantly is bold.
pub(crate) fn markdown_rows(figures: &[MetricComparison]) -> String {
    let shown = |figure: &MetricComparison| {
        let row = row(figure).map(|cell| escaped(&cell));
        cells(&if figure.differs { row.map(|cell| format!("**{cell}**")) } else { row })
    };
    figures.iter().map(shown).collect()
}

/// The cells of a compared metric, in the order of [`TITLES`].
fn row(compared: &MetricComparison) -> [String; 7] {
    let MetricComparison { name, unit, a, b, difference, interval95, p, differs, detectable, .. } = compared;
    let value = |value: Option<f64>| in_unit(*unit, value);
    let p = match p {
        None => "-".to_owned(),
        Some(p) if *p < SMALLEST_P => format!("<{SMALLEST_P}"),
        Some(p) => format!("{p:.3}"),
    };
    [
        name.clone(),
        value(*a),
        value(*b),
        change(*difference),
        interval95.map_or("-".to_owned(), |[low, high]| interval(low, high, change)),
        if *differs { format!("* {p}") } else { p },
        detectable.map_or("-".to_owned(), |detectable| change(Some(detectable)).trim_start_matches('+').to_owned()),
    ]
}

/// Formats a relative change as a signed percentage. A change above [`LARGEST_CHANGE`] is shown as a lower bound,
/// because its exact value is uncertain.
pub(crate) fn change(share: Option<f64>) -> String {
    let is_large = share.is_some_and(|share| share > LARGEST_CHANGE);
    if is_large { format!(">{}", percent(Some(LARGEST_CHANGE))) } else { error(share) }
}

/// Describes one of the two groups of runs: its name, number of runs, labels, and server software.
fn side(side: &ComparedSide) -> String {
    let software: BTreeSet<&str> = side.documents.iter().filter_map(|run| run.server_software.as_deref()).collect();
    let mut facts = vec![pluralize(side.documents.len() as u64, "run")];
    facts.extend((!side.labels.is_empty()).then(|| labels(&side.labels)));
    facts.extend(software.into_iter().map(|name| one_line(name).into_owned()));
    format!("{} ({})", one_line(&side.name), facts.join(", "))
}

/// Describes a limit on a regression, whether it was kept, and the measured regression.
pub(crate) fn describe_limit(limit: &LimitResult) -> String {
    let outcome = match limit.outcome {
        LimitOutcome::Kept => "kept",
        LimitOutcome::Exceeded => "EXCEEDED",
        LimitOutcome::NotKnown => "not known, more or longer runs are needed",
    };
    let regression = limit.regression.map_or(String::new(), |regression| {
        let ends = limit.interval95.map_or(String::new(), |[low, high]| format!(" ({})", interval(low, high, change)));
        format!(": a regression of {}{ends}", change(Some(regression)))
    });
    format!("{} {outcome}{regression}", limit.limit)
}

/// Explains where the confidence intervals and p-values come from: from the differences between runs if each group has
/// several runs, otherwise from the variation within one run.
fn variability(compared: &ServerComparison) -> &'static str {
    match compared.variability {
        Variability::BetweenRuns => {
            "* differs (Holm, 5 % false alarms in all figures). The intervals are based on the differences between runs."
        }
        Variability::WithinRuns => {
            "* differs (Holm, 5 % false alarms in all figures). With one run of each, differences between runs are not \
             known: another pair may differ more. Make several runs of each."
        }
    }
}
