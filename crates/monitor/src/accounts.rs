//! Adds up the resources (such as CPU time) that the processes of each program have used, including processes that
//! ended.
//!
//! A source (/proc or eBPF) provides a [`ProcessReading`] of each living process, with counters since that process
//! began. [`Accounts`] turns the readings into totals for each program. Totals never decrease and count nothing twice.
//! For every process
//! ```text
//! total = own + max(reaped, last readings of its children that are gone)
//! ```
//!
//! where *reaped* is the growth of the counters in which the kernel sums the usage of children that ended and were
//! waited for. So a child that starts and ends between two readings counts as well. Children that belong to another
//! program are subtracted. Usage from before monitoring began is not counted. Only one case is missed: a process that
//! starts and ends between two readings, and whose parent does not wait for it.

use crate::program::{CpuTime, ProgramSample};
use brimful_core::Nanos;
use std::collections::BTreeMap;
use std::sync::Arc;

/// State and resource usage of one process at one moment, as read from /proc or by eBPF.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProcessReading {
    /// The process's name, cut to 15 bytes by the kernel and padded with zeros.
    pub comm: [u8; 16],
    /// Pid of the parent process.
    pub parent: u32,
    /// Time from boot to the start of the process, suspended time included.
    pub started: Nanos,
    /// Resources that the process has used since it began, including the usage of its threads that ended.
    pub own_usage: Usage,
    /// Resources that ended children have used, if the process has waited for them. Descendants that these children
    /// waited for are included. The kernel does not sum run-queue waits or context switches of children.
    pub reaped_usage: Usage,
    /// Number of threads.
    pub threads: u64,
    /// Number of threads that run or wait for a CPU.
    pub running: u64,
    /// Resident memory, in bytes.
    pub rss_bytes: u64,
}

/// Resource usage of a process or program: counters that only grow. A counter that the source does not provide stays at
/// zero, and [`ProcessTree`](crate::ProcessTree) omits it from the sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// CPU time.
    pub cpu: CpuTime,
    /// Time for which threads were ready to run but waited for a CPU.
    pub run_queue_wait: Nanos,
    /// Number of context switches.
    pub switches: u64,
    /// Number of page faults that waited for a disk.
    pub major_faults: u64,
}

/// Totals of the resource usage of each watched program, computed from readings of its processes. Every process belongs
/// to at most one program. Within a sample, [`Accounts::update`] must be called for processes in ascending order of
/// pid.
#[derive(Debug)]
pub(crate) struct Accounts {
    /// Time from boot to the start of monitoring, suspended time included.
    began: Nanos,
    programs: Vec<ProgramAccount>,
    members: BTreeMap<u32, Member>,
}

#[derive(Debug)]
struct ProgramAccount {
    name: Arc<str>,
    /// Whether the program is named after its first process, because the user specified no name.
    nameless: bool,
    /// Pid of the process that the program is named after; `None` if that process has ended, or if no process was
    /// found.
    named_after: Option<u32>,
    pids: Arc<[u32]>,
    /// Whether the set of processes has changed, so that `pids` must be rebuilt.
    changed: bool,
    found: bool,
    started: u64,
    ended: u64,
    /// Usage of processes that ended, if their parents do not belong to the same program.
    gone: Usage,
    /// Usage of processes that started before monitoring began, up to their first reading. It is subtracted from the
    /// total.
    before: Usage,
    /// The last reported total. The next total is at least this large.
    floor: Usage,
}

#[derive(Debug)]
struct Member {
    program: usize,
    /// The last reading, with one change: `reaped_usage` is the result of [`Accounts::reliably_reaped`].
    reading: ProcessReading,
    /// The reaped counters exactly as the source last reported them.
    reaped_usage: Usage,
    /// The part of `reaped_usage` that is not counted. It was used before the process was found, or by children that
    /// belong to another program.
    not_ours: Usage,
    children_gone: Usage,
}

impl Accounts {
    /// Creates the totals for programs that are monitored from now on. `began` is the present time since boot,
    /// suspended time included. `names` contains, for each program, whether its name is final, and the name. A name
    /// that is not final is replaced by the name of the program's first process.
    pub fn new(began: Nanos, names: impl Iterator<Item = (bool, Arc<str>)>) -> Accounts {
        let program = |(named, name): (bool, _)| ProgramAccount {
            name,
            nameless: !named,
            named_after: None,
            pids: Arc::default(),
            changed: false,
            found: false,
            started: 0,
            ended: 0,
            gone: Usage::default(),
            before: Usage::default(),
            floor: Usage::default(),
        };
        Accounts { began, programs: names.map(program).collect(), members: BTreeMap::new() }
    }

