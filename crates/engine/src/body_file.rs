//! Files whose content is sent as request bodies.

use crate::EngineError;
use brimful_core::panics::lock;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// Maximum number of bytes read from a file at once.
pub(crate) const PIECE_BYTES: usize = 64 * 1024;
/// Maximum number of bytes kept in memory for the content of a pipe or another file without a size.
const MAX_PIPED_BYTES: u64 = 1 << 30;
/// The name of standard input on command lines.
const STDIN: &str = "-";
/// The path of standard input in the file system.
const STDIN_FILE: &str = "/dev/stdin";

/// A file whose content is sent as a request body. A regular file is read again for each request, usually from the
/// kernel's page cache. The content of a pipe is kept in memory, because it can be read only once.
#[derive(Debug)]
pub struct BodyFile {
    content: Content,
    path: PathBuf,
    bytes: u64,
}

#[derive(Debug)]
enum Content {
    File(File),
    Memory(Arc<[u8]>),
}

impl BodyFile {
    /// Opens a file; `-` is standard input. The file's size at this time is sent as the `Content-Length` of each
    /// request.
    ///
    /// # Errors
    /// [`EngineError::BodyFile`] if the file cannot be read, is a directory, or is a pipe with more than 1 GiB.
    pub fn open(path: &Path) -> Result<BodyFile, EngineError> {
        if let Some(content) = read_once(path, None)? {
            return Ok(BodyFile::in_memory(path, content));
        }
        let failed = |error: io::Error| unreadable(path, &error.to_string());
        let is_stdin = path == Path::new(STDIN) || path == Path::new(STDIN_FILE);
        // Standard input may be a socket, which cannot be opened by its path, so its descriptor is duplicated.
        let file = match is_stdin {
            true => io::stdin().as_fd().try_clone_to_owned().map(File::from),
            false => File::open(path),
        };
        let file = file.map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        if metadata.is_dir() {
            return Err(unreadable(path, "it is a directory, and not a regular file or a pipe"));
        }
        if !metadata.is_file() {
            let content = read_once(path, Some(file))?.unwrap_or_default();
            return Ok(BodyFile::in_memory(path, content));
        }
        Ok(BodyFile { content: Content::File(file), path: path.to_owned(), bytes: metadata.len() })
    }

    fn in_memory(path: &Path, content: Arc<[u8]>) -> BodyFile {
        BodyFile { bytes: content.len() as u64, content: Content::Memory(content), path: path.to_owned() }
    }

    /// Size of the file in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Reads at most `max_bytes` and at most [`PIECE_BYTES`] from `offset` on.
    pub(crate) fn read_piece(&self, offset: u64, max_bytes: usize) -> Result<Vec<u8>, EngineError> {
        let length = self.bytes.saturating_sub(offset).min(max_bytes.min(PIECE_BYTES) as u64) as usize;
        let file = match &self.content {
            Content::File(file) => file,
            Content::Memory(content) => {
                let rest = content.get(offset as usize..).unwrap_or_default();
                return Ok(rest.get(..length).unwrap_or_default().to_vec());
            }
        };
        let mut piece = vec![0; length];
        file.read_exact_at(&mut piece, offset).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => unreadable(&self.path, "it has become shorter during the run"),
            _ => unreadable(&self.path, &error.to_string()),
        })?;
        Ok(piece)
    }
}

/// The content of a pipe or another file that can be read only once. The first call with this path reads `file` and
/// keeps the content; later calls return the kept content, because a command may open the same file several times.
/// Returns `None` if no content is kept and `file` is `None`.
fn read_once(path: &Path, file: Option<File>) -> Result<Option<Arc<[u8]>>, EngineError> {
    static CONTENTS: Mutex<BTreeMap<PathBuf, Arc<[u8]>>> = Mutex::new(BTreeMap::new());
    let key = if path == Path::new(STDIN_FILE) { Path::new(STDIN) } else { path };
    let mut contents = lock(&CONTENTS);
    if let Some(content) = contents.get(key) {
        return Ok(Some(Arc::clone(content)));
    }
    let Some(file) = file else { return Ok(None) };
    let mut content = Vec::new();
    file.take(MAX_PIPED_BYTES + 1).read_to_end(&mut content).map_err(|error| unreadable(path, &error.to_string()))?;
    if content.len() as u64 > MAX_PIPED_BYTES {
        return Err(unreadable(path, "it is longer than 1 GiB and has no size: write it to a file and name that"));
    }
    let content: Arc<[u8]> = content.into();
    contents.insert(key.to_owned(), Arc::clone(&content));
    Ok(Some(content))
}

fn unreadable(path: &Path, why: &str) -> EngineError {
    EngineError::BodyFile { path: path.display().to_string(), why: why.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_is_read_once_and_kept() {
        let path = std::env::temp_dir().join(format!("brimful-pipe-{}", std::process::id()));
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.unwrap().success());
        let content = vec![b'x'; PIECE_BYTES + 5];
        let writer = std::thread::spawn({
            let (path, content) = (path.clone(), content.clone());
            move || std::fs::write(path, content).unwrap()
        });
        let first = BodyFile::open(&path).unwrap();
        writer.join().unwrap();
        std::fs::remove_file(&path).unwrap();
        let again = BodyFile::open(&path).unwrap();
        for file in [first, again] {
            assert_eq!(file.bytes(), content.len() as u64);
            assert_eq!(
                [file.read_piece(0, usize::MAX).unwrap(), file.read_piece(PIECE_BYTES as u64, 9).unwrap()].concat(),
                content
            );
            assert!(file.read_piece(1 << 40, 9).unwrap().is_empty());
        }
    }

    #[test]
    fn a_missing_file_or_a_directory_is_refused_before_the_run() {
        for (path, why) in [("/nowhere/at/all", "No such file"), ("/", "regular file")] {
            let error = BodyFile::open(Path::new(path)).unwrap_err().to_string();
            assert!(error.contains(path) && error.contains(why), "{error}");
        }
    }
}
