//! A workload of calls that arrive through a channel during the run, such as the calls of a log that is still being
//! read. The channel's capacity limits the memory in use.

use brimful_core::{CallSpec, Nanos, NextCall, Workload};
use std::sync::mpsc::{Receiver, TryRecvError};
use std::vec::IntoIter;

/// Time after which an empty channel is checked again.
const POLL_INTERVAL: Nanos = Nanos::from_millis(1);

/// A call and its due time.
pub type DueCall = (Nanos, CallSpec);

/// One shard (part of the load) of a workload of calls that arrive in batches, in the order of their due times. The
/// workload ends when the sender of the channel was dropped and all calls have been made.
#[derive(Debug)]
pub struct StreamedWorkload {
    batches: Receiver<Vec<DueCall>>,
    batch: IntoIter<DueCall>,
    head: Option<DueCall>,
}

impl StreamedWorkload {
    /// Creates a workload of the calls that arrive through `batches`.
    pub fn new(batches: Receiver<Vec<DueCall>>) -> StreamedWorkload {
        StreamedWorkload { batches, batch: Vec::new().into_iter(), head: None }
    }
}

impl Workload for StreamedWorkload {
    fn next(&mut self, now: Nanos, _in_flight: usize) -> NextCall {
        loop {
            match self.head.or_else(|| self.batch.next()) {
                Some((due, call)) if due <= now => {
                    self.head = None;
                    return NextCall::Due { due, call };
                }
                Some((due, call)) => {
                    self.head = Some((due, call));
                    return NextCall::NotBefore(due);
                }
                None => match self.batches.try_recv() {
                    Ok(batch) => self.batch = batch.into_iter(),
                    Err(TryRecvError::Empty) => return NextCall::NotBefore(now + POLL_INTERVAL),
                    Err(TryRecvError::Disconnected) => return NextCall::Done,
                },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brimful_core::ClassId;
    use std::sync::mpsc::channel;

    fn call(class: u16) -> CallSpec {
        CallSpec::for_class(ClassId(class))
    }

    #[test]
    fn calls_are_returned_when_they_are_due() {
        let (sender, receiver) = channel();
        let mut streamed = StreamedWorkload::new(receiver);
        assert_eq!(streamed.next(Nanos(5), 0), NextCall::NotBefore(Nanos(5) + POLL_INTERVAL), "the channel is empty");
        sender.send(vec![(Nanos(10), call(0)), (Nanos(10), call(1))]).unwrap();
        sender.send(vec![]).unwrap();
        sender.send(vec![(Nanos(30), call(2))]).unwrap();
        assert_eq!(streamed.next(Nanos(9), 0), NextCall::NotBefore(Nanos(10)));
        // A call that is made late must keep its due time.
        assert_eq!(streamed.next(Nanos(12), 0), NextCall::Due { due: Nanos(10), call: call(0) });
        assert_eq!(streamed.next(Nanos(12), 1), NextCall::Due { due: Nanos(10), call: call(1) });
        assert_eq!(streamed.next(Nanos(12), 2), NextCall::NotBefore(Nanos(30)));
        drop(sender);
        assert_eq!(streamed.next(Nanos(30), 2), NextCall::Due { due: Nanos(30), call: call(2) });
        assert_eq!(streamed.next(Nanos(30), 3), NextCall::Done);
    }
}
