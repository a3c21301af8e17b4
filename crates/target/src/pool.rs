//! A pool that limits the number of requests in service at the same time. Further requests wait in order of arrival,
//! and each occupies its worker while it waits. The processes of PHP-FPM, or the connections of a JDBC pool, limit a
//! server with more threads in the same way.

use crate::truth::PoolUsage;
use brimful_core::panics::lock;
use std::collections::VecDeque;
use std::sync::Mutex;
use std::thread::{self, Thread};

/// A pool with at least one slot.
#[derive(Debug)]
pub(crate) struct Pool {
    places: usize,
    state: Mutex<State>,
}

/// The state of a pool. Requests are numbered in order of arrival.
#[derive(Debug)]
struct State {
    /// Number of the next request that arrives.
    next: u64,
    /// Requests with lower numbers than this may be served.
    admitted: u64,
    /// The threads that wait for a free slot, in order of arrival.
    queue: VecDeque<Thread>,
    served: usize,
    most_served: usize,
    waited: u64,
}

/// An occupied slot of the pool. Dropping this value frees the slot.
#[derive(Debug)]
pub(crate) struct PoolSlot<'p>(&'p Pool);

impl Pool {
    /// Creates a pool with `places` slots.
    pub(crate) fn new(places: usize) -> Pool {
        let admitted = places as u64;
        let state = State { next: 0, admitted, queue: VecDeque::new(), served: 0, most_served: 0, waited: 0 };
        Pool { places, state: Mutex::new(state) }
    }

    /// Waits for a free slot, and occupies it.
    pub(crate) fn enter(&self) -> PoolSlot<'_> {
        let mut state = lock(&self.state);
        let number = state.next;
        state.next += 1;
        if number >= state.admitted {
            state.waited += 1;
            state.queue.push_back(thread::current());
        }
        while number >= state.admitted {
            drop(state);
            thread::park();
            state = lock(&self.state);
        }
        state.served += 1;
        state.most_served = state.most_served.max(state.served);
        PoolSlot(self)
    }

    /// Statistics of the pool since it was created.
    pub(crate) fn usage(&self) -> PoolUsage {
        let state = lock(&self.state);
        PoolUsage { places: self.places, most_served_at_once: state.most_served, waited: state.waited }
    }
}

impl Drop for PoolSlot<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.0.state);
        state.served -= 1;
        state.admitted += 1;
        if let Some(first) = state.queue.pop_front() {
            first.unpark();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn no_more_than_all_places_are_occupied_at_once() {
        const THREADS: usize = 8;
        const TURNS: usize = 2_000;
        let (pool, inside) = (Pool::new(3), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    for _ in 0..TURNS {
                        let place = pool.enter();
                        assert!(inside.fetch_add(1, Ordering::SeqCst) < 3);
                        thread::yield_now();
                        inside.fetch_sub(1, Ordering::SeqCst);
                        drop(place);
                    }
                });
            }
        });
        let state = lock(&pool.state);
        assert_eq!((state.next, state.served, state.queue.len()), ((THREADS * TURNS) as u64, 0, 0));
        assert!(state.most_served <= 3);
    }

    #[test]
    fn requests_are_served_in_order_of_arrival() {
        let (pool, order) = (Pool::new(1), Mutex::new(Vec::new()));
        thread::scope(|scope| {
            let place = pool.enter();
            for number in 0..5 {
                let (pool, order) = (&pool, &order);
                scope.spawn(move || {
                    let _place = pool.enter();
                    lock(order).push(number);
                });
                while lock(&pool.state).queue.len() <= number {
                    thread::yield_now();
                }
            }
            drop(place);
        });
        assert_eq!(*lock(&order), [0, 1, 2, 3, 4]);
        assert_eq!(pool.usage(), PoolUsage { places: 1, most_served_at_once: 1, waited: 5 });
    }
}
