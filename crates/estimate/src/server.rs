//! Fits a queueing model of a server to the calibration measurements of a survey (measurements at several loads), and
//! computes predictions from the model. Times are in seconds, rates per second.
//!
//! One queueing station represents the server's CPUs. If another resource (a pool of workers, a lock, a disk) saturates
//! before the CPUs, a second queueing station represents it. A delay station represents the remaining time. The
//! capacity is measured, not extrapolated: the throughput with many closed-loop clients without think time determines a
//! flow-equivalent station (Chandy, Herzog & Woo 1975).
//!
//! Pauses of the server are removed from the measurements first. In the model, they interrupt the CPUs ([`pauses`]).
//!
//! The CPU cost of a call depends on the load by one of several laws ([`law`]), chosen by cross-validation. The
//! differences between request classes are measured by the Server Module (a plug-in of the web server, [`module`]), or
//! by loads of each class alone. Mean response times then determine the delay outside of the stations and the
//! variability of service times ([`responses`]).
//!
//! Predictions are solutions of the model that the survey writes, so another solver of this model returns the same
//! predictions. Calibration measures the loads repeatedly, once per block. The intervals of the predictions come from a
//! bootstrap that resamples these blocks ([`prediction_interval`]).

mod blocks;
mod drift;
mod fitting;
mod full;
mod gaps;
mod later_drift;
mod law;
mod model_fit;
mod module;
mod pauses;
mod prediction_interval;
mod program_demands;
mod programs;
mod quota;
mod responses;
mod slowness;
mod work_scv;

pub use blocks::{
    Block, KernelMetrics, Measurement, ModuleMetrics, OfferedLoad, ResponseMetrics, ServerFacts, Timeline,
};
pub use later_drift::MeasurementTime;
pub use model_fit::ResponseSummary;
pub use prediction_interval::{PredictedMeasurement, PredictedValue, ResponseLimit};
pub use programs::ProgramUsage;
pub use quota::QuotaPrediction;

use self::blocks::{PooledLoads, PooledMeasurement, ReplayedMeasurement, pool};
use self::drift::Drift;
use self::model_fit::ModelFit;
use self::pauses::{PauseDetector, Pauses};
use self::prediction_interval::{LaterMeasurement, half_width95};
use crate::EstimateError;
use crate::correlation::correlation_of;
use crate::least_squares::t95;
use crate::window::{CompletedCalls, stretches};
use brimful_core::model::Model;
use brimful_core::record::Record;
use brimful_core::survey::{CostFormula, ModuleMeasurements, ProgramDemand, ServerPauses, ThroughputByClients};
use brimful_model::correlation::identity;
use brimful_model::{Estimate, HostSlowness, Method, ModelError, Quota, solve_open};

/// The request rate of the model that the survey writes, as a share of the saturation rate. A server should run at this
/// rate or less, so that it has a reserve for peaks. At saturation, an open network has no solution.
pub const OPERATING_SHARE: f64 = 0.7;

/// A queueing model of a server, fitted to calibration measurements.
#[derive(Clone, Debug)]
pub struct ServerFit {
    facts: ServerFacts,
    blocks: Vec<Vec<ReplayedMeasurement>>,
    loads: PooledLoads,
    fit: ModelFit,
    /// Models fitted to resampled blocks of the calibration. Their differences yield confidence intervals.
    bootstrap: Vec<ModelFit>,
    /// The changes of the host's speed during calibration.
    drift: Drift,
    /// Detects pauses of the server in a measurement; `None` for a server without pauses.
    detector: Option<PauseDetector>,
    /// CPU demand of each request class, in seconds per request. If the CPUs cannot be observed, the demand at the
    /// whole server.
    pub demands: Vec<Estimate>,
    /// The additional CPU time of a request that finds the server idle, in seconds.
    pub wakeup: Estimate,
}

/// The model's predictions for one request rate.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// Requests completed per second.
    pub throughput: f64,
    /// Mean response time, in seconds; `None` above saturation, where the queue grows without limit.
    pub response: Option<f64>,
    /// Mean response time of each class, in seconds; `None` above saturation.
    pub class_response_times: Option<Vec<f64>>,
    /// Utilization of the CPUs by the server's processes, 0 to 1.
    pub utilization: f64,
}

