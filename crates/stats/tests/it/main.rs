//! Tests the properties of collectors (the statistics of a run) in random runs: no call is lost, and the division of a
//! run into shards makes no difference. The other files test comparisons and histories of runs.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod compared_runs;
mod comparing;
mod histories;

use brimful_core::account::{PackedAccount, PackedInterval, PackedTimes};
use brimful_core::record::{Interval, Record, ShardOrigin};
use brimful_core::workload::{Load, Workload};
use brimful_core::{CallSpec, ClassId, End, Event, ExhaustedResource, Nanos, Observer, Outcome, TlsFault};
use brimful_stats::{Account, Collector, Distribution, LiveProgress, PerCall, RunFacts, derive, merge};
use proptest::prelude::*;

const WINDOW: Nanos = Nanos::from_secs(400);

/// A random call: the durations between its events, and its outcome.
#[derive(Clone, Debug)]
struct Call {
    class: u16,
    due: u64,
    steps: [u64; 6],
    new_connection: bool,
    end: End,
}

impl Call {
    /// The events of the call, up to the last one that is possible with the outcome `end`. For example, a refused
    /// connection sends no request.
    fn events(&self) -> Vec<Event> {
        let due = Nanos(self.due);
        let mut now = due;
        let mut step = |i: usize| {
            now += Nanos(self.steps[i]);
            now
        };
        let (connects, connected, sent, answered) = match self.end {
            End::Completed { .. } => (self.new_connection, self.new_connection, true, true),
            End::Reset { sent: true }
            | End::ClosedOnReuse { sent: true }
            | End::TlsFailed { sent: true, .. }
            | End::TimedOut
            | End::Unfinished { sent: true } => {
                (self.new_connection, self.new_connection, true, self.due.is_multiple_of(2))
            }
            End::GoneAway => (self.new_connection, self.new_connection, true, false),
            End::Malformed | End::StreamReset | End::Unexpected { .. } => {
                (self.new_connection, self.new_connection, true, true)
            }
            End::Reset { sent: false } | End::ClosedOnReuse { sent: false } | End::TlsFailed { sent: false, .. } => {
                (true, true, false, false)
            }
            End::Abandoned | End::Refused => (true, false, false, false),
            End::ClientLimited(_) | End::Unfinished { sent: false } => (false, false, false, false),
        };
        let mut events = vec![Event::Scheduled { class: ClassId(self.class), due }, Event::Begun { at: step(0) }];
        let reached = [
            (connects, Event::ConnectStarted { at: step(1) }),
            (connected, Event::Established { at: step(2) }),
            (sent, Event::Sent { at: step(3) }),
            (answered, Event::FirstByte { at: step(4) }),
        ];
        events.extend(reached.into_iter().filter_map(|(is, event)| is.then_some(event)));
        events.push(Event::Ended(Outcome {
            call: CallSpec::for_class(ClassId(self.class)),
            due,
            at: step(5),
            end: self.end,
            bytes_sent: if sent { 80 } else { 0 },
            bytes_received: if answered { 1_294 } else { 0 },
        }));
        events
    }
}

fn end() -> impl Strategy<Value = End> {
    prop_oneof![
        5 => (100_u16..700).prop_map(|status| End::Completed { status }),
        1 => Just(End::Abandoned),
        1 => Just(End::Refused),
        1 => any::<bool>().prop_map(|sent| End::Reset { sent }),
        1 => any::<bool>().prop_map(|sent| End::ClosedOnReuse { sent }),
        1 => Just(End::TimedOut),
        1 => Just(End::Malformed),
        1 => any::<bool>().prop_map(|sent| End::TlsFailed { sent, why: TlsFault::Protocol }),
        1 => Just(End::StreamReset),
        1 => Just(End::GoneAway),
        1 => (100_u16..700).prop_map(|status| End::Unexpected { status }),
        1 => prop_oneof![Just(ExhaustedResource::Descriptors), Just(ExhaustedResource::Ports), Just(ExhaustedResource::Memory)]
            .prop_map(End::ClientLimited),
        1 => any::<bool>().prop_map(|sent| End::Unfinished { sent }),
    ]
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    // Times between events are of every order of magnitude, from nanoseconds to a minute.
    let step = (0_u32..36).prop_flat_map(|log| 0..1_u64 << log);
    let call = (0_u16..3, 0..WINDOW.0, prop::array::uniform6(step), any::<bool>(), end());
    let call =
        call.prop_map(|(class, due, steps, new_connection, end)| Call { class, due, steps, new_connection, end });
    prop::collection::vec(call, 0..60)
}

