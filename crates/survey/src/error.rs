//! The errors of a survey.

/// An error that ends a survey. The message states what to do.
#[derive(Debug, thiserror::Error)]
pub enum SurveyError {
    /// A run of the load generator failed.
    #[error(transparent)]
    Run(#[from] brimful_run::RunError),
    /// A survey of this server with these options is not possible, or would have no meaning.
    #[error("{0}")]
    NotSurveyable(String),
    /// The server's processes cannot be monitored, pinned to CPUs, or limited.
    #[error(transparent)]
    Monitor(#[from] brimful_monitor::MonitorError),
    /// No model can be fitted to the measurements.
    #[error("no model fits the measurements: {0}")]
    Estimate(#[from] brimful_estimate::EstimateError),
    /// A run cannot be judged by an objective of the user.
    #[error(transparent)]
    Objective(#[from] brimful_stats::ObjectiveError),
    /// The guardian cannot be started: a process that restores the server's CPUs if the survey is killed.
    #[error(
        "cannot start the process that moves the server back to its CPUs if the survey is killed: {0}; leave out \
         --server-cpus, or raise the limit on processes (`ulimit -u`)"
    )]
    Guardian(std::io::Error),
    /// The reference server of the demonstration failed.
    #[error(transparent)]
    Target(#[from] brimful_target::TargetError),
}

impl SurveyError {
    /// Whether the command line or an input file caused the error, rather than the environment.
    pub fn is_usage(&self) -> bool {
        match self {
            SurveyError::Run(error) => error.is_usage(),
            SurveyError::Monitor(error) => error.is_usage(),
            SurveyError::NotSurveyable(_) | SurveyError::Estimate(_) | SurveyError::Objective(_) => true,
            SurveyError::Guardian(_) | SurveyError::Target(_) => false,
        }
    }
}
