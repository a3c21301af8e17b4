//! Changes to the file system that are made together or not at all: each is noted with what undoes it.
//!
//! A file is written beside its place and takes it when it is whole: a server that has the former one mapped keeps
//! that. A journal that is dropped undoes everything, latest first; `keep` makes the changes final.

use anyhow::Context;
use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// Changes that may still be undone.
#[derive(Debug, Default)]
pub struct Journal {
    done: Vec<Change>,
}

#[derive(Debug)]
enum Change {
    /// A file, a link or an empty directory that was not there.
    Made(PathBuf),
    MadeDirectory(PathBuf),
    /// A file that was there.
    Had(PathBuf, Vec<u8>, u32),
    HadLink(PathBuf, PathBuf),
    HadDirectory(PathBuf),
    /// From, to.
    Renamed(PathBuf, PathBuf),
}

impl Journal {
    /// Writes a file that everybody may read, whether or not one is there.
    ///
    /// # Errors
    /// When that cannot be; the file is as it was then. The same is true of all below.
    pub fn write(&mut self, path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
        let cannot = || format!("cannot write {}", path.display());
        let former = present(path).with_context(cannot)?;
        replace(path, bytes, 0o644).with_context(cannot)?;
        self.done.push(match former {
            Some(former) => former,
            None => Change::Made(path.to_owned()),
        });
        Ok(())
    }

    /// Makes a symbolic link where nothing is.
    pub fn link(&mut self, path: &Path, to: &Path) -> anyhow::Result<()> {
        symlink(to, path).with_context(|| format!("cannot make the link {}", path.display()))?;
        self.done.push(Change::Made(path.to_owned()));
        Ok(())
    }

    /// Makes a directory, and those it is in, as far as they are not there; which.
    pub fn directories(&mut self, path: &Path) -> anyhow::Result<Vec<PathBuf>> {
        let missing: Vec<&Path> = path.ancestors().take_while(|directory| !directory.is_dir()).collect();
        for directory in missing.iter().rev() {
            let made = DirBuilder::new().mode(0o755).create(directory);
            made.with_context(|| format!("cannot make the directory {}", directory.display()))?;
            self.done.push(Change::MadeDirectory(directory.to_path_buf()));
        }
        Ok(missing.into_iter().rev().map(Path::to_owned).collect())
    }

    /// Removes a file or a link, if it is there.
    pub fn remove(&mut self, path: &Path) -> anyhow::Result<()> {
        let cannot = || format!("cannot remove {}", path.display());
        if let Some(former) = present(path).with_context(cannot)? {
            fs::remove_file(path).with_context(cannot)?;
            self.done.push(former);
        }
        Ok(())
    }

    /// Removes a directory, if it is there and empty.
    pub fn remove_directory(&mut self, path: &Path) {
        // Others may keep something in it.
        if fs::remove_dir(path).is_ok() {
            self.done.push(Change::HadDirectory(path.to_owned()));
        }
    }

    /// Gives a file another name, which nothing has.
    pub fn rename(&mut self, from: &Path, to: &Path) -> anyhow::Result<()> {
        fs::rename(from, to).with_context(|| format!("cannot rename {} to {}", from.display(), to.display()))?;
        self.done.push(Change::Renamed(from.to_owned(), to.to_owned()));
        Ok(())
    }

    /// Makes the changes final.
    pub fn keep(mut self) {
        self.done.clear();
    }

    /// Undoes them, latest first; what cannot be undone.
    pub fn undo(&mut self) -> Vec<String> {
        let mut stuck = Vec::new();
        while let Some(change) = self.done.pop() {
            let undone = match &change {
                Change::Made(path) => fs::remove_file(path),
                Change::MadeDirectory(path) => fs::remove_dir(path),
                Change::Had(path, bytes, mode) => replace(path, bytes, *mode),
                Change::HadLink(path, to) => symlink(to, path),
                Change::HadDirectory(path) => DirBuilder::new().mode(0o755).create(path),
                Change::Renamed(from, to) => fs::rename(to, from),
            };
            if let Err(error) = undone {
                stuck.push(format!("{}: {error}", change.path().display()));
            }
        }
        stuck
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        for stuck in self.undo() {
            crate::output::say(&format!("cannot undo what was done to {stuck}"));
        }
    }
}

impl Change {
    fn path(&self) -> &Path {
        match self {
            Change::Made(path) | Change::MadeDirectory(path) | Change::HadDirectory(path) => path,
            Change::Had(path, ..) | Change::HadLink(path, _) | Change::Renamed(path, _) => path,
        }
    }
}

