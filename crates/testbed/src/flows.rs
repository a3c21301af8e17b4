//! The round-trip times of connections, drawn for each from a histogram when its first packet comes.
//!
//! The n-th connection of a client has the n-th draw of that client's own stream, whichever ports it has: the same seed
//! gives the same round-trip times again. A SYN with another sequence number on the same ports is another connection.
//! Memory is bounded: of the flows that were not heard of while so many others were, nothing is known any more.

use crate::packet::{Flow, Head};
use crate::rtt::Histogram;
use brimful_core::Nanos;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::SeedableRng;
use std::collections::HashMap;

/// Flows of a generation; two are kept.
const GENERATION: usize = 1 << 18;

/// The flows of one client.
#[derive(Debug)]
pub struct Flows {
    histogram: Histogram,
    random: Pcg64Mcg,
    young: HashMap<Flow, Known>,
    old: HashMap<Flow, Known>,
    generation: usize,
    drawn: u64,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    rtt: Nanos,
    /// The sequence number that it was opened with.
    opened: Option<u32>,
}

impl Flows {
    /// `client` tells it from the others of the same seed.
    pub fn new(histogram: Histogram, seed: u64, client: u64) -> Flows {
        // Unlike those of links, whose numbers are small.
        let random = Pcg64Mcg::seed_from_u64(seed ^ !client.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let (young, old) = (HashMap::new(), HashMap::new());
        Flows { histogram, random, young, old, generation: GENERATION, drawn: 0 }
    }

    /// The round-trip time of the flow that a packet is of.
    pub fn rtt(&mut self, head: &Head) -> Nanos {
        let is_new = |known: &Known| head.opens.is_some() && known.opened != head.opens;
        let young = self.young.get(&head.flow).copied().filter(|known| !is_new(known));
        if let Some(known) = young {
            return known.rtt;
        }
        let known = self.old.remove(&head.flow).filter(|known| !is_new(known)).unwrap_or_else(|| {
            self.drawn += 1;
            Known { rtt: self.histogram.draw(&mut self.random), opened: head.opens }
        });
        if self.young.len() >= self.generation {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(head.flow, known);
        known.rtt
    }

    /// How many were drawn.
    pub fn drawn(&self) -> u64 {
        self.drawn
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::{HostNumber, SERVER};
    use crate::packet::head;
    use crate::packet::tests::segment;

    const CLIENT: HostNumber = HostNumber(1);

    fn flows(seed: u64) -> Flows {
        Flows::new("1ms..1s, 1".parse().unwrap(), seed, 1)
    }

    fn syn(port: u16, sequence: u32) -> Head {
        head(&segment(CLIENT, SERVER, (port, 80), 0x02, sequence)).unwrap()
    }

    fn answer(port: u16) -> Head {
        head(&segment(SERVER, CLIENT, (80, port), 0x12, 9)).unwrap()
    }

    #[test]
    fn a_connection_keeps_its_rtt_both_ways_and_the_next_on_its_ports_has_another() {
        let mut flows = flows(1);
        let first = flows.rtt(&syn(4000, 7));
        assert_eq!((flows.rtt(&answer(4000)), flows.rtt(&syn(4000, 7))), (first, first), "a repeated SYN is no other");
        let next = flows.rtt(&syn(4000, 8));
        assert_ne!(next, first);
        assert_eq!((flows.rtt(&answer(4000)), flows.drawn()), (next, 2));
    }

    #[test]
    fn draws_follow_the_order_of_connections_and_not_their_ports() {
        let draw = |seed, ports: [u16; 5]| {
            let mut flows = flows(seed);
            ports.map(|port| flows.rtt(&syn(port, 1)))
        };
        assert_eq!(draw(5, [1, 2, 3, 4, 5]), draw(5, [50, 9, 7, 1000, 3]));
        assert_ne!(draw(5, [1, 2, 3, 4, 5]), draw(6, [1, 2, 3, 4, 5]));
    }

    #[test]
    fn what_is_heard_of_is_kept_and_memory_is_bounded() {
        let mut flows = flows(1);
        flows.generation = 10;
        let kept = flows.rtt(&syn(1, 1));
        for port in 100..200 {
            flows.rtt(&syn(port, 1));
            assert_eq!(flows.rtt(&answer(1)), kept);
            assert!(flows.young.len() + flows.old.len() <= 20);
        }
        assert_eq!(flows.drawn(), 101);
        flows.rtt(&answer(100));
        assert_eq!(flows.drawn(), 102, "forgotten long ago");
    }
}
