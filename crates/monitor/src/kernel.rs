//! Kernel group: the machine.

use crate::MonitorError;
use crate::counter::Over;
use crate::procfs::{self, CpuTicks, ProcFile};
use brimful_core::Nanos;
use brimful_core::server::{CpuShares, Kernel};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// The machine at one moment: counters since boot. What the kernel does not tell is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KernelSample {
    /// Over the CPUs that are watched.
    pub cpu: Option<CpuTicks>,
    /// Which CPUs those are.
    pub cpus: Vec<usize>,
    /// Context switches of the whole machine.
    pub context_switches: Option<u64>,
    /// Processes and threads started on the whole machine.
    pub forks: Option<u64>,
}

/// Reads it again and again.
#[derive(Debug)]
pub(crate) struct KernelWatch {
    stat: ProcFile,
    cpus: Vec<usize>,
    online: Vec<usize>,
    /// Whether the last reading of /proc/stat made sense.
    understood: bool,
}

impl KernelWatch {
    /// `root` is where /proc and /sys are; `cpus` those whose shares are averaged, all of them if empty.
    pub fn open(root: &Path, cpus: &[usize], online: Vec<usize>) -> Result<KernelWatch, MonitorError> {
        let stat = ProcFile::open(&root.join("proc/stat"))?;
        Ok(KernelWatch { stat, cpus: cpus.to_vec(), online, understood: false })
    }

    pub fn read(&mut self, buffer: &mut Vec<u8>) -> KernelSample {
        let stat = self.stat.read(buffer).ok().and_then(|text| procfs::system_stat(text, &self.cpus));
        self.understood = stat.is_some();
        KernelSample {
            cpu: stat.map(|stat| stat.cpu),
            cpus: if self.cpus.is_empty() { self.online.clone() } else { self.cpus.clone() },
            context_switches: stat.map(|stat| stat.context_switches),
            forks: stat.map(|stat| stat.forks),
        }
    }

    /// Where its figures come from, or why there are none.
    pub fn sources(&self, sources: &mut BTreeMap<String, String>) {
        let cpu = match self.understood {
            true if self.cpus.is_empty() => "/proc/stat, all CPUs".to_owned(),
            true => format!("/proc/stat, CPUs {}", procfs::show_cpus(&self.cpus)),
            false => "none: /proc/stat holds no figures of these CPUs".to_owned(),
        };
        sources.insert("cpu".to_owned(), cpu);
    }
}

impl KernelSample {
    /// What happened since an earlier sample, `over` a time.
    pub(crate) fn since(&self, earlier: &KernelSample, over: Nanos) -> Kernel {
        let over = Over(over);
        Kernel {
            cpu: earlier.cpu.zip(self.cpu).map(|(from, to)| shares(from, to)),
            cpus: self.cpus.clone(),
            context_switches_per_s: over.per_s_of(earlier.context_switches, self.context_switches),
            forks_per_s: over.per_s_of(earlier.forks, self.forks),
            ..Kernel::default()
        }
    }
}

/// All zero where no tick fell between the two.
fn shares(from: CpuTicks, to: CpuTicks) -> CpuShares {
    let ticks = |of: fn(&CpuTicks) -> u64| of(&to).saturating_sub(of(&from)) as f64;
    let ticks = [ticks(|t| t.user), ticks(|t| t.system), ticks(|t| t.idle), ticks(|t| t.steal)];
    let sum: f64 = ticks.iter().sum();
    let [user, system, idle, steal] = ticks.map(|part| if sum > 0.0 { part / sum } else { 0.0 });
    CpuShares { user, system, idle, steal, ..CpuShares::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn shares_make_one_even_when_a_counter_runs_backwards(a in any::<[u32; 4]>(), b in any::<[u32; 4]>()) {
            let ticks = |[user, system, idle, steal]: [u32; 4]| {
                CpuTicks { user: user.into(), system: system.into(), idle: idle.into(), steal: steal.into() }
            };
            let cpu = shares(ticks(a), ticks(b));
            let parts = [cpu.user, cpu.system, cpu.idle, cpu.steal];
            prop_assert!(parts.iter().all(|part| (0.0..=1.0).contains(part)));
            let sum: f64 = parts.iter().sum();
            prop_assert!((sum - 1.0).abs() < 1e-9 || (sum == 0.0 && a.iter().zip(b).all(|(a, b)| *a >= b)));
        }
    }
}
