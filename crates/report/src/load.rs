//! One run as text: httperf's six groups of figures (Mosberger & Jin 1998, Figure 1), the times side by side, the
//! classes, and last whether any of it can be trusted.
//!
//! Every figure is the Record's, or a ratio of two of its figures. A dash stands for what was not measured.

use crate::server::digest;
use brimful_core::counts::Counts;
use brimful_core::quantity::{bytes, percent, seconds};
use brimful_core::record::{ClassRecord, ClientCalibration, ClientLevel, Record, ReplyRate, Summary, Verdict};
use brimful_core::server::Server;

/// From this share of failed calls on, the 99th percentile of those that completed is not that of all.
const LOUD: f64 = 0.01;

/// So many missing shards are named.
const MOST_NAMED: usize = 10;

/// What a table shows of a distribution of times.
type Figure = fn(&Summary) -> f64;

/// The run as plain text, ending in a newline.
pub fn text(record: &Record) -> String {
    let mut groups = vec![
        total(record),
        connections(record),
        requests(record),
        replies(record),
        resources(record),
        errors(&record.counts),
    ];
    groups.extend(record.server.as_ref().map(server));
    groups.push(times(record));
    if record.classes.len() > 1 {
        groups.push(classes(record));
    }
    groups.extend(Some(notes(record)).filter(|notes| !notes.is_empty()));
    groups.push(verdict(record));
    groups.iter().map(|lines| lines.join("\n")).collect::<Vec<_>>().join("\n\n") + "\n"
}

/// Microseconds.
fn time(us: f64) -> String {
    seconds(us / 1e6)
}

fn total(record: &Record) -> Vec<String> {
    let Counts { scheduled, established, sent, completed, .. } = record.counts;
    let took = seconds(record.duration_s);
    let what =
        format!("{scheduled} calls, {established} connections, {sent} requests and {completed} responses in {took}");
    vec![labelled("Total", &what)]
}

fn connections(record: &Record) -> Vec<String> {
    let rates = &record.rates;
    let rate = format!(
        "{:.1}/s attempted, {:.1}/s established, at most {} open at once",
        rates.connect_attempts, rates.established, record.generator.max_open_connections
    );
    let times = record.connect_time_us.as_ref().map_or("-".to_owned(), |s| {
        format!(
            "min {}, mean {}, median {}, max {}, stddev {}",
            time(s.min),
            time(s.mean),
            time(s.p50),
            time(s.max),
            time(s.stddev)
        )
    });
    vec![labelled("Connection rate", &rate), labelled("Connection time", &times)]
}

fn requests(record: &Record) -> Vec<String> {
    let rate = format!("{:.1}/s sent of {:.1}/s offered", record.rates.sent, record.rates.offered);
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
    let status = format!("2xx {}, 3xx {}, 4xx {}, 5xx {}", status.s2xx, status.s3xx, status.s4xx, status.s5xx);
    vec![
        labelled("Reply rate", &format!("{:.1}/s{}", record.rates.completed, samples(&record.reply_rate))),
        labelled("Reply time", &times),
        labelled("Reply size", &format!("{size}, head included")),
        labelled("Reply status", &status),
    ]
}

fn samples(rate: &ReplyRate) -> String {
    let (Some(min), Some(mean), Some(max)) = (rate.min, rate.mean, rate.max) else {
        return " (too short a run for samples of 5 s)".to_owned();
    };
    let spread = rate.stddev.map_or(String::new(), |stddev| format!(", stddev {stddev:.1}"));
    let confidence = rate.ci95_half_width.map_or(String::new(), |half_width| format!(" ± {half_width:.1} (95 %)"));
    let n = rate.samples;
    format!("; {n} samples of 5 s: min {min:.1}, mean {mean:.1}{confidence}, max {max:.1}{spread}")
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
    let rate = |bytes: u64| ratio(bytes as f64, record.duration_s).unwrap_or(0.0);
    let (received, sent) = (rate(record.bytes.received), rate(record.bytes.sent));
    let megabits = 8.0 * (received + sent) / 1e6;
    let network = format!("{}/s received, {}/s sent ({megabits:.1} Mbit/s)", bytes(received), bytes(sent));
    let mut lines = vec![labelled("CPU time", &cpu), labelled("Network", &network)];
    lines.extend(generator.max_rate.map(|max| {
        let lower_bound = record.calibration.as_ref().is_some_and(|calibration| calibration.lower_bound);
        let at_least = if lower_bound { "at least " } else { "" };
        labelled("Client maximum", &format!("{at_least}{max:.0}/s"))
    }));
    lines
}

