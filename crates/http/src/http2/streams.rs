//! The open streams of a connection. A stream is found by its number without a search.
//!
//! The low bits of a stream's number are its index in a table. A new stream gets the next number whose index is free.
//! Numbers may be skipped (RFC 9113 §5.1.1), so a stream that stays open blocks only its own index. The table is at
//! least twice as long as the number of streams, so that few numbers are skipped.

use crate::ParseError;
use std::sync::Arc;

/// The highest stream number that HTTP/2 allows.
const MAX_STREAM_ID: u32 = 0x7fff_ffff;

/// One stream: a request and its response in progress, and the value that the caller stored with it.
#[derive(Debug)]
pub(super) struct Stream<T> {
    /// The number that identifies the stream on its connection.
    pub(super) id: u32,
    /// The value that the caller stored with the stream.
    pub(super) value: T,
    /// Whether the request's method is HEAD.
    pub(super) is_head: bool,
    /// Offset of the stream's first byte among all bytes that this side sends.
    pub(super) position: u64,
    /// Number of bytes that were sent on this stream, including frame headers.
    pub(super) written_bytes: u64,
    /// The part of the request's body that has not been sent.
    pub(super) body: Option<Outgoing>,
    /// Whether the body waits for `100 Continue` (RFC 9110 §10.1.1).
    pub(super) waits: bool,
    /// Send window of the stream: number of bytes of the request's body that the server accepts now.
    pub(super) send_window: i64,
    /// Receive window of the stream: number of bytes of the response's body that the server may send now.
    pub(super) receive_window: u32,
    /// Number of bytes of the stream's DATA frames received since its last WINDOW_UPDATE.
    pub(super) received_since_update: u32,
    /// The status in the final head of the response, once it has arrived.
    pub(super) status: Option<u16>,
    /// The value of `content-length` in the response, if present.
    pub(super) content_length: Option<u64>,
    /// Number of bytes of the response's heads so far.
    pub(super) head_bytes: u64,
    /// Number of bytes of the response's body so far.
    pub(super) body_bytes: u64,
}

/// The part of a request's body that has not been sent.
#[derive(Debug)]
pub(super) enum Outgoing {
    /// The whole body is stored here, with the offset of the first byte that has not been sent.
    Held(Arc<[u8]>, usize),
    /// The caller supplies the body in pieces. These are the numbers of bytes that were sent and that are left.
    Streamed { sent: u64, left: u64 },
}

impl<T> Stream<T> {
    /// Whether the body waits for `100 Continue`. The wait ends once the final head has arrived.
    pub(super) fn waits(&self) -> bool {
        self.waits && self.status.is_none()
    }

    /// Checks that the response's body has the length that its Content-Length states.
    pub(super) fn check_length(&self) -> Result<(), ParseError> {
        let has_none = self.is_head || matches!(self.status, Some(204 | 304));
        match self.content_length {
            Some(length) if !has_none && length != self.body_bytes => {
                Err(ParseError::BadResponse("the length of its body differs from its Content-Length"))
            }
            _ if has_none && self.body_bytes > 0 => {
                Err(ParseError::BadResponse("it has a body, which is not allowed here"))
            }
            _ => Ok(()),
        }
    }
}

/// All streams of a connection.
#[derive(Debug)]
pub(super) struct Streams<T> {
    /// The table of streams. Its length is a power of two.
    places: Vec<Option<Stream<T>>>,
    open: usize,
    next: u32,
}

impl<T> Streams<T> {
    pub(super) fn new() -> Streams<T> {
        Streams { places: Vec::new(), open: 0, next: 1 }
    }

    /// Number of open streams.
    pub(super) fn len(&self) -> usize {
        self.open
    }

    /// Whether there are enough numbers left to open another stream.
    pub(super) fn has_free_numbers(&self) -> bool {
        // Opening a stream may skip numbers, so streams must be refused before the highest number is reached.
        self.next < MAX_STREAM_ID - 4 * (self.places.len() as u32 + 2)
    }

    /// Whether this side has opened a stream with this number, even if the stream has been closed since.
    pub(super) fn was_opened(&self, id: u32) -> bool {
        id % 2 == 1 && id < self.next
    }

    /// Makes room for another stream, and returns the number that this stream must have.
    pub(super) fn next(&mut self) -> u32 {
        if self.places.len() < 2 * (self.open + 1) {
            self.grow();
        }
        while self.places[self.place(self.next)].is_some() {
            self.next += 2;
        }
        self.next
    }

