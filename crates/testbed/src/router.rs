//! The router between the server and its clients, without I/O: its caller passes packets to it, and gets each packet
//! back when it is due.
//!
//! Every client has a link up to the router and a link down from the router. The two links divide the client's
//! round-trip time; by default, each has half of it. The server is connected to the router without a delay. So a packet
//! between a client and the server passes one link, and a packet from client to client passes two. A timer wheel
//! contains the packets on all links. Memory is bounded: if the wheel contains `MAX_QUEUED_PACKETS` packets, further
//! packets are dropped and counted.
//!
//! The router does not read a clock: its caller passes the time. Source: Banga & Druschel 1997, Figure 3.

use crate::address::{HostNumber, SERVER};
use crate::flows::Flows;
use crate::link::{Link, LinkSettings};
use crate::packet::{self, PacketHead};
use crate::rtt::{RttRange, Rtts};
use crate::wheel::TimerWheel;
use brimful_core::Nanos;
use brimful_core::testbed::Link as LinkCounts;

/// Maximum size of a packet, in bytes.
pub const MTU: usize = 1500;
/// Maximum number of packets in the router. They need 200 MB of memory if all have the maximum size.
const MAX_QUEUED_PACKETS: usize = 1 << 17;

/// Settings of the network between the server and its clients.
#[derive(Clone, Debug, PartialEq)]
pub struct NetworkSettings {
    /// Number of clients.
    pub clients: usize,
    /// Round-trip times between the clients and the server.
    pub rtts: Rtts,
    /// Share of the round-trip time that packets need from the client to the router; they need the rest for the way
    /// back.
    pub up_share: f64,
    /// Loss, reordering and rate limit of each client's links.
    pub link: LinkSettings,
    /// Seed of all random numbers: losses, reorderings and drawn round-trip times.
    pub seed: u64,
}

/// The router between the hosts, with the packets on its links.
#[derive(Debug)]
pub struct Router {
    clients: Vec<Client>,
    wheel: TimerWheel<Packet>,
    /// Unused packet buffers.
    pool: Vec<Vec<u8>>,
    max_held: usize,
    no_room: u64,
    no_host: u64,
}

/// The two links of one client.
#[derive(Debug)]
struct Client {
    up: Link,
    down: Link,
    rtt: RttRange,
    up_share: f64,
    /// The client's connections with their round-trip times; `None` if all have the same round-trip time.
    flows: Option<Flows>,
}

/// A packet on its way over a link.
#[derive(Debug)]
struct Packet {
    /// A buffer, whose first `length` bytes are the packet.
    bytes: Vec<u8>,
    length: usize,
    to: HostNumber,
    due: Nanos,
    /// Whether the packet is on its last link. Otherwise, it is on the link up to the router, and will then go down to
    /// another client.
    is_last_hop: bool,
}

/// Counts of the packets from and to one client.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClientCounts {
    /// Counts of the packets from the client.
    pub up: LinkCounts,
    /// Counts of the packets to the client.
    pub down: LinkCounts,
    /// Number of round-trip times that were drawn for the client's connections.
    pub drawn_rtts: u64,
}

impl Router {
    /// Creates a router without packets.
    pub fn new(settings: &NetworkSettings) -> Router {
        let client = |index: usize| {
            let link = |number: usize| Link::new(settings.link, settings.seed, number as u64);
            let flows = match &settings.rtts {
                Rtts::Drawn(histogram) => Some(Flows::new(histogram.clone(), settings.seed, index as u64)),
                Rtts::Spread(_) => None,
            };
            let rtt = settings.rtts.range_for_client(index, settings.clients);
            Client { up: link(2 * index), down: link(2 * index + 1), rtt, up_share: settings.up_share, flows }
        };
        Router {
            clients: (0..settings.clients).map(client).collect(),
            wheel: TimerWheel::new(),
            pool: Vec::new(),
            max_held: MAX_QUEUED_PACKETS,
            no_room: 0,
            no_host: 0,
        }
    }

    /// Returns a buffer for a packet of the maximum size, with arbitrary content.
    pub fn buffer(&mut self) -> Vec<u8> {
        self.pool.pop().unwrap_or_else(|| vec![0; MTU])
    }

    /// Returns a buffer to the router for reuse.
    pub fn recycle(&mut self, buffer: Vec<u8>) {
        self.pool.push(buffer);
    }

