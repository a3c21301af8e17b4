//! The result of calibration: a queueing model, its uncertainty, and the results of checks.

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

/// A queueing model that was calibrated with measured runs, and its uncertainty.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Calibrated {
    /// The model. Its stations are `cpu`, the disks that were used, and, if response times were measured, a delay
    /// called `elsewhere`. The rates of its open classes are means over the runs with several request classes, or over
    /// all runs if each had only one class.
    pub model: Model,
    /// Uncertainty of each of the [`Model::demands`], stations × classes.
    pub uncertainty: Vec<Vec<Uncertainty>>,
    /// Demands at the station `cpu` in each bootstrap draw, draws × classes. The demands of one draw belong together,
    /// so the draws yield confidence intervals of functions of several demands. Empty if the runs have no time series.
    #[serde(skip)]
    pub cpu_draws: Vec<Vec<f64>>,
    /// The rate at which the model saturates, at the model's mix of request classes.
    pub saturation: Saturation,
    /// Groups of classes that the runs cannot distinguish by their CPU time.
    pub merged: Vec<Merged>,
    /// Mean number of CPUs that background work of the server keeps busy.
    pub background: Estimate,
    /// Condition number of the regression of the CPU time. Above about 30, the confidence intervals are wide.
    pub condition_number: f64,
    /// The dependence of the CPU demand on the load; `None` if the demand is constant.
    pub load_dependence: Option<LoadDependence>,
    /// Demand of an average request of the mix as a function of the request rate, from the lowest measured rate to
    /// saturation. Empty if the demand does not depend on the load.
    pub demand_curve: Vec<DemandAtRate>,
    /// The measured and the fitted demand of an average request in each run that the demands were fitted to.
    pub runs: Vec<RunDemand>,
    /// The run whose CPU time differs significantly from the prediction of a fit to all other runs; `None` if there is
    /// no such run.
    pub odd: Option<OddRun>,
    /// Demands that the Server Module measured inside the web server, compared with a regression over the runs. `None`
    /// without the Server Module, or if the module's request classes are not those of the load.
    pub inside: Option<InsideDemands>,
    /// The dependence of CPU demands on response sizes; `None` if there are fewer than three sizes.
    pub sizes: Option<SizeDemand>,
    /// The delay outside of the stations and the variability of service times, fitted to response times; `None` if no
    /// response times were measured under open load.
    pub response: Option<ResponseFit>,
    /// The load at which the measured throughput stops growing, determined without a queueing model.
    pub knee: KneeCheck,
    /// The burstiness of the arrivals, and the effect of bursts on the demand.
    pub bursts: Bursts,
    /// Indices of the Records that the demands were fitted to, counted from 0 in the input.
    pub used: Vec<usize>,
    /// Indices of the Records of the idle server, counted from 0 in the input.
    pub idle: Vec<usize>,
    /// The Records that the demands were not fitted to, with the reasons.
    pub left_out: Vec<LeftOut>,
    /// Warnings for the user of the model.
    pub warnings: Vec<String>,
}

/// The request rate at which a model saturates, and the station that saturates first.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Saturation {
    /// Requests per second of all classes together.
    pub rate: f64,
    /// 95 % confidence interval of the rate; `None` if the demands have no interval, or if the CPU is not the
    /// bottleneck.
    pub ci95: Option<Interval>,
    /// Name of the station that saturates first.
    pub bottleneck: String,
}

/// Demand of an average request of the mix at one request rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct DemandAtRate {
    /// Requests per second of all classes together.
    pub rate: f64,
    /// CPU seconds per request.
    pub demand_s: f64,
}

/// CPU demand as a linear function of the response size (head and body).
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SizeDemand {
    /// Names of the classes that the line is fitted to.
    pub classes: Vec<String>,
    /// Mean response size and CPU demand of each of these classes.
    pub points: Vec<SizePoint>,
    /// The fitted line: CPU demand as a function of the response size.
    pub fit: SizeFit,
}

/// Request classes that share one demand, because the runs cannot distinguish them.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Merged {
    /// Names of the classes.
    pub classes: Vec<String>,
    /// Share of each class in the requests of these classes, over the runs that the demands were fitted to. The joint
    /// demand is valid for these shares.
    pub shares: Vec<f64>,
    /// Demand of an average request of these classes, in seconds.
    pub joint_demand_s: f64,
}

impl Merged {
    /// A warning to the user that these classes share one demand.
    pub(super) fn warning(&self) -> String {
        format!(
            "the runs cannot tell the classes {} apart: they share the demand of their mean request by a rule of proportion, which \
             holds while they come in these proportions; measure each of them alone",
            self.classes.join(", ")
        )
    }
}
