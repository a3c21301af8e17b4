//! The groups' logs: a file of JSON Lines for each (`schema/log-*.schema.json`).
//!
//! A line is in its file whole or not at all. What cannot be written waits in memory, up to a bound, and is tried again at
//! each interval; the oldest lines go when there are too many, and are counted.

use super::session::Tick;
use crate::exit::UsageError;
use anyhow::Context;
use brimful_monitor::GroupName;
use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// What one group's lines may take up while they cannot be written.
const MAX_WAITING: usize = 1 << 20;

/// All of them.
pub struct Logs(Vec<Log>);

/// One group's.
struct Log {
    group: GroupName,
    path: PathBuf,
    /// `None` until it can be opened.
    file: Option<File>,
    /// Whole lines, the oldest first.
    waiting: VecDeque<String>,
    /// Length of those.
    waiting_bytes: usize,
    /// Lines that were thrown away.
    lost: u64,
    /// Whether the last attempt failed.
    failing: bool,
}

impl Logs {
    /// In this directory, which is made if there is none.
    pub fn open(directory: &Path) -> anyhow::Result<Logs> {
        if directory.exists() && !directory.is_dir() {
            let message = format!("--log {}: that is a file; name a directory", directory.display());
            return Err(UsageError(message).into());
        }
        fs::create_dir_all(directory)
            .with_context(|| format!("cannot make the directory {}: choose another with --log", directory.display()))?;
        Ok(Logs(GroupName::ALL.map(|group| Log::new(group, directory)).into()))
    }

    /// Adds what a tick tells. Troubles and their end are told once.
    pub fn write(&mut self, tick: &Tick, say: &mut impl FnMut(String)) {
        let at = humantime::format_rfc3339_millis(tick.at).to_string();
        for (group, line) in tick.rates.log_lines(&at) {
            for log in self.0.iter_mut().filter(|log| log.group == group) {
                log.add(line.clone());
                log.flush(say);
            }
        }
    }

    /// Tries for the last time; the number of lines that are missing.
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
        while self.waiting_bytes > MAX_WAITING {
            self.waiting_bytes -= self.waiting.pop_front().map_or(0, |line| line.len());
            self.lost += 1;
        }
    }

    fn flush(&mut self, say: &mut impl FnMut(String)) {
        let written = self.try_flush();
        let path = self.path.display();
        match &written {
            Err(error) if !self.failing => {
                say(format!("cannot write {path}: {error}; its lines wait until there is room"));
            }
            Ok(()) if self.failing => say(format!("{path} is written again")),
            _ => {}
        }
        self.failing = written.is_err();
    }

    fn try_flush(&mut self) -> io::Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        // A file that was removed, or moved away to be rotated, is begun anew.
        let there = fs::metadata(&self.path).map(|now| (now.dev(), now.ino()));
        let same = |file: &File| {
            file.metadata().is_ok_and(|own| there.as_ref().is_ok_and(|&there| there == (own.dev(), own.ino())))
        };
        if !self.file.as_ref().is_some_and(same) {
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

/// Opens a file to append to. What a crash left of a line is ended first.
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

/// Writes all of it, or takes back what was written.
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
