//! Reads processes by an eBPF program that walks over the kernel's tasks. One run of the program (a pass) reports every
//! thread of the machine, so no search is needed and all values are as old as the sample.
//!
//! The scheduler updates a thread's CPU time when the thread leaves its CPU, and at each tick. So for a process with a
//! thread that runs or is ready, the CPU clock of the process is read, which is exact. All other values are always
//! exact.

use super::selection::Selection;
use crate::accounts::{Accounts, ProcessReading, Usage};
use crate::ebpf::{TaskIterator, TaskRecord};
use crate::procfs::{Table, with_descendants};
use crate::program::CpuTime;
use crate::sys;
use brimful_core::Nanos;
use std::{fmt, io, mem};

/// Reads all processes of the machine by an eBPF program, and updates the programs from them.
pub(super) struct TaskReader {
    iterator: TaskIterator,
    /// All threads, as the last run of the eBPF program reported them.
    records: Vec<TaskRecord>,
    /// All processes, by pid, as of the last run of the eBPF program.
    processes: Vec<Process>,
    members: Vec<Member>,
    /// The threads of all processes that belong to a program, by thread id, as of the last run of the eBPF program.
    threads: Vec<Thread>,
    /// The processes as of the previous run of the eBPF program. The list is kept to reuse its memory.
    former_processes: Vec<Process>,
    former_threads: Vec<Thread>,
    /// Indices of the records of processes that have ended.
    ended: Vec<usize>,
    page_bytes: u64,
}

/// A process, as of the last run of the eBPF program, with values that are kept for the next run. Most processes belong
/// to no program, so the values that only programs need are in [`Member`].
#[derive(Clone, Copy, Debug)]
struct Process {
    pid: u32,
    parent: u32,
    started: Nanos,
    comm: [u8; 16],
    /// Index in `records` of the record of the process's main thread.
    record: usize,
    program: Option<usize>,
    /// Whether the process is new, or has changed its name.
    new: bool,
    /// Run-queue wait of the process's threads that ended. The kernel does not sum it.
    waited: Nanos,
    /// Index of the process in the list of members; `None` if it belongs to no program.
    member: Option<usize>,
}

/// A process that belongs to a program, with values of one run of the eBPF program.
#[derive(Clone, Copy, Debug)]
struct Member {
    process: usize,
    reading: ProcessReading,
    /// CPU time in user mode, measured by the kernel's clock ticks.
    user: Nanos,
    system: Nanos,
}

/// A thread of a process that belongs to a program. Id and start time together identify a thread, because ids are
/// reused.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Thread {
    tid: u32,
    tgid: u32,
    started: Nanos,
    waited: Nanos,
}

impl fmt::Debug for TaskReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskReader").field("processes", &self.processes.len()).finish_non_exhaustive()
    }
}

impl TaskReader {
    /// Description of this source, as it appears in `sources`.
    pub const SOURCE: &str = "eBPF: a walk over all threads; CPU clock of processes that run";

    /// Opens the reader. An error states why eBPF cannot be used, and how to enable it.
    pub fn open() -> Result<TaskReader, String> {
        let mut reader = TaskReader {
            iterator: TaskIterator::open().map_err(|error| error.to_string())?,
            records: Vec::new(),
            processes: Vec::new(),
            members: Vec::new(),
            threads: Vec::new(),
            former_processes: Vec::new(),
            former_threads: Vec::new(),
            ended: Vec::new(),
            page_bytes: rustix::param::page_size() as u64,
        };
        reader
            .iterator
            .read(&mut reader.records)
            .map_err(|error| format!("eBPF cannot walk over the threads: {error}"))?;
        // If the records do not contain this process under its own pid, the eBPF program does not work on this host.
        let own = reader.records.iter().find(|record| record.pid == std::process::id());
        match own.and_then(|own| own.process.as_ref()?.rss_pages) {
            Some(_) => Ok(reader),
            None => Err("eBPF reports no processes here; please report this with `uname -a`".into()),
        }
    }