impl ServerFit {
    /// Fits a model to calibration measurements; each block contains one measurement of each load. `seed` is the seed
    /// of the bootstrap.
    ///
    /// # Errors
    /// If the measurements do not determine a model.
    pub fn new(mut facts: ServerFacts, blocks: Vec<Block>, seed: u64) -> Result<Self, EstimateError> {
        let not_replayed = |measurement| ReplayedMeasurement { measurement, modelled: None, percentile_ratios: None };
        let mut blocks: Vec<Vec<ReplayedMeasurement>> =
            blocks.into_iter().map(|block| block.into_iter().map(not_replayed).collect()).collect();
        let detector = PauseDetector::detect_and_remove(&mut blocks, &mut facts);
        // The first fit needs only the CPU demands of calls, which do not depend on response times.
        let demands_fit = fitting::fit(&facts, &pool(&blocks), None, None)?;
        for replayed in blocks.iter_mut().flatten() {
            replayed.modelled = responses::modelled_response(&demands_fit, &facts, &replayed.measurement);
        }
        let response_fit = fitting::fit(&facts, &pool(&blocks), None, None)?;
        let delay_scv = responses::choose_delay_scv(&response_fit, &facts, &blocks);
        let response_fit = response_fit.with_delay_scv(delay_scv);
        for replayed in blocks.iter_mut().flatten() {
            replayed.percentile_ratios =
                responses::measured_percentile_ratios(&response_fit, &facts, &replayed.measurement);
        }
        let loads = pool(&blocks);
        let pauses = detector.as_ref().map(|detector| Pauses::new(detector, blocks.iter())).unwrap_or_default();
        let fit = ModelFit { percentile_ratios: responses::percentile_ratios(&loads), pauses, ..response_fit };
        let bootstrap = prediction_interval::bootstrap(&facts, &blocks, &fit, detector.as_ref(), delay_scv, seed);
        let estimate = |figure: &dyn Fn(&ModelFit) -> f64| Estimate {
            value: figure(&fit),
            ci95_half_width: half_width95(bootstrap.iter().map(figure)),
        };
        let demands: Vec<Estimate> =
            (0..facts.classes.len()).map(|class| estimate(&|fit| fit.cpu.demands[class])).collect();
        let wakeup = estimate(&|fit| fit.cpu.station.idle_cost.map_or(0.0, |cost| cost.seconds));
        let drift = Drift::new(&fit, &facts, &loads, &blocks);
        let mut server = Self { facts, blocks, loads, fit, bootstrap, drift, detector, demands, wakeup };
        server.note_uncertainty();
        Ok(server)
    }

    /// Writes the half widths of the demands' confidence intervals, and the correlation of their errors, to the model.
    fn note_uncertainty(&mut self) {
        if !self.fit.waits_for_cpu() {
            return;
        }
        let classes = self.facts.classes.len();
        let correlation = correlation_of(&self.demand_covariance());
        let model = &mut self.fit.network;
        let stations = model.stations.len();
        model.demand_ci95_half_width = vec![vec![0.0; classes]; stations];
        model.demand_ci95_half_width[0] = self.demands.iter().map(|d| d.ci95_half_width.unwrap_or(0.0)).collect();
        model.demand_correlation = vec![identity(classes); stations];
        model.demand_correlation[0] = correlation;
    }

    /// Covariance of the CPU demands between the models of the bootstrap, classes × classes.
    fn demand_covariance(&self) -> Vec<Vec<f64>> {
        let n = self.bootstrap.len() as f64;
        let demand = |fit: &ModelFit, class: usize| fit.cpu.demands[class];
        let classes = 0..self.facts.classes.len();
        let mean = |class: usize| self.bootstrap.iter().map(|fit| demand(fit, class)).sum::<f64>() / n;
        let means: Vec<f64> = classes.clone().map(mean).collect();
        let covariance = |i: usize, j: usize| {
            let product = |fit: &ModelFit| (demand(fit, i) - means[i]) * (demand(fit, j) - means[j]);
            self.bootstrap.iter().map(product).sum::<f64>() / n
        };
        classes.clone().map(|i| classes.clone().map(|j| covariance(i, j)).collect()).collect()
    }

    /// Saturation rate for the measured mix of request classes, in requests per second.
    pub fn saturation(&self) -> f64 {
        self.saturation_for_mix(&self.facts.mix)
    }

    /// Saturation rate for requests with the class shares `mix`, in requests per second.
    pub fn saturation_for_mix(&self, mix: &[f64]) -> f64 {
        self.fit.saturation(mix)
    }

    /// Name of the station to which [`ServerFit::demands`] refer.
    pub fn station(&self) -> &str {
        &self.facts.station
    }

