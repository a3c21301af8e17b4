//! The round-trip times of connections, each drawn from a histogram when the first packet of the connection arrives.
//!
//! Each client has its own random stream. The n-th connection of a client gets the n-th draw of this stream, whatever
//! its ports are, so the same seed yields the same round-trip times. A SYN with the ports of an earlier connection but
//! another sequence number starts a new connection. Memory is bounded: connections without packets for a long time are
//! forgotten.

use crate::packet::{Flow, PacketHead};
use crate::rtt::RttHistogram;
use brimful_core::Nanos;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::SeedableRng;
use std::collections::HashMap;

/// Maximum number of flows (connections) in each of two generations. When a packet arrives, its flow moves to the
/// younger generation. When the younger generation is full, the older one is dropped, and the younger one becomes the
/// older.
const GENERATION: usize = 1 << 18;

/// The connections (flows) of one client, with their round-trip times.
#[derive(Debug)]
pub struct Flows {
    histogram: RttHistogram,
    random: Pcg64Mcg,
    young: HashMap<Flow, FlowState>,
    old: HashMap<Flow, FlowState>,
    generation: usize,
    drawn: u64,
}

#[derive(Clone, Copy, Debug)]
struct FlowState {
    rtt: Nanos,
    /// Sequence number of the SYN that opened the connection.
    opened: Option<u32>,
}

impl Flows {
    /// Creates an empty set of flows for a client. Each client number has its own random stream.
    pub fn new(histogram: RttHistogram, seed: u64, client: u64) -> Flows {
        // The links' random streams use the client's number itself. The bitwise complement of the number gives other
        // streams.
        let random = Pcg64Mcg::seed_from_u64(seed ^ !client.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        Flows { histogram, random, young: HashMap::new(), old: HashMap::new(), generation: GENERATION, drawn: 0 }
    }

    /// Returns the round-trip time of a packet's connection. Draws it if the packet starts a new connection.
    pub fn rtt(&mut self, head: &PacketHead) -> Nanos {
        let is_same_connection = |flow: &FlowState| head.syn_sequence.is_none() || flow.opened == head.syn_sequence;
        if let Some(flow) = self.young.get(&head.flow).filter(|flow| is_same_connection(flow)) {
            return flow.rtt;
        }
        let flow = self.old.remove(&head.flow).filter(is_same_connection).unwrap_or_else(|| {
            self.drawn += 1;
            FlowState { rtt: self.histogram.draw(&mut self.random), opened: head.syn_sequence }
        });
        if self.young.len() >= self.generation {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(head.flow, flow);
        flow.rtt
    }

    /// Number of round-trip times drawn so far.
    pub fn drawn_rtts(&self) -> u64 {
        self.drawn
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::{HostNumber, SERVER};
    use crate::packet::parse_head;
    use crate::packet::tests::segment;

    const CLIENT: HostNumber = HostNumber(1);

    fn flows(seed: u64) -> Flows {
        Flows::new("1ms..1s, 1".parse().unwrap(), seed, 1)
    }

    fn syn(port: u16, sequence: u32) -> PacketHead {
        parse_head(&segment(CLIENT, SERVER, (port, 80), 0x02, sequence)).unwrap()
    }

    fn answer(port: u16) -> PacketHead {
        parse_head(&segment(SERVER, CLIENT, (80, port), 0x12, 9)).unwrap()
    }

    #[test]
    fn a_connection_keeps_its_rtt_both_ways_and_the_next_one_on_its_ports_draws_another() {
        let mut flows = flows(1);
        let first = flows.rtt(&syn(4000, 7));
        assert_eq!(
            (flows.rtt(&answer(4000)), flows.rtt(&syn(4000, 7))),
            (first, first),
            "a repeated SYN does not open another connection"
        );
        let next = flows.rtt(&syn(4000, 8));
        assert_ne!(next, first);
        assert_eq!((flows.rtt(&answer(4000)), flows.drawn_rtts()), (next, 2));
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
    fn active_flows_are_kept_and_memory_is_bounded() {
        let mut flows = flows(1);
        flows.generation = 10;
        let kept = flows.rtt(&syn(1, 1));
        for port in 100..200 {
            flows.rtt(&syn(port, 1));
            assert_eq!(flows.rtt(&answer(1)), kept);
            assert!(flows.young.len() + flows.old.len() <= 20);
        }
        assert_eq!(flows.drawn_rtts(), 101);
        flows.rtt(&answer(100));
        assert_eq!(flows.drawn_rtts(), 102, "the flow was forgotten");
    }
}
