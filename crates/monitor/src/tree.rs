//! Programs: processes found by name or pid, with all their descendants, as one.
//!
//! Finding processes costs more than reading them, so it happens only when the kernel has started something since,
//! and each kind of search rests 400 times as long as it took: together they stay below 1 % of one CPU.

use crate::procfs::{self, PidStat, ProcFile};
use crate::program::{CpuTime, Member, Program, ProgramSample, Ticks};
use crate::search::Search;
use crate::{MonitorError, sys};
use brimful_core::Nanos;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Which processes to watch; their descendants come with them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProcessSelector {
    /// Every process whose name, or whose executable's file name, is this. Never the monitoring process itself.
    Name(String),
    /// One process.
    Pid(u32),
}

/// The processes of some programs. A process that two selectors match belongs to the first; one that descends from
/// two matches belongs to the nearer.
#[derive(Debug)]
pub struct ProcessTree {
    root: PathBuf,
    selectors: Vec<ProcessSelector>,
    /// One for each selector.
    programs: Vec<Program>,
    /// The kernel's count of processes started, when they were last looked for.
    forks: Option<u64>,
    stat: Option<ProcFile>,
    scan: Search,
    children: Search,
    threads: Search,
    ticks: Ticks,
    buffer: Vec<u8>,
}

/// The CPU time of all programs of a tree at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuReading {
    /// `CLOCK_MONOTONIC`.
    pub at: Nanos,
    /// Of all processes, those that ended included.
    pub cpu: CpuTime,
}

impl fmt::Display for ProcessSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProcessSelector::Name(name) => write!(f, "named `{name}`"),
            ProcessSelector::Pid(pid) => write!(f, "with pid {pid}"),
        }
    }
}

impl ProcessTree {
    /// Finds the processes of every selector; one without any is an error.
    pub fn open(selectors: &[ProcessSelector]) -> Result<ProcessTree, MonitorError> {
        ProcessTree::open_at(Path::new("/proc"), selectors)
    }

    /// The same with another directory in place of /proc.
    pub(crate) fn open_at(root: &Path, selectors: &[ProcessSelector]) -> Result<ProcessTree, MonitorError> {
        let mut tree = ProcessTree {
            root: root.to_owned(),
            selectors: selectors.to_vec(),
            programs: selectors.iter().map(|_| Program::default()).collect(),
            forks: None,
            stat: ProcFile::open(&root.join("stat")).ok(),
            scan: Search::default(),
            children: Search::default(),
            threads: Search::default(),
            ticks: Ticks::of_this_kernel(),
            buffer: Vec::new(),
        };
        tree.scan_all();
        for (program, selector) in tree.programs.iter_mut().zip(selectors) {
            let Some(first) = program.members.values().next() else {
                return Err(MonitorError::NoSuchProcess { wanted: selector.to_string() });
            };
            program.name = match selector {
                ProcessSelector::Name(name) => name.as_str().into(),
                ProcessSelector::Pid(_) => {
                    let stat = first.stat.read(&mut tree.buffer).ok().and_then(procfs::pid_stat);
                    stat.map_or_else(Arc::default, |stat| String::from_utf8_lossy(stat.comm).into())
                }
            };
        }
        tree.read_processes();
        tree.read_threads();
        Ok(tree)
    }

    /// CPU time of all programs now, after a fresh search for their processes: for the edges of a measurement window.
    pub fn cpu_reading(&mut self) -> CpuReading {
        self.scan_all();
        let at = sys::now();
        self.read_processes();
        let cpu = self.programs.iter().fold(CpuTime::default(), |sum, program| sum.plus(program.sample().cpu));
        CpuReading { at, cpu }
    }

    /// The total of [`ProcessTree::cpu_reading`], in nanoseconds.
    pub fn cpu_ns(&mut self) -> u64 {
        self.cpu_reading().cpu.total.0
    }

    /// The processes, as last found.
    pub fn pids(&self) -> Vec<u32> {
        self.programs.iter().flat_map(|program| program.members.keys().copied()).collect()
    }

    /// The slow part, to be done before [`ProcessTree::read`]: looks for new processes if the kernel's count of those
    /// it started has moved, and at the threads.
    pub(crate) fn search(&mut self) {
        let forks = self.forks();
        let started = forks.is_none() || forks != self.forks;
        let (children, scan, threads) =
            (started && self.children.due(), started && self.scan.due(), self.threads.due());
        // The children of main threads are cheap to find; those of other threads, and new processes of the same name,
        // take a look at every process there is. Only that one settles the matter.
        if children {
            self.find_children();
        }
        if scan {
            self.scan_all();
            self.forks = forks;
        }
        if threads {
            self.read_threads();
        }
    }

