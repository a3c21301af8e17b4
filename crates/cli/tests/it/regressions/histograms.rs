//! Tests histograms for other tools: compressed HdrHistograms (V2) in Records, and the files that `--hdr` writes.
//! `python/tests/test_histograms.py` reads them with another implementation.

use crate::documents;
use crate::program::run;
use brimful_core::record::Record;
use brimful_testkit::RawServer;
use std::fs;
use std::path::Path;

/// The first bytes of every compressed histogram of version 2, in base64.
const COMPRESSED: &str = "HISTFAAA";

/// Runs a load of forty calls, whose results do not matter.
fn load(url: &str, rest: &[&str]) -> Record {
    let args = [&["load", url, "--rate", "400", "--requests", "40", "--json"], rest].concat();
    documents::record(&run(&args).exits(&[0, 4]).stdout)
}

fn read(file: &Path) -> String {
    fs::read_to_string(file).unwrap()
}

#[test]
fn histograms_of_a_record_are_in_the_form_that_other_tools_read() {
    let server = RawServer::content_length("hello");
    let record = load(&server.url(), &[]);
    assert!(record.hdr.len() >= 5 && record.hdr.values().all(|text| text.starts_with(COMPRESSED)), "{:#?}", record.hdr);
    let account = serde_json::to_value(record.account.unwrap()).unwrap();
    let interval =
        account["intervals"].as_array().unwrap().iter().find_map(|interval| interval["response_us"].as_str());
    assert!(interval.unwrap().starts_with(COMPRESSED));
    assert!(account["classes"][0]["lateness"]["histogram"].as_str().unwrap().starts_with(COMPRESSED));
}

#[test]
fn a_record_with_uncompressed_histograms_is_read_as_before() {
    let old = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/regressions/uncompressed-record.json");
    let record = documents_of_earlier_version(&read(&old));
    assert!(record.hdr["response_time_us"].starts_with("HISTEwAA"), "this old Record is not compressed");
    let directory = tempfile::tempdir().unwrap();
    let percentiles = directory.path().join("old.hgrm");
    let args = ["merge", old.to_str().unwrap(), "--json", "--slo", "p50<1h", "--hdr", percentiles.to_str().unwrap()];
    let merged = documents::record(&run(&args).exits(&[0, 4]).stdout);
    assert_eq!((merged.counts, merged.response_time_us), (record.counts, record.response_time_us));
    assert!(merged.objectives[0].met && merged.hdr["response_time_us"].starts_with(COMPRESSED));
    assert_eq!(merged.status_classes["2xx"].count, record.counts.completed);
    assert_eq!(total_count(&percentiles), record.counts.completed);
}

/// Parses a Record of an earlier version, without the checks of [`documents::record`].
fn documents_of_earlier_version(text: &str) -> Record {
    serde_json::from_str(text).unwrap()
}

/// The total number of values in the footer of a percentile file.
fn total_count(percentiles: &Path) -> u64 {
    let text = read(percentiles);
    let count = text.split("Total count    =").nth(1).and_then(|rest| rest.split(']').next());
    count.unwrap_or_else(|| panic!("{text}")).trim().parse().unwrap()
}

#[test]
fn hdr_writes_percentiles_and_intervals_for_other_tools() {
    let server = RawServer::content_length("hello");
    let directory = tempfile::tempdir().unwrap();
    let [percentiles, log] = ["run.hgrm", "run.hlog"].map(|name| directory.path().join(name));
    let record = load(&server.url(), &["--hdr", percentiles.to_str().unwrap()]);
    assert_eq!(total_count(&percentiles), record.counts.completed);
    assert!(read(&percentiles).starts_with("       Value     Percentile TotalCount 1/(1-Percentile)\n"));
    load(&server.url(), &["--hdr", log.to_str().unwrap()]);
    let log = read(&log);
    assert!(log.starts_with("#[Histogram log format version 1.3]\n") && log.contains(",HISTFAAA"), "{log}");
}

#[test]
fn hdr_refuses_a_name_that_does_not_say_the_format() {
    let server = RawServer::content_length("hello");
    let directory = tempfile::tempdir().unwrap();
    for name in ["run.json", "run", "run.hdr"] {
        let file = directory.path().join(name);
        let file = file.to_str().unwrap();
        let args = ["load", &server.url(), "--requests", "1", "--hdr", file];
        run(&args).fails(2, "use .hgrm for percentiles as text, or .hlog for one histogram per interval");
        assert!(!Path::new(file).exists());
    }
}
