//! Finds logs and reads their lines. Logs are files, rotated sets of files, and streams; compressed or not.
//!
//! - [`find`]: paths and patterns → [`Log`]s.
//! - `input`: the stored bytes, up to the size that a file had when it was found.
//! - `decode`: decompression. The first bytes determine the compression format; the name of the file does not matter.
//! - `blocks`: blocks of whole lines, in constant memory.
//! - `sample`: the beginning of a log, its formats, and the time of its first request.
//!
//! Regular files are opened when they are found. So a file that is rotated later is neither missed nor read twice.

pub(crate) mod blocks;
pub(crate) mod decode;
pub(crate) mod input;
pub(crate) mod sample;

use crate::LogError;
use input::Input;
use std::collections::HashSet;
use std::fmt;
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The argument that means standard input.
const STDIN: &str = "-";
/// Maximum number of files that stay open. By default, a Linux process may have 1,024 open files.
const MAX_OPEN_FILES: usize = 256;
/// Files in a directory are read if their names contain this text.
const NAME_PART: &str = "access";

/// Finds all logs that `paths` name. Each path is `-`, an existing file or stream, or else a pattern (`access.log*`).
/// In a directory, files with `access` in their names are read. The files of a pattern or directory are sorted by name.
/// A file that several patterns match is read once.
///
/// # Errors
///
/// Returns an error if a path does not exist, cannot be opened, or is given twice.
pub fn find(paths: &[String]) -> Result<Vec<Log>, LogError> {
    let mut found = LogSet::default();
    for path in paths {
        found.add(path)?;
    }
    Ok(found.logs)
}

/// A log that can be read.
pub struct Log {
    path: String,
    place: Origin,
    bytes: Option<u64>,
}

/// The source of a log's bytes.
enum Origin {
    /// A file, which can be read repeatedly. `kept` is the open file; `None` if [`MAX_OPEN_FILES`] files are already
    /// open.
    File { path: PathBuf, identity: Identity, kept: Option<File> },
    /// A stream, which can be read once.
    Stream(Option<Box<dyn Read + Send>>),
}

/// Device and inode, which identify a file independently of its name.
type Identity = (u64, u64);

impl Log {
    /// Creates a log that is read from `reader`. Messages show `name` as its path.
    pub fn stream(name: &str, reader: impl Read + Send + 'static) -> Log {
        Log { path: name.to_owned(), place: Origin::Stream(Some(Box::new(reader))), bytes: None }
    }

    /// The path of the log, or `-` for standard input.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The stored size of the log in bytes when it was found; `None` for a stream.
    pub fn bytes(&self) -> Option<u64> {
        self.bytes
    }

    /// Whether the log can be read only once.
    pub fn is_stream(&self) -> bool {
        matches!(self.place, Origin::Stream(_))
    }

