//! Where results go: stdout, and files that are there whole or not at all.

use anyhow::Context;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Writes results to stdout. A reader that has gone away, as `| head` does, is no error.
pub fn print(text: &str) -> anyhow::Result<()> {
    let mut stdout = anstream::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(error).context("cannot write to stdout; redirect it to a place with room")
        }
        _ => Ok(()),
    }
}

/// A file that is opened before the run, so that a path that cannot be written is found out before it costs anything,
/// and that takes its name only when it is whole.
#[derive(Debug)]
pub struct OutFile {
    path: PathBuf,
    /// Where it is written until then; none for devices and pipes, which are written directly.
    partial: Option<PathBuf>,
    file: File,
}

impl OutFile {
    /// Opens the file of a flag, if it was given.
    pub fn optional(path: Option<&Path>, flag: &str) -> anyhow::Result<Option<OutFile>> {
        path.map(|path| OutFile::create(path, flag)).transpose()
    }

    /// Opens the file that `flag` names.
    pub fn create(path: &Path, flag: &str) -> anyhow::Result<OutFile> {
        let context = || format!("cannot write {}: choose another place with {flag}", path.display());
        if path.is_dir() {
            return Err(std::io::Error::from(ErrorKind::IsADirectory)).with_context(context);
        }
        let is_special = fs::metadata(path).is_ok_and(|metadata| !metadata.is_file());
        let partial = (!is_special).then(|| {
            let mut name = path.file_name().unwrap_or_default().to_owned();
            name.push(format!(".{}.partial", std::process::id()));
            path.with_file_name(name)
        });
        let mut options = OpenOptions::new();
        options.write(true).create(!is_special);
        let file = options.open(partial.as_deref().unwrap_or(path)).with_context(context)?;
        Ok(OutFile { path: path.to_owned(), partial, file })
    }

    /// Writes it whole.
    pub fn commit(mut self, text: &str) -> anyhow::Result<()> {
        let written = self.file.write_all(text.as_bytes()).and_then(|()| match &self.partial {
            Some(partial) => self.file.sync_all().and_then(|()| fs::rename(partial, &self.path)),
            None => Ok(()),
        });
        written.with_context(|| format!("cannot write {}", self.path.display()))?;
        self.partial = None;
        Ok(())
    }
}

impl Drop for OutFile {
    fn drop(&mut self) {
        if let Some(partial) = &self.partial {
            // It may be gone already.
            let _ = fs::remove_file(partial);
        }
    }
}

/// The document goes to the file if there is one, `shown` to stdout; if the file fails the document goes to stdout too.
pub fn deliver(file: Option<OutFile>, document: &str, shown: &str) -> anyhow::Result<()> {
    let written = file.map_or(Ok(()), |file| file.commit(document));
    print(shown)?;
    written.or_else(|error| {
        if shown != document {
            print(document)?;
        }
        Err(error.context("the document is on stdout instead"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_appears_whole_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.json");
        drop(OutFile::create(&path, "--out").unwrap());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        OutFile::create(&path, "--out").unwrap().commit("whole").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "whole");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn devices_are_written_and_never_replaced() {
        OutFile::create(Path::new("/dev/null"), "--out").unwrap().commit("gone").unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
        let full = OutFile::create(Path::new("/dev/full"), "--out").unwrap().commit("no room").unwrap_err();
        assert!(format!("{full:#}").contains("No space left"), "{full:#}");
    }

    #[test]
    fn a_path_that_cannot_be_written_is_found_out_at_once() {
        let dir = tempfile::tempdir().unwrap();
        for path in [dir.path().to_owned(), dir.path().join("no/such/place.json")] {
            let error = OutFile::create(&path, "--out").unwrap_err();
            assert!(format!("{error:#}").contains("cannot write"), "{error:#}");
        }
    }
}