fn errors(counts: &Counts) -> Vec<String> {
    let server = format!(
        "{} of {} calls: abandoned {}, refused {}, reset {}, timed out {}, malformed {}",
        counts.errors(),
        counts.scheduled,
        counts.abandoned,
        counts.refused,
        counts.reset,
        counts.timed_out,
        counts.malformed
    );
    let client = format!(
        "no means on this host {}; cut off by the end of the run: {} in flight, {} not sent",
        counts.client_limited, counts.in_flight_at_end, counts.unsent_at_end
    );
    vec![labelled("Errors", &server), labelled("", &client)]
}

fn server(server: &Server) -> Vec<String> {
    digest(server).iter().map(|(what, figures)| labelled(&format!("Server {what}"), figures)).collect()
}

fn times(record: &Record) -> Vec<String> {
    let columns = [
        ("response", &record.response_time_us),
        ("service", &record.service_time_us),
        ("connect", &record.connect_time_us),
        ("first byte", &record.first_byte_us),
        ("lateness", &record.lateness_us),
    ];
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
    let mut rows = vec![row("Times", columns.map(|(name, _)| name.to_owned()))];
    rows.extend(
        figures.map(|(name, figure)| row(name, columns.map(|(_, summary)| time_or_dash(summary.as_ref().map(figure))))),
    );
    table(&rows)
}

