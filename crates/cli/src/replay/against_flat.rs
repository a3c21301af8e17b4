//! `--against-flat`: sends the requests of the log twice, first at the times of the log and then at a constant rate.

use super::args::ReplayArgs;
use super::length;
use super::run::{ReplaySettings, check_readable_twice, mean_rate, options, run};
use crate::exit::{self, Exit, UsageError};
use crate::output::{OutFile, first_failure, print, print_document, print_note};
use crate::results::deliver_record;
use brimful_core::Nanos;
use brimful_core::record::Record;
use brimful_core::workload::Load;
use brimful_report::replay::{Pair, text};
use brimful_run::RunPlan;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const FLAG: &str = "--against-flat";
/// Pause between the runs, in which the server recovers from the first one.
const PAUSE: Nanos = Nanos::from_secs(3);

/// Runs the replay twice. Prints the comparison of the two runs, and writes the files that the flags name.
pub fn main(args: &ReplayArgs) -> anyhow::Result<Exit> {
    check_readable_twice(args, FLAG)?;
    let (out, flat_out) = out_files(args)?;
    let first_plan = RunPlan::new(options(args)?)?;
    let mut flat_options = first_plan.options().clone();
    if let Some(Load::Log(log)) = &mut flat_options.load.workload.load {
        log.flattened = true;
    }
    let flat_plan = RunPlan::new(flat_options)?;
    let stop = crate::progress::stop_flag()?;
    let duration = length::print_replay_length(args, length::measure(args, &stop)?.as_ref());
    if stop.load(Ordering::Relaxed) {
        return Ok(Exit::Interrupted);
    }
    let first = run(args, &first_plan, ReplaySettings { constant_rate: None, max_calls: u64::MAX, duration }, &stop)?;
    first.print_replay_summary(args);
    let (false, Some(counts)) = (first.record.interrupted, &first.counts) else {
        let delivered = deliver_record(&first.record, &args.output, args.detail, out);
        return first_failure(delivered, [first.check_logs_read()]);
    };
    let rate = mean_rate(counts.calls, counts.last_due, FLAG)?;
    if !args.output.quiet {
        print_note(&format!("in {}, the same calls follow at a constant rate", PAUSE.to_rounded_string()));
    }
    pause(&stop);
    if stop.load(Ordering::Relaxed) {
        deliver_record(&first.record, &args.output, args.detail, out)?;
        return Ok(Exit::Interrupted);
    }
    let flat =
        run(args, &flat_plan, ReplaySettings { constant_rate: Some(rate), max_calls: counts.calls, duration }, &stop)?;
    let delivered = deliver_pair(args, &first.record, &flat.record, out.zip(flat_out));
    first_failure(delivered, [flat.check_logs_read()])
}

/// The files of the two Records. If the first is `a.json`, the file of the run at a constant rate is `a.flat.json`.
fn out_files(args: &ReplayArgs) -> anyhow::Result<(Option<OutFile>, Option<OutFile>)> {
    let out = OutFile::create_optional(args.output.out.as_deref(), "--out")?;
    if out.as_ref().is_some_and(|out| out.name().is_none()) {
        let message = format!("{FLAG} makes two Records: give --out a file, or use --json to print both");
        return Err(UsageError(message).into());
    }
    let flat = args.output.out.as_deref().map(flat_path);
    Ok((out, OutFile::create_optional(flat.as_deref(), "--out")?))
}

fn flat_path(path: &Path) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(".flat");
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

fn pause(stop: &AtomicBool) {
    let began = Instant::now();
    while began.elapsed() < Duration::from_nanos(PAUSE.0) && !stop.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn deliver_pair(
    args: &ReplayArgs,
    as_logged: &Record,
    flattened: &Record,
    out: Option<(OutFile, OutFile)>,
) -> anyhow::Result<Exit> {
    let pair = Pair::new(as_logged, flattened);
    let written = out.map_or(Ok(()), |(out, flat_out)| {
        out.commit(&brimful_report::json::record(as_logged)?)?;
        flat_out.commit(&brimful_report::json::record(flattened)?)
    });
    match args.output.json {
        true => print_document(&brimful_report::json::document("comparison", &pair)?)?,
        false => print(&text(&pair))?,
    }
    written?;
    let exits = [exit::code_for_record(as_logged), exit::code_for_record(flattened)];
    Ok(exits.into_iter().find(|exit| *exit != Exit::Ok).unwrap_or(Exit::Ok))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flat_record_has_its_own_name() {
        for (path, expected) in [("a.json", "a.flat.json"), ("x/a.b.json", "x/a.b.flat.json"), ("/x/a", "/x/a.flat")] {
            assert_eq!(flat_path(Path::new(path)), Path::new(expected));
        }
    }
}
