//! Times by status class (2xx, 4xx and so on). They are separate because fast error responses lower the mean of all
//! responses.

use super::layout::{row, table, time_or_dash};
use super::percentile::{self, P50, P95, P99};
use crate::thresholds::NOTABLE_ERRORS;
use brimful_core::quantity::count;
use brimful_core::record::{Record, StatusTimes};

/// Describes the response times of each status class. `None` if all responses are errors (4xx, 5xx), or if fewer than
/// [`NOTABLE_ERRORS`] of them are.
pub(super) fn describe(record: &Record) -> Option<String> {
    let status = &record.counts.status;
    let all = status.s1xx + status.s2xx + status.s3xx + status.s4xx + status.s5xx;
    let errors = status.s4xx + status.s5xx;
    if (errors as f64) < NOTABLE_ERRORS * all as f64 || errors == 0 || errors == all {
        return None;
    }
    let said = |(name, times): (&str, &StatusTimes)| {
        let words = times.response_time_us.as_ref().map(percentile::describe)?;
        Some(format!("{name} {words}"))
    };
    let said: Vec<String> = classes(record).filter_map(said).collect();
    (said.len() > 1).then(|| said.join("; "))
}

/// A table of the times of each status class; empty if all responses were 2xx.
pub(super) fn rows(record: &Record) -> Vec<String> {
    if record.status_classes.keys().all(|name| name == "2xx") {
        return Vec::new();
    }
    let class_row = |(name, times): (&str, &StatusTimes)| {
        let response = times.response_time_us.as_ref();
        row(
            name,
            [
                count(times.count),
                time_or_dash(response.map(|summary| summary.mean)),
                percentile::cell(P50, response),
                percentile::cell(P95, response),
                percentile::cell(P99, response),
                time_or_dash(response.map(|summary| summary.max)),
                time_or_dash(times.service_time_us.map(|summary| summary.mean)),
            ],
        )
    };
    let rows: Vec<_> = classes(record).map(class_row).collect();
    vec![table(&["Status", "answers", "response", "p50", "p95", "p99", "max", "service"], &rows)]
}

/// The status classes with responses, in the order of their codes. The code 429 is separate, after the other 4xx.
fn classes(record: &Record) -> impl Iterator<Item = (&str, &StatusTimes)> {
    let names = ["1xx", "2xx", "3xx", "4xx", "429", "5xx"].into_iter();
    names.filter_map(|name| Some((name, record.status_classes.get(name)?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::fixture::{record, summary};
    use brimful_core::counts::{Counts, StatusCounts};

    fn mixed(s2xx: u64, s5xx: u64) -> Record {
        let times =
            |count, mean| StatusTimes { count, response_time_us: summary(mean), service_time_us: summary(mean) };
        let classes = [("2xx", times(s2xx, 40_000.0)), ("5xx", times(s5xx, 400.0))];
        let status = StatusCounts { s2xx, s5xx, ..StatusCounts::default() };
        Record {
            counts: Counts { scheduled: s2xx + s5xx, completed: s2xx + s5xx, status, ..Counts::default() },
            status_classes: classes.map(|(name, times)| (name.to_owned(), times)).into(),
            ..record()
        }
    }

    #[test]
    fn fast_errors_are_shown_apart_from_the_pages() {
        let said = describe(&mixed(5_000, 5_000)).unwrap();
        assert_eq!(said, "2xx p50 36.0 ms, p95 120 ms, p99 200 ms; 5xx p50 360 µs, p95 1.20 ms, p99 2.00 ms");
        assert_eq!(describe(&mixed(9_999, 1)), None, "few errors are not mentioned");
        assert_eq!(describe(&mixed(0, 100)), None, "a single status class is not described");
        let table = rows(&mixed(5_000, 5_000)).join("\n");
        assert!(table.lines().any(|line| line.starts_with("5xx") && line.contains("5,000")), "{table}");
        assert!(rows(&record()).is_empty());
    }
}
