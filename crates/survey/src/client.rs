//! What rate can this client offer before it is itself the limit?
//!
//! Asked before the server is looked at, against a responder that does nothing else: the client's best closed throughput
//! is found first, then the highest rate below it at which an open run of the same shape is still trusted.

use crate::run::{Pace, RunPlan, run};
use crate::server::per_second;
use crate::{Endpoint, SurveyError};
use brimful_core::workload::Workload;
use brimful_core::{Bytes, Nanos, Rate};
use brimful_engine::Progress;
use brimful_target::{Distribution, ServiceClass, Target, TargetConfig};
use brimful_workload::Process;
use std::sync::atomic::AtomicBool;

/// Shares of the best closed throughput that are tried as open rates, highest first.
const TRIED: [f64; 8] = [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2];
const CLIENTS: u64 = 32;

/// How long the check takes at most.
pub const LASTS: Nanos = Nanos::from_millis(800 * (1 + TRIED.len() as u64));

/// Finds the client's highest trustworthy rate, with responses of `response` bytes, from a responder on `cpus`. `None`
/// when it was stopped, or when not even the lowest rate that was tried could be trusted.
pub fn max_rate(
    like: &RunPlan,
    response: Bytes,
    cpus: &[usize],
    stop: &AtomicBool,
    note: &mut dyn FnMut(String),
) -> Result<Option<f64>, SurveyError> {
    let responder = Target::start(TargetConfig {
        listen: ([127, 0, 0, 1], 0).into(),
        classes: vec![ServiceClass { name: "nothing".to_owned(), demand: Nanos::ZERO, response }],
        distribution: Distribution::Deterministic,
        workers: cpus.len().max(1),
        backlog: 1024,
        cpus: cpus.to_vec(),
        seed: 0,
    })?;
    let endpoint = Endpoint::resolve(&responder.addr().to_string(), Nanos::from_secs(1))?;
    let window = Nanos::from_millis(800);
    let plan =
        RunPlan { endpoint, workload: Workload::single("GET", "/nothing"), window, monitor: None, ..like.clone() };
    let closed = RunPlan { pace: Pace::Closed { clients: CLIENTS, think: Nanos::ZERO }, ..plan.clone() };
    let best = run(&closed, stop, &Progress::default())?;
    if best.interrupted {
        return Ok(None);
    }
    for share in TRIED {
        let rate = share * best.rates.completed;
        let pace = Pace::Open { rate: Rate(rate), process: Process::Poisson };
        let record = run(&RunPlan { pace, ..plan.clone() }, stop, &Progress::default())?;
        if record.interrupted {
            return Ok(None);
        }
        if record.verdict.valid && record.counts.unsent_at_end == 0 {
            return Ok(Some(rate));
        }
        // The first sentence says what happened; what to do about it is for whoever ran into it.
        let reason = record.verdict.reasons.first().map_or("", |r| r.message.split(". ").next().unwrap_or_default());
        note(format!("not to be trusted at {}: {reason}", per_second(rate)));
    }
    Ok(None)
}
