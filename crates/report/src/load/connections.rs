//! The part of a run's report about connections (how they were established and secured) and sessions.

use super::Detail;
use super::layout::{labelled, ratio, row, table, time};
use super::percentile::{P50, P90, P99, Percentile};
use brimful_core::counts::Counts;
use brimful_core::quantity::{count, number, percent, rate, seconds};
use brimful_core::record::{Record, SessionResults, SessionSummary, Summary};
use brimful_core::tls::NegotiatedTls;

/// The lines about connection attempts, lifetimes of connections, TLS handshakes and negotiated TLS parameters.
pub(super) fn connections(record: &Record) -> Vec<String> {
    let rates = &record.rates;
    // HTTP/1.1 is the default and is not mentioned.
    let other = record.http.as_deref().filter(|http| *http != "1.1");
    let protocol = other.map(|http| labelled("Protocol", &format!("HTTP/{http}")));
    let rate = format!(
        "{} attempted, {} established, at most {} open at once",
        rate(rates.connect_attempts),
        rate(rates.established),
        count(record.generator.max_open_connections)
    );
    let times = |summary: Option<&Summary>| {
        summary.map_or("-".to_owned(), |s| {
            format!(
                "min {}, mean {}, median {}, max {}, stddev {}",
                time(s.min),
                time(s.mean),
                time(s.p50),
                time(s.max),
                time(s.stddev)
            )
        })
    };
    let connect = times(record.connect_time_us.as_ref());
    let mut lines: Vec<String> = protocol.into_iter().collect();
    lines.extend([labelled("Connection rate", &rate), labelled("Connection time", &connect)]);
    if let (Some(lifetime), Some(responses)) = (&record.connection_lifetime_us, record.responses_per_connection) {
        let lifetime = format!("{}; {} responses per connection", times(Some(lifetime)), number(responses));
        lines.push(labelled("Lifetime", &lifetime));
    }
    if record.counts.handshakes > 0 {
        lines.push(labelled("Handshake rate", &handshakes(record)));
        lines.push(labelled("Handshake time", &times(record.handshake_time_us.as_ref())));
    }
    lines.extend(record.tls.as_ref().map(|spoken| labelled("TLS", &secured_by(spoken))));
    lines
}

fn handshakes(record: &Record) -> String {
    let Counts { handshakes, handshakes_resumed, .. } = record.counts;
    let resumed = match ratio(handshakes_resumed as f64, handshakes as f64) {
        Some(share) if share > 0.0 => format!("{} resumed an earlier session", percent(share)),
        _ => "each a full one".to_owned(),
    };
    format!("{}, {resumed}", rate(record.rates.handshakes))
}

