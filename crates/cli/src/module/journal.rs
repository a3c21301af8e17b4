//! A journal of changes to the file system, which are made either all or none. It records how to undo each change.
//!
//! A file is written under a temporary name and renamed when it is complete. So a server that has mapped the former
//! file keeps the former content. A journal that is dropped undoes all changes, the latest first; `commit` makes them
//! final.
//!
//! A killed program undoes nothing. So the first change is to write the manifest, which lists the files that will be
//! made. The directories for the manifest are made under a temporary name and appear together with it.
//! `remove_temporary_file` and `remove_temporary_directories` remove the temporary files and directories of killed
//! programs.

use anyhow::Context;
use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// Changes to the file system that can still be undone.
#[derive(Debug, Default)]
pub struct Journal {
    done: Vec<Change>,
}

#[derive(Debug)]
enum Change {
    /// A file, a link or an empty directory that was made.
    Made(PathBuf),
    /// A file that was made, and the uppermost directory that was made to contain it.
    MadeWithDirectories(PathBuf, PathBuf),
    /// A file that was replaced or removed: its path, content and mode.
    ReplacedFile(PathBuf, Vec<u8>, u32),
    /// A link that was replaced or removed: its path and target.
    ReplacedLink(PathBuf, PathBuf),
    /// A file that was renamed: its former and its new path.
    Renamed(PathBuf, PathBuf),
}

impl Journal {
    /// Writes or replaces a file that all users can read.
    ///
    /// # Errors
    /// Returns an error if the change fails. As with all changes of a journal, the file is then unchanged.
    pub fn write(&mut self, path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
        let cannot = || format!("cannot write {}", path.display());
        let former = existing(path).with_context(cannot)?;
        replace(path, bytes, 0o644).with_context(cannot)?;
        self.done.push(match former {
            Some(former) => former,
            None => Change::Made(path.to_owned()),
        });
        Ok(())
    }

    /// Makes a symbolic link at a path that does not exist.
    pub fn link(&mut self, path: &Path, to: &Path) -> anyhow::Result<()> {
        symlink(to, path).with_context(|| format!("cannot make the link {}", path.display()))?;
        self.done.push(Change::Made(path.to_owned()));
        Ok(())
    }

    /// Writes a file and makes its missing directories. No other program ever sees these directories without the file.
    pub fn write_with_directories(&mut self, path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
        let Some(top) = missing_directories(path).into_iter().next() else { return self.write(path, bytes) };
        let cannot = || format!("cannot make the directory {}", top.display());
        let aside = temporary_path(&top);
        let inside = aside.join(path.strip_prefix(&top).with_context(cannot)?);
        let directory = inside.parent().unwrap_or(&aside);
        let made = DirBuilder::new().mode(0o755).recursive(true).create(directory);
        let made = made.and_then(|()| write_new(&inside, bytes, 0o644)).and_then(|()| fs::rename(&aside, &top));
        if made.is_err() {
            clear(&aside, &inside);
        }
        made.with_context(cannot)?;
        self.done.push(Change::MadeWithDirectories(path.to_owned(), top));
        Ok(())
    }

    /// Removes a file or a link if it exists.
    pub fn remove(&mut self, path: &Path) -> anyhow::Result<()> {
        let cannot = || format!("cannot remove {}", path.display());
        if let Some(former) = existing(path).with_context(cannot)? {
            fs::remove_file(path).with_context(cannot)?;
            self.done.push(former);
        }
        Ok(())
    }

    /// Renames a file to a path that does not exist.
    pub fn rename(&mut self, from: &Path, to: &Path) -> anyhow::Result<()> {
        fs::rename(from, to).with_context(|| format!("cannot rename {} to {}", from.display(), to.display()))?;
        self.done.push(Change::Renamed(from.to_owned(), to.to_owned()));
        Ok(())
    }

    /// Makes the changes final.
    pub fn commit(mut self) {
        self.done.clear();
    }

