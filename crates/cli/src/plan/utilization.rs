//! How busy each resource was when, in what operators have: a CSV of time and utilizations, or what `sadf -d` writes.

use brimful_core::csv;
use brimful_forecast::Timestamp;
use std::collections::BTreeMap;

/// Utilizations above this are percent.
const SHARE: f64 = 1.5;

/// Of some resources, step after step.
#[derive(Clone, Debug, PartialEq)]
pub struct Utilization {
    /// Their names.
    pub resources: Vec<String>,
    /// In the order of time.
    pub steps: Vec<Step>,
}

/// One step of time.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// When it begins, in seconds since 1970.
    pub from_s: i64,
    /// How long it is.
    pub seconds: f64,
    /// Busy share of each resource, 0..1.
    pub shares: Vec<f64>,
}

/// Reads either; what it says of an error is what to do about it.
pub fn parse(text: &str) -> Result<Utilization, String> {
    let found = if text.contains("# hostname;interval;timestamp") { sadf(text)? } else { table(text)? };
    if found.steps.len() < 2 {
        return Err("it has fewer than two steps of time: regression needs many, of different loads".to_owned());
    }
    Ok(found)
}

/// A header `time,cpu,disk`, then when each step begins and the utilizations in it.
fn table(text: &str) -> Result<Utilization, String> {
    let mut rows = csv::read(text).into_iter();
    let header = rows.next().ok_or("it is empty: write a header like time,cpu,disk and a line for each step")?;
    let resources: Vec<String> = header.fields.iter().skip(1).cloned().collect();
    if resources.is_empty() || header.fields[0].parse::<Timestamp>().is_ok() {
        return Err("it needs a header that names the resources, like time,cpu,disk".to_owned());
    }
    let mut times: BTreeMap<i64, Vec<f64>> = BTreeMap::new();
    for row in rows {
        let at = |why: String| format!("line {}: {why}", row.line);
        let time = row.fields.first().map_or("", String::as_str);
        let time: Timestamp = time.parse().map_err(|error| at(format!("{error}")))?;
        let value = |text: &String| {
            text.trim_end_matches('%').trim().parse::<f64>().ok().filter(|x| *x >= 0.0 && x.is_finite())
        };
        let values: Option<Vec<f64>> = row.fields.iter().skip(1).map(value).collect();
        let values = values.filter(|values| values.len() == resources.len());
        let values = values.ok_or_else(|| at(format!("{} utilizations were expected", resources.len())))?;
        times.insert(time.unix(), values);
    }
    Ok(Utilization { steps: steps(&times, resources.len()), resources })
}

/// Each lasts until the next, but no longer than most do.
fn steps(times: &BTreeMap<i64, Vec<f64>>, resources: usize) -> Vec<Step> {
    let begin: Vec<i64> = times.keys().copied().collect();
    let mut gaps: Vec<i64> = begin.windows(2).map(|pair| pair[1] - pair[0]).collect();
    gaps.sort_unstable();
    let usual = gaps.get(gaps.len() / 2).copied().unwrap_or(0);
    let most: Vec<f64> =
        (0..resources).map(|resource| times.values().map(|values| values[resource]).fold(0.0, f64::max)).collect();
    let scale = if most.iter().any(|most| *most > SHARE) { 0.01 } else { 1.0 };
    let next = begin.iter().skip(1).copied().chain([i64::MAX]);
    let step = |((from, values), next): ((&i64, &Vec<f64>), i64)| Step {
        from_s: *from,
        seconds: next.saturating_sub(*from).min(usual) as f64,
        shares: values.iter().map(|value| (value * scale).min(1.0)).collect(),
    };
    times.iter().zip(next).map(step).filter(|step| step.seconds > 0.0).collect()
}

