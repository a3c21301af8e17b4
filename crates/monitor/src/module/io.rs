//! What a server's processes read: calls, and bytes from disks. Source: proc(5), /proc/PID/io, which root may read and
//! the processes' own user.
//!
//! It is looked at as often as [`Search`] allows, since there is a file for each process. What a process did between
//! the last look and its end is not counted.

use super::IoSample;
use crate::procfs::{lines, number, words};
use crate::search::Search;
use std::collections::BTreeMap;
use std::path::Path;

/// Counters of one server's processes, the departed included.
#[derive(Debug, Default)]
pub(super) struct IoAccount {
    /// Of each process, what it was last seen to have read: calls and bytes.
    members: BTreeMap<u32, [u64; 2]>,
    total: [u64; 2],
    /// Whether those that join now have been there before the watch.
    begun: bool,
    latest: Option<IoSample>,
    search: Search,
}

impl IoAccount {
    /// What these processes have read, as of now if a look is due; `requests` are the server's. `None` where it is not
    /// told.
    pub fn read(&mut self, proc: &Path, pids: impl Iterator<Item = u32>, requests: u64) -> Option<IoSample> {
        if self.search.due() {
            let search = Search::begin();
            self.look(proc, pids, requests);
            self.search.rest(search);
        }
        self.latest
    }

    fn look(&mut self, proc: &Path, pids: impl Iterator<Item = u32>, requests: u64) {
        let mut members = BTreeMap::new();
        for pid in pids {
            let Some(now) = std::fs::read(proc.join(format!("{pid}/io"))).ok().and_then(|text| counters(&text)) else {
                continue;
            };
            let before = self.members.get(&pid).copied().unwrap_or(if self.begun { [0; 2] } else { now });
            for ((total, now), before) in self.total.iter_mut().zip(now).zip(before) {
                *total = total.saturating_add(now.saturating_sub(before));
            }
            members.insert(pid, now);
        }
        self.begun |= !members.is_empty();
        let [reads, read_bytes] = self.total;
        self.latest = self.begun.then_some(IoSample { reads, read_bytes, requests });
        self.members = members;
    }
}

fn counters(text: &[u8]) -> Option<[u64; 2]> {
    let field = |name: &[u8]| lines(text).find_map(|line| words(line.strip_prefix(name)?).next().and_then(number));
    Some([field(b"syscr:")?, field(b"read_bytes:")?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use brimful_core::Nanos;

    #[test]
    fn processes_that_come_and_go_are_counted_from_the_first_look() {
        let proc = tempfile::tempdir().unwrap();
        let put = |pid: u32, reads: u64, bytes: u64| {
            std::fs::create_dir_all(proc.path().join(pid.to_string())).unwrap();
            let text = format!("rchar: 9\nwchar: 9\nsyscr: {reads}\nsyscw: 9\nread_bytes: {bytes}\nwrite_bytes: 9\n");
            std::fs::write(proc.path().join(format!("{pid}/io")), text).unwrap();
        };
        let mut account = IoAccount::default();
        let mut read = |pids: &[u32], requests| {
            account.search.not_before = Nanos::ZERO;
            account.read(proc.path(), pids.iter().copied(), requests).map(|io| (io.reads, io.read_bytes, io.requests))
        };
        assert_eq!(read(&[7], 1), None, "nobody may read it");
        put(7, 100, 4096);
        assert_eq!(read(&[7], 2), Some((0, 0, 2)), "what was read before the watch is not counted");
        put(7, 150, 8192);
        put(8, 30, 512);
        assert_eq!(read(&[7, 8], 3), Some((80, 4608, 3)));
        assert_eq!(read(&[8], 4), Some((80, 4608, 4)));
        put(8, 31, 512);
        assert_eq!(read(&[8], 5), Some((81, 4608, 5)));
        account.search.not_before = Nanos::MAX;
        put(8, 99, 512);
        assert_eq!(account.read(proc.path(), [8].into_iter(), 6).unwrap().requests, 5, "not due yet");
    }
}
