//! The accepted values of `Host` in requests.
//!
//! A web page can point its own domain name at this host's address (DNS rebinding). A browser on this host then lets
//! the page read this exporter's responses. Such a request has the page's domain name in `Host`, and is refused. An IP
//! address cannot be rebound, so every IP address is accepted.

use std::net::{IpAddr, Ipv6Addr};

/// The host names that are accepted.
pub struct Hosts {
    own: String,
    given: Vec<String>,
}

impl Hosts {
    /// Accepts the name of this host, and the names in `given`.
    pub fn new(given: &[String]) -> Hosts {
        let own = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Hosts { own, given: given.to_vec() }
    }

    /// Whether a request with this `Host` is meant for this host.
    pub fn accepts(&self, host: &[u8]) -> bool {
        let Ok(host) = std::str::from_utf8(host) else { return false };
        let name = without_port(host.trim());
        let is_address = match name.strip_prefix('[').and_then(|name| name.strip_suffix(']')) {
            Some(address) => address.parse::<Ipv6Addr>().is_ok(),
            None => name.parse::<IpAddr>().is_ok_and(|address| address.is_ipv4()),
        };
        let name = name.strip_suffix('.').unwrap_or(name);
        is_address || self.names().any(|accepted| accepted.eq_ignore_ascii_case(name))
    }

    /// The response to a request for another host.
    pub fn refusal(&self) -> String {
        format!(
            "the request's Host is not a name of this host: use an IP address, {}, or start brimful watch with \
             --prometheus-host NAME",
            self.names().collect::<Vec<_>>().join(", ")
        )
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        let names = ["localhost", self.own.as_str()].into_iter().chain(self.given.iter().map(String::as_str));
        names.filter(|name| !name.is_empty())
    }
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !name.ends_with(':') => name,
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_web_page_cannot_read_the_metrics_by_its_own_name() {
        let hosts = Hosts { own: "web1".to_owned(), given: vec!["metrics.example".to_owned()] };
        for host in [
            "127.0.0.1",
            "127.0.0.1:9477",
            "10.1.2.3",
            "[::1]",
            "[::1]:9477",
            "localhost",
            "LocalHost:9477",
            "web1:9477",
            "Web1",
            "metrics.example",
            "metrics.example.:80",
            " localhost ",
        ] {
            assert!(hosts.accepts(host.as_bytes()), "{host}");
        }
        for host in [
            "evil.example",
            "evil.example:9477",
            "localhost.evil.example",
            "web1.evil.example",
            "127.0.0.1.evil.example",
            "127.1",
            "",
            ":9477",
            "localhost:x",
            "[localhost]",
            "[127.0.0.1]",
            "::1:",
            "a:b:c",
        ] {
            assert!(!hosts.accepts(host.as_bytes()), "{host}");
        }
        assert!(!hosts.accepts(b"\xff"));
        assert!(hosts.refusal().contains("localhost, web1, metrics.example, or start"), "{}", hosts.refusal());
    }
}
