//! The report of a history of runs: one sentence, a table of changes of metrics (the newest first), and a table of each
//! metric's noise. It is text for a terminal, or Markdown.

use crate::format::{error, figure, in_unit, interval, key, narrow, percent, shorten, words, wrap};
use crate::markdown::{escaped, row as cells};
use brimful_core::history::{Direction, History, MetricChange, MetricHistory, PastRun};
use brimful_core::quantity::{count, pluralize};
use brimful_core::text::one_line;

/// Maximum number of changes in the table. The JSON document and the HTML page contain all changes.
const MAX_CHANGES: usize = 20;

/// Length of the date at the start of a time in RFC 3339 format, in characters.
const DATE: usize = 10;

/// Name of the label that identifies runs in tables if they have it.
const USUAL_LABEL: &str = "commit";

/// Maximum length of a label in a table, in characters.
const MAX_LABEL: usize = 12;

/// The explanation below the table of changes.
const LEGEND: &str = "new: the first run after the change is among the newest runs (--new). The intervals are those of the difference \
                      between the runs before and after the change.";

/// Formats the history as plain text that ends in a newline.
pub fn text(history: &History) -> String {
    let mut parts = vec![wrap(&one_line(&history.headline), 0)];
    if !history.changes.is_empty() {
        parts.push(changes(history));
        parts.push(wrap(LEGEND, 0));
    }
    parts.push(noise(history));
    parts.push(history.notes.iter().map(|note| wrap(&format!("note: {}.", one_line(note)), 0)).collect());
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

/// The table of the newest changes. Also says how many changes are left out, if any.
fn changes(history: &History) -> String {
    let label = label_name(history);
    let columns = vec![
        words("since", 0),
        key(words("figure", 2)),
        figure("change", 2, None),
        figure("95 % interval", 2, None),
        words("", 2),
        words("", 1),
        words(label.as_deref().unwrap_or("run"), 2),
    ];
    let row = |change: &MetricChange| {
        let mut cells = change_cells(change).map(|cell| one_line(&cell).into_owned()).to_vec();
        cells.push(format!("{} → {}", name(&change.before, label.as_deref()), name(&change.after, label.as_deref())));
        cells
    };
    let rows = history.changes.iter().take(MAX_CHANGES).map(row).collect();
    let mut table = narrow(columns, rows, &[]);
    for change in history.changes.iter().take(MAX_CHANGES).filter(|change| !change.other_changes.is_empty()) {
        let what = format!("Also changed on {}: {}.", date(&change.after), change.other_changes.join("; "));
        let what = wrap(&one_line(&what), 0);
        if !table.ends_with(&what) {
            table += &what;
        }
    }
    if let Some(more) = history.changes.len().checked_sub(MAX_CHANGES).filter(|&more| more > 0) {
        table += &format!("and {} (--json)\n", pluralize(more as u64, "earlier change"));
    }
    table
}

/// The cells of a change: date, metric, size, confidence interval, direction, and whether the change is new.
fn change_cells(change: &MetricChange) -> [String; 6] {
    let direction = match change.direction {
        Direction::Better => "better",
        Direction::Worse => "WORSE",
        Direction::Neither => "scatter",
    };
    [
        date(&change.after).to_owned(),
        change.figure.clone(),
        error(change.size),
        change.interval95.map_or("-".to_owned(), |[low, high]| interval(low, high, error)),
        direction.to_owned(),
        if change.is_new { "new" } else { "" }.to_owned(),
    ]
}

fn date(run: &PastRun) -> &str {
    run.started_at.get(..DATE).unwrap_or(&run.started_at)
}

/// The name of the label that identifies runs in tables: [`USUAL_LABEL`] if runs have it, otherwise the first label of
/// the newest run after a change.
fn label_name(history: &History) -> Option<String> {
    let mut runs = history.changes.iter().flat_map(|change| [&change.after, &change.before]);
    let usual = runs.clone().any(|run| run.labels.contains_key(USUAL_LABEL)).then(|| USUAL_LABEL.to_owned());
    usual.or_else(|| runs.find_map(|run| run.labels.keys().next().cloned()))
}

/// The name of a run in tables: the value of this label, or the end of its file's name if `label` is `None`.
fn name(run: &PastRun, label: Option<&str>) -> String {
    match label {
        Some(label) => shorten(&one_line(run.labels.get(label).map_or("-", String::as_str)), MAX_LABEL),
        None => {
            // Keeps the end of a long name, where the names of runs usually differ.
            let name = one_line(&run.file);
            let skipped = name.chars().count().saturating_sub(MAX_LABEL);
            let end: String = name.chars().skip(skipped).collect();
            if skipped > 0 { format!("…{end}") } else { end }
        }
    }
}

/// The table of all metrics, with the random variation between runs (noise).
fn noise(history: &History) -> String {
    let columns = vec![
        words("figure", 0),
        figure("runs", 2, None),
        figure("now", 2, None),
        figure("noise", 2, None),
        words("", 2),
    ];
    narrow(columns, history.figures.iter().map(|figure| figure_cells(history, figure).to_vec()).collect(), &[])
}

/// The cells of a metric: name, number of runs, mean since the last change, noise, and number of changes.
fn figure_cells(history: &History, figure: &MetricHistory) -> [String; 5] {
    let changes = history.changes.iter().filter(|change| change.figure == figure.name).count() as u64;
    [
        one_line(&figure.name).into_owned(),
        count(figure.segments.iter().map(|segment| segment.runs).sum()),
        in_unit(figure.unit, figure.segments.last().map(|segment| segment.mean)),
        percent(figure.noise),
        match figure.runs_needed {
            Some(needed) => {
                format!("needs {}", pluralize(needed, "more run"))
            }
            None if changes == 0 => "no change found".to_owned(),
            None => pluralize(changes, "change"),
        },
    ]
}

/// Formats the history as GitHub Markdown that ends in a newline. Escapes names from result files, so that they cannot
/// become markup.
pub fn markdown(history: &History) -> String {
    let mut text = format!("**{}**\n", escaped(&history.headline));
    if !history.changes.is_empty() {
        text += "\n| since | figure | change | 95 % interval | | | last run before | first run after |\n";
        text += "|---|---|---:|---:|---|---|---|---|\n";
    }
    for change in history.changes.iter().take(MAX_CHANGES) {
        let mut row = change_cells(change).map(|cell| escaped(&cell)).to_vec();
        row.extend([&change.before, &change.after].map(|run| escaped(&described(run))));
        if change.is_new && change.direction == Direction::Worse {
            row = row.into_iter().map(|cell| if cell.is_empty() { cell } else { format!("**{cell}**") }).collect();
        }
        text += &cells(&row);
    }
    text += "\n| figure | runs | now | noise | |\n|---|---:|---:|---:|---|\n";
    for figure in &history.figures {
        text += &cells(&figure_cells(history, figure).map(|cell| escaped(&cell)));
    }
    let notes: String = history.notes.iter().map(|note| format!("- Note: {}.\n", escaped(note))).collect();
    if notes.is_empty() { text } else { text + "\n" + &notes }
}

/// Describes a run by its labels, or by its file if it has no labels.
fn described(run: &PastRun) -> String {
    let labels: Vec<String> = run.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
    if labels.is_empty() { run.file.clone() } else { labels.join(", ") }
}