    /// Pids of the living processes of all programs, in ascending order.
    pub fn pids(&self) -> impl Iterator<Item = u32> {
        self.members.keys().copied()
    }

    /// Index of the program to which a process belongs; `None` if the process belongs to no program.
    pub fn program_of(&self, pid: u32) -> Option<usize> {
        self.members.get(&pid).map(|member| member.program)
    }

    /// Pids of the program's living processes whose parents do not belong to the program, in ascending order.
    pub fn root_processes(&self, program: usize) -> impl Iterator<Item = u32> {
        let descends = move |member: &Member| self.program_of(member.reading.parent) == Some(program);
        let root_processes =
            self.members.iter().filter(move |(_, member)| member.program == program && !descends(member));
        root_processes.map(|(&pid, _)| pid)
    }

    /// Whether a program has a living process.
    pub fn is_alive(&self, program: usize) -> bool {
        self.members.values().any(|member| member.program == program)
    }

    /// Whether a program ever had a process.
    pub fn was_found(&self, program: usize) -> bool {
        self.programs[program].found
    }

    /// Stores a new reading of a process. Returns false if the process belongs to no program.
    pub fn update(&mut self, pid: u32, reading: &ProcessReading) -> bool {
        let reaped = self.reliably_reaped(pid, reading);
        let Some(member) = self.members.get_mut(&pid) else { return false };
        let program = &mut self.programs[member.program];
        // The process may have executed another program by execve(2) since the last reading.
        if program.named_after == Some(pid) && member.reading.comm != reading.comm {
            program.name = String::from_utf8_lossy(reading.name()).into();
        }
        member.reading = ProcessReading {
            own_usage: member.reading.own_usage.max(reading.own_usage),
            reaped_usage: reaped,
            ..*reading
        };
        member.reaped_usage = reading.reaped_usage;
        true
    }

    /// The reaped counters of a process, or their previous values if a younger process of the program has a lower pid.
    /// Pids wrap around, so a child with a lower pid is read before its parent. If the parent reaps the child between
    /// these two readings, the new counters include the child, and the child would count twice.
    fn reliably_reaped(&self, pid: u32, reading: &ProcessReading) -> Usage {
        let Some(member) = self.members.get(&pid).filter(|member| member.reaped_usage != reading.reaped_usage) else {
            return reading.reaped_usage;
        };
        let is_younger =
            |other: &Member| other.program == member.program && other.reading.started >= member.reading.started;
        if self.members.range(..pid).any(|(_, other)| is_younger(other)) {
            member.reaped_usage
        } else {
            reading.reaped_usage
        }
    }

    /// Adds a process that belongs to no program to the program with the index `index`.
    pub fn admit(&mut self, pid: u32, index: usize, reading: &ProcessReading) {
        let program = &mut self.programs[index];
        if program.nameless && program.named_after.is_none() {
            program.name = String::from_utf8_lossy(reading.name()).into();
            program.named_after = Some(pid);
        }
        if reading.started >= self.began {
            program.started += 1;
        } else {
            program.before = program.before.plus(reading.own_usage);
        }
        program.changed = true;
        program.found = true;
        let reaped = reading.reaped_usage;
        let children_gone = Usage::default();
        self.members.insert(
            pid,
            Member { program: index, reading: *reading, reaped_usage: reaped, not_ours: reaped, children_gone },
        );
    }

    /// Removes a process that has ended, whether or not its parent has waited for it. The process's total moves to its
    /// parent if the parent is a member of the same program. Otherwise the total moves to the program.
    pub fn end(&mut self, pid: u32) {
        let Some(member) = self.members.remove(&pid) else { return };
        let program = &mut self.programs[member.program];
        program.changed = true;
        program.ended += 1;
        program.named_after = program.named_after.filter(|&named_after| named_after != pid);
        match self.members.get_mut(&member.reading.parent) {
            Some(parent) if parent.program == member.program => {
                parent.children_gone = parent.children_gone.plus(member.total());
                return;
            }
            // The parent is in another program. The kernel will add the child's usage to the parent's reaped counters,
            // so the same usage is subtracted there.
            Some(parent) => {
                parent.not_ours = parent.not_ours.plus(member.reading.own_usage).plus(member.reading.reaped_usage)
            }
            None => {}
        }
        program.gone = program.gone.plus(member.total());
    }

