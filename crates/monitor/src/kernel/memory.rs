//! Reads memory and paging: /proc/meminfo and /proc/vmstat. Source: proc(5); mm/vmstat.c.

use crate::counter::TimeSpan;
use crate::procfs::{lines, number, words};
use brimful_core::server::{Memory, Paging};
use serde::{Deserialize, Serialize};

/// Counters of paging since boot, for the whole machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PagingSample {
    /// Size of a page on this machine, in bytes.
    pub page_bytes: u64,
    /// Data read from disks, in KiB: file contents and swap.
    pub in_kib: Option<u64>,
    /// Data written to disks, in KiB: file contents and swap.
    pub out_kib: Option<u64>,
    /// Number of pages read from swap.
    pub swapped_in: Option<u64>,
    /// Number of pages written to swap.
    pub swapped_out: Option<u64>,
    /// Number of page faults that waited for a disk.
    pub major_faults: Option<u64>,
}

impl PagingSample {
    /// Parses /proc/vmstat. Its fields pgpgin and pgpgout are in KiB, whatever the page size.
    pub(super) fn parse(text: &[u8], page_bytes: u64) -> Option<PagingSample> {
        let (mut paging, mut wanted) = (PagingSample { page_bytes, ..PagingSample::default() }, 5);
        for line in lines(text).filter(|line| line.starts_with(b"p")) {
            let mut words = words(line);
            let counter = match words.next()? {
                b"pgpgin" => &mut paging.in_kib,
                b"pgpgout" => &mut paging.out_kib,
                b"pswpin" => &mut paging.swapped_in,
                b"pswpout" => &mut paging.swapped_out,
                b"pgmajfault" => &mut paging.major_faults,
                _ => continue,
            };
            *counter = words.next().and_then(number);
            wanted -= 1;
            if wanted == 0 {
                break;
            }
        }
        (wanted < 5).then_some(paging)
    }

    /// Computes the rates of paging since an earlier sample.
    pub(super) fn since(&self, earlier: &PagingSample, over: TimeSpan) -> Paging {
        let pages = |from, to| over.optional_per_s(from, to).map(|kib| kib * 1024.0 / self.page_bytes as f64);
        Paging {
            page_ins_per_s: pages(earlier.in_kib, self.in_kib),
            page_outs_per_s: pages(earlier.out_kib, self.out_kib),
            swap_ins_per_s: over.optional_per_s(earlier.swapped_in, self.swapped_in),
            swap_outs_per_s: over.optional_per_s(earlier.swapped_out, self.swapped_out),
            major_faults_per_s: over.optional_per_s(earlier.major_faults, self.major_faults),
        }
    }
}

/// Parses /proc/meminfo. Kernels before 3.14 have no `MemAvailable`.
pub(super) fn memory(text: &[u8]) -> Option<Memory> {
    let bytes = |name: &[u8]| {
        let kib = lines(text).find_map(|line| line.strip_prefix(name)).and_then(|line| words(line).next())?;
        number(kib)?.checked_mul(1024)
    };
    Some(Memory { total_bytes: bytes(b"MemTotal:")?, available_bytes: bytes(b"MemAvailable:") })
}

#[cfg(test)]
mod tests {
    use super::*;
    use brimful_core::Nanos;
    use proptest::prelude::*;

    const VMSTAT: &[u8] = b"nr_free_pages 3312349\npgpgin 4000\npgpgout 800\npswpin 7\npswpout 9\npgfault 5000\n\
        pgmajfault 40\npgrefill 0\n";
    const MEMINFO: &[u8] = b"MemTotal:       24684092 kB\nMemFree:        13249396 kB\nMemAvailable:   23687844 kB\n";

    #[test]
    fn pages_are_the_machines_own() {
        for (page_bytes, pages) in [(4096, 500.0), (65_536, 31.25)] {
            let from = PagingSample::parse(VMSTAT, page_bytes).unwrap();
            let to = PagingSample { in_kib: Some(8000), major_faults: Some(44), swapped_out: None, ..from };
            let paging = to.since(&from, TimeSpan(Nanos::from_secs(2)));
            assert_eq!((paging.page_ins_per_s, paging.page_outs_per_s), (Some(pages), Some(0.0)));
            assert_eq!((paging.major_faults_per_s, paging.swap_ins_per_s), (Some(2.0), Some(0.0)));
            assert_eq!(paging.swap_outs_per_s, None);
        }
        assert_eq!(PagingSample::parse(b"nr_free_pages 3312349\n", 4096), None);
    }

    #[test]
    fn what_is_available_may_be_unknown() {
        let memory = |text| super::memory(text).map(|memory| (memory.total_bytes, memory.available_bytes));
        assert_eq!(memory(MEMINFO), Some((24_684_092 << 10, Some(23_687_844 << 10))));
        assert_eq!(memory(b"MemTotal: 3881716 kB\nMemFree: 1 kB\n"), Some((3_881_716 << 10, None)));
        assert_eq!(memory(b"MemFree: 1 kB\n"), None);
    }

    proptest! {
        #[test]
        fn no_bytes_panic(at in 0..VMSTAT.len(), rest in proptest::collection::vec(any::<u8>(), 0..100)) {
            for text in [VMSTAT, MEMINFO] {
                let mut mixed = text[..at.min(text.len())].to_vec();
                mixed.extend(&rest);
                let _ = (PagingSample::parse(&mixed, 4096), memory(&mixed));
            }
        }
    }
}
