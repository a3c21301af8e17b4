//! Everything a Record says about the load, from the events of its calls.
//!
//! - *Response time*: due → last byte, so a call that waits for the generator or for a connection has waited. *Service
//!   time*: first byte sent → last byte. *First byte*: first byte sent → first byte received. All three are taken of the
//!   completed calls, so that they compare. *Connect time*: every attempt that succeeded. *Lateness*: due → the
//!   generator acts, of every call that began.
//! - Counts and times are kept per class, and the totals are their sum when the run is over: no call is recorded twice.
//! - The two conservation laws of `Counts` hold for every legal sequence of events: before sending they follow from the
//!   outcomes, and a byte sent is counted by its own event, so an engine that contradicts itself shows.

use crate::batch::BatchMeans;
use crate::distribution::Distribution;
use crate::reply_rate::ReplySampler;
use crate::series::Series;
use crate::tally::{Tally, add, count_end};
use crate::verdict::{Evidence, Limited, Pacing, judge};
use brimful_core::record::{ClassRecord, Counts, Generator, Rates, Record, SCHEMA};
use brimful_core::server::Server;
use brimful_core::{ClassId, End, Event, Limit, Nanos, Observer, Outcome};
use std::collections::BTreeMap;

/// Observes one shard's calls.
#[derive(Clone, Debug)]
pub struct Collector {
    window: Nanos,
    /// By [`ClassId`].
    classes: Vec<Tally>,
    connect_time: Distribution,
    completed_in_window: u64,
    limited: Limited,
    series: Series,
    replies: ReplySampler,
    batches: BatchMeans,
}

/// What a [`Collector`] remembers of one call.
#[derive(Clone, Copy, Debug, Default)]
pub struct PerCall {
    class: u16,
    due: Nanos,
    connect_started: Option<Nanos>,
    sent: Option<Nanos>,
    first_byte: Option<Nanos>,
}

/// What a Record says that no event tells.
#[derive(Clone, Debug)]
pub struct RunFacts {
    /// Wall-clock time of the start, RFC 3339.
    pub started_at: String,
    /// `CLOCK_MONOTONIC` at the start.
    pub started_monotonic_ns: u64,
    /// From the start to the end of the last call.
    pub duration: Nanos,
    /// How long load was offered in the end.
    pub window: Nanos,
    /// The command line.
    pub command: Vec<String>,
    /// The URL, as resolved.
    pub target: String,
    /// Seed of all randomness.
    pub seed: u64,
    /// Whether the user ended the run early.
    pub interrupted: bool,
    /// What the load cost.
    pub generator: Generator,
    /// What the monitor saw.
    pub server: Option<Server>,
    /// What decided when calls were due.
    pub pacing: Pacing,
}

impl Collector {
    /// For a run with these classes, by [`ClassId`] and at least one, that offers load for `window` ([`Nanos::MAX`] when
    /// that is not known beforehand). All memory is taken and touched here: 3.5 MB, and 1.1 MB per class.
    pub fn new(classes: &[String], window: Nanos) -> Collector {
        Collector {
            window,
            classes: classes.iter().map(|name| Tally::new(name.clone())).collect(),
            connect_time: Distribution::new(),
            completed_in_window: 0,
            limited: Limited::default(),
            series: Series::new(),
            replies: ReplySampler::new(window),
            batches: BatchMeans::new(),
        }
    }

    /// What became of the calls so far, all classes together.
    pub fn counts(&self) -> Counts {
        self.classes.iter().fold(Counts::default(), |mut sum, tally| {
            add(&mut sum, &tally.counts);
            sum
        })
    }

