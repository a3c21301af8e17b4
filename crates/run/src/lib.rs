//! One load, whole: an [`Endpoint`], a [`RunPlan`], the engine that carries it out and the monitor beside it, as one
//! `Record`. And [`client_limit`]: what this client can offer before it is the limit itself.
#![forbid(unsafe_code)]

mod beside;
pub mod client_limit;
mod crew;
mod endpoint;
mod error;
mod kept;
mod plan;
mod run;
mod stateful;
mod stream;

pub use beside::{Exchange, Kept, Looks, Tap};
pub use crew::Crew;
pub use endpoint::{ConnectTo, ConnectToError, Detour, Endpoint, Name};
pub use error::RunError;
pub use kept::record_so_far;
pub use plan::{FleetClock, RunPlan, Watched};
pub use run::{run, run_beheld, run_stream};
pub use stream::{Feed, StreamedCall};
