//! `brimful fileset`: creates the document root that the requests of a Workload need.

use crate::documents::parse_workload;
use crate::exit::{Exit, UsageError};
use crate::output::print;
use anyhow::Context;
use brimful_accesslog::LogError;
use brimful_accesslog::fileset::create_files;
use brimful_core::quantity::{bytes, count};
use clap::Args;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  $ brimful fileset workload.toml /srv/www";

/// Arguments of `brimful fileset`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct FilesetArgs {
    /// A Workload (TOML), as `brimful characterize --out FILE.toml` writes it
    pub workload: PathBuf,
    /// Directory for the files; created if it does not exist, and other files in it are kept
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
}

/// Creates the files and prints how many there are.
pub fn main(args: &FilesetArgs) -> anyhow::Result<Exit> {
    let name = args.workload.display();
    let text =
        std::fs::read_to_string(&args.workload).with_context(|| format!("cannot read {name}; check the path"))?;
    let wrong = |why: String| UsageError(format!("{name}: {why}"));
    let workload = parse_workload(&text).map_err(wrong)?;
    let made = create_files(&workload, &args.directory).map_err(|error| match error {
        LogError::Io { .. } => anyhow::anyhow!("{error}; choose another directory, or free disk space"),
        other => wrong(other.to_string()).into(),
    })?;
    let what = if made.files == 1 { "1 file".to_owned() } else { format!("{} files", count(made.files)) };
    let place = args.directory.display();
    print(&match made.files {
        0 => format!(
            "The workload needs no files: none of its classes has `urls` or a `file_set`. {place} is unchanged.\n"
        ),
        _ => format!("{what}, {}, in {place}\n", bytes(made.bytes as f64)),
    })?;
    Ok(Exit::Ok)
}
