//! What-if: predicts the performance of a model before and after changes, or along a range of changes (Menascé,
//! Peraino, Dinh & Dinh, CMG 1999, §7).
//!
//! A [`Scenario`] is a list of [`Change`]s (`cpu.speed=1.5x`, `class4.rate=+30%`), of added classes ([`NewClass`]), and
//! of clients behind slow network links ([`Client`], Figs. 8 and 9 of that paper). [`what_if`] solves the model without
//! and with the scenario. The result states which stations saturate first, the response time of each class, and how far
//! the load can grow before an [`Slo`] is missed. The confidence intervals of the results follow from the confidence
//! intervals of the demands. If a change has a range of values, the result is a curve.
//!
//! A saturated network is a result here, not an error. The result names the station that saturates and the rate at
//! which it saturates. Rates are per second, times in seconds, matrices stations × classes. Headroom and saturation
//! refer to all classes together at their present mix.

mod amount;
mod change;
mod client;
mod curve;
mod edit;
mod headroom;
mod interval;
mod model_results;
mod names;
mod new_class;
mod scenario;
mod suggestions;

pub use change::Change;
pub use client::Client;
pub use curve::{Axis, Curve, CurvePoint, Steady, curve};
pub use headroom::{Headroom, LoadLimit, headroom};
pub use interval::{Effect, Interval90, Intervals};
pub use model_results::{ModelResults, StationLimit};
pub use new_class::NewClass;
pub use scenario::Scenario;

use crate::ModelError;
use crate::solution::Method;
use brimful_core::JsonSchema;
use brimful_core::Slo;
use brimful_core::model::Model;
use scenario::Variants;
use serde::Serialize;

/// Options for solving a model and its changes.
#[derive(Clone, Debug, PartialEq)]
pub struct WhatIfOptions {
    /// The method that solves the model.
    pub method: Method,
    /// Objectives (upper limits of response times or utilizations) for which the greatest load is computed.
    pub slos: Vec<Slo>,
    /// Number of random draws of the demands from which confidence intervals are computed; 0 for no intervals.
    pub draws: usize,
    /// Seed of the random draws.
    pub seed: u64,
}

impl Default for WhatIfOptions {
    fn default() -> Self {
        WhatIfOptions { method: Method::Auto, slos: Vec::new(), draws: 400, seed: 1 }
    }
}

/// The results of a model before and after changes.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct WhatIf {
    /// The changes, in the user's notation.
    pub changes: Vec<String>,
    /// The results of the model without the changes.
    pub before: ModelResults,
    /// The results of the model with all changes; `None` if one of the changes is a range.
    pub after: Option<ModelResults>,
    /// The ratio of each result after the changes to the same result before them; `None` if the demands have no
    /// intervals.
    pub effect: Option<Effect>,
    /// The results for each number of the ranges of changes; `None` without ranges.
    pub curve: Option<Curve>,
}

/// Solves a model without and with a scenario.
///
/// # Errors
/// When the model or the scenario is invalid, a name is unknown, changes contradict one another, or the method cannot
/// solve the model.
pub fn what_if(model: &Model, scenario: &Scenario, options: &WhatIfOptions) -> Result<WhatIf, ModelError> {
    let variants = Variants::new(scenario, model)?;
    let mut before = ModelResults::new(model, options.method, &options.slos)?;
    let changes = scenario.texts();
    if !variants.axes.is_empty() {
        let curve = curve::along(&variants, options.method)?;
        before.intervals = interval::intervals(model, options)?;
        return Ok(WhatIf { changes, before, after: None, effect: None, curve: Some(curve) });
    }
    let mut after = ModelResults::new(&variants.model(&[])?, options.method, &options.slos)?;
    let mut effect = None;
    if let Some(compared) = interval::compare(model, scenario, options)? {
        (before.intervals, after.intervals) = (Some(compared.before), Some(compared.after));
        effect = Some(compared.effect);
    }
    Ok(WhatIf { changes, before, after: Some(after), effect, curve: None })
}
