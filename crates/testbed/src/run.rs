//! Runs the user's command in the test bed.
//!
//! The command has its own mount and PID namespaces, but stays in brimful's network namespace. In its mount namespace,
//! /run/netns lists the hosts by name, so that `ip netns exec server …` works there and nowhere else. When the thread
//! that started the PID namespace's first process ([`crate::run_init`]) ends, the kernel kills that process, and then
//! all other processes of the namespace. So when brimful ends for any reason, all processes of the command end too, and
//! none keeps the network namespaces in existence.

use crate::TestbedError;
use crate::address::HostNumber;
use crate::bed::RunningTestbed;
use crate::sys::unshare;
use brimful_core::cpus::CpuList;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_bind, mount_change};
use rustix::process::{Pid, Signal, getpgrp, kill_process};
use rustix::thread::UnshareFlags;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::ffi::CStr;
use std::fs::{self, DirBuilder, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// Name of brimful's hidden command that runs as the first process of the PID namespace and calls [`crate::run_init`].
/// Its arguments are the ID of the process that starts it, and the user's command.
pub const INIT_COMMAND: &str = "testbed-inside";
/// The signal on which [`crate::run_init`] interrupts the user's command. SIGINT is not suitable: Ctrl-C at a terminal
/// also sends SIGINT to the command itself, which would be interrupted twice.
pub(crate) const INTERRUPT: Signal = Signal::USR1;
/// The directory in which the program `ip` looks for network namespaces by name.
const NAMES: &str = "/run/netns";
/// Maximum number of attempts to lock the directory of names, which any user can keep locked.
const LOCK_ATTEMPTS: usize = 20;
/// Pause between two attempts to lock the directory. A test bed locks it for less time while it removes the directory.
const LOCK_PAUSE: Duration = Duration::from_millis(5);
/// Two signals within this time count as one request of the user.
const SAME_REQUEST: Duration = Duration::from_secs(1);

/// Runs a command to its end. Returns its exit code, or 128 plus the number of the signal that ended it. SIGTERM,
/// SIGHUP and SIGINT are forwarded to the command. A second signal, more than a second later, kills it.
///
/// # Errors
/// [`TestbedError`] if the namespaces cannot be set up or the command cannot be started.
pub fn run(bed: &RunningTestbed, command: &[String]) -> Result<u8, TestbedError> {
    let _names = NamesDirectory::hold();
    let mut signals = Signals::new(forwarded_signals()).map_err(TestbedError::kernel("listen for signals"))?;
    let handle = signals.handle();
    let (pid_sender, pid) = channel();
    std::thread::scope(|scope| {
        // The thread that starts the command must also wait for it, because the kernel kills the command when this
        // thread ends.
        let start_and_wait = || {
            let result = start_and_wait(bed, command, &pid_sender);
            drop(pid_sender);
            handle.close();
            result
        };
        let waiter = std::thread::Builder::new().name("command".to_owned()).spawn_scoped(scope, start_and_wait);
        let waiter = waiter.map_err(TestbedError::kernel("start a thread"))?;
        forward_signals(&mut signals, &pid);
        match waiter.join() {
            Ok(result) => result.map(exit_code),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// The signals to forward to the command. SIGHUP is left out if brimful ignores it, as under nohup.
fn forwarded_signals() -> Vec<i32> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    let forward_hang_up = ignored.is_none_or(|ignored| ignored & (1 << (SIGHUP - 1)) == 0);
    [SIGTERM, SIGINT].into_iter().chain(forward_hang_up.then_some(SIGHUP)).collect()
}

/// Forwards signals to the first process of the PID namespace, until the handle of `signals` is closed.
fn forward_signals(signals: &mut Signals, pid: &Receiver<Pid>) {
    let Ok(init) = pid.recv() else { return };
    let mut first: Option<Instant> = None;
    for signal in signals.forever() {
        let to_send = match signal {
            SIGINT if is_in_foreground() => continue,
            _ if first.is_some_and(|first| first.elapsed() > SAME_REQUEST) => Signal::KILL,
            SIGINT => INTERRUPT,
            SIGHUP => Signal::HUP,
            _ => Signal::TERM,
        };
        first.get_or_insert_with(Instant::now);
        // An error means that the process has already ended.
        let _ = kill_process(init, to_send);
    }
}

/// Whether this process is in the terminal's foreground process group. If so, Ctrl-C sends SIGINT both to this process
/// and to the command.
fn is_in_foreground() -> bool {
    let terminal = File::open("/dev/tty");
    terminal.is_ok_and(|terminal| rustix::termios::tcgetpgrp(terminal).is_ok_and(|group| group == getpgrp()))
}

/// Moves the calling thread to new mount and PID namespaces, starts the command there, and waits for it.
fn start_and_wait(
    bed: &RunningTestbed,
    command: &[String],
    pid_sender: &Sender<Pid>,
) -> Result<ExitStatus, TestbedError> {
    unshare(UnshareFlags::NEWNS).map_err(|error| TestbedError::Namespace(error.into()))?;
    mount_names(bed)?;
    unshare(UnshareFlags::NEWPID).map_err(|error| TestbedError::Namespace(error.into()))?;
    // `/proc/self/exe` is the running program. The file at the program's path may have been replaced since it was
    // started.
    let mut init = Command::new("/proc/self/exe");
    init.arg(INIT_COMMAND).arg(std::process::id().to_string()).args(command).envs(environment(bed));
    let mut child = init.spawn().map_err(TestbedError::kernel("start a process in a PID namespace"))?;
    // An error means that the thread that forwards signals has ended.
    let _ = pid_sender.send(Pid::from_child(&child));
    child.wait().map_err(TestbedError::kernel("wait for the command"))
}

/// Environment variables that describe the test bed to the command.
fn environment(bed: &RunningTestbed) -> [(&'static str, String); 4] {
    let clients: Vec<String> = (1..=bed.clients()).map(|number| HostNumber(number).name()).collect();
    let list = |cpus: &[usize]| CpuList(cpus.to_vec()).to_string();
    [
        ("BRIMFUL_SERVER", crate::SERVER.ipv4().to_string()),
        ("BRIMFUL_CLIENTS", clients.join(" ")),
        ("BRIMFUL_SERVER_CPUS", list(&bed.cpus().server)),
        ("BRIMFUL_CLIENT_CPUS", list(&bed.cpus().clients)),
    ]
}

/// Keeps the directory of the hosts' names in existence while this test bed uses it. If a test bed created the
/// directory, the last test bed that uses it removes it. An earlier removal would also remove the mounts of the other
/// test beds.
struct NamesDirectory(Option<File>);

impl NamesDirectory {
    /// The sticky bit of the directory's mode, which marks a directory created by a test bed. iproute2 does not set it.
    const MADE_BY_TESTBED: u32 = 0o1000;

    fn hold() -> NamesDirectory {
        for _ in 0..LOCK_ATTEMPTS {
            let _ = DirBuilder::new().mode(0o755 | NamesDirectory::MADE_BY_TESTBED).create(NAMES);
            let Ok(names) = File::open(NAMES) else { break };
            // A lock is not available while another test bed removes the directory.
            if flock(&names, FlockOperation::NonBlockingLockShared).is_err() {
                std::thread::sleep(LOCK_PAUSE);
            } else if Path::new(NAMES).exists() {
                return NamesDirectory(Some(names));
            }
        }
        // Continues without a lock. This is safe: while another user keeps the directory locked, no test bed can remove
        // it.
        NamesDirectory(None)
    }
}

impl Drop for NamesDirectory {
    fn drop(&mut self) {
        let Some(names) = &self.0 else { return };
        let mode = names.metadata().map_or(0, |metadata| metadata.mode());
        if mode & NamesDirectory::MADE_BY_TESTBED != 0 && flock(names, FlockOperation::NonBlockingLockExclusive).is_ok()
        {
            // An error means that another program has created a file in the directory.
            let _ = fs::remove_dir(NAMES);
        }
    }
}

/// Mounts the hosts' network namespaces under the hosts' names, where the program `ip` looks for them. This changes
/// only the mount namespace of this thread.
fn mount_names(bed: &RunningTestbed) -> Result<(), TestbedError> {
    let mount_error = |what| move |source: Errno| TestbedError::Mount { what, source: source.into() };
    let mount_tmpfs =
        |place: &str| mount("tmpfs", place, "tmpfs", MountFlags::empty(), Some(c"mode=755") as Option<&CStr>);
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .map_err(mount_error("/ privately"))?;
    if !Path::new(NAMES).exists() {
        // In a user namespace, root may not create files in the existing /run, so a new file system is mounted over it.
        mount_tmpfs("/run").map_err(mount_error("a tmpfs on /run"))?;
        fs::create_dir(NAMES).map_err(TestbedError::kernel("make /run/netns"))?;
    }
    mount_tmpfs(NAMES).map_err(mount_error("a tmpfs on /run/netns"))?;
    for (host, file) in bed.namespaces() {
        let name = Path::new(NAMES).join(host.name());
        File::create(&name).map_err(TestbedError::kernel("name a network namespace"))?;
        let namespace = format!("/proc/thread-self/fd/{}", file.as_raw_fd());
        mount_bind(namespace, &name).map_err(mount_error("a network namespace in /run/netns"))?;
    }
    Ok(())
}

/// Exit code of a command as in shells: 128 plus the number of the signal if a signal ended it.
fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or(status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_are_those_of_a_shell() {
        for (raw, expected) in [(0, 0), (3 << 8, 3), (255 << 8, 255), (9, 137), (15, 143)] {
            assert_eq!(exit_code(ExitStatus::from_raw(raw)), expected);
        }
    }
}