    /// Accepts a packet that the host `from` has sent. The packet is the first `length` bytes of the buffer.
    pub fn receive(&mut self, from: HostNumber, bytes: Vec<u8>, length: usize, now: Nanos) {
        let Some(head) = bytes.get(..length).and_then(packet::parse_head) else { return self.drop_unknown(bytes) };
        let exists = |host: &HostNumber| host.0 <= self.clients.len();
        let Some(to) = head.to.filter(exists) else { return self.drop_unknown(bytes) };
        let packet = Packet { bytes, length, to, due: now, is_last_hop: false };
        match self.client(from) {
            Some(client) => {
                let delay = client.up_delay(&head);
                let due = client.up.send_packet(length, delay, now);
                self.hold(packet, to == SERVER, due, now);
            }
            None => self.send_down(packet, &head, now),
        }
    }

    /// Due time of the next packet; `None` if the router contains no packets.
    pub fn next_due(&self) -> Option<Nanos> {
        self.wheel.next_due()
    }

    /// Delivers at most `limit` due packets: calls `deliver` with the receiver, the packet and its due time. Returns
    /// whether more packets may be due.
    pub fn deliver_due(&mut self, now: Nanos, limit: usize, mut deliver: impl FnMut(HostNumber, &[u8], Nanos)) -> bool {
        for _ in 0..limit {
            let Some(packet) = self.wheel.pop(now) else { return false };
            if packet.is_last_hop {
                deliver(packet.to, packet.bytes.get(..packet.length).unwrap_or_default(), packet.due);
                self.pool.push(packet.bytes);
                continue;
            }
            match packet.bytes.get(..packet.length).and_then(packet::parse_head) {
                Some(head) => self.send_down(packet, &head, now),
                None => self.drop_unknown(packet.bytes),
            }
        }
        true
    }

    /// Number of packets dropped because the router was full, and number of packets dropped because their receiver is
    /// unknown.
    pub fn dropped(&self) -> (u64, u64) {
        (self.no_room, self.no_host)
    }

    /// Counts of the packets of each client, in the order of the clients.
    pub fn clients(&self) -> impl Iterator<Item = ClientCounts> {
        self.clients.iter().map(|client| ClientCounts {
            up: client.up.counts(),
            down: client.down.counts(),
            drawn_rtts: client.flows.as_ref().map_or(0, Flows::drawn_rtts),
        })
    }

    /// Sends a packet over the link from the router down to its receiver.
    fn send_down(&mut self, packet: Packet, head: &PacketHead, now: Nanos) {
        // The packet enters the second link at its due time on the first, even if the router processes it later.
        let start = packet.due;
        let length = packet.length;
        let due = match self.client(packet.to) {
            Some(client) => {
                let delay = client.down_delay(head);
                client.down.send_packet(length, delay, start)
            }
            None => Some(start),
        };
        self.hold(packet, true, due, now);
    }

    /// Stores a packet until it is due. If `due` is `None`, the packet was lost on the link and is dropped.
    fn hold(&mut self, mut packet: Packet, is_last_hop: bool, due: Option<Nanos>, now: Nanos) {
        let Some(due) = due else { return self.pool.push(packet.bytes) };
        if self.wheel.len() >= self.max_held {
            self.no_room += 1;
            return self.pool.push(packet.bytes);
        }
        packet.due = due;
        packet.is_last_hop = is_last_hop;
        self.wheel.insert(now, due, packet);
    }

    fn drop_unknown(&mut self, bytes: Vec<u8>) {
        self.no_host += 1;
        self.pool.push(bytes);
    }

    fn client(&mut self, host: HostNumber) -> Option<&mut Client> {
        self.clients.get_mut(host.0.checked_sub(1)?)
    }
}

impl Client {
    /// Delay of a packet on its client's link up to the router.
    fn up_delay(&mut self, head: &PacketHead) -> Nanos {
        let rtt = self.rtt(head);
        Nanos((rtt.0 as f64 * self.up_share) as u64)
    }

    /// Delay of a packet on its client's link down from the router.
    fn down_delay(&mut self, head: &PacketHead) -> Nanos {
        self.rtt(head) - self.up_delay(head)
    }

