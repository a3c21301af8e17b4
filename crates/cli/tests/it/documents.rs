//! Checks documents that the program prints: they must parse as their types, serialize to the same text, and have
//! counts that add up.

use brimful_core::counts::Counts;
use brimful_core::record::{Interval, Record, SCHEMA};
use brimful_core::survey::Survey;
use brimful_stats::Account;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Parses a Record, and asserts that its counts add up.
pub fn record(text: &str) -> Record {
    let record: Record = document(text);
    assert_eq!(record.schema, SCHEMA);
    assert_eq!(record.verdict.valid, record.verdict.reasons.is_empty());
    counts(&record);
    intervals(&record);
    histograms(&record);
    record
}

/// Parses a survey, and asserts that its levels are in order.
pub fn survey(text: &str) -> Survey {
    let survey: Survey = document(text);
    assert_eq!(survey.schema, brimful_core::survey::SCHEMA);
    assert_eq!(survey.verdict.valid, survey.verdict.reasons.is_empty());
    assert!(survey.levels.is_sorted_by(|a, b| a.offered <= b.offered), "{:#?}", survey.levels);
    survey
}

/// Parses a document, and asserts that it contains exactly the fields of its type. (The schemas are generated from the
/// types.)
pub fn document<T: Serialize + DeserializeOwned>(text: &str) -> T {
    let value: serde_json::Value = serde_json::from_str(text).unwrap_or_else(|e| panic!("{e} in:\n{text}"));
    let document: T = serde_json::from_str(text).unwrap_or_else(|e| panic!("{e} in:\n{text}"));
    assert_eq!(serde_json::to_value(&document).unwrap(), value);
    document
}

fn counts(record: &Record) {
    let Counts { scheduled, completed, unexpected, status, .. } = record.counts;
    assert_eq!(record.counts.imbalance(), (0, 0), "{:#?}", record.counts);
    assert_eq!(status.s2xx + status.s3xx + status.s4xx + status.s5xx, completed + unexpected);
    let sum = |figure: fn(&Counts) -> u64| record.classes.values().map(|class| figure(&class.counts)).sum::<u64>();
    assert_eq!((sum(|c| c.scheduled), sum(|c| c.completed)), (scheduled, completed));
    for (name, class) in &record.classes {
        assert_eq!(class.counts.imbalance(), (0, 0), "{name}: {:#?}", class.counts);
    }
}

fn intervals(record: &Record) {
    let sum = |figure: fn(&Interval) -> u64| record.intervals.iter().map(figure).sum::<u64>();
    let sums = (sum(|i| i.offered), sum(|i| i.sent), sum(|i| i.completed), sum(|i| i.errors));
    let Counts { scheduled, sent, completed, .. } = record.counts;
    assert_eq!(sums, (scheduled, sent, completed, record.counts.errors()), "{:#?}", record.intervals);
}

fn histograms(record: &Record) {
    assert_eq!(record.response_time_us.map_or(0, |summary| summary.count), record.counts.completed);
    for (name, summary) in [
        ("response_time_us", &record.response_time_us),
        ("service_time_us", &record.service_time_us),
        ("connect_time_us", &record.connect_time_us),
        ("first_byte_us", &record.first_byte_us),
        ("lateness_us", &record.lateness_us),
    ] {
        assert_eq!(record.hdr.contains_key(name), summary.is_some(), "{name}");
    }
    let packed = record.account.as_ref().expect("a Record has its account");
    let account = Account::unpack(packed).unwrap();
    assert_eq!((&account.pack(), account.counts()), (packed, record.counts));
    if let [class] = &packed.classes[..] {
        let histogram = class.response_time.as_ref().map(|times| &times.histogram);
        assert_eq!(histogram, record.hdr.get("response_time_us"));
    }
}