    /// Name of the bottleneck, the station that saturates first.
    pub fn bottleneck(&self) -> &str {
        &self.fit.bottleneck
    }

    /// The measurements that show what the bottleneck is, as a phrase for the report.
    pub fn evidence(&self) -> &str {
        &self.fit.evidence
    }

    /// Mean time for which a call of the class occupies the bottleneck, in seconds; `None` if the CPUs are the
    /// bottleneck.
    pub fn holding_time(&self, class: usize) -> Option<Estimate> {
        let holding_time = |fit: &ModelFit| {
            let station = fit.network.stations.iter().position(|station| station.name == fit.bottleneck)?;
            fit.network.demands[station].get(class).copied()
        };
        let value = holding_time(&self.fit).filter(|_| self.fit.bottleneck != self.facts.station)?;
        Some(Estimate { value, ci95_half_width: half_width95(self.bootstrap.iter().filter_map(holding_time)) })
    }

    /// The tested laws of how the CPU cost of a call depends on the load, the best one first.
    pub fn laws(&self) -> &[CostFormula] {
        &self.fit.laws
    }

    /// Measured throughput for each number of closed-loop clients without think time.
    pub fn throughput_by_clients(&self) -> Vec<ThroughputByClients> {
        let servers = f64::from(self.facts.servers);
        let by_clients = |(load, pooled): (&OfferedLoad, &PooledMeasurement)| match load {
            OfferedLoad::Clients(clients) => Some(ThroughputByClients {
                clients: *clients,
                throughput: pooled.measurement.rate(),
                ci95_half_width: pooled.rate_variance.map(|v| t95(pooled.blocks - 1) * v.sqrt()),
                utilization: pooled.measurement.kernel.busy.map(|busy| busy / servers),
            }),
            _ => None,
        };
        self.loads.iter().filter_map(by_clients).collect()
    }

    /// The Server Module's measurements; `None` if the model's demands do not come from the Server Module.
    pub fn module_measurements(&self) -> Option<ModuleMeasurements> {
        module::document(&self.fit, &self.facts, &self.loads)
    }

    /// CPU demand of an average call in each program of the server at the highest load, in descending order. Empty if
    /// the programs cannot be observed. `idle` has the number of CPUs that each program keeps busy without load.
    pub fn programs(&self, idle: &[ProgramUsage]) -> Vec<ProgramDemand> {
        program_demands::program_demands(&self.loads, &self.blocks, idle)
    }

    /// The host's speed in each block of the calibration, relative to the mean of all blocks.
    pub fn speed_by_block(&self) -> Vec<f64> {
        self.drift.speed_by_block.clone()
    }

    /// Predicts the response times and the utilization for the measured mix of request classes at `rate` requests per
    /// second, on a host of constant speed.
    ///
    /// # Errors
    /// If the model cannot be solved.
    pub fn predict(&self, rate: f64) -> Result<Prediction, EstimateError> {
        self.predict_mix(rate, &self.facts.mix)
    }

