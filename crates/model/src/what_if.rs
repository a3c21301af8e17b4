//! What-if: a model before and after changes, or along a range of them (Menascé, Peraino, Dinh & Dinh, CMG 1999, §7).
//!
//! A [`Scenario`] is a list of [`Change`]s (`cpu.speed=1.5x`, `class4.rate=+30%`), classes that are added
//! ([`NewClass`]) and clients at the end of slow lines ([`Client`], their Figs. 8 and 9). [`what_if`] solves the model
//! without and with it: which stations saturate first, how long each class takes, and how far the load can still grow
//! before an [`Slo`] is missed. Each figure has an interval that follows from those of the demands. A range of numbers
//! yields a curve.
//!
//! A saturated network is a result here, not an error: it states which station saturates, and at which rate. Rates are
//! per second, times in seconds, matrices stations × classes. Headroom and saturation are for all classes together at
//! their present mix.

mod amount;
mod change;
mod client;
mod curve;
mod edit;
mod headroom;
mod interval;
mod names;
mod new_class;
mod outlook;
mod scenario;
mod suggestions;

pub use change::Change;
pub use client::Client;
pub use curve::{Axis, Curve, CurvePoint, Steady, curve};
pub use headroom::{Headroom, Until, headroom};
pub use interval::{Effect, Interval90, Intervals};
pub use new_class::NewClass;
pub use outlook::{Outlook, StationLimit};
pub use scenario::Scenario;

use crate::ModelError;
use crate::solution::Method;
use brimful_core::Slo;
use brimful_core::model::Model;
use scenario::Variants;
use schemars::JsonSchema;
use serde::Serialize;

/// Options of a what-if.
#[derive(Clone, Debug, PartialEq)]
pub struct WhatIfOptions {
    /// How to solve.
    pub method: Method,
    /// Objectives whose headroom is computed.
    pub slos: Vec<Slo>,
    /// Random draws of the demands for the intervals; 0 for no intervals.
    pub draws: usize,
    /// Seed of the draws.
    pub seed: u64,
}

impl Default for WhatIfOptions {
    fn default() -> Self {
        WhatIfOptions { method: Method::Auto, slos: Vec::new(), draws: 400, seed: 1 }
    }
}

/// Before and after.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct WhatIf {
    /// The changes, as they are written.
    pub changes: Vec<String>,
    /// The model as it is.
    pub before: Outlook,
    /// The model with all changes; `None` if one of them is a range.
    pub after: Option<Outlook>,
    /// After over before, where the demands have intervals.
    pub effect: Option<Effect>,
    /// The model along the ranges, if there are any.
    pub curve: Option<Curve>,
}

/// Solves a model without and with a scenario.
///
/// # Errors
/// When the model or the scenario is invalid, a name is unknown, changes contradict one another, or the method cannot
/// solve the model.
pub fn what_if(model: &Model, scenario: &Scenario, options: &WhatIfOptions) -> Result<WhatIf, ModelError> {
    let variants = Variants::new(scenario, model)?;
    let mut before = Outlook::new(model, options.method, &options.slos)?;
    let changes = scenario.texts();
    if !variants.axes.is_empty() {
        let curve = curve::along(&variants, options.method)?;
        before.intervals = interval::intervals(model, options)?;
        return Ok(WhatIf { changes, before, after: None, effect: None, curve: Some(curve) });
    }
    let mut after = Outlook::new(&variants.model(&[])?, options.method, &options.slos)?;
    let mut effect = None;
    if let Some(compared) = interval::compare(model, scenario, options)? {
        (before.intervals, after.intervals) = (Some(compared.before), Some(compared.after));
        effect = Some(compared.effect);
    }
    Ok(WhatIf { changes, before, after: Some(after), effect, curve: None })
}
