//! `brimful merge`: the Records of the shards of one load become the Record of that load.

use crate::documents::{display_name, read_record};
use crate::exit::Exit;
use crate::flags::{DetailArgs, HdrArgs, OutputArgs};
use crate::output::{OutFile, first_failure, say};
use crate::results::deliver_record;
use brimful_core::Slo;
use brimful_core::quantity::seconds;
use brimful_stats::{Merger, check_objectives, judge_objectives};
use clap::Args;
use std::hint::black_box;
use std::num::NonZero;
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::thread::{self, available_parallelism};
use std::time::{Duration, SystemTime};

const EXAMPLES: &str = "\
Examples:
  $ brimful merge shard-1.json shard-2.json --out whole.json";

/// `brimful merge`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct MergeArgs {
    /// Records that `brimful load --shard I/N` wrote by --out or --keep, one of each shard; - is stdin
    #[arg(value_name = "RECORD", required = true)]
    pub records: Vec<PathBuf>,
    /// Shard I was lost before it had seen anything, and has no Record: its share of the load was missing (repeatable)
    #[arg(long, value_name = "I")]
    pub lost: Vec<u64>,
    /// An objective for the response times of the whole load, as --slo of `brimful load` (repeatable)
    #[arg(long, value_name = "OBJECTIVE")]
    pub slo: Vec<Slo>,
    /// Histograms for other tools.
    #[command(flatten)]
    pub hdr: HdrArgs,
    /// How results are shown.
    #[command(flatten)]
    pub output: OutputArgs,
    /// How much of a Record is shown.
    #[command(flatten)]
    pub detail: DetailArgs,
}

/// Shards that began further apart were not one load. An agreed start is kept to within milliseconds.
const TOGETHER: Duration = Duration::from_millis(100);

/// Of fewer Records than this, a thread more would not be worth its start.
const WORTH_A_THREAD: usize = 8;

/// Freed memory up to twice this is kept for the next Record.
const KEPT: usize = 16 << 20;

/// Runs it.
pub fn main(args: &MergeArgs) -> anyhow::Result<Exit> {
    let out = OutFile::optional(args.output.out.as_deref(), "--out")?;
    let hdr = args.hdr.open()?;
    let (mut merger, began) = read_and_merge(&args.records)?;
    args.lost.iter().try_for_each(|index| merger.lost(*index))?;
    if let Some(apart) = apart(&began).filter(|apart| *apart > TOGETHER && !args.output.quiet) {
        say(&format!(
            "WARNING: the shards began {} apart, so that the rates are of no load that was there: give them all one \
             --start-at",
            seconds(apart.as_secs_f64())
        ));
    }
    let mut record = merger.finish()?;
    let classes: Vec<&str> = record.classes.keys().map(String::as_str).collect();
    check_objectives(&classes, &args.slo)?;
    record.objectives = judge_objectives(&record, &args.slo)?;
    let delivered = deliver_record(&record, &args.output, args.detail, out);
    first_failure(delivered, [hdr.map_or(Ok(()), |file| file.write(&record))])
}

/// What all of these Records come to, and when each began. Every thread reads one after the other: a fleet's Records may
/// be more than this host's memory.
fn read_and_merge(paths: &[PathBuf]) -> anyhow::Result<(Merger, Vec<SystemTime>)> {
    // Three quarters of the time went into giving memory back to the kernel and taking it again. The GNU C library keeps
    // twice as much as the largest block that was ever mapped and freed (mallopt(3), M_MMAP_THRESHOLD).
    drop(black_box(Vec::<u8>::with_capacity(KEPT)));
    let threads = available_parallelism().map_or(1, NonZero::get).min(paths.len() / WORTH_A_THREAD).max(1);
    let merge = |paths: &[PathBuf]| -> anyhow::Result<(Merger, Vec<SystemTime>)> {
        let (mut merger, mut began) = (Merger::default(), Vec::new());
        for path in paths {
            let record = read_record(path)?;
            began.extend(humantime::parse_rfc3339(&record.started_at));
            merger.add(display_name(path), record)?;
        }
        Ok((merger, began))
    };
    thread::scope(|scope| {
        let parts: Vec<_> =
            paths.chunks(paths.len().div_ceil(threads)).map(|paths| scope.spawn(move || merge(paths))).collect();
        let (mut merger, mut began) = (Merger::default(), Vec::new());
        for part in parts {
            let (merged, began_there) = part.join().unwrap_or_else(|panic| resume_unwind(panic))?;
            merger.join(merged)?;
            began.extend(began_there);
        }
        Ok((merger, began))
    })
}

/// How far apart the first of these instants is and the last.
fn apart(began: &[SystemTime]) -> Option<Duration> {
    began.iter().max()?.duration_since(*began.iter().min()?).ok()
}
