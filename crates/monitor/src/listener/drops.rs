//! Computes how many of the segments that listening sockets dropped were SYNs. The head of `listener.rs` lists the
//! other kinds.
//!
//! All numbers are for the sockets of all watched ports together, since monitoring began. Let s be the number of SYNs
//! dropped, and l the number of last segments of handshakes that met a full queue. Let d be the number of segments for
//! which the kernel has a separate cause. The sockets count s + 2l + d. The network namespace counts s + l as
//! `ListenDrops`, and counts d separately. So s can be computed if no other process in the namespace listens. Drops of
//! other processes raise the namespace's counters. All drops that the sockets counted then count as SYNs.

use crate::counter::growth;
use crate::network::columns::Columns;
use crate::procfs::ProcFile;
use std::path::Path;

/// Separates the SYNs from the other drops of the watched sockets.
#[derive(Debug)]
pub(super) struct SynDrops {
    netstat: Option<ProcFile>,
    columns: Columns<3>,
    /// The counters of the network namespace when monitoring began, in the order of `columns`.
    from: [Option<u64>; 3],
    /// Number of drops that the sockets counted since monitoring began.
    counted: u64,
    syns: u64,
}

impl SynDrops {
    /// Reads the initial counters. `net` is the directory of the namespace's counters.
    pub fn open(net: &Path, buffer: &mut Vec<u8>) -> SynDrops {
        let netstat = ProcFile::open(&net.join("netstat")).ok();
        let columns = Columns::new("TcpExt:", ["ListenDrops", "TCPDeferAcceptDrop", "EmbryonicRsts"]);
        let mut drops = SynDrops { netstat, columns, from: [None; 3], counted: 0, syns: 0 };
        drops.from = drops.read(buffer).unwrap_or_default();
        drops
    }

    /// The number of SYNs among the latest `new` drops of the sockets. Call this function after the sockets were read:
    /// namespace counters that are slightly newer than the sockets' counters cause no lasting error, because both are
    /// totals.
    pub fn count_syns(&mut self, new: u64, buffer: &mut Vec<u8>) -> u64 {
        self.counted += new;
        let now = self.read(buffer).unwrap_or_default();
        let grown = |counter: usize| growth(self.from[counter]?, now[counter]?);
        let syns = match grown(0) {
            // Without the namespace's counters, SYNs and other segments cannot be separated, so all drops count as
            // SYNs.
            None => self.syns + new,
            Some(listen_drops) => {
                let elsewhere = grown(1).unwrap_or_default() + grown(2).unwrap_or_default();
                syns(self.counted, listen_drops, elsewhere)
            }
        };
        let new = syns.saturating_sub(self.syns).min(new);
        self.syns += new;
        new
    }

    /// Number of drops since monitoring began that were not SYNs.
    pub fn other_drops(&self) -> u64 {
        self.counted - self.syns
    }

    fn read(&mut self, buffer: &mut Vec<u8>) -> Option<[Option<u64>; 3]> {
        Some(self.columns.read(self.netstat.as_ref()?.read(buffer).ok()?))
    }
}

/// Computes the number s of dropped SYNs from the counters s + 2l + d, s + l and d, which the head of this file
/// defines.
fn syns(counted: u64, listen_drops: u64, elsewhere: u64) -> u64 {
    let dropped = counted.min(listen_drops);
    let late = counted.saturating_sub(listen_drops).saturating_sub(elsewhere);
    dropped.saturating_sub(late)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn drops_are_read_from_the_counters_of_the_namespace() {
        let directory = tempfile::tempdir().unwrap();
        let write = |[listen_drops, deferred, resets]: [u64; 3]| {
            let text = format!(
                "TcpExt: EmbryonicRsts ListenDrops TCPDeferAcceptDrop\nTcpExt: {resets} {listen_drops} {deferred}\n"
            );
            std::fs::write(directory.path().join("netstat"), text).unwrap();
        };
        write([1000, 2000, 3000]);
        let mut buffer = Vec::new();
        let mut drops = SynDrops::open(directory.path(), &mut buffer);
        write([1010, 2000, 3000]);
        assert_eq!(drops.count_syns(10, &mut buffer), 10, "all drops are SYNs");
        write([1010, 2500, 3007]);
        assert_eq!(drops.count_syns(507, &mut buffer), 0, "deferred and reset handshakes are not SYNs");
        write([1018, 2500, 3007]);
        assert_eq!(drops.count_syns(11, &mut buffer), 5, "three last segments count twice each");
        write([5000, 2500, 3007]);
        assert_eq!(
            (drops.count_syns(4, &mut buffer), drops.other_drops()),
            (4, 513),
            "with drops of other processes, all drops count as SYNs"
        );
        std::fs::write(directory.path().join("netstat"), "").unwrap();
        assert_eq!(drops.count_syns(7, &mut buffer), 7, "without the namespace's counters, all drops count as SYNs");
    }

    proptest! {
        #[test]
        fn what_is_found_is_s_however_often_one_looks(
            rounds in proptest::collection::vec((0u64..100, 0u64..100, 0u64..1000, 0u64..50), 1..20),
        ) {
            let [mut counted, mut listen_drops, mut elsewhere, mut s] = [0; 4];
            for (dropped, late, other, ahead) in rounds {
                s += dropped;
                counted += dropped + 2 * late + other;
                listen_drops += dropped + late;
                elsewhere += other;
                prop_assert_eq!(syns(counted, listen_drops, elsewhere), s);
                // The namespace's counters are read a little later than those of the sockets. If they have grown
                // meanwhile, the result may be too large, but never too small.
                let found = syns(counted, listen_drops + ahead, elsewhere + ahead);
                prop_assert!(found >= s && found <= counted);
            }
        }
    }
}
