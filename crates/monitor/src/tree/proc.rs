//! Reads processes from /proc. For every sample, the reader reads the `stat` of each process, whose descriptor stays
//! open, and the CPU clock of the process. Threads are read only as often as [`SearchLimiter`] allows.
//!
//! New processes are looked for when the kernel has started any process or thread since the last search. Children that
//! a main thread has started are cheap to list. A scan of all processes also finds children of other threads, and
//! processes that match a selector. A process may match only a moment after its start, after exec or after it has set
//! its title. So if a process was started before a scan, the scan is repeated once, and further while a selected name
//! has no process yet.

use super::selection::Selection;
use crate::accounts::{Accounts, ProcessReading, Usage};
use crate::procfs::{self, ProcFile, process_table, with_descendants};
use crate::program::CpuTime;
use crate::search::SearchLimiter;
use crate::sys;
use brimful_core::Nanos;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

/// Reads the processes of the watched programs from /proc, and finds new processes of these programs.
#[derive(Debug)]
pub(super) struct ProcReader {
    proc: PathBuf,
    /// The open files of each process that belongs to a program, by pid.
    handles: BTreeMap<u32, Handle>,
    stat: Option<ProcFile>,
    /// The kernel's count of processes and threads ever started, as of the last scan.
    pub forks: Option<u64>,
    /// Whether the scan need not be repeated as long as no process is started. A scan must be repeated if a process was
    /// started before it, or if a process may still set the title that a selector waits for.
    settled: bool,
    /// The time at which the reader last noticed that a process was started (`CLOCK_BOOTTIME`).
    started_at: Nanos,
    /// Rate limit of the scan of all processes.
    pub scan: SearchLimiter,
    /// Rate limit of the search for children of known processes.
    pub children: SearchLimiter,
    threads: SearchLimiter,
    /// Whether this kernel reports run-queue waits and context switches of threads.
    scheduling: bool,
    units: Units,
    buffer: Vec<u8>,
}

/// The open files of one process, and what was read of its threads. A descriptor never refers to another process:
/// reading fails once the process is gone, even if its pid is reused.
#[derive(Debug)]
struct Handle {
    stat: ProcFile,
    threads: HashMap<u32, Thread>,
    /// Run-queue wait of the process's threads that ended. The kernel reports it only for living threads.
    waited: Nanos,
    switches: u64,
}

/// The state of a process at the time of a reading.
#[derive(Debug)]
enum State {
    Alive(ProcessReading),
    /// The process has ended, and its parent has not waited for it yet. The reading is final.
    Ended(ProcessReading),
    Gone,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Thread {
    waited: Nanos,
    switches: u64,
    running: bool,
}

/// The units of the values that the kernel reports.
#[derive(Clone, Copy, Debug)]
struct Units {
    tick_ns: u64,
    page_bytes: u64,
}

impl ProcReader {
    /// Opens the files of the processes that `accounts` already contains. Processes that have ended are removed from
    /// `accounts`. `root` is the directory in which `proc` is mounted.
    pub fn open(root: &Path, accounts: &mut Accounts) -> ProcReader {
        let proc = root.join("proc");
        let mut reader = ProcReader {
            handles: BTreeMap::new(),
            stat: ProcFile::open(&proc.join("stat")).ok(),
            proc,
            forks: None,
            settled: false,
            started_at: Nanos::ZERO,
            scan: SearchLimiter::default(),
            children: SearchLimiter::default(),
            threads: SearchLimiter::default(),
            scheduling: false,
            units: Units::of_this_kernel(),
            buffer: Vec::new(),
        };
        for pid in accounts.pids().collect::<Vec<_>>() {
            match reader.open_handle(pid) {
                Some((handle, _)) => drop(reader.handles.insert(pid, handle)),
                None => accounts.end(pid),
            }
        }
        reader
    }

    /// Looks for new processes, and reads all threads, if these searches are due. They take most of the time of a
    /// sample.
    pub fn search(&mut self, accounts: &mut Accounts, selection: &mut Selection) {
        let forks = self.forks();
        let started = forks.is_none() || forks != self.forks;
        if started {
            self.started_at = sys::now() + sys::suspended_time();
        }
        if started && self.children.is_due() {
            self.find_children(accounts, selection);
        }
        if self.scan.is_due() && (selection.needs_scan() || started || !self.settled) {
            self.scan(accounts, selection);
            self.forks = forks;
            self.settled = !started && !selection.awaits_title(self.started_at, accounts);
        }
        if self.threads.is_due() {
            self.read_threads();
        }
    }

