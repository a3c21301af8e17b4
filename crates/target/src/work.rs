//! A fixed amount of work whose CPU time varies with the contents of the caches and the speed of the CPU, as in real
//! servers. It reads the cache lines of a buffer in random order, makes a short computation after each, and regularly
//! makes a system call.
//!
//! The speed of the work is measured once, before the server serves requests. All workers share one buffer, as the
//! processes of a server share programs and caches. The buffer is larger than the caches that belong to a single CPU,
//! so a worker fetches most lines from the cache that CPUs share, or from memory if other programs have evicted them.

use crate::error::TargetError;
use brimful_core::{Bytes, Nanos};
use brimful_os::clock::thread_cpu;
use brimful_os::cpus::pin_this_thread;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64;
use std::hint::black_box;
use std::sync::Arc;
use std::thread;

/// Number of cache lines that are read between two system calls. This results in about 50 system calls per millisecond.
const LINES_PER_CALL: u64 = 128;
/// Number of multiplications after each cache line. They take several times as long as fetching the line from a cache
/// that CPUs share, and about as long as fetching it from memory. So with cold caches, the work takes less than twice
/// as long.
const ROUNDS: usize = 100;
/// Lower and upper bounds of the buffer's length. Between them, the buffer is twice as large as the second-level cache.
const MIN_BUFFER: Bytes = Bytes(4 << 20);
const MAX_BUFFER: Bytes = Bytes(32 << 20);

/// A cache line. It contains the index of the next line to read.
#[repr(align(64))]
#[derive(Clone, Copy, Debug)]
struct Line(u32);

/// Performs the work for one worker: reads cache lines and computes.
#[derive(Clone, Debug)]
pub(crate) struct Walker {
    /// The cache lines of the buffer, which form one cycle.
    lines: Arc<[Line]>,
    at: u32,
    /// The result of the computation so far. Its bits in `mask` change the index of the next line, so that the
    /// CPU cannot fetch that line before the computation has ended. The mask is zero, but the compiler does not know
    /// that.
    value: u32,
    mask: u32,
    lines_per_ns: f64,
}

impl Walker {
    /// Measures how many lines are processed per nanosecond. The measurement runs on a separate thread, which is pinned
    /// to `cpu` if one is given, and takes about 20 ms.
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
            let thread = thread.map_err(|source| TargetError::Resources { resource: "a thread", source })?;
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

    /// Returns a copy for a worker that starts at this position of the buffer, from 0 to 1. Workers start at different
    /// positions, so that a worker does not profit from the lines that another worker has just fetched.
    pub(crate) fn starting_at(&self, position: f64) -> Walker {
        Walker { at: (position * self.lines.len() as f64) as u32, ..self.clone() }
    }

    /// Measures the speed as the median of several samples, so that a few interrupts do not affect it.
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

    /// Does the amount of work that took `time` in the calibration.
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

/// Length of the buffer: twice the size of the second-level cache, within the bounds.
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
        // The speed must be between one line in 100 µs and one line in 1 ns.
        assert!((1e-5..1.0).contains(&walker.lines_per_ns), "{}", walker.lines_per_ns);
        assert!(walker.lines.len() * size_of::<Line>() >= MIN_BUFFER.0 as usize);
        let refused = Walker::calibrated(Some(1 << 20));
        assert!(matches!(refused, Err(TargetError::Pin { cpu: 1_048_576, .. })));
    }
}
