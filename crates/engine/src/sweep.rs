//! Tracks up to which time all received data has been read.
//!
//! A generator that was stopped, or is behind, finds responses in its sockets that arrived long ago. Whether a response
//! arrived in time is certain only when all data that was there at that time has been read. One look at the sockets may
//! not read it all. If more data keeps arriving than is read, the sockets are never empty. Then a fixed number of looks
//! is enough, because each look reads the data that has waited longest.

use brimful_core::Nanos;

/// Number of looks within which the kernel's largest default receive buffer (6 MiB) is read to its end, if each look
/// reads from only one connection.
const LOOKS: u64 = 16;
/// Number of connections from which one look reads at least some data. Connections take turns.
const PER_LOOK: u64 = 16;

/// The looks at the sockets since they were last empty.
#[derive(Debug, Default)]
pub struct Sweep {
    began: Nanos,
    looks: u64,
    read_until: Nanos,
}

impl Sweep {
    /// The time up to which everything that was in the sockets has been read.
    pub fn read_until(&self) -> Nanos {
        self.read_until
    }

    /// Notes a look at the sockets of `connections` connections that began `at` this time. All data that the look found
    /// was read; more may be `left` in the sockets.
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
        assert_eq!(sweep.read_until(), Nanos(5), "the look left data unread");
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
