//! `brimful replay`: sends the requests of access logs again, at the times at which they were logged.

mod against_flat;
pub mod args;
mod length;
mod run;
mod summary;

use crate::exit::{Exit, UsageError};
use crate::output::{OutFile, first_failure};
use crate::progress;
use crate::results::deliver_record;
use args::ReplayArgs;
use brimful_run::RunPlan;
use run::{ReplaySettings, check_readable_twice, mean_rate, options, run};
use std::sync::atomic::Ordering;

/// Replays the logs once or, with `--against-flat`, twice. Prints the Records, and writes the files that the flags
/// name.
pub fn main(args: &ReplayArgs) -> anyhow::Result<Exit> {
    if args.request.workload.is_some() {
        return Err(UsageError("the log defines the requests: remove --workload".to_owned()).into());
    }
    args.logs_and_url()?;
    if args.flatten {
        check_readable_twice(args, "--flatten")?;
    }
    if args.against_flat {
        if args.hdr.hdr.is_some() {
            return Err(UsageError("--hdr is for a single run: remove --against-flat".to_owned()).into());
        }
        return against_flat::main(args);
    }
    let out = OutFile::create_optional(args.output.out.as_deref(), "--out")?;
    let hdr = args.hdr.open()?;
    let plan = RunPlan::new(options(args)?)?;
    let stop = progress::stop_flag()?;
    let length = length::measure(args, &stop)?;
    if stop.load(Ordering::Relaxed) {
        return Ok(Exit::Interrupted);
    }
    let constant_rate = match (args.flatten, &length) {
        (true, Some(length)) => Some(mean_rate(length.calls, length.last_due, "--flatten")?),
        _ => None,
    };
    let duration = length::print_replay_length(args, length.as_ref());
    let replayed = run(args, &plan, ReplaySettings { constant_rate, max_calls: u64::MAX, duration }, &stop)?;
    replayed.print_replay_summary(args);
    let delivered = deliver_record(&replayed.record, &args.output, args.detail, out);
    first_failure(delivered, [hdr.map_or(Ok(()), |file| file.write(&replayed.record)), replayed.check_logs_read()])
}
