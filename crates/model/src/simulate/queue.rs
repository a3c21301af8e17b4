//! The requests at a station. Some are in service; the others wait.
//!
//! All requests in service at a station are served at the same speed, so one clock per station is enough. The clock
//! counts the service, in seconds of demand, that each of these requests has received since the station was last empty.
//! A request that enters service at clock v and needs s seconds leaves at clock v + s, even if the speed changes. So an
//! arrival at processor sharing costs O(log n) and does not require a new departure time for every request (virtual
//! time, as in Parekh & Gallager 1993, §III).
//!
//! During an interruption, the speed is 0. Requests may arrive and enter service, but none leaves.
//!
//! Before a caller changes a queue, it advances the clock ([`Queue::clock`]). After the changes, it calls
//! [`Queue::settle`].

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// The order in which a station serves requests, and its speed.
#[derive(Clone, Debug)]
pub(super) struct Discipline {
    /// Number of requests that can be in service at once; `usize::MAX` for processor sharing and delays.
    pub(super) slots: usize,
    /// The station's speed.
    pub(super) capacity: Capacity,
    /// For each class: index of the line in which its requests wait. Line 0 is served first.
    pub(super) lines: Vec<usize>,
    /// Whether a more urgent request interrupts service.
    pub(super) preemptive: bool,
}

/// Speed of a station: the seconds of demand that it serves per second.
#[derive(Clone, Debug)]
pub(super) enum Capacity {
    /// The total speed equals the number of requests present.
    Unlimited,
    /// The speed of one server, and the number of servers.
    Servers(f64, f64),
    /// The total speed while 1, 2, … requests are present. The last value applies to any larger number of requests.
    Table(Vec<f64>),
}

impl Discipline {
    /// The discipline of a delay, where all requests are in service at once.
    pub(super) fn delay(classes: usize) -> Discipline {
        Discipline { slots: usize::MAX, capacity: Capacity::Unlimited, lines: vec![0; classes], preemptive: false }
    }
}

/// The requests at one station. Each request is identified by a number that the caller chooses.
#[derive(Debug)]
pub(super) struct Queue {
    discipline: Discipline,
    clock: f64,
    /// Time at which the clock was last advanced, in seconds.
    at: f64,
    speed: f64,
    /// The requests in service. Each entry has the clock's reading at the end of the request's service, and the
    /// request's number. The reading is stored as the bits of an `f64`, which sort like the non-negative numbers.
    serving: BinaryHeap<Reverse<(u64, u32)>>,
    waiting: Vec<VecDeque<u32>>,
    present: usize,
    interrupted: bool,
}

impl Queue {
    pub(super) fn new(discipline: Discipline) -> Queue {
        let lines = 1 + discipline.lines.iter().copied().max().unwrap_or(0);
        let waiting = vec![VecDeque::new(); lines];
        Queue {
            discipline,
            clock: 0.0,
            at: 0.0,
            speed: 0.0,
            serving: BinaryHeap::new(),
            waiting,
            present: 0,
            interrupted: false,
        }
    }

    /// Whether the station is interrupted.
    pub(super) fn is_interrupted(&self) -> bool {
        self.interrupted
    }

    /// Begins or ends an interruption.
    pub(super) fn set_interrupted(&mut self, interrupted: bool) {
        self.interrupted = interrupted;
    }

    /// Advances the clock to the time `now`, in seconds, and returns the clock's reading.
    #[inline]
    pub(super) fn clock(&mut self, now: f64) -> f64 {
        self.clock += (now - self.at) * self.speed;
        self.at = now;
        self.clock
    }

    #[inline]
    /// Number of requests at the station, waiting or in service.
    pub(super) fn present(&self) -> usize {
        self.present
    }

    #[cfg(test)]
    /// Number of requests in service.
    pub(super) fn served(&self) -> usize {
        self.serving.len()
    }

    /// The requests in service, in arbitrary order.
    pub(super) fn served_requests(&self) -> impl Iterator<Item = u32> {
        self.serving.iter().map(|Reverse((_, request))| *request)
    }

    /// Adds an arriving request to the number of requests present.
    #[inline]
    pub(super) fn enter(&mut self) {
        self.present += 1;
    }

    /// Whether one more request can enter service.
    #[inline]
    pub(super) fn has_slot(&self) -> bool {
        self.serving.len() < self.discipline.slots
    }

    /// Begins the service of a request that needs `service` seconds of demand.
    #[inline]
    pub(super) fn serve(&mut self, request: u32, service: f64) {
        self.serving.push(Reverse(((self.clock + service).to_bits(), request)));
    }

    /// Adds a request to the end of the line of its class.
    #[inline]
    pub(super) fn wait(&mut self, request: u32, class: usize) {
        self.waiting[self.discipline.lines[class]].push_back(request);
    }