    /// Reads the resource usage of every process, and updates the totals of the programs in `accounts`. New processes
    /// are added, and ended processes are removed.
    pub fn read(&mut self, accounts: &mut Accounts, selection: &Selection) -> io::Result<()> {
        self.iterator.read(&mut self.records)?;
        if self.recognise(accounts, selection) {
            self.enlist();
        }
        self.add_up();
        self.settle_ended_threads();
        for Member { process, reading, user, system } in &mut self.members {
            let Process { pid, program: Some(program), waited, .. } = self.processes[*process] else { continue };
            let clock = if reading.running > 0 { sys::process_cpu(pid) } else { None };
            let total = reading.own_usage.cpu.total.max(clock.unwrap_or_default());
            reading.own_usage.cpu = CpuTime::split(total, *user, *system);
            reading.own_usage.run_queue_wait += waited;
            if !accounts.update(pid, reading) {
                accounts.admit(pid, program, reading);
            }
        }
        Ok(())
    }

    /// Whether run-queue waits are available.
    pub fn has_run_queue_waits(&self) -> bool {
        self.records.first().is_some_and(|record| record.waited.is_some())
    }

    /// Transfers the state of the processes from the previous run of the eBPF program to this run. Returns true if
    /// there may be new processes of a program.
    fn recognise(&mut self, accounts: &mut Accounts, selection: &Selection) -> bool {
        mem::swap(&mut self.processes, &mut self.former_processes);
        self.processes.clear();
        for (index, record) in self.records.iter().enumerate() {
            let Some(process) = &record.process else { continue };
            // The parent has waited for the process, so the parent's reaped counters include its usage.
            if process.threads == 0 {
                continue;
            }
            // If only the main thread has ended, the process is still alive.
            if record.ended && process.threads <= 1 {
                self.ended.push(index);
                continue;
            }
            self.processes.push(Process {
                pid: record.pid,
                parent: record.parent,
                started: record.started,
                comm: record.comm,
                record: index,
                program: None,
                new: true,
                waited: Nanos::ZERO,
                member: None,
            });
        }
        self.processes.sort_unstable_by_key(|process| process.pid);
        for record in self.ended.drain(..).map(|index| &self.records[index]) {
            let known = index_of(&self.former_processes, record.pid);
            let same = known.is_some_and(|index| self.former_processes[index].started == record.started);
            // The parent has not waited for the process yet, so its final counters are still available.
            if let Some(reading) = Member::last(record, self.page_bytes).filter(|_| same) {
                accounts.update(record.pid, &reading);
            }
        }
        let mut former = self.former_processes.iter().peekable();
        for process in &mut self.processes {
            while let Some(gone) = former.next_if(|former| former.pid < process.pid) {
                accounts.end(gone.pid);
            }
            let Some(before) = former.next_if(|former| former.pid == process.pid) else { continue };
            if before.started == process.started {
                (process.program, process.waited) = (before.program, before.waited);
                process.new = before.comm != process.comm;
            } else {
                accounts.end(before.pid);
            }
        }
        former.for_each(|gone| accounts.end(gone.pid));

        let mut new = false;
        let of_interest = |process: &&mut Process| {
            process.new
                || selection.needs_scan()
                || process.program.is_none()
                    && (selection.may_be_executing(process.started)
                        || selection.awaits_title(process.started, accounts))
        };
        for process in self.processes.iter_mut().filter(of_interest) {
            let name = process.comm.split(|&byte| byte == 0).next().unwrap_or_default();
            process.program = process.program.or_else(|| selection.selector_of(process.pid, name, accounts));
            new = true;
        }
        new
    }

    /// Adds the descendants of a program's processes to the program.
    fn enlist(&mut self) {
        let entry = |process: &Process| (process.pid, (process.parent, process.program));
        let table: Table<usize> = self.processes.iter().map(entry).collect();
        for (pid, program) in with_descendants(&table) {
            if let Some(index) = index_of(&self.processes, pid) {
                self.processes[index].program = Some(program);
            }
        }
    }

