//! The interface between a shard (one thread of the load generator) and the kernel. It has two implementations, epoll
//! and io_uring; a shard uses both in the same way.
//!
//! A shard identifies its connections by [`Token`]s. It opens a connection, sends requests and closes the connection.
//! It gets the events of each connection in order: `Established` or `NotEstablished`; with TLS then `Secured`; then any
//! number of `Received`; then `EndOfStream` or `Reset`. With TLS, the final event may also be `Truncated` or `Broken`,
//! and `Finished` may come before the final event. A closed connection has no further events.
//!
//! Requested operations reach the kernel no later than the next [`Io::flush`] or [`Io::wait`]. A wait ends with the
//! first event: if it waited for several events, measured latencies would be too long.

mod buffers;
mod epoll;
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
use crate::pacing::WaitTimes;
use crate::{Address, EngineError};
use brimful_core::{End, ExhaustedResource, Nanos, TlsFault};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::Arc;

/// Identifies a connection by its slot and the number of connections that had this slot before. A late event of a
/// closed connection therefore cannot be mistaken for an event of the next connection in the slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// Index of the slot in the shard's list of connections.
    pub slot: u32,
    /// Number of connections that had this slot before; it wraps around.
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

/// Settings of all connections of a run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The server's addresses. A connection refers to its address by the index in this list.
    pub addresses: Vec<Address>,
    /// Source addresses, with port 0. If the list is empty, the kernel chooses the source address.
    pub sources: Vec<SocketAddr>,
    /// Options of every socket, such as its buffer sizes.
    pub options: SocketOptions,
    /// Whether several requests may be under way on one connection. If so, the requests that a shard sends on a
    /// connection in one iteration of its event loop are sent in one write.
    pub pipelined: bool,
    /// The TLS settings; `None` without TLS.
    pub tls: Option<Arc<Security>>,
    /// Whether this host closes connections with FIN rather than RST. If so, it sends close_notify first on TLS
    /// connections.
    pub sends_close_notify: bool,
}

/// A connection that was established before the run.
pub struct WarmConnection {
    /// The connected socket.
    pub socket: OwnedFd,
    /// Index of the server's address in [`Settings::addresses`].
    pub address: usize,
    /// TLS session of the connection, and the plaintext that the server sent together with the end of the handshake.
    pub session: Option<(Box<tls::Session>, Vec<u8>)>,
}

/// The server's address and the source address of a connection, as indices into the run's [`Settings`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Route {
    /// Index of the server's address in [`Settings::addresses`].
    pub address: usize,
    /// Index of the source address in [`Settings::sources`].
    pub source: usize,
}

impl Settings {
    /// The addresses of the `nth` connection that is opened before the run. Both lists of addresses are used in turn.
    pub fn warm_route(&self, nth: u64) -> Route {
        let turn = |count: usize| usize::try_from(nth).unwrap_or(0) % count.max(1);
        Route { address: turn(self.addresses.len()), source: turn(self.sources.len()) }
    }
}

/// Opens up to `count` connections, one after another. Stops at the first connection that is not ready within
/// `timeout`. A connection is ready when it is established and, with TLS, its handshake is complete.
pub fn open_established(settings: &Settings, timeout: Nanos, count: u64) -> Vec<WarmConnection> {
    match &settings.tls {
        Some(security) => tls::open_secured(settings, security, timeout, count),
        None => socket::open_established(settings, timeout, count),
    }
}

/// An event on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoEvent {
    /// The connection attempt succeeded.
    Established,
    /// The connection attempt failed with this error. The connection must still be closed.
    NotEstablished(Errno),
    /// TLS: the handshake is complete; requests may be sent from now on.
    Secured {
        /// Whether the handshake resumed an earlier TLS session.
        resumed: bool,
        /// Whether client and server agreed on HTTP/2.
        http2: bool,
    },
    /// Bytes were received. [`Io::received`] returns them until the next call of [`Io::next`].
    Received {
        /// Whether the server is already known to have closed its side of the connection. More bytes may still follow.
        last: bool,
    },
    /// The server has closed its side of the connection, and all of its data was received.
    EndOfStream,
    /// The server reset the connection, or the connection failed in another way.
    Reset,
    /// TLS: the server has sent close_notify, but the TCP connection is still open.
    Finished,
    /// TLS: the TCP connection has ended without close_notify, so the received data may be incomplete.
    Truncated,
    /// TLS: the handshake failed, or the server violated the protocol. The connection must still be closed.
    Broken(TlsFault),
    /// The kernel has accepted all data sent before the call of [`Io::notify_when_sent`] that requested this event.
    Sent,
}

