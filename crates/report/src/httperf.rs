//! The result of one run in the output format of httperf 0.9 (httperf(1), "OUTPUT"), line by line, for scripts that
//! parse it.
//!
//! httperf counts failures of its own host under names such as `fd-unavail`. This report uses these names for calls
//! that failed because this host lacked resources. Failures that httperf does not distinguish, such as responses that
//! are not HTTP, are counted as `other`.

use brimful_core::account::HostLimitedCalls;
use brimful_core::record::{Record, ReplyRate, Summary};
use std::fmt::Write;

/// Metrics of httperf's output that the Record (result document) of a run does not contain.
#[derive(Clone, Debug, Default)]
pub struct HttperfMetrics {
    /// Maximum number of connection attempts that began within the same millisecond.
    pub max_connect_burst: u32,
    /// Mean size of a response's head and of its content, in bytes.
    pub reply_size: (f64, f64),
    /// CPU time of the load generator in user mode and in the kernel, in seconds.
    pub cpu_s: (f64, f64),
    /// Metrics of sessions, if the run has sessions.
    pub sessions: Option<HttperfSessionMetrics>,
    /// Maximum number of open file descriptors, which `--verbose` shows together with all samples of the reply rate.
    /// `None` without `--verbose`.
    pub descriptor_limit: Option<u64>,
}

/// Metrics of sessions in httperf's output that the Record (result document) of a run does not contain.
#[derive(Clone, Debug, Default)]
pub struct HttperfSessionMetrics {
    /// Completed sessions per second, in samples of five seconds each.
    pub rate: ReplyRate,
    /// Mean time from the start of a failed session to its failure, in seconds.
    pub fail_time_s: Option<f64>,
    /// Number of sessions by their number of responses: element n counts the sessions with n responses.
    pub lengths: Vec<u64>,
}

/// Formats the result of the run as httperf's output, which ends in a newline.
pub fn text(record: &Record, extra: &HttperfMetrics) -> String {
    let mut groups = vec![total(record), connections(record), requests(record), replies(record, extra)];
    groups.extend([resources(record, extra), errors(record)]);
    groups.extend(extra.sessions.as_ref().map(|sessions| session_lines(record, sessions)));
    let samples = extra.descriptor_limit.map_or_else(String::new, |descriptors| samples(record, descriptors));
    format!("{samples}Maximum connect burst length: {}\n\n{}", extra.max_connect_burst, groups.join("\n"))
}

/// The additional lines of `--verbose`: the descriptor limit, and each sample of the reply rate.
fn samples(record: &Record, descriptors: u64) -> String {
    let mut text = format!("httperf: maximum number of open descriptors = {descriptors}\n");
    let whole = usize::try_from(record.reply_rate.samples).unwrap_or(usize::MAX);
    let periods = record.account.iter().flat_map(|account| &account.replies).copied().chain(std::iter::repeat(0));
    for replies in periods.take(whole.min(MAX_SAMPLES)) {
        // Each element of `replies` counts the responses in five seconds, httperf's sampling period.
        let _ = writeln!(text, "reply-rate = {:<8}", format!("{:.1}", replies as f64 / 5.0));
    }
    text
}

/// Maximum number of reply-rate samples in the report: one day of five-second samples.
const MAX_SAMPLES: usize = 24 * 3600 / 5;

fn total(record: &Record) -> String {
    let counts = &record.counts;
    format!(
        "Total: connections {} requests {} replies {} test-duration {:.3} s\n",
        counts.connect_attempts,
        counts.sent,
        counts.completed + counts.unexpected,
        record.duration_s
    )
}

fn connections(record: &Record) -> String {
    let rate = per(record.counts.connect_attempts as f64, record.duration_s);
    let connect = record.connect_time_us.map_or(0.0, |summary| summary.mean);
    let times = record.connection_lifetime_us.unwrap_or_default();
    let mut text = format!(
        "Connection rate: {rate:.1} conn/s ({:.1} ms/conn, <={} concurrent connections)\n",
        per(1e3, rate),
        record.generator.max_open_connections
    );
    let [min, mean, max, median, stddev] = [times.min, times.mean, times.max, times.p50, times.stddev].map(ms);
    let _ = writeln!(
        text,
        "Connection time [ms]: min {min:.1} avg {mean:.1} max {max:.1} median {median:.1} stddev {stddev:.1}"
    );
    let _ = writeln!(text, "Connection time [ms]: connect {:.1}", ms(connect));
    let _ = writeln!(text, "Connection length [replies/conn]: {:.3}", record.responses_per_connection.unwrap_or(0.0));
    text
}

