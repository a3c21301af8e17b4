//! Computes the shares of each CPU's time, and the shares of all watched CPUs together.
//!
//! A CPU is included if it was online at both samples and its counters were not reset. Until Linux 6.8, idle time is
//! reset when a CPU goes offline and back online. A suspension of the machine also resets it, because all CPUs except
//! one go offline. The kernel's own sum cannot be used, because it includes CPUs that are offline by now.

use super::stat::CpuTicks;
use brimful_core::server::{Core, CpuShares};
use std::collections::BTreeMap;

/// Returns the numbers of the CPUs that are included (see the head of this file), the shares of time of all these CPUs
/// together, and the shares of each CPU.
pub(super) fn since(
    earlier: &BTreeMap<usize, CpuTicks>,
    later: &BTreeMap<usize, CpuTicks>,
) -> (Vec<usize>, Option<CpuShares>, Vec<Core>) {
    let grown = |(&cpu, to): (&usize, &CpuTicks)| Some((cpu, growth(earlier.get(&cpu)?, to)?));
    let grown: Vec<(usize, CpuTicks)> = later.iter().filter_map(grown).collect();
    let kept = KeptCounters {
        interrupt: later.values().any(|ticks| ticks.interrupt > 0),
        io_wait: later.values().any(|ticks| ticks.io_wait > 0),
    };
    let cores = grown.iter().filter_map(|&(cpu, ticks)| Some(Core { cpu, shares: kept.shares(ticks)? })).collect();
    let together = kept.shares(grown.iter().fold(CpuTicks::default(), |sum, (_, ticks)| plus(sum, ticks)));
    (grown.into_iter().map(|(cpu, _)| cpu).collect(), together, cores)
}

/// For each optional counter of CPU time, whether this kernel keeps it. A counter that is not kept is written as 0, for
/// example in a container's view of /proc (lxcfs). So a counter that is 0 on every CPU since boot counts as not kept.
struct KeptCounters {
    interrupt: bool,
    io_wait: bool,
}

impl KeptCounters {
    /// Computes the share of each kind of CPU time. Returns `None` if no tick fell into the period, which happens if
    /// the period is shorter than 10 ms. The shares are unknown then. Four zeros would be wrong, because the shares of
    /// a CPU add up to 1.
    fn shares(&self, ticks: CpuTicks) -> Option<CpuShares> {
        let CpuTicks { user, system, idle, steal, interrupt, io_wait } = ticks;
        let all = [user, system, idle, steal].into_iter().map(|ticks| ticks as f64).sum::<f64>();
        let share = |ticks: u64| ticks as f64 / all;
        (all > 0.0).then(|| CpuShares {
            user: share(user),
            system: share(system),
            idle: share(idle),
            steal: share(steal),
            interrupt: self.interrupt.then(|| share(interrupt)),
            io_wait: self.io_wait.then(|| share(io_wait)),
        })
    }
}

/// Computes the growth of each counter. Returns `None` if the counters were reset. Two counters may fall without a
/// reset, which counts as no growth. Steal may fall after a migration to another host. The kernel moves iowait to idle
/// time when the waiting thread wakes on another CPU.
fn growth(from: &CpuTicks, to: &CpuTicks) -> Option<CpuTicks> {
    let (system, idle) = (steady(from.system, to.system)?, steady(from.idle, to.idle)?);
    Some(CpuTicks {
        user: steady(from.user, to.user)?,
        system,
        idle,
        steal: to.steal.saturating_sub(from.steal),
        interrupt: to.interrupt.saturating_sub(from.interrupt).min(system),
        io_wait: to.io_wait.saturating_sub(from.io_wait).min(idle),
    })
}

/// Growth of a counter that may fall slightly: a CPU may become idle or busy while its idle time is read, and lxcfs
/// rounds. A fall by more than a second means that the counter was reset.
fn steady(from: u64, to: u64) -> Option<u64> {
    const MAX_FALL_TICKS: u64 = 100;
    (to.saturating_add(MAX_FALL_TICKS) >= from).then(|| to.saturating_sub(from))
}

