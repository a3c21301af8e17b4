//! The connections of one shard: slots that are used again, and a stack of those that are idle.

use brimful_core::{ClassId, Nanos};
use brimful_http::ResponseParser;
use rustix::fd::OwnedFd;

/// Where a connection is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Not established yet; bears a call.
    Connecting,
    /// Sending a request or receiving its response.
    Busy,
    /// Established, without a call.
    Idle,
    /// Waiting for the server to close.
    Closing,
}

/// A call on its way, with what the observer remembers of it.
#[derive(Debug)]
pub struct Call<P> {
    pub class: ClassId,
    pub due: Nanos,
    pub observed: P,
    /// Bytes of the request written.
    pub written: usize,
    /// Bytes of the response read.
    pub received: u64,
}

/// One connection.
#[derive(Debug)]
pub struct Connection<P> {
    pub socket: OwnedFd,
    pub phase: Phase,
    /// Deadlines that bear another stamp are not this connection's any more.
    pub stamp: u32,
    /// Calls begun on it.
    pub calls: u64,
    pub call: Option<Call<P>>,
    pub parser: ResponseParser,
    /// Position in the idle stack.
    idle_at: u32,
}

#[derive(Debug)]
struct Slot<P> {
    generation: u32,
    connection: Option<Connection<P>>,
}

/// All connections of a shard. A token names a slot and its generation, so that an event for a connection that is gone
/// never reaches the one that took its slot.
#[derive(Debug)]
pub struct Connections<P> {
    slots: Vec<Slot<P>>,
    free: Vec<u32>,
    idle: Vec<u32>,
    pub open: u64,
    pub max_open: u64,
    stamps: u32,
}

impl<P> Connections<P> {
    pub fn new() -> Connections<P> {
        Connections { slots: Vec::new(), free: Vec::new(), idle: Vec::new(), open: 0, max_open: 0, stamps: 0 }
    }

    /// A stamp that no other use of a connection bears.
    pub fn fresh_stamp(&mut self) -> u32 {
        self.stamps = self.stamps.wrapping_add(1);
        self.stamps
    }

    /// Takes in a new connection and returns its slot.
    pub fn insert(&mut self, socket: OwnedFd, phase: Phase, call: Option<Call<P>>) -> u32 {
        let stamp = self.fresh_stamp();
        let parser = ResponseParser::new();
        let connection = Connection { socket, phase, stamp, calls: 0, call, parser, idle_at: 0 };
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { generation: 0, connection: None });
            self.slots.len() as u32 - 1
        });
        self.slots[slot as usize].connection = Some(connection);
        self.open += 1;
        self.max_open = self.max_open.max(self.open);
        slot
    }

    /// The token to register a slot's socket under.
    pub fn token(&self, slot: u32) -> u64 {
        u64::from(self.slots[slot as usize].generation) << 32 | u64::from(slot)
    }

    /// The slot a token names, if its connection is still there.
    pub fn find(&self, token: u64) -> Option<u32> {
        let slot = token as u32;
        let found = self.slots.get(slot as usize)?;
        (found.connection.is_some() && u64::from(found.generation) == token >> 32).then_some(slot)
    }

    pub fn get(&self, slot: u32) -> Option<&Connection<P>> {
        self.slots.get(slot as usize)?.connection.as_ref()
    }

    pub fn get_mut(&mut self, slot: u32) -> Option<&mut Connection<P>> {
        self.slots.get_mut(slot as usize)?.connection.as_mut()
    }

    /// Lays an established connection without a call on the idle stack.
    pub fn make_idle(&mut self, slot: u32) {
        let stamp = self.fresh_stamp();
        let idle_at = self.idle.len() as u32;
        if let Some(connection) = self.get_mut(slot) {
            connection.phase = Phase::Idle;
            connection.stamp = stamp;
            connection.idle_at = idle_at;
            self.idle.push(slot);
        }
    }

    /// Takes the connection that became idle last: its caches are the warmest, and the others can time out in peace.
    pub fn pop_idle(&mut self) -> Option<u32> {
        self.idle.pop()
    }

    /// Whether [`Connections::pop_idle`] would find one.
    pub fn any_idle(&self) -> bool {
        !self.idle.is_empty()
    }

    /// Removes a connection; the caller closes its socket.
    pub fn remove(&mut self, slot: u32) -> Option<Connection<P>> {
        let entry = self.slots.get_mut(slot as usize)?;
        let connection = entry.connection.take()?;
        entry.generation = entry.generation.wrapping_add(1);
        self.free.push(slot);
        self.open -= 1;
        let at = connection.idle_at as usize;
        if connection.phase == Phase::Idle && self.idle.get(at) == Some(&slot) {
            self.idle.swap_remove(at);
            if let Some(&moved) = self.idle.get(at)
                && let Some(other) = self.get_mut(moved)
            {
                other.idle_at = at as u32;
            }
        }
        Some(connection)
    }

    /// Every slot that holds a connection.
    pub fn slots(&self) -> impl Iterator<Item = u32> + use<P> {
        let taken: Vec<u32> =
            (0..self.slots.len() as u32).filter(|slot| self.slots[*slot as usize].connection.is_some()).collect();
        taken.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketType, socket};

    fn insert(connections: &mut Connections<()>) -> u32 {
        let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        let call = Call { class: ClassId(0), due: Nanos::ZERO, observed: (), written: 0, received: 0 };
        connections.insert(socket, Phase::Busy, Some(call))
    }

    #[test]
    fn a_token_dies_with_its_connection() {
        let mut connections = Connections::new();
        let slot = insert(&mut connections);
        let token = connections.token(slot);
        assert_eq!(connections.find(token), Some(slot));
        connections.remove(slot);
        assert_eq!(connections.find(token), None);
        assert_eq!(insert(&mut connections), slot, "the slot is used again");
        assert_eq!(connections.find(token), None);
        assert_eq!((connections.open, connections.max_open), (1, 1));
    }

    #[test]
    fn an_idle_connection_that_is_removed_leaves_the_stack() {
        let mut connections = Connections::new();
        let slots: Vec<u32> = (0..3).map(|_| insert(&mut connections)).collect();
        for slot in &slots {
            connections.make_idle(*slot);
        }
        connections.remove(slots[0]);
        connections.remove(slots[2]);
        assert_eq!(connections.pop_idle(), Some(slots[1]));
        assert_eq!(connections.pop_idle(), None);
    }
}
