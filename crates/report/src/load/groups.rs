//! The metrics of a full report, in httperf's groups (Mosberger & Jin 1998, Figure 1): totals, connections, requests,
//! replies, resources and errors. The monitor's metrics of the server follow, and a table of all times.

use super::connections::connections;
use super::layout::{labelled, ratio, row, table, time, time_or_dash};
use super::notes::{other_errors, other_resets};
use super::percentile::{self, P50, P90, P95, P99, P999, Percentile};
use super::statuses;
use crate::format::machine;
use crate::server::summary_lines;
use brimful_core::counts::Counts;
use brimful_core::quantity::{bytes, count, number, percent, pluralize, rate, seconds};
use brimful_core::record::{Record, ReplyRate, Summary};
use brimful_core::server::Server;
use brimful_core::text::one_line;

/// Selects a statistic of a distribution of times, such as the mean.
type Figure = fn(&Summary) -> f64;

/// The groups of metrics of a full report, each as lines of text.
pub(super) fn groups(record: &Record) -> Vec<Vec<String>> {
    let mut groups = vec![total(record), connections(record), requests(record), replies(record), resources(record)];
    groups.push(errors(&record.counts));
    groups.extend(record.server.as_ref().map(server));
    groups.push(origin(record));
    groups.push(times(record));
    groups.push(statuses::rows(record));
    groups
}

/// The server's software and the load generator's machine, as far as known.
fn origin(record: &Record) -> Vec<String> {
    let software = record.server_software.as_deref().map(|name| labelled("Server software", &one_line(name)));
    let machine = record.machine.as_ref().map(|client| labelled("Generated on", &machine(client)));
    software.into_iter().chain(machine).collect()
}

fn total(record: &Record) -> Vec<String> {
    let Counts { scheduled, established, sent, completed, .. } = record.counts;
    let what = format!(
        "{}, {}, {} and {} in {}",
        pluralize(scheduled, "call"),
        pluralize(established, "connection"),
        pluralize(sent, "request"),
        pluralize(completed, "response"),
        seconds(record.duration_s)
    );
    vec![labelled("Total", &what)]
}

fn requests(record: &Record) -> Vec<String> {
    let rate = format!("{} sent of {} offered", rate(record.rates.sent), rate(record.rates.offered));
    let size = ratio(record.bytes.sent as f64, record.counts.sent as f64).map_or("-".to_owned(), bytes);
    vec![labelled("Request rate", &rate), labelled("Request size", &size)]
}

/// Mean time from the first to the last byte of a response, in microseconds, below which one read usually returned the
/// whole response.
const SAME_READ_US: f64 = 0.1;

