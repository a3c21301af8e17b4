//! Compares the demands that the Server Module (a plug-in of the web server) measured with demands from a regression
//! over the runs.
//!
//! The module measures how much more CPU time a request of one class takes than a request of another class. The
//! remaining CPU time of the server's processes (connections, waiting for events, interrupts) is fitted by the
//! utilization law and divided equally among all requests. A regression over the runs yields demands without the
//! module. The report shows both; the model uses the module's demands.

use super::attribution::CalibrateOptions;
use super::certainty::Source;
use super::cpu::{CpuFit, fit_without_module};
use super::runs::Runs;
use crate::demand::Interval;
use crate::server_module::{ModuleDemand, NORMAL_95, scv_within_classes};
use brimful_core::JsonSchema;
use brimful_core::quantity::seconds;
use serde::Serialize;

/// Maximum relative difference between the module's demand and the regression's demand of a class. Differences up to
/// this value cause no warning, even if the confidence intervals do not overlap.
const MAX_DISAGREEMENT: f64 = 0.1;

/// CPU demands measured inside the web server, and CPU demands from a regression over the runs.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct InsideDemands {
    /// The demands of each class, in the model's order of classes.
    pub classes: Vec<InsideDemand>,
    /// Squared coefficient of variation of the CPU time of requests within a class: one value for all classes, computed
    /// from the second moments of the classes.
    pub scv: Option<f64>,
    /// Standard error of `scv`.
    pub scv_standard_error: Option<f64>,
    /// Number of worker threads or processes that may need a CPU at the same time. With more workers than CPUs, waiting
    /// times do not show the variability of service times, and the model's variability is fitted to response times.
    pub workers: Option<u64>,
    /// The reason why the regression over the runs failed; `None` if it succeeded.
    pub no_regression: Option<String>,
}

/// CPU demand of one request class, in seconds of CPU time per request.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct InsideDemand {
    /// Name of the request class.
    pub class: String,
    /// Number of requests whose CPU time was measured.
    pub sampled: u64,
    /// Mean CPU time of a request as the module measured it in all runs, from its histogram `demand_us`. `None` if
    /// there were too few requests.
    pub measured_s: Option<f64>,
    /// Half width of the 95 % confidence interval of `measured_s`.
    pub measured_ci95_half_width: Option<f64>,
    /// The model's demand at saturation. It includes an equal share of the CPU time that the module does not measure.
    pub demand_s: f64,
    /// 95 % confidence interval of `demand_s`.
    pub ci95: Option<Interval>,
    /// Demand at saturation from the regression over the runs, without the module's measurements. `None` if the runs
    /// cannot distinguish this class from others.
    pub regression_s: Option<f64>,
    /// 95 % confidence interval of `regression_s`.
    pub regression_ci95: Option<Interval>,
    /// Ratio of `demand_s` to `regression_s`.
    pub ratio: Option<f64>,
}

/// Compares the demands of `model`, which use the module's measurements, with a regression over the runs. Returns
/// `None` if there are no measurements of the module.
pub(super) fn compare(
    runs: &Runs,
    options: CalibrateOptions,
    module: Option<&[ModuleDemand]>,
    model: &CpuFit,
    warnings: &mut Vec<String>,
) -> Option<InsideDemands> {
    let Some(module) = module else {
        warnings.extend(runs.module_unused());
        return None;
    };
    let regression = fit_without_module(runs, options).map_err(|error| error.to_string());
    let compared = InsideDemands::new(runs, module, model, &regression);
    warnings.extend(compared.warnings());
    Some(compared)
}

impl InsideDemands {
    fn new(runs: &Runs, module: &[ModuleDemand], model: &CpuFit, regression: &Result<CpuFit, String>) -> InsideDemands {
        let class = |(class, measured): (usize, &ModuleDemand)| {
            let is_distinct = |fit: &&CpuFit| fit.uncertainty[class].source != Source::Proportional;
            let other = regression.as_ref().ok().filter(is_distinct);
            let demand_s = model.demands[class];
            let regression_s = other.map(|fit| fit.demands[class]);
            InsideDemand {
                class: runs.classes[class].clone(),
                sampled: measured.sampled as u64,
                measured_s: measured.total.map(|total| total.mean),
                measured_ci95_half_width: measured.total.map(|_| NORMAL_95 * measured.standard_error()),
                demand_s,
                ci95: model.uncertainty[class].ci95,
                regression_s,
                regression_ci95: other.and_then(|fit| fit.uncertainty[class].ci95),
                ratio: regression_s.map(|other| demand_s / other).filter(|ratio| ratio.is_finite()),
            }
        };
        let (scv, scv_standard_error) = scv_within_classes(module, &model.demands, &runs.mix()).unzip();
        InsideDemands {
            classes: module.iter().enumerate().map(class).collect(),
            scv,
            scv_standard_error,
            workers: runs.used.iter().filter_map(|run| run.threads).max(),
            no_regression: regression.as_ref().err().cloned(),
        }
    }

    /// Squared coefficient of variation of service times and its standard error. `None` if there are more workers than
    /// CPUs (`servers`), or if the number of workers is unknown.
    pub(super) fn service_scv(&self, servers: u32) -> Option<(f64, f64)> {
        let takes_turns = self.workers.is_none_or(|workers| workers > u64::from(servers));
        self.scv.zip(self.scv_standard_error).filter(|_| !takes_turns)
    }

    /// A warning for each class for which the module's demand and the regression's demand differ significantly.
    fn warnings(&self) -> impl Iterator<Item = String> {
        self.classes.iter().filter(|class| class.disagrees()).map(|class| {
            format!(
                "a request of class {} costs {} as measured inside the server, and {} by regression over the runs, and their \
                 intervals do not meet: see that nothing else ran on the server in some of the runs, and that the module's class \
                 has the requests of the load's",
                class.class,
                seconds(class.demand_s),
                seconds(class.regression_s.unwrap_or_default())
            )
        })
    }
}

impl InsideDemand {
    /// Whether the module's demand and the regression's demand differ by more than 10 % and their intervals do not
    /// overlap. The interval `ci95` is not used, because it is also wide if the runs contradict the module.
    fn disagrees(&self) -> bool {
        let Some(other) = self.regression_ci95 else { return false };
        let half_width = self.measured_ci95_half_width.unwrap_or(0.0);
        let far = self.ratio.is_some_and(|ratio| (ratio - 1.0).abs() > MAX_DISAGREEMENT);
        far && (self.demand_s + half_width < other.low || other.high < self.demand_s - half_width)
    }
}

impl Runs {
    /// The Server Module's measurement of each class, pooled over all runs that demands are fitted to. `None` unless
    /// the module measured every class.
    pub(super) fn module_demands(&self) -> Option<Vec<ModuleDemand>> {
        let demand = |class: usize| {
            let by_run =
                self.used.iter().filter_map(|run| run.module.as_ref()?.as_ref().ok()?.get(class).copied().flatten());
            by_run.reduce(ModuleDemand::pool)
        };
        (0..self.classes.len()).map(demand).collect()
    }

    /// A warning with the reason why the Server Module's measurements are not used. `None` if there are no
    /// measurements.
    fn module_unused(&self) -> Option<String> {
        let why = self.used.iter().find_map(|run| run.module.as_ref()?.as_ref().err())?;
        Some(format!("what the Server Module measured is not used, the demands are those of the runs: {why}"))
    }
}
