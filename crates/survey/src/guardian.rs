//! Puts a server back on its CPUs, and takes its quota away, when the survey that moved it is killed: the same program once more, in a session of
//! its own, which waits for the end of its stdin. The kernel closes that however the survey ends.

use brimful_monitor::{FormerAffinity, FormerCgroups};
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};

/// The name of the command whose process this is; it calls [`put_back_at_the_end`].
pub const GUARDIAN: &str = "put-back";
/// What it says when nothing can end it any more but the end of its stdin.
const READY: &str = "ready";

/// What is to be put back.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Undo {
    /// Threads, on their CPUs.
    Cpus(FormerAffinity),
    /// Processes, out of a control group with a quota.
    Quota(FormerCgroups),
}

/// A process that waits for the end of this one. Dropped, it does its work and is waited for.
#[derive(Debug)]
pub struct Guardian {
    process: Child,
    /// `None` once it is closed.
    announce: Option<ChildStdin>,
}

impl Guardian {
    /// Starts it.
    ///
    /// # Errors
    /// When it cannot be started, or does not say that it is ready.
    pub fn start() -> io::Result<Guardian> {
        // Not the path: another version may stand there by now.
        let mut command = Command::new("/proc/self/exe");
        // It must hold nobody's output open.
        command.arg(GUARDIAN).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn()?;
        let announce = process.stdin.take();
        let mut said = String::new();
        let stdout = process.stdout.take();
        let guardian = Guardian { process, announce };
        if let Some(stdout) = stdout {
            BufReader::new(stdout).read_line(&mut said)?;
        }
        match said.trim_end() {
            READY => Ok(guardian),
            _ => Err(io::Error::other("it ended at once")),
        }
    }

    /// Tells it what to put back. What it was told before holds no more.
    ///
    /// # Errors
    /// When it is gone.
    pub fn announce(&mut self, former: &Undo) -> io::Result<()> {
        let pipe = self.announce.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        pipe.write_all((serde_json::to_string(former)? + "\n").as_bytes())
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        self.announce = None;
        // Fails only when it has been waited for already.
        let _ = self.process.wait();
    }
}

/// The guardian's own part, once no signal can end it: waits for the end of `told`, then puts back what it last heard
/// of.
///
/// # Errors
/// When `told` cannot be read.
pub fn put_back_at_the_end(told: impl BufRead, mut said: impl Write) -> io::Result<()> {
    // Fails when the survey is gone already, and then there is nothing to put back.
    let _ = writeln!(said, "{READY}").and_then(|()| said.flush());
    let mut last = None;
    for line in told.split(b'\n') {
        // A line that was cut short came before anything was moved.
        last = serde_json::from_slice::<Undo>(&line?).ok().or(last);
    }
    match last {
        Some(Undo::Cpus(former)) => former.put_back(),
        Some(Undo::Quota(moved)) => moved.put_back(),
        None => {}
    }
    Ok(())
}
