//! Parses the headers of an IP packet for its sender, receiver and ports. The bytes are not trusted, so every length is
//! checked.
//!
//! Sources: RFC 791 (IPv4), RFC 8200 (IPv6), RFC 9293 (TCP).

use crate::address::HostNumber;

const TCP: u8 = 6;
const UDP: u8 = 17;
const SYN: u8 = 0x02;
const ACK: u8 = 0x10;

/// Identifies a connection by its two pairs of address and port. Packets of both directions have the same flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Flow {
    protocol: u8,
    /// The two pairs of address and port, the smaller pair first. IPv4 addresses are padded with zeros to 16 bytes.
    ends: [([u8; 16], u16); 2],
}

/// The sender, receiver and flow of a packet, as parsed from its headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketHead {
    /// The sending host; `None` if the address is outside of the test bed.
    pub from: Option<HostNumber>,
    /// The receiving host; `None` if the address is outside of the test bed.
    pub to: Option<HostNumber>,
    /// The packet's flow. Fragments of packets do not contain ports, so the ports of their flow are zero.
    pub flow: Flow,
    /// TCP sequence number of a packet that opens a connection (a SYN without ACK); `None` for other packets.
    pub syn_sequence: Option<u32>,
}

/// Parses the headers of a packet; `None` if it is not an IP packet.
pub fn parse_head(packet: &[u8]) -> Option<PacketHead> {
    match packet.first()? >> 4 {
        4 => parse_ipv4(packet),
        6 => parse_ipv6(packet),
        _ => None,
    }
}

fn parse_ipv4(packet: &[u8]) -> Option<PacketHead> {
    let header = packet.get(..20)?;
    let from: [u8; 4] = header[12..16].try_into().ok()?;
    let to: [u8; 4] = header[16..20].try_into().ok()?;
    let is_fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0;
    let payload = packet.get(usize::from(header[0] & 15) * 4..).filter(|_| !is_fragment).unwrap_or_default();
    let padded = |address: [u8; 4]| {
        let mut padded = [0; 16];
        padded[..4].copy_from_slice(&address);
        padded
    };
    Some(PacketHead {
        from: HostNumber::from_ipv4(from),
        to: HostNumber::from_ipv4(to),
        flow: flow(header[9], padded(from), padded(to), payload),
        syn_sequence: opening_sequence(header[9], payload),
    })
}

/// Parses the header of an IPv6 packet. Extension headers are not parsed, so the flow of a packet that has them has no
/// ports.
fn parse_ipv6(packet: &[u8]) -> Option<PacketHead> {
    let (header, payload) = packet.split_at_checked(40)?;
    let from: [u8; 16] = header[8..24].try_into().ok()?;
    let to: [u8; 16] = header[24..40].try_into().ok()?;
    Some(PacketHead {
        from: HostNumber::from_ipv6(from),
        to: HostNumber::from_ipv6(to),
        flow: flow(header[6], from, to, payload),
        syn_sequence: opening_sequence(header[6], payload),
    })
}

fn flow(protocol: u8, from: [u8; 16], to: [u8; 16], payload: &[u8]) -> Flow {
    let (from_port, to_port) = match (protocol, payload) {
        (TCP | UDP, [a, b, c, d, ..]) => (u16::from_be_bytes([*a, *b]), u16::from_be_bytes([*c, *d])),
        _ => (0, 0),
    };
    let mut ends = [(from, from_port), (to, to_port)];
    ends.sort_unstable();
    Flow { protocol, ends }
}

fn opening_sequence(protocol: u8, payload: &[u8]) -> Option<u32> {
    let header = payload.get(..20).filter(|_| protocol == TCP)?;
    (header[13] & (SYN | ACK) == SYN).then(|| u32::from_be_bytes([header[4], header[5], header[6], header[7]]))
}

/// Tests, and a function for the tests of other modules.
#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::address::SERVER;
    use proptest::prelude::*;

    /// A TCP segment over IPv4 without payload.
    pub fn segment(from: HostNumber, to: HostNumber, ports: (u16, u16), flags: u8, sequence: u32) -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, TCP, 0, 0];
        packet.extend(from.ipv4().octets());
        packet.extend(to.ipv4().octets());
        packet.extend(ports.0.to_be_bytes());
        packet.extend(ports.1.to_be_bytes());
        packet.extend(sequence.to_be_bytes());
        packet.extend([0, 0, 0, 0, 0x50, flags, 0, 0, 0, 0, 0, 0]);
        packet
    }

    #[test]
    fn both_directions_are_one_flow() {
        let client = HostNumber(3);
        let there = parse_head(&segment(client, SERVER, (4000, 80), SYN, 77)).unwrap();
        let back = parse_head(&segment(SERVER, client, (80, 4000), SYN | ACK, 78)).unwrap();
        assert_eq!((there.from, there.to, there.syn_sequence), (Some(client), Some(SERVER), Some(77)));
        assert_eq!((back.from, back.to, back.syn_sequence), (Some(SERVER), Some(client), None));
        assert_eq!(there.flow, back.flow);
        let other = parse_head(&segment(client, SERVER, (4001, 80), SYN, 77)).unwrap();
        assert_ne!(other.flow, there.flow);
    }

    #[test]
    fn ipv6_is_parsed() {
        let mut packet = vec![0x60, 0, 0, 0, 0, 8, UDP, 64];
        packet.extend(HostNumber(300).ipv6().octets());
        packet.extend(SERVER.ipv6().octets());
        packet.extend([0, 5, 0, 53, 0, 8, 0, 0]);
        let head = parse_head(&packet).unwrap();
        assert_eq!((head.from, head.to, head.syn_sequence), (Some(HostNumber(300)), Some(SERVER), None));
        assert_eq!(head.flow.ends.map(|(_, port)| port), [53, 5]);
    }

    #[test]
    fn short_and_unknown_packets_are_rejected() {
        let whole = segment(SERVER, HostNumber(1), (1, 2), SYN, 1);
        assert_eq!(parse_head(&whole[..19]), None);
        assert_eq!(parse_head(&[0x60; 39]), None);
        assert_eq!((parse_head(&[]), parse_head(&[0; 60])), (None, None));
        // A packet that is cut off after its addresses. Expects a receiver, but no ports.
        let cut = parse_head(&whole[..22]).unwrap();
        assert_eq!((cut.to, cut.syn_sequence, cut.flow.ends[0].1), (Some(HostNumber(1)), None, 0));
        let mut fragment = whole;
        fragment[7] = 8;
        assert_eq!(parse_head(&fragment).unwrap().syn_sequence, None);
    }

    proptest! {
        #[test]
        fn no_bytes_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..80),
            version in prop::sample::select(vec![0x45u8, 0x4f, 0x60]),
        ) {
            let _ = parse_head(&bytes);
            let mut packet = bytes;
            packet.insert(0, version);
            let _ = parse_head(&packet);
        }
    }
}
