//! The connections of sessions: found by the session's number, as each of its calls is given to one of its own.

use super::{Call, Connection, Connections, List};
use brimful_core::SessionId;
use std::collections::VecDeque;
use std::hash::Hasher;

/// The connections of a session that has not ended.
#[derive(Debug, Default)]
pub(super) struct OfSession {
    /// Their slots: as a rule one or very few.
    pub slots: Vec<u32>,
    /// How many were established, those that are closed among them.
    pub established: u32,
    /// The server closes each of them after one answer: none is given a second call before the first is answered.
    closed_after_each: bool,
}

/// Hashes the number of a session by one multiplication (Knuth, The Art of Computer Programming 3, §6.4), as each
/// call of a session is looked up. The load's own numbers need no protection from whoever would have them collide.
#[derive(Debug, Default)]
pub(super) struct ByNumber(u64);

impl Hasher for ByNumber {
    fn write_u32(&mut self, number: u32) {
        let product = (self.0 ^ u64::from(number)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        // The low bits of a product know nothing of the number's high ones, and shards have every n-th number.
        self.0 = product ^ product >> 32;
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u32(u32::from(*byte)));
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl<P> Connections<P> {
    /// A connection for a call of this session: behind its other calls, if there is room, so that a burst leaves
    /// together.
    #[inline]
    pub fn available_to(&mut self, session: SessionId) -> Option<u32> {
        match self.latest {
            Some((latest, slot)) if latest == session => self.room(self.get(slot)?).map(|_| slot),
            _ => self.found_for(session),
        }
    }

    fn found_for(&mut self, session: SessionId) -> Option<u32> {
        let of_session = self.of_sessions.get(&session)?;
        if let &[slot] = of_session.slots.as_slice()
            && !of_session.closed_after_each
        {
            self.latest = Some((session, slot));
            return self.room(self.get(slot)?).map(|_| slot);
        }
        let usable = |list: &List| !of_session.closed_after_each || *list == List::Idle;
        let with_room = |slot: &u32| Some((self.room(self.get(*slot)?).filter(usable)?, *slot));
        let slots = of_session.slots.iter().filter_map(with_room);
        slots.max_by_key(|(list, _)| *list as usize).map(|(_, slot)| slot)
    }

    /// The slots of a session's connections.
    pub fn of_session(&self, session: SessionId) -> &[u32] {
        self.of_sessions.get(&session).map_or(&[], |of_session| of_session.slots.as_slice())
    }

    /// The server leaves this session's connections open after the first answer, or it closes them.
    pub fn note_keep_alive(&mut self, session: SessionId, keep_alive: bool) {
        if let Some(of_session) = self.of_sessions.get_mut(&session) {
            self.latest = None;
            of_session.closed_after_each = !keep_alive;
        }
    }

    /// The connection in this slot is established.
    pub fn established(&mut self, slot: u32) {
        if let Some(session) = self.get(slot).and_then(|connection| connection.session)
            && let Some(of_session) = self.of_sessions.get_mut(&session)
        {
            of_session.established = of_session.established.saturating_add(1);
        }
    }

    /// Takes the memory of a session's connection that bears no call: its user may think for long, as thousands of
    /// others do.
    pub fn lay_aside(&mut self, slot: u32) {
        /// As many as bursts end before others begin, as a rule.
        const MANY: usize = 16;
        if let Some(connection) = self.slots.get_mut(slot as usize).and_then(|slot| slot.connection.as_mut()) {
            let queue = std::mem::take(&mut connection.calls);
            if self.spare.len() < MANY {
                self.spare.push(queue);
            }
        }
    }

    /// A queue for a session's connection, with room for so many calls.
    pub fn queue(&mut self, room: usize) -> VecDeque<Call<P>> {
        roomy(&mut self.spare, room)
    }

    /// The connection in a slot; one of a session has a queue with room for so many calls, if it had none.
    #[inline]
    pub fn with_queue(&mut self, slot: u32, room: usize) -> Option<&mut Connection<P>> {
        let connection = self.slots.get_mut(slot as usize)?.connection.as_mut()?;
        if connection.session.is_some() && connection.calls.capacity() == 0 {
            connection.calls = roomy(&mut self.spare, room);
        }
        Some(connection)
    }

    /// How many connections were established for a session so far.
    pub fn established_for(&self, session: SessionId) -> u32 {
        self.of_sessions.get(&session).map_or(0, |of_session| of_session.established)
    }

    /// A session has ended; its connections are still to be closed. Returns how many were established for it.
    pub fn end_session(&mut self, session: SessionId) -> u32 {
        let Some(of_session) = self.of_sessions.get_mut(&session) else { return 0 };
        let established = std::mem::take(&mut of_session.established);
        if of_session.slots.is_empty() {
            self.of_sessions.remove(&session);
        }
        established
    }
}

/// A queue with room for so many calls: a spare one, if there is any.
fn roomy<P>(spare: &mut Vec<VecDeque<Call<P>>>, room: usize) -> VecDeque<Call<P>> {
    let mut queue = spare.pop().unwrap_or_default();
    queue.reserve_exact(room);
    queue
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of one shard of many: a table of 1,024 buckets looks at the low bits first, then at the high ones.
    #[test]
    fn every_nth_number_is_spread_as_evenly_as_all() {
        for step in [1u32, 2, 64, 1 << 10, 1 << 20, 3, 1000] {
            let hash = |number: u32| {
                let mut hasher = ByNumber::default();
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
