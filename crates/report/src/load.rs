//! One run as text: httperf's six groups of figures (Mosberger & Jin 1998, Figure 1), the times side by side, the
//! classes, and last whether any of it can be trusted.
//!
//! Every figure is the Record's, or a ratio of two of its figures. A dash stands for what was not measured.

mod client_limit;
mod connections;
#[cfg(test)]
pub(crate) mod fixture;
mod layout;
mod notes;

pub use client_limit::client_limit;
pub use notes::warning;

use crate::server::digest;
use brimful_core::Nanos;
use brimful_core::counts::Counts;
use brimful_core::quantity::{bytes, count, number, percent, rate, seconds};
use brimful_core::record::{ClassRecord, Objective, Record, ReplyRate, Summary, Verdict};
use brimful_core::server::Server;
use connections::{connections, sessions};
use layout::{labelled, ratio, row, table, time, time_or_dash};
use notes::notes;

/// What a table shows of a distribution of times.
type Figure = fn(&Summary) -> f64;

/// The run as plain text, ending in a newline.
pub fn text(record: &Record) -> String {
    let mut groups = vec![total(record), connections(record)];
    groups.extend(record.sessions.as_ref().map(sessions));
    groups.extend([requests(record), replies(record), resources(record), errors(&record.counts)]);
    groups.extend(record.server.as_ref().map(server));
    groups.push(times(record));
    if record.classes.len() > 1 {
        groups.push(classes(record));
    }
    groups.extend(Some(objectives(record)).filter(|objectives| !objectives.is_empty()));
    groups.extend(Some(notes(record)).filter(|notes| !notes.is_empty()));
    groups.push(verdict(record));
    groups.iter().map(|lines| lines.join("\n")).collect::<Vec<_>>().join("\n\n") + "\n"
}

fn total(record: &Record) -> Vec<String> {
    let Counts { scheduled, established, sent, completed, .. } = record.counts;
    let what = format!(
        "{} calls, {} connections, {} requests and {} responses in {}",
        count(scheduled),
        count(established),
        count(sent),
        count(completed),
        seconds(record.duration_s)
    );
    vec![labelled("Total", &what)]
}

fn requests(record: &Record) -> Vec<String> {
    let rate = format!("{} sent of {} offered", rate(record.rates.sent), rate(record.rates.offered));
    let size = ratio(record.bytes.sent as f64, record.counts.sent as f64).map_or("-".to_owned(), bytes);
    vec![labelled("Request rate", &rate), labelled("Request size", &size)]
}

fn replies(record: &Record) -> Vec<String> {
    let times = match (&record.first_byte_us, &record.service_time_us) {
        (Some(first), Some(service)) => {
            let transfer = (service.mean - first.mean).max(0.0);
            format!("{} to the first byte, {} to transfer the rest (means)", time(first.mean), time(transfer))
        }
        _ => "-".to_owned(),
    };
    let size = ratio(record.bytes.received as f64, record.counts.completed as f64).map_or("-".to_owned(), bytes);
    let status = record.counts.status;
    let [s2xx, s3xx, s4xx, s5xx] = [status.s2xx, status.s3xx, status.s4xx, status.s5xx].map(count);
    let limited = if status.s429 > 0 { format!(" (429 {})", count(status.s429)) } else { String::new() };
    let switched = if status.s1xx > 0 { format!("1xx {}, ", count(status.s1xx)) } else { String::new() };
    let status = format!("{switched}2xx {s2xx}, 3xx {s3xx}, 4xx {s4xx}{limited}, 5xx {s5xx}");
    vec![
        labelled("Reply rate", &(rate(record.rates.completed) + &samples(&record.reply_rate))),
        labelled("Reply time", &times),
        labelled("Reply size", &format!("{size}, head included")),
        labelled("Reply status", &status),
    ]
}

fn samples(rate: &ReplyRate) -> String {
    let (Some(min), Some(mean), Some(max)) = (rate.min, rate.mean, rate.max) else {
        return " (too short a run for samples of 5 s)".to_owned();
    };
    let spread = rate.stddev.map_or(String::new(), |stddev| format!(", stddev {}", number(stddev)));
    let confidence = rate.ci95_half_width.map_or(String::new(), |half| format!(" ± {} (95 %)", number(half)));
    let [n, min, mean, max] = [count(rate.samples), number(min), number(mean), number(max)];
    format!("; {n} samples of 5 s: min {min}, mean {mean}{confidence}, max {max}{spread}")
}

