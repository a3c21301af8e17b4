//! Distinguishes lines that begin with a virtual host from lines that begin with a forwarded client:
//! `203.0.113.7 10.0.0.1 - - [`.
//!
//! Virtual hosts are names, or a few addresses to which many clients send requests. Forwarded clients are many
//! addresses behind a few proxies.

use crate::format::{Format, parse_ip};
use crate::{Line, Scratch};
use std::collections::BTreeSet;
use std::net::IpAddr;

/// Whether the values that the format `with_host` reads as virtual hosts look like forwarded clients.
pub(super) fn looks_forwarded(with_host: &Format, lines: &[&[u8]]) -> bool {
    let mut format = with_host.clone();
    let mut scratch = Scratch::default();
    let mut hosts = BTreeSet::new();
    let mut clients = BTreeSet::new();
    for line in lines {
        if let Ok(Line::Entry(entry)) = format.read(line, &mut scratch) {
            clients.insert(entry.client.to_vec());
            if !entry.host.is_empty() {
                hosts.insert(entry.host.to_vec());
            }
        }
    }
    let addresses: Vec<IpAddr> = hosts.iter().filter_map(|host| parse_ip(host)).collect();
    if addresses.len() < hosts.len() {
        return false;
    }
    match addresses.as_slice() {
        [] => true,
        [host] => {
            let is_server =
                is_private(*host) && clients.iter().filter_map(|client| parse_ip(client)).any(|ip| !is_private(ip));
            clients.len() == 1 && !is_server
        }
        _ => addresses.len() >= clients.len(),
    }
}

/// Whether an address belongs to a private network.
fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_private() || v4.is_loopback() || v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_loopback() || v6.is_unique_local() || v6.is_unicast_link_local(),
    }
}
