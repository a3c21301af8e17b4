//! Estimates a queueing model of a server from measurements. All functions are pure and do no I/O. Times are in
//! seconds, rates per second.
//!
//! - [`mod@calibrate`]: a model from Records.
//! - [`demand`]: service demands from utilizations, by least squares or by proportional attribution, with confidence
//!   intervals.
//! - [`server`]: the model and the predictions of a survey (an automatic measurement of a server at several loads).
//! - [`window`]: throughput and CPU time of one Record; [`server_module`]: measurements in the Record by the Server
//!   Module, a plug-in of the web server.
//! - [`site`]: demands from an access log and the output of `sar`.
//! - [`burstiness`]: the burstiness of arrivals, and how bursts raise demands.
//! - [`rate_search`]: the highest rate that meets an objective, from short runs at several rates.
//! - [`response`]: variability of service times, and delay outside of the stations, from response times.
//! - [`usl`], [`knee`]: the load at which throughput stops growing, without a queueing model.
//! - [`cluster`]: request classes from response sizes.
//!
//! No input makes these functions panic; invalid input is an [`EstimateError`].
#![forbid(unsafe_code)]

pub mod burstiness;
pub mod calibrate;
pub mod cluster;
mod correlation;
pub mod demand;
mod error;
pub mod knee;
mod least_squares;
pub mod rate_search;
pub mod response;
pub mod server;
pub mod server_module;
pub mod site;
pub mod usl;
pub mod window;

pub use brimful_model::Quota;
pub use burstiness::{
    BurstDemand, BurstEffect, BurstFactors, BurstLevel, Dispersion, burst_factors, dispersion_curve, fit_burst_demand,
    with_burstiness,
};
pub use calibrate::{Attribution, CalibrateOptions, Calibrated, calibrate};
pub use cluster::{Cluster, cluster_sizes};
pub use demand::{
    Background, DemandFit, Interval, LoadDependence, Observation, Resampling, SizeFit, SizePoint, attribute_by_share,
    attribute_equally, fit_demands, fit_load_dependence, fit_size,
};
pub use error::EstimateError;
pub use knee::{Knee, find_knee};
pub use rate_search::{LimitedMeasure, RateEstimate, RateSearch, Slice};
pub use response::{ResponseFit, ResponsePoint, ScvBasis, fit_response};
pub use server::{
    Block, KernelMetrics, Measurement, MeasurementTime, ModuleMetrics, OfferedLoad, PredictedMeasurement,
    PredictedValue, Prediction, ProgramUsage, QuotaPrediction, ResponseLimit, ResponseMetrics, ResponseSummary,
    ServerFacts, ServerFit, Timeline,
};
pub use server_module::{ModuleDemand, ModuleMismatch, TotalDemand, Workers};
pub use usl::{LoadPoint, UslFit, fit_usl};
pub use window::{CompletedCalls, RunStretch, WindowMeasurement, stretches};
