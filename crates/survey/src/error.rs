//! Why a survey could not be made.

/// What went wrong, and what to do next.
#[derive(Debug, thiserror::Error)]
pub enum SurveyError {
    /// A run of it could not be made.
    #[error(transparent)]
    Run(#[from] brimful_run::RunError),
    /// The server answers, but not so that a survey would mean anything.
    #[error("{0}")]
    Unfit(String),
    /// From the monitor.
    #[error(transparent)]
    Monitor(#[from] brimful_monitor::MonitorError),
    /// From the fit.
    #[error("the measurements do not make a model: {0}")]
    Estimate(#[from] brimful_estimate::EstimateError),
    /// What would put the server back on its CPUs if the survey were killed.
    #[error(
        "cannot start the process that puts the server back on its CPUs should the survey be killed: {0}; leave out \
         --server-cpus, or raise the limit on processes (`ulimit -u`)"
    )]
    Guardian(std::io::Error),
    /// From the reference server.
    #[error(transparent)]
    Target(#[from] brimful_target::TargetError),
}

impl SurveyError {
    /// Whether the command line or a document is wrong, and not the environment.
    pub fn is_usage(&self) -> bool {
        match self {
            SurveyError::Run(error) => error.is_usage(),
            SurveyError::Monitor(error) => error.is_usage(),
            SurveyError::Unfit(_) | SurveyError::Estimate(_) => true,
            SurveyError::Guardian(_) | SurveyError::Target(_) => false,
        }
    }
}
