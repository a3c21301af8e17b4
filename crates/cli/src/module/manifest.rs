//! The manifest: a JSON document beside the module that lists the files, links and directories that `install` made, so
//! that `remove` can remove them.
//!
//! The manifest is not trusted: a file is removed only if its content has not changed since `install` made it.

use super::args::ServerKind;
use crate::exit::UsageError;
use anyhow::Context;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

const SCHEMA: &str = "brimful.module-manifest/1";
const MAX_BYTES: u64 = 1 << 20;

/// The list of the files, links and directories that `install` made, and the options with which it was called.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    schema: String,
    /// The kind of server: `nginx` or `apache`.
    pub server: String,
    /// The server's name and version as the server reports them.
    pub version: String,
    /// Path of the server's program.
    pub binary: PathBuf,
    /// The server's own directory, if --prefix was given.
    pub prefix: Option<PathBuf>,
    /// The server's main configuration file, if --config was given.
    pub config: Option<PathBuf>,
    /// Path of the shared memory, if --memory was given.
    pub memory: Option<PathBuf>,
    /// Whether the installation was not finished, so that some files may be missing. In that case `made` also has the
    /// entries of an earlier installation.
    #[serde(default)]
    pub unfinished: bool,
    /// The files, links and directories, in the order in which they were made. Before a file is replaced, it is listed
    /// twice, with the hash of the old and of the new content.
    pub made: Vec<InstalledItem>,
    /// Lines that the user must add to the server's configuration by hand.
    pub by_hand: Vec<String>,
}

/// A file, link or directory that `install` made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum InstalledItem {
    /// A regular file.
    File {
        path: PathBuf,
        /// Hash of the file's content, 64-bit FNV-1a in hexadecimal. It detects changes, not forgery.
        hash: String,
    },
    /// A symbolic link.
    Link {
        path: PathBuf,
        /// Target of the link.
        to: PathBuf,
    },
    /// A directory.
    Directory { path: PathBuf },
}

impl Manifest {
    /// A manifest without entries.
    pub fn new(kind: ServerKind, version: String, binary: PathBuf, memory: Option<PathBuf>) -> Manifest {
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

    /// Reads the manifest of a server; `None` if there is none.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or is not a manifest of this kind of server.
    pub fn read(path: &Path, kind: ServerKind) -> anyhow::Result<Option<Manifest>> {
        let mut text = String::new();
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(None),
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
        };
        file.take(MAX_BYTES).read_to_string(&mut text).with_context(|| format!("cannot read {}", path.display()))?;
        let wrong = |why: &str| {
            let words = format!("{}: {why}; remove the installed files by hand, and this file", path.display());
            UsageError(words)
        };
        let manifest: Manifest = serde_json::from_str(&text).map_err(|error| wrong(&error.to_string()))?;
        if manifest.schema != SCHEMA {
            return Err(wrong(&format!("its schema is {:?}, not {SCHEMA:?}", manifest.schema)).into());
        }
        if manifest.server != kind.name() {
            return Err(wrong(&format!("it is for {:?}, not {:?}", manifest.server, kind.name())).into());
        }
        Ok(Some(manifest))
    }

    /// The manifest as JSON text.
    ///
    /// # Errors
    /// Returns an error if a path is not UTF-8.
    pub fn text(&self) -> anyhow::Result<String> {
        Ok(serde_json::to_string_pretty(self).context("cannot write the manifest")? + "\n")
    }

    /// Whether the manifest lists a file, link or directory with this path.
    pub fn contains(&self, path: &Path) -> bool {
        self.made.iter().any(|made| made.path() == path)
    }

    /// The present state of a file, link or directory; `None` if the manifest does not list it.
    pub fn state(&self, path: &Path) -> Option<FileState> {
        let mut states = self.made.iter().filter(|made| made.path() == path).map(InstalledItem::state);
        let first = states.next()?;
        Some(states.find(|state| *state == FileState::Unchanged).unwrap_or(first))
    }

    /// The manifest that is written before the first change. It is marked as unfinished, and has the entries of the
    /// earlier manifest, too.
    pub fn planned(&self, before: Option<&Manifest>) -> Manifest {
        let mut planned = Manifest { unfinished: true, ..self.clone() };
        let is_new = |made: &&InstalledItem| !self.made.contains(made);
        planned.made.extend(before.iter().flat_map(|before| before.made.iter().filter(is_new)).cloned());
        planned
    }

    /// The uppermost directory that `install` made.
    pub fn top_directory(&self) -> Option<&Path> {
        self.made.iter().find(|made| matches!(made, InstalledItem::Directory { .. })).map(InstalledItem::path)
    }
}

