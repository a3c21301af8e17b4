//! What brimful itself has seen of a server: a Record, or the log of the group `kernel` that `brimful watch --log` writes.
//!
//! Of a Record, the CPU time of the server's processes counts where they were watched, because others' is then not in it;
//! else that of the CPUs.

use super::samples::Samples;
use super::{CPU, KINDS, Utilization};
use crate::documents::parse_record;
use brimful_core::record::{Record, SCHEMA};
use brimful_core::server::{CpuShares, Kernel, LogLine, Server, ServerInterval};
use serde::Deserialize;

/// What tells a document from a line of a log.
#[derive(Deserialize)]
struct Begins {
    schema: Option<String>,
}

pub(super) fn read(text: &str) -> Result<Utilization, String> {
    match serde_json::from_str::<Begins>(text).ok().and_then(|document| document.schema) {
        Some(schema) if schema == SCHEMA => of_record(&parse_record(text)?),
        Some(schema) => Err(format!("it is a `{schema}`, which does not say how busy what was when: give it {KINDS}")),
        None => of_log(text),
    }
}

fn of_record(record: &Record) -> Result<Utilization, String> {
    let Some(server) = &record.server else {
        return Err(
            "this Record says nothing of its server: write one with `brimful load --watch --out FILE`".to_owned()
        );
    };
    let start_ms = instant_ms(&record.started_at).ok_or_else(|| "started_at is no time".to_owned())?;
    let cpus = cpus(server);
    let by_process = server.intervals.iter().any(|interval| interval.process_cores.is_some());
    let mut samples = Samples::default();
    for interval in &server.intervals {
        let (from_ms, to_ms) = (milliseconds(interval.t_s), milliseconds(interval.t_s + interval.length_s));
        let (from_ms, to_ms) = (start_ms.saturating_add(from_ms), start_ms.saturating_add(to_ms));
        let process = interval.process_cores.map(|cores| cores / f64::from(cpus));
        if let Some(busy) = if by_process { process } else { interval.cpu.map(busy) } {
            samples.add(from_ms, to_ms, CPU, busy);
        }
        if let Some(busy) = interval.disk_utilization {
            samples.add(from_ms, to_ms, "disk", busy);
        }
    }
    if samples.is_empty() {
        return Err("this Record has no course of its server's CPUs: write one with `brimful load --watch --out FILE`"
            .to_owned());
    }
    Ok(Utilization { cpus: Some(cpus), ..samples.finish() })
}

/// How many CPUs were watched; where that is not known, as many as the processes have used.
fn cpus(server: &Server) -> u32 {
    let cores = |interval: &ServerInterval| interval.process_cores.unwrap_or(0.0);
    let used = server.intervals.iter().map(cores).filter(|cores| cores.is_finite()).fold(0.0, f64::max);
    let most = u32::try_from(server.kernel.cpus.len()).unwrap_or(0);
    if most > 0 { most } else { (used.ceil().clamp(1.0, 65_536.0)) as u32 }
}

/// Lines of JSON, each of the stretch that ends at its time. The last one may be cut off.
fn of_log(text: &str) -> Result<Utilization, String> {
    let mut samples = Samples::default();
    let mut cpus = 0;
    let lines: Vec<(usize, &str)> = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()).collect();
    let last = lines.last().map_or(0, |(number, _)| *number);
    for (number, line) in lines {
        let line: LogLine<Kernel> = match serde_json::from_slice(line.as_bytes()) {
            Ok(line) => line,
            Err(_) if number == last && number > 1 => break,
            Err(error) => return Err(format!("line {number}: {error}; give it {KINDS}")),
        };
        let to_ms = instant_ms(&line.at).ok_or_else(|| format!("line {number}: `at` is no time"))?;
        let from_ms = to_ms.saturating_sub(milliseconds(line.length_s));
        cpus = cpus.max(line.figures.cpus.len());
        if let Some(shares) = line.figures.cpu {
            samples.add(from_ms, to_ms, CPU, busy(shares));
        }
        for (name, disk) in &line.figures.disks {
            samples.add(from_ms, to_ms, name, disk.utilization);
        }
    }
    if samples.is_empty() {
        return Err(
            "its lines do not say how busy the CPUs were: of the logs of `brimful watch --log`, give kernel.jsonl"
                .to_owned(),
        );
    }
    Ok(Utilization { cpus: u32::try_from(cpus).ok().filter(|n| *n > 0), ..samples.finish() })
}

/// Waiting for disks is part of `idle`.
fn busy(shares: CpuShares) -> f64 {
    1.0 - shares.idle
}

fn milliseconds(seconds: f64) -> i64 {
    (seconds * 1000.0).round() as i64
}

fn instant_ms(text: &str) -> Option<i64> {
    text.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_millisecond)
}
