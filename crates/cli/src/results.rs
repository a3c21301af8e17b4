//! Shows and writes results: Records, and the HTML pages of documents.

use crate::exit::{self, Exit};
use crate::flags::{DetailArgs, OutputArgs, ReportArgs};
use crate::output::{OutFile, deliver, first_failure, page, print_note, text_or_document};
use brimful_core::record::Record;
use brimful_report::load::Detail;
use serde::Serialize;

/// Writes the Record to the file of `--out`, and shows it on stdout. Returns the exit code of the run.
pub fn deliver_record(
    record: &Record,
    args: &OutputArgs,
    detail: DetailArgs,
    out: Option<OutFile>,
) -> anyhow::Result<Exit> {
    let json = brimful_report::json::record(record)?;
    let detail = if detail.full { Detail::Full } else { Detail::Main };
    let text = || brimful_report::load::text(record, detail);
    let text = if args.json { json.clone() } else { text_or_document(text, &json) };
    deliver(out, &json, &text)?;
    // The text output contains this warning. The JSON output does not, so the warning is printed on stderr.
    if let Some(warning) = brimful_report::load::warning(record).filter(|_| args.json && !args.quiet) {
        print_note(&warning);
    }
    Ok(exit::code_for_record(record))
}

/// Writes the page of a Record to the file of `--html`, if that is given.
pub fn write_record_page(record: &Record, file: Option<OutFile>) -> anyhow::Result<()> {
    file.map_or(Ok(()), |file| file.commit(&page(|| brimful_report::html::load(record))?))
}

/// Writes the page of a document to the file of `--html`, if that is given.
pub fn write_page(file: Option<OutFile>, name: &'static str, document: &impl Serialize) -> anyhow::Result<()> {
    file.map_or(Ok(()), |file| file.commit(&brimful_report::html::page(name, document)?))
}

/// The destinations of the output flags [`ReportArgs`]. The files are created before the work starts, so that a wrong
/// path is reported at once.
pub struct ReportFiles<'a> {
    args: &'a ReportArgs,
    out: Option<OutFile>,
    html: Option<OutFile>,
}

impl ReportFiles<'_> {
    /// Creates the files that the flags name.
    pub fn create(args: &ReportArgs) -> anyhow::Result<ReportFiles<'_>> {
        let out = OutFile::create_optional(args.out.as_deref(), "--out")?;
        let html = OutFile::create_optional(args.html.as_deref(), "--html")?;
        Ok(ReportFiles { args, out, html })
    }

    /// Prints a document in the form that the flags select, and writes the files.
    pub fn deliver<T: Serialize>(
        self,
        name: &'static str,
        document: &T,
        text: impl FnOnce(&T) -> String,
        markdown: impl FnOnce(&T) -> String,
    ) -> anyhow::Result<()> {
        let json = brimful_report::json::document(name, document)?;
        let shown = match (self.args.json, self.args.markdown) {
            (true, _) => json.clone(),
            (false, true) => markdown(document),
            (false, false) => text_or_document(|| text(document), &json),
        };
        let delivered = deliver(self.out, &json, &shown);
        first_failure(delivered, [write_page(self.html, name, document)])
    }
}

/// Drops the histograms, the intervals and the data for `merge` from a Record. A few kilobytes remain, with all metrics
/// of the whole run. A history uses nothing else.
pub fn drop_details(record: &mut Record) {
    record.hdr.clear();
    record.account = None;
    record.intervals.clear();
    if let Some(server) = &mut record.server {
        server.intervals.clear();
    }
}