fn requests(record: &Record) -> String {
    let rate = per(record.counts.sent as f64, record.duration_s);
    let size = whole(per(record.bytes.sent as f64, record.counts.sent as f64));
    format!("Request rate: {rate:.1} req/s ({:.1} ms/req)\nRequest size [B]: {size:.1}\n", per(1e3, rate))
}

fn replies(record: &Record, extra: &HttperfMetrics) -> String {
    let mean = |summary: Option<Summary>| ms(summary.map_or(0.0, |summary| summary.mean));
    let (response, service) = (mean(record.first_byte_us), mean(record.service_time_us));
    let (head, body) = (whole(extra.reply_size.0), whole(extra.reply_size.1));
    let status = &record.counts.status;
    let mut text = rate_line("Reply rate [replies/s]", &record.reply_rate, 1);
    let _ = writeln!(text, " ({} samples)", record.reply_rate.samples);
    let _ = writeln!(text, "Reply time [ms]: response {response:.1} transfer {:.1}", (service - response).max(0.0));
    let _ = writeln!(text, "Reply size [B]: header {head:.1} content {body:.1} footer 0.0 (total {:.1})", head + body);
    let _ = writeln!(
        text,
        "Reply status: 1xx={} 2xx={} 3xx={} 4xx={} 5xx={}",
        status.s1xx, status.s2xx, status.s3xx, status.s4xx, status.s5xx
    );
    text
}

/// Formats a line that begins like `Reply rate [replies/s]: min`, without a newline.
fn rate_line(name: &str, rate: &ReplyRate, digits: usize) -> String {
    let [min, mean, max, stddev] = [rate.min, rate.mean, rate.max, rate.stddev].map(|figure| figure.unwrap_or(0.0));
    format!("{name}: min {min:.digits$} avg {mean:.digits$} max {max:.digits$} stddev {stddev:.digits$}")
}

fn resources(record: &Record, extra: &HttperfMetrics) -> String {
    let (user, system) = extra.cpu_s;
    let percent = |s: f64| 100.0 * per(s, record.duration_s);
    let bytes_per_s = per((record.bytes.sent + record.bytes.received) as f64, record.duration_s);
    format!(
        "CPU time [s]: user {user:.2} system {system:.2} (user {:.1}% system {:.1}% total {:.1}%)\n\
         Net I/O: {:.1} KB/s ({:.1}*10^6 bps)\n",
        percent(user),
        percent(system),
        percent(user + system),
        bytes_per_s / 1024.0,
        8.0 * bytes_per_s / 1e6
    )
}

fn errors(record: &Record) -> String {
    let counts = &record.counts;
    let limited = record.account.as_ref().map_or_else(HostLimitedCalls::default, |account| account.limited);
    let timed_out = counts.abandoned + counts.timed_out;
    let known = timed_out + counts.refused + counts.reset + limited.descriptors + limited.ports;
    // httperf does not count unexpected responses as errors, but `counts.errors()` does.
    let all = counts.errors().saturating_sub(counts.unexpected);
    let other = all.saturating_sub(known);
    format!(
        "Errors: total {} client-timo {timed_out} socket-timo 0 connrefused {} connreset {}\n\
         Errors: fd-unavail {} addrunavail {} ftab-full 0 other {other}\n",
        all, counts.refused, counts.reset, limited.descriptors, limited.ports
    )
}

fn session_lines(record: &Record, extra: &HttperfSessionMetrics) -> String {
    let figures = record.sessions.unwrap_or_default();
    let mean = |summary: Option<brimful_core::record::SessionSummary>| summary.map_or(0.0, |summary| summary.mean);
    // The mean session rate is over the whole duration of the test, as in httperf.
    let mean_rate = Some(per(figures.completed as f64, record.duration_s));
    let mut text = rate_line("Session rate [sess/s]", &ReplyRate { mean: mean_rate, ..extra.rate }, 2);
    let _ = writeln!(text, " ({}/{})", figures.completed, figures.started);
    let _ = writeln!(text, "Session: avg {:.2} connections/session", mean(figures.connections));
    let _ = writeln!(text, "Session lifetime [s]: {:.1}", mean(figures.lifetime_s));
    let _ = writeln!(text, "Session failtime [s]: {:.1}", extra.fail_time_s.unwrap_or(0.0));
    let lengths: String = extra.lengths.iter().map(|sessions| format!(" {sessions}")).collect();
    let _ = writeln!(text, "Session length histogram:{lengths}");
    text
}