    /// Round-trip time of the connection to which a packet belongs.
    fn rtt(&mut self, head: &PacketHead) -> Nanos {
        self.flows.as_mut().map_or(self.rtt.min, |flows| flows.rtt(head))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::tests::segment;

    const MS: fn(u64) -> Nanos = Nanos::from_millis;
    /// Length of a slot of the timer wheel. A packet may be late by up to this time.
    const SLOT: Nanos = Nanos(8192);

    fn settings(rtts: Rtts) -> NetworkSettings {
        NetworkSettings { clients: 2, rtts, up_share: 0.5, link: LinkSettings::default(), seed: 1 }
    }

    fn spread(min: u64, max: u64) -> Rtts {
        Rtts::Spread(RttRange { min: MS(min), max: MS(max) })
    }

    /// Passes a TCP segment from one host to another to the router.
    fn receive(router: &mut Router, from: usize, to: HostNumber, now: Nanos) {
        let packet = segment(HostNumber(from), to, (1000, 80), 0x10, 5);
        let mut buffer = router.buffer();
        buffer[..packet.len()].copy_from_slice(&packet);
        router.receive(HostNumber(from), buffer, packet.len(), now);
    }

    /// Delivers packets until the router is empty. Returns the receiver and the due time of each.
    fn drain(router: &mut Router) -> Vec<(usize, Nanos)> {
        let mut seen = Vec::new();
        while let Some(next) = router.next_due() {
            router.deliver_due(next, 1000, |to, bytes, due| {
                assert!(due <= next && next <= due + SLOT, "{due} {next}");
                assert_eq!(bytes.len(), 40);
                seen.push((to.0, due));
            });
        }
        seen
    }

    #[test]
    fn each_way_takes_half_of_a_clients_rtt_and_between_clients_both_take_theirs() {
        let mut router = Router::new(&settings(spread(20, 200)));
        let now = Nanos::from_secs(1000);
        receive(&mut router, 1, SERVER, now);
        receive(&mut router, 0, HostNumber(2), now);
        receive(&mut router, 1, HostNumber(2), now);
        receive(&mut router, 0, SERVER, now);
        let expected = [(0, now), (0, now + MS(10)), (2, now + MS(100)), (2, now + MS(110))];
        assert_eq!(drain(&mut router), expected);
        let counts: Vec<_> = router.clients().map(|client| (client.up.packets, client.down.packets)).collect();
        assert_eq!(counts, [(2, 0), (0, 2)]);
    }

    #[test]
    fn the_ways_up_and_down_share_the_round_trip_time_as_configured() {
        let mut router = Router::new(&NetworkSettings { up_share: 0.75, ..settings(spread(20, 20)) });
        for (from, to, after) in [(1, SERVER, MS(15)), (0, HostNumber(1), MS(5)), (1, HostNumber(2), MS(20))] {
            receive(&mut router, from, to, Nanos::ZERO);
            assert_eq!(drain(&mut router), [(to.0, after)]);
        }
    }

    #[test]
    fn packets_without_a_receiver_are_counted_and_nothing_panics() {
        let mut router = Router::new(&settings(spread(0, 0)));
        receive(&mut router, 1, HostNumber(3), Nanos::ZERO);
        for length in [0, 1, 40, 1500, 9000] {
            let buffer = router.buffer();
            router.receive(HostNumber(1), buffer, length, Nanos::ZERO);
        }
        assert_eq!((drain(&mut router).len(), router.dropped()), (0, (0, 6)));
        assert!(router.pool.len() <= 2, "buffers are used again");
    }

    #[test]
    fn the_number_of_held_packets_is_bounded() {
        let mut router = Router::new(&settings(spread(100, 100)));
        router.max_held = 3;
        (0..5).for_each(|_| receive(&mut router, 1, SERVER, Nanos::ZERO));
        assert_eq!((drain(&mut router).len(), router.dropped()), (3, (2, 0)));
    }

    #[test]
    fn at_most_the_limit_is_released_at_once() {
        let mut router = Router::new(&settings(spread(0, 0)));
        (0..5).for_each(|_| receive(&mut router, 1, SERVER, Nanos::ZERO));
        let mut seen = 0;
        assert!(router.deliver_due(MS(1), 3, |_, _, _| seen += 1));
        assert!(!router.deliver_due(MS(1), 3, |_, _, _| seen += 1));
        assert_eq!(seen, 5);
    }

    #[test]
    fn connections_with_drawn_times_take_the_same_both_ways() {
        let mut router = Router::new(&settings(Rtts::Drawn("10ms..500ms,1".parse().unwrap())));
        receive(&mut router, 1, SERVER, Nanos::ZERO);
        let there = drain(&mut router)[0].1;
        let answer = segment(SERVER, HostNumber(1), (80, 1000), 0x10, 5);
        let mut buffer = router.buffer();
        buffer[..40].copy_from_slice(&answer);
        router.receive(SERVER, buffer, 40, Nanos::from_secs(1));
        // If the round-trip time is an odd number of nanoseconds, the delays of the two directions differ by a
        // nanosecond.
        let (to, back) = drain(&mut router)[0];
        assert_eq!((to, (back - Nanos::from_secs(1)).0 - there.0 <= 1), (1, true), "{there} there, {back} back");
        assert!(there >= MS(5) && there <= MS(250), "{there}");
        assert_eq!(router.clients().map(|client| client.drawn_rtts).collect::<Vec<_>>(), [1, 0]);
    }
}
