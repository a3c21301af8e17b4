//! Counts overflows of the CPUs' receive queues: the second column of /proc/net/softnet_stat. The file has one line for
//! each CPU that is online; all numbers are hexadecimal with 32 bits. Source: softnet_seq_show in
//! net/core/net-procfs.c.

use crate::procfs::words;

/// The number of overflows of all CPUs' receive queues: the sum of the growth of each CPU's counter. It never falls,
/// even if a counter wraps around or a CPU goes offline.
#[derive(Debug, Default)]
pub(super) struct Overflows {
    /// For each CPU that was ever online, its number and the last value of its counter.
    cpus: Vec<(u32, u32)>,
    /// Number of overflows since the first reading.
    total: u64,
}

impl Overflows {
    /// Number of overflows since the first reading; `None` if the text does not have the format of
    /// /proc/net/softnet_stat.
    pub fn read(&mut self, text: &[u8]) -> Option<u64> {
        let mut found = false;
        for (row, line) in text.split_inclusive(|&byte| byte == b'\n').enumerate() {
            let (cpu, dropped) = cpu_and_dropped(line, row)?;
            found = true;
            match self.cpus.iter_mut().find(|(known, _)| *known == cpu) {
                Some((_, before)) => self.total += u64::from(dropped.wrapping_sub(std::mem::replace(before, dropped))),
                // The first value of a CPU's counter may include overflows from before monitoring began, so only its
                // later growth counts.
                None => self.cpus.push((cpu, dropped)),
            }
        }
        found.then_some(self.total)
    }
}

/// Parses the CPU's number and its overflows. Since Linux 5.10 the 13th column is the CPU's number. In older versions,
/// CPUs are identified by the order of the lines.
fn cpu_and_dropped(line: &[u8], row: usize) -> Option<(u32, u32)> {
    let mut words = words(line.strip_suffix(b"\n")?).map(hexadecimal);
    let dropped = words.nth(1)??;
    let cpu = match words.nth(10) {
        Some(cpu) => cpu?,
        None => row as u32,
    };
    Some((cpu, dropped))
}

fn hexadecimal(word: &[u8]) -> Option<u32> {
    u32::from_str_radix(std::str::from_utf8(word).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const COLUMNS: &str = "00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000";

    /// Lines in the format of Linux 5.10 and later.
    fn text(cpus: &[(u32, u32)]) -> String {
        cpus.iter()
            .map(|(cpu, dropped)| format!("00602d42 {dropped:08x} 00000063 {COLUMNS} 00000000 {cpu:08x} 00000000\n"))
            .collect()
    }

    #[test]
    fn what_is_new_is_added_up_over_a_wrap_and_over_cpus_that_come_and_go() {
        let mut overflows = Overflows::default();
        let mut read = |cpus| overflows.read(text(cpus).as_bytes()).unwrap();
        assert_eq!(read(&[(0, 0x10), (1, u32::MAX - 1)]), 0, "drops from before the first reading are not counted");
        assert_eq!(read(&[(0, 0x1a), (1, 3)]), 15, "10 on CPU 0, and 5 on CPU 1, whose counter wrapped around");
        assert_eq!(read(&[(1, 4)]), 16, "CPU 0 is offline");
        assert_eq!(read(&[(1, 4), (7, 100)]), 16, "earlier drops of a new CPU are not counted");
        assert_eq!(read(&[(0, 0x1c), (1, 4), (7, 101)]), 19);
    }

    #[test]
    fn old_kernels_do_not_number_the_cpus() {
        let mut overflows = Overflows::default();
        let mut read = |dropped: [u32; 2]| {
            let line = |dropped| format!("00602d42 {dropped:08x} 00000063 {COLUMNS}\n");
            overflows.read(dropped.map(line).concat().as_bytes())
        };
        assert_eq!((read([0x10, 0x20]), read([0x11, 0x22])), (Some(0), Some(3)));
        assert_eq!(overflows.read(b""), None, "the number is unknown, not zero");
        assert_eq!(overflows.read(b"00602d42 0000\n 000000"), None, "a line that is cut off yields no number");
    }

    proptest! {
        #[test]
        fn no_bytes_panic(line in "([0-9a-f]{0,9} ?){0,16}\n?", tail in proptest::collection::vec(any::<u8>(), 0..60)) {
            let mut text = line.into_bytes();
            text.extend(&tail);
            let mut overflows = Overflows::default();
            let _ = (overflows.read(&text), overflows.read(&tail), overflows.read(&text));
        }
    }
}
