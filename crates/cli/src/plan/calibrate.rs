//! `brimful plan calibrate`: Records become a model, shown with how far it can be trusted.

use super::args::CalibrateArgs;
use super::model;
use crate::exit::{Exit, UsageError};
use crate::output::{OutFile, deliver};
use brimful_core::record::Record;
use brimful_model::{
    CalibrateOptions, Calibrated, LoadPoint, ModelError, Scenario, WhatIfOptions, calibrate, find_knee, fit_usl,
    what_if,
};
use brimful_report::plan::calibration::{Calibration, CrossChecks, MeasuredLoad, text};
use std::collections::{BTreeMap, BTreeSet};

/// Runs it.
pub fn main(args: &CalibrateArgs) -> anyhow::Result<Exit> {
    let out = OutFile::optional(args.out.as_deref(), "--out")?;
    let records: Vec<Record> = args.records.iter().map(|path| record(path)).collect::<Result<_, _>>()?;
    let calibrated = calibrate(&records, CalibrateOptions { servers: args.servers, ..CalibrateOptions::default() })
        .map_err(|error| naming(error, args))?;
    let names = args.records.iter().map(|path| model::name(path)).collect();
    let checks = cross_checks(&records, &calibrated);
    let outlook = what_if(&calibrated.model, &Scenario::default(), &WhatIfOptions::default())?.before;
    let calibration = Calibration::new(calibrated, outlook, names, checks);
    let model = brimful_report::json::document("model", &calibration.calibrated.model)?;
    let shown = match args.json {
        true => brimful_report::json::document("calibration", &calibration)?,
        false => text(&calibration),
    };
    deliver(out, &model, &shown)?;
    Ok(Exit::Ok)
}

fn record(path: &std::path::Path) -> anyhow::Result<Record> {
    let text = model::text(path)?;
    Ok(model::from_json(&text).map_err(|error| {
        let name = model::name(path);
        UsageError(format!("{name} is not a Record ({error}): write Records with `brimful load --watch --out FILE`"))
    })?)
}

/// The error, and which file each Record that it counts is.
fn naming(error: ModelError, args: &CalibrateArgs) -> anyhow::Error {
    let names: Vec<String> =
        args.records.iter().enumerate().map(|(i, p)| format!("{} {}", i + 1, model::name(p))).collect();
    match error.to_string() {
        said if said.contains("record") => UsageError(format!("{said} (the records are {})", names.join(", "))).into(),
        _ => error.into(),
    }
}

/// Where the curve of the runs themselves bends, whatever the model says.
fn cross_checks(records: &[Record], calibrated: &Calibrated) -> CrossChecks {
    let measured = comparable(records, calibrated);
    let throughputs: Vec<LoadPoint> =
        measured.iter().map(|m| LoadPoint { load: m.offered, throughput: m.completed }).collect();
    let concurrent = measured
        .iter()
        .filter_map(|m| Some(LoadPoint { load: m.present.filter(|n| *n >= 1.0)?, throughput: m.completed }));
    let usl = fit_usl(&concurrent.collect::<Vec<_>>());
    let (usl, usl_absent) = match usl {
        Ok(fit) => (Some(fit), None),
        Err(ModelError::TooFewObservations { .. }) => (None, Some(TOO_LIGHT.to_owned())),
        Err(error) => (None, Some(error.to_string())),
    };
    let knee = find_knee(&throughputs, 1.0);
    let (knee, knee_absent) = match knee {
        Ok(Some(knee)) => (Some(knee), None),
        Ok(None) => (None, Some(STRAIGHT.to_owned())),
        Err(error) => (None, Some(error.to_string())),
    };
    CrossChecks { measured, usl, usl_absent, knee, knee_absent }
}

const TOO_LIGHT: &str =
    "it needs three runs with a request or more in the server on average: measure with --clients 2, 8 and 32";
const STRAIGHT: &str = "throughput follows the load as far as it was measured: measure past saturation";

/// The runs that share one curve: those of the mix that most of them are of, not spoilt by the generator.
fn comparable(records: &[Record], calibrated: &Calibrated) -> Vec<MeasuredLoad> {
    let mut mixes: BTreeMap<BTreeSet<&str>, Vec<MeasuredLoad>> = BTreeMap::new();
    for (index, record) in records.iter().enumerate() {
        let loaded = record.counts.completed > 0 && !calibrated.idle.contains(&index);
        if record.verdict.valid && loaded {
            let mut mix: BTreeSet<&str> =
                record.classes.iter().filter(|(_, c)| c.counts.completed > 0).map(|(name, _)| name.as_str()).collect();
            if mix.len() < 2 {
                // Loads without classes differ by what they request.
                mix.insert(&record.target);
            }
            let completed = record.rates.completed;
            let response_s = record.response_time_us.map(|summary| summary.mean / 1e6);
            let present = response_s.map(|response| completed * response);
            let load = MeasuredLoad { record: index, offered: record.rates.offered, completed, response_s, present };
            mixes.entry(mix).or_default().push(load);
        }
    }
    let mut most = mixes.into_values().max_by_key(Vec::len).unwrap_or_default();
    most.sort_by(|a, b| a.offered.total_cmp(&b.offered));
    most
}
