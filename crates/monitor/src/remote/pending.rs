//! Connections whose client has not proved yet that it knows the token. Their number is limited. When the limit is
//! exceeded, the oldest connection of the host with the most pending connections is closed. So neither silent clients
//! nor many clients from one host keep other clients out.

use brimful_core::panics::lock;
use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};

/// Maximum number of pending connections at a time.
pub const MAX_PENDING: usize = 64;

/// All connections whose client has not proved yet that it knows the token.
#[derive(Clone, Default)]
pub struct PendingClients(Arc<Mutex<PendingList>>);

#[derive(Default)]
struct PendingList {
    /// The connections, oldest first.
    present: VecDeque<PendingConnection>,
    /// Number of connections that were added so far.
    before: u64,
}

struct PendingConnection {
    number: u64,
    from: IpAddr,
    socket: TcpStream,
}

/// Marks a connection as pending until this value is dropped.
pub struct PendingClient {
    number: u64,
    all: PendingClients,
}

impl PendingClients {
    /// Adds a connection. If too many connections are pending, one of them is closed.
    pub fn admit(&self, socket: &TcpStream, from: IpAddr) -> io::Result<PendingClient> {
        let socket = socket.try_clone()?;
        let mut crowd = self.lock();
        if crowd.present.len() >= MAX_PENDING {
            crowd.close_one();
        }
        crowd.before += 1;
        let number = crowd.before;
        crowd.present.push_back(PendingConnection { number, from, socket });
        Ok(PendingClient { number, all: self.clone() })
    }

    fn lock(&self) -> MutexGuard<'_, PendingList> {
        lock(&self.0)
    }
}

impl PendingList {
    fn close_one(&mut self) {
        let of_host = |from: IpAddr| self.present.iter().filter(|present| present.from == from).count();
        // If several hosts have the same number of connections, `rev` makes `max_by_key` select the oldest connection.
        let last = self.present.iter().enumerate().rev().max_by_key(|(_, present)| of_host(present.from));
        let last = last.map(|(index, _)| index);
        if let Some(present) = last.and_then(|index| self.present.remove(index)) {
            // The connection's thread then reads the end of the stream. Shutdown fails if the other side has already
            // closed the connection.
            let _ = present.socket.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for PendingClient {
    fn drop(&mut self) {
        self.all.lock().present.retain(|present| present.number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn the_oldest_of_the_largest_crowd_goes() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let socket = || TcpStream::connect(address).unwrap();
        let (pending, host) = (PendingClients::default(), |n: u8| IpAddr::from([192, 0, 2, n]));
        let mut guests: Vec<PendingClient> = (0..MAX_PENDING as u8)
            .map(|n| pending.admit(&socket(), host(if n % 4 == 0 { n } else { 1 })).unwrap())
            .collect();
        let numbers = || pending.lock().present.iter().map(|present| present.number).collect::<Vec<_>>();
        assert_eq!(numbers()[..3], [1, 2, 3]);
        guests.push(pending.admit(&socket(), host(200)).unwrap());
        assert_eq!(
            (numbers().len(), &numbers()[..3]),
            (MAX_PENDING, &[1, 3, 4][..]),
            "the oldest connection of the host with the most connections was closed"
        );
        drop(guests.remove(0));
        assert_eq!((numbers().len(), numbers()[0]), (MAX_PENDING - 1, 3));
    }
}