    /// Creates a sample of each program from the last readings of its processes.
    pub fn sample(&mut self) -> Vec<ProgramSample> {
        let mut samples: Vec<ProgramSample> = self.programs.iter().map(|_| ProgramSample::default()).collect();
        let mut totals: Vec<Usage> = self.programs.iter().map(|program| program.gone).collect();
        for member in self.members.values() {
            let sample = &mut samples[member.program];
            sample.threads += member.reading.threads;
            sample.running += member.reading.running;
            sample.rss_bytes += member.reading.rss_bytes;
            totals[member.program] = totals[member.program].plus(member.total());
        }
        for (index, ((program, sample), total)) in self.programs.iter_mut().zip(&mut samples).zip(totals).enumerate() {
            if std::mem::take(&mut program.changed) {
                let members = self.members.iter().filter(|(_, member)| member.program == index);
                program.pids = members.map(|(&pid, _)| pid).collect();
            }
            program.floor = program.floor.max(total.minus(program.before));
            sample.name = program.name.clone();
            sample.pids = program.pids.clone();
            sample.started = program.started;
            sample.ended = program.ended;
            sample.cpu = program.floor.cpu;
            sample.major_faults = program.floor.major_faults;
            sample.run_queue_wait = Some(program.floor.run_queue_wait);
            sample.context_switches = Some(program.floor.switches);
        }
        samples
    }
}

impl ProcessReading {
    /// The process's name without the padding of `comm`.
    pub fn name(&self) -> &[u8] {
        self.comm.split(|&byte| byte == 0).next().unwrap_or_default()
    }
}

impl Member {
    fn total(&self) -> Usage {
        self.reading.own_usage.plus(self.reading.reaped_usage.minus(self.not_ours).max(self.children_gone))
    }
}

impl Usage {
    fn plus(self, other: Usage) -> Usage {
        Usage {
            cpu: self.cpu.plus(other.cpu),
            run_queue_wait: self.run_queue_wait + other.run_queue_wait,
            switches: self.switches.saturating_add(other.switches),
            major_faults: self.major_faults.saturating_add(other.major_faults),
        }
    }

    fn minus(self, other: Usage) -> Usage {
        Usage {
            cpu: self.cpu.minus(other.cpu),
            run_queue_wait: self.run_queue_wait - other.run_queue_wait,
            switches: self.switches.saturating_sub(other.switches),
            major_faults: self.major_faults.saturating_sub(other.major_faults),
        }
    }

