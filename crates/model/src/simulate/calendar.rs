//! The time of the next event of each event source, and the soonest of these events. The number of sources is fixed.
//!
//! The calendar is a tournament tree (Knuth, *The Art of Computer Programming* 3, §5.4.1). Every inner node names the
//! source with the soonest event in its subtree. A change costs one comparison per level of the tree. The soonest event
//! is at the root. A source without an event has the time ∞.

/// The time of each event source's next event, in seconds.
#[derive(Debug)]
pub(super) struct Calendar {
    instants: Vec<f64>,
    /// The tree: for each node, the source with the soonest event in the node's subtree. Node 1 is the root, and the
    /// children of node k are 2k and 2k + 1. The leaves are the sources.
    winners: Vec<u32>,
}

impl Calendar {
    pub(super) fn new(sources: usize) -> Calendar {
        let leaves = sources.max(2).next_power_of_two();
        let mut winners = vec![0; 2 * leaves];
        for (source, leaf) in winners[leaves..].iter_mut().enumerate() {
            *leaf = source as u32;
        }
        for node in (1..leaves).rev() {
            winners[node] = winners[2 * node];
        }
        Calendar { instants: vec![f64::INFINITY; leaves], winners }
    }

    /// Time in seconds and source of the soonest event. If several events have the same time, the first source is
    /// returned.
    pub(super) fn soonest(&self) -> (f64, usize) {
        let source = self.winners[1] as usize;
        (self.instants[source], source)
    }

    /// Sets the time of the next event of a source, in seconds; ∞ if it has none.
    pub(super) fn set(&mut self, source: usize, instant: f64) {
        self.instants[source] = instant;
        let mut node = (self.instants.len() + source) / 2;
        while node > 0 {
            let (left, right) = (self.winners[2 * node], self.winners[2 * node + 1]);
            let right_wins = self.instants[right as usize] < self.instants[left as usize];
            self.winners[node] = if right_wins { right } else { left };
            node /= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_names_the_soonest(sources in 1..40usize, changes in prop::collection::vec((0..40usize, 0.0..9.0f64), 1..200)) {
            let mut calendar = Calendar::new(sources);
            let mut instants = vec![f64::INFINITY; sources];
            for (source, instant) in changes {
                calendar.set(source % sources, instant);
                instants[source % sources] = instant;
                let (soonest, at) = calendar.soonest();
                prop_assert_eq!(soonest, instants.iter().copied().fold(f64::INFINITY, f64::min));
                prop_assert_eq!(instants[at], soonest);
            }
        }
    }
}