fn classes(record: &Record) -> Vec<String> {
    let heads = ["calls", "completed", "errors", "response", "50 %", "99 %", "service"].map(str::to_owned);
    let of_class = |(name, class): (&String, &ClassRecord)| {
        let response = |figure: fn(&Summary) -> f64| time_or_dash(class.response_time_us.as_ref().map(figure));
        row(
            name,
            [
                class.counts.scheduled.to_string(),
                class.counts.completed.to_string(),
                class.counts.errors().to_string(),
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

/// What a reader might miss in the figures: that they are of fewer calls, or of something else, than was meant.
fn notes(record: &Record) -> Vec<String> {
    let notes = answers(record)
        .into_iter()
        .chain(interrupted(record))
        .chain(shards(record))
        .map(|note| format!("note: {note}"));
    failures(record).into_iter().chain(notes).collect()
}

/// Which parts of a load these figures are of.
fn shards(record: &Record) -> Option<String> {
    let of = record.shards.first()?.of;
    let there: Vec<u64> = record.shards.iter().map(|shard| shard.index).collect();
    let missing: Vec<String> =
        (1..=of).filter(|index| !there.contains(index)).take(MOST_NAMED).map(|index| index.to_string()).collect();
    let etc = if of as usize - there.len() > missing.len() { ", …" } else { "" };
    Some(match (there.len(), &missing[..]) {
        (_, []) => format!("These are all {of} shards of the load."),
        (1, _) => format!("This is shard {}/{of} of a load: `brimful merge` it with the others.", there[0]),
        (_, missing) => {
            let missing = missing.join(", ") + etc;
            format!("Of the {of} shards of the load these are {}; missing: {missing}. Merge them as well.", there.len())
        }
    })
}

/// How many calls failed, how, what the times are then of, and what to check where nothing was completed.
fn failures(record: &Record) -> Option<String> {
    let counts = &record.counts;
    let Counts { scheduled, completed, .. } = *counts;
    let share = counts.error_share().filter(|share| *share > 0.0)?;
    let kinds = [
        ("abandoned", counts.abandoned),
        ("refused", counts.refused),
        ("reset", counts.reset),
        ("timed out", counts.timed_out),
        ("malformed", counts.malformed),
        ("no means on this host", counts.client_limited),
    ];
    let kinds: Vec<String> = kinds.iter().filter(|(_, n)| *n > 0).map(|(kind, n)| format!("{kind} {n}")).collect();
    let heading = if share >= LOUD { "WARNING" } else { "note" };
    let times = match completed {
        0 => format!("No call was completed, so there are no times. {}.", what_to_check(record)),
        n => format!("The times are those of the {n} that completed."),
    };
    let (errors, kinds) = (counts.errors(), kinds.join(", "));
    Some(format!("{heading}: {errors} of {scheduled} calls failed ({}): {kinds}. {times}", percent(share)))
}

/// Where to look when no call was completed: as far as the calls came.
fn what_to_check(record: &Record) -> String {
    let counts = &record.counts;
    let target = &record.target;
    if counts.client_limited == counts.errors() {
        "The verdict says what this host lacked".to_owned()
    } else if counts.established == 0 && counts.sent == 0 {
        format!("Check that a server listens at {target}, and that --connect-timeout leaves it time to accept")
    } else if counts.malformed > 0 {
        "The answers are not HTTP: check the port, and that it expects no TLS".to_owned()
    } else if counts.timed_out > 0 {
        "Connections were established: check that --timeout leaves the server time to answer, and what it is busy with"
            .to_owned()
    } else {
        "Connections were established and broken off: check the server's error log, and that it expects HTTP without TLS"
            .to_owned()
    }
}

fn interrupted(record: &Record) -> Option<String> {
    let offered = seconds(record.window_s);
    record.interrupted.then(|| format!("The run was interrupted; load was offered for {offered}."))
}

/// That the responses are not the pages that were meant.
fn answers(record: &Record) -> Option<String> {
    let Counts { completed, status, .. } = record.counts;
    if completed == 0 || status.s2xx > 0 {
        None
    } else if status.s3xx == completed {
        Some(format!(
            "All {completed} responses were 3xx, and redirects are not followed. Give the URL that they lead to."
        ))
    } else if status.s3xx > 0 {
        None
    } else if status.s4xx == completed {
        Some(format!(
            "All {completed} responses were 4xx: the server rejects the request, and that is what was measured. Check \
             the path, and the headers that the server expects."
        ))
    } else if status.s5xx == completed {
        Some(format!(
            "All {completed} responses were 5xx: the server fails at the request, and that is what was measured. \
             Check the server's error log."
        ))
    } else {
        Some(format!(
            "None of the {completed} responses was 2xx or 3xx: errors are what was measured. Check the path, and the \
             server's error log."
        ))
    }
}

/// What somebody must see who looks at neither text nor Record: that calls failed.
pub fn warning(record: &Record) -> Option<String> {
    failures(record).filter(|_| record.counts.error_share() >= Some(LOUD))
}

/// What a client can offer, and how that was found, as plain text, ending in a newline.
pub fn calibration(found: &ClientCalibration) -> String {
    let maximum = match found.max_rate {
        Some(max) if found.lower_bound => {
            format!("at least {max:.0}/s: what answered fell short before the client did, or the search was cut short")
        }
        Some(max) => format!("{max:.0}/s: the largest load of which two generators bring no more than one"),
        None => "none: at every load that was tried the client was the limit itself".to_owned(),
    };
    let mut lines = vec![labelled("Client maximum", &maximum), String::new()];
    let figure = |mean: f64, stddev: Option<f64>| format!("{mean:.0}{}", spread(stddev));
    let of_level = |level: &ClientLevel| {
        let difference = format!("{:+.0}{}", level.two - level.one, spread(level.difference_ci95_half_width));
        row(
            &format!("{:.0}/s", level.load),
            [figure(level.one, level.one_stddev), figure(level.two, level.two_stddev), difference],
        )
    };
    let heads = ["one generator", "two", "difference (95 %)"].map(str::to_owned);
    let rows: Vec<_> = [row("Load", heads)].into_iter().chain(found.curve.iter().map(of_level)).collect();
    let limits = [None].into_iter().chain(found.curve.iter().map(|level| level.limited.as_ref()));
    let with_limit = |(line, limit): (String, Option<&String>)| match limit {
        Some(limit) => format!("{line}  {limit}"),
        None => line,
    };
    lines.extend(table(&rows).into_iter().zip(limits).map(with_limit));
    if found.second_shares_cpus {
        let note = "note: For want of free CPUs the second generator shared those of the first or of the server, so two \
                    may look worse here than from two hosts; the client's own lateness and CPU time decide more.";
        lines.extend([String::new(), note.to_owned()]);
    }
    lines.join("\n") + "\n"
}

fn spread(half_width: Option<f64>) -> String {
    half_width.map_or(String::new(), |half_width| format!(" ± {half_width:.0}"))
}

/// Whether the figures are the server's, and whether it worked. Each reason's first sentence says what happened, the rest what
/// to do.
fn verdict(record: &Record) -> Vec<String> {
    let Verdict { valid, failing, .. } = record.verdict;
    if valid {
        let (errors, scheduled) = (record.counts.errors(), record.counts.scheduled);
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

fn labelled(label: &str, what: &str) -> String {
    format!("{label:<15}  {what}")
}

fn row<const N: usize>(head: &str, cells: [String; N]) -> Vec<String> {
    [head.to_owned()].into_iter().chain(cells).collect()
}

/// The first column to the left, as wide as the labels of the groups; the others to the right.
fn table(rows: &[Vec<String>]) -> Vec<String> {
    let width = |column: usize| rows.iter().map(|r| r[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..rows.first().map_or(0, Vec::len)).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| match column {
            0 => format!("{cell:<0$}", width.max(15)),
            _ => format!("  {cell:>0$}", width.max(9)),
        });
        cells.collect::<String>()
    };
    rows.iter().map(line).collect()
}

fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

fn time_or_dash(us: Option<f64>) -> String {
    us.map_or("-".to_owned(), time)
}

#[cfg(test)]
mod tests {
    use super::*;
    use brimful_core::counts::{StatusCounts, Traffic};
    use brimful_core::record::{Generator, HostContention, Rates, Reason, ReasonCode, SCHEMA, ShardOrigin};
    use brimful_core::server::{Connections, CpuShares, Kernel, Listener, Process};
    use std::collections::BTreeMap;

    fn summary(mean: f64) -> Option<Summary> {
        Some(Summary {
            count: 10,
            mean,
            min: mean / 10.0,
            p50: mean * 0.9,
            p90: mean * 2.0,
            p95: mean * 3.0,
            p99: mean * 5.0,
            p999: mean * 8.0,
            max: mean * 10.0,
            stddev: mean / 2.0,
        })
    }

    /// The run of the paper's Figure 1, as far as it has the same figures.
    fn record() -> Record {
        let counts = Counts {
            scheduled: 27_000,
            sent: 27_000,
            connect_attempts: 27_000,
            established: 27_000,
            completed: 26_701,
            timed_out: 299,
            status: StatusCounts { s2xx: 26_701, ..StatusCounts::default() },
            ..Counts::default()
        };
        Record {
            schema: SCHEMA.to_owned(),
            started_at: "1998-06-23T12:00:00Z".to_owned(),
            started_monotonic_ns: 0,
            duration_s: 184.996,
            window_s: 180.0,
            workload: None,
            command: vec!["brimful".to_owned()],
            target: "http://127.0.0.1:8080/".to_owned(),
            seed: 1,
            interrupted: false,
            verdict: Verdict::from_reasons(vec![]),
            rates: Rates { offered: 150.0, sent: 150.0, connect_attempts: 150.0, established: 150.0, completed: 148.3 },
            counts,
            response_time_us: summary(5_000.0),
            response_mean_ci95_us: Some(40.0),
            service_time_us: summary(4_650.0),
            connect_time_us: summary(300.0),
            first_byte_us: summary(4_600.0),
            lateness_us: summary(8.0),
            bytes: Traffic { received: 33_269_446, sent: 1_944_000 },
            reply_rate: ReplyRate {
                samples: 36,
                min: Some(139.8),
                mean: Some(148.3),
                max: Some(150.3),
                stddev: Some(2.7),
                ci95_half_width: Some(0.91),
            },
            classes: BTreeMap::from([("all".to_owned(), ClassRecord::default())]),
            intervals: vec![],
            hdr: BTreeMap::new(),
            hdr_value_unit: "ns".to_owned(),
            generator: Generator {
                cpu_s: Some(17.972),
                cpu_user_s: Some(5.531),
                cpu_system_s: Some(12.441),
                busy: 0.123,
                longest_gap_s: Some(0.001),
                threads: 1,
                max_open_connections: 47,
                engine: "epoll".to_owned(),
                max_rate: None,
                host: HostContention::default(),
            },
            server: None,
            calibration: None,
            shards: vec![],
            account: None,
        }
    }

    #[test]
    fn a_split_of_cpu_time_that_is_not_known_is_not_shown() {
        let mut record = record();
        record.generator = Generator { cpu_user_s: None, cpu_system_s: None, ..record.generator };
        let line = "CPU time         18.0 s (9.7 %), busiest of 1 threads 12.3 % busy (epoll)";
        assert_eq!(resources(&record)[0], line);
    }

    #[test]
    fn a_valid_run() {
        let expected = "\
Total            27000 calls, 27000 connections, 27000 requests and 26701 responses in 185 s

Connection rate  150.0/s attempted, 150.0/s established, at most 47 open at once
Connection time  min 30.0 µs, mean 300 µs, median 270 µs, max 3.00 ms, stddev 150 µs

Request rate     150.0/s sent of 150.0/s offered
Request size     72 B

Reply rate       148.3/s; 36 samples of 5 s: min 139.8, mean 148.3 ± 0.9 (95 %), max 150.3, stddev 2.7
Reply time       4.60 ms to the first byte, 50.0 µs to transfer the rest (means)
Reply size       1,246 B, head included
Reply status     2xx 26701, 3xx 0, 4xx 0, 5xx 0

CPU time         user 5.53 s (3.0 %), system 12.4 s (6.7 %), busiest of 1 threads 12.3 % busy (epoll)
Network          180 kB/s received, 10.5 kB/s sent (1.5 Mbit/s)

Errors           299 of 27000 calls: abandoned 0, refused 0, reset 0, timed out 299, malformed 0
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

WARNING: 299 of 27000 calls failed (1.1 %): timed out 299. The times are those of the 26701 that completed.

Verdict          valid; 299 of 27000 calls failed (1.1 %)
";
        assert_eq!(text(&record()), expected);
        let mut record = record();
        record.counts = Counts { completed: 27_000, timed_out: 0, ..record.counts };
        assert!(text(&record).ends_with("80.0 µs\n\nVerdict          valid\n"), "{}", text(&record));
        assert_eq!(warning(&record), None);
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
note: 1 of 1000 calls failed (0.1 %): reset 1. The times are those of the 999 that completed.

Verdict          valid; 1 of 1000 calls failed (0.1 %)
";
        assert!(text(&record).ends_with(expected), "{}", text(&record));
        assert_eq!(warning(&record), None);
    }

    #[test]
    fn what_to_check_depends_on_how_far_the_calls_came() {
        let advice = |counts: Counts| {
            let record = Record { counts: Counts { scheduled: 10, ..counts }, ..record() };
            failures(&record).unwrap()
        };
        let sent = Counts { sent: 10, established: 10, connect_attempts: 10, ..Counts::default() };
        let listens = "Check that a server listens at http://127.0.0.1:8080/, and that --connect-timeout";
        for (counts, part) in [
            (Counts { refused: 10, ..Counts::default() }, listens),
            (Counts { abandoned: 10, ..Counts::default() }, listens),
            (Counts { timed_out: 10, ..sent }, "check that --timeout leaves the server time"),
            (Counts { reset: 10, ..sent }, "check the server's error log"),
            (Counts { malformed: 10, ..sent }, "not HTTP"),
            (Counts { client_limited: 10, ..Counts::default() }, "The verdict says what this host lacked"),
        ] {
            let line = advice(counts);
            assert!(line.starts_with("WARNING: 10 of 10 calls failed (100 %): "), "{line}");
            assert!(line.contains("No call was completed, so there are no times.") && line.contains(part), "{line}");
            assert_eq!(line.contains("listens at"), counts.refused + counts.abandoned > 0, "{line}");
        }
    }

    #[test]
    fn what_a_client_can_offer_and_how_that_was_found() {
        let level = |load: f64, one: f64, two: f64, limited: Option<&str>| ClientLevel {
            load,
            pairs: 3,
            one,
            one_stddev: Some(12.4),
            two,
            two_stddev: Some(7.0),
            difference_ci95_half_width: Some(30.0),
            limited: limited.map(str::to_owned),
        };
        let curve = vec![
            level(2_000.0, 1_999.0, 2_000.0, None),
            level(4_000.0, 3_000.0, 3_950.0, Some("two bring 950/s more")),
        ];
        let mut found = ClientCalibration { max_rate: Some(2_000.0), curve, ..ClientCalibration::default() };
        let expected = "\
Client maximum   2000/s: the largest load of which two generators bring no more than one

Load             one generator        two  difference (95 %)
2000/s               1999 ± 12   2000 ± 7            +1 ± 30
4000/s               3000 ± 12   3950 ± 7          +950 ± 30  two bring 950/s more
";
        assert_eq!(calibration(&found), expected);
        found.lower_bound = true;
        found.second_shares_cpus = true;
        let shown = calibration(&found);
        assert!(
            shown.starts_with("Client maximum   at least 2000/s: ") && shown.contains("\n\nnote: For want"),
            "{shown}"
        );
        let mut record = record();
        record.generator.max_rate = found.max_rate;
        assert!(text(&record).contains("\nClient maximum   2000/s\n"));
        record.calibration = Some(found);
        assert!(text(&record).contains("\nClient maximum   at least 2000/s\n"));
        assert!(calibration(&ClientCalibration::default()).starts_with("Client maximum   none: "));
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
            "Reply rate       0.0/s (too short a run for samples of 5 s)\n",
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
    fn parts_of_a_load_are_called_so() {
        let note = |of, there: &[u64]| {
            let shards = there.iter().map(|index| ShardOrigin { index: *index, of, ..ShardOrigin::default() });
            notes(&Record { shards: shards.collect(), ..record() }).pop().unwrap_or_default()
        };
        assert_eq!(note(4, &[]), notes(&record()).pop().unwrap_or_default());
        assert_eq!(note(2, &[1, 2]), "note: These are all 2 shards of the load.");
        assert_eq!(note(2, &[2]), "note: This is shard 2/2 of a load: `brimful merge` it with the others.");
        let missing = "note: Of the 4 shards of the load these are 2; missing: 2, 4. Merge them as well.";
        assert_eq!(note(4, &[1, 3]), missing);
        assert!(
            note(99, &[1, 3]).contains("missing: 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, …. Merge"),
            "{}",
            note(99, &[1, 3])
        );
    }

    #[test]
    fn figures_of_errors_only_are_pointed_out() {
        let note = |status: StatusCounts| {
            let mut record = record();
            record.counts = Counts { scheduled: 10, completed: 10, status, ..Counts::default() };
            notes(&record).join("\n")
        };
        let none = StatusCounts::default();
        assert!(
            note(StatusCounts { s4xx: 10, ..none }).starts_with("note: All 10 responses were 4xx: the server rejects")
        );
        assert!(
            note(StatusCounts { s5xx: 10, ..none }).starts_with("note: All 10 responses were 5xx: the server fails")
        );
        assert!(note(StatusCounts { s4xx: 4, s5xx: 6, ..none }).starts_with("note: None of the 10 responses was 2xx"));
        assert!(note(StatusCounts { s3xx: 10, ..none }).starts_with("note: All 10 responses were 3xx, and redirects"));
        assert_eq!(note(StatusCounts { s2xx: 1, s4xx: 9, ..none }), "");
        assert_eq!(note(StatusCounts { s3xx: 1, s4xx: 9, ..none }), "");
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
            process: vec![Process { name: "nginx".to_owned(), cpu_s: 12.3, ..Process::default() }],
            ..Server::default()
        });
        let expected = "
Server CPU       user 40.0 %, system 25.0 %, idle 34.0 %, steal 1.0 %
Server programs  nginx 12.3 s
Server listener  160.0 SYN/s, 10.0/s dropped; accept queue at most 512 of 511
";
        let text = text(&record);
        assert!(text.contains(expected), "{text}");
    }
}
