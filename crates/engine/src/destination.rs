//! The addresses of a server, and the choice of the address for the next connection.
//!
//! A host name may have several addresses. New connections go to the addresses in turn, but all connections of a
//! session go to the same address. Each shard opens a connection to every address before it reuses a connection, so
//! that the calls are spread over the addresses at low rates too. After a failed connection attempt, the name is looked
//! up again, at most once a second. A separate thread does the look-up, so that no shard waits for a resolver. If a
//! look-up no longer returns an address, no new connections go to that address. An address keeps its index during the
//! whole run.

use crate::{Address, Cidr};
use brimful_core::panics::lock;
use brimful_core::{Nanos, SessionId};
use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// Minimum time between two look-ups of the server's name.
const LOOK_UP_INTERVAL: Nanos = Nanos::from_secs(1);
/// Maximum number of server addresses that a run uses; further addresses are ignored.
const MAX_ADDRESSES: usize = 256;

/// The server that a run connects to, with its addresses.
#[derive(Clone, Debug)]
pub struct Destination {
    first: Address,
    further: Vec<Address>,
    look_up: Option<NameLookup>,
    /// Index of the address to which the first shard of this process opens its first connection.
    first_index: usize,
}

/// A function that looks up the server's name. It receives the addresses in use. It returns the new addresses, or an
/// empty list if they do not change.
type LookUpFn = dyn Fn(&[SocketAddr]) -> Vec<SocketAddr> + Send + Sync;

/// A function that looks up the server's name again.
#[derive(Clone)]
pub struct NameLookup(pub Arc<LookUpFn>);

impl Destination {
    /// Creates a destination with these addresses. During the run, `look_up` looks up the server's name again, if
    /// given.
    pub fn new(first: Address, further: Vec<Address>, look_up: Option<NameLookup>) -> Destination {
        Destination { first, further, look_up, first_index: 0 }
    }

    /// Sets the address to which the first shard opens its first connection. The index is taken modulo the number of
    /// addresses.
    #[must_use]
    pub fn with_first_index(self, first_index: usize) -> Destination {
        Destination { first_index, ..self }
    }

    /// Index of the address to which the first shard of this process opens its first connection.
    pub(crate) fn first_index(&self) -> usize {
        self.first_index
    }

    /// All addresses of the server.
    pub(crate) fn addresses(&self) -> Vec<Address> {
        [&self.first].into_iter().chain(&self.further).take(MAX_ADDRESSES).cloned().collect()
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.first.fmt(f)
    }
}

impl fmt::Debug for NameLookup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NameLookup")
    }
}

impl From<SocketAddr> for Destination {
    fn from(address: SocketAddr) -> Destination {
        Destination::new(address.into(), Vec::new(), None)
    }
}

/// A shard's handle to the thread that looks up the server's name. The thread ends after the last handle is dropped.
#[derive(Clone, Debug)]
pub(crate) struct Resolver {
    ask: SyncSender<()>,
    latest: Arc<LatestAnswer>,
}

/// The addresses that the latest look-up returned.
#[derive(Debug, Default)]
struct LatestAnswer {
    /// Number of look-ups so far that returned other addresses than before.
    count: AtomicU64,
    addresses: Mutex<Vec<SocketAddr>>,
}

impl Resolver {
    /// Starts a thread that looks up the server's name on request. `in_use` contains the server's current addresses.
    /// Returns `None` if the destination has no look-up function, or if the thread cannot be started. If connections
    /// have a `source` network, only server addresses of its family (IPv4 or IPv6) are used.
    pub fn start(destination: &Destination, in_use: &[Address], source: Option<Cidr>) -> Option<Resolver> {
        let look_up = destination.look_up.clone()?;
        let in_use: Vec<SocketAddr> = in_use.iter().filter_map(Address::tcp).collect();
        let (ask, asked) = sync_channel(1);
        let latest = Arc::new(LatestAnswer::default());
        let publish = Arc::clone(&latest);
        let body = move || look_up_when_asked(&asked, &look_up, in_use, source, &publish);
        // If the thread cannot be started, the addresses stay the same during the run.
        thread::Builder::new().name("resolver".to_owned()).spawn(body).ok()?;
        Some(Resolver { ask, latest })
    }
}