fn account() -> Account {
    Account::new(&["a", "b", "c"].map(str::to_owned), WINDOW)
}

fn seen<'a>(calls: impl Iterator<Item = &'a Call>) -> Account {
    let mut collector = Collector::new(account());
    for call in calls {
        let mut memory = PerCall::default();
        call.events().iter().for_each(|event| collector.on(&mut memory, event));
    }
    collector.into_account()
}

/// Distributes the calls over `k` shards, and returns the counts and times of each shard.
fn shards(calls: &[Call], k: usize) -> Vec<Account> {
    (0..k).map(|i| seen(calls.iter().skip(i).step_by(k))).collect()
}

fn record(account: &Account) -> Record {
    derive(account, facts())
}

fn facts() -> RunFacts {
    RunFacts {
        duration: Nanos::from_secs(500),
        window: WINDOW,
        target: "http://127.0.0.1/".to_owned(),
        workload: Some(Workload::single_class("GET", "/")),
        seed: 1,
        ..RunFacts::default()
    }
}

/// The smallest of the sorted values that at least the share `q` of them does not exceed.
fn exact_quantile(sorted: &[u64], q: f64) -> f64 {
    sorted[((q * sorted.len() as f64).ceil() as usize).max(1) - 1] as f64 / 1e3
}

fn close(a: f64, b: f64, tolerance: f64) -> bool {
    (a - b).abs() <= tolerance * a.abs().max(b.abs())
}

fn distribution(times: &[u64]) -> Distribution {
    let mut distribution = Distribution::new();
    times.iter().for_each(|&t| distribution.record(Nanos(t)));
    distribution
}

