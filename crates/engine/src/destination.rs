//! The addresses of a server, and which of them the next connection goes to.
//!
//! A name may have several addresses. New connections go to them in turn, and those of one session to the same one. Each
//! shard opens one to every address before it uses one again, so that a low rate is spread as well as a high one. When
//! an attempt fails, the name is looked up again, by a thread of its own and once a second at most, so that no shard
//! waits for a resolver. An address that the name no longer has gets no new connections. An address keeps its number.

use crate::{Address, Cidr};
use brimful_core::{Nanos, SessionId};
use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Shortest time from one look-up to the next.
const LOOK_UP_EVERY: Nanos = Nanos::from_secs(1);
/// Most addresses that a run tells apart. Further ones are not used.
const MAX_ADDRESSES: usize = 256;

/// Where a run's connections go.
#[derive(Clone, Debug)]
pub struct Destination {
    first: Address,
    further: Vec<Address>,
    look_up: Option<NameLookup>,
    /// How far the turns of this process's first shard are ahead of those of the first shard of all.
    first_turn: usize,
}

/// Given the addresses in use, returns those to use from then on, or none where they stay as they are.
type LookUpFn = dyn Fn(&[SocketAddr]) -> Vec<SocketAddr> + Send + Sync;

/// Looks the server's name up again.
#[derive(Clone)]
pub struct NameLookup(pub Arc<LookUpFn>);

impl Destination {
    /// A server with further addresses, whose name can be looked up again.
    pub fn new(first: Address, further: Vec<Address>, look_up: Option<NameLookup>) -> Destination {
        Destination { first, further, look_up, first_turn: 0 }
    }

    /// The same with the first shard's first connection to this address, counted around.
    #[must_use]
    pub fn with_first_turn(self, first_turn: usize) -> Destination {
        Destination { first_turn, ..self }
    }

    pub(crate) fn first_turn(&self) -> usize {
        self.first_turn
    }

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

/// The thread that looks the server's name up, as the shards know it. It ends when the last of them is gone.
#[derive(Clone, Debug)]
pub(crate) struct Resolver {
    ask: SyncSender<()>,
    found: Arc<Found>,
}

/// The latest answer.
#[derive(Debug, Default)]
struct Found {
    /// Number of the answer; 0 before the first.
    answers: AtomicU64,
    addresses: Mutex<Vec<SocketAddr>>,
}

impl Resolver {
    /// Starts the thread; `None` where nothing can be looked up. Connections come from `source`, if it is given, and only
    /// addresses of its family are used.
    pub fn start(destination: &Destination, in_use: &[Address], source: Option<Cidr>) -> Option<Resolver> {
        let look_up = destination.look_up.clone()?;
        let in_use: Vec<SocketAddr> = in_use.iter().filter_map(Address::tcp).collect();
        let (ask, asked) = sync_channel(1);
        let found = Arc::new(Found::default());
        let publish = Arc::clone(&found);
        let body = move || look_up_when_asked(&asked, &look_up, in_use, source, &publish);
        // Without a thread the addresses stay as they are.
        thread::Builder::new().name("resolver".to_owned()).spawn(body).ok()?;
        Some(Resolver { ask, found })
    }
}

fn look_up_when_asked(
    asked: &Receiver<()>,
    look_up: &NameLookup,
    mut in_use: Vec<SocketAddr>,
    source: Option<Cidr>,
    found: &Found,
) {
    while asked.recv().is_ok() {
        let mut addresses = (look_up.0)(&in_use);
        addresses.retain(|address| source.is_none_or(|source| source.is_of_family(address)));
        if !addresses.is_empty() && addresses != in_use {
            in_use.clone_from(&addresses);
            *found.addresses.lock().unwrap_or_else(PoisonError::into_inner) = addresses;
            found.answers.fetch_add(1, Ordering::Release);
        }
        thread::sleep(Duration::from(LOOK_UP_EVERY));
    }
}

/// The addresses of one shard's connections.
#[derive(Debug)]
pub(crate) struct AddressTurns {
    /// Every address that was ever in use, by number.
    known: Vec<Address>,
    /// Numbers of those in use.
    in_use: Vec<u16>,
    next: usize,
    /// How many of those in use this shard has not connected to yet.
    unvisited: usize,
    /// Failed attempts of sessions, each of which moves all sessions on to their next address.
    moved: usize,
    resolver: Option<Resolver>,
    /// How many of the resolver's answers were heard, and when it may be asked again.
    answers: u64,
    ask_at: Nanos,
}

impl AddressTurns {
    /// Turns among `addresses`, at least one, that begin at the one of this number, counted around.
    pub fn new(addresses: &[Address], first_turn: usize, resolver: Option<Resolver>) -> AddressTurns {
        AddressTurns {
            known: addresses.to_vec(),
            in_use: (0..addresses.len() as u16).collect(),
            next: first_turn % addresses.len().max(1),
            unvisited: addresses.len(),
            moved: 0,
            resolver,
            answers: 0,
            ask_at: Nanos::ZERO,
        }
    }

