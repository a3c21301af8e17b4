//! Finds and reads the processes of programs. A program is a set of processes that were selected by name, pid, port or
//! cgroup, together with all their descendants.
//!
//! `tree/selection.rs` decides which processes are selected, and `accounts.rs` keeps the totals of these processes. A
//! source reads the processes: a walk over the kernel's tasks (`tree/tasks.rs`) where eBPF may be used, otherwise /proc
//! (`tree/proc.rs`). A process stays in its program until it ends, even if its name, port or cgroup changes. If a
//! program has no process, new processes are checked until one is found.

mod cgroup;
mod names;
mod port;
mod proc;
mod selection;
mod selector;
mod tasks;
mod users;

pub use selector::ProcessSelector;

use crate::accounts::Accounts;
use crate::hidden::{hidepid_remark, pid_namespace_hint};
use crate::owner::owners_in;
use crate::program::{CpuTime, Membership, ProgramSample};
use crate::quota::QuotaWatch;
use crate::{MonitorError, NetNamespace, procfs, sys};
use brimful_core::Nanos;
use proc::ProcReader;
use selection::Selection;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use tasks::TaskReader;

/// The processes of the watched programs. A process that two selectors match belongs to the program of the first
/// selector. A process that descends from two matching processes belongs to the program of the nearer ancestor.
#[derive(Debug)]
pub struct ProcessTree {
    root: PathBuf,
    selection: Selection,
    accounts: Accounts,
    source: Source,
    quotas: QuotaWatch,
    memory_bytes: Option<u64>,
    /// Whether /proc hides other users' processes.
    hidden: bool,
}

/// CPU time that all programs together have used until one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuReading {
    /// The time of the reading, by `CLOCK_MONOTONIC`.
    pub at: Nanos,
    /// CPU time of all processes, including processes that ended.
    pub cpu: CpuTime,
}

/// The source from which processes are read.
#[derive(Debug)]
enum Source {
    Tasks(TaskReader),
    /// /proc, and the reason why eBPF is not used.
    Proc(ProcReader, String),
}

impl ProcessTree {
    /// Finds the processes of every selector. Returns an error if a selector has no process. If a process of a selected
    /// name listens on one of `ports`, processes of that name that belong to other users are excluded.
    pub fn open(selectors: &[ProcessSelector], ports: &[u16]) -> Result<ProcessTree, MonitorError> {
        let tree = ProcessTree::watch(Path::new("/"), selectors, ports, &NetNamespace::Own, false)?;
        tree.require_all()?;
        Ok(tree)
    }

    /// Finds the processes of every selector. If a selector has no process, the tree waits for one. `root` contains
    /// /proc and /sys; if `ebpf` is true, it must be `/`. `netns` is the network namespace of the ports.
    pub(crate) fn watch(
        root: &Path,
        selectors: &[ProcessSelector],
        ports: &[u16],
        netns: &NetNamespace,
        ebpf: bool,
    ) -> Result<ProcessTree, MonitorError> {
        let proc = root.join("proc");
        fs::read_dir(&proc).map_err(|source| MonitorError::Proc { path: proc.clone(), source })?;
        let mut accounts =
            Accounts::new(sys::now() + sys::suspended_time(), selectors.iter().map(ProcessSelector::label));
        let tasks = if ebpf { TaskReader::open() } else { Err("eBPF is turned off".to_owned()) };
        let source = match tasks {
            Ok(reader) => Source::Tasks(reader),
            Err(why) => Source::Proc(ProcReader::open(root, &mut accounts), why),
        };
        let mut tree = ProcessTree {
            root: root.to_owned(),
            selection: Selection::new(root, selectors, netns, ports),
            quotas: QuotaWatch::new(root, selectors.len()),
            accounts,
            source,
            hidden: hidepid_remark(root).is_some(),
            memory_bytes: fs::read(proc.join("meminfo")).ok().as_deref().and_then(procfs::memory_total),
        };
        tree.cpu_reading();
        Ok(tree)
    }

    /// Searches for processes, and reads the CPU time of all programs. Callers do this at the start and at the end of a
    /// measurement window.
    pub fn cpu_reading(&mut self) -> CpuReading {
        self.selection.look_up(&self.accounts, true);
        if let Source::Proc(reader, _) = &mut self.source {
            reader.scan(&mut self.accounts, &mut self.selection);
        }
        let at = sys::now();
        let programs = self.read();
        CpuReading { at, cpu: programs.iter().fold(CpuTime::default(), |sum, program| sum.plus(program.cpu)) }
    }

    /// Like [`ProcessTree::cpu_reading`], but returns only the total CPU time, in nanoseconds.
    pub fn cpu_ns(&mut self) -> u64 {
        self.cpu_reading().cpu.total.0
    }

