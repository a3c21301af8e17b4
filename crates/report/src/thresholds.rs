//! Thresholds and limits that several reports use.

/// Minimum share of failed calls that a report mentions. From this share on, the 99th percentile of the completed calls
/// can differ from that of all calls.
pub(crate) const NOTABLE_ERRORS: f64 = 0.01;

/// Maximum number of shards, classes or status codes in a note.
pub(crate) const MAX_NAMED: usize = 10;

/// Minimum ratio of throughput to offered rate at which the server keeps up with an open load.
pub(crate) const MIN_KEEP_UP_RATIO: f64 = 0.95;

/// Utilization above which a program or a station of a model counts as close to saturation. There, small errors of
/// service demands change response times a lot.
pub(crate) const NEAR_SATURATION: f64 = 0.9;
