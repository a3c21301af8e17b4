//! The destinations of the result of a `plan` command: stdout, and the files of `--out` and `--html`.

use crate::output::{OutFile, deliver};
use crate::results::write_page;
use clap::Args;
use serde::Serialize;
use std::path::PathBuf;

/// Flags for the destinations of a result.
#[derive(Debug, Args)]
pub struct ResultArgs {
    /// Print the whole document as JSON, and nothing else
    #[arg(long)]
    pub json: bool,
    /// Write the JSON document to a file as well; with -, to stdout, and everything else to stderr
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Write an HTML page with charts to a file as well
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// The destinations of the result of a `plan` command. Files are opened before the work starts, so that a wrong path is
/// reported at once.
pub struct ResultFiles {
    json: bool,
    out: Option<OutFile>,
    html: Option<OutFile>,
}

impl ResultFiles {
    /// Opens the files that the flags name.
    pub fn open(args: &ResultArgs) -> anyhow::Result<ResultFiles> {
        Ok(ResultFiles {
            json: args.json,
            out: OutFile::create_optional(args.out.as_deref(), "--out")?,
            html: OutFile::create_optional(args.html.as_deref(), "--html")?,
        })
    }

    /// Writes the document as JSON to `--out`, as a page to `--html`, and as JSON or text to stdout.
    pub fn deliver(
        self,
        name: &'static str,
        document: &impl Serialize,
        text: impl FnOnce() -> String,
    ) -> anyhow::Result<()> {
        let json = brimful_report::json::document(name, document)?;
        let written = write_page(self.html, name, document);
        let text = if self.json { json.clone() } else { text() };
        deliver(self.out, &json, &text)?;
        written
    }
}