/// Rounds a mean size down to whole bytes. httperf also prints whole bytes here, although with the decimal `.0`.
fn whole(bytes: f64) -> f64 {
    // The addition prevents that a rounding error of the division lowers a whole number by one.
    (bytes + 1e-9).floor()
}

/// Converts microseconds to milliseconds.
fn ms(us: f64) -> f64 {
    us / 1e3
}

fn per(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::fixture::record;
    use brimful_core::account::PackedAccount;
    use brimful_core::record::{SessionResults, SessionSummary};

    /// The values of Figure 1 of the httperf paper that are not in a Record.
    fn extra() -> HttperfMetrics {
        HttperfMetrics {
            max_connect_burst: 1,
            reply_size: (222.4, 1024.9),
            cpu_s: (5.531, 12.441),
            sessions: None,
            descriptor_limit: None,
        }
    }

    #[test]
    fn samples_come_first_where_they_are_asked_for() {
        let mut record = record();
        record.reply_rate.samples = 3;
        record.account = Some(PackedAccount { replies: vec![250, 42], ..PackedAccount::default() });
        let text = text(&record, &HttperfMetrics { descriptor_limit: Some(1024), ..extra() });
        let first = "httperf: maximum number of open descriptors = 1024\nreply-rate = 50.0    \nreply-rate = 8.4     \n\
                     reply-rate = 0.0     \nMaximum connect burst length: 1\n";
        assert!(text.starts_with(first), "{text}");
    }

    #[test]
    fn a_run_line_by_line() {
        let expected = "\
Maximum connect burst length: 1

Total: connections 27000 requests 27000 replies 26701 test-duration 184.996 s

Connection rate: 145.9 conn/s (6.9 ms/conn, <=47 concurrent connections)
Connection time [ms]: min 0.5 avg 5.0 max 50.0 median 4.5 stddev 2.5
Connection time [ms]: connect 0.3
Connection length [replies/conn]: 1.000

Request rate: 145.9 req/s (6.9 ms/req)
Request size [B]: 72.0

Reply rate [replies/s]: min 139.8 avg 148.3 max 150.3 stddev 2.7 (36 samples)
Reply time [ms]: response 4.6 transfer 0.1
Reply size [B]: header 222.0 content 1024.0 footer 0.0 (total 1246.0)
Reply status: 1xx=0 2xx=26701 3xx=0 4xx=0 5xx=0

CPU time [s]: user 5.53 system 12.44 (user 3.0% system 6.7% total 9.7%)
Net I/O: 185.9 KB/s (1.5*10^6 bps)

Errors: total 299 client-timo 299 socket-timo 0 connrefused 0 connreset 0
Errors: fd-unavail 0 addrunavail 0 ftab-full 0 other 0
";
        assert_eq!(text(&record(), &extra()), expected);
    }

    #[test]
    fn sessions_come_last() {
        let mean = |mean| Some(SessionSummary { mean, ..SessionSummary::default() });
        let mut record = record();
        let (connections, lifetime_s) = (mean(6.45), mean(123.9));
        record.sessions =
            Some(SessionResults { started: 450, completed: 240, connections, lifetime_s, ..SessionResults::default() });
        let rate = ReplyRate { samples: 9, min: Some(0.0), mean: Some(0.59), max: Some(2.4), ..ReplyRate::default() };
        let sessions = HttperfSessionMetrics { rate, fail_time_s: Some(58.5), lengths: vec![4, 7, 240] };
        let text = text(&record, &HttperfMetrics { sessions: Some(sessions), ..extra() });
        let last = "other 0\n\nSession rate [sess/s]: min 0.00 avg 1.30 max 2.40 stddev 0.00 (240/450)\n\
                    Session: avg 6.45 connections/session\nSession lifetime [s]: 123.9\nSession failtime [s]: 58.5\n\
                    Session length histogram: 4 7 240\n";
        assert!(text.ends_with(last), "{text}");
    }

    #[test]
    fn a_run_of_nothing_has_no_figures_that_are_none() {
        let mut record = record();
        (record.duration_s, record.connect_time_us, record.first_byte_us) = (0.0, None, None);
        (record.service_time_us, record.counts) = (None, Default::default());
        let text = text(&record, &HttperfMetrics::default());
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
    }
}
