//! Parses /proc/stat: the CPUs' time, and the machine's other counters. Times are in ticks of `sysconf(_SC_CLK_TCK)`.
//! Source: proc(5); fs/proc/stat.c.

use crate::procfs::{lines, number, words};
use serde::{Deserialize, Serialize};

/// The CPU time of one CPU since boot, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CpuTicks {
    /// Time in user mode, including niced threads and guests.
    pub user: u64,
    /// Time in the kernel, including interrupts.
    pub system: u64,
    /// Idle time, including the time in which threads waited for disks.
    pub idle: u64,
    /// Time in which the CPU had work, but the hypervisor did not run it.
    pub steal: u64,
    /// The part of `system` spent on interrupts and softirqs.
    pub interrupt: u64,
    /// The part of `idle` in which a thread of this CPU waited for a disk.
    pub io_wait: u64,
}

/// Number of softirqs since boot. A softirq is the deferred part of the work of an interrupt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SoftirqSample {
    /// Number of softirqs of the network: NET_RX and NET_TX.
    pub network: u64,
    /// Number of softirqs of disks: BLOCK.
    pub disk: u64,
}

/// The counters in /proc/stat that are not for a single CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SystemStat {
    /// CPU time of all CPUs together, including CPUs that are offline by now. It is not suitable for rates.
    pub cpu: Option<CpuTicks>,
    /// Number of interrupts of all kinds, including timer interrupts.
    pub interrupts: Option<u64>,
    /// Number of context switches.
    pub context_switches: Option<u64>,
    /// Number of processes and threads ever started.
    pub forks: Option<u64>,
    /// Number of threads that run or wait for a CPU, including the reader.
    pub running: Option<u64>,
    /// Number of threads that wait for a disk.
    pub blocked: Option<u64>,
    /// Number of softirqs.
    pub softirqs: Option<SoftirqSample>,
}

impl SystemStat {
    /// Parses the whole text of /proc/stat, except the lines of single CPUs.
    pub fn parse(text: &[u8]) -> SystemStat {
        let mut stat = SystemStat::default();
        for line in lines(text) {
            let mut words = words(line);
            match words.next() {
                Some(b"cpu") => stat.cpu = ticks(words),
                Some(b"intr") => stat.interrupts = words.next().and_then(number),
                Some(b"ctxt") => stat.context_switches = words.next().and_then(number),
                Some(b"processes") => stat.forks = words.next().and_then(number),
                Some(b"procs_running") => stat.running = words.next().and_then(number),
                Some(b"procs_blocked") => stat.blocked = words.next().and_then(number),
                Some(b"softirq") => stat.softirqs = softirqs(words),
                _ => {}
            }
        }
        stat
    }
}

/// The CPU time of each CPU that is online.
pub(crate) fn cores(text: &[u8]) -> impl Iterator<Item = (usize, CpuTicks)> {
    lines(text).map_while(|line| line.strip_prefix(b"cpu")).filter_map(|line| {
        let mut words = words(line);
        let cpu = number(words.next().filter(|_| !line.starts_with(b" "))?)?;
        Some((usize::try_from(cpu).ok()?, ticks(words)?))
    })
}

/// Parses `user nice system idle iowait irq softirq steal`. Guest times follow; they are already included in `user` and
/// `nice`.
fn ticks<'a>(mut words: impl Iterator<Item = &'a [u8]>) -> Option<CpuTicks> {
    let mut field = || words.next().and_then(number);
    let (user, nice, system, idle) = (field()?, field()?, field()?, field()?);
    let (io_wait, irq, softirq, steal) = (field()?, field()?, field()?, field()?);
    let interrupt = irq.saturating_add(softirq);
    Some(CpuTicks {
        user: user.saturating_add(nice),
        system: system.saturating_add(interrupt),
        idle: idle.saturating_add(io_wait),
        steal,
        interrupt,
        io_wait,
    })
}

/// Parses the line of softirqs: their total, and then the number of each kind, `HI TIMER NET_TX NET_RX BLOCK …`. The
/// numbers are sums over all CPUs of the counters in /proc/softirqs.
fn softirqs<'a>(words: impl Iterator<Item = &'a [u8]>) -> Option<SoftirqSample> {
    let mut words = words.skip(3);
    let mut field = || words.next().and_then(number);
    Some(SoftirqSample { network: field()?.saturating_add(field()?), disk: field()? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STAT: &[u8] = b"cpu  30 10 50 200 20 3 4 5 7 0\n\
        cpu0 10 5 20 100 10 1 2 3 7 0\n\
        cpu11 20 5 30 100 10 2 2 2 0 0\n\
        intr 301498 0 7 0 0\n\
        ctxt 518543\n\
        btime 1795291491\n\
        processes 10527\n\
        procs_running 2\n\
        procs_blocked 1\n\
        softirq 5000 1 2000 30 400 50 6 7 8 9 10\n";

    #[test]
    fn parts_are_counted_in_their_wholes_and_guests_once() {
        let stat = SystemStat::parse(STAT);
        let all = CpuTicks { user: 40, system: 57, idle: 220, steal: 5, interrupt: 7, io_wait: 20 };
        let expected = SystemStat {
            cpu: Some(all),
            interrupts: Some(301_498),
            context_switches: Some(518_543),
            forks: Some(10_527),
            running: Some(2),
            blocked: Some(1),
            softirqs: Some(SoftirqSample { network: 430, disk: 50 }),
        };
        assert_eq!(stat, expected);
        let last = CpuTicks { user: 25, system: 34, idle: 110, steal: 2, interrupt: 4, io_wait: 10 };
        let cores: Vec<_> = cores(STAT).collect();
        assert_eq!((cores.len(), cores[0].0, cores[1]), (2, 0, (11, last)));
    }

    #[test]
    fn a_line_cut_short_gives_nothing() {
        let stat = SystemStat::parse(b"cpu  30 10 50 200 20 3 4\nctxt\nsoftirq 5000 1 2000 30 400\n");
        assert_eq!(stat, SystemStat::default());
        assert_eq!(cores(b"cpu  1 2 3 4 5 6 7 8\ncpu0 1 2 3\ncpux 1 2 3 4 5 6 7 8\n").count(), 0);
    }

    proptest! {
        #[test]
        fn no_bytes_panic(at in 0..STAT.len(), rest in proptest::collection::vec(any::<u8>(), 0..100)) {
            let mut mixed = STAT[..at].to_vec();
            mixed.extend(rest);
            let _ = (SystemStat::parse(&mixed), cores(&mixed).count());
        }
    }
}
