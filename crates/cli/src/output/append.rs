//! `--record-to`: a file of JSON lines, to which each run appends one line.
//!
//! The file is opened before the run, so that an error in its path is reported before the run. A line is appended as a
//! whole or not at all. Runs that end at the same time wait for one another (flock). If the disk is full, an incomplete
//! line is removed again.

use crate::exit::UsageError;
use anyhow::Context;
use rustix::fs::{FlockOperation, flock};
use serde::Serialize;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Mode of a new file: all users may read it, as far as the umask allows.
const MODE: u32 = 0o644;

/// A file to which a line can be appended.
#[derive(Debug)]
pub struct LinesFile {
    path: PathBuf,
    flag: &'static str,
    file: File,
}

impl LinesFile {
    /// Opens the file of a flag if the flag is given.
    pub fn open_optional(path: Option<&Path>, flag: &'static str) -> anyhow::Result<Option<LinesFile>> {
        path.map(|path| LinesFile::open(path, flag)).transpose()
    }

    /// Opens the file that `flag` names, and creates it if it does not exist.
    fn open(path: &Path, flag: &'static str) -> anyhow::Result<LinesFile> {
        let cannot_append = || format!("cannot append to {}: choose another place with {flag}", path.display());
        let file = OpenOptions::new().read(true).append(true).create(true).mode(MODE).open(path);
        let file = file.with_context(cannot_append)?;
        if !file.metadata().with_context(cannot_append)?.is_file() {
            let message = format!("{} is not a file that keeps lines: name a file with {flag}", path.display());
            return Err(UsageError(message).into());
        }
        Ok(LinesFile { path: path.to_owned(), flag, file })
    }

    /// Appends a document as one line.
    pub fn append(mut self, document: &impl Serialize) -> anyhow::Result<()> {
        let line = serde_json::to_string(document).context("the run could not be written as JSON")?;
        let appended = append_line(&mut self.file, &line);
        appended.with_context(|| {
            let LinesFile { path, flag, .. } = &self;
            format!("the run is not in {}: make room there, or choose another place with {flag}", path.display())
        })
    }
}

/// Appends a line. If the last line has no newline, because another program was killed while it wrote, adds a newline
/// first, so that the new line stays separate.
fn append_line(file: &mut File, line: &str) -> io::Result<()> {
    // The lock ends when the file is closed.
    flock(&*file, FlockOperation::LockExclusive)?;
    let length = file.metadata()?.len();
    let start = if ends_inside_line(file, length)? { "\n" } else { "" };
    let written = file.write_all(format!("{start}{line}\n").as_bytes());
    if written.is_err() {
        file.set_len(length)?;
    }
    written
}

fn ends_inside_line(file: &mut File, length: u64) -> io::Result<bool> {
    let Some(last) = length.checked_sub(1) else { return Ok(false) };
    let mut byte = [0];
    file.seek(SeekFrom::Start(last))?;
    file.read_exact(&mut byte)?;
    Ok(byte != *b"\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::MetadataExt;
    use std::thread;

    fn append(path: &Path, document: &str) {
        LinesFile::open(path, "--record-to").unwrap().append(&document).unwrap();
    }

    #[test]
    fn lines_are_appended_and_a_line_without_end_is_ended() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("history.jsonl");
        append(&path, "one");
        append(&path, "two");
        assert_eq!(fs::read_to_string(&path).unwrap(), "\"one\"\n\"two\"\n");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o133, 0, "only the owner may write");
        fs::write(&path, "\"tw").unwrap();
        append(&path, "three");
        assert_eq!(fs::read_to_string(&path).unwrap(), "\"tw\n\"three\"\n");
    }

    #[test]
    fn lines_of_simultaneous_runs_are_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("history.jsonl");
        let long = "x".repeat(100_000);
        thread::scope(|scope| (0..8).for_each(|_| drop(scope.spawn(|| append(&path, &long)))));
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().filter(|line| line.len() == long.len() + 2).count(), 8);
    }

    #[test]
    fn a_place_that_keeps_no_lines_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        for (path, message) in [
            (dir.path().to_owned(), "choose another place with --record-to"),
            (dir.path().join("no/such/place.jsonl"), "choose another place with --record-to"),
            (PathBuf::from("/dev/null"), "is not a file that keeps lines"),
        ] {
            let error = format!("{:#}", LinesFile::open(&path, "--record-to").unwrap_err());
            assert!(error.contains(message), "{error}");
        }
    }
}