    /// The run as a document, judged.
    pub fn into_record(self, run: RunFacts) -> Record {
        let class_records: BTreeMap<String, ClassRecord> =
            self.classes.iter().map(|tally| (tally.name.clone(), tally.to_record())).collect();
        let total = self.classes.into_iter().reduce(|mut sum, tally| {
            sum.merge(&tally);
            sum
        });
        let total = total.unwrap_or_else(|| Tally::new(String::new()));
        let totals = total.to_record();
        let counts = totals.counts;
        let per_second = |n: u64| {
            if run.window == Nanos::ZERO { 0.0 } else { n as f64 / run.window.as_secs_f64() }
        };
        let verdict = judge(&Evidence {
            totals: &totals,
            classes: &class_records,
            offered: per_second(counts.scheduled),
            limited: self.limited,
            window: run.window,
            generator: &run.generator,
            duration: run.duration,
            pacing: run.pacing,
            interrupted: run.interrupted,
        });
        let hdr = [
            ("response_time_us", &total.response),
            ("service_time_us", &total.service),
            ("connect_time_us", &self.connect_time),
            ("first_byte_us", &total.first_byte),
            ("lateness_us", &total.lateness),
        ];
        Record {
            schema: SCHEMA.to_owned(),
            started_at: run.started_at,
            started_monotonic_ns: run.started_monotonic_ns,
            duration_s: run.duration.as_secs_f64(),
            window_s: run.window.as_secs_f64(),
            command: run.command,
            target: run.target,
            seed: run.seed,
            interrupted: run.interrupted,
            verdict,
            rates: Rates {
                offered: per_second(counts.scheduled),
                sent: per_second(counts.sent),
                connect_attempts: per_second(counts.connect_attempts),
                established: per_second(counts.established),
                completed: per_second(self.completed_in_window),
            },
            counts,
            response_time_us: totals.response_time_us,
            response_mean_ci95_us: self.batches.ci95_half_width_us(),
            service_time_us: totals.service_time_us,
            connect_time_us: self.connect_time.summary(),
            first_byte_us: totals.first_byte_us,
            lateness_us: totals.lateness_us,
            bytes: total.traffic,
            reply_rate: self.replies.summary(run.window),
            classes: class_records,
            intervals: self.series.intervals(run.duration),
            hdr: hdr
                .into_iter()
                .filter(|(_, times)| times.count() > 0)
                .map(|(name, times)| (name.to_owned(), times.to_base64()))
                .collect(),
            hdr_value_unit: "ns".to_owned(),
            generator: run.generator,
            server: run.server,
            calibration: None,
        }
    }

    fn ended(&mut self, call: &PerCall, outcome: &Outcome) {
        let Outcome { due, at, .. } = *outcome;
        let tally = &mut self.classes[usize::from(outcome.class.0)];
        tally.traffic.sent += outcome.bytes_sent;
        tally.traffic.received += outcome.bytes_received;
        count_end(&mut tally.counts, outcome.end);
        match outcome.end {
            End::Completed { .. } => {
                let response_time = at - due;
                tally.response.record(response_time);
                if let Some(sent) = call.sent {
                    tally.service.record(at - sent);
                    if let Some(first_byte) = call.first_byte {
                        tally.first_byte.record(first_byte - sent);
                    }
                }
                self.completed_in_window += u64::from(at <= self.window);
                self.series.completed(at, response_time);
                self.replies.record(at);
                self.batches.record(at, response_time);
            }
            // The end of the run is no failure.
            End::Unfinished { .. } => {}
            End::ClientLimited(limit) => {
                match limit {
                    Limit::Descriptors => self.limited.descriptors += 1,
                    Limit::Ports => self.limited.ports += 1,
                    Limit::Memory => self.limited.memory += 1,
                }
                self.series.failed(at);
            }
            End::Abandoned | End::Refused | End::Reset { .. } | End::TimedOut | End::Malformed => {
                self.series.failed(at);
            }
        }
    }

    fn tally(&mut self, call: &PerCall) -> &mut Tally {
        &mut self.classes[usize::from(call.class)]
    }

    /// Bytes held by what could grow, for the test that it does not.
    #[cfg(test)]
    fn footprint(&self) -> usize {
        self.series.footprint() + self.replies.footprint() + self.classes.capacity() * size_of::<Tally>()
    }
}

impl Observer for Collector {
    type PerCall = PerCall;

    /// # Panics
    /// When an event names a class that [`Collector::new`] was not given.
    #[inline]
    fn on(&mut self, call: &mut PerCall, event: &Event) {
        match *event {
            Event::Scheduled { class: ClassId(class), due } => {
                *call = PerCall { class, due, ..PerCall::default() };
                self.tally(call).counts.scheduled += 1;
                self.series.offered(due);
            }
            Event::Begun { at } => self.tally(call).lateness.record(at - call.due),
            Event::ConnectStarted { at } => {
                call.connect_started = Some(at);
                self.tally(call).counts.connect_attempts += 1;
            }
            Event::Established { at } => {
                self.tally(call).counts.established += 1;
                if let Some(started) = call.connect_started.take() {
                    self.connect_time.record(at - started);
                }
            }
            Event::Sent { at } => {
                call.sent = Some(at);
                self.tally(call).counts.sent += 1;
                self.series.sent(at);
            }
            Event::FirstByte { at } => call.first_byte = Some(at),
            Event::Ended(ref outcome) => self.ended(call, outcome),
        }
    }

