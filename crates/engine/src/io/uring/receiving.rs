//! Receives data with io_uring.
//!
//! Without pipelining, one receive operation per connection stays active for several receptions (multishot). With
//! pipelining, each receive operation ends after one reception. The shard submits the next one when it is ready for
//! more, and then receives all responses that have arrived at once, which is faster.
//!
//! The multishot operation is a *read*: after each success, the kernel tries the socket once more. A multishot `recv`
//! skips this attempt when the socket reports that it is empty. It then misses data that arrives in the meantime, and
//! is not woken again (`io_recv_finish` in io_uring/net.c and `io_poll_check_events` in poll.c; observed on Linux
//! 6.18). For example, it missed a reset directly after a response, so the next call timed out. It also missed the last
//! of many small segments.

use super::super::{IoEvent, Token};
use super::Uring;
use super::buffers;
use super::operations::{OperationKind, user_data};
use io_uring::squeue::Flags;
use io_uring::types::Fixed;
use io_uring::{cqueue, opcode};

impl Uring<'_> {
    /// Starts a receive operation on a connection. With pipelining, `eager` says whether to try to receive at once or
    /// to wait until the socket is readable.
    pub(super) fn receive(&mut self, token: Token, eager: bool) {
        /// The kernel's `IORING_RECVSEND_POLL_FIRST`.
        const POLL_FIRST: u16 = 1 << 0;
        let Some(slot) = self.get_mut(token) else { return };
        slot.receiving = true;
        let socket = Fixed(token.slot);
        let entry = if self.settings.pipelined {
            let receive = opcode::Recv::new(socket, std::ptr::null_mut(), buffers::BUFFER_BYTES as u32).buf_group(0);
            receive.ioprio(if eager { 0 } else { POLL_FIRST }).build().flags(Flags::BUFFER_SELECT)
        } else {
            // Version 0.7.15 of the io-uring crate does not set this flag for `ReadMulti`.
            opcode::ReadMulti::new(socket, 0, 0).build().flags(Flags::FIXED_FILE)
        };
        self.push(&entry.user_data(user_data(token, OperationKind::Receive)));
    }

    /// Submits the receive operation of the connection in `rearm`, if any.
    pub(super) fn rearm_receive(&mut self) {
        if let Some((token, eager)) = self.rearm.take() {
            self.receive(token, eager);
        }
    }

    /// Handles a completion of a receive operation: bytes were received, or the operation has ended.
    pub(super) fn receive_completed(&mut self, token: Token, entry: &cqueue::Entry) -> Option<(Token, IoEvent)> {
        let result = entry.result();
        let more = cqueue::more(entry.flags());
        match result {
            1.. if !more => self.rearm = Some((token, cqueue::sock_nonempty(entry.flags()))),
            _ if result == -libc::ENOBUFS || result == -libc::EINTR => self.receive(token, true),
            _ => {}
        }
        // If the server has closed its side, the completion for the end of the stream directly follows that of the last
        // bytes.
        let is_end = |next: &cqueue::Entry| {
            next.user_data() == entry.user_data() && next.result() == 0 && !cqueue::more(next.flags())
        };
        let last = result > 0 && self.completions.get(self.handled).is_some_and(is_end);
        if last && let Some(slot) = self.get_mut(token) {
            slot.receiving = false;
        }
        self.received = cqueue::buffer_select(entry.flags()).map(|id| (id, result.max(0) as usize));
        self.left_unread |= result == buffers::BUFFER_BYTES as i32 || result == -libc::ENOBUFS;
        let broken = self.get_mut(token)?.broken;
        match result {
            1.. => Some((token, IoEvent::Received { last })),
            0 if !broken => Some((token, IoEvent::EndOfStream)),
            _ if result == -libc::ENOBUFS || result == -libc::EINTR => None,
            _ => Some((token, IoEvent::Reset)),
        }
    }
}
