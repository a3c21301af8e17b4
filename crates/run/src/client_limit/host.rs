//! Against what a client is calibrated, and who runs on which CPUs meanwhile.

use crate::{Endpoint, RunError};
use brimful_core::{Bytes, Nanos};
use brimful_engine::Security;
use brimful_target::{CERTIFIED_NAME, Distribution, ServiceClass, Target, TargetConfig};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

/// What the responder serves, at `/` and this name.
const CLASS: &str = "nothing";
/// Time enough for a local connection.
const LOCAL: Duration = Duration::from_millis(100);
/// A queue of length zero holds a connection or two.
const QUEUED: usize = 16;

/// What answers, or does not; it ends when this is dropped.
#[derive(Debug)]
pub enum Responder {
    /// Answers at once, spending no time on it.
    Answers(Target),
    /// A listener with a full accept queue, which drops every attempt: overload at its cheapest.
    Full { listener: TcpListener, _queued: Vec<TcpStream> },
}

impl Responder {
    /// A server with answers of `response` bytes, on the loopback address of the family of `like`, by TLS if it is to be
    /// `secure`. What it speaks inside is the client's choice.
    pub fn answering(like: SocketAddr, response: Bytes, secure: bool, places: &Places) -> Result<Responder, RunError> {
        Ok(Responder::Answers(Target::start(TargetConfig {
            listen: loopback(like),
            classes: vec![ServiceClass::burning(CLASS, Nanos::ZERO, response)],
            distribution: Distribution::Deterministic,
            workers: places.workers,
            pool: None,
            rate_limit: None,
            backlog: 1024,
            cpus: places.responder.clone(),
            read_dir: std::env::temp_dir(),
            tls: secure,
            seed: 0,
        })?))
    }

    /// A listener that has stopped accepting.
    pub fn full(like: SocketAddr) -> Result<Responder, RunError> {
        let listener = TcpListener::bind(loopback(like)).map_err(RunError::Listen)?;
        // A second listen() only changes the length of the queue.
        rustix::net::listen(&listener, 0).map_err(|errno| RunError::Listen(errno.into()))?;
        let address = listener.local_addr().map_err(RunError::Listen)?;
        let _queued = std::iter::from_fn(|| TcpStream::connect_timeout(&address, LOCAL).ok()).take(QUEUED).collect();
        Ok(Responder::Full { listener, _queued })
    }

    pub fn endpoint(&self) -> Result<Endpoint, RunError> {
        let (address, is_secure) = match self {
            Responder::Answers(target) => (target.addr(), target.certificate().is_some()),
            Responder::Full { listener, .. } => (listener.local_addr().map_err(RunError::Listen)?, false),
        };
        // Not resolved: that would connect, and one of the two does not accept.
        let authority = address.to_string();
        let scheme = if is_secure { "https" } else { "http" };
        let (url, path) = (format!("{scheme}://{authority}/{CLASS}"), format!("/{CLASS}"));
        Ok(Endpoint { url, address: address.into(), further: Vec::new(), name: None, authority, path, is_secure })
    }

    /// How a client secures its connections to it that secures others `like` this.
    pub fn trusted_by(&self, like: Option<&Security>) -> Result<Option<Arc<Security>>, RunError> {
        match (self, like) {
            (Responder::Answers(target), Some(like)) => {
                let trusting = |certificate| like.trusting(certificate, CERTIFIED_NAME);
                Ok(target.certificate().map(trusting).transpose()?.map(Arc::new))
            }
            _ => Ok(None),
        }
    }
}

fn loopback(like: SocketAddr) -> SocketAddr {
    let ip: IpAddr = if like.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() };
    (ip, 0).into()
}

/// Who runs where. No CPUs mean any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    pub responder: Vec<usize>,
    pub workers: usize,
    /// The second generator.
    pub second: Vec<usize>,
    /// Whether the second generator shares CPUs with the first or with the responder.
    pub shared: bool,
}

impl Places {
    /// Out of the CPUs of this host that there are for this process. The generator's `client` CPUs (none: any) and the
    /// `server`'s are given; the second generator gets what is free, and else the responder's CPUs: to share the first
    /// generator's would make two of them no more than one.
    pub fn choose(cpus: &[usize], client: &[usize], threads: usize, server: Option<&[usize]>) -> Places {
        let without = |taken: &[usize], cpus: &[usize]| -> Vec<usize> {
            cpus.iter().copied().filter(|cpu| !taken.contains(cpu)).collect()
        };
        if client.is_empty() {
            let responder = server.unwrap_or_default().to_vec();
            let left = cpus.len().saturating_sub(2 * threads).max(1);
            let workers = if responder.is_empty() { left } else { responder.len() };
            return Places { responder, workers, second: Vec::new(), shared: cpus.len() < 2 * threads + workers };
        }
        let free = without(client, cpus);
        let (responder, second) = match server {
            Some(server) => (server.to_vec(), without(server, &free)),
            None => {
                let responders = free.len().saturating_sub(client.len()).max(1).min(free.len());
                let (responder, second) = free.split_at(responders);
                (responder.to_vec(), second.to_vec())
            }
        };
        let shared = second.is_empty();
        let second = if shared { without(client, &responder) } else { second };
        Places { workers: responder.len().max(1), responder, second, shared }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(responder: &[usize], workers: usize, second: &[usize], shared: bool) -> Places {
        Places { responder: responder.to_vec(), workers, second: second.to_vec(), shared }
    }

    #[test]
    fn the_second_generator_gets_what_is_free() {
        let (two, four) = ([0, 1], [0, 1, 2, 3]);
        assert_eq!(Places::choose(&four, &[1], 1, Some(&[0])), places(&[0], 1, &[2, 3], false));
        assert_eq!(Places::choose(&four, &[1], 1, None), places(&[0, 2], 2, &[3], false));
        assert_eq!(Places::choose(&two, &[1], 1, Some(&[0])), places(&[0], 1, &[0], true));
        assert_eq!(Places::choose(&two, &[1], 1, Some(&[0, 1])), places(&[0, 1], 2, &[0], true));
        assert_eq!(Places::choose(&two, &[1], 1, None), places(&[0], 1, &[0], true));
        assert_eq!(Places::choose(&two, &[0, 1], 2, None), places(&[], 1, &[], true));
        assert_eq!(Places::choose(&[0], &[0], 1, Some(&[0])), places(&[0], 1, &[], true));
    }

    #[test]
    fn a_generator_that_runs_anywhere_leaves_it_to_the_kernel() {
        assert_eq!(Places::choose(&[0, 1], &[], 1, None), places(&[], 1, &[], true));
        assert_eq!(Places::choose(&[0, 1, 2, 3], &[], 1, None), places(&[], 2, &[], false));
        assert_eq!(Places::choose(&[0, 1, 2, 3], &[], 1, Some(&[0])), places(&[0], 1, &[], false));
    }

    #[test]
    fn a_full_listener_lets_nobody_in() {
        for like in ["10.0.0.1:80", "[2001:db8::1]:80"] {
            let responder = Responder::full(like.parse().unwrap()).unwrap();
            let address = responder.endpoint().unwrap().address.tcp().unwrap();
            assert!(address.ip().is_loopback() && address.is_ipv4() == like.starts_with("10"), "{address}");
            assert!(TcpStream::connect_timeout(&address, LOCAL).is_err());
        }
    }
}
