//! Writes the response times of a Record to files for HdrHistogram's tools: an interval log (`.hlog`, format 1.3) or a
//! distribution by percentiles (`.hgrm`). Both contain the response times of all completed calls. A response time
//! begins when the call is due, and ends with the last byte of the response.
//!
//! Values in an interval log are in nanoseconds; values in a distribution are in milliseconds, as in wrk2.

use crate::distribution::Distribution;
use crate::error::StatsError;
use crate::histogram::{add, empty, encode};
use crate::series::{DIGITS, LONGEST_US};
use brimful_core::record::Record;
use hdrhistogram::Histogram;
use std::fmt::Write;
use std::path::Path;

/// Number of rows of a percentile distribution in each of the ranges 0 to 50 %, 50 to 75 %, 75 to 87.5 %, and so on, as
/// in HdrHistogram's tools.
const TICKS: u32 = 5;

const NANOS_PER_MS: f64 = 1e6;

/// The format of a file of response times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HdrFormat {
    /// `.hgrm`: percentiles of the whole run, as text.
    Percentiles,
    /// `.hlog`: one compressed histogram per interval.
    IntervalLog,
}

impl HdrFormat {
    /// The format of a file, from its extension; `None` if the extension is unknown.
    pub fn from_path(path: &Path) -> Option<HdrFormat> {
        match path.extension()?.to_str()? {
            "hgrm" => Some(HdrFormat::Percentiles),
            "hlog" => Some(HdrFormat::IntervalLog),
            _ => None,
        }
    }

    /// Returns the content of the file. `started_s` is the start of the run, in seconds since 1970.
    ///
    /// # Errors
    /// [`StatsError`] if the Record's `account` (its serialised statistics) is missing or damaged.
    pub fn content(self, record: &Record, started_s: f64) -> Result<String, StatsError> {
        match self {
            HdrFormat::Percentiles => percentiles(record),
            HdrFormat::IntervalLog => interval_log(record, started_s),
        }
    }
}

fn percentiles(record: &Record) -> Result<String, StatsError> {
    let mut histogram = Distribution::empty_histogram();
    if let Some(times) = record.hdr.get("response_time_us") {
        add(&mut histogram, times)?;
    }
    let mut text = "       Value     Percentile TotalCount 1/(1-Percentile)\n\n".to_owned();
    for (value, share, total) in distribution(&histogram) {
        let value_ms = value as f64 / NANOS_PER_MS;
        let beyond = if share < 1.0 { format!(" {:14.2}", 1.0 / (1.0 - share)) } else { String::new() };
        put(&mut text, format_args!("{value_ms:12.6} {share:.12} {total:10}{beyond}\n"));
    }
    let times = record.response_time_us.unwrap_or_default();
    let [mean, stddev, max] = [times.mean, times.stddev, times.max].map(|us| us / 1e3);
    let sub_buckets = (2 * 10_u64.pow(u32::from(histogram.sigfig()))).next_power_of_two();
    put(&mut text, format_args!("#[Mean    = {mean:12.6}, StdDeviation   = {stddev:12.6}]\n"));
    put(&mut text, format_args!("#[Max     = {max:12.6}, Total count    = {:12}]\n", histogram.len()));
    put(&mut text, format_args!("#[Buckets = {:12}, SubBuckets     = {sub_buckets:12}]\n", histogram.buckets()));
    Ok(text)
}

/// The rows of a percentile distribution: a value, a share, and a count. The count is the exact number of recorded
/// values that do not exceed the row's value. It is at least the row's share of all recorded values. The shares
/// approach 1, and the last row counts all values. The library's own iterator is not used, because it counts too many
/// values if the share of all values is a whole number.
fn distribution(histogram: &Histogram<u64>) -> Vec<(u64, f64, u64)> {
    let all = histogram.len();
    let mut rows = Vec::new();
    let mut value = 0;
    let mut total = 0;
    let mut recorded = histogram.iter_recorded();
    for share in shares() {
        let wanted = share * all as f64 * (1.0 - 4.0 * f64::EPSILON);
        while total == 0 || (total as f64) < wanted {
            let Some(step) = recorded.next() else { return rows };
            value = step.value_iterated_to();
            total += step.count_since_last_iteration();
        }
        rows.push((value, share, total));
        if total == all {
            break;
        }
    }
    rows.push((value, 1.0, all));
    rows
}

/// The shares 0, 0.1, …, 0.5, 0.55, …: there are [`TICKS`] steps while the distance to 1 halves.
fn shares() -> impl Iterator<Item = f64> {
    (0..i32::MAX).flat_map(|halvings| {
        let left = 0.5_f64.powi(halvings);
        (0..TICKS).map(move |tick| 1.0 - left + left / 2.0 * f64::from(tick) / f64::from(TICKS))
    })
}