fn resources(record: &Record) -> Vec<String> {
    let generator = &record.generator;
    let share = |s: f64| percent(ratio(s, record.duration_s).unwrap_or(0.0));
    let spent = |mode: &str, s: f64| format!("{mode}{} ({}), ", seconds(s), share(s));
    // What is not known is not shown as zero.
    let spent = match (generator.cpu_user_s, generator.cpu_system_s) {
        (Some(user), Some(system)) => spent("user ", user) + &spent("system ", system),
        _ => generator.cpu_s.map_or_else(String::new, |all| spent("", all)),
    };
    let cpu = format!(
        "{spent}busiest of {} threads {} busy ({})",
        generator.threads,
        percent(generator.busy),
        generator.engine
    );
    let per_s = |bytes: u64| ratio(bytes as f64, record.duration_s).unwrap_or(0.0);
    let (received, sent) = (per_s(record.bytes.received), per_s(record.bytes.sent));
    let megabits = number(8.0 * (received + sent) / 1e6);
    let network = format!("{}/s received, {}/s sent ({megabits} Mbit/s)", bytes(received), bytes(sent));
    let mut lines = vec![labelled("CPU time", &cpu), labelled("Network", &network)];
    lines.extend(generator.max_rate.map(|max| {
        let lower_bound = record.calibration.as_ref().is_some_and(|calibration| calibration.lower_bound);
        let at_least = if lower_bound { "at least " } else { "" };
        labelled("Client maximum", &format!("{at_least}{}", rate(max)))
    }));
    lines
}

fn errors(counts: &Counts) -> Vec<String> {
    let server = format!(
        "{} of {} calls: abandoned {}, refused {}, reset {}, timed out {}, malformed {}{}",
        count(counts.errors()),
        count(counts.scheduled),
        count(counts.abandoned),
        count(counts.refused),
        count(counts.reset),
        count(counts.timed_out),
        count(counts.malformed),
        // Most runs expect nothing.
        if counts.unexpected > 0 { format!(", unexpected {}", count(counts.unexpected)) } else { String::new() }
    );
    let tls = if counts.tls_failed > 0 { format!(", TLS failed {}", count(counts.tls_failed)) } else { String::new() };
    let named = |what: &str, n: u64| if n > 0 { format!(", {what} {}", count(n)) } else { String::new() };
    let http2 = named("stream reset", counts.stream_reset) + &named("gone away", counts.gone_away);
    let server = server + &http2 + &tls;
    let client = format!(
        "no means on this host {}; cut off by the end of the run: {} in flight, {} not sent",
        count(counts.client_limited),
        count(counts.in_flight_at_end),
        count(counts.unsent_at_end)
    );
    vec![labelled("Errors", &server), labelled("", &client)]
}

fn server(server: &Server) -> Vec<String> {
    digest(server).iter().map(|(what, figures)| labelled(&format!("Server {what}"), figures)).collect()
}

fn times(record: &Record) -> Vec<String> {
    let handshake = record.handshake_time_us.as_ref().map(|_| ("handshake", &record.handshake_time_us));
    let connect = [
        ("response", &record.response_time_us),
        ("service", &record.service_time_us),
        ("connect", &record.connect_time_us),
    ];
    let rest = [("first byte", &record.first_byte_us), ("lateness", &record.lateness_us)];
    let columns: Vec<(&str, &Option<Summary>)> = connect.into_iter().chain(handshake).chain(rest).collect();
    let figures: [(&str, Figure); 9] = [
        ("mean", |s| s.mean),
        ("stddev", |s| s.stddev),
        ("min", |s| s.min),
        ("50 %", |s| s.p50),
        ("90 %", |s| s.p90),
        ("95 %", |s| s.p95),
        ("99 %", |s| s.p99),
        ("99.9 %", |s| s.p999),
        ("max", |s| s.max),
    ];
    let cells = |figure: Figure| columns.iter().map(move |(_, summary)| time_or_dash(summary.as_ref().map(figure)));
    let mut rows = vec![row("Times", columns.iter().map(|(name, _)| (*name).to_owned()))];
    rows.extend(figures.map(|(name, figure)| row(name, cells(figure))));
    table(&rows)
}

