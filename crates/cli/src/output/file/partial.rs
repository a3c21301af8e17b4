//! A file that has a hidden temporary name in the directory of its final name until it is complete.
//!
//! The name is random, so that nobody can create the file in advance. The process that writes the file keeps a lock on
//! it (flock), which ends with the process. So a partial file without a lock was left by a killed process. The next run
//! that writes to the same path deletes it.

use super::{Readers, refusal};
use rustix::fs::{FlockOperation, Gid, Mode, OFlags, Uid, fchmod, fchown, flock, open};
use rustix::io::Errno;
use rustix::process::geteuid;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const SUFFIX: &str = ".partial";
/// Maximum number of temporary names that are tried.
const ATTEMPTS: usize = 100;
/// Maximum length of a file name, in bytes.
const NAME_MAX: usize = 255;

/// A file with a temporary name that will replace the file with its final name.
#[derive(Debug)]
pub struct Replacement {
    file: File,
    /// The temporary name; `None` once the file is renamed.
    partial: Option<PathBuf>,
    /// The final name, with all symbolic links resolved.
    name: PathBuf,
}

impl Replacement {
    /// Creates the file under its temporary name. The new file gets the mode and the owner of `former`, if that exists.
    pub fn create(name: PathBuf, former: Option<&Metadata>, readers: Readers) -> io::Result<Replacement> {
        let mode = if former.is_some() || readers == Readers::Owner { 0o600 } else { 0o666 };
        for _ in 0..ATTEMPTS {
            let partial = temporary_path(&name);
            let file = match OpenOptions::new().write(true).create_new(true).mode(mode).open(&partial) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                opened => opened?,
            };
            // If another run deleted the file as an orphan before this run locked it, another name is tried.
            let is_locked = flock(&file, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK);
            if is_locked || file.metadata()?.nlink() == 0 {
                continue;
            }
            let replacement = Replacement { file, partial: Some(partial), name };
            if let Some(former) = former {
                replacement.copy_mode_and_owner(former)?;
            }
            return Ok(replacement);
        }
        Err(refusal("no name for a temporary file in its directory is free"))
    }

    fn copy_mode_and_owner(&self, former: &Metadata) -> io::Result<()> {
        let own = self.file.metadata()?;
        let changed = |own: u32, former: u32| (own != former).then_some(former);
        let uid = changed(own.uid(), former.uid());
        let gid = changed(own.gid(), former.gid());
        if uid.is_some() || gid.is_some() {
            fchown(&self.file, uid.map(Uid::from_raw), gid.map(Gid::from_raw))
                .map_err(|_| refusal("the file belongs to another user, and its replacement would belong to you"))?;
        }
        Ok(fchmod(&self.file, Mode::from_raw_mode(former.mode() & 0o7777))?)
    }

    /// The final name of the file.
    pub fn name(&self) -> &Path {
        &self.name
    }

    /// The open file, to write its content.
    pub fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Syncs the file to disk, and renames it to its final name.
    pub fn commit(self) -> io::Result<()> {
        self.file.sync_all()?;
        self.rename_into_place().map(drop)
    }

    /// Renames the file to its final name. Returns the file, still locked, for further writes.
    pub fn rename_into_place(mut self) -> io::Result<File> {
        let file = self.file.try_clone()?;
        if let Some(partial) = &self.partial {
            fs::rename(partial, &self.name)?;
        }
        self.partial = None;
        Ok(file)
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        if let Some(partial) = &self.partial {
            // An error is ignored, because the file may already have been deleted.
            let _ = fs::remove_file(partial);
        }
    }
}

/// A hidden name in the directory of `path`. The file is then on the same file system, so that it can be renamed.
fn temporary_path(path: &Path) -> PathBuf {
    let mut name = name_prefix(path);
    name.push(format!("{:016x}{SUFFIX}", RandomState::new().hash_one(path)));
    path.with_file_name(name)
}

/// Prefix of all temporary names of a file: a dot and the file's name, which is cut if the result would exceed
/// `NAME_MAX`.
fn name_prefix(path: &Path) -> OsString {
    let own = path.file_name().unwrap_or_default().as_bytes();
    let mut name = OsString::from(".");
    name.push(OsStr::from_bytes(&own[..own.len().min(NAME_MAX - 2 - 16 - SUFFIX.len())]));
    name.push(".");
    name
}

/// Deletes partial files of this name to which no process writes any more. Errors are ignored.
pub fn delete_orphans(name: &Path) {
    let beginning = name_prefix(name);
    let directory = name.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let found = entry.file_name();
        let random =
            found.as_bytes().strip_prefix(beginning.as_bytes()).and_then(|rest| rest.strip_suffix(SUFFIX.as_bytes()));
        if random.is_some_and(|random| random.len() == 16 && random.iter().all(u8::is_ascii_hexdigit)) {
            let _ = delete_orphan(&entry.path());
        }
    }
}

/// Deletes a partial file if it belongs to this user and no process has locked it.
fn delete_orphan(partial: &Path) -> io::Result<()> {
    let file = File::from(open(
        partial,
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC,
        Mode::empty(),
    )?);
    let about = file.metadata()?;
    if about.is_file() && about.uid() == geteuid().as_raw() {
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        fs::remove_file(partial)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn what_a_killed_run_left_is_deleted_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let name = dir.path().join("a.json");
        let [orphan, victim, link] = ["orphan", "victim", "link"]
            .map(|which| if which == "victim" { dir.path().join("victim") } else { temporary_path(&name) });
        fs::write(&orphan, "of a killed run").unwrap();
        fs::write(&victim, "untouched").unwrap();
        symlink(&victim, &link).unwrap();
        let others = [dir.path().join(".a.json.mine.partial"), temporary_path(&dir.path().join("b.json"))];
        others.iter().for_each(|other| fs::write(other, "another's").unwrap());
        delete_orphans(&name);
        let being_written = Replacement::create(name.clone(), None, Readers::Umask).unwrap();
        delete_orphans(&name);
        let next = Replacement::create(name.clone(), None, Readers::Umask).unwrap();
        assert!(!orphan.exists() && fs::read_to_string(&victim).unwrap() == "untouched");
        assert!(fs::symlink_metadata(&link).is_ok() && others.iter().all(|other| other.exists()));
        for replacement in [being_written, next] {
            replacement.rename_into_place().unwrap();
        }
        assert!(name.exists());
    }

    #[test]
    fn two_partial_names_of_a_file_differ() {
        let name = Path::new("/tmp/a.json");
        assert_ne!(temporary_path(name), temporary_path(name));
    }
}
