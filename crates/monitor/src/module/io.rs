//! I/O and CPU time of a server's processes: number of read calls, bytes read from disks, CPU time in user mode and in
//! the kernel. Source: proc(5), /proc/PID/io, which only root and the process's own user may read, and /proc/PID/stat.
//!
//! Two files are read for each process, so the frequency of readings is limited by [`Search`]. The usage of a process
//! between its last reading and its end is not counted. The kernel adds each clock tick to the mode in which a thread
//! runs at that moment (`cputime_adjust`, kernel/sched/cputime.c). Readings around one request would therefore show the
//! mode of the thread at the last tick, and nothing about the request. That is why the server does not record the
//! split.

use super::IoSample;
use crate::procfs::{lines, number, pid_stat, words};
use crate::search::Search;
use brimful_core::Nanos;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The counters of one server's processes, including processes that ended.
#[derive(Debug, Default)]
pub(super) struct IoAccount {
    /// The last counters of each process, by pid.
    members: BTreeMap<u32, Counters>,
    total: Counters,
    /// Whether any process was read so far. The counters of a process that joins later count from zero.
    begun: bool,
    latest: Option<IoSample>,
    search: Search,
}

/// Counters: read calls, bytes read, ticks of CPU time in user mode, ticks in the kernel.
type Counters = [u64; 4];

impl IoAccount {
    /// The counters of the processes `pids`, read again if a reading is due. `requests` is the server's number of
    /// requests. Returns `None` if the kernel does not provide the counters.
    pub fn read(&mut self, proc: &Path, pids: impl Iterator<Item = u32>, requests: u64) -> Option<IoSample> {
        if self.search.is_due() {
            let search = Search::begin();
            self.look(proc, pids, requests);
            self.search.end(search);
        }
        self.latest
    }

    fn look(&mut self, proc: &Path, pids: impl Iterator<Item = u32>, requests: u64) {
        let mut members = BTreeMap::new();
        for (pid, now) in pids.filter_map(|pid| Some((pid, counters(&proc.join(pid.to_string()))?))) {
            let before = self.members.get(&pid).copied().unwrap_or(if self.begun { [0; 4] } else { now });
            for ((total, now), before) in self.total.iter_mut().zip(now).zip(before) {
                *total = total.saturating_add(now.saturating_sub(before));
            }
            members.insert(pid, now);
        }
        self.begun |= !members.is_empty();
        let [reads, read_bytes, user, system] = self.total;
        let per_s = rustix::param::clock_ticks_per_second().max(1);
        let time = |ticks: u64| Nanos(ticks.saturating_mul(1_000_000_000 / per_s));
        let (user, system, processes) = (time(user), time(system), members.len() as u64);
        let sample = IoSample { reads, read_bytes, user, system, tick: time(1), processes, requests };
        self.latest = self.begun.then_some(sample);
        self.members = members;
    }
}

/// Reads the counters of the process with this directory in /proc.
fn counters(process: &Path) -> Option<Counters> {
    let io = fs::read(process.join("io")).ok()?;
    let field = |name: &[u8]| lines(&io).find_map(|line| words(line.strip_prefix(name)?).next().and_then(number));
    let stat = fs::read(process.join("stat")).ok()?;
    let stat = pid_stat(&stat)?;
    Some([field(b"syscr:")?, field(b"read_bytes:")?, stat.user, stat.system])
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
        let mut account = IoAccount::default();
        let mut read = |pids: &[u32], requests| {
            account.search.not_before = Nanos::ZERO;
            account.read(proc.path(), pids.iter().copied(), requests).map(|io| (io.reads, io.read_bytes, io.requests))
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
        let used = account.latest.map(|io| (io.user, io.system));
        assert_eq!(used, Some((Nanos(81 * tick), Nanos(2 * 81 * tick))));
        account.search.not_before = Nanos::MAX;
        put(8, 99, 512);
        assert_eq!(
            account.read(proc.path(), [8].into_iter(), 6).unwrap().requests,
            5,
            "the next reading is not due yet"
        );
    }
}