    /// Undoes all changes, the latest first. Returns a message for each change that cannot be undone.
    pub fn undo(&mut self) -> Vec<String> {
        let mut stuck = Vec::new();
        while let Some(change) = self.done.pop() {
            let undone = match &change {
                Change::Made(path) => fs::remove_file(path),
                Change::MadeWithDirectories(path, top) => remove_with_directories(path, Some(top)),
                Change::ReplacedFile(path, bytes, mode) => replace(path, bytes, *mode),
                Change::ReplacedLink(path, to) => symlink(to, path),
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
            crate::output::print_note(&format!("cannot undo the change of {stuck}"));
        }
    }
}

impl Change {
    fn path(&self) -> &Path {
        match self {
            Change::Made(path) | Change::MadeWithDirectories(path, _) => path,
            Change::ReplacedFile(path, ..) | Change::ReplacedLink(path, _) | Change::Renamed(path, _) => path,
        }
    }
}

/// The directories of a path that do not exist yet, beginning with the uppermost.
pub fn missing_directories(path: &Path) -> Vec<PathBuf> {
    let mut missing: Vec<PathBuf> =
        path.ancestors().skip(1).take_while(|directory| !directory.is_dir()).map(Path::to_owned).collect();
    missing.reverse();
    missing
}

/// Removes a file, and the directories from `top` down that were made for it, if they contain nothing else. The
/// directories are renamed first, so that they disappear at once. If this program is killed during the removal,
/// `remove_temporary_directories` later removes the rest.
///
/// # Errors
/// Returns an error if the file cannot be removed.
pub fn remove_with_directories(path: &Path, top: Option<&Path>) -> io::Result<()> {
    let alone = |directory: &Path| fs::read_dir(directory).is_ok_and(|entries| entries.count() == 1);
    let inside = |top: &Path| path.strip_prefix(top).map(Path::to_owned);
    if let Some(top) = top
        && let Ok(inside) = inside(top)
        && path.ancestors().skip(1).take_while(|directory| directory.starts_with(top)).all(alone)
    {
        let aside = temporary_path(top);
        fs::rename(top, &aside)?;
        clear(&aside, &aside.join(inside));
        return Ok(());
    }
    fs::remove_file(path)?;
    let made = |directory: &&Path| top.is_some_and(|top| directory.starts_with(top));
    for directory in path.ancestors().skip(1).take_while(made) {
        // The directory is not empty: it may contain files of other programs.
        if fs::remove_dir(directory).is_err() {
            break;
        }
    }
    Ok(())
}

/// Removes the temporary file that a killed program left.
pub fn remove_temporary_file(path: &Path) {
    // An error is ignored, because usually there is no such file.
    let _ = fs::remove_file(temporary_path(path));
}

/// Removes the temporary files and directories that a program left if it was killed while it made or removed this path.
pub fn remove_temporary_directories(path: &Path) {
    remove_temporary_file(path);
    for top in path.ancestors().skip(1) {
        if let Ok(inside) = path.strip_prefix(top)
            && top.file_name().is_some()
        {
            let aside = temporary_path(top);
            clear(&aside, &aside.join(inside));
        }
    }
}

/// Removes the file `inside` and the directories above it, up to `top`. Directories with other contents remain.
fn clear(top: &Path, inside: &Path) {
    // Errors are ignored, because the file or a directory might be absent.
    let _ = fs::remove_file(inside);
    for directory in inside.ancestors().skip(1).take_while(|directory| directory.starts_with(top)) {
        let _ = fs::remove_dir(directory);
    }
}

/// The temporary path of a file or directory. Servers do not read files with such a name, because they include *.conf
/// and *.load.
fn temporary_path(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".brimful-new");
    path.with_file_name(name)
}

/// The change that would restore the present state of this file or link; `None` if it does not exist.
fn existing(path: &Path) -> io::Result<Option<Change>> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if found.file_type().is_symlink() {
        return Ok(Some(Change::ReplacedLink(path.to_owned(), fs::read_link(path)?)));
    }
    if !found.is_file() {
        return Err(io::Error::other("it is neither a file nor a link"));
    }
    Ok(Some(Change::ReplacedFile(path.to_owned(), fs::read(path)?, found.permissions().mode() & 0o7777)))
}