    /// For each process that belongs to a program, sums the usage of its threads, including threads that ended.
    fn add_up(&mut self) {
        self.members.clear();
        for (index, process) in self.processes.iter_mut().enumerate().filter(|(_, process)| process.program.is_some()) {
            let Some(member) = Member::new(index, &self.records[process.record], self.page_bytes) else { continue };
            process.member = Some(self.members.len());
            self.members.push(member);
        }
        mem::swap(&mut self.threads, &mut self.former_threads);
        self.threads.clear();
        let mut last = 0;
        for record in &self.records {
            // The threads of a process are usually next to each other, so the process of the previous record is tried
            // first.
            let near = self.processes.get(last).filter(|process| process.pid == record.tgid).map(|_| last);
            let Some(index) = near.or_else(|| index_of(&self.processes, record.tgid)) else { continue };
            last = index;
            let Some(member) = self.processes[index].member else { continue };
            let waited = self.members[member].add(record);
            self.threads.push(Thread { tid: record.pid, tgid: record.tgid, started: record.started, waited });
        }
        self.threads.sort_unstable_by_key(|thread| thread.tid);
    }

    /// If a thread has ended but its process is alive, adds the thread's run-queue wait to that of the process.
    fn settle_ended_threads(&mut self) {
        let mut now = self.threads.iter().peekable();
        for thread in &self.former_threads {
            while now.next_if(|living| living.tid < thread.tid).is_some() {}
            if now.peek().is_some_and(|living| living.tid == thread.tid && living.started == thread.started) {
                continue;
            }
            if let Some(index) = index_of(&self.processes, thread.tgid)
                && self.processes[index].started <= thread.started
            {
                self.processes[index].waited += thread.waited;
            }
        }
    }
}

impl Member {
    /// Creates a member from the record of its main thread. It contains the usage of ended threads only.
    fn new(process: usize, record: &TaskRecord, page_bytes: u64) -> Option<Member> {
        let process_record = record.process.as_ref()?;
        let reading = ProcessReading {
            comm: record.comm,
            parent: record.parent,
            started: record.started,
            own_usage: Usage {
                cpu: CpuTime { total: process_record.ended.ran, user: Nanos::ZERO },
                run_queue_wait: Nanos::ZERO,
                switches: process_record.ended.switches,
                major_faults: process_record.ended.major_faults,
            },
            reaped_usage: Usage {
                cpu: CpuTime {
                    total: process_record.children_user + process_record.children_system,
                    user: process_record.children_user,
                },
                major_faults: process_record.children_major_faults,
                ..Usage::default()
            },
            threads: process_record.threads,
            running: 0,
            rss_bytes: process_record.rss_pages.unwrap_or_default().saturating_mul(page_bytes),
        };
        Some(Member { process, reading, user: process_record.ended.user, system: process_record.ended.system })
    }

    /// The final reading of a process that has ended, from the record of its main thread.
    fn last(record: &TaskRecord, page_bytes: u64) -> Option<ProcessReading> {
        let mut member = Member::new(0, record, page_bytes)?;
        member.add(record);
        member.reading.own_usage.cpu = CpuTime::split(member.reading.own_usage.cpu.total, member.user, member.system);
        Some(member.reading)
    }

    /// Adds the usage of a living thread, and returns the thread's run-queue wait.
    fn add(&mut self, thread: &TaskRecord) -> Nanos {
        let waited = thread.waited.unwrap_or_default();
        let Member { reading, user, system, .. } = self;
        reading.own_usage.cpu.total += thread.own.ran;
        reading.own_usage.run_queue_wait += waited;
        reading.own_usage.switches += thread.own.switches;
        reading.own_usage.major_faults += thread.own.major_faults;
        reading.running += u64::from(thread.runnable);
        *user += thread.own.user;
        *system += thread.own.system;
        waited
    }
}

fn index_of(processes: &[Process], pid: u32) -> Option<usize> {
    processes.binary_search_by_key(&pid, |process| process.pid).ok()
}