    /// Checks every process of the machine, and adds new processes of the programs to `accounts`.
    pub fn scan(&mut self, accounts: &mut Accounts, selection: &mut Selection) {
        let begun = SearchLimiter::begin();
        let tag = |pid, comm: &[u8]| accounts.program_of(pid).or_else(|| selection.selector_of(pid, comm, accounts));
        let table = process_table(&self.proc, tag);
        for (pid, program) in with_descendants(&table) {
            if accounts.program_of(pid).is_none()
                && let Some((handle, reading)) = self.open_handle(pid)
            {
                accounts.admit(pid, program, &reading);
                self.handles.insert(pid, handle);
            }
        }
        selection.forget();
        self.scan.end(begun);
    }

    /// Reads the resource usage of every process in `accounts`, and updates the totals of the programs.
    pub fn read(&mut self, accounts: &mut Accounts) {
        let ProcReader { handles, units, buffer, .. } = self;
        handles.retain(|&pid, handle| {
            let state = handle.state(pid, *units, buffer);
            if let State::Alive(reading) | State::Ended(reading) = &state {
                accounts.update(pid, reading);
            }
            let alive = matches!(state, State::Alive(_));
            if !alive {
                accounts.end(pid);
            }
            alive
        });
    }

    /// Whether run-queue waits and context switches are available.
    pub fn has_scheduling(&self) -> bool {
        self.scheduling
    }

    /// Description of this source, as it appears in `sources`.
    pub fn source(&self) -> String {
        let threads = match self.scheduling {
            true => "task/*/schedstat and task/*/stat",
            false => "task/*/stat (none of run-queue waits and context switches: this kernel does not tell them)",
        };
        let every = self.threads.interval().to_rounded_string();
        format!("/proc/PID/stat and the CPU clock of each process; its threads, {every} apart at least: {threads}")
    }

    /// The kernel's count of processes and threads ever started.
    fn forks(&mut self) -> Option<u64> {
        procfs::forks(self.stat.as_ref()?.read(&mut self.buffer).ok()?)
    }

    /// Looks for new descendants of the processes in `accounts`, by the lists of the children of main threads.
    fn find_children(&mut self, accounts: &mut Accounts, selection: &Selection) {
        let begun = SearchLimiter::begin();
        let mut parents: Vec<u32> = accounts.pids().collect();
        while let Some(parent) = parents.pop() {
            let path = self.proc.join(format!("{parent}/task/{parent}/children"));
            let Ok(text) = std::fs::read_to_string(path) else { continue };
            for pid in text.split_ascii_whitespace().filter_map(|word| word.parse().ok()) {
                if pid == std::process::id() || accounts.program_of(pid).is_some() {
                    continue;
                }
                let Some((handle, reading)) = self.open_handle(pid) else { continue };
                let Some(program) =
                    selection.selector_of(pid, reading.name(), accounts).or(accounts.program_of(parent))
                else {
                    continue;
                };
                accounts.admit(pid, program, &reading);
                self.handles.insert(pid, handle);
                parents.push(pid);
            }
        }
        self.children.end(begun);
    }

    /// Opens the files of a process; `None` if there is no such process.
    fn open_handle(&mut self, pid: u32) -> Option<(Handle, ProcessReading)> {
        let stat = ProcFile::open(&self.proc.join(format!("{pid}/stat"))).ok()?;
        let mut handle = Handle { stat, threads: HashMap::new(), waited: Nanos::ZERO, switches: 0 };
        self.scheduling |= handle.read_threads(&self.proc.join(format!("{pid}/task")), &mut self.buffer);
        match handle.state(pid, self.units, &mut self.buffer) {
            State::Alive(reading) => Some((handle, reading)),
            State::Ended(_) | State::Gone => None,
        }
    }