/// Writes a file under a temporary name, and then renames it.
fn replace(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let new = temporary_path(path);
    // A killed program may have left a file with this temporary name.
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
    // The mode must not depend on the umask.
    file.set_permissions(Permissions::from_mode(mode))?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names of a directory's entries, each with the file's content or the link's target.
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
        let inside = |name: &str| directory.join(name);
        journal.write(&inside("old"), b"new text").unwrap();
        journal.write(&inside("new"), b"text").unwrap();
        let deep = inside("made/deep/file");
        assert_eq!(missing_directories(&deep), [inside("made"), inside("made/deep")]);
        journal.write_with_directories(&deep, b"first").unwrap();
        assert_eq!(missing_directories(&deep), Vec::<PathBuf>::new());
        journal.write_with_directories(&deep, b"in it").unwrap();
        journal.link(&inside("link"), Path::new("new")).unwrap();
        journal.remove(&inside("gone")).unwrap();
        journal.remove(&inside("gone link")).unwrap();
        journal.remove(&inside("never there")).unwrap();
        journal.rename(&inside("mine"), &inside("mine.kept")).unwrap();
    }

    fn fill(directory: &Path) {
        for name in ["old", "gone", "mine"] {
            fs::write(directory.join(name), name).unwrap();
        }
        symlink("old", directory.join("gone link")).unwrap();
        fs::create_dir(directory.join("empty")).unwrap();
    }

    #[test]
    fn changes_that_are_not_kept_are_undone() {
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
    fn changes_that_are_kept_stay() {
        let directory = tempfile::tempdir().unwrap();
        fill(directory.path());
        let mut journal = Journal::default();
        change_everything(&mut journal, directory.path());
        journal.commit();
        let expected =
            ["empty directory", "link -> new", "made directory", "mine.kept mine", "new text", "old new text"];
        assert_eq!(listing(directory.path()), expected);
    }

    #[test]
    fn a_failed_change_changes_nothing() {
        let directory = tempfile::tempdir().unwrap();
        fill(directory.path());
        let before = listing(directory.path());
        let mut journal = Journal::default();
        assert!(journal.write(&directory.path().join("nowhere/file"), b"").is_err());
        assert!(journal.write(&directory.path().join("empty"), b"").is_err(), "a directory was replaced");
        assert!(journal.link(&directory.path().join("old"), Path::new("new")).is_err());
        assert!(journal.write_with_directories(&directory.path().join("old/deep/file"), b"").is_err());
        drop(journal);
        assert_eq!(listing(directory.path()), before);
    }

    #[test]
    fn temporary_files_of_a_killed_program_are_removed() {
        let directory = tempfile::tempdir().unwrap();
        let inside = |name: &str| directory.path().join(name);
        let file = inside("made/deep/file");
        for (made, written) in [("made.brimful-new", None), ("made.brimful-new/deep", Some("file"))] {
            fs::create_dir_all(inside(made)).unwrap();
            written.into_iter().for_each(|name| fs::write(inside(made).join(name), "half").unwrap());
            remove_temporary_directories(&file);
            assert_eq!(listing(directory.path()), Vec::<String>::new());
        }
        fs::create_dir_all(inside("made/deep")).unwrap();
        fs::write(inside("made/deep/file.brimful-new"), "half").unwrap();
        remove_temporary_directories(&file);
        assert_eq!(listing(&inside("made/deep")), Vec::<String>::new());
    }

    #[test]
    fn directories_are_removed_only_if_they_contain_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let inside = |name: &str| directory.path().join(name);
        let file = inside("made/deep/file");
        let mut journal = Journal::default();
        journal.write_with_directories(&file, b"").unwrap();
        journal.commit();
        remove_with_directories(&file, Some(&inside("made"))).unwrap();
        assert_eq!(listing(directory.path()), Vec::<String>::new());
        let mut journal = Journal::default();
        journal.write_with_directories(&file, b"").unwrap();
        journal.commit();
        fs::write(inside("made/other"), "mine").unwrap();
        remove_with_directories(&file, Some(&inside("made"))).unwrap();
        assert_eq!(listing(&inside("made")), ["other mine"]);
    }
}