/// The network I/O of one shard. `'a` is the lifetime of the rendered requests, which several shards share.
pub trait Io<'a>: Sized {
    /// Name of this kernel interface on the command line and in result files.
    const NAME: &'static str;

    /// Sets up the I/O. The thread that calls this function must also call all methods.
    fn new(settings: &Settings) -> Result<Self, EngineError>;

    /// Registers a connection that was established before the run, under this token.
    fn adopt(&mut self, token: Token, warm: WarmConnection) -> Result<(), Errno>;

    /// Starts a connection attempt. If it returns an error, the attempt has failed, and there is no connection to
    /// close.
    fn connect(&mut self, token: Token, route: Route) -> Result<(), Errno>;

    /// Adds an address of the server. Its index is the next one in [`Settings::addresses`].
    fn add_address(&mut self, address: Address);

    /// Sends `request` after all earlier data of this connection.
    fn send(&mut self, token: Token, request: Cow<'a, [u8]>);

    /// Sends a copy of the bytes.
    fn send_copied(&mut self, token: Token, bytes: &[u8]) {
        self.send(token, Cow::Owned(bytes.to_vec()));
    }

    /// Requests one [`IoEvent::Sent`] once the kernel has accepted everything that was sent so far on this connection.
    /// With HTTP/1, the caller must not send data of another call before the event. If the connection can send no more,
    /// the event never comes.
    fn notify_when_sent(&mut self, token: Token);

    /// Number of bytes sent on the connection in this slot that the kernel is not known to have accepted.
    fn unsent(&self, slot: u32) -> usize;

    /// Closes the connection, and discards all data that the kernel has not accepted.
    fn close(&mut self, token: Token);

    /// Hands all requested operations to the kernel.
    fn flush(&mut self) -> Result<(), EngineError>;

    /// Flushes, then waits for an event, at most until `until` and at most for a short fixed time.
    fn wait(&mut self, clock: Clock, until: Nanos) -> Result<WaitTimes, EngineError>;

    /// Sets whether waits end exactly on time, which is the default. Otherwise, they may end a little late to save CPU
    /// time.
    fn set_exact(&mut self, exactly: bool);

    /// Returns the next event of the latest wait; `None` if all were returned.
    fn next(&mut self) -> Option<(Token, IoEvent)>;

    /// Whether the kernel has begun every connection attempt that was requested before the latest wait.
    fn attempts_have_begun(&self) -> bool;

    /// Whether data that had arrived by the latest wait may still be unread, although all events of the wait were
    /// handled.
    fn left_unread(&mut self) -> bool;

    /// The bytes of the latest [`IoEvent::Received`].
    fn received(&self) -> &[u8];
}

