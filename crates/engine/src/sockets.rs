//! A shard's sockets, and the output that has not been passed to the kernel yet.

use crate::clock::Clock;
use crate::io::{Io, IoEvent, Route, Token, WarmConnection};
use crate::pacing::WaitTimes;
use crate::socket_polls::SocketPolls;
use crate::{Address, EngineError};
use brimful_core::Nanos;
use rustix::io::Errno;
use std::borrow::Cow;

/// Maximum time for which a requested operation waits to be passed to the kernel while the shard handles events.
const MAX_HOLD: Nanos = Nanos::from_micros(10);

/// The sockets of one shard.
#[derive(Debug)]
pub struct Sockets<I> {
    io: I,
    /// Time of the oldest requested operation that may not have been passed to the kernel yet.
    held_since: Option<Nanos>,
    /// Slots of HTTP/2 connections with output that has not been passed to `io` yet.
    with_output: Vec<u32>,
    /// Whether waits end exactly on time, which needs CPU time for spinning.
    is_exact: bool,
    /// Determines the time up to which all data that arrived has been read.
    polls: SocketPolls,
    /// The error of a flush before a connection was closed. Nothing can be sent after it.
    failure: Option<EngineError>,
}

impl<'a, I: Io<'a>> Sockets<I> {
    /// Creates the sockets of a shard without connections.
    pub fn new(io: I) -> Sockets<I> {
        let polls = SocketPolls::default();
        Sockets { io, held_since: None, with_output: Vec::new(), is_exact: true, polls, failure: None }
    }

    /// Registers a connection that was established before the run.
    pub fn adopt(&mut self, token: Token, warm: WarmConnection) -> Result<(), Errno> {
        self.io.adopt(token, warm)
    }

    /// Adds an address of the server at the end of its list of addresses.
    pub fn add_address(&mut self, address: Address) {
        self.io.add_address(address);
    }

    /// Starts a connection attempt.
    pub fn connect(&mut self, token: Token, route: Route, now: Nanos) -> Result<(), Errno> {
        self.io.connect(token, route)?;
        self.hold(now);
        Ok(())
    }

    /// Sends bytes after all earlier data of this connection.
    pub fn send(&mut self, token: Token, bytes: Cow<'a, [u8]>, now: Nanos) {
        self.io.send(token, bytes);
        self.hold(now);
    }

    /// Sends a copy of the bytes. They reach the kernel at the next flush or wait.
    pub fn send_copied(&mut self, token: Token, bytes: &[u8]) {
        self.io.send_copied(token, bytes);
    }

    /// Requests one [`IoEvent::Sent`] once the kernel has accepted everything that was sent so far on this connection.
    pub fn notify_when_sent(&mut self, token: Token) {
        self.io.notify_when_sent(token);
    }

    /// Closes a connection.
    pub fn close(&mut self, token: Token, now: Nanos) {
        self.io.close(token);
        self.hold(now);
    }

    /// Number of bytes sent on the connection in this slot that the kernel is not known to have accepted.
    pub fn unsent(&self, slot: u32) -> usize {
        self.io.unsent(slot)
    }

    /// Records that the HTTP/2 connection in this slot has output to be passed to the sockets.
    pub fn note_output(&mut self, slot: u32, now: Nanos) {
        if self.with_output.last() != Some(&slot) {
            self.with_output.push(slot);
        }
        self.hold(now);
    }

    /// Removes and returns the slot of an HTTP/2 connection with output.
    pub fn pop_with_output(&mut self) -> Option<u32> {
        self.with_output.pop()
    }

    #[inline]
    fn hold(&mut self, now: Nanos) {
        self.held_since = self.held_since.or(Some(now));
    }

    /// Whether an operation has waited longer than [`MAX_HOLD`] and must be passed to the kernel now.
    pub fn must_flush(&self, now: Nanos) -> bool {
        self.held_since.is_some_and(|since| now > since + MAX_HOLD)
    }

    /// Passes all requested operations to the kernel.
    pub fn flush(&mut self) -> Result<(), EngineError> {
        self.io.flush()?;
        self.held_since = None;
        Ok(())
    }

    /// Passes the requested operations to the kernel before a connection is closed, except output of HTTP/2 connections
    /// that was not passed to the sockets yet. [`Sockets::take_failure`] returns the error, if any.
    pub fn flush_before_close(&mut self) {
        if let Err(error) = self.io.flush() {
            self.failure = Some(error);
        }
    }

    /// Returns the error of an earlier [`Sockets::flush_before_close`], if any.
    pub fn take_failure(&mut self) -> Result<(), EngineError> {
        self.failure.take().map_or(Ok(()), Err)
    }

    /// Flushes, then waits for an event until `until`. `exactly` says whether the wait ends exactly on time; otherwise,
    /// it may end a little late to save CPU time.
    pub fn wait(&mut self, clock: Clock, until: Nanos, exactly: bool) -> Result<WaitTimes, EngineError> {
        if exactly != self.is_exact {
            self.io.set_exact(exactly);
            self.is_exact = exactly;
        }
        self.held_since = None;
        self.io.wait(clock, until)
    }

    /// Returns the next event of the latest wait; `None` if all were returned.
    pub fn next_event(&mut self) -> Option<(Token, IoEvent)> {
        self.io.next()
    }

    /// The bytes of the latest [`IoEvent::Received`].
    pub fn received(&self) -> &[u8] {
        self.io.received()
    }

    /// Whether the kernel has begun every connection attempt that was requested before the latest wait.
    pub fn attempts_have_begun(&self) -> bool {
        self.io.attempts_have_begun()
    }

    /// Records that all events of the latest check of the sockets were handled. The check began at `polled_at`, when
    /// `open` connections were open.
    pub fn end_poll(&mut self, polled_at: Nanos, open: u64) {
        self.polls.note_poll(polled_at, self.io.left_unread(), open);
    }

    /// Time up to which all data that had arrived in the sockets has been read.
    pub fn read_until(&self) -> Nanos {
        self.polls.read_until()
    }
}
