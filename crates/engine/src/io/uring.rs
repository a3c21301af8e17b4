//! Network I/O by io_uring. One system call submits all operations of an iteration of the event loop and waits for
//! events.
//!
//! - Each shard has one ring, which only its thread uses (`SINGLE_ISSUER`, `DEFER_TASKRUN`; Linux 6.1). Operations
//!   complete only while this thread waits for events in the kernel.
//! - Sockets are direct descriptors: entries in a table of the ring, at the index of the connection's slot. The limit
//!   on descriptors applies to each ring separately.
//! - A TCP connection is opened by a chain of linked operations: socket, options, bind, connect. A Unix socket is
//!   connected outside the ring and then registered.
//! - `uring/receiving.rs` receives, and `uring/sending.rs` sends. A send that succeeds has no completion.

mod operations;
mod receiving;
mod sending;

use super::buffers::{self, Buffers};
use super::unsent::SendQueue;
use super::{Io, IoEvent, Route, Settings, Token, WarmConnection, socket};
use crate::clock::Clock;
use crate::pacing::{Pacer, WaitTimes};
use crate::{Address, EngineError};
use brimful_core::Nanos;
use io_uring::squeue::{Entry, Flags};
use io_uring::types::{CancelBuilder, Fixed, SubmitArgs, Timespec};
use io_uring::{EnterFlags, IoUring, Probe, cqueue, opcode};
use operations::{OperationChain, OperationKind, parse_user_data, user_data};
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use sending::{LONG_REQUEST, send};
use std::borrow::Cow;

const SUBMISSIONS: u32 = 512;
const COMPLETIONS: u32 = 8192;

/// An io_uring instance and its connections.
pub struct Uring<'a> {
    /// Declared before `buffers` and all other data that operations point to, because fields are dropped in this order:
    /// the ring must be dropped first.
    ring: IoUring,
    buffers: Buffers,
    chain: Box<OperationChain>,
    settings: Settings,
    limit: u32,
    slots: Vec<Slot<'a>>,
    /// The completions that the latest wait returned, and older ones that are not handled yet.
    completions: Vec<cqueue::Entry>,
    handled: usize,
    /// Index of the buffer that contains the latest received bytes, and their number.
    received: Option<(u16, usize)>,
    /// The connection whose next receive operation must be submitted, and whether its socket may already contain data.
    rearm: Option<(Token, bool)>,
    /// Connections with requests to be sent by one operation.
    gathering: Vec<Token>,
    /// Connections for which [`IoEvent::Sent`] must still be returned.
    sent: Vec<Token>,
    /// Whether a receive since the latest wait filled its buffer or found no free buffer. If so, the socket may contain
    /// more data.
    left_unread: bool,
    /// Whether the kernel still had work for this thread when the latest wait ended, such as the next of several linked
    /// operations.
    working: bool,
    /// User data and buffers of unfinished sends on closed connections. A buffer is kept until its send completes.
    closed_sends: Vec<(u64, Vec<u8>)>,
    pacer: Pacer,
    failed: Option<std::io::Error>,
    /// Number of the current iteration of the event loop, counted from 1. An iteration ends with a wait. By the end of
    /// this wait, every non-blocking send of the iteration has completed or failed.
    turn: u64,
    /// Buffers of non-blocking sends of this iteration on closed connections. The kernel may still read them.
    buffers_of_closed: Vec<Vec<u8>>,
}

#[derive(Default)]
struct Slot<'a> {
    generation: u32,
    connecting: bool,
    receiving: bool,
    /// Whether a blocking send is under way. Its completion will be reported.
    sending: bool,
    /// The iteration of the event loop in which `outgoing` was last sent without waiting; 0 if never.
    tried_in: u64,
    /// Whether a failed send has cleared the socket's error. The next receive then reports the end of the stream,
    /// although the connection was reset.
    broken: bool,
    /// Whether [`IoEvent::Sent`] must be reported once the kernel has accepted all bytes.
    notify_sent: bool,
    /// Number of bytes of the latest send that are not known to be accepted by the kernel; see [`LONG_REQUEST`].
    short: usize,
    unsent: SendQueue<'a>,
    /// The bytes of the latest send.
    outgoing: Vec<u8>,
}

