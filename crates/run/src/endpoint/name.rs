//! The host names of a server, their resolution, and rules for connecting to other hosts or ports.

use super::reach::{ReachOutcome, reach_all};
use brimful_core::Nanos;
use brimful_engine::NameLookup;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::str::FromStr;
use std::sync::Arc;

/// Time limit for testing, during a run, whether newly resolved addresses accept connections.
const PATIENCE: Nanos = Nanos::from_secs(1);

/// A rule like curl's `--connect-to HOST:PORT:ADDRESS:PORT`: connections to the first host and port go to the second
/// instead. An empty HOST or first PORT matches any. An empty ADDRESS or second PORT means that of the URL. Several
/// ADDRESSes are separated by commas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectTo {
    host: Option<String>,
    port: Option<u16>,
    addresses: Vec<String>,
    to_port: Option<u16>,
}

/// The error for a text (the field) that is not a valid [`ConnectTo`] rule.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "`{0}` does not say where to connect to: write HOST:PORT:ADDRESS:PORT, like example.org:443:127.0.0.1:8443; each \
     part may be empty, and an IPv6 address needs brackets"
)]
pub struct ConnectToError(String);

impl FromStr for ConnectTo {
    type Err = ConnectToError;

    fn from_str(text: &str) -> Result<ConnectTo, ConnectToError> {
        let error = || ConnectToError(text.to_owned());
        let parse_port = |part: &str| match part {
            "" => Ok(None),
            part => part.parse().ok().filter(|port| *port > 0).map(Some).ok_or_else(error),
        };
        let [host, from_port, addresses, to_port] =
            <[&str; 4]>::try_from(split_at_colons(text)).map_err(|_| error())?;
        let addresses: Vec<String> = addresses.split(',').map(without_brackets).collect();
        let has_empty = addresses.iter().any(String::is_empty);
        if has_empty && addresses.len() > 1 {
            return Err(error());
        }
        Ok(ConnectTo {
            host: (!host.is_empty()).then(|| without_brackets(host)),
            port: parse_port(from_port)?,
            addresses: if has_empty { Vec::new() } else { addresses },
            to_port: parse_port(to_port)?,
        })
    }
}

impl ConnectTo {
    /// Whether the rule applies to this host (without brackets) and port.
    fn matches(&self, host: &str, port: u16) -> bool {
        self.host.as_ref().is_none_or(|own| own.eq_ignore_ascii_case(host)) && self.port.is_none_or(|own| own == port)
    }
}

/// Splits a text at each colon that is not within brackets.
fn split_at_colons(text: &str) -> Vec<&str> {
    let mut is_inside = false;
    text.split(|letter| {
        is_inside = letter == '[' || is_inside && letter != ']';
        letter == ':' && !is_inside
    })
    .collect()
}

fn without_brackets(part: &str) -> String {
    part.trim_start_matches('[').trim_end_matches(']').to_owned()
}

/// The host names (or IP addresses) that resolve to the server's addresses, and the server's port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerHosts {
    hosts: Vec<String>,
    port: u16,
    /// Whether to use only the first address that accepts a connection.
    first_only: bool,
}

impl ServerHosts {
    /// A single host, without rules.
    pub(super) fn of_host(host: &str, port: u16) -> ServerHosts {
        ServerHosts { hosts: vec![host.to_owned()], port, first_only: false }
    }

    /// The hosts and port to connect to for this host and port, by the first rule that matches; `None` if no rule
    /// matches. Without rules, these are the given host and port.
    pub(super) fn by_rules(host: &str, port: u16, rules: &[ConnectTo], first_only: bool) -> Option<ServerHosts> {
        let rule = rules.iter().find(|rule| rule.matches(host, port));
        if rule.is_none() && !rules.is_empty() {
            return None;
        }
        let addresses = rule.map(|rule| rule.addresses.clone()).filter(|addresses| !addresses.is_empty());
        let to_port = rule.and_then(|rule| rule.to_port);
        let hosts = addresses.unwrap_or_else(|| vec![host.to_owned()]);
        Some(ServerHosts { hosts, port: to_port.unwrap_or(port), first_only })
    }

    /// Resolves all hosts, and returns their addresses without duplicates in the order of the resolver.
    pub(super) fn resolve(
        &self,
        look_up: impl Fn(&str, u16) -> io::Result<Vec<SocketAddr>>,
    ) -> io::Result<Vec<SocketAddr>> {
        let mut addresses = Vec::new();
        for host in &self.hosts {
            for address in look_up(host, self.port)? {
                if !addresses.contains(&address) {
                    addresses.push(address);
                }
            }
        }
        Ok(addresses)
    }

