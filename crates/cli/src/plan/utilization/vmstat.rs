//! Reads the output of `vmstat -t`: one line for each interval, with the time of its end. The first line covers the
//! time since the machine was started, and is skipped. Percentages are whole numbers.

use super::clock::{date, instant_ms, time_of_day};
use super::samples::{Samples, parse_number};
use super::{CPU, Utilization};
use brimful_forecast::Timestamp;
use jiff::tz::TimeZone;

/// The columns that all versions of vmstat print.
const COLUMNS: [&str; 20] = [
    "r", "b", "swpd", "free", "buff", "cache", "inact", "active", "si", "so", "bi", "bo", "in", "cs", "us", "sy", "id",
    "wa", "st", "gu",
];

/// Whether a line names vmstat's columns.
pub(super) fn is_header(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    words.starts_with(&["r", "b"]) && ["us", "sy", "id"].iter().all(|name| words.contains(name))
}

/// Reads utilizations from `vmstat`'s output. Times without a zone are read in `zone`.
pub(super) fn read(text: &str, zone: &TimeZone) -> Result<Utilization, String> {
    let mut samples = Samples::default();
    let (mut columns, mut named): (Vec<&str>, Option<TimeZone>) = (Vec::new(), None);
    let mut before_ms = None;
    let mut has_local_times = false;
    let mut rows = 0_u64;
    let mut has_times = false;
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if is_header(line) {
            columns = words.iter().copied().take_while(|word| COLUMNS.contains(word)).collect();
            named = words.get(columns.len()).and_then(|name| zone_named(name));
            continue;
        }
        let number = |name: &str| {
            let at = columns.iter().position(|column| *column == name)?;
            words.get(at).and_then(|word| parse_number(word))
        };
        let Some(idle) = number("id").filter(|_| words.len() >= columns.len()) else { continue };
        rows += 1;
        let rest = words.get(columns.len()..).unwrap_or_default();
        let own = rest.get(2).and_then(|name| zone_named(name)).or_else(|| named.clone());
        let stamp = rest.first().and_then(|day| date(day)).zip(rest.get(1).and_then(|time| time_of_day(&[time])));
        let Some(to_ms) = stamp.and_then(|(day, (second, _))| instant_ms(day, second, own.as_ref().unwrap_or(zone)))
        else {
            continue;
        };
        has_times = true;
        has_local_times |= own.is_none();
        if let Some(from_ms) = before_ms {
            samples.add(from_ms, to_ms, CPU, 1.0 - (idle + number("wa").unwrap_or(0.0)) / 100.0);
        }
        before_ms = Some(to_ms);
    }
    match (has_times, samples.is_empty()) {
        (false, _) if rows > 0 => Err("its lines have no times: run vmstat with -t, as in `vmstat -t 60`".to_owned()),
        (_, true) => Err("it has no second line, and the first covers the time since the machine was started; run \
                          `vmstat -t 60` for a while"
            .to_owned()),
        _ => Ok(Utilization { has_local_times, ..samples.finish() }),
    }
}

/// The zone of `UTC`, of its synonyms, and of offsets like `+03`. `None` for all other names, because several zones
/// share a name like `CET`.
fn zone_named(name: &str) -> Option<TimeZone> {
    if matches!(name, "UTC" | "GMT" | "Z") {
        return Some(TimeZone::UTC);
    }
    // A zone without a name is printed as an offset like `+03`, which is parsed as part of a time.
    let is_offset = name.starts_with(['+', '-']);
    let at: Timestamp = is_offset.then(|| format!("2000-01-01T12:00:00{name}").parse().ok()).flatten()?;
    let noon: Timestamp = "2000-01-01T12:00:00Z".parse().ok()?;
    let ahead = i32::try_from(noon.unix() - at.unix()).ok()?;
    jiff::tz::Offset::from_seconds(ahead).ok().map(TimeZone::fixed)
}
