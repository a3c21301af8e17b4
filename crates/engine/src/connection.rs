//! The connections of one shard: slots that are used again, and which of them can take a call.

mod of_sessions;

use crate::Redirect;
use crate::deadlines::Armed;
use crate::expected::Digest;
use crate::io::Token;
use brimful_core::{CallSpec, Moment, Nanos, SessionId};
use brimful_http::Protocol;
use of_sessions::{ByNumber, OfSession};
use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasherDefault;

/// Where a connection is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Not established yet.
    Connecting,
    /// Established, with its TLS handshake under way.
    Securing,
    /// Established; with calls under way, or idle.
    Open,
    /// Waiting for the server to close.
    Closing,
}

/// A call on its way, with what the observer remembers of it.
#[derive(Debug)]
pub struct Call<P> {
    pub spec: CallSpec,
    pub due: Nanos,
    pub observed: P,
    /// Identifies the call among its connection's; see [`Connection::awaits`].
    pub stamp: u32,
    /// The connection ends with it.
    pub last: bool,
    /// When its request was handed over, if it was.
    pub sent_at: Moment,
    /// Bytes of its request, once it was handed over.
    pub length: usize,
    /// It asks for a head alone, known once it was handed over.
    pub is_head: bool,
    /// When the first byte of the response was read.
    pub first_byte_at: Moment,
    /// Bytes of the response read.
    pub received: u64,
    /// Of its content, where one is expected.
    pub digest: Option<Box<Digest>>,
    /// Where its answer leads, in a run that follows redirects.
    pub redirect: Option<Box<Redirect>>,
    /// What became of it before it was sent again.
    pub earlier: Earlier,
}

/// What became of a call before this try to send it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Earlier {
    /// Earlier tries.
    pub tries: u8,
    /// It was moved from a connection that had no stream for it.
    pub moved: bool,
    /// It wants a new connection.
    pub wants_fresh: bool,
    /// Bytes of the request that earlier tries sent.
    pub bytes_sent: u64,
}

impl<P> Call<P> {
    /// A call that nothing has been done about.
    #[inline]
    pub fn new(spec: CallSpec, due: Nanos, stamp: u32, observed: P) -> Call<P> {
        Call {
            spec,
            due,
            observed,
            stamp,
            last: false,
            sent_at: Moment::NONE,
            length: 0,
            is_head: false,
            first_byte_at: Moment::NONE,
            received: 0,
            digest: None,
            redirect: None,
            earlier: Earlier::default(),
        }
    }
}

/// One connection.
#[derive(Debug)]
pub struct Connection<P> {
    pub phase: Phase,
    /// Whose it is; nobody else's calls are given to it.
    pub session: Option<SessionId>,
    /// Deadlines of an attempt, or of waiting for the server to close, that bear another stamp are void.
    pub stamp: u32,
    /// Calls begun on it.
    pub begun: u64,
    /// Whole responses received on it.
    pub responses: u32,
    /// Calls under way on it, the oldest first: responses come in the order of the requests. With HTTP/2, those that wait for a
    /// stream.
    pub calls: VecDeque<Call<P>>,
    /// What it speaks; with HTTP/2, the calls under way are kept with their streams.
    pub protocol: Protocol<Call<P>>,
    /// With HTTP/2: when something last came on it.
    pub heard_at: Nanos,
    /// It bears no further call.
    pub spent: bool,
    /// It was opened before the run, for no call.
    pub warm: bool,
    /// When its attempt began, and from which source address.
    pub attempted_at: Nanos,
    pub source: usize,
    /// Number of the server's address that it goes to.
    pub address: u16,
    /// Attempts made so far.
    pub tries: usize,
    /// Where it is listed as able to take a call.
    listed: Option<(List, u32)>,
}

/// The connections that can take a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum List {
    /// Open and without a call.
    Idle,
    /// With calls, and room for more.
    Roomy,
}

