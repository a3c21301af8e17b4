//! What `install` made: a JSON document beside the module, from which `remove` undoes it.
//!
//! It is read with suspicion: nothing is removed but what still is what was made.

use super::args::Kind;
use crate::exit::UsageError;
use anyhow::Context;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

const SCHEMA: &str = "brimful.module-manifest/1";
const BYTES_MOST: u64 = 1 << 20;

/// The document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    schema: String,
    /// The server: `nginx` or `apache`.
    pub server: String,
    /// Its name and version as it says it.
    pub version: String,
    /// Its program.
    pub binary: PathBuf,
    /// Its own directory, where one was named.
    pub prefix: Option<PathBuf>,
    /// Its main configuration file, where one was named.
    pub config: Option<PathBuf>,
    /// The shared memory, where one was named.
    pub memory: Option<PathBuf>,
    /// The installation was not finished, so some files may be missing. `made` then also lists what an earlier
    /// installation made.
    #[serde(default)]
    pub unfinished: bool,
    /// What was made, in this order. A file that is about to be replaced is listed twice, with the old and the new
    /// contents.
    pub made: Vec<Made>,
    /// What was asked to be written into the configuration by hand.
    pub by_hand: Vec<String>,
}

/// One thing that was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Made {
    /// A file with this content.
    File {
        /// Where.
        path: PathBuf,
        /// Of its content, FNV-1a with 64 bits in hexadecimal: to find changes, not forgery.
        hash: String,
    },
    /// A symbolic link.
    Link {
        /// Where.
        path: PathBuf,
        /// Where it leads.
        to: PathBuf,
    },
    /// A directory.
    Directory {
        /// Where.
        path: PathBuf,
    },
}

impl Manifest {
    /// One of nothing yet.
    pub fn new(kind: Kind, version: String, binary: PathBuf, memory: Option<PathBuf>) -> Manifest {
        Manifest {
            schema: SCHEMA.to_owned(),
            server: kind.name().to_owned(),
            version,
            binary,
            prefix: None,
            config: None,
            memory,
            unfinished: false,
            made: Vec::new(),
            by_hand: Vec::new(),
        }
    }

    /// Reads the one of a server from where its modules are, if there is one.
    ///
    /// # Errors
    /// When it cannot be read, or is something else.
    pub fn read(path: &Path, kind: Kind) -> anyhow::Result<Option<Manifest>> {
        let mut text = String::new();
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(None),
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
        };
        file.take(BYTES_MOST).read_to_string(&mut text).with_context(|| format!("cannot read {}", path.display()))?;
        let wrong = |why: &str| {
            let words = format!("{}: {why}; remove by hand what was installed, and this file", path.display());
            UsageError(words)
        };
        let manifest: Manifest = serde_json::from_str(&text).map_err(|error| wrong(&error.to_string()))?;
        if manifest.schema != SCHEMA {
            return Err(wrong(&format!("its schema is {:?}, not {SCHEMA:?}", manifest.schema)).into());
        }
        if manifest.server != kind.name() {
            return Err(wrong(&format!("it is of {:?}, not {:?}", manifest.server, kind.name())).into());
        }
        Ok(Some(manifest))
    }

    /// As it is written.
    ///
    /// # Errors
    /// When a path is no UTF-8.
    pub fn text(&self) -> anyhow::Result<String> {
        Ok(serde_json::to_string_pretty(self).context("cannot note what was made")? + "\n")
    }

    /// Whether a file or link is one of ours.
    pub fn has(&self, path: &Path) -> bool {
        self.made.iter().any(|made| made.path() == path)
    }

    /// The present state of a file, link or directory that the manifest lists.
    pub fn state(&self, path: &Path) -> Option<State> {
        let mut states = self.made.iter().filter(|made| made.path() == path).map(Made::state);
        let first = states.next()?;
        Some(states.find(|state| *state == State::AsMade).unwrap_or(first))
    }

    /// This manifest as it is written before anything is made: unfinished, and with the entries of an earlier one.
    pub fn planned(&self, before: Option<&Manifest>) -> Manifest {
        let mut planned = Manifest { unfinished: true, ..self.clone() };
        let is_new = |made: &&Made| !self.made.contains(made);
        planned.made.extend(before.iter().flat_map(|before| before.made.iter().filter(is_new)).cloned());
        planned
    }

    /// The uppermost directory that was made.
    pub fn top(&self) -> Option<&Path> {
        self.made.iter().find(|made| matches!(made, Made::Directory { .. })).map(Made::path)
    }
}