fn classes(record: &Record) -> Vec<String> {
    let heads = ["calls", "completed", "errors", "response", "50 %", "99 %", "service"].map(str::to_owned);
    let of_class = |(name, class): (&String, &ClassRecord)| {
        let response = |figure: fn(&Summary) -> f64| time_or_dash(class.response_time_us.as_ref().map(figure));
        row(
            name,
            [
                count(class.counts.scheduled),
                count(class.counts.completed),
                count(class.counts.errors()),
                response(|s| s.mean),
                response(|s| s.p50),
                response(|s| s.p99),
                time_or_dash(class.service_time_us.as_ref().map(|s| s.mean)),
            ],
        )
    };
    let rows: Vec<_> = [row("Class", heads)].into_iter().chain(record.classes.iter().map(of_class)).collect();
    table(&rows)
}

/// Each objective, and what came of it.
fn objectives(record: &Record) -> Vec<String> {
    let said = |objective: &Objective| {
        let met = if objective.met { "met" } else { "MISSED" };
        let measured = match objective.measured_s {
            Some(measured) => Nanos::from_secs_f64(measured).rounded(),
            None => "more calls failed than it allows for".to_owned(),
        };
        labelled("Objective", &format!("{} {met}: {measured}", objective.objective))
    };
    record.objectives.iter().map(said).collect()
}

