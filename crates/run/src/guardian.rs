//! The guardian is a second process that undoes this process's changes to the server, even if this process is killed.
//! It moves the server back to its original CPUs, removes its CPU quota, or stops a server that this process started.
//! The guardian runs the same program in its own session, and waits for the end of its stdin, a pipe from this process.
//! When this process ends for any reason, the kernel closes the pipe.

use brimful_monitor::{FormerAffinity, FormerCgroups};
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Name of the hidden command that runs the guardian process by [`run_guardian`].
pub const GUARDIAN_COMMAND: &str = "put-back";
/// The line that the guardian process writes when it is ready: from then on, the process ignores signals.
const READY: &str = "ready";

/// A change to the server that the guardian process can undo.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum ServerChange {
    /// The server's threads were moved to other CPUs. The value contains their original CPUs.
    Cpus(FormerAffinity),
    /// The server's processes were moved to a control group with a CPU quota. The value contains their original control
    /// groups.
    Quota(FormerCgroups),
    /// The server was started in the process group with this number.
    Started(u32),
    /// There is no change to undo.
    None,
}

/// The handle of a running guardian process. Dropping it makes the guardian undo the change and exit, and waits for
/// this.
#[derive(Debug)]
pub struct Guardian {
    process: Child,
    /// The guardian's stdin; `None` once it is closed.
    stdin: Option<ChildStdin>,
}

impl Guardian {
    /// Starts the guardian process and waits until it is ready.
    ///
    /// # Errors
    /// An I/O error if the process cannot be started, or does not report that it is ready.
    pub fn start() -> io::Result<Guardian> {
        // `/proc/self/exe` is the running program. The file at the program's path may have been replaced since it was
        // started.
        let mut command = Command::new("/proc/self/exe");
        // The guardian must not inherit the output of this process, which it outlives: readers of that output wait
        // until all copies are closed.
        command.arg(GUARDIAN_COMMAND).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn()?;
        let stdin = process.stdin.take();
        let stdout = process.stdout.take();
        let guardian = Guardian { process, stdin };
        let mut line = String::new();
        if let Some(stdout) = stdout {
            BufReader::new(stdout).read_line(&mut line)?;
        }
        match line.trim_end() {
            READY => Ok(guardian),
            _ => Err(io::Error::other("it ended at once")),
        }
    }

    /// Sets the change that the guardian process will undo, instead of the previous one.
    ///
    /// # Errors
    /// An I/O error if the process has ended.
    pub fn set_undo(&mut self, undo: &ServerChange) -> io::Result<()> {
        let stdin = self.stdin.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        stdin.write_all((serde_json::to_string(undo)? + "\n").as_bytes())
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        self.stdin = None;
        // An error is not possible, because nothing else waits for the process.
        let _ = self.process.wait();
    }
}

/// Runs the guardian process: reads changes until the end of `input`, then undoes the last one. The caller must make
/// the process ignore signals before.
///
/// # Errors
/// An I/O error if `input` cannot be read.
pub fn run_guardian(input: impl BufRead, mut output: impl Write) -> io::Result<()> {
    // An error means that the parent process has ended. It has not changed the server yet, so there is nothing to undo.
    let _ = writeln!(output, "{READY}").and_then(|()| output.flush());
    let mut undo = None;
    for line in input.split(b'\n') {
        // Ignores an incomplete last line: the parent process changes the server only after it has written the whole
        // line.
        undo = serde_json::from_slice::<ServerChange>(&line?).ok().or(undo);
    }
    match undo {
        Some(ServerChange::Cpus(former)) => former.restore_former_state(),
        Some(ServerChange::Quota(moved)) => moved.restore_former_state(),
        Some(ServerChange::Started(group)) => end_group(group),
        Some(ServerChange::None) | None => {}
    }
    Ok(())
}

/// Stops all processes of a process group by SIGTERM and, after 5 s, by SIGKILL.
fn end_group(group: u32) {
    const END_LIMIT: Duration = Duration::from_secs(5);
    let Some(group) = Pid::from_raw(group as i32) else { return };
    let began = Instant::now();
    // An error means that all processes of the group have ended.
    let _ = kill_process_group(group, Signal::TERM);
    while began.elapsed() < END_LIMIT && test_kill_process_group(group).is_ok() {
        thread::sleep(Duration::from_millis(20));
    }
    let _ = kill_process_group(group, Signal::KILL);
}
