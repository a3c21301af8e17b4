//! Tests that a load prints its Record even if another file cannot be written or read.

use crate::documents;
use crate::program::{Done, Running, brimful, lock_machine_shared, run};
use crate::small_disk::SmallDisk;
use brimful_core::record::{ReasonCode, Record};
use brimful_testkit::http2::{answer, frame, http2_server, settings};
use brimful_testkit::{RawServer, with_length};
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// Type of the WINDOW_UPDATE frame of HTTP/2 (RFC 9113 §6.9).
const WINDOW_UPDATE: u8 = 8;
const EACH_ENGINE: [&str; 2] = ["epoll", "uring"];

/// The Record on stdout. Asserts that the load failed with this exit code and this error on stderr.
fn record_beside_error(done: Done, code: i32, error: &str) -> Record {
    assert!(done.stderr.contains(error), "{error:?} was expected: {done:#?}");
    documents::record(&done.exits(&[code]).stdout)
}

#[test]
fn a_trace_on_a_full_disk_leaves_the_record_and_every_other_file() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (hdr, html, keep) = (file("a.hgrm"), file("a.html"), file("kept.json"));
    let server = RawServer::content_length("hello");
    let flags = ["--trace", "/dev/full", "--hdr", &hdr, "--html", &html, "--keep", &keep];
    let url = server.url();
    let done = run(&[&["load", &url, "--json", "-c", "2", "-n", "50"][..], &flags].concat());
    let record =
        record_beside_error(done, 3, "cannot write all of /dev/full: choose a disk with free space: No space left");
    assert_eq!(record.counts.completed, 50);
    for written in [&hdr, &html] {
        assert!(fs::metadata(written).unwrap().len() > 0, "{written}");
    }
    assert_eq!(documents::record(&fs::read_to_string(&keep).unwrap()).counts.completed, 50);
}

#[test]
fn every_file_that_cannot_be_written_is_reported() {
    let server = RawServer::content_length("hello");
    let url = server.url();
    let done = run(&["load", &url, "--json", "-n", "5", "--trace", "/dev/full", "--html", "/dev/full"]);
    assert_eq!(done.stderr.matches("/dev/full").count(), 2, "{done:#?}");
    assert_eq!(record_beside_error(done, 3, "cannot write all of /dev/full").counts.completed, 5);
}

#[test]
fn a_keep_directory_that_is_removed_during_the_load_leaves_the_record() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("place");
    fs::create_dir(&place).unwrap();
    let kept = place.join("kept.json").to_str().unwrap().to_owned();
    let server = RawServer::with_handler(move |_| {
        let _ = fs::remove_dir_all(&place);
        with_length(b"hello")
    });
    let url = server.url();
    let done = run(&["load", &url, "--json", "-c", "1", "-n", "5", "--keep", &kept]);
    let record = record_beside_error(done, 3, "choose another place with --keep");
    assert_eq!(record.counts.completed, 5);
}

/// Creates a file of 1 MiB. Returns its path and a function that truncates it to 10 bytes, for use during the load.
fn shrinking(directory: &Path) -> (String, impl Fn() + Send + Sync + 'static) {
    let path = directory.join("body");
    fs::write(&path, vec![b'x'; 1 << 20]).unwrap();
    let file = Mutex::new(File::options().write(true).open(&path).unwrap());
    (path.to_str().unwrap().to_owned(), move || file.lock().unwrap().set_len(10).unwrap())
}

/// Asserts that the first call succeeded, that all later calls failed in the client, and that the Record names the
/// file.
fn check_only_first_call_succeeded(done: Done) {
    let record = documents::record(&done.exits(&[4]).stdout);
    assert_eq!((record.counts.completed, record.counts.client_limited), (1, 4), "{:?}", record.counts);
    let reason = record.verdict.reasons.iter().find(|reason| reason.code == ReasonCode::BodyFile);
    let said = &reason.unwrap_or_else(|| panic!("{:?}", record.verdict)).message;
    assert!(said.starts_with("4 of 5 calls could not be sent whole: ") && said.contains("become shorter"), "{said}");
}

#[test]
fn a_body_file_that_shrinks_during_the_load_fails_only_its_own_calls() {
    for engine in EACH_ENGINE {
        let directory = tempfile::tempdir().unwrap();
        let (body, shrink) = shrinking(directory.path());
        let server = RawServer::with_handler(move |_| {
            shrink();
            with_length(b"hello")
        });
        let (url, data) = (server.url(), format!("@{body}"));
        check_only_first_call_succeeded(run(&[
            "load", &url, "--json", "-c", "1", "-n", "5", "--data", &data, "--engine", engine,
        ]));
    }
}