impl Made {
    /// A file with this content.
    pub fn file(path: &Path, bytes: &[u8]) -> Made {
        Made::File { path: path.to_owned(), hash: hash(bytes) }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        match self {
            Made::File { path, .. } | Made::Link { path, .. } | Made::Directory { path } => path,
        }
    }

    /// How it is now.
    fn state(&self) -> State {
        let Ok(found) = fs::symlink_metadata(self.path()) else { return State::Gone };
        let same = match self {
            Made::File { path, hash: made } => {
                found.is_file() && fs::read(path).is_ok_and(|bytes| hash(&bytes) == *made)
            }
            Made::Link { path, to } => fs::read_link(path).is_ok_and(|now| now == *to),
            Made::Directory { .. } => found.is_dir(),
        };
        if same { State::AsMade } else { State::Changed }
    }
}

/// What became of something that was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It is as it was made.
    AsMade,
    /// Somebody changed it, or put something else there.
    Changed,
    /// Somebody removed it.
    Gone,
}

/// FNV-1a, 64 bits (Fowler, Noll & Vo 1991).
fn hash(bytes: &[u8]) -> String {
    let hash = bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3));
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_published_one() {
        assert_eq!(hash(b""), "cbf29ce484222325");
        assert_eq!(hash(b"a"), "af63dc4c8601ec8c");
        assert_eq!(hash(b"foobar"), "85944171f73967e8");
    }

    #[test]
    fn what_is_written_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("manifest.json");
        let mut manifest = Manifest::new(Kind::Nginx, "1.2".to_owned(), "/bin/nginx".into(), Some("/dev/shm/x".into()));
        manifest.made = vec![
            Made::Directory { path: "/d".into() },
            Made::file(Path::new("/f"), b"text"),
            Made::Link { path: "/l".into(), to: "f".into() },
        ];
        fs::write(&path, manifest.text().unwrap()).unwrap();
        assert_eq!(Manifest::read(&path, Kind::Nginx).unwrap(), Some(manifest));
        assert!(Manifest::read(&path, Kind::Apache).is_err());
        assert_eq!(Manifest::read(&directory.path().join("none"), Kind::Nginx).unwrap(), None);
        for text in ["", "{}", "[]", "{\"schema\": \"brimful.module-manifest/2\"}"] {
            fs::write(&path, text).unwrap();
            assert!(Manifest::read(&path, Kind::Nginx).is_err(), "{text:?} was taken");
        }
    }

    #[test]
    fn before_a_file_is_replaced_both_contents_are_ours() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        let manifest = |text: &[u8]| {
            let mut manifest = Manifest::new(Kind::Nginx, "1.2".to_owned(), "/bin/nginx".into(), None);
            manifest.made = vec![Made::file(&file, text)];
            manifest
        };
        let planned = manifest(b"new").planned(Some(&manifest(b"old")));
        assert!(planned.unfinished && planned.made.len() == 2);
        assert_eq!(manifest(b"old").planned(Some(&manifest(b"old"))).made.len(), 1);
        assert_eq!(planned.state(&file), Some(State::Gone));
        for (text, state) in [("old", State::AsMade), ("new", State::AsMade), ("mine", State::Changed)] {
            fs::write(&file, text).unwrap();
            assert_eq!(planned.state(&file), Some(state), "{text}");
        }
        assert_eq!(planned.state(directory.path()), None);
    }

    #[test]
    fn changes_are_found() {
        let directory = tempfile::tempdir().unwrap();
        let (file, link) = (directory.path().join("file"), directory.path().join("link"));
        let of_file = Made::file(&file, b"text");
        let of_link = Made::Link { path: link.clone(), to: "file".into() };
        assert_eq!((of_file.state(), of_link.state()), (State::Gone, State::Gone));
        fs::write(&file, "text").unwrap();
        std::os::unix::fs::symlink("file", &link).unwrap();
        assert_eq!((of_file.state(), of_link.state()), (State::AsMade, State::AsMade));
        fs::write(&file, "Text").unwrap();
        fs::remove_file(&link).unwrap();
        std::os::unix::fs::symlink("other", &link).unwrap();
        assert_eq!((of_file.state(), of_link.state()), (State::Changed, State::Changed));
        let directory = Made::Directory { path: file };
        assert_eq!(directory.state(), State::Changed);
    }
}