/// The outcome of a call whose connection could not be established because of this error.
pub fn end_of_failed_attempt(errno: Errno) -> End {
    match errno {
        Errno::MFILE | Errno::NFILE => End::ClientLimited(ExhaustedResource::Descriptors),
        // This host has no free port. The kernel reports the first error if it chooses the source address, and the
        // second if the run sets it.
        Errno::ADDRNOTAVAIL | Errno::ADDRINUSE => End::ClientLimited(ExhaustedResource::Ports),
        Errno::NOBUFS | Errno::NOMEM => End::ClientLimited(ExhaustedResource::Memory),
        // The kernel gave up its SYN retries before the run's own timeout.
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
    fn a_lack_of_resources_on_this_host_is_client_limited() {
        assert_eq!(end_of_failed_attempt(Errno::MFILE), End::ClientLimited(ExhaustedResource::Descriptors));
        assert_eq!(end_of_failed_attempt(Errno::ADDRNOTAVAIL), End::ClientLimited(ExhaustedResource::Ports));
        assert_eq!(end_of_failed_attempt(Errno::NOBUFS), End::ClientLimited(ExhaustedResource::Memory));
        assert_eq!(end_of_failed_attempt(Errno::CONNREFUSED), End::Refused);
        assert_eq!(end_of_failed_attempt(Errno::TIMEDOUT), End::Abandoned);
    }

    const TOKEN: Token = Token { slot: 0, generation: 0 };

    /// Returns an implementation of [`Io`] with one established connection, and the server's socket of that connection.
    fn connected<'a, I: Io<'a>>(pipelined: bool) -> Option<(I, Clock, TcpStream)> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, options) = (listener.local_addr().unwrap(), SocketOptions::default());
        let settings = Settings {
            addresses: vec![address.into()],
            sources: Vec::new(),
            options,
            pipelined,
            tls: None,
            sends_close_notify: false,
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
        io.adopt(TOKEN, WarmConnection { socket: client.into(), address: 0, session: None }).unwrap();
        let clock = Clock::starting_in(Nanos::ZERO);
        io.wait(clock, Nanos::ZERO).unwrap();
        while io.next().is_some() {}
        Some((io, clock, server))
    }

    /// Receives until at least `enough` bytes have arrived, the connection ends, or nothing arrives for a long time.
    /// Returns the bytes, and the event that ended the connection, if any.
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

    /// Expects a `Reset` after a failed write. The write's error clears the socket's error, so the next read returns 0
    /// bytes, as if the server had ended the stream normally.
    fn a_reset_that_a_write_meets_is_reported_as_a_reset<'a, I: Io<'a>>() {
        for pipelined in [false, true] {
            let Some((mut io, clock, server)) = connected::<I>(pipelined) else { return };
            sockopt::set_socket_linger(&server, Some(std::time::Duration::ZERO)).unwrap();
            drop(server);
            io.send(TOKEN, b"GET / HTTP/1.1\r\n\r\n".into());
            assert_eq!(received(&mut io, clock, 1), (vec![], Some(IoEvent::Reset)), "pipelined: {pipelined}");
        }
    }

    fn a_failed_write_after_the_end_of_stream_does_not_hide_it<'a, I: Io<'a>>() {
        for pipelined in [false, true] {
            let Some((mut io, clock, server)) = connected::<I>(pipelined) else { return };
            drop(server);
            // The server answers the first write with RST, so the second write fails.
            for _ in 0..2 {
                io.send(TOKEN, b"GET / HTTP/1.1\r\n\r\n".into());
                io.flush().unwrap();
            }
            assert_eq!(received(&mut io, clock, 1), (vec![], Some(IoEvent::EndOfStream)), "pipelined: {pipelined}");
        }
    }

    fn data_after_urgent_data_is_read<'a, I: Io<'a>>() {
        for pipelined in [false, true] {
            let Some((mut io, clock, server)) = connected::<I>(pipelined) else { return };
            send(&server, b"abc", SendFlags::empty()).unwrap();
            send(&server, b"!", SendFlags::OOB).unwrap();
            send(&server, b"def", SendFlags::empty()).unwrap();
            let (bytes, _) = received(&mut io, clock, 6);
            assert_eq!(bytes, b"abcdef", "pipelined: {pipelined}");
        }
    }

    /// Expects that `left_unread` returns true while data remains after one read.
    fn unread_data_is_reported<'a, I: Io<'a>>() {
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

    /// Expects that all data arrives in order. Sends short pieces, several per wait, until the sockets' buffers are
    /// full. Only then does the server read.
    fn unsent_data_follows_in_order<'a, I: Io<'a>>() {
        for pipelined in [false, true] {
            let Some((mut io, clock, mut server)) = connected::<I>(pipelined) else { return };
            let turn = |io: &mut I| {
                io.wait(clock, Nanos::ZERO).unwrap();
                while io.next().is_some() {}
            };
            let (mut sent, mut after_full) = (Vec::new(), 0);
            while after_full < 20 {
                assert!(sent.len() < 256 << 20, "the buffers of the sockets never became full");
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
        a_reset_that_a_write_meets_is_reported_as_a_reset,
        a_failed_write_after_the_end_of_stream_does_not_hide_it,
        data_after_urgent_data_is_read,
        unread_data_is_reported,
        unsent_data_follows_in_order,
    );
}