fn replies(record: &Record) -> Vec<String> {
    let times = match (&record.first_byte_us, &record.service_time_us) {
        (Some(first), Some(service)) => {
            let transfer = service.mean - first.mean;
            let rest = if transfer < SAME_READ_US {
                "the rest came with it".to_owned()
            } else {
                format!("{} to transfer the rest", time(transfer))
            };
            format!("{} to the first byte, {rest} (means)", time(first.mean))
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
    let n = pluralize(rate.samples, "sample");
    let [min, mean, max] = [min, mean, max].map(number);
    format!("; {n} of 5 s: min {min}, mean {mean}{confidence}, max {max}{spread}")
}

fn resources(record: &Record) -> Vec<String> {
    let generator = &record.generator;
    let share = |s: f64| percent(ratio(s, record.duration_s).unwrap_or(0.0));
    let spent = |mode: &str, s: f64| format!("{mode}{} ({}), ", seconds(s), share(s));
    // Unknown CPU times are left out, because zero would be wrong.
    let spent = match (generator.cpu_user_s, generator.cpu_system_s) {
        (Some(user), Some(system)) => spent("user ", user) + &spent("system ", system),
        _ => generator.cpu_s.map_or_else(String::new, |all| spent("", all)),
    };
    let busiest = match generator.threads {
        1 => "its one thread".to_owned(),
        n => format!("busiest of {n} threads"),
    };
    let cpu = format!("{spent}{busiest} {} busy ({})", percent(generator.busy), generator.engine);
    let per_s = |bytes: u64| ratio(bytes as f64, record.duration_s).unwrap_or(0.0);
    let (received, sent) = (per_s(record.bytes.received), per_s(record.bytes.sent));
    let megabits = number(8.0 * (received + sent) / 1e6);
    let network = format!("{}/s received, {}/s sent ({megabits} Mbit/s)", bytes(received), bytes(sent));
    let mut lines = vec![labelled("CPU time", &cpu), labelled("Network", &network)];
    lines.extend(client_maximum(record).map(|max| labelled("Client maximum", &max)));
    lines
}

/// Describes the maximum rate that this client can generate; `None` if it was not measured.
pub(super) fn client_maximum(record: &Record) -> Option<String> {
    let lower_bound = record.calibration.as_ref().is_some_and(|calibration| calibration.lower_bound);
    let at_least = if lower_bound { "at least " } else { "" };
    record.generator.max_rate.map(|max| format!("{at_least}{}", rate(max)))
}

/// Describes the errors by kind: all kinds that httperf lists, and any other kinds that occurred.
fn errors(counts: &Counts) -> Vec<String> {
    let server = format!(
        "{} of {}: abandoned {}, refused {}, reset {}, timed out {}, malformed {}",
        count(counts.errors()),
        pluralize(counts.scheduled, "call"),
        count(counts.abandoned),
        count(counts.refused),
        count(other_resets(counts)),
        count(counts.timed_out),
        count(counts.malformed)
    );
    let others: String = other_errors(counts).into_iter().map(|(kind, n)| format!(", {kind} {}", count(n))).collect();
    let mut lines = vec![labelled("Errors", &(server + &others))];
    let (in_flight, unsent) = (counts.in_flight_at_end, counts.unsent_at_end);
    if in_flight + unsent > 0 {
        let cut_off =
            format!("cut off by the end of the run: {} in flight, {} not sent", count(in_flight), count(unsent));
        lines.push(labelled("", &cut_off));
    }
    lines
}

fn server(server: &Server) -> Vec<String> {
    summary_lines(server).iter().map(|(what, figures)| labelled(&format!("Server {what}"), figures)).collect()
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
    let figure_cell = |figure: Figure| move |s: Option<&Summary>| time_or_dash(s.map(figure));
    let cells = |name: &str, cell: &dyn Fn(Option<&Summary>) -> String| {
        row(name, columns.iter().map(|(_, summary)| cell(summary.as_ref())))
    };
    let mut rows = vec![
        cells("mean", &figure_cell(|s| s.mean)),
        cells("stddev", &figure_cell(|s| s.stddev)),
        cells("min", &figure_cell(|s| s.min)),
    ];
    rows.extend([P50, P90, P95, P99, P999].map(|p: Percentile| cells(p.name, &|s| percentile::cell(p, s))));
    rows.push(cells("max", &figure_cell(|s| s.max)));
    let heads: Vec<&str> = ["Times"].into_iter().chain(columns.iter().map(|(name, _)| *name)).collect();
    let mut lines = vec![table(&heads, &rows)];
    lines.push(wrapped(MEANINGS));
    let dashes = columns.iter().filter_map(|(_, summary)| percentile::note(summary.as_ref()?)).next();
    lines.extend(dashes.map(|note| wrapped(&note)));
    lines
}

/// The explanation below the table of times.
const MEANINGS: &str = "Response: from when a call was due to its last byte; service: from its first byte sent to its \
                        last byte; first byte: from its first byte sent to the first of the answer; lateness: from \
                        when it was due until it began.";

fn wrapped(text: &str) -> String {
    crate::format::wrap(text, 0).trim_end().to_owned()
}