fn look_up_when_asked(
    asked: &Receiver<()>,
    look_up: &NameLookup,
    mut in_use: Vec<SocketAddr>,
    source: Option<Cidr>,
    latest: &LatestAnswer,
) {
    while asked.recv().is_ok() {
        let mut addresses = (look_up.0)(&in_use);
        addresses.retain(|address| source.is_none_or(|source| source.is_of_family(address)));
        if !addresses.is_empty() && addresses != in_use {
            in_use.clone_from(&addresses);
            *lock(&latest.addresses) = addresses;
            latest.count.fetch_add(1, Ordering::Release);
        }
        thread::sleep(Duration::from(LOOK_UP_INTERVAL));
    }
}

/// Chooses the server's addresses in turn for the connections of one shard.
#[derive(Debug)]
pub(crate) struct AddressRotation {
    /// Every address that was ever in use. The position in this list is the address's index.
    known: Vec<Address>,
    /// Indices of the addresses in use.
    in_use: Vec<u16>,
    next: usize,
    /// Number of addresses that this shard has not yet connected to.
    unvisited: usize,
    /// Number of failed connection attempts for sessions. After each failure, all sessions move on to their next
    /// address.
    moved: usize,
    resolver: Option<Resolver>,
    /// Number of changed look-up results that this shard has applied.
    answers: u64,
    /// The earliest time at which this shard may request another look-up.
    ask_at: Nanos,
}

impl AddressRotation {
    /// Creates a rotation over `addresses`, which must not be empty. It starts at `first_index`, modulo the number of
    /// addresses.
    pub fn new(addresses: &[Address], first_index: usize, resolver: Option<Resolver>) -> AddressRotation {
        AddressRotation {
            known: addresses.to_vec(),
            in_use: (0..addresses.len() as u16).collect(),
            next: first_index % addresses.len().max(1),
            unvisited: addresses.len(),
            moved: 0,
            resolver,
            answers: 0,
            ask_at: Nanos::ZERO,
        }
    }

    /// All addresses that were ever in use; empty if calls are not counted per address. Calls are counted per address
    /// if there are several addresses, or if a look-up may find more.
    pub fn counted_addresses(&self) -> &[Address] {
        if self.counts_by_address() { &self.known } else { &[] }
    }

    /// Whether calls are counted per address.
    #[inline]
    pub fn counts_by_address(&self) -> bool {
        self.known.len() > 1 || self.resolver.is_some()
    }

    /// Whether several addresses are in use.
    #[inline]
    pub fn has_several_addresses(&self) -> bool {
        self.in_use.len() > 1
    }

    /// Whether there is an address that this shard has not connected to yet. If so, a call gets a new connection even
    /// if another connection is idle.
    pub fn has_unvisited_address(&self) -> bool {
        self.unvisited > 0
    }

    /// Chooses the address of the next connection, and returns its index.
    pub fn next_address(&mut self, session: Option<SessionId>) -> u16 {
        let count = self.in_use.len().max(1);
        let turn = match session {
            Some(session) => session.0 as usize + self.moved,
            None => self.next,
        };
        if session.is_none() {
            self.next = (self.next + 1) % count;
            self.unvisited = self.unvisited.saturating_sub(1);
        }
        self.in_use.get(turn % count).copied().unwrap_or(0)
    }

    /// Counts a failed connection attempt. Requests a look-up of the name, unless one was requested less than
    /// [`LOOK_UP_INTERVAL`] ago.
    pub fn attempt_failed(&mut self, session: Option<SessionId>, now: Nanos) {
        self.moved += usize::from(session.is_some());
        if let Some(resolver) = &self.resolver
            && now >= self.ask_at
        {
            self.ask_at = now + LOOK_UP_INTERVAL;
            // An error means that a look-up is already requested, or that the resolver's thread has ended.
            let _ = resolver.ask.try_send(());
        }
    }

