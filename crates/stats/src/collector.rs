//! Fills an [`Account`] (counts and times) from the events of one shard's calls. [`derive`] documents from which event
//! to which each time is measured.
//!
//! The two conservation laws of `Counts` apply to every legal sequence of events. Calls that ended are counted by their
//! outcomes, and calls that were sent are counted by the event `Sent`. So if the engine's events contradict one
//! another, the laws are violated, and the verdict reports it.
//!
//! [`derive`]: crate::derive()

use crate::account::Account;
use crate::live::{LiveProgress, SharedSummary, publish};
use crate::redirects::RedirectTally;
use crate::result_backup::{ResultBackup, SharedExchange, hand_over};
use crate::tally::{Tally, count_end};
use brimful_core::UnfollowedReason;
use brimful_core::{
    ClassId, ConnectionEnded, End, Event, ExhaustedResource, Http2Frame, Nanos, Observer, OptionalNanos, Outcome,
    RetryReason, SessionEnded,
};

/// Receives the events of one shard's calls, and adds them to an [`Account`] (counts and times).
#[derive(Clone, Debug)]
pub struct Collector {
    account: Account,
    /// The server's addresses; empty if it has only one.
    addresses: Vec<String>,
    /// The summary that the shard publishes for a display; `None` without a display.
    summary: Option<SharedSummary>,
    /// The exchange through which the shard passes its observations to a [`ResultBackup`]; `None` without a backup.
    exchange: Option<SharedExchange>,
}

/// The state that a [`Collector`] keeps for one call.
#[derive(Clone, Copy, Debug, Default)]
pub struct PerCall {
    class: u16,
    /// Index of the server address that the call is sent to.
    address: u16,
    /// The time from which the call could begin, usually its due time. Lateness is measured from it.
    ready: Nanos,
    connect_started: OptionalNanos,
    established: Nanos,
    sent: OptionalNanos,
    first_byte: OptionalNanos,
}

impl Collector {
    /// Creates a collector that adds observations to `account`, which is usually empty.
    pub fn new(account: Account) -> Collector {
        Collector { account, addresses: Vec::new(), summary: None, exchange: None }
    }

    /// Creates a collector that also publishes summaries of its counts and times to `live`.
    pub fn with_live(account: Account, live: &LiveProgress) -> Collector {
        Collector { summary: Some(live.register()), ..Collector::new(account) }
    }

    /// Creates a collector that passes its observations to `result_backup` during the run. At the end of the run,
    /// [`ResultBackup::complete`] must add the remaining observations. `empty` is a new Account of the same classes.
    pub fn with_result_backup(account: Account, result_backup: &ResultBackup, empty: Account) -> Collector {
        Collector { exchange: Some(result_backup.register(empty)), ..Collector::new(account) }
    }

    /// The counts and times that the collector has recorded.
    pub fn into_account(self) -> Account {
        self.account
    }

