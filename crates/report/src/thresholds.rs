//! The thresholds above which a report mentions a metric.

/// If at least this share of the calls failed, the report says so: the 99th percentile of the completed calls is then
/// not the 99th percentile of all calls.
pub(crate) const NOTABLE_ERRORS: f64 = 0.01;

/// Highest number of shards, classes or codes that a note names.
pub(crate) const MAX_NAMED: usize = 10;

/// If a run lasts longer than its window by more than this factor, the report says so.
pub(crate) const LONG_DRAIN: f64 = 1.1;

/// If the rate of answers is less than this share of the offered rate of an open load, the load exceeds the server's
/// capacity.
pub(crate) const KEEPS_UP: f64 = 0.95;

/// A program that uses more than this share of the CPUs is close to its limit. The same applies to a station with a
/// higher utilization than this: small errors of its demands change response times a lot.
pub(crate) const NEAR_SATURATION: f64 = 0.9;

/// Two replays are alike if neither the relative difference of their throughputs nor the difference of their shares of
/// failed calls exceeds this.
pub(crate) const MIN_DIFFERENCE: f64 = 0.01;

/// If at least this share of the requests had no answer when their time slice ended, the report says so.
pub(crate) const NOTABLE_OPEN: f64 = 0.01;

/// A profile mentions malformed lines if they are at least this share of the lines, because its metrics then lack many
/// requests.
pub(crate) const NOTABLE_MALFORMED: f64 = 0.01;

/// A profile mentions answers with a client's error (4xx) if they are at least this share of all answers.
pub(crate) const NOTABLE_CLIENT_ERRORS: f64 = 0.10;

/// A profile mentions requests of robots if they are at least this share of all requests.
pub(crate) const NOTABLE_ROBOTS: f64 = 0.10;

/// The index of dispersion of Poisson arrivals is 1. Above this index, a plan for Poisson arrivals provides too little
/// capacity.
pub(crate) const NOTABLE_DISPERSION: f64 = 1.5;

/// The Hurst parameter without long-range dependence is 0.5. Above this value, arrivals are long-range dependent.
pub(crate) const NOTABLE_HURST: f64 = 0.6;

/// A tail whose index is below this value has infinite variance.
pub(crate) const FINITE_VARIANCE_TAIL: f64 = 2.0;

/// If ten URLs receive at least this share of the requests, the report says so.
pub(crate) const NOTABLE_CONCENTRATION: f64 = 0.5;
