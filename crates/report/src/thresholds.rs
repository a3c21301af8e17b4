//! Thresholds and limits that several reports share.

/// Minimum share of failed calls that a report mentions. From this share on, the 99th percentile of the completed calls
/// differs from that of all calls.
pub(crate) const NOTABLE_ERRORS: f64 = 0.01;

/// Maximum number of shards, classes or codes that a note lists.
pub(crate) const MAX_NAMED: usize = 10;

/// If the throughput of an open load is below this share of the offered rate, the load exceeds the server's capacity.
pub(crate) const KEEPS_UP: f64 = 0.95;

/// A program that uses more than this share of the CPUs is close to saturation. So is a station of a model with a
/// higher utilization than this: small errors of its demands change response times a lot.
pub(crate) const NEAR_SATURATION: f64 = 0.9;
