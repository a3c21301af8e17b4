//! What rate can this client offer before it is itself the limit?
//!
//! Asked of a responder that does nothing else: the client's best closed throughput is found first, then by bisection the
//! highest rate below it at which an open run of the same shape is still trusted.

use crate::run::{Pace, RunPlan, run};
use crate::server::per_second;
use crate::{Endpoint, SurveyError};
use brimful_core::workload::Workload;
use brimful_core::{Bytes, Nanos, Rate};
use brimful_engine::Progress;
use brimful_target::{Distribution, ServiceClass, Target, TargetConfig};
use brimful_workload::Process;
use std::sync::atomic::AtomicBool;

/// Length of one try, and number of tries: each halves what is unknown of the rate.
const TRY: Nanos = Nanos::from_millis(800);
const TRIES: u32 = 5;
const CLIENTS: u64 = 32;

/// How long the check takes, about; tries that overrun the responder take a little longer.
pub const LASTS: Nanos = Nanos::from_millis(TRY.0 / 1_000_000 * (1 + TRIES as u64));

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
    let plan = RunPlan {
        endpoint,
        workload: Workload::single("GET", "/nothing"),
        window: TRY,
        // What the responder cannot answer by then is not waited for.
        response_timeout: TRY.min(like.response_timeout),
        connect_timeout: Some(TRY.min(like.connect_timeout.unwrap_or(TRY))),
        monitor: None,
        ..like.clone()
    };
    let closed = RunPlan { pace: Pace::Closed { clients: CLIENTS, think: Nanos::ZERO }, ..plan.clone() };
    let best = run(&closed, stop, &Progress::default())?;
    let (mut trusted, mut doubted) = (None, best.rates.completed);
    for _ in 0..TRIES {
        let rate = 0.5 * (trusted.unwrap_or(0.0) + doubted);
        let pace = Pace::Open { rate: Rate(rate), process: Process::Poisson };
        let record = run(&RunPlan { pace, ..plan.clone() }, stop, &Progress::default())?;
        if best.interrupted || record.interrupted {
            return Ok(None);
        }
        if record.verdict.valid {
            trusted = Some(rate);
        } else {
            doubted = rate;
            // The first sentence says what happened; what to do about it is for whoever runs into it.
            let reason = record.verdict.reasons[0].message.split(". ").next().unwrap_or_default();
            note(format!("not to be trusted at {}: {reason}", per_second(rate)));
        }
    }
    Ok(trusted)
}
