//! Determines the time up to which all data that arrived in the sockets has been read.
//!
//! A load generator that was stopped, or is late, finds responses in its sockets that arrived long ago. Whether a
//! response had arrived by a certain time is known only after all data that had arrived by then was read. One check of
//! the sockets may not read all data. If data arrives faster than it is read, the sockets are never empty. In that
//! case, a fixed number of checks is enough, because each check reads the data that has waited longest.

use brimful_core::Nanos;

/// Number of checks after which even a receive buffer of the kernel's largest default size, 6 MiB, was read completely.
const MAX_CHECKS: u64 = 16;
/// Minimum number of connections from which one check of the sockets reads, in turn.
const CONNECTIONS_PER_CHECK: u64 = 16;

/// Counts the checks of a shard's sockets since they were last empty.
#[derive(Debug, Default)]
pub struct SocketPolls {
    began: Nanos,
    checks: u64,
    read_until: Nanos,
}

impl SocketPolls {
    /// Time up to which all data that had arrived in the sockets has been read.
    pub fn read_until(&self) -> Nanos {
        self.read_until
    }

    /// Records a check of the sockets of this number of `connections`. It began `at` this time, and its data was read.
    /// `left` says whether more data may be in the sockets.
    pub fn note_poll(&mut self, at: Nanos, left: bool, connections: u64) {
        if self.checks == 0 {
            self.began = at;
        }
        self.checks += 1;
        let read_until = match left {
            false => at,
            true if self.checks >= MAX_CHECKS + connections / CONNECTIONS_PER_CHECK => self.began,
            true => return,
        };
        self.read_until = read_until;
        self.checks = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_that_leaves_nothing_has_read_everything() {
        let mut polls = SocketPolls::default();
        polls.note_poll(Nanos(5), false, 1000);
        assert_eq!(polls.read_until(), Nanos(5));
        polls.note_poll(Nanos(6), true, 1000);
        assert_eq!(polls.read_until(), Nanos(5), "the check left data unread");
        polls.note_poll(Nanos(7), false, 1000);
        assert_eq!(polls.read_until(), Nanos(7));
    }

    #[test]
    fn sockets_that_are_never_empty_are_read_after_enough_looks() {
        let mut polls = SocketPolls::default();
        for look in 1..MAX_CHECKS + 2 {
            polls.note_poll(Nanos(look), true, 2 * CONNECTIONS_PER_CHECK);
            assert_eq!(polls.read_until(), Nanos::ZERO);
        }
        polls.note_poll(Nanos(100), true, 2 * CONNECTIONS_PER_CHECK);
        assert_eq!(polls.read_until(), Nanos(1));
    }
}