impl<P> Connection<P> {
    /// A connection without calls.
    pub fn new(phase: Phase, depth: usize, session: Option<SessionId>) -> Connection<P> {
        Connection {
            phase,
            session,
            stamp: 0,
            begun: 0,
            responses: 0,
            // Thousands of sessions think, each with a connection that bears nothing.
            calls: if session.is_some() { VecDeque::new() } else { VecDeque::with_capacity(depth.min(64)) },
            protocol: Protocol::new(false),
            heard_at: Nanos::ZERO,
            spent: false,
            warm: false,
            attempted_at: Nanos::ZERO,
            source: 0,
            address: 0,
            tries: 1,
            listed: None,
        }
    }

    /// The same, to speak HTTP/2 or not.
    pub fn speaking(self, http2: bool) -> Connection<P> {
        if http2 { Connection { protocol: Protocol::new(true), ..self } } else { self }
    }

    /// How many calls are under way on it.
    pub fn under_way(&self) -> usize {
        self.calls.len() + self.protocol.http2().map_or(0, |http2| http2.streams())
    }

    /// Whether a call on it found it open: it has answered before, or was opened for no call.
    pub fn is_reused(&self) -> bool {
        self.warm || self.responses > 0
    }

    /// Whether it has seen its last call begin.
    fn has_begun_its_last(&self, lifetime: u64) -> bool {
        self.spent || self.begun >= lifetime || self.protocol.http2().is_some_and(|http2| http2.is_spent())
    }

    /// Whether the call that this deadline was set for is under way.
    #[inline]
    pub fn bears(&self, armed: Armed) -> bool {
        if armed.stream == 0 {
            return self.awaits(armed.stamp);
        }
        match self.protocol.http2() {
            Some(http2) => http2.get(armed.stream).is_some_and(|call| call.stamp == armed.stamp),
            None => self.awaits(armed.stamp),
        }
    }

    /// Whether a call that bears this stamp is in the queue. Stamps grow along the queue, and may wrap.
    #[inline]
    pub fn awaits(&self, stamp: u32) -> bool {
        match (self.calls.front(), self.calls.back()) {
            (Some(first), Some(last)) => stamp.wrapping_sub(first.stamp) <= last.stamp.wrapping_sub(first.stamp),
            _ => false,
        }
    }
}

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
    /// Those of no session, by [`List`]; the one that was listed last is on top.
    lists: [Vec<u32>; 2],
    /// Counts the calls for which one of them was taken in turn.
    turn: usize,
    of_sessions: HashMap<SessionId, OfSession, BuildHasherDefault<ByNumber>>,
    /// A session that has this connection and no other, and that may send calls one behind another: the calls of a
    /// burst are asked for in a row.
    latest: Option<(SessionId, u32)>,
    /// Empty queues with room, of sessions whose connections bear nothing: no burst takes memory anew.
    spare: Vec<VecDeque<Call<P>>>,
    /// HTTP/2: how many streams the server allowed when it last said so.
    streams_allowed: Option<u32>,
    /// Most calls under way on one connection.
    depth: usize,
    /// Most calls in a connection's life.
    lifetime: u64,
    open: u64,
    /// Most connections and attempts there were at once.
    pub max_open: u64,
    /// Of those open before the latest look at what has happened, how many turned out to have no socket.
    without_socket: u64,
    /// Turns since it was known of all attempts that they have one.
    turns_unknown: u32,
    /// Number of stamps used so far; it wraps around at 2³².
    pub stamps: u32,
}

impl<P> Connections<P> {
    /// None yet. Each may bear `depth` calls at once and `lifetime` in all.
    pub fn new(depth: usize, lifetime: u64) -> Connections<P> {
        Connections {
            slots: Vec::new(),
            free: Vec::new(),
            lists: [Vec::new(), Vec::new()],
            turn: 0,
            of_sessions: HashMap::default(),
            latest: None,
            spare: Vec::new(),
            streams_allowed: None,
            depth,
            lifetime,
            open: 0,
            max_open: 0,
            without_socket: 0,
            turns_unknown: 0,
            stamps: 0,
        }
    }

    /// A stamp that no other use of a connection bears.
    pub fn fresh_stamp(&mut self) -> u32 {
        self.stamps = self.stamps.wrapping_add(1);
        self.stamps
    }

