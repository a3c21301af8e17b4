//! The guardian is a second process, which undoes this process's changes to the server even if this process is killed.
//! It moves the server back to its original CPUs, removes its CPU quota, or stops a server that this process started.
//! It runs the same program in a Unix session of its own, and waits for the end of its stdin, a pipe from this process.
//! When this process ends for any reason, the kernel closes the pipe.

use brimful_monitor::{FormerAffinity, FormerCgroups};
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The hidden command that runs the guardian. It calls [`run_guardian`].
pub const GUARDIAN_COMMAND: &str = "put-back";
/// The line that the guardian writes when it is ready: from then on, it ignores signals.
const READY: &str = "ready";

/// A change to the server that the guardian can undo.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum ServerChange {
    /// The server's threads were moved to other CPUs. The value contains their original CPUs.
    Cpus(FormerAffinity),
    /// The server's processes were moved into a control group with a CPU quota. The value contains their original
    /// control groups.
    Quota(FormerCgroups),
    /// The server was started as a process group with this number.
    Started(u32),
    /// No change, or a change that was already undone.
    None,
}

/// A running guardian process. Dropping this value closes the guardian's stdin, so that the guardian undoes the change,
/// and then waits for the guardian to exit.
#[derive(Debug)]
pub struct Guardian {
    process: Child,
    /// The guardian's stdin; `None` once it is closed.
    stdin: Option<ChildStdin>,
}

impl Guardian {
    /// Starts the guardian process.
    ///
    /// # Errors
    /// If the process cannot be started, or does not report that it is ready.
    pub fn start() -> io::Result<Guardian> {
        // `/proc/self/exe` is the program that is running now. The file at its path may since have been replaced by
        // another version.
        let mut command = Command::new("/proc/self/exe");
        // The guardian outlives this process. It must not inherit this process's output, because readers of that output
        // wait until all copies are closed.
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

    /// Sets the change that the guardian will undo. It replaces the previous change.
    ///
    /// # Errors
    /// If the process has ended.
    pub fn set_undo(&mut self, undo: &ServerChange) -> io::Result<()> {
        let stdin = self.stdin.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        stdin.write_all((serde_json::to_string(undo)? + "\n").as_bytes())
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        self.stdin = None;
        // Waiting fails only if the process was already waited for.
        let _ = self.process.wait();
    }
}

/// The main function of the guardian process, which already ignores signals: reads changes until the end of `input`,
/// then undoes the last one.
///
/// # Errors
/// If `input` cannot be read.
pub fn run_guardian(input: impl BufRead, mut output: impl Write) -> io::Result<()> {
    // Writing fails only if the process that started the guardian has ended. Then it has not changed the server yet.
    let _ = writeln!(output, "{READY}").and_then(|()| output.flush());
    let mut undo = None;
    for line in input.split(b'\n') {
        // Ignore an incomplete line: the process that writes it changes the server only after the whole line.
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

/// Ends all processes of a process group: sends SIGTERM, and later SIGKILL to processes that remain.
fn end_group(group: u32) {
    const END_LIMIT: Duration = Duration::from_secs(5);
    let Some(group) = Pid::from_raw(group as i32) else { return };
    let began = Instant::now();
    // Sending a signal fails if all processes of the group have ended.
    let _ = kill_process_group(group, Signal::TERM);
    while began.elapsed() < END_LIMIT && test_kill_process_group(group).is_ok() {
        thread::sleep(Duration::from_millis(20));
    }
    let _ = kill_process_group(group, Signal::KILL);
}
