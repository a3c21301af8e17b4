//! The text report of a sweep (runs at increasing loads, called levels): the throughput at each level, and its decline
//! beyond the server's capacity.

use crate::format::{Column, figure, narrow, percent, rate, seconds, words, wrap};
use crate::load::server_share;
use crate::thresholds::MIN_KEEP_UP_RATIO;
use brimful_core::quantity;
use brimful_core::record::{Reason, Record, Summary};
use brimful_core::sweep::{Sweep, SweepKind, SweepLevel};

/// The report mentions a decline if the throughput at the highest load is below this share of the highest throughput at
/// any load.
const NOTABLE_DECLINE: f64 = 0.95;

/// Formats the sweep as text: the headline, a table with a row for each load, and notes on results that are not valid.
pub fn text(sweep: &Sweep) -> String {
    let mut text = wrap(&sweep.headline, 0) + "\n";
    text += &table(sweep);
    let notes = notes(sweep);
    if !notes.is_empty() {
        text += "\n";
    }
    text + &notes.concat()
}

/// The main result of a sweep, in one or two sentences.
pub fn headline(kind: SweepKind, levels: &[SweepLevel]) -> String {
    let completed = |level: &SweepLevel| level.record.rates.completed;
    let best = levels.iter().max_by(|a, b| completed(a).total_cmp(&completed(b)));
    let (Some(best), Some(last)) = (best, levels.last()) else { return "No level was measured.".to_owned() };
    if completed(best) == 0.0 {
        return "No call was completed at any level.".to_owned();
    }
    let keeps_up = |level: &SweepLevel| completed(level) >= MIN_KEEP_UP_RATIO * level.record.rates.offered;
    if kind == SweepKind::Rate && keeps_up(last) {
        return format!("The server keeps up with every rate up to {}.", rate(Some(last.level)));
    }
    let most = format!("The server completes at most {}, {}.", rate(Some(completed(best))), named(kind, best));
    let ratio = completed(last) / completed(best);
    if ratio > NOTABLE_DECLINE {
        return most;
    }
    let less = percent(Some(1.0 - ratio));
    format!("{most} It completes only {} {}: {less} less.", rate(Some(completed(last))), named(kind, last))
}

/// Describes one load of a sweep in words: `at 8,000/s offered`, `with 512 S-Clients`.
fn named(kind: SweepKind, level: &SweepLevel) -> String {
    match kind {
        SweepKind::Rate => format!("at {} offered", rate(Some(level.level))),
        SweepKind::SClients => format!("with {} S-Clients", quantity::count(level.level as u64)),
    }
}

fn capitalized(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or(String::new(), |first| first.to_uppercase().chain(characters).collect())
}

fn table(sweep: &Sweep) -> String {
    const FIGURES: [Column<'static>; 8] = [
        figure("attempted", 2, None),
        figure("completed", 2, None),
        figure("±", 1, None),
        figure("failed", 2, None),
        figure("p50", 2, Some("response")),
        figure("p99", 2, None),
        figure("server CPU", 2, None),
        figure("drops", 2, None),
    ];
    let level_title = match sweep.kind {
        SweepKind::Rate => "offered",
        SweepKind::SClients => "S-Clients",
    };
    let mut columns = vec![figure(level_title, 0, None)];
    columns.extend(FIGURES);
    columns.push(words("", 1));
    let mut rows: Vec<Vec<String>> = sweep.levels.iter().map(|level| row(sweep.kind, level)).collect();
    // A column without values is left out: utilizations are unknown without a monitor, and short runs have no
    // confidence intervals.
    let is_empty = |column: usize| rows.iter().all(|row| row[column] == "-");
    let left_out: Vec<usize> = (0..columns.len()).filter(|column| is_empty(*column)).collect();
    for column in left_out.into_iter().rev() {
        columns.remove(column);
        rows.iter_mut().for_each(|row| drop(row.remove(column)));
    }
    narrow(columns, rows, &["±"])
}

fn row(kind: SweepKind, SweepLevel { level, record }: &SweepLevel) -> Vec<String> {
    let rates = &record.rates;
    let (shown_level, attempted) = match kind {
        SweepKind::Rate => (rate(Some(*level)), rates.sent),
        SweepKind::SClients => (quantity::count(*level as u64), rates.connect_attempts),
    };
    let time = |pick: fn(&Summary) -> f64| seconds(record.response_time_us.as_ref().map(|summary| pick(summary) / 1e6));
    let server = record.server.as_ref();
    let tcp = server.and_then(|server| server.network.as_ref()).and_then(|network| network.tcp);
    vec![
        shown_level,
        rate(Some(attempted)),
        rate(Some(rates.completed)),
        rate(record.reply_rate.ci95_half_width),
        percent(record.verdict.error_share),
        time(|summary| summary.p50),
        time(|summary| summary.p99),
        percent(server.and_then(server_share)),
        rate(tcp.and_then(|tcp| tcp.listen_drops_per_s)),
        if record.verdict.valid { String::new() } else { "*".to_owned() },
    ]
}