impl<'a> Io<'a> for Uring<'a> {
    const NAME: &'static str = "uring";

    fn new(settings: &Settings) -> Result<Self, EngineError> {
        let unavailable = |error| EngineError::UringUnavailable(unavailable(error));
        let ring: IoUring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_taskrun_flag()
            .setup_submit_all()
            .setup_cqsize(COMPLETIONS)
            .build(SUBMISSIONS)
            .map_err(unavailable)?;
        let mut probe = Probe::new();
        ring.submitter().register_probe(&mut probe).map_err(unavailable)?;
        // Bind is the newest of the operations used here, so a kernel that supports bind supports all of them.
        if !probe.is_supported(opcode::Bind::CODE) {
            return Err(unavailable(std::io::ErrorKind::Unsupported.into()));
        }
        let limit = table_size(getrlimit(Resource::Nofile).current);
        ring.submitter().register_files_sparse(limit).map_err(unavailable)?;
        let buffers = Buffers::new();
        // SAFETY: the memory holds `buffers::BUFFER_COUNT` entries, and outlives the ring.
        unsafe { ring.submitter().register_buf_ring_with_flags(buffers.address(), buffers::BUFFER_COUNT, 0, 0) }
            .map_err(unavailable)?;
        Ok(Uring {
            ring,
            buffers,
            chain: Box::new(OperationChain::new(settings)),
            settings: settings.clone(),
            limit,
            slots: Vec::new(),
            completions: Vec::new(),
            handled: 0,
            received: None,
            rearm: None,
            gathering: Vec::new(),
            sent: Vec::new(),
            left_unread: false,
            working: false,
            closed_sends: Vec::new(),
            pacer: Pacer::new(),
            failed: None,
            turn: 1,
            buffers_of_closed: Vec::new(),
        })
    }

    fn adopt(&mut self, token: Token, warm: WarmConnection) -> Result<(), Errno> {
        self.register(token, &warm.socket, false)?;
        self.receive(token, true);
        Ok(())
    }

    fn connect(&mut self, token: Token, route: Route) -> Result<(), Errno> {
        if let Some(address @ Address::Unix(_)) = self.settings.addresses.get(route.address) {
            let socket = socket::open(address, &self.settings.options, None)?;
            return self.adopt_unix_socket(token, &socket);
        }
        self.occupy(token, true)?;
        let (chain, length) = self.chain.operations(token, route);
        // All operations of a chain must be submitted by one system call.
        if self.room() < length {
            self.submit();
        }
        for entry in &chain[..length] {
            self.push(entry);
        }
        Ok(())
    }

    fn add_address(&mut self, address: Address) {
        self.chain.add_address(&address);
        self.settings.addresses.push(address);
    }

    fn send(&mut self, token: Token, request: Cow<'a, [u8]>) {
        let pipelined = self.settings.pipelined;
        let turn = self.turn;
        let Some(slot) = self.get_mut(token) else { return };
        let request = match request {
            Cow::Borrowed(request) if !pipelined && slot.is_free(turn) => request,
            Cow::Owned(request) if !pipelined => return self.send_copied(token, &request),
            request => {
                let first = slot.unsent.is_empty();
                slot.unsent.push(request);
                if first && !slot.sending {
                    self.gathering.push(token);
                }
                return;
            }
        };
        let mut flags = Flags::SKIP_SUCCESS;
        if request.len() > LONG_REQUEST {
            flags = Flags::empty();
            slot.short = request.len() - LONG_REQUEST;
            slot.sending = true;
        }
        let message_flags = libc::MSG_NOSIGNAL | libc::MSG_WAITALL;
        let entry = send(token, request.as_ptr(), request.len(), message_flags).flags(flags);
        self.push(&entry);
    }

    fn send_copied(&mut self, token: Token, bytes: &[u8]) {
        let turn = self.turn;
        let Some(slot) = self.get_mut(token) else { return };
        if slot.is_free(turn) && bytes.len() <= LONG_REQUEST {
            slot.outgoing.clear();
            slot.outgoing.extend_from_slice(bytes);
            return self.try_to_send(token);
        }
        let first = slot.unsent.is_empty();
        slot.unsent.push(Cow::Owned(bytes.to_vec()));
        if first && !slot.sending {
            self.gathering.push(token);
        }
    }

    fn notify_when_sent(&mut self, token: Token) {
        let Some(slot) = self.get_mut(token) else { return };
        if slot.sending || !slot.unsent.is_empty() {
            slot.notify_sent = true;
        } else {
            self.sent.push(token);
        }
    }

    fn unsent(&self, slot: u32) -> usize {
        self.slots.get(slot as usize).map_or(0, |slot| slot.unsent.bytes().saturating_add(slot.short))
    }

    fn close(&mut self, token: Token) {
        let Some(slot) = self.get_mut(token) else { return };
        let Slot { connecting, receiving, sending, tried_in, .. } = *slot;
        let Slot { outgoing, .. } = std::mem::take(slot);
        slot.generation = token.generation.wrapping_add(1);
        if sending {
            self.closed_sends.push((user_data(token, OperationKind::Send), outgoing));
        } else if tried_in == self.turn {
            self.buffers_of_closed.push(outgoing);
        }
        // Cancels the unfinished operations, because each would keep its socket open after the descriptor is closed.
        for (under_way, kind) in
            [(connecting, OperationKind::Connect), (receiving, OperationKind::Receive), (sending, OperationKind::Send)]
        {
            if under_way {
                let entry = opcode::AsyncCancel::new(user_data(token, kind)).build();
                self.push(&as_close(entry, token));
            }
        }
        self.push(&as_close(opcode::Close::new(Fixed(token.slot)).build(), token));
    }

    fn flush(&mut self) -> Result<(), EngineError> {
        self.send_gathered();
        if !self.ring.submission().is_empty() {
            self.submit();
        }
        self.failed.take().map_or(Ok(()), |error| Err(EngineError::Wait(error)))
    }

    fn wait(&mut self, clock: Clock, until: Nanos) -> Result<WaitTimes, EngineError> {
        self.send_gathered();
        self.rearm_receive();
        self.left_unread = false;
        let mut pacer = self.pacer;
        let has_unhandled = self.handled < self.completions.len();
        // Does not block if events are ready to be returned, or if requests wait for the result of a non-blocking send,
        // which comes at once.
        let until =
            if has_unhandled || !self.sent.is_empty() || !self.gathering.is_empty() { Nanos::ZERO } else { until };
        let mut first = true;
        let waited = pacer.wait(clock, until, |sleep| {
            if std::mem::take(&mut first) || sleep.is_some() || self.must_enter() {
                self.enter(sleep)?;
            } else {
                std::hint::spin_loop();
            }
            Ok(!self.ring.completion().is_empty())
        });
        self.pacer = pacer;
        self.take_completions();
        self.working = self.ring.submission().taskrun();
        waited
    }

    fn set_exact(&mut self, exactly: bool) {
        self.pacer.set_exact(exactly);
    }

    fn next(&mut self) -> Option<(Token, IoEvent)> {
        self.rearm_receive();
        if let Some((id, _)) = self.received.take() {
            self.buffers.recycle(id);
        }
        if let Some(token) = self.sent.pop() {
            return Some((token, IoEvent::Sent));
        }
        while let Some(entry) = self.completions.get(self.handled).cloned() {
            self.handled += 1;
            if let Some(happened) = self.completed(&entry) {
                return Some(happened);
            }
        }
        None
    }

    fn attempts_have_begun(&self) -> bool {
        !self.working
    }

    fn left_unread(&mut self) -> bool {
        self.left_unread || self.ring.submission().cq_overflow()
    }

    fn received(&self) -> &[u8] {
        self.received.map_or(&[], |(id, length)| self.buffers.get(id, length))
    }
}

