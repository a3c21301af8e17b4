//! The text report of a traffic profile (the statistics of access logs), at most 100 columns wide.
//!
//! It begins with the main facts: volume, peak, parsed and skipped lines, format, and unusual metrics. Then follow
//! arrivals, responses, classes, popularity, burstiness, times, sessions, and the derived workload. Names from logs are
//! not trusted: control characters are escaped, and long names are shortened.

mod answers;
mod arrivals;
mod behaviour;
mod comparison;
mod notable;
#[cfg(test)]
mod tests;

pub use arrivals::{csv, seconds_csv};
pub use comparison::{Against, Compared, ComparedMetric, comparison};

use crate::format::{fact, shorten, without_control_characters, wrap};
use brimful_core::Nanos;
use brimful_core::profile::{FieldSample, MalformedLine, Profile};
use brimful_core::quantity::{bytes, count, number, percent, rate, small_percent};
use brimful_core::text::one_line;
use brimful_core::workload::{AttemptPace, Load, SessionArrivals, Workload};

/// Maximum number of log files, and of log formats, in the report.
const MAX_NAMED: usize = 4;
/// Maximum width of a name from a log, in characters.
const NAME_WIDTH: usize = 60;
/// Maximum width of a field of the example line, in characters.
const FIELD_WIDTH: usize = 32;

/// Replaces the space between a number and its unit until the text is wrapped, so that they stay on one line. Texts
/// cannot contain this control character, because control characters of names are escaped before.
const JOINED: char = '\u{1}';

/// Formats the profile as text that ends in a newline.
pub fn text(profile: &Profile) -> String {
    let text = apart([
        first(profile),
        arrivals::text(profile),
        answers::text(profile),
        answers::classes(profile),
        answers::popularity(profile),
        behaviour::bursts(profile),
        behaviour::times(profile),
        behaviour::times_by_class(profile),
        behaviour::slowest(profile),
        behaviour::sessions(profile),
        workload(profile),
        malformed(profile),
        notes(profile),
    ]);
    without_control_characters(&text.replace(JOINED, " "))
}

/// The first part of the report: the number of requests, the peak, the log files and their formats.
fn first(profile: &Profile) -> String {
    let span =
        if profile.arrivals.mean_rate > 0.0 { profile.requests as f64 / profile.arrivals.mean_rate } else { 0.0 };
    let what = format!(
        "{} requests in {}, {} on average, {} in answers: {} to {}.",
        count(profile.requests),
        lasting(span),
        pace(profile.arrivals.mean_rate),
        bytes(profile.bytes as f64),
        foreign(&profile.from, NAME_WIDTH),
        foreign(&profile.to, NAME_WIDTH),
    );
    wrap(&what, 0)
        + &said("peak", &peak(profile))
        + &said("lines", &lines(profile))
        + &said("format", &format(profile))
        + &sample(profile)
        + &said("notable", &notable::text(profile))
}

fn peak(profile: &Profile) -> String {
    let (peak, arrivals) = (&profile.peak, &profile.arrivals);
    let over_mean = match arrivals.mean_rate > 0.0 {
        true => format!(", {} times the mean", number(peak.rate / arrivals.mean_rate)),
        false => String::new(),
    };
    format!(
        "{}{over_mean}, in {} from {}{}; busiest minute {}, busiest second {} requests",
        pace(peak.rate),
        lasting(peak.seconds as f64),
        foreign(&peak.from, NAME_WIDTH),
        if peak.chosen_by_user { " (as given)" } else { "" },
        count(arrivals.busiest_minute),
        count(arrivals.busiest_second)
    )
}

/// The number of log lines in each category, such as parsed and malformed.
fn lines(profile: &Profile) -> String {
    let lines = &profile.lines;
    let [read, parsed, malformed, filtered] = [lines.read, lines.parsed, lines.malformed, lines.filtered].map(count);
    let late = match lines.out_of_order {
        0 => String::new(),
        n => format!("; {} of them out of order", count(n)),
    };
    format!("{read} read = {parsed} parsed + {malformed} malformed + {filtered} filtered{late}")
}

