//! A file to read from, past the page cache.
//!
//! It is read by `O_DIRECT` where its file system can do that (open(2)). Elsewhere the kernel is asked to forget the
//! pages before they are read (posix_fadvise(2)), and a file system in memory is as fast as memory.

use crate::error::TargetError;
use crate::service::MAX_READ;
use brimful_core::Bytes;
use rustix::fs::{Advice, OFlags, fadvise};
use std::fs::{self, File};
use std::io::{self, Write};
use std::num::NonZeroU64;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Length of the file.
const FILE: Bytes = Bytes(64 << 20);
/// Of places in the file, of lengths and of memory, for `O_DIRECT`: no less than any disk's block, in bytes.
const BLOCK: usize = 4096;

/// The file. It has no name any more, so it is gone with the process however that ends.
#[derive(Debug)]
pub(crate) struct Disk {
    file: File,
    direct: bool,
}

/// Where a worker reads to.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    bytes: Vec<u8>,
}

impl Disk {
    /// Makes a file in this directory and writes all of it to the disk: that may take a second.
    pub(crate) fn new(directory: &Path) -> Result<Disk, TargetError> {
        Disk::make(directory, true)
    }

    fn make(directory: &Path, direct: bool) -> Result<Disk, TargetError> {
        static FILES: AtomicUsize = AtomicUsize::new(0);
        let number = FILES.fetch_add(1, Ordering::Relaxed);
        let path = directory.join(format!(".brimful-target-{}-{number}", std::process::id()));
        let failed = |source| TargetError::File { directory: directory.to_owned(), needed: FILE, source };
        let written = File::options().read(true).write(true).create_new(true).open(&path).map_err(failed)?;
        let disk = fill(&written).map(|()| match direct.then(|| Disk::direct(&path)).flatten() {
            Some(disk) => disk,
            None => Disk { file: written, direct: false },
        });
        // Whether or not the disk was full.
        fs::remove_file(&path).map_err(failed)?;
        disk.map_err(failed)
    }

    /// If its file system can do that.
    fn direct(path: &Path) -> Option<Disk> {
        let file = File::options().read(true).custom_flags(OFlags::DIRECT.bits() as i32).open(path).ok()?;
        let disk = Disk { file, direct: true };
        disk.read(Bytes(1), 0.5, &mut Buffer::default()).is_ok().then_some(disk)
    }

    /// Reads so many bytes from a place between 0 and 1, the start and the end of the file. With `O_DIRECT` these are
    /// whole blocks.
    pub(crate) fn read(&self, size: Bytes, place: f64, buffer: &mut Buffer) -> io::Result<()> {
        let asked = (size.0.min(MAX_READ.0) as usize).max(1);
        let length = if self.direct { asked.next_multiple_of(BLOCK) } else { asked };
        let blocks = (FILE.0 - MAX_READ.0) / BLOCK as u64;
        let offset = (place * blocks as f64) as u64 * BLOCK as u64;
        if !self.direct {
            // Advice that is not taken makes the read fast, not wrong.
            let _ = fadvise(&self.file, offset, NonZeroU64::new(length as u64), Advice::DontNeed);
        }
        self.file.read_exact_at(buffer.aligned(length), offset)
    }
}

impl Buffer {
    /// So many bytes that begin at a multiple of [`BLOCK`].
    fn aligned(&mut self, length: usize) -> &mut [u8] {
        if self.bytes.len() < length + BLOCK {
            self.bytes = vec![0; length + BLOCK];
        }
        let start = self.bytes.as_ptr().align_offset(BLOCK).min(BLOCK);
        &mut self.bytes[start..start + length]
    }
}

/// Blocks that were never written would be read without the disk, and pages that are not on the disk cannot be
/// forgotten.
fn fill(mut file: &File) -> io::Result<()> {
    let part = vec![b'x'; 1 << 20];
    for _ in 0..FILE.0 / part.len() as u64 {
        file.write_all(&part)?;
    }
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_from_the_first_byte_to_the_last() {
        for direct in [true, false] {
            let disk = Disk::make(&std::env::temp_dir(), direct).unwrap();
            for (size, place) in [(1, 0.0), (5_000, 0.3), (MAX_READ.0, 0.999_999)] {
                let mut buffer = Buffer::default();
                disk.read(Bytes(size), place, &mut buffer).unwrap();
                assert!(buffer.aligned(size as usize).iter().all(|&byte| byte == b'x'));
            }
        }
    }

    #[test]
    fn a_directory_that_is_not_there_is_named() {
        let error = Disk::new(Path::new("/nowhere/at/all")).unwrap_err().to_string();
        assert!(error.contains("/nowhere/at/all") && error.contains("67.1 MB"), "{error}");
    }
}
