//! The queue of a connection's requests that the kernel has not accepted yet.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::io::IoSlice;

/// Maximum number of requests in one gathering write (`writev`).
pub const MAX_IO_SLICES: usize = 64;

/// A queue of requests to send. A request is either borrowed, if many calls share it, or owned by the queue.
#[derive(Debug, Default)]
pub struct SendQueue<'a> {
    requests: VecDeque<Cow<'a, [u8]>>,
    /// Number of bytes of the first request that the kernel has accepted.
    taken: usize,
    bytes: usize,
}

impl<'a> SendQueue<'a> {
    /// Adds a request at the end of the queue.
    pub fn push(&mut self, request: Cow<'a, [u8]>) {
        self.bytes += request.len();
        self.requests.push_back(request);
    }

    /// Total number of unsent bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether the kernel has accepted all bytes.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// The first requests of the queue as arguments of a gathering write (`writev`), and their number.
    pub fn io_slices(&self) -> ([IoSlice<'_>; MAX_IO_SLICES], usize) {
        let mut pieces = [IoSlice::new(&[]); MAX_IO_SLICES];
        let mut taken = self.taken;
        for (piece, request) in pieces.iter_mut().zip(&self.requests) {
            *piece = IoSlice::new(&request[std::mem::take(&mut taken)..]);
        }
        (pieces, self.requests.len().min(MAX_IO_SLICES))
    }

    /// Moves whole requests from the front of the queue into `buffer` until it contains at least `enough` bytes.
    pub fn drain_into(&mut self, buffer: &mut Vec<u8>, enough: usize) {
        while buffer.len() < enough
            && let Some(request) = self.requests.pop_front()
        {
            let left = &request[std::mem::take(&mut self.taken)..];
            self.bytes -= left.len();
            buffer.extend_from_slice(left);
        }
    }

    /// Removes the first `n` bytes, which the kernel has accepted.
    pub fn remove(&mut self, n: usize) {
        self.bytes -= n.min(self.bytes);
        self.taken += n;
        while let Some(first) = self.requests.front()
            && self.taken >= first.len()
        {
            self.taken -= first.len();
            self.requests.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removed_bytes_are_gone_and_the_rest_stays_in_order() {
        let mut unsent = SendQueue::default();
        for request in ["abc", "de", "fgh"] {
            unsent.push(request.as_bytes().into());
            unsent.push(Vec::new().into());
        }
        unsent.remove(1);
        unsent.remove(3);
        assert_eq!(unsent.bytes(), 4);
        let (pieces, n) = unsent.io_slices();
        assert_eq!(pieces[..n].iter().flat_map(|piece| piece.to_vec()).collect::<Vec<u8>>(), b"efgh");
        let mut rest = Vec::new();
        unsent.drain_into(&mut rest, 1);
        assert_eq!(rest, b"e");
        unsent.push(b"ij".to_vec().into());
        unsent.drain_into(&mut rest, 100);
        assert_eq!(rest, b"efghij");
        assert!(unsent.is_empty());
        unsent.push(b"k".to_vec().into());
        unsent.remove(1);
        assert_eq!((unsent.is_empty(), unsent.io_slices().1), (true, 0));
    }
}
