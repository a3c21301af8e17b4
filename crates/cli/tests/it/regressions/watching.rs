//! Tests how programs are watched that are given by name.

use crate::documents;
use crate::program::run;
use brimful_core::server::Server;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A process. Dropping this value kills it.
struct Killed(Child);

impl Killed {
    fn start(program: &Path, arguments: &[&str]) -> Killed {
        let child = Command::new(program).args(arguments).stdin(Stdio::piped()).spawn();
        let killed = Killed(child.unwrap());
        // Wait until the new process has executed the program. Until then, it has the name of the test program.
        let name = program.file_name().unwrap().as_encoded_bytes();
        let comm = format!("/proc/{}/comm", killed.0.id());
        crate::program::wait_until(|| fs::read(&comm).is_ok_and(|now| now.starts_with(&name[..name.len().min(15)])));
        killed
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The IDs of the processes with each of these names.
fn pids(names: &[&str]) -> Vec<Vec<u32>> {
    let mut args = vec!["watch", "--once", "--json", "--interval", "100ms", "--groups", "process"];
    args.extend(names.iter().flat_map(|name| ["--process", name]));
    let server: Server = documents::document(&run(&args).exits(&[0]).stdout);
    server.process.into_iter().map(|program| program.pids).collect()
}

#[test]
fn names_with_the_same_prefix_are_watched_separately_and_unknown_names_match_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let copy = |name: &str| {
        let path = directory.path().join(name);
        fs::copy("/bin/sleep", &path).unwrap();
        path
    };
    let worker = Killed::start(&copy("verylongservername-worker"), &["600"]);
    let master = Killed::start(&copy("verylongservername-master"), &["600"]);
    let found = pids(&["verylongservername-worker", "verylongservername-master"]);
    assert_eq!(found, [[worker.0.id()], [master.0.id()]]);
    run(&["watch", "--once", "--process", "verylongservername-nobody"]).fails(3, "no process named");
    // When a program is upgraded, the file of the running process is deleted.
    fs::remove_file(directory.path().join("verylongservername-worker")).unwrap();
    assert_eq!(pids(&["verylongservername-worker"]), [[worker.0.id()]]);
    let cut = &pids(&["verylongservern"])[0];
    assert!(cut.contains(&worker.0.id()) && cut.contains(&master.0.id()), "{cut:?}");
}

#[test]
fn a_script_can_be_watched_by_its_long_name() {
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("verylongscriptname-app");
    fs::write(&script, "#!/bin/sh -e\nread line\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let by_itself = Killed::start(&script, &[]);
    let by_shell = Killed::start(Path::new("/bin/sh"), &["-e", script.to_str().unwrap()]);
    let mut started = [by_itself.0.id(), by_shell.0.id()];
    started.sort_unstable();
    assert_eq!(pids(&["verylongscriptname-app"]), [started]);
    run(&["watch", "--once", "--process", "verylongscriptname-ape"]).fails(3, "no process named");
}
