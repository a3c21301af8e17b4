//! Output files, which are written as a whole or not at all.
//!
//! A file is opened before the run, so that an error in its path is reported before the run. The content goes to a file
//! with a temporary name in the same directory (`partial.rs`), which is renamed when it is complete. Until then, and if
//! the disk is full, the former file is unchanged. As with a shell's redirection, a symbolic link still leads to the
//! file, and the file's mode and owner are unchanged. A file with several names (hard links) is refused, because the
//! other names would keep the old content.
//! `-` and any path that leads to stdout's own file are stdout. Devices and pipes are written directly.

mod partial;

use super::{print, print_document, print_note};
use crate::exit::UsageError;
use anyhow::Context;
use brimful_core::panics;
use brimful_core::text::escape_controls;
use partial::{Replacement, delete_orphans};
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The flag whose document is written to stdout; not set if there is no such flag.
static STDOUT_FLAG: OnceLock<String> = OnceLock::new();

/// Whether stdout is reserved for a document.
pub fn stdout_is_reserved() -> bool {
    STDOUT_FLAG.get().is_some()
}

/// The open destination of a document: a file, a device, a pipe or stdout.
#[derive(Debug)]
pub struct OutFile {
    path: PathBuf,
    destination: Destination,
}

#[derive(Debug)]
enum Destination {
    Stdout,
    /// A device or a pipe.
    Stream(File),
    /// A file that is created, or replaces another file, when its content is complete.
    Replacement(Replacement),
}

/// The users who may read a newly created file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Readers {
    /// All users that the umask allows.
    Umask,
    /// Only the owner of the file.
    Owner,
}

/// A file that is written during the run, such as a trace of all calls.
#[derive(Debug)]
pub struct StreamFile {
    path: PathBuf,
    /// The open file; `None` for stdout.
    file: Option<File>,
}

/// A file whose content is replaced several times, each time as a whole.
#[derive(Debug)]
pub struct RewrittenFile {
    path: PathBuf,
    flag: &'static str,
    /// The path with all symbolic links resolved.
    name: PathBuf,
    /// Metadata of the file that the first write replaces; `None` if there is no such file.
    former: Option<Metadata>,
}

impl OutFile {
    /// Opens the file of a flag if the flag is given.
    pub fn create_optional(path: Option<&Path>, flag: &str) -> anyhow::Result<Option<OutFile>> {
        path.map(|path| OutFile::create(path, flag)).transpose()
    }

    /// Opens the file that `flag` names.
    pub fn create(path: &Path, flag: &str) -> anyhow::Result<OutFile> {
        let destination = match path.as_os_str() == "-" {
            true => Destination::Stdout,
            false => Destination::open(path, Readers::Umask).with_context(|| cannot_write(path, flag))?,
        };
        if let Destination::Stdout = destination {
            STDOUT_FLAG.set(flag.to_owned()).map_err(|_| {
                let other = STDOUT_FLAG.get().map_or("another flag", String::as_str);
                UsageError(format!(
                    "{other} and {flag} both name stdout, which is for one document: give a file to one of them"
                ))
            })?;
        }
        Ok(OutFile { path: path.to_owned(), destination })
    }

    /// The file's name; `None` for stdout.
    pub fn name(&self) -> Option<String> {
        (!matches!(self.destination, Destination::Stdout)).then(|| self.path.display().to_string())
    }

    /// Writes the whole content.
    pub fn commit(self, text: &str) -> anyhow::Result<()> {
        let OutFile { path, destination } = self;
        let written = match destination {
            Destination::Stdout => to_stdout(text),
            Destination::Stream(mut file) => file.write_all(text.as_bytes()),
            Destination::Replacement(mut replacement) => {
                replacement.file().write_all(text.as_bytes()).and_then(|()| replacement.commit())
            }
        };
        written.with_context(|| format!("cannot write {}", path.display()))
    }
}

impl StreamFile {
    /// Opens the file that `flag` names. The file has its final name from the start, so that it remains if the process
    /// is killed. Only the owner can read a new file.
    pub fn create(path: &Path, flag: &str) -> anyhow::Result<StreamFile> {
        let opened = Destination::open(path, Readers::Owner).and_then(|destination| match destination {
            Destination::Stdout => Ok(None),
            Destination::Stream(file) => Ok(Some(file)),
            Destination::Replacement(replacement) => replacement.rename_into_place().map(Some),
        });
        let file = opened.with_context(|| cannot_write(path, flag))?;
        Ok(StreamFile { path: path.to_owned(), file })
    }

