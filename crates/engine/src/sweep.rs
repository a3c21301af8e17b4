//! Up to when everything received has been read.
//!
//! A generator that was stopped, or is behind, finds responses in its sockets that came long ago. Whether something
//! came in time is certain only when everything has been read that was there at that time. One look at the sockets may
//! not read it all. If more keeps arriving than is read, the sockets are never empty: then a number of looks is enough,
//! as each reads what has waited longest.

use brimful_core::Nanos;

/// Looks that read the largest receive buffer a kernel allots by default (6 MiB) to its end, from one connection at a
/// time.
const LOOKS: u64 = 16;
/// Connections that one look reads at least something from, as they take turns.
const PER_LOOK: u64 = 16;

/// The looks at the sockets since they were last empty.
#[derive(Debug, Default)]
pub struct Sweep {
    began: Nanos,
    looks: u64,
    read_until: Nanos,
}

impl Sweep {
    /// Everything that was in the sockets at this time has been read.
    pub fn read_until(&self) -> Nanos {
        self.read_until
    }

    /// Notes a look at the sockets of so many connections, which began `at` this time. Everything that it found was
    /// read; more may be `left` in the sockets.
    pub fn note_look(&mut self, at: Nanos, left: bool, connections: u64) {
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
        sweep.note_look(Nanos(5), false, 1000);
        assert_eq!(sweep.read_until(), Nanos(5));
        sweep.note_look(Nanos(6), true, 1000);
        assert_eq!(sweep.read_until(), Nanos(5), "something was left");
        sweep.note_look(Nanos(7), false, 1000);
        assert_eq!(sweep.read_until(), Nanos(7));
    }

    #[test]
    fn sockets_that_are_never_empty_are_read_after_enough_looks() {
        let mut sweep = Sweep::default();
        for look in 1..LOOKS + 2 {
            sweep.note_look(Nanos(look), true, 2 * PER_LOOK);
            assert_eq!(sweep.read_until(), Nanos::ZERO);
        }
        sweep.note_look(Nanos(100), true, 2 * PER_LOOK);
        assert_eq!(sweep.read_until(), Nanos(1));
    }
}
