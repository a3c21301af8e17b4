//! Source addresses of the load generator's connections. Several addresses provide more local ports, and the kernel
//! finds a free port sooner.

use crate::EngineError;
use brimful_core::{Nanos, SessionId};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

/// Maximum number of source addresses. With about 28,000 ports each, they are enough for seven million connections to
/// one server address.
const MAX_ADDRESSES: u128 = 256;
/// Time for which a source address is skipped after it had no free port.
const SKIP_TIME: Nanos = Nanos::from_millis(100);

/// A range of IP addresses such as `127.0.0.0/28`, or a single address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cidr {
    address: IpAddr,
    prefix: u8,
}

/// The error for a text that is not a range of addresses.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("`{0}` is not a range of addresses: write it like 127.0.0.0/28 or 10.0.0.7")]
pub struct CidrError(String);

impl FromStr for Cidr {
    type Err = CidrError;

    fn from_str(text: &str) -> Result<Cidr, CidrError> {
        let error = || CidrError(text.to_owned());
        let (address, prefix) = text.split_once('/').map_or((text, None), |(address, prefix)| (address, Some(prefix)));
        let address: IpAddr = address.parse().map_err(|_| error())?;
        let bits = if address.is_ipv4() { 32 } else { 128 };
        let prefix = prefix.map_or(Ok(bits), |prefix| prefix.parse().map_err(|_| error()))?;
        if prefix > bits { Err(error()) } else { Ok(Cidr { address, prefix }) }
    }
}

impl std::fmt::Display for Cidr {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

impl Cidr {
    /// The addresses in this range from which this host can connect. Tries only the first 256 addresses of the range,
    /// without the network and broadcast addresses of an IPv4 range.
    ///
    /// # Errors
    /// [`EngineError::Source`] if there is no such address, or if the addresses are of another family (IPv4 or IPv6)
    /// than `target`.
    pub fn usable_addresses(self, target: &SocketAddr) -> Result<Vec<IpAddr>, EngineError> {
        if !self.is_of_family(target) {
            let why = format!("the server's address {} is of another family", target.ip());
            return Err(EngineError::Source { range: self.to_string(), why });
        }
        let usable: Vec<IpAddr> = self.addresses().filter(|address| is_ours(*address)).collect();
        if usable.is_empty() {
            let why = "none of its addresses is this host's".to_owned();
            return Err(EngineError::Source { range: self.to_string(), why });
        }
        Ok(usable)
    }

    /// Whether the range is of the same address family (IPv4 or IPv6) as `target`.
    pub(crate) fn is_of_family(self, target: &SocketAddr) -> bool {
        self.address.is_ipv4() == target.is_ipv4()
    }

    fn addresses(self) -> impl Iterator<Item = IpAddr> {
        let bits: u32 = if self.address.is_ipv4() { 32 } else { 128 };
        let host_bits = bits - u32::from(self.prefix);
        let size = 1u128.checked_shl(host_bits).unwrap_or(u128::MAX);
        let base = match self.address {
            IpAddr::V4(address) => u128::from(u32::from(address)),
            IpAddr::V6(address) => u128::from(address),
        };
        let base = base.checked_shr(host_bits).and_then(|base| base.checked_shl(host_bits)).unwrap_or(0);
        // A range of one or two addresses has no network or broadcast address (RFC 3021).
        let ends = u128::from(self.address.is_ipv4() && host_bits > 1);
        let v4 = self.address.is_ipv4();
        (ends..size - ends).take(MAX_ADDRESSES as usize).map(move |offset| {
            if v4 { Ipv4Addr::from((base + offset) as u32).into() } else { Ipv6Addr::from(base + offset).into() }
        })
    }
}

/// Whether the address belongs to this host. A lack of free ports does not matter, because a port may become free
/// before it is needed.
fn is_ours(address: IpAddr) -> bool {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let bound = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)
        .and_then(|socket| bind(&socket, &SocketAddr::new(address, 0)));
    matches!(bound, Ok(()) | Err(Errno::ADDRINUSE))
}

/// Chooses source addresses in turn. Skips an address for [`SKIP_TIME`] after it had no free port.
#[derive(Debug)]
pub struct SourceRotation {
    skipped_until: Vec<Nanos>,
    next: usize,
}

