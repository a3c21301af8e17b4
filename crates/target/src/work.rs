//! Work that is the same every time, and whose CPU time is not: how long it takes depends on what the caches hold and
//! on how fast the CPU is just then, as with real servers. It visits places of a buffer in random order, computes a
//! little at each, and makes a system call now and then.
//!
//! The amount is set once, before the server serves: so much as took the asked time then. The buffer is one for all
//! workers, as programs and their caches are for the processes of a server: longer than what a CPU has for itself, so
//! that a worker that comes to a CPU, or back to it, fetches from the cache that CPUs share, and from memory what
//! others have driven out of that.

use crate::error::TargetError;
use brimful_core::{Bytes, Nanos};
use brimful_os::clock::thread_cpu;
use brimful_os::cpus::pin_this_thread;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64;
use std::hint::black_box;
use std::sync::Arc;
use std::thread;

/// Places between two system calls: some 50 of these in a millisecond.
const STRIDE: u64 = 128;
/// Multiplications at each place. They take some times as long as fetching the place from a cache that CPUs share, and
/// about as long as from memory: a server whose caches were emptied takes less than twice the time.
const ROUNDS: usize = 100;
/// Least and most length of the buffer. In between it is twice as long as the second-level cache.
const SHORTEST: Bytes = Bytes(4 << 20);
const LONGEST: Bytes = Bytes(32 << 20);

/// A place is a cache line. It says which place is next.
#[repr(align(64))]
#[derive(Clone, Copy, Debug)]
struct Place(u32);

/// Does the work of one worker.
#[derive(Clone, Debug)]
pub(crate) struct Walker {
    /// All places are on one round trip.
    places: Arc<[Place]>,
    at: u32,
    /// What was computed. The way depends on it, so that computing cannot overlap with fetching, but it is not changed
    /// by it: `mask` is zero, which the compiler does not know.
    value: u32,
    mask: u32,
    places_per_ns: f64,
}

impl Walker {
    /// Measures on a thread of its own, on this CPU if one is given, how many places are visited in a time. Takes some
    /// 20 milliseconds.
    pub(crate) fn calibrated(cpu: Option<usize>) -> Result<Walker, TargetError> {
        let measure = || {
            cpu.map_or(Ok(()), |cpu| pin_this_thread(cpu).map_err(|source| TargetError::Pin { cpu, source }))?;
            let mut walker = Walker::new(length());
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
        let count = length.0 as usize / size_of::<Place>();
        let mut order: Vec<u32> = (0..count as u32).collect();
        order.shuffle(&mut Pcg64::new(1, 3));
        let mut places = vec![Place(0); count];
        for (at, to) in order.iter().zip(order.iter().cycle().skip(1)) {
            places[*at as usize] = Place(*to);
        }
        Walker { places: places.into(), at: 0, value: 1, mask: black_box(0), places_per_ns: 1.0 }
    }

    /// The same for a worker, from a place between 0 and 1: workers do not follow one another.
    pub(crate) fn starting_at(&self, place: f64) -> Walker {
        Walker { at: (place * self.places.len() as f64) as u32, ..self.clone() }
    }

    /// The median of several measurements, so that an interrupt or two do not matter.
    fn calibrate(&mut self) {
        const SAMPLES: usize = 15;
        const VISITS: u64 = 5_000;
        self.visit(self.places.len() as u64);
        let mut samples = [0; SAMPLES].map(|_: u64| {
            let start = thread_cpu();
            self.visit(VISITS);
            (thread_cpu() - start).0
        });
        samples.sort_unstable();
        self.places_per_ns = VISITS as f64 / samples[SAMPLES / 2].max(1) as f64;
    }

    /// Does as much as took this long when it was measured.
    pub(crate) fn work(&mut self, time: Nanos) {
        self.visit((time.0 as f64 * self.places_per_ns) as u64);
    }

    fn visit(&mut self, places: u64) {
        for count in 1..=places {
            let next = self.places[self.at as usize].0;
            for _ in 0..ROUNDS {
                self.value = (self.value ^ next).wrapping_mul(0x9e37_79b1);
            }
            self.at = next ^ (self.value & self.mask);
            if count % STRIDE == 0 {
                black_box(rustix::process::getppid());
            }
        }
        black_box(self.value);
    }
}

/// Of the buffer: more than a CPU has for itself.
fn length() -> Bytes {
    let own = std::fs::read_to_string("/sys/devices/system/cpu/cpu0/cache/index2/size").ok();
    let own = own.and_then(|text| format!("{}iB", text.trim()).parse().ok()).unwrap_or(Bytes(0));
    Bytes((2 * own.0).clamp(SHORTEST.0, LONGEST.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_walk_comes_by_every_place() {
        let mut walker = Walker::new(Bytes(64 << 10));
        let mut seen = vec![false; walker.places.len()];
        for _ in 0..seen.len() {
            walker.visit(1);
            assert!(!std::mem::replace(&mut seen[walker.at as usize], true));
        }
        assert_eq!(walker.at, 0);
    }

    #[test]
    fn the_same_time_is_the_same_amount_and_twice_the_time_twice_as_much() {
        let mut walker = Walker { places_per_ns: 2.0, ..Walker::new(Bytes(1 << 20)) };
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
        // From a place in a hundred microseconds to one in a nanosecond.
        assert!((1e-5..1.0).contains(&walker.places_per_ns), "{}", walker.places_per_ns);
        assert!(walker.places.len() * size_of::<Place>() >= SHORTEST.0 as usize);
        let refused = Walker::calibrated(Some(1 << 20));
        assert!(matches!(refused, Err(TargetError::Pin { cpu: 1_048_576, .. })));
    }
}
