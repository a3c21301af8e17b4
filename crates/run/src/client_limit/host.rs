//! The built-in server of a calibration, and the CPUs that it and the two load generators use.

use crate::{Endpoint, RunError};
use brimful_core::{Bytes, Nanos};
use brimful_engine::Security;
use brimful_target::{CERTIFIED_NAME, Distribution, ServiceClass, Target, TargetConfig};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

/// Name of the built-in server's only request class, which needs no service time. Its URL path is `/` and this name.
const CLASS: &str = "nothing";
/// Connect timeout of the connections that fill the listener's accept queue. A timeout means that the queue is full.
const LOCAL_TIMEOUT: Duration = Duration::from_millis(100);
/// Maximum number of connections to fill the accept queue. A queue of length zero still holds one or two connections.
const MAX_QUEUED: usize = 16;

/// The server of a calibration. It stops when this value is dropped.
#[derive(Debug)]
pub enum Responder {
    /// A built-in server that responds at once, with no service time.
    Answers(Target),
    /// A listener with a full accept queue, so that the kernel drops every connection attempt. No other overload costs
    /// the server less CPU time.
    Full { listener: TcpListener, _queued: Vec<TcpStream> },
}

impl Responder {
    /// Starts a server whose responses have `response` bytes. It listens on the loopback address of the same family
    /// (IPv4 or IPv6) as `like`, with TLS if `secure` is set. The client chooses the HTTP version.
    pub fn start_server(
        like: SocketAddr,
        response: Bytes,
        secure: bool,
        places: &CpuPlacement,
    ) -> Result<Responder, RunError> {
        Ok(Responder::Answers(Target::start(TargetConfig {
            listen: loopback(like),
            classes: vec![ServiceClass::with_cpu_demand(CLASS, Nanos::ZERO, response)],
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

    /// Opens a listener on the loopback address of the same family as `like`, and fills its accept queue.
    pub fn with_full_backlog(like: SocketAddr) -> Result<Responder, RunError> {
        let listener = TcpListener::bind(loopback(like)).map_err(RunError::Listen)?;
        // Another call of listen() only changes the length of the accept queue.
        rustix::net::listen(&listener, 0).map_err(|errno| RunError::Listen(errno.into()))?;
        let address = listener.local_addr().map_err(RunError::Listen)?;
        let _queued =
            std::iter::from_fn(|| TcpStream::connect_timeout(&address, LOCAL_TIMEOUT).ok()).take(MAX_QUEUED).collect();
        Ok(Responder::Full { listener, _queued })
    }

    /// Returns the endpoint of this server, without connecting to it.
    pub fn endpoint(&self) -> Result<Endpoint, RunError> {
        let (address, is_secure) = match self {
            Responder::Answers(target) => (target.addr(), target.certificate().is_some()),
            Responder::Full { listener, .. } => (listener.local_addr().map_err(RunError::Listen)?, false),
        };
        // The endpoint is constructed here, because `Endpoint::resolve` would connect, which fails if the accept queue
        // is full.
        let authority = address.to_string();
        let scheme = if is_secure { "https" } else { "http" };
        let (url, path) = (format!("{scheme}://{authority}/{CLASS}"), format!("/{CLASS}"));
        Ok(Endpoint {
            url,
            address: address.into(),
            further_addresses: Vec::new(),
            name: None,
            authority,
            path,
            is_secure,
        })
    }

    /// Returns the TLS options `like` with this server's certificate as the trusted one; `None` without TLS.
    pub fn client_security(&self, like: Option<&Security>) -> Result<Option<Security>, RunError> {
        match (self, like) {
            (Responder::Answers(target), Some(like)) => {
                let trusting = |certificate| like.with_trusted_certificate(certificate, CERTIFIED_NAME);
                Ok(target.certificate().map(trusting).transpose()?)
            }
            _ => Ok(None),
        }
    }
}

fn loopback(like: SocketAddr) -> SocketAddr {
    let ip: IpAddr = if like.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() };
    (ip, 0).into()
}

/// CPUs of the calibration's built-in server and of the second load generator. An empty list means any CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuPlacement {
    /// CPUs of the built-in server.
    pub responder: Vec<usize>,
    /// Number of worker threads of the built-in server.
    pub workers: usize,
    /// CPUs of the second load generator.
    pub second_generator: Vec<usize>,
    /// Whether the second load generator shares CPUs with the first one or with the server.
    pub shared: bool,
}

impl CpuPlacement {
    /// Chooses CPUs of the built-in server and of the second generator from `cpus`, the CPUs that this process may use.
    /// `client` lists the CPUs of the first generator (empty: any). `server` lists the CPUs of the measured server, on
    /// which the built-in server then runs. The second generator gets the free CPUs or, if there are none, those of the
    /// server. It never gets CPUs of the first generator, on which two generators could not generate more load than
    /// one.
    pub fn choose(cpus: &[usize], client: &[usize], threads: usize, server: Option<&[usize]>) -> CpuPlacement {
        let exclude = |taken: &[usize], cpus: &[usize]| -> Vec<usize> {
            cpus.iter().copied().filter(|cpu| !taken.contains(cpu)).collect()
        };
        if client.is_empty() {
            let responder = server.unwrap_or_default().to_vec();
            let left = cpus.len().saturating_sub(2 * threads).max(1);
            let workers = if responder.is_empty() { left } else { responder.len() };
            return CpuPlacement {
                responder,
                workers,
                second_generator: Vec::new(),
                shared: cpus.len() < 2 * threads + workers,
            };
        }
        let free = exclude(client, cpus);
        let (responder, second) = match server {
            Some(server) => (server.to_vec(), exclude(server, &free)),
            None => {
                let responders = free.len().saturating_sub(client.len()).max(1).min(free.len());
                let (responder, second) = free.split_at(responders);
                (responder.to_vec(), second.to_vec())
            }
        };
        let shared = second.is_empty();
        let second = if shared { exclude(client, &responder) } else { second };
        CpuPlacement { workers: responder.len().max(1), responder, second_generator: second, shared }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(responder: &[usize], workers: usize, second: &[usize], shared: bool) -> CpuPlacement {
        CpuPlacement { responder: responder.to_vec(), workers, second_generator: second.to_vec(), shared }
    }

    #[test]
    fn the_second_generator_gets_free_cpus() {
        let (two, four) = ([0, 1], [0, 1, 2, 3]);
        assert_eq!(CpuPlacement::choose(&four, &[1], 1, Some(&[0])), places(&[0], 1, &[2, 3], false));
        assert_eq!(CpuPlacement::choose(&four, &[1], 1, None), places(&[0, 2], 2, &[3], false));
        assert_eq!(CpuPlacement::choose(&two, &[1], 1, Some(&[0])), places(&[0], 1, &[0], true));
        assert_eq!(CpuPlacement::choose(&two, &[1], 1, Some(&[0, 1])), places(&[0, 1], 2, &[0], true));
        assert_eq!(CpuPlacement::choose(&two, &[1], 1, None), places(&[0], 1, &[0], true));
        assert_eq!(CpuPlacement::choose(&two, &[0, 1], 2, None), places(&[], 1, &[], true));
        assert_eq!(CpuPlacement::choose(&[0], &[0], 1, Some(&[0])), places(&[0], 1, &[], true));
    }

    #[test]
    fn a_generator_that_runs_anywhere_leaves_it_to_the_kernel() {
        assert_eq!(CpuPlacement::choose(&[0, 1], &[], 1, None), places(&[], 1, &[], true));
        assert_eq!(CpuPlacement::choose(&[0, 1, 2, 3], &[], 1, None), places(&[], 2, &[], false));
        assert_eq!(CpuPlacement::choose(&[0, 1, 2, 3], &[], 1, Some(&[0])), places(&[0], 1, &[], false));
    }

    #[test]
    fn a_full_listener_accepts_no_connection() {
        for like in ["10.0.0.1:80", "[2001:db8::1]:80"] {
            let responder = Responder::with_full_backlog(like.parse().unwrap()).unwrap();
            let address = responder.endpoint().unwrap().address.tcp().unwrap();
            assert!(address.ip().is_loopback() && address.is_ipv4() == like.starts_with("10"), "{address}");
            assert!(TcpStream::connect_timeout(&address, LOCAL_TIMEOUT).is_err());
        }
    }
}