    /// Both are of the same run: the same classes and the same window.
    fn merge(&mut self, other: Collector) {
        for (tally, theirs) in self.classes.iter_mut().zip(&other.classes) {
            tally.merge(theirs);
        }
        self.connect_time.merge(&other.connect_time);
        self.completed_in_window += other.completed_in_window;
        self.limited.descriptors += other.limited.descriptors;
        self.limited.ports += other.limited.ports;
        self.limited.memory += other.limited.memory;
        self.series.merge(other.series);
        self.replies.merge(&other.replies);
        self.batches.merge(other.batches);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brimful_core::record::{ReasonCode, Traffic};

    fn us(us: u64) -> Nanos {
        Nanos::from_micros(us)
    }

    fn completed(due: Nanos, at: Nanos) -> Event {
        let end = End::Completed { status: 200 };
        Event::Ended(Outcome { class: ClassId(0), due, at, end, bytes_sent: 100, bytes_received: 1_000 })
    }

    fn facts(window: Nanos) -> RunFacts {
        RunFacts {
            started_at: "2024-01-01T00:00:00Z".to_owned(),
            started_monotonic_ns: 1,
            duration: window,
            window,
            command: vec![],
            target: "http://127.0.0.1/".to_owned(),
            seed: 1,
            interrupted: false,
            generator: Generator::default(),
            server: None,
            pacing: Pacing::Open,
        }
    }

    #[test]
    fn each_time_runs_from_where_its_definition_says() {
        let mut collector = Collector::new(&["all".to_owned()], Nanos::from_secs(1));
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
        let record = collector.into_record(facts(Nanos::from_secs(1)));
        let means = [
            record.response_time_us,
            record.service_time_us,
            record.connect_time_us,
            record.first_byte_us,
            record.lateness_us,
        ]
        .map(|summary| summary.unwrap().mean);
        assert_eq!(means, [370.0, 300.0, 50.0, 200.0, 7.0]);
        assert_eq!(record.bytes, Traffic { received: 1_000, sent: 100 });
        assert_eq!(record.classes["all"].bytes, Some(record.bytes));
        assert_eq!(record.hdr.len(), 5);
        assert_eq!(record.classes["all"].response_time_us, record.response_time_us);
        assert!(record.verdict.valid);
    }

    #[test]
    fn a_reply_after_the_window_is_completed_but_not_throughput() {
        let mut collector = Collector::new(&["all".to_owned()], us(1_000));
        for (due, at) in [(0, 400), (500, 1_000), (900, 1_001)] {
            let mut call = PerCall::default();
            collector.on(&mut call, &Event::Scheduled { class: ClassId(0), due: us(due) });
            collector.on(&mut call, &Event::Sent { at: us(due) });
            collector.on(&mut call, &completed(us(due), us(at)));
        }
        let record = collector.into_record(facts(us(1_000)));
        assert_eq!((record.counts.completed, record.rates.completed, record.rates.offered), (3, 2_000.0, 3_000.0));
    }

    #[test]
    fn an_engine_that_contradicts_itself_makes_the_run_invalid() {
        let mut collector = Collector::new(&["all".to_owned()], us(1_000));
        let mut call = PerCall::default();
        let end = End::Reset { sent: false };
        let outcome = Outcome { class: ClassId(0), due: us(0), at: us(9), end, bytes_sent: 100, bytes_received: 0 };
        for event in [
            Event::Scheduled { class: ClassId(0), due: us(0) },
            Event::Begun { at: us(1) },
            Event::Sent { at: us(2) },
            Event::Ended(outcome),
        ] {
            collector.on(&mut call, &event);
        }
        let verdict = collector.into_record(facts(us(1_000))).verdict;
        assert_eq!(verdict.reasons.iter().map(|reason| reason.code).collect::<Vec<_>>(), [ReasonCode::Unbalanced]);
    }

    #[test]
    fn an_empty_run_is_a_record_without_times() {
        let record = Collector::new(&["all".to_owned()], Nanos::ZERO).into_record(facts(Nanos::ZERO));
        assert_eq!((record.response_time_us, record.rates.offered, record.intervals.len()), (None, 0.0, 0));
        assert!(record.hdr.is_empty());
    }

    #[test]
    fn memory_does_not_grow_with_the_run() {
        let mut collector = Collector::new(&["all".to_owned()], Nanos::from_secs(3600));
        let before = collector.footprint();
        for i in 0..200_000_u64 {
            let due = Nanos::from_millis(100 * i);
            let mut call = PerCall::default();
            collector.on(&mut call, &Event::Scheduled { class: ClassId(0), due });
            collector.on(&mut call, &Event::Sent { at: due + us(1) });
            collector.on(&mut call, &completed(due, due + us(i)));
        }
        assert_eq!(collector.footprint(), before);
    }
}
