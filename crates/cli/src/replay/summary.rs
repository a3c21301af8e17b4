//! Messages about the lines of the logs, and about the requests made from these lines.

use crate::access_logs::describe_line_counts;
use crate::output::print_note;
use brimful_accesslog::read::{ReadSummary, describe_first_malformed};
use brimful_accesslog::replay::Summary;
use brimful_core::Nanos;
use brimful_core::quantity::{count, number, pluralize};
use brimful_core::record::Record;
use brimful_core::workload::Load;

/// The load in a Record's workload.
fn record_load(record: &Record) -> Option<&Load> {
    record.workload.as_ref().and_then(|workload| workload.load.as_ref())
}

/// Prints the counts of the logs' lines and requests on stderr.
pub fn print_replay_summary(read: &ReadSummary, summary: &Summary, record: &Record) {
    print_note(&describe_line_counts(&read.lines));
    if let Some(left_out) = unsent_requests(summary) {
        print_note(&format!("not sent: {left_out}"));
    }
    if summary.late_timestamps > 0 {
        print_note(&format!(
            "{} were too far out of order to be sorted (--sort-within), and were sent at once",
            count(summary.late_timestamps)
        ));
    }
    if summary.early_timestamps > 0 {
        print_note(&format!(
            "{} have timestamps far ahead of the lines around them, and were sent at once",
            count(summary.early_timestamps)
        ));
    }
    if summary.clock_setbacks > 0 {
        print_note(&format!(
            "the logs' clock was set back {}; the replay continued from there",
            pluralize(summary.clock_setbacks, "time")
        ));
    }
    if summary.shortened_pauses > 0 && !matches!(record_load(record), Some(Load::Log(log)) if log.flattened) {
        let cut = Nanos(summary.removed_pause_ns);
        print_note(&format!(
            "{} shortened by {} in total (--max-gap)",
            pluralize(summary.shortened_pauses, "pause"),
            duration_text(cut)
        ));
    }
    if record.duration_s > 0.0 {
        print_note(&format!("{} calls/s on average", number(record.counts.scheduled as f64 / record.duration_s)));
    }
}

/// Formats a duration in its two largest units, like `30 s`, `2 h 5 min` and `3 days 4 h`.
pub fn duration_text(time: Nanos) -> String {
    const UNITS: [(u64, &str); 3] = [(86_400, "days"), (3_600, "h"), (60, "min")];
    let seconds = time.as_secs_f64().round() as u64;
    if seconds < 10 {
        return time.to_rounded_string();
    }
    if seconds < 120 {
        return format!("{seconds} s");
    }
    let mut rest = seconds;
    let mut parts = Vec::new();
    for (length, unit) in UNITS.into_iter().chain([(1, "s")]) {
        let number = rest / length;
        rest %= length;
        if number > 0 {
            let unit = if number == 1 && unit == "days" { "day" } else { unit };
            parts.push(format!("{} {unit}", count(number)));
        }
    }
    parts.truncate(2);
    parts.join(" ")
}

/// The error message if no line of the logs results in a call.
pub fn no_call_message(read: &ReadSummary, summary: &Summary) -> String {
    let not_sent = unsent_requests(summary).map_or(String::new(), |left_out| format!("; not sent: {left_out}"));
    format!(
        "the logs have no request to send: {}{not_sent}{}",
        describe_line_counts(&read.lines),
        describe_first_malformed(&read.lines)
    )
}

/// A text with the numbers of requests that are not sent, by reason; `None` if there are none.
pub fn unsent_requests(summary: &Summary) -> Option<String> {
    let methods = match summary.other_methods {
        0 => None,
        number => Some(format!("{} with other methods (--methods)", count(number))),
    };
    let paths = match summary.requests_without_path {
        0 => None,
        number => Some(format!("{} without a path", count(number))),
    };
    let reasons: Vec<String> = methods.into_iter().chain(paths).collect();
    (!reasons.is_empty()).then(|| reasons.join(", "))
}
