//! The `Sweep` document: the Records of the same load at increasing rates, or with increasing numbers of S-Clients. It
//! shows how a server behaves beyond its capacity (Banga & Druschel 1997, Figures 2, 5 and 7; Mosberger & Jin 1998,
//! Figure 2).

use crate::JsonSchema;
use crate::record::Record;
use serde::{Deserialize, Serialize};

/// Identifier of the document's schema, and the value of [`Sweep::schema`].
pub const SCHEMA: &str = "brimful.sweep/1";

/// The results of a load that was repeated at increasing rates, or with increasing numbers of S-Clients.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sweep {
    /// Identifier of the document's schema: always [`SCHEMA`].
    pub schema: String,
    /// The brimful command that made the sweep, with its arguments.
    pub command: Vec<String>,
    /// The requested URL as the user wrote it, with a scheme.
    pub target: String,
    /// The main result, in one or two sentences.
    pub headline: String,
    /// The quantity that increases from run to run.
    pub kind: SweepKind,
    /// The results of each run, in increasing order of the rate or of the number of S-Clients.
    pub levels: Vec<SweepLevel>,
    /// Whether the user interrupted the sweep.
    pub interrupted: bool,
}

/// The quantity that increases from run to run of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SweepKind {
    /// Offered load of an open loop, in calls per second.
    Rate,
    /// Number of S-Clients (Banga & Druschel 1997).
    SClients,
}

/// One level of a sweep: the run at one rate, or with one number of S-Clients.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepLevel {
    /// Offered load in calls per second, or the number of S-Clients.
    pub level: f64,
    /// The Record of this run, without `hdr` and `account`.
    pub record: Record,
}
