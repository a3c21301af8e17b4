//! Thresholds above which reports mention a metric.

/// Minimum share of failed calls that a report mentions. From this share on, the 99th percentile of the completed calls
/// differs from that of all calls.
pub(crate) const NOTABLE_ERRORS: f64 = 0.01;

/// Maximum number of shards, classes or codes that a note lists.
pub(crate) const MAX_NAMED: usize = 10;

/// If the duration of a run divided by its window exceeds this, the report mentions it: the last calls ended long after
/// the load.
pub(crate) const LONG_DRAIN: f64 = 1.1;

/// If the throughput of an open load is below this share of the offered rate, the load exceeds the server's capacity.
pub(crate) const KEEPS_UP: f64 = 0.95;

/// A program that uses more than this share of the CPUs is close to saturation. So is a station of a model with a
/// higher utilization than this: small errors of its demands change response times a lot.
pub(crate) const NEAR_SATURATION: f64 = 0.9;

/// Smallest notable difference between two replays: the relative difference of their throughputs, or the difference of
/// their shares of failed calls.
pub(crate) const MIN_DIFFERENCE: f64 = 0.01;

/// Minimum share of observed requests without a response that the report mentions. The monitor observes requests in
/// short slices of time, and the responses of these requests came after the end of a slice.
pub(crate) const NOTABLE_OPEN: f64 = 0.01;

/// Minimum share of malformed lines that a profile mentions. From this share on, the profile's metrics lack many
/// requests.
pub(crate) const NOTABLE_MALFORMED: f64 = 0.01;

/// Minimum share of responses with a client error (4xx) that a profile mentions.
pub(crate) const NOTABLE_CLIENT_ERRORS: f64 = 0.10;

/// Minimum share of robots' requests that a profile mentions.
pub(crate) const NOTABLE_ROBOTS: f64 = 0.10;

/// Minimum index of dispersion that a profile mentions. The index of Poisson arrivals is 1. Above this value, a plan
/// that assumes Poisson arrivals provides too little capacity.
pub(crate) const NOTABLE_DISPERSION: f64 = 1.5;

/// Minimum Hurst parameter that a profile mentions. The parameter is 0.5 without long-range dependence; above this
/// value, arrivals are long-range dependent.
pub(crate) const NOTABLE_HURST: f64 = 0.6;

/// A heavy-tailed distribution whose tail index is below this value has infinite variance.
pub(crate) const FINITE_VARIANCE_TAIL: f64 = 2.0;

/// Minimum share of requests to the ten most popular URLs that a profile mentions.
pub(crate) const NOTABLE_CONCENTRATION: f64 = 0.5;