fn interval_log(record: &Record, started_s: f64) -> Result<String, StatsError> {
    let account = record.account.as_ref().ok_or(StatsError::NoAccount)?;
    let length_s = account.interval_s;
    let mut text = format!(
        "#[Histogram log format version 1.3]\n\
         #[Response times of {} in nanoseconds, from when each call was due; Interval_Max in milliseconds]\n\
         #[StartTime: {started_s:.3} (seconds since epoch), {}]\n\
         \"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n",
        brimful_core::text::one_line(&record.target),
        brimful_core::text::one_line(&record.started_at),
    );
    for (nth, interval) in account.intervals.iter().enumerate() {
        let mut coarse: Histogram<u32> = empty(LONGEST_US, DIGITS);
        if let Some(times) = &interval.response_us {
            add(&mut coarse, times)?;
        }
        let mut times = Distribution::empty_histogram();
        for step in coarse.iter_recorded() {
            times.saturating_record_n(1_000 * step.value_iterated_to(), step.count_since_last_iteration());
        }
        let start_s = nth as f64 * length_s;
        let max_ms = times.max() as f64 / NANOS_PER_MS;
        put(&mut text, format_args!("{start_s:.3},{length_s:.3},{max_ms:.3},{}\n", encode(&times)));
    }
    Ok(text)
}

#[allow(clippy::expect_used, reason = "writing to a string cannot fail")]
fn put(text: &mut String, line: std::fmt::Arguments<'_>) {
    text.write_fmt(line).expect("writing to a string cannot fail");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::Account;
    use crate::{RunFacts, derive};
    use brimful_core::Nanos;

    /// A Record of calls with response times of 1 to 1000 ms. Ten calls end in each second.
    fn record() -> Record {
        let mut account = Account::new(&["all".to_owned()], Nanos::from_secs(100));
        for call in 1..=1_000 {
            let (at, time) = (Nanos::from_millis(100 * call - 50), Nanos::from_millis(call));
            account.classes[0].answers.record(200, true, time, Some(time));
            account.classes[0].counts.status.s2xx += 1;
            account.series.record_completed(at, time);
        }
        let facts = RunFacts { started_at: "2026-03-01T14:00:00Z".to_owned(), ..RunFacts::default() };
        derive(&account, facts)
    }

    #[test]
    fn the_ending_says_the_format() {
        let format = |name: &str| HdrFormat::from_path(Path::new(name));
        assert_eq!(format("a/run.hgrm"), Some(HdrFormat::Percentiles));
        assert_eq!(format("run.hlog"), Some(HdrFormat::IntervalLog));
        for other in ["run", "run.json", "hgrm", ".hlog", "run.hgrm.gz", "-"] {
            assert_eq!(format(other), None, "{other}");
        }
    }

    #[test]
    fn percentiles_are_milliseconds_and_count_every_call() {
        let text = HdrFormat::Percentiles.content(&record(), 0.0).unwrap();
        let rows: Vec<Vec<f64>> = text
            .lines()
            .skip(2)
            .filter(|line| !line.starts_with('#'))
            .map(|line| line.split_whitespace().map(|word| word.parse().unwrap()).collect())
            .collect();
        assert!(text.starts_with("       Value     Percentile TotalCount 1/(1-Percentile)\n\n"), "{text}");
        let median = rows.iter().find(|row| row[1] == 0.5).unwrap();
        assert!((median[0] / 500.0 - 1.0).abs() < 1e-3 && median[2..] == [500.0, 2.0], "{median:?}");
        // If a row's share of the recorded values is a whole number, the row must count exactly this number of values.
        assert!(rows.iter().any(|row| row[1] == 0.3 && row[2] == 300.0) && rows[0][1..3] == [0.0, 1.0], "{text}");
        let last = rows.last().unwrap();
        assert!((last[0] / 1_000.0 - 1.0).abs() < 1e-3 && last[1..] == [1.0, 1_000.0], "{last:?}");
        assert!(text.contains("\n#[Mean    =   500.500000, StdDeviation   =   288.819436]\n"), "{text}");
        assert!(text.contains("\n#[Max     =  1000.000000, Total count    =         1000]\n"), "{text}");
        let none = HdrFormat::Percentiles
            .content(&derive(&Account::new(&["all".to_owned()], Nanos::MAX), RunFacts::default()), 0.0);
        assert!(none.unwrap().contains("Total count    =            0]"));
    }

    #[test]
    fn an_interval_log_has_a_histogram_for_each_interval() {
        let text = HdrFormat::IntervalLog.content(&record(), 1_772_373_600.0).unwrap();
        assert!(text.starts_with("#[Histogram log format version 1.3]\n"), "{text}");
        assert!(
            text.contains("\n#[StartTime: 1772373600.000 (seconds since epoch), 2026-03-01T14:00:00Z]\n"),
            "{text}"
        );
        let lines: Vec<Vec<&str>> =
            text.lines().filter(|line| !line.starts_with(['#', '"'])).map(|line| line.split(',').collect()).collect();
        assert_eq!((lines.len(), lines[3][0], lines[3][1]), (100, "3.000", "1.000"));
        let mut all = Distribution::empty_histogram();
        let counts: Vec<u64> = lines.iter().map(|line| add(&mut all, line[3]).unwrap()).collect();
        assert_eq!(counts, [10; 100]);
        let median = all.value_at_quantile(0.5) as f64 / NANOS_PER_MS;
        assert!((median / 500.0 - 1.0).abs() < 0.01, "{median}");
        assert!(HdrFormat::IntervalLog.content(&Record { account: None, ..record() }, 0.0).is_err());
    }
}