    /// Applies the addresses of the latest look-up. Returns the addresses that were never in use before, in the order
    /// of their indices.
    pub fn refresh(&mut self) -> Vec<Address> {
        let Some(resolver) = &self.resolver else { return Vec::new() };
        let answers = resolver.latest.count.load(Ordering::Acquire);
        if answers == self.answers {
            return Vec::new();
        }
        self.answers = answers;
        let found = lock(&resolver.latest.addresses).clone();
        self.replace(found)
    }

    fn replace(&mut self, found: Vec<SocketAddr>) -> Vec<Address> {
        let before = self.known.len();
        let mut in_use = Vec::new();
        for address in found.into_iter().map(Address::from) {
            let number = self.known.iter().position(|known| *known == address).unwrap_or(self.known.len());
            if number == self.known.len() {
                if number == MAX_ADDRESSES {
                    continue;
                }
                self.known.push(address);
            }
            in_use.push(number as u16);
        }
        if !in_use.is_empty() {
            self.in_use = in_use;
            self.next %= self.in_use.len();
            self.unvisited = self.in_use.len();
        }
        self.known.get(before..).unwrap_or_default().to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses<const N: usize>(ports: [u16; N]) -> Vec<SocketAddr> {
        ports.map(|port| SocketAddr::from(([127, 0, 0, 1], port))).to_vec()
    }

    fn turns<const N: usize>(ports: [u16; N], first_index: usize) -> AddressRotation {
        let known: Vec<Address> = addresses(ports).into_iter().map(Address::from).collect();
        AddressRotation::new(&known, first_index, None)
    }

    #[test]
    fn connections_go_to_each_address_in_turn_and_sessions_to_their_own() {
        let mut turns = turns([1, 2, 3], 4);
        assert_eq!([(); 4].map(|()| turns.next_address(None)), [1, 2, 0, 1]);
        assert_eq!([0, 1, 5, 5].map(|session| turns.next_address(Some(SessionId(session)))), [0, 1, 2, 2]);
        turns.attempt_failed(Some(SessionId(5)), Nanos::ZERO);
        assert_eq!(turns.next_address(Some(SessionId(5))), 0, "after a failure, the session moves to the next address");
        assert_eq!(turns.next_address(None), 2);
    }

    #[test]
    fn addresses_keep_their_numbers_when_a_name_moves() {
        let mut turns = turns([1, 2], 0);
        assert_eq!(turns.replace(addresses([2, 3])), [Address::from(addresses([3])[0])]);
        assert_eq!([(); 3].map(|()| turns.next_address(None)), [1, 2, 1]);
        assert_eq!(turns.replace(addresses([1])), []);
        assert_eq!([(); 2].map(|()| turns.next_address(None)), [0, 0]);
        turns.replace(Vec::new());
        assert_eq!(turns.next_address(None), 0, "a name without addresses changes nothing");
        let many = (1000..2000).map(|port| SocketAddr::from(([127, 0, 0, 1], port))).collect();
        turns.replace(many);
        assert_eq!(turns.known.len(), MAX_ADDRESSES);
    }

    #[test]
    fn a_name_is_looked_up_again_by_another_thread_after_a_failed_attempt() {
        let [first, second] = addresses([1, 2])[..] else { panic!("two addresses") };
        let look_up = NameLookup(Arc::new(move |in_use: &[SocketAddr]| {
            assert_eq!(in_use, [first]);
            vec![second]
        }));
        let destination = Destination::new(first.into(), Vec::new(), Some(look_up));
        let resolver = Resolver::start(&destination, &destination.addresses(), None);
        let mut turns = AddressRotation::new(&destination.addresses(), 0, resolver);
        assert_eq!(turns.refresh(), [], "no attempt has failed");
        turns.attempt_failed(None, Nanos::ZERO);
        let mut new = turns.refresh();
        while new.is_empty() {
            thread::yield_now();
            new = turns.refresh();
        }
        assert_eq!((new, turns.next_address(None)), (vec![Address::from(second)], 1));
    }
}
