//! Pressure stall information. It is derived from the kernel's total stall times, so that it covers the period between
//! two samples. The kernel's own averages cover fixed periods of 10 s and more. Source:
//! Documentation/accounting/psi.rst.

use crate::counter::TimeSpan;
use crate::procfs::{ReopenedFile, lines, number, words};
use brimful_core::Nanos;
use brimful_core::server::{Pressure, Stall};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Stall times of each resource since boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PressureSample {
    /// Stalls of threads that waited for a CPU.
    pub cpu: Option<StallSample>,
    /// Stalls of threads that waited for memory.
    pub memory: Option<StallSample>,
    /// Stalls of threads that waited for a disk.
    pub io: Option<StallSample>,
}

/// Total times since boot for which threads waited for one resource. The kernel counts them in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StallSample {
    /// Time in which at least one thread waited.
    pub some: Nanos,
    /// Time in which all threads with work to do waited.
    pub full: Option<Nanos>,
}

/// Reads the stall times of CPUs, memory and disks.
#[derive(Debug)]
pub(super) struct PressureWatch {
    cpu: ReopenedFile,
    memory: ReopenedFile,
    io: ReopenedFile,
}

impl PressureWatch {
    /// Creates a reader. `proc` is the path of /proc.
    pub fn new(proc: &Path) -> PressureWatch {
        let file = |name| ReopenedFile::new(proc.join("pressure").join(name));
        PressureWatch { cpu: file("cpu"), memory: file("memory"), io: file("io") }
    }

    /// Reads the stall times. `buffer` is scratch space for the contents of files.
    pub fn read(&mut self, buffer: &mut Vec<u8>) -> PressureSample {
        let cpu = self.cpu.read(buffer, StallSample::parse);
        PressureSample {
            // `full` is meaningless for the CPUs of the whole machine: Linux 5.13 and later write 0 into this line.
            cpu: cpu.map(|stall| StallSample { full: None, ..stall }),
            memory: self.memory.read(buffer, StallSample::parse),
            io: self.io.read(buffer, StallSample::parse),
        }
    }

    /// The source of the metrics, or the reason why there are none.
    pub fn source(&self) -> &'static str {
        match self.cpu.was_parsed() || self.memory.was_parsed() || self.io.was_parsed() {
            true => "/proc/pressure",
            false => {
                "none: this kernel keeps no pressure stall information: boot it with psi=1; it takes Linux 4.20 or \
                 later, built with CONFIG_PSI"
            }
        }
    }
}

impl PressureSample {
    /// Computes the metrics since an earlier sample. Returns `None` if the kernel provides no stall times of any
    /// resource.
    pub(super) fn since(&self, earlier: &PressureSample, over: TimeSpan) -> Option<Pressure> {
        let stall = |from: Option<StallSample>, to: Option<StallSample>| to?.since(from?, over);
        let pressure = Pressure {
            cpu: stall(earlier.cpu, self.cpu),
            memory: stall(earlier.memory, self.memory),
            io: stall(earlier.io, self.io),
        };
        (pressure != Pressure::default()).then_some(pressure)
    }
}

impl StallSample {
    /// Parses the total of a line `some avg10=0.00 avg60=0.00 avg300=0.00 total=12345`, and of the corresponding line
    /// for `full`.
    fn parse(text: &[u8]) -> Option<StallSample> {
        let total = |kind: &[u8]| {
            let mut figures = words(lines(text).find_map(|line| line.strip_prefix(kind))?);
            number(figures.find_map(|figure| figure.strip_prefix(b"total="))?)?.checked_mul(1000).map(Nanos)
        };
        Some(StallSample { some: total(b"some ")?, full: total(b"full ") })
    }

    /// Computes the metrics since an earlier sample. The kernel's clock and the clock of the sample are read one after
    /// the other, so a share may slightly exceed 1.
    fn since(self, earlier: StallSample, over: TimeSpan) -> Option<Stall> {
        let share = |from, to| over.share(from, to).map(|share| share.min(1.0));
        Some(Stall {
            some: share(earlier.some, self.some)?,
            full: earlier.full.zip(self.full).and_then(|(from, to)| share(from, to)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PRESSURE: &[u8] = b"some avg10=4.65 avg60=3.94 avg300=2.48 total=1806714335\n\
        full avg10=0.01 avg60=0.30 avg300=0.81 total=1110220372\n";

    #[test]
    fn totals_become_shares_of_the_time() {
        let from = StallSample::parse(PRESSURE).unwrap();
        assert_eq!((from.some, from.full), (Nanos(1_806_714_335_000), Some(Nanos(1_110_220_372_000))));
        let later = |ms| StallSample { some: from.some + Nanos::from_millis(ms), ..from };
        let over = TimeSpan(Nanos::from_secs(2));
        assert_eq!(later(500).since(from, over), Some(Stall { some: 0.25, full: Some(0.0) }));
        assert_eq!(later(2001).since(from, over).unwrap().some, 1.0);
        assert_eq!(from.since(later(500), over), None, "the counter was reset");
        let some = StallSample::parse(&PRESSURE[..60]).unwrap();
        assert_eq!(some.since(some, over), Some(Stall { some: 0.0, full: None }), "the line `full` is missing");
    }

    proptest! {
        #[test]
        fn no_bytes_panic(at in 0..PRESSURE.len(), rest in proptest::collection::vec(any::<u8>(), 0..100)) {
            let mut mixed = PRESSURE[..at].to_vec();
            mixed.extend(&rest);
            let _ = StallSample::parse(&mixed);
        }
    }
}
