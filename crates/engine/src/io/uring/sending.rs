//! Sends data with io_uring.
//!
//! Most sends succeed at once. Bytes are first sent by a non-blocking operation, which has no completion if it
//! succeeds. It completes or fails while it is submitted, so its buffer can be reused in the next iteration of the
//! event loop. If the socket has too little room, a blocking operation sends the rest.

use super::super::{IoEvent, Token};
use super::operations::{OperationKind, parse_user_data, user_data};
use super::{Slot, Uring};
use io_uring::squeue::{Entry, Flags};
use io_uring::types::Fixed;
use io_uring::{cqueue, opcode};

/// Number of bytes at the beginning of a request that count as accepted by the kernel as soon as they are sent, because
/// an empty socket has room for them. The rest of a longer request counts as accepted when its send has completed.
pub(super) const LONG_REQUEST: usize = 4096;

impl Slot<'_> {
    /// Whether no send uses `outgoing` and no request waits, so that bytes can be sent at once.
    pub(super) fn is_free(&self, turn: u64) -> bool {
        !self.sending && self.unsent.is_empty() && self.tried_in < turn
    }
}

impl Uring<'_> {
    /// Sends the gathered requests. A connection stays in the list if its next send must wait until the next iteration
    /// of the event loop.
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
    /// overtake an earlier one. Returns false if requests must wait until the next iteration of the event loop.
    /// Otherwise, all are sent, or the handler of the next completion sends the rest.
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

    /// Sends `outgoing` by a non-blocking operation.
    pub(super) fn try_to_send(&mut self, token: Token) {
        let turn = self.turn;
        let Some(slot) = self.get_mut(token) else { return };
        slot.tried_in = turn;
        let flags = libc::MSG_NOSIGNAL | libc::MSG_WAITALL | libc::MSG_DONTWAIT;
        let entry = send(token, slot.outgoing.as_ptr(), slot.outgoing.len(), flags).flags(Flags::SKIP_SUCCESS);
        self.push(&entry);
    }

    /// Sends `outgoing` by a blocking operation, which waits for room in the socket.
    fn send_outgoing(&mut self, token: Token) {
        let Some(slot) = self.get_mut(token) else { return };
        slot.sending = true;
        let entry = send(token, slot.outgoing.as_ptr(), slot.outgoing.len(), libc::MSG_NOSIGNAL | libc::MSG_WAITALL);
        self.push(&entry);
    }

    /// Whether this is the completion of a non-blocking send for which the socket had too little room. If so, sends the
    /// rest by a blocking operation.
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

    /// Handles the completion of a blocking send.
    pub(super) fn send_completed(&mut self, token: Token, result: i32) -> Option<(Token, IoEvent)> {
        let slot = self.get_mut(token)?;
        slot.sending = false;
        // EPIPE means that the server ended its stream before it reset the connection, so the receive operation reports
        // the correct end.
        slot.broken |= result < 0 && result != -libc::EPIPE;
        let sent = result.max(0) as usize;
        let gathered = slot.outgoing.len();
        slot.outgoing.clear();
        slot.short = if gathered > 0 {
            gathered.saturating_sub(sent)
        } else if slot.short > 0 {
            (LONG_REQUEST + slot.short).saturating_sub(sent)
        } else {
            // A non-blocking send of a short request failed. All bytes count as unsent.
            usize::MAX
        };
        if slot.short > 0 {
            // Not all bytes were sent, so the connection has ended. The receive operation reports the end after all
            // data that arrived before.
            return None;
        }
        if !slot.unsent.is_empty() {
            self.gathering.push(token);
            return None;
        }
        std::mem::take(&mut slot.notify_sent).then_some((token, IoEvent::Sent))
    }
}

/// A send operation. With MSG_WAITALL alone, it waits for room in the socket until all bytes are sent. With
/// MSG_DONTWAIT as well, it fails instead of waiting.
pub(super) fn send(token: Token, bytes: *const u8, length: usize, flags: i32) -> Entry {
    let entry = opcode::Send::new(Fixed(token.slot), bytes, length as u32).flags(flags);
    entry.build().user_data(user_data(token, OperationKind::Send))
}
