//! What can be wrong with Accounts, and with the Records that they are read from.

use brimful_core::Nanos;

/// Why an Account could not be read from a document, or Records not be merged.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum StatsError {
    /// Something that no brimful writes.
    #[error("its account is damaged ({0}): take the Record from its source again")]
    Damaged(String),
    /// Written before Records had an account.
    #[error(
        "it has no `account`, which merging needs: it was written by an older brimful, run the load again with this one"
    )]
    NoAccount,
    /// Not one of several.
    #[error("it is a whole load and no part of one: run the parts with `brimful load … --shard I/N`")]
    NotAShard,
    /// One Record of several is wrong.
    #[error("{name}: {source}")]
    In {
        /// What the user knows the Record by.
        name: String,
        /// What is wrong with it.
        source: Box<StatsError>,
    },
    /// Two Records are not of one load.
    #[error("{first} and {second} are not of one load: {unlike}")]
    NotOneLoad {
        /// What the user knows the one by.
        first: String,
        /// And the other.
        second: String,
        /// What differs.
        unlike: Unlike,
    },
    /// Two Records hold one shard.
    #[error("{first} and {second} both hold shard {shard}: name each Record once")]
    SameShard {
        /// What the user knows the one by.
        first: String,
        /// And the other.
        second: String,
        /// Which.
        shard: String,
    },
    /// A shard is said to be lost that the load does not have.
    #[error("there is no shard {index} to be lost: the load has shards 1 to {of}")]
    NoSuchShard {
        /// As given.
        index: u64,
        /// How many there are.
        of: u64,
    },
    /// A shard is said to be lost whose Record is there.
    #[error("shard {index} is not lost, {name} has it: leave out --lost {index}")]
    NotLost {
        /// Which.
        index: u64,
        /// What the user knows its Record by.
        name: String,
    },
    /// There is none.
    #[error("there is nothing to merge: name the Records of the shards")]
    Nothing,
}

/// Why two Accounts, or two Records, are not of one load.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Unlike {
    /// The classes differ in name, number or order.
    #[error("their classes differ ({} and {}); merge runs of one workload", .0.join(", "), .1.join(", "))]
    Classes(Vec<String>, Vec<String>),
    /// Load was to be offered for different times.
    #[error("they were to last differently long ({0} and {1}); merge runs with the same --duration and --requests")]
    Windows(Nanos, Nanos),
    /// Something else differs that shards have in common.
    #[error("the {what} of the one is {first}, that of the other {second}; merge runs that differ in --shard only")]
    Other {
        /// What.
        what: &'static str,
        /// Of the one.
        first: String,
        /// Of the other.
        second: String,
    },
}
