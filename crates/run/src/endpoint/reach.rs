//! Tests which addresses of a host accept connections (RFC 8305, "Happy Eyeballs"). Each attempt begins a short time
//! after the one before, or as soon as that one has failed. Once a connection is established, all remaining addresses
//! are tried at once and have half a second to reply. So an address that never replies delays the result by less than a
//! second.

use brimful_core::Nanos;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with, sockopt::socket_error};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// Delay between the starts of two successive attempts (RFC 8305 §5).
const STAGGER: Duration = Duration::from_millis(250);
/// Time to wait for the other addresses after one has accepted a connection. It is longer than several round trips of
/// any network.
const GRACE: Duration = Duration::from_millis(500);
/// Maximum time to wait until an address accepts a connection.
const MAX_WAIT: Duration = Duration::from_secs(3600);

/// Slightly less than the time after which the kernel retransmits a SYN (1 s; RFC 6298). A connection that is
/// established sooner took one round trip.
const BEFORE_RETRANSMISSION: Nanos = Nanos(950_000_000);

/// The outcome of the connection attempts to all addresses of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReachOutcome {
    /// The addresses that accept connections, at least one.
    Accepts(Vec<SocketAddr>),
    /// No address accepts a connection, and this address did not reply within the time limit.
    Silent(SocketAddr),
    /// No address accepts a connection, and the kernel does not permit connections to this one, for example because
    /// there is no route.
    NotPermitted(SocketAddr),
    /// All addresses refuse connections; this is the first of them.
    Refuses(SocketAddr),
}

/// A connection attempt in progress.
struct Attempt {
    address: SocketAddr,
    socket: OwnedFd,
}

/// Tests all addresses, for at most `timeout`. Returns `None` if `addresses` is empty. The result has the order of
/// `addresses`.
pub fn reach_all(addresses: &[SocketAddr], timeout: Nanos) -> Option<ReachOutcome> {
    reach(addresses, timeout, GRACE)
}

/// Tests the addresses until one accepts a connection.
pub fn reach_first(addresses: &[SocketAddr], timeout: Nanos) -> Option<ReachOutcome> {
    reach(addresses, timeout, Duration::ZERO)
}

/// Measures the round-trip time to an address that did not reply within `timeout`. Returns `None` if a connection is
/// established within `timeout` after all, or if none is established before the kernel retransmits its SYN. A server
/// with a long round-trip time is far away rather than overloaded.
pub fn slow_round_trip(address: SocketAddr, timeout: Nanos) -> Option<Nanos> {
    if timeout >= BEFORE_RETRANSMISSION {
        return None;
    }
    let began = Instant::now();
    let outcome = reach_first(&[address], BEFORE_RETRANSMISSION)?;
    let taken = Nanos::from(began.elapsed());
    (matches!(outcome, ReachOutcome::Accepts(_)) && taken > timeout).then_some(taken)
}

fn reach(addresses: &[SocketAddr], timeout: Nanos, grace: Duration) -> Option<ReachOutcome> {
    let order = alternating(addresses);
    let began = Instant::now();
    let timeout = Duration::from(timeout).min(MAX_WAIT);
    let mut until = began + timeout;
    // With many addresses, the attempts follow one another faster, so that each is tried within `timeout`.
    let mut stagger = STAGGER.min(timeout / order.len().max(1) as u32);
    let mut rest = order.iter().copied();
    let mut next = rest.next();
    let mut next_at = began;
    let mut under_way: Vec<Attempt> = Vec::new();
    let mut accepting: Vec<SocketAddr> = Vec::new();
    let mut failed: Vec<(SocketAddr, Errno)> = Vec::new();
    loop {
        let now = Instant::now();
        let mut i = 0;
        while let Some(attempt) = under_way.get(i) {
            match outcome(attempt) {
                None => i += 1,
                Some(Ok(())) => {
                    if accepting.is_empty() {
                        until = until.min(now + grace);
                        stagger = Duration::ZERO;
                        next_at = now;
                    }
                    accepting.push(attempt.address);
                    under_way.remove(i);
                }
                Some(Err(error)) => {
                    failed.push((attempt.address, error));
                    under_way.remove(i);
                    next_at = now;
                }
            }
        }
        let left = until.saturating_duration_since(now);
        if grace.is_zero() && !accepting.is_empty() {
            break;
        }
        if let Some(address) = next.filter(|_| now >= next_at || left.is_zero()) {
            next = rest.next();
            next_at = now + stagger;
            match begin(address) {
                Ok(attempt) => under_way.push(attempt),
                Err(error) => {
                    failed.push((address, error));
                    next_at = now;
                }
            }
        } else if under_way.is_empty() || left.is_zero() {
            break;
        } else {
            wait(&under_way, next.map_or(left, |_| left.min(next_at - now)));
        }
    }
    if !accepting.is_empty() {
        let accepts = addresses.iter().filter(|address| accepting.contains(address));
        return Some(ReachOutcome::Accepts(accepts.copied().collect()));
    }
    no_acceptance(&under_way, &failed)
}

/// The outcome if no address accepts a connection. The attempts `under_way` have had no reply.
fn no_acceptance(under_way: &[Attempt], failed: &[(SocketAddr, Errno)]) -> Option<ReachOutcome> {
    let silent = under_way.first().map(|attempt| attempt.address);
    let barred = failed.iter().find(|(_, error)| *error != Errno::CONNREFUSED);
    silent
        .map(ReachOutcome::Silent)
        .or(barred.map(|(address, _)| ReachOutcome::NotPermitted(*address)))
        .or(failed.first().map(|(address, _)| ReachOutcome::Refuses(*address)))
}

