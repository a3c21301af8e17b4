//! `Record = derive(Account, RunFacts)`: computes all metrics of the load in a Record, and the verdict, from the merged
//! counts and times of all shards (the Account). Each time is measured between two events of a call or of a connection:
//!
//! - *Response time*: due → last byte received. So it includes the wait for the generator and for a connection.
//! - *Service time*: first byte sent → last byte received.
//! - *First byte*: first byte sent → first byte received. These first three times cover the same calls: all completed
//!   calls.
//! - *Connect time*: start of the connection attempt → established, of every attempt that succeeded.
//! - *Connection lifetime*: start of the connection attempt → closed, of every connection with a complete response.
//! - *Handshake time*: connection established → TLS handshake complete, of every handshake that succeeded.
//! - *Lateness*: due → the generator began the call, of every call that began.

use crate::account::Account;
use crate::distribution::Distribution;
use crate::redirects::RedirectTally;
use crate::tally::Tally;
use crate::verdict::{Evidence, judge};
use brimful_core::record::{AddressRecord, ClassRecord, Generator, Machine, Rates, Record, SCHEMA, ShardOrigin};
use brimful_core::server::Server;
use brimful_core::tls::{NegotiatedTls, TlsFailure};
use brimful_core::workload::{LoadKind, Statuses, Workload};
use brimful_core::{Nanos, TlsFault};
use std::collections::BTreeMap;

/// The contents of a Record that do not follow from the events of calls, such as its start time, target and seed.
#[derive(Clone, Debug, Default)]
pub struct RunFacts {
    /// Wall-clock time at the start of the run, in RFC 3339 format.
    pub started_at: String,
    /// `CLOCK_MONOTONIC` at the start of the run, in nanoseconds.
    pub started_monotonic_ns: u64,
    /// Time from the start of the run to the end of its last call.
    pub duration: Nanos,
    /// Actual length of the window in which load was offered.
    pub window: Nanos,
    /// The version of brimful that made the load; `None` if it is not known.
    pub brimful_version: Option<String>,
    /// The brimful command that made the run, with its arguments.
    pub command: Vec<String>,
    /// Labels that the user gave the run.
    pub labels: BTreeMap<String, String>,
    /// The machine that generated the load.
    pub machine: Option<Machine>,
    /// The name of the server's software, as the server states it.
    pub server_software: Option<String>,
    /// The requested URL as the user wrote it, with its scheme.
    pub target: String,
    /// The workload, without secrets.
    pub workload: Option<Workload>,
    /// Seed of all random numbers of the run.
    pub seed: u64,
    /// Whether the user ended the run early.
    pub interrupted: bool,
    /// The condition that ended the run early; `None` if no condition did.
    pub stopped_by: Option<String>,
    /// Length of the warm-up before the run, in seconds; `None` without one.
    pub warm_up_s: Option<f64>,
    /// HTTP version of the run: `1.0`, `1.1` or `2`.
    pub http: Option<String>,
    /// TLS parameters that were negotiated; `None` without TLS.
    pub tls: Option<NegotiatedTls>,
    /// Whether the URL begins with `http://` although the server expects TLS on this port.
    pub wants_tls: bool,
    /// CPU time and other resources that the load used on the host that generated it.
    pub generator: Generator,
    /// The monitor's observations of the server, if a monitor was running.
    pub server: Option<Server>,
    /// The shards whose Records were merged, or the only shard; empty if the load was not split into shards.
    pub shards: Vec<ShardOrigin>,
}

impl RunFacts {
    /// Whether the load was open, closed, or made by S-Clients (which abandon connection attempts after a timeout).
    pub(crate) fn load_kind(&self) -> LoadKind {
        LoadKind::from_workload(self.workload.as_ref())
    }

    /// Whether the workload specifies the response statuses that it expects for a class.
    fn expects_status(&self, class: &str) -> bool {
        expected_statuses(self.workload.as_ref(), class).is_some()
    }
}

/// The response statuses that the workload expects for a class; `None` if it specifies none.
pub(crate) fn expected_statuses<'a>(workload: Option<&'a Workload>, class: &str) -> Option<&'a Statuses> {
    let class = workload?.classes.iter().find(|candidate| candidate.name == class)?;
    class.expect.as_ref()?.status.as_ref()
}