    /// Pids of the processes that the last search found.
    pub fn pids(&self) -> Vec<u32> {
        self.accounts.pids().collect()
    }

    /// Returns an error if a process belongs to another user and is connected with the server only by its name. To move
    /// such a process could disturb that user.
    pub(crate) fn require_movable(&self) -> Result<(), MonitorError> {
        match self.selection.foreign(&self.accounts).next() {
            Some((name, pid, user)) => Err(MonitorError::OtherUser { name: name.to_owned(), pid, user }),
            None => Ok(()),
        }
    }

    /// Returns an error if a selector has no process.
    pub(crate) fn require_all(&self) -> Result<(), MonitorError> {
        let Some((selector, _)) = self.selection.without_processes(&self.accounts, Nanos::ZERO).next() else {
            return Ok(());
        };
        if let ProcessSelector::Port(port) = selector {
            owners_in(*port, self.selection.netns())?; // the error of this call says why
        }
        let wanted = selector.to_string();
        Err(match hidepid_remark(&self.root) {
            Some(why) => MonitorError::UnseenProcess { wanted, why },
            None => MonitorError::NoSuchProcess { wanted, hint: pid_namespace_hint(&self.root) },
        })
    }

    /// Looks for processes, if a search is due. A search is slow, so it should be done before [`ProcessTree::read`].
    pub(crate) fn search(&mut self) {
        self.selection.look_up(&self.accounts, false);
        if let Source::Proc(reader, _) = &mut self.source {
            reader.search(&mut self.accounts, &mut self.selection);
        }
    }

    /// Reads every program, in the order of the selectors.
    pub(crate) fn read(&mut self) -> Vec<ProgramSample> {
        let ProcessTree { root, selection, accounts, source, quotas, memory_bytes, hidden } = self;
        match source {
            Source::Tasks(reader) => match reader.read(accounts, selection) {
                Ok(()) => selection.forget(),
                Err(error) => {
                    let mut reader = ProcReader::open(root, accounts);
                    reader.read(accounts);
                    *source = Source::Proc(reader, format!("eBPF cannot walk over the threads any more: {error}"));
                }
            },
            Source::Proc(reader, _) => reader.read(accounts),
        }
        let mut samples = accounts.sample();
        for (index, sample) in samples.iter_mut().enumerate() {
            sample.memory_bytes = *memory_bytes;
            sample.quotas = quotas.read(index, &sample.pids);
            sample.membership = selection.membership(index, accounts);
            if *hidden && sample.pids.is_empty() && !accounts.was_found(index) {
                sample.membership = Membership::Hidden;
            }
            match source {
                Source::Tasks(reader) if !reader.has_run_queue_waits() => sample.run_queue_wait = None,
                Source::Proc(reader, _) if !reader.has_scheduling() => {
                    sample.run_queue_wait = None;
                    sample.context_switches = None;
                }
                _ => {}
            }
        }
        samples
    }

    /// Adds to `sources` the source of the processes, and the selectors that still have no process.
    pub(crate) fn sources(&self, sources: &mut BTreeMap<String, String>) {
        let (source, every) = match &self.source {
            Source::Tasks(_) => (TaskReader::SOURCE.to_owned(), Nanos::ZERO),
            Source::Proc(reader, why) => (format!("{} ({why})", reader.source()), reader.scan.interval()),
        };
        let absent: Vec<String> =
            self.selection.without_processes(&self.accounts, every).map(|(_, text)| text).collect();
        let hidden = if absent.is_empty() { None } else { hidepid_remark(&self.root) };
        let alive = self.accounts.pids().next().map(|_| source);
        let remarks = self.selection.remarks(&self.accounts);
        let parts: Vec<String> = alive.into_iter().chain(remarks).chain(absent).chain(hidden).collect();
        sources.insert("process".to_owned(), parts.join("; "));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Fixture, PID_OFFSET};

    fn named(name: &str) -> ProcessSelector {
        ProcessSelector::Name(name.to_owned())
    }

    fn watch(fixture: &Fixture, selectors: &[ProcessSelector]) -> ProcessTree {
        ProcessTree::watch(fixture.system_root(), selectors, &[], &NetNamespace::Own, false).unwrap()
    }

    fn source(tree: &ProcessTree) -> String {
        let mut sources = BTreeMap::new();
        tree.sources(&mut sources);
        sources.remove("process").unwrap()
    }