    fn ended(&mut self, call: &PerCall, outcome: &Outcome) {
        let Outcome { due, at, .. } = *outcome;
        let account = &mut self.account;
        let is_scheduled = account.schedules(outcome.call.class.0);
        if !account.addresses.is_empty() && is_scheduled {
            account.ended_at_address(call.address, outcome);
        }
        let tally = account.tally(outcome.call.class.0);
        tally.traffic.sent += outcome.bytes_sent;
        tally.traffic.received += outcome.bytes_received;
        count_end(&mut tally.counts, outcome.end);
        let failed = match outcome.end {
            End::Completed { status } => {
                let response_time = at - due;
                let sent = call.sent.get();
                tally.answers.record(status, true, response_time, sent.map(|sent| at - sent));
                if let (Some(sent), Some(first_byte)) = (sent, call.first_byte.get()) {
                    tally.first_byte.record(first_byte - sent);
                }
                if is_scheduled {
                    account.completed_in_window += u64::from(at <= account.window);
                    account.series.record_completed(at, response_time);
                    account.replies.record(at);
                    if let Some(completions) = &mut account.completions {
                        completions.record(at);
                    }
                    account.batches.record(at, response_time);
                }
                false
            }
            // Calls that were interrupted by the end of the run are not failures.
            End::Unfinished { .. } => false,
            End::ClientLimited(limit) => {
                match limit {
                    ExhaustedResource::Descriptors => account.limited.descriptors += 1,
                    ExhaustedResource::Ports => account.limited.ports += 1,
                    ExhaustedResource::Memory => account.limited.memory += 1,
                    ExhaustedResource::Body => account.limited.bodies += 1,
                }
                true
            }
            End::TlsFailed { why, .. } => {
                *account.tls_faults.entry(why).or_default() += 1;
                true
            }
            End::Unexpected { status } => {
                tally.answers.record(status, false, at - due, call.sent.get().map(|sent| at - sent));
                true
            }
            End::Abandoned
            | End::Refused
            | End::Reset { .. }
            | End::ClosedOnReuse { .. }
            | End::TimedOut
            | End::Malformed
            | End::StreamReset
            | End::GoneAway => true,
        };
        if failed && is_scheduled {
            account.series.record_failed(at);
        }
    }

    fn tally(&mut self, call: &PerCall) -> &mut Tally {
        self.account.tally(call.class)
    }
}

impl Account {
    fn ended_at_address(&mut self, address: u16, outcome: &Outcome) {
        let Some(tally) = self.addresses.get_mut(usize::from(address)) else { return };
        tally.counts.scheduled += 1;
        count_end(&mut tally.counts, outcome.end);
        if let End::Completed { status } = outcome.end {
            tally.answers.record(status, true, outcome.at - outcome.due, None);
        }
    }
}

impl Observer for Collector {
    type PerCall = PerCall;

    /// Adds an event of a call to the counts and times.
    ///
    /// # Panics
    /// If the event names a class that the run does not have.
    #[inline]
    fn on(&mut self, call: &mut PerCall, event: &Event) {
        match *event {
            Event::Scheduled { class: ClassId(class), due } => {
                *call = PerCall { class, ready: due, ..PerCall::default() };
                self.tally(call).counts.scheduled += 1;
                if self.account.schedules(class) {
                    self.account.series.record_offered(due);
                }
            }
            Event::Ready { at } => call.ready = at,
            Event::Begun { at } => self.tally(call).lateness.record(at - call.ready),
            Event::Routed { address } => call.address = address,
            Event::ConnectStarted { at } => {
                call.connect_started = at.into();
                self.tally(call).counts.connect_attempts += 1;
            }
            Event::Established { at } => {
                self.tally(call).counts.established += 1;
                if let Some(tally) = self.account.addresses.get_mut(usize::from(call.address)) {
                    tally.counts.established += 1;
                }
                call.established = at;
                if let Some(started) = std::mem::take(&mut call.connect_started).get() {
                    self.account.connect_time.record(at - started);
                }
            }
            Event::Secured { at, resumed } => {
                let counts = &mut self.tally(call).counts;
                counts.handshakes += 1;
                counts.handshakes_resumed += u64::from(resumed);
                self.account.handshake_time.get_or_insert_default().record(at - call.established);
            }
            Event::Sent { at } => {
                call.sent = at.into();
                self.tally(call).counts.sent += 1;
                if self.account.schedules(call.class) {
                    self.account.series.record_sent(at);
                }
            }
            Event::FirstByte { at } => call.first_byte = at.into(),
            Event::EmptyLines { lines } => self.tally(call).counts.empty_lines += u64::from(lines),
            Event::Retried { why } => {
                let counts = &mut self.tally(call).counts;
                match why {
                    RetryReason::ClosedOnReuse => counts.retried_closed += 1,
                    RetryReason::RefusedStream => counts.refused_streams += 1,
                }
            }
            Event::Ended(ref outcome) => self.ended(call, outcome),
        }
    }

