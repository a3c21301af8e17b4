//! The result of calibration: a model, its uncertainty, and checks of the runs.

use super::bursts::Bursts;
use super::certainty::Uncertainty;
use super::cpu::RunDemand;
use super::inside::InsideDemands;
use super::knee::KneeCheck;
use super::odd::OddRun;
use super::runs::LeftOut;
use crate::demand::{Interval, LoadDependence, SizeFit, SizePoint};
use crate::response::ResponseFit;
use brimful_core::JsonSchema;
use brimful_core::model::Model;
use brimful_model::Estimate;
use serde::Serialize;

/// A calibrated model, and its uncertainty.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Calibrated {
    /// The model. Its stations are `cpu`, the disks that were used, and, if response times were measured, a delay
    /// called `elsewhere`. The rates of its open classes are means over the runs with several classes, or over all runs
    /// if each had only one class.
    pub model: Model,
    /// Uncertainty of each of the [`Model::demands`], stations × classes.
    pub uncertainty: Vec<Vec<Uncertainty>>,
    /// Demands at `cpu` in each bootstrap draw, draws × classes. The demands of one draw belong together, so the draws
    /// yield confidence intervals of functions of several demands. Empty if the runs have no time series.
    #[serde(skip)]
    pub cpu_draws: Vec<Vec<f64>>,
    /// The rate at which the model saturates, at the mix of its classes.
    pub saturation: Saturation,
    /// Classes that the runs cannot distinguish at the CPU.
    pub merged: Vec<Merged>,
    /// Mean number of CPUs that background work of the server keeps busy.
    pub background: Estimate,
    /// Condition number of the regression at the CPU; above about 30 the intervals are wide.
    pub condition_number: f64,
    /// The dependence of the cost of a request on the load; `None` if the cost is constant.
    pub load_dependence: Option<LoadDependence>,
    /// Demand of an average request of the mix as a function of the rate, D(X), from the lowest measured rate to
    /// saturation. Empty if the demand does not depend on the load.
    pub demand_curve: Vec<DemandAtRate>,
    /// For each run that the demands were fitted to: the demand of an average request, as measured and as fitted.
    pub runs: Vec<RunDemand>,
    /// The run whose CPU time differs significantly from the prediction of a fit to all other runs; `None` if there is
    /// no such run.
    pub odd: Option<OddRun>,
    /// Demands measured inside the server, compared with a regression over the runs. `None` without the Server Module,
    /// or if the module's classes are not the classes of the load.
    pub inside: Option<InsideDemands>,
    /// The dependence of demands on response sizes, if there are at least three sizes.
    pub sizes: Option<SizeDemand>,
    /// Delay outside of the stations, and variability of service times, from response times.
    pub response: Option<ResponseFit>,
    /// The load at which the measured throughput stops growing, found without a queueing model.
    pub knee: KneeCheck,
    /// The burstiness of the arrivals, and the cost of bursts.
    pub bursts: Bursts,
    /// Indices of the Records that the demands were fitted to, counted from 0 in the input.
    pub used: Vec<usize>,
    /// Indices of the Records of the idle server, counted from 0 in the input.
    pub idle: Vec<usize>,
    /// The Records that were not used for the demands, with the reasons.
    pub left_out: Vec<LeftOut>,
    /// Warnings for users of the model.
    pub warnings: Vec<String>,
}

/// The rate and the station at which a model saturates.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Saturation {
    /// Requests per second, all classes together.
    pub rate: f64,
    /// 95 % confidence interval of the rate; `None` if the demands have no interval, or if the CPU is not the
    /// bottleneck.
    pub ci95: Option<Interval>,
    /// Name of the station that saturates.
    pub bottleneck: String,
}

/// Demand of an average request of the mix at one rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct DemandAtRate {
    /// Requests per second, all classes together.
    pub rate: f64,
    /// CPU seconds of one request.
    pub demand_s: f64,
}

/// CPU demand as a linear function of the response size, including the head.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SizeDemand {
    /// Names of the classes that the line is fitted to.
    pub classes: Vec<String>,
    /// Mean size and mean demand of each of these classes.
    pub points: Vec<SizePoint>,
    /// The fitted line of the demand over the response size.
    pub fit: SizeFit,
}

/// Classes that share one demand, because the runs cannot distinguish them.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Merged {
    /// Names of the classes.
    pub classes: Vec<String>,
    /// Share of each class in the requests of these classes, over all used runs. The joint demand is valid for these
    /// shares.
    pub shares: Vec<f64>,
    /// Demand of an average request of these classes, in seconds.
    pub joint_demand_s: f64,
}

impl Merged {
    /// A warning that these classes share one demand.
    pub(super) fn warning(&self) -> String {
        format!(
            "the runs cannot tell the classes {} apart: they share the demand of their mean request by a rule of proportion, which \
             holds while they come in these proportions; measure each of them alone",
            self.classes.join(", ")
        )
    }
}
