//! Flags that several commands share, and the syntax of the flags' values. This module imports no module of a command.

mod hdr;
mod request;
pub mod values;

use clap::Args;
pub use hdr::HdrArgs;
pub use request::RequestArgs;
use std::path::PathBuf;

/// Flags for the output of results.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct OutputArgs {
    /// Print the whole document as JSON, and nothing else
    #[arg(long)]
    pub json: bool,
    /// Write the JSON document to a file as well; with -, to stdout, and everything else to stderr
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Show no progress on stderr
    #[arg(short, long)]
    pub quiet: bool,
}

/// Flags for the output of `compare`, `ab` and `history`, which can also print Markdown and write an HTML page.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct ReportArgs {
    /// Print the result as Markdown, for a pull request
    #[arg(long, conflicts_with = "json")]
    pub markdown: bool,
    /// Print the whole document as JSON, and nothing else
    #[arg(long)]
    pub json: bool,
    /// Write the JSON document to a file as well; with -, to stdout, and everything else to stderr
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Write the result as one HTML file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// Flags for the amount of detail in the report of a Record.
#[derive(Clone, Copy, Debug, Args)]
pub struct DetailArgs {
    /// Show every metric: all groups of httperf's report, and all times side by side
    #[arg(long, help_heading = "Output", hide_short_help = true)]
    pub full: bool,
}
