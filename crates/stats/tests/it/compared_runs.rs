//! Runs with given metrics, for the tests of comparisons and histories.

use crate::{account, facts};
use brimful_core::record::{Machine, Reason, ReasonCode, Record, Summary, Verdict};
use brimful_core::survey::Survey;
use brimful_stats::{Run, derive};

/// The Record of a valid run of 20 s that began in minute `number` of an hour. All response times are `time_us`
/// microseconds.
pub fn record(number: u64, throughput: f64, time_us: f64) -> Record {
    let mut record = derive(&account(), facts());
    record.started_at = format!("2026-11-27T10:{number:02}:00Z");
    record.started_monotonic_ns = number;
    record.brimful_version = Some("0.1.0".to_owned());
    record.window_s = 20.0;
    record.verdict = Verdict { valid: true, error_share: Some(0.0), ..Verdict::default() };
    record.rates.completed = throughput;
    record.counts.scheduled = (throughput * record.window_s) as u64;
    record.counts.completed = record.counts.scheduled;
    let count = record.counts.completed;
    let [mean, p50, p90, p99, p999] = [time_us; 5];
    record.response_time_us = Some(Summary { count, mean, p50, p90, p99, p999, ..Summary::default() });
    record.machine = Some(machine("client"));
    record
}

/// A machine with this name.
pub fn machine(host: &str) -> Machine {
    Machine { host: host.to_owned(), kernel: "6.1.0".to_owned(), cpu_model: Some("Xeon".to_owned()) }
}

/// The survey that the page's tests use.
pub fn survey() -> Survey {
    serde_json::from_str(include_str!("../../../../web/example.survey.json")).unwrap()
}

/// Makes the Record invalid, for the reason that the generator was late.
pub fn make_invalid(record: &mut Record) {
    let message = "The generator was late. Give it more CPUs.".to_owned();
    record.verdict.valid = false;
    record.verdict.reasons = vec![Reason { code: ReasonCode::GeneratorLate, message }];
}

/// A run with a name that contains its number.
pub fn named(number: u64, record: Record) -> (String, Run) {
    (format!("run-{number}.json"), Run::Record(Box::new(record)))
}
