//! The logs of `--log`: one file of JSON Lines per group of metrics (`schema/log-*.schema.json`).
//!
//! A line is written as a whole or not at all. Lines that cannot be written are kept in memory, up to a limit, and retried
//! at each interval. Above the limit, the oldest lines are dropped and counted.

use super::session::Tick;
use crate::exit::UsageError;
use anyhow::Context;
use brimful_monitor::GroupName;
use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Maximum number of bytes of one group's lines that are kept in memory.
const MAX_WAITING_BYTES: usize = 1 << 20;

/// The logs of all groups of metrics.
pub struct Logs(Vec<Log>);

/// The log of one group of metrics, such as those of the kernel.
struct Log {
    group: GroupName,
    path: PathBuf,
    /// The open file; `None` until it can be opened.
    file: Option<File>,
    /// Lines that are not written yet, beginning with the oldest.
    waiting: VecDeque<String>,
    /// Total length of the waiting lines, in bytes.
    waiting_bytes: usize,
    /// Number of lines that were dropped.
    lost: u64,
    /// Whether the last attempt to write failed.
    failing: bool,
}

impl Logs {
    /// Opens the logs in this directory, which is created if it does not exist.
    pub fn open(directory: &Path) -> anyhow::Result<Logs> {
        if directory.exists() && !directory.is_dir() {
            let message = format!("--log {}: this is a file; name a directory", directory.display());
            return Err(UsageError(message).into());
        }
        fs::create_dir_all(directory).with_context(|| {
            format!("cannot create the directory {}: choose another one with --log", directory.display())
        })?;
        Ok(Logs(GroupName::ALL.map(|group| Log::new(group, directory)).into()))
    }

    /// Adds a line for each group of metrics in this sample. Calls `say` with a message at the first write error, and
    /// when writing works again.
    pub fn write(&mut self, tick: &Tick, say: &mut impl FnMut(String)) {
        let at = humantime::format_rfc3339_millis(tick.at).to_string();
        for (group, line) in tick.rates.log_lines(&at) {
            for log in self.0.iter_mut().filter(|log| log.group == group) {
                log.add(line.clone());
                log.flush(say);
            }
        }
    }

    /// Tries one last time to write the waiting lines, and closes the log. Returns the number of lines that could not be
    /// written.
    pub fn close(mut self) -> u64 {
        let mut missing = 0;
        for log in &mut self.0 {
            log.flush(&mut |_| {});
            missing += log.lost + log.waiting.len() as u64;
        }
        missing
    }
}

impl Log {
    fn new(group: GroupName, directory: &Path) -> Log {
        Log {
            group,
            path: directory.join(format!("{group}.jsonl")),
            file: None,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            lost: 0,
            failing: false,
        }
    }

    fn add(&mut self, line: String) {
        self.waiting_bytes += line.len();
        self.waiting.push_back(line);
        while self.waiting_bytes > MAX_WAITING_BYTES {
            self.waiting_bytes -= self.waiting.pop_front().map_or(0, |line| line.len());
            self.lost += 1;
        }
    }

    fn flush(&mut self, say: &mut impl FnMut(String)) {
        let written = self.try_flush();
        let path = self.path.display();
        match &written {
            Err(error) if !self.failing => {
                say(format!("cannot write {path}: {error}; its lines are kept in memory until there is space"));
            }
            Ok(()) if self.failing => say(format!("{path} can be written again")),
            _ => {}
        }
        self.failing = written.is_err();
    }

    fn try_flush(&mut self) -> io::Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        // If the file was removed, or renamed by a log rotation, a new one is created.
        let current = fs::metadata(&self.path).map(|now| (now.dev(), now.ino()));
        let is_current = |file: &File| {
            file.metadata().is_ok_and(|own| current.as_ref().is_ok_and(|&current| current == (own.dev(), own.ino())))
        };
        if !self.file.as_ref().is_some_and(is_current) {
            self.file = Some(open_at_line(&self.path)?);
        }
        let Some(file) = &mut self.file else { return Ok(()) };
        while let Some(line) = self.waiting.front() {
            append(file, line.as_bytes())?;
            self.waiting_bytes -= line.len();
            self.waiting.pop_front();
        }
        Ok(())
    }
}

/// Opens a file to append lines. If a crash left a partial line, terminates it first.
fn open_at_line(path: &Path) -> io::Result<File> {
    let mut file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
    let length = file.metadata()?.len();
    let mut last = [b'\n'];
    if length > 0 {
        file.read_exact_at(&mut last, length - 1)?;
    }
    if last != [b'\n'] {
        append(&mut file, b"\n")?;
    }
    Ok(file)
}

/// Appends all bytes or none: a partial write is undone.
fn append(file: &mut File, mut bytes: &[u8]) -> io::Result<()> {
    let mut written = 0;
    while !bytes.is_empty() {
        let error = match file.write(bytes) {
            Ok(0) => ErrorKind::WriteZero.into(),
            Ok(n) => {
                written += n as u64;
                bytes = &bytes[n..];
                continue;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => error,
        };
        if written > 0 {
            file.set_len(file.metadata()?.len().saturating_sub(written))?;
        }
        return Err(error);
    }
    Ok(())
}
