//! `brimful merge`: merges the Records of the shards of one load into the Record of that load.

use crate::documents::{display_name, read_record};
use crate::exit::Exit;
use crate::flags::{DetailArgs, HdrArgs, OutputArgs};
use crate::output::{OutFile, first_failure, print_note};
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

/// Arguments of `brimful merge`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct MergeArgs {
    /// Records that `brimful load --shard I/N` wrote with --out or --keep, one per shard; - is stdin
    #[arg(value_name = "RECORD", required = true)]
    pub records: Vec<PathBuf>,
    /// Number of a shard that failed without a Record; its share of the load is missing (repeatable)
    #[arg(long, value_name = "I")]
    pub lost: Vec<u64>,
    /// An objective for the whole load, as with `brimful load --slo` (repeatable)
    #[arg(long, value_name = "OBJECTIVE")]
    pub slo: Vec<Slo>,
    /// Flags for histograms in the formats of other tools.
    #[command(flatten)]
    pub hdr: HdrArgs,
    /// Flags for the output of results.
    #[command(flatten)]
    pub output: OutputArgs,
    /// Flags for the amount of detail of a Record.
    #[command(flatten)]
    pub detail: DetailArgs,
}

/// Maximum time between the starts of shards that made one load. Shards with a common --start-at start within
/// milliseconds.
const MAX_START_DIFFERENCE: Duration = Duration::from_millis(100);

/// Minimum number of Records that each thread reads. With fewer Records, an additional thread would save no time.
const RECORDS_PER_THREAD: usize = 8;

/// Size in bytes of a block of memory that is allocated and freed at the start. After that, the C library keeps freed
/// memory up to twice this size.
const FREED_BLOCK: usize = 16 << 20;

/// Merges the Records, writes the Record of the whole load and judges its objectives.
pub fn main(args: &MergeArgs) -> anyhow::Result<Exit> {
    let out = OutFile::create_optional(args.output.out.as_deref(), "--out")?;
    let hdr = args.hdr.open()?;
    let (mut merger, began) = read_and_merge(&args.records)?;
    args.lost.iter().try_for_each(|index| merger.mark_lost(*index))?;
    let difference = start_difference(&began).filter(|difference| *difference > MAX_START_DIFFERENCE);
    if let Some(difference) = difference.filter(|_| !args.output.quiet) {
        print_note(&format!(
            "WARNING: the shards started {} apart, so they did not make one load and its rates are wrong: give all \
             shards the same --start-at",
            seconds(difference.as_secs_f64())
        ));
    }
    let mut record = merger.finish()?;
    let classes: Vec<&str> = record.classes.keys().map(String::as_str).collect();
    check_objectives(&classes, &args.slo)?;
    record.objectives = judge_objectives(&record, &args.slo)?;
    let delivered = deliver_record(&record, &args.output, args.detail, out);
    first_failure(delivered, [hdr.map_or(Ok(()), |file| file.write(&record))])
}

/// Reads and merges the Records. Also returns when each shard started. Each thread reads one Record at a time, because
/// the Records of a fleet may exceed this host's memory.
fn read_and_merge(paths: &[PathBuf]) -> anyhow::Result<(Merger, Vec<SystemTime>)> {
    // Without this allocation, three quarters of the run time are spent on returning memory to the kernel and
    // requesting it again. The GNU C library keeps freed memory up to twice the size of the largest block that was
    // mapped and freed (mallopt(3), M_MMAP_THRESHOLD).
    drop(black_box(Vec::<u8>::with_capacity(FREED_BLOCK)));
    let threads = available_parallelism().map_or(1, NonZero::get).min(paths.len() / RECORDS_PER_THREAD).max(1);
    let merge = |paths: &[PathBuf]| -> anyhow::Result<(Merger, Vec<SystemTime>)> {
        let mut merger = Merger::default();
        let mut began = Vec::new();
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
        let mut merger = Merger::default();
        let mut began = Vec::new();
        for part in parts {
            let (merged, began_there) = part.join().unwrap_or_else(|panic| resume_unwind(panic))?;
            merger.join(merged)?;
            began.extend(began_there);
        }
        Ok((merger, began))
    })
}

/// The time between the earliest and the latest of these times.
fn start_difference(began: &[SystemTime]) -> Option<Duration> {
    began.iter().max()?.duration_since(*began.iter().min()?).ok()
}