fn format(profile: &Profile) -> String {
    let shown = |name: &str, share: f64| format!("{} {}", foreign(name, NAME_WIDTH), percent(share));
    let formats = match profile.formats.as_slice() {
        [] => foreign(&profile.format, NAME_WIDTH),
        formats => some(formats.iter().map(|format| shown(&format.name, format.share)).collect()),
    };
    let sources = some(profile.sources.iter().map(|source| foreign(&source.path, NAME_WIDTH)).collect());
    let formats = if formats.is_empty() { "-".to_owned() } else { formats };
    if sources.is_empty() { formats } else { format!("{formats}; from {sources}") }
}

/// Describes how the fields of an example line were parsed.
fn sample(profile: &Profile) -> String {
    let field =
        |field: &FieldSample| format!("{} {}", foreign(&field.field, FIELD_WIDTH), foreign(&field.value, FIELD_WIDTH));
    let fields: Vec<String> = profile.format_sample.iter().map(field).collect();
    if fields.is_empty() { String::new() } else { said("read as", &fields.join(", ")) }
}

/// Lists the first [`MAX_NAMED`] names, and the number of the others.
fn some(mut names: Vec<String>) -> String {
    let more = names.len().saturating_sub(MAX_NAMED);
    names.truncate(MAX_NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    names.join(", ") + &more
}

fn workload(profile: &Profile) -> String {
    let what = profile.workload.as_ref().map(described);
    let why = Some(foreign_words(&profile.workload_arrivals_reason)).filter(|why| !why.is_empty());
    match (what, why) {
        (None, None) => String::new(),
        (None, Some(why)) => said("workload", &format!("none: {why}")),
        (Some(what), why) => said("workload", &[Some(what), why].into_iter().flatten().collect::<Vec<_>>().join("; ")),
    }
}

/// Describes the derived workload in one line: `4 classes, poisson at 12.3/s`.
fn described(workload: &Workload) -> String {
    let classes = match workload.classes.len() {
        1 => "1 class".to_owned(),
        n => format!("{n} classes"),
    };
    let load = workload.load.as_ref().map(load_in_words);
    [Some(classes), load].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn load_in_words(load: &Load) -> String {
    match load {
        Load::Open { rate: per_s, arrivals } => format!("{} at {}", foreign(arrivals, NAME_WIDTH), pace(per_s.0)),
        Load::Stages { stages, arrivals, .. } => {
            format!("{} in {} stages", foreign(arrivals, NAME_WIDTH), stages.len())
        }
        Load::Trace(trace) => format!("the instants of {}", foreign(&trace.file, NAME_WIDTH)),
        Load::Log(log) => format!("the requests of {}", foreign(&log.files.join(", "), NAME_WIDTH)),
        Load::Closed { clients, think } => format!("{} clients who think {think}", count(*clients)),
        Load::SClients { attempts, pace: AttemptPace::Think(Nanos::ZERO) } => {
            format!("{} connection attempts under way", count(*attempts))
        }
        Load::SClients { attempts, pace: AttemptPace::Think(think) } => {
            format!("{} S-Clients who think {think}", count(*attempts))
        }
        Load::SClients { attempts, pace: AttemptPace::Schedule(schedule) } => {
            format!("{} of {} S-Clients", load_in_words(schedule), count(*attempts))
        }
        Load::Sessions(sessions) => {
            let come = match &sessions.session_arrivals {
                SessionArrivals::Open { rate: per_s, arrivals } => {
                    format!("{} at {}", foreign(arrivals, NAME_WIDTH), pace(per_s.0))
                }
                SessionArrivals::Closed { users, .. } => format!("of {} users", count(*users)),
            };
            format!("sessions of {} calls, {come}", number(sessions.mean_calls()))
        }
    }
}

/// Describes the first malformed lines: the position of the error, and what was expected there.
fn malformed(profile: &Profile) -> String {
    let line = |line: &MalformedLine| {
        let MalformedLine { line: number, column, .. } = line;
        let place = format!("{}:{number}:{column}", foreign(&line.file, NAME_WIDTH));
        let expected = format!("{place}: expected {}", foreign_words(&line.expected));
        let shown = foreign(&line.text, 80);
        let shown = shown.trim_end();
        wrap(&expected, 0) + &if shown.is_empty() { String::new() } else { format!("  | {shown}\n") }
    };
    let shown = &profile.lines.first_malformed;
    if shown.is_empty() {
        return String::new();
    }
    let share = profile.lines.malformed as f64 / profile.lines.read.max(1) as f64;
    let head = format!("{} of all lines are malformed; the first:\n", small_percent(share));
    head + &shown.iter().map(line).collect::<String>()
}

/// Lists the log files that were not read to the end, and caveats about the profile.
fn notes(profile: &Profile) -> String {
    let cut = profile.sources.iter().filter_map(|source| {
        let why = source.cut_short.as_ref()?;
        let text = format!("{} was not read to its end: {}", foreign(&source.path, NAME_WIDTH), foreign_words(why));
        Some(said("beware", &text))
    });
    let notes = profile.notes.iter().map(|note| foreign_words(note)).filter(|note| !note.is_empty());
    cut.chain(notes.map(|note| said("beware", &note))).collect()
}

/// Joins the parts of a report that are not empty, with blank lines between them.
fn apart<const N: usize>(parts: [String; N]) -> String {
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}

/// Escapes the control characters of a name from a log, and shortens it to `width` characters.
fn foreign(name: &str, width: usize) -> String {
    shorten(&one_line(name), width)
}

/// Escapes the control characters of a sentence with names from logs, and shortens words longer than a line.
fn foreign_words(text: &str) -> String {
    let text = one_line(text);
    text.split_whitespace().map(|word| shorten(word, NAME_WIDTH)).collect::<Vec<_>>().join(" ")
}

/// Formats a line like [`fact`], but never breaks it between a number and its unit.
fn said(name: &str, text: &str) -> String {
    const UNITS: [&str; 12] = ["%", "B", "kB", "MB", "GB", "s", "ms", "µs", "min", "h", "days", "day"];
    let mut joined = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        let is_unit = UNITS.contains(&word.trim_end_matches([',', ';', '.', ':', ')']));
        let follows_number = joined.ends_with(|c: char| c.is_ascii_digit());
        if !joined.is_empty() {
            joined.push(if is_unit && follows_number { JOINED } else { ' ' });
        }
        joined += word;
    }
    fact(name, &joined)
}

/// Formats a rate given per second. Low rates are converted to rates per hour.
fn pace(per_s: f64) -> String {
    if per_s == 0.0 || per_s >= 0.0995 { rate(per_s) } else { number(3600.0 * per_s) + "/h" }
}

/// Formats a duration in its two largest units: `2 days 3 h`, `1 h`, `1 h 30 min`, `45 s`.
fn lasting(seconds: f64) -> String {
    const UNITS: [(f64, &str, &str); 3] = [(86_400.0, "day", "days"), (3600.0, "h", "h"), (60.0, "min", "min")];
    if !seconds.is_finite() {
        return "-".to_owned();
    }
    if seconds < 119.5 {
        let seconds = seconds.max(0.0);
        let is_whole = seconds >= 1.0 && seconds.fract() == 0.0;
        return if is_whole { format!("{seconds} s") } else { brimful_core::quantity::seconds(seconds) };
    }
    let minutes = (seconds / 60.0).round() * 60.0;
    let mut rest = minutes;
    let mut parts = Vec::new();
    for (length, one, many) in UNITS {
        let n = (rest / length).floor();
        rest -= n * length;
        if n > 0.0 {
            parts.push(format!("{} {}", count(n as u64), if n == 1.0 { one } else { many }));
        }
    }
    parts.truncate(2);
    parts.join(" ")
}
