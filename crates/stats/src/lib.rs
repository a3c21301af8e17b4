//! The observers of a load: what was offered, what became of it, and whether the figures can be trusted.
//!
//! One [`Collector`] per shard sees every event of that shard's calls; they are merged after the run and become a
//! `Record`. Two rules hold for everything in here:
//!
//! - **Memory is fixed at construction**, and written once so that no page fault is left for the run. Nothing grows with
//!   the number of calls.
//! - **State is whole numbers until it is read**, so merging is exact, associative and commutative: calls split over
//!   several collectors give the very Record that one collector would have given.
//!
//! ```text
//! collector      Event → counts, times, traffic, per class; into_record
//! ├ tally        the counts and times of one class
//! ├ distribution a distribution of times: histogram and exact moments
//! ├ series       the course of the run, in at most 300 intervals
//! ├ reply_rate   throughput in samples of five seconds
//! ├ batch        confidence interval of the mean response time
//! └ verdict      was it the server that was measured, or the generator?
//! ```
#![forbid(unsafe_code)]

mod batch;
mod collector;
mod distribution;
mod reply_rate;
mod series;
mod student;
mod tally;
mod verdict;

pub use batch::BatchMeans;
pub use collector::{Collector, PerCall, RunFacts};
pub use distribution::{Distribution, StatsError};
pub use reply_rate::ReplySampler;
pub use series::Series;
pub use student::t_95;
pub use verdict::{Evidence, Limited, Pacing, judge};
