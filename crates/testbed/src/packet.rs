//! What the router reads of a packet: to whom it is, and which connection it is of. Foreign bytes: what is too short or
//! unknown is told as such.
//!
//! Source: RFC 791, RFC 8200, RFC 9293.

use crate::address::HostNumber;

const TCP: u8 = 6;
const UDP: u8 = 17;
const SYN: u8 = 0x02;
const ACK: u8 = 0x10;

/// Two ends that talk to each other. The same for both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Flow {
    protocol: u8,
    /// Address and port; the smaller one first. IPv4 addresses have zeros behind them.
    ends: [([u8; 16], u16); 2],
}

/// The head of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// From whom it is; `None` if no host has the address.
    pub from: Option<HostNumber>,
    /// To whom it is.
    pub to: Option<HostNumber>,
    /// What it is a part of. The ports of a fragment are unknown, and zero.
    pub flow: Flow,
    /// The sequence number with which it opens a connection, if it does: a SYN without ACK.
    pub opens: Option<u32>,
}

/// Reads a packet's head; `None` if it is none.
pub fn head(packet: &[u8]) -> Option<Head> {
    match packet.first()? >> 4 {
        4 => ipv4(packet),
        6 => ipv6(packet),
        _ => None,
    }
}

fn ipv4(packet: &[u8]) -> Option<Head> {
    let header = packet.get(..20)?;
    let (from, to): ([u8; 4], [u8; 4]) = (header[12..16].try_into().ok()?, header[16..20].try_into().ok()?);
    let is_fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0;
    let payload = packet.get(usize::from(header[0] & 15) * 4..).filter(|_| !is_fragment).unwrap_or_default();
    let wide = |address: [u8; 4]| {
        let mut wide = [0; 16];
        wide[..4].copy_from_slice(&address);
        wide
    };
    Some(Head {
        from: HostNumber::of_ipv4(from),
        to: HostNumber::of_ipv4(to),
        flow: flow(header[9], wide(from), wide(to), payload),
        opens: opens(header[9], payload),
    })
}

/// Extension headers are not followed: what has some is a flow of its addresses.
fn ipv6(packet: &[u8]) -> Option<Head> {
    let (header, payload) = packet.split_at_checked(40)?;
    let (from, to): ([u8; 16], [u8; 16]) = (header[8..24].try_into().ok()?, header[24..40].try_into().ok()?);
    Some(Head {
        from: HostNumber::of_ipv6(from),
        to: HostNumber::of_ipv6(to),
        flow: flow(header[6], from, to, payload),
        opens: opens(header[6], payload),
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

fn opens(protocol: u8, payload: &[u8]) -> Option<u32> {
    let header = payload.get(..20).filter(|_| protocol == TCP)?;
    (header[13] & (SYN | ACK) == SYN).then(|| u32::from_be_bytes([header[4], header[5], header[6], header[7]]))
}

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
        let there = head(&segment(client, SERVER, (4000, 80), SYN, 77)).unwrap();
        let back = head(&segment(SERVER, client, (80, 4000), SYN | ACK, 78)).unwrap();
        assert_eq!((there.from, there.to, there.opens), (Some(client), Some(SERVER), Some(77)));
        assert_eq!((back.from, back.to, back.opens), (Some(SERVER), Some(client), None));
        assert_eq!(there.flow, back.flow);
        let other = head(&segment(client, SERVER, (4001, 80), SYN, 77)).unwrap();
        assert_ne!(other.flow, there.flow);
    }

    #[test]
    fn version_6_is_read_as_well() {
        let mut packet = vec![0x60, 0, 0, 0, 0, 8, UDP, 64];
        packet.extend(HostNumber(300).ipv6().octets());
        packet.extend(SERVER.ipv6().octets());
        packet.extend([0, 5, 0, 53, 0, 8, 0, 0]);
        let head = head(&packet).unwrap();
        assert_eq!((head.from, head.to, head.opens), (Some(HostNumber(300)), Some(SERVER), None));
        assert_eq!(head.flow.ends.map(|(_, port)| port), [53, 5]);
    }

    #[test]
    fn what_is_no_packet_has_no_head() {
        let whole = segment(SERVER, HostNumber(1), (1, 2), SYN, 1);
        assert_eq!(head(&whole[..19]), None);
        assert_eq!(head(&[0x60; 39]), None);
        assert_eq!((head(&[]), head(&[0; 60])), (None, None));
        // Cut short behind the addresses: known to whom, not of which connection.
        let cut = head(&whole[..22]).unwrap();
        assert_eq!((cut.to, cut.opens, cut.flow.ends[0].1), (Some(HostNumber(1)), None, 0));
        let mut fragment = whole;
        fragment[7] = 8;
        assert_eq!(head(&fragment).unwrap().opens, None);
    }

    proptest! {
        #[test]
        fn no_bytes_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..80),
            version in prop::sample::select(vec![0x45u8, 0x4f, 0x60]),
        ) {
            let _ = head(&bytes);
            let mut packet = bytes;
            packet.insert(0, version);
            let _ = head(&packet);
        }
    }
}
