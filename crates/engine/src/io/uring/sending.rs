//! Sends data with io_uring.
//!
//! Most sends succeed at once, and a send that succeeds has no completion. A send from a slot's own buffer is *tried*
//! first: it completes or fails while it is submitted, so that the buffer can be reused after the turn that submits it.
//! If the socket does not have enough room, a second operation sends the rest and waits for room.

use super::super::{IoEvent, Token};
use super::operations::{OperationKind, parse_user_data, user_data};
use super::{Slot, Uring};
use io_uring::squeue::{Entry, Flags};
use io_uring::types::Fixed;
use io_uring::{cqueue, opcode};

/// Number of bytes at the beginning of a request that count as accepted by the kernel as soon as they are sent, because
/// an empty socket has room for them. The rest of a longer request counts as accepted when the send has completed.
pub(super) const LONG_REQUEST: usize = 4096;

impl Slot<'_> {
    /// Whether `outgoing` is not in use, so that bytes can be sent from it at once.
    pub(super) fn is_free(&self, turn: u64) -> bool {
        !self.sending && self.unsent.is_empty() && self.tried_in < turn
    }
}

impl Uring<'_> {
    /// Sends the gathered requests. A connection whose next send must wait for a later turn stays in the list.
    pub(super) fn send_gathered(&mut self) {
        let mut kept = 0;
        for nth in 0..self.gathering.len() {
            let token = self.gathering[nth];
            if !self.send_unsent(token) {
                self.gathering[kept] = token;
                kept += 1;
            }
        }
        self.gathering.truncate(kept);
    }

    /// Sends the gathered requests of a connection. Only one send is under way at a time, because a later send could
    /// overtake an earlier one. Returns false if the caller must call again in a later turn. Otherwise, nothing is left
    /// to send, or the handler of the next completion continues.
    fn send_unsent(&mut self, token: Token) -> bool {
        let turn = self.turn;
        let Some(slot) = self.get_mut(token) else { return true };
        if slot.sending || slot.unsent.is_empty() {
            return true;
        }
        if slot.tried_in == turn {
            return false;
        }
        slot.outgoing.clear();
        slot.unsent.drain_into(&mut slot.outgoing, LONG_REQUEST);
        if slot.outgoing.len() > LONG_REQUEST {
            slot.short = slot.outgoing.len() - LONG_REQUEST;
            self.send_outgoing(token);
            return true;
        }
        let is_last = slot.unsent.is_empty();
        let notify_sent = is_last && std::mem::take(&mut slot.notify_sent);
        self.try_to_send(token);
        self.sent.extend(notify_sent.then_some(token));
        is_last
    }

    /// Tries to send `outgoing`, without waiting for room in the socket.
    pub(super) fn try_to_send(&mut self, token: Token) {
        let turn = self.turn;
        let Some(slot) = self.get_mut(token) else { return };
        slot.tried_in = turn;
        let flags = libc::MSG_NOSIGNAL | libc::MSG_WAITALL | libc::MSG_DONTWAIT;
        let entry = send(token, slot.outgoing.as_ptr(), slot.outgoing.len(), flags).flags(Flags::SKIP_SUCCESS);
        self.push(&entry);
    }

    /// Sends `outgoing` completely, and waits for room in the socket if necessary.
    fn send_outgoing(&mut self, token: Token) {
        let Some(slot) = self.get_mut(token) else { return };
        slot.sending = true;
        let entry = send(token, slot.outgoing.as_ptr(), slot.outgoing.len(), libc::MSG_NOSIGNAL | libc::MSG_WAITALL);
        self.push(&entry);
    }

    /// Whether this is the completion of a tried send for which the socket did not have enough room. If so, the rest is
    /// sent by an operation that waits for room.
    pub(super) fn is_failed_try(&mut self, entry: &cqueue::Entry) -> bool {
        let (token, kind) = parse_user_data(entry.user_data());
        let result = entry.result();
        if kind != OperationKind::Send {
            return false;
        }
        let turn = self.turn;
        let Some(slot) = self.get_mut(token) else { return false };
        if slot.sending || slot.tried_in != turn || (result < 0 && result != -libc::EAGAIN) {
            return false;
        }
        slot.outgoing.drain(..slot.outgoing.len().min(result.max(0) as usize));
        slot.short = slot.outgoing.len();
        self.send_outgoing(token);
        true
    }

    /// Handles the completion of a send that waited for room.
    pub(super) fn send_completed(&mut self, token: Token, result: i32) -> Option<(Token, IoEvent)> {
        let slot = self.get_mut(token)?;
        slot.sending = false;
        // EPIPE means that the server had ended its stream before it reset the connection, so the receive reports the
        // true end.
        slot.broken |= result < 0 && result != -libc::EPIPE;
        let sent = result.max(0) as usize;
        let gathered = slot.outgoing.len();
        slot.outgoing.clear();
        slot.short = if gathered > 0 {
            gathered.saturating_sub(sent)
        } else if slot.short > 0 {
            (LONG_REQUEST + slot.short).saturating_sub(sent)
        } else {
            // The send of a short request failed. None of it was sent, so all of its bytes count as unsent.
            usize::MAX
        };
        if slot.short > 0 {
            // Not all bytes were sent, so the connection has ended. The receive operation reports the end after all
            // earlier data.
            return None;
        }
        if !slot.unsent.is_empty() {
            self.gathering.push(token);
            return None;
        }
        std::mem::take(&mut slot.notify_sent).then_some((token, IoEvent::Sent))
    }
}

/// A send operation. With MSG_WAITALL alone, the kernel waits for room in the socket until all bytes are sent. With
/// MSG_DONTWAIT as well, the operation fails instead of waiting.
pub(super) fn send(token: Token, bytes: *const u8, length: usize, flags: i32) -> Entry {
    let entry = opcode::Send::new(Fixed(token.slot), bytes, length as u32).flags(flags);
    entry.build().user_data(user_data(token, OperationKind::Send))
}
