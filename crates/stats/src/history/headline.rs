//! The headline of the history of a server's performance: sentences about the changes in the newest runs.

use crate::compare::headline::{clause, join};
use brimful_core::comparison::MetricComparison;
use brimful_core::history::{Direction, History, MetricChange, MetricHistory, PastRun};
use brimful_core::quantity::{count, pluralize};

/// Maximum number of changes that the headline names.
const MAX_NAMED: usize = 3;

/// The label that most users give their runs. The headline includes it if a run has it.
const USUAL_LABEL: &str = "commit";

/// Length of the date, such as `2026-11-20`, at the start of an RFC 3339 time.
const DATE: usize = 10;

/// Writes the headline: which metrics changed in the newest runs, and since when.
pub(super) fn headline(history: &History) -> String {
    if let Some(needed) = needed_by_all(&history.figures) {
        let runs = pluralize(history.runs.len() as u64, "run");
        return format!("In {runs} no change can be found yet: that takes {}.", pluralize(needed, "more run"));
    }
    let new = |direction| -> Vec<&MetricChange> {
        history.changes.iter().filter(|change| change.is_new && change.direction == direction).collect()
    };
    let (worse, better) = (new(Direction::Worse), new(Direction::Better));
    let newest = newest_runs(history);
    match (&worse[..], &better[..]) {
        ([], []) => {
            let last = history.changes.iter().find(|change| change.direction != Direction::Neither);
            let last =
                last.map_or(String::new(), |change| format!("; the last change was on {}", since(&change.after)));
            format!("No change was found in {newest}{last}.")
        }
        ([], better) => format!("Nothing became worse in {newest}. {}", since_when(history, better)),
        (worse, _) => since_when(history, worse),
    }
}

/// The smallest number of further runs after which a change of any metric can be detected; `None` if a metric already
/// has enough runs.
fn needed_by_all(figures: &[MetricHistory]) -> Option<u64> {
    figures.iter().map(|figure| figure.runs_needed).collect::<Option<Vec<_>>>()?.into_iter().min()
}

/// Writes a phrase like "the newest 10 of 240 runs".
fn newest_runs(history: &History) -> String {
    let runs = history.runs.len() as u64;
    match history.new_runs {
        new if new < runs => format!("the newest {} of {}", count(new), pluralize(runs, "run")),
        _ => format!("{} in all", pluralize(runs, "run")),
    }
}

/// Sentences about changes in one direction. Changes that began with the same run share a sentence. At most
/// [`MAX_NAMED`] changes are named.
fn since_when(history: &History, changes: &[&MetricChange]) -> String {
    let named = &changes[..changes.len().min(MAX_NAMED)];
    let sentence = |group: &[&MetricChange]| {
        let clauses = group.iter().enumerate().map(|(place, change)| match place {
            0 => clause(&compared(history, change), "the server", "the server's"),
            _ => clause(&compared(history, change), "it", "its"),
        });
        format!("Since {}, {}.", since(&group[0].after), join(&clauses.collect::<Vec<_>>()))
    };
    let mut text = named.chunk_by(|one, other| one.index == other.index).map(sentence).collect::<Vec<_>>().join(" ");
    let more = changes.len() - named.len();
    if more > 0 {
        text += &format!(" There are {} more new changes of this kind.", count(more as u64));
    }
    text
}

/// The date of a run with its label, like "2026-11-20 (commit=abc123)".
fn since(run: &PastRun) -> String {
    let date = run.started_at.get(..DATE).unwrap_or(&run.started_at);
    let label = run.labels.get_key_value(USUAL_LABEL).or_else(|| run.labels.iter().next());
    match label {
        Some((name, value)) => format!("{date} ({name}={value})"),
        None => date.to_owned(),
    }
}

/// A change, as a comparison of the runs before it with the runs after it. It is the input of `compare`'s sentences.
fn compared(history: &History, change: &MetricChange) -> MetricComparison {
    let unit = history.figures.iter().find(|figure| figure.name == change.figure).map(|figure| figure.unit);
    MetricComparison {
        name: change.figure.clone(),
        unit: unit.unwrap_or_default(),
        difference: change.size,
        interval95: change.interval95,
        ..MetricComparison::default()
    }
}