/// A note for each reason why results are not valid, with the message at the lowest such load, and a note if the sweep
/// ended early.
fn notes(sweep: &Sweep) -> Vec<String> {
    let mut by_code: Vec<(&Reason, &SweepLevel, u64)> = Vec::new();
    for level in &sweep.levels {
        for reason in &level.record.verdict.reasons {
            match by_code.iter_mut().find(|(first, ..)| first.code == reason.code) {
                Some((.., levels)) => *levels += 1,
                None => by_code.push((reason, level, 1)),
            }
        }
    }
    let note = |(reason, level, levels): &(&Reason, &SweepLevel, u64)| {
        let others = match levels - 1 {
            0 => String::new(),
            others => format!(", and also at {}", quantity::pluralize(others, "higher level")),
        };
        wrap(&format!("* {}{others}: {}", capitalized(&named(sweep.kind, level)), reason.message), 0)
    };
    let mut notes: Vec<String> = by_code.iter().map(note).collect();
    let last: Option<&Record> = sweep.levels.last().map(|level| &level.record);
    if let Some(condition) = last.and_then(|record| record.stopped_by.as_ref()) {
        notes.push(wrap(&format!("note: The sweep was stopped by {condition}."), 0));
    } else if sweep.interrupted {
        notes.push(wrap("note: The sweep was interrupted.", 0));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::fixture;
    use brimful_core::record::{ReasonCode, Verdict};
    use brimful_core::sweep::SCHEMA;

    fn level(offered: f64, completed: f64) -> SweepLevel {
        let mut record = fixture::record();
        record.rates.offered = offered;
        record.rates.sent = offered;
        record.rates.completed = completed;
        SweepLevel { level: offered, record }
    }

    fn sweep(kind: SweepKind, levels: Vec<SweepLevel>) -> Sweep {
        Sweep {
            schema: SCHEMA.to_owned(),
            command: Vec::new(),
            target: "http://127.0.0.1/".to_owned(),
            headline: headline(kind, &levels),
            kind,
            levels,
            interrupted: false,
        }
    }

    #[test]
    fn the_headline_says_how_much_less_an_overloaded_server_completes() {
        let curve =
            [(100.0, 100.0), (200.0, 180.0), (400.0, 90.0)].map(|(offered, completed)| level(offered, completed));
        let expected = "The server completes at most 180/s, at 200/s offered. It completes only 90.0/s at 400/s offered: 50.0 % less.";
        assert_eq!(headline(SweepKind::Rate, &curve), expected);
        assert_eq!(headline(SweepKind::Rate, &curve[..2]), "The server completes at most 180/s, at 200/s offered.");
        assert_eq!(headline(SweepKind::Rate, &curve[..1]), "The server keeps up with every rate up to 100/s.");
        assert_eq!(
            headline(SweepKind::SClients, &curve[..1]),
            "The server completes at most 100/s, with 100 S-Clients."
        );
        assert_eq!(headline(SweepKind::Rate, &[level(100.0, 0.0)]), "No call was completed at any level.");
        assert_eq!(headline(SweepKind::Rate, &[]), "No level was measured.");
    }

    #[test]
    fn each_level_has_a_row_and_doubtful_ones_are_marked() {
        let mut late = level(400.0, 300.0);
        let reason = Reason { code: ReasonCode::GeneratorLate, message: "The generator began late.".to_owned() };
        late.record.verdict = Verdict::from_reasons(vec![reason]);
        let text = text(&sweep(SweepKind::Rate, vec![level(100.0, 100.0), late]));
        assert!(text.lines().any(|line| line.starts_with("offered  attempted  completed")), "{text}");
        assert!(!text.contains("server CPU"), "no monitor was running: {text}");
        assert!(text.lines().any(|line| line.starts_with("  400/s") && line.ends_with('*')), "{text}");
        assert!(text.ends_with("\n* At 400/s offered: The generator began late.\n"), "{text}");
    }

    #[test]
    fn a_sweep_that_a_condition_stopped_says_so() {
        let mut last = level(400.0, 10.0);
        last.record.stopped_by = Some("errors>0.05 for 5s".to_owned());
        let text = text(&sweep(SweepKind::Rate, vec![last]));
        assert!(text.ends_with("note: The sweep was stopped by errors>0.05 for 5s.\n"), "{text}");
    }
}
