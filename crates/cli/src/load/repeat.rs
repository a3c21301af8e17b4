//! `brimful load --repeat`: the same load several times, and the mean of each metric with its spread over the
//! repetitions, as WebMonitor reports its results (Almeida, Almeida & Yates 1997, §5: averages of 15 experiments).
//!
//! Each repetition has a seed of its own and a Record of its own. The repetitions are independent, so the confidence
//! interval of a mean follows from Student's t distribution.

use super::args::LoadArgs;
use super::{append_record, stop_conditions};
use crate::exit::{Exit, code_for_record};
use crate::output::{LinesFile, OutFile, first_failure, print, print_document, text_or_document};
use crate::progress;
use anyhow::Context;
use brimful_core::moments::Moments;
use brimful_core::quantity;
use brimful_core::record::{Record, Summary};
use brimful_run::{RunObserver, RunPlan, run};
use brimful_stats::{ci95_half_width, judge_objectives};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Pause before the next repetition, in which the server can work off its backlog.
const REST: Duration = Duration::from_secs(1);
/// Interval at which a pause checks whether the user has interrupted the run.
const STOP_CHECK: Duration = Duration::from_millis(20);

/// A row of the table of means over the repetitions: a metric of the Record, and the format of its values.
struct Row {
    name: &'static str,
    figure: fn(&Record) -> Option<f64>,
    show: fn(f64) -> String,
}

const ROWS: [Row; 9] = [
    Row { name: "Completed", figure: |record| Some(record.rates.completed), show: quantity::rate },
    Row { name: "Connections", figure: |record| Some(record.rates.established), show: quantity::rate },
    Row { name: "Received", figure: megabits_per_s, show: |x| format!("{} Mbit/s", quantity::number(x)) },
    Row { name: "Failed", figure: failed_share, show: quantity::percent },
    Row { name: "Response, mean", figure: |record| mean_s(record.response_time_us.as_ref()), show: quantity::seconds },
    Row { name: "Response, p50", figure: |record| p50_s(record.response_time_us.as_ref()), show: quantity::seconds },
    Row { name: "Response, p99", figure: |record| p99_s(record.response_time_us.as_ref()), show: quantity::seconds },
    Row { name: "Connect, mean", figure: |record| mean_s(record.connect_time_us.as_ref()), show: quantity::seconds },
    Row { name: "Server's CPUs", figure: server_cores, show: quantity::three_digits },
];

fn megabits_per_s(record: &Record) -> Option<f64> {
    (record.window_s > 0.0).then(|| record.bytes.received as f64 * 8.0 / 1e6 / record.window_s)
}

fn failed_share(record: &Record) -> Option<f64> {
    record.counts.error_share()
}

fn mean_s(times: Option<&Summary>) -> Option<f64> {
    times.map(|times| times.mean / 1e6)
}

fn p50_s(times: Option<&Summary>) -> Option<f64> {
    times.map(|times| times.p50 / 1e6)
}

fn p99_s(times: Option<&Summary>) -> Option<f64> {
    times.map(|times| times.p99 / 1e6)
}

/// Number of CPUs that the server's programs used on average.
fn server_cores(record: &Record) -> Option<f64> {
    let programs = &record.server.as_ref()?.process;
    (!programs.is_empty()).then(|| programs.iter().map(|program| program.cores).sum())
}

/// Generates the load `repetitions` times, writes each Record, and prints the means. The exit code is that of the worst
/// repetition.
pub fn main(args: &LoadArgs, plan: &RunPlan, repetitions: u64) -> anyhow::Result<Exit> {
    let mut files = Vec::new();
    for number in 1..=repetitions {
        let path = args.output.out.as_deref().map(|path| numbered(path, number, repetitions));
        files.push(OutFile::create_optional(path.as_deref(), "--out")?);
    }
    let stop = progress::stop_flag()?;
    let mut records = Vec::new();
    let mut exit = None;
    let mut failure = Ok(());
    let mut is_document_shown = args.output.json;
    for (index, file) in files.into_iter().enumerate() {
        if index > 0 && !rest(&stop) {
            break;
        }
        let measured = repetition(args, plan, index as u64, repetitions, &stop);
        let record = match measured {
            Ok(record) => record,
            Err(error) if records.is_empty() => return Err(error),
            Err(error) => {
                failure = Err(error);
                break;
            }
        };
        failure = deliver(args, file, &record);
        is_document_shown |= failure.is_err();
        exit = worse(exit, code_for_record(&record));
        let has_ended = record.interrupted;
        records.push(record);
        if has_ended || failure.is_err() {
            break;
        }
    }
    let shown = match is_document_shown {
        true => Ok(()),
        false => print(&text_or_document(|| text(&records), "")),
    };
    first_failure(shown.map(|()| exit.unwrap_or(Exit::Interrupted)), [failure])
}

/// Writes the Record of a repetition. If that fails, the Record is printed.
fn deliver(args: &LoadArgs, file: Option<OutFile>, record: &Record) -> anyhow::Result<()> {
    let json = brimful_report::json::record(record)?;
    let written = file.map_or(Ok(()), |file| file.commit(&json).context("the document is on stdout instead"));
    if args.output.json || written.is_err() {
        print_document(&json)?;
    }
    let history = LinesFile::open_optional(args.record_to.as_deref(), "--record-to")?;
    let appended = history.map_or(Ok(()), |file| append_record(file, record));
    first_failure(written, [appended])
}

