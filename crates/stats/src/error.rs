//! Errors of Accounts, and of the Records that contain them.

use brimful_core::Nanos;

/// Why an Account could not be read from a document, or Records could not be merged.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum StatsError {
    /// The account is not the output of brimful.
    #[error("its account is damaged ({0}): take the Record from its source again")]
    Damaged(String),
    /// The Record is of a version before Records had an account.
    #[error(
        "it has no `account`, which merging needs: it was written by an older brimful, run the load again with this one"
    )]
    NoAccount,
    /// The Record is not one of several shards.
    #[error("it is a whole load and no part of one: run the parts with `brimful load … --shard I/N`")]
    NotAShard,
    /// One Record of several is wrong.
    #[error("{name}: {source}")]
    In {
        /// The user's name for the Record.
        name: String,
        /// The error.
        source: Box<StatsError>,
    },
    /// Two Records are not of one load.
    #[error("{first} and {second} are not of one load: {unlike}")]
    NotOneLoad {
        /// The user's name for the first Record.
        first: String,
        /// The user's name for the second.
        second: String,
        /// Their difference.
        unlike: Unlike,
    },
    /// Two Records contain the same shard.
    #[error("{first} and {second} both hold shard {shard}: name each Record once")]
    SameShard {
        /// The user's name for the first Record.
        first: String,
        /// The user's name for the second.
        second: String,
        /// The shard.
        shard: String,
    },
    /// A shard was marked as lost that the load does not have.
    #[error("there is no shard {index} to be lost: the load has shards 1 to {of}")]
    NoSuchShard {
        /// The given number of the shard.
        index: u64,
        /// The number of shards.
        of: u64,
    },
    /// A shard was marked as lost whose Record is present.
    #[error("shard {index} is not lost, {name} has it: leave out --lost {index}")]
    NotLost {
        /// The number of the shard.
        index: u64,
        /// The user's name for its Record.
        name: String,
    },
    /// There is no Record.
    #[error("there is nothing to merge: name the Records of the shards")]
    Nothing,
}

/// A difference between two Accounts, or two Records, that are not of one load.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Unlike {
    /// The classes differ in name, number or order.
    #[error("their classes differ ({} and {}); merge runs of one workload", .0.join(", "), .1.join(", "))]
    Classes(Vec<String>, Vec<String>),
    /// The planned windows differ.
    #[error("their planned durations differ ({0} and {1}); merge runs with the same --duration and --requests")]
    Windows(Nanos, Nanos),
    /// Something else differs that shards must have in common.
    #[error("the {what} of the one is {first}, that of the other {second}; merge runs that differ in --shard only")]
    Other {
        /// Name of the property that differs.
        what: &'static str,
        /// The value in the first.
        first: String,
        /// The value in the second.
        second: String,
    },
}
