//! What calibration found, and how far to trust it.

use super::bursts::Bursts;
use super::certainty::Uncertainty;
use super::cpu::RunDemand;
use super::inside::InsideDemands;
use super::knee::KneeCheck;
use super::odd::OddRun;
use super::runs::LeftOut;
use crate::demand::{Interval, LoadDependence, SizeFit, SizePoint};
use crate::response::ResponseFit;
use brimful_core::model::Model;
use brimful_model::Estimate;
use schemars::JsonSchema;
use serde::Serialize;

/// A calibrated model, and how far to trust it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Calibrated {
    /// Stations: `cpu`, the disks that were used, and `elsewhere`, a delay, if there were response times. Open classes,
    /// at the mean rates of the runs of the mix (of all runs, if each had one class).
    pub model: Model,
    /// Beside [`Model::demands`], stations × classes.
    pub uncertainty: Vec<Vec<Uncertainty>>,
    /// Demands at `cpu` as each draw of the bootstrap had them, draws × classes: what belongs together, for intervals
    /// of what is computed from several of them. Empty where the runs have no course.
    #[serde(skip)]
    pub cpu_draws: Vec<Vec<f64>>,
    /// Where the model saturates, at the mix of its classes.
    pub saturation: Saturation,
    /// Classes that the runs cannot tell apart at the CPU.
    pub merged: Vec<Merged>,
    /// Busy CPUs without requests, of the server's own.
    pub background: Estimate,
    /// Of the regression at the CPU; above some 30 the intervals are wide.
    pub condition_number: f64,
    /// Whether requests cost more or less under load.
    pub load_dependence: Option<LoadDependence>,
    /// D(X) of the mix, where it depends on the load: from the lowest rate measured to saturation.
    pub demand_curve: Vec<DemandAtRate>,
    /// What each run that the demands stand on says of the mean request, and what they say of it.
    pub runs: Vec<RunDemand>,
    /// The one of them that the others' law does not explain, if there is one.
    pub odd: Option<OddRun>,
    /// What the server itself measured of its requests, if it has the Server Module with the classes of the load, beside
    /// what the runs say without that.
    pub inside: Option<InsideDemands>,
    /// What demands have to do with sizes, if there are at least three.
    pub sizes: Option<SizeDemand>,
    /// Delay and variability, from response times.
    pub response: Option<ResponseFit>,
    /// Where the measured throughput bends, without a queueing model.
    pub knee: KneeCheck,
    /// How bursty arrivals were, and the cost of bursts.
    pub bursts: Bursts,
    /// Records that the demands stand on, by their place in the input, from 0.
    pub used: Vec<usize>,
    /// Records of an idle server, likewise.
    pub idle: Vec<usize>,
    /// The others, and why.
    pub left_out: Vec<LeftOut>,
    /// Warnings for users of the model.
    pub warnings: Vec<String>,
}

/// Where a model saturates.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Saturation {
    /// Requests per second, all classes together.
    pub rate: f64,
    /// Its confidence interval; `None` where there is none of the demands, or where the CPU is not the bottleneck.
    pub ci95: Option<Interval>,
    /// The station that saturates.
    pub bottleneck: String,
}

/// Demand of the mean request of the mix at one rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct DemandAtRate {
    /// Requests per second, all classes together.
    pub rate: f64,
    /// CPU seconds of one.
    pub demand_s: f64,
}

/// CPU demand by the size of the response, head included.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SizeDemand {
    /// Names of the classes that the line goes through.
    pub classes: Vec<String>,
    /// Mean size and demand of each.
    pub points: Vec<SizePoint>,
    /// The line.
    pub fit: SizeFit,
}

/// Classes with one demand between them.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Merged {
    /// Their names.
    pub classes: Vec<String>,
    /// Their shares of the requests among them, over all runs used: the joint demand holds for these.
    pub shares: Vec<f64>,
    /// Demand of their mean request.
    pub joint_demand_s: f64,
}

impl Merged {
    pub(super) fn warning(&self) -> String {
        format!(
            "the runs cannot tell the classes {} apart: they share the demand of their mean request by a rule of proportion, which \
             holds while they come in these proportions; measure each of them alone",
            self.classes.join(", ")
        )
    }
}
