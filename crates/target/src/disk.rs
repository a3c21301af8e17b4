//! A file that is read from the disk, not from the page cache.
//!
//! The file is read with `O_DIRECT` if its file system supports that (open(2)). Otherwise the kernel is advised to drop
//! the pages before they are read (posix_fadvise(2)). If the file system is in memory, reads are as fast as memory.

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

/// Length of the file, in bytes.
const FILE_LENGTH: Bytes = Bytes(64 << 20);
/// Alignment in bytes of offsets, lengths and memory for `O_DIRECT`: at least the block size of any disk.
const BLOCK: usize = 4096;

/// The file that requests with the step [`ServiceStep::Read`](crate::ServiceStep::Read) read. The file has no name in
/// its directory, so the kernel deletes it when the process ends, even if the process is killed.
#[derive(Debug)]
pub(crate) struct Disk {
    file: File,
    direct: bool,
}

/// A worker's read buffer.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    bytes: Vec<u8>,
}

impl Disk {
    /// Creates the file in this directory and writes its content to the disk, which may take a second.
    pub(crate) fn new(directory: &Path) -> Result<Disk, TargetError> {
        Disk::create(directory, true)
    }

    fn create(directory: &Path, direct: bool) -> Result<Disk, TargetError> {
        static FILES: AtomicUsize = AtomicUsize::new(0);
        let number = FILES.fetch_add(1, Ordering::Relaxed);
        let path = directory.join(format!(".brimful-target-{}-{number}", std::process::id()));
        let failed = |source| TargetError::File { directory: directory.to_owned(), needed: FILE_LENGTH, source };
        let written = File::options().read(true).write(true).create_new(true).open(&path).map_err(failed)?;
        let disk = fill(&written).map(|()| match direct.then(|| Disk::open_direct(&path)).flatten() {
            Some(disk) => disk,
            None => Disk { file: written, direct: false },
        });
        // Remove the name even if writing failed, for example because the disk was full.
        fs::remove_file(&path).map_err(failed)?;
        disk.map_err(failed)
    }

    /// Opens the file with `O_DIRECT`, if its file system supports that.
    fn open_direct(path: &Path) -> Option<Disk> {
        let file = File::options().read(true).custom_flags(OFlags::DIRECT.bits() as i32).open(path).ok()?;
        let disk = Disk { file, direct: true };
        disk.read(Bytes(1), 0.5, &mut Buffer::default()).is_ok().then_some(disk)
    }

    /// Reads `size` bytes. `position` is between 0 (the start of the file) and 1 (its end). With `O_DIRECT`, whole
    /// blocks are read.
    pub(crate) fn read(&self, size: Bytes, position: f64, buffer: &mut Buffer) -> io::Result<()> {
        let requested = (size.0.min(MAX_READ.0) as usize).max(1);
        let length = if self.direct { requested.next_multiple_of(BLOCK) } else { requested };
        let blocks = (FILE_LENGTH.0 - MAX_READ.0) / BLOCK as u64;
        let offset = (position * blocks as f64) as u64 * BLOCK as u64;
        if !self.direct {
            // The kernel may ignore this advice. Then the read may be served from the page cache, so it is faster than
            // the disk.
            let _ = fadvise(&self.file, offset, NonZeroU64::new(length as u64), Advice::DontNeed);
        }
        self.file.read_exact_at(buffer.aligned(length), offset)
    }
}

impl Buffer {
    /// Returns a part of the buffer with this length. Its start is aligned to [`BLOCK`].
    fn aligned(&mut self, length: usize) -> &mut [u8] {
        if self.bytes.len() < length + BLOCK {
            self.bytes = vec![0; length + BLOCK];
        }
        let start = self.bytes.as_ptr().align_offset(BLOCK).min(BLOCK);
        &mut self.bytes[start..start + length]
    }
}

/// Fills the whole file and writes it to the disk. The kernel would not read blocks that were never written from the
/// disk, and could not drop pages that are not on the disk yet.
fn fill(mut file: &File) -> io::Result<()> {
    let part = vec![b'x'; 1 << 20];
    for _ in 0..FILE_LENGTH.0 / part.len() as u64 {
        file.write_all(&part)?;
    }
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_read_from_the_first_byte_to_the_last() {
        for direct in [true, false] {
            let disk = Disk::create(&std::env::temp_dir(), direct).unwrap();
            for (size, place) in [(1, 0.0), (5_000, 0.3), (MAX_READ.0, 0.999_999)] {
                let mut buffer = Buffer::default();
                disk.read(Bytes(size), place, &mut buffer).unwrap();
                assert!(buffer.aligned(size as usize).iter().all(|&byte| byte == b'x'));
            }
        }
    }

    #[test]
    fn a_missing_directory_is_named() {
        let error = Disk::new(Path::new("/nowhere/at/all")).unwrap_err().to_string();
        assert!(error.contains("/nowhere/at/all") && error.contains("67.1 MB"), "{error}");
    }
}
