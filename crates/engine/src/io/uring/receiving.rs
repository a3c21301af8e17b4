//! How bytes come in by a ring.
//!
//! One receive per connection stays armed (multishot), but for pipelined connections, which gain by taking all that has
//! come in one go when they are ready for it.
//!
//! The armed receive is a *read*: the kernel asks the socket once more whenever one has brought something. A multishot
//! `recv` saves that question where the socket says that it is empty, and with it loses what came meanwhile and wakes
//! nobody again (`io_recv_finish` in io_uring/net.c and `io_poll_check_events` in poll.c; seen on Linux 6.18): a reset
//! right behind a response, of which the next call learned by its timeout, and the last of many small segments.

use super::super::operation::{Kind, user_data};
use super::super::{IoEvent, Token};
use super::Uring;
use super::buffers;
use io_uring::squeue::Flags;
use io_uring::types::Fixed;
use io_uring::{cqueue, opcode};

impl Uring<'_> {
    /// Arms the receive. One of a pipelined connection that is not `eager` waits for the socket to have something before
    /// it tries.
    pub(super) fn receive(&mut self, token: Token, eager: bool) {
        /// `IORING_RECVSEND_POLL_FIRST`.
        const POLL_FIRST: u16 = 1 << 0;
        let Some(slot) = self.get_mut(token) else { return };
        slot.receiving = true;
        let socket = Fixed(token.slot);
        let entry = if self.settings.pipelined {
            let receive = opcode::Recv::new(socket, std::ptr::null_mut(), buffers::SIZE as u32).buf_group(0);
            receive.ioprio(if eager { 0 } else { POLL_FIRST }).build().flags(Flags::BUFFER_SELECT)
        } else {
            // Of the flags, io-uring 0.7.15 sets but one for it.
            opcode::ReadMulti::new(socket, 0, 0).build().flags(Flags::FIXED_FILE)
        };
        self.push(&entry.user_data(user_data(token, Kind::Receive)));
    }

    pub(super) fn rearm_receive(&mut self) {
        if let Some((token, eager)) = self.rearm.take() {
            self.receive(token, eager);
        }
    }

    /// The armed receive has received, or has ended.
    pub(super) fn has_received(&mut self, token: Token, entry: &cqueue::Entry) -> Option<(Token, IoEvent)> {
        let (result, more) = (entry.result(), cqueue::more(entry.flags()));
        match result {
            1.. if !more => self.rearm = Some((token, cqueue::sock_nonempty(entry.flags()))),
            _ if result == -libc::ENOBUFS || result == -libc::EINTR => self.receive(token, true),
            _ => {}
        }
        // The end of the stream comes right behind the bytes before it.
        let ends = |next: &cqueue::Entry| {
            next.user_data() == entry.user_data() && next.result() == 0 && !cqueue::more(next.flags())
        };
        let last = result > 0 && self.completions.get(self.heard).is_some_and(ends);
        if last && let Some(slot) = self.get_mut(token) {
            slot.receiving = false;
        }
        self.received = cqueue::buffer_select(entry.flags()).map(|id| (id, result.max(0) as usize));
        self.left_unread |= result == buffers::SIZE as i32 || result == -libc::ENOBUFS;
        let broken = self.get_mut(token)?.broken;
        match result {
            1.. => Some((token, IoEvent::Received { last })),
            0 if !broken => Some((token, IoEvent::EndOfStream)),
            _ if result == -libc::ENOBUFS || result == -libc::EINTR => None,
            _ => Some((token, IoEvent::Reset)),
        }
    }
}
