//! Reads the counters of whole disks from /proc/diskstats. That file lists all block devices. Partitions, and devices
//! stacked on disks (device mapper, RAID), would count the same traffic again. Loop devices and RAM disks are not
//! disks. /sys/block distinguishes these kinds. Blocks have 512 bytes. Source: Documentation/admin-guide/iostats.rst.

use crate::counter::TimeSpan;
use crate::procfs::{ReopenedFile, lines, number, words};
use brimful_core::server::Disk;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

/// The counters of a disk since it was attached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskSample {
    /// Number of read operations completed.
    pub reads: u64,
    /// Number of blocks (of 512 bytes) read.
    pub blocks_read: u64,
    /// Number of write operations completed.
    pub writes: u64,
    /// Number of blocks (of 512 bytes) written.
    pub blocks_written: u64,
    /// Time in which at least one operation was in progress, in milliseconds.
    pub busy_ms: u64,
    /// Time in progress, summed over all operations, in milliseconds.
    pub queued_ms: u64,
}

/// Reads the counters of the machine's disks.
#[derive(Debug)]
pub(super) struct DiskWatch {
    file: ReopenedFile,
    sys_block: PathBuf,
    kinds: HashMap<Vec<u8>, Kind>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Disk,
    /// A disk for which counting is turned off in the kernel.
    Uncounted,
    /// A device that does not count as a disk: for example a partition, a device stacked on disks, or a loop device.
    Other,
}

impl DiskWatch {
    /// Creates a reader. `root` contains /proc and /sys.
    pub fn new(root: &Path) -> DiskWatch {
        DiskWatch {
            file: ReopenedFile::new(root.join("proc/diskstats")),
            sys_block: root.join("sys/block"),
            kinds: HashMap::new(),
        }
    }

    /// The counters of each whole disk, by name. `None` if there is no disk, or if disks cannot be distinguished from
    /// other devices.
    pub fn read(&mut self, buffer: &mut Vec<u8>) -> Option<BTreeMap<String, DiskSample>> {
        let DiskWatch { file, sys_block, kinds } = self;
        let disks = file.read(buffer, |text| {
            let (mut devices, mut disks) = (0, BTreeMap::new());
            for (name, disk) in diskstats(text) {
                devices += 1;
                if !kinds.contains_key(name) {
                    kinds.insert(name.to_owned(), Kind::classify(sys_block, &String::from_utf8_lossy(name)));
                }
                if kinds.get(name) == Some(&Kind::Disk) {
                    disks.insert(String::from_utf8_lossy(name).into_owned(), disk);
                }
            }
            // A device was removed. Its name is forgotten, because a new device with the same name may be of another
            // kind.
            if kinds.len() > devices {
                kinds.retain(|known, _| diskstats(text).any(|(name, _)| name == known));
            }
            Some(disks)
        });
        disks.filter(|disks| !disks.is_empty())
    }

    /// The source of the metrics with the names of the disks, or the reason why there are no metrics.
    pub fn source(&self) -> String {
        let names = |wanted| {
            let names = self.kinds.iter().filter(|(_, kind)| **kind == wanted);
            let mut names: Vec<_> = names.map(|(name, _)| String::from_utf8_lossy(name)).collect();
            names.sort_unstable();
            names.join(", ")
        };
        if !self.file.was_parsed() {
            return "none: /proc/diskstats cannot be read: mount /proc, or leave the sandbox that hides it".to_owned();
        }
        if !self.sys_block.is_dir() {
            return "none: whole disks are distinguished from their parts by /sys/block: sudo mount -t sysfs sysfs /sys"
                .to_owned();
        }
        let (disks, uncounted) = (names(Kind::Disk), names(Kind::Uncounted));
        let source = match disks.is_empty() {
            true => "none: /proc/diskstats has no whole disk that counts its traffic".to_owned(),
            false => format!("/proc/diskstats: {disks}"),
        };
        match uncounted.is_empty() {
            true => source,
            false => format!("{source}; without {uncounted}: echo 1 | sudo tee /sys/block/NAME/queue/iostats"),
        }
    }
}