    /// Adds the file's name to an error from writing it.
    pub fn finish(self, written: io::Result<()>) -> anyhow::Result<()> {
        written.with_context(|| format!("cannot write all of {}: choose a disk with free space", self.path.display()))
    }
}

impl Write for StreamFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.file {
            None => io::stdout().write(bytes),
            Some(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or_else(|| io::stdout().flush(), Write::flush)
    }
}

impl RewrittenFile {
    /// Prepares the file that `flag` names, and checks that it can be written.
    pub fn create(path: &Path, flag: &'static str) -> anyhow::Result<RewrittenFile> {
        match Destination::open(path, Readers::Umask).with_context(|| cannot_write(path, flag))? {
            Destination::Replacement(replacement) => {
                let name = replacement.name().to_owned();
                let former = fs::metadata(&name).ok();
                Ok(RewrittenFile { path: path.to_owned(), flag, name, former })
            }
            Destination::Stdout | Destination::Stream(_) => Err(UsageError(format!(
                "{} is not a file that can be replaced: name a file with {flag}",
                path.display()
            ))
            .into()),
        }
    }

    /// Replaces the content. The data is not synced to disk: it must survive the end of this process, but not a power
    /// failure.
    pub fn replace(&self, text: &str) -> anyhow::Result<()> {
        let replacement = Replacement::create(self.name.clone(), self.former.as_ref(), Readers::Umask);
        let replaced = replacement.and_then(|mut replacement| {
            replacement.file().write_all(text.as_bytes())?;
            replacement.rename_into_place()
        });
        replaced.map(drop).with_context(|| cannot_write(&self.path, self.flag))
    }
}

fn cannot_write(path: &Path, flag: &str) -> String {
    format!("cannot write {}: choose another place with {flag}", path.display())
}

impl Destination {
    fn open(path: &Path, readers: Readers) -> io::Result<Destination> {
        // The path is opened, so that the kernel decides which symbolic links to follow: in a directory like /tmp, it
        // does not follow links of other users.
        let former = match OpenOptions::new().write(true).open(path) {
            Ok(former) => former,
            Err(error) if error.kind() == ErrorKind::NotFound && fs::symlink_metadata(path).is_err() => {
                delete_orphans(path);
                return Replacement::create(path.to_owned(), None, readers).map(Destination::Replacement);
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(refusal(
                    "it is a link to a file that does not exist: create that file, or name another one",
                ));
            }
            Err(error) => return Err(error),
        };
        let metadata = former.metadata()?;
        if is_stdout(&metadata) {
            return Ok(Destination::Stdout);
        }
        if !metadata.is_file() {
            return Ok(Destination::Stream(former));
        }
        if metadata.nlink() > 1 {
            return Err(refusal("the file has other names (hard links), which would keep the old content"));
        }
        let name = fs::canonicalize(path)?;
        let found = fs::metadata(&name)?;
        if (found.dev(), found.ino()) != (metadata.dev(), metadata.ino()) {
            return Err(refusal("the file was replaced at the same moment"));
        }
        delete_orphans(&name);
        Replacement::create(name, Some(&metadata), readers).map(Destination::Replacement)
    }
}

/// Whether stdout refers to this file. A character device counts only if it is a terminal.
fn is_stdout(file: &Metadata) -> bool {
    let stdout = io::stdout();
    let is_same =
        rustix::fs::fstat(stdout.as_fd()).is_ok_and(|stat| (stat.st_dev, stat.st_ino) == (file.dev(), file.ino()));
    is_same && (stdout.is_terminal() || !file.file_type().is_char_device())
}

