//! Exit codes, which scripts depend on.

use brimful_ab::AbError;
use brimful_core::record::{Reason, ReasonCode, Record, Verdict};
use brimful_estimate::EstimateError;
use brimful_forecast::ForecastError;
use brimful_model::ModelError;
use brimful_monitor::MonitorError;
use brimful_run::RunError;
use brimful_stats::{ObjectiveError, StatsError};
use brimful_survey::SurveyError;
use std::process::ExitCode;

/// The exit code of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The command succeeded.
    Ok = 0,
    /// The command succeeded, but an objective was missed. For `load`, more calls failed than were completed, or a
    /// condition of `--stop-when` ended the load. For `survey`, the server failed calls, or the measurements refuted
    /// the model.
    MissedObjective = 1,
    /// Wrong usage, or bad input.
    UsageError = 2,
    /// A missing permission or kernel feature, or an unreachable server.
    EnvironmentError = 3,
    /// The load generator, not the server, was the limit.
    GeneratorLimit = 4,
    /// The user pressed Ctrl-C. The results up to that time are delivered.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}

/// An error in the command line or in the input.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(pub String);

/// The error for a queueing model in which the server misses an objective even without load.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct MissedObjectiveError(pub String);

/// The exit code for an error: 1 for a missed objective, 2 for bad usage or input, and 3 for all other errors.
pub fn code_for_error(error: &anyhow::Error) -> Exit {
    if error.is::<MissedObjectiveError>() {
        return Exit::MissedObjective;
    }
    let usage = error.is::<UsageError>()
        || error.is::<ModelError>()
        || error.is::<EstimateError>()
        || error.is::<ForecastError>()
        || error.is::<StatsError>()
        || error.is::<ObjectiveError>()
        || error.downcast_ref::<RunError>().is_some_and(RunError::is_usage)
        || error.downcast_ref::<SurveyError>().is_some_and(SurveyError::is_usage)
        || error.downcast_ref::<AbError>().is_some_and(AbError::is_usage)
        || error.downcast_ref::<MonitorError>().is_some_and(MonitorError::is_usage);
    if usage { Exit::UsageError } else { Exit::EnvironmentError }
}

/// The exit code of a run. Failed calls do not make a run invalid, but scripts must notice them. So every load has the
/// objective that more calls are completed than fail.
pub fn code_for_record(record: &Record) -> Exit {
    let failing = record.verdict.failing == Some(true);
    match code_for_verdict(&record.verdict, record.interrupted) {
        Exit::Ok if failing && record.counts.established == 0 && record.counts.sent == 0 => Exit::EnvironmentError,
        Exit::Ok
            if failing || record.stopped_by.is_some() || record.objectives.iter().any(|objective| !objective.met) =>
        {
            Exit::MissedObjective
        }
        exit => exit,
    }
}

/// The exit code for the verdict on a run. An interruption comes first, then reasons that concern the environment, such
/// as a server that died.
pub fn code_for_verdict(verdict: &Verdict, interrupted: bool) -> Exit {
    use ReasonCode::{
        Incomplete, ModelRefuted, OtherWork, RateLimited, ServerChanged, ServerDied, ServerErrors, Throttled,
    };
    let of_environment = |reason: &Reason| {
        matches!(reason.code, ServerDied | ServerChanged | OtherWork | Incomplete | RateLimited | Throttled)
    };
    if interrupted {
        Exit::Interrupted
    } else if verdict.reasons.iter().any(of_environment) {
        Exit::EnvironmentError
    } else if verdict.valid {
        Exit::Ok
    } else if verdict.reasons.iter().all(|reason| matches!(reason.code, ServerErrors | ModelRefuted)) {
        Exit::MissedObjective
    } else {
        Exit::GeneratorLimit
    }
}