    /// Opens the log at its beginning. If `follow_growth` is set, the log is read to its current end. Otherwise, it is
    /// read up to the size that it had when it was found.
    pub(crate) fn open(&mut self, follow_growth: bool) -> io::Result<Input> {
        match &mut self.place {
            Origin::Stream(stream) => {
                let stream = stream.take().ok_or_else(|| io::Error::other("a stream can be read only once"))?;
                Ok(Input::new(stream, None))
            }
            Origin::File { path, identity, kept } => {
                let mut file = match kept {
                    Some(file) => file.try_clone()?,
                    None => reopened(path, *identity)?,
                };
                file.seek(SeekFrom::Start(0))?;
                Ok(Input::new(Box::new(file), if follow_growth { None } else { self.bytes }))
            }
        }
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log").field("path", &self.path).field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

fn reopened(path: &Path, identity: Identity) -> io::Result<File> {
    let file = File::open(path)?;
    if identity_of(&file.metadata()?) != identity {
        return Err(io::Error::other("another file has its name now: it was rotated while the logs were read"));
    }
    Ok(file)
}

fn identity_of(metadata: &Metadata) -> Identity {
    (metadata.dev(), metadata.ino())
}

/// The logs that have been found so far.
#[derive(Default)]
struct LogSet {
    logs: Vec<Log>,
    identities: HashSet<Identity>,
    has_stdin: bool,
}

/// How the user named a file: by its own path, or by a pattern or directory that contains it.
#[derive(Clone, Copy, PartialEq)]
enum NamedBy {
    Name,
    Pattern,
}

impl LogSet {
    fn add(&mut self, path: &str) -> Result<(), LogError> {
        if path == STDIN {
            return self.add_stdin();
        }
        // A path that exists is not a pattern, even if it has special characters.
        match File::open(path) {
            Ok(file) => {
                let metadata = file.metadata().map_err(|error| unreadable(path, error))?;
                if metadata.is_dir() {
                    return self.add_directory(path);
                }
                self.add_file(PathBuf::from(path), file, &metadata, NamedBy::Name)
            }
            Err(error) if error.kind() == ErrorKind::NotFound => self.add_pattern(path),
            Err(error) => Err(unreadable(path, error)),
        }
    }

    fn add_stdin(&mut self) -> Result<(), LogError> {
        if self.has_stdin {
            return Err(given_twice(STDIN, "standard input can be read only once"));
        }
        self.has_stdin = true;
        self.logs.push(Log::stream(STDIN, io::stdin()));
        Ok(())
    }

    fn add_directory(&mut self, directory: &str) -> Result<(), LogError> {
        let mut paths = Vec::new();
        for entry in fs::read_dir(directory).map_err(|error| unreadable(directory, error))? {
            let entry = entry.map_err(|error| unreadable(directory, error))?;
            if entry.file_name().to_string_lossy().to_ascii_lowercase().contains(NAME_PART) {
                paths.push(entry.path());
            }
        }
        paths.sort();
        if self.add_regular(paths)? {
            return Ok(());
        }
        let why =
            format!("it is a directory, and no file in it has `{NAME_PART}` in its name: name the logs themselves");
        Err(LogError::Io { path: directory.into(), source: io::Error::new(ErrorKind::IsADirectory, why) })
    }

    fn add_pattern(&mut self, pattern: &str) -> Result<(), LogError> {
        let no_match = || LogError::NoMatch(pattern.to_owned());
        let mut paths = Vec::new();
        for path in glob::glob(pattern).map_err(|_| no_match())? {
            paths.push(path.map_err(|error| {
                let path = error.path().to_string_lossy().into_owned();
                unreadable(&path, error.into())
            })?);
        }
        if self.add_regular(paths)? { Ok(()) } else { Err(no_match()) }
    }

    /// Adds the regular files among `paths`, and returns whether there are any. Other files are skipped, because
    /// opening a FIFO might block forever.
    fn add_regular(&mut self, paths: Vec<PathBuf>) -> Result<bool, LogError> {
        let mut any = false;
        for path in paths {
            if !fs::metadata(&path).is_ok_and(|metadata| metadata.is_file()) {
                continue;
            }
            any = true;
            let shown = path.to_string_lossy().into_owned();
            let file = File::open(&path).map_err(|error| unreadable(&shown, error))?;
            let metadata = file.metadata().map_err(|error| unreadable(&shown, error))?;
            self.add_file(path, file, &metadata, NamedBy::Pattern)?;
        }
        Ok(any)
    }

    fn add_file(&mut self, path: PathBuf, file: File, metadata: &Metadata, by: NamedBy) -> Result<(), LogError> {
        let shown = path.to_string_lossy().into_owned();
        if !metadata.is_file() {
            self.logs.push(Log::stream(&shown, file));
            return Ok(());
        }
        let identity = identity_of(metadata);
        if !self.identities.insert(identity) {
            return match by {
                NamedBy::Name => Err(given_twice(&shown, "its requests would count twice: leave one out")),
                NamedBy::Pattern => Ok(()),
            };
        }
        let kept = (self.logs.len() < MAX_OPEN_FILES).then_some(file);
        self.logs.push(Log { path: shown, place: Origin::File { path, identity, kept }, bytes: Some(metadata.len()) });
        Ok(())
    }
}

fn given_twice(path: &str, why: &str) -> LogError {
    let source = io::Error::new(ErrorKind::InvalidInput, format!("it is given twice, and {why}"));
    LogError::Io { path: path.into(), source }
}

/// The error for a log that cannot be read, with advice if permission is denied.
pub(crate) fn unreadable(path: &str, error: io::Error) -> LogError {
    let source = match error.kind() {
        ErrorKind::PermissionDenied => io::Error::new(
            ErrorKind::PermissionDenied,
            "permission denied: read it with sudo, or as a member of the group that may (`ls -l` names it)",
        ),
        _ => error,
    };
    LogError::Io { path: path.into(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory_with(names: &[&str]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for name in names {
            fs::write(directory.path().join(name), name).unwrap();
        }
        directory
    }

    fn found(directory: &tempfile::TempDir, paths: &[&str]) -> Result<Vec<String>, LogError> {
        let paths: Vec<_> =
            paths.iter().map(|path| directory.path().join(path).to_string_lossy().into_owned()).collect();
        let name = |log: &Log| log.path().rsplit('/').next().unwrap().to_owned();
        find(&paths).map(|logs| logs.iter().map(name).collect())
    }

    #[test]
    fn a_path_that_exists_is_taken_literally_and_else_it_is_a_pattern() {
        let directory = directory_with(&["a[1].log", "a1.log", "a2.log", "b.log"]);
        assert_eq!(found(&directory, &["a[1].log"]).unwrap(), ["a[1].log"]);
        assert_eq!(found(&directory, &["a[2].log"]).unwrap(), ["a2.log"]);
        assert_eq!(found(&directory, &["b.log", "a?.log"]).unwrap(), ["b.log", "a1.log", "a2.log"]);
        assert!(matches!(found(&directory, &["c*.log"]), Err(LogError::NoMatch(_))));
        assert!(matches!(found(&directory, &["missing.log"]), Err(LogError::NoMatch(_))));
        assert!(matches!(found(&directory, &["[.log"]), Err(LogError::NoMatch(_))));
    }

    #[test]
    fn what_is_named_twice_is_an_error_and_what_is_matched_twice_is_one_log() {
        let directory = directory_with(&["access.log", "access.log.1"]);
        assert_eq!(found(&directory, &["access.log", "access.log*"]).unwrap(), ["access.log", "access.log.1"]);
        let twice = found(&directory, &["access.log", "./access.log"]).unwrap_err().to_string();
        assert!(twice.contains("given twice"), "{twice}");
        let stdin = find(&["-".to_owned(), "-".to_owned()]).unwrap_err().to_string();
        assert!(stdin.contains("given twice"), "{stdin}");
    }

    #[test]
    fn a_directory_stands_for_its_access_logs() {
        let directory = directory_with(&["access.log", "error.log", "other_vhosts_Access.log.1.gz"]);
        fs::create_dir(directory.path().join("access")).unwrap();
        assert_eq!(found(&directory, &["."]).unwrap(), ["access.log", "other_vhosts_Access.log.1.gz"]);
        let empty = found(&directory, &["access"]).unwrap_err().to_string();
        assert!(empty.contains("is a directory"), "{empty}");
    }

    #[test]
    fn a_file_is_read_to_the_size_that_it_had() {
        let directory = directory_with(&["log"]);
        let path = directory.path().join("log");
        let mut logs = find(&[path.to_string_lossy().into_owned()]).unwrap();
        fs::write(&path, "log, and more").unwrap();
        let mut read = |follow| {
            let mut text = String::new();
            logs[0].open(follow).unwrap().read_to_string(&mut text).unwrap();
            text
        };
        assert_eq!([read(false), read(true), read(false)], ["log", "log, and more", "log"]);
    }

    #[test]
    fn a_file_that_is_rotated_meanwhile_stays_the_same() {
        let directory = directory_with(&["log"]);
        let path = directory.path().join("log");
        let mut logs = find(&[path.to_string_lossy().into_owned()]).unwrap();
        fs::rename(&path, directory.path().join("log.1")).unwrap();
        fs::write(&path, "new").unwrap();
        let mut text = String::new();
        logs[0].open(false).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "log");
        if let Origin::File { kept, .. } = &mut logs[0].place {
            *kept = None;
        }
        assert!(logs[0].open(false).err().unwrap().to_string().contains("rotated"));
    }
}