fn times() -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec((0_u32..41).prop_flat_map(|log| 0..1_u64 << log), 1..400)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_call_is_accounted_for(calls in calls()) {
        let record = record(&seen(calls.iter()));
        prop_assert_eq!(record.counts.imbalance(), (0, 0));
        prop_assert_eq!(record.counts.scheduled, calls.len() as u64);
        for class in record.classes.values() {
            prop_assert_eq!(class.counts.imbalance(), (0, 0));
        }
        let of_classes: u64 = record.classes.values().map(|class| class.counts.completed).sum();
        prop_assert_eq!(of_classes, record.counts.completed);
        prop_assert_eq!(record.response_time_us.map_or(0, |s| s.count), record.counts.completed);
        prop_assert_eq!(record.lateness_us.map_or(0, |s| s.count), record.counts.scheduled);
        prop_assert_eq!(record.connect_time_us.map_or(0, |s| s.count), record.counts.established);
    }

    #[test]
    fn the_series_adds_up_to_the_counts(calls in calls()) {
        let record = record(&seen(calls.iter()));
        let total = |f: fn(&brimful_core::record::Interval) -> u64| record.intervals.iter().map(f).sum::<u64>();
        prop_assert_eq!(total(|i| i.offered), record.counts.scheduled);
        prop_assert_eq!(total(|i| i.sent), record.counts.sent);
        prop_assert_eq!(total(|i| i.completed), record.counts.completed);
        prop_assert_eq!(total(|i| i.errors), record.counts.errors());
    }

    /// Merges the counts and times of several shards, and derives a Record. Expects the same Record and the same
    /// histograms as from a single shard with all calls.
    #[test]
    fn split_over_shards_is_the_same_run(calls in calls(), k in 1_usize..5) {
        let whole = seen(calls.iter());
        let split = shards(&calls, k).into_iter().reduce(|sum, shard| sum.merge(shard).unwrap()).unwrap();
        prop_assert_eq!(record(&whole), record(&split));
        prop_assert_eq!(whole, split);
    }

    #[test]
    fn merging_is_commutative_and_associative(calls in calls()) {
        let [a, b, c] = <[Account; 3]>::try_from(shards(&calls, 3)).unwrap();
        let left = a.clone().merge(b.clone()).unwrap().merge(c.clone()).unwrap();
        let right = a.clone().merge(b.clone().merge(c.clone()).unwrap()).unwrap();
        prop_assert_eq!(&left, &right);
        prop_assert_eq!(left, c.merge(b).unwrap().merge(a).unwrap());
    }

    #[test]
    fn quantiles_are_those_of_the_sorted_values(mut times in times()) {
        let summary = distribution(&times).summary().unwrap();
        times.sort_unstable();
        let quantiles = [
            (0.5, summary.p50), (0.9, summary.p90), (0.95, summary.p95), (0.99, summary.p99), (0.999, summary.p999),
        ];
        for (q, measured) in quantiles {
            let exact = exact_quantile(&times, q);
            prop_assert!(close(measured, exact, 0.001), "p{}: {} is not {}", 100.0 * q, measured, exact);
        }
        prop_assert_eq!(summary.min, times[0] as f64 / 1e3);
        prop_assert_eq!(summary.max, times[times.len() - 1] as f64 / 1e3);
        let mean = times.iter().sum::<u64>() as f64 / times.len() as f64 / 1e3;
        prop_assert!(close(summary.mean, mean, 1e-12));
    }

    /// Expects that a display shows the same statistics as a Record made at the same moment. This must not depend on
    /// which earlier summaries were published, and which were skipped because a reader had locked them.
    #[test]
    fn what_is_shown_is_what_was_seen(calls in calls(), shown_after in prop::collection::vec(0_usize..60, 0..4)) {
        let live = LiveProgress::default();
        let mut collectors = [(); 2].map(|()| Collector::with_live(account(), &live));
        let mut last = Nanos::ZERO;
        for (i, call) in calls.iter().enumerate() {
            let mut memory = PerCall::default();
            for event in call.events() {
                collectors[i % 2].on(&mut memory, &event);
                if let Event::Ended(outcome) = event {
                    last = last.max(outcome.at);
                }
            }
            if shown_after.contains(&i) {
                collectors[i % 2].publish(last);
            }
        }
        collectors.iter_mut().for_each(|collector| collector.publish(last));
        let (shown, record) = (live.summary(), record(&seen(calls.iter())));
        prop_assert_eq!(shown.counts(), record.counts);
        prop_assert_eq!(shown.at, last);
        let used = |intervals: Vec<Interval>| {
            let events = |i: &Interval| i.offered + i.sent + i.completed + i.errors;
            intervals.into_iter().filter(|i| events(i) > 0).collect::<Vec<_>>()
        };
        prop_assert_eq!(used(shown.intervals()), used(record.intervals));
    }

    #[test]
    fn an_account_survives_the_document(calls in calls()) {
        let account = seen(calls.iter());
        prop_assert_eq!(Account::unpack(&account.pack()), Ok(account));
    }

    /// Merges Records as `brimful merge` does, only from their documents. Expects that the result depends neither on
    /// the order of the Records, nor on whether two of them are merged first.
    #[test]
    fn merged_records_are_the_record_of_all(calls in calls(), order in Just([0, 1, 2]).prop_shuffle()) {
        let of_shards = |account: &Account, shards: Vec<ShardOrigin>| derive(account, RunFacts { shards, ..facts() });
        let parts = shards(&calls, 3);
        let origin = |index| ShardOrigin { index, total: 3, ..ShardOrigin::default() };
        let [a, b, c] = [0, 1, 2].map(|i| of_shards(&parts[i], vec![origin(i as u64 + 1)]));
        // In the merged Record, each shard must keep its own reasons for its invalid verdict.
        let said = |i: u64, part: &Record| ShardOrigin { reasons: part.verdict.reasons.clone(), ..origin(i) };
        let whole = of_shards(&seen(calls.iter()), vec![said(1, &a), said(2, &b), said(3, &c)]);
        let all = [a, b, c];
        let records = order.map(|i| (format!("{i}.json"), all[i].clone()));
        prop_assert_eq!(&merge(records.to_vec()).unwrap(), &whole);
        let [a, b, c] = records;
        let two = ("two.json".to_owned(), merge(vec![a, b]).unwrap());
        prop_assert_eq!(merge(vec![c, two]).unwrap(), whole);
    }

    #[test]
    fn no_document_panics(
        calls in calls(), text in ".{0,80}", bytes in prop::collection::vec(any::<u8>(), 0..120), at in 0_usize..100, n: u64,
    ) {
        use base64::{Engine, engine::general_purpose::STANDARD};
        let packed = seen(calls.iter()).pack();
        let times = |histogram| Some(PackedTimes { histogram, max: n, ..PackedTimes::default() });
        let good = distribution(&[1, 2_000, 3_000_000]).to_base64();
        let mut damaged = STANDARD.decode(good).unwrap();
        let at = at % damaged.len();
        damaged.splice(at.., bytes.clone());
        if let Ok(length) = u32::try_from(damaged.len().saturating_sub(40)) && damaged.len() > 40 {
            damaged[4..8].copy_from_slice(&length.to_be_bytes());
        }
        let interval = |text: &str| vec![PackedInterval { response_us: Some(text.to_owned()), ..PackedInterval::default() }];
        for other in [
            PackedAccount { connect_time: times(text.clone()), ..packed.clone() },
            PackedAccount { connect_time: times(STANDARD.encode(&bytes)), ..packed.clone() },
            PackedAccount { connect_time: times(STANDARD.encode(&damaged)), ..packed.clone() },
            PackedAccount { intervals: interval(&STANDARD.encode(&damaged)), ..packed.clone() },
            PackedAccount { interval_s: f64::from_bits(n), batch_ns: n.rotate_left(7), ..packed.clone() },
            PackedAccount { batch_ns: n, ..packed.clone() },
            PackedAccount { replies: vec![n; 100], ..packed.clone() },
            PackedAccount { window_ns: Some(n), ..packed.clone() },
            PackedAccount { completed_in_window: n, classes: Vec::new(), ..packed.clone() },
        ] {
            if let Ok(read) = Account::unpack(&other) {
                let _ = Account::unpack(&packed).unwrap().merge(read);
            }
        }
    }
}

