//! Opens and checks one file of the Server Module, and reads it repeatedly.

use super::ServerSample;
use super::layout::{Header, LayoutError, header, read_u32_at, slot};
use super::slots::{Bytes, IsAlive, SlotReader, Totals};
use crate::sys;
use brimful_core::Nanos;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

/// The reason why a file of the Server Module cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ModuleFileError {
    /// The file cannot be opened or read.
    #[error("{source}: {remedy}", source = .0, remedy = remedy(.0))]
    Io(#[from] io::Error),
    /// The file is a directory, a pipe or a device.
    #[error("it is no regular file: name the file that the server's `brimful` directive names")]
    Irregular,
    /// The file's owner is neither root nor the server's user.
    #[error(
        "it belongs to user {0}, neither to root nor to the server's user, so its figures cannot be trusted: remove it"
    )]
    Untrusted(u32),
    /// The file's contents are not those of a Server Module's file.
    #[error(transparent)]
    LayoutError(#[from] LayoutError),
}

/// An open file of the Server Module.
#[derive(Debug)]
pub struct ModuleFile {
    file: File,
    path: String,
    /// Device and inode of the file.
    device_and_inode: [u64; 2],
    /// The user id of the file's owner.
    owner: u32,
    totals: Totals,
}

fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "run as root or as the server's user",
        io::ErrorKind::NotFound => {
            "start the server with the module first, or name the file that its `brimful` directive names"
        }
        _ => "name the file that the server's `brimful` directive names",
    }
}

impl ModuleFile {
    /// Opens a file. A symbolic link is not followed.
    ///
    /// # Errors
    /// Returns an error if the file cannot be opened, or is not a file of the Server Module.
    pub fn open(path: &Path) -> Result<ModuleFile, ModuleFileError> {
        ModuleFile::open_with(path, File::options().read(true))
    }

    /// Opens a file for reading and writing, as [`ModuleFile::set_enabled`] requires.
    ///
    /// # Errors
    /// Returns an error if the file cannot be opened, or is not a file of the Server Module.
    pub fn open_writable(path: &Path) -> Result<ModuleFile, ModuleFileError> {
        ModuleFile::open_with(path, File::options().read(true).write(true))
    }

    fn open_with(path: &Path, options: &mut OpenOptions) -> Result<ModuleFile, ModuleFileError> {
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
        let file = options.custom_flags(flags).open(path)?;
        ModuleFile::new(file, path.display().to_string())
    }

    /// Checks that an open file belongs to the Server Module. `path` is the path by which it was opened.
    pub(super) fn new(file: File, path: String) -> Result<ModuleFile, ModuleFileError> {
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(ModuleFileError::Irregular);
        }
        read_header(&file)?;
        let device_and_inode = [metadata.dev(), metadata.ino()];
        Ok(ModuleFile { file, path, device_and_inode, owner: metadata.uid(), totals: Totals::default() })
    }

    /// The path of the file.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Device and inode of the file.
    pub(super) fn device_and_inode(&self) -> [u64; 2] {
        self.device_and_inode
    }

    /// User id of the file's owner.
    pub fn owner(&self) -> u32 {
        self.owner
    }

    /// Sets whether the server records requests that begin from now on. The file must have been opened by
    /// [`ModuleFile::open_writable`].
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn set_enabled(&self, on: bool) -> io::Result<()> {
        // The value is one word, which the server reads atomically.
        self.file.write_all_at(&u32::from(on).to_ne_bytes(), header::ENABLED_OFFSET as u64)
    }

    /// Reads the header.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read any more, or is no longer a file of the Server Module.
    pub fn header(&self) -> Result<Header, ModuleFileError> {
        read_header(&self.file)
    }

    /// Reads all counters. `buffer` is scratch space. `is_alive` is called with process ids of the server's pid
    /// namespace; workers for which it returns false count as ended.
    pub(super) fn read(
        &mut self,
        buffer: &mut Vec<u8>,
        is_alive: IsAlive<'_>,
    ) -> Result<ServerSample, ModuleFileError> {
        let mut sample = read(&self.file, &mut self.totals, buffer, is_alive, sys::now())?;
        let [device, inode] = self.device_and_inode;
        sample.identity[0] = device;
        sample.identity[1] = inode;
        sample.file.clone_from(&self.path);
        Ok(sample)
    }

    /// Reads all counters. `is_alive` is called with process ids of the server's pid namespace; workers for which it
    /// returns false count as ended.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read any more, or is no longer a file of the Server Module.
    pub fn sample(&mut self, is_alive: &dyn Fn(u32) -> bool) -> Result<ServerSample, ModuleFileError> {
        self.read(&mut Vec::new(), is_alive)
    }

    /// The process ids of the server's workers, in the server's pid namespace.
    pub(super) fn owners(&self) -> Result<Vec<u32>, ModuleFileError> {
        let header = self.header()?;
        let mut owners = Vec::new();
        for index in 0..header.slots {
            let mut head = [0; slot::THREAD_OFFSET];
            self.file.fill(&mut head, header.slot_offset(index))?;
            owners.extend(read_u32_at(&head, slot::OWNER_OFFSET).filter(|&owner| owner != 0));
        }
        owners.sort_unstable();
        owners.dedup();
        Ok(owners)
    }
}

