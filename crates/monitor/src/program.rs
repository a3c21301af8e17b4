//! The account of one program: CPU time, memory and context switches of its processes, the departed included.
//!
//! CPU time comes from each process's own nanosecond clock, which includes its exited threads; the split between user
//! mode and kernel is the kernel's (utime and stime), scaled so that the sum is that clock's. Totals never go
//! backwards. For every process
//!
//! ```text
//! total = its clock + max(what it reaped, what was last read of its children that are gone)
//! ```
//!
//! where *what it reaped* is the growth of cutime + cstime: so a child that was born and died between two readings
//! counts as well, to a tick of 10 ms. Not seen: a process that lived less than the time between two readings and
//! whose parent did not wait for it.

use crate::counter::Over;
use crate::procfs::{self, ProcFile};
use crate::sys;
use brimful_core::Nanos;
use brimful_core::server::Process;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

/// One program at one moment: counters since the watch began, except where it says *now*. What the source does not tell
/// is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProgramSample {
    /// Its name.
    pub name: Arc<str>,
    /// Its processes now; samples between which they are the same share them.
    pub pids: Arc<[u32]>,

    /// Of all its processes, those that ended included.
    pub cpu: CpuTime,
    /// Resident memory, pages that processes share counted once for each.
    pub rss_bytes: u64,
    /// Voluntary and not, as of the last look at the threads.
    pub context_switches: u64,
}

/// CPU time in nanoseconds; only differences mean anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuTime {
    /// In user mode and in the kernel.
    pub total: Nanos,
    /// In user mode.
    pub user: Nanos,
}

/// One program.
#[derive(Debug, Default)]
pub(crate) struct Program {
    pub name: Arc<str>,
    pids: Arc<[u32]>,
    pub members: BTreeMap<u32, Member>,
    /// Of members that are gone and whose parent is not one.
    gone: CpuTime,
    switches_gone: u64,
    /// The last total: the next is never below it.
    floor: CpuTime,
}

/// One process.
#[derive(Debug)]
pub(crate) struct Member {
    /// Refers to this very process: reading fails once it is gone, even when its pid is given out again.
    pub stat: ProcFile,
    parent: u32,
    own: CpuTime,
    /// Children's time it had already collected when it was found.
    reaped_before: CpuTime,
    reaped: CpuTime,
    children_gone: CpuTime,
    rss_bytes: u64,
    /// Context switches by thread.
    switches: HashMap<u32, u64>,
    switches_gone: u64,
}

/// The kernel's units.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticks {
    tick_ns: u64,
    page_bytes: u64,
}

impl Program {
    /// Reads every process, and settles the account of those that are gone.
    pub fn read(&mut self, ticks: Ticks, buffer: &mut Vec<u8>) {
        let vanished: Vec<u32> = self
            .members
            .iter_mut()
            .filter_map(|(&pid, member)| member.read(pid, ticks, buffer).is_none().then_some(pid))
            .collect();
        for pid in vanished {
            let Some(member) = self.members.remove(&pid) else { continue };
            let heir = self.members.get_mut(&member.parent).map_or(&mut self.gone, |parent| &mut parent.children_gone);
            *heir = heir.plus(member.total());
            self.switches_gone += member.switches();
        }
        if !self.members.keys().eq(self.pids.iter()) {
            self.pids = self.members.keys().copied().collect();
        }
        let total = self.members.values().fold(self.gone, |sum, member| sum.plus(member.total()));
        self.floor = self.floor.max(total);
    }

    /// What was read last.
    pub fn sample(&self) -> ProgramSample {
        ProgramSample {
            name: self.name.clone(),
            pids: self.pids.clone(),
            cpu: self.floor,
            rss_bytes: self.members.values().map(|member| member.rss_bytes).sum(),
            context_switches: self.switches_gone + self.members.values().map(Member::switches).sum::<u64>(),
        }
    }
}

impl ProgramSample {
    /// What happened since an earlier sample, `over` a time.
    pub(crate) fn since(&self, earlier: &ProgramSample, over: Nanos) -> Process {
        let used = self.cpu.minus(earlier.cpu);
        Process {
            name: self.name.to_string(),
            pids: self.pids.to_vec(),
            processes: self.pids.len() as u64,
            cpu_s: used.total.as_secs_f64(),
            cpu_s_user: used.user.as_secs_f64(),
            cpu_s_system: (used.total - used.user).as_secs_f64(),
            cores: Over(over).share(Nanos::ZERO, used.total).unwrap_or_default(),
            rss_bytes: self.rss_bytes,
            context_switches: Some(self.context_switches.saturating_sub(earlier.context_switches)),
            ..Process::default()
        }
    }
}

impl Member {
    /// `None` if there is no such process.
    pub fn open(root: &Path, pid: u32, ticks: Ticks, buffer: &mut Vec<u8>) -> Option<Member> {
        let mut member = Member {
            stat: ProcFile::open(&root.join(format!("{pid}/stat"))).ok()?,
            parent: 0,
            own: CpuTime::default(),
            reaped_before: CpuTime::default(),
            reaped: CpuTime::default(),
            children_gone: CpuTime::default(),
            rss_bytes: 0,
            switches: HashMap::new(),
            switches_gone: 0,
        };
        member.read(pid, ticks, buffer)?;
        member.reaped_before = member.reaped;
        Some(member)
    }

