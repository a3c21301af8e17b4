//! The connections of one shard: their slots, which are reused, and the list of connections that have room for a call.

mod sessions;

use crate::call::Call;
use crate::connection::{Availability, Connection, Phase};
use crate::io::Token;
use brimful_core::SessionId;
use sessions::SessionConnections;
use std::collections::VecDeque;

#[derive(Debug)]
struct Slot<P> {
    generation: u32,
    connection: Option<Connection<P>>,
}

/// All connections of a shard.
#[derive(Debug)]
pub struct Connections<P> {
    slots: Vec<Slot<P>>,
    free: Vec<u32>,
    /// Indices of the slots whose connections have room for a call and belong to no session. There is one list per
    /// [`Availability`], and each list ends with the connection added last.
    available: [Vec<u32>; 2],
    /// Number of times that [`Connections::available_in_turn`] was called. It determines the connection chosen next.
    turn: usize,
    sessions: SessionConnections<P>,
    limits: Limits,
    /// HTTP/2: the number of streams that the server allowed in its latest announcement.
    streams_allowed: Option<u32>,
    open: OpenCount,
    /// Number of stamps assigned so far; it wraps around at 2³². A stamp identifies a call or a connection attempt.
    stamps: u32,
}

/// Limits on the calls of each connection.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// Maximum number of calls under way on a connection at once.
    depth: usize,
    /// Maximum number of calls during a connection's life.
    lifetime: u64,
}

/// The number of open sockets, those of connection attempts included, and the highest number so far.
#[derive(Clone, Copy, Debug, Default)]
struct OpenCount {
    now: u64,
    /// Highest number of sockets that were open at once.
    max: u64,
    /// Number of connection attempts since the latest wait for events that failed because this host could not open a
    /// socket.
    without_socket: u64,
    /// Number of consecutive waits for events after which the kernel may not have begun all connection attempts.
    turns_unknown: u32,
}

impl OpenCount {
    /// Updates the maximum after a wait for events. `open` is the number of connections and attempts before these
    /// events were handled. `known` is false if the kernel may not have begun some of the attempts, which then have no
    /// sockets.
    fn update_max(&mut self, open: u64, known: bool) {
        /// After this many waits, the kernel has begun every attempt that was requested before them.
        const TURNS_UNTIL_KNOWN: u32 = 64;
        let open = open.saturating_sub(std::mem::take(&mut self.without_socket));
        self.turns_unknown = if known { 0 } else { self.turns_unknown + 1 };
        if known || self.turns_unknown.is_multiple_of(TURNS_UNTIL_KNOWN) {
            self.max = self.max.max(open);
        }
    }
}

impl Limits {
    /// Whether a connection is idle or shared; `None` if it has no room for another call.
    fn availability<P>(self, connection: &Connection<P>) -> Option<Availability> {
        let calls = connection.calls_in_flight();
        // Before the server has announced its limit on streams, up to `self.depth` calls may wait on the connection.
        let streams = connection.protocol.http2().and_then(|http2| http2.assumed_max_streams());
        let depth = streams.map_or(self.depth, |streams| self.depth.min(streams as usize));
        match connection.phase {
            Phase::Closing => None,
            _ if calls >= depth || connection.has_begun_last_call(self.lifetime) => None,
            Phase::Open if calls == 0 => Some(Availability::Idle),
            _ => Some(Availability::Shared),
        }
    }
}

impl<P> Connections<P> {
    /// Creates an empty collection. Each connection may carry `depth` calls at once and `lifetime` calls in total.
    pub fn new(depth: usize, lifetime: u64) -> Connections<P> {
        Connections {
            slots: Vec::new(),
            free: Vec::new(),
            available: [Vec::new(), Vec::new()],
            turn: 0,
            sessions: SessionConnections::default(),
            limits: Limits { depth, lifetime },
            streams_allowed: None,
            open: OpenCount::default(),
            stamps: 0,
        }
    }

    /// Returns a new stamp: a number that no other call or connection attempt has.
    #[inline]
    pub fn next_stamp(&mut self) -> u32 {
        self.stamps = self.stamps.wrapping_add(1);
        self.stamps
    }

    /// Sets the stamp that was used last. The next stamp is one higher.
    #[cfg(test)]
    pub fn set_last_stamp(&mut self, stamps: u32) {
        self.stamps = stamps;
    }

