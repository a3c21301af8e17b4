//! I/O and CPU time of a server's processes: number of read calls, bytes read from disks, CPU time in user mode and in
//! the kernel. Source: proc(5), /proc/PID/io, which only root and the process's own user may read, and /proc/PID/stat.
//!
//! Two files are read for each process, so the frequency of readings is limited by [`SearchLimiter`]. Workers may come
//! and go between two readings, like those of Apache's prefork MPM with a low `MaxConnectionsPerChild`. The kernel adds
//! the counters of a process to those of its parent when the parent waits for it: CPU time to the fields `cutime` and
//! `cstime` of stat, I/O to the parent's own counters. So the counters of a process include all children that it has
//! waited for, and a worker that was never read is counted with the main process. When a worker has ended that was read
//! before, its last counters are subtracted, because the main process's counters now include them.
//!
//! The kernel adds each clock tick to the mode in which a thread runs at that moment (`cputime_adjust`,
//! kernel/sched/cputime.c). Readings around one request would therefore show the mode of the thread at the last tick,
//! and nothing about the request. That is why the server does not record the split.

use super::IoSample;
use crate::procfs::{lines, number, pid_stat, words};
use crate::search::SearchLimiter;
use brimful_core::Nanos;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The counters of one server's processes, including processes that ended.
#[derive(Debug, Default)]
pub(super) struct IoTotals {
    /// The last reading of each process, by pid. A process that has ended stays here until its parent has waited for
    /// it.
    members: BTreeMap<u32, Member>,
    /// The sum over all processes since the first reading. It may fall for a moment: see `reported`.
    total: [i128; COUNTERS],
    /// The highest total so far of each counter, which is reported. The total itself may fall for a moment, because a
    /// worker that has ended may be subtracted before the counters of its parent include it.
    reported: Counters,
    /// Whether any process has been read so far. Counters of a process that joins later are counted from zero.
    begun: bool,
    latest: Option<IoSample>,
    search: SearchLimiter,
}

const COUNTERS: usize = 4;

/// Counters of a process and of the children that it has waited for: read calls, bytes read, ticks of CPU time in user
/// mode, ticks in the kernel.
type Counters = [u64; COUNTERS];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Member {
    counters: Counters,
    parent: u32,
    /// Start time of the process, which distinguishes it from a later process with the same pid.
    started: u64,
}

impl IoTotals {
    /// The counters of the processes `pids`. They are read again only if a reading is due. `requests` is the number of
    /// requests that the server has recorded. Returns `None` if the kernel does not provide the counters.
    pub fn read(&mut self, proc: &Path, pids: impl Iterator<Item = u32>, requests: u64) -> Option<IoSample> {
        if self.search.is_due() {
            let search = SearchLimiter::begin();
            self.look(proc, pids, requests);
            self.search.end(search);
        }
        self.latest
    }

    fn look(&mut self, proc: &Path, pids: impl Iterator<Item = u32>, requests: u64) {
        // A worker that ends after its own reading, and before the reading of its parent, would be counted twice. To
        // avoid this, parents are read last: workers have higher pids than their main process, except when pids wrap
        // around. Then the workers that are gone by now are removed from the readings.
        let mut pids: Vec<u32> = pids.chain(self.members.keys().copied()).collect();
        pids.sort_unstable();
        pids.dedup();
        let mut members: BTreeMap<u32, Member> =
            pids.iter().rev().filter_map(|&pid| Some((pid, read_member(&proc.join(pid.to_string()))?))).collect();
        let parents: Vec<u32> = members.values().map(|member| member.parent).collect();
        members.retain(|pid, member| {
            parents.contains(pid) || !parents.contains(&member.parent) || proc.join(pid.to_string()).exists()
        });
        for (pid, now) in &members {
            let before = self.members.get(pid).filter(|before| before.started == now.started);
            let before = before.map_or(if self.begun { [0; COUNTERS] } else { now.counters }, |before| before.counters);
            for (total, (now, before)) in self.total.iter_mut().zip(now.counters.iter().zip(before)) {
                *total += i128::from(now.saturating_sub(before));
            }
        }
        let is_gone = |pid: &u32, before: &Member| members.get(pid).is_none_or(|now| now.started != before.started);
        for (_, gone) in self.members.iter().filter(|(pid, before)| is_gone(pid, before)) {
            if members.contains_key(&gone.parent) {
                self.total.iter_mut().zip(gone.counters).for_each(|(total, gone)| *total -= i128::from(gone));
            }
        }
        for (reported, total) in self.reported.iter_mut().zip(self.total) {
            *reported = u64::try_from(total).unwrap_or(0).max(*reported);
        }
        self.begun |= !members.is_empty();
        let [reads, read_bytes, user, system] = self.reported;
        let per_s = rustix::param::clock_ticks_per_second().max(1);
        let time = |ticks: u64| Nanos(ticks.saturating_mul(1_000_000_000 / per_s));
        let (user, system, processes) = (time(user), time(system), members.len() as u64);
        let sample = IoSample { reads, read_bytes, user, system, tick: time(1), processes, requests };
        self.latest = self.begun.then_some(sample);
        self.members = members;
    }
}

