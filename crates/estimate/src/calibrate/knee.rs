//! Finds the knee, the load at which the measured throughput stops growing, without a queueing model: by the Kneedle
//! algorithm and by the universal scalability law. Both use the valid runs with the model's mix of request classes. The
//! Kneedle algorithm also uses runs whose open load exceeded the server's capacity.

use super::figures::{load_kind, mean_seconds};
use super::judge::{authority, past_saturation};
use super::runs::Runs;
use crate::{EstimateError, Knee, LoadPoint, UslFit, find_knee, fit_usl};
use brimful_core::JsonSchema;
use brimful_core::quantity::rate;
use brimful_core::record::Record;
use brimful_core::workload::LoadKind;
use serde::Serialize;

/// Maximum difference between a class's share of the requests in a run and its share in the model's mix. A run with a
/// larger difference is not used.
const MAX_SHARE_DIFFERENCE: f64 = 0.05;

/// Sensitivity parameter S of the Kneedle algorithm; its authors recommend 1.
const SENSITIVITY: f64 = 1.0;

/// Maximum relative difference between the throughput at the knee and the model's saturation rate. Above it, the user
/// gets a warning.
const MAX_KNEE_DISTANCE: f64 = 0.15;

const NO_KNEE: &str = "throughput follows the load as far as it was measured: measure past saturation";
const TOO_FEW_CLIENTS: &str =
    "it needs three runs with an average of at least one request in the server: measure with --clients 2, 8 and 32";

/// The knee: the load at which the measured throughput stops growing in proportion to the load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct KneeCheck {
    /// The runs with the model's mix of request classes, in ascending order of the offered load.
    pub measured: Vec<MeasuredLoad>,
    /// The knee of the throughput as a function of the offered load, found by the Kneedle algorithm in the runs with an
    /// open load; `None` if there is no knee.
    pub knee: Option<Knee>,
    /// The reason why no knee was found, and what to do about it.
    pub knee_absent: Option<String>,
    /// The universal scalability law, fitted to the throughput as a function of the number of requests in the server.
    /// It uses the closed runs if there are any, and otherwise the open runs that are not past saturation.
    pub usl: Option<UslFit>,
    /// The reason why the universal scalability law was not fitted, and what to do about it.
    pub usl_absent: Option<String>,
}

/// Offered load and throughput of one run. The load may exceed the server's capacity.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MeasuredLoad {
    /// Index of the Record in the input, from 0.
    pub record: usize,
    /// Offered load, in calls per second.
    pub offered: f64,
    /// Number of complete responses per second.
    pub completed: f64,
    /// Mean number of requests in the server, by Little's law (N = X·R). `None` if there is no mean response time.
    pub present: Option<f64>,
    /// Whether the load was closed: each client waited for a response before its next request.
    pub closed: bool,
}

/// Collects the runs with the model's mix of request classes, and analyses their throughput: the knee by the Kneedle
/// algorithm, and the universal scalability law.
pub(super) fn check(records: &[Record], runs: &Runs, mix: &[f64]) -> KneeCheck {
    let server = runs.used.first().map(|run| authority(&records[run.record].target));
    let of_mix = |r: &Record| {
        r.verdict.valid && Some(authority(&r.target)) == server && is_same_mix(&runs.completions_in(r), mix)
    };
    let mut measured: Vec<MeasuredLoad> = records
        .iter()
        .enumerate()
        .filter(|(_, r)| of_mix(r) && load_kind(r) != LoadKind::SClients)
        .map(|(record, r)| measured_load(record, r))
        .filter(|m| m.offered.is_finite() && m.offered > 0.0 && m.completed.is_finite() && m.completed > 0.0)
        .collect();
    measured.sort_by(|a, b| a.offered.total_cmp(&b.offered));
    let open = measured.iter().filter(|m| !m.closed);
    let throughputs: Vec<LoadPoint> = open.map(|m| LoadPoint { load: m.offered, throughput: m.completed }).collect();
    let any_closed = measured.iter().any(|m| m.closed);
    let counts_for_usl = |m: &&MeasuredLoad| if any_closed { m.closed } else { !past_saturation(&records[m.record]) };
    let concurrency = |m: &MeasuredLoad| {
        Some(LoadPoint { load: m.present.filter(|n| n.is_finite() && *n >= 1.0)?, throughput: m.completed })
    };
    let present: Vec<LoadPoint> = measured.iter().filter(counts_for_usl).filter_map(concurrency).collect();
    let (knee, knee_absent) = match find_knee(&throughputs, SENSITIVITY) {
        Ok(Some(knee)) => (Some(knee), None),
        Ok(None) => (None, Some(NO_KNEE.to_owned())),
        Err(error) => (None, Some(error.to_string())),
    };
    let (usl, usl_absent) = match fit_usl(&present) {
        Ok(fit) => (Some(fit), None),
        Err(EstimateError::TooFewObservations { .. }) => (None, Some(TOO_FEW_CLIENTS.to_owned())),
        Err(error) => (None, Some(error.to_string())),
    };
    KneeCheck { measured, knee, knee_absent, usl, usl_absent }
}

fn measured_load(record: usize, r: &Record) -> MeasuredLoad {
    let completed = r.rates.completed;
    MeasuredLoad {
        record,
        offered: r.rates.offered,
        completed,
        present: mean_seconds(r.response_time_us).map(|response| completed * response),
        closed: load_kind(r) == LoadKind::Closed,
    }
}

fn is_same_mix(rates: &[f64], mix: &[f64]) -> bool {
    let rate_sum = rates.iter().sum::<f64>();
    let mix_sum = mix.iter().sum::<f64>();
    rate_sum > 0.0 && rates.iter().zip(mix).all(|(a, b)| (a / rate_sum - b / mix_sum).abs() <= MAX_SHARE_DIFFERENCE)
}

impl KneeCheck {
    /// A warning if the throughput at the knee differs much from the model's saturation rate.
    pub(super) fn warning(&self, saturation_rate: f64) -> Option<String> {
        let knee = self.knee.filter(|knee| (knee.throughput / saturation_rate - 1.0).abs() > MAX_KNEE_DISTANCE)?;
        Some(format!(
            "the throughput curve bends at {}, and the model saturates at {}: measure \
             more loads between the two, and look for limits that are not in the model",
            rate(knee.throughput),
            rate(saturation_rate)
        ))
    }
}
