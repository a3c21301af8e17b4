//! What a shard asks of the kernel, and what it hears back. The engines are two ways to do this and share all the rest.
//!
//! A shard names its connections by [`Token`]s. It asks for a connection, hands over requests, and closes; it hears of each
//! connection, in order: `Established` or `NotEstablished`, then `Received` any number of times, then `EndOfStream` or
//! `Reset`. After it has closed a connection it hears of it no more.
//!
//! What is asked for reaches the kernel at the latest with [`Io::flush`] or [`Io::wait`]. No engine waits for more than one
//! thing to have happened: batching would make every answer look late.

mod buffers;
mod chain;
mod epoll;
mod operation;
mod socket;
mod unsent;
mod uring;

pub use epoll::Epoll;
pub use socket::{SocketOptions, open_established};
pub use uring::Uring;

use crate::EngineError;
use crate::clock::Clock;
use crate::pacing::Waited;
use brimful_core::{End, Limit, Nanos};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::net::SocketAddr;

/// A slot and its generation, so that what happened to a connection that is gone never reaches the one that took its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    pub slot: u32,
    pub generation: u32,
}

impl From<Token> for u64 {
    fn from(token: Token) -> u64 {
        u64::from(token.generation) << 32 | u64::from(token.slot)
    }
}

impl From<u64> for Token {
    fn from(bits: u64) -> Token {
        Token { slot: bits as u32, generation: (bits >> 32) as u32 }
    }
}

/// What all connections of a run have in common.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where to connect.
    pub address: SocketAddr,
    /// Where from, with port 0; none leaves it to the kernel.
    pub sources: Vec<SocketAddr>,
    pub options: SocketOptions,
    /// Several requests may be under way on one connection, and those handed over together leave together.
    pub pipelined: bool,
}

/// What happened to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happened {
    /// Its attempt succeeded.
    Established,
    /// Its attempt failed; it still has to be closed.
    NotEstablished(Errno),
    /// Bytes came, to be had from [`Io::received`] until the next call.
    Received {
        /// The server is known to have closed its side, though more bytes may come before that.
        last: bool,
    },
    /// The server has closed its side, and everything before that was received.
    EndOfStream,
    /// The connection is broken.
    Reset,
}

/// One way to do it. `'a` is the life of the requests' bytes.
pub trait Io<'a>: Sized {
    /// Its name in Records and on the command line.
    const NAME: &'static str;

    /// Prepares, on the thread that will use it.
    fn new(settings: &Settings) -> Result<Self, EngineError>;

    /// Takes in a connection that is established already.
    fn adopt(&mut self, token: Token, socket: OwnedFd) -> Result<(), Errno>;

    /// Starts a connection attempt, from the `source`-th source address if there are any. An error here is like
    /// `NotEstablished`, but nothing has to be closed.
    fn connect(&mut self, token: Token, source: usize) -> Result<(), Errno>;

    /// Sends `request` after everything that was handed over before it.
    fn send(&mut self, token: Token, request: &'a [u8]);

    /// How many of the bytes handed over for this slot's connection the kernel is known not to have taken.
    fn unsent(&self, slot: u32) -> usize;

    /// Closes the connection and forgets what has not been sent.
    fn close(&mut self, token: Token);

    /// Brings what was asked for to the kernel.
    fn flush(&mut self) -> Result<(), EngineError>;

    /// Flushes, then returns when something has happened, `until` has come or a short while has passed.
    fn wait(&mut self, clock: Clock, until: Nanos) -> Result<Waited, EngineError>;

    /// The next thing that has happened.
    fn next(&mut self) -> Option<(Token, Happened)>;

    /// The bytes of the latest `Received`.
    fn received(&self) -> &[u8];
}

/// How a call ends whose connection attempt failed.
pub fn end_of_attempt(errno: Errno) -> End {
    match errno {
        Errno::MFILE | Errno::NFILE => End::ClientLimited(Limit::Descriptors),
        // Without a source address the one says that ports are short, with one the other.
        Errno::ADDRNOTAVAIL | Errno::ADDRINUSE => End::ClientLimited(Limit::Ports),
        Errno::NOBUFS | Errno::NOMEM => End::ClientLimited(Limit::Memory),
        // The kernel's own SYN retries ran out before our timeout did.
        Errno::TIMEDOUT => End::Abandoned,
        _ => End::Refused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_this_host_lacks_is_never_the_servers_failure() {
        assert_eq!(end_of_attempt(Errno::MFILE), End::ClientLimited(Limit::Descriptors));
        assert_eq!(end_of_attempt(Errno::ADDRNOTAVAIL), End::ClientLimited(Limit::Ports));
        assert_eq!(end_of_attempt(Errno::NOBUFS), End::ClientLimited(Limit::Memory));
        assert_eq!(end_of_attempt(Errno::CONNREFUSED), End::Refused);
        assert_eq!(end_of_attempt(Errno::TIMEDOUT), End::Abandoned);
    }
}
