//! Requests that were handed over for one connection and that the kernel has not taken yet.

use std::collections::VecDeque;
use std::io::IoSlice;

/// Most requests sent by one call to the kernel.
pub const GATHER: usize = 64;

/// A queue of bytes that are not ours.
#[derive(Debug, Default)]
pub struct Unsent<'a> {
    requests: VecDeque<&'a [u8]>,
    bytes: usize,
}

impl<'a> Unsent<'a> {
    pub fn push(&mut self, request: &'a [u8]) {
        self.bytes += request.len();
        self.requests.push_back(request);
    }

    /// How many bytes there are.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// The first pieces, for a gathering write, and how many there are.
    pub fn pieces(&self) -> ([IoSlice<'a>; GATHER], usize) {
        let mut pieces = [IoSlice::new(&[]); GATHER];
        for (piece, request) in pieces.iter_mut().zip(&self.requests) {
            *piece = IoSlice::new(request);
        }
        (pieces, self.requests.len().min(GATHER))
    }

    /// Moves the first pieces into `buffer`, until it holds `enough` bytes.
    pub fn take_into(&mut self, buffer: &mut Vec<u8>, enough: usize) {
        while buffer.len() < enough
            && let Some(request) = self.requests.pop_front()
        {
            self.bytes -= request.len();
            buffer.extend_from_slice(request);
        }
    }

    /// The kernel took `n` bytes.
    pub fn took(&mut self, mut n: usize) {
        self.bytes -= n.min(self.bytes);
        while let Some(first) = self.requests.front_mut() {
            if n < first.len() {
                *first = &first[n..];
                return;
            }
            n -= first.len();
            self.requests.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_taken_is_gone_and_the_rest_stays_in_order() {
        let mut unsent = Unsent::default();
        for request in ["abc", "de", "fgh"] {
            unsent.push(request.as_bytes());
        }
        unsent.took(4);
        assert_eq!(unsent.bytes(), 4);
        let (pieces, n) = unsent.pieces();
        assert_eq!(pieces[..n].iter().map(|p| p.len()).collect::<Vec<_>>(), [1, 3]);
        let mut rest = Vec::new();
        unsent.take_into(&mut rest, 1);
        assert_eq!(rest, b"e");
        unsent.take_into(&mut rest, 100);
        assert_eq!(rest, b"efgh");
        assert!(unsent.is_empty());
    }
}
