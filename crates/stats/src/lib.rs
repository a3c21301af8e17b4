//! What the shards of a run saw of its calls, and the Record that follows from it.
//!
//! One [`Collector`] per shard sees every event of that shard's calls and fills an [`Account`]. Accounts are merged, and
//! the `Record` is derived from the sum and from nothing else. Two rules hold for everything in here:
//!
//! - **Memory is fixed at construction**, and written once so that no page fault is left for the run. Nothing grows with
//!   the number of calls.
//! - **State is whole numbers until it is read**, so merging is exact, associative and commutative: calls split over
//!   several collectors give the very Record that one collector would have given.
//!
//! ```text
//! collector      Event → Account
//! account        counts, times, traffic, per class; merge
//! ├ tally        the counts and times of one class
//! ├ distribution a distribution of times: histogram and exact moments
//! ├ sessions     what became of sessions, and how large they were
//! ├ series       the course of the run, in at most 300 intervals
//! ├ reply_rate   throughput in samples of five seconds
//! └ batch        confidence interval of the mean response time
//! live           what Accounts have seen so far, for those who look on
//! keeper         the same, whole, for those who keep it in case the process is lost
//! derive         Account, Facts → Record
//! └ verdict      was it the server that was measured, or the generator?
//!   └ parts      was all of a load there that was made in parts?
//! detail         what only httperf's report says of connections and sessions
//! objectives     were the objectives of a run met?
//! merge          Records of shards → the Record of their load
//! ```
#![forbid(unsafe_code)]

mod account;
mod answers;
mod batch;
mod collector;
mod derive;
mod detail;
mod distribution;
mod error;
mod hdr_files;
mod histogram;
mod http2_errors;
mod keeper;
mod limited;
mod live;
mod merge;
mod objectives;
mod parts;
mod redirects;
mod reply_rate;
mod series;
mod sessions;
mod student;
mod tally;
mod verdict;

pub use account::Account;
pub use batch::BatchMeans;
pub use collector::{Collector, PerCall};
pub use derive::{Facts, derive};
pub use detail::Detail;
pub use distribution::Distribution;
pub use error::{StatsError, Unlike};
pub use hdr_files::HdrFormat;
pub use keeper::Keeper;
pub use live::{Live, SoFar};
pub use merge::{Merger, merge};
pub use objectives::{ObjectiveError, check_objectives, judge_objectives};
pub use reply_rate::ReplySampler;
pub use series::Series;
pub use student::t_95;
pub use verdict::{Evidence, judge};