    /// Adds a connection with the calls in its queue, and returns its token.
    pub fn insert(&mut self, mut connection: Connection<P>) -> Token {
        if let (Some(allowed), Some(http2)) = (self.streams_allowed, connection.protocol.http2_mut()) {
            http2.assume_max_streams(allowed);
        }
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { generation: 0, connection: None });
            self.slots.len() as u32 - 1
        });
        if let Some(session) = connection.session {
            self.sessions.insert(session, slot);
        }
        self.slots[slot as usize].connection = Some(connection);
        self.open.now += 1;
        self.update_availability(slot);
        self.token(slot)
    }

    /// HTTP/2: records how many streams the server allows, if it has announced this on the connection in this slot.
    pub fn note_streams_allowed(&mut self, slot: u32) {
        let http2 = self.get(slot).and_then(|connection| connection.protocol.http2());
        self.streams_allowed = http2.and_then(|http2| http2.max_streams()).or(self.streams_allowed);
    }

    /// Number of open connections and of connection attempts.
    #[inline]
    pub fn open_count(&self) -> u64 {
        self.open.now
    }

    /// Highest number of sockets that were open at once, those of connection attempts included.
    pub fn max_open(&self) -> u64 {
        self.open.max
    }

    /// Counts a connection attempt that failed because this host could not open a socket. The caller removes the
    /// attempt directly after this.
    pub fn note_socket_shortage(&mut self) {
        self.open.without_socket += 1;
    }

    /// Updates the highest number of open sockets after a wait for events. `open` is the number of connections and
    /// attempts before these events were handled. `known` is false if the kernel may not have begun some of the
    /// attempts, which then have no sockets.
    pub fn update_max_open(&mut self, open: u64, known: bool) {
        self.open.update_max(open, known);
    }

    /// The token of the connection in the slot with this index.
    pub fn token(&self, slot: u32) -> Token {
        Token { slot, generation: self.slots[slot as usize].generation }
    }

    /// The connection with this token, if it still exists.
    pub fn find(&mut self, token: Token) -> Option<&mut Connection<P>> {
        let slot = self.slots.get_mut(token.slot as usize)?;
        slot.connection.as_mut().filter(|_| slot.generation == token.generation)
    }

    /// The connection in the slot with this index; `None` if the slot is free.
    pub fn get(&self, slot: u32) -> Option<&Connection<P>> {
        self.slots.get(slot as usize)?.connection.as_ref()
    }

    /// The connection in the slot with this index, for modification; `None` if the slot is free.
    pub fn get_mut(&mut self, slot: u32) -> Option<&mut Connection<P>> {
        self.slots.get_mut(slot as usize)?.connection.as_mut()
    }

    /// Returns the slot of a connection that has room for a call and belongs to no session. Prefers the idle connection
    /// that was used last: its state is most likely in the CPU's caches, and the server may close connections that are
    /// idle for longer. If no connection is idle, returns one that already carries calls. A caller that assigns the
    /// call to the connection must then call [`Connections::update_availability`].
    #[inline]
    pub fn available(&self) -> Option<u32> {
        self.available.iter().find_map(|list| list.last()).copied()
    }

    /// Like [`Connections::available`], but chooses the connections in turn, so that calls spread over the server's
    /// addresses.
    pub fn available_in_turn(&mut self) -> Option<u32> {
        self.turn = self.turn.wrapping_add(1);
        let list = self.available.iter().find(|list| !list.is_empty())?;
        list.get(self.turn % list.len()).copied()
    }

    /// Returns the slot of a connection with room for a call of this session. Prefers a connection that already carries
    /// calls of the session, so that its simultaneous requests are sent in one write.
    #[inline]
    pub fn available_for_session(&mut self, session: SessionId) -> Option<u32> {
        let Connections { slots, sessions, limits, .. } = self;
        let availability = |slot: u32| limits.availability(slots.get(slot as usize)?.connection.as_ref()?);
        sessions.available(session, availability)
    }

    /// Whether a connection may have room for another call. Always true while there are sessions: each has its own
    /// connections, and it is unknown which session sends the next call.
    pub fn may_have_room(&self) -> bool {
        !self.sessions.is_empty() || self.available().is_some()
    }

    /// Whether the last call of the connection in this slot has ended.
    pub fn is_finished(&self, slot: u32) -> bool {
        self.get(slot).is_some_and(|connection| {
            connection.calls_in_flight() == 0 && connection.has_begun_last_call(self.limits.lifetime)
        })
    }

    /// Updates the lists of available connections after the calls or the phase of this connection have changed.
    #[inline]
    pub fn update_availability(&mut self, slot: u32) {
        if self.get(slot).is_some_and(|connection| connection.session.is_none()) {
            self.update_lists(slot);
        }
    }

    fn update_lists(&mut self, slot: u32) {
        let Some(connection) = self.get(slot) else { return };
        let availability = self.limits.availability(connection);
        if connection.listed.map(|(listed, _)| listed) == availability {
            return;
        }
        self.unlist(slot);
        let Some(availability) = availability else { return };
        let list = &mut self.available[availability as usize];
        let index = list.len() as u32;
        list.push(slot);
        if let Some(connection) = self.get_mut(slot) {
            connection.listed = Some((availability, index));
        }
    }

    fn unlist(&mut self, slot: u32) {
        let listed = self.get_mut(slot).and_then(|connection| connection.listed.take());
        let Some((availability, index)) = listed else { return };
        let list = &mut self.available[availability as usize];
        list.swap_remove(index as usize);
        if let Some(&moved) = list.get(index as usize)
            && let Some(other) = self.get_mut(moved)
        {
            other.listed = Some((availability, index));
        }
    }

    /// Removes a connection; the caller closes its socket.
    pub fn remove(&mut self, slot: u32) -> Option<Connection<P>> {
        self.unlist(slot);
        let entry = self.slots.get_mut(slot as usize)?;
        let connection = entry.connection.take()?;
        entry.generation = entry.generation.wrapping_add(1);
        self.free.push(slot);
        self.open.now -= 1;
        if let Some(session) = connection.session {
            self.sessions.remove(session, slot);
        }
        Some(connection)
    }

    /// The indices of all slots with a connection.
    pub fn slots(&self) -> Vec<u32> {
        (0..self.slots.len() as u32).filter(|slot| self.slots[*slot as usize].connection.is_some()).collect()
    }

    /// The indices of the slots with a session's connections.
    pub fn slots_of_session(&self, session: SessionId) -> &[u32] {
        self.sessions.slots(session)
    }

    /// Records whether the server keeps this session's connections open after the first response.
    pub fn note_keep_alive(&mut self, session: SessionId, keep_alive: bool) {
        self.sessions.note_keep_alive(session, keep_alive);
    }

    /// Records that the connection in this slot is established.
    pub fn note_established(&mut self, slot: u32) {
        if let Some(session) = self.get(slot).and_then(|connection| connection.session) {
            self.sessions.note_established(session);
        }
    }

    /// Number of connections established for a session so far.
    pub fn established_for(&self, session: SessionId) -> u32 {
        self.sessions.established(session)
    }

    /// Ends a session; the caller must still close its connections. Returns the number of connections that were
    /// established for the session.
    pub fn end_session(&mut self, session: SessionId) -> u32 {
        self.sessions.end(session)
    }

    /// Makes the empty call queue of an idle connection of a session available to other connections. This saves memory,
    /// because thousands of sessions may be in long think times.
    pub fn release_queue(&mut self, slot: u32) {
        if let Some(connection) = self.slots.get_mut(slot as usize).and_then(|slot| slot.connection.as_mut()) {
            self.sessions.recycle_queue(std::mem::take(&mut connection.calls));
        }
    }

    /// Returns an empty call queue for a new connection of a session.
    pub fn session_queue(&mut self, capacity: usize) -> VecDeque<Call<P>> {
        self.sessions.take_queue(capacity)
    }

    /// The connection in a slot. A session's connection that has no call queue first gets a queue of this capacity.
    #[inline]
    pub fn get_with_queue(&mut self, slot: u32, capacity: usize) -> Option<&mut Connection<P>> {
        let connection = self.slots.get_mut(slot as usize)?.connection.as_mut()?;
        if connection.session.is_some() && connection.calls.capacity() == 0 {
            connection.calls = self.sessions.take_queue(capacity);
        }
        Some(connection)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brimful_core::{CallSpec, ClassId, Nanos};

    fn call(stamp: u32) -> Call<()> {
        Call::new(CallSpec::for_class(ClassId(0)), Nanos::ZERO, stamp, ())
    }

    fn insert(connections: &mut Connections<()>, phase: Phase, calls: u32) -> u32 {
        insert_for(None, connections, phase, calls)
    }

    fn insert_for(session: Option<SessionId>, connections: &mut Connections<()>, phase: Phase, calls: u32) -> u32 {
        let mut connection = Connection::new(phase, 1, session);
        connection.calls.extend((0..calls).map(call));
        connection.calls_begun = u64::from(calls);
        connections.insert(connection).slot
    }

    #[test]
    fn a_token_dies_with_its_connection() {
        let mut connections = Connections::new(1, u64::MAX);
        let slot = insert(&mut connections, Phase::Open, 1);
        let token = connections.token(slot);
        assert!(connections.find(token).is_some());
        connections.remove(slot);
        assert!(connections.find(token).is_none());
        assert_eq!(insert(&mut connections, Phase::Open, 1), slot, "the slot is used again");
        assert!(connections.find(token).is_none());
        assert_eq!(connections.open_count(), 1);
    }

    #[test]
    fn a_removed_connection_is_not_available() {
        let mut connections = Connections::new(1, u64::MAX);
        let slots: Vec<u32> = (0..3).map(|_| insert(&mut connections, Phase::Open, 0)).collect();
        connections.remove(slots[0]);
        connections.remove(slots[2]);
        assert_eq!(connections.available(), Some(slots[1]));
        connections.remove(slots[1]);
        assert_eq!(connections.available(), None);
    }

    #[test]
    fn idle_connections_come_before_shared_ones() {
        let mut connections = Connections::new(3, 5);
        let shared = insert(&mut connections, Phase::Connecting, 2);
        let idle = insert(&mut connections, Phase::Open, 0);
        insert(&mut connections, Phase::Open, 3);
        insert(&mut connections, Phase::Closing, 0);
        let spent = insert(&mut connections, Phase::Open, 1);
        connections.get_mut(spent).unwrap().calls_begun = 5;
        connections.update_availability(spent);
        assert_eq!(connections.available(), Some(idle));
        connections.get_mut(idle).unwrap().phase = Phase::Closing;
        connections.update_availability(idle);
        assert_eq!(connections.available(), Some(shared));
        connections.get_mut(shared).unwrap().calls.push_back(call(2));
        connections.update_availability(shared);
        assert_eq!(connections.available(), None);
        connections.get_mut(shared).unwrap().calls.pop_front();
        connections.update_availability(shared);
        assert_eq!(connections.available(), Some(shared));
    }

    #[test]
    fn a_sessions_connections_are_its_own() {
        let mut connections = Connections::new(2, u64::MAX);
        let [one, other] = [1, 2].map(SessionId);
        let shared = insert_for(Some(one), &mut connections, Phase::Open, 1);
        let idle = insert_for(Some(one), &mut connections, Phase::Open, 0);
        insert_for(Some(one), &mut connections, Phase::Closing, 0);
        assert_eq!((connections.available(), connections.available_for_session(other)), (None, None));
        assert_eq!(
            connections.available_for_session(one),
            Some(shared),
            "a burst prefers the connection that already carries calls"
        );
        connections.remove(shared);
        assert_eq!(connections.available_for_session(one), Some(idle));
        let of_no_session = insert(&mut connections, Phase::Open, 0);
        assert_eq!(
            (connections.available(), connections.available_for_session(one)),
            (Some(of_no_session), Some(idle))
        );
        connections.slots().into_iter().for_each(|slot| drop(connections.remove(slot)));
        assert!(connections.sessions.is_empty() && connections.available().is_none());
    }

    #[test]
    fn a_connection_that_the_server_closes_after_each_call_gets_no_second_one() {
        let mut connections = Connections::new(4, u64::MAX);
        let session = SessionId(3);
        let shared = insert_for(Some(session), &mut connections, Phase::Open, 1);
        for (keep_alive, expected) in [(true, Some(shared)), (false, None), (true, Some(shared))] {
            connections.note_keep_alive(session, keep_alive);
            assert_eq!(connections.available_for_session(session), expected, "{keep_alive}");
        }
        connections.note_keep_alive(session, false);
        let idle = insert_for(Some(session), &mut connections, Phase::Open, 0);
        assert_eq!(connections.available_for_session(session), Some(idle));
    }

    #[test]
    fn established_connections_are_counted_until_the_session_ends() {
        let mut connections = Connections::new(1, u64::MAX);
        let session = SessionId(7);
        for _ in 0..3 {
            let slot = insert_for(Some(session), &mut connections, Phase::Connecting, 1);
            connections.note_established(slot);
            connections.remove(slot);
        }
        let never = insert_for(Some(session), &mut connections, Phase::Connecting, 1);
        let of_no_session = insert(&mut connections, Phase::Open, 0);
        connections.note_established(of_no_session);
        assert_eq!(connections.end_session(session), 3);
        assert_eq!(connections.slots_of_session(session), [never], "the connection is still to be closed");
        connections.remove(never);
        assert_eq!((connections.end_session(session), connections.sessions.is_empty()), (0, true));
    }

    #[test]
    fn an_attempt_without_a_socket_was_never_open() {
        let mut connections = Connections::new(1, u64::MAX);
        let slots: Vec<u32> = (0..5).map(|_| insert(&mut connections, Phase::Connecting, 1)).collect();
        let before = connections.open_count();
        for slot in &slots[..3] {
            connections.note_socket_shortage();
            connections.remove(*slot);
        }
        connections.update_max_open(before, true);
        assert_eq!((connections.max_open(), connections.open_count()), (2, 2));
        connections.update_max_open(1, true);
        (0..63).for_each(|_| connections.update_max_open(3, false));
        assert_eq!(connections.max_open(), 2, "an attempt without a known result may still lack a socket");
        connections.update_max_open(3, false);
        assert_eq!(connections.max_open(), 3, "after 64 turns, every attempt has a socket");
    }
}