    /// `None` once the process is gone.
    fn read(&mut self, pid: u32, ticks: Ticks, buffer: &mut Vec<u8>) -> Option<()> {
        let stat = procfs::pid_stat(self.stat.read(buffer).ok()?)?;
        let by_ticks = ticks.cpu(stat.user, stat.system);
        let total = sys::process_cpu(pid).unwrap_or(by_ticks.total);
        let user_share = match by_ticks.total.0 {
            0 => 1.0,
            sum => by_ticks.user.0 as f64 / sum as f64,
        };
        let user = Nanos((total.0 as f64 * user_share) as u64);
        self.own = self.own.max(CpuTime { total, user });
        self.reaped = ticks.cpu(stat.children_user, stat.children_system);
        self.parent = stat.parent;
        self.rss_bytes = stat.rss_pages.saturating_mul(ticks.page_bytes);
        Some(())
    }

    /// Counts the context switches of every thread; `directory` is the process's `task`.
    pub fn read_threads(&mut self, directory: &Path) {
        let before = std::mem::take(&mut self.switches);
        for tid in procfs::numeric_entries(directory) {
            let text = std::fs::read(directory.join(format!("{tid}/schedstat")));
            if let Some(count) = text.ok().as_deref().and_then(procfs::times_scheduled) {
                self.switches.insert(tid, count);
            }
        }
        // A thread that ended, or whose number a new one has taken, leaves its count behind.
        for (tid, count) in before {
            if self.switches.get(&tid).is_none_or(|&now| now < count) {
                self.switches_gone += count;
            }
        }
    }

    fn total(&self) -> CpuTime {
        self.own.plus(self.reaped.minus(self.reaped_before).max(self.children_gone))
    }

    fn switches(&self) -> u64 {
        self.switches_gone + self.switches.values().sum::<u64>()
    }
}

impl CpuTime {
    pub(crate) fn plus(self, other: CpuTime) -> CpuTime {
        CpuTime { total: self.total + other.total, user: self.user + other.user }
    }

    /// What was used since an earlier reading; neither part is below zero, and user mode is at most the total.
    pub fn minus(self, earlier: CpuTime) -> CpuTime {
        let total = self.total - earlier.total;
        CpuTime { total, user: (self.user - earlier.user).min(total) }
    }

    fn max(self, other: CpuTime) -> CpuTime {
        CpuTime { total: self.total.max(other.total), user: self.user.max(other.user) }
    }
}

impl Ticks {
    pub fn of_this_kernel() -> Ticks {
        let per_s = rustix::param::clock_ticks_per_second().max(1);
        Ticks { tick_ns: 1_000_000_000 / per_s, page_bytes: rustix::param::page_size() as u64 }
    }

    fn cpu(self, user: u64, system: u64) -> CpuTime {
        let nanos = |ticks: u64| Nanos(ticks.saturating_mul(self.tick_ns));
        CpuTime { total: nanos(user) + nanos(system), user: nanos(user) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Fixture, P};

    fn admit(fixture: &Fixture, program: &mut Program, pid: u32) {
        let member = Member::open(fixture.root(), pid, Ticks::of_this_kernel(), &mut Vec::new()).unwrap();
        program.members.insert(pid, member);
    }

    /// Total and user mode, in milliseconds.
    fn read(program: &mut Program) -> (u64, u64) {
        program.read(Ticks::of_this_kernel(), &mut Vec::new());
        let CpuTime { total, user } = program.sample().cpu;
        (total.0 / 1_000_000, user.0 / 1_000_000)
    }

    #[test]
    fn totals_include_those_who_ended_and_never_go_backwards() {
        let (fixture, mut program) = (Fixture::new(), Program::default());
        fixture.process(P + 1, 1, "master", [10, 10, 50, 50]);
        fixture.process(P + 2, P + 1, "worker", [30, 10, 0, 0]);
        admit(&fixture, &mut program, P + 1);
        admit(&fixture, &mut program, P + 2);
        assert_eq!(read(&mut program), (600, 400), "what the master had reaped before is not counted");

        fixture.process(P + 2, P + 1, "worker", [40, 10, 0, 0]);
        assert_eq!(read(&mut program), (700, 500));
        fixture.end(P + 2); // vanished, not yet waited for
        assert_eq!(read(&mut program), (700, 500));
        fixture.process(P + 1, 1, "master", [10, 10, 95, 60]); // waited for: 45 + 10 ticks, 50 of which were seen
        assert_eq!(read(&mut program), (750, 550));
        fixture.process(P + 1, 1, "master", [10, 10, 105, 60]); // a child came and went unseen
        assert_eq!(read(&mut program), (850, 650));
        fixture.end(P + 1);
        assert_eq!(read(&mut program), (850, 650));

        fixture.process(P + 3, 1, "master", [5, 0, 0, 0]); // restarted
        admit(&fixture, &mut program, P + 3);
        assert_eq!(read(&mut program), (900, 700));
    }

    #[test]
    fn context_switches_are_summed_over_threads_those_that_ended_included() {
        let (fixture, mut program) = (Fixture::new(), Program::default());
        fixture.process(P + 1, 1, "server", [0; 4]);
        fixture.thread(P + 1, P + 1, "schedstat", "1 1 100\n");
        fixture.thread(P + 1, P + 2, "schedstat", "1 1 20\n");
        admit(&fixture, &mut program, P + 1);
        let mut switches = || {
            for (pid, member) in &mut program.members {
                member.read_threads(&fixture.root().join(format!("{pid}/task")));
            }
            read(&mut program);
            program.sample().context_switches
        };
        assert_eq!(switches(), 120);
        std::fs::remove_dir_all(fixture.root().join(format!("{}/task/{}", P + 1, P + 2))).unwrap();
        fixture.thread(P + 1, P + 1, "schedstat", "1 1 105\n");
        assert_eq!(switches(), 125);
        fixture.thread(P + 1, P + 1, "schedstat", "1 1 3\n"); // another thread under the same number
        assert_eq!(switches(), 128);
        fixture.end(P + 1);
        assert_eq!(switches(), 128);
    }
}
