//! Checks that the runs of both sides can be compared. It is an error if runs had different loads or classes.
//! Invalid runs are left out. Any other difference between the runs that may explain a difference of the metrics yields
//! a warning that names the runs.

use super::{Run, Side};
use crate::error::StatsError;
use brimful_core::quantity::{pluralize, seconds};
use brimful_core::record::{Machine, Record, Verdict};
use brimful_core::survey::Survey;
use brimful_core::workload::Workload;
use std::collections::BTreeSet;

/// Returns the sides without their invalid runs, and the warnings.
pub(super) fn check(a: Side, b: Side) -> Result<(Side, Side, Vec<String>), StatsError> {
    let mut warnings = Vec::new();
    let [a, b] = [without_invalid_runs(a, &mut warnings)?, without_invalid_runs(b, &mut warnings)?];
    let runs: Vec<(&str, &Run)> =
        [&a, &b].into_iter().flat_map(|side| &side.runs).map(|(name, run)| (&**name, run)).collect();
    if let Some((first, others)) = runs.split_first() {
        others.iter().try_for_each(|other| same_subject(*first, *other))?;
    }
    for side in [&a, &b] {
        no_run_twice(side)?;
    }
    if let Some((first, second)) = same_run(&a, &b) {
        warnings.push(format!("{first} and {second} are the same run"));
    }
    warnings.extend(runs.iter().filter_map(|(name, run)| incomplete(name, run)));
    warnings.extend(different_machines(&a, &b));
    warnings.extend(CONDITIONS.iter().filter_map(|(what, condition)| different_conditions(what, *condition, &a, &b)));
    Ok((a, b, warnings))
}

/// An error that the sides cannot be compared, with this message.
pub(crate) fn not_comparable<T>(message: String) -> Result<T, StatsError> {
    Err(StatsError::NotComparable(message))
}

impl Run {
    /// Whether the run's measurements are valid, with the reasons.
    pub(crate) fn verdict(&self) -> &Verdict {
        match self {
            Run::Record(record) => &record.verdict,
            Run::Survey(survey) => &survey.verdict,
        }
    }

    /// Whether the run's measurements can be used in a comparison.
    pub(crate) fn is_valid(&self) -> bool {
        match self {
            Run::Record(record) => record.verdict.valid,
            Run::Survey(survey) => survey.has_valid_measurements(),
        }
    }

    /// The first reason why the run is not valid, without its advice to the user.
    pub(crate) fn invalid_reason(&self) -> String {
        let reason = self.verdict().reasons.first().map_or("", |reason| &reason.message);
        reason.split_once(". ").map_or(reason, |(what, _)| what).trim_end_matches('.').to_owned()
    }

    /// The machine that generated the load; `None` if the document does not contain it.
    pub(crate) fn machine(&self) -> Option<&Machine> {
        match self {
            Run::Record(record) => record.machine.as_ref(),
            Run::Survey(survey) => survey.machine.as_ref(),
        }
    }

    /// Wall-clock time of the start of the run, in RFC 3339 format.
    pub(crate) fn started_at(&self) -> &str {
        self.identity().0
    }

    /// Start time, start in nanoseconds of the monotonic clock, and seed. They are equal for two runs only if these are
    /// copies of one run.
    pub(crate) fn identity(&self) -> (&str, u64, u64) {
        match self {
            Run::Record(record) => (&record.started_at, record.started_monotonic_ns, record.seed),
            Run::Survey(survey) => (&survey.started_at, 0, survey.seed),
        }
    }
}

/// Leaves out invalid runs, with a warning for each.
///
/// # Errors
/// [`StatsError::NotComparable`] if no run is valid.
fn without_invalid_runs(side: Side, warnings: &mut Vec<String>) -> Result<Side, StatsError> {
    let (valid, invalid): (Vec<_>, Vec<_>) = side.runs.into_iter().partition(|(_, run)| run.is_valid());
    if let ([], Some((name, run))) = (&valid[..], invalid.first()) {
        return not_comparable(format!(
            "{name} is not valid ({}), and {} has no valid run: repeat it as its verdict advises",
            run.invalid_reason(),
            side.name
        ));
    }
    warnings.extend(
        invalid.iter().map(|(name, run)| format!("{name} is left out: it is not valid ({})", run.invalid_reason())),
    );
    Ok(Side { name: side.name, runs: valid })
}

/// Checks that both runs had the same load and the same classes of requests.
fn same_subject(first: (&str, &Run), second: (&str, &Run)) -> Result<(), StatsError> {
    let ((name, run), (other_name, other)) = (first, second);
    match different_subject(run, other) {
        Some(difference) => not_comparable(format!(
            "{name} and {other_name} cannot be compared: {difference}; compare runs of one load"
        )),
        None => Ok(()),
    }
}

/// A description of the difference between the loads or the classes of two runs; `None` if there is no difference.
pub(crate) fn different_subject(run: &Run, other: &Run) -> Option<String> {
    match (run, other) {
        (Run::Record(ours), Run::Record(theirs)) => different_load(ours, theirs),
        (Run::Survey(ours), Run::Survey(theirs)) => different_classes(ours, theirs),
        _ => Some("one is a Record and the other a survey".to_owned()),
    }
}

