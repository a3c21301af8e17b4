//! What became of the calls of one class, and how long they took.

use crate::distribution::Distribution;
use brimful_core::End;
use brimful_core::record::{ClassRecord, Counts, StatusCounts, Traffic};

/// One class, or all of them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tally {
    pub(crate) name: String,
    pub(crate) counts: Counts,
    pub(crate) response: Distribution,
    pub(crate) service: Distribution,
    pub(crate) first_byte: Distribution,
    pub(crate) lateness: Distribution,
    pub(crate) traffic: Traffic,
}

impl Tally {
    pub(crate) fn new(name: String) -> Tally {
        Tally {
            name,
            counts: Counts::default(),
            response: Distribution::new(),
            service: Distribution::new(),
            first_byte: Distribution::new(),
            lateness: Distribution::new(),
            traffic: Traffic::default(),
        }
    }

    pub(crate) fn merge(&mut self, other: &Tally) {
        add(&mut self.counts, &other.counts);
        self.response.merge(&other.response);
        self.service.merge(&other.service);
        self.first_byte.merge(&other.first_byte);
        self.lateness.merge(&other.lateness);
        self.traffic.received += other.traffic.received;
        self.traffic.sent += other.traffic.sent;
    }

    pub(crate) fn to_record(&self) -> ClassRecord {
        ClassRecord {
            counts: self.counts,
            response_time_us: self.response.summary(),
            service_time_us: self.service.summary(),
            first_byte_us: self.first_byte.summary(),
            lateness_us: self.lateness.summary(),
            bytes: Some(self.traffic),
        }
    }
}

pub(crate) fn count_end(counts: &mut Counts, end: End) {
    let counter = match end {
        End::Completed { status } => {
            match status {
                200..=299 => counts.status.s2xx += 1,
                300..=399 => counts.status.s3xx += 1,
                400..=499 => counts.status.s4xx += 1,
                500..=599 => counts.status.s5xx += 1,
                _ => {}
            }
            &mut counts.completed
        }
        End::Abandoned => &mut counts.abandoned,
        End::Refused => &mut counts.refused,
        End::Reset { sent } => {
            counts.reset_before_sending += u64::from(!sent);
            &mut counts.reset
        }
        End::TimedOut => &mut counts.timed_out,
        End::Malformed => &mut counts.malformed,
        End::ClientLimited(_) => &mut counts.client_limited,
        End::Unfinished { sent: true } => &mut counts.in_flight_at_end,
        End::Unfinished { sent: false } => &mut counts.unsent_at_end,
    };
    *counter += 1;
}

/// Adds field by field; the pattern names every field so that a new one cannot be forgotten.
pub(crate) fn add(sum: &mut Counts, counts: &Counts) {
    let Counts {
        scheduled,
        sent,
        connect_attempts,
        established,
        completed,
        abandoned,
        refused,
        reset,
        reset_before_sending,
        timed_out,
        malformed,
        client_limited,
        in_flight_at_end,
        unsent_at_end,
        status: StatusCounts { s2xx, s3xx, s4xx, s5xx },
    } = *counts;
    sum.scheduled += scheduled;
    sum.sent += sent;
    sum.connect_attempts += connect_attempts;
    sum.established += established;
    sum.completed += completed;
    sum.abandoned += abandoned;
    sum.refused += refused;
    sum.reset += reset;
    sum.reset_before_sending += reset_before_sending;
    sum.timed_out += timed_out;
    sum.malformed += malformed;
    sum.client_limited += client_limited;
    sum.in_flight_at_end += in_flight_at_end;
    sum.unsent_at_end += unsent_at_end;
    sum.status.s2xx += s2xx;
    sum.status.s3xx += s3xx;
    sum.status.s4xx += s4xx;
    sum.status.s5xx += s5xx;
}
