//! A fixed amount of work whose CPU time varies with the contents of the caches and the speed of the CPU, as in real
//! servers. It visits the cache lines of a buffer in random order, computes a little at each, and makes a system call
//! from time to time.
//!
//! The speed of the work is measured once, before the server serves requests. All workers share one buffer, as
//! the processes of a server share programs and caches. The buffer is longer than a CPU's own caches. So a worker that
//! is moved to another CPU fetches lines from the cache that CPUs share. The worker fetches lines from memory if other
//! programs have evicted them from the shared cache.

use crate::error::TargetError;
use brimful_core::{Bytes, Nanos};
use brimful_os::clock::thread_cpu;
use brimful_os::cpus::pin_this_thread;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64;
use std::hint::black_box;
use std::sync::Arc;
use std::thread;

/// Number of cache lines visited between two system calls. This makes about 50 system calls per millisecond.
const LINES_PER_CALL: u64 = 128;
/// Number of multiplications at each cache line. They take several times as long as fetching the line from a cache that
/// CPUs share, and about as long as fetching it from memory. So with cold caches, the work takes less than twice the
/// time.
const ROUNDS: usize = 100;
/// Limits of the buffer's length. Within these limits the buffer is twice as long as the second-level cache.
const MIN_BUFFER: Bytes = Bytes(4 << 20);
const MAX_BUFFER: Bytes = Bytes(32 << 20);

/// A cache line that contains the index of the next line.
#[repr(align(64))]
#[derive(Clone, Copy, Debug)]
struct Line(u32);

/// Does the work of one worker.
#[derive(Clone, Debug)]
pub(crate) struct Walker {
    /// The cache lines of the buffer, linked into one cycle.
    lines: Arc<[Line]>,
    at: u32,
    /// The value computed so far. The index of the next line depends on it through `mask`, so that computing and
    /// fetching cannot overlap. The mask is zero, but the compiler does not know that.
    value: u32,
    mask: u32,
    lines_per_ns: f64,
}

impl Walker {
    /// Measures how many lines are visited per nanosecond. The measurement runs on a thread of its own, pinned to a CPU
    /// if one is given, and takes some 20 ms.
    pub(crate) fn calibrated(cpu: Option<usize>) -> Result<Walker, TargetError> {
        let measure = || {
            cpu.map_or(Ok(()), |cpu| pin_this_thread(cpu).map_err(|source| TargetError::Pin { cpu, source }))?;
            let mut walker = Walker::new(buffer_length());
            walker.calibrate();
            Ok(walker)
        };
        thread::scope(|scope| {
            let builder = thread::Builder::new().name("target-calibrate".to_owned());
            let thread = builder.spawn_scoped(scope, measure);
            let thread = thread.map_err(|source| TargetError::Resources { what: "a thread", source })?;
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    fn new(length: Bytes) -> Walker {
        let count = length.0 as usize / size_of::<Line>();
        let mut order: Vec<u32> = (0..count as u32).collect();
        order.shuffle(&mut Pcg64::new(1, 3));
        let mut lines = vec![Line(0); count];
        for (at, to) in order.iter().zip(order.iter().cycle().skip(1)) {
            lines[*at as usize] = Line(*to);
        }
        Walker { lines: lines.into(), at: 0, value: 1, mask: black_box(0), lines_per_ns: 1.0 }
    }

    /// A copy for a worker that starts at this position, between 0 and 1. Different positions keep workers from
    /// following one another through the buffer.
    pub(crate) fn starting_at(&self, position: f64) -> Walker {
        Walker { at: (position * self.lines.len() as f64) as u32, ..self.clone() }
    }

    /// Measures the speed as the median of several samples, so that a few interrupts do not matter.
    fn calibrate(&mut self) {
        const SAMPLES: usize = 15;
        const VISITS: u64 = 5_000;
        self.visit(self.lines.len() as u64);
        let mut samples = [0; SAMPLES].map(|_: u64| {
            let start = thread_cpu();
            self.visit(VISITS);
            (thread_cpu() - start).0
        });
        samples.sort_unstable();
        self.lines_per_ns = VISITS as f64 / samples[SAMPLES / 2].max(1) as f64;
    }

    /// Does the work that took `time` in the calibration.
    pub(crate) fn work(&mut self, time: Nanos) {
        self.visit((time.0 as f64 * self.lines_per_ns) as u64);
    }

    fn visit(&mut self, lines: u64) {
        for count in 1..=lines {
            let next = self.lines[self.at as usize].0;
            for _ in 0..ROUNDS {
                self.value = (self.value ^ next).wrapping_mul(0x9e37_79b1);
            }
            self.at = next ^ (self.value & self.mask);
            if count % LINES_PER_CALL == 0 {
                black_box(rustix::process::getppid());
            }
        }
        black_box(self.value);
    }
}

/// Length of the buffer: more than the size of a CPU's own caches.
fn buffer_length() -> Bytes {
    let own_cache = std::fs::read_to_string("/sys/devices/system/cpu/cpu0/cache/index2/size").ok();
    let own_cache = own_cache.and_then(|text| format!("{}iB", text.trim()).parse().ok()).unwrap_or(Bytes(0));
    Bytes((2 * own_cache.0).clamp(MIN_BUFFER.0, MAX_BUFFER.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_walk_visits_every_line() {
        let mut walker = Walker::new(Bytes(64 << 10));
        let mut seen = vec![false; walker.lines.len()];
        for _ in 0..seen.len() {
            walker.visit(1);
            assert!(!std::mem::replace(&mut seen[walker.at as usize], true));
        }
        assert_eq!(walker.at, 0);
    }

    #[test]
    fn the_amount_of_work_is_proportional_to_the_time() {
        let mut walker = Walker { lines_per_ns: 2.0, ..Walker::new(Bytes(1 << 20)) };
        let mut other = walker.clone();
        walker.work(Nanos(1_000));
        walker.work(Nanos(1_000));
        other.work(Nanos(2_000));
        assert_eq!((walker.at, walker.value), (other.at, other.value));
        other.visit(4_000);
        walker.visit(3_999);
        assert_ne!(walker.at, other.at);
    }

    #[test]
    fn the_measured_speed_is_that_of_some_cpu() {
        let walker = Walker::calibrated(None).unwrap();
        // The speed is between one line in 100 µs and one line in 1 ns.
        assert!((1e-5..1.0).contains(&walker.lines_per_ns), "{}", walker.lines_per_ns);
        assert!(walker.lines.len() * size_of::<Line>() >= MIN_BUFFER.0 as usize);
        let refused = Walker::calibrated(Some(1 << 20));
        assert!(matches!(refused, Err(TargetError::Pin { cpu: 1_048_576, .. })));
    }
}
