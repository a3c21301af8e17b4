//! What a shard asks of the kernel, and what it hears back. The engines are two ways to do this and share all the rest.
//!
//! A shard names its connections by [`Token`]s. It asks for a connection, hands over requests, and closes; it hears of each
//! connection, in order: `Established` or `NotEstablished`, with TLS then `Secured`, then `Received` any number of times, then
//! `EndOfStream` or `Reset`, with TLS also `Finished` before that, or `Truncated` or `Broken` in place of it. After it has closed
//! a connection it hears of it no more.
//!
//! What is asked for reaches the kernel at the latest with [`Io::flush`] or [`Io::wait`]. No engine waits for more than one
//! thing to have happened: batching would make every answer look late.

mod buffers;
mod chain;
mod epoll;
mod operation;
mod socket;
mod tls;
mod unsent;
mod uring;

pub use epoll::Epoll;
pub use socket::SocketOptions;
#[cfg(fuzzing)]
pub use tls::scripted;
pub use tls::{Handshake, Security, SecurityError, SecurityOptions, Tls};
pub use uring::{Uring, table_size};

use crate::clock::Clock;
use crate::pacing::Waited;
use crate::{Address, EngineError};
use brimful_core::{End, Limit, Nanos, TlsFault};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::Arc;

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
    /// Where to connect, by number.
    pub addresses: Vec<Address>,
    /// Where from, with port 0; none leaves it to the kernel.
    pub sources: Vec<SocketAddr>,
    pub options: SocketOptions,
    /// Several requests may be under way on one connection, and those handed over together leave together.
    pub pipelined: bool,
    /// How connections are secured, if they are.
    pub tls: Option<Arc<Security>>,
    /// This side closes by FIN: secured connections are told so before.
    pub says_farewell: bool,
}

/// A connection that was opened before the run.
pub struct Warm {
    pub socket: OwnedFd,
    /// Number of the address that it goes to.
    pub address: usize,
    /// Its TLS, and what of the server's data came with the end of the handshake.
    pub session: Option<(Box<tls::Session>, Vec<u8>)>,
}

/// The two ends of a connection, by number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Route {
    /// Of the server's addresses.
    pub address: usize,
    /// Of the source addresses.
    pub source: usize,
}

impl Settings {
    /// The ends of the `nth` connection before the run.
    pub fn warm_route(&self, nth: u64) -> Route {
        let turn = |count: usize| usize::try_from(nth).unwrap_or(0) % count.max(1);
        Route { address: turn(self.addresses.len()), source: turn(self.sources.len()) }
    }
}

/// Opens up to `count` connections, one after another, and stops at the first that is not established, and secured where
/// they are, in time.
pub fn open_established(settings: &Settings, timeout: Nanos, count: u64) -> Vec<Warm> {
    match &settings.tls {
        Some(security) => tls::open_secured(settings, security, timeout, count),
        None => socket::open_established(settings, timeout, count),
    }
}

/// What happened to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoEvent {
    /// Its attempt succeeded.
    Established,
    /// Its attempt failed; it still has to be closed.
    NotEstablished(Errno),
    /// Its TLS handshake is over: requests may be handed over from now on. Not without TLS.
    Secured {
        /// An earlier session was resumed.
        resumed: bool,
        /// Client and server have agreed on HTTP/2.
        http2: bool,
    },
    /// Bytes came, to be had from [`Io::received`] until the next call.
    Received {
        /// The server is known to have closed its side, though more bytes may come before that.
        last: bool,
    },
    /// The server has closed its side, and everything before that was received.
    EndOfStream,
    /// The connection is broken.
    Reset,
    /// TLS: the server has said that nothing more comes. The connection has not ended yet.
    Finished,
    /// TLS: the connection has ended, and whether everything had come, the server has not said.
    Truncated,
    /// TLS: the handshake failed, or the stream broke its rules. It still has to be closed.
    Broken(TlsFault),
    /// Everything that was handed over for it has been taken by the kernel, as [`Io::notify_when_sent`] asked to be told.
    Sent,
}