    fn read_threads(&mut self) {
        let begun = SearchLimiter::begin();
        for (pid, handle) in &mut self.handles {
            self.scheduling |= handle.read_threads(&self.proc.join(format!("{pid}/task")), &mut self.buffer);
        }
        self.threads.end(begun);
    }
}

impl Handle {
    fn state(&self, pid: u32, units: Units, buffer: &mut Vec<u8>) -> State {
        let Some(stat) = self.stat.read(buffer).ok().and_then(procfs::pid_stat) else { return State::Gone };
        // The parent has waited for the process, so the kernel no longer reports its usage or its parent.
        if stat.threads == 0 {
            return State::Gone;
        }
        // If only the main thread has ended, the process is still alive.
        let ended = matches!(stat.state, b'Z' | b'X') && stat.threads <= 1;
        let user = units.ticks(stat.user);
        let system = units.ticks(stat.system);
        let children_user = units.ticks(stat.children_user);
        let children_system = units.ticks(stat.children_system);
        let total = sys::process_cpu(pid).unwrap_or(user + system);
        let mut comm = [0; 16];
        comm.iter_mut().zip(stat.comm.iter().take(15)).for_each(|(to, from)| *to = *from);
        let reading = ProcessReading {
            comm,
            parent: stat.parent,
            // The start time is rounded up, so a process that started in the clock tick in which monitoring began
            // counts as new.
            started: units.ticks(stat.started.saturating_add(1)),
            own_usage: Usage {
                cpu: CpuTime::split(total, user, system),
                run_queue_wait: self.threads.values().fold(self.waited, |sum, thread| sum + thread.waited),
                switches: self.switches + self.threads.values().map(|thread| thread.switches).sum::<u64>(),
                major_faults: stat.major_faults,
            },
            reaped_usage: Usage {
                cpu: CpuTime { total: children_user + children_system, user: children_user },
                major_faults: stat.children_major_faults,
                ..Usage::default()
            },
            threads: stat.threads,
            running: self.threads.values().filter(|thread| thread.running).count() as u64,
            rss_bytes: stat.rss_pages.saturating_mul(units.page_bytes),
        };
        if ended { State::Ended(reading) } else { State::Alive(reading) }
    }

    /// Reads every thread of the process; `directory` is its directory `task`. Returns true if the kernel reports
    /// run-queue waits and context switches of threads.
    fn read_threads(&mut self, directory: &Path, buffer: &mut Vec<u8>) -> bool {
        let before = std::mem::take(&mut self.threads);
        let mut reported = false;
        for tid in procfs::numeric_entries(directory) {
            let mut read = |name| {
                ProcFile::open(&directory.join(format!("{tid}/{name}"))).ok()?.read(buffer).ok().map(<[u8]>::to_vec)
            };
            let stat = read("stat");
            let running = stat.as_deref().and_then(procfs::pid_stat).is_some_and(|stat| stat.state == b'R');
            let schedstat = read("schedstat").as_deref().and_then(procfs::schedstat);
            // A kernel without scheduling statistics reports zero switches even for a thread that is running.
            reported |= schedstat.is_some_and(|(_, switches)| switches > 0);
            let (waited, switches) = schedstat.unwrap_or_default();
            self.threads.insert(tid, Thread { waited, switches, running });
        }
        // If a thread has ended, or another thread has got its id, its counts are added to those of ended threads.
        for (tid, thread) in before {
            if self.threads.get(&tid).is_none_or(|now| now.switches < thread.switches) {
                self.waited += thread.waited;
                self.switches += thread.switches;
            }
        }
        reported
    }
}

impl Units {
    fn of_this_kernel() -> Units {
        let per_s = rustix::param::clock_ticks_per_second().max(1);
        Units { tick_ns: 1_000_000_000 / per_s, page_bytes: rustix::param::page_size() as u64 }
    }

