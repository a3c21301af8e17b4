//! How requests go out by a ring.
//!
//! A send says nothing when it succeeds, as it nearly always does at once. What is sent from a slot's own buffer is
//! *tried* first: that send takes place while it is submitted or fails, so that its bytes are ours again when the
//! turn that submits it is over. Only what fails, for want of room in the socket, is sent by an operation that waits.

use super::super::operation::{Kind, of_user_data, user_data};
use super::super::{IoEvent, Token};
use super::{Slot, Uring};
use io_uring::squeue::{Entry, Flags};
use io_uring::types::Fixed;
use io_uring::{cqueue, opcode};

/// So much of a request is accounted for when it is handed over, as an empty socket takes that much; the rest when it
/// has gone.
pub(super) const LONG_REQUEST: usize = 4096;

impl Slot<'_> {
    /// Whether what is handed over can be sent right away, and `outgoing` be used for it.
    pub(super) fn is_free(&self, turn: u64) -> bool {
        !self.sending && self.unsent.is_empty() && self.tried_in < turn
    }
}

impl Uring<'_> {
    /// Sends what has been gathered for connections, and keeps those with more to send.
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

    /// Sends what has been gathered for a connection. One send at a time, or they could overtake one another. Returns
    /// whether nothing is left to be asked for: a send under way goes on with the rest by itself.
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
        slot.unsent.take_into(&mut slot.outgoing, LONG_REQUEST);
        if slot.outgoing.len() > LONG_REQUEST {
            slot.short = slot.outgoing.len() - LONG_REQUEST;
            self.send_outgoing(token);
            return true;
        }
        let over = slot.unsent.is_empty();
        let tell = over && std::mem::take(&mut slot.tell);
        self.try_to_send(token);
        self.sent.extend(tell.then_some(token));
        over
    }

    /// Sends `outgoing` at once or not at all.
    pub(super) fn try_to_send(&mut self, token: Token) {
        let turn = self.turn;
        let Some(slot) = self.get_mut(token) else { return };
        slot.tried_in = turn;
        let flags = libc::MSG_NOSIGNAL | libc::MSG_WAITALL | libc::MSG_DONTWAIT;
        let entry = send(token, slot.outgoing.as_ptr(), slot.outgoing.len(), flags).flags(Flags::SKIP_SUCCESS);
        self.push(&entry);
    }

    /// Sends `outgoing` however long that takes.
    fn send_outgoing(&mut self, token: Token) {
        let Some(slot) = self.get_mut(token) else { return };
        slot.sending = true;
        let entry = send(token, slot.outgoing.as_ptr(), slot.outgoing.len(), libc::MSG_NOSIGNAL | libc::MSG_WAITALL);
        self.push(&entry);
    }

    /// Whether this says that a socket did not have room for all that was tried to send: what is left is sent as it
    /// has.
    pub(super) fn tried_in_vain(&mut self, entry: &cqueue::Entry) -> bool {
        let ((token, kind), result) = (of_user_data(entry.user_data()), entry.result());
        if kind != Kind::Send {
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

    /// A send that says how it ended has ended.
    pub(super) fn sent_all(&mut self, token: Token, result: i32) -> Option<(Token, IoEvent)> {
        let slot = self.get_mut(token)?;
        slot.sending = false;
        // EPIPE is what a reset leaves when the server had ended the stream before it.
        slot.broken |= result < 0 && result != -libc::EPIPE;
        let (sent, gathered) = (result.max(0) as usize, slot.outgoing.len());
        slot.outgoing.clear();
        slot.short = if gathered > 0 {
            gathered.saturating_sub(sent)
        } else if slot.short > 0 {
            (LONG_REQUEST + slot.short).saturating_sub(sent)
        } else {
            // A short request that has failed: nothing of it has gone.
            usize::MAX
        };
        if slot.short > 0 {
            // What the server may have sent before it stopped reading, the receive says.
            return None;
        }
        if !slot.unsent.is_empty() {
            self.gathering.push(token);
            return None;
        }
        std::mem::take(&mut slot.tell).then_some((token, IoEvent::Sent))
    }
}

/// MSG_WAITALL: a send that the socket's buffer does not hold at once goes on by itself; with MSG_DONTWAIT, it fails.
pub(super) fn send(token: Token, bytes: *const u8, length: usize, flags: i32) -> Entry {
    let entry = opcode::Send::new(Fixed(token.slot), bytes, length as u32).flags(flags);
    entry.build().user_data(user_data(token, Kind::Send))
}
