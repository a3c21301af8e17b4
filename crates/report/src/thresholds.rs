//! The thresholds at which a report mentions something.

/// From this share of failed calls on, the 99th percentile of the completed calls is not that of all calls.
pub(crate) const NOTABLE_ERRORS: f64 = 0.01;

/// If a run lasts longer than its window by this factor, the report says so.
pub(crate) const LONG_DRAIN: f64 = 1.1;

/// An open load that is answered at less than this share of its rate exceeds the server's capacity.
pub(crate) const KEEPS_UP: f64 = 0.95;

/// Programs that use more than this share of the CPUs are near their limit. At a station this busy, small errors of its
/// demands change response times much.
pub(crate) const NEAR_SATURATION: f64 = 0.9;

/// Two replays are alike if throughput (relatively) and share of failed calls differ by no more than this.
pub(crate) const MIN_DIFFERENCE: f64 = 0.01;

/// From this share on, the report mentions requests that were still open when their slice ended.
pub(crate) const NOTABLE_OPEN: f64 = 0.01;

/// A profile mentions what changes how its figures are used: from 1 % of lines that do not parse, …
pub(crate) const NOTABLE_MALFORMED: f64 = 0.01;

/// … 10 % of answers with a client's error, …
pub(crate) const NOTABLE_CLIENT_ERRORS: f64 = 0.10;

/// … or 10 % of requests from robots.
pub(crate) const NOTABLE_ROBOTS: f64 = 0.10;

/// The index of dispersion of Poisson arrivals is 1; above this, a plan for Poisson arrivals is too small.
pub(crate) const NOTABLE_DISPERSION: f64 = 1.5;

/// The Hurst parameter without long-range dependence is 0.5; above this, there is some.
pub(crate) const NOTABLE_HURST: f64 = 0.6;

/// A tail with a smaller index than this has infinite variance.
pub(crate) const FINITE_VARIANCE_TAIL: f64 = 2.0;

/// From this share of the requests on, the report mentions that they go to ten URLs.
pub(crate) const NOTABLE_CONCENTRATION: f64 = 0.5;
