//! The same requests twice: with the log's bursts, and at a constant rate.

use super::args::ReplayArgs;
use super::length;
use super::run::{How, plan, rate_of, read_twice, replayed};
use crate::exit::{self, Exit, UsageError};
use crate::output::{OutFile, first_failure, print, print_document, say};
use crate::results::deliver_record;
use brimful_core::Nanos;
use brimful_core::record::Record;
use brimful_core::workload::Load;
use brimful_report::replay::{Pair, text};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const FLAG: &str = "--against-flat";
/// What the first run has left behind, a queue or a file that is written, is over by then.
const PAUSE: Nanos = Nanos::from_secs(3);

/// Runs both.
pub fn main(args: &ReplayArgs) -> anyhow::Result<Exit> {
    read_twice(args, FLAG)?;
    let (out, flat_out) = places(args)?;
    let first_plan = plan(args)?;
    first_plan.validate()?;
    let mut flat_plan = first_plan.clone();
    if let Some(Load::Log(log)) = &mut flat_plan.workload.load {
        log.flattened = true;
    }
    let stop = crate::progress::stop_flag()?;
    let lasts = length::say_length(args, length::measure(args, &stop)?.as_ref());
    if stop.load(Ordering::Relaxed) {
        return Ok(Exit::Interrupted);
    }
    let first = replayed(args, first_plan, How { flattened: None, most: u64::MAX, lasts }, &stop)?;
    first.account(args);
    let (false, Some(fed)) = (first.record.interrupted, &first.fed) else {
        let delivered = deliver_record(&first.record, &args.output, args.detail, out);
        return first_failure(delivered, [first.read_to_its_end()]);
    };
    let rate = rate_of(fed.calls, fed.last, FLAG)?;
    if !args.output.quiet {
        say(&format!("the same calls at a constant rate, in {}", PAUSE.rounded()));
    }
    pause(&stop);
    if stop.load(Ordering::Relaxed) {
        deliver_record(&first.record, &args.output, args.detail, out)?;
        return Ok(Exit::Interrupted);
    }
    let flat = replayed(args, flat_plan, How { flattened: Some(rate), most: fed.calls, lasts }, &stop)?;
    let delivered = deliver_pair(args, &first.record, &flat.record, out.zip(flat_out));
    first_failure(delivered, [flat.read_to_its_end()])
}

/// Where the Records go: that of the flat run beside the other, `a.flat.json` beside `a.json`.
fn places(args: &ReplayArgs) -> anyhow::Result<(Option<OutFile>, Option<OutFile>)> {
    let out = OutFile::optional(args.output.out.as_deref(), "--out")?;
    if out.as_ref().is_some_and(|out| out.name().is_none()) {
        let message = format!("{FLAG} has two Records: give --out a file, or --json for both on stdout");
        return Err(UsageError(message).into());
    }
    let beside = args.output.out.as_deref().map(beside);
    Ok((out, OutFile::optional(beside.as_deref(), "--out")?))
}

fn beside(path: &Path) -> PathBuf {
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
    let exits = [exit::of_run(as_logged), exit::of_run(flattened)];
    Ok(exits.into_iter().find(|exit| *exit != Exit::Ok).unwrap_or(Exit::Ok))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flat_record_is_beside_the_other() {
        for (path, expected) in [("a.json", "a.flat.json"), ("x/a.b.json", "x/a.b.flat.json"), ("/x/a", "/x/a.flat")] {
            assert_eq!(beside(Path::new(path)), Path::new(expected));
        }
    }
}
