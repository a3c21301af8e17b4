//! The `Sweep` document: the same load at rising rates, or with rising numbers of S-Clients, and the Record of each. It
//! shows how a server behaves beyond its capacity (Banga & Druschel 1997, Figures 2, 5 and 7; Mosberger & Jin 1998,
//! Figure 2).

use crate::record::Record;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Identifier of the document's schema, and the value of [`Sweep::schema`].
pub const SCHEMA: &str = "brimful.sweep/1";

/// The results of a load that was made at rising levels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sweep {
    /// Identifier of the document's schema: always [`SCHEMA`].
    pub schema: String,
    /// The command line.
    pub command: Vec<String>,
    /// The requested URL, as the user gave it, with a scheme.
    pub target: String,
    /// The main result, in one or two sentences.
    pub headline: String,
    /// The quantity that rises.
    pub kind: SweepKind,
    /// The levels that were measured, from the lowest to the highest.
    pub levels: Vec<SweepLevel>,
    /// Whether the user ended the sweep early.
    pub interrupted: bool,
}

/// The quantity that rises in a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SweepKind {
    /// Calls per second of an open loop.
    Rate,
    /// Number of S-Clients.
    SClients,
}

/// One level of a sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepLevel {
    /// Calls per second, or the number of S-Clients.
    pub level: f64,
    /// The Record of this level, without histograms and account.
    pub record: Record,
}