impl Kind {
    fn classify(sys_block: &Path, name: &str) -> Kind {
        // Stacked devices and ZFS volumes are recognized by name: a stacked device may appear before its directory
        // `slaves`, and a ZFS volume has no such directory.
        const NOT_DISKS: [&str; 6] = ["loop", "ram", "zram", "dm-", "md", "zd"];
        let directory = sys_block.join(name.replace('/', "!"));
        let says = |file, word| fs::read_to_string(directory.join(file)).is_ok_and(|text| text.trim() == word);
        let stacked = || fs::read_dir(directory.join("slaves")).is_ok_and(|mut disks| disks.next().is_some());
        // Neither a hidden device (one of several paths to a disk) nor a partition (which has no directory in
        // /sys/block) counts as a disk.
        if NOT_DISKS.iter().any(|kind| name.starts_with(kind))
            || !directory.is_dir()
            || stacked()
            || says("hidden", "1")
        {
            return Kind::Other;
        }
        if says("queue/iostats", "0") { Kind::Uncounted } else { Kind::Disk }
    }
}

/// Parses lines of `major minor name`, then four counters of reads, four counters of writes, and three counters of
/// reads and writes together. Old kernels wrote shorter lines for partitions.
fn diskstats(text: &[u8]) -> impl Iterator<Item = (&[u8], DiskSample)> {
    lines(text).filter_map(|line| {
        let mut words = words(line);
        let name = words.nth(2)?;
        let mut field = |skip: usize| words.nth(skip).and_then(number);
        let (reads, blocks_read) = (field(0)?, field(1)?);
        let (writes, blocks_written) = (field(1)?, field(1)?);
        let (busy_ms, queued_ms) = (field(2)?, field(0)?);
        Some((name, DiskSample { reads, blocks_read, writes, blocks_written, busy_ms, queued_ms }))
    })
}

/// Computes the rates of the disks that existed at both samples: of all disks together, and of each disk. A disk whose
/// counters were reset was removed and attached again, so it is excluded.
pub(super) fn since(
    earlier: &BTreeMap<String, DiskSample>,
    later: &BTreeMap<String, DiskSample>,
    over: TimeSpan,
) -> (Option<Disk>, BTreeMap<String, Disk>) {
    let disk = |(name, to): (&String, &DiskSample)| Some((name.clone(), to.since(earlier.get(name)?, over)?));
    let disks: BTreeMap<String, Disk> = later.iter().filter_map(disk).collect();
    let together = disks.values().copied().reduce(|sum, disk| Disk {
        reads_per_s: sum.reads_per_s + disk.reads_per_s,
        blocks_read_per_s: sum.blocks_read_per_s + disk.blocks_read_per_s,
        writes_per_s: sum.writes_per_s + disk.writes_per_s,
        blocks_written_per_s: sum.blocks_written_per_s + disk.blocks_written_per_s,
        utilization: sum.utilization.max(disk.utilization),
        queue_length: sum.queue_length + disk.queue_length,
    });
    (together, disks)
}

