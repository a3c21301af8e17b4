//! Tests output files at paths where another user has created something before, and output files that other users must
//! not read.

use crate::documents;
use crate::program::{Running, brimful, lock_machine_shared, run, wait_until};
use brimful_testkit::RawServer;
use rustix::process::Signal;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

#[test]
fn a_link_at_the_temporary_name_is_neither_followed_nor_deleted() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str| directory.path().join(name);
    let (kept, next, victim) = (file("kept.json"), file("kept.json.next"), file("victim"));
    fs::write(&victim, "untouched").unwrap();
    symlink(&victim, &next).unwrap();
    let server = RawServer::content_length("hello");
    run(&["load", &server.url(), "-n", "5", "--keep", kept.to_str().unwrap()]).exits(&[0, 4]);
    assert_eq!(fs::read_to_string(&victim).unwrap(), "untouched");
    assert!(fs::symlink_metadata(&next).unwrap().is_symlink());
    assert_eq!(documents::record(&fs::read_to_string(&kept).unwrap()).counts.completed, 5);
}

#[test]
fn only_its_owner_can_read_a_trace() {
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("trace");
    let server = RawServer::content_length("hello");
    run(&["load", &server.url(), "-n", "5", "--trace", trace.to_str().unwrap()]).exits(&[0, 4]);
    assert_eq!(fs::metadata(&trace).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read_to_string(&trace).unwrap().lines().count(), 5);
}

#[test]
fn a_killed_load_leaves_its_last_record_and_the_next_load_cleans_up() {
    let _machine = lock_machine_shared();
    let directory = tempfile::tempdir().unwrap();
    let kept = directory.path().join("kept.json");
    let server = RawServer::content_length("hello");
    let (url, place) = (server.url(), kept.to_str().unwrap());
    let load =
        Running::start(brimful(&["load", &url, "--rate", "50", "-d", "10m", "--keep", place, "--trace", "/dev/null"]));
    wait_until(|| kept.exists());
    load.signal(Signal::KILL);
    drop(load);
    let record = documents::record(&fs::read_to_string(&kept).unwrap());
    assert!(record.interrupted && record.counts.scheduled > 0, "{record:#?}");
    let again = brimful(&["load", &url, "-n", "3", "--keep", place]);
    Running::start(again).finish().exits(&[0, 4]);
    let names: Vec<_> = fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["kept.json"]);
}
