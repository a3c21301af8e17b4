//! Statistics of a run: its counts and times (the [`Account`]), and the `Record` that is derived from them.
//!
//! Each shard has a [`Collector`], which receives every event of that shard's calls and fills an [`Account`]. Accounts
//! are merged, and the `Record` is derived from the merged Account and a few further facts. Two rules apply to this
//! crate:
//!
//! - **Memory is allocated and written to at construction**, so that the run causes no page faults. It does not grow
//!   with the number of calls.
//! - **State consists of whole numbers**, so merging is exact, associative and commutative: calls split over several
//!   collectors yield the same Record as a single collector.
//!
//! ```text
//! collector      Event → Account
//! account        counts, times, bytes, per class; merge
//! ├ tally        the counts and times of one class
//! ├ distribution a distribution of times: histogram and exact moments
//! ├ sessions     sessions by outcome, with their sizes
//! ├ series       the run in at most 300 intervals
//! ├ reply_rate   throughput in samples of five seconds
//! └ batch        confidence interval of the mean response time
//! live           summaries of unfinished Accounts, for displays
//! result_backup  the sum of unfinished Accounts, in case the process is killed
//! derive         Account, RunFacts → Record
//! └ verdict      did the run measure the server, or the generator?
//!   └ parts      was a load complete that was divided among shards?
//! warm_up        has a run become steady?
//! detail         metrics of connections and sessions for httperf's report
//! objectives     did the run meet its objectives?
//! merge          Records of shards → the Record of their load
//! estimate       a metric with its standard error, from several runs or from the parts of one run
//! difference     the difference of two estimates, with its confidence interval
//! compare        the differences of all metrics between two sides, each with one or several runs
//! paired         the differences of two servers that were measured in turn, for short times
//! change_points  where the mean of a series of values changed
//! history        the changes of all metrics over a series of runs
//! ```
#![forbid(unsafe_code)]

mod account;
mod answers;
mod batch;
mod change_points;
mod collector;
mod compare;
mod completions;
mod derive;
mod detail;
mod difference;
mod distribution;
mod error;
mod estimate;
mod hdr_files;
mod histogram;
mod history;
mod http2_errors;
mod limited;
mod live;
mod merge;
mod objectives;
mod paired;
mod parts;
mod redirects;
mod reply_rate;
mod result_backup;
mod series;
mod sessions;
mod student;
mod tally;
mod thresholds;
mod verdict;
mod warm_up;

pub use account::Account;
pub use batch::BatchMeans;
pub use change_points::change_points;
pub use collector::{Collector, PerCall};
pub use compare::{RegressionLimit, Run, Side, compare};
pub use derive::{RunFacts, derive};
pub use detail::ConnectionDetail;
pub use difference::{Difference, FALSE_ALARM_PROBABILITY, Scale, difference, holm};
pub use distribution::Distribution;
pub use error::{MergeMismatch, StatsError};
pub use estimate::{Bucket, Estimate};
pub use hdr_files::HdrFormat;
pub use history::history;
pub use live::{LiveProgress, LiveSummary};
pub use merge::{Merger, merge};
pub use objectives::{CallsByLimit, ObjectiveError, check_objectives, count_by_limit, judge_objectives, pooled_value};
pub use paired::{PairedRound, SliceMetrics, difference_clause, half_width, paired_differences, round_differences};
pub use reply_rate::ReplySampler;
pub use result_backup::ResultBackup;
pub use series::Series;
pub use student::ci95_half_width;
pub use verdict::{Evidence, judge};
pub use warm_up::{is_steady, truncation_point};
