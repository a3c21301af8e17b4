//! What can be wrong with Accounts.

use brimful_core::Nanos;

/// Why an Account could not be read from a document.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum StatsError {
    /// Something that no brimful writes.
    #[error("its account is damaged ({0}): take the Record from its source again")]
    Damaged(String),
}

/// Why two Accounts are not of one load.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Unlike {
    /// The classes differ in name, number or order.
    #[error("their classes differ ({} and {}); merge runs of one workload", .0.join(", "), .1.join(", "))]
    Classes(Vec<String>, Vec<String>),
    /// Load was to be offered for different times.
    #[error("they were to last differently long ({0} and {1}); merge runs with the same --duration and --requests")]
    Windows(Nanos, Nanos),
}