    fn max(self, other: Usage) -> Usage {
        Usage {
            cpu: self.cpu.max(other.cpu),
            run_queue_wait: self.run_queue_wait.max(other.run_queue_wait),
            switches: self.switches.max(other.switches),
            major_faults: self.major_faults.max(other.major_faults),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const WATCH_BEGAN: Nanos = Nanos::from_secs(100);

    fn accounts(programs: usize) -> Accounts {
        Accounts::new(WATCH_BEGAN, (0..programs).map(|_| (true, "program".into())))
    }

    fn usage(ms: u64) -> Usage {
        let total = Nanos::from_millis(ms);
        Usage { cpu: CpuTime { total, user: total }, run_queue_wait: total, switches: ms, major_faults: ms }
    }

    /// CPU time of children that ended, in milliseconds. The kernel sums neither their run-queue waits nor their
    /// context switches.
    fn reaped(ms: u64) -> Usage {
        Usage { run_queue_wait: Nanos::ZERO, switches: 0, ..usage(ms) }
    }

    /// A reading of a process that started before monitoring began. Both CPU times are in milliseconds.
    fn reading(parent: u32, own_ms: u64, reaped_ms: u64) -> ProcessReading {
        ProcessReading {
            parent,
            own_usage: usage(own_ms),
            reaped_usage: reaped(reaped_ms),
            threads: 2,
            running: 1,
            rss_bytes: 3,
            ..ProcessReading::default()
        }
    }

    fn process_started_during_watch(parent: u32, own_ms: u64, reaped_ms: u64) -> ProcessReading {
        ProcessReading { started: WATCH_BEGAN, ..reading(parent, own_ms, reaped_ms) }
    }

    /// CPU time of each program, in milliseconds.
    fn used(accounts: &mut Accounts) -> Vec<u64> {
        accounts.sample().iter().map(|sample| sample.cpu.total.0 / 1_000_000).collect()
    }

    #[test]
    fn totals_include_those_who_ended_and_never_go_backwards() {
        let mut accounts = accounts(1);
        let mut total = |pids: &[(u32, ProcessReading)]| {
            for (pid, reading) in pids {
                assert!(
                    accounts.update(*pid, reading) || {
                        accounts.admit(*pid, 0, reading);
                        true
                    }
                );
            }
            for pid in accounts.pids().filter(|pid| pids.iter().all(|(listed, _)| listed != pid)).collect::<Vec<_>>() {
                accounts.end(pid);
            }
            used(&mut accounts)[0]
        };
        assert_eq!(
            total(&[(1, reading(0, 200, 1000)), (2, reading(1, 400, 0))]),
            0,
            "usage from before the watch is not counted"
        );
        assert_eq!(total(&[(1, reading(0, 200, 1000)), (2, reading(1, 500, 0))]), 100);
        assert_eq!(
            total(&[(1, reading(0, 200, 1000))]),
            100,
            "the usage of an ended child counts before its parent has waited for it"
        );
        assert_eq!(
            total(&[(1, reading(0, 200, 1550))]),
            150,
            "after the parent waited for the child, the child counts with its final 550 ms instead of the 500 ms read"
        );
        assert_eq!(
            total(&[(1, reading(0, 200, 1650))]),
            250,
            "a child that started and ended between two readings counts"
        );
        assert_eq!(total(&[]), 250);
        assert_eq!(
            total(&[(3, process_started_during_watch(0, 50, 0))]),
            300,
            "a restart of the program keeps the total"
        );
        assert_eq!(
            total(&[(3, process_started_during_watch(0, 40, 0))]),
            300,
            "a lower reading does not lower the total"
        );
        assert_eq!(
            total(&[(4, reading(0, 5000, 0))]),
            300,
            "usage from before a process was found is not counted if the process is older than the watch"
        );
        let sample = accounts.sample().remove(0);
        assert_eq!((sample.started, sample.ended, sample.pids.to_vec()), (1, 3, vec![4]));
        assert_eq!((sample.threads, sample.running, sample.rss_bytes), (2, 1, 3));
    }

    #[test]
    fn what_one_program_reaps_of_another_counts_once() {
        let mut accounts = accounts(2);
        accounts.admit(1, 0, &process_started_during_watch(0, 10, 0));
        accounts.admit(2, 1, &process_started_during_watch(1, 0, 0));
        accounts.update(2, &process_started_during_watch(1, 500, 70));
        accounts.end(2);
        assert_eq!(used(&mut accounts), [10, 570]);
        accounts.update(1, &process_started_during_watch(0, 20, 570 + 30));
        assert_eq!(used(&mut accounts), [20 + 30, 570]);
    }

    #[test]
    fn a_child_that_is_reaped_after_it_was_read_and_before_its_parent_is_counts_once() {
        let mut accounts = accounts(1);
        accounts.admit(30, 0, &process_started_during_watch(0, 10, 0));
        accounts.admit(20, 0, &process_started_during_watch(30, 500, 0));
        accounts.update(20, &process_started_during_watch(30, 500, 0));
        accounts.update(30, &process_started_during_watch(0, 10, 500 + 40));
        assert_eq!(used(&mut accounts), [510], "a reaped child counts with the usage read while it lived");
        accounts.end(20);
        accounts.update(30, &process_started_during_watch(0, 10, 500 + 40));
        assert_eq!(used(&mut accounts), [510 + 40], "a child that lived between two readings counts too");
        accounts.admit(21, 0, &process_started_during_watch(30, 5, 0));
        accounts.update(30, &process_started_during_watch(0, 10, 540 + 60));
        assert_eq!(used(&mut accounts), [550 + 5]);
        accounts.update(30, &process_started_during_watch(0, 10, 540 + 60));
        assert_eq!(
            used(&mut accounts),
            [550 + 5 + 60],
            "the ended child counts after one more reading, even though a younger child is alive"
        );
    }

    #[test]
    fn waits_and_switches_of_the_departed_stay_though_the_kernel_adds_up_none() {
        let mut accounts = accounts(1);
        accounts.admit(1, 0, &process_started_during_watch(0, 10, 0));
        accounts.admit(2, 0, &process_started_during_watch(1, 7, 0));
        accounts.end(2);
        accounts.update(1, &process_started_during_watch(0, 10, 9));
        let sample = accounts.sample().remove(0);
        assert_eq!((sample.run_queue_wait, sample.context_switches), (Some(Nanos::from_millis(17)), Some(17)));
        assert_eq!((sample.major_faults, sample.cpu.total), (19, Nanos::from_millis(19)));
    }

    #[test]
    fn what_the_living_have_is_added_up() {
        let mut accounts = accounts(1);
        accounts.admit(1, 0, &reading(0, 100, 0));
        let before = accounts.sample().remove(0);
        accounts.update(1, &reading(0, 400, 0));
        accounts.admit(2, 0, &process_started_during_watch(1, 200, 0));
        let now = accounts.sample().remove(0);
        assert_eq!((now.pids.to_vec(), now.started, now.ended), (vec![1, 2], 1, 0));
        assert_eq!((now.threads, now.running, now.rss_bytes), (4, 2, 6));
        assert_eq!(now.cpu.minus(before.cpu).total, Nanos::from_millis(500));
        assert_eq!((before.run_queue_wait, now.run_queue_wait), (Some(Nanos::ZERO), Some(Nanos::from_millis(500))));
        assert_eq!((now.major_faults - before.major_faults, now.context_switches), (500, Some(500)));
    }

    #[test]
    fn a_nameless_program_takes_the_name_of_its_first_process() {
        let mut accounts = Accounts::new(WATCH_BEGAN, [(false, "1234".into())].into_iter());
        assert_eq!(&*accounts.sample()[0].name, "1234");
        let mut reading = reading(0, 0, 0);
        reading.comm[..5].copy_from_slice(b"nginx");
        accounts.admit(1234, 0, &reading);
        assert_eq!(&*accounts.sample()[0].name, "nginx");
        let mut worker = reading;
        worker.comm[..5].copy_from_slice(b"other");
        accounts.admit(1235, 0, &worker);
        assert_eq!(&*accounts.sample()[0].name, "nginx", "a later process does not change the name");
        reading.comm[..5].copy_from_slice(b"httpd");
        accounts.update(1234, &reading);
        assert_eq!(&*accounts.sample()[0].name, "httpd", "the name follows an execve of the first process");
        accounts.end(1234);
        assert_eq!(&*accounts.sample()[0].name, "httpd", "without processes, the program keeps its last name");
        accounts.admit(1236, 0, &worker);
        assert_eq!(&*accounts.sample()[0].name, "other");
    }

    proptest! {
        /// Simulates a master that waits for its workers. Workers start, use CPU time and end, and some live only
        /// between two readings. The measured total must equal the CPU time that all workers used.
        #[test]
        fn every_millisecond_counts_once(steps in proptest::collection::vec((0u8..4, 1u64..100), 1..80)) {
            let mut accounts = accounts(1);
            accounts.admit(1, 0, &reading(0, 0, 0));
            let (mut truth, mut reaped_ms, mut next, mut last) = (0, 0, 2, 0);
            let mut workers: BTreeMap<u32, u64> = BTreeMap::new();
            for (what, ms) in steps {
                match what {
                    0 => {
                        workers.insert(next, 0);
                        next += 1;
                    }
                    1 => if let Some(used) = workers.values_mut().next_back() {
                        *used += ms;
                        truth += ms;
                    },
                    2 => if let Some((pid, used)) = workers.pop_first() {
                        reaped_ms += used;
                        accounts.end(pid);
                    },
                    _ => {
                        accounts.update(1, &reading(0, 0, reaped_ms));
                        for (&pid, &used) in &workers {
                            if !accounts.update(pid, &process_started_during_watch(1, used, 0)) {
                                accounts.admit(pid, 0, &process_started_during_watch(1, used, 0));
                            }
                        }
                        let now = used(&mut accounts)[0];
                        prop_assert!(now >= last && now == truth, "{} {} {}", last, now, truth);
                        last = now;
                    }
                }
            }
        }
    }
}
