//! Where results go when the place is a difficult one.

use crate::documents;
use crate::program::{Running, brimful, run, share_machine, until};
use brimful_testkit::RawServer;
use std::fs::{self, File};
use std::process::Stdio;

const SHORT: [&str; 4] = ["--clients", "1", "--requests", "20"];

#[test]
fn colours_are_for_terminals_unless_forced_and_never_against_no_color() {
    // That no pipe gets escape codes unasked is asserted of every run; this shows that it would be noticed.
    let coloured = |variables: &[(&str, &str)]| {
        let output = brimful(&["doctor"]).envs(variables.iter().copied()).output().unwrap();
        assert!(output.status.success());
        output.stdout.contains(&0x1b)
    };
    assert!(!coloured(&[]));
    assert!(coloured(&[("CLICOLOR_FORCE", "1")]));
    assert!(!coloured(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]));
}

#[test]
fn a_full_disk_loses_no_document() {
    let server = RawServer::content_length("hello\n");
    let done = run(&[&["load", &server.url(), "--out", "/dev/full"], &SHORT[..]].concat()).exits(&[3]);
    assert!(done.stderr.contains("cannot write /dev/full") && done.stderr.contains("on stdout"), "{}", done.stderr);
    let json = done.stdout.find('{').expect("the document is on stdout");
    assert_eq!(documents::record(&done.stdout[json..]).counts.completed, 20);
}

#[test]
fn a_full_disk_leaves_one_document_on_stdout() {
    let server = RawServer::content_length("hello\n");
    let done = run(&[&["load", &server.url(), "--json", "--out", "/dev/full"], &SHORT[..]].concat()).exits(&[3]);
    assert_eq!(documents::record(&done.stdout).counts.completed, 20);
}

#[test]
fn a_full_stdout_is_an_error_and_the_file_is_written_all_the_same() {
    let server = RawServer::content_length("hello\n");
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("record.json");
    let _machine = share_machine();
    let to_file = ["load", &server.url(), "--json", "--out", out.to_str().unwrap()];
    let mut command = brimful(&[&to_file, &SHORT[..]].concat());
    command.stdout(File::options().write(true).open("/dev/full").unwrap()).stdin(Stdio::null());
    let output = command.output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{stderr}");
    assert!(stderr.contains("cannot write to stdout"), "{stderr}");
    let document = fs::read_to_string(&out).expect("what was measured is in the file");
    assert_eq!(documents::record(&document).counts.completed, 20);
}

#[test]
fn a_reader_that_has_enough_is_no_error() {
    let server = RawServer::content_length("hello\n");
    let _machine = share_machine();
    let mut command = brimful(&[&["load", &server.url(), "--json"], &SHORT[..]].concat());
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    assert!(matches!(output.status.code(), Some(0 | 4)), "{}", output.status);
}

#[test]
fn an_existing_file_is_replaced_only_by_a_whole_one() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("record.json");
    fs::write(&out, "the former").unwrap();
    let nobody = format!("127.0.0.1:{}", brimful_testkit::free_port());
    run(&[&["load", &nobody, "--out", out.to_str().unwrap()], &SHORT[..]].concat()).fails(3, "nothing listens");
    assert_eq!(fs::read_to_string(&out).unwrap(), "the former");

    let server = RawServer::never_answers();
    let _machine = share_machine();
    let load = Running::start(brimful(&["load", &server.url(), "--rate", "100", "--out", out.to_str().unwrap()]));
    // One connection was made to find out that somebody listens.
    until(|| server.connections() >= 2);
    load.kill();
    assert_eq!(fs::read_to_string(&out).unwrap(), "the former");
}
