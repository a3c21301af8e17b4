//! Tests `--label`, and the other fields of a Record that identify its run.

use crate::documents;
use crate::plan::Files;
use crate::program::{run, start_target, words};
use brimful_core::record::Record;
use brimful_testkit::{Nginx, NginxOptions};

fn load(url: &str, flags: &[&str]) -> Record {
    let args = [&["load", url, "-n", "20", "-c", "2", "--json", "-q"], flags].concat();
    documents::record(&run(&args).exits(&[0, 4]).stdout)
}

#[test]
fn a_record_says_which_run_on_which_machine_against_which_software_it_is_of() {
    let nginx = Nginx::start(NginxOptions::default());
    let record = load(&nginx.url(), &["--label", "commit=abc123", "--label", "note=a=b", "--threads", "2"]);
    let labels: Vec<_> = record.labels.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(labels, [("commit", "abc123"), ("note", "a=b")]);
    assert!(record.server_software.is_some_and(|name| name.starts_with("nginx")));
    assert!(record.machine.is_some_and(|machine| !machine.host.is_empty() && !machine.kernel.is_empty()));
    assert_eq!(record.brimful_version.as_deref(), Some(env!("CARGO_PKG_VERSION")));
    // Without a label, the Record does not contain the field.
    let (_target, url) = start_target(&[]);
    let record = load(&url, &[]);
    assert!(!serde_json::to_string(&record).unwrap().contains("\"labels\""));
}

#[test]
fn a_label_is_shown_and_cannot_control_the_terminal() {
    let (_target, url) = start_target(&[]);
    let text = run(&["load", &url, "-n", "20", "-c", "2", "--label", "x=\u{1b}[2Jred\u{202e}"]).exits(&[0, 4]).stdout;
    assert!(text.contains("\nLabels      x=\\u001b[2Jred\\u202e\n"), "{text}");
}

#[test]
fn a_label_needs_a_name_and_one_value() {
    for (label, message) in [("abc", "`abc` is no label"), ("=abc", "`=abc` is no label")] {
        run(&["load", "http://127.0.0.1:1/", "--label", label]).fails(2, message);
    }
    let (_target, url) = start_target(&[]);
    run(&["load", &url, "--label", "a=1", "--label", "a=2"]).fails(2, "--label a is given twice");
}

#[test]
fn merged_parts_have_the_labels_of_all_parts() {
    let (_target, url) = start_target(&[]);
    let files = Files::new();
    let mut paths = Vec::new();
    for (shard, host) in [("1/2", "x"), ("2/2", "y")] {
        let labels = [format!("host={host}"), "commit=abc".to_owned()];
        let flags = ["--shard", shard, "--seed", "1", "--label", &labels[0], "--label", &labels[1]];
        let record = load(&url, &flags);
        paths.push(files.write(&format!("{host}.json"), serde_json::to_string(&record).unwrap()));
    }
    let merged = run(&["merge", &paths[1], &paths[0], "--json"]).exits(&[0, 4]).stdout;
    let labels = documents::record(&merged).labels;
    assert_eq!((labels["host"].as_str(), labels["commit"].as_str()), ("x, y", "abc"));
    let full = words(&run(&["merge", &paths[1], &paths[0], "--full"]).exits(&[0, 4]).stdout);
    assert!(full.contains("Labels commit=abc, host=x, y") && full.contains("Generated on "), "{full}");
}
