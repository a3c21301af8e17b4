//! Reads a table of time and utilizations: CSV with a header.

use super::samples::parse_number;
use super::{CPU, FORMATS, Utilization, UtilizationStep, clock};
use brimful_core::csv;
use brimful_forecast::Timestamp;
use jiff::tz::TimeZone;
use std::collections::BTreeMap;

/// Maximum value of a utilization that is a fraction. If any value exceeds this, all values are percentages.
const MAX_SHARE: f64 = 1.5;

/// Reads a header like `time,cpu,disk`, followed by rows with the start of a time step and the utilizations in that
/// step. Moves the column `cpu` to the front.
pub(super) fn read(text: &str, zone: &TimeZone) -> Result<Utilization, String> {
    let mut rows = csv::parse(text).into_iter();
    let header = rows.next().ok_or_else(|| format!("it is empty: use {FORMATS}"))?;
    let mut resources: Vec<String> = header.fields.iter().skip(1).cloned().collect();
    let first = header.fields.first().map_or("", String::as_str);
    if resources.is_empty() {
        return Err(format!("its format is unknown: use {FORMATS}"));
    }
    if first.parse::<Timestamp>().is_ok() {
        return Err("it needs a header that names the resources, like time,cpu,disk".to_owned());
    }
    let cpu = resources.iter().position(|name| name == CPU).unwrap_or(0);
    resources[..=cpu].rotate_right(1);
    let mut times: BTreeMap<i64, Vec<f64>> = BTreeMap::new();
    let mut has_local_times = false;
    for row in rows {
        let in_line = |why: String| format!("line {}: {why}", row.line);
        let (time_ms, by_zone) =
            clock::parse_time(row.fields.first().map_or("", String::as_str), zone).map_err(in_line)?;
        has_local_times |= by_zone;
        let value = |text: &String| parse_number(text.trim_end_matches('%').trim()).filter(|x| *x >= 0.0);
        let values: Option<Vec<f64>> = row.fields.iter().skip(1).map(value).collect();
        let values = values.filter(|values| values.len() == resources.len());
        let mut values = values.ok_or_else(|| in_line(format!("{} utilizations were expected", resources.len())))?;
        values[..=cpu].rotate_right(1);
        times.insert(time_ms, values);
    }
    Ok(Utilization { steps: steps(&times, resources.len()), resources, has_local_times, ..Utilization::default() })
}

/// Makes the time steps of the table. Each step lasts until the next one starts, but at most as long as the median
/// step.
fn steps(times: &BTreeMap<i64, Vec<f64>>, resources: usize) -> Vec<UtilizationStep> {
    let begin: Vec<i64> = times.keys().copied().collect();
    let mut gaps: Vec<i64> = begin.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect();
    gaps.sort_unstable();
    let usual = gaps.get(gaps.len() / 2).copied().unwrap_or(0);
    let most: Vec<f64> =
        (0..resources).map(|resource| times.values().map(|values| values[resource]).fold(0.0, f64::max)).collect();
    let scale = if most.iter().any(|most| *most > MAX_SHARE) { 0.01 } else { 1.0 };
    let next = begin.iter().skip(1).copied().chain([i64::MAX]);
    let step = |((from, values), next): ((&i64, &Vec<f64>), i64)| UtilizationStep {
        start_ms: *from,
        seconds: next.saturating_sub(*from).min(usual) as f64 / 1000.0,
        shares: values.iter().map(|value| (value * scale).min(1.0)).collect(),
    };
    times.iter().zip(next).map(step).filter(|step| step.seconds > 0.0).collect()
}
