//! The shared memory that a server writes to: what `status` says of it, and the one word in it that anybody but the
//! server writes.

use crate::exit::UsageError;
use anyhow::Context;
use brimful_core::Nanos;
use brimful_core::quantity::count;
use brimful_core::text::one_line;
use brimful_monitor::module::layout::header::ENABLED;
use brimful_monitor::module::{ModuleFile, ModuleFileError, ServerSample};
use jiff::Timestamp;
use rustix::fs::{Mode, OFlags, open};
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// More than four thousand workers with five classes each write.
const BYTES_MOST: u64 = 256 << 20;

/// Sets whether requests are recorded; whether they were.
///
/// # Errors
/// When it is no such memory, or belongs to somebody else.
pub fn switch(path: &Path, on: bool) -> anyhow::Result<bool> {
    let place = path.display();
    let was = ModuleFile::open(path).and_then(|file| file.header()).map_err(|error| failed(path, error))?.enabled;
    let file = File::from(open_for(path, OFlags::WRONLY).map_err(|error| match error.kind() {
        ErrorKind::PermissionDenied => anyhow::anyhow!("{place}: {error}: run this as root or as the server's user"),
        _ => anyhow::anyhow!("{place}: {error}"),
    })?);
    // One word, which the server reads whole.
    file.write_all_at(&u32::from(on).to_ne_bytes(), ENABLED as u64).with_context(|| format!("cannot write {place}"))?;
    Ok(was)
}

/// What a server's memory says, in a sentence.
pub fn status(path: &Path) -> String {
    let place = path.display();
    let file = match ModuleFile::open(path).and_then(|file| file.header()) {
        Ok(header) => header,
        Err(ModuleFileError::Io(error)) if error.kind() == ErrorKind::NotFound => {
            return format!("nothing is recorded: the server has not made {place}; start it, or let it reload");
        }
        Err(error) => return format!("{place}: {}", one_line(&error.to_string())),
    };
    let state = if file.enabled { "on" } else { "off" };
    let since = Timestamp::from_nanosecond(i128::from(file.made_ns))
        .map_or_else(|_| "an unknown time".to_owned(), |made| format!("{made:.0}"));
    let lost = if file.lost > 0 { format!(", {} without a place", count(u64::from(file.lost))) } else { String::new() };
    let counted = match sample(path) {
        Ok(sample) => {
            let some = |n: u64, what: &str| format!("{} {what}{}", count(n), if n == 1 { "" } else { "s" });
            format!("{} by {}{lost}", some(sample.requests(), "request"), some(sample.workers, "worker"))
        }
        Err(error) => format!("its counters cannot be read: {error}"),
    };
    format!("{state}: {counted} of {} since {since}, in {place}", one_line(&file.server))
}

/// Whether it is a server's memory, which nobody else needs.
pub fn is_one(path: &Path) -> bool {
    ModuleFile::open(path).is_ok()
}

fn sample(path: &Path) -> anyhow::Result<ServerSample> {
    let mut bytes = Vec::new();
    File::from(open_for(path, OFlags::RDONLY)?).take(BYTES_MOST).read_to_end(&mut bytes)?;
    Ok(ServerSample::from_bytes(&bytes, Nanos::ZERO)?)
}

fn open_for(path: &Path, how: OFlags) -> io::Result<std::os::fd::OwnedFd> {
    let flags = how | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(open(path, flags, Mode::empty())?)
}

/// What is no such memory is bad input; what cannot be read is the host's.
fn failed(path: &Path, error: ModuleFileError) -> anyhow::Error {
    let words = format!("{}: {error}", path.display());
    match error {
        ModuleFileError::Io(_) => anyhow::anyhow!(words),
        _ => UsageError(words).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn nothing_else_is_written() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("other");
        assert!(!switch(&path, true).unwrap_err().is::<UsageError>());
        let text = "some other file ".repeat(100);
        fs::write(&path, &text).unwrap();
        assert!(switch(&path, false).unwrap_err().is::<UsageError>());
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        assert!(!is_one(&path));
        assert!(!is_one(directory.path()));
    }

    #[test]
    fn what_is_not_there_is_said() {
        assert!(status(Path::new("/nonexistent/memory")).contains("has not made /nonexistent/memory"));
    }
}