    /// Adds a stream with the number that [`next`](Self::next) returned.
    pub(super) fn insert(&mut self, stream: Stream<T>) {
        let place = self.place(stream.id);
        self.next = stream.id + 2;
        self.open += 1;
        self.places[place] = Some(stream);
    }

    pub(super) fn get(&self, id: u32) -> Option<&Stream<T>> {
        self.places.get(self.place(id))?.as_ref().filter(|stream| stream.id == id)
    }

    pub(super) fn get_mut(&mut self, id: u32) -> Option<&mut Stream<T>> {
        let place = self.place(id);
        self.places.get_mut(place)?.as_mut().filter(|stream| stream.id == id)
    }

    pub(super) fn remove(&mut self, id: u32) -> Option<Stream<T>> {
        let place = self.place(id);
        let stream = self.places.get_mut(place)?.take_if(|stream| stream.id == id)?;
        self.open -= 1;
        Some(stream)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Stream<T>> {
        self.places.iter_mut().flatten()
    }

    /// The lowest number of an open stream above `id`.
    pub(super) fn first_above(&self, id: u32) -> Option<u32> {
        self.places.iter().flatten().map(|stream| stream.id).filter(|other| *other > id).min()
    }

    /// Removes all streams, and returns them sorted by number.
    pub(super) fn take_streams(&mut self) -> Vec<Stream<T>> {
        let mut all: Vec<Stream<T>> = self.places.drain(..).flatten().collect();
        all.sort_unstable_by_key(|stream| stream.id);
        self.open = 0;
        all
    }

    /// Doubles the length of the table. Two streams never get the same index: their numbers differ in the low bits that
    /// were used before, so they also differ in the bits used now.
    fn grow(&mut self) {
        let new_len = (2 * self.places.len()).max(2);
        let old = std::mem::take(&mut self.places);
        self.places.resize_with(new_len, || None);
        for stream in old.into_iter().flatten() {
            let place = self.place(stream.id);
            self.places[place] = Some(stream);
        }
    }

    fn place(&self, id: u32) -> usize {
        (id >> 1) as usize & self.places.len().wrapping_sub(1)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    fn insert(streams: &mut Streams<u32>) -> u32 {
        let id = streams.next();
        streams.insert(Stream {
            id,
            value: id,
            is_head: false,
            position: 0,
            written_bytes: 0,
            body: None,
            waits: false,
            send_window: 0,
            receive_window: 0,
            received_since_update: 0,
            status: None,
            content_length: None,
            head_bytes: 0,
            body_bytes: 0,
        });
        id
    }

    #[test]
    fn streams_are_found_by_their_numbers_alone() {
        let mut streams = Streams::new();
        assert!(streams.get(1).is_none() && streams.remove(1).is_none() && streams.get_mut(0).is_none());
        let ids: Vec<u32> = (0..100).map(|_| insert(&mut streams)).collect();
        assert!(ids.is_sorted() && ids.iter().all(|id| id % 2 == 1));
        for id in &ids {
            assert_eq!(streams.get(*id).map(|stream| stream.value), Some(*id));
            assert!(streams.get(id + 1).is_none() && streams.get(id + 2 * 256).is_none());
        }
        assert_eq!(streams.remove(ids[50]).map(|stream| stream.value), Some(ids[50]));
        assert!(streams.get(ids[50]).is_none() && streams.len() == 99);
        assert_eq!(streams.first_above(ids[49]), Some(ids[51]));
        assert_eq!(streams.take_streams().iter().map(|stream| stream.id).collect::<Vec<_>>().len(), 99);
        assert!(streams.len() == 0 && streams.get(1).is_none() && streams.first_above(0).is_none());
    }

    #[test]
    fn a_stream_that_stays_open_blocks_only_its_own_place() {
        let mut streams = Streams::new();
        let old = insert(&mut streams);
        let mut ids = vec![insert(&mut streams)];
        for _ in 0..1000 {
            let latest = *ids.last().unwrap();
            assert!(streams.remove(latest).is_some());
            ids.push(insert(&mut streams));
            assert!(streams.was_opened(latest) && !streams.was_opened(latest + 1) && streams.get(old).is_some());
        }
        assert!(ids.is_sorted() && *ids.last().unwrap() < 4 * 1000, "few numbers are skipped");
        assert!(streams.places.len() <= 4);
    }

    #[test]
    fn stream_numbers_are_exhausted() {
        let mut streams = Streams::new();
        insert(&mut streams);
        streams.next = MAX_STREAM_ID - 60;
        assert!(streams.has_free_numbers());
        streams.next = MAX_STREAM_ID - 10;
        assert!(!streams.has_free_numbers());
    }
}
