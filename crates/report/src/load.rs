//! The text report of one run. It begins with the main results (rate, errors, response times, utilization of the
//! server, and whether the run is valid), and ends with a suggested next command. A full report also has httperf's
//! groups of metrics and a table of all times.
//!
//! Every value is in the run's Record (result document), or is the ratio of two values in it. A dash means that a value
//! was not measured.

mod addresses;
mod client_limit;
mod connections;
/// The Record of a run, for tests.
#[cfg(test)]
pub(crate) mod fixture;
mod groups;
mod layout;
mod main_figures;
mod next;
mod notes;
mod percentile;
mod statuses;
mod unwanted_answers;

pub use client_limit::client_limit;
pub(crate) use main_figures::server_share;
pub use notes::warning;

use addresses::addresses;
use brimful_core::Nanos;
use brimful_core::quantity::count;
use brimful_core::record::{ClassRecord, Objective, Record};
use brimful_core::text::one_line;
use connections::sessions;
use layout::{fact, row, table, time_or_dash};
use main_figures::main_figures;
use notes::notes;
use percentile::{P50, P99};

/// How much of a run's results the text report contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Only the main results.
    Main,
    /// All results.
    Full,
}

/// Formats the run as plain text that ends in a newline.
pub fn text(record: &Record, detail: Detail) -> String {
    let mut groups = vec![main_figures(record)];
    groups.push(objectives(record));
    groups.extend(record.sessions.as_ref().map(|figures| sessions(figures, detail)));
    groups.push(addresses(record, detail));
    if record.classes.len() > 1 {
        groups.push(classes(record));
    }
    if detail == Detail::Full {
        groups.extend(groups::groups(record));
    }
    groups.push(notes(record));
    groups.push(vec![fact("Next", &next::next(record))]);
    groups.retain(|lines| !lines.is_empty());
    groups.iter().map(|lines| lines.join("\n")).collect::<Vec<_>>().join("\n\n") + "\n"
}

fn classes(record: &Record) -> Vec<String> {
    let class_row = |(name, class): (&String, &ClassRecord)| {
        let response = class.response_time_us.as_ref();
        row(
            &one_line(name),
            [
                count(class.counts.scheduled),
                count(class.counts.completed),
                count(class.counts.errors()),
                time_or_dash(response.map(|s| s.mean)),
                percentile::cell(P50, response),
                percentile::cell(P99, response),
                time_or_dash(class.service_time_us.as_ref().map(|s| s.mean)),
            ],
        )
    };
    let rows: Vec<_> = record.classes.iter().map(class_row).collect();
    vec![table(&["Class", "calls", "completed", "errors", "response", "p50", "p99", "service"], &rows)]
}

/// Describes each objective (such as `p99<50ms`), and whether the run met it.
fn objectives(record: &Record) -> Vec<String> {
    let result = |objective: &Objective| {
        let met = if objective.met { "met" } else { "MISSED" };
        let measured = objective.measured_s.map(|measured| Nanos::from_secs_f64(measured).to_rounded_string());
        let details: Vec<String> = measured.into_iter().chain(objective.message.clone()).collect();
        let details =
            if details.is_empty() { "more calls failed than it allows for".to_owned() } else { details.join("; ") };
        fact("Objective", &format!("{} {met}: {details}", objective.objective))
    };
    record.objectives.iter().map(result).collect()
}

#[cfg(test)]
mod tests {
    use super::fixture::{record, summary};
    use super::*;
    use crate::with_width;
    use brimful_core::Rate;
    use brimful_core::counts::{Counts, StatusCounts, WireBytes};
    use brimful_core::record::{Generator, Rates, Reason, ReasonCode, ReplyRate, Summary, Verdict};
    use brimful_core::server::{AcceptQueue, Connections, Core, CpuShares, Kernel, Listener, Program, Server};
    use brimful_core::workload::{Load, Workload};
    use std::collections::BTreeMap;

    fn main_text(record: &Record) -> String {
        text(record, Detail::Main)
    }

    fn full_text(record: &Record) -> String {
        text(record, Detail::Full)
    }

    /// The report without the suggested next command, which is its last line, and without the empty line before it.
    fn without_next(text: &str) -> &str {
        text.rsplit_once("\n\nNext").map_or(text, |(rest, _)| rest)
    }

