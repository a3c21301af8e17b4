//! Who has which address.
//!
//! The server is 198.18.0.1, client i is 198.18.i.1 and may connect from all of 198.18.i.0/24: one address has too few
//! ports for tens of thousands of connections. RFC 2544 keeps 198.18.0.0/15 for benchmarks, RFC 5180 2001:2::/48.

use std::net::{Ipv4Addr, Ipv6Addr};

/// Most clients.
pub const MOST_CLIENTS: usize = 200;

/// The server.
pub const SERVER: HostNumber = HostNumber(0);

/// A host: 0 is the server, the clients follow from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostNumber(pub usize);

impl HostNumber {
    /// The name by which `ip netns exec` knows it: `server`, `client1`, `client2`.
    pub fn name(self) -> String {
        match self {
            SERVER => "server".to_owned(),
            HostNumber(number) => format!("client{number}"),
        }
    }

    /// Its IPv4 address.
    pub fn ipv4(self) -> Ipv4Addr {
        Ipv4Addr::new(198, 18, self.0 as u8, 1)
    }

    /// Its IPv6 address.
    pub fn ipv6(self) -> Ipv6Addr {
        Ipv6Addr::new(0x2001, 2, 0, self.0 as u16, 0, 0, 0, 1)
    }

    /// The IPv4 addresses that are its own, as iproute2 writes them.
    pub fn ipv4_network(self) -> String {
        format!("198.18.{}.0/24", self.0)
    }

    /// The IPv6 addresses that are its own, as iproute2 writes them.
    pub fn ipv6_network(self) -> String {
        format!("2001:2:0:{:x}::/64", self.0)
    }

    /// Whose an IPv4 address is.
    pub fn of_ipv4([a, b, host, _]: [u8; 4]) -> Option<HostNumber> {
        (a == 198 && b == 18).then_some(HostNumber(host.into()))
    }

    /// Whose an IPv6 address is.
    pub fn of_ipv6(address: [u8; 16]) -> Option<HostNumber> {
        let [0x20, 0x01, 0, 2, 0, 0, high, low, ..] = address else { return None };
        Some(HostNumber(u16::from_be_bytes([high, low]).into()))
    }
}

/// A place in a command that names a client that there is not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{{{place}}}` in the command names no host: there are {{server}} and {{client 1}} to {{client {clients}}}")]
pub struct NoSuchHost {
    place: String,
    clients: usize,
}

/// A word of a command in which `{server}` and `{client 1}` have been replaced by IPv4 addresses, `{server v6}` and
/// `{client 1 v6}` by IPv6 addresses. Other braces stay as they are.
///
/// # Errors
/// For a client beyond those there are.
pub fn fill(word: &str, clients: usize) -> Result<String, NoSuchHost> {
    let mut filled = String::with_capacity(word.len());
    let mut rest = word;
    while let Some((before, after)) = rest.split_once('{') {
        filled.push_str(before);
        let place = after.split_once('}').filter(|(place, _)| is_place(place));
        match place {
            Some((place, after)) => {
                let no_such_host = || NoSuchHost { place: place.to_owned(), clients };
                filled.push_str(&address(place, clients).ok_or_else(no_such_host)?);
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

/// Whether it is meant for us.
fn is_place(place: &str) -> bool {
    let mut words = place.split_ascii_whitespace();
    let host = words.next();
    let is_number = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    let whose = match host {
        Some("server") => true,
        Some("client") => words.next().is_some_and(is_number),
        _ => false,
    };
    whose && matches!((words.next(), words.next()), (None | Some("v6"), None))
}

fn address(place: &str, clients: usize) -> Option<String> {
    let mut words = place.split_ascii_whitespace();
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
    fn an_address_leads_back_to_its_host() {
        for number in 0..=MOST_CLIENTS {
            let host = HostNumber(number);
            assert_eq!(HostNumber::of_ipv4(host.ipv4().octets()), Some(host));
            assert_eq!(HostNumber::of_ipv6(host.ipv6().octets()), Some(host));
        }
        assert_eq!(HostNumber::of_ipv4([198, 19, 1, 1]), None);
        assert_eq!(HostNumber::of_ipv6(Ipv6Addr::LOCALHOST.octets()), None);
        assert_eq!(HostNumber(17).ipv6_network(), "2001:2:0:11::/64");
    }

    #[test]
    fn places_are_filled_and_other_braces_stay() {
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
            assert_eq!(fill(word, 2).as_deref(), Ok(filled), "{word}");
        }
        for word in ["{client 3}", "{client 0}", "{client 99999999999999999999}"] {
            let error = fill(word, 2).unwrap_err().to_string();
            assert!(error.starts_with(&format!("`{word}` in the command")) && error.ends_with("{client 2}"), "{error}");
        }
    }

    proptest! {
        #[test]
        fn no_word_panics(word in "(\\{|\\}|server|client|v6| |[0-9]{1,3}|[ -~]){0,12}") {
            let _ = fill(&word, 3);
        }
    }
}
