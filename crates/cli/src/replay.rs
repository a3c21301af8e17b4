//! `brimful replay`: the requests of access logs are made again, at the log's own times.

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
use run::{How, plan, rate_of, read_twice, replayed};
use std::sync::atomic::Ordering;

/// Runs it.
pub fn main(args: &ReplayArgs) -> anyhow::Result<Exit> {
    if args.request.workload.is_some() {
        return Err(UsageError("a log says itself what is requested: leave out --workload".to_owned()).into());
    }
    args.logs_and_url()?;
    if args.flatten {
        read_twice(args, "--flatten")?;
    }
    if args.against_flat {
        if args.hdr.hdr.is_some() {
            return Err(UsageError("--hdr is of one run: leave out --against-flat".to_owned()).into());
        }
        return against_flat::main(args);
    }
    let out = OutFile::optional(args.output.out.as_deref(), "--out")?;
    let hdr = args.hdr.open()?;
    let plan = plan(args)?;
    plan.validate()?;
    let stop = progress::stop_flag()?;
    let length = length::measure(args, &stop)?;
    if stop.load(Ordering::Relaxed) {
        return Ok(Exit::Interrupted);
    }
    let flattened = match (args.flatten, &length) {
        (true, Some(length)) => Some(rate_of(length.calls, length.last, "--flatten")?),
        _ => None,
    };
    let lasts = length::say_length(args, length.as_ref());
    let done = replayed(args, plan, How { flattened, most: u64::MAX, lasts }, &stop)?;
    done.account(args);
    let delivered = deliver_record(&done.record, &args.output, args.detail, out);
    first_failure(delivered, [hdr.map_or(Ok(()), |file| file.write(&done.record)), done.read_to_its_end()])
}
