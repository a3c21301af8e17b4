//! Reads /proc. Descriptors stay open and are read again from the start, which takes a third of the cost of opening
//! them again. Parsers return `None` for text that they cannot parse, and never panic: a kernel may not have a field,
//! and a process may vanish in the middle of a line. Times are in ticks of `sysconf(_SC_CLK_TCK)`. Source: proc(5).

use crate::MonitorError;
use brimful_core::Nanos;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// A file of /proc that stays open and is read repeatedly.
#[derive(Debug)]
pub(crate) struct ProcFile(File);

/// A file of /proc that is opened again if it cannot be read. It may be missing because the kernel lacks the feature.
/// In a container, /proc may be served by a program (lxcfs) that is restarted.
#[derive(Debug)]
pub(crate) struct ReopenedFile {
    path: PathBuf,
    file: Option<ProcFile>,
    was_parsed: bool,
}

/// The fields of /proc/PID/stat that are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PidStat<'a> {
    /// The process's name, cut to 15 bytes by the kernel.
    pub comm: &'a [u8],
    /// State of the main thread: `R` running or ready, `Z` ended, and others.
    pub state: u8,
    /// Pid of the parent process.
    pub parent: u32,
    /// Number of page faults that waited for a disk.
    pub major_faults: u64,
    /// Number of page faults that waited for a disk, of children that ended and that the process waited for. Faults of
    /// descendants that these children waited for are included.
    pub children_major_faults: u64,
    /// CPU time in user mode, in clock ticks.
    pub user: u64,
    /// CPU time in the kernel, in clock ticks.
    pub system: u64,
    /// CPU time in user mode of the children that `children_major_faults` counts, in clock ticks.
    pub children_user: u64,
    /// CPU time in the kernel of the children that `children_major_faults` counts, in clock ticks.
    pub children_system: u64,
    /// Number of threads.
    pub threads: u64,
    /// Time from boot to the start of the process, in clock ticks, suspended time included.
    pub started: u64,
    /// Resident memory, in pages.
    pub rss_pages: u64,
}

/// All processes by pid. Each value is the pid of the parent and, if the caller wants to select the process, a tag.
pub(crate) type Table<T> = BTreeMap<u32, (u32, Option<T>)>;

impl ProcFile {
    /// Opens the file. Returns [`MonitorError::Proc`] if this fails.
    pub fn open(path: &Path) -> Result<ProcFile, MonitorError> {
        match File::open(path) {
            Ok(file) => Ok(ProcFile(file)),
            Err(source) => Err(MonitorError::Proc { path: path.to_owned(), source }),
        }
    }

    /// Reads the whole file into the buffer, which grows if necessary. Returns the part that contains the file.
    pub fn read<'b>(&self, buffer: &'b mut Vec<u8>) -> io::Result<&'b [u8]> {
        if buffer.is_empty() {
            buffer.resize(4096, 0);
        }
        let mut length = 0;
        loop {
            match self.0.read_at(&mut buffer[length..], length as u64)? {
                0 => return Ok(&buffer[..length]),
                read => length += read,
            }
            if length == buffer.len() {
                buffer.resize(2 * length, 0);
            }
        }
    }
}

impl ReopenedFile {
    /// Opens the file when it is first read.
    pub fn new(path: PathBuf) -> ReopenedFile {
        ReopenedFile { path, file: None, was_parsed: false }
    }

    /// Reads and parses the file. Returns `None` if the file cannot be read or parsed. A file that cannot be read is
    /// opened again at the next reading.
    pub fn read<T>(&mut self, buffer: &mut Vec<u8>, parse: impl FnOnce(&[u8]) -> Option<T>) -> Option<T> {
        if self.file.is_none() {
            self.file = ProcFile::open(&self.path).ok();
        }
        let text = self.file.as_ref().and_then(|file| file.read(buffer).ok());
        if text.is_none() {
            self.file = None;
        }
        let found = text.and_then(parse);
        self.was_parsed = found.is_some();
        found
    }

    /// Whether the last reading could be parsed.
    pub fn was_parsed(&self) -> bool {
        self.was_parsed
    }
}

/// Number of processes and threads ever started, from the text of /proc/stat. While this number does not change, there
/// are no new processes.
pub(crate) fn forks(text: &[u8]) -> Option<u64> {
    lines(text).find_map(|line| words(line.strip_prefix(b"processes ")?).next().and_then(number))
}

/// Parses /proc/PID/stat. The name is between the first `(` and the last `)`, and may contain both characters.
pub(crate) fn pid_stat(text: &[u8]) -> Option<PidStat<'_>> {
    let open = text.iter().position(|&b| b == b'(')?;
    let close = text.iter().rposition(|&b| b == b')')?;
    let comm = text.get(open + 1..close)?;
    let mut fields = words(&text[close + 1..]);
    let state = *fields.next()?.first()?;
    let mut field = |skip: usize| fields.nth(skip).and_then(number);
    // Fields 3, 4, 12 to 17, 20, 22 and 24 of proc(5).
    Some(PidStat {
        comm,
        state,
        parent: field(0)? as u32,
        major_faults: field(7)?,
        children_major_faults: field(0)?,
        user: field(0)?,
        system: field(0)?,
        children_user: field(0)?,
        children_system: field(0)?,
        threads: field(2)?,
        started: field(1)?,
        rss_pages: field(1)?,
    })
}