#[test]
fn a_body_file_that_shrinks_during_an_http2_load_fails_only_its_own_calls() {
    for engine in EACH_ENGINE {
        let directory = tempfile::tempdir().unwrap();
        let (body, shrink) = shrinking(directory.path());
        let is_answered = AtomicBool::new(false);
        let server = http2_server(settings(&[]), move |peer, _| {
            // The window of the connection permits the bodies of all calls.
            peer.send(&frame(WINDOW_UPDATE, 0, 0, &(16_u32 << 20).to_be_bytes()));
            let Some(stream) = peer.request() else { return };
            // Respond only to the first request. A response to a later request might arrive before the client has read
            // the truncated file, so that the call would succeed.
            if !is_answered.swap(true, Ordering::Relaxed) {
                shrink();
                peer.send(&answer(stream, b"hello"));
            }
            peer.drain();
        });
        let (url, data) = (server.url(), format!("@{body}"));
        check_only_first_call_succeeded(run(&[
            "load", &url, "--json", "--http", "2", "-c", "1", "-n", "5", "--data", &data, "--engine", engine,
        ]));
    }
}

#[test]
fn a_file_size_limit_leaves_the_record_on_stdout() {
    let _machine = lock_machine_shared();
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (trace, out) = (file("trace"), file("record.json"));
    let server = RawServer::content_length("hello");
    let url = server.url();
    let load = brimful(&["load", &url, "-n", "200", "--json", "--trace", &trace, "--out", &out]);
    let mut shell = Command::new("bash");
    // The limit of a file's size is 8 blocks of 1 KiB.
    shell.args(["-c", "ulimit -f 8; exec \"$0\" \"$@\""]).arg(load.get_program()).args(load.get_args());
    let done = Running::start(shell).finish();
    assert!(done.stderr.contains("File too large") && done.stderr.contains("cannot write all of"), "{done:#?}");
    let record = record_beside_error(done, 3, "the document is on stdout instead");
    assert_eq!(record.counts.completed, 200);
    assert!(!Path::new(&out).exists(), "an incomplete Record never gets its final name");
    assert_eq!(fs::metadata(&trace).unwrap().len(), 8 * 1024);
}

#[test]
fn a_repetition_whose_file_cannot_be_written_is_on_stdout() {
    let _machine = lock_machine_shared();
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("record.json");
    let server = RawServer::content_length("hello");
    let load = brimful(&["load", &server.url(), "-n", "20", "--repeat", "2", "--out", out.to_str().unwrap()]);
    let mut shell = Command::new("bash");
    // The limit of a file's size is 1 KiB.
    shell.args(["-c", "ulimit -f 1; exec \"$0\" \"$@\""]).arg(load.get_program()).args(load.get_args());
    let record = record_beside_error(Running::start(shell).finish(), 3, "the document is on stdout instead");
    assert_eq!(record.counts.completed, 20);
}

/// If a replay cannot create the files for all responses, it must still print the Record, and an error with the reason.
/// The log is read from stdin, so the files are created during the replay.
#[test]
fn a_replay_that_cannot_create_all_files_leaves_the_record_and_says_why() {
    let _machine = lock_machine_shared();
    let place = SmallDisk::mount("64k");
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("access.log");
    let line = |second: u32, bytes: u32| {
        format!("127.0.0.1 - - [01/Mar/2026:10:00:{second:02} +0000] \"GET / HTTP/1.1\" 200 {bytes} \"-\" \"-\"\n")
    };
    // brimful reads some seconds and lines of the log in advance, to sort the requests by time.
    fs::write(&log, (0..400).map(|n| line(n / 20, 100)).collect::<String>() + &line(40, 1 << 20)).unwrap();
    let server = RawServer::content_length("hello");
    let root = place.path().to_str().unwrap();
    let replay = brimful(&["replay", "-", &server.url(), "--json", "--speed", "10x", "--fileset", root]);
    let mut shell = Command::new("sh");
    shell.args(["-c", "log=$1; shift; exec \"$0\" \"$@\" < \"$log\""]).arg(replay.get_program()).arg(&log);
    shell.args(replay.get_args());
    let done = Running::start(shell).finish();
    let record = record_beside_error(done, 3, "No space left on device");
    assert!(record.counts.completed > 0, "{:?}", record.counts);
}

#[test]
fn a_truncated_log_leaves_the_record_of_the_replayed_part() {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("access.log");
    let line = |second: u32| {
        format!("127.0.0.1 - - [01/Mar/2026:10:00:{second:02} +0000] \"GET / HTTP/1.1\" 200 5 \"-\" \"-\"\n")
    };
    fs::write(&log, (0..3).map(line).collect::<String>()).unwrap();
    let mut gzip = Command::new("gzip");
    assert!(gzip.arg(&log).status().unwrap().success());
    let packed = directory.path().join("access.log.gz");
    let whole = fs::read(&packed).unwrap();
    fs::write(&packed, &whole[..whole.len() - 6]).unwrap();
    let server = RawServer::content_length("hello");
    let done = run(&["replay", packed.to_str().unwrap(), &server.url(), "--json", "--speed", "10x"]);
    // The Record is about the part of the log that was replayed. The truncated log is reported as an error or as a
    // note.
    assert_eq!(documents::record(&done.stdout).counts.completed, 3, "{}", done.stderr);
}
