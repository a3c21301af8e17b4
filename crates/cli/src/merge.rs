//! `brimful merge`: the Records of the shards of one load become the Record of that load.

use crate::args::MergeArgs;
use crate::exit::Exit;
use crate::load::deliver_record;
use crate::output::{OutFile, say};
use crate::plan::model::name;
use crate::record;
use brimful_core::quantity::seconds;
use brimful_stats::{Merger, check_objectives, judge_objectives};
use std::time::{Duration, SystemTime};

/// Shards that began further apart were not one load. An agreed start is kept to within milliseconds.
const TOGETHER: Duration = Duration::from_millis(100);

/// Runs it.
pub fn main(args: &MergeArgs) -> anyhow::Result<Exit> {
    let out = OutFile::optional(args.output.out.as_deref(), "--out")?;
    let (mut merger, mut began) = (Merger::default(), Vec::new());
    // One after the other: a fleet's Records may be more than this host's memory.
    for path in &args.records {
        let record = record::read(path)?;
        began.extend(humantime::parse_rfc3339(&record.started_at));
        merger.add(name(path), record)?;
    }
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
    deliver_record(&record, &args.output, args.detail, out)
}

/// How far apart the first of these instants is and the last.
fn apart(began: &[SystemTime]) -> Option<Duration> {
    began.iter().max()?.duration_since(*began.iter().min()?).ok()
}