/// Reads the counters of a process. `process` is its directory in /proc.
fn read_member(process: &Path) -> Option<Member> {
    let io = fs::read(process.join("io")).ok()?;
    let field = |name: &[u8]| lines(&io).find_map(|line| words(line.strip_prefix(name)?).next().and_then(number));
    let stat = fs::read(process.join("stat")).ok()?;
    let stat = pid_stat(&stat)?;
    let user = stat.user.saturating_add(stat.children_user);
    let system = stat.system.saturating_add(stat.children_system);
    let counters = [field(b"syscr:")?, field(b"read_bytes:")?, user, system];
    Some(Member { counters, parent: stat.parent, started: stat.started })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_that_come_and_go_are_counted_from_the_first_look() {
        let proc = tempfile::tempdir().unwrap();
        let put = |pid: u32, reads: u64, bytes: u64| {
            std::fs::create_dir_all(proc.path().join(pid.to_string())).unwrap();
            let text = format!("rchar: 9\nwchar: 9\nsyscr: {reads}\nsyscw: 9\nread_bytes: {bytes}\nwrite_bytes: 9\n");
            std::fs::write(proc.path().join(format!("{pid}/io")), text).unwrap();
            // In this fixture, a process uses one tick of CPU time in user mode and two ticks in the kernel for each
            // read call.
            let times = format!("{reads} {} 0 0 20 0 1 0 5 0 0 0", 2 * reads);
            let stat = format!("{pid} (a) S 1 1 1 0 -1 0 0 0 0 0 {times}\n");
            std::fs::write(proc.path().join(format!("{pid}/stat")), stat).unwrap();
        };
        let mut totals = IoTotals::default();
        let mut read = |pids: &[u32], requests| {
            totals.search.not_before = Nanos::ZERO;
            totals.read(proc.path(), pids.iter().copied(), requests).map(|io| (io.reads, io.read_bytes, io.requests))
        };
        assert_eq!(read(&[7], 1), None, "the counters of the process cannot be read");
        put(7, 100, 4096);
        assert_eq!(read(&[7], 2), Some((0, 0, 2)), "reads from before the watch are not counted");
        put(7, 150, 8192);
        put(8, 30, 512);
        assert_eq!(read(&[7, 8], 3), Some((80, 4608, 3)));
        assert_eq!(read(&[8], 4), Some((80, 4608, 4)));
        put(8, 31, 512);
        assert_eq!(read(&[8], 5), Some((81, 4608, 5)));
        let tick = 1_000_000_000 / rustix::param::clock_ticks_per_second();
        let used = totals.latest.map(|io| (io.user, io.system));
        assert_eq!(used, Some((Nanos(81 * tick), Nanos(2 * 81 * tick))));
        totals.search.not_before = Nanos::MAX;
        put(8, 99, 512);
        assert_eq!(
            totals.read(proc.path(), [8].into_iter(), 6).unwrap().requests,
            5,
            "the next reading is not due yet"
        );
    }

    #[test]
    fn short_lived_workers_are_counted_through_their_parent() {
        let proc = tempfile::tempdir().unwrap();
        // Writes the files of a process that has used `own` ticks of CPU time in user mode, and whose children that it
        // waited for have used `reaped` ticks. The kernel adds the read calls of such children to the parent's own.
        let put = |pid: u32, parent: u32, own: u64, reaped: u64| {
            let process = proc.path().join(pid.to_string());
            std::fs::create_dir_all(&process).unwrap();
            std::fs::write(process.join("io"), format!("syscr: {}\nread_bytes: 0\n", own + reaped)).unwrap();
            let stat = format!("{pid} (a) S {parent} 1 1 0 -1 0 0 0 0 0 {own} 0 {reaped} 0 20 0 1 0 5 0 0 0\n");
            std::fs::write(process.join("stat"), stat).unwrap();
        };
        let end = |pid: u32| std::fs::remove_dir_all(proc.path().join(pid.to_string())).unwrap();
        let mut totals = IoTotals::default();
        let mut read = |pids: &[u32]| {
            totals.search.not_before = Nanos::ZERO;
            let io = totals.read(proc.path(), pids.iter().copied(), 1).unwrap();
            let ticks = io.user.0 / (1_000_000_000 / rustix::param::clock_ticks_per_second());
            assert_eq!(ticks, io.reads, "CPU time and read calls are counted alike");
            ticks
        };
        put(1000, 1, 5, 100);
        put(1001, 1000, 20, 0);
        assert_eq!(read(&[1000, 1001]), 0);
        put(1001, 1000, 25, 0);
        assert_eq!(read(&[1000, 1001]), 5);
        // The worker uses three more ticks and ends. Two other workers, with 30 ticks each, started and ended meanwhile.
        end(1001);
        put(1000, 1, 5, 100 + 28 + 60);
        put(1004, 1000, 2, 0);
        assert_eq!(read(&[1000, 1004]), 8 + 60 + 2);
        // The last worker has ended, but the main process has not waited for it yet.
        end(1004);
        assert_eq!(read(&[1000]), 70, "counters never fall");
        put(1000, 1, 5, 100 + 28 + 60 + 4);
        assert_eq!(read(&[1000]), 72);
        // A new process gets the pid of a worker that is gone.
        put(1004, 1, 7, 0);
        let stat = std::fs::read_to_string(proc.path().join("1004/stat")).unwrap().replace(" 5 0 0 0", " 6 0 0 0");
        std::fs::write(proc.path().join("1004/stat"), stat).unwrap();
        assert_eq!(read(&[1000, 1004]), 79);
    }
}
