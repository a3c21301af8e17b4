//! Decides whether a Record (the document of a run) can be used, and checks that all Records are of the same server.

use super::figures::load_kind;
use crate::EstimateError;
use crate::window::window_means;
use brimful_core::quantity::{number, percent};
use brimful_core::record::{ReasonCode, Record};
use brimful_core::server::Server;
use brimful_core::workload::LoadKind;
use std::collections::BTreeSet;

/// Minimum share of the offered calls that a run completes. Below it, the run is past saturation: the load exceeded the
/// server's capacity.
const MIN_COMPLETED: f64 = 0.95;

/// Returns an error with the reason if the Record cannot be used. `by_process` says whether the CPU time of the
/// server's processes is used, rather than that of all programs.
pub(super) fn judge(record: &Record, by_process: bool) -> Result<(), String> {
    if record.server.is_none() {
        return Err(
            "the server was not watched: add --watch to `brimful load`, or --watch-from if the server is on another host".into(),
        );
    }
    if !record.verdict.valid && !only_late(record) {
        let reasons: Vec<&str> = record.verdict.reasons.iter().map(|r| r.message.as_str()).collect();
        return Err(format!("the run is invalid: {}", reasons.join(" ")));
    }
    let Some(measured) = window_means(record, by_process) else {
        return Err("the CPU time of the server is not in it: name the server's program with --process".into());
    };
    if record.counts.scheduled == 0 {
        return Ok(());
    }
    if record.redirects.as_ref().is_some_and(|redirects| redirects.followed.counts.scheduled > 0) {
        return Err(
            "its calls that followed redirects are of no class, and cost the server too: leave out --follow, and \
                    request the URL that the redirects lead to"
                .into(),
        );
    }
    if past_saturation(record) {
        return Err(format!(
            "past saturation: of {} calls per second {} were completed{}; lower the rate, or let the run be much longer than \
             its response times",
            number(record.rates.offered),
            number(record.rates.completed),
            match failed(record) {
                0.0 => String::new(),
                share => format!(" and {} failed, and what failed cost time too", percent(share)),
            }
        ));
    }
    if record.classes.values().all(|c| c.counts.completed == 0) || measured.busy == 0.0 {
        return Err("no call was completed, or none cost the server anything: look at what was requested".into());
    }
    Ok(())
}

/// Whether the run is invalid only because the load generator sent calls late. Its response times are then wrong, but
/// its throughput and CPU time are correct.
pub(super) fn only_late(record: &Record) -> bool {
    let reasons = &record.verdict.reasons;
    !reasons.is_empty() && reasons.iter().all(|r| r.code == ReasonCode::GeneratorLate)
}

/// Whether the load exceeded the server's capacity.
pub(super) fn past_saturation(record: &Record) -> bool {
    record.rates.completed < MIN_COMPLETED * record.rates.offered || failed(record) > 1.0 - MIN_COMPLETED
}

/// Mean number of busy CPUs in a valid run that kept the server saturated: a run past saturation, or a run with
/// S-Clients (clients that time out, which overload a server on purpose). `None` for other runs.
pub(super) fn saturated(record: &Record, by_process: bool) -> Option<f64> {
    let valid = record.verdict.valid && record.counts.scheduled > 0;
    let full = past_saturation(record) || load_kind(record) == LoadKind::SClients;
    window_means(record, by_process).filter(|_| valid && full).map(|measured| measured.busy)
}

/// Share of the calls that failed.
fn failed(record: &Record) -> f64 {
    record.counts.errors() as f64 / record.counts.scheduled.max(1) as f64
}

/// Host and port of a URL, such as `example.org:8080`.
pub(super) fn authority(target: &str) -> &str {
    let rest = target.split_once("://").map_or(target, |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().unwrap_or(rest)
}

/// Returns an error if the Records are of different servers. `watched` contains the Records whose server was monitored,
/// each with its index in the input.
pub(super) fn same_server(watched: &[(usize, &Record, &Server)]) -> Result<(), EstimateError> {
    let Some((first, a, server)) = watched.first() else { return Ok(()) };
    let programs = |s: &Server| s.process.iter().map(|p| p.name.clone()).collect::<BTreeSet<_>>();
    let memory = |s: &Server| s.kernel.memory.map(|m| m.total_bytes);
    for (i, b, other) in &watched[1..] {
        let differs = |what: String| {
            Err(EstimateError::Inconsistent(format!(
                "records {} and {} are of different servers ({what}): calibrate each server by itself",
                first + 1,
                i + 1
            )))
        };
        if authority(&a.target) != authority(&b.target) {
            return differs(format!("{} and {}", a.target, b.target));
        }
        if server.kernel.cpus != other.kernel.cpus {
            return differs(format!("CPUs {:?} and {:?}", server.kernel.cpus, other.kernel.cpus));
        }
        if programs(server) != programs(other) && !server.process.is_empty() && !other.process.is_empty() {
            return differs(format!("programs {:?} and {:?}", programs(server), programs(other)));
        }
        if let (Some(x), Some(y)) = (memory(server), memory(other))
            && x != y
        {
            return differs(format!("{x} and {y} bytes of memory"));
        }
    }
    Ok(())
}