    /// Every address so far, if calls are counted by address: where there are several, or may be.
    pub fn counted(&self) -> &[Address] {
        if self.are_counted() { &self.known } else { &[] }
    }

    #[inline]
    pub fn are_counted(&self) -> bool {
        self.known.len() > 1 || self.resolver.is_some()
    }

    /// Whether calls are to be spread over several addresses.
    #[inline]
    pub fn are_several(&self) -> bool {
        self.in_use.len() > 1
    }

    /// Whether a call is better off with a new connection than with an idle one: there is none yet to some address.
    pub fn are_unvisited(&self) -> bool {
        self.unvisited > 0
    }

    /// Number of the address of the next connection.
    pub fn take(&mut self, session: Option<SessionId>) -> u16 {
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

    /// An attempt failed: the name is looked up again, if that is not too soon.
    pub fn attempt_failed(&mut self, session: Option<SessionId>, now: Nanos) {
        self.moved += usize::from(session.is_some());
        if let Some(resolver) = &self.resolver
            && now >= self.ask_at
        {
            self.ask_at = now + LOOK_UP_EVERY;
            // It was asked already, or is no more.
            let _ = resolver.ask.try_send(());
        }
    }

    /// Uses the addresses of the latest look-up. Returns those that are new, which have the numbers after all others.
    pub fn refresh(&mut self) -> Vec<Address> {
        let Some(resolver) = &self.resolver else { return Vec::new() };
        let answers = resolver.found.answers.load(Ordering::Acquire);
        if answers == self.answers {
            return Vec::new();
        }
        self.answers = answers;
        let found = resolver.found.addresses.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.use_from_now_on(found)
    }

    fn use_from_now_on(&mut self, found: Vec<SocketAddr>) -> Vec<Address> {
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

    fn turns<const N: usize>(ports: [u16; N], first_turn: usize) -> AddressTurns {
        let known: Vec<Address> = addresses(ports).into_iter().map(Address::from).collect();
        AddressTurns::new(&known, first_turn, None)
    }

    #[test]
    fn connections_go_to_each_address_in_turn_and_sessions_to_their_own() {
        let mut turns = turns([1, 2, 3], 4);
        assert_eq!([(); 4].map(|()| turns.take(None)), [1, 2, 0, 1]);
        assert_eq!([0, 1, 5, 5].map(|session| turns.take(Some(SessionId(session)))), [0, 1, 2, 2]);
        turns.attempt_failed(Some(SessionId(5)), Nanos::ZERO);
        assert_eq!(turns.take(Some(SessionId(5))), 0, "as browsers try the next address");
        assert_eq!(turns.take(None), 2);
    }

    #[test]
    fn addresses_keep_their_numbers_when_a_name_moves() {
        let mut turns = turns([1, 2], 0);
        assert_eq!(turns.use_from_now_on(addresses([2, 3])), [Address::from(addresses([3])[0])]);
        assert_eq!([(); 3].map(|()| turns.take(None)), [1, 2, 1]);
        assert_eq!(turns.use_from_now_on(addresses([1])), []);
        assert_eq!([(); 2].map(|()| turns.take(None)), [0, 0]);
        turns.use_from_now_on(Vec::new());
        assert_eq!(turns.take(None), 0, "a name without addresses changes nothing");
        let many = (1000..2000).map(|port| SocketAddr::from(([127, 0, 0, 1], port))).collect();
        turns.use_from_now_on(many);
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
        let mut turns = AddressTurns::new(&destination.addresses(), 0, resolver);
        assert_eq!(turns.refresh(), [], "nothing has failed");
        turns.attempt_failed(None, Nanos::ZERO);
        let mut new = turns.refresh();
        while new.is_empty() {
            thread::yield_now();
            new = turns.refresh();
        }
        assert_eq!((new, turns.take(None)), (vec![Address::from(second)], 1));
    }
}
