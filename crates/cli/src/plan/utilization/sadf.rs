//! Reads the output of `sadf -d FILE -- -u -d`: fields separated by semicolons, with a header for each activity. A time is
//! the end of its step, in UTC unless `-t` or `-T` was given.

use super::samples::{Samples, parse_number};
use super::{CPU, Utilization, clock};
use jiff::tz::TimeZone;

/// Reads utilizations from `sadf`'s output. Local times are read in `zone`.
pub(super) fn read(text: &str, zone: &TimeZone) -> Result<Utilization, String> {
    let mut columns: Vec<&str> = Vec::new();
    let mut samples = Samples::default();
    let mut has_local_times = false;
    for (number, line) in (1..).zip(text.lines()) {
        if let Some(header) = line.strip_prefix("# hostname;") {
            columns = header.split(';').collect();
            continue;
        }
        let fields: Vec<&str> = line.split(';').skip(1).collect();
        let field =
            |name: &str| columns.iter().position(|column| *column == name).and_then(|at| fields.get(at).copied());
        let number_of = |name: &str| field(name).and_then(parse_number);
        // A line that reports a restart of the machine has no interval.
        let Some(seconds) = field("interval").and_then(|text| text.parse::<i64>().ok()).filter(|s| *s > 0) else {
            continue;
        };
        let (name, busy) = match (field("CPU"), field("DEV"), number_of("%idle"), number_of("%util")) {
            (Some(cpu), _, Some(idle), _) => {
                let name = if cpu == "-1" { CPU.to_owned() } else { format!("{CPU}{cpu}") };
                (name, 1.0 - (idle + number_of("%iowait").unwrap_or(0.0)) / 100.0)
            }
            (_, Some(disk), _, Some(busy)) => (disk.to_owned(), busy / 100.0),
            _ => continue,
        };
        let time = field("timestamp").unwrap_or_default();
        let (to_ms, by_zone) = match time.strip_suffix(" UTC") {
            Some(time) => clock::parse_time(time, &TimeZone::UTC).map(|(at, _)| (at, false)),
            None => clock::parse_time(time, zone),
        }
        .map_err(|error| format!("line {number}: {error}"))?;
        has_local_times |= by_zone;
        samples.add(to_ms.saturating_sub(seconds.saturating_mul(1000)), to_ms, &name, busy);
    }
    if samples.is_empty() {
        return Err("it has neither a line of all CPUs (CPU -1) with %idle nor disks with %util: write it with \
                    `sadf -d FILE -- -u -d`"
            .to_owned());
    }
    Ok(Utilization { has_local_times, ..samples.finish() })
}