/// Generates the load once. Each repetition has its own seed, so that the schedules are independent.
fn repetition(
    args: &LoadArgs,
    plan: &RunPlan,
    index: u64,
    repetitions: u64,
    stop: &AtomicBool,
) -> anyhow::Result<Record> {
    let mut options = plan.options().clone();
    options.load.seed = options.load.seed.wrapping_add(index);
    let window = options.load.window;
    let plan = RunPlan::new(options)?;
    let stop_when = stop_conditions(args, &plan.options().load.workload)?;
    let observer = RunObserver { stop_when, ..RunObserver::default() };
    let load = |observer: &RunObserver| run(&plan, observer, stop).map(|output| output.record);
    let title = format!("run {} of {repetitions}", index + 1);
    let mut record = progress::run_with_bar(&title, window, args.output.quiet, observer, load)?;
    record.objectives = judge_objectives(&record, &args.slo)?;
    Ok(record)
}

/// The file of a repetition: `run.json` becomes `run-01.json`, with as many digits as the last number has. Standard
/// output keeps its name.
fn numbered(path: &Path, number: u64, repetitions: u64) -> PathBuf {
    let digits = repetitions.to_string().len();
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let extension = path.extension().map_or(String::new(), |extension| format!(".{}", extension.to_string_lossy()));
    path.with_file_name(format!("{stem}-{number:0digits$}{extension}"))
}

/// The more severe of two exit codes. The most severe is an interruption, followed by a limit of the load generator.
fn worse(so_far: Option<Exit>, next: Exit) -> Option<Exit> {
    let rank = |exit: Exit| match exit {
        Exit::Ok => 0,
        Exit::MissedObjective => 1,
        Exit::EnvironmentError => 2,
        Exit::GeneratorLimit => 3,
        _ => 4,
    };
    so_far.filter(|&exit| rank(exit) >= rank(next)).or(Some(next))
}

/// Waits between two repetitions. Returns false if the user interrupted the run.
fn rest(stop: &AtomicBool) -> bool {
    let end = Instant::now() + REST;
    while Instant::now() < end && !stop.load(Ordering::Relaxed) {
        thread::sleep(STOP_CHECK);
    }
    !stop.load(Ordering::Relaxed)
}

/// The table of means over the repetitions: one row for each metric that all repetitions have.
fn text(records: &[Record]) -> String {
    let mut text =
        format!("{:<16}{:>14}{:>14}{:>14}{:>14}{:>14}\n", "", "mean", "± 95 %", "std. dev.", "least", "most");
    for Row { name, figure, show } in &ROWS {
        let Some(values) = records.iter().map(figure).collect::<Option<Vec<f64>>>() else { continue };
        let Some(moments) = Moments::from_values(&values) else { continue };
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let spread = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), show);
        text += &format!(
            "{name:<16}{:>14}{:>14}{:>14}{:>14}{:>14}\n",
            show(moments.mean()),
            spread(ci95_half_width(&moments)),
            spread(moments.standard_deviation()),
            show(least),
            show(most)
        );
    }
    let invalid: Vec<String> = (1..).zip(records).filter(|(_, record)| !record.verdict.valid).map(reasons).collect();
    text += &format!("\n{} of the same load, each with its own seed", quantity::pluralize(records.len() as u64, "run"));
    text += if invalid.is_empty() { ", all valid\n" } else { "\n" };
    text + &invalid.concat()
}

/// The reasons why a repetition is invalid, as lines of text.
fn reasons((number, record): (usize, &Record)) -> String {
    let reasons: Vec<&str> = record.verdict.reasons.iter().map(|reason| reason.message.as_str()).collect();
    format!("run {number} is invalid: {}\n", reasons.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(completed: f64, response_us: f64) -> Record {
        let idle = include_str!("../../tests/data/idle.record.json");
        let mut record: Record = serde_json::from_str(idle).unwrap();
        record.server = None;
        record.rates.completed = completed;
        record.response_time_us = Some(Summary { mean: response_us, ..Summary::default() });
        record.verdict.valid = true;
        record
    }

    /// The mean of 17.2, 17.3 and 17.55 is 17.35, and their standard deviation is 0.180. With Student's t of 4.303, the
    /// half width of the 95 % interval is 4.303 · 0.180 / √3.
    #[test]
    fn figures_are_means_with_the_interval_of_students_t() {
        let text = text(&[record(172.0, 900.0), record(173.0, 1000.0), record(175.5, 1100.0)]);
        let cells = |name: &str| -> Vec<String> {
            let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name} in {text}"));
            line[16..].split("  ").map(str::trim).filter(|cell| !cell.is_empty()).map(str::to_owned).collect()
        };
        let [mean, half_width, deviation, least, most] = &cells("Completed")[..] else { panic!("{text}") };
        let expected = [173.5, 4.303 * 1.803 / 3.0_f64.sqrt(), 1.803, 172.0, 175.5];
        for (shown, expected) in [mean, half_width, deviation, least, most].into_iter().zip(expected) {
            let shown: f64 = shown.trim_end_matches("/s").parse().unwrap();
            assert!((shown / expected - 1.0).abs() < 0.01, "{shown}, not {expected}");
        }
        assert_eq!(cells("Response, mean")[..1], [quantity::seconds(0.001)]);
        assert!(!text.contains("Server's CPUs"), "no run was watched: {text}");
        assert!(text.ends_with("3 runs of the same load, each with its own seed, all valid\n"), "{text}");
    }

    #[test]
    fn files_have_numbers_of_the_same_width() {
        assert_eq!(numbered(Path::new("out/run.json"), 3, 15), Path::new("out/run-03.json"));
        assert_eq!(numbered(Path::new("run"), 3, 3), Path::new("run-3"));
    }

    #[test]
    fn the_worst_exit_code_counts() {
        let codes = [Exit::Ok, Exit::GeneratorLimit, Exit::MissedObjective];
        assert_eq!(codes.into_iter().fold(None, worse), Some(Exit::GeneratorLimit));
    }
}
