//! Tests that control characters in names that other users of the host have chosen are escaped on the terminal.

use crate::program::{Done, brimful, lock_machine_shared};
use brimful_testkit::{Nginx, NginxOptions};
use std::process::{Child, Command};

/// A name that would clear the screen, switch to right-to-left text, move the cursor, and begin another line.
const NAME: &str = "e\x1b[2J\u{202e}\u{9b}H\nx";
/// The same name, escaped so that it is harmless and on one line. Prometheus escapes a line break in a label
/// differently.
const SHOWN: &str = r"e\u001b[2J\u202e\u009bH\u000ax";

/// A process that has this name.
struct Hostile {
    child: Child,
    _dir: tempfile::TempDir,
}

impl Hostile {
    fn start() -> Hostile {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(NAME);
        std::os::unix::fs::symlink("/bin/sleep", &path).unwrap();
        let child = Command::new(&path).arg("3600").spawn().unwrap();
        // The name of a process is the name of the file that it executes.
        let comm = format!("/proc/{}/comm", child.id());
        crate::program::wait_until(|| std::fs::read_to_string(&comm).is_ok_and(|name| name.starts_with(NAME)));
        Hostile { child, _dir: dir }
    }
}

impl Drop for Hostile {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs the program with coloured output, as on a terminal. Otherwise, all escape sequences would be removed, because
/// stdout is a pipe.
fn in_colour(args: &[&str]) -> Done {
    let _machine = lock_machine_shared();
    let output = brimful(args).env("CLICOLOR_FORCE", "1").output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let (stdout, stderr) = (text(output.stdout), text(output.stderr));
    for written in [&stdout, &stderr] {
        // Find escape sequences other than the program's own, which only set colours: `ESC [`, numbers, and `m`.
        let mut foreign = written.split('\x1b').skip(1).filter(|rest| {
            let end = rest.trim_start_matches('[').trim_start_matches(|c: char| c.is_ascii_digit() || c == ';');
            !end.starts_with('m')
        });
        assert_eq!(foreign.next(), None, "{written}");
        assert!(!written.contains(['\u{9b}', '\u{202e}']), "{written:?}");
    }
    Done { code: output.status.code().unwrap(), stdout, stderr }
}

#[test]
fn names_of_processes_are_escaped() {
    let hostile = Hostile::start();
    let pid = hostile.child.id().to_string();
    let once = ["watch", "--once", "--interval", "50ms", "--process", &pid];
    let done = in_colour(&once).exits(&[0]);
    assert!(done.stdout.contains(SHOWN), "{}", done.stdout);
    let done = in_colour(&["watch", "-n", "2", "--interval", "50ms", "--process", &pid]).exits(&[0]);
    assert!(done.stdout.contains(&format!("programs  {SHOWN} ")), "{}", done.stdout);
    let done = in_colour(&[&once[..], &["--json"]].concat()).exits(&[0]);
    let server: brimful_core::server::Server = crate::documents::document(&done.stdout);
    assert_eq!(server.process[0].name, NAME, "JSON contains the name itself, with the escapes of JSON");

    let nginx = Nginx::start(NginxOptions::default());
    let load = ["load", &nginx.url(), "--clients", "1", "--requests", "5", "--process", &pid];
    let done = in_colour(&load).exits(&[0, 4]);
    assert!(done.stdout.contains(SHOWN), "{}", done.stdout);
}

#[test]
fn names_of_files_are_escaped() {
    for args in [&["plan", "solve", NAME][..], &["load", "127.0.0.1:1", "--rate", "1", "--workload", NAME]] {
        let done = in_colour(args).exits(&[2]);
        assert!(done.stderr.contains(r"e\u001b[2J\u202e\u009bH") && done.stdout.is_empty(), "{}", done.stderr);
    }
    for name in [NAME, "\x1b[2Jload"] {
        let done = in_colour(&[name]).exits(&[2]);
        assert!(done.stderr.contains("unrecognized subcommand"), "{}", done.stderr);
    }
}