/// Whether the figures are the server's, and whether it worked. Each reason's first sentence says what happened, the
/// rest what to do.
fn verdict(record: &Record) -> Vec<String> {
    let Verdict { valid, failing, .. } = record.verdict;
    if valid {
        let (errors, scheduled) = (count(record.counts.errors()), count(record.counts.scheduled));
        let failed = record.counts.error_share().filter(|share| *share > 0.0);
        let failed = failed.map(|share| format!("{errors} of {scheduled} calls failed ({})", percent(share)));
        let verdict = match failed {
            Some(failed) if failing == Some(true) => format!("valid, of a FAILING server: {failed}"),
            Some(failed) => format!("valid; {failed}"),
            None => "valid".to_owned(),
        };
        return vec![labelled("Verdict", &verdict)];
    }
    let mut lines = vec![labelled("Verdict", "INVALID: these figures are not the server's")];
    for reason in &record.verdict.reasons {
        match reason.message.split_once(". ") {
            Some((what, remedy)) => {
                lines.push(format!("  {what}."));
                lines.push(format!("  hint: {remedy}"));
            }
            None => lines.push(format!("  {}", reason.message)),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::fixture::{record, summary};
    use super::*;
    use brimful_core::counts::{StatusCounts, Traffic};
    use brimful_core::record::{Generator, Rates, Reason, ReasonCode};
    use brimful_core::server::{Connections, CpuShares, Kernel, Listener, Program};
    use std::collections::BTreeMap;

    #[test]
    fn a_split_of_cpu_time_that_is_not_known_is_not_shown() {
        let mut record = record();
        record.generator = Generator { cpu_user_s: None, cpu_system_s: None, ..record.generator };
        let line = "CPU time         18.0 s (9.7 %), busiest of 1 threads 12.3 % busy (epoll)";
        assert_eq!(resources(&record)[0], line);
    }

    #[test]
    fn http2_is_named_and_so_are_its_errors() {
        let mut record = record();
        assert!(!text(&record).contains("Protocol"), "HTTP/1.1 goes without saying");
        record.http = Some("2".to_owned());
        (record.counts.stream_reset, record.counts.gone_away) = (3, 15);
        let text = text(&record);
        assert!(text.contains("\nProtocol         HTTP/2\nConnection rate"), "{text}");
        assert!(text.contains("malformed 0, stream reset 3, gone away 15\n"), "{text}");
    }

    #[test]
    fn a_valid_run() {
        let expected = "\
Total            27,000 calls, 27,000 connections, 27,000 requests and 26,701 responses in 185 s

Connection rate  150/s attempted, 150/s established, at most 47 open at once
Connection time  min 30.0 µs, mean 300 µs, median 270 µs, max 3.00 ms, stddev 150 µs

Request rate     150/s sent of 150/s offered
Request size     72 B

Reply rate       148/s; 36 samples of 5 s: min 140, mean 148 ± 0.910 (95 %), max 150, stddev 2.70
Reply time       4.60 ms to the first byte, 50.0 µs to transfer the rest (means)
Reply size       1,246 B, head included
Reply status     2xx 26,701, 3xx 0, 4xx 0, 5xx 0

CPU time         user 5.53 s (3.0 %), system 12.4 s (6.7 %), busiest of 1 threads 12.3 % busy (epoll)
Network          180 kB/s received, 10.5 kB/s sent (1.52 Mbit/s)

Errors           299 of 27,000 calls: abandoned 0, refused 0, reset 0, timed out 299, malformed 0
                 no means on this host 0; cut off by the end of the run: 0 in flight, 0 not sent

Times             response    service    connect  first byte   lateness
mean               5.00 ms    4.65 ms     300 µs     4.60 ms    8.00 µs
stddev             2.50 ms    2.32 ms     150 µs     2.30 ms    4.00 µs
min                 500 µs     465 µs    30.0 µs      460 µs     800 ns
50 %               4.50 ms    4.19 ms     270 µs     4.14 ms    7.20 µs
90 %               10.0 ms    9.30 ms     600 µs     9.20 ms    16.0 µs
95 %               15.0 ms    14.0 ms     900 µs     13.8 ms    24.0 µs
99 %               25.0 ms    23.2 ms    1.50 ms     23.0 ms    40.0 µs
99.9 %             40.0 ms    37.2 ms    2.40 ms     36.8 ms    64.0 µs
max                50.0 ms    46.5 ms    3.00 ms     46.0 ms    80.0 µs

WARNING: 299 of 27,000 calls failed (1.1 %): timed out 299. The times are those of the 26,701 that completed.

Verdict          valid; 299 of 27,000 calls failed (1.1 %)
";
        assert_eq!(text(&record()), expected);
        let mut record = record();
        record.counts = Counts { completed: 27_000, timed_out: 0, ..record.counts };
        assert!(text(&record).ends_with("80.0 µs\n\nVerdict          valid\n"), "{}", text(&record));
        assert_eq!(warning(&record), None);
    }

    #[test]
    fn objectives_that_were_missed_are_not_overlooked() {
        let mut record = record();
        let objective =
            |objective: &str, measured_s, met| Objective { objective: objective.to_owned(), measured_s, met };
        record.objectives = vec![objective("p99<50ms", Some(0.0252), true), objective("p99.9<50ms", None, false)];
        let text = text(&record);
        let lines = "\n\nObjective        p99<50ms met: 25.2 ms\n\
                     Objective        p99.9<50ms MISSED: more calls failed than it allows for\n\n";
        assert!(text.contains(lines), "{text}");
    }

    #[test]
    fn a_failing_server_is_not_read_as_all_is_well() {
        let mut record = record();
        let status = StatusCounts { s2xx: 199, ..StatusCounts::default() };
        record.counts = Counts { scheduled: 600, sent: 199, completed: 199, refused: 401, status, ..Counts::default() };
        record.verdict.failing = Some(true);
        let expected = "
WARNING: 401 of 600 calls failed (66.8 %): refused 401. The times are those of the 199 that completed.

Verdict          valid, of a FAILING server: 401 of 600 calls failed (66.8 %)
";
        assert!(text(&record).ends_with(expected), "{}", text(&record));
        assert!(warning(&record).is_some_and(|line| expected.contains(&line)));
        // One in a thousand is told, and not shouted.
        let status = StatusCounts { s2xx: 999, ..status };
        record.counts = Counts { scheduled: 1_000, sent: 1_000, completed: 999, reset: 1, status, ..Counts::default() };
        record.verdict.failing = Some(false);
        let expected = "
note: 1 of 1,000 calls failed (0.1 %): reset 1. The times are those of the 999 that completed.

Verdict          valid; 1 of 1,000 calls failed (0.1 %)
";
        assert!(text(&record).ends_with(expected), "{}", text(&record));
        assert_eq!(warning(&record), None);
    }

    #[test]
    fn a_run_that_measured_nothing_says_what_to_check() {
        let mut record = record();
        record.counts = Counts { scheduled: 10, refused: 10, ..Counts::default() };
        record.rates = Rates { offered: 10.0, ..Rates::default() };
        record.duration_s = 0.0;
        record.bytes = Traffic::default();
        record.reply_rate = ReplyRate::default();
        record.response_time_us = None;
        record.service_time_us = None;
        record.connect_time_us = None;
        record.first_byte_us = None;
        record.interrupted = true;
        record.window_s = 1.5;
        let text = text(&record);
        let expected_parts = [
            "Connection time  -\n",
            "Request size     -\n",
            "Reply rate       0.00/s (too short a run for samples of 5 s)\n",
            "Reply time       -\n",
            "max                      -          -          -           -    80.0 µs\n",
            "WARNING: 10 of 10 calls failed (100 %): refused 10. No call was completed, so there are no times. Check that \
             a server listens at http://127.0.0.1:8080/, and that --connect-timeout leaves it time to accept.\n",
            "note: The run was interrupted; load was offered for 1.50 s.\n",
        ];
        for part in expected_parts {
            assert!(text.contains(part), "{part} is missing from:\n{text}");
        }
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
    }

    #[test]
    fn classes_have_a_table_when_there_are_several() {
        let class = |completed, mean| ClassRecord {
            counts: Counts { scheduled: 100, completed, refused: 100 - completed, ..Counts::default() },
            response_time_us: summary(mean),
            service_time_us: summary(mean / 2.0),
            ..ClassRecord::default()
        };
        let mut record = record();
        record.classes =
            BTreeMap::from([("light".to_owned(), class(100, 1_000.0)), ("heavy".to_owned(), class(97, 2e6))]);
        let expected = "
Class                calls  completed     errors   response       50 %       99 %    service
heavy                  100         97          3     2.00 s     1.80 s     10.0 s     1.00 s
light                  100        100          0    1.00 ms     900 µs    5.00 ms     500 µs
";
        let text = text(&record);
        assert!(text.contains(expected), "{text}");
    }

    #[test]
    fn an_invalid_run_says_why_and_what_to_do() {
        let reason = |message: &str| Reason { code: ReasonCode::Ports, message: message.to_owned() };
        let mut record = record();
        record.verdict = Verdict::from_reasons(vec![
            reason("3 of 27000 calls could not begin: this host had no local port left. Lower --rate. Or wait."),
            reason("the server stopped answering"),
        ]);
        let expected = "
Verdict          INVALID: these figures are not the server's
  3 of 27000 calls could not begin: this host had no local port left.
  hint: Lower --rate. Or wait.
  the server stopped answering
";
        assert!(text(&record).ends_with(expected), "{}", text(&record));
    }

    #[test]
    fn what_the_monitor_saw_is_a_group() {
        let mut record = record();
        record.server = Some(Server {
            kernel: Kernel {
                cpu: Some(CpuShares { user: 0.4, system: 0.25, idle: 0.34, steal: 0.01, ..CpuShares::default() }),
                ..Kernel::default()
            },
            connections: Connections {
                listener: Some(Listener {
                    syn_per_s: Some(160.0),
                    dropped_per_s: 10.0,
                    accept_queue_max: 512,
                    backlog: 511,
                    fullest: brimful_core::server::AcceptQueue { length: 512, limit: 511 },
                    ..Listener::default()
                }),
                ..Connections::default()
            },
            process: vec![Program { name: "nginx".to_owned(), cpu_s: 12.3, ..Program::default() }],
            ..Server::default()
        });
        let expected = "
Server CPU       user 40.0 %, system 25.0 %, idle 34.0 %, steal 1.0 %
Server programs  nginx 12.3 s
Server listener  160 SYN/s, 10.0/s dropped; accept queue at most 512 of 511
";
        let text = text(&record);
        assert!(text.contains(expected), "{text}");
    }
}
