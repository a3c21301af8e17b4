//! What is due, and when: arrival processes, the mix of request classes, and the open and closed workloads and the
//! sessions made of them.
//!
//! Everything here is a pure function of a seed. A schedule split over N shards is the same schedule as unsplit: each
//! shard keeps every N-th call, so sharding changes who makes a call and nothing else. It passes over the calls of the
//! others in one step where due times follow from the index alone (constant and on/off arrivals, stages of them,
//! traces), and by drawing their gaps where they are random.
#![forbid(unsafe_code)]

mod arrivals;
mod back_off;
mod bursts;
mod closed;
mod error;
mod mix;
mod open;
mod s_clients;
mod sessions;
mod streamed;

pub use arrivals::{Arrivals, Hurst, Mmpp, OnOff, Process, Speed, Steps, Trace};
pub use bursts::ClosedBursts;
pub use closed::Closed;
pub use error::ArrivalsError;
pub use mix::{Mix, MixError};
pub use open::Open;
pub use s_clients::SClients;
pub use sessions::{Scripts, Sessions, read_session_log};
pub use streamed::{DueCall, Streamed};

/// A request chooser: says what each call is, in the order of the whole schedule.
pub trait Chooser: Iterator<Item = brimful_core::CallSpec> {
    /// Passes over `n` calls that other shards make.
    fn pass(&mut self, n: u64) {
        for _ in 0..n {
            self.next();
        }
    }
}

/// Which part of a schedule this is: shard `index` of `count`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// From 0.
    pub index: u64,
    /// At least 1.
    pub count: u64,
}

impl Shard {
    /// The whole schedule.
    pub const WHOLE: Shard = Shard { index: 0, count: 1 };

    /// Its parts, `n` of them. Into how many the other shards are split makes no difference to it.
    pub fn split(self, n: u64) -> impl Iterator<Item = Shard> {
        (0..n).map(move |part| Shard { index: self.index + self.count * part, count: self.count * n })
    }

    /// How many of `n` things are this shard's, when thing `i` belongs to shard `i mod count`.
    pub fn share(self, n: u64) -> u64 {
        n / self.count + u64::from(self.index < n % self.count)
    }
}

/// Where a workload ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// No call is due at or after this instant.
    pub window: brimful_core::Nanos,
    /// No more calls than this, over all shards.
    pub calls: u64,
}

/// Independent random streams from one seed.
fn rng(seed: u64, stream: u64) -> rand_pcg::Pcg64 {
    rand_pcg::Pcg64::new(u128::from(seed), u128::from(stream))
}
