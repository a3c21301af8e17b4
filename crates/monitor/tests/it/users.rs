//! Tests processes of other users that have the server's name. Only root can start such processes.

use super::copy_of_sleep;
use brimful_monitor::{MonitorConfig, MonitorError, ProcessSelector, ProcessTree, Sampler, online_cpus, pin_tree};
use rustix::process::getuid;
use std::fs::{Permissions, read_to_string, set_permissions};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

const NOBODY: u32 = 65534;
const SOMEBODY: u32 = 65533;
/// Two programs with the same name: the server, which listens on a port, and a program of another user.
struct Namesakes {
    /// Name of both programs: at most 15 letters, and different in each test.
    name: &'static str,
    server: Child,
    other: Child,
    port: u16,
    _directory: tempfile::TempDir,
}

impl Namesakes {
    /// Starts the server as `user` and the other program as nobody; `None` if this process may not do that.
    fn start(name: &'static str, user: u32) -> Option<Namesakes> {
        if !getuid().is_root() {
            eprintln!("LEFT OUT: processes of other users can be started by root only");
            return None;
        }
        let directory = tempfile::tempdir().unwrap();
        set_permissions(directory.path(), Permissions::from_mode(0o755)).unwrap();
        let program = copy_of_sleep(directory.path(), name);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = start(&program, user, OwnedFd::from(listener).into());
        let other = start(&program, NOBODY, Stdio::null());
        Some(Namesakes { name, server, other, port, _directory: directory })
    }

    /// The name of both programs, the pid of the server and the pid of the other program.
    fn identity(&self) -> (&'static str, u32, u32) {
        (self.name, self.server.id(), self.other.id())
    }

    fn tree(&self, ports: &[u16]) -> ProcessTree {
        ProcessTree::open(&[ProcessSelector::Name(self.name.to_owned())], ports).unwrap()
    }

    /// The pids that a sampler finds, and the text of its source of processes. `ebpf` selects the source.
    fn source(&self, ports: &[u16], ebpf: bool) -> (Vec<u32>, String) {
        let processes = vec![ProcessSelector::Name(self.name.to_owned())];
        let config = MonitorConfig { processes, ports: ports.to_vec(), ebpf, ..MonitorConfig::default() };
        let mut sampler = Sampler::open(&config).unwrap();
        let sample = sampler.sample();
        (sample.groups.process.unwrap()[0].pids.to_vec(), sampler.sources().remove("process").unwrap())
    }
}

impl Drop for Namesakes {
    fn drop(&mut self) {
        for child in [&mut self.server, &mut self.other] {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}

/// Starts a program that sleeps. `input` is its standard input, such as a listening socket, and stays open meanwhile.
fn start(program: &Path, user: u32, input: Stdio) -> Child {
    Command::new(program).arg("600").uid(user).gid(user).stdin(input).spawn().unwrap()
}

/// The CPUs that a process may use.
fn cpus_of(pid: u32) -> String {
    let status = read_to_string(format!("/proc/{pid}/status")).unwrap();
    status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap().trim().to_owned()
}

fn sorted<const N: usize>(mut pids: [u32; N]) -> Vec<u32> {
    pids.sort_unstable();
    pids.to_vec()
}

#[test]
fn another_users_program_of_the_servers_name_is_left_out_where_the_port_is_known() {
    for user in [0, SOMEBODY] {
        let Some(namesakes) = Namesakes::start("brimful-port", user) else { return };
        let (name, server, other) = namesakes.identity();
        assert_eq!(namesakes.tree(&[namesakes.port]).pids(), [server]);
        for ebpf in [false, true] {
            let (pids, source) = namesakes.source(&[namesakes.port], ebpf);
            assert_eq!(pids, [server], "{source}");
            let left_out =
                format!("left out, because the `{name}` that listens is another user's: pid {other} of uid 65534");
            assert!(source.contains(&left_out), "{source}");
            assert!(!source.contains("only the name"), "{source}");
        }
    }
}

#[test]
fn where_no_port_is_known_another_users_program_of_the_servers_name_is_named() {
    let Some(namesakes) = Namesakes::start("brimful-no-port", 0) else { return };
    let (name, server, other) = namesakes.identity();
    for ebpf in [false, true] {
        let (pids, source) = namesakes.source(&[], ebpf);
        assert_eq!(pids, sorted([server, other]), "{source}");
        let remark = format!("only the name `{name}` says that these are the server's: pid {other} of uid 65534;");
        assert!(source.contains(&remark), "{source}");
    }
}

#[test]
fn a_survey_never_moves_another_users_program_of_the_servers_name() {
    let Some(namesakes) = Namesakes::start("brimful-pinned", SOMEBODY) else { return };
    let (name, server, other) = namesakes.identity();
    let [first, _, ..] = online_cpus()[..] else {
        eprintln!("LEFT OUT: a process can be moved only where there are two CPUs");
        return;
    };
    let anywhere = cpus_of(other);
    let refused = pin_tree(&namesakes.tree(&[]), &[first], |_| Ok(())).unwrap_err();
    assert!(matches!(refused, MonitorError::OtherUser { .. }) && refused.is_usage(), "{refused}");
    assert!(refused.to_string().contains(&format!("only its name, `{name}`")), "{refused}");
    assert!(matches!(
        brimful_monitor::limit_tree(&namesakes.tree(&[]), 0.5, |_| Ok(())).unwrap_err(),
        MonitorError::OtherUser { .. }
    ));
    assert_eq!([server, other].map(cpus_of), [anywhere.clone(), anywhere.clone()]);
    // The port determines which of the two programs is the server.
    let pinned = pin_tree(&namesakes.tree(&[namesakes.port]), &[first], |_| Ok(())).unwrap();
    assert_eq!([server, other].map(cpus_of), [first.to_string(), anywhere.clone()]);
    drop(pinned);
    assert_eq!(cpus_of(server), anywhere);
}
