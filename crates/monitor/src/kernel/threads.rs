//! CPU time of the kernel's own threads, such as ksoftirqd and kswapd: the work that the kernel does outside of all
//! processes. These threads are the children of kthreadd.
//!
//! Each sample reads the list of the threads and the CPU time of each. Descriptors stay open, so that a thread costs a
//! single system call. The totals include the time of threads that have ended, as kworkers often do.
//!
//! Source: proc(5), Documentation/scheduler/sched-stats.rst.

use crate::counter::TimeSpan;
use crate::procfs::{ProcFile, ReopenedFile, number, pid_stat, thread_cpu, words};
use brimful_core::Nanos;
use brimful_core::server::KernelThreads;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The pid of kthreadd in the initial pid namespace.
const KTHREADD: u32 = 2;
/// The first bytes of the names of threads that do no work for servers: the rescue threads of work queues, and the
/// threads that start, stop and idle CPUs. They are about half of all threads, so their CPU time is not read.
const SKIPPED: [&[u8]; 3] = [b"kworker/R-", b"cpuhp/", b"idle_inject/"];
/// Maximum number of descriptors that stay open. The files of further threads are opened for each reading.
const MAX_OPEN: usize = 256;

/// CPU time of groups of kernel threads by name, like `ksoftirqd`.
pub(super) type ThreadGroups = BTreeMap<String, ThreadGroupSample>;

/// Number and CPU time of the kernel threads of one group, such as `ksoftirqd`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ThreadGroupSample {
    /// Number of threads now.
    pub threads: u64,
    /// CPU time of all threads, including threads that ended since monitoring began. Only differences are meaningful.
    pub cpu: Nanos,
}

/// Reads the CPU time of the kernel's threads.
#[derive(Debug)]
pub(super) struct ThreadsWatch {
    proc: PathBuf,
    list: ReopenedFile,
    threads: BTreeMap<u32, Thread>,
    /// Threads whose CPU time is not read, because their names begin like one of [`SKIPPED`].
    skipped: BTreeSet<u32>,
    /// CPU time of threads that have ended, by group.
    ended: BTreeMap<String, Nanos>,
    /// Whether pid 2 is kthreadd. In a container, pid 2 is another process or does not exist.
    sees_kthreadd: bool,
}

#[derive(Debug)]
struct Thread {
    group: String,
    file: Option<ProcFile>,
    cpu: Nanos,
}

impl ThreadsWatch {
    /// Creates a reader. `proc` is the path of /proc.
    pub fn new(proc: &Path) -> ThreadsWatch {
        ThreadsWatch {
            list: ReopenedFile::new(proc.join(format!("{KTHREADD}/task/{KTHREADD}/children"))),
            sees_kthreadd: name(proc, KTHREADD, &mut Vec::new()).is_some_and(|name| name == b"kthreadd"),
            proc: proc.to_owned(),
            threads: BTreeMap::new(),
            skipped: BTreeSet::new(),
            ended: BTreeMap::new(),
        }
    }

    /// Reads the CPU time of each group of threads. Returns `None` if the kernel's threads are not visible here.
    pub fn read(&mut self, buffer: &mut Vec<u8>) -> Option<ThreadGroups> {
        if !self.sees_kthreadd {
            return None;
        }
        let pids: Vec<u32> =
            self.list.read(buffer, |text| words(text).map(|word| Some(number(word)? as u32)).collect())?;
        let mut earlier = std::mem::take(&mut self.threads);
        let skipped = std::mem::take(&mut self.skipped);
        for pid in pids {
            let known = earlier.remove(&pid);
            if known.is_none() && skipped.contains(&pid) {
                self.skipped.insert(pid);
            } else if let Some(thread) = known.or_else(|| self.open(pid, buffer)) {
                self.threads.insert(pid, thread);
            } else {
                self.skipped.insert(pid);
            }
        }
        let mut groups = ThreadGroups::new();
        for (pid, thread) in &mut self.threads {
            thread.read(&self.proc, *pid, buffer);
            let group = groups.entry(thread.group.clone()).or_default();
            group.threads += 1;
            group.cpu += thread.cpu;
        }
        for thread in earlier.into_values() {
            *self.ended.entry(thread.group).or_default() += thread.cpu;
        }
        for (group, cpu) in &self.ended {
            groups.entry(group.clone()).or_default().cpu += *cpu;
        }
        groups.retain(|_, group| group.cpu > Nanos::ZERO);
        Some(groups)
    }