/// `sadf -d FILE` for CPUs, `sadf -d FILE -- -d` for disks, or both one after the other. Its times are of a step's end.
fn sadf(text: &str) -> Result<Utilization, String> {
    let mut columns: Vec<&str> = Vec::new();
    let mut found: BTreeMap<(i64, i64), BTreeMap<String, f64>> = BTreeMap::new();
    for (number, line) in (1..).zip(text.lines()) {
        if let Some(header) = line.strip_prefix("# hostname;") {
            columns = header.split(';').collect();
            continue;
        }
        let fields: Vec<&str> = line.split(';').skip(1).collect();
        let field =
            |name: &str| columns.iter().position(|column| *column == name).and_then(|at| fields.get(at).copied());
        let number_of = |name: &str| field(name).and_then(|text| text.parse::<f64>().ok());
        // A restart has a line of its own.
        let Some(seconds) = field("interval").and_then(|text| text.parse::<i64>().ok()).filter(|s| *s > 0) else {
            continue;
        };
        let time = field("timestamp").unwrap_or_default().trim_end_matches(" UTC");
        let time: Timestamp = time.parse().map_err(|error| format!("line {number}: {error}"))?;
        let (name, busy) = match (field("CPU"), field("DEV"), number_of("%idle"), number_of("%util")) {
            (Some("-1"), _, Some(idle), _) => ("cpu".to_owned(), 1.0 - idle / 100.0),
            (_, Some(disk), _, Some(busy)) => (disk.to_owned(), busy / 100.0),
            _ => continue,
        };
        found.entry((time.unix() - seconds, seconds)).or_default().insert(name, busy.clamp(0.0, 1.0));
    }
    let mut resources: Vec<String> = found.values().flat_map(|at| at.keys().cloned()).collect();
    // The CPUs first.
    resources.sort_by_key(|name| (name != "cpu", name.clone()));
    resources.dedup();
    if resources.is_empty() {
        return Err("it has neither the line of all CPUs (CPU -1) with %idle nor disks with %util: write it with \
                    `sadf -d FILE -- -u -d`"
            .to_owned());
    }
    let share =
        |at: &BTreeMap<String, f64>| resources.iter().map(|name| at.get(name).copied()).collect::<Option<Vec<f64>>>();
    let step = |((from_s, seconds), at): (&(i64, i64), &BTreeMap<String, f64>)| {
        Some(Step { from_s: *from_s, seconds: *seconds as f64, shares: share(at)? })
    };
    let steps = found.iter().filter_map(step).collect();
    Ok(Utilization { resources, steps })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_of_shares_or_percent() {
        let found = parse("time,cpu,disk\n2026-03-02T10:00:00Z,50,10\n2026-03-02T10:05:00Z,75%,20\n").unwrap();
        assert_eq!(found.resources, ["cpu", "disk"]);
        let shares: Vec<&[f64]> = found.steps.iter().map(|step| step.shares.as_slice()).collect();
        assert_eq!((shares, found.steps[1].seconds), (vec![&[0.5, 0.1][..], &[0.75, 0.2]], 300.0));
        let found = parse("when;cpu\n1772445600;0.5\n1772445900;1\n").unwrap();
        assert_eq!(found.steps[1].shares, [1.0]);
    }

    #[test]
    fn what_sadf_writes() {
        let text = "# hostname;interval;timestamp;CPU;%user;%nice;%system;%iowait;%steal;%idle\n\
                    web;600;2026-03-02 10:10:00 UTC;-1;20.0;0.0;10.0;0.0;0.0;70.0\n\
                    web;-1;2026-03-02 10:12:00 UTC;LINUX-RESTART\t(2 CPU)\n\
                    web;600;2026-03-02 10:20:00 UTC;-1;40.0;0.0;10.0;0.0;0.0;50.0\n\
                    # hostname;interval;timestamp;DEV;tps;rkB/s;wkB/s;dkB/s;areq-sz;aqu-sz;await;%util\n\
                    web;600;2026-03-02 10:10:00 UTC;sda;1;1;1;0;1;0;1;12.5\n\
                    web;600;2026-03-02 10:20:00 UTC;sda;1;1;1;0;1;0;1;25.0\n";
        let found = parse(text).unwrap();
        assert_eq!(found.resources, ["cpu", "sda"]);
        assert_eq!(found.steps.len(), 2);
        assert!((found.steps[0].shares[0] - 0.3).abs() < 1e-12 && found.steps[1].shares[1] == 0.25, "{found:?}");
        assert_eq!(found.steps[0].from_s, 1_772_445_600, "the stamp is of the end");
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        for (text, word) in [
            ("", "empty"),
            ("2026-03-02,5\n2026-03-03,6\n", "header"),
            ("time,cpu\nyesterday,5\n", "line 2"),
            ("time,cpu\n2026-03-02,many\n", "line 2: 1 utilizations"),
            ("time,cpu\n2026-03-02,0.5\n", "fewer than two"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(word), "{text:?}: {error}");
        }
    }
}
