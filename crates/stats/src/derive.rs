//! `Record = derive(Account, Facts)` and nothing else: every figure of the load in a Record is computed here, from
//! everything that all shards saw, and the verdict is judged here, after they were merged.
//!
//! - *Response time*: due → last byte, so a call that waits for the generator or for a connection has waited. *Service
//!   time*: first byte sent → last byte. *First byte*: first byte sent → first byte received. All three are taken of the
//!   completed calls, so that they compare. *Connect time*: every attempt that succeeded. *Handshake time*: established
//!   → secured by TLS, of every handshake that succeeded. *Lateness*: due → the generator acts, of every call that began.

use crate::account::Account;
use crate::distribution::Distribution;
use crate::redirects::RedirectTally;
use crate::tally::Tally;
use crate::verdict::{Evidence, judge};
use brimful_core::record::{AddressRecord, ClassRecord, Generator, Rates, Record, SCHEMA, ShardOrigin};
use brimful_core::server::Server;
use brimful_core::tls::{TlsFailure, TlsSpoken};
use brimful_core::workload::{LoadKind, Statuses, Workload};
use brimful_core::{Nanos, TlsFault};
use std::collections::BTreeMap;

/// What a Record says that no event tells.
#[derive(Clone, Debug, Default)]
pub struct Facts {
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
    /// The load, without secrets.
    pub workload: Option<Workload>,
    /// Seed of all randomness.
    pub seed: u64,
    /// Whether the user ended the run early.
    pub interrupted: bool,
    /// The version of HTTP: `1.0`, `1.1` or `2`.
    pub http: Option<String>,
    /// What TLS was agreed on, if any was.
    pub tls: Option<TlsSpoken>,
    /// Whether the server speaks TLS and was loaded without.
    pub wants_tls: bool,
    /// What the load cost.
    pub generator: Generator,
    /// What the monitor saw.
    pub server: Option<Server>,
    /// Which parts of a load these are; empty where it was made in one.
    pub shards: Vec<ShardOrigin>,
}

impl Facts {
    /// What decided when calls were due.
    pub(crate) fn load_kind(&self) -> LoadKind {
        LoadKind::of(self.workload.as_ref())
    }

    /// Whether the Workload says which statuses a class has to be answered with.
    fn expects_status(&self, class: &str) -> bool {
        expected_statuses(self.workload.as_ref(), class).is_some()
    }
}

/// The statuses that a class of the Workload has to be answered with, if it says so.
pub(crate) fn expected_statuses<'a>(workload: Option<&'a Workload>, class: &str) -> Option<&'a Statuses> {
    let class = workload?.classes.iter().find(|candidate| candidate.name == class)?;
    class.expect.as_ref()?.status.as_ref()
}

/// The run as a document, judged.
pub fn derive(account: &Account, facts: Facts) -> Record {
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
        shards: &facts.shards,
    });
    let hdr = [
        ("response_time_us", Some(&times.response)),
        ("service_time_us", Some(&times.service)),
        ("connect_time_us", Some(&account.connect_time)),
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
        command: facts.command,
        target: facts.target,
        workload: facts.workload,
        seed: facts.seed,
        interrupted: facts.interrupted,
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

/// What became of the calls by address, in the order of the addresses: that in which shards are merged does not matter.
fn addresses(account: &Account) -> Vec<AddressRecord> {
    let calls = |tally: &Tally| tally.counts.scheduled;
    let all: u64 = account.addresses.iter().map(calls).sum();
    let of_address = |tally: &Tally| AddressRecord {
        address: tally.name.clone(),
        connections: tally.counts.established,
        calls: calls(tally),
        share: if all == 0 { 0.0 } else { calls(tally) as f64 / all as f64 },
        completed: tally.counts.completed,
        failed: tally.counts.errors(),
        response_time_us: tally.answers.completed().response.summary(),
    };
    let mut addresses: Vec<AddressRecord> = account.addresses.iter().map(of_address).collect();
    addresses.sort_by(|one, other| one.address.cmp(&other.address));
    addresses
}

/// The response times of each status class, where there are several: of one class they are those of all calls.
fn hdr_by_status(total: &Tally) -> Vec<(String, String)> {
    let by_status = total.answers.by_status();
    let several = total.answers.classes() > 1;
    let named = by_status.iter().map(|(name, times)| (format!("response_time_us.{name}"), times.response.to_base64()));
    named.filter(|_| several).collect()
}

/// Calls that TLS failed, in words.
fn failure((why, calls): (&TlsFault, &u64)) -> TlsFailure {
    TlsFailure { reason: *why, message: format!("{why}: {}", why.remedy()), calls: *calls }
}
