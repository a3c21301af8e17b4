//! Tests of one shard with simulated sockets. They test timeouts when the load generator reads late, and their results
//! do not depend on the speed of the host.

use crate::clock::Clock;
use crate::destination::AddressRotation;
use crate::io::{Io, IoEvent, Route, Settings, Token, WarmConnection};
use crate::pacing::WaitTimes;
use crate::shard::{Shard, ShardUsage};
use crate::{Address, Close, Config, ConnectionPolicy, Engine, EngineError, FixedRequests, RequestSettings};
use brimful_core::workload::Workload as WorkloadDoc;
use brimful_core::{CallSpec, ClassId, End, Event, Nanos, NextCall, Observer, Outcome, Workload};
use rustix::io::Errno;
use std::borrow::Cow;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;

const TIMEOUT: Nanos = Nanos::from_millis(2);
/// A sleep that is much longer than an iteration of the event loop on any host.
const SLEEP: std::time::Duration = std::time::Duration::from_millis(300);
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

/// The events of one wait of the shard. Waits for connection attempts are not part of the script.
enum Turn {
    /// The process is stopped for twice the timeout after it has checked the sockets, and gets no events.
    Stopped,
    /// The shard deliberately sleeps for [`SLEEP`], and wakes 2 ms late.
    Slept,
    /// The wait lasts twice the timeout, and the check of the sockets afterwards finds no response. `left` says whether
    /// unread responses may remain.
    Passes { left: bool },
    /// The shard receives this number of responses. The flag says whether unread responses may remain.
    Answers(usize, bool),
}

/// Simulated sockets. Responses arrive in the order in which the requests were sent.
struct Scripted {
    turns: VecDeque<Turn>,
    connecting: Vec<Token>,
    sent: VecDeque<Token>,
    events: VecDeque<(Token, IoEvent)>,
    left: bool,
}

impl<'a> Io<'a> for Scripted {
    const NAME: &'static str = "scripted";

    fn new(_: &Settings) -> Result<Self, EngineError> {
        unreachable!("tests make scripted sockets from turns")
    }

    fn adopt(&mut self, _: Token, _: WarmConnection) -> Result<(), Errno> {
        Ok(())
    }

    fn connect(&mut self, token: Token, _: Route) -> Result<(), Errno> {
        self.connecting.push(token);
        Ok(())
    }

    fn add_address(&mut self, _: Address) {}

    fn send(&mut self, token: Token, _: Cow<'a, [u8]>) {
        self.sent.push_back(token);
    }

    fn notify_when_sent(&mut self, _: Token) {}

    fn unsent(&self, _: u32) -> usize {
        0
    }

    fn close(&mut self, token: Token) {
        self.sent.retain(|sent| *sent != token);
    }

    fn flush(&mut self) -> Result<(), EngineError> {
        Ok(())
    }

    fn wait(&mut self, clock: Clock, _: Nanos) -> Result<WaitTimes, EngineError> {
        let began = clock.now();
        let waited = WaitTimes { polled_at: began, ..WaitTimes::default() };
        self.left = false;
        if !self.connecting.is_empty() {
            self.events.extend(self.connecting.drain(..).map(|token| (token, IoEvent::Established)));
            return Ok(waited);
        }
        let pass = || std::thread::sleep(std::time::Duration::from_nanos(2 * TIMEOUT.0));
        match self.turns.pop_front().unwrap_or(Turn::Passes { left: false }) {
            Turn::Stopped => {
                pass();
                let total = clock.now() - began;
                return Ok(WaitTimes { total, overslept: total, ..waited });
            }
            Turn::Slept => {
                std::thread::sleep(SLEEP);
                return Ok(WaitTimes { total: clock.now() - began, overslept: Nanos::from_millis(2), ..waited });
            }
            Turn::Passes { left } => {
                pass();
                self.left = left;
            }
            Turn::Answers(count, left) => {
                let answered = self.sent.drain(..count.min(self.sent.len()));
                self.events.extend(answered.map(|token| (token, IoEvent::Received { last: false })));
                self.left = left;
            }
        }
        Ok(WaitTimes { polled_at: clock.now(), total: clock.now() - began, ..waited })
    }

    fn set_exact(&mut self, _: bool) {}

    fn next(&mut self) -> Option<(Token, IoEvent)> {
        self.events.pop_front()
    }

    fn attempts_have_begun(&self) -> bool {
        true
    }

    fn left_unread(&mut self) -> bool {
        self.left
    }

    fn received(&self) -> &[u8] {
        ANSWER
    }
}

/// A workload with this number of calls, all due at once.
struct AtOnce(usize);

impl Workload for AtOnce {
    fn next(&mut self, _: Nanos, _: usize) -> NextCall {
        match self.0.checked_sub(1) {
            Some(left) => {
                self.0 = left;
                NextCall::Due { due: Nanos::ZERO, call: CallSpec::for_class(ClassId(0)) }
            }
            None => NextCall::Done,
        }
    }
}

#[derive(Default)]
struct Ends(Vec<Outcome>);

impl Observer for Ends {
    type PerCall = ();

    fn on(&mut self, _: &mut (), event: &Event) {
        if let Event::Ended(outcome) = event {
            self.0.push(*outcome);
        }
    }

    fn merge(&mut self, other: Self) {
        self.0.extend(other.0);
    }
}

/// Begins this number of calls at once, each on its own connection. Returns their outcomes and the shard's usage.
fn ends(calls: usize, turns: impl IntoIterator<Item = Turn>) -> (Vec<End>, ShardUsage) {
    ends_from(0, calls, turns)
}