    /// The collector gets one event per closed connection, so a long connection with many calls causes no additional
    /// cost.
    fn on_connection(&mut self, connection: &ConnectionEnded) {
        if connection.responses > 0 {
            self.account.connection_lifetime.record(connection.ended - connection.attempted);
            self.account.responses_on_closed += u64::from(connection.responses);
        }
    }

    fn on_unfollowed(&mut self, why: UnfollowedReason) {
        self.account.redirects.get_or_insert_with(RedirectTally::new).unfollowed(why);
    }

    fn on_http2_error(&mut self, frame: Http2Frame, code: u32, text: &[u8]) {
        self.account.http2_errors.note(frame, code, text);
    }

    fn on_session(&mut self, session: &SessionEnded) {
        self.account.sessions.get_or_insert_default().ended(session);
    }

    fn on_sessions_in_progress(&mut self, sessions: u64) {
        if sessions > 0 {
            self.account.sessions.get_or_insert_default().in_progress(sessions);
        }
    }

    fn on_address(&mut self, address: &str) {
        self.addresses.push(address.to_owned());
        self.account.allocate_addresses(&self.addresses);
    }

    fn publish(&mut self, now: Nanos) {
        if let Some(summary) = &self.summary {
            publish(&self.account, now, summary);
        }
        if let Some(exchange) = &self.exchange {
            hand_over(&mut self.account, now, exchange);
            self.account.allocate_addresses(&self.addresses);
        }
    }