    /// The text with all white space replaced by single spaces, so that the test does not depend on line breaks.
    fn words(text: &str) -> String {
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// The Record of a run in which every call got a response.
    fn completed() -> Record {
        let record = record();
        Record { counts: Counts { completed: 27_000, timed_out: 0, ..record.counts }, ..record }
    }

    fn at_rate(record: Record, rate: f64) -> Record {
        let mut workload = Workload::single_class("GET", "/");
        workload.load = Some(Load::Open { rate: Rate(rate), arrivals: "constant".to_owned() });
        Record { workload: Some(workload), ..record }
    }

    #[test]
    fn five_lines_say_the_main_things_and_the_last_what_comes_next() {
        let expected = "\
Rate        148/s completed of 150/s offered: 27,000 calls in 185 s
Errors      none
Response    p50 4.50 ms, p95 15.0 ms, p99 25.0 ms (from when a call was due to its last byte)
Service     p50 4.19 ms, p95 14.0 ms, p99 23.2 ms (from its first byte sent to its last byte)
Verdict     valid

Next        the same with `--rate 300`, or `brimful survey http://127.0.0.1:8080/` to find how much
            the server can take
";
        assert_eq!(main_text(&at_rate(completed(), 150.0)), expected);
        // Late responses extend the run beyond the end of its schedule, but do not change the rates.
        let late = Record { duration_s: 360.0, ..at_rate(completed(), 150.0) };
        let said = "27,000 calls begun in 180 s, the last of them completed after 360 s";
        assert!(words(&main_text(&late)).contains(said), "{}", main_text(&late));
        assert_eq!(warning(&completed()), None);
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let mut record = record();
        record.classes = ["a", "a-class-with-a-long-name"]
            .map(|name| (name.to_owned(), ClassRecord { response_time_us: summary(1e3), ..ClassRecord::default() }))
            .into();
        record.verdict.failing = Some(true);
        for columns in [60, 80, 200] {
            let text = with_width(columns, || full_text(&record));
            assert!(text.lines().all(|line| line.chars().count() <= columns), "{columns}: {text}");
            assert!(text.contains("a-class-with-a-long-name") && !text.contains('…'), "{columns}: {text}");
            let plain = brimful_core::text::to_ascii(&text).into_owned();
            assert!(plain.is_ascii() && plain.contains("4.50 ms") && plain.contains("+- 0.910"), "{plain}");
            assert!(!plain.contains("\\u"), "{plain}");
        }
    }

    #[test]
    fn a_split_of_cpu_time_that_is_not_known_is_not_shown() {
        let mut record = record();
        record.generator = Generator { cpu_user_s: None, cpu_system_s: None, ..record.generator };
        let line = "\nCPU time         18.0 s (9.7 %), its one thread 12.3 % busy (epoll)\n";
        assert!(full_text(&record).contains(line), "{}", full_text(&record));
    }

    #[test]
    fn http2_is_named_and_so_are_its_errors() {
        let mut record = record();
        assert!(!full_text(&record).contains("Protocol"), "HTTP/1.1 is not mentioned");
        record.http = Some("2".to_owned());
        (record.counts.stream_reset, record.counts.gone_away) = (3, 15);
        let text = full_text(&record);
        assert!(text.contains("\nProtocol         HTTP/2\nConnection rate"), "{text}");
        assert!(words(&text).contains("malformed 0, stream reset 3, gone away 15 "), "{text}");
    }

    #[test]
    fn all_figures_are_there_where_they_are_asked_for() {
        let expected = "\
Total            27,000 calls, 27,000 connections, 27,000 requests and 26,701 responses in 185 s

Connection rate  150/s attempted, 150/s established, at most 47 open at once
Connection time  min 30.0 µs, mean 300 µs, median 270 µs, max 3.00 ms, stddev 150 µs
Lifetime         min 500 µs, mean 5.00 ms, median 4.50 ms, max 50.0 ms, stddev 2.50 ms; 1.00
                 responses per connection

Request rate     150/s sent of 150/s offered
Request size     72 B

Reply rate       148/s; 36 samples of 5 s: min 140, mean 148 ± 0.910 (95 %), max 150, stddev 2.70
Reply time       4.60 ms to the first byte, 50.0 µs to transfer the rest (means)
Reply size       1,246 B, head included
Reply status     2xx 26,701, 3xx 0, 4xx 0, 5xx 0

CPU time         user 5.53 s (3.0 %), system 12.4 s (6.7 %), its one thread 12.3 % busy (epoll)
Network          180 kB/s received, 10.5 kB/s sent (1.52 Mbit/s)

Errors           299 of 27,000 calls: abandoned 0, refused 0, reset 0, timed out 299, malformed 0

Times   response  service  connect  first byte  lateness
mean     5.00 ms  4.65 ms   300 µs     4.60 ms   8.00 µs
stddev   2.50 ms  2.32 ms   150 µs     2.30 ms   4.00 µs
min       500 µs   465 µs  30.0 µs      460 µs    800 ns
p50      4.50 ms  4.19 ms   270 µs     4.14 ms   7.20 µs
p90      10.0 ms  9.30 ms   600 µs     9.20 ms   16.0 µs
p95      15.0 ms  14.0 ms   900 µs     13.8 ms   24.0 µs
p99      25.0 ms  23.2 ms  1.50 ms     23.0 ms   40.0 µs
p99.9    40.0 ms  37.2 ms  2.40 ms     36.8 ms   64.0 µs
max      50.0 ms  46.5 ms  3.00 ms     46.0 ms   80.0 µs
Response: from when a call was due to its last byte; ";
        let text = full_text(&record());
        assert!(text.contains(expected), "{text}");
        let before = text.find("\nTotal ").unwrap();
        assert!(text.find("\nVerdict ").unwrap() < before, "{text}");
        let mut few = record();
        few.first_byte_us = few.first_byte_us.map(|s| Summary { count: 100, ..s });
        let text = full_text(&few);
        assert!(text.contains("\np95      15.0 ms  14.0 ms   900 µs           -   24.0 µs\n"), "{text}");
        assert!(text.contains("\nA percentile is shown where at least 10 calls are slower.\n"), "{text}");
    }

    #[test]
    fn objectives_that_were_missed_are_not_overlooked() {
        let mut record = at_rate(completed(), 150.0);
        let objective = |objective: &str, measured_s, met| Objective {
            objective: objective.to_owned(),
            measured_s,
            met,
            ..Objective::default()
        };
        record.objectives = vec![objective("p99<50ms", Some(0.0252), true), objective("p99.9<50ms", None, false)];
        let text = main_text(&record);
        let lines = "\n\nObjective   p99<50ms met: 25.2 ms\n\
                     Objective   p99.9<50ms MISSED: more calls failed than it allows for\n\n";
        assert!(text.contains(lines), "{text}");
        assert!(
            text.ends_with("\nNext        the same with `--rate 75`, to see from where on the objective is met\n"),
            "{text}"
        );
    }

    #[test]
    fn a_failing_server_is_not_read_as_all_is_well() {
        let mut record = record();
        let status = StatusCounts { s2xx: 199, ..StatusCounts::default() };
        record.counts = Counts { scheduled: 600, sent: 199, completed: 199, refused: 401, status, ..Counts::default() };
        record.verdict.failing = Some(true);
        let text = main_text(&record);
        assert!(text.contains("\nErrors      401 of 600 (66.8 %): refused 401\n"), "{text}");
        assert!(
            text.contains("\nVerdict     valid, of a FAILING server: 401 of 600 calls failed (66.8 %)\n"),
            "{text}"
        );
        let warned =
            "WARNING: 401 of 600 calls failed (66.8 %): refused 401. The times are those of the 199 that completed.";
        assert!(words(&text).contains(warned), "{text}");
        assert_eq!(warning(&record).as_deref(), Some(warned));
        assert!(words(&text).ends_with(
            "the same with `--print 3` shows the first calls that fail; with `--trace calls.jsonl` every call"
        ));
        // One failed call in 1,000. Expects that the report contains the failure, but no warning.
        let status = StatusCounts { s2xx: 999, ..status };
        record.counts = Counts { scheduled: 1_000, sent: 1_000, completed: 999, reset: 1, status, ..Counts::default() };
        record.verdict.failing = Some(false);
        let text = main_text(&record);
        assert!(text.contains("\nErrors      1 of 1,000 (0.1 %): reset 1\n"), "{text}");
        assert!(without_next(&text).ends_with("\nVerdict     valid; 0.1 % of the calls failed"), "{text}");
        assert_eq!(warning(&record), None);
    }

    #[test]
    fn a_run_that_a_condition_stopped_says_which_and_what_still_waited() {
        let mut record = record();
        record.stopped_by = Some("p99>1s for 5s".to_owned());
        record.window_s = 1.5;
        record.counts.in_flight_at_end = 40;
        record.counts.unsent_at_end = 2;
        let text = full_text(&record).replace('\n', " ");
        let note = "note: The run was stopped by p99>1s for 5s; load was offered for 1.50 s. At that time, 42 calls still \
                    waited for a response; the times leave out their waits.";
        assert!(text.contains(note), "{text}");
    }

    #[test]
    fn a_run_that_measured_nothing_says_what_to_check() {
        let mut record = record();
        record.counts = Counts { scheduled: 10, refused: 10, ..Counts::default() };
        record.rates = Rates { offered: 10.0, ..Rates::default() };
        record.duration_s = 0.0;
        record.bytes = WireBytes::default();
        record.reply_rate = ReplyRate::default();
        record.response_time_us = None;
        record.service_time_us = None;
        record.connect_time_us = None;
        record.connection_lifetime_us = None;
        record.first_byte_us = None;
        record.interrupted = true;
        record.window_s = 1.5;
        let text = full_text(&record);
        let expected_parts = [
            "Response    -\n",
            "Connection time  -\n",
            "Request size     -\n",
            "Reply rate       0.00/s (too short a run for samples of 5 s)\n",
            "Reply time       -\n",
            "max            -        -        -           -   80.0 µs\n",
            "note: The run was interrupted; load was offered for 1.50 s.\n",
            "\nNext        `curl -v http://127.0.0.1:8080/` shows whether anything answers there\n",
        ];
        for part in expected_parts {
            assert!(text.contains(part), "{part} is missing from:\n{text}");
        }
        let warned = "WARNING: 10 of 10 calls failed (100 %): refused 10. No call was completed, so there are no times. \
                      Check that a server listens at http://127.0.0.1:8080/, and that --connect-timeout leaves it time \
                      to accept.";
        assert!(words(&text).contains(warned), "{text}");
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
Class  calls  completed  errors  response     p50      p99  service
heavy    100         97       3    2.00 s  1.80 s   10.0 s   1.00 s
light    100        100       0   1.00 ms  900 µs  5.00 ms   500 µs
";
        assert!(main_text(&record).contains(expected), "{}", main_text(&record));
    }

    #[test]
    fn an_invalid_run_says_why_and_what_to_do() {
        let reason = |message: &str| Reason { code: ReasonCode::Ports, message: message.to_owned() };
        let mut record = completed();
        record.verdict = Verdict::from_reasons(vec![
            reason("3 of 27000 calls could not begin: this host had no local port left. Lower --rate. Or wait."),
            reason("the server stopped answering"),
        ]);
        let expected = "
Verdict     INVALID: these figures are not the server's
            3 of 27000 calls could not begin: this host had no local port left.
  hint:     Lower --rate. Or wait.
            the server stopped answering

Next        `brimful doctor` shows what this host allows, and the command that raises each limit
";
        assert!(main_text(&record).ends_with(expected), "{}", main_text(&record));
    }

    #[test]
    fn how_busy_the_server_was_is_one_line_and_all_of_it_a_group() {
        let mut record = completed();
        let shares = CpuShares { user: 0.4, system: 0.25, idle: 0.34, steal: 0.01, ..CpuShares::default() };
        let busy = CpuShares { user: 0.6, ..shares };
        record.server = Some(Server {
            kernel: Kernel {
                cpu: Some(shares),
                cpus: vec![0, 1],
                cores: vec![Core { cpu: 0, shares }, Core { cpu: 1, shares: busy }],
                ..Kernel::default()
            },
            connections: Connections {
                listener: Some(Listener {
                    syn_per_s: Some(160.0),
                    dropped_per_s: 10.0,
                    accept_queue_max: 512,
                    backlog: 511,
                    fullest: AcceptQueue { length: 512, limit: 511 },
                    ..Listener::default()
                }),
                ..Connections::default()
            },
            process: vec![Program { name: "nginx".to_owned(), cpu_s: 12.3, cores: 1.23, ..Program::default() }],
            ..Server::default()
        });
        let line = "\nServer      61.5 % busy: nginx used 1.23 of 2 CPUs; CPU 1 the busiest, at 85.0 %\nVerdict";
        assert!(main_text(&record).contains(line), "{}", main_text(&record));
        let expected = "
Server CPU       user 40.0 %, system 25.0 %, idle 34.0 %, steal 1.0 %; busiest: CPU 1 85.0 %
Server programs  nginx 12.3 s
Server listener  160 SYN/s, 10.0/s dropped; accept queue at most 512 of 511
";
        assert!(full_text(&record).contains(expected), "{}", full_text(&record));
        record.server = Some(Server::default());
        assert!(main_text(&record).contains("\nServer      how busy is not known\n"));
    }
}
