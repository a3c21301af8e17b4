//! Measures how fast this host currently computes and reads memory. One measurement takes about ten milliseconds. A
//! virtual machine shares caches, cores and clock frequency with other virtual machines, and its kernel has no
//! statistic of the slowdown that they cause. The results of two load tests are comparable only if the speeds measured
//! here were similar.

use crate::sys;
use brimful_core::Nanos;
use brimful_core::server::HostProbe;
use std::hint::black_box;
use std::sync::OnceLock;

/// Size of the buffer in MiB. The buffer is larger than the private caches of a core, but fits into the shared cache of
/// most servers.
pub(super) const BUFFER_MIB: usize = 16;
/// Wall-clock time for measuring each of the two speeds.
const MEASURING_TIME: Nanos = Nanos(3_500_000);

/// Measures the speed of the CPU that the calling thread runs on. The first call also builds the buffer, in about
/// 20 ms. Later calls use the same buffer.
pub fn probe() -> HostProbe {
    static SPEED_PROBE: OnceLock<SpeedProbe> = OnceLock::new();
    SPEED_PROBE.get_or_init(SpeedProbe::new).measure()
}

/// Measures the speed of a CPU and of its memory, with a buffer of its own.
#[derive(Debug)]
pub struct SpeedProbe {
    /// The cache lines of the buffer. Each line contains the index of the next line, in one cycle through all lines.
    lines: Box<[Line]>,
}

/// A cache line that contains the index of the next line in the cycle.
#[repr(align(64))]
#[derive(Clone, Copy, Debug)]
struct Line(u32);

impl Default for SpeedProbe {
    fn default() -> SpeedProbe {
        SpeedProbe::new()
    }
}

impl SpeedProbe {
    /// Creates a value for measurements, and fills its buffer.
    pub fn new() -> SpeedProbe {
        let count = (BUFFER_MIB << 20) / size_of::<Line>();
        let mut order: Vec<u32> = (0..count as u32).collect();
        let mut random = 1;
        for last in (1..count).rev() {
            random = scrambled(random);
            order.swap(last, (random >> 32) as usize % (last + 1));
        }
        let mut lines = vec![Line(0); count].into_boxed_slice();
        for (at, to) in order.iter().zip(order.iter().cycle().skip(1)) {
            lines[*at as usize] = Line(*to);
        }
        SpeedProbe { lines }
    }

    /// Measures the speed of the CPU that the calling thread runs on. Time in which the thread does not run is not
    /// counted. But other programs affect the result if they use the same caches or core, or lower the clock frequency.
    pub fn measure(&self) -> HostProbe {
        HostProbe { arithmetic_mops: arithmetic() / 1e6, memory_mreads: self.memory() / 1e6 }
    }

    /// Number of memory reads per second. Each read yields the address of the next read.
    fn memory(&self) -> f64 {
        const READS: u64 = 2_000;
        // Reads the whole buffer once before the measurement. Otherwise the result would depend on whether other work
        // has evicted the buffer from the caches.
        black_box(self.lines.iter().fold(0, |sum: u32, line| sum.wrapping_add(line.0)));
        let mut at = 0;
        per_second(READS, || {
            for _ in 0..READS {
                at = self.lines[at as usize].0;
            }
            black_box(at);
        })
    }
}

/// Number of integer operations per second. Each operation needs the result of the previous operation.
fn arithmetic() -> f64 {
    const ROUNDS: u64 = 20_000;
    let mut value = black_box(1);
    per_second(ROUNDS * OPERATIONS, || {
        for _ in 0..ROUNDS {
            value = scrambled(value);
        }
        black_box(value);
    })
}

/// Number of operations in [`scrambled`].
const OPERATIONS: u64 = 4;

/// Performs a shift, an exclusive or, a multiplication and an addition. A compiler cannot merge two calls into fewer
/// operations.
fn scrambled(value: u64) -> u64 {
    (value ^ (value >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9).wrapping_add(0x9e37_79b9_7f4a_7c15)
}

/// Operations per second of this thread's CPU time. `batch` performs `each` operations. The batch is repeated for
/// [`MEASURING_TIME`], at least once, and the result is the median over all batches.
fn per_second(each: u64, mut batch: impl FnMut()) -> f64 {
    let until = sys::now() + MEASURING_TIME;
    let mut rates = Vec::new();
    let mut before = sys::thread_cpu();
    while rates.is_empty() || sys::now() < until {
        batch();
        let now = sys::thread_cpu();
        rates.push(each as f64 * 1e9 / (now - before).0.max(1) as f64);
        before = now;
    }
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_are_those_of_some_computer() {
        let HostProbe { arithmetic_mops, memory_mreads } = probe();
        assert!((1.0..100_000.0).contains(&arithmetic_mops), "{arithmetic_mops}");
        // A read takes between half a nanosecond and a hundred microseconds.
        assert!((0.01..2_000.0).contains(&memory_mreads), "{memory_mreads}");
    }

    #[test]
    fn it_takes_some_milliseconds_of_cpu_time() {
        let prober = SpeedProbe::new();
        let before = sys::thread_cpu();
        prober.measure();
        let taken = sys::thread_cpu() - before;
        // The bound is about twenty times the expected CPU time.
        assert!(taken < Nanos::from_millis(240), "{taken}");
    }

    #[test]
    fn the_way_leads_through_all_of_the_buffer() {
        let prober = SpeedProbe::new();
        let mut at = 0;
        let mut steps = 0;
        while steps == 0 || at != 0 {
            at = prober.lines[at as usize].0;
            steps += 1;
        }
        assert_eq!(steps * size_of::<Line>(), BUFFER_MIB << 20);
    }
}
