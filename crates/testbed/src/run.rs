//! A command within the test bed.
//!
//! It has mount and PID namespaces of its own and stays in the network that brimful is in. In the first, /run/netns has
//! the hosts under their names, so that `ip netns exec server …` works there, and nowhere else. The second ends with
//! its first process ([`crate::inside`]), which ends with the thread that started it: whatever ends brimful ends all
//! that the command has started, and then nothing holds the network namespaces any more.

use crate::TestbedError;
use crate::address::HostNumber;
use crate::bed::Bed;
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

/// The name of the command whose process is the first of the PID namespace; it calls [`crate::inside`]. The first word
/// behind it is this process's id, the others are the command.
pub const INSIDE: &str = "testbed-inside";
/// What tells [`crate::inside`] to interrupt its command: an interrupt at a terminal reaches both at once.
pub(crate) const INTERRUPT: Signal = Signal::USR1;
/// Where iproute2 looks for names.
const NAMES: &str = "/run/netns";
/// Attempts to lock the directory of names, which any user can keep locked.
const LOCK_ATTEMPTS: usize = 20;
/// A test bed that removes the directory keeps it locked for less than this time.
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(5);
/// Two signals within this time are one wish.
const SAME_WISH: Duration = Duration::from_secs(1);

/// Runs a command to its end; returns its exit code, or 128 and the number of the signal that ended it. SIGTERM, SIGHUP
/// and SIGINT are passed on to it; another one a second later ends all at once.
///
/// # Errors
/// When the test bed cannot be shown to it.
pub fn run(bed: &Bed, command: &[String]) -> Result<u8, TestbedError> {
    let _names = Names::hold();
    let mut signals = Signals::new(passed_on()).map_err(TestbedError::kernel("listen for signals"))?;
    let (handle, (tell, started)) = (signals.handle(), channel());
    std::thread::scope(|scope| {
        // Its end, and no sooner, is the end of the command: the kernel looks at the thread that started a process.
        let keep = || {
            let result = start_and_wait(bed, command, &tell);
            drop(tell);
            handle.close();
            result
        };
        let keeper = std::thread::Builder::new().name("command".to_owned()).spawn_scoped(scope, keep);
        let keeper = keeper.map_err(TestbedError::kernel("start a thread"))?;
        pass_on(&mut signals, &started);
        match keeper.join() {
            Ok(result) => result.map(code),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Signals that the command is to have: not a hang-up that is ignored, as under nohup.
fn passed_on() -> Vec<i32> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    let hang_up = ignored.is_none_or(|ignored| ignored & (1 << (SIGHUP - 1)) == 0);
    [SIGTERM, SIGINT].into_iter().chain(hang_up.then_some(SIGHUP)).collect()
}

/// Passes signals on until the listening ends.
fn pass_on(signals: &mut Signals, started: &Receiver<Pid>) {
    let Ok(inside) = started.recv() else { return };
    let mut first: Option<Instant> = None;
    for signal in signals.forever() {
        let to_send = match signal {
            SIGINT if is_in_foreground() => continue,
            _ if first.is_some_and(|first| first.elapsed() > SAME_WISH) => Signal::KILL,
            SIGINT => INTERRUPT,
            SIGHUP => Signal::HUP,
            _ => Signal::TERM,
        };
        first.get_or_insert_with(Instant::now);
        // Fails only when it has ended.
        let _ = kill_process(inside, to_send);
    }
}

/// Whether Ctrl-C at the terminal reaches this process and the command alike.
fn is_in_foreground() -> bool {
    let terminal = File::open("/dev/tty");
    terminal.is_ok_and(|terminal| rustix::termios::tcgetpgrp(terminal).is_ok_and(|group| group == getpgrp()))
}

/// In a thread of its own, which goes into the namespaces.
fn start_and_wait(bed: &Bed, command: &[String], started: &Sender<Pid>) -> Result<ExitStatus, TestbedError> {
    unshare(UnshareFlags::NEWNS).map_err(|error| TestbedError::Namespace(error.into()))?;
    show_names(bed)?;
    unshare(UnshareFlags::NEWPID).map_err(|error| TestbedError::Namespace(error.into()))?;
    // Not the path: another version may stand there by now.
    let mut inside = Command::new("/proc/self/exe");
    inside.arg(INSIDE).arg(std::process::id().to_string()).args(command).envs(environment(bed));
    let mut child = inside.spawn().map_err(TestbedError::kernel("start a process in a PID namespace"))?;
    // Fails only when nobody listens for signals any more.
    let _ = started.send(Pid::from_child(&child));
    child.wait().map_err(TestbedError::kernel("wait for the command"))
}

/// What the command may want to know of the test bed.
fn environment(bed: &Bed) -> [(&'static str, String); 4] {
    let clients: Vec<String> = (1..=bed.clients()).map(|number| HostNumber(number).name()).collect();
    let list = |cpus: &[usize]| CpuList(cpus.to_vec()).to_string();
    [
        ("BRIMFUL_SERVER", crate::SERVER.ipv4().to_string()),
        ("BRIMFUL_CLIENTS", clients.join(" ")),
        ("BRIMFUL_SERVER_CPUS", list(&bed.cpus().server)),
        ("BRIMFUL_CLIENT_CPUS", list(&bed.cpus().clients)),
    ]
}

/// The directory of names. One that a test bed made is gone again with the last that is there: to remove it sooner
/// would take away what others have mounted on it.
struct Names(Option<File>);

impl Names {
    /// What tells a directory that a test bed made from others': the sticky bit, which iproute2 does not set.
    const OURS: u32 = 0o1000;

    fn hold() -> Names {
        for _ in 0..LOCK_ATTEMPTS {
            let _ = DirBuilder::new().mode(0o755 | Names::OURS).create(NAMES);
            let Ok(names) = File::open(NAMES) else { break };
            // Another test bed may be removing it at this moment.
            if flock(&names, FlockOperation::NonBlockingLockShared).is_err() {
                std::thread::sleep(BETWEEN_ATTEMPTS);
            } else if Path::new(NAMES).exists() {
                return Names(Some(names));
            }
        }
        // Another user keeps it locked, so no test bed can remove it either.
        Names(None)
    }
}

impl Drop for Names {
    fn drop(&mut self) {
        let Some(names) = &self.0 else { return };
        let ours = names.metadata().is_ok_and(|names| names.mode() & Names::OURS != 0);
        if ours && flock(names, FlockOperation::NonBlockingLockExclusive).is_ok() {
            // Fails if somebody else uses it by now.
            let _ = fs::remove_dir(NAMES);
        }
    }
}

/// Gives the hosts names that iproute2 knows, in the mount namespace of this thread alone.
fn show_names(bed: &Bed) -> Result<(), TestbedError> {
    let mounting = |what| move |source: Errno| TestbedError::Mount { what, source: source.into() };
    let memory = |place: &str| mount("tmpfs", place, "tmpfs", MountFlags::empty(), Some(c"mode=755") as Option<&CStr>);
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .map_err(mounting("/ apart from that of others"))?;
    if !Path::new(NAMES).exists() {
        // Root in a user namespace may not write to /run.
        memory("/run").map_err(mounting("a tmpfs on /run"))?;
        fs::create_dir(NAMES).map_err(TestbedError::kernel("make /run/netns"))?;
    }
    memory(NAMES).map_err(mounting("a tmpfs on /run/netns"))?;
    for (host, file) in bed.namespaces() {
        let name = Path::new(NAMES).join(host.name());
        File::create(&name).map_err(TestbedError::kernel("name a network namespace"))?;
        let held = format!("/proc/thread-self/fd/{}", file.as_raw_fd());
        mount_bind(held, &name).map_err(mounting("a network namespace in /run/netns"))?;
    }
    Ok(())
}

/// As a shell tells it.
fn code(status: ExitStatus) -> u8 {
    let code = status.code().or(status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_are_those_of_a_shell() {
        for (raw, expected) in [(0, 0), (3 << 8, 3), (255 << 8, 255), (9, 137), (15, 143)] {
            assert_eq!(code(ExitStatus::from_raw(raw)), expected);
        }
    }
}
