//! The main results of a run: rate, errors, response times, utilization of the server, and whether the run is valid.

use super::groups::client_maximum;
use super::layout::{fact, ratio};
use super::notes::failure_kinds;
use super::{percentile, statuses};
use crate::format::labels;
use brimful_core::counts::Counts;
use brimful_core::quantity::{count, number, percent, pluralize, rate, seconds};
use brimful_core::record::{NotFollowed, Record, Redirects, Summary, Verdict};
use brimful_core::server::{Core, Server};
use brimful_core::text::one_line;
use brimful_core::workload::LoadKind;

/// Maximum number of the server's programs that the report names.
const MAX_NAMED: usize = 3;
/// Minimum ratio of a run's duration to the length of its schedule from which the report mentions that the last calls
/// ended late.
const LONG_DRAIN: f64 = 1.1;

/// The lines of the main results.
pub(super) fn main_figures(record: &Record) -> Vec<String> {
    let mut lines = vec![fact("Rate", &throughput(record)), fact("Errors", &errors(&record.counts))];
    let times = |summary: &Option<Summary>, from_where: &str| {
        summary.as_ref().map_or("-".to_owned(), |summary| format!("{} ({from_where})", percentile::describe(summary)))
    };
    lines.push(fact("Response", &times(&record.response_time_us, "from when a call was due to its last byte")));
    lines.push(fact("Service", &times(&record.service_time_us, "from its first byte sent to its last byte")));
    lines.extend(statuses::describe(record).map(|times| fact("Status", &times)));
    lines.extend(record.redirects.as_ref().map(|followed| fact("Redirects", &redirects(followed))));
    lines.extend(record.server.as_ref().map(|server| fact("Server", &busy(server))));
    lines.extend(client_maximum(record).map(|max| fact("Client", &format!("can offer {max}"))));
    lines.extend(verdict(record));
    lines.extend((!record.labels.is_empty()).then(|| fact("Labels", &labels(&record.labels))));
    lines
}

fn throughput(record: &Record) -> String {
    let kind = record.workload.as_ref().and_then(|workload| workload.load.as_ref()).map(|load| load.kind());
    let offered = match kind {
        None | Some(LoadKind::Open) => format!(" of {} offered", rate(record.rates.offered)),
        // The clients of a closed load send calls at the rate of the responses, so an offered rate has no meaning.
        Some(LoadKind::Closed) => String::new(),
        Some(LoadKind::SClients) => format!(" of {} attempted", rate(record.rates.connect_attempts)),
    };
    let (calls, lasted) = (pluralize(record.counts.scheduled, "call"), seconds(record.duration_s));
    // Rates are means over the length of the schedule, although the last calls may end long after it.
    let lasted = match record.duration_s > LONG_DRAIN * record.window_s && record.window_s > 0.0 {
        true => format!("begun in {}, the last of them completed after {lasted}", seconds(record.window_s)),
        false => format!("in {lasted}"),
    };
    format!("{} completed{offered}: {calls} {lasted}", rate(record.rates.completed))
}

/// Describes the failed calls, and the numbers of responses with status 4xx and 5xx.
fn errors(counts: &Counts) -> String {
    let failed = match counts.error_share().filter(|share| *share > 0.0) {
        None => "none".to_owned(),
        Some(share) => {
            let [errors, scheduled] = [counts.errors(), counts.scheduled].map(count);
            format!("{errors} of {} ({}): {}", scheduled, percent(share), failure_kinds(counts))
        }
    };
    let status = counts.status;
    let limited = if status.s429 > 0 { format!(" (429 {})", count(status.s429)) } else { String::new() };
    let answers = [("4xx", status.s4xx, limited), ("5xx", status.s5xx, String::new())];
    let answers = answers.into_iter().filter(|(_, n, _)| *n > 0);
    let answers: Vec<String> = answers.map(|(class, n, of_them)| format!("{class} {}{of_them}", count(n))).collect();
    if answers.is_empty() { failed } else { format!("{failed}; HTTP errors: {}", answers.join(", ")) }
}