    fn ticks(self, ticks: u64) -> Nanos {
        Nanos(ticks.saturating_mul(self.tick_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NetNamespace;
    use crate::fixture::{Fixture, PID_OFFSET};
    use crate::tree::ProcessSelector;

    fn watch(fixture: &Fixture, selectors: &[ProcessSelector]) -> (ProcReader, Accounts, Selection) {
        let mut accounts = Accounts::new(Nanos::from_secs(1), selectors.iter().map(ProcessSelector::label));
        let mut reader = ProcReader::open(fixture.system_root(), &mut accounts);
        let mut selection = Selection::new(fixture.system_root(), selectors, &NetNamespace::Own, &[]);
        reader.scan(&mut accounts, &mut selection);
        (reader, accounts, selection)
    }

    #[test]
    fn threads_are_counted_those_that_ended_included() {
        let fixture = Fixture::new();
        fixture.process_started_during_watch(PID_OFFSET + 1, 1, "server", [0; 4]);
        fixture.thread(PID_OFFSET + 1, PID_OFFSET + 1, "schedstat", "1 1000 100\n");
        fixture.thread(
            PID_OFFSET + 1,
            PID_OFFSET + 1,
            "stat",
            "1 (server) R 1 1 1 0 -1 0 0 0 5 6 0 0 0 0 20 0 1 0 9 8 2 0\n",
        );
        fixture.thread(PID_OFFSET + 1, PID_OFFSET + 2, "schedstat", "1 1 20\n");
        let (mut reader, mut accounts, _) = watch(&fixture, &[ProcessSelector::Pid(PID_OFFSET + 1)]);
        let mut read = || {
            reader.read_threads();
            reader.read(&mut accounts);
            let sample = accounts.sample().remove(0);
            (sample.context_switches.unwrap(), sample.run_queue_wait.unwrap().0, sample.running)
        };
        assert_eq!(read(), (120, 1001, 1));
        std::fs::remove_dir_all(fixture.proc_root().join(format!("{}/task/{}", PID_OFFSET + 1, PID_OFFSET + 2)))
            .unwrap();
        fixture.thread(PID_OFFSET + 1, PID_OFFSET + 1, "schedstat", "1 1000 105\n");
        assert_eq!(read(), (125, 1001, 1));
        fixture.thread(PID_OFFSET + 1, PID_OFFSET + 1, "schedstat", "1 2 3\n"); // another thread with the same number
        assert_eq!(read(), (128, 1003, 1));
        fixture.end(PID_OFFSET + 1);
        assert_eq!(read(), (128, 1003, 0));
        assert!(reader.has_scheduling() && reader.source().contains("task/*/schedstat"));
    }

    #[test]
    fn a_kernel_without_scheduler_accounts_tells_nothing_of_waits() {
        let fixture = Fixture::new();
        fixture.process(PID_OFFSET + 1, 1, "server", [0; 4]);
        fixture.thread(PID_OFFSET + 1, PID_OFFSET + 1, "schedstat", "0 0 0\n");
        let (reader, ..) = watch(&fixture, &[ProcessSelector::Pid(PID_OFFSET + 1)]);
        assert!(!reader.has_scheduling() && reader.source().contains("none of run-queue waits"), "{}", reader.source());
    }

    #[test]
    fn new_children_are_found_when_something_was_started_and_only_then() {
        let fixture = Fixture::new();
        fixture.process(PID_OFFSET + 1, 1, "master", [1, 0, 0, 0]);
        std::fs::write(fixture.proc_root().join("stat"), "").unwrap();
        let (mut reader, mut accounts, mut selection) = watch(&fixture, &[ProcessSelector::Name("master".into())]);
        (reader.scan.not_before, reader.children.not_before) = (Nanos::MAX, Nanos::ZERO);
        reader.forks = Some(100);
        fixture.process_started_during_watch(PID_OFFSET + 2, PID_OFFSET + 1, "worker", [2, 0, 0, 0]);
        fixture.process_started_during_watch(PID_OFFSET + 3, PID_OFFSET + 2, "helper", [3, 0, 0, 0]);
        fixture.thread(PID_OFFSET + 1, PID_OFFSET + 1, "children", &format!("{} ", PID_OFFSET + 2));
        fixture.thread(PID_OFFSET + 2, PID_OFFSET + 2, "children", &format!("{} {}", PID_OFFSET + 3, PID_OFFSET + 4));
        let mut read = |reader: &mut ProcReader, forks| {
            std::fs::write(fixture.proc_root().join("stat"), format!("cpu 1 1 1 1\nctxt 1\nprocesses {forks}\n"))
                .unwrap();
            reader.search(&mut accounts, &mut selection);
            reader.read(&mut accounts);
            let sample = accounts.sample().remove(0);
            (sample.cpu.total.0 / 1_000_000, sample.pids.len())
        };
        assert_eq!(read(&mut reader, 100), (0, 1));
        assert_eq!(read(&mut reader, 102), (50, 3), "one of the listed children had already ended");
        // The kernel's lists of children do not contain this process, so only the scan of all processes can find it.
        fixture.process_started_during_watch(PID_OFFSET + 5, PID_OFFSET + 3, "late", [4, 0, 0, 0]);
        (reader.scan.not_before, reader.children.not_before) = (Nanos::ZERO, Nanos::MAX);
        assert_eq!(read(&mut reader, 103), (90, 4));
        assert_eq!(reader.forks, Some(103));
        // This process started before the last scan, but got its name only after that scan, by exec.
        fixture.process_started_during_watch(PID_OFFSET + 6, 1, "master", [5, 0, 0, 0]);
        reader.scan.not_before = Nanos::ZERO;
        assert_eq!(read(&mut reader, 103), (140, 5));
        fixture.process_started_during_watch(PID_OFFSET + 7, 1, "master", [6, 0, 0, 0]);
        reader.scan.not_before = Nanos::ZERO;
        assert_eq!(
            read(&mut reader, 103),
            (140, 5),
            "no scan is due, because no process was started between the last two scans"
        );
    }

    #[test]
    fn a_zombie_has_ended_though_nobody_has_waited_for_it() {
        let fixture = Fixture::new();
        fixture.process(PID_OFFSET + 1, 1, "server", [10, 0, 0, 0]);
        fixture.process_started_during_watch(PID_OFFSET + 2, PID_OFFSET + 1, "server", [4, 0, 0, 0]);
        let (mut reader, mut accounts, mut selection) = watch(&fixture, &[ProcessSelector::Name("server".into())]);
        let mut read = |scan| {
            if scan {
                reader.scan(&mut accounts, &mut selection);
            }
            reader.read(&mut accounts);
            let sample = accounts.sample().remove(0);
            (sample.pids.len(), sample.ended, sample.cpu.total.0 / 1_000_000, sample.major_faults)
        };
        assert_eq!(read(false), (2, 0, 40, 5));
        fixture.stat(PID_OFFSET + 2, PID_OFFSET + 1, "server", 'Z', 1 << 40, [5, 0, 0, 0]);
        assert_eq!(read(false), (1, 1, 50, 5), "the last usage of an ended process counts");
        assert_eq!(read(true), (1, 1, 50, 5), "a scan does not find the ended process again");
        fixture.process(PID_OFFSET + 1, 1, "server", [10, 0, 5, 0]);
        assert_eq!(read(true), (1, 1, 50, 5));
    }

    #[test]
    fn what_was_waited_for_while_it_was_read_belongs_to_its_parent() {
        let fixture = Fixture::new();
        fixture.process(PID_OFFSET + 1, 1, "server", [10, 0, 0, 0]);
        fixture.process_started_during_watch(PID_OFFSET + 2, PID_OFFSET + 1, "server", [4, 0, 0, 0]);
        let (mut reader, mut accounts, _) = watch(&fixture, &[ProcessSelector::Name("server".into())]);
        fixture.reap(PID_OFFSET + 2, "server");
        fixture.process(PID_OFFSET + 1, 1, "server", [10, 0, 4, 0]);
        reader.read(&mut accounts);
        let sample = accounts.sample().remove(0);
        assert_eq!((sample.pids.len(), sample.ended, sample.cpu.total), (1, 1, Nanos::from_millis(40)));
    }

    #[test]
    fn another_process_under_the_same_number_is_not_it() {
        let fixture = Fixture::new();
        fixture.process(PID_OFFSET + 1, 1, "server", [10, 0, 0, 0]);
        let (mut reader, mut accounts, mut selection) = watch(&fixture, &[ProcessSelector::Pid(PID_OFFSET + 1)]);
        fixture.end(PID_OFFSET + 1);
        reader.read(&mut accounts);
        std::fs::remove_dir_all(fixture.proc_root().join((PID_OFFSET + 1).to_string())).unwrap();
        fixture.process_started_during_watch(PID_OFFSET + 1, 1, "other", [70, 0, 0, 0]);
        reader.scan(&mut accounts, &mut selection);
        reader.read(&mut accounts);
        let sample = accounts.sample().remove(0);
        assert_eq!((&*sample.name, sample.pids.len(), sample.cpu.total), ("server", 0, Nanos::ZERO));
    }
}
