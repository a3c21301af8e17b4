//! Processes by an eBPF program that walks over the kernel's tasks: one pass tells of every thread of the machine, so there is nothing
//! to look for and nothing is older than the sample.
//!
//! The scheduler brings a thread's CPU time up to date when it leaves its CPU and at each tick. So a process with a thread
//! that runs or is ready is asked by its CPU clock, which is exact; all others' figures are exact as they are.

use super::selection::Selection;
use super::table::{Table, with_descendants};
use crate::ebpf::{TaskIterator, TaskRecord};
use crate::program::{Accounts, CpuTime, Facts, Usage};
use crate::sys;
use brimful_core::Nanos;
use std::io;

/// Reads all processes.
pub(super) struct TaskReader {
    iterator: TaskIterator,
    records: Vec<TaskRecord>,
    /// The records by id: they come as the kernel has them.
    order: Vec<usize>,
    /// All processes of the last pass, by pid.
    processes: Vec<Known>,
    /// Those of the pass before: their memory is used again.
    former: Vec<Known>,
    /// The threads of members in the last pass, by id.
    threads: Vec<Thread>,
    page_bytes: u64,
}

/// A process, over all passes that find it.
#[derive(Clone, Copy, Debug)]
struct Known {
    pid: u32,
    program: Option<usize>,
    /// New, or under another name than before.
    new: bool,
    /// Waits of its threads that ended: the kernel adds up none.
    waited: Nanos,
    facts: Facts,
    /// By the kernel's ticks.
    user: Nanos,
    system: Nanos,
}

/// A thread of a member. Numbers are given out again, but not with the same start.
#[derive(Clone, Copy, Debug)]
struct Thread {
    tid: u32,
    tgid: u32,
    started: Nanos,
    waited: Nanos,
}

impl std::fmt::Debug for TaskReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TaskReader").field("processes", &self.processes.len()).finish_non_exhaustive()
    }
}

impl TaskReader {
    pub const SOURCE: &str = "eBPF: a walk over all threads; CPU clock of processes that run";

    /// An error says why this source cannot be used, and what would bring it.
    pub fn open() -> Result<TaskReader, String> {
        let mut reader = TaskReader {
            iterator: TaskIterator::open().map_err(|error| error.to_string())?,
            records: Vec::new(),
            order: Vec::new(),
            processes: Vec::new(),
            former: Vec::new(),
            threads: Vec::new(),
            page_bytes: rustix::param::page_size() as u64,
        };
        reader
            .iterator
            .read(&mut reader.records)
            .map_err(|error| format!("eBPF cannot walk over the threads: {error}"))?;
        // The proof that it sees what is to be seen here, and by the same numbers.
        let own = reader.records.iter().find(|record| record.pid == std::process::id());
        match own.and_then(|own| own.process.as_ref()?.rss_pages) {
            Some(_) => Ok(reader),
            None => Err("eBPF does not tell of processes here; please report this with `uname -a`".into()),
        }
    }

    /// What every process has used by now. New ones come into the accounts and those that ended leave them.
    pub fn read(&mut self, accounts: &mut Accounts, selection: &Selection) -> io::Result<()> {
        self.iterator.read(&mut self.records)?;
        self.order.clear();
        self.order.extend(0..self.records.len());
        self.order.sort_unstable_by_key(|&index| self.records[index].pid);
        if self.recognise(accounts, selection) {
            self.enlist();
        }
        self.settle_ended_threads();
        self.add_up();
        for known in &mut self.processes {
            if let Some(program) = known.program {
                let facts = &mut known.facts;
                let clock = if facts.running > 0 { sys::process_cpu(known.pid) } else { None };
                let total = facts.own.cpu.total.max(clock.unwrap_or_default());
                facts.own.cpu = CpuTime::split(total, known.user, known.system);
                facts.own.waited += known.waited;
                if !accounts.update(known.pid, facts) {
                    accounts.admit(known.pid, program, facts);
                }
            }
        }
        Ok(())
    }

    /// Whether run-queue waits are known.
    pub fn tells_waits(&self) -> bool {
        self.records.first().is_some_and(|record| record.queue.is_some())
    }