/// Describes the redirects that were followed and those that were not.
fn redirects(redirects: &Redirects) -> String {
    let Redirects { followed, not_followed: NotFollowed { other_server, too_many, needs_body, invalid_location } } =
        redirects;
    let calls = pluralize(followed.counts.scheduled, "call");
    let times = followed.response_time_us.as_ref().map(|times| {
        format!(
            ", {} (from when the first call was due to the last byte of the one that followed)",
            percentile::describe(times)
        )
    });
    let failed =
        Some(errors(&followed.counts)).filter(|errors| errors != "none").map(|errors| format!("; errors: {errors}"));
    let left: Vec<String> = [
        ("lead to another server", other_server),
        ("came after as many as are followed", too_many),
        ("ask for the content once more", needs_body),
        ("lead nowhere", invalid_location),
    ]
    .into_iter()
    .filter(|(_, n)| **n > 0)
    .map(|(why, n)| format!("{} {why}", count(*n)))
    .collect();
    let left = if left.is_empty() { String::new() } else { format!("; not followed: {}", left.join(", ")) };
    format!("{calls} followed one{}{}{left}", times.unwrap_or_default(), failed.unwrap_or_default())
}

/// Share of the CPUs' time that the monitored programs of the server used; `None` if no programs were monitored.
pub(crate) fn server_share(server: &Server) -> Option<f64> {
    let cores: f64 = server.process.iter().map(|program| program.cores).sum();
    let share = ratio(cores, server.kernel.cpus.len() as f64);
    share.filter(|_| !server.process.is_empty())
}

/// Describes how busy the server's CPUs and programs were.
fn busy(server: &Server) -> String {
    let kernel = &server.kernel;
    let core_busy = |core: &Core| core.shares.user + core.shares.system;
    let busiest = kernel.cores.iter().max_by(|a, b| core_busy(a).total_cmp(&core_busy(b)));
    let busiest = busiest.map(|core| format!("CPU {} the busiest, at {}", core.cpu, percent(core_busy(core))));
    let programs = server_share(server).map(|share| {
        let names: Vec<_> = server.process.iter().take(MAX_NAMED).map(|program| one_line(&program.name)).collect();
        let cores: f64 = server.process.iter().map(|program| program.cores).sum();
        let cpus = pluralize(kernel.cpus.len() as u64, "CPU");
        format!("{} busy: {} used {} of {cpus}", percent(share), names.join(" + "), number(cores))
    });
    let all = kernel.cpu.filter(|_| programs.is_none());
    let all = all.map(|cpu| format!("{} busy, whatever ran on it", percent(cpu.user + cpu.system)));
    let known: Vec<String> = programs.into_iter().chain(all).chain(busiest).collect();
    if known.is_empty() { "how busy is not known".to_owned() } else { known.join("; ") }
}

/// Says whether the run is valid and whether the server failed. For each reason, the first sentence says what happened,
/// and the others what to do.
fn verdict(record: &Record) -> Vec<String> {
    let Verdict { valid, failing, .. } = record.verdict;
    if valid {
        let counts = &record.counts;
        let failed = counts.error_share().filter(|share| *share > 0.0);
        let said = match failed {
            Some(share) if failing == Some(true) => {
                let [errors, scheduled] = [counts.errors(), counts.scheduled].map(count);
                format!("valid, of a FAILING server: {errors} of {scheduled} calls failed ({})", percent(share))
            }
            Some(share) => format!("valid; {} of the calls failed", percent(share)),
            None => "valid".to_owned(),
        };
        let refused = counts.share_of_calls(record.verdict.error_answers).filter(|share| *share > 0.0);
        let refused = refused.map(|share| format!("; {} of them were answered 5xx or 429", percent(share)));
        let of_calls = refused.map(|said| if failed.is_some() { said } else { said.replace("them", "the calls") });
        let said = said + &of_calls.unwrap_or_default();
        return vec![fact("Verdict", &said)];
    }
    let mut lines = vec![fact("Verdict", "INVALID: these figures are not the server's")];
    for reason in &record.verdict.reasons {
        match reason.message.split_once(". ") {
            Some((what, remedy)) => lines.extend([fact("", &format!("{what}.")), fact("  hint:", remedy)]),
            None => lines.push(fact("", &reason.message)),
        }
    }
    lines
}
