//! The errors of a survey.

/// An error that ends a survey. The message says what to do next.
#[derive(Debug, thiserror::Error)]
pub enum SurveyError {
    /// A run could not be made.
    #[error(transparent)]
    Run(#[from] brimful_run::RunError),
    /// The server, its answers or the options do not permit a meaningful survey.
    #[error("{0}")]
    Unfit(String),
    /// The monitor could not observe the server.
    #[error(transparent)]
    Monitor(#[from] brimful_monitor::MonitorError),
    /// No model could be fitted.
    #[error("no model fits the measurements: {0}")]
    Estimate(#[from] brimful_estimate::EstimateError),
    /// An objective cannot be judged.
    #[error(transparent)]
    Objective(#[from] brimful_stats::ObjectiveError),
    /// The guardian process, which undoes changes of the server if the survey is killed, could not be started.
    #[error(
        "cannot start the process that moves the server back to its CPUs if the survey is killed: {0}; leave out \
         --server-cpus, or raise the limit on processes (`ulimit -u`)"
    )]
    Guardian(std::io::Error),
    /// The reference server failed.
    #[error(transparent)]
    Target(#[from] brimful_target::TargetError),
}

impl SurveyError {
    /// Whether the cause is the command line or a document rather than the environment.
    pub fn is_usage(&self) -> bool {
        match self {
            SurveyError::Run(error) => error.is_usage(),
            SurveyError::Monitor(error) => error.is_usage(),
            SurveyError::Unfit(_) | SurveyError::Estimate(_) | SurveyError::Objective(_) => true,
            SurveyError::Guardian(_) | SurveyError::Target(_) => false,
        }
    }
}