    /// Whether a later look-up can return other addresses. This is not so if all hosts are IP addresses.
    fn can_change(&self) -> bool {
        let is_literal = |host: &String| host.contains('%') || host.parse::<IpAddr>().is_ok();
        !self.hosts.iter().all(is_literal)
    }

    /// Returns a function that resolves the hosts again during a run; `None` if their addresses cannot change.
    pub(super) fn look_up_again(&self) -> Option<NameLookup> {
        let name = self.clone();
        let look_up = move |in_use: &[SocketAddr]| match name.resolve(look_up) {
            Ok(resolved) => name.choose(in_use, &resolved),
            Err(_) => Vec::new(),
        };
        self.can_change().then(|| NameLookup(Arc::new(look_up)))
    }

    /// The addresses to use after another look-up: those of `resolved` that are in use already or accept a connection.
    fn choose(&self, in_use: &[SocketAddr], resolved: &[SocketAddr]) -> Vec<SocketAddr> {
        let kept = resolved.iter().any(|address| in_use.contains(address));
        let accepting = match reach_all(resolved, PATIENCE) {
            Some(ReachOutcome::Accepts(addresses)) if !(self.first_only && kept) => addresses,
            _ => Vec::new(),
        };
        let is_used = |address: &&SocketAddr| in_use.contains(address) || accepting.contains(address);
        let most = if self.first_only { 1 } else { usize::MAX };
        resolved.iter().filter(is_used).take(most).copied().collect()
    }
}

/// Resolves a host name with the resolver of this host.
pub fn look_up(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    Ok((host, port).to_socket_addrs()?.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(host: &str, port: u16, rules: &[&str]) -> Option<(Vec<String>, u16)> {
        let rules: Vec<ConnectTo> = rules.iter().map(|rule| rule.parse().unwrap()).collect();
        ServerHosts::by_rules(host, port, &rules, false).map(|name| (name.hosts, name.port))
    }

    fn to(hosts: &[&str], port: u16) -> Option<(Vec<String>, u16)> {
        Some((hosts.iter().map(ToString::to_string).collect(), port))
    }

    #[test]
    fn connect_to_is_read_as_curl_reads_it() {
        assert_eq!(found("a.test", 80, &[]), to(&["a.test"], 80));
        assert_eq!(found("a.test", 80, &["a.test:80:b.test:8080"]), to(&["b.test"], 8080));
        assert_eq!(found("A.test", 80, &["a.TEST::b.test:"]), to(&["b.test"], 80));
        assert_eq!(found("a.test", 80, &["::127.0.0.1:"]), to(&["127.0.0.1"], 80));
        assert_eq!(found("a.test", 80, &[":::8080"]), to(&["a.test"], 8080));
        assert_eq!(found("::1", 80, &["[::1]:80:[fe80::2%eth0]:81"]), to(&["fe80::2%eth0"], 81));
        assert_eq!(found("a.test", 80, &["::127.0.0.2,[::1]:81"]), to(&["127.0.0.2", "::1"], 81));
        // Several of these rules match each URL. Expects that the first one applies.
        let rules = ["b.test::1.1.1.1:", "a.test:81:2.2.2.2:", "a.test::3.3.3.3:", "::4.4.4.4:"];
        assert_eq!(found("a.test", 80, &rules), to(&["3.3.3.3"], 80));
        assert_eq!(found("c.test", 80, &rules[..3]), None);
        for wrong in ["", "a", "a:80", "a:80:b", "a:80:b:81:c", "a:x:b:80", "a:80:b:0", "a:80:b:70000", "::a,:80"] {
            assert!(wrong.parse::<ConnectTo>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_address_that_a_name_no_longer_has_is_left_and_one_that_only_refuses_is_kept() {
        let listeners = [(); 2].map(|()| std::net::TcpListener::bind("127.0.0.1:0").unwrap());
        let [one, other] = listeners.each_ref().map(|listener| listener.local_addr().unwrap());
        let (_taken, refusing) = super::super::reach::tests::refusing();
        let name = ServerHosts { hosts: vec!["a.test".to_owned()], port: 80, first_only: false };
        assert_eq!(name.choose(&[refusing], &[refusing, one]), [refusing, one]);
        assert_eq!(name.choose(&[one], &[refusing, other]), [other]);
        assert_eq!(name.choose(&[one], &[refusing]), []);
        let name = ServerHosts { first_only: true, ..name };
        assert_eq!(name.choose(&[other], &[one, other]), [other]);
        assert_eq!(name.choose(&[refusing], &[other, one]).len(), 1);
        assert!(name.look_up_again().is_some());
        for literal in ["127.0.0.1", "::1", "fe80::1%eth0"] {
            let name = ServerHosts { hosts: vec![literal.to_owned()], ..name.clone() };
            assert!(name.look_up_again().is_none(), "{literal}");
        }
    }
}