    /// Interrupts the least urgent request in service, if it is less urgent than an arrival of class `class`. If
    /// several requests are equally urgent, the one that arrived last is interrupted. The interrupted request then
    /// waits at the front of its line. Returns its number and its remaining service.
    #[inline]
    pub(super) fn interrupt(
        &mut self,
        class: usize,
        class_and_arrival: impl Fn(u32) -> (usize, f64),
    ) -> Option<(u32, f64)> {
        if !self.discipline.preemptive {
            return None;
        }
        let entry = |Reverse((end, request)): &Reverse<(u64, u32)>| {
            let (class, arrived) = class_and_arrival(*request);
            (self.discipline.lines[class], arrived, *end, *request)
        };
        let last = |a: &(usize, f64, u64, u32), b: &(usize, f64, u64, u32)| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1));
        let (line, _, end, request) = self.serving.iter().map(entry).max_by(last)?;
        if line <= self.discipline.lines[class] {
            return None;
        }
        self.serving.retain(|Reverse((_, other))| *other != request);
        self.waiting[line].push_front(request);
        Some((request, (f64::from_bits(end) - self.clock).max(0.0)))
    }

    /// Ends the service that is due first, and sets the clock to the reading at that end. Returns the request.
    #[inline]
    pub(super) fn leave(&mut self) -> Option<u32> {
        let Reverse((end, request)) = self.serving.pop()?;
        self.clock = f64::from_bits(end);
        self.present -= 1;
        Some(request)
    }

    /// Removes and returns the waiting request that is served next.
    #[inline]
    pub(super) fn next_waiting(&mut self) -> Option<u32> {
        self.waiting.iter_mut().find_map(VecDeque::pop_front)
    }

    /// Sets the speed according to the number of requests present and in service. Returns the time of the next
    /// departure if no request arrives earlier; ∞ if no request is in service, or during an interruption.
    #[inline]
    pub(super) fn settle(&mut self) -> f64 {
        let Some(Reverse((end, _))) = self.serving.peek() else {
            (self.clock, self.speed) = (0.0, 0.0); // Restarting the clock keeps it precise.
            return f64::INFINITY;
        };
        if self.interrupted {
            self.speed = 0.0;
            return f64::INFINITY;
        }
        let (present, served) = (self.present, self.serving.len() as f64);
        self.speed = match &self.discipline.capacity {
            Capacity::Unlimited => 1.0,
            Capacity::Servers(each, servers) => each * servers.min(present as f64) / served,
            Capacity::Table(rates) => rates[present.min(rates.len()) - 1] / served,
        };
        // Rounding errors may have moved the clock past the end of service.
        self.at + ((f64::from_bits(*end) - self.clock) / self.speed).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(slots: usize, lines: Vec<usize>, preemptive: bool) -> Queue {
        Queue::new(Discipline { slots, capacity: Capacity::Servers(1.0, 1.0), lines, preemptive })
    }

    /// Simulates the arrival of a request of class `class`. Requests are numbered in the order of arrival.
    fn arrive(queue: &mut Queue, now: f64, request: u32, class: usize, service: f64) -> f64 {
        queue.clock(now);
        queue.enter();
        if queue.has_slot() {
            queue.serve(request, service)
        } else {
            queue.wait(request, class)
        }
        queue.settle()
    }

    #[test]
    fn sharing_serves_each_at_half_the_speed() {
        let mut q = queue(usize::MAX, vec![0], false);
        assert_eq!(arrive(&mut q, 10.0, 0, 0, 3.0), 13.0);
        // After 1 s, the first request needs 2 s more. The new request needs 1 s and takes 2 s, because it shares the
        // server. Then the first request needs 1 s more.
        assert_eq!(arrive(&mut q, 11.0, 1, 0, 1.0), 13.0);
        q.clock(13.0);
        assert_eq!(q.leave(), Some(1));
        assert_eq!(q.settle(), 14.0);
        q.clock(14.0);
        assert_eq!(q.leave(), Some(0));
        assert_eq!(q.settle(), f64::INFINITY);
        assert_eq!(q.leave(), None);
    }

    #[test]
    fn lines_are_served_by_urgency_and_then_in_order() {
        let mut q = queue(1, vec![0, 1], false);
        for (request, class) in [(0, 1), (1, 1), (2, 0), (3, 1), (4, 0)] {
            arrive(&mut q, 0.0, request, class, 1.0);
        }
        let order: Vec<u32> = std::iter::from_fn(|| q.next_waiting()).collect();
        assert_eq!(order, [2, 4, 1, 3]);
    }

    #[test]
    fn an_urgent_request_interrupts_the_last_of_the_least_urgent() {
        let mut q = queue(2, vec![0, 1, 2], true);
        arrive(&mut q, 0.0, 0, 2, 5.0);
        arrive(&mut q, 1.0, 1, 2, 5.0);
        q.clock(2.0);
        let class = |request| (if request < 2 { 2 } else { 1 }, f64::from(request));
        assert_eq!(q.interrupt(2, class), None);
        // Both requests in service share one server. Each has received ½ s of service since the second one arrived.
        // Before that, the first request was alone for 1 s.
        assert_eq!(q.interrupt(0, class), Some((1, 4.5)));
        assert_eq!(q.next_waiting(), Some(1));
    }
}
