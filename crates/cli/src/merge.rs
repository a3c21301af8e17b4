//! `brimful merge`: the Records of the shards of one load become the Record of that load.

use crate::args::MergeArgs;
use crate::exit::Exit;
use crate::load::deliver_record;
use crate::output::{OutFile, say};
use crate::plan::model::name;
use crate::record;
use brimful_core::quantity::seconds;
use brimful_core::record::Record;
use std::time::{Duration, SystemTime};

/// Shards that began further apart were not one load. An agreed start is kept to within milliseconds.
const TOGETHER: Duration = Duration::from_millis(100);

/// Runs it.
pub fn main(args: &MergeArgs) -> anyhow::Result<Exit> {
    let out = OutFile::optional(args.output.out.as_deref(), "--out")?;
    let read = |path: &std::path::PathBuf| Ok((name(path), record::read(path)?));
    let records: Vec<(String, Record)> = args.records.iter().map(read).collect::<anyhow::Result<_>>()?;
    if let Some(apart) = apart(&records).filter(|apart| *apart > TOGETHER && !args.output.quiet) {
        say(&format!(
            "WARNING: the shards began {} apart, so that the rates are of no load that was there: give them all one \
             --start-at",
            seconds(apart.as_secs_f64())
        ));
    }
    deliver_record(&brimful_stats::merge(records)?, &args.output, out)
}

/// How far apart the first began and the last.
fn apart(records: &[(String, Record)]) -> Option<Duration> {
    let began: Vec<SystemTime> =
        records.iter().filter_map(|(_, record)| humantime::parse_rfc3339(&record.started_at).ok()).collect();
    began.iter().max()?.duration_since(*began.iter().min()?).ok()
}