    /// Opens a thread that was not known before. Returns `None` for a thread whose CPU time is not read.
    fn open(&self, pid: u32, buffer: &mut Vec<u8>) -> Option<Thread> {
        let name = name(&self.proc, pid, buffer)?;
        let group = group(name).to_owned();
        let is_skipped = SKIPPED.iter().any(|skipped| name.starts_with(skipped));
        let file = (!is_skipped && self.threads.len() < MAX_OPEN).then(|| ProcFile::open(&path(&self.proc, pid)).ok());
        (!is_skipped).then(|| Thread { group, file: file.flatten(), cpu: Nanos::ZERO })
    }

    /// The source of the metrics, or the reason why there are none.
    pub fn source(&self) -> &'static str {
        match (self.sees_kthreadd, self.list.was_parsed()) {
            (false, _) => {
                "none: the kernel's threads are not in this pid namespace: watch from the host, outside of the container"
            }
            (true, true) => "/proc/PID/schedstat of kthreadd's children",
            (true, false) => "none: this kernel was built without CONFIG_PROC_CHILDREN",
        }
    }
}

impl Thread {
    /// Reads the CPU time of the thread. If the thread has just ended, the last reading is kept.
    fn read(&mut self, proc: &Path, pid: u32, buffer: &mut Vec<u8>) {
        let opened = self.file.is_none().then(|| ProcFile::open(&path(proc, pid)).ok()).flatten();
        let file = self.file.as_ref().or(opened.as_ref());
        let cpu = file.and_then(|file| thread_cpu(file.read(buffer).ok()?));
        self.cpu = self.cpu.max(cpu.unwrap_or_default());
    }
}

/// The groups that used CPU time between two samples.
pub(super) fn since(earlier: &ThreadGroups, later: &ThreadGroups, over: TimeSpan) -> BTreeMap<String, KernelThreads> {
    let figures = |(name, now): (&String, &ThreadGroupSample)| {
        let before = earlier.get(name).map_or(Nanos::ZERO, |group| group.cpu);
        let cores = over.share(before, now.cpu).filter(|cores| *cores > 0.0)?;
        Some((name.clone(), KernelThreads { threads: now.threads, cores }))
    };
    later.iter().filter_map(figures).collect()
}

fn path(proc: &Path, pid: u32) -> PathBuf {
    proc.join(format!("{pid}/schedstat"))
}

fn name<'b>(proc: &Path, pid: u32, buffer: &'b mut Vec<u8>) -> Option<&'b [u8]> {
    let file = ProcFile::open(&proc.join(format!("{pid}/stat"))).ok()?;
    pid_stat(file.read(buffer).ok()?).map(|stat| stat.comm)
}