    #[test]
    fn a_program_is_every_match_and_their_descendants() {
        let fixture = Fixture::new();
        for (pid, parent, comm) in [
            (PID_OFFSET + 1, 1, "nginx"),
            (PID_OFFSET + 2, PID_OFFSET + 1, "worker"),
            (PID_OFFSET + 3, PID_OFFSET + 2, "helper"),
            (PID_OFFSET + 4, 1, "nginx"),
            (PID_OFFSET + 5, 1, "sshd"),
            (PID_OFFSET + 6, PID_OFFSET + 5, "a-name-of-more-"),
            (PID_OFFSET + 7, PID_OFFSET + 1, "php"),
            (PID_OFFSET + 8, PID_OFFSET + 7, "php-child"),
        ] {
            fixture.process(pid, parent, comm, [1, 1, 0, 0]);
        }
        fixture.executable(PID_OFFSET + 6, "/opt/a-name-of-more-than-15");
        let programs = |mut tree: ProcessTree| -> Vec<(String, Vec<u32>)> {
            tree.read().into_iter().map(|program| (program.name.to_string(), program.pids.to_vec())).collect()
        };
        let tree = watch(&fixture, &[named("nginx"), named("php"), named("a-name-of-more-than-15")]);
        let found = programs(tree);
        assert_eq!(
            found[0],
            ("nginx".to_owned(), vec![PID_OFFSET + 1, PID_OFFSET + 2, PID_OFFSET + 3, PID_OFFSET + 4])
        );
        assert_eq!(
            found[1],
            ("php".to_owned(), vec![PID_OFFSET + 7, PID_OFFSET + 8]),
            "the process belongs to the program of the nearer match"
        );
        assert_eq!(found[2].1, [PID_OFFSET + 6]);
        let tree = watch(&fixture, &[ProcessSelector::Pid(PID_OFFSET + 5)]);
        assert_eq!(programs(tree), [("sshd".to_owned(), vec![PID_OFFSET + 5, PID_OFFSET + 6])]);
    }

    #[test]
    fn an_executable_is_found_by_its_file_even_after_an_upgrade() {
        let fixture = Fixture::new();
        fixture.process(PID_OFFSET + 1, 1, "MainThread", [0; 4]);
        fixture.executable(PID_OFFSET + 1, "/usr/bin/node (deleted)");
        let tree = watch(&fixture, &[named("node")]);
        assert_eq!(tree.pids(), [PID_OFFSET + 1]);
        assert!(tree.require_all().is_ok());
        for selectors in [vec![named("nodejs")], vec![named("node"), named("nodejs")]] {
            let error = watch(&fixture, &selectors).require_all().unwrap_err().to_string();
            assert!(error.contains("named `nodejs`") && error.contains("ss -ltnp"), "{error}");
        }
    }

    #[test]
    fn names_that_begin_with_the_same_15_letters_are_told_apart() {
        let fixture = Fixture::new();
        for (pid, comm, executable, arguments) in [
            (PID_OFFSET + 1, "verylongservern", "/opt/verylongservername-worker", "verylongservername-worker\0"),
            (PID_OFFSET + 2, "verylongservern", "/opt/verylongservername-master (deleted)", "/opt/x\0"),
            (PID_OFFSET + 3, "verylongscriptn", "/usr/bin/python3.11", "python3\0/opt/verylongscriptname-app\0-x\0"),
            (PID_OFFSET + 4, "gunicorn", "/usr/bin/python3.11", "/usr/bin/python3\0/usr/bin/gunicorn\0app:app\0"),
            (PID_OFFSET + 5, "nginx", "/usr/sbin/nginx", "nginx: worker process"),
            (PID_OFFSET + 6, "verylongservern", "", "verylongservername-title: worker"),
            (PID_OFFSET + 7, "tail", "/usr/bin/tail", "tail\0/var/log/verylongservername-worker\0"),
        ] {
            fixture.process(pid, 1, comm, [0; 4]);
            if !executable.is_empty() {
                fixture.executable(pid, executable);
            }
            fixture.command_line(pid, arguments);
        }
        for (name, expected) in [
            ("verylongservername-worker", vec![PID_OFFSET + 1]),
            ("verylongservername-master", vec![PID_OFFSET + 2]),
            ("verylongservername-nobody", vec![]),
            ("verylongservername", vec![]),
            ("verylongservern", vec![PID_OFFSET + 1, PID_OFFSET + 2, PID_OFFSET + 6]),
            ("verylongscriptname-app", vec![PID_OFFSET + 3]),
            ("verylongscriptname-ape", vec![]),
            ("verylongservername-title", vec![PID_OFFSET + 6]),
            ("gunicorn", vec![PID_OFFSET + 4]),
            ("python3.11", vec![PID_OFFSET + 3, PID_OFFSET + 4]),
            ("nginx", vec![PID_OFFSET + 5]),
        ] {
            assert_eq!(watch(&fixture, &[named(name)]).pids(), expected, "{name}");
        }
        let both = [named("verylongservername-worker"), named("verylongservername-master")];
        assert_eq!(watch(&fixture, &both).read().iter().map(|program| program.pids.len()).collect::<Vec<_>>(), [1, 1]);
    }

