//! Reads the output of `iostat -x -t`: reports, each with its time, the CPUs and the disks. The first report covers the
//! time since the machine was started, and is skipped. Each later report covers the time since the previous one.

use super::clock::{LineTimes, date, is_ambiguous, parse_time, time_of_day};
use super::samples::{Samples, parse_number};
use super::sar::cpus_in;
use super::{CPU, Utilization};
use jiff::civil::Date;
use jiff::tz::TimeZone;

/// The part of an `iostat` report (CPUs or disks) to which the current line belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Cpu,
    Disks,
}

/// Whether the line is a header that only `iostat` prints.
pub(super) fn is_header(line: &str) -> bool {
    let mut words = line.split_whitespace();
    match words.next() {
        Some("avg-cpu:") => true,
        Some("Device" | "Device:") => words.any(|word| word == "%util" || word == "tps"),
        _ => false,
    }
}

/// Reads utilizations from `iostat`'s reports. Times without a zone are read in `zone`.
pub(super) fn read(text: &str, zone: &TimeZone) -> Result<Utilization, String> {
    let mut samples = Samples::default();
    let mut cpus = None;
    let mut has_local_times = false;
    let mut has_times = false;
    // Start of the current report's interval: the time of the previous report.
    let mut before_ms = None;
    let mut at_ms = None;
    let (mut part, mut columns): (Option<Part>, Vec<&str>) = (None, Vec::new());
    let mut notes = Vec::new();
    for line in text.lines() {
        if line.starts_with("Linux ") {
            cpus = cpus_in(line).or(cpus);
            (before_ms, at_ms) = (None, None);
            continue;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        if let Some((instant_ms, by_zone)) = stamp(&words, zone) {
            (before_ms, at_ms) = (at_ms, Some(instant_ms));
            has_times = true;
            has_local_times |= by_zone;
            if words.first().is_some_and(|word| is_ambiguous(word)) && notes.is_empty() {
                let date = words.first().copied().unwrap_or_default();
                notes.push(format!(
                    "{date} is read as month, day and year; `S_TIME_FORMAT=ISO iostat` prints unambiguous dates"
                ));
            }
            continue;
        }
        match words.first().copied() {
            None if part == Some(Part::Disks) => part = None,
            None => {}
            Some("avg-cpu:") => (part, columns) = (Some(Part::Cpu), words.get(1..).unwrap_or_default().to_vec()),
            Some(_) if words.contains(&"Device") || words.contains(&"Device:") => {
                (part, columns) = (Some(Part::Disks), words);
            }
            Some(_) => {
                let interval = before_ms.zip(at_ms);
                if let (Some((from_ms, to_ms)), Some((name, busy))) = (interval, sample(part, &columns, &words)) {
                    samples.add(from_ms, to_ms, name, busy);
                }
            }
        }
    }
    if !has_times {
        return Err("its reports have no times: run iostat with -t, as in `iostat -x -t 60`".to_owned());
    }
    if samples.is_empty() {
        return Err(
            "it has no second report with %idle of the CPUs or %util of disks, and the first covers the time since \
                    the machine was started; run `iostat -x -t 60` for a while"
                .to_owned(),
        );
    }
    let found = samples.finish();
    let cpus = cpus.filter(|_| found.resources.first().is_some_and(|name| name == CPU));
    Ok(Utilization { cpus, has_local_times, notes, ..found })
}

/// The name of the resource in a line, and its utilization.
fn sample<'a>(part: Option<Part>, columns: &[&str], words: &[&'a str]) -> Option<(&'a str, f64)> {
    if words.len() != columns.len() {
        return None;
    }
    let word = |name: &str| {
        columns.iter().position(|column| column.trim_end_matches(':') == name).and_then(|at| words.get(at))
    };
    let number = |name: &str| word(name).and_then(|word| parse_number(word));
    match part? {
        Part::Cpu => Some((CPU, 1.0 - (number("%idle")? + number("%iowait").unwrap_or(0.0)) / 100.0)),
        Part::Disks => Some((*word("Device")?, number("%util")? / 100.0)),
    }
}

/// Parses a line that is only a time, like `11/22/2026 10:15:01 AM` or `2026-11-22T10:15:01+0100`. Returns milliseconds
/// since 1970, and whether the time has no zone.
fn stamp(words: &[&str], zone: &TimeZone) -> Option<(i64, bool)> {
    match words {
        [one] if one.contains('T') => parse_time(one, zone).ok(),
        [day, clock @ ..] => {
            let (second, taken) = time_of_day(clock)?;
            let day: Date = date(day).filter(|_| taken == clock.len())?;
            Some((LineTimes::start(day, second, zone)?.at_ms, true))
        }
        [] => None,
    }
}
