//! Generates calls and their due times: arrival processes, the mix of request classes, and the open, closed and session
//! workloads that combine both.
//!
//! Every schedule depends only on its parameters and its seed. A schedule that is split over N shards is the same as
//! the whole schedule: each shard makes every N-th call. If the due time of a call depends only on its index, as with
//! evenly spaced calls and traces, a shard skips the calls of other shards in one step. If gaps are random, a shard
//! also draws the gaps of other shards' calls.
#![forbid(unsafe_code)]

mod arrivals;
mod back_off;
mod bursts;
mod closed;
mod mix;
mod open;
mod s_clients;
mod sessions;
mod streamed;

pub use arrivals::{ArrivalProcess, Arrivals, ArrivalsError, Hurst, Mmpp, OnOff, Speed, Steps, Trace};
pub use bursts::ClosedBursts;
pub use closed::ClosedWorkload;
pub use mix::{Mix, MixError};
pub use open::OpenWorkload;
pub use s_clients::SClients;
pub use sessions::{Scripts, Sessions, read_session_log};
pub use streamed::{DueCall, StreamedWorkload};

/// Chooses the request of each call of a schedule, in the order of the schedule.
pub trait Chooser: Iterator<Item = brimful_core::CallSpec> {
    /// Skips `n` calls, which other shards (parts of the load) make.
    fn skip_calls(&mut self, n: u64) {
        for _ in 0..n {
            self.next();
        }
    }
}

/// One of several parts into which a schedule of calls is split, such as one per thread: part `index` of `count`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Index of the shard, from 0.
    pub index: u64,
    /// Number of shards, at least 1.
    pub count: u64,
}

impl Shard {
    /// The only shard of a schedule that is not split.
    pub const WHOLE: Shard = Shard { index: 0, count: 1 };

    /// Splits the calls of this shard into `n` shards. Other shards of the schedule may be split into other numbers of
    /// parts.
    pub fn split(self, n: u64) -> impl Iterator<Item = Shard> {
        (0..n).map(move |part| Shard { index: self.index + self.count * part, count: self.count * n })
    }

    /// Number of the items 0 to `n` − 1 that belong to this shard. Item `i` belongs to shard `i mod count`.
    pub fn item_count(self, n: u64) -> u64 {
        n / self.count + u64::from(self.index < n % self.count)
    }
}

/// The limits of a workload. The workload ends at the limit that is reached first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkloadLimits {
    /// Length of the window in which load is offered: no call is due at or after this time.
    pub window: brimful_core::Nanos,
    /// Maximum number of calls, of all shards together.
    pub calls: u64,
}

/// Creates the random stream with number `stream`. Streams with different numbers are independent, even if they have
/// the same seed.
fn rng(seed: u64, stream: u64) -> rand_pcg::Pcg64 {
    rand_pcg::Pcg64::new(u128::from(seed), u128::from(stream))
}