#[test]
fn records_that_are_not_of_one_load_are_refused_by_name() {
    let shard = |index, of| vec![ShardOrigin { index, total: of, ..ShardOrigin::default() }];
    let first = || Record { shards: shard(1, 2), ..record(&account()) };
    let second = || Record { shards: shard(2, 2), ..first() };
    let refusal = |other: Record| {
        let records = vec![("b.json".to_owned(), other), ("a.json".to_owned(), first())];
        merge(records).unwrap_err().to_string()
    };
    let other_window = Account::new(&["a", "b", "c"].map(str::to_owned), Nanos::from_secs(1)).pack();
    let mut damaged = second();
    if let Some(account) = &mut damaged.account {
        account.interval_s = 3.0;
    }
    let load = Some(Load::Closed { clients: 3, think: Nanos::ZERO });
    let closed = Workload { load, ..Workload::single_class("GET", "/") };
    for (other, said) in [
        (first(), "b.json and a.json both hold shard 1/2: name"),
        (Record { shards: shard(2, 3), ..first() }, "the number of shards of the one is 2, that of the other 3"),
        (Record { seed: 2, ..second() }, "the seed of the one is 1, that of the other 2"),
        (Record { target: "http://b/".to_owned(), ..second() }, "that of the other http://b/; merge runs that differ"),
        (
            Record { workload: Some(closed.clone()), ..second() },
            "the kind of load of the one is open, that of the other closed",
        ),
        (Record { account: Some(other_window), ..second() }, "planned durations differ (400s and 1s)"),
        (Record { shards: Vec::new(), ..second() }, "b.json: it is a whole load and no part of one"),
        (Record { account: None, ..second() }, "b.json: it has no `account`, which merging needs"),
        (damaged, "b.json: its account is damaged (intervals of a length"),
    ] {
        let refusal = refusal(other);
        assert!(refusal.contains(said), "{refusal}");
    }
    assert!(merge(Vec::new()).unwrap_err().to_string().contains("name the Records"));
}
