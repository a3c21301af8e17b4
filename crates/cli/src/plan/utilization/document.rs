//! Reads brimful's own documents: a Record, or kernel.jsonl of `brimful watch --log`.
//!
//! In a Record, the CPU time of the server's processes is used if they were watched, because it does not include other
//! programs. Otherwise the utilization of the CPUs is used.

use super::samples::Samples;
use super::{CPU, FORMATS, Utilization};
use crate::documents::parse_record;
use brimful_core::record::{Record, SCHEMA};
use brimful_core::server::{CpuShares, Kernel, LogLine, Server, ServerInterval};
use serde::Deserialize;

/// The field that distinguishes a document from a line of a log.
#[derive(Deserialize)]
struct Document {
    schema: Option<String>,
}

/// Reads the utilizations in a Record or a log.
pub(super) fn read(text: &str) -> Result<Utilization, String> {
    match serde_json::from_str::<Document>(text).ok().and_then(|document| document.schema) {
        Some(schema) if schema == SCHEMA => of_record(&parse_record(text)?),
        Some(schema) => Err(format!("it is a `{schema}`, which has no utilizations over time: use {FORMATS}")),
        None => parse_log(text),
    }
}

fn of_record(record: &Record) -> Result<Utilization, String> {
    let Some(server) = &record.server else {
        return Err(
            "this Record has no figures of its server: write one with `brimful load --watch --out FILE`".to_owned()
        );
    };
    let start_ms = instant_ms(&record.started_at).ok_or_else(|| "started_at is not a time".to_owned())?;
    let cpus = cpus(server);
    let by_process = server.intervals.iter().any(|interval| interval.process_cores.is_some());
    let mut samples = Samples::default();
    for interval in &server.intervals {
        let from_ms = milliseconds(interval.t_s);
        let to_ms = milliseconds(interval.t_s + interval.length_s);
        let from_ms = start_ms.saturating_add(from_ms);
        let to_ms = start_ms.saturating_add(to_ms);
        let process = interval.process_cores.map(|cores| cores / f64::from(cpus));
        if let Some(busy) = if by_process { process } else { interval.cpu.map(busy) } {
            samples.add(from_ms, to_ms, CPU, busy);
        }
        if let Some(busy) = interval.disk_utilization {
            samples.add(from_ms, to_ms, "disk", busy);
        }
    }
    if samples.is_empty() {
        return Err(
            "this Record has no utilizations of its server's CPUs: write one with `brimful load --watch --out FILE`"
                .to_owned(),
        );
    }
    Ok(Utilization { cpus: Some(cpus), ..samples.finish() })
}

/// Number of CPUs that were watched. If unknown, the highest number of CPUs that the processes used at the same time.
fn cpus(server: &Server) -> u32 {
    let cores = |interval: &ServerInterval| interval.process_cores.unwrap_or(0.0);
    let used = server.intervals.iter().map(cores).filter(|cores| cores.is_finite()).fold(0.0, f64::max);
    let most = u32::try_from(server.kernel.cpus.len()).unwrap_or(0);
    if most > 0 { most } else { (used.ceil().clamp(1.0, 65_536.0)) as u32 }
}

/// Reads lines of JSON. Each line covers the interval that ends at its time. The last line may be incomplete.
fn parse_log(text: &str) -> Result<Utilization, String> {
    let mut samples = Samples::default();
    let mut cpus = 0;
    let lines: Vec<(usize, &str)> = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()).collect();
    let last = lines.last().map_or(0, |(number, _)| *number);
    for (number, line) in lines {
        let line: LogLine<Kernel> = match serde_json::from_slice(line.as_bytes()) {
            Ok(line) => line,
            Err(_) if number == last && number > 1 => break,
            Err(error) => return Err(format!("line {number}: {error}; use {FORMATS}")),
        };
        let to_ms = instant_ms(&line.at).ok_or_else(|| format!("line {number}: `at` is not a time"))?;
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
            "its lines have no utilizations of CPUs: of the logs of `brimful watch --log`, use kernel.jsonl".to_owned()
        );
    }
    Ok(Utilization { cpus: u32::try_from(cpus).ok().filter(|n| *n > 0), ..samples.finish() })
}

/// Utilization of the CPUs. Time in which CPUs wait for disks is part of `idle`, so it does not count as busy.
fn busy(shares: CpuShares) -> f64 {
    1.0 - shares.idle
}

fn milliseconds(seconds: f64) -> i64 {
    (seconds * 1000.0).round() as i64
}

fn instant_ms(text: &str) -> Option<i64> {
    text.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_millisecond)
}
