//! Warnings and notes in the report of a run: about failed calls, and about calls that the results exclude or lack.

use super::unwanted_answers::{self, WANTS_TLS};
use crate::format::wrap;
use crate::thresholds::{MAX_NAMED, NOTABLE_ERRORS};
use brimful_core::Http2Frame;
use brimful_core::counts::Counts;
use brimful_core::http2::Http2Error;
use brimful_core::quantity::{count, percent, pluralize, seconds};
use brimful_core::record::{Record, ShardOrigin};
use brimful_core::text::one_line;

/// All warnings and notes about a run, each wrapped to the width of the report.
pub(super) fn notes(record: &Record) -> Vec<String> {
    let notes = unwanted_answers::note(record)
        .into_iter()
        .chain(tls_failures(record))
        .chain(interrupted(record))
        .chain(stopped(record))
        .chain(warm_up(record))
        .chain(empty_lines(record))
        .chain(closed_on_reuse(record))
        .chain(retried(record))
        .chain(gone_away(record))
        .chain(http2_errors(record))
        .chain(ticks(record))
        .chain(shards(record))
        .map(|note| format!("note: {note}"));
    // Leaves out the warning about error responses if another note mentions them already.
    let error_answers = unwanted_answers::warning(record).filter(|_| unwanted_answers::note(record).is_none());
    let lines = failures(record).into_iter().chain(error_answers).chain(unexpected(record)).chain(notes);
    lines.map(|line| wrap(&line, 0).trim_end().to_owned()).collect()
}

/// A note that the server sends line breaks after bodies, beyond their `Content-Length`.
fn empty_lines(record: &Record) -> Option<String> {
    let lines = Some(record.counts.empty_lines).filter(|lines| *lines > 0)?;
    Some(format!(
        "Skipped {} before responses: the server ends bodies with line breaks that their \
         Content-Length does not count.",
        pluralize(lines, "empty line")
    ))
}

/// A note that the server closed HTTP/2 connections and left calls unprocessed, which HTTP/2 permits.
fn gone_away(record: &Record) -> Option<String> {
    let calls = Some(record.counts.gone_away).filter(|calls| *calls > 0)?;
    Some(format!(
        "The server ended connections with {} under way on them that it had not looked at, as many do after a \
         number of requests, and did so again each time they were sent again. Raise that number (nginx: \
         keepalive_requests), or stay below it with --calls-per-connection.",
        pluralize(calls, "call")
    ))
}

/// A note that the server closed idle connections when calls were about to reuse them.
fn closed_on_reuse(record: &Record) -> Option<String> {
    let Counts { closed_on_reuse, retried_closed, .. } = record.counts;
    let calls = Some(closed_on_reuse).filter(|calls| *calls > 0)?;
    let retry = match retried_closed {
        0 => "Browsers send such calls again: add --retry-closed to do so too. Or raise",
        _ => "They were sent again as often as --retry-closed does. Raise",
    };
    Some(format!(
        "{} met a reused connection that the server closed before any byte of the answer: as a rule, it had closed it \
         while it was idle, or after a number of requests. {retry} the server's keep-alive timeout or that number (nginx: \
         keepalive_timeout, keepalive_requests).",
        pluralize(calls, "call")
    ))
}

/// Notes on calls that were sent again, with the reason.
fn retried(record: &Record) -> Vec<String> {
    let Counts { retried_closed, refused_streams, .. } = record.counts;
    let reasons = [
        (retried_closed, "the server had closed a reused connection before any byte of the answer (--retry-closed)"),
        (refused_streams, "the server had refused their streams (REFUSED_STREAM, or a GOAWAY that left them out)"),
    ];
    let said = |(times, why): (u64, &str)| {
        let times = pluralize(times, "time");
        format!("Calls were sent again {times} because {why}. Their response times run from when they were due.")
    };
    reasons.into_iter().filter(|(times, _)| *times > 0).map(said).collect()
}