impl<'a> Uring<'a> {
    fn get_mut(&mut self, token: Token) -> Option<&mut Slot<'a>> {
        self.slots.get_mut(token.slot as usize).filter(|slot| slot.generation == token.generation)
    }

    fn occupy(&mut self, token: Token, connecting: bool) -> Result<(), Errno> {
        if token.slot >= self.limit {
            return Err(Errno::MFILE);
        }
        if token.slot as usize >= self.slots.len() {
            self.slots.resize_with(token.slot as usize + 1, Slot::default);
        }
        self.slots[token.slot as usize] = Slot { generation: token.generation, connecting, ..Slot::default() };
        Ok(())
    }

    /// Registers a socket that was opened outside the ring.
    fn register(&mut self, token: Token, socket: &OwnedFd, connecting: bool) -> Result<(), Errno> {
        // Submits the close of the slot's previous connection first. Otherwise, its socket might still be in the slot.
        if !self.ring.submission().is_empty() {
            self.submit();
        }
        self.occupy(token, connecting)?;
        let update = self.ring.submitter().register_files_update(token.slot, &[socket.as_raw_fd()]);
        update.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::NOMEM))?;
        Ok(())
    }

    /// Registers a Unix socket that was connected outside the ring. A connect by the ring would block one of the
    /// kernel's threads if the server's accept queue were full.
    fn adopt_unix_socket(&mut self, token: Token, socket: &OwnedFd) -> Result<(), Errno> {
        self.register(token, socket, true)?;
        self.push(&opcode::Nop::new().build().user_data(user_data(token, OperationKind::Connect)));
        Ok(())
    }

    /// Moves the completions from the ring to `completions`, and ends this iteration of the event loop.
    fn take_completions(&mut self) {
        // If memory is short, the kernel may not have accepted all operations. The iteration then continues.
        let submitted = self.ring.submission().is_empty();
        let mut completions = std::mem::take(&mut self.completions);
        completions.drain(..self.handled);
        self.handled = 0;
        completions.extend(self.ring.completion());
        completions.retain(|entry| !self.is_failed_try(entry));
        self.completions = completions;
        if submitted {
            self.turn += 1;
            self.buffers_of_closed.clear();
        }
    }

    fn completed(&mut self, entry: &cqueue::Entry) -> Option<(Token, IoEvent)> {
        let (token, kind) = parse_user_data(entry.user_data());
        let result = entry.result();
        let Some(slot) = self.get_mut(token) else {
            if let Some(id) = cqueue::buffer_select(entry.flags()) {
                self.buffers.recycle(id);
            }
            if kind == OperationKind::Send {
                self.closed_sends.retain(|(send, _)| *send != entry.user_data());
            }
            return None;
        };
        match kind {
            OperationKind::Close => None,
            OperationKind::Setup | OperationKind::Connect => {
                slot.connecting = false;
                match result {
                    // The operation was cancelled because an earlier operation of its chain failed, whose completion
                    // has the reason.
                    _ if result == -libc::ECANCELED => None,
                    _ if result < 0 => Some((token, IoEvent::NotEstablished(Errno::from_raw_os_error(-result)))),
                    _ => {
                        // The receive operation is submitted later, after the shard has sent its first request.
                        self.rearm = Some((token, false));
                        Some((token, IoEvent::Established))
                    }
                }
            }
            OperationKind::Send => self.send_completed(token, result),
            OperationKind::Receive => {
                slot.receiving = cqueue::more(entry.flags());
                self.receive_completed(token, entry)
            }
        }
    }

    fn must_enter(&mut self) -> bool {
        let queue = self.ring.submission();
        !queue.is_empty() || queue.taskrun() || queue.cq_overflow()
    }

    fn room(&mut self) -> usize {
        let queue = self.ring.submission();
        queue.capacity() - queue.len()
    }

    fn push(&mut self, entry: &Entry) {
        // SAFETY: the data that the entry points to does not move until the kernel has read it. The chain's arguments
        // and the receive buffers live as long as the ring, and shared requests live longer (`'a`). A slot's `outgoing`
        // does not change while its send is under way, nor before the end of the iteration in which a non-blocking send
        // was submitted.
        while unsafe { self.ring.submission().push(entry) }.is_err() {
            self.submit();
            if self.failed.is_some() {
                return;
            }
        }
    }

    fn submit(&mut self) {
        if let Err(error) = self.ring.submit()
            && !is_transient(&error)
        {
            self.failed = Some(error);
        }
    }

    /// Submits all operations, and lets the kernel complete operations. Given a duration, waits up to this time for a
    /// completion.
    fn enter(&mut self, sleep: Option<Nanos>) -> Result<(), EngineError> {
        let entered = match sleep {
            Some(sleep) => {
                let timespec = Timespec::new().sec(sleep.0 / 1_000_000_000).nsec((sleep.0 % 1_000_000_000) as u32);
                self.ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&timespec))
            }
            None => {
                let waiting = self.ring.submission().len() as u32;
                // SAFETY: no argument is a pointer, so none can be invalid.
                unsafe { self.ring.submitter().enter::<libc::sigset_t>(waiting, 0, EnterFlags::GETEVENTS.bits(), None) }
            }
        };
        match (entered, self.failed.take()) {
            (Err(error), _) if !is_transient(&error) => Err(EngineError::Wait(error)),
            (_, Some(error)) => Err(EngineError::Wait(error)),
            _ => Ok(()),
        }
    }
}

