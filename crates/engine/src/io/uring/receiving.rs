//! How bytes come in by a ring.
//!
//! One receive per connection stays armed (multishot), but for pipelined connections, which gain by taking all that has
//! come in one go when they are ready for it.
//!
//! An armed receive can miss that bytes have come. The kernel counts the times that a socket wakes the receive while it
//! is at work. From 128 on it only sets a flag (`io_poll_get_ownership_slowpath` in io_uring/poll.c), and a flag that is
//! set after it was last looked at is not looked at again when the work is done (seen on Linux 6.18, by its trace). If
//! these were the last bytes, such as a response's end, nothing wakes the receive any more. Hence whoever has received
//! as much as may take 128 wakes [looks](Uring::look) once more when the socket seems empty.

use super::super::operation::{Kind, user_data};
use super::super::{Happened, Token};
use super::Uring;
use super::buffers;
use io_uring::squeue::Flags;
use io_uring::types::Fixed;
use io_uring::{cqueue, opcode};

/// Fewest bytes that take 128 wakes, of the smallest segments that TCP is to expect (RFC 9293, 3.7.1: 536 bytes).
const MAY_MISS: usize = 128 * 536;

impl Uring<'_> {
    /// Arms the receive; one that is not `eager` waits for the socket to have something before it tries.
    pub(super) fn receive(&mut self, token: Token, eager: bool) {
        /// `IORING_RECVSEND_POLL_FIRST` and `IORING_RECV_MULTISHOT`.
        const POLL_FIRST: u16 = 1 << 0;
        const MULTISHOT: u16 = 1 << 1;
        let pipelined = self.settings.pipelined;
        let Some(slot) = self.get_mut(token) else { return };
        slot.receiving = true;
        slot.run = 0;
        let (size, shots) = if pipelined { (buffers::SIZE as u32, 0) } else { (0, MULTISHOT) };
        let how = shots | if eager { 0 } else { POLL_FIRST };
        let receive = opcode::Recv::new(Fixed(token.slot), std::ptr::null_mut(), size).buf_group(0).ioprio(how);
        let entry = receive.build().flags(Flags::BUFFER_SELECT);
        self.push(&entry.user_data(user_data(token, Kind::Receive)));
    }

    pub(super) fn rearm_receive(&mut self) {
        if let Some((token, eager)) = self.rearm.take() {
            self.receive(token, eager);
        }
    }

    /// Receives what there is, beside the armed receive. Of the two, one is done before the other begins, and the ring
    /// tells of them in that order.
    fn look(&mut self, token: Token) {
        let receive = opcode::Recv::new(Fixed(token.slot), std::ptr::null_mut(), buffers::SIZE as u32).buf_group(0);
        let entry = receive.flags(libc::MSG_DONTWAIT).build().flags(Flags::BUFFER_SELECT);
        self.push(&entry.user_data(user_data(token, Kind::Look)));
    }

    /// The armed receive has received, or has ended.
    pub(super) fn has_received(&mut self, token: Token, entry: &cqueue::Entry) -> Option<(Token, Happened)> {
        let (result, more) = (entry.result(), cqueue::more(entry.flags()));
        match result {
            1.. if !more => self.rearm = Some((token, cqueue::sock_nonempty(entry.flags()))),
            1.. => self.look_after(token, entry),
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
        self.taken_in(token, entry, last)
    }

    /// What a look has found.
    pub(super) fn has_looked(&mut self, token: Token, entry: &cqueue::Entry) -> Option<(Token, Happened)> {
        match entry.result() {
            1.. if cqueue::sock_nonempty(entry.flags()) => self.look(token),
            error if error == -libc::ENOBUFS || error == -libc::EINTR => self.look(token),
            error if error == -libc::EAGAIN => return None,
            _ => {}
        }
        self.taken_in(token, entry, false)
    }

    /// Looks once more when the socket seems empty after so much that its bytes may be missed.
    fn look_after(&mut self, token: Token, entry: &cqueue::Entry) {
        let Some(slot) = self.get_mut(token) else { return };
        slot.run += entry.result().max(0) as usize;
        if !cqueue::sock_nonempty(entry.flags()) && std::mem::take(&mut slot.run) >= MAY_MISS {
            self.look(token);
        }
    }

    /// What a receive says to whoever has the connection.
    fn taken_in(&mut self, token: Token, entry: &cqueue::Entry, last: bool) -> Option<(Token, Happened)> {
        let result = entry.result();
        self.received = cqueue::buffer_select(entry.flags()).map(|id| (id, result.max(0) as usize));
        self.left_unread |= result == buffers::SIZE as i32 || result == -libc::ENOBUFS;
        let broken = self.get_mut(token)?.broken;
        match result {
            1.. => Some((token, Happened::Received { last })),
            0 if !broken => Some((token, Happened::EndOfStream)),
            _ if result == -libc::ENOBUFS || result == -libc::EINTR => None,
            _ => Some((token, Happened::Reset)),
        }
    }
}