    #[test]
    fn parents_in_a_ring_end_the_search() {
        let fixture = Fixture::new();
        fixture.process(PID_OFFSET + 1, PID_OFFSET + 2, "a", [0; 4]);
        fixture.process(PID_OFFSET + 2, PID_OFFSET + 1, "b", [0; 4]);
        assert!(watch(&fixture, &[named("c")]).pids().is_empty());
        assert_eq!(watch(&fixture, &[named("a")]).pids(), [PID_OFFSET + 1, PID_OFFSET + 2]);
    }

    #[test]
    fn a_program_without_processes_waits_and_says_so() {
        let fixture = Fixture::new();
        fixture.process(PID_OFFSET + 1, 1, "one", [10, 0, 0, 0]);
        let selectors =
            [named("one"), named("two"), ProcessSelector::Pid(PID_OFFSET + 9), ProcessSelector::Cgroup("web".into())];
        let mut tree = watch(&fixture, &selectors);
        let says = source(&tree);
        assert!(says.starts_with("/proc/PID/stat") && says.contains("eBPF is turned off"), "{says}");
        assert!(says.contains("; waiting: no process named `two` is running yet (looked for at most every "), "{says}");
        assert!(says.contains("no process with pid 5000009 is running yet"), "{says}");
        assert!(says.contains("no process in cgroup web is running yet: there is no such cgroup"), "{says}");
        let names: Vec<String> = tree.read().iter().map(|program| program.name.to_string()).collect();
        assert_eq!(names, ["one", "two", "5000009", "web"]);

        fixture.end(PID_OFFSET + 1);
        fixture.process_started_during_watch(PID_OFFSET + 2, 1, "two", [20, 0, 0, 0]);
        fixture.process(PID_OFFSET + 9, 1, "nine", [30, 0, 0, 0]);
        let cgroup = fixture.system_root().join("sys/fs/cgroup/web");
        std::fs::create_dir_all(&cgroup).unwrap();
        fixture.process_started_during_watch(PID_OFFSET + 3, 1, "web", [40, 0, 0, 0]);
        fixture.process_started_during_watch(PID_OFFSET + 4, PID_OFFSET + 3, "cgi", [50, 0, 0, 0]);
        std::fs::write(cgroup.join("cgroup.procs"), format!("{}\n", PID_OFFSET + 3)).unwrap();
        tree.cpu_ns();
        let figures: Vec<(String, usize, u64)> = tree
            .read()
            .iter()
            .map(|program| (program.name.to_string(), program.pids.len(), program.cpu.total.0 / 1_000_000))
            .collect();
        let figure = |name: &str, processes, ms| (name.to_owned(), processes, ms);
        // CPU time from before monitoring began is not counted, so `nine` has none.
        assert_eq!(figures, [figure("one", 0, 0), figure("two", 1, 200), figure("nine", 1, 0), figure("web", 2, 900)]);
        let says = source(&tree);
        assert!(says.contains("waiting: the last process named `one` has ended (looked for at most every"), "{says}");
        assert_eq!(says.matches("waiting").count(), 1, "{says}");
        fixture.end(PID_OFFSET + 9);
        tree.cpu_ns();
        assert!(source(&tree).ends_with("; the process with pid 5000009 has ended"), "{}", source(&tree));
    }

    #[test]
    fn what_may_be_hidden_is_said_where_somebody_is_missing() {
        let fixture = Fixture::new();
        std::fs::create_dir(fixture.proc_root().join("self")).unwrap();
        let mounts = "22 1 0:20 / /proc rw - proc proc rw,hidepid=2\n";
        std::fs::write(fixture.proc_root().join("self/mountinfo"), mounts).unwrap();
        let says = source(&watch(&fixture, &[named("nginx")]));
        assert!(says.starts_with("waiting: no process named `nginx`") && says.contains("hidepid=2"), "{says}");
        assert_eq!(watch(&fixture, &[named("nginx")]).read()[0].membership, Membership::Hidden);
        fixture.process(PID_OFFSET + 1, 1, "nginx", [0; 4]);
        assert!(!source(&watch(&fixture, &[named("nginx")])).contains("hidepid"));
        assert!(
            ProcessTree::watch(&fixture.system_root().join("nowhere"), &[], &[], &NetNamespace::Own, false).is_err()
        );
    }
}