/// One way to do it. `'a` is the life of the bytes that requests share.
pub trait Io<'a>: Sized {
    /// Its name in Records and on the command line.
    const NAME: &'static str;

    /// Prepares, on the thread that will use it.
    fn new(settings: &Settings) -> Result<Self, EngineError>;

    /// Takes in a connection that is established already.
    fn adopt(&mut self, token: Token, warm: Warm) -> Result<(), Errno>;

    /// Starts a connection attempt between these two ends. An error here is like `NotEstablished`, but nothing has to be
    /// closed.
    fn connect(&mut self, token: Token, route: Route) -> Result<(), Errno>;

    /// The server has this address as well: its number is the next one.
    fn add_address(&mut self, address: Address);

    /// Sends `request` after everything that was handed over before it.
    fn send(&mut self, token: Token, request: Cow<'a, [u8]>);

    /// The same of bytes that are the caller's again when this returns.
    fn send_copied(&mut self, token: Token, bytes: &[u8]) {
        self.send(token, Cow::Owned(bytes.to_vec()));
    }

    /// Asks for one [`IoEvent::Sent`] once the kernel has taken everything handed over so far, the last of which was one
    /// call's own. A connection that takes no more brings none.
    fn notify_when_sent(&mut self, token: Token);

    /// How many of the bytes handed over for this slot's connection the kernel is known not to have taken.
    fn unsent(&self, slot: u32) -> usize;

    /// Closes the connection and forgets what has not been sent.
    fn close(&mut self, token: Token);

    /// Brings what was asked for to the kernel.
    fn flush(&mut self) -> Result<(), EngineError>;

    /// Flushes, then returns when something has happened, `until` has come or a short while has passed.
    fn wait(&mut self, clock: Clock, until: Nanos) -> Result<Waited, EngineError>;

    /// Whether waits are to end exactly when they should, as they do at first, or with as little effort as can be.
    fn set_exact(&mut self, exactly: bool);

    /// The next thing that has happened.
    fn next(&mut self) -> Option<(Token, IoEvent)>;

    /// Whether every attempt asked for before the latest wait has either a socket or failed.
    fn attempts_have_begun(&self) -> bool;

    /// Whether something that could have been read may still lie in the sockets after everything that the latest wait found.
    fn left_unread(&mut self) -> bool;

    /// The bytes of the latest `Received`.
    fn received(&self) -> &[u8];
}

