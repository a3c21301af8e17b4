//! The thresholds of verdicts and objectives, each with its reason.

use brimful_core::Nanos;

/// Largest share of the run for which the busiest thread may have work. Near 1, the thread itself is a saturated
/// server: calls wait for the thread, not for the network. The remaining 5 % allow for the coarse accounting of a
/// thread's time.
pub(crate) const MAX_BUSY_SHARE: f64 = 0.95;

/// Largest share of the mean response time that may be lateness, which is part of every response time. Up to this
/// share, lateness is within the variation between runs. Above it, a noticeable part of the response time is due to the
/// generator.
pub(crate) const MAX_LATENESS_SHARE: f64 = 0.10;

/// Lateness is tolerated if 99 % of the calls begin within this time after they are due. Then the generator kept its
/// schedule, apart from the preemptions that occur on every virtual machine. Without this tolerance, a server that
/// answers in 50 µs could not be measured at all.
pub(crate) const TOLERATED_LATENESS: Nanos = Nanos::from_millis(2);

/// If more than 1 % of the calls of an open load are later than this, the generator does not keep up with its schedule,
/// whatever the response times. Preemption cannot explain such lateness, and lateness grows as long as the run lasts.
/// Closed loads have no schedule: the lateness of their calls matters only as part of the response time.
pub(crate) const MAX_OPEN_LATENESS: Nanos = Nanos::from_millis(10);

/// Smallest share of the run that a cause must affect to explain lateness. Lateness is judged by the latest one percent
/// of the calls, so a rarer cause does not explain it.
pub(crate) const MIN_CAUSE_SHARE: f64 = 0.01;

/// Largest ratio of the offered rate to the client's measured maximum. The maximum is known to a few percent only, and
/// a random schedule deviates a little from its rate.
pub(crate) const MAX_CLIENT_RATIO: f64 = 1.05;

/// Largest share of the run for which a thread may be stalled. A stall reduces the load and the rates of a closed
/// workload by this share, and increases the mean response time by about as much.
pub(crate) const MAX_STALL_SHARE: f64 = 0.01;

/// A stall of up to this time, in seconds, is tolerated whatever its share of the run, because preemptions on busy
/// virtual machines affect short runs.
pub(crate) const TOLERATED_STALL_S: f64 = 0.1;

/// Largest share of a load that may be missing because parts were lost; equal to the limit for a stalled generator.
pub(crate) const MAX_LOST_SHARE: f64 = 0.01;

/// Largest time between the starts of two parts of a load, as a share of the run. If parts start further apart, they
/// are not one load.
pub(crate) const MAX_START_SKEW_SHARE: f64 = 0.01;

/// Tolerated time between the starts of two parts, in seconds, whatever its share of the run. A busy host does not
/// start programs more precisely.
pub(crate) const TOLERATED_START_SKEW_S: f64 = 0.1;

/// Largest share of calls without an expected answer for which the mean of the other calls represents all calls.
pub(crate) const MAX_UNEXPECTED_SHARE_OF_MEAN: f64 = 0.01;
