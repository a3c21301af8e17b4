//! Counts and times of the calls of one class.

use crate::answers::{AnswerTimes, Times};
use crate::distribution::Distribution;
use crate::error::StatsError;
use crate::histogram::MAX_COUNT;
use brimful_core::End;
use brimful_core::account::PackedClass;
use brimful_core::counts::{Counts, WireBytes};
use brimful_core::record::{ClassRecord, StatusTimes};
use std::collections::BTreeMap;

/// Counts and times of the calls of one class, of one server address, or of all classes together.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tally {
    /// Name of the class, or address of the server.
    pub(crate) name: String,
    /// Number of calls, by outcome.
    pub(crate) counts: Counts,
    /// Response and service times of complete responses, by status class.
    pub(crate) answers: AnswerTimes,
    /// Times from the first byte sent to the first byte received, of completed calls.
    pub(crate) first_byte: Distribution,
    /// Times from when calls were due to when the generator began them.
    pub(crate) lateness: Distribution,
    /// Bytes sent and received.
    pub(crate) traffic: WireBytes,
}

impl Tally {
    /// Creates an empty tally. All its memory is allocated and written to.
    pub(crate) fn new(name: String) -> Tally {
        Tally::with(name, AnswerTimes::new(), Distribution::new)
    }

    /// Creates an empty tally into which others are merged. Unlike with [`Tally::new`], its memory is not written to in
    /// advance.
    pub(crate) fn none(name: &str) -> Tally {
        Tally::with(name.to_owned(), AnswerTimes::none(), Distribution::none)
    }

    fn with(name: String, answers: AnswerTimes, times: fn() -> Distribution) -> Tally {
        Tally {
            name,
            counts: Counts::default(),
            answers,
            first_byte: times(),
            lateness: times(),
            traffic: WireBytes::default(),
        }
    }

    /// Adds the counts and times of `other`.
    pub(crate) fn merge(&mut self, other: &Tally) {
        self.count(&other.counts, other.traffic);
        self.answers.merge(&other.answers);
        self.first_byte.merge(&other.first_byte);
        self.lateness.merge(&other.lateness);
    }

    /// Clears all counts and times, and keeps the memory.
    pub(crate) fn clear(&mut self) {
        let Tally { name: _, counts, answers, first_byte, lateness, traffic } = self;
        *counts = Counts::default();
        *traffic = WireBytes::default();
        answers.clear();
        [first_byte, lateness].into_iter().for_each(Distribution::clear);
    }

    /// The counts and times of a class as a Record contains them.
    pub(crate) fn to_record(&self) -> ClassRecord {
        let all = self.answers.completed();
        ClassRecord {
            counts: self.counts,
            response_time_us: all.response.summary(),
            service_time_us: all.service.summary(),
            first_byte_us: self.first_byte.summary(),
            lateness_us: self.lateness.summary(),
            bytes: Some(self.traffic),
            status_codes: self.answers.codes().map(|(code, count)| (code.to_string(), count)).collect(),
            status_classes: self.status_classes(),
        }
    }

    fn status_classes(&self) -> BTreeMap<String, StatusTimes> {
        let described = |(name, times): (&str, Times)| {
            let count = times.response.count();
            let (response_time_us, service_time_us) = (times.response.summary(), times.service.summary());
            (name.to_owned(), StatusTimes { count, response_time_us, service_time_us })
        };
        self.answers.by_status().into_iter().map(described).collect()
    }

    /// Number of completed calls that were answered with status 429 or 5xx; 0 if the workload expects particular
    /// statuses.
    pub(crate) fn error_answers(&self, expects_status: bool) -> u64 {
        if expects_status { 0 } else { self.answers.refusals() }
    }

    pub(crate) fn pack(&self) -> PackedClass {
        let mut packed = PackedClass {
            name: self.name.clone(),
            counts: self.counts,
            first_byte: self.first_byte.pack(),
            lateness: self.lateness.pack(),
            bytes: self.traffic,
            ..PackedClass::default()
        };
        self.answers.pack(&mut packed);
        packed
    }

    /// Restores the counts and times that [`Tally::pack`] serialised.
    pub(crate) fn unpack(packed: &PackedClass) -> Result<Tally, StatsError> {
        let mut read = Tally::none(&packed.name);
        read.add(packed)?;
        Ok(read)
    }

