//! Writes access logs of simulated traffic with known properties, as fast as a disk permits. The same [`LogSpec`]
//! yields the same bytes on every machine.
//!
//! - Requests arrive as a Poisson process, whose rate is constant or alternates between high and low. The phases of
//!   high and low rate have Pareto-distributed durations with α = 1.4, so arrivals are long-range dependent (Heath,
//!   Resnick & Samorodnitsky 1998): H = (3 − α)/2 = 0.8.
//! - The popularity of URLs follows Zipf's law: the n-th URL has weight n^−s (an alias table; Walker 1977, Vose 1991).
//! - Every URL has one size. Sizes are log-normal, but 7 % are Pareto-distributed with α = 1.1 (Barford & Crovella
//!   1998).
//! - 15 % of the responses have status 304, 3 % have 404, 1 % have 301, 0.5 % have 500; the others have 200. 2 % of the
//!   requests are POST, 1 % HEAD; the others are GET.
//! - A session is a random number of pages, 3 on average. A page is a burst of requests, 4 on average. Both numbers
//!   have geometric distributions.
//!
//! Time stamps never decrease. Units: seconds since 1970 (UTC), requests per second, bytes.

mod lines;
mod random;
mod requests;
mod urls;

use lines::Lines;
use requests::Requests;
use std::io::{self, Write};

const BUFFER_BYTES: usize = 256 * 1024;

/// The traffic and the format of a log.
#[derive(Clone, Debug)]
pub struct LogSpec {
    /// Number of lines of the log. Each line is one request.
    pub lines: u64,
    /// Number of URLs of the site, at least 1.
    pub urls: u32,
    /// The exponent s of Zipf's law; 0 makes all URLs equally popular.
    pub zipf: f64,
    /// Number of clients, at least 1 and at most 2^24.
    pub clients: u32,
    /// Whether requests arrive in sessions, instead of independently.
    pub sessions: bool,
    /// Start of the log, in seconds since 1970.
    pub start: i64,
    /// Mean arrival rate, in requests per second.
    pub rate: f64,
    /// Variability of the arrival rate over time.
    pub burstiness: Burstiness,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Whether time stamps have milliseconds; [`LogSpec::log_format`] shows their format.
    pub subsecond: bool,
    /// The log format, which determines the fields of a line.
    pub format: LogFormat,
}

/// Variability over time of the rate at which requests or sessions begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Burstiness {
    /// The rate is constant.
    None,
    /// The rate is 3.25 times the mean during a quarter of the time on average, and 0.25 times the mean otherwise.
    OnOff,
}

/// The fields of a line in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// Apache's common format. Its last field is the number of bytes.
    Common,
    /// The common format, followed by referer and user agent.
    Combined,
    /// The combined format, followed by the response time in microseconds.
    CombinedWithTime,
}

impl Default for LogSpec {
    fn default() -> LogSpec {
        LogSpec {
            lines: 10_000,
            urls: 2000,
            zipf: 0.9,
            clients: 5000,
            sessions: false,
            // The log starts on Thursday, 1 January 2026.
            start: 1_767_225_600,
            rate: 50.0,
            burstiness: Burstiness::None,
            seed: 1,
            subsecond: false,
            format: LogFormat::Combined,
        }
    }
}

