//! What can be wrong with an arrival process, as its user wrote it.

use crate::Process;
use brimful_core::Nanos;
use brimful_core::quantity::number;

/// Why an arrival process, a stage or a trace cannot be used.
#[derive(Debug, thiserror::Error, PartialEq)]
pub enum ArrivalsError {
    /// No process of that name.
    #[error(
        "`{0}` is not an arrival process: write constant, poisson, onoff:RATIO,SHARE[,PERIOD], \
         uniform:SPREAD, steps:RATE@TIME,…, mmpp:RATIO,SHARE,SOJOURN, selfsimilar:H or selfsimilar:H,pareto"
    )]
    Unknown(String),
    /// A known process with parameters that cannot be read.
    #[error("the parameters of `{text}` cannot be read: write it like {form}")]
    Parameters {
        /// What was written.
        text: String,
        /// What could be.
        form: &'static str,
    },
    /// A burst below the mean.
    #[error("a burst cannot have {0} times the mean rate: make its ratio 1 or more")]
    Ratio(f64),
    /// A burst that takes none or all of the time.
    #[error("a burst cannot take a share of {0} of the time: write a share between 0 and 1, like 5% or 0.05")]
    Share(f64),
    /// Bursts that hold more than all calls.
    #[error(
        "{ratio} times the mean rate for a share of {share} of the time is more than the mean rate allows: make \
         the ratio at most {}, or the share smaller", (1e4 / .share).floor() / 1e4
    )]
    TooMuch {
        /// Burst rate over mean rate.
        ratio: f64,
        /// Part of the time in bursts.
        share: f64,
    },
    /// A rate curve that changes far more often than calls are due.
    #[error(
        "{process} changes its rate too often for {rate} calls per second: let its steps or bursts last longer, or make \
         {} calls per second or more", number(*.slowest)
    )]
    TooSlow {
        /// Calls per second.
        rate: f64,
        /// The arrival process.
        process: Box<Process>,
        /// The lowest rate that this process can have.
        slowest: f64,
    },
    /// Steps that no load can be made of.
    #[error(
        "these are no steps: write 1 to 10 of them, each with a time above zero and a rate of 0 or from 1e-9 to 1e9, and one \
         of them with a rate above zero"
    )]
    Steps,
    /// Periods of no length.
    #[error("bursts cannot return after no time at all: make the period longer than nothing, like 100s")]
    Period,
    /// Bursts too short to be any.
    #[error("bursts of {0} are too short to tell from none: make the sojourn 1ms or more")]
    Sojourn(Nanos),
    /// Not a Hurst parameter of traffic.
    #[error("H = {0} is not self-similar traffic: write an H above 0.5 and at most 0.99; web traffic has 0.7 to 0.9")]
    Hurst(f64),
    /// Stages of a process that has time scales of its own.
    #[error("stages cannot be combined with {0}: use constant or poisson arrivals with them")]
    StagesOf(Box<Process>),
    /// Stages without an area.
    #[error("no call is due in these stages: give one of them a length and a rate above zero")]
    EmptyStages,
    /// Not a speed.
    #[error("`{0}` is not a speed: write how many times faster, like 2x or 0.5x")]
    Speed(String),
    /// A line without a number.
    #[error(
        "line {line} of the trace, `{text}`, does not begin with a number of seconds: put one there, or a # before \
         the line"
    )]
    TraceLine {
        /// From 1.
        line: usize,
        /// Its beginning.
        text: String,
    },
    /// An arrival before its predecessor.
    #[error("line {line} of the trace, `{text}`, is earlier than the one before it: sort the trace by time (sort -g)")]
    TraceOrder {
        /// From 1.
        line: usize,
        /// Its beginning.
        text: String,
    },
    /// Nothing to replay.
    #[error("there is no arrival in the trace: give it one number of seconds per line")]
    EmptyTrace,
}
