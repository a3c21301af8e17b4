//! The addresses of the test bed's hosts.
//!
//! The server is 198.18.0.1. Client i is 198.18.i.1. It may connect from all addresses of 198.18.i.0/24, because one
//! address has too few ports for tens of thousands of connections. The networks are reserved for benchmarks:
//! 198.18.0.0/15 by RFC 2544, and 2001:2::/48 by RFC 5180.

use std::net::{Ipv4Addr, Ipv6Addr};

/// Maximum number of clients.
pub const MAX_CLIENTS: usize = 200;

/// Number of the host on which the server runs.
pub const SERVER: HostNumber = HostNumber(0);

/// Number of a host in the test bed: 0 is the server's host, and the clients' hosts have the numbers from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostNumber(pub usize);

impl HostNumber {
    /// The host's name in `ip netns exec`: `server`, `client1`, `client2` and so on.
    pub fn name(self) -> String {
        match self {
            SERVER => "server".to_owned(),
            HostNumber(number) => format!("client{number}"),
        }
    }

    /// The host's first IPv4 address.
    pub fn ipv4(self) -> Ipv4Addr {
        Ipv4Addr::new(198, 18, self.0 as u8, 1)
    }

    /// The host's first IPv6 address.
    pub fn ipv6(self) -> Ipv6Addr {
        Ipv6Addr::new(0x2001, 2, 0, self.0 as u16, 0, 0, 0, 1)
    }

    /// The IPv4 network (address and prefix length) that contains all addresses of this simulated host.
    pub fn ipv4_network(self) -> String {
        format!("198.18.{}.0/24", self.0)
    }

    /// The network of all IPv6 addresses of the host, in the notation of iproute2.
    pub fn ipv6_network(self) -> String {
        format!("2001:2:0:{:x}::/64", self.0)
    }

    /// The number of the host with this IPv4 address; `None` if the address is outside of the test bed's networks. The
    /// test bed may have fewer hosts than this number.
    pub fn from_ipv4([a, b, host, _]: [u8; 4]) -> Option<HostNumber> {
        (a == 198 && b == 18).then_some(HostNumber(host.into()))
    }

    /// The number of the host with this IPv6 address; `None` if the address is outside of the test bed's networks. The
    /// test bed may have fewer hosts than this number.
    pub fn from_ipv6(address: [u8; 16]) -> Option<HostNumber> {
        let [0x20, 0x01, 0, 2, 0, 0, high, low, ..] = address else { return None };
        Some(HostNumber(u16::from_be_bytes([high, low]).into()))
    }
}

/// The error for a placeholder, such as `{client 9}`, of a client that does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{{{placeholder}}}` in the command names no host: there are {{server}} and {{client 1}} to {{client {clients}}}"
)]
pub struct UnknownHostError {
    placeholder: String,
    clients: usize,
}

/// Replaces the placeholders in a word of a command by addresses: `{server}` and `{client 1}` by IPv4 addresses, and
/// `{server v6}` and `{client 1 v6}` by IPv6 addresses. Other text in braces is unchanged.
///
/// # Errors
/// [`UnknownHostError`] if a placeholder names a client that does not exist.
pub fn fill_addresses(word: &str, clients: usize) -> Result<String, UnknownHostError> {
    let mut filled = String::with_capacity(word.len());
    let mut rest = word;
    while let Some((before, after)) = rest.split_once('{') {
        filled.push_str(before);
        match after.split_once('}').filter(|(placeholder, _)| is_placeholder(placeholder)) {
            Some((placeholder, after)) => {
                let no_such_host = || UnknownHostError { placeholder: placeholder.to_owned(), clients };
                filled.push_str(&address(placeholder, clients).ok_or_else(no_such_host)?);
                rest = after;
            }
            None => {
                filled.push('{');
                rest = after;
            }
        }
    }
    filled.push_str(rest);
    Ok(filled)
}

/// Whether the text between two braces is a placeholder for an address.
fn is_placeholder(text: &str) -> bool {
    let mut words = text.split_ascii_whitespace();
    let host = words.next();
    let is_number = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    let names_host = match host {
        Some("server") => true,
        Some("client") => words.next().is_some_and(is_number),
        _ => false,
    };
    names_host && matches!((words.next(), words.next()), (None | Some("v6"), None))
}

fn address(placeholder: &str, clients: usize) -> Option<String> {
    let mut words = placeholder.split_ascii_whitespace();
    let host = match words.next()? {
        "server" => SERVER,
        _ => HostNumber(words.next()?.parse().ok().filter(|number| (1..=clients).contains(number))?),
    };
    Some(if words.next().is_some() { host.ipv6().to_string() } else { host.ipv4().to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn hosts_are_found_by_their_addresses() {
        for number in 0..=MAX_CLIENTS {
            let host = HostNumber(number);
            assert_eq!(HostNumber::from_ipv4(host.ipv4().octets()), Some(host));
            assert_eq!(HostNumber::from_ipv6(host.ipv6().octets()), Some(host));
        }
        assert_eq!(HostNumber::from_ipv4([198, 19, 1, 1]), None);
        assert_eq!(HostNumber::from_ipv6(Ipv6Addr::LOCALHOST.octets()), None);
        assert_eq!(HostNumber(17).ipv6_network(), "2001:2:0:11::/64");
    }

    #[test]
    fn placeholders_are_filled_and_other_braces_stay() {
        for (word, filled) in [
            ("http://{server}:80/", "http://198.18.0.1:80/"),
            ("{client 1},{client 2}", "198.18.1.1,198.18.2.1"),
            ("[{server v6}] [{client 2 v6}]", "[2001:2::1] [2001:2:0:2::1]"),
            (
                "${HOME} {} {\"a\": 1} {servers} {client} {client x} {",
                "${HOME} {} {\"a\": 1} {servers} {client} {client x} {",
            ),
            ("{{server}}", "{198.18.0.1}"),
            ("", ""),
        ] {
            assert_eq!(fill_addresses(word, 2).as_deref(), Ok(filled), "{word}");
        }
        for word in ["{client 3}", "{client 0}", "{client 99999999999999999999}"] {
            let error = fill_addresses(word, 2).unwrap_err().to_string();
            assert!(error.starts_with(&format!("`{word}` in the command")) && error.ends_with("{client 2}"), "{error}");
        }
    }

    proptest! {
        #[test]
        fn no_word_panics(word in "(\\{|\\}|server|client|v6| |[0-9]{1,3}|[ -~]){0,12}") {
            let _ = fill_addresses(&word, 3);
        }
    }
}