impl InstalledItem {
    /// The manifest entry for a file with this content.
    pub fn file(path: &Path, bytes: &[u8]) -> InstalledItem {
        InstalledItem::File { path: path.to_owned(), hash: hash(bytes) }
    }

    /// Path of the file, link or directory.
    pub fn path(&self) -> &Path {
        match self {
            InstalledItem::File { path, .. } | InstalledItem::Link { path, .. } | InstalledItem::Directory { path } => {
                path
            }
        }
    }

    /// The present state of the file, link or directory.
    fn state(&self) -> FileState {
        let Ok(found) = fs::symlink_metadata(self.path()) else { return FileState::Removed };
        let is_as_made = match self {
            InstalledItem::File { path, hash: made } => {
                found.is_file() && fs::read(path).is_ok_and(|bytes| hash(&bytes) == *made)
            }
            InstalledItem::Link { path, to } => fs::read_link(path).is_ok_and(|now| now == *to),
            InstalledItem::Directory { .. } => found.is_dir(),
        };
        if is_as_made { FileState::Unchanged } else { FileState::Changed }
    }
}

/// The present state of a file, link or directory, compared with the state in which `install` made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileState {
    /// The item is unchanged.
    Unchanged,
    /// The item was changed, or replaced by something else.
    Changed,
    /// The item was removed.
    Removed,
}

/// FNV-1a hash with 64 bits (Fowler, Noll & Vo 1991).
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
    fn a_written_manifest_can_be_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("manifest.json");
        let mut manifest =
            Manifest::new(ServerKind::Nginx, "1.2".to_owned(), "/bin/nginx".into(), Some("/dev/shm/x".into()));
        manifest.made = vec![
            InstalledItem::Directory { path: "/d".into() },
            InstalledItem::file(Path::new("/f"), b"text"),
            InstalledItem::Link { path: "/l".into(), to: "f".into() },
        ];
        fs::write(&path, manifest.text().unwrap()).unwrap();
        assert_eq!(Manifest::read(&path, ServerKind::Nginx).unwrap(), Some(manifest));
        assert!(Manifest::read(&path, ServerKind::Apache).is_err());
        assert_eq!(Manifest::read(&directory.path().join("none"), ServerKind::Nginx).unwrap(), None);
        for text in ["", "{}", "[]", "{\"schema\": \"brimful.module-manifest/2\"}"] {
            fs::write(&path, text).unwrap();
            assert!(Manifest::read(&path, ServerKind::Nginx).is_err(), "{text:?} was accepted");
        }
    }

    #[test]
    fn a_planned_manifest_accepts_the_old_and_the_new_content() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        let manifest = |text: &[u8]| {
            let mut manifest = Manifest::new(ServerKind::Nginx, "1.2".to_owned(), "/bin/nginx".into(), None);
            manifest.made = vec![InstalledItem::file(&file, text)];
            manifest
        };
        let planned = manifest(b"new").planned(Some(&manifest(b"old")));
        assert!(planned.unfinished && planned.made.len() == 2);
        assert_eq!(manifest(b"old").planned(Some(&manifest(b"old"))).made.len(), 1);
        assert_eq!(planned.state(&file), Some(FileState::Removed));
        for (text, state) in
            [("old", FileState::Unchanged), ("new", FileState::Unchanged), ("mine", FileState::Changed)]
        {
            fs::write(&file, text).unwrap();
            assert_eq!(planned.state(&file), Some(state), "{text}");
        }
        assert_eq!(planned.state(directory.path()), None);
    }

    #[test]
    fn changes_are_detected() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        let link = directory.path().join("link");
        let of_file = InstalledItem::file(&file, b"text");
        let of_link = InstalledItem::Link { path: link.clone(), to: "file".into() };
        assert_eq!((of_file.state(), of_link.state()), (FileState::Removed, FileState::Removed));
        fs::write(&file, "text").unwrap();
        std::os::unix::fs::symlink("file", &link).unwrap();
        assert_eq!((of_file.state(), of_link.state()), (FileState::Unchanged, FileState::Unchanged));
        fs::write(&file, "Text").unwrap();
        fs::remove_file(&link).unwrap();
        std::os::unix::fs::symlink("other", &link).unwrap();
        assert_eq!((of_file.state(), of_link.state()), (FileState::Changed, FileState::Changed));
        let directory = InstalledItem::Directory { path: file };
        assert_eq!(directory.state(), FileState::Changed);
    }
}