impl DiskSample {
    fn since(&self, earlier: &DiskSample, over: TimeSpan) -> Option<Disk> {
        let share_of_ms = |from, to| over.per_s(from, to).map(|ms_per_s| ms_per_s / 1000.0);
        Some(Disk {
            reads_per_s: over.per_s(earlier.reads, self.reads)?,
            blocks_read_per_s: over.per_s(earlier.blocks_read, self.blocks_read)?,
            writes_per_s: over.per_s(earlier.writes, self.writes)?,
            blocks_written_per_s: over.per_s(earlier.blocks_written, self.blocks_written)?,
            // The busy time is counted in whole ticks of the kernel, so the ratio may slightly exceed 1.
            utilization: share_of_ms(earlier.busy_ms, self.busy_ms)?.min(1.0),
            queue_length: share_of_ms(earlier.queued_ms, self.queued_ms)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brimful_core::Nanos;
    use proptest::prelude::*;

    const VDA: &str = " 254       0 vda 500 21 6000 579 300 39 7000 692 1 4000 9000 1 2 3 4 5 6\n";
    const SECOND: TimeSpan = TimeSpan(Nanos::from_secs(1));

    struct Fixture(tempfile::TempDir, DiskWatch);

    impl Fixture {
        fn new() -> Fixture {
            let root = tempfile::tempdir().unwrap();
            fs::create_dir(root.path().join("proc")).unwrap();
            let watch = DiskWatch::new(root.path());
            Fixture(root, watch)
        }

        fn block(&self, path: &str, text: &str) {
            let path = self.0.path().join("sys/block").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn names(&mut self, devices: &[&str]) -> Vec<String> {
            let lines: String = devices.iter().map(|name| VDA.replace("vda", name)).collect();
            fs::write(self.0.path().join("proc/diskstats"), lines).unwrap();
            self.1.read(&mut Vec::new()).unwrap_or_default().into_keys().collect()
        }
    }

    #[test]
    fn only_whole_disks_count() {
        let mut fixture = Fixture::new();
        let all =
            ["sda", "sda1", "cciss/c0d0", "loop0", "ram0", "zram0", "dm-0", "md0", "bcache0", "nvme0c0n1", "nvme0n1"];
        assert_eq!(fixture.names(&all), [""; 0]);
        assert!(fixture.1.source().starts_with("none: whole disks"), "{}", fixture.1.source());
        let mut fixture = Fixture::new();
        for name in all.into_iter().filter(|&name| name != "sda1") {
            fixture.block(&format!("{}/queue/iostats", name.replace('/', "!")), "1\n");
        }
        fixture.block("bcache0/slaves/sda1", "");
        fixture.block("nvme0c0n1/hidden", "1\n");
        assert_eq!(fixture.names(&all), ["cciss/c0d0", "nvme0n1", "sda"]);
        assert_eq!(fixture.1.source(), "/proc/diskstats: cciss/c0d0, nvme0n1, sda");
    }

    #[test]
    fn a_disk_that_counts_nothing_is_named() {
        let mut fixture = Fixture::new();
        fixture.block("vda/queue/iostats", "0\n");
        assert_eq!(fixture.names(&["vda"]), [""; 0]);
        assert!(fixture.1.source().contains("without vda: echo 1 | sudo tee"), "{}", fixture.1.source());
        fixture.block("vdb/queue/iostats", "1\n");
        assert_eq!(fixture.names(&["vda", "vdb"]), ["vdb"]);
        fixture.block("vda/queue/iostats", "1\n");
        assert_eq!(fixture.names(&["vdb"]), ["vdb"]);
        assert_eq!(fixture.names(&["vda", "vdb"]), ["vda", "vdb"], "a disk that comes back is examined again");
    }

    #[test]
    fn disks_add_up_and_the_busiest_is_shown() {
        let from = diskstats(VDA.as_bytes()).next().unwrap().1;
        let expected = DiskSample {
            reads: 500,
            blocks_read: 6000,
            writes: 300,
            blocks_written: 7000,
            busy_ms: 4000,
            queued_ms: 9000,
        };
        assert_eq!(from, expected);
        let busy = DiskSample { reads: 510, blocks_read: 6080, busy_ms: 4250, queued_ms: 12_000, ..from };
        let full = DiskSample { writes: 307, blocks_written: 7007, busy_ms: 5004, queued_ms: 10_000, ..from };
        let new = DiskSample { reads: 5, ..from };
        let disks = |list: &[(&str, DiskSample)]| list.iter().map(|&(name, disk)| (name.to_owned(), disk)).collect();
        let before = disks(&[("a", from), ("b", from), ("replugged", from), ("unplugged", from)]);
        let after = disks(&[("a", busy), ("b", full), ("replugged", new), ("new", new)]);
        let (together, each) = since(&before, &after, SECOND);
        let expected = Disk {
            reads_per_s: 10.0,
            blocks_read_per_s: 80.0,
            writes_per_s: 7.0,
            blocks_written_per_s: 7.0,
            utilization: 1.0,
            queue_length: 4.0,
        };
        assert_eq!(together, Some(expected));
        assert_eq!(each.keys().collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!((each["a"].utilization, each["a"].queue_length), (0.25, 3.0));
        assert_eq!(since(&before, &disks(&[("new", new)]), SECOND), (None, BTreeMap::new()));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(at in 0..VDA.len(), rest in proptest::collection::vec(any::<u8>(), 0..100)) {
            let mut mixed = VDA.as_bytes()[..at].to_vec();
            mixed.extend(&rest);
            let _ = diskstats(&mixed).count();
        }
    }
}
