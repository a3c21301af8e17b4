//! `brimful plan`: the face of the queueing models.

pub mod args;
mod calibrate;
mod forecast;
mod load_curve;
pub mod model;
mod site;
mod solve;
mod utilization;
mod what_if;

use crate::exit::Exit;
use crate::output::{OutFile, deliver};
use args::{PlanArgs, PlanCommand, ResultArgs};
use serde::Serialize;

/// Runs it.
pub fn main(args: &PlanArgs) -> anyhow::Result<Exit> {
    match &args.command {
        PlanCommand::Solve(args) => solve::main(args),
        PlanCommand::WhatIf(args) => what_if::main(args),
        PlanCommand::Calibrate(args) => calibrate::main(args),
        PlanCommand::Forecast(args) => forecast::main(args),
    }
}

/// Where a result goes besides the terminal, opened before there is any.
struct Places {
    json: bool,
    out: Option<OutFile>,
    html: Option<OutFile>,
}

impl Places {
    fn open(args: &ResultArgs) -> anyhow::Result<Places> {
        Ok(Places {
            json: args.json,
            out: OutFile::optional(args.out.as_deref(), "--out")?,
            html: OutFile::optional(args.html.as_deref(), "--html")?,
        })
    }

    /// The document as JSON to the file, as a page to the other, and as JSON or as text to stdout.
    fn deliver(
        self,
        name: &'static str,
        document: &impl Serialize,
        text: impl FnOnce() -> String,
    ) -> anyhow::Result<()> {
        let json = brimful_report::json::document(name, document)?;
        let written = page(self.html, name, document);
        let text = if self.json { json.clone() } else { text() };
        deliver(self.out, &json, &text)?;
        written
    }
}

/// The document as a page, if there is a file for it.
pub fn page(file: Option<OutFile>, name: &'static str, document: &impl Serialize) -> anyhow::Result<()> {
    let Some(file) = file else { return Ok(()) };
    file.commit(&brimful_report::html::page(name, document)?)
}