/// Parses /proc/PID/task/TID/schedstat: how long a thread was ready but waited for a CPU, and how often it got a CPU.
/// Before a thread gets a CPU again, it must have been switched away from, so the second number is also the number of
/// its context switches.
pub(crate) fn schedstat(text: &[u8]) -> Option<(Nanos, u64)> {
    let mut numbers = words(text).skip(1).map(number);
    Some((Nanos(numbers.next()??), numbers.next()??))
}

/// Parses the first number of /proc/PID/schedstat: the CPU time of the process's main thread.
pub(crate) fn thread_cpu(text: &[u8]) -> Option<Nanos> {
    words(text).next().and_then(number).map(Nanos)
}

/// The machine's memory in bytes: `MemTotal` of /proc/meminfo.
pub(crate) fn memory_total(text: &[u8]) -> Option<u64> {
    let line = lines(text).find_map(|line| line.strip_prefix(b"MemTotal:"))?;
    words(line).next().and_then(number)?.checked_mul(1024)
}

/// The entries of a directory of /proc whose names are numbers: pids, or thread ids of a process. The list is empty if
/// the directory is gone.
pub(crate) fn numeric_entries(directory: &Path) -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Reads the parent of every process. `root` is the path of /proc. `tag` computes a process's tag from its pid and its
/// name.
pub(crate) fn process_table<T>(root: &Path, tag: impl Fn(u32, &[u8]) -> Option<T>) -> Table<T> {
    let (mut table, mut buffer) = (BTreeMap::new(), Vec::new());
    for pid in numeric_entries(root) {
        let Ok(file) = ProcFile::open(&root.join(format!("{pid}/stat"))) else { continue };
        let Some(PidStat { comm, parent, .. }) = file.read(&mut buffer).ok().and_then(pid_stat) else {
            continue;
        };
        table.insert(pid, (parent, tag(pid, comm)));
    }
    table
}

/// The processes with a tag, and all their descendants. A descendant inherits the tag of its nearest ancestor with a
/// tag. The monitoring process does not inherit the tag of its ancestors, and nor do its children: they are not the
/// server unless they were selected themselves.
pub(crate) fn with_descendants<T: Copy>(table: &Table<T>) -> Vec<(u32, T)> {
    let inherited = |mut pid: u32| {
        // The number of steps is limited, because parents that were read at different moments may form a cycle.
        for _ in 0..table.len() {
            match *table.get(&pid)? {
                (_, Some(tag)) => return Some(tag),
                _ if pid == std::process::id() => return None,
                (parent, None) => pid = parent,
            }
        }
        None
    };
    table.keys().filter_map(|&pid| Some((pid, inherited(pid)?))).collect()
}

/// The lines of a text, without line ends.
pub(crate) fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|&b| b == b'\n')
}

/// The words of a text, which are separated by white space.
pub(crate) fn words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}

/// Parses a decimal number.
pub(crate) fn number(word: &[u8]) -> Option<u64> {
    std::str::from_utf8(word).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PID_STAT: &[u8] = b"10480 (a) b (c)) S 10472 10472 4631 0 -1 4194304 3077 6817 6 1 21 22 23 24 20 0 1 0 \
        138751 17281024 3438 18446744073709551615 1 1\n";

    #[test]
    fn a_name_may_hold_spaces_and_parentheses() {
        let stat = pid_stat(PID_STAT).unwrap();
        assert_eq!(stat.comm, b"a) b (c)");
        assert_eq!((stat.state, stat.parent, stat.threads, stat.started), (b'S', 10_472, 1, 138_751));
        assert_eq!((stat.major_faults, stat.children_major_faults, stat.user, stat.system), (6, 1, 21, 22));
        assert_eq!((stat.children_user, stat.children_system, stat.rss_pages), (23, 24, 3438));
    }

    #[test]
    fn counters_are_found_by_their_names() {
        assert_eq!(schedstat(b"177859635 22629366 459\n"), Some((Nanos(22_629_366), 459)));
        assert_eq!(thread_cpu(b"177859635 22629366 459\n"), Some(Nanos(177_859_635)));
        assert_eq!(memory_total(b"MemTotal:       24684092 kB\nMemFree: 1 kB\n"), Some(24_684_092 << 10));
        assert_eq!(forks(b"ctxt 518543\nprocesses 10527\nprocs_running 2\n"), Some(10_527));
        assert_eq!(forks(b"ctxt 518543\nprocesses \n"), None);
    }

    #[test]
    fn a_file_longer_than_the_buffer_is_read_whole_and_read_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("stat");
        let long = b"0123456789".repeat(1000);
        std::fs::write(&path, &long).unwrap();
        let (file, mut buffer) = (ProcFile::open(&path).unwrap(), Vec::new());
        assert_eq!(file.read(&mut buffer).unwrap(), long);
        std::fs::write(&path, b"short").unwrap();
        assert_eq!(file.read(&mut buffer).unwrap(), b"short");
    }

    #[test]
    fn truncated_files_give_nothing() {
        let before = |text: &'static [u8], last: &[u8]| {
            let end = text.windows(last.len()).position(|window| window == last).unwrap();
            (0..=end).map(|length| &text[..length])
        };
        for text in before(PID_STAT, b"3438") {
            assert_eq!(pid_stat(text), None);
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(text in proptest::collection::vec(any::<u8>(), 0..200), at in 0usize..200) {
            let mut status = PID_STAT.to_vec();
            status.splice(at.min(PID_STAT.len()).., text.iter().copied());
            for bytes in [&text, &status] {
                let _ = (pid_stat(bytes), forks(bytes), memory_total(bytes), schedstat(bytes), thread_cpu(bytes));
            }
        }
    }
}