/// Notes on the HTTP/2 errors that the server sent, with their texts. A GOAWAY without an error code and a text is not
/// an error.
fn http2_errors(record: &Record) -> Vec<String> {
    let is_error =
        |error: &&Http2Error| error.frame == Http2Frame::RstStream || error.code != 0 || !error.text.is_empty();
    let said = |error: &Http2Error| {
        let what = match error.frame {
            Http2Frame::Goaway => "ended connections with GOAWAY",
            Http2Frame::RstStream => "gave streams up with RST_STREAM",
        };
        let text = match one_line(&error.text) {
            text if text.is_empty() => String::new(),
            text => format!(", and said \"{text}\""),
        };
        format!("The server {what} {} {}{text}.", one_line(&error.name), pluralize(error.frames, "time"))
    };
    record.http2_errors.iter().filter(is_error).take(MAX_NAMED).map(said).collect()
}

/// A note that `--tick` delayed each call to the next tick.
fn ticks(record: &Record) -> Option<String> {
    let tick = seconds(record.generator.tick_s?);
    Some(format!("Calls began up to {tick} late, because --tick groups them: response times include this delay."))
}

/// A note on how many of the load's shards are part of the results.
fn shards(record: &Record) -> Option<String> {
    let of = record.shards.first()?.total;
    let there: Vec<u64> = record.shards.iter().map(|shard| shard.index).collect();
    let missing: Vec<String> =
        (1..=of).filter(|index| !there.contains(index)).take(MAX_NAMED).map(|index| index.to_string()).collect();
    let etc = if (of as usize).saturating_sub(there.len()) > missing.len() { ", …" } else { "" };
    let lost: Vec<String> = record.shards.iter().filter_map(lost).take(MAX_NAMED).collect();
    let lost = if lost.is_empty() { String::new() } else { format!(" Lost: {}.", lost.join(", ")) };
    Some(match (there.len(), &missing[..]) {
        (_, []) => format!("These are all {of} shards of the load{}.{lost}", together(record)),
        (1, _) => format!("This is shard {}/{of} of a load: `brimful merge` it with the others.", there[0]),
        (_, missing) => {
            let missing = missing.join(", ") + etc;
            let n = there.len();
            format!("These are {n} of the {of} shards of the load; missing: {missing}. Merge them as well.{lost}")
        }
    })
}

/// Describes a distributed run: its number of hosts, and an upper bound of the time between the starts of its shards.
fn together(record: &Record) -> String {
    match ShardOrigin::start_skew(&record.shards) {
        Some((1, skew)) => format!(", on one host, and they began within {}", seconds(skew)),
        Some((hosts, skew)) => {
            format!(
                ", on {hosts} hosts, and they began within {}, as far as the hosts' clocks are known",
                seconds(skew)
            )
        }
        None => String::new(),
    }
}

/// Names a shard that was lost during the run, and the time of its loss; `None` if the shard was not lost.
fn lost(shard: &ShardOrigin) -> Option<String> {
    let at = shard.lost_at_s?;
    let host = if shard.host.is_empty() { String::new() } else { format!(" on {}", one_line(&shard.host)) };
    Some(format!("{}/{}{host} after {}", shard.index, shard.total, seconds(at)))
}

/// A note on classes with unexpected responses, and on the status, length or content that they expect.
fn unexpected(record: &Record) -> Option<String> {
    let expected = |name: &str| {
        let class = record.workload.as_ref()?.classes.iter().find(|class| class.name == name)?;
        class.expect.as_ref().map(|expect| format!("{}: {expect}", one_line(name)))
    };
    let wrong = record.classes.iter().filter(|(_, class)| class.counts.unexpected > 0);
    let expected: Vec<String> = wrong.filter_map(|(name, _)| expected(name)).take(MAX_NAMED).collect();
    let what = expected.join("; ");
    (!expected.is_empty())
        .then(|| format!("note: Unexpected are whole answers that are not what was expected ({what})."))
}

/// A warning that calls failed, with the kinds of failures. If no call completed, it also says what to check.
fn failures(record: &Record) -> Option<String> {
    let counts = &record.counts;
    let Counts { scheduled, completed, .. } = *counts;
    let share = counts.error_share().filter(|share| *share >= NOTABLE_ERRORS)?;
    let times = match completed {
        0 => format!("No call was completed, so there are no times. {}.", what_to_check(record)),
        n => format!("The times are those of the {} that completed.", count(n)),
    };
    let (errors, scheduled) = (count(counts.errors()), count(scheduled));
    let how = failure_kinds(counts);
    Some(format!("WARNING: {errors} of {scheduled} calls failed ({}): {how}. {times}", percent(share)))
}

