//! Queueing models: what a network of stations does under a load. Pure functions, no I/O; named result structs.
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
//! | b | share of a station's capacity (0..1) that other work takes | – |
//! | ρ | U / (1 − b): how much of the remaining capacity is used | – |
//!
//! Everything is in seconds and per second. Matrices are stations × classes. The laws that tie the symbols: U = X·D/m
//! (utilization), N = X·R (Little), X ≤ min m·(1 − b)/D (bottleneck).
//!
//! - [`mod@solve`]: any network, by a method or the best one; the methods, their validity and cost.
//! - [`open`]: solve an open network; where it saturates.
//! - [`bounds`]: what a closed network can reach at most and must at least.
//! - [`queue`]: single stations: M/G/1, M/M/m/K, bursty arrivals.
//! - [`mod@what_if`]: the model after changes, along ranges of them, and how far its load can grow.
//! - [`percentile`]: how the response times of a solved network are distributed.
//! - [`mod@simulate`]: a discrete-event simulation of a model.
//! - [`mod@trajectory`]: what becomes of given arrivals at a server whose speed has a course.
//! - [`erlang`]: the waits that these stand on; [`exceptional`]: those at servers that have to wake up.
//!
//! Nothing here panics on any input: what makes no sense is a [`ModelError`].
#![forbid(unsafe_code)]

pub mod bounds;
mod by_simulation;
mod closed;
pub mod correlation;
pub mod erlang;
mod error;
mod estimate;
pub mod exceptional;
#[cfg(test)]
mod fixture;
mod idle_law;
mod joint;
mod mixed;
mod network;
pub mod open;
mod open_load;
pub mod percentile;
pub mod queue;
pub mod quota;
mod residence;
pub mod simulate;
mod solution;
pub mod solve;
pub mod trajectory;
mod under_load;
pub mod what_if;

pub use bounds::{AsymptoticBounds, Bounds, Range, asymptotic_bounds, balanced_job_bounds};
pub use erlang::{erlang_c, exponential_wait, mmm_wait};
pub use error::ModelError;
pub use estimate::Estimate;
pub use exceptional::exceptional_wait;
pub use idle_law::station_demands;
pub use open::{saturation_rate, solve_open};
pub use percentile::{ResponseDistributions, response_distributions};
pub use queue::{Mg1, Mmmk, Mmpp2, MmppM1, mg1, mmmk, mmpp_m1};
pub use quota::{Quota, Sojourns, under_quota};
pub use simulate::{Arrivals, Ended, ResponseTime, Run, Service, Simulation, SimulationOptions, simulate};
pub use solution::{Method, Solution};
pub use solve::solve;
pub use trajectory::{Course, Sojourn, trajectory};
pub use what_if::{
    Axis, Change, Client, Curve, CurvePoint, Effect, Headroom, Interval90, Intervals, NewClass, Outlook, Scenario,
    StationLimit, Steady, Until, WhatIf, WhatIfOptions, curve, headroom, what_if,
};
