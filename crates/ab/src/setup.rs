//! The options of a comparison.

use brimful_core::Nanos;
use brimful_core::workload::Load;
use brimful_run::RunOptions;
use brimful_stats::RegressionLimit;

/// The options of a comparison.
#[derive(Clone, Debug)]
pub struct AbPlan {
    /// The options of a run against A and of a run against B. The comparison itself sets the seed and the duration.
    pub templates: [RunOptions; 2],
    /// The URLs or commands of A and B, as the user wrote them.
    pub names: [String; 2],
    /// Whether the servers are measured in turn or at the same time.
    pub design: DesignChoice,
    /// The load of each slice. With `None`, the comparison chooses a fixed rate that both servers can serve.
    pub load: Option<Load>,
    /// Name of the metric that decides when the measurement ends. With `None`, the comparison chooses one.
    pub figure: Option<String>,
    /// The measurement ends when the half width of the confidence interval of B/A falls to this share, such as 0.01 for
    /// 1 %.
    pub until: f64,
    /// Time limit of the whole comparison.
    pub budget: Nanos,
    /// Duration of a slice, a short run against one server.
    pub slice: Nanos,
    /// Limits on how much worse than A a metric of B may be.
    pub limits: Vec<RegressionLimit>,
}

/// The user's choice of the method of measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DesignChoice {
    /// A pilot chooses the method with the smaller variance.
    #[default]
    Auto,
    /// The servers are measured in turn.
    Interleaved,
    /// Both servers are measured at the same time, each on its own CPUs.
    Duet,
}

/// The user's description of a server: a URL, or a command that starts it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerSource {
    /// URL of a running server.
    Url(String),
    /// A command that starts the server, and the path to request.
    Command {
        /// The shell command. `{port}` stands for the port on which the server must listen.
        command: String,
        /// The path of the requested URL.
        path: String,
    },
}

impl ServerSource {
    /// The URL or command, as the user wrote it.
    pub fn name(&self) -> &str {
        match self {
            ServerSource::Url(url) => url,
            ServerSource::Command { command, .. } => command,
        }
    }
}
