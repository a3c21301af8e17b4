//! `brimful compare`: shows how the Records or surveys of side B differ from those of side A.

use crate::documents::{display_name, read_text};
use crate::exit::{Exit, UsageError};
use crate::flags::ReportArgs;
use crate::results::ReportFiles;
use crate::runs::{files_in, is_run, parse_run};
use brimful_core::comparison::LimitOutcome;
use brimful_stats::{RegressionLimit, Run, Side, compare};
use clap::Args;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  $ brimful compare before.json after.json
  $ brimful compare before-*.json vs after-*.json --max-regression p99:5%   # several runs of each; exit code 1
  $ brimful compare main/ branch/ --markdown > comment.md                   # directories of runs; for a pull request";

/// The command-line word between the files of side A and those of side B.
const VERSUS: &str = "vs";

/// Arguments of `brimful compare`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct CompareArgs {
    /// Records or surveys of A and of B, or directories of them; with more than two, `vs` between A and B
    ///
    /// A directory stands for all Records and surveys in it. Several runs of each side show how much runs differ without any
    /// change of the server, so they give intervals that can be trusted. Make them in turn: A B B A.
    #[arg(value_name = "FILE", required = true, num_args = 2..)]
    pub files: Vec<PathBuf>,
    /// Exit code 1 if a figure of B is worse than this, like p99:5% or throughput:2% (repeatable)
    ///
    /// The names are those in the table; for errors, the limit is in percentage points. The exit code is 1 only if the whole
    /// 95 % interval is beyond the limit. If the limit is inside the interval, the result is `not known` and the exit code 0.
    #[arg(long, value_name = "FIGURE:PERCENT")]
    pub max_regression: Vec<RegressionLimit>,
    /// Flags for the output.
    #[command(flatten)]
    pub output: ReportArgs,
}

/// Compares the runs of A with those of B. Prints the comparison, and writes the files that the output flags name.
pub fn main(args: &CompareArgs) -> anyhow::Result<Exit> {
    let (a, b) = sides(&args.files)?;
    let files = ReportFiles::create(&args.output)?;
    let compared = compare(read_side(a)?, read_side(b)?, &args.max_regression)?;
    files.deliver("comparison", &compared, brimful_report::compare::text, brimful_report::compare::markdown)?;
    let is_exceeded = compared.limits.iter().any(|limit| limit.outcome == LimitOutcome::Exceeded);
    Ok(if is_exceeded { Exit::MissedObjective } else { Exit::Ok })
}

/// The files of A and those of B: two arguments, or the arguments before and after `vs`.
fn sides(files: &[PathBuf]) -> Result<(&[PathBuf], &[PathBuf]), UsageError> {
    let usage = |message: &str| Err(UsageError(message.to_owned()));
    let separators: Vec<usize> = (0..files.len()).filter(|&place| files[place].as_os_str() == VERSUS).collect();
    match (&separators[..], files) {
        ([], [_, _]) => Ok((&files[..1], &files[1..])),
        ([], _) => usage("more than two files: put `vs` between those of A and those of B, or name two directories"),
        ([place], _) if *place > 0 && *place + 1 < files.len() => Ok((&files[..*place], &files[*place + 1..])),
        _ => usage("`vs` stands once, between the files of A and those of B (a file of this name is ./vs)"),
    }
}

/// Reads the Records and surveys of one side, A or B.
fn read_side(paths: &[PathBuf]) -> anyhow::Result<Side> {
    let mut runs = Vec::new();
    for path in paths {
        match path.is_dir() {
            true => runs.extend(read_directory(path)?),
            false => runs.push((display_name(path), parse_run(&display_name(path), &read_text(path)?)?)),
        }
    }
    let name = paths.first().map(|path| display_name(path)).unwrap_or_default();
    Ok(Side { name, runs })
}

/// Reads all Records and surveys in a directory. Other documents, such as profiles, are not compared.
fn read_directory(directory: &Path) -> anyhow::Result<Vec<(String, Run)>> {
    let mut runs = Vec::new();
    for path in files_in(directory, &["json"])? {
        let text = read_text(&path)?;
        if is_run(&path, &text) {
            runs.push((display_name(&path), parse_run(&display_name(&path), &text)?));
        }
    }
    if runs.is_empty() {
        let message = format!("{} has no Record or survey, in a file that ends in .json", directory.display());
        return Err(UsageError(message).into());
    }
    Ok(runs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_files_are_two_sides_and_more_need_a_word_between_them() {
        let split = |files: &[&str]| {
            let files: Vec<PathBuf> = files.iter().map(PathBuf::from).collect();
            sides(&files).map(|(a, b)| (a.len(), b.len())).map_err(|error| error.to_string())
        };
        assert_eq!(split(&["a", "b"]), Ok((1, 1)));
        assert_eq!(split(&["a", "vs", "b"]), Ok((1, 1)));
        assert_eq!(split(&["a", "b", "vs", "c", "d", "e"]), Ok((2, 3)));
        assert!(split(&["a", "b", "c"]).unwrap_err().contains("put `vs` between"));
        for wrong in [&["vs", "b"][..], &["a", "vs"], &["a", "vs", "b", "vs", "c"]] {
            assert!(split(wrong).unwrap_err().contains("`vs` stands once"), "{wrong:?}");
        }
    }
}
