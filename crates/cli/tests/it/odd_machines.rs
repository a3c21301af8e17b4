//! Tests that the program starts on machines that lack some feature, says what is not available, and does the rest.
//! Each row of the table in docs/install.md has a test, except musl.

use crate::documents::record;
use crate::program::{Done, Running, brimful, lock_machine_shared, start_target, words};
use brimful_core::record::Record;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// A Python program that runs a command under a seccomp filter, which makes system calls fail with EPERM. Its arguments
/// are the numbers of these system calls, separated by commas, and the command.
const REFUSE: &str = r#"
import ctypes, os, struct, sys
def instruction(code, if_true, if_false, operand):
    return struct.pack("HBBI", code, if_true, if_false, operand)
filter = instruction(0x20, 0, 0, 0)  # load the number of the call
for number in sys.argv[1].split(","):
    filter += instruction(0x15, 0, 1, int(number)) + instruction(0x06, 0, 0, 0x50001)  # SECCOMP_RET_ERRNO, EPERM
filter += instruction(0x06, 0, 0, 0x7FFF0000)  # SECCOMP_RET_ALLOW
buffer = ctypes.create_string_buffer(filter)
class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]
program = Program(len(filter) // 8, ctypes.addressof(buffer))
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0  # PR_SET_NO_NEW_PRIVS
assert libc.prctl(22, 2, ctypes.byref(program), 0, 0) == 0  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER
os.execv(sys.argv[2], sys.argv[2:])
"#;
/// Numbers of the system calls io_uring_setup, io_uring_enter and io_uring_register, which are the same on all
/// architectures.
const IO_URING_CALLS: &str = "425,426,427";
/// Numbers of the system calls bpf and perf_event_open. Docker's filter refuses these and those of io_uring to
/// processes without capabilities.
const BPF_CALLS: &str = if cfg!(target_arch = "x86_64") { "321,298" } else { "280,241" };

/// The command `brimful` with these arguments, without the system calls that Docker's filter refuses.
fn in_container(args: &[&str]) -> Command {
    let program = env!("CARGO_BIN_EXE_brimful");
    let mut command = Command::new("python3");
    command.args(["-c", REFUSE, &format!("{IO_URING_CALLS},{BPF_CALLS}"), program]).args(args).env("COLUMNS", "100");
    command
}

/// The command `brimful` with these arguments, in a separate mount namespace in which the shell commands `mounts` were
/// run.
fn with_other_mounts(mounts: &str, args: &[&str]) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", &format!("{mounts}\nexec \"$@\""), "sh", env!("CARGO_BIN_EXE_brimful")]);
    command.args(args).env("COLUMNS", "100");
    command
}

/// Runs a command that prints the Record of a small load, and returns the Record.
fn load(command: Command) -> Record {
    let _machine = lock_machine_shared();
    // Exit code 4 means that calls were late, because the host was busy.
    let record = record(&Running::start(command).finish().exits(&[0, 4]).stdout);
    assert_eq!(record.counts.completed, 50);
    record
}

fn load_arguments(url: &str) -> [&str; 7] {
    ["load", url, "--rate", "200", "--requests", "50", "--json"]
}

fn finish(command: Command) -> Done {
    let _machine = lock_machine_shared();
    Running::start(command).finish()
}

fn port(url: &str) -> &str {
    url.trim_end_matches('/').rsplit_once(':').unwrap().1
}

#[test]
fn without_io_uring_the_load_is_made_with_epoll() {
    let (_target, url) = start_target(&[]);
    assert_eq!(load(in_container(&load_arguments(&url))).generator.engine, "epoll");
    finish(in_container(&["load", &url, "--engine", "uring"])).fails(3, "--engine epoll");
    let doctor = finish(in_container(&["doctor", "io_uring"])).exits(&[3]);
    assert!(words(&doctor.stdout).contains("the load engine uses epoll"), "{}", doctor.stdout);
    let version = finish(in_container(&["--version", "--verbose"])).exits(&[0]).stdout;
    assert!(words(&version).contains("io_uring built in, not permitted here"), "{version}");
}

#[test]
fn without_ebpf_a_server_is_watched_by_proc_and_sock_diag() {
    let (_target, url) = start_target(&[]);
    let watch = ["watch", "--once", "--json", "--requests", "--port", port(&url)];
    let sources = |command| {
        let done = finish(command).exits(&[0]);
        let server: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
        server["sources"].clone()
    };
    let refused = sources(in_container(&watch));
    assert!(refused["connections"].as_str().unwrap().starts_with("sock_diag"), "{refused:#}");
    assert!(refused["connections"].as_str().unwrap().contains("run as root"), "{refused:#}");
    assert!(refused["process"].as_str().unwrap().starts_with("/proc"), "{refused:#}");
    assert!(refused["requests"].as_str().unwrap().starts_with("none: the kernel"), "{refused:#}");
    let without_types = sources(with_other_mounts("mount -t tmpfs none /sys", &watch));
    assert!(without_types["connections"].as_str().unwrap().contains("/sys/kernel/btf/vmlinux"), "{without_types:#}");
}

#[test]
fn nothing_needs_the_file_system_of_bpf() {
    let (_target, url) = start_target(&[]);
    let watch = ["watch", "--once", "--json", "--port", port(&url)];
    let done = finish(with_other_mounts("mount -t tmpfs none /sys/fs", &watch)).exits(&[0]);
    let server: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    let connections = server["sources"]["connections"].as_str().unwrap();
    assert_eq!(connections.starts_with("eBPF"), cfg!(feature = "ebpf"), "{connections}");
}

#[test]
fn without_a_place_to_write_only_files_fail() {
    let (_target, url) = start_target(&[]);
    // Nobody can create a file in /proc, not even root.
    let in_proc = |args: &[&str]| {
        let mut command = brimful(args);
        command.current_dir("/proc").env("HOME", "/proc");
        command
    };
    load(in_proc(&load_arguments(&url)));
    finish(in_proc(&["survey", &url])).fails(3, "choose another place with --report");
}

#[test]
fn other_users_than_root_make_loads_and_watch_their_own_programs() {
    // Copy the program, because other users may not have access to the build directory.
    let place = tempfile::tempdir().unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let program = place.path().join("brimful");
    fs::copy(env!("CARGO_BIN_EXE_brimful"), &program).unwrap();
    let as_nobody = |program: &Path, args: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(program).args(args);
        command.current_dir(place.path()).env("HOME", "/nonexistent").env("COLUMNS", "100");
        command
    };
    let mut own = Running::start(as_nobody(&program, &["target", "--listen", "127.0.0.1:0"]));
    let line = own.stdout_line();
    let url = line.trim_end().strip_prefix("listening on ").unwrap();
    load(as_nobody(&program, &load_arguments(url)));
    let watched = finish(as_nobody(&program, &["watch", "--once", "--json", "--port", port(url)])).exits(&[0]);
    assert!(watched.stdout.contains("no eBPF") || !cfg!(feature = "ebpf"), "{}", watched.stdout);
    // A user may not inspect the processes of other users, so the program on this port is not found.
    let (_target, url) = start_target(&[]);
    finish(as_nobody(&program, &["watch", "--once", "--port", port(&url)])).fails(3, "run as root");
}
