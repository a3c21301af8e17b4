//! Errors of Accounts, and of the Records that contain them.

use brimful_core::Nanos;

/// An error of reading an Account from a document, or of merging Records.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum StatsError {
    /// The account was not written by brimful, or was changed afterwards.
    #[error("its account is damaged ({0}): take the Record from its source again")]
    Damaged(String),
    /// The Record was written by a version whose Records had no account.
    #[error(
        "it has no `account`, which merging needs: it was written by an older brimful, run the load again with this one"
    )]
    NoAccount,
    /// The Record describes a whole load, not a shard.
    #[error("it is a whole load and no part of one: run the parts with `brimful load … --shard I/N`")]
    NotAShard,
    /// One of several Records is wrong.
    #[error("{name}: {source}")]
    InRecord {
        /// The user's name for the Record.
        name: String,
        /// The error.
        source: Box<StatsError>,
    },
    /// Two Records do not belong to one load.
    #[error("{first} and {second} are not of one load: {unlike}")]
    DifferentLoads {
        /// The user's name for the first Record.
        first: String,
        /// The user's name for the second Record.
        second: String,
        /// The difference between the two Records.
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
        /// The number of the shard.
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

/// A difference between two Accounts or Records that shows that they do not belong to one load.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum MergeMismatch {
    /// The classes differ in name, number or order. The fields are the classes of the first Account and of the second
    /// Account.
    #[error("their classes differ ({} and {}); merge runs of one workload", .0.join(", "), .1.join(", "))]
    Classes(Vec<String>, Vec<String>),
    /// The planned windows differ.
    #[error("their planned durations differ ({0} and {1}); merge runs with the same --duration and --requests")]
    Windows(Nanos, Nanos),
    /// The Records differ in another property, which must be the same for all shards of a load.
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
