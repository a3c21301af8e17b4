//! The limits of verdicts and objectives, each with its reason.

use brimful_core::Nanos;

/// Maximum share of the run for which the load generator's busiest thread may be busy. Near 1, the thread itself is a
/// saturated server: calls wait for the thread, not for the network. The remaining 5 % allow for the inexact accounting
/// of a thread's time.
pub(crate) const MAX_BUSY_SHARE: f64 = 0.95;

/// Maximum share of lateness in the mean response time, which includes the lateness. Up to this share, lateness is
/// within the variation between runs. Above it, the generator causes a noticeable part of the response time.
pub(crate) const MAX_LATENESS_SHARE: f64 = 0.10;

/// Lateness is tolerated if 99 % of the calls begin within this time after they are due. The generator then kept its
/// schedule, apart from the preemptions that occur on every virtual machine. Without this tolerance, no server that
/// answers in 50 µs could be measured.
pub(crate) const TOLERATED_LATENESS: Nanos = Nanos::from_millis(2);

/// If more than 1 % of the calls of an open load are later than this, the generator does not keep up with its schedule,
/// whatever the response times are. Preemption does not cause such lateness. If the generator is too slow, lateness
/// grows during the whole run. Closed loads have no schedule, so the lateness of their calls matters only as a part of
/// the response time.
pub(crate) const MAX_OPEN_LATENESS: Nanos = Nanos::from_millis(10);

/// Minimum share of the run that a cause of lateness, such as CPU steal, must affect. Lateness is judged by the latest
/// one percent of the calls, so a rarer cause does not explain it.
pub(crate) const MIN_CAUSE_SHARE: f64 = 0.01;

/// Maximum ratio of the offered rate to the highest rate that the client is known to offer. That rate is known only to
/// a few percent, and a random schedule deviates slightly from its rate.
pub(crate) const MAX_CLIENT_RATIO: f64 = 1.05;

/// Maximum share of the run for which a thread of the generator may be stalled. A stall reduces the load, and the rates
/// of a closed workload, by this share, and increases the mean response time by about the same share.
pub(crate) const MAX_STALL_SHARE: f64 = 0.01;

/// Stalls of at most this time, in seconds, are tolerated in runs of any length, because preemptions on busy virtual
/// machines affect short runs.
pub(crate) const TOLERATED_STALL_S: f64 = 0.1;

/// Maximum share of a load that may be missing because shards were lost. It equals the limit for a stalled generator.
pub(crate) const MAX_LOST_SHARE: f64 = 0.01;

/// Maximum time between the starts of two shards of a load, as a share of the run. Shards that start further apart do
/// not form one load.
pub(crate) const MAX_START_SKEW_SHARE: f64 = 0.01;

/// Time between the starts of two shards, in seconds, that is tolerated in runs of any length. On a busy host, programs
/// do not start more precisely.
pub(crate) const TOLERATED_START_SKEW_S: f64 = 0.1;

/// Maximum share of calls without an expected answer for an objective about the mean. Up to this share, the mean
/// response time of the other calls represents all calls.
pub(crate) const MAX_UNEXPECTED_SHARE_OF_MEAN: f64 = 0.01;