/// Lists the kinds of failures that occurred, each with its number of calls.
pub(super) fn failure_kinds(counts: &Counts) -> String {
    let kinds = [
        ("abandoned", counts.abandoned),
        ("refused", counts.refused),
        ("reset", other_resets(counts)),
        ("timed out", counts.timed_out),
        ("malformed", counts.malformed),
    ];
    let kinds = kinds.into_iter().filter(|(_, n)| *n > 0).chain(other_errors(counts));
    kinds.map(|(kind, n)| format!("{kind} {}", count(n))).collect::<Vec<_>>().join(", ")
}

/// Number of calls whose connection was reset, other than those counted as `closed on reuse`.
pub(super) fn other_resets(counts: &Counts) -> u64 {
    counts.reset.saturating_sub(counts.closed_on_reuse)
}

/// The kinds of failures that occurred, other than those that every report lists.
pub(super) fn other_errors(counts: &Counts) -> Vec<(&'static str, u64)> {
    let kinds = [
        ("closed on reuse", counts.closed_on_reuse),
        ("unexpected", counts.unexpected),
        ("stream reset", counts.stream_reset),
        ("gone away", counts.gone_away),
        ("TLS failed", counts.tls_failed),
        ("no means on this host", counts.client_limited),
    ];
    kinds.into_iter().filter(|(_, n)| *n > 0).collect()
}

/// Notes on calls that failed because of TLS, the most frequent cause first.
fn tls_failures(record: &Record) -> Vec<String> {
    let mut failures: Vec<_> = record.tls_failures.iter().collect();
    failures.sort_by_key(|failure| std::cmp::Reverse(failure.calls));
    failures
        .iter()
        .map(|failure| format!("{} by TLS: {}.", pluralize(failure.calls, "call"), failure.message))
        .collect()
}

/// Says what to check if no call completed, depending on whether calls failed to connect, to send or to receive.
fn what_to_check(record: &Record) -> String {
    let counts = &record.counts;
    let target = &record.target;
    if counts.client_limited == counts.errors() {
        "The verdict says what this host lacked".to_owned()
    } else if record.wants_tls {
        WANTS_TLS.to_owned()
    } else if counts.established == 0 && counts.sent == 0 {
        format!("Check that a server listens at {target}, and that --connect-timeout leaves it time to accept")
    } else if counts.tls_failed > 0 {
        "TLS does not work with this server: the notes below say why".to_owned()
    } else if counts.malformed > 0 && record.http.as_deref() == Some("2") {
        "The answers are not HTTP/2: switch it on at the server, for http:// URLs without TLS as well, or leave out --http 2"
            .to_owned()
    } else if counts.unexpected > 0 {
        "Whole answers came, and none was what was expected: look at one (curl -i), and at `expect`".to_owned()
    } else if counts.malformed > 0 {
        "The answers are not HTTP: check the port, whether it wants https://, and whether it takes HTTP/2 alone (--http 2)"
            .to_owned()
    } else if counts.timed_out > 0 {
        "Connections were established: check that --timeout leaves the server time to answer, and what it is busy with"
            .to_owned()
    } else {
        "Connections were established and broken off: check the server's error log, and whether it wants https://"
            .to_owned()
    }
}

fn interrupted(record: &Record) -> Option<String> {
    let offered = seconds(record.window_s);
    record.interrupted.then(|| format!("The run was interrupted; load was offered for {offered}."))
}

/// A note that one of the conditions of `--stop-when` ended the run.
fn stopped(record: &Record) -> Option<String> {
    let condition = record.stopped_by.as_ref()?;
    let offered = seconds(record.window_s);
    let waiting = match record.counts.in_flight_at_end + record.counts.unsent_at_end {
        0 => String::new(),
        calls => format!(
            " At that time, {} still waited for a response; the times leave out their waits.",
            pluralize(calls, "call")
        ),
    };
    Some(format!("The run was stopped by {}; load was offered for {offered}.{waiting}", one_line(condition)))
}

