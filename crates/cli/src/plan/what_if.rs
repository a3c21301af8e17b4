//! `brimful plan what-if`: solves a model before and after changes, or for a range of values of one change.

use super::args::WhatIfArgs;
use super::load_curve::load_curve;
use super::model;
use super::result::ResultFiles;
use crate::exit::{Exit, UsageError};
use crate::output::OutFile;
use brimful_model::{Method, ModelError, Scenario, WhatIf, WhatIfOptions, what_if};
use brimful_report::plan::what_if::{Changed, LoadCurves, text};

/// Solves the model before and after the changes. Prints the comparison, and writes the files that the flags name.
pub fn main(args: &WhatIfArgs) -> anyhow::Result<Exit> {
    let places = ResultFiles::open(&args.result)?;
    let csv = OutFile::create_optional(args.csv.as_deref(), "--csv")?;
    let scenario =
        Scenario { changes: args.set.clone(), classes: args.add_class.clone(), clients: args.client.clone() };
    if scenario == Scenario::default() && args.slo.is_empty() {
        let ask =
            "nothing to do: change something with --set, --add-class or --client, or give an objective with --slo";
        return Err(UsageError(ask.to_owned()).into());
    }
    let model = model::read(&args.model.model)?;
    let options = WhatIfOptions { method: args.model.method, slos: args.slo.clone(), ..WhatIfOptions::default() };
    let found = what_if(&model, &scenario, &options)?;
    let exit = exit_code(&found);
    let loads = load_curves(&found, options.method)?;
    let changed = Changed::new(found, loads);
    let written = csv.map_or(Ok(()), |file| match &changed.what_if.curve {
        Some(curve) => file.commit(&curve.to_csv()),
        None => Err(UsageError("--csv is for curves: give a range, like --set 'rate=50..150'".to_owned()).into()),
    });
    places.deliver("what-if", &changed, || text(&changed))?;
    written?;
    Ok(exit)
}

/// The metrics as a function of the load, before and after the changes; `None` if the two curves have different axes.
fn load_curves(found: &WhatIf, method: Method) -> Result<Option<LoadCurves>, ModelError> {
    let Some(after) = &found.after else { return Ok(None) };
    let before = load_curve(&found.before, method)?;
    let after = load_curve(after, method)?;
    let curves = before.zip(after).filter(|(before, after)| before.axes == after.axes);
    Ok(curves.map(|(before, after)| LoadCurves { before, after }))
}

/// The exit code, which shows whether the changed model meets all objectives. If one change has a range of values,
/// there is no single changed model. In this case, the unchanged model is judged.
fn exit_code(found: &WhatIf) -> Exit {
    let judged = found.after.as_ref().unwrap_or(&found.before);
    if judged.headroom.iter().all(|headroom| headroom.met) { Exit::Ok } else { Exit::MissedObjective }
}