/// The name of a thread's group: the thread's name without its number, CPU or disk. `ksoftirqd/0`, `kswapd0` and
/// `jbd2/vda1-8` belong to `ksoftirqd`, `kswapd` and `jbd2`.
fn group(name: &[u8]) -> &str {
    let end = name.iter().position(|b| b"/.:".contains(b));
    let text = std::str::from_utf8(&name[..end.unwrap_or(name.len())]).unwrap_or("other");
    // If the name continues with a disk, as in `jbd2/vda1-8`, the digit of `jbd2` is not a number of the thread.
    let is_number = |c: char| end.is_none() && (c.is_ascii_digit() || c == '_');
    match text.trim_end_matches(is_number) {
        "" => "other",
        name => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    struct Threads {
        root: tempfile::TempDir,
    }

    impl Threads {
        fn new() -> Threads {
            let threads = Threads { root: tempfile::tempdir().unwrap() };
            threads.start(KTHREADD, "kthreadd", 5);
            threads
        }

        fn start(&self, pid: u32, name: &str, cpu_ms: u64) {
            let directory = self.root.path().join(pid.to_string());
            fs::create_dir_all(&directory).unwrap();
            let stat = format!("{pid} ({name}) S 2 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 7 0 0 1\n");
            fs::write(directory.join("stat"), stat).unwrap();
            self.run(pid, cpu_ms);
        }

        fn run(&self, pid: u32, cpu_ms: u64) {
            let path = self.root.path().join(pid.to_string()).join("schedstat");
            fs::write(path, format!("{} 7 9\n", cpu_ms * 1_000_000)).unwrap();
        }

        fn list(&self, pids: &[u32]) {
            let directory = self.root.path().join("2/task/2");
            fs::create_dir_all(&directory).unwrap();
            let pids: String = pids.iter().map(|pid| format!("{pid} ")).collect();
            fs::write(directory.join("children"), pids).unwrap();
        }
    }

    #[test]
    fn threads_are_grouped_and_those_that_end_or_begin_count() {
        let threads = Threads::new();
        for (pid, name) in [(10, "ksoftirqd/0"), (11, "ksoftirqd/1"), (12, "kswapd0"), (13, "kworker/u8:1-writeback")] {
            threads.start(pid, name, 1_000);
        }
        threads.start(14, "kworker/R-netns", 1_000);
        threads.start(15, "jbd2/vda1-8", 1_000);
        threads.list(&[10, 11, 12, 13, 14, 15]);
        let mut watch = ThreadsWatch::new(threads.root.path());
        let first = watch.read(&mut Vec::new()).unwrap();
        assert_eq!(first.keys().collect::<Vec<_>>(), ["jbd2", "ksoftirqd", "kswapd", "kworker"]);
        assert_eq!(first["ksoftirqd"], ThreadGroupSample { threads: 2, cpu: Nanos::from_secs(2) });
        threads.run(10, 1_100);
        threads.run(11, 1_300);
        threads.run(13, 1_050);
        watch.read(&mut Vec::new());
        // A kworker has ended, and another one has begun.
        threads.start(16, "kworker/0:2-events", 150);
        threads.list(&[10, 11, 12, 14, 15, 16]);
        let second = watch.read(&mut Vec::new()).unwrap();
        let used = since(&first, &second, TimeSpan(Nanos::from_secs(2)));
        let expected = [
            ("ksoftirqd".to_owned(), KernelThreads { threads: 2, cores: 0.2 }),
            ("kworker".to_owned(), KernelThreads { threads: 1, cores: 0.1 }),
        ];
        assert_eq!(used, expected.into(), "groups without CPU time are left out");
        assert_eq!(watch.source(), "/proc/PID/schedstat of kthreadd's children");
    }

    #[test]
    fn what_prevents_the_reading_is_said() {
        let threads = Threads::new();
        let mut watch = ThreadsWatch::new(threads.root.path());
        assert_eq!(watch.read(&mut Vec::new()), None);
        assert!(watch.source().contains("CONFIG_PROC_CHILDREN"));
        threads.start(KTHREADD, "nginx", 5);
        let mut watch = ThreadsWatch::new(threads.root.path());
        assert_eq!(watch.read(&mut Vec::new()), None);
        assert!(watch.source().contains("pid namespace"));
    }

    #[test]
    fn names_of_groups() {
        for (name, expected) in [
            ("ksoftirqd/3", "ksoftirqd"),
            ("kswapd0", "kswapd"),
            ("kdamond.0", "kdamond"),
            ("irq/24-ACPI:Ged", "irq"),
            ("rcu_preempt", "rcu_preempt"),
            ("123", "other"),
        ] {
            assert_eq!(group(name.as_bytes()), expected);
        }
        assert_eq!(group(b"\xff"), "other");
    }
}