impl ServerSample {
    /// Parses bytes as the contents of a file. Assumes that all workers are alive.
    ///
    /// # Errors
    /// Returns an error if the bytes are not the contents of a Server Module's file.
    pub fn from_bytes(bytes: &[u8], now: Nanos) -> Result<ServerSample, ModuleFileError> {
        read(&bytes, &mut Totals::default(), &mut Vec::new(), &|_| true, now)
    }
}

fn read_header(bytes: &impl Bytes) -> Result<Header, ModuleFileError> {
    let length = bytes.length()?;
    let mut head = [0; header::SIZE];
    if length < head.len() as u64 {
        return Err(LayoutError::Foreign.into());
    }
    bytes.fill(&mut head, 0)?;
    Ok(Header::parse(&head, length)?)
}

fn read(
    bytes: &impl Bytes,
    totals: &mut Totals,
    buffer: &mut Vec<u8>,
    is_alive: IsAlive<'_>,
    now: Nanos,
) -> Result<ServerSample, ModuleFileError> {
    let header = read_header(bytes)?;
    totals.clear(header.classes.len());
    let mut reader = SlotReader::new(bytes, header.slot_size, buffer);
    for index in 0..header.slots {
        if let Some(slot) = reader.read(header.slot_offset(index))? {
            totals.add(&slot, is_alive, now);
        }
    }
    let classes = header.classes.into_iter().zip(&totals.classes);
    Ok(ServerSample {
        identity: [0, 0, header.created_ns],
        at: now,
        name: header.server,
        file: String::new(),
        enabled: header.enabled,
        cpu_one_in: header.cpu_one_in,
        workers_most: header.workers_most,
        lost: header.lost,
        workers: totals.workers,
        in_progress: totals.in_progress,
        connections: totals.connections,
        busy: Nanos(totals.busy_ns),
        cpu: Nanos(totals.cpu_ns),
        io: None,
        classes: classes.map(|(name, totals)| totals.sample(name)).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::layout::tests::header_bytes;
    use super::super::layout::{self, class, sums, times};
    use super::*;
    use proptest::prelude::*;

    /// A file with a valid header, two classes and this number of slots. All counters are zero.
    fn empty(slots: u32) -> Vec<u8> {
        let mut bytes = header_bytes(slots, 2);
        let slot_size = (slot::CLASSES_OFFSET + 2 * class::SIZE).next_multiple_of(layout::SLOT_ALIGN);
        bytes.resize(bytes.len() + slots as usize * slot_size, 0);
        bytes
    }

    fn put(bytes: &mut [u8], slot: usize, at: usize, word: u64) {
        let slot_size = (slot::CLASSES_OFFSET + 2 * class::SIZE).next_multiple_of(layout::SLOT_ALIGN);
        let at = 896 + slot * slot_size + at;
        bytes[at..at + 8].copy_from_slice(&word.to_ne_bytes());
    }

    #[test]
    fn slots_are_summed_and_those_never_used_left_out() {
        let mut bytes = empty(3);
        let (first, second) = (slot::CLASSES_OFFSET, slot::CLASSES_OFFSET + class::SIZE);
        let (process, buckets) =
            (sums::TIMES_OFFSET + 2 * times::SIZE, class::BUCKETS_OFFSET + 2 * class::BUCKETS_SIZE);
        for (slot, requests) in [(0, 5), (1, 70), (2, 900)] {
            put(&mut bytes, slot, second + sums::REQUESTS_OFFSET, requests);
            put(&mut bytes, slot, second + process + times::COUNT_OFFSET, requests);
            put(&mut bytes, slot, second + process + times::SUM_NS_OFFSET, 1000 * requests);
            put(&mut bytes, slot, second + buckets + 8 * 7, requests);
            put(&mut bytes, slot, slot::BUSY_NS_OFFSET, 100);
            put(&mut bytes, slot, slot::BUSY_SINCE_NS_OFFSET, 1000);
            put(&mut bytes, slot, slot::IN_PROGRESS_OFFSET, 1);
            put(&mut bytes, slot, slot::OWNERS_OFFSET, u64::from(slot < 2));
        }
        // The low half of the word is the process id.
        put(&mut bytes, 0, slot::OWNER_OFFSET, u64::from_ne_bytes([7, 0, 0, 0, 8, 0, 0, 0]));
        put(&mut bytes, 1, first + class::CPU_MIXED_OFFSET, 3);
        let sample = ServerSample::from_bytes(&bytes, Nanos(1500)).unwrap();
        assert_eq!((sample.workers, sample.in_progress, sample.busy), (1, 1, Nanos(100 + 500 + 100)));
        let [a, b] = sample.classes.as_slice() else { panic!("{sample:?}") };
        assert_eq!((a.requests, a.cpu_mixed, b.requests), (0, 3, 75));
        let process = &b.times[2];
        assert_eq!((process.count, process.sum_ns), (75, 75_000));
        assert_eq!(process.buckets, [(7, 75)]);
        assert!(b.times[1].buckets.is_empty());
    }

    #[test]
    fn a_worker_that_was_killed_is_not_busy_for_ever() {
        let mut bytes = empty(1);
        put(&mut bytes, 0, slot::OWNERS_OFFSET, 1);
        put(&mut bytes, 0, slot::OWNER_OFFSET, 7);
        put(&mut bytes, 0, slot::IN_PROGRESS_OFFSET, 1);
        put(&mut bytes, 0, slot::BUSY_SINCE_NS_OFFSET, 1);
        put(&mut bytes, 0, slot::BUSY_NS_OFFSET, 3);
        let read = |is_alive: IsAlive<'_>| {
            let sample = read(&&bytes[..], &mut Totals::default(), &mut Vec::new(), is_alive, Nanos(100)).unwrap();
            (sample.workers, sample.in_progress, sample.busy.0)
        };
        assert_eq!(read(&|pid| pid == 7), (1, 1, 102));
        assert_eq!(read(&|_| false), (0, 0, 3));
    }

    #[test]
    fn a_file_is_read_as_it_is_now_or_not_at_all() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("brimful");
        let mut bytes = empty(2);
        std::fs::write(&path, &bytes).unwrap();
        let mut file = ModuleFile::open(&path).unwrap();
        let mut requests = || file.read(&mut Vec::new(), &|_| true).map(|sample| sample.requests());
        assert_eq!(requests().unwrap(), 0);
        put(&mut bytes, 1, slot::OWNERS_OFFSET, 1);
        put(&mut bytes, 1, slot::CLASSES_OFFSET + sums::REQUESTS_OFFSET, 9);
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(requests().unwrap(), 9);
        for length in [bytes.len() - 1, 900, 895, 3, 0] {
            std::fs::File::options().write(true).open(&path).unwrap().set_len(length as u64).unwrap();
            assert!(matches!(requests(), Err(ModuleFileError::LayoutError(_))), "{length}");
        }
        let link = directory.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(ModuleFile::open(&link).is_err());
        assert!(matches!(ModuleFile::open(directory.path()), Err(ModuleFileError::Irregular)));
        let missing = ModuleFile::open(&directory.path().join("none")).unwrap_err().to_string();
        assert!(missing.contains("start the server with the module first"), "{missing}");
    }

    proptest! {
        #[test]
        fn any_words_make_a_sample(
            words in proptest::collection::vec((0_usize..3, 0_usize..(slot::CLASSES_OFFSET + 2 * class::SIZE) / 8, any::<u64>()), 0..300),
            head in proptest::collection::vec((0_usize..896, any::<u8>()), 0..4), now: u64,
        ) {
            let mut bytes = empty(3);
            words.iter().for_each(|&(slot, word, value)| put(&mut bytes, slot, 8 * word, value));
            (0..3).for_each(|slot| put(&mut bytes, slot, slot::OWNERS_OFFSET, 1));
            head.iter().for_each(|&(at, byte)| bytes[at] = byte);
            if let Ok(sample) = ServerSample::from_bytes(&bytes, Nanos(now)) {
                prop_assert!(sample.classes.len() <= layout::MAX_CLASSES);
            }
        }
    }
}
