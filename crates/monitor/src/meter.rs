//! Measures the cost of sampling.

use crate::sampler::{Sample, Sampler};
use crate::schedule::Groups;
use crate::sys;
use brimful_core::Nanos;
use brimful_core::server::Overhead;
use std::collections::BTreeMap;

/// Takes samples, and measures the CPU time of taking them. All samples must be taken by one thread.
#[derive(Debug)]
pub struct MeteredSampler {
    sampler: Sampler,
    /// CPU time for taking all samples so far.
    sampling: Nanos,
    samples: u64,
}

impl MeteredSampler {
    /// Creates a sampler that has taken no samples yet.
    pub fn new(sampler: Sampler) -> MeteredSampler {
        MeteredSampler { sampler, sampling: Nanos::ZERO, samples: 0 }
    }

    /// Reads the groups of metrics that are due.
    pub fn sample(&mut self, due: Groups) -> Sample {
        self.timed(|sampler| sampler.sample_groups(due))
    }

    /// Takes the last sample of a run; see [`Sampler::last_sample`].
    pub fn last_sample(&mut self) -> Sample {
        self.timed(Sampler::last_sample)
    }

    /// Number of samples taken so far.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// For each kind of metrics, its source or the reason why it is absent.
    pub fn sources(&self) -> BTreeMap<String, String> {
        self.sampler.sources()
    }

    /// The cost of taking all samples. `cpu` is the total CPU time of the monitor, which may be a thread or a whole
    /// process.
    pub fn overhead(&self, cpu: Nanos) -> Overhead {
        Overhead {
            monitor_cpu_s: cpu.as_secs_f64(),
            per_sample_us: self.sampling.as_micros_f64() / self.samples.max(1) as f64,
            samples: self.samples,
        }
    }

    fn timed(&mut self, take: impl FnOnce(&mut Sampler) -> Sample) -> Sample {
        let begun = sys::thread_cpu();
        let sample = take(&mut self.sampler);
        self.sampling += sys::thread_cpu() - begun;
        self.samples += 1;
        sample
    }
}
