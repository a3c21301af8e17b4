//! From what was measured of a server to a model of it. Pure functions, no I/O; times are seconds, rates per second.
//!
//! - [`mod@calibrate`]: Records to a model.
//! - [`demand`]: demands from utilizations, by least squares or by the proportional rule, with intervals.
//! - [`server`]: the server that a survey measures, fitted and predicted. [`window`]: what one Record shows;
//!   [`mod@inside`]: what the server itself says in it of its requests.
//! - [`site`]: demands from an access log and what `sar` says.
//! - [`burstiness`]: how bursty arrivals are, what they do to demands.
//! - [`response`]: what utilizations cannot show, the fixed delay and the variability of service, from response times.
//! - [`usl`], [`knee`]: where a throughput curve bends, without any model of why. [`cluster`]: classes by size.
//!
//! Nothing here panics on any input: what makes no sense is an [`EstimateError`].
#![forbid(unsafe_code)]

pub mod burstiness;
pub mod calibrate;
pub mod cluster;
mod correlation;
pub mod demand;
mod error;
pub mod inside;
pub mod knee;
mod least_squares;
pub mod response;
pub mod server;
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
pub use inside::{Inside, Unmatched, Whole, Workers};
pub use knee::{Knee, find_knee};
pub use response::{ResponseFit, ResponsePoint, ScvBasis, fit_response};
pub use server::{
    Answered, Block, Expected, Limited, Piece, Place, Prediction, ProgramSeen, ServerFacts, ServerFit, Spread,
};
pub use usl::{LoadPoint, UslFit, fit_usl};
pub use window::{Observed, Stretch, measured, stretches};
