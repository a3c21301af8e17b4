//! Selects the runs of a history: valid runs of one load, in the order of their start times. Copies of a run count
//! once.

use super::Run;
use crate::compare::unlike::{different_subject, incomplete, not_comparable};
use crate::error::StatsError;
use brimful_core::quantity::{count, pluralize};
use brimful_core::record::Machine;
use std::collections::{BTreeMap, HashSet};
use std::time::SystemTime;

/// Maximum number of runs that a note names.
const MAX_NAMED: usize = 3;

/// A run with the user's name for it.
type NamedRun = (String, Run);

/// Returns the runs that form the history, and notes about the runs that were left out.
pub(super) fn select(runs: Vec<NamedRun>) -> Result<(Vec<NamedRun>, Vec<String>), StatsError> {
    let mut notes = Vec::new();
    let runs = without_copies(sorted(runs)?, &mut notes);
    let runs = without_invalid_runs(runs, &mut notes)?;
    let runs = without_other_loads(runs, &mut notes);
    let runs = without_other_machines(runs, &mut notes);
    let cut: Vec<String> = runs.iter().filter_map(|(name, run)| incomplete(name, run)).collect();
    notes.extend((!cut.is_empty()).then(|| named(&cut)));
    Ok((runs, notes))
}

/// The runs in the order of their start times.
fn sorted(runs: Vec<NamedRun>) -> Result<Vec<NamedRun>, StatsError> {
    let with_time = |(name, run): NamedRun| match humantime::parse_rfc3339(run.started_at()) {
        Ok(time) => Ok((time, (name, run))),
        Err(error) => not_comparable(format!("{name} has no start time (`started_at`: {error})")),
    };
    let mut runs: Vec<(SystemTime, NamedRun)> = runs.into_iter().map(with_time).collect::<Result<_, _>>()?;
    runs.sort_by_key(|(time, _)| *time);
    Ok(runs.into_iter().map(|(_, run)| run).collect())
}

fn without_copies(runs: Vec<NamedRun>, notes: &mut Vec<String>) -> Vec<NamedRun> {
    let mut seen = HashSet::new();
    let is_first: Vec<bool> = runs
        .iter()
        .map(|(_, run)| {
            let (started_at, started_ns, seed) = run.identity();
            seen.insert((started_at.to_owned(), started_ns, seed))
        })
        .collect();
    let reason = |index: usize| (!is_first[index]).then(String::new);
    leave_out(runs, reason, "found twice", notes)
}

/// Removes the invalid runs, and adds a note that names them.
///
/// # Errors
/// [`StatsError::NotComparable`] if no run is valid.
fn without_invalid_runs(runs: Vec<NamedRun>, notes: &mut Vec<String>) -> Result<Vec<NamedRun>, StatsError> {
    if !runs.iter().any(|(_, run)| run.is_valid()) {
        let first = runs.first().map(|(name, run)| format!(": {name}, for example ({})", run.invalid_reason()));
        return not_comparable(format!("no run is valid{}; repeat them", first.unwrap_or_default()));
    }
    let reasons: Vec<Option<String>> =
        runs.iter().map(|(_, run)| (!run.is_valid()).then(|| run.invalid_reason())).collect();
    Ok(leave_out(runs, |index| reasons[index].clone(), "not valid", notes))
}

/// Removes the runs of all loads except the most frequent one. If two loads have equally many runs, the load of the
/// newest run is kept.
fn without_other_loads(runs: Vec<NamedRun>, notes: &mut Vec<String>) -> Vec<NamedRun> {
    // For each load: the index of its first run, and the indices of all its runs.
    let mut loads: Vec<(usize, Vec<usize>)> = Vec::new();
    for (index, (_, run)) in runs.iter().enumerate() {
        let same = loads.iter_mut().find(|(first, _)| different_subject(&runs[*first].1, run).is_none());
        match same {
            Some((_, members)) => members.push(index),
            None => loads.push((index, vec![index])),
        }
    }
    let Some((usual, _)) = loads.iter().max_by_key(|(_, members)| (members.len(), members.last().copied())) else {
        return runs;
    };
    let reasons: Vec<Option<String>> = runs.iter().map(|(_, run)| different_subject(&runs[*usual].1, run)).collect();
    leave_out(runs, |index| reasons[index].clone(), "of another load than most", notes)
}

/// Removes runs whose load came from another machine than most runs. If no machine has more than half of the runs whose
/// machine is known, all runs are kept. A machine is identified by its host name and CPU model, not by its kernel,
/// because a kernel update must not end the history.
fn without_other_machines(runs: Vec<NamedRun>, notes: &mut Vec<String>) -> Vec<NamedRun> {
    let name = |machine: &Machine| match &machine.cpu_model {
        Some(model) => format!("{}, {model}", machine.host),
        None => machine.host.clone(),
    };
    let machines: Vec<Option<String>> = runs.iter().map(|(_, run)| run.machine().map(name)).collect();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    machines.iter().flatten().for_each(|machine| *counts.entry(machine).or_default() += 1);
    let known = machines.iter().flatten().count();
    match counts.iter().find(|(_, runs)| 2 * **runs > known) {
        Some((usual, _)) => {
            let usual = (*usual).to_owned();
            let other = |index: usize| machines[index].clone().filter(|machine| *machine != usual);
            leave_out(runs, other, "with a load from another machine than most", notes)
        }
        None => {
            notes.extend((counts.len() > 1).then(|| {
                let machines = pluralize(counts.len() as u64, "machine");
                format!("the load came from {machines}, so some changes may be differences between these")
            }));
            runs
        }
    }
}

/// Removes the runs for which `reason` returns a text (which may be empty), and adds a note that names them.
fn leave_out(
    runs: Vec<NamedRun>,
    reason: impl Fn(usize) -> Option<String>,
    why: &str,
    notes: &mut Vec<String>,
) -> Vec<NamedRun> {
    let mut kept = Vec::new();
    let mut left_out = Vec::new();
    for (index, (name, run)) in runs.into_iter().enumerate() {
        match reason(index) {
            None => kept.push((name, run)),
            Some(reason) if reason.is_empty() => left_out.push(name),
            Some(reason) => left_out.push(format!("{name} ({reason})")),
        }
    }
    if !left_out.is_empty() {
        let number = pluralize(left_out.len() as u64, "run");
        notes.push(format!("{number} left out, {why}: {}", named(&left_out)));
    }
    kept
}

/// Lists names, separated by commas. Only [`MAX_NAMED`] are listed; the others are counted.
fn named(names: &[String]) -> String {
    let shown = names[..names.len().min(MAX_NAMED)].join(", ");
    match names.len().saturating_sub(MAX_NAMED) {
        0 => shown,
        more => format!("{shown} and {} more", count(more as u64)),
    }
}
