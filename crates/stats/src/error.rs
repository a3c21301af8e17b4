//! Errors in reading the statistics that Records contain, and in merging or comparing Records.

use brimful_core::Nanos;

/// An error in reading statistics from a Record, or in merging or comparing Records.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum StatsError {
    /// The Record's `account` (its serialised statistics) was not written by brimful, or it was modified later.
    #[error("its account is damaged ({0}): take the Record from its source again")]
    Damaged(String),
    /// The Record was written by an old version of brimful, whose Records had no `account` (serialised statistics).
    #[error(
        "it has no `account`, which merging needs: it was written by an older brimful, run the load again with this one"
    )]
    NoAccount,
    /// The Record is that of a whole load, not of a shard.
    #[error("it is a whole load and no part of one: run the parts with `brimful load … --shard I/N`")]
    NotAShard,
    /// One of the given Records causes an error.
    #[error("{name}: {source}")]
    InRecord {
        /// The user's name for the Record.
        name: String,
        /// The error in this Record.
        source: Box<StatsError>,
    },
    /// Two Records are not shards of the same load.
    #[error("{first} and {second} are not of one load: {unlike}")]
    DifferentLoads {
        /// The user's name for the first Record.
        first: String,
        /// The user's name for the second Record.
        second: String,
        /// The property in which the Records differ.
        unlike: MergeMismatch,
    },
    /// Two Records contain the same shard.
    #[error("{first} and {second} both hold shard {shard}: name each Record once")]
    SameShard {
        /// The user's name for the first Record.
        first: String,
        /// The user's name for the second Record.
        second: String,
        /// The shard that both Records contain, as `INDEX/NUMBER_OF_SHARDS`.
        shard: String,
    },
    /// A shard was marked as lost, but the load has no shard of this number.
    #[error("there is no shard {index} to be lost: the load has shards 1 to {of}")]
    NoSuchShard {
        /// The given number of the shard.
        index: u64,
        /// The number of shards of the load.
        of: u64,
    },
    /// A shard was marked as lost, but its Record is present.
    #[error("shard {index} is not lost, {name} has it: leave out --lost {index}")]
    NotLost {
        /// The number of the shard, from 1.
        index: u64,
        /// The user's name for the shard's Record.
        name: String,
    },
    /// Runs cannot be compared. The message names them, with the reason.
    #[error("{0}")]
    NotComparable(String),
    /// No Record was given.
    #[error("there is nothing to merge: name the Records of the shards")]
    NoRecord,
}

/// A property in which two shards differ, so that they cannot belong to one load.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum MergeMismatch {
    /// The classes differ in name, number or order. The fields are the classes of the first shard and of the second
    /// shard.
    #[error("their classes differ ({} and {}); merge runs of one workload", .0.join(", "), .1.join(", "))]
    Classes(Vec<String>, Vec<String>),
    /// The planned lengths of the window, in which load is offered, differ.
    #[error("their planned durations differ ({0} and {1}); merge runs with the same --duration and --requests")]
    Windows(Nanos, Nanos),
    /// The Records differ in another property that must be the same for all shards of a load.
    #[error("the {what} of the one is {first}, that of the other {second}; merge runs that differ in --shard only")]
    Other {
        /// Name of the property that differs.
        what: &'static str,
        /// The value in the first Record.
        first: String,
        /// The value in the second Record.
        second: String,
    },
}