impl SourceRotation {
    /// Creates a rotation over `count` addresses. If `count` is 0, the kernel chooses the address, and the rotation has
    /// one element.
    pub fn new(count: usize) -> SourceRotation {
        SourceRotation { skipped_until: vec![Nanos::ZERO; count.max(1)], next: 0 }
    }

    /// Number of addresses in the rotation, at least 1.
    pub fn count(&self) -> usize {
        self.skipped_until.len()
    }

    /// Index of the next address with free ports. If all addresses are skipped, returns the next one all the same.
    pub fn next_source(&mut self, now: Nanos) -> usize {
        let count = self.count();
        let turn =
            (0..count).map(|i| (self.next + i) % count).find(|i| self.skipped_until[*i] <= now).unwrap_or(self.next);
        self.next = (turn + 1) % count;
        turn
    }

    /// Index of the source address that all connections of a session share.
    pub fn source_for_session(&self, session: SessionId) -> usize {
        session.0 as usize % self.count()
    }

    /// Records that an address has no free port.
    pub fn note_no_port(&mut self, source: usize, now: Nanos) {
        self.skipped_until[source] = now + SKIP_TIME;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGET: &str = "127.0.0.1:80";

    fn addresses(text: &str) -> Vec<String> {
        text.parse::<Cidr>().unwrap().addresses().map(|a| a.to_string()).collect()
    }

    #[test]
    fn ranges() {
        assert_eq!(addresses("10.0.0.7"), ["10.0.0.7"]);
        assert_eq!(addresses("10.0.0.7/31"), ["10.0.0.6", "10.0.0.7"]);
        assert_eq!(addresses("10.0.0.7/29").first().unwrap(), "10.0.0.1");
        assert_eq!(addresses("10.0.0.7/29").len(), 6);
        assert_eq!(addresses("0.0.0.0/0").len(), 256);
        assert_eq!(addresses("fd00::/127"), ["fd00::", "fd00::1"]);
        assert_eq!(addresses("::/0").len(), 256);
        for text in ["", "/", "10.0.0.0/33", "10.0.0/8", "::/129", "a/8", "10.0.0.0/-1"] {
            assert_eq!(text.parse::<Cidr>(), Err(CidrError(text.to_owned())));
        }
    }

    #[test]
    fn only_this_hosts_addresses_are_usable() {
        let target = TARGET.parse().unwrap();
        let usable = "127.0.0.0/29".parse::<Cidr>().unwrap().usable_addresses(&target).unwrap();
        assert_eq!(usable.len(), 6);
        // Addresses of TEST-NET-2 (RFC 5737) belong to no host.
        let error = "198.51.100.0/30".parse::<Cidr>().unwrap().usable_addresses(&target).unwrap_err().to_string();
        assert!(error.contains("198.51.100.0/30") && error.contains("ip address"), "{error}");
        assert!("::1".parse::<Cidr>().unwrap().usable_addresses(&target).is_err());
    }

    #[test]
    fn a_session_has_one_address() {
        let mut turns = SourceRotation::new(3);
        turns.note_no_port(1, Nanos::ZERO);
        assert_eq!([0, 1, 4, 5].map(|session| turns.source_for_session(SessionId(session))), [0, 1, 1, 2]);
        assert_eq!(SourceRotation::new(0).source_for_session(SessionId(u32::MAX)), 0, "the kernel's own choice");
    }

    #[test]
    fn an_address_without_a_free_port_is_skipped_for_a_while() {
        let mut turns = SourceRotation::new(3);
        let at = Nanos::from_millis;
        assert_eq!([0, 0, 0, 0].map(|t| turns.next_source(at(t))), [0, 1, 2, 0]);
        turns.note_no_port(1, at(0));
        assert_eq!([1, 2, 3].map(|t| turns.next_source(at(t))), [2, 0, 2]);
        assert_eq!([200, 200].map(|t| turns.next_source(at(t))), [0, 1]);
        (0..3).for_each(|i| turns.note_no_port(i, at(300)));
        assert_eq!(
            [300, 300].map(|t| turns.next_source(at(t))),
            [2, 0],
            "if all addresses are skipped, they are tried in turn"
        );
    }
}