    /// Takes in a new connection, with the calls it bears, and returns its token.
    pub fn insert(&mut self, mut connection: Connection<P>) -> Token {
        if let (Some(allowed), Some(http2)) = (self.streams_allowed, connection.protocol.http2_mut()) {
            http2.expect_streams(allowed);
        }
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { generation: 0, connection: None });
            self.slots.len() as u32 - 1
        });
        if let Some(session) = connection.session {
            self.latest = None;
            self.of_sessions.entry(session).or_default().slots.push(slot);
        }
        self.slots[slot as usize].connection = Some(connection);
        self.open += 1;
        self.list(slot);
        self.token(slot)
    }

    /// HTTP/2: notes how many streams the server allows, if it has said so on the connection in this slot.
    pub fn note_streams_allowed(&mut self, slot: u32) {
        let http2 = self.get(slot).and_then(|connection| connection.protocol.http2());
        self.streams_allowed = http2.and_then(|http2| http2.max_streams()).or(self.streams_allowed);
    }

    /// Connections and attempts.
    pub fn open(&self) -> u64 {
        self.open
    }

    /// An attempt, which is about to be removed, has failed for want of something on this host.
    pub fn had_no_socket(&mut self) {
        self.without_socket += 1;
    }

    /// `open` connections were there before what had happened to them was heard. Whether it is `known` of all attempts that they
    /// have a socket may not be so for a while, but not for long.
    pub fn count_open(&mut self, open: u64, known: bool) {
        /// Turns within which the kernel has got through what a turn can ask of it.
        const LONG: u32 = 64;
        let open = open.saturating_sub(std::mem::take(&mut self.without_socket));
        self.turns_unknown = if known { 0 } else { self.turns_unknown + 1 };
        if known || self.turns_unknown.is_multiple_of(LONG) {
            self.max_open = self.max_open.max(open);
        }
    }

    /// The token of the connection in a slot.
    pub fn token(&self, slot: u32) -> Token {
        Token { slot, generation: self.slots[slot as usize].generation }
    }

    /// The connection a token names, if it is still there.
    pub fn find(&mut self, token: Token) -> Option<&mut Connection<P>> {
        let slot = self.slots.get_mut(token.slot as usize)?;
        slot.connection.as_mut().filter(|_| slot.generation == token.generation)
    }

    pub fn get(&self, slot: u32) -> Option<&Connection<P>> {
        self.slots.get(slot as usize)?.connection.as_ref()
    }

    pub fn get_mut(&mut self, slot: u32) -> Option<&mut Connection<P>> {
        self.slots.get_mut(slot as usize)?.connection.as_mut()
    }

    /// A connection that can take a call of no session: an idle one, the latest first, as its caches are the warmest and the
    /// others can time out in peace; else one with room behind other calls. Whoever gives it the call then calls
    /// [`Connections::list`].
    pub fn available(&self) -> Option<u32> {
        self.lists.iter().find_map(|list| list.last()).copied()
    }

    /// The same, each in its turn: where connections go to several addresses, calls are to be spread over them.
    pub fn available_in_turn(&mut self) -> Option<u32> {
        self.turn = self.turn.wrapping_add(1);
        let list = self.lists.iter().find(|list| !list.is_empty())?;
        list.get(self.turn % list.len()).copied()
    }

    /// Whether a further call would not need a new connection. Sessions have theirs, and which of them calls is not known.
    pub fn have_room(&self) -> bool {
        !self.of_sessions.is_empty() || self.available().is_some()
    }

    /// Where a connection belongs that can take a call.
    fn room(&self, connection: &Connection<P>) -> Option<List> {
        let calls = connection.under_way();
        // Until the server has said how many streams it allows, calls wait on the connection for it to say so.
        let streams = connection.protocol.http2().and_then(|http2| http2.expected_streams());
        let depth = streams.map_or(self.depth, |streams| self.depth.min(streams as usize));
        match connection.phase {
            Phase::Closing => None,
            _ if calls >= depth || connection.has_begun_its_last(self.lifetime) => None,
            Phase::Open if calls == 0 => Some(List::Idle),
            _ => Some(List::Roomy),
        }
    }

    /// Whether the connection in this slot has borne its last call.
    pub fn is_over(&self, slot: u32) -> bool {
        self.get(slot)
            .is_some_and(|connection| connection.under_way() == 0 && connection.has_begun_its_last(self.lifetime))
    }

    /// Notes anew whether the connection can take a call, after its calls or its phase have changed.
    #[inline]
    pub fn list(&mut self, slot: u32) {
        if self.get(slot).is_some_and(|connection| connection.session.is_none()) {
            self.list_of_no_session(slot);
        }
    }

    fn list_of_no_session(&mut self, slot: u32) {
        let Some(connection) = self.get(slot) else { return };
        let list = self.room(connection);
        if connection.listed.map(|(list, _)| list) == list {
            return;
        }
        self.unlist(slot);
        let Some(list) = list else { return };
        let at = self.lists[list as usize].len() as u32;
        self.lists[list as usize].push(slot);
        if let Some(connection) = self.get_mut(slot) {
            connection.listed = Some((list, at));
        }
    }

    fn unlist(&mut self, slot: u32) {
        let Some((list, at)) = self.get_mut(slot).and_then(|connection| connection.listed.take()) else { return };
        self.lists[list as usize].swap_remove(at as usize);
        if let Some(&moved) = self.lists[list as usize].get(at as usize)
            && let Some(other) = self.get_mut(moved)
        {
            other.listed = Some((list, at));
        }
    }

    /// Removes a connection; the caller closes its socket.
    pub fn remove(&mut self, slot: u32) -> Option<Connection<P>> {
        self.unlist(slot);
        let entry = self.slots.get_mut(slot as usize)?;
        let connection = entry.connection.take()?;
        entry.generation = entry.generation.wrapping_add(1);
        self.free.push(slot);
        self.open -= 1;
        if let Some(session) = connection.session
            && let Some(of_session) = self.of_sessions.get_mut(&session)
        {
            self.latest = None;
            of_session.slots.retain(|other| *other != slot);
            // How many there were is kept until the session ends.
            if of_session.slots.is_empty() && of_session.established == 0 {
                self.of_sessions.remove(&session);
            }
        }
        Some(connection)
    }

    /// Every slot that holds a connection.
    pub fn slots(&self) -> Vec<u32> {
        (0..self.slots.len() as u32).filter(|slot| self.slots[*slot as usize].connection.is_some()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brimful_core::ClassId;

    fn call(stamp: u32) -> Call<()> {
        Call::new(CallSpec::of_class(ClassId(0)), Nanos::ZERO, stamp, ())
    }

    fn insert(connections: &mut Connections<()>, phase: Phase, calls: u32) -> u32 {
        insert_for(None, connections, phase, calls)
    }

    fn insert_for(session: Option<SessionId>, connections: &mut Connections<()>, phase: Phase, calls: u32) -> u32 {
        let mut connection = Connection::new(phase, 1, session);
        connection.calls.extend((0..calls).map(call));
        connection.begun = u64::from(calls);
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
        assert_eq!(connections.open, 1);
    }

    #[test]
    fn an_idle_connection_that_is_removed_can_take_no_call() {
        let mut connections = Connections::new(1, u64::MAX);
        let slots: Vec<u32> = (0..3).map(|_| insert(&mut connections, Phase::Open, 0)).collect();
        connections.remove(slots[0]);
        connections.remove(slots[2]);
        assert_eq!(connections.available(), Some(slots[1]));
        connections.remove(slots[1]);
        assert_eq!(connections.available(), None);
    }

    #[test]
    fn idle_connections_come_before_those_with_room_and_full_or_spent_ones_never() {
        let mut connections = Connections::new(3, 5);
        let roomy = insert(&mut connections, Phase::Connecting, 2);
        let idle = insert(&mut connections, Phase::Open, 0);
        insert(&mut connections, Phase::Open, 3);
        insert(&mut connections, Phase::Closing, 0);
        let spent = insert(&mut connections, Phase::Open, 1);
        connections.get_mut(spent).unwrap().begun = 5;
        connections.list(spent);
        assert_eq!(connections.available(), Some(idle));
        connections.get_mut(idle).unwrap().phase = Phase::Closing;
        connections.list(idle);
        assert_eq!(connections.available(), Some(roomy));
        connections.get_mut(roomy).unwrap().calls.push_back(call(2));
        connections.list(roomy);
        assert_eq!(connections.available(), None);
        connections.get_mut(roomy).unwrap().calls.pop_front();
        connections.list(roomy);
        assert_eq!(connections.available(), Some(roomy));
    }

    #[test]
    fn a_sessions_connections_are_its_own() {
        let mut connections = Connections::new(2, u64::MAX);
        let [one, other] = [1, 2].map(SessionId);
        let roomy = insert_for(Some(one), &mut connections, Phase::Open, 1);
        let idle = insert_for(Some(one), &mut connections, Phase::Open, 0);
        insert_for(Some(one), &mut connections, Phase::Closing, 0);
        assert_eq!((connections.available(), connections.available_to(other)), (None, None));
        assert_eq!(connections.available_to(one), Some(roomy), "what is sent behind another leaves with it");
        connections.remove(roomy);
        assert_eq!(connections.available_to(one), Some(idle));
        let anybodys = insert(&mut connections, Phase::Open, 0);
        assert_eq!((connections.available(), connections.available_to(one)), (Some(anybodys), Some(idle)));
        connections.slots().into_iter().for_each(|slot| drop(connections.remove(slot)));
        assert!(connections.of_sessions.is_empty() && connections.available().is_none());
    }

    #[test]
    fn no_second_call_goes_where_the_server_closes_after_the_first() {
        let mut connections = Connections::new(4, u64::MAX);
        let session = SessionId(3);
        let roomy = insert_for(Some(session), &mut connections, Phase::Open, 1);
        for (keep_alive, expected) in [(true, Some(roomy)), (false, None), (true, Some(roomy))] {
            connections.note_keep_alive(session, keep_alive);
            assert_eq!(connections.available_to(session), expected, "{keep_alive}");
        }
        connections.note_keep_alive(session, false);
        let idle = insert_for(Some(session), &mut connections, Phase::Open, 0);
        assert_eq!(connections.available_to(session), Some(idle));
    }

    #[test]
    fn what_was_established_for_a_session_is_known_until_it_ends() {
        let mut connections = Connections::new(1, u64::MAX);
        let session = SessionId(7);
        for _ in 0..3 {
            let slot = insert_for(Some(session), &mut connections, Phase::Connecting, 1);
            connections.established(slot);
            connections.remove(slot);
        }
        let never = insert_for(Some(session), &mut connections, Phase::Connecting, 1);
        let anybodys = insert(&mut connections, Phase::Open, 0);
        connections.established(anybodys);
        assert_eq!(connections.end_session(session), 3);
        assert_eq!(connections.of_session(session), [never], "it is still to be closed");
        connections.remove(never);
        assert_eq!((connections.end_session(session), connections.of_sessions.len()), (0, 0));
    }

    #[test]
    fn an_attempt_without_a_socket_was_never_open() {
        let mut connections = Connections::new(1, u64::MAX);
        let slots: Vec<u32> = (0..5).map(|_| insert(&mut connections, Phase::Connecting, 1)).collect();
        let before = connections.open();
        for slot in &slots[..3] {
            connections.had_no_socket();
            connections.remove(*slot);
        }
        connections.count_open(before, true);
        assert_eq!((connections.max_open, connections.open()), (2, 2));
        connections.count_open(1, true);
        (0..63).for_each(|_| connections.count_open(3, false));
        assert_eq!(connections.max_open, 2, "some may turn out to have no socket");
        connections.count_open(3, false);
        assert_eq!(connections.max_open, 3, "that would be known by now");
    }

    #[test]
    fn a_connection_knows_the_stamps_of_its_calls_when_they_wrap() {
        let mut connection: Connection<()> = Connection::new(Phase::Open, 4, None);
        assert!(!connection.awaits(7));
        connection.calls.extend([u32::MAX - 1, u32::MAX, 0, 1].map(call));
        assert!([u32::MAX - 1, u32::MAX, 0, 1].into_iter().all(|stamp| connection.awaits(stamp)));
        assert!(!connection.awaits(2) && !connection.awaits(u32::MAX - 2));
    }
}