/// How a call ends whose connection attempt failed.
pub fn end_of_failed_attempt(errno: Errno) -> End {
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
    use rustix::net::{SendFlags, send, sockopt};
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn what_this_host_lacks_is_never_the_servers_failure() {
        assert_eq!(end_of_failed_attempt(Errno::MFILE), End::ClientLimited(Limit::Descriptors));
        assert_eq!(end_of_failed_attempt(Errno::ADDRNOTAVAIL), End::ClientLimited(Limit::Ports));
        assert_eq!(end_of_failed_attempt(Errno::NOBUFS), End::ClientLimited(Limit::Memory));
        assert_eq!(end_of_failed_attempt(Errno::CONNREFUSED), End::Refused);
        assert_eq!(end_of_failed_attempt(Errno::TIMEDOUT), End::Abandoned);
    }

    const TOKEN: Token = Token { slot: 0, generation: 0 };

    /// An engine with one connection, whose receive is armed, and the server's end of that.
    fn connected<'a, I: Io<'a>>(pipelined: bool) -> Option<(I, Clock, TcpStream)> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, options) = (listener.local_addr().unwrap(), SocketOptions::default());
        let settings = Settings {
            addresses: vec![address.into()],
            sources: Vec::new(),
            options,
            pipelined,
            tls: None,
            says_farewell: false,
        };
        let mut io = match I::new(&settings) {
            Ok(io) => io,
            Err(error) => {
                assert!(std::env::var_os("CI").is_none() && I::NAME == "uring", "{error}");
                eprintln!("NOT RUN: {error}");
                return None;
            }
        };
        let client = TcpStream::connect(address).unwrap();
        let (server, _) = listener.accept().unwrap();
        server.set_nodelay(true).unwrap();
        io.adopt(TOKEN, Warm { socket: client.into(), address: 0, session: None }).unwrap();
        let clock = Clock::starting_in(Nanos::ZERO);
        io.wait(clock, Nanos::ZERO).unwrap();
        while io.next().is_some() {}
        Some((io, clock, server))
    }

    /// What is received, and how it ends; or what has come when nothing has happened for a long while.
    fn received<'a, I: Io<'a>>(io: &mut I, clock: Clock, enough: usize) -> (Vec<u8>, Option<IoEvent>) {
        let mut bytes = Vec::new();
        for _ in 0..1000 {
            io.wait(clock, clock.now() + Nanos::from_millis(2)).unwrap();
            while let Some((_, happened)) = io.next() {
                match happened {
                    IoEvent::Received { .. } => bytes.extend_from_slice(io.received()),
                    end => return (bytes, Some(end)),
                }
            }
            if bytes.len() >= enough {
                break;
            }
        }
        (bytes, None)
    }

    /// The failed write takes the socket's error, and a read then finds what looks like the end of the stream.
    fn a_write_that_meets_a_reset_makes_no_end_of_stream_of_it<'a, I: Io<'a>>() {
        for pipelined in [false, true] {
            let Some((mut io, clock, server)) = connected::<I>(pipelined) else { return };
            sockopt::set_socket_linger(&server, Some(std::time::Duration::ZERO)).unwrap();
            drop(server);
            io.send(TOKEN, b"GET / HTTP/1.1\r\n\r\n".into());
            assert_eq!(received(&mut io, clock, 1), (vec![], Some(IoEvent::Reset)), "pipelined: {pipelined}");
        }
    }

    fn a_write_to_a_server_that_has_ended_its_stream_leaves_that_end<'a, I: Io<'a>>() {
        for pipelined in [false, true] {
            let Some((mut io, clock, server)) = connected::<I>(pipelined) else { return };
            drop(server);
            // The first is answered by RST, the second meets it.
            for _ in 0..2 {
                io.send(TOKEN, b"GET / HTTP/1.1\r\n\r\n".into());
                io.flush().unwrap();
            }
            assert_eq!(received(&mut io, clock, 1), (vec![], Some(IoEvent::EndOfStream)), "pipelined: {pipelined}");
        }
    }

    fn what_comes_after_urgent_data_is_read<'a, I: Io<'a>>() {
        for pipelined in [false, true] {
            let Some((mut io, clock, server)) = connected::<I>(pipelined) else { return };
            send(&server, b"abc", SendFlags::empty()).unwrap();
            send(&server, b"!", SendFlags::OOB).unwrap();
            send(&server, b"def", SendFlags::empty()).unwrap();
            let (bytes, _) = received(&mut io, clock, 6);
            assert_eq!(bytes, b"abcdef", "pipelined: {pipelined}");
        }
    }

    /// More than is read at a time.
    fn what_is_left_in_a_socket_is_known<'a, I: Io<'a>>() {
        for pipelined in [false, true] {
            let Some((mut io, clock, mut server)) = connected::<I>(pipelined) else { return };
            assert!(!io.left_unread());
            let all = vec![b'x'; 4 << 20];
            let bytes = std::thread::scope(|scope| {
                scope.spawn(|| std::io::Write::write_all(&mut server, &all).unwrap());
                let mut bytes = 0;
                while bytes < all.len() {
                    io.wait(clock, clock.now() + Nanos::from_millis(2)).unwrap();
                    let before = bytes;
                    while io.next().is_some() {
                        bytes += io.received().len();
                    }
                    let most = if I::NAME == "uring" { 128 * 4096 } else { 16 * 64 * 1024 };
                    assert!(bytes - before < most || io.left_unread());
                }
                bytes
            });
            assert_eq!(bytes, all.len());
            io.wait(clock, Nanos::ZERO).unwrap();
            assert!(io.next().is_none() && !io.left_unread(), "pipelined: {pipelined}");
        }
    }

    /// Short pieces, several in a turn, until the sockets' buffers hold no more; then the server reads.
    fn what_a_full_socket_did_not_take_follows_in_order<'a, I: Io<'a>>() {
        for pipelined in [false, true] {
            let Some((mut io, clock, mut server)) = connected::<I>(pipelined) else { return };
            let turn = |io: &mut I| {
                io.wait(clock, Nanos::ZERO).unwrap();
                while io.next().is_some() {}
            };
            let (mut sent, mut after_full) = (Vec::new(), 0);
            while after_full < 20 {
                assert!(sent.len() < 256 << 20, "the socket takes all that it is given");
                for length in [10, 3000, 700] {
                    let piece: Vec<u8> =
                        (0..length).map(|at| (sent.len() + at) as u8 ^ (sent.len() >> 8) as u8).collect();
                    io.send_copied(TOKEN, &piece);
                    sent.extend_from_slice(&piece);
                    if length == 3000 {
                        io.flush().unwrap();
                    }
                }
                turn(&mut io);
                after_full += usize::from(io.unsent(TOKEN.slot) > 0);
            }
            let length = sent.len();
            let received = std::thread::scope(|scope| {
                let reads = scope.spawn(move || {
                    let mut received = vec![0; length];
                    std::io::Read::read_exact(&mut server, &mut received).map(|()| received)
                });
                while !reads.is_finished() {
                    io.wait(clock, clock.now() + Nanos::from_millis(2)).unwrap();
                    while io.next().is_some() {}
                }
                reads.join().unwrap().unwrap()
            });
            assert!(received == sent, "pipelined: {pipelined}");
            turn(&mut io);
            assert_eq!(io.unsent(TOKEN.slot), 0, "pipelined: {pipelined}");
        }
    }

    macro_rules! on_each {
        ($($test:ident),+ $(,)?) => {
            mod on_epoll { $(#[test] fn $test() { super::$test::<crate::io::Epoll<'_>>(); })+ }
            mod on_uring { $(#[test] fn $test() { super::$test::<crate::io::Uring<'_>>(); })+ }
        };
    }

    on_each!(
        a_write_that_meets_a_reset_makes_no_end_of_stream_of_it,
        a_write_to_a_server_that_has_ended_its_stream_leaves_that_end,
        what_comes_after_urgent_data_is_read,
        what_is_left_in_a_socket_is_known,
        what_a_full_socket_did_not_take_follows_in_order,
    );
}
