//! Up to when the sockets have been read.
//!
//! A generator that was stopped, or is behind, finds answers in its sockets that came long ago. Whether something came in time
//! can be told only when everything has been read that was there at that time. One look at the sockets may not bring it all;
//! and where more comes than is read, there is no end to it: then it is a number of looks that is enough, as each brings what
//! has waited longest.

use brimful_core::Nanos;

/// Looks that read the largest receive buffer a kernel gives by default (6 MiB) to its end, from one connection at a time.
const LOOKS: u64 = 16;
/// Connections of which one look brings at least something, as they take turns.
const PER_LOOK: u64 = 16;

/// Looks at the sockets, one after another.
#[derive(Debug, Default)]
pub struct Sweep {
    began: Nanos,
    looks: u64,
    read_until: Nanos,
}

impl Sweep {
    /// Everything that lay in the sockets at this time has been read.
    pub fn read_until(&self) -> Nanos {
        self.read_until
    }

    /// What a look has found that began `at` was read; some was `left` in the sockets of so many connections, or nothing.
    pub fn looked(&mut self, at: Nanos, left: bool, connections: u64) {
        if self.looks == 0 {
            self.began = at;
        }
        self.looks += 1;
        if !left {
            (self.read_until, self.looks) = (at, 0);
        } else if self.looks >= LOOKS + connections / PER_LOOK {
            (self.read_until, self.looks) = (self.began, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_that_leaves_nothing_has_read_everything() {
        let mut sweep = Sweep::default();
        sweep.looked(Nanos(5), false, 1000);
        assert_eq!(sweep.read_until(), Nanos(5));
        sweep.looked(Nanos(6), true, 1000);
        assert_eq!(sweep.read_until(), Nanos(5), "something was left");
        sweep.looked(Nanos(7), false, 1000);
        assert_eq!(sweep.read_until(), Nanos(7));
    }

    #[test]
    fn what_never_ends_is_read_up_to_where_it_began() {
        let mut sweep = Sweep::default();
        for look in 1..LOOKS + 2 {
            sweep.looked(Nanos(look), true, 2 * PER_LOOK);
            assert_eq!(sweep.read_until(), Nanos::ZERO);
        }
        sweep.looked(Nanos(100), true, 2 * PER_LOOK);
        assert_eq!(sweep.read_until(), Nanos(1));
    }
}
