//! Checks Records (the documents of runs) before calibration: their schema version, and whether their values are
//! possible. An impossible value is an error of the whole calibration. Leaving out the Record is not enough, because
//! the program that wrote it may have written other wrong values.

use crate::EstimateError;
use crate::window::{completed_in_window, window_means};
use brimful_core::number::check_non_negative;
use brimful_core::record::{Record, SCHEMA};
use brimful_core::server::{CpuShares, Server};

/// Maximum accepted ratio of the number of busy CPUs to the number of CPUs. The ratio may exceed 1, because CPU time
/// and elapsed time are measured by different clocks.
const MAX_BUSY_RATIO: f64 = 1.1;

/// Number of CPUs that is assumed for a Record that does not contain it: the maximum that Linux supports.
const MAX_CPUS: usize = 8192;

/// Tolerance for rounding errors. Shares of CPU time must be between −0.01 and 1.01.
const ROUNDING: f64 = 0.01;

/// Returns an error for the first Record with an impossible value. `by_process` says whether the CPU time of the
/// server's processes is used, rather than that of all programs. The message counts Records from 1.
pub(super) fn check(records: &[Record], by_process: bool) -> Result<(), EstimateError> {
    let check_one = |(i, record): (usize, &Record)| {
        check_record(record, by_process)
            .map_err(|problem| EstimateError::Input { place: format!("record {}", i + 1), problem })
    };
    records.iter().enumerate().try_for_each(check_one)
}

fn check_record(record: &Record, by_process: bool) -> Result<(), String> {
    if record.schema != SCHEMA {
        return Err(format!(
            "it is a `{}`, and this version reads `{SCHEMA}`: calibrate with the version that wrote it, or measure again",
            record.schema
        ));
    }
    for (what, value) in [
        ("window_s", record.window_s),
        ("duration_s", record.duration_s),
        ("rates.offered", record.rates.offered),
        ("rates.completed", record.rates.completed),
    ] {
        figure(what, value)?;
    }
    let all: u64 = record.classes.values().map(|c| c.counts.completed).fold(0, u64::saturating_add);
    // `completed_in_window` is a rounded rate × duration, so it may exceed the exact count by one call per class.
    let most = (all as f64 + record.classes.len() as f64) * (1.0 + 1e-6);
    if completed_in_window(record) > most {
        return Err(format!(
            "{} calls per second for {} s are more than the {all} that its classes completed: {IMPOSSIBLE_ADVICE}",
            record.rates.completed, record.window_s
        ));
    }
    record.server.as_ref().map_or(Ok(()), |server| check_server(record, server, by_process))
}

fn check_server(record: &Record, server: &Server, by_process: bool) -> Result<(), String> {
    for process in &server.process {
        figure(&format!("the CPU time of {}, in cores,", process.name), process.cores)?;
    }
    for interval in &server.intervals {
        figure("the length of an interval of the server", interval.length_s)?;
        figure("the CPU time of an interval of the server, in cores,", interval.process_cores.unwrap_or(0.0))?;
    }
    for cpu in server.kernel.cpu.iter().chain(server.intervals.iter().filter_map(|i| i.cpu.as_ref())) {
        let CpuShares { user, system, idle, steal, .. } = *cpu;
        for share in [user, system, idle, steal] {
            if !(-ROUNDING..=1.0 + ROUNDING).contains(&share) {
                return Err(format!(
                    "a share of the CPUs' time is {share}, and shares are from 0 to 1: {IMPOSSIBLE_ADVICE}"
                ));
            }
        }
    }
    let cpus = if server.kernel.cpus.is_empty() { MAX_CPUS } else { server.kernel.cpus.len() };
    let used = window_means(record, by_process).map_or(0.0, |measured| measured.busy);
    let whole: f64 = server.process.iter().map(|p| p.cores).sum();
    if used.max(whole) > MAX_BUSY_RATIO * cpus as f64 {
        return Err(format!(
            "the server used {} CPUs and no more than {cpus} were watched: watch all that it may use, or measure again",
            used.max(whole)
        ));
    }
    Ok(())
}

/// End of every message about an impossible value: the advice to the user.
const IMPOSSIBLE_ADVICE: &str = "this value is impossible, so measure again";

fn figure(what: &str, value: f64) -> Result<(), String> {
    check_non_negative(value, || what.to_owned()).map(|_| ()).map_err(|error| format!("{error}: {IMPOSSIBLE_ADVICE}"))
}