/// A note that the results exclude the calls of the warm-up.
fn warm_up(record: &Record) -> Option<String> {
    let length = seconds(record.warm_up_s?);
    Some(format!("The server was warmed up by the same load for {length} first; no figure includes these calls."))
}

/// The warnings about failed calls and error responses, for output that contains neither the report nor the result
/// document.
pub fn warning(record: &Record) -> Option<String> {
    let warnings: Vec<String> = failures(record).into_iter().chain(unwanted_answers::warning(record)).collect();
    (!warnings.is_empty()).then(|| warnings.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::fixture::record;
    use brimful_core::counts::StatusCounts;
    use brimful_core::record::ClassRecord;
    use brimful_core::workload::{Expect, Workload};

    /// The notes with all white space replaced by single spaces, so that the test does not depend on line breaks.
    fn words(notes: &[String]) -> String {
        notes.join(" ").split_whitespace().collect::<Vec<_>>().join(" ")
    }

    fn last(record: &Record) -> String {
        words(&notes(record).pop().into_iter().collect::<Vec<_>>())
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
            (Counts { malformed: 10, ..sent }, "not HTTP:"),
            (Counts { unexpected: 10, ..sent }, "look at one (curl -i)"),
            (Counts { client_limited: 10, ..Counts::default() }, "The verdict says what this host lacked"),
        ] {
            let line = advice(counts);
            assert!(line.starts_with("WARNING: 10 of 10 calls failed (100 %): "), "{line}");
            assert!(line.contains("No call was completed, so there are no times.") && line.contains(part), "{line}");
            assert_eq!(line.contains("listens at"), counts.refused + counts.abandoned > 0, "{line}");
        }
    }

    #[test]
    fn a_keep_alive_race_is_named_apart_from_resets_and_has_a_hint() {
        let mut record = record();
        record.counts = Counts { scheduled: 100, sent: 100, completed: 80, reset: 20, ..Counts::default() };
        record.counts.closed_on_reuse = 15;
        let said = words(&notes(&record));
        assert!(said.contains("(20.0 %): reset 5, closed on reuse 15."), "{said}");
        assert!(said.contains("note: 15 calls met a reused connection that") && said.contains("add --retry-closed"));
        record.counts.retried_closed = 30;
        let said = words(&notes(&record));
        assert!(
            said.contains("Calls were sent again 30 times because") && !said.contains("add --retry-closed"),
            "{said}"
        );
    }

    #[test]
    fn what_a_server_says_as_it_goes_away_is_shown() {
        let mut record = record();
        let error = |frame, code, name: &str, text: &str| Http2Error {
            frame,
            code,
            name: name.to_owned(),
            text: text.to_owned(),
            frames: 2,
        };
        record.http2_errors = vec![
            error(Http2Frame::Goaway, 0, "NO_ERROR", ""),
            error(Http2Frame::Goaway, 11, "ENHANCE_YOUR_CALM", "too_many\u{1b}[2J"),
            error(Http2Frame::RstStream, 2, "INTERNAL_ERROR", ""),
        ];
        let said = words(&notes(&record));
        let expected =
            "The server ended connections with GOAWAY ENHANCE_YOUR_CALM 2 times, and said \"too_many\\u001b[2J\".";
        assert!(said.contains(expected), "{said}");
        assert!(said.contains("gave streams up with RST_STREAM INTERNAL_ERROR 2 times.") && !said.contains("NO_ERROR"));
    }

    #[test]
    fn what_was_expected_is_said_where_it_did_not_come() {
        let mut record = record();
        let mut workload = Workload::single_class("GET", "/");
        let expect = Expect { status: "200".parse().ok(), length: Some(3), sha256: None };
        workload.classes[0].expect = Some(expect);
        let counts = Counts { scheduled: 10, sent: 10, completed: 7, unexpected: 3, ..Counts::default() };
        (record.counts, record.workload) = (counts, Some(workload));
        record.classes = [("all".to_owned(), ClassRecord { counts, ..ClassRecord::default() })].into();
        let notes = notes(&record);
        assert!(notes[0].contains("3 of 10 calls failed (30.0 %): unexpected 3."), "{notes:?}");
        let expected = "note: Unexpected are whole answers that are not what was expected (all: status 200, 3 bytes).";
        assert_eq!(notes[1], expected);
    }

    #[test]
    fn parts_of_a_load_are_called_so() {
        let note = |of, there: &[u64]| {
            let shards = there.iter().map(|index| ShardOrigin { index: *index, total: of, ..ShardOrigin::default() });
            last(&Record { shards: shards.collect(), ..record() })
        };
        assert_eq!(note(4, &[]), last(&record()));
        assert_eq!(note(2, &[1, 2]), "note: These are all 2 shards of the load.");
        assert_eq!(note(2, &[2]), "note: This is shard 2/2 of a load: `brimful merge` it with the others.");
        let at = |index, host: &str, offset_us, lost_at_s| ShardOrigin {
            index,
            total: 2,
            host: host.to_owned(),
            offset_us: Some(offset_us),
            lost_at_s,
            ..ShardOrigin::default()
        };
        let mut both = Record { shards: vec![at(1, "a", 20.0, None), at(2, "a", 65.0, Some(3.5))], ..record() };
        let said = "note: These are all 2 shards of the load, on one host, and they began within 45.0 µs. Lost: 2/2 on a \
                    after 3.50 s.";
        assert_eq!(last(&both), said);
        (both.shards[1].host, both.shards[1].clock_error_us) = ("b".to_owned(), Some(100.0));
        let said = last(&both);
        assert!(
            said.contains("on 2 hosts, and they began within 145 µs, as far as the hosts' clocks are known."),
            "{said}"
        );
        let missing = "note: These are 2 of the 4 shards of the load; missing: 2, 4. Merge them as well.";
        assert_eq!(note(4, &[1, 3]), missing);
        assert!(
            note(99, &[1, 3]).contains("missing: 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, …. Merge"),
            "{}",
            note(99, &[1, 3])
        );
    }

    #[test]
    fn what_is_no_http2_is_said_to_be_none() {
        let counts = Counts { scheduled: 10, sent: 10, established: 10, malformed: 10, ..Counts::default() };
        let record = Record { counts, http: Some("2".to_owned()), ..record() };
        let line = failures(&record).unwrap();
        assert!(line.contains("The answers are not HTTP/2: switch it on at the server"), "{line}");
    }

    #[test]
    fn what_is_unusual_about_answers_and_due_times_is_said() {
        let mut record = record();
        assert!(!notes(&record).iter().any(|note| note.contains("empty line") || note.contains("tick")));
        (record.counts.empty_lines, record.counts.gone_away) = (1_200, 15);
        record.generator.tick_s = Some(0.001);
        let notes = words(&notes(&record));
        assert!(notes.contains("note: Skipped 1,200 empty lines before responses: the server"), "{notes}");
        assert!(notes.contains("note: The server ended connections with 15 calls under way on them"), "{notes}");
        assert!(notes.contains("note: Calls began up to 1.00 ms late, because --tick groups them"), "{notes}");
    }

    #[test]
    fn answers_that_refuse_are_warned_of() {
        let mut record = record();
        let status = StatusCounts { s2xx: 380, s4xx: 2, s429: 2, s5xx: 18, ..StatusCounts::default() };
        record.counts = Counts { scheduled: 400, sent: 400, completed: 400, status, ..Counts::default() };
        record.status_codes = [("200", 380), ("429", 2), ("503", 18)].map(|(code, n)| (code.to_owned(), n)).into();
        assert_eq!(warning(&record), None, "no warning about expected statuses");
        record.verdict.error_answers = 20;
        let said = "WARNING: 20 of 400 calls were answered 5xx or 429 (5.0 %): 429 2, 503 18. The times";
        assert!(warning(&record).unwrap().starts_with(said), "{:?}", warning(&record));
        assert!(words(&notes(&record)).contains(said));
    }
}
