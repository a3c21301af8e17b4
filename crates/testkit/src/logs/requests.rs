//! Draws the arrival times and clients of requests. Requests arrive independently, or in sessions that overlap.

use super::random::Random;
use super::{Burstiness, LogSpec};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Mean number of pages in a session.
const PAGES: f64 = 3.0;
/// Mean number of requests for a page.
const REQUESTS_PER_PAGE: f64 = 4.0;
/// Mean time between the requests for a page, in seconds.
const BETWEEN_REQUESTS: f64 = 0.15;
/// Mean time between two pages of a session, in seconds.
const BETWEEN_PAGES: f64 = 20.0;
/// The phases of high rate: mean duration in seconds, and rate divided by the mean rate.
const ON: (f64, f64) = (5.0, 3.25);
/// The phases of low rate: mean duration in seconds, and rate divided by the mean rate.
const OFF: (f64, f64) = (15.0, 0.25);
/// Tail index of the Pareto distribution of phase durations.
const ON_OFF_TAIL: f64 = 1.4;
/// Maximum duration of a phase, as a multiple of the mean duration. Without a maximum, a single phase could be as long
/// as the log.
const LONGEST_PHASE: f64 = 100.0;

/// Draws requests in the order of their arrival.
pub(super) struct Requests {
    random: Random,
    clients: u32,
    in_sessions: bool,
    starts: StartTimes,
    next_start: f64,
    /// The next request of each session in progress, ordered by time.
    due: BinaryHeap<Reverse<Due>>,
}

/// The next request of a session in progress. `second_bits` is a floating-point number as an integer: the bits of
/// non-negative numbers have the same order as the numbers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    second_bits: u64,
    client: u32,
    requests_left: u32,
    pages_left: u32,
}

impl Requests {
    /// Draws the time of the first request or session.
    pub fn new(spec: &LogSpec) -> Requests {
        let mut random = Random(spec.seed);
        let per_session = if spec.sessions { PAGES * REQUESTS_PER_PAGE } else { 1.0 };
        let is_on_off = spec.burstiness == Burstiness::OnOff;
        let mut starts = StartTimes { rate: spec.rate / per_session, is_on_off, now: 0.0, is_on: true, until: 0.0 };
        let next_start = starts.next(&mut random);
        let due = BinaryHeap::new();
        Requests { random, clients: spec.clients.max(1), in_sessions: spec.sessions, starts, next_start, due }
    }

    /// Returns the arrival time of the next request, in seconds after the start of the log, and its client.
    pub fn next(&mut self) -> (f64, u32) {
        if let Some(Reverse(due)) = self.due.peek().copied()
            && f64::from_bits(due.second_bits) <= self.next_start
        {
            self.due.pop();
            let second = f64::from_bits(due.second_bits);
            self.continue_session(second, due);
            return (second, due.client);
        }
        let second = self.next_start;
        self.next_start = self.starts.next(&mut self.random);
        let client = self.random.below(self.clients);
        if self.in_sessions {
            let pages_left = self.random.geometric(PAGES) - 1;
            let requests_left = self.random.geometric(REQUESTS_PER_PAGE) - 1;
            self.continue_session(second, Due { second_bits: 0, client, requests_left, pages_left });
        }
        (second, client)
    }

    /// Schedules the next request of a session, unless the session has ended.
    fn continue_session(&mut self, second: f64, mut session: Due) {
        let pause = if session.requests_left > 0 {
            session.requests_left -= 1;
            BETWEEN_REQUESTS
        } else if session.pages_left > 0 {
            session.pages_left -= 1;
            session.requests_left = self.random.geometric(REQUESTS_PER_PAGE) - 1;
            BETWEEN_PAGES
        } else {
            return;
        };
        session.second_bits = (second + self.random.exponential(pause)).to_bits();
        self.due.push(Reverse(session));
    }
}

/// Draws the times at which requests or sessions begin.
struct StartTimes {
    rate: f64,
    is_on_off: bool,
    now: f64,
    is_on: bool,
    until: f64,
}

impl StartTimes {
    fn next(&mut self, random: &mut Random) -> f64 {
        if !self.is_on_off {
            self.now += random.exponential(1.0 / self.rate);
            return self.now;
        }
        loop {
            // The time to the next arrival is exponential and thus memoryless: if the phase ends before that arrival, a
            // new time is drawn from the end of the phase on.
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
            self.until += random.pareto(shortest, ON_OFF_TAIL).min(LONGEST_PHASE * mean);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn sessions_have_the_documented_mean_length() {
        let spec = LogSpec { sessions: true, lines: 120_000, clients: 1 << 24, ..LogSpec::default() };
        let mut requests = Requests::new(&spec);
        let clients: HashSet<u32> = (0..spec.lines).map(|_| requests.next().1).collect();
        let per_session = 120_000.0 / clients.len() as f64;
        assert!((per_session - 12.0).abs() < 1.0, "{per_session}");
    }
}