    /// The kernel's count of the processes and threads that it ever started.
    fn forks(&mut self) -> Option<u64> {
        procfs::forks(self.stat.as_ref()?.read(&mut self.buffer).ok()?)
    }

    /// Where its figures come from.
    pub(crate) fn sources(&self, sources: &mut BTreeMap<String, String>) {
        let source = "CPU clock of each process; /proc/PID/stat (user/system split, memory), task/*/schedstat";
        sources.insert("process".to_owned(), source.to_owned());
    }

    /// Reads every program, in the order of the selectors.
    pub(crate) fn read(&mut self) -> Vec<ProgramSample> {
        self.read_processes();
        self.programs.iter().map(Program::sample).collect()
    }

    /// Looks at every process there is.
    fn scan_all(&mut self) {
        let begun = sys::now();
        let tag = |pid, comm: &[u8]| self.member_of(pid).or_else(|| self.selected(pid, comm));
        let table = process_table(&self.root, tag);
        for (pid, index) in with_descendants(&table) {
            self.add(pid, index);
        }
        self.scan.rest(begun);
    }

    /// Looks for children of the processes already known, and for theirs.
    fn find_children(&mut self) {
        let begun = sys::now();
        let mut parents: Vec<(u32, usize)> = Vec::new();
        for (index, program) in self.programs.iter().enumerate() {
            parents.extend(program.members.keys().map(|&pid| (pid, index)));
        }
        while let Some((parent, index)) = parents.pop() {
            let path = self.root.join(format!("{parent}/task/{parent}/children"));
            let Ok(text) = std::fs::read_to_string(path) else { continue };
            for pid in text.split_ascii_whitespace().filter_map(|word| word.parse().ok()) {
                if pid != std::process::id() && self.add(pid, index) {
                    parents.push((pid, index));
                }
            }
        }
        self.children.rest(begun);
    }

    /// Makes a process a member unless it is one already, or is gone again.
    fn add(&mut self, pid: u32, index: usize) -> bool {
        if self.member_of(pid).is_some() {
            return false;
        }
        let Some(member) = Member::open(&self.root, pid, self.ticks, &mut self.buffer) else { return false };
        self.programs[index].members.insert(pid, member);
        true
    }

    fn member_of(&self, pid: u32) -> Option<usize> {
        self.programs.iter().position(|program| program.members.contains_key(&pid))
    }

    /// Which selector matches a process by itself.
    fn selected(&self, pid: u32, comm: &[u8]) -> Option<usize> {
        self.selectors.iter().position(|selector| match selector {
            ProcessSelector::Pid(wanted) => *wanted == pid,
            ProcessSelector::Name(name) => pid != std::process::id() && has_name(&self.root, pid, comm, name),
        })
    }

    fn read_processes(&mut self) {
        for program in &mut self.programs {
            program.read(self.ticks, &mut self.buffer);
        }
    }

    fn read_threads(&mut self) {
        let begun = sys::now();
        for program in &mut self.programs {
            for (pid, member) in &mut program.members {
                member.read_threads(&self.root.join(format!("{pid}/task")));
            }
        }
        self.threads.rest(begun);
    }
}

/// Every process there is: its parent, and what the caller made of its pid and name.
type Table<T> = BTreeMap<u32, (u32, Option<T>)>;

pub(crate) fn process_table<T>(root: &Path, tag: impl Fn(u32, &[u8]) -> Option<T>) -> Table<T> {
    let (mut table, mut buffer) = (BTreeMap::new(), Vec::new());
    for pid in procfs::numeric_entries(root) {
        let Ok(file) = ProcFile::open(&root.join(format!("{pid}/stat"))) else { continue };
        let Some(PidStat { comm, parent, .. }) = file.read(&mut buffer).ok().and_then(procfs::pid_stat) else {
            continue;
        };
        table.insert(pid, (parent, tag(pid, comm)));
    }
    table
}

