//! The streams that are open on a connection, found by their number without a search.
//!
//! A stream's place is the low bits of its number. A new stream takes the next number whose place is free: numbers
//! may be left out (RFC 9113 §5.1.1), and so one stream that stays open keeps no place but its own. The places are at
//! least twice as many as the streams, so that few are.

use crate::ParseError;
use std::sync::Arc;

/// The highest number of a stream.
const LAST: u32 = 0x7fff_ffff;

/// One stream: a request on its way and its answer, and whatever its user wants kept with it.
#[derive(Debug)]
pub(super) struct Stream<T> {
    pub(super) id: u32,
    pub(super) value: T,
    pub(super) is_head: bool,
    /// Where in all that this side sends its first byte stands, and how many bytes of it there are so far.
    pub(super) position: u64,
    pub(super) written: u64,
    /// What of the request's body could not be sent yet.
    pub(super) body: Option<Outgoing>,
    /// Whether it waits until the server asks for it (RFC 9110 §10.1.1).
    pub(super) waits: bool,
    /// How much of a body the server would take now.
    pub(super) send_window: i64,
    /// How much of one this side would, and what it has taken since it said so.
    pub(super) receive_window: u32,
    pub(super) taken: u32,
    /// Of the final head, once it is there.
    pub(super) status: Option<u16>,
    pub(super) content_length: Option<u64>,
    pub(super) head_bytes: u64,
    pub(super) body_bytes: u64,
}

/// The body of a request on its way.
#[derive(Debug)]
pub(super) enum Outgoing {
    /// It is here; from this offset on it is to be sent.
    Held(Arc<[u8]>, usize),
    /// It comes in pieces, of which so many bytes in all are there and so many are still to come.
    Streamed { sent: u64, left: u64 },
}

impl<T> Stream<T> {
    /// Whether the body waits until the server asks for it, which it does not once it has answered.
    pub(super) fn waits(&self) -> bool {
        self.waits && self.status.is_none()
    }

    /// Whether the body has the length that its head has said.
    pub(super) fn check_length(&self) -> Result<(), ParseError> {
        let has_none = self.is_head || matches!(self.status, Some(204 | 304));
        match self.content_length {
            Some(length) if !has_none && length != self.body_bytes => {
                Err(ParseError::BadAnswer("its body is not as long as its Content-Length says"))
            }
            _ if has_none && self.body_bytes > 0 => Err(ParseError::BadAnswer("it has a body where none can be")),
            _ => Ok(()),
        }
    }
}

/// All streams of a connection.
#[derive(Debug)]
pub(super) struct Streams<T> {
    /// As many as a power of two.
    places: Vec<Option<Stream<T>>>,
    open: usize,
    next: u32,
}

impl<T> Streams<T> {
    pub(super) fn new() -> Streams<T> {
        Streams { places: Vec::new(), open: 0, next: 1 }
    }

    pub(super) fn len(&self) -> usize {
        self.open
    }

    /// Whether there are numbers left.
    pub(super) fn has_numbers(&self) -> bool {
        // As many as may have to be left out.
        self.next < LAST - 4 * (self.places.len() as u32 + 2)
    }

    /// Whether a stream of this number was opened by this side, be it closed by now.
    pub(super) fn was_opened(&self, id: u32) -> bool {
        id % 2 == 1 && id < self.next
    }

    /// Makes room for one more stream and returns its number, which the next one inserted must have.
    pub(super) fn next(&mut self) -> u32 {
        if self.places.len() < 2 * (self.open + 1) {
            self.grow();
        }
        while self.places[self.place(self.next)].is_some() {
            self.next += 2;
        }
        self.next
    }

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

    /// The lowest number above this one that a stream has.
    pub(super) fn first_above(&self, id: u32) -> Option<u32> {
        self.places.iter().flatten().map(|stream| stream.id).filter(|other| *other > id).min()
    }

    /// Takes all, by number.
    pub(super) fn take_all(&mut self) -> Vec<Stream<T>> {
        let mut all: Vec<Stream<T>> = self.places.drain(..).flatten().collect();
        all.sort_unstable_by_key(|stream| stream.id);
        self.open = 0;
        all
    }

    /// Two numbers that differ in their low bits differ in more of them.
    fn grow(&mut self) {
        let more = (2 * self.places.len()).max(2);
        let old = std::mem::take(&mut self.places);
        self.places.resize_with(more, || None);
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
            written: 0,
            body: None,
            waits: false,
            send_window: 0,
            receive_window: 0,
            taken: 0,
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
        assert_eq!(streams.take_all().iter().map(|stream| stream.id).collect::<Vec<_>>().len(), 99);
        assert!(streams.len() == 0 && streams.get(1).is_none() && streams.first_above(0).is_none());
    }

    #[test]
    fn a_stream_that_stays_open_keeps_its_place_alone() {
        let mut streams = Streams::new();
        let old = insert(&mut streams);
        let mut ids = vec![insert(&mut streams)];
        for _ in 0..1000 {
            let latest = *ids.last().unwrap();
            assert!(streams.remove(latest).is_some());
            ids.push(insert(&mut streams));
            assert!(streams.was_opened(latest) && !streams.was_opened(latest + 1) && streams.get(old).is_some());
        }
        assert!(ids.is_sorted() && *ids.last().unwrap() < 4 * 1000, "few numbers are left out");
        assert!(streams.places.len() <= 4);
    }

    #[test]
    fn numbers_come_to_an_end() {
        let mut streams = Streams::new();
        insert(&mut streams);
        streams.next = LAST - 60;
        assert!(streams.has_numbers());
        streams.next = LAST - 10;
        assert!(!streams.has_numbers());
    }
}
