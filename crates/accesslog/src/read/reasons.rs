//! Why nothing is left of logs that were read.

use super::Read;
use crate::LogError;
use brimful_core::profile::{Lines, MalformedLine};
use brimful_core::quantity::count;

impl Read {
    /// The error of logs without a single request: what became of their lines, and what was expected where in the first
    /// malformed ones.
    pub fn no_requests(&self) -> LogError {
        let lines = &self.lines;
        LogError::NoRequests(format!(
            "no request is left of {} lines: {} are malformed and {} were left out; check the format and the filters{}",
            count(lines.read),
            count(lines.malformed),
            count(lines.filtered),
            first_malformed(lines)
        ))
    }
}

/// The first malformed lines, each with its place and what was expected there, as the end of a message; nothing where
/// there are none.
pub fn first_malformed(lines: &Lines) -> String {
    let one = |line: &MalformedLine| {
        let MalformedLine { file, line, column, expected, text } = line;
        format!("\n{file}:{line}:{column}: expected {expected}\n  | {text}")
    };
    match lines.first_malformed.as_slice() {
        [] => String::new(),
        malformed => format!(". The first malformed:{}", malformed.iter().map(one).collect::<String>()),
    }
}