/// A description of the difference between the workloads of two Records. A Record of an old version has no workload.
fn different_load(ours: &Record, theirs: &Record) -> Option<String> {
    let (ours, theirs) = (ours.workload.as_ref()?, theirs.workload.as_ref()?);
    if ours.load != theirs.load {
        let load = |workload: &Workload| serde_json::to_string(&workload.load).unwrap_or_default();
        return Some(format!("their loads differ: {} and {}", load(ours), load(theirs)));
    }
    (ours.classes != theirs.classes).then(|| {
        let classes = |workload: &Workload| workload.classes.iter().map(|class| class.name.clone()).collect::<Vec<_>>();
        match (classes(ours), classes(theirs)) {
            (ours, theirs) if ours == theirs => "their requests differ".to_owned(),
            (ours, theirs) => format!("their classes differ: {} and {}", ours.join(", "), theirs.join(", ")),
        }
    })
}

fn different_classes(ours: &Survey, theirs: &Survey) -> Option<String> {
    let classes = |survey: &Survey| survey.model.classes.iter().map(|class| class.name.clone()).collect::<Vec<_>>();
    let (ours, theirs) = (classes(ours), classes(theirs));
    (ours != theirs).then(|| format!("their classes differ: {} and {}", ours.join(", "), theirs.join(", ")))
}

/// Returns an error if a side has the same run twice. Copies of a run would hide the variability between runs.
fn no_run_twice(side: &Side) -> Result<(), StatsError> {
    for (place, (name, run)) in side.runs.iter().enumerate() {
        if let Some((other, _)) = side.runs[..place].iter().find(|(_, other)| other.identity() == run.identity()) {
            return not_comparable(format!("{other} and {name} are the same run: give each run of a side once"));
        }
    }
    Ok(())
}

fn same_run<'a>(a: &'a Side, b: &'a Side) -> Option<(&'a str, &'a str)> {
    let copy = |run: &Run| b.runs.iter().find(|(_, other)| other.identity() == run.identity());
    a.runs.iter().find_map(|(name, run)| Some((name.as_str(), copy(run)?.0.as_str())))
}

/// A warning about a Record of an incomplete run, or of a server that failed most calls; `None` otherwise.
pub(crate) fn incomplete(name: &str, run: &Run) -> Option<String> {
    let Run::Record(record) = run else { return None };
    let length = seconds(record.window_s);
    let lost = record.shards.iter().filter(|shard| shard.lost_at_s.is_some()).count() as u64;
    if record.interrupted {
        Some(format!("{name} was interrupted after {length}"))
    } else if let Some(condition) = &record.stopped_by {
        Some(format!("{name} was stopped by {condition} after {length}"))
    } else if lost > 0 {
        Some(format!("{name} lacks {} of the load", pluralize(lost, "part")))
    } else if record.verdict.failing == Some(true) {
        Some(format!("most calls of {name} failed: its times are those of the others"))
    } else {
        None
    }
}

fn different_machines(a: &Side, b: &Side) -> Option<String> {
    let machines = |side: &Side| -> BTreeSet<String> {
        let describe = |machine: &Machine| {
            let cpus = machine.cpu_model.as_ref().map_or(String::new(), |model| format!(", {model}"));
            format!("{} (Linux {}{cpus})", machine.host, machine.kernel)
        };
        side.runs.iter().filter_map(|(_, run)| run.machine()).map(describe).collect()
    };
    let (a, b) = (machines(a), machines(b));
    let list = |machines: BTreeSet<String>| machines.into_iter().collect::<Vec<_>>().join(", ");
    let differ = !a.is_empty() && !b.is_empty() && a != b;
    differ.then(|| format!("the load came from different machines: of A from {}, of B from {}", list(a), list(b)))
}

/// A function that describes one test condition of a run in words, such as its TLS settings; `None` if the document
/// does not contain it.
pub(crate) type Condition = fn(&Run) -> Option<String>;

/// Test conditions that should be the same in all runs, because they can cause differences of the metrics.
pub(crate) const CONDITIONS: [(&str, Condition); 5] = [
    ("versions of brimful", brimful_version),
    ("versions of HTTP", http_version),
    ("TLS settings", tls),
    ("numbers of CPUs of the server", server_cpus),
    ("ways of watching the server", watching),
];

fn brimful_version(run: &Run) -> Option<String> {
    match run {
        Run::Record(record) => record.brimful_version.clone(),
        Run::Survey(survey) => Some(survey.brimful_version.clone()),
    }
}

fn http_version(run: &Run) -> Option<String> {
    record_of(run)?.http.clone()
}

fn tls(run: &Run) -> Option<String> {
    Some(record_of(run)?.tls.as_ref().map_or("no TLS".to_owned(), |tls| tls.version.clone()))
}

fn server_cpus(run: &Run) -> Option<String> {
    match run {
        Run::Record(record) => record.server.as_ref().map(|server| server.kernel.cpus.len().to_string()),
        Run::Survey(survey) => Some(survey.server_cpus.len().to_string()),
    }
}

fn watching(run: &Run) -> Option<String> {
    let server = record_of(run)?.server.as_ref();
    let is_watched = server.is_some_and(|server| !server.process.is_empty());
    Some(if is_watched { "its processes" } else { "not its processes" }.to_owned())
}

fn record_of(run: &Run) -> Option<&Record> {
    match run {
        Run::Record(record) => Some(record),
        Run::Survey(_) => None,
    }
}

fn different_conditions(what: &str, condition: Condition, a: &Side, b: &Side) -> Option<String> {
    let values = |side: &Side| side.runs.iter().filter_map(|(_, run)| condition(run)).collect::<BTreeSet<_>>();
    let (a, b) = (values(a), values(b));
    let differ = !a.is_empty() && !b.is_empty() && (a != b || a.len() > 1);
    let list = |values: BTreeSet<String>| values.into_iter().collect::<Vec<_>>().join(", ");
    differ.then(|| format!("the runs have different {what}: A {}, B {}", list(a), list(b)))
}
