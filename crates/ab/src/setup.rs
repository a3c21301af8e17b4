//! The options of a comparison.

use brimful_core::Nanos;
use brimful_core::workload::Load;
use brimful_run::RunOptions;
use brimful_stats::RegressionLimit;

/// The options of a comparison.
#[derive(Clone, Debug)]
pub struct AbPlan {
    /// The options of a run against A and against B. The comparison chooses seed and window.
    pub templates: [RunOptions; 2],
    /// The names of A and B as the user gave them: URLs or commands.
    pub names: [String; 2],
    /// How the servers are measured.
    pub design: DesignChoice,
    /// The load of each slice. With `None`, it is a fixed rate that both servers can take.
    pub load: Option<Load>,
    /// Name of the figure whose interval must become narrow; `None` chooses one.
    pub figure: Option<String>,
    /// The half width of its interval at which the measurement ends, as a share.
    pub until: f64,
    /// The time after which the measurement ends in any case.
    pub budget: Nanos,
    /// Length of a slice.
    pub slice: Nanos,
    /// Largest changes for the worse that are accepted.
    pub limits: Vec<RegressionLimit>,
}

/// How the servers are measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DesignChoice {
    /// A pilot decides.
    #[default]
    Auto,
    /// In turn.
    Interleaved,
    /// At the same time.
    Duet,
}

/// Where a server comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerSource {
    /// A server that is running.
    Url(String),
    /// A command that starts the server.
    Command {
        /// The command, with `{port}` for the port.
        command: String,
        /// The path of the requests.
        path: String,
    },
}

impl ServerSource {
    /// The user's text for the server.
    pub fn name(&self) -> &str {
        match self {
            ServerSource::Url(url) => url,
            ServerSource::Command { command, .. } => command,
        }
    }
}
