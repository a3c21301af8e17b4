//! Tracks up to which time all received data has been read.
//!
//! A generator that was stopped, or is behind, finds responses in its sockets that arrived long ago. Whether a
//! response arrived by a certain time is known only after all data that had arrived by then was read. One check of
//! the sockets may not read all data. If data arrives faster than it is read, the sockets are never empty. Then a
//! fixed number of checks is enough, because each check reads the data that has waited longest.

use brimful_core::Nanos;

/// Number of checks that read the kernel's largest default receive buffer (6 MiB) to its end, if each check reads
/// from only one connection.
const LOOKS: u64 = 16;
/// Number of connections from which one check reads at least some data. Connections take turns.
const PER_LOOK: u64 = 16;

/// The checks of the sockets since the sockets were last empty.
#[derive(Debug, Default)]
pub struct Sweep {
    began: Nanos,
    looks: u64,
    read_until: Nanos,
}

impl Sweep {
    /// Time up to which all data that had arrived in the sockets has been read.
    pub fn read_until(&self) -> Nanos {
        self.read_until
    }

    /// Notes a check of the sockets of `connections` connections that began `at` this time. All data that the check
    /// found was read; more may be `left` in the sockets.
    pub fn note_poll(&mut self, at: Nanos, left: bool, connections: u64) {
        if self.looks == 0 {
            self.began = at;
        }
        self.looks += 1;
        let read_until = match left {
            false => at,
            true if self.looks >= LOOKS + connections / PER_LOOK => self.began,
            true => return,
        };
        self.read_until = read_until;
        self.looks = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_that_leaves_nothing_has_read_everything() {
        let mut sweep = Sweep::default();
        sweep.note_poll(Nanos(5), false, 1000);
        assert_eq!(sweep.read_until(), Nanos(5));
        sweep.note_poll(Nanos(6), true, 1000);
        assert_eq!(sweep.read_until(), Nanos(5), "the check left data unread");
        sweep.note_poll(Nanos(7), false, 1000);
        assert_eq!(sweep.read_until(), Nanos(7));
    }

    #[test]
    fn sockets_that_are_never_empty_are_read_after_enough_looks() {
        let mut sweep = Sweep::default();
        for look in 1..LOOKS + 2 {
            sweep.note_poll(Nanos(look), true, 2 * PER_LOOK);
            assert_eq!(sweep.read_until(), Nanos::ZERO);
        }
        sweep.note_poll(Nanos(100), true, 2 * PER_LOOK);
        assert_eq!(sweep.read_until(), Nanos(1));
    }
}