fn secured_by(spoken: &NegotiatedTls) -> String {
    let NegotiatedTls { version, cipher_suite, key_exchange, protocol } = spoken;
    let known = [Some(version), Some(cipher_suite), key_exchange.as_ref(), protocol.as_ref()];
    known.into_iter().flatten().map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// The numbers of sessions by outcome, and the mean numbers of their calls and connections. A full report also has the
/// distributions of these numbers.
pub(super) fn sessions(sessions: &SessionResults, detail: Detail) -> Vec<String> {
    let outcomes = format!(
        "{} started ({}): {} completed, {} failed, {} still under way at the end",
        count(sessions.started),
        rate(sessions.rate),
        count(sessions.completed),
        count(sessions.failed),
        count(sessions.in_progress)
    );
    let mut lines = vec![labelled("Sessions", &outcomes)];
    if let (Some(calls), Some(bursts), Some(lifetime), Some(connections)) =
        (sessions.calls, sessions.bursts, sessions.lifetime_s, sessions.connections)
    {
        let size = format!(
            "{} calls in {} bursts on {} connections, {} long (means); at most {} calls, {}",
            number(calls.mean),
            number(bursts.mean),
            number(connections.mean),
            seconds(lifetime.mean),
            number(calls.max),
            seconds(lifetime.max)
        );
        lines.push(labelled("Session size", &size));
    }
    if let (Some(calls), Some(lifetime), Some(connections)) =
        (sessions.failed_calls, sessions.failed_lifetime_s, sessions.failed_connections)
    {
        let size = format!(
            "{} calls on {} connections, {} until they failed (means); at most {} calls, {}",
            number(calls.mean),
            number(connections.mean),
            seconds(lifetime.mean),
            number(calls.max),
            seconds(lifetime.max)
        );
        lines.push(labelled("Failed sessions", &size));
    }
    if detail == Detail::Full {
        lines.extend(distributions(sessions));
    }
    lines
}

/// Distributions of the sizes of sessions. Those of failed sessions are separate, because failed sessions are usually
/// shorter.
fn distributions(sessions: &SessionResults) -> Option<String> {
    let by_outcome = [
        ("completed", sessions.completed, [sessions.calls, sessions.bursts, sessions.lifetime_s, sessions.connections]),
        (
            "failed",
            sessions.failed,
            [sessions.failed_calls, sessions.failed_bursts, sessions.failed_lifetime_s, sessions.failed_connections],
        ),
    ];
    let rows = by_outcome.iter().flat_map(|(outcome, number_of, figures)| {
        let named = ["calls", "bursts", "lifetime", "connections"].into_iter().zip(figures);
        named.filter_map(move |(name, summary)| {
            let SessionSummary { mean, p50, p90, p99, max } = (*summary)?;
            let format = if name == "lifetime" { seconds } else { number };
            let known = |value, percentile: Percentile| match *number_of >= percentile.min_calls() {
                true => format(value),
                false => "-".to_owned(),
            };
            let figures = [format(mean), known(p50, P50), known(p90, P90), known(p99, P99), format(max)];
            Some(row(&format!("{outcome}: {name}"), figures))
        })
    });
    let rows: Vec<_> = rows.collect();
    (!rows.is_empty()).then(|| format!("\n{}", table(&["Of a session", "mean", "p50", "p90", "p99", "max"], &rows)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::fixture::{record, summary};
    use crate::load::{Detail, text};
    use brimful_core::record::SessionSummary;
    use brimful_core::tls::{TlsFailure, TlsFault};

    #[test]
    fn a_run_by_tls_has_its_handshakes() {
        let mut record = record();
        record.counts = Counts { handshakes: 1_000, handshakes_resumed: 250, tls_failed: 7, ..record.counts };
        record.rates.handshakes = 5.5;
        record.handshake_time_us = summary(2_000.0);
        record.tls = Some(NegotiatedTls {
            version: "TLS 1.3".to_owned(),
            cipher_suite: "TLS_AES_256_GCM_SHA384".to_owned(),
            key_exchange: Some("X25519".to_owned()),
            protocol: None,
        });
        let message = "the server's certificate has expired: renew it".to_owned();
        record.tls_failures = vec![TlsFailure { reason: TlsFault::CertificateExpired, message, calls: 7 }];
        let expected = "
Handshake rate   5.50/s, 25.0 % resumed an earlier session
Handshake time   min 200 µs, mean 2.00 ms, median 1.80 ms, max 20.0 ms, stddev 1.00 ms
TLS              TLS 1.3, TLS_AES_256_GCM_SHA384, X25519
";
        let shown = text(&record, Detail::Full);
        assert!(shown.contains(expected), "{shown}");
        let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("malformed 0, TLS failed 7 Times"), "{shown}");
        assert!(shown.contains("\nnote: 7 calls by TLS: the server's certificate has expired: renew it.\n"), "{shown}");
        let times = "Times   response  service  connect  handshake  first byte  lateness\n";
        assert!(shown.contains(times), "{shown}");
        record.counts.handshakes_resumed = 0;
        assert!(text(&record, Detail::Full).contains("5.50/s, each a full one\n"));
    }

    #[test]
    fn sessions_are_a_group_where_there_are_some() {
        let summary = |mean: f64| {
            let (p50, p90, p99, max) = (mean / 2.0, mean * 2.0, mean * 4.0, mean * 10.0);
            Some(SessionSummary { mean, p50, p90, p99, max })
        };
        let figures = SessionResults {
            started: 1_200,
            completed: 900,
            failed: 3,
            in_progress: 297,
            rate: 2.0,
            calls: summary(12.6),
            bursts: summary(4.2),
            lifetime_s: summary(64.0),
            connections: summary(2.5),
            ..SessionResults::default()
        };
        let mut record = record();
        record.sessions = Some(figures);
        let expected = "

Sessions         1,200 started (2.00/s): 900 completed, 3 failed, 297 still under way at the end
Session size     12.6 calls in 4.20 bursts on 2.50 connections, 64.0 s long (means); at most 126
                 calls, 640 s

Of a session              mean     p50    p90  p99    max
completed: calls          12.6    6.30   25.2    -    126
completed: bursts         4.20    2.10   8.40    -   42.0
completed: lifetime     64.0 s  32.0 s  128 s    -  640 s
completed: connections    2.50    1.25   5.00    -   25.0

Total ";
        let full = text(&record, Detail::Full);
        assert!(full.contains(expected), "{full}");
        let main = text(&record, Detail::Main);
        assert!(main.contains("\nSession size ") && !main.contains("Of a session"), "{main}");
        let (started, in_progress) = (figures.started, figures.in_progress);
        record.sessions = Some(SessionResults { started, in_progress, ..SessionResults::default() });
        assert!(text(&record, Detail::Full).contains("the end\n\nTotal "), "{}", text(&record, Detail::Full));
        record.sessions = Some(SessionResults {
            failed_calls: summary(4.0),
            failed_lifetime_s: summary(1.5),
            failed_connections: summary(2.0),
            ..figures
        });
        let expected = "640 s
Failed sessions  4.00 calls on 2.00 connections, 1.50 s until they failed (means); at most 40.0
                 calls, 15.0 s

";
        let full = text(&record, Detail::Full);
        assert!(full.contains(expected) && full.contains("\nfailed: lifetime        1.50 s       -"), "{full}");
    }
}