/// Reorders addresses so that IPv4 and IPv6 alternate, beginning with the family of the first address. Within a family,
/// the resolver's order is kept (RFC 8305 §4).
fn alternating(addresses: &[SocketAddr]) -> Vec<SocketAddr> {
    let Some(first) = addresses.first() else { return Vec::new() };
    let (preferred, others): (Vec<SocketAddr>, Vec<SocketAddr>) =
        addresses.iter().partition(|address| address.is_ipv6() == first.is_ipv6());
    let mut order: Vec<SocketAddr> = Vec::with_capacity(addresses.len());
    for i in 0..preferred.len().max(others.len()) {
        order.extend(preferred.get(i));
        order.extend(others.get(i));
    }
    order
}

fn begin(address: SocketAddr) -> Result<Attempt, Errno> {
    let family = if address.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(family, SocketType::STREAM, flags, None)?;
    match connect(&socket, &address) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(Attempt { address, socket }),
        Err(error) => Err(error),
    }
}

/// Waits until an attempt succeeds or fails, for at most `timeout`.
fn wait(attempts: &[Attempt], timeout: Duration) {
    let mut fds: Vec<PollFd<'_>> =
        attempts.iter().map(|attempt| PollFd::new(&attempt.socket, PollFlags::OUT)).collect();
    let timeout = Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: timeout.subsec_nanos().into() };
    // An error is ignored: if a signal ends the wait early, the caller waits again.
    let _ = poll(&mut fds, Some(&timeout));
}

/// The outcome of an attempt; `None` if it is still in progress.
fn outcome(attempt: &Attempt) -> Option<Result<(), Errno>> {
    let mut fds = [PollFd::new(&attempt.socket, PollFlags::OUT)];
    let ready = poll(&mut fds, Some(&Timespec::default())).is_ok_and(|ready| ready > 0);
    ready.then(|| match socket_error(&attempt.socket) {
        Ok(outcome) => outcome,
        Err(error) => Err(error),
    })
}

/// Tests, and a function for the tests of other modules.
#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use brimful_testkit::full_backlog_listener;
    use rustix::net::{bind, getsockname, socket};
    use std::net::TcpListener;

    /// A timeout that no test reaches, even on a busy host.
    const PATIENCE: Nanos = Nanos::from_secs(600);

    /// Returns an address that refuses connections while the returned socket exists. The socket is bound, so that no
    /// other program gets the port, but does not listen.
    pub(crate) fn refusing() -> (OwnedFd, SocketAddr) {
        let taken = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        bind(&taken, &SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let address = getsockname(&taken).unwrap().try_into().unwrap();
        (taken, address)
    }

    #[test]
    fn an_address_that_accepts_is_preferred_to_the_first() {
        let silent = full_backlog_listener();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let good = listener.local_addr().unwrap();
        let (_taken, refusing) = refusing();
        for addresses in [&[good][..], &[silent.addr(), good], &[refusing, silent.addr(), refusing, good]] {
            for reach in [reach_all, reach_first] {
                assert_eq!(reach(addresses, PATIENCE), Some(ReachOutcome::Accepts(vec![good])), "{addresses:?}");
            }
        }
    }

    #[test]
    fn a_silent_address_beside_one_that_accepts_costs_only_a_moment() {
        let (silent, listener) = (full_backlog_listener(), TcpListener::bind("127.0.0.1:0").unwrap());
        let began = Instant::now();
        let reached = reach_all(&[listener.local_addr().unwrap(), silent.addr()], PATIENCE);
        assert_eq!(reached, Some(ReachOutcome::Accepts(vec![listener.local_addr().unwrap()])));
        assert!(began.elapsed() < Duration::from(PATIENCE) / 2, "{:?}", began.elapsed());
    }

    #[test]
    fn addresses_that_accept_keep_the_resolvers_order() {
        let listeners = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let [a, b, c] = listeners.each_ref().map(|listener| listener.local_addr().unwrap());
        let (_taken, refusing) = refusing();
        assert_eq!(reach_all(&[a, refusing, b, c], PATIENCE), Some(ReachOutcome::Accepts(vec![a, b, c])));
        assert_eq!(reach_first(&[refusing, c, a], PATIENCE), Some(ReachOutcome::Accepts(vec![c])));
    }

    #[test]
    fn a_silent_address_is_preferred_to_one_that_refuses() {
        let silent = full_backlog_listener();
        let ((_first, first), (_second, second)) = (refusing(), refusing());
        for addresses in [[silent.addr(), first], [first, silent.addr()]] {
            assert_eq!(reach_all(&addresses, Nanos::from_millis(100)), Some(ReachOutcome::Silent(silent.addr())));
        }
        assert_eq!(reach_all(&[first, second], PATIENCE), Some(ReachOutcome::Refuses(first)));
        // A broadcast address. The kernel does not permit TCP connections to it, and returns an error without sending a
        // packet.
        let barred = SocketAddr::from(([255, 255, 255, 255], 80));
        assert_eq!(reach_all(&[first, barred], PATIENCE), Some(ReachOutcome::NotPermitted(barred)));
        assert_eq!(reach_all(&[], PATIENCE), None);
    }

    #[test]
    fn families_take_turns() {
        let [a, b, c, x, y] = ["[::1]:1", "[::2]:1", "[::3]:1", "1.1.1.1:1", "2.2.2.2:1"].map(|a| a.parse().unwrap());
        assert_eq!(alternating(&[a, b, c, x, y]), [a, x, b, y, c]);
        assert_eq!(alternating(&[x, y, a]), [x, a, y]);
        assert_eq!(alternating(&[]), []);
    }
}
