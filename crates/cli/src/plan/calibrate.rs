//! `brimful plan calibrate`: fits a queueing model to Records, and assesses how accurate its predictions are.

use super::args::CalibrateArgs;
use super::args::site::{AttributionChoice, RuleName};
use crate::documents::{display_name, read_record};
use crate::exit::{Exit, UsageError};
use crate::output::{OutFile, deliver};
use crate::results::write_page;
use brimful_core::record::Record;
use brimful_estimate::{Attribution, CalibrateOptions, EstimateError, calibrate};
use brimful_model::{Scenario, WhatIfOptions, what_if};
use brimful_report::plan::calibration::{Calibration, text};

/// Calibrates a model. Prints the result, and writes the files that the flags name.
pub fn main(args: &CalibrateArgs) -> anyhow::Result<Exit> {
    if !args.log.is_empty() {
        return super::site::main(args);
    }
    let attribution = attribution(&args.attribution)?;
    let out = OutFile::create_optional(args.out.as_deref(), "--out")?;
    let html = OutFile::create_optional(args.html.as_deref(), "--html")?;
    let records: Vec<Record> = args.records.iter().map(|path| read_record(path)).collect::<Result<_, _>>()?;
    let options = CalibrateOptions { servers: args.servers, attribution, ..CalibrateOptions::default() };
    let calibrated = calibrate(&records, options).map_err(|error| with_file_names(error, args))?;
    let names = args.records.iter().map(|path| display_name(path)).collect();
    // The calibration computes the intervals of predictions, because it has the correlations of the demands. So
    // `what-if` makes no random draws of the demands.
    let options = WhatIfOptions { draws: 0, ..WhatIfOptions::default() };
    let limits = what_if(&calibrated.model, &Scenario::default(), &options)?.before.stations;
    let calibration = Calibration::new(calibrated, limits, names);
    let model = brimful_report::json::document("model", &calibration.calibrated.model)?;
    let shown = match args.json {
        true => brimful_report::json::document("calibration", &calibration)?,
        false => text(&calibration),
    };
    let written = write_page(html, "calibration", &calibration);
    deliver(out, &model, &shown)?;
    written?;
    Ok(Exit::Ok)
}

/// The rule of `--attribution` by which classes share the busy time. With Records, a rule for a single resource is an
/// error, because runs of each class alone measure the shares at each resource.
fn attribution(choices: &[AttributionChoice]) -> Result<Attribution, UsageError> {
    match choices {
        [] => Ok(Attribution::default()),
        [AttributionChoice { resource: None, rule: RuleName::Requests }] => Ok(Attribution::Requests),
        [AttributionChoice { resource: None, rule: RuleName::Bytes }] => Ok(Attribution::Bytes),
        _ => Err(UsageError(
            "with Records, --attribution is `requests` or `bytes`: all other rules, and rules per resource, are for --log; \
             to separate classes with Records, add runs of each class alone"
                .to_owned(),
        )),
    }
}

/// Adds the names of the files to an error that refers to Records by number.
fn with_file_names(error: EstimateError, args: &CalibrateArgs) -> anyhow::Error {
    let names: Vec<String> =
        args.records.iter().enumerate().map(|(i, p)| format!("{} {}", i + 1, display_name(p))).collect();
    match error.to_string() {
        text if text.contains("record") => UsageError(format!("{text} (the records are {})", names.join(", "))).into(),
        _ => error.into(),
    }
}
