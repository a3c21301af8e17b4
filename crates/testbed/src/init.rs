//! The first process of the PID namespace in which the user's command runs. It starts the command, waits for it and for
//! orphaned processes, and exits with the command's exit code. The kernel then kills all other processes of the
//! namespace.

use crate::TestbedError;
use crate::run::INTERRUPT;
use rustix::mount::{MountFlags, mount};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, set_parent_process_death_signal, wait};
use signal_hook::consts::{SIGHUP, SIGTERM};
use signal_hook::iterator::Signals;
use std::ffi::CStr;
use std::process::Command;

/// Runs a command. Returns its exit code, or 128 plus the number of the signal that ended it. When the process `parent`
/// ends, the kernel kills this process, and with it all processes of the namespace.
///
/// # Errors
/// [`TestbedError`] if the command cannot be started.
pub fn run_init(parent: u32, command: &[String]) -> Result<u8, TestbedError> {
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(TestbedError::kernel("follow the parent process"))?;
    if !is_child_of(parent) {
        // The parent ended before this process requested a signal for that event, so the signal will never come.
        return Ok(128 + Signal::KILL.as_raw() as u8);
    }
    let mut signals =
        Signals::new([SIGTERM, SIGHUP, INTERRUPT.as_raw()]).map_err(TestbedError::kernel("listen for signals"))?;
    // Mounts /proc to show the processes of this namespace. Where this is not permitted, as in some containers, /proc
    // continues to show the processes of the outer namespace, with other IDs.
    let _ = mount("proc", "/proc", "proc", MountFlags::empty(), None::<&CStr>);
    let Some((program, arguments)) = command.split_first() else { return Ok(0) };
    let child = Command::new(program).args(arguments).spawn();
    let child = child.map_err(|source| TestbedError::Command { program: program.clone(), source })?;
    let pid = Pid::from_child(&child);
    let forward_signals = move || {
        for signal in signals.forever() {
            let signal = match signal {
                SIGTERM => Signal::TERM,
                SIGHUP => Signal::HUP,
                _ => Signal::INT,
            };
            // An error means that the command has already ended.
            let _ = kill_process(pid, signal);
        }
    };
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(forward_signals)
        .map_err(TestbedError::kernel("start a thread"))?;
    wait_for(pid)
}

/// Whether this process is still a child of `parent`. At this time, /proc still shows the outer namespace.
fn is_child_of(parent: u32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().any(|line| line.strip_prefix("PPid:").is_some_and(|pid| pid.trim() == parent.to_string()))
}

/// Waits for the command to end. Also waits for orphaned processes that end earlier, which would otherwise remain as
/// zombies.
fn wait_for(command: Pid) -> Result<u8, TestbedError> {
    loop {
        let ended = match wait(WaitOptions::empty()) {
            Ok(ended) => ended,
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(TestbedError::kernel("wait for the command")(error)),
        };
        if let Some((_, status)) = ended.filter(|(pid, _)| *pid == command) {
            let code = status.exit_status().or(status.terminating_signal().map(|signal| 128 + signal));
            return Ok(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1));
        }
    }
}