    /// Predicts the response times and the utilization for requests with the class shares `mix` at `rate` requests per
    /// second, on a host of constant speed.
    ///
    /// # Errors
    /// If the model cannot be solved.
    pub fn predict_mix(&self, rate: f64, mix: &[f64]) -> Result<Prediction, EstimateError> {
        let model = self.fit.model_with_pauses(rate, mix);
        match solve_open(&model, Method::Erlang) {
            Ok(solution) => Ok(Prediction {
                throughput: rate,
                response: Some(solution.mean_response_time),
                class_response_times: Some(solution.response_time),
                utilization: self.fit.utilization(&self.facts, rate, mix, 1.0),
            }),
            Err(ModelError::Unstable { .. }) => {
                let saturation = self.saturation_for_mix(mix);
                Ok(Prediction {
                    throughput: saturation,
                    response: None,
                    class_response_times: None,
                    utilization: self.fit.utilization(&self.facts, saturation, mix, 1.0),
                })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Predicts a later measurement at `rate` requests per second, with prediction intervals. The speed of the host is
    /// assumed to vary as it did during calibration. `arrivals` generates random arrivals (times in seconds, and
    /// classes) from a seed and a duration in seconds.
    ///
    /// # Errors
    /// If the model cannot be solved.
    pub fn predict_measurement(
        &self,
        rate: f64,
        mix: &[f64],
        time: MeasurementTime,
        arrivals: &mut dyn FnMut(u64, f64) -> Vec<(f64, usize)>,
    ) -> Result<PredictedMeasurement, EstimateError> {
        let level = LaterMeasurement { rate, mix, time };
        prediction_interval::predict_measurement(&self.bootstrap, &self.facts, &self.drift, level, arrivals)
    }

    /// Predicts the highest rate of requests with the class shares `mix` that meets a response time limit, as a later
    /// measurement would determine it. The speed of the host is assumed to vary as it did during calibration. The rate
    /// is at most the saturation rate. `arrivals` generates Poisson arrivals from a rate, a seed and a duration in
    /// seconds. `None` if the model has no saturation rate.
    ///
    /// # Errors
    /// If the model cannot be solved.
    pub fn predict_rate(
        &self,
        mix: &[f64],
        limit: ResponseLimit,
        time: MeasurementTime,
        arrivals: &mut dyn FnMut(f64, u64, f64) -> Vec<(f64, usize)>,
    ) -> Result<Option<PredictedValue>, EstimateError> {
        prediction_interval::predict_rate(&self.bootstrap, &self.drift, mix, limit, time, arrivals)
    }

    /// Predicts the saturation rate for requests with the class shares `mix`, as a later measurement would determine
    /// it.
    pub fn predict_saturation(&self, mix: &[f64], time: MeasurementTime) -> Option<PredictedValue> {
        prediction_interval::predict_saturation(&self.bootstrap, &self.drift, mix, time)
    }

    /// Factor by which the host slows the server down over time, during a measurement at `rate` requests per second
    /// with the class shares `mix`. `None` if the Record (the document of the run) does not show it. `arrivals` are the
    /// calls of the measurement: times in seconds, and classes.
    pub fn host_slowness_over_time(
        &self,
        record: &Record,
        rate: f64,
        mix: &[f64],
        arrivals: &[(f64, usize)],
    ) -> Option<HostSlowness> {
        let mut stretches = stretches(record, 0.0)?;
        let pauses = self.detector.as_ref().map_or(Vec::new(), |detector| {
            let pauses = detector.pauses_under(&CompletedCalls::from_record(record), arrivals);
            pauses::remove_from_stretches(&mut stretches, &pauses, detector.busy);
            pauses
        });
        Some(self.fit.host_slowness(&self.facts, &stretches, rate, mix)?.with_pauses(pauses))
    }

    /// The pauses of the server during calibration; `None` if there were none.
    pub fn pauses(&self) -> Option<ServerPauses> {
        let pauses = Some(&self.fit.pauses).filter(|pauses| !pauses.is_empty())?;
        Some(ServerPauses {
            per_second: pauses.per_second,
            per_call: pauses.per_call,
            mean_s: pauses.mean(),
            longest_s: pauses.lengths.iter().copied().fold(0.0, f64::max),
            observed: pauses.lengths.len() as u64,
        })
    }

    /// Predicts the response times of calls with these arrivals (times in seconds, and classes). `course` has the
    /// factor by which the host slows the server down over time. `None` if there are no arrivals.
    ///
    /// # Errors
    /// If the model cannot be solved.
    pub fn replay(
        &self,
        rate: f64,
        mix: &[f64],
        course: &HostSlowness,
        arrivals: &[(f64, usize)],
    ) -> Result<Option<ResponseSummary>, EstimateError> {
        self.fit.replay(rate, mix, course, arrivals)
    }

    /// Predicts the capacity under a CPU quota, as a later measurement would determine it. The CPU cost of a call at
    /// saturation is assumed not to depend on the quota.
    pub fn with_quota(&self, quota: Quota, time: MeasurementTime) -> QuotaPrediction {
        let unlimited = self.predict_saturation(&self.facts.mix, time);
        quota::capacity(&self.fit, &self.facts, quota, unlimited)
    }

    /// Mean response time at `rate` requests per second under a CPU quota, in seconds: the prediction without a quota,
    /// plus the simulated effect of the quota's pauses. `None` above saturation.
    ///
    /// # Errors
    /// If the model cannot be solved.
    pub fn response_with_quota(&self, quota: Quota, rate: f64, seed: u64) -> Result<Option<f64>, EstimateError> {
        let Some(response) = self.predict(rate)?.response else { return Ok(None) };
        let simulated = quota::response_times(&self.fit, &self.facts, quota, rate, seed)?;
        Ok(Some(response + simulated.with_quota - simulated.without_quota))
    }

    /// The queueing model for capacity planning, with a request rate of [`OPERATING_SHARE`] × the saturation rate.
    pub fn model(&self) -> Model {
        self.fit.model_with_pauses(OPERATING_SHARE * self.saturation(), &self.facts.mix)
    }
}
