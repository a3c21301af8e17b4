//! Runs one load. [`run`] takes a [`RunPlan`], drives the engine while the monitor watches the server, and returns one
//! `Record` (the result document). [`client_limit`] measures how much load this client can generate before it is itself
//! the limit.
#![forbid(unsafe_code)]

/// Measures how much load this client can generate before it is itself the limit.
pub mod client_limit;
mod endpoint;
mod error;
mod guardian;
mod observer;
mod options;
mod plan;
mod record;
mod run;
mod server_software;
mod shard;
mod stop_when;
mod stream;
mod survey_fleet;
mod warm_up;

pub use endpoint::{ConnectOverrides, ConnectTo, ConnectToError, Endpoint, ServerHosts};
pub use error::RunError;
pub use guardian::{GUARDIAN_COMMAND, Guardian, ServerChange, run_guardian};
pub use observer::{CallHook, Exchange, MessagePrefix, ResultsSoFar, RunObserver};
pub use options::{
    AgreedStart, FleetClock, FleetOptions, GeneratorOptions, LoadOptions, MonitorTarget, RecordOptions, RunOptions,
    ServerOptions, TlsOptions,
};
pub use plan::RunPlan;
pub use record::{RunOutput, partial_record};
pub use run::{run, run_log};
pub use stop_when::{SetOnDrop, StopConditions};
pub use stream::{Feed, StreamedCall};
pub use survey_fleet::SurveyFleet;
pub use warm_up::{MAX_WARM_UP, WarmUp, WarmUpOutcome, warm_up};