/// Computes the Record of a run, including its verdict.
pub fn derive(account: &Account, facts: RunFacts) -> Record {
    let class_records: BTreeMap<String, ClassRecord> =
        account.classes.iter().map(|tally| (tally.name.clone(), tally.to_record())).collect();
    let total = account.classes.iter().fold(Tally::new(String::new()), |mut sum, tally| {
        sum.merge(tally);
        sum
    });
    let totals = total.to_record();
    let times = total.answers.completed();
    let error_answers =
        account.classes.iter().map(|tally| tally.error_answers(facts.expects_status(&tally.name))).sum();
    let counts = totals.counts;
    let per_second = |n: u64| if facts.window == Nanos::ZERO { 0.0 } else { n as f64 / facts.window.as_secs_f64() };
    let verdict = judge(&Evidence {
        totals: &totals,
        error_answers,
        classes: &class_records,
        followed: account.redirects.as_ref().map(|redirects| redirects.followed.counts),
        offered: per_second(counts.scheduled),
        limited: account.limited,
        window: facts.window,
        generator: &facts.generator,
        duration: facts.duration,
        load: facts.load_kind(),
        interrupted: facts.interrupted,
        stopped: facts.stopped_by.is_some(),
        shards: &facts.shards,
    });
    let hdr = [
        ("response_time_us", Some(&times.response)),
        ("service_time_us", Some(&times.service)),
        ("connect_time_us", Some(&account.connect_time)),
        ("connection_lifetime_us", Some(&account.connection_lifetime)),
        ("handshake_time_us", account.handshake_time.as_ref()),
        ("first_byte_us", Some(&total.first_byte)),
        ("lateness_us", Some(&total.lateness)),
    ];
    Record {
        schema: SCHEMA.to_owned(),
        started_at: facts.started_at,
        started_monotonic_ns: facts.started_monotonic_ns,
        duration_s: facts.duration.as_secs_f64(),
        window_s: facts.window.as_secs_f64(),
        brimful_version: facts.brimful_version,
        command: facts.command,
        labels: facts.labels,
        machine: facts.machine,
        server_software: facts.server_software,
        target: facts.target,
        workload: facts.workload,
        seed: facts.seed,
        interrupted: facts.interrupted,
        stopped_by: facts.stopped_by,
        warm_up_s: facts.warm_up_s,
        verdict,
        rates: Rates {
            offered: per_second(counts.scheduled),
            sent: per_second(counts.sent),
            connect_attempts: per_second(counts.connect_attempts),
            established: per_second(counts.established),
            handshakes: per_second(counts.handshakes),
            handshakes_resumed: per_second(counts.handshakes_resumed),
            completed: per_second(account.completed_in_window),
        },
        counts,
        status_codes: totals.status_codes,
        status_classes: totals.status_classes,
        response_time_us: totals.response_time_us,
        response_mean_ci95_us: account.batches.ci95_half_width_us(),
        service_time_us: totals.service_time_us,
        connect_time_us: account.connect_time.summary(),
        connection_lifetime_us: account.connection_lifetime.summary(),
        responses_per_connection: (account.connection_lifetime.count() > 0)
            .then(|| account.responses_on_closed as f64 / account.connection_lifetime.count() as f64),
        handshake_time_us: account.handshake_time.as_ref().and_then(Distribution::summary),
        first_byte_us: totals.first_byte_us,
        lateness_us: totals.lateness_us,
        http: facts.http,
        tls: facts.tls,
        tls_failures: account.tls_faults.iter().map(failure).collect(),
        http2_errors: account.http2_errors.list(),
        wants_tls: facts.wants_tls,
        bytes: total.traffic,
        reply_rate: account.replies.summary(facts.window),
        classes: class_records,
        addresses: addresses(account),
        sessions: account.sessions.as_ref().map(|sessions| sessions.figures(facts.window)),
        redirects: account.redirects.as_ref().map(RedirectTally::figures),
        intervals: account.series.intervals(facts.duration),
        hdr: hdr
            .into_iter()
            .filter_map(|(name, times)| Some((name, times.filter(|times| times.count() > 0)?)))
            .map(|(name, times)| (name.to_owned(), times.to_base64()))
            .chain(hdr_by_status(&total))
            .collect(),
        hdr_value_unit: "ns".to_owned(),
        generator: facts.generator,
        server: facts.server,
        objectives: Vec::new(),
        calibration: None,
        shards: facts.shards,
        account: Some(account.pack()),
    }
}

/// Results by server address. They are sorted by address, so the order in which shards were merged makes no difference.
fn addresses(account: &Account) -> Vec<AddressRecord> {
    let calls = |tally: &Tally| tally.counts.scheduled;
    let all: u64 = account.addresses.iter().map(calls).sum();
    let address_record = |tally: &Tally| AddressRecord {
        address: tally.name.clone(),
        connections: tally.counts.established,
        calls: calls(tally),
        share: if all == 0 { 0.0 } else { calls(tally) as f64 / all as f64 },
        completed: tally.counts.completed,
        failed: tally.counts.errors(),
        response_time_us: tally.answers.completed().response.summary(),
    };
    let mut addresses: Vec<AddressRecord> = account.addresses.iter().map(address_record).collect();
    addresses.sort_by(|one, other| one.address.cmp(&other.address));
    addresses
}

/// Response times by status class, as histograms in base64. Empty if only one status class has responses, because its
/// times are the times of all calls.
fn hdr_by_status(total: &Tally) -> Vec<(String, String)> {
    let by_status = total.answers.by_status();
    let several = total.answers.classes() > 1;
    let named = by_status.iter().map(|(name, times)| (format!("response_time_us.{name}"), times.response.to_base64()));
    named.filter(|_| several).collect()
}

/// The number of calls that failed because of one TLS fault, with an explanation of the fault.
fn failure((why, calls): (&TlsFault, &u64)) -> TlsFailure {
    TlsFailure { reason: *why, message: format!("{why}: {}", why.remedy()), calls: *calls }
}