fn plus(a: CpuTicks, b: &CpuTicks) -> CpuTicks {
    CpuTicks {
        user: a.user.saturating_add(b.user),
        system: a.system.saturating_add(b.system),
        idle: a.idle.saturating_add(b.idle),
        steal: a.steal.saturating_add(b.steal),
        interrupt: a.interrupt.saturating_add(b.interrupt),
        io_wait: a.io_wait.saturating_add(b.io_wait),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BUSY: CpuTicks = CpuTicks { user: 1000, system: 900, idle: 5000, steal: 10, interrupt: 200, io_wait: 300 };

    fn cpus(ticks: &[(usize, CpuTicks)]) -> BTreeMap<usize, CpuTicks> {
        ticks.iter().copied().collect()
    }

    fn later(user: u64, system: u64, idle: u64) -> CpuTicks {
        plus(BUSY, &CpuTicks { user, system, idle, ..CpuTicks::default() })
    }

    #[test]
    fn a_cpu_that_comes_leaves_or_begins_anew_does_not_count() {
        let before = cpus(&[(0, BUSY), (1, BUSY), (2, BUSY)]);
        let restarted = CpuTicks { idle: 3, io_wait: 0, ..BUSY };
        let after = cpus(&[(0, later(25, 25, 50)), (2, restarted), (3, later(0, 0, 9))]);
        let (watched, together, cores) = since(&before, &after);
        let together = together.unwrap();
        assert_eq!((together.user, together.system, together.idle, together.steal), (0.25, 0.25, 0.5, 0.0));
        assert_eq!((watched, cores.len(), cores[0].shares), (vec![0], 1, together));
    }

    #[test]
    fn without_a_tick_nothing_is_known() {
        let ticks = cpus(&[(0, BUSY), (1, BUSY)]);
        assert_eq!(since(&ticks, &ticks), (vec![0, 1], None, vec![]));
        let (watched, together, cores) = since(&ticks, &cpus(&[(0, BUSY), (1, later(1, 0, 0))]));
        assert_eq!((watched, together.unwrap().user, cores.len()), (vec![0, 1], 1.0, 1));
        assert_eq!(since(&BTreeMap::new(), &ticks), (vec![], None, vec![]));
    }

    #[test]
    fn what_runs_backwards_a_little_has_not_grown() {
        let to = CpuTicks { user: 1060, system: 899, idle: 5040, steal: 4, interrupt: 190, io_wait: 100 };
        let shares = since(&cpus(&[(0, BUSY)]), &cpus(&[(0, to)])).1.unwrap();
        let expected =
            CpuShares { user: 0.6, system: 0.0, idle: 0.4, steal: 0.0, interrupt: Some(0.0), io_wait: Some(0.0) };
        assert_eq!(shares, expected);
    }

    #[test]
    fn a_counter_that_never_moved_is_not_kept() {
        let from = CpuTicks { interrupt: 0, io_wait: 0, ..BUSY };
        let to = CpuTicks { idle: 5100, ..from };
        let shares = since(&cpus(&[(0, from)]), &cpus(&[(0, to)])).1.unwrap();
        assert_eq!((shares.idle, shares.interrupt, shares.io_wait), (1.0, None, None));
    }

    proptest! {
        #[test]
        fn shares_make_one_whatever_the_counters_do(
            counters in proptest::collection::vec(any::<[[u64; 6]; 2]>(), 1..4), small in any::<bool>(),
        ) {
            let ticks = |[user, system, idle, steal, interrupt, io_wait]: [u64; 6]| {
                let least = |n: u64| if small { n % 1000 } else { n };
                let (user, system, idle) = (least(user), least(system), least(idle));
                CpuTicks { user, system, idle, steal: least(steal), interrupt: interrupt % 99, io_wait: io_wait % 99 }
            };
            let side = |side: usize| counters.iter().enumerate().map(|(cpu, both)| (cpu, ticks(both[side]))).collect();
            let (watched, together, cores) = since(&side(0), &side(1));
            prop_assert!(cores.iter().all(|core| watched.contains(&core.cpu)));
            prop_assert_eq!(together.is_some(), !cores.is_empty());
            for shares in cores.iter().map(|core| core.shares).chain(together) {
                let parts = [shares.user, shares.system, shares.idle, shares.steal];
                prop_assert!(parts.iter().all(|part| (0.0..=1.0).contains(part)));
                prop_assert!((parts.iter().sum::<f64>() - 1.0).abs() < 1e-9);
                prop_assert!(shares.interrupt.is_none_or(|part| (0.0..=shares.system).contains(&part)));
                prop_assert!(shares.io_wait.is_none_or(|part| (0.0..=shares.idle).contains(&part)));
            }
        }
    }
}
