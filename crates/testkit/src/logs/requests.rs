//! When requests come, and whose they are: one after another, or in sessions that overlap.

use super::random::Random;
use super::{Burstiness, LogShape};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// On average: pages of a session, and requests of a page.
const PAGES: f64 = 3.0;
const REQUESTS_PER_PAGE: f64 = 4.0;
/// Seconds, on average: between the requests of a page, and between pages.
const BETWEEN_REQUESTS: f64 = 0.15;
const BETWEEN_PAGES: f64 = 20.0;
/// Seconds, on average, at the higher and at the lower rate; and these, relative to the mean.
const ON: (f64, f64) = (5.0, 3.25);
const OFF: (f64, f64) = (15.0, 0.25);
const ON_OFF_TAIL: f64 = 1.4;
/// No such time is longer than so many means, or a log might have no end.
const LONGEST: f64 = 100.0;

/// When requests come, and whose they are.
pub(super) struct Requests {
    random: Random,
    clients: u32,
    in_sessions: bool,
    starts: Starts,
    next_start: f64,
    /// What open sessions ask for next.
    due: BinaryHeap<Reverse<Due>>,
}

/// A request that an open session will make. The time, as bits of a number that is not negative, sorts as the number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    second_bits: u64,
    client: u32,
    left_of_page: u32,
    pages_left: u32,
}

impl Requests {
    pub fn new(shape: &LogShape) -> Requests {
        let mut random = Random(shape.seed);
        let per_session = if shape.sessions { PAGES * REQUESTS_PER_PAGE } else { 1.0 };
        let is_on_off = shape.burstiness == Burstiness::OnOff;
        let mut starts = Starts { rate: shape.rate / per_session, is_on_off, now: 0.0, is_on: true, until: 0.0 };
        let next_start = starts.next(&mut random);
        let due = BinaryHeap::new();
        Requests { random, clients: shape.clients.max(1), in_sessions: shape.sessions, starts, next_start, due }
    }

    /// The time of the next request since the log's start, and its client.
    pub fn next(&mut self) -> (f64, u32) {
        if let Some(Reverse(due)) = self.due.peek().copied()
            && f64::from_bits(due.second_bits) <= self.next_start
        {
            self.due.pop();
            let second = f64::from_bits(due.second_bits);
            self.go_on(second, due);
            return (second, due.client);
        }
        let second = self.next_start;
        self.next_start = self.starts.next(&mut self.random);
        let client = self.random.below(self.clients);
        if self.in_sessions {
            let pages_left = self.random.geometric(PAGES) - 1;
            let left_of_page = self.random.geometric(REQUESTS_PER_PAGE) - 1;
            self.go_on(second, Due { second_bits: 0, client, left_of_page, pages_left });
        }
        (second, client)
    }

    /// What the session asks for after this, if anything.
    fn go_on(&mut self, second: f64, mut session: Due) {
        let pause = if session.left_of_page > 0 {
            session.left_of_page -= 1;
            BETWEEN_REQUESTS
        } else if session.pages_left > 0 {
            session.pages_left -= 1;
            session.left_of_page = self.random.geometric(REQUESTS_PER_PAGE) - 1;
            BETWEEN_PAGES
        } else {
            return;
        };
        session.second_bits = (second + self.random.exponential(pause)).to_bits();
        self.due.push(Reverse(session));
    }
}

/// When requests or sessions begin.
struct Starts {
    rate: f64,
    is_on_off: bool,
    now: f64,
    is_on: bool,
    until: f64,
}

impl Starts {
    fn next(&mut self, random: &mut Random) -> f64 {
        if !self.is_on_off {
            self.now += random.exponential(1.0 / self.rate);
            return self.now;
        }
        loop {
            // Within a time of one rate gaps have no memory, so one that reaches beyond it may be drawn anew.
            let (_, factor) = if self.is_on { ON } else { OFF };
            let next = self.now + random.exponential(1.0 / (self.rate * factor));
            if next <= self.until {
                self.now = next;
                return next;
            }
            self.now = self.until;
            self.is_on = !self.is_on;
            let (mean, _) = if self.is_on { ON } else { OFF };
            let shortest = mean * (ON_OFF_TAIL - 1.0) / ON_OFF_TAIL;
            self.until += random.pareto(shortest, ON_OFF_TAIL).min(LONGEST * mean);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn sessions_have_the_length_that_they_should() {
        let shape = LogShape { sessions: true, lines: 120_000, clients: 1 << 24, ..LogShape::default() };
        let mut requests = Requests::new(&shape);
        let clients: HashSet<u32> = (0..shape.lines).map(|_| requests.next().1).collect();
        let per_session = 120_000.0 / clients.len() as f64;
        assert!((per_session - 12.0).abs() < 1.0, "{per_session}");
    }
}
