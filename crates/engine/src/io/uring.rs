//! I/O by io_uring. All operations of a turn of the event loop are submitted by one system call, which also waits for
//! events.
//!
//! - Each shard has one ring, which only its thread uses (`SINGLE_ISSUER`, `DEFER_TASKRUN`; Linux 6.1). Operations
//!   complete only while this thread waits for events in the kernel.
//! - Sockets are direct descriptors: entries in a table of the ring, at the index of the connection's slot. The limit
//!   on descriptors applies to each ring separately.
//! - A TCP connection is opened by one chain of linked operations: socket, options, bind, connect. A Unix socket is
//!   first connected without the ring.
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

/// A ring and its connections.
pub struct Uring<'a> {
    /// This field comes before `buffers` and all other data that operations point to, so that the ring is dropped
    /// first.
    ring: IoUring,
    buffers: Buffers,
    chain: Box<OperationChain>,
    settings: Settings,
    limit: u32,
    slots: Vec<Slot<'a>>,
    /// The completions that the latest wait returned, including those that were not handled before it.
    completions: Vec<cqueue::Entry>,
    handled: usize,
    /// Index of the buffer with the latest received bytes, and the number of these bytes.
    received: Option<(u16, usize)>,
    /// The connection whose receive operation must be submitted again, and whether data may already have arrived.
    rearm: Option<(Token, bool)>,
    /// Connections whose requests are gathered and then sent by one operation.
    gathering: Vec<Token>,
    /// Connections whose [`IoEvent::Sent`] has not been reported yet.
    sent: Vec<Token>,
    /// Whether a receive in this turn filled its buffer or found no free buffer. If so, more data may be in the socket.
    left_unread: bool,
    /// Whether the kernel had unfinished work when the latest wait ended, such as the remaining operations of a chain.
    working: bool,
    /// User data and buffers of sends on connections that have been closed. A buffer is kept until its send completes.
    closed_sends: Vec<(u64, Vec<u8>)>,
    pacer: Pacer,
    failed: Option<std::io::Error>,
    /// Number of the current turn, counted from 1. A turn ends with a wait. By the end of this wait, every send that
    /// was tried in the turn has completed or failed.
    turn: u64,
    /// Buffers of sends that were tried in this turn on connections that have been closed. The kernel may still read
    /// them.
    buffers_of_closed: Vec<Vec<u8>>,
}

#[derive(Default)]
struct Slot<'a> {
    generation: u32,
    connecting: bool,
    receiving: bool,
    /// Whether a send is under way whose completion will be reported.
    sending: bool,
    /// The turn in which a send of `outgoing` was last tried; 0 before the first try.
    tried_in: u64,
    /// Whether a failed send has consumed the socket's error. The next receive then reports the end of the stream,
    /// although the connection was reset.
    broken: bool,
    /// Whether [`IoEvent::Sent`] must be reported once the kernel has accepted all bytes.
    notify_sent: bool,
    /// Number of bytes of the latest send that do not count as accepted by the kernel; see [`LONG_REQUEST`].
    short: usize,
    unsent: SendQueue<'a>,
    /// The buffer of the send under way.
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
        // Of all operations that are used, bind was added to Linux last. A kernel that supports bind supports all of
        // them.
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
        // The operations of a chain must be submitted by the same system call.
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
        // Cancels the operations under way, because each of them would keep its socket open after the descriptor is
        // closed.
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
        // If gathered requests wait for the result of an earlier send, this wait does not block, because the result
        // comes at once.
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
        // The slot may still contain the socket of its previous connection: its close may not have been submitted yet.
        if !self.ring.submission().is_empty() {
            self.submit();
        }
        self.occupy(token, connecting)?;
        let update = self.ring.submitter().register_files_update(token.slot, &[socket.as_raw_fd()]);
        update.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::NOMEM))?;
        Ok(())
    }

    /// Registers a Unix socket that was connected without the ring. If the ring connected it, and the server's accept
    /// queue were full, the attempt would occupy a kernel thread.
    fn adopt_unix_socket(&mut self, token: Token, socket: &OwnedFd) -> Result<(), Errno> {
        self.register(token, socket, true)?;
        self.push(&opcode::Nop::new().build().user_data(user_data(token, OperationKind::Connect)));
        Ok(())
    }

    /// Moves the completions from the ring to `completions`, and ends the turn.
    fn take_completions(&mut self) {
        // If memory is short, the kernel may not have accepted all operations. The turn then goes on.
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
                    // An earlier operation of the chain has failed. That operation's completion has the reason.
                    _ if result == -libc::ECANCELED => None,
                    _ if result < 0 => Some((token, IoEvent::NotEstablished(Errno::from_raw_os_error(-result)))),
                    _ => {
                        // The receive is submitted after the shard has sent its first request.
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
        // SAFETY: the data that the entry points to does not move until the kernel has read it. The chain and the
        // receive buffers live as long as the ring, and shared requests live longer (`'a`). A slot's `outgoing` does
        // not change while its send is under way, nor before the end of the turn in which a send was tried.
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

    /// Submits all operations, and lets the kernel complete operations. If `sleep` is given, waits up to this time for
    /// a completion.
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
        // Closes the sockets now. Otherwise, the kernel would close them only some time after the ring is dropped.
        let submitter = self.ring.submitter();
        let _ = submitter.register_sync_cancel(None, CancelBuilder::any());
        let _ = submitter.unregister_files();
        let _ = submitter.unregister_buf_ring(0);
    }
}

fn as_close(entry: Entry, token: Token) -> Entry {
    entry.flags(Flags::SKIP_SUCCESS).user_data(user_data(token, OperationKind::Close))
}

/// Whether the error is temporary: it ended the wait early, or reports a shortage that ends when operations complete.
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