/// Writes a document to stdout. If stdout is a terminal, control characters are escaped.
fn to_stdout(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    if stdout.is_terminal() {
        drop(stdout);
        return super::to_stdout(&escape_controls(text));
    }
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

fn refusal(why: &str) -> io::Error {
    io::Error::other(why.to_owned())
}

/// Writes `document` to the file, if there is one. Writes `shown` to stdout, or to stderr if the file is stdout. If the
/// file cannot be written, writes the document to stdout, too.
pub fn deliver(file: Option<OutFile>, document: &str, shown: &str) -> anyhow::Result<()> {
    let on_stdout = file.as_ref().is_some_and(|file| matches!(file.destination, Destination::Stdout));
    let written = file.map_or(Ok(()), |file| file.commit(document));
    match (on_stdout, shown == document) {
        (true, true) => {}
        (false, true) => print_document(document)?,
        (_, false) => print(shown)?,
    }
    written.or_else(|error| {
        if on_stdout {
            return Err(error);
        }
        if shown != document {
            print_document(document)?;
        }
        Err(error.context("the document is on stdout instead"))
    })
}

/// Advice for the user after a panic that did not affect the document.
const DEFECT: &str = "this is a defect of brimful: please report it with the document";

/// Calls `text`, and returns its result. If the call panics, returns the document instead.
pub fn text_or_document(text: impl FnOnce() -> String, document: &str) -> String {
    panics::catch_panic(text).unwrap_or_else(|message| {
        print_note(&format!("the text cannot be made ({message}), so the whole document is printed; {DEFECT}"));
        document.to_owned()
    })
}

/// Calls `make`, which makes an HTML page. A panic becomes an error, so that the measurements in the document are not
/// lost.
pub fn page<E>(make: impl FnOnce() -> Result<String, E>) -> anyhow::Result<String>
where
    E: std::error::Error + Send + Sync + 'static,
{
    match panics::catch_panic(make) {
        Ok(page) => Ok(page?),
        Err(message) => Err(anyhow::anyhow!("the page cannot be made ({message}); {DEFECT}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn write(path: &Path, text: &str) {
        OutFile::create(path, "--out").unwrap().commit(text).unwrap();
    }

    fn names(directory: &Path) -> usize {
        fs::read_dir(directory).unwrap().count()
    }

    #[test]
    fn a_file_is_written_as_a_whole_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.json");
        drop(OutFile::create(&path, "--out").unwrap());
        assert_eq!(names(dir.path()), 0);
        write(&path, "whole");
        assert_eq!(fs::read_to_string(&path).unwrap(), "whole");
        assert_eq!(names(dir.path()), 1);
    }

    #[test]
    fn mode_and_symbolic_links_are_kept_and_hard_links_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.json");
        let link = dir.path().join("link.json");
        fs::write(&path, "a long former text").unwrap();
        for mode in [0o600, 0o640, 0o664] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            write(&path, "new");
            assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, mode);
        }
        symlink("a.json", &link).unwrap();
        write(&link, "through the link");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&path).unwrap(), "through the link");

        fs::hard_link(&path, dir.path().join("other.json")).unwrap();
        let error = format!("{:#}", OutFile::create(&path, "--out").unwrap_err());
        assert!(error.contains("hard links") && error.contains("choose another place with --out"), "{error}");
        let nowhere = dir.path().join("nowhere.json");
        symlink("no-such-file", &nowhere).unwrap();
        let error = format!("{:#}", OutFile::create(&nowhere, "--out").unwrap_err());
        assert!(error.contains("a link to a file that does not exist"), "{error}");
        assert_eq!(names(dir.path()), 4, "no partial file is left");
    }

    #[test]
    fn a_name_may_have_the_maximum_length() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["x".repeat(255), format!("{}a", "é".repeat(127))] {
            let path = dir.path().join(&name);
            write(&path, "whole");
            assert_eq!(fs::read_to_string(&path).unwrap(), "whole");
            let too_long = dir.path().join(name + "x");
            assert!(format!("{:#}", OutFile::create(&too_long, "--out").unwrap_err()).contains("name too long"));
        }
        assert_eq!(names(dir.path()), 2, "no partial file is left");
    }

    #[test]
    fn devices_are_written_and_never_replaced() {
        write(Path::new("/dev/null"), "gone");
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
        let full = OutFile::create(Path::new("/dev/full"), "--out").unwrap().commit("no room").unwrap_err();
        assert!(format!("{full:#}").contains("No space left"), "{full:#}");
    }

    #[test]
    fn a_panic_in_a_text_or_a_page_does_not_lose_the_document() {
        let text = |text: &'static str| move || if text.is_empty() { panic!("no text") } else { text.to_owned() };
        assert_eq!(text_or_document(text("ten lines"), "{}"), "ten lines");
        assert_eq!(text_or_document(text(""), "{}"), "{}");
        assert_eq!(page(|| Ok::<_, io::Error>("<html>".to_owned())).unwrap(), "<html>");
        let error = page::<io::Error>(|| panic!("no chart")).unwrap_err().to_string();
        assert!(error.starts_with("the page cannot be made (no chart); this is a defect"), "{error}");
    }

    #[test]
    fn a_path_that_cannot_be_written_is_an_error_at_once() {
        let dir = tempfile::tempdir().unwrap();
        for path in [dir.path().to_owned(), dir.path().join("no/such/place.json")] {
            let error = OutFile::create(&path, "--out").unwrap_err();
            assert!(format!("{error:#}").contains("cannot write"), "{error:#}");
        }
    }
}
