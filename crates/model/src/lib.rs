//! Queueing models: predicts how a network of stations performs under a load. All functions are pure and do no I/O.
//!
//! | symbol | quantity | unit |
//! |---|---|---|
//! | λ | arrival rate; of a class, or of all classes together | 1/s |
//! | X | throughput; equals λ in a stable open network | 1/s |
//! | R | response time: the sum of the residence times | s |
//! | D | service demand: total time one request needs at a station | s |
//! | U | utilization per server, 0..1; of a delay station, the number present | – |
//! | Z | time outside the stations: think time, or a fixed delay (Z0) | s |
//! | N | number of requests present, queued or in service | – |
//! | m | servers of a station | – |
//! | b | share of a station's capacity (0..1) that background work uses | – |
//! | σ | share of the time (0..1) in which a station is interrupted | – |
//! | ρ | U / ((1 − b)(1 − σ)): utilization of the remaining capacity | – |
//! | α(n) | speed of a station with n requests present, relative to one | – |
//! | S | service time; S0: service time of a request that finds the server idle | s |
//! | I | share of a station's capacity (0..1) that is idle | – |
//! | scv | squared coefficient of variation, of service times unless said otherwise | – |
//!
//! All quantities are in seconds and per second. Matrices are stations × classes. Classes are indexed by c (and j),
//! stations by k. The symbols are related by U = X·D/m (utilization), N = X·R (Little), X ≤ min m·(1 −
//! b)(1 − σ)/D (bottleneck).
//!
//! - [`mod@solve`]: solves any network by a given method or by the best one; explains where each method is valid.
//! - [`open_network`]: solves an open network, and computes the rate at which it saturates.
//! - [`bounds`]: bounds on the throughput and response time of closed networks.
//! - [`queue`]: single stations: M/G/1, M/M/m/K, bursty arrivals.
//! - [`mod@what_if`]: the model after changes, along ranges of changes, and its headroom.
//! - [`percentile`]: distribution of the response times of a solved network.
//! - [`mod@simulate`]: discrete-event simulation of a model.
//! - [`mod@trajectory`]: response times of given arrivals at a server whose speed varies.
//! - [`network_link`]: demands at network links, from the sizes of responses.
//! - [`erlang`]: waiting times; [`wakeup`]: waiting times at servers that must be woken up.
//!
//! No input makes these functions panic; invalid input is a [`ModelError`].
#![forbid(unsafe_code)]

pub mod bounds;
mod by_simulation;
mod closed;
pub mod correlation;
pub mod cpu_quota;
pub mod erlang;
mod error;
#[cfg(test)]
mod fixture;
mod idle_law;
mod interruptions;
mod joint;
mod mixed;
mod network;
pub mod network_link;
mod open_load;
pub mod open_network;
pub mod percentile;
pub mod queue;
mod residence;
pub mod simulate;
mod solution;
pub mod solve;
mod station;
pub mod trajectory;
mod under_load;
pub mod wakeup;
pub mod what_if;

pub use bounds::{AsymptoticBounds, Bounds, Range, asymptotic_bounds, balanced_job_bounds};
pub use cpu_quota::{Quota, QuotaResponseTimes, simulate_quota};
pub use erlang::{erlang_c, exponential_wait, mmm_wait};
pub use error::ModelError;
pub use idle_law::station_demands;
pub use interruptions::interrupted_share;
pub use network_link::{LinkPath, Transfer};
pub use open_network::{saturation_rate, solve_open};
pub use percentile::{ResponseDistributions, response_distributions};
pub use queue::{Mg1, Mmmk, Mmpp2, MmppM1, mg1, mmmk, mmpp_m1};
pub use simulate::{Arrivals, Ended, ResponseTime, Run, Service, Simulation, SimulationOptions, simulate};
pub use solution::{Estimate, Method, Solution};
pub use solve::solve;
pub use trajectory::{CompletedRequest, HostSlowness, trajectory};
pub use wakeup::wait_with_idle_cost;
pub use what_if::{
    Axis, Change, Client, Curve, CurvePoint, Effect, Headroom, Interval90, Intervals, LoadLimit, ModelResults,
    NewClass, Scenario, StationLimit, Steady, WhatIf, WhatIfOptions, curve, headroom, what_if,
};