/// What is there now, as that to which it can be put back.
fn present(path: &Path) -> io::Result<Option<Change>> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if found.file_type().is_symlink() {
        return Ok(Some(Change::HadLink(path.to_owned(), fs::read_link(path)?)));
    }
    if !found.is_file() {
        return Err(io::Error::other("it is neither a file nor a link"));
    }
    Ok(Some(Change::Had(path.to_owned(), fs::read(path)?, found.permissions().mode() & 0o7777)))
}

/// Writes a file beside its place, then into it.
fn replace(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".brimful-new");
    // Nothing reads that name: servers include *.conf and *.load.
    let new = path.with_file_name(name);
    // Left by a program that was killed.
    let _ = fs::remove_file(&new);
    let written = write_new(&new, bytes, mode).and_then(|()| fs::rename(&new, path));
    if written.is_err() {
        let _ = fs::remove_file(&new);
    }
    written
}

fn write_new(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    file.write_all(bytes)?;
    // Whatever the umask.
    file.set_permissions(Permissions::from_mode(mode))?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is in a directory: names, contents or where links lead.
    fn listing(directory: &Path) -> Vec<String> {
        let mut found: Vec<String> = fs::read_dir(directory)
            .unwrap()
            .map(|entry| {
                let path = entry.unwrap().path();
                let what = match fs::read_link(&path) {
                    Ok(to) => format!("-> {}", to.display()),
                    Err(_) if path.is_dir() => "directory".to_owned(),
                    Err(_) => fs::read_to_string(&path).unwrap(),
                };
                format!("{} {what}", path.file_name().unwrap().display())
            })
            .collect();
        found.sort();
        found
    }

    fn change_everything(journal: &mut Journal, directory: &Path) {
        let at = |name: &str| directory.join(name);
        journal.write(&at("old"), b"new text").unwrap();
        journal.write(&at("new"), b"text").unwrap();
        assert_eq!(journal.directories(&at("made/deep")).unwrap(), [at("made"), at("made/deep")]);
        assert_eq!(journal.directories(&at("made/deep")).unwrap(), Vec::<PathBuf>::new());
        journal.write(&at("made/deep/file"), b"in it").unwrap();
        journal.link(&at("link"), Path::new("new")).unwrap();
        journal.remove(&at("gone")).unwrap();
        journal.remove(&at("gone link")).unwrap();
        journal.remove(&at("never there")).unwrap();
        journal.rename(&at("mine"), &at("mine.kept")).unwrap();
        journal.remove_directory(&at("empty"));
    }

    fn fill(directory: &Path) {
        for name in ["old", "gone", "mine"] {
            fs::write(directory.join(name), name).unwrap();
        }
        symlink("old", directory.join("gone link")).unwrap();
        fs::create_dir(directory.join("empty")).unwrap();
    }

    #[test]
    fn what_is_not_kept_is_undone() {
        let directory = tempfile::tempdir().unwrap();
        fill(directory.path());
        let before = listing(directory.path());
        let mut journal = Journal::default();
        change_everything(&mut journal, directory.path());
        assert_ne!(listing(directory.path()), before);
        assert_eq!(journal.undo(), Vec::<String>::new());
        assert_eq!(listing(directory.path()), before);
        drop(journal);
        assert_eq!(listing(directory.path()), before);
    }

    #[test]
    fn what_is_kept_stays() {
        let directory = tempfile::tempdir().unwrap();
        fill(directory.path());
        let mut journal = Journal::default();
        change_everything(&mut journal, directory.path());
        journal.keep();
        let expected = ["link -> new", "made directory", "mine.kept mine", "new text", "old new text"];
        assert_eq!(listing(directory.path()), expected);
    }

    #[test]
    fn a_failure_leaves_what_was_there() {
        let directory = tempfile::tempdir().unwrap();
        fill(directory.path());
        let before = listing(directory.path());
        let mut journal = Journal::default();
        assert!(journal.write(&directory.path().join("nowhere/file"), b"").is_err());
        assert!(journal.write(&directory.path().join("empty"), b"").is_err(), "a directory was replaced");
        assert!(journal.link(&directory.path().join("old"), Path::new("new")).is_err());
        assert!(journal.directories(&directory.path().join("old")).is_err());
        drop(journal);
        assert_eq!(listing(directory.path()), before);
    }
}
