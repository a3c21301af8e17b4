//! The connections of sessions, indexed by the session's number.

use crate::call::Call;
use crate::connection::Availability;
use brimful_core::SessionId;
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

/// Maximum number of empty call queues that are kept for reuse. Usually fewer bursts (calls of one session at a time)
/// end before the next burst needs a queue.
const MAX_SPARE_QUEUES: usize = 16;

/// The connections of all sessions.
#[derive(Debug)]
pub(super) struct SessionConnections<P> {
    by_session: HashMap<SessionId, OneSession, BuildHasherDefault<NumberHasher>>,
    /// The session of the latest call and the slot of its connection, if it has only one connection and may pipeline
    /// its calls. This saves a look-up for each further call of the session.
    latest: Option<(SessionId, u32)>,
    /// Empty call queues for reuse, so that a session need not allocate one.
    spare_queues: Vec<VecDeque<Call<P>>>,
}

/// The connections of a session that has not ended.
#[derive(Debug, Default)]
struct OneSession {
    /// Indices of the slots with the session's connections, usually only one.
    slots: Vec<u32>,
    /// Number of established connections, including those that were closed.
    established: u32,
    /// Whether the server closes each connection after one response. If so, no second call begins on a connection that
    /// has a call under way.
    closed_after_each: bool,
}

/// Hashes a session's number with one multiplication (Knuth, The Art of Computer Programming 3, §6.4), because each
/// call of a session needs a look-up. The load generator assigns the numbers, so an attacker cannot choose colliding
/// ones.
#[derive(Debug, Default)]
struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn write_u32(&mut self, number: u32) {
        let product = (self.0 ^ u64::from(number)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        // Mixes the high bits into the low bits. The low bits of the product depend only on the low bits of the
        // session's number. These may be equal for all sessions of a shard, because a shard has every n-th session.
        self.0 = product ^ product >> 32;
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u32(u32::from(*byte)));
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl<P> Default for SessionConnections<P> {
    fn default() -> SessionConnections<P> {
        SessionConnections { by_session: HashMap::default(), latest: None, spare_queues: Vec::new() }
    }
}

impl<P> SessionConnections<P> {
    /// Whether no connection belongs to a session, and every session that has had one has ended.
    pub fn is_empty(&self) -> bool {
        self.by_session.is_empty()
    }

    /// Adds a connection.
    pub fn insert(&mut self, session: SessionId, slot: u32) {
        self.latest = None;
        self.by_session.entry(session).or_default().slots.push(slot);
    }

    /// Removes a connection. The count of the session's established connections is kept until the session ends.
    pub fn remove(&mut self, session: SessionId, slot: u32) {
        let Some(one) = self.by_session.get_mut(&session) else { return };
        self.latest = None;
        one.slots.retain(|other| *other != slot);
        if one.slots.is_empty() && one.established == 0 {
            self.by_session.remove(&session);
        }
    }

    /// Returns the slot of a connection with room for a call of this session. Prefers a connection that already carries
    /// calls.
    #[inline]
    pub fn available(&mut self, session: SessionId, availability: impl Fn(u32) -> Option<Availability>) -> Option<u32> {
        match self.latest {
            Some((latest, slot)) if latest == session => availability(slot).map(|_| slot),
            _ => self.look_up_available(session, availability),
        }
    }

    fn look_up_available(
        &mut self,
        session: SessionId,
        availability: impl Fn(u32) -> Option<Availability>,
    ) -> Option<u32> {
        let one = self.by_session.get(&session)?;
        if let &[slot] = one.slots.as_slice()
            && !one.closed_after_each
        {
            self.latest = Some((session, slot));
            return availability(slot).map(|_| slot);
        }
        let is_usable = |found: &Availability| !one.closed_after_each || *found == Availability::Idle;
        let with_room = |slot: &u32| Some((availability(*slot).filter(is_usable)?, *slot));
        let candidates = one.slots.iter().filter_map(with_room);
        candidates.max_by_key(|(found, _)| *found as usize).map(|(_, slot)| slot)
    }

    /// The indices of the slots with a session's connections.
    pub fn slots(&self, session: SessionId) -> &[u32] {
        self.by_session.get(&session).map_or(&[], |one| one.slots.as_slice())
    }

    /// Records whether the server keeps this session's connections open after the first response.
    pub fn note_keep_alive(&mut self, session: SessionId, keep_alive: bool) {
        if let Some(one) = self.by_session.get_mut(&session) {
            self.latest = None;
            one.closed_after_each = !keep_alive;
        }
    }

    /// Counts an established connection of this session.
    pub fn note_established(&mut self, session: SessionId) {
        if let Some(one) = self.by_session.get_mut(&session) {
            one.established = one.established.saturating_add(1);
        }
    }

    /// Number of connections established for a session so far.
    pub fn established(&self, session: SessionId) -> u32 {
        self.by_session.get(&session).map_or(0, |one| one.established)
    }

    /// Ends a session, and returns the number of connections that were established for it.
    pub fn end(&mut self, session: SessionId) -> u32 {
        let Some(one) = self.by_session.get_mut(&session) else { return 0 };
        let established = std::mem::take(&mut one.established);
        if one.slots.is_empty() {
            self.by_session.remove(&session);
        }
        established
    }

    /// Keeps an empty call queue for reuse.
    pub fn recycle_queue(&mut self, queue: VecDeque<Call<P>>) {
        if self.spare_queues.len() < MAX_SPARE_QUEUES {
            self.spare_queues.push(queue);
        }
    }

    /// Returns an empty call queue of at least this capacity, from the kept queues if possible.
    pub fn take_queue(&mut self, capacity: usize) -> VecDeque<Call<P>> {
        let mut queue = self.spare_queues.pop().unwrap_or_default();
        queue.reserve_exact(capacity);
        queue
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expects that the hashes of multiples of `step` are spread about evenly over a hash table of 1,024 buckets. The
    /// session numbers of one shard are such multiples.
    #[test]
    fn every_nth_number_is_spread_over_the_buckets() {
        for step in [1u32, 2, 64, 1 << 10, 1 << 20, 3, 1000] {
            let hash = |number: u32| {
                let mut hasher = NumberHasher::default();
                hasher.write_u32(number.wrapping_mul(step));
                hasher.finish()
            };
            let mut buckets = vec![0; 1024];
            (0..1024).for_each(|number| buckets[(hash(number) % 1024) as usize] += 1);
            let taken = buckets.iter().filter(|n| **n > 0).count();
            assert!(taken > 400 && buckets.iter().all(|n| *n < 16), "step {step}: {taken}");
        }
    }
}