impl Drop for Uring<'_> {
    fn drop(&mut self) {
        // Closes the sockets now, because the kernel closes them only some time after the ring is dropped.
        let submitter = self.ring.submitter();
        let _ = submitter.register_sync_cancel(None, CancelBuilder::any());
        let _ = submitter.unregister_files();
        let _ = submitter.unregister_buf_ring(0);
    }
}

fn as_close(entry: Entry, token: Token) -> Entry {
    entry.flags(Flags::SKIP_SUCCESS).user_data(user_data(token, OperationKind::Close))
}

/// Whether the error is temporary: a timeout, a signal, or a lack of resources that ends when operations complete.
fn is_transient(error: &std::io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ETIME | libc::EINTR | libc::EBUSY | libc::EAGAIN))
}

/// Size of a ring's table of direct descriptors: the descriptor limit, but no more than the kernel allows.
pub fn table_size(descriptor_limit: Option<u64>) -> u32 {
    /// The kernel's `IORING_MAX_FIXED_FILES`, as in Linux 5.13 to 6.18.
    const MAX_FIXED_FILES: u64 = 1 << 20;
    descriptor_limit.unwrap_or(MAX_FIXED_FILES).min(MAX_FIXED_FILES) as u32
}

/// Explains why no ring could be created, and how the user can change that.
fn unavailable(error: std::io::Error) -> String {
    let disabled = std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled").unwrap_or_default();
    match (error.raw_os_error(), disabled.trim()) {
        (Some(libc::EPERM), "1" | "2") => {
            "it is switched off here: `sysctl kernel.io_uring_disabled=0` switches it on".to_owned()
        }
        (Some(libc::EPERM | libc::EACCES | libc::ENOSYS), _) => {
            format!(
                "it is forbidden here ({error}), as in many containers by seccomp: allow io_uring_setup, io_uring_enter \
                 and io_uring_register"
            )
        }
        (Some(libc::EMFILE | libc::ENFILE), _) => {
            "this process has no descriptor left for it: raise `ulimit -n`".to_owned()
        }
        (Some(libc::ENOMEM), _) => "this process may not lock enough memory for it: raise `ulimit -l`".to_owned(),
        _ => format!("this kernel is too old for it ({error}): it needs Linux 6.11"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_never_larger_than_the_kernel_allows() {
        assert_eq!(table_size(Some(1024)), 1024);
        for more in [Some(1 << 20), Some((1 << 20) + 1), Some(1 << 30), None] {
            assert_eq!(table_size(more), 1 << 20, "{more:?}");
        }
    }
}
