//! Tests the Server Module if another user of the machine has created a file at the path of its shared memory.

use crate::module::built_module;
use crate::program::{run, wait_until};
use crate::safety::{NOBODY, is_root};
use brimful_core::Nanos;
use brimful_monitor::module::ServerSample;
use brimful_testkit::{Nginx, NginxOptions};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::os::unix::fs::{MetadataExt, lchown, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

fn requests(memory: &Path) -> Option<u64> {
    Some(ServerSample::from_bytes(&fs::read(memory).ok()?, Nanos::ZERO).ok()?.requests())
}

/// The path of a file. Dropping this value removes the file, even if the test has failed.
struct Removed(PathBuf);

impl Drop for Removed {
    fn drop(&mut self) {
        // Removing fails if the test failed before the file was created.
        let _ = fs::remove_file(&self.0);
    }
}

#[test]
fn a_planted_file_or_link_in_dev_shm_does_not_stop_recording() {
    if !is_root() {
        return;
    }
    let victim = tempfile::NamedTempFile::new().unwrap();
    fs::write(victim.path(), "not to be touched").unwrap();
    for (what, linked) in [("file", false), ("link", true)] {
        let memory = Removed(PathBuf::from(format!("/dev/shm/brimful-test-{}-{what}", std::process::id())));
        match linked {
            false => fs::write(&memory.0, "planted").unwrap(),
            true => symlink(victim.path(), &memory.0).unwrap(),
        }
        lchown(&memory.0, Some(NOBODY), Some(NOBODY)).unwrap();
        let module = tempfile::Builder::new().suffix(".so").tempfile().unwrap();
        fs::write(module.path(), built_module()).unwrap();
        let nginx = Nginx::start(NginxOptions {
            main: format!("load_module {};", module.path().display()),
            http: format!("brimful {};", memory.0.display()),
            ..Default::default()
        });
        run(&["load", &nginx.url(), "--requests", "20", "--clients", "1", "--json"]).exits(&[0, 4]);
        assert!(requests(&memory.0) >= Some(20), "a planted {what}: {}", nginx.log());
        assert_eq!(fs::symlink_metadata(&memory.0).unwrap().uid(), 0);
        assert_eq!(fs::read_to_string(victim.path()).unwrap(), "not to be touched");
    }
}

/// A running program. Dropping this value terminates the program and waits for its end.
struct Started(Child);

impl Drop for Started {
    fn drop(&mut self) {
        // Sending the signal fails if the program has already ended.
        let _ = kill_process(Pid::from_child(&self.0), Signal::TERM);
        let _ = self.0.wait();
    }
}

/// Starts nginx as `user`, with a directive of the module that names no path. The shell commands `before` are run
/// first. nginx has a separate /run and /dev/shm, which are both in memory.
fn nginx_of_its_own_run(directory: &Path, before: &str, user: u32) -> Started {
    fs::write(directory.join("module.so"), built_module()).unwrap();
    let place = directory.display();
    let config = format!(
        "daemon off;\npid {place}/nginx.pid;\nerror_log {place}/error.log;\nload_module {place}/module.so;\nevents {{}}\n\
         http {{ access_log off; brimful; client_body_temp_path {place}/a; proxy_temp_path {place}/b;\n\
         fastcgi_temp_path {place}/c; scgi_temp_path {place}/d; uwsgi_temp_path {place}/e;\n\
         server {{ listen unix:{place}/socket; return 200 ok; }} }}\n"
    );
    fs::write(directory.join("nginx.conf"), config).unwrap();
    lchown(directory, Some(user), None).unwrap();
    let script = format!(
        "set -e; mount -t tmpfs tmpfs /run; mount -t tmpfs -o mode=1777 tmpfs /dev/shm; {before}\n\
         exec setpriv --reuid {user} --clear-groups --pdeathsig TERM /usr/sbin/nginx -e {place}/error.log \
         -c {place}/nginx.conf"
    );
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", &script]).stdin(Stdio::null()).process_group(0);
    Started(command.spawn().unwrap())
}

/// Asserts that this server counts its requests in the file at `path`, as seen in the server's mount namespace.
fn counts_into(started: &Started, directory: &Path, path: &str) {
    let socket = directory.join("socket");
    wait_until(|| socket.exists());
    let named = format!("--unix-socket={}", socket.display());
    run(&["load", "http://localhost/", &named, "--requests", "20", "--clients", "1", "--json"]).exits(&[0, 4]);
    let memory = PathBuf::from(format!("/proc/{}/root{path}", started.0.id()));
    let log = fs::read_to_string(directory.join("error.log")).unwrap_or_default();
    assert!(requests(&memory) >= Some(20), "{path}: {log}");
}

#[test]
fn a_server_that_root_starts_has_its_memory_where_only_root_can_create_files() {
    if !is_root() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let plant = format!("echo planted >/dev/shm/brimful-nginx; chown {NOBODY} /dev/shm/brimful-nginx");
    let started = nginx_of_its_own_run(directory.path(), &plant, 0);
    counts_into(&started, directory.path(), "/run/brimful/nginx");
    let made = fs::metadata(format!("/proc/{}/root/run/brimful", started.0.id())).unwrap();
    assert_eq!((made.uid(), made.mode() & 0o7777), (0, 0o755));
}

#[test]
fn a_server_of_another_user_has_its_memory_in_dev_shm() {
    if !is_root() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let started = nginx_of_its_own_run(directory.path(), ":", NOBODY);
    counts_into(&started, directory.path(), "/dev/shm/brimful-nginx");
}

#[test]
fn a_server_that_cannot_replace_a_planted_file_says_what_to_do() {
    if !is_root() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let _started = nginx_of_its_own_run(directory.path(), "echo planted >/dev/shm/brimful-nginx", NOBODY);
    let log = || fs::read_to_string(directory.path().join("error.log")).unwrap_or_default();
    wait_until(|| log().contains("nginx goes on without it"));
    let words = "cannot replace /dev/shm/brimful-nginx: another user made it; remove it as root, or name another file";
    assert!(log().contains(words), "{}", log());
}