    /// Tells the processes of this pass from those of the last. True if there may be new members.
    fn recognise(&mut self, accounts: &mut Accounts, selection: &Selection) -> bool {
        std::mem::swap(&mut self.processes, &mut self.former);
        self.processes.clear();
        let mut former = self.former.iter().copied().peekable();
        let mut end = |known: Known| {
            if known.program.is_some() {
                accounts.end(known.pid);
            }
        };
        for record in self.order.iter().map(|&index| &self.records[index]) {
            let Some(process) = &record.process else { continue };
            // Of a process whose main thread alone has ended, others go on.
            if record.ended && process.threads <= 1 {
                continue;
            }
            while let Some(gone) = former.next_if(|known| known.pid < record.pid) {
                end(gone);
            }
            let same = former.next_if(|known| known.pid == record.pid).and_then(|known| {
                if known.facts.started == record.started {
                    return Some(known);
                }
                end(known);
                None
            });
            self.processes.push(Known {
                pid: record.pid,
                program: same.and_then(|known| known.program),
                new: same.is_none_or(|known| known.facts.comm != record.comm),
                waited: same.map_or(Nanos::ZERO, |known| known.waited),
                facts: Facts {
                    comm: record.comm,
                    parent: record.parent,
                    started: record.started,
                    own: Usage {
                        cpu: CpuTime { total: process.ended.ran, user: Nanos::ZERO },
                        waited: Nanos::ZERO,
                        switches: process.ended.voluntary + process.ended.involuntary,
                        major_faults: process.ended.major_faults,
                    },
                    reaped: Usage {
                        cpu: CpuTime {
                            total: process.children_user + process.children_system,
                            user: process.children_user,
                        },
                        major_faults: process.children_major_faults,
                        ..Usage::default()
                    },
                    threads: process.threads,
                    running: 0,
                    rss_bytes: process.rss_pages.unwrap_or_default().saturating_mul(self.page_bytes),
                },
                user: process.ended.user,
                system: process.ended.system,
            });
        }
        former.for_each(end);
        let mut new = false;
        for known in self.processes.iter_mut().filter(|known| known.new || selection.has_found()) {
            known.program = known.program.or_else(|| selection.of(known.pid, known.facts.name(), accounts));
            new = true;
        }
        new
    }

    /// Descendants of members are members.
    fn enlist(&mut self) {
        let entry = |known: &Known| (known.pid, (known.facts.parent, known.program));
        let table: Table<usize> = self.processes.iter().map(entry).collect();
        for (pid, program) in with_descendants(&table) {
            if let Some(index) = index_of(&self.processes, pid) {
                self.processes[index].program = Some(program);
            }
        }
    }

    /// Keeps the waits of threads that are no longer there, for processes that are.
    fn settle_ended_threads(&mut self) {
        let mut now = self.order.iter().map(|&index| &self.records[index]).peekable();
        for thread in &self.threads {
            while now.next_if(|record| record.pid < thread.tid).is_some() {}
            let lives = now.peek().is_some_and(|record| record.pid == thread.tid && record.started == thread.started);
            let process = index_of(&self.processes, thread.tgid).map(|index| &mut self.processes[index]);
            if let Some(process) = process.filter(|process| !lives && process.facts.started <= thread.started) {
                process.waited += thread.waited;
            }
        }
    }

    /// Adds the living threads to the processes that are members.
    fn add_up(&mut self) {
        self.threads.clear();
        let mut last = 0;
        for record in self.order.iter().map(|&index| &self.records[index]) {
            // Most processes have one thread, most threads come after another of their process.
            let near = self.processes.get(last).filter(|known| known.pid == record.tgid).map(|_| last);
            let Some(index) = near.or_else(|| index_of(&self.processes, record.tgid)) else { continue };
            last = index;
            let Known { program: Some(_), facts, user, system, .. } = &mut self.processes[index] else { continue };
            let waited = record.queue.map_or(Nanos::ZERO, |queue| queue.waited);
            facts.own.cpu.total += record.own.ran;
            facts.own.waited += waited;
            facts.own.switches += record.own.voluntary + record.own.involuntary;
            facts.own.major_faults += record.own.major_faults;
            facts.running += u64::from(record.runnable);
            *user += record.own.user;
            *system += record.own.system;
            self.threads.push(Thread { tid: record.pid, tgid: record.tgid, started: record.started, waited });
        }
    }
}

fn index_of(processes: &[Known], pid: u32) -> Option<usize> {
    processes.binary_search_by_key(&pid, |known| known.pid).ok()
}
