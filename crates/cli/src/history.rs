//! `brimful history`: detects the runs at which a server's performance changed.

mod git_notes;
mod read;

use crate::exit::Exit;
use crate::flags::ReportArgs;
use crate::results::ReportFiles;
use brimful_core::history::Direction;
use brimful_stats::history;
use clap::Args;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  $ brimful load http://127.0.0.1:8080/ --rate 200 -d 60s --record-to history.jsonl --label commit=abc123   # each night
  $ brimful history history.jsonl                       # exit code 1 after a new change for the worse
  $ brimful history nightly/ --html history.html        # a directory of Records; a page with a chart of each figure
  $ brimful history --git-notes brimful                 # Records that `git notes --ref=brimful` attached to commits";

/// Arguments of `brimful history`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct HistoryArgs {
    /// Records or surveys of one load: files of one document or of one per line (--record-to), or directories of them
    ///
    /// A directory stands for all its files whose names end in .json or .jsonl. The runs are sorted by their start times.
    /// Invalid runs, copies, and runs of another load or from another machine than most are left out, with a note.
    #[arg(value_name = "FILE", required_unless_present = "git_notes")]
    pub files: Vec<PathBuf>,
    /// Read the Records and surveys in the git notes of this ref too, in the repository of the current directory
    ///
    /// To attach a Record to a commit: git notes --ref=REF add -F record.json COMMIT. A run without the label `commit`
    /// gets the hash of the commit as this label.
    #[arg(long, value_name = "REF")]
    pub git_notes: Option<String>,
    /// A change is new if its first run is among the newest N runs; exit code 1 if a new change is for the worse
    #[arg(long = "new", value_name = "N", default_value_t = 10)]
    pub new_runs: usize,
    /// Flags for the output.
    #[command(flatten)]
    pub output: ReportArgs,
}

/// Detects the changes. Prints the history, and writes the files that the output flags name.
pub fn main(args: &HistoryArgs) -> anyhow::Result<Exit> {
    let files = ReportFiles::create(&args.output)?;
    let read = read::read(&args.files, args.git_notes.as_deref())?;
    let mut found = history(read.runs, args.new_runs)?;
    found.notes.splice(0..0, read.notes);
    files.deliver("history", &found, brimful_report::history::text, brimful_report::history::markdown)?;
    let is_worse = found.changes.iter().any(|change| change.is_new && change.direction == Direction::Worse);
    Ok(if is_worse { Exit::MissedObjective } else { Exit::Ok })
}
