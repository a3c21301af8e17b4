//! A table of time and utilizations that people write: CSV with a header.

use super::samples::figure;
use super::{KINDS, Step, Utilization, clock};
use brimful_core::csv;
use brimful_forecast::Timestamp;
use jiff::tz::TimeZone;
use std::collections::BTreeMap;

/// Utilizations above this are percent.
const SHARE: f64 = 1.5;

/// A header `time,cpu,disk`, then when each step begins and the utilizations in it.
pub(super) fn read(text: &str, zone: &TimeZone) -> Result<Utilization, String> {
    let mut rows = csv::read(text).into_iter();
    let header = rows.next().ok_or_else(|| format!("it is empty: give it {KINDS}"))?;
    let resources: Vec<String> = header.fields.iter().skip(1).cloned().collect();
    let first = header.fields.first().map_or("", String::as_str);
    if resources.is_empty() {
        return Err(format!("it is nothing that is known: give it {KINDS}"));
    }
    if first.parse::<Timestamp>().is_ok() {
        return Err("it needs a header that names the resources, like time,cpu,disk".to_owned());
    }
    let mut times: BTreeMap<i64, Vec<f64>> = BTreeMap::new();
    let mut is_local = false;
    for row in rows {
        let at = |why: String| format!("line {}: {why}", row.line);
        let (time_ms, by_zone) = clock::any(row.fields.first().map_or("", String::as_str), zone).map_err(at)?;
        is_local |= by_zone;
        let value = |text: &String| figure(text.trim_end_matches('%').trim()).filter(|x| *x >= 0.0);
        let values: Option<Vec<f64>> = row.fields.iter().skip(1).map(value).collect();
        let values = values.filter(|values| values.len() == resources.len());
        let values = values.ok_or_else(|| at(format!("{} utilizations were expected", resources.len())))?;
        times.insert(time_ms, values);
    }
    Ok(Utilization { steps: steps(&times, resources.len()), resources, is_local, ..Utilization::default() })
}

/// Each lasts until the next, but no longer than most do.
fn steps(times: &BTreeMap<i64, Vec<f64>>, resources: usize) -> Vec<Step> {
    let begin: Vec<i64> = times.keys().copied().collect();
    let mut gaps: Vec<i64> = begin.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect();
    gaps.sort_unstable();
    let usual = gaps.get(gaps.len() / 2).copied().unwrap_or(0);
    let most: Vec<f64> =
        (0..resources).map(|resource| times.values().map(|values| values[resource]).fold(0.0, f64::max)).collect();
    let scale = if most.iter().any(|most| *most > SHARE) { 0.01 } else { 1.0 };
    let next = begin.iter().skip(1).copied().chain([i64::MAX]);
    let step = |((from, values), next): ((&i64, &Vec<f64>), i64)| Step {
        from_ms: *from,
        seconds: next.saturating_sub(*from).min(usual) as f64 / 1000.0,
        shares: values.iter().map(|value| (value * scale).min(1.0)).collect(),
    };
    times.iter().zip(next).map(step).filter(|step| step.seconds > 0.0).collect()
}
