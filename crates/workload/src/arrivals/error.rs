//! Errors in arrival processes, stages and traces that a user wrote.

use crate::ArrivalProcess;
use brimful_core::Nanos;
use brimful_core::quantity::number;

/// An error in an arrival process, a stage or a trace. The message says what to write instead.
#[derive(Debug, thiserror::Error, PartialEq)]
pub enum ArrivalsError {
    /// There is no process with this name.
    #[error(
        "`{0}` is not an arrival process: write constant, poisson, onoff:RATIO,SHARE[,PERIOD], \
         uniform:SPREAD, steps:RATE@TIME,…, mmpp:RATIO,SHARE,SOJOURN, selfsimilar:H or selfsimilar:H,pareto"
    )]
    Unknown(String),
    /// The parameters of a process cannot be parsed.
    #[error("the parameters of `{text}` cannot be read: write it like {form}")]
    Parameters {
        /// The text as the user wrote it.
        text: String,
        /// The correct form, and an example.
        form: &'static str,
    },
    /// The rate of a burst is below the mean rate.
    #[error("a burst cannot have {0} times the mean rate: make its ratio 1 or more")]
    Ratio(f64),
    /// The share of the time in bursts is not between 0 and 1.
    #[error("a burst cannot take a share of {0} of the time: write a share between 0 and 1, like 5% or 0.05")]
    Share(f64),
    /// The calls of the bursts alone exceed the mean rate.
    #[error(
        "{ratio} times the mean rate for a share of {share} of the time is more than the mean rate allows: make \
         the ratio at most {}, or the share smaller", (1e4 / .share).floor() / 1e4
    )]
    BurstsExceedMean {
        /// Burst rate divided by the mean rate.
        ratio: f64,
        /// Share of the time in bursts.
        share: f64,
    },
    /// The rate curve changes far more often than calls are due.
    #[error(
        "{process} changes its rate too often for {rate} calls per second: let its steps or bursts last longer, or make \
         {} calls per second or more", number(*.slowest)
    )]
    TooSlow {
        /// The mean rate, in calls per second.
        rate: f64,
        /// The arrival process that changes its rate.
        process: Box<ArrivalProcess>,
        /// The lowest rate, in calls per second, that this process supports.
        slowest: f64,
    },
    /// The number, a rate or a duration of the steps is out of range.
    #[error(
        "these steps are not valid: write 1 to 10 steps, each with a time above zero and a rate of 0 or from 1e-9 to 1e9, \
         and at least one rate above zero"
    )]
    Steps,
    /// The period of regular bursts is zero.
    #[error("a burst needs a period above zero: write one like 100s")]
    Period,
    /// The mean length of random bursts is below its minimum.
    #[error("bursts of {0} are too short to have an effect: make the sojourn 1ms or more")]
    Sojourn(Nanos),
    /// A Hurst parameter is out of range.
    #[error("H = {0} is not self-similar: write an H above 0.5 and at most 0.99; web traffic has 0.7 to 0.9")]
    Hurst(f64),
    /// Stages are combined with a process other than constant and Poisson arrivals.
    #[error("stages cannot be combined with {0}: use constant or poisson arrivals with them")]
    StagesWithProcess(Box<ArrivalProcess>),
    /// No call is due in the stages.
    #[error("no call is due in these stages: give one of them a length and a rate above zero")]
    EmptyStages,
    /// The playback speed of a trace is not a finite number above zero.
    #[error("`{0}` is not a speed: write how many times faster, like 2x or 0.5x")]
    Speed(String),
    /// A line of a trace does not begin with a number.
    #[error(
        "line {line} of the trace, `{text}`, does not begin with a number of seconds: correct it, or put a # before it"
    )]
    TraceLine {
        /// Number of the line, counted from 1.
        line: usize,
        /// The beginning of the line, with control characters escaped.
        text: String,
    },
    /// A trace is not sorted by time.
    #[error("line {line} of the trace, `{text}`, is earlier than the one before it: sort the trace by time (sort -g)")]
    TraceOrder {
        /// Number of the line, counted from 1.
        line: usize,
        /// The beginning of the line, with control characters escaped.
        text: String,
    },
    /// A trace has no arrivals.
    #[error("the trace contains no arrival: write one number of seconds per line")]
    EmptyTrace,
}