impl LogSpec {
    /// Writes the log.
    ///
    /// # Errors
    ///
    /// If writing to `to` fails.
    pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let mut lines = Lines::new(self);
        let mut requests = Requests::new(self);
        let mut buffer = Vec::with_capacity(2 * BUFFER_BYTES);
        for _ in 0..self.lines {
            let (second, client) = requests.next();
            lines.push(&mut buffer, second, client);
            if buffer.len() >= BUFFER_BYTES {
                to.write_all(&buffer)?;
                buffer.clear();
            }
        }
        to.write_all(&buffer)
    }

    /// Apache's `LogFormat` directive for these lines.
    pub fn log_format(&self) -> &'static str {
        match (self.format, self.subsecond) {
            (LogFormat::Common, false) => r#"%h %l %u %t \"%r\" %>s %b"#,
            (LogFormat::Common, true) => r#"%h %l %u [%{%d/%b/%Y:%T}t.%{msec_frac}t %{%z}t] \"%r\" %>s %b"#,
            (LogFormat::Combined, false) => r#"%h %l %u %t \"%r\" %>s %b \"%{Referer}i\" \"%{User-Agent}i\""#,
            (LogFormat::Combined, true) => {
                r#"%h %l %u [%{%d/%b/%Y:%T}t.%{msec_frac}t %{%z}t] \"%r\" %>s %b \"%{Referer}i\" \"%{User-Agent}i\""#
            }
            (LogFormat::CombinedWithTime, false) => {
                r#"%h %l %u %t \"%r\" %>s %b \"%{Referer}i\" \"%{User-Agent}i\" %D"#
            }
            (LogFormat::CombinedWithTime, true) => {
                r#"%h %l %u [%{%d/%b/%Y:%T}t.%{msec_frac}t %{%z}t] \"%r\" %>s %b \"%{Referer}i\" \"%{User-Agent}i\" %D"#
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{HashMap, HashSet};

    fn written(spec: &LogSpec) -> String {
        let mut log = Vec::new();
        spec.write(&mut log).unwrap();
        String::from_utf8(log).unwrap()
    }

    /// The n-th word of a line.
    fn field(line: &str, n: usize) -> &str {
        line.split(' ').nth(n).unwrap()
    }

    #[test]
    fn a_shape_determines_the_bytes_and_another_seed_changes_them() {
        let spec = LogSpec { lines: 2000, sessions: true, burstiness: Burstiness::OnOff, ..LogSpec::default() };
        assert_eq!(written(&spec), written(&spec));
        assert_ne!(written(&spec), written(&LogSpec { seed: 2, ..spec }));
    }

    #[test]
    fn stamps_never_decrease_and_the_rate_is_as_configured() {
        for (sessions, burstiness) in [(false, Burstiness::None), (true, Burstiness::None), (false, Burstiness::OnOff)]
        {
            let spec = LogSpec { lines: 100_000, sessions, burstiness, subsecond: true, ..LogSpec::default() };
            let log = written(&spec);
            // All time stamps are in the same month, so their order as texts is their order in time.
            assert!(log.lines().map(|line| field(line, 3)).is_sorted());
            assert_eq!(log.lines().count(), 100_000);
            let mut requests = Requests::new(&spec);
            let last = (0..100_000).map(|_| requests.next().0).last().unwrap();
            let rate = 100_000.0 / last;
            // With heavy-tailed phases of high and low rate, the mean rate over 2,000 s varies considerably.
            let tolerance = if burstiness == Burstiness::None { 1.05 } else { 2.0 };
            assert!((spec.rate / tolerance..spec.rate * tolerance).contains(&rate), "{rate}");
        }
    }

    #[test]
    fn lines_are_as_servers_write_them() {
        let spec = LogSpec { lines: 1, subsecond: true, format: LogFormat::CombinedWithTime, ..LogSpec::default() };
        let line = written(&spec);
        let quotes: Vec<_> = line.split('"').collect();
        assert!(field(&line, 3).starts_with("[01/Jan/2026:00:00:00.") && field(&line, 3).len() == 25, "{line}");
        assert!(quotes.len() >= 7 && line.ends_with('\n'));
        assert!(line.trim_end().rsplit(' ').next().unwrap().parse::<u64>().unwrap() >= 100);
        assert_eq!(written(&LogSpec { format: LogFormat::Common, lines: 1, ..spec }).split('"').count(), 3);
    }

    #[test]
    fn statuses_urls_and_clients_have_the_documented_shares() {
        let spec = LogSpec { lines: 200_000, urls: 1000, zipf: 1.0, clients: 300, ..LogSpec::default() };
        let log = written(&spec);
        let mut statuses = HashMap::new();
        let mut urls = HashMap::new();
        let mut clients = HashSet::new();
        for line in log.lines() {
            *statuses.entry(field(line, 8)).or_insert(0.0) += 1.0 / 200_000.0;
            *urls.entry(field(line, 6)).or_insert(0.0) += 1.0 / 200_000.0;
            clients.insert(field(line, 0));
        }
        assert_eq!(clients.len(), 300);
        for (status, share) in [("304", 0.15), ("404", 0.03), ("301", 0.01), ("200", 0.805)] {
            assert!((statuses[status] / share - 1.0_f64).abs() < 0.1, "{status}");
        }
        // The share of the URL with rank r is 1/r divided by the sum of 1/r over all 1,000 URLs, which is 7.485. 3 % of
        // the requests are for paths that do not exist.
        let share = |rank: f64| 0.97 / rank / 7.485;
        assert!((urls["/news/page-0.html"] / share(1.0) - 1.0_f64).abs() < 0.03);
        assert!((urls["/download/report-7.pdf"] / share(8.0) - 1.0_f64).abs() < 0.05);
    }
}