    /// Merges the counts and times of another collector.
    ///
    /// # Panics
    /// If the two collectors cannot belong to one run.
    fn merge(&mut self, other: Collector) {
        if let Err(unlike) = self.account.merge_from(&other.account) {
            panic!("shards of one run have one workload: {unlike}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RunFacts, derive};
    use brimful_core::account::PackedSessions;
    use brimful_core::counts::WireBytes;
    use brimful_core::record::{ReasonCode, Summary};
    use brimful_core::workload::Workload;
    use brimful_core::{CallSpec, SessionId, SessionOutcome, TlsFault};

    fn us(us: u64) -> Nanos {
        Nanos::from_micros(us)
    }

    fn collector(window: Nanos) -> Collector {
        Collector::new(Account::new(&["all".to_owned()], window))
    }

    fn completed(due: Nanos, at: Nanos) -> Event {
        let end = End::Completed { status: 200 };
        let call = CallSpec::for_class(ClassId(0));
        Event::Ended(Outcome { call, due, at, end, bytes_sent: 100, bytes_received: 1_000 })
    }

    fn facts(window: Nanos) -> RunFacts {
        RunFacts { duration: window, window, workload: Some(Workload::single_class("GET", "/")), ..RunFacts::default() }
    }

    #[test]
    fn each_time_runs_from_where_its_definition_says() {
        let mut collector = collector(Nanos::from_secs(1));
        let mut call = PerCall::default();
        for event in [
            Event::Scheduled { class: ClassId(0), due: us(100) },
            Event::Begun { at: us(107) },
            Event::ConnectStarted { at: us(110) },
            Event::Established { at: us(160) },
            Event::Sent { at: us(170) },
            Event::FirstByte { at: us(370) },
            completed(us(100), us(470)),
        ] {
            collector.on(&mut call, &event);
        }
        let record = derive(&collector.into_account(), facts(Nanos::from_secs(1)));
        let means = [
            record.response_time_us,
            record.service_time_us,
            record.connect_time_us,
            record.first_byte_us,
            record.lateness_us,
        ]
        .map(|summary| summary.unwrap().mean);
        assert_eq!(means, [370.0, 300.0, 50.0, 200.0, 7.0]);
        assert_eq!(record.bytes, WireBytes { received: 1_000, sent: 100 });
        assert_eq!(record.classes["all"].bytes, Some(record.bytes));
        assert_eq!(record.hdr.len(), 5);
        assert_eq!(record.classes["all"].response_time_us, record.response_time_us);
        assert!(record.verdict.valid);
    }

    #[test]
    fn lifetimes_are_those_of_connections_with_a_response_and_shards_add_up() {
        let connection =
            |ms, responses| ConnectionEnded { attempted: Nanos::ZERO, ended: Nanos::from_millis(ms), responses };
        let window = Nanos::from_secs(1);
        let (mut one, mut other) = (collector(window), collector(window));
        one.on_connection(&connection(10, 3));
        other.on_connection(&connection(900, 0));
        other.on_connection(&connection(30, 1));
        one.merge(other);
        let account = one.into_account();
        let packed = account.pack();
        assert_eq!(Account::unpack(&packed).unwrap(), account, "a Record that is merged keeps them");
        let record = derive(&account, facts(window));
        let lifetime = record.connection_lifetime_us.unwrap();
        assert_eq!((lifetime.count, lifetime.mean, lifetime.max), (2, 20_000.0, 30_000.0));
        assert_eq!(record.responses_per_connection, Some(2.0));
        assert!(record.hdr.contains_key("connection_lifetime_us"));
        let none = derive(&collector(window).into_account(), facts(window));
        assert_eq!((none.connection_lifetime_us, none.responses_per_connection), (None, None));
    }

    #[test]
    fn handshakes_have_a_time_of_their_own_and_their_failures_a_reason() {
        let spec = CallSpec::for_class(ClassId(0));
        let call = |resumed, sent| {
            let mut collector = collector(Nanos::from_secs(1));
            let mut call = PerCall::default();
            let why = TlsFault::Undecryptable;
            let end = if sent { End::Completed { status: 200 } } else { End::TlsFailed { sent, why } };
            let bytes_sent = if sent { 100 } else { 0 };
            let outcome = Outcome { call: spec, due: us(100), at: us(900), end, bytes_sent, bytes_received: 0 };
            let secured = Event::Secured { at: us(460), resumed };
            let events = [
                Some(Event::Scheduled { class: ClassId(0), due: us(100) }),
                Some(Event::Begun { at: us(107) }),
                Some(Event::ConnectStarted { at: us(110) }),
                Some(Event::Established { at: us(160) }),
                sent.then_some(secured),
                sent.then_some(Event::Sent { at: us(470) }),
                Some(Event::Ended(outcome)),
            ];
            events.iter().flatten().for_each(|event| collector.on(&mut call, event));
            collector
        };
        let mut all = call(true, true);
        all.merge(call(false, true));
        all.merge(call(false, false));
        let packed = all.account.pack();
        assert_eq!(Account::unpack(&packed).unwrap(), all.account);
        let record = derive(&all.into_account(), facts(Nanos::from_secs(1)));
        let counts = record.counts;
        assert_eq!((counts.handshakes, counts.handshakes_resumed, counts.imbalance()), (2, 1, (0, 0)));
        assert_eq!((counts.tls_failed, counts.tls_failed_before_sending, counts.errors()), (1, 1, 1));
        assert_eq!((record.rates.handshakes, record.rates.handshakes_resumed), (2.0, 1.0));
        assert_eq!((record.handshake_time_us.unwrap().mean, record.connect_time_us.unwrap().mean), (300.0, 50.0));
        assert!(record.hdr.contains_key("handshake_time_us"));
        let failures: Vec<_> = record.tls_failures.iter().map(|failure| (failure.reason, failure.calls)).collect();
        assert_eq!(failures, [(TlsFault::Undecryptable, 1)]);
    }

    #[test]
    fn a_call_that_waited_for_its_session_is_late_from_when_it_could_begin() {
        let mut collector = collector(Nanos::from_secs(1));
        let mut call = PerCall::default();
        for event in [
            Event::Scheduled { class: ClassId(0), due: us(100) },
            Event::Ready { at: us(300) },
            Event::Begun { at: us(304) },
            Event::Sent { at: us(305) },
            completed(us(100), us(500)),
        ] {
            collector.on(&mut call, &event);
        }
        let record = derive(&collector.into_account(), facts(Nanos::from_secs(1)));
        let mean = |summary: Option<Summary>| summary.unwrap().mean;
        assert_eq!((mean(record.lateness_us), mean(record.response_time_us)), (4.0, 400.0));
    }

    #[test]
    fn sessions_are_in_the_record_of_a_run_that_has_some() {
        let session = |began, calls| {
            let ended = Nanos::from_secs(began + 3);
            let began = Nanos::from_secs(began);
            let outcome = SessionOutcome { began, ended, calls, bursts: 2, failed: false, began_before_run: false };
            SessionEnded { session: SessionId(calls), outcome, connections: 1 }
        };
        let figures = |collector: Collector| derive(&collector.into_account(), facts(Nanos::from_secs(10))).sessions;
        let mut one = collector(Nanos::from_secs(10));
        let mut other = one.clone();
        assert_eq!(figures(one.clone()), None);
        one.on_sessions_in_progress(0);
        assert_eq!(figures(one.clone()), None);
        one.on_session(&session(1, 8));
        other.on_session(&session(4, 4));
        other.on_sessions_in_progress(3);
        other.merge(one);
        let packed = other.account.pack();
        assert_eq!(Account::unpack(&packed).unwrap(), other.account);
        let figures = figures(other).unwrap();
        assert_eq!((figures.started, figures.rate, figures.calls.unwrap().mean), (5, 0.5, 6.0));
        assert_eq!(figures.lifetime_s.unwrap().max, 3.0);
        let empty = Collector::new(Account::new(&["all".to_owned()], Nanos::ZERO).with_sessions());
        assert_eq!(empty.into_account().pack().sessions, Some(PackedSessions::default()));
    }

    #[test]
    fn a_reply_after_the_window_is_completed_but_not_throughput() {
        let mut collector = collector(us(1_000));
        for (due, at) in [(0, 400), (500, 1_000), (900, 1_001)] {
            let mut call = PerCall::default();
            collector.on(&mut call, &Event::Scheduled { class: ClassId(0), due: us(due) });
            collector.on(&mut call, &Event::Sent { at: us(due) });
            collector.on(&mut call, &completed(us(due), us(at)));
        }
        let record = derive(&collector.into_account(), facts(us(1_000)));
        assert_eq!((record.counts.completed, record.rates.completed, record.rates.offered), (3, 2_000.0, 3_000.0));
    }

    #[test]
    fn an_engine_that_contradicts_itself_makes_the_run_invalid() {
        let mut collector = collector(us(1_000));
        let mut call = PerCall::default();
        let end = End::Reset { sent: false };
        let spec = CallSpec::for_class(ClassId(0));
        let outcome = Outcome { call: spec, due: us(0), at: us(9), end, bytes_sent: 100, bytes_received: 0 };
        for event in [
            Event::Scheduled { class: ClassId(0), due: us(0) },
            Event::Begun { at: us(1) },
            Event::Sent { at: us(2) },
            Event::Ended(outcome),
        ] {
            collector.on(&mut call, &event);
        }
        let verdict = derive(&collector.into_account(), facts(us(1_000))).verdict;
        assert_eq!(verdict.reasons.iter().map(|reason| reason.code).collect::<Vec<_>>(), [ReasonCode::Unbalanced]);
    }

    #[test]
    fn an_empty_run_is_a_record_without_times() {
        let record = derive(&collector(Nanos::ZERO).into_account(), facts(Nanos::ZERO));
        assert_eq!((record.response_time_us, record.rates.offered, record.intervals.len()), (None, 0.0, 0));
        assert!(record.hdr.is_empty());
    }

    #[test]
    fn memory_does_not_grow_with_the_run() {
        let mut collector = collector(Nanos::from_secs(3600));
        let before = collector.account.footprint();
        for i in 0..200_000_u64 {
            let due = Nanos::from_millis(100 * i);
            let mut call = PerCall::default();
            collector.on(&mut call, &Event::Scheduled { class: ClassId(0), due });
            collector.on(&mut call, &Event::Sent { at: due + us(1) });
            collector.on(&mut call, &completed(due, due + us(i)));
        }
        assert_eq!(collector.account.footprint(), before);
    }

    #[test]
    fn calls_are_counted_by_address_and_merged_by_its_name() {
        let mut shards = [["192.0.2.1:80", "192.0.2.2:80"], ["192.0.2.2:80", "192.0.2.3:80"]].map(|addresses| {
            let mut collector = collector(Nanos::from_secs(1));
            addresses.iter().for_each(|address| collector.on_address(address));
            for (address, took) in [(0, 100), (1, 200)] {
                let mut call = PerCall::default();
                collector.on(&mut call, &Event::Scheduled { class: ClassId(0), due: us(0) });
                // The first attempt of the call was sent to the other address.
                collector.on(&mut call, &Event::Routed { address: 1 - address });
                collector.on(&mut call, &Event::Routed { address });
                collector.on(&mut call, &Event::Established { at: us(10) });
                collector.on(&mut call, &completed(us(0), us(took)));
            }
            let mut call = PerCall::default();
            collector.on(&mut call, &Event::Scheduled { class: ClassId(0), due: us(0) });
            collector.on(&mut call, &Event::Routed { address: 1 });
            let Event::Ended(outcome) = completed(us(0), us(1)) else { panic!("`completed` returns `Event::Ended`") };
            collector.on(&mut call, &Event::Ended(Outcome { end: End::Refused, ..outcome }));
            collector
        });
        let other = shards[1].clone();
        shards[0].merge(other);
        let [merged, _] = shards;
        let account = merged.into_account();
        let record = derive(&account, facts(Nanos::from_secs(1)));
        let figures: Vec<_> = record
            .addresses
            .iter()
            .map(|of| (of.address.as_str(), of.calls, of.connections, of.completed, of.failed))
            .collect();
        let expected = [("192.0.2.1:80", 1, 1, 1, 0), ("192.0.2.2:80", 3, 2, 2, 1), ("192.0.2.3:80", 2, 1, 1, 1)];
        assert_eq!(figures, expected);
        assert_eq!(record.addresses[1].share, 0.5);
        assert_eq!(record.addresses[1].response_time_us.map(|summary| summary.mean), Some(150.0));
        assert_eq!(Account::unpack(&account.pack()).unwrap().pack(), account.pack());
    }

    #[test]
    fn addresses_outlive_what_is_handed_over() {
        let result_backup = ResultBackup::default();
        let empty = || Account::new(&["all".to_owned()], Nanos::from_secs(1));
        let mut collector = Collector::with_result_backup(empty(), &result_backup, empty());
        collector.on_address("192.0.2.1:80");
        for address in 0..3 {
            let mut call = PerCall::default();
            collector.on(&mut call, &Event::Scheduled { class: ClassId(0), due: us(0) });
            collector.on(&mut call, &Event::Routed { address });
            collector.on(&mut call, &completed(us(0), us(5)));
            collector.publish(us(6));
            result_backup.collect().unwrap();
            collector.on_address(["192.0.2.2:80", "192.0.2.3:80", "192.0.2.4:80"][usize::from(address)]);
        }
        let record = derive(&result_backup.complete(collector.into_account()).unwrap(), facts(Nanos::from_secs(1)));
        assert_eq!(record.addresses.iter().map(|of| of.calls).collect::<Vec<_>>(), [1, 1, 1, 0]);
    }
}