/// Like `ends`, but the shard has already used `stamps` stamps, which number its calls and connection attempts.
fn ends_from(stamps: u32, calls: usize, turns: impl IntoIterator<Item = Turn>) -> (Vec<End>, ShardUsage) {
    ends_within(TIMEOUT, stamps, calls, turns)
}

/// Like `ends_from`, with another response timeout.
fn ends_within(
    response_timeout: Nanos,
    stamps: u32,
    calls: usize,
    turns: impl IntoIterator<Item = Turn>,
) -> (Vec<End>, ShardUsage) {
    let address = SocketAddr::from(([127, 0, 0, 1], 1));
    let (version, close) = (brimful_http::Version::Http11, Close::Server);
    let wire =
        RequestSettings { authority: address.to_string(), version, is_secure: false, headers: Vec::new(), close };
    let requests = FixedRequests::render(&WorkloadDoc::single_class("GET", "/"), &wire).unwrap();
    let config = Config {
        address: address.into(),
        tls: None,
        http2: false,
        connections: ConnectionPolicy { response_timeout, ..ConnectionPolicy::default() },
        min_connections: 0,
        window: Nanos::from_secs(60),
        start: Nanos::ZERO,
        cpus: Vec::new(),
        engine: Engine::Auto,
        tick: None,
    };
    let io = Scripted {
        turns: turns.into_iter().collect(),
        connecting: Vec::new(),
        sent: VecDeque::new(),
        events: VecDeque::new(),
        left: false,
    };
    let clock = Clock::starting_in(Nanos::ZERO);
    let settings = config.settings(crate::Requests::max_request_bytes(&&requests)).unwrap();
    let turns = AddressRotation::new(&settings.addresses, 0, None);
    let parts = (AtOnce(calls), &requests, Ends::default());
    let shard = Shard::new(&config, &settings, clock, parts, io, Vec::new(), turns).with_last_stamp(stamps);
    let (Ends(outcomes), used) = shard.run(&AtomicBool::new(false)).unwrap();
    (outcomes.iter().map(|outcome| outcome.end).collect(), used)
}

const COMPLETED: End = End::Completed { status: 200 };

/// Simulates SIGSTOP and SIGCONT: the responses arrive in time but are read late, because the load generator is
/// stopped. Expects that the calls complete.
#[test]
fn answers_that_came_while_the_generator_was_stopped_are_not_late() {
    let (ends, used) = ends(3, [Turn::Stopped, Turn::Answers(3, false)]);
    assert_eq!(ends, [COMPLETED; 3]);
    assert!(used.longest_gap >= Nanos(2 * TIMEOUT.0), "{}", used.longest_gap);
}

#[test]
fn responses_read_by_several_checks_are_not_late() {
    let (ends, _) = ends(3, [Turn::Stopped, Turn::Answers(1, true), Turn::Answers(1, true), Turn::Answers(1, false)]);
    assert_eq!(ends, [COMPLETED; 3]);
}

/// Expects that a late wake-up extends the timeout of a call by the delay, but not by the deliberate sleep before it.
#[test]
fn a_turn_that_ends_a_little_late_delays_no_timeout_by_its_sleep() {
    let (ends, _) = ends(1, [Turn::Slept, Turn::Answers(0, false), Turn::Answers(1, false)]);
    assert_eq!(ends, [End::TimedOut]);
}

#[test]
fn calls_without_an_answer_when_all_is_read_time_out() {
    let (timed_out, used) = ends(3, [Turn::Passes { left: false }]);
    assert_eq!(timed_out, [End::TimedOut; 3]);
    assert!(used.max_open == 3 && used.duration >= TIMEOUT);
    let (part, _) = ends(3, [Turn::Answers(2, false), Turn::Stopped, Turn::Passes { left: false }]);
    assert_eq!(part, [COMPLETED, COMPLETED, End::TimedOut]);
}

/// Each connection attempt and each call has a 32-bit stamp (its number). Expects that calls end correctly when the
/// stamps pass 2³¹ or wrap around.
#[test]
fn calls_are_distinguished_when_stamps_wrap() {
    for before in (0..8).flat_map(|left| [(1 << 31) - left, u32::MAX - left]) {
        let (answered, _) = ends_from(before, 3, [Turn::Stopped, Turn::Answers(3, false)]);
        assert_eq!(answered, [COMPLETED; 3]);
        let (timed_out, _) = ends_from(before, 3, [Turn::Passes { left: false }]);
        assert_eq!(timed_out, [End::TimedOut; 3]);
    }
}

/// Makes a million calls while stamps pass 2³¹, and a million while they wrap around. Expects that each call ends
/// exactly once.
#[test]
fn a_million_calls_are_accounted_for_when_stamps_wrap() {
    const CALLS: usize = 100_000;
    const NO_TIMEOUT: Nanos = Nanos::from_secs(600);
    for limit in [1 << 31, 0_u32] {
        for round in 1..=10 {
            let used = limit.wrapping_sub(1000 * round);
            let (answered, _) = ends_within(NO_TIMEOUT, used, CALLS, [Turn::Answers(CALLS, false)]);
            assert!(answered.len() == CALLS && answered.iter().all(|end| *end == COMPLETED));
        }
        let (timed_out, _) = ends_from(limit.wrapping_sub(1000), 10_000, [Turn::Passes { left: false }]);
        assert!(timed_out.len() == 10_000 && timed_out.iter().all(|end| *end == End::TimedOut));
    }
}

/// Simulates sockets that always have unread data, as when a server never stops sending on another connection. Expects
/// that the calls still time out.
#[test]
fn sockets_that_are_never_empty_do_not_delay_timeouts_forever() {
    let (ends, _) = ends(2, (0..100).map(|_| Turn::Passes { left: true }));
    assert_eq!(ends, [End::TimedOut; 2]);
}