/// The processes that bear a tag, and those whose nearest ancestor with one passes it on. This process passes on its
/// own tag only, not that of its ancestors: what it starts is not the server unless it was selected.
pub(crate) fn with_descendants<T: Copy>(table: &Table<T>) -> Vec<(u32, T)> {
    let inherited = |mut pid: u32| {
        // The steps are counted because parents that were read at different moments may form a ring.
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

/// Whether a process goes by a name: the kernel's (cut to 15 bytes) or its executable's.
fn has_name(root: &Path, pid: u32, comm: &[u8], name: &str) -> bool {
    let wanted = name.as_bytes();
    if !comm.is_empty() && comm == &wanted[..wanted.len().min(15)] {
        return true;
    }
    let Ok(exe) = std::fs::read_link(root.join(format!("{pid}/exe"))) else { return false };
    let file = exe.file_name().unwrap_or_default().as_encoded_bytes();
    file.strip_suffix(b" (deleted)").unwrap_or(file) == wanted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Fixture, P};

    fn named(name: &str) -> ProcessSelector {
        ProcessSelector::Name(name.to_owned())
    }

    fn open(fixture: &Fixture, selectors: &[ProcessSelector]) -> Result<ProcessTree, MonitorError> {
        ProcessTree::open_at(fixture.root(), selectors)
    }

    #[test]
    fn a_program_is_every_match_and_their_descendants() {
        let fixture = Fixture::new();
        for (pid, parent, comm) in [
            (P + 1, 1, "nginx"),
            (P + 2, P + 1, "worker"),
            (P + 3, P + 2, "helper"),
            (P + 4, 1, "nginx"),
            (P + 5, 1, "sshd"),
            (P + 6, P + 5, "a-name-of-more-"),
            (P + 7, P + 1, "php"),
            (P + 8, P + 7, "php-child"),
        ] {
            fixture.process(pid, parent, comm, [1, 1, 0, 0]);
        }
        let programs = |mut tree: ProcessTree| -> Vec<(String, Vec<u32>)> {
            tree.read().into_iter().map(|program| (program.name.to_string(), program.pids.to_vec())).collect()
        };
        let tree = open(&fixture, &[named("nginx"), named("php"), named("a-name-of-more-than-15")]).unwrap();
        let found = programs(tree);
        assert_eq!(found[0], ("nginx".to_owned(), vec![P + 1, P + 2, P + 3, P + 4]));
        assert_eq!(found[1], ("php".to_owned(), vec![P + 7, P + 8]), "the nearer match has it");
        assert_eq!(found[2].1, [P + 6]);
        let tree = open(&fixture, &[ProcessSelector::Pid(P + 5)]).unwrap();
        assert_eq!(programs(tree), [("sshd".to_owned(), vec![P + 5, P + 6])]);
    }

    #[test]
    fn an_executable_is_found_by_its_file_even_after_an_upgrade() {
        let fixture = Fixture::new();
        fixture.process(P + 1, 1, "MainThread", [0; 4]);
        std::os::unix::fs::symlink("/usr/bin/node (deleted)", fixture.root().join(format!("{}/exe", P + 1))).unwrap();
        assert_eq!(open(&fixture, &[named("node")]).unwrap().pids(), [P + 1]);
        let error = open(&fixture, &[named("nodejs")]).unwrap_err().to_string();
        assert!(error.contains("named `nodejs`") && error.contains("ss -ltnp"), "{error}");
        let error = open(&fixture, &[named("node"), ProcessSelector::Pid(P + 9)]).unwrap_err().to_string();
        assert!(error.contains("with pid 5000009"), "{error}");
    }

    #[test]
    fn parents_in_a_ring_end_the_search() {
        let fixture = Fixture::new();
        fixture.process(P + 1, P + 2, "a", [0; 4]);
        fixture.process(P + 2, P + 1, "b", [0; 4]);
        assert!(open(&fixture, &[named("c")]).is_err());
        assert_eq!(open(&fixture, &[named("a")]).unwrap().pids(), [P + 1, P + 2]);
    }

    #[test]
    fn new_children_are_found_when_something_was_started_and_only_then() {
        let fixture = Fixture::new();
        fixture.process(P + 1, 1, "master", [1, 0, 0, 0]);
        std::fs::write(fixture.root().join("stat"), "").unwrap();
        let mut tree = open(&fixture, &[named("master")]).unwrap();
        (tree.scan.not_before, tree.children.not_before) = (Nanos::MAX, Nanos::ZERO);
        tree.forks = Some(100);
        fixture.process(P + 2, P + 1, "worker", [2, 0, 0, 0]);
        fixture.process(P + 3, P + 2, "helper", [3, 0, 0, 0]);
        fixture.thread(P + 1, P + 1, "children", &format!("{} ", P + 2));
        fixture.thread(P + 2, P + 2, "children", &format!("{} {}", P + 3, P + 4));
        let read = |tree: &mut ProcessTree, forks| {
            std::fs::write(fixture.root().join("stat"), format!("cpu 1 1 1 1\nctxt 1\nprocesses {forks}\n")).unwrap();
            tree.search();
            tree.read()[0].cpu.total.0 / 1_000_000
        };
        assert_eq!(read(&mut tree, 100), 10);
        assert_eq!(read(&mut tree, 102), 60);
        assert_eq!(tree.pids(), [P + 1, P + 2, P + 3], "one of those listed was gone again");
        // A kernel without that file: the process table shows them, when its turn comes.
        fixture.process(P + 5, P + 3, "late", [4, 0, 0, 0]);
        (tree.scan.not_before, tree.children.not_before) = (Nanos::ZERO, Nanos::MAX);
        assert_eq!(read(&mut tree, 103), 100);
        assert_eq!(tree.forks, Some(103));
    }
}
