//! Exit codes: scripts depend on them.

use brimful_core::record::{Reason, ReasonCode, Record, Verdict};
use brimful_estimate::EstimateError;
use brimful_forecast::ForecastError;
use brimful_model::ModelError;
use brimful_monitor::MonitorError;
use brimful_run::RunError;
use brimful_stats::{ObjectiveError, StatsError};
use brimful_survey::SurveyError;
use std::process::ExitCode;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It did what it was asked.
    Ok = 0,
    /// It did, and an objective was missed; `load`: more calls failed than were completed; `survey`: the server failed
    /// calls, or did not do what was predicted.
    Objective = 1,
    /// Usage, or bad input.
    Usage = 2,
    /// Permission, a missing kernel feature, a server that is not there.
    Environment = 3,
    /// The generator, not the server, was the limit.
    Generator = 4,
    /// By Ctrl-C; what was measured is kept.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}

/// An error that the command line itself is to blame for.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(pub String);

/// An objective that nothing can meet.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct MissedError(pub String);

/// What an error means to a script.
pub fn of(error: &anyhow::Error) -> Exit {
    if error.is::<MissedError>() {
        return Exit::Objective;
    }
    let usage = error.is::<UsageError>()
        || error.is::<ModelError>()
        || error.is::<EstimateError>()
        || error.is::<ForecastError>()
        || error.is::<StatsError>()
        || error.is::<ObjectiveError>()
        || error.downcast_ref::<RunError>().is_some_and(RunError::is_usage)
        || error.downcast_ref::<SurveyError>().is_some_and(SurveyError::is_usage)
        || error.downcast_ref::<MonitorError>().is_some_and(MonitorError::is_usage);
    if usage { Exit::Usage } else { Exit::Environment }
}

/// What a run means to a script. That its calls fail makes no run invalid, but nobody may take it for a run in which
/// all went well: every load has the objective that more calls are completed than fail.
pub fn of_run(record: &Record) -> Exit {
    let failing = record.verdict.failing == Some(true);
    match of_verdict(&record.verdict, record.interrupted) {
        Exit::Ok if failing && record.counts.established == 0 && record.counts.sent == 0 => Exit::Environment,
        Exit::Ok if failing || record.objectives.iter().any(|objective| !objective.met) => Exit::Objective,
        exit => exit,
    }
}

/// What a verdict means to a script.
pub fn of_verdict(verdict: &Verdict, interrupted: bool) -> Exit {
    use ReasonCode::{
        Incomplete, ModelRefuted, OtherWork, RateLimited, ServerChanged, ServerDied, ServerErrors, Throttled,
    };
    let of_environment = |reason: &Reason| {
        matches!(reason.code, ServerDied | ServerChanged | OtherWork | Incomplete | RateLimited | Throttled)
    };
    if interrupted {
        Exit::Interrupted
    } else if verdict.reasons.iter().any(of_environment) {
        Exit::Environment
    } else if verdict.valid {
        Exit::Ok
    } else if verdict.reasons.iter().all(|reason| matches!(reason.code, ServerErrors | ModelRefuted)) {
        Exit::Objective
    } else {
        Exit::Generator
    }
}