    /// Adds the counts and times that [`Tally::pack`] serialised.
    pub(crate) fn add(&mut self, packed: &PackedClass) -> Result<(), StatsError> {
        let WireBytes { received, sent } = packed.bytes;
        let mut counts = packed.counts;
        if fields(&mut counts).into_iter().any(|count| *count > MAX_COUNT) || received.max(sent) > MAX_COUNT << 20 {
            return Err(StatsError::Damaged(format!("class `{}` has more calls than any run", packed.name)));
        }
        self.count(&packed.counts, packed.bytes);
        self.answers.add(packed)?;
        self.first_byte.add(packed.first_byte.as_ref())?;
        self.lateness.add(packed.lateness.as_ref())
    }

    fn count(&mut self, counts: &Counts, traffic: WireBytes) {
        add(&mut self.counts, counts);
        self.traffic.received += traffic.received;
        self.traffic.sent += traffic.sent;
    }
}

/// Counts a call with this outcome.
pub(crate) fn count_end(counts: &mut Counts, end: End) {
    let counter = match end {
        End::Completed { status } => {
            count_status(counts, status);
            &mut counts.completed
        }
        End::Unexpected { status } => {
            count_status(counts, status);
            &mut counts.unexpected
        }
        End::Abandoned => &mut counts.abandoned,
        End::Refused => &mut counts.refused,
        End::Reset { sent } => {
            counts.reset_before_sending += u64::from(!sent);
            &mut counts.reset
        }
        End::ClosedOnReuse { sent } => {
            counts.reset_before_sending += u64::from(!sent);
            counts.closed_on_reuse += 1;
            &mut counts.reset
        }
        End::TimedOut => &mut counts.timed_out,
        End::Malformed => &mut counts.malformed,
        End::StreamReset => &mut counts.stream_reset,
        End::GoneAway => &mut counts.gone_away,
        End::TlsFailed { sent, .. } => {
            counts.tls_failed_before_sending += u64::from(!sent);
            &mut counts.tls_failed
        }
        End::ClientLimited(_) => &mut counts.client_limited,
        End::Unfinished { sent: true } => &mut counts.in_flight_at_end,
        End::Unfinished { sent: false } => &mut counts.unsent_at_end,
    };
    *counter += 1;
}

/// Counts a response with this status, by status class.
pub(crate) fn count_status(counts: &mut Counts, status: u16) {
    match status {
        ..200 => counts.status.s1xx += 1,
        200..=299 => counts.status.s2xx += 1,
        300..=399 => counts.status.s3xx += 1,
        400..=499 => {
            counts.status.s4xx += 1;
            counts.status.s429 += u64::from(status == 429);
        }
        500.. => counts.status.s5xx += 1,
    }
}

/// Adds each field of `counts` to the same field of `sum`.
pub(crate) fn add(sum: &mut Counts, counts: &Counts) {
    for (sum, count) in fields(sum).into_iter().zip(fields(&mut { *counts })) {
        *sum += *count;
    }
}

/// Number of fields of [`Counts`].
const COUNTS: usize = size_of::<Counts>() / size_of::<u64>();

/// References to all fields of [`Counts`].
fn fields(counts: &mut Counts) -> [&mut u64; COUNTS] {
    let status = &mut counts.status;
    [
        &mut counts.scheduled,
        &mut counts.sent,
        &mut counts.connect_attempts,
        &mut counts.established,
        &mut counts.completed,
        &mut counts.unexpected,
        &mut counts.abandoned,
        &mut counts.refused,
        &mut counts.reset,
        &mut counts.reset_before_sending,
        &mut counts.closed_on_reuse,
        &mut counts.retried_closed,
        &mut counts.timed_out,
        &mut counts.malformed,
        &mut counts.stream_reset,
        &mut counts.gone_away,
        &mut counts.refused_streams,
        &mut counts.tls_failed,
        &mut counts.tls_failed_before_sending,
        &mut counts.handshakes,
        &mut counts.handshakes_resumed,
        &mut counts.client_limited,
        &mut counts.in_flight_at_end,
        &mut counts.unsent_at_end,
        &mut counts.empty_lines,
        &mut status.s1xx,
        &mut status.s2xx,
        &mut status.s3xx,
        &mut status.s4xx,
        &mut status.s429,
        &mut status.s5xx,
    ]
}
