//! Measures the server beyond its capacity, with and without a connection pool.
//!
//! The number of connections may determine how many calls an overloaded server completes. With a pool, calls wait in
//! the client for one of a few connections. Without a pool, each call that finds no idle connection opens a new one, so
//! an overloaded server must also accept thousands of connections. Some servers then lose much of their capacity. Both
//! policies are measured at the same offered rate.

use crate::baseline::ClientLimit;
use crate::calibration::Calibration;
use crate::connections::ConnectionUse;
use crate::level::HostSpeed;
use crate::level::LevelContext;
use crate::runner::{Halt, Runner};
use crate::setup::Setup;
use crate::trial::Trial;
use brimful_core::quantity;
use brimful_core::survey::Overload;
use brimful_core::workload::{Load, Workload};
use brimful_core::{Nanos, Rate};

/// Offered rate at which the server is measured with and without a connection pool, as a multiple of the capacity.
const OVERLOAD: f64 = 1.3;
/// Offered rate of the additional overload in a thorough survey, as a multiple of the capacity.
const SLIGHT_OVERLOAD: f64 = 1.1;
/// Number of waiting calls at which a load above the capacity should end. The load lasts at least 1 s, and at most half
/// of `--level`.
const MAX_BACKLOG: f64 = 1000.0;

/// Measures the server at loads above its capacity. The capacity must be measured before, because an overloaded server
/// might disturb that measurement. Returns the throughput with and without a connection pool; `None` if only one of
/// them was measured.
pub(crate) fn measure_overload(
    runner: &mut Runner<'_>,
    calibration: &Calibration,
    client: &ClientLimit,
    connections: &ConnectionUse,
) -> Result<Option<Overload>, Halt> {
    let capacity = calibration.fit.saturation();
    let mut overload = None;
    for fraction in fractions(runner.setup).iter().copied() {
        let rate = fraction * capacity;
        let duration = overload_duration(rate - capacity, runner.setup.level_duration);
        let step = format!("past saturation: {}, {}", quantity::whole_percent(fraction), quantity::rate(rate));
        if client.limit.is_some_and(|limit| rate > limit) {
            runner.note(format!("left out, because this client cannot offer it: {step}"));
            continue;
        }
        runner.begin(step, duration);
        let prediction = calibration.fit.predict(rate)?;
        let workload = runner.setup.workload_with(Load::poisson(Rate(rate)));
        let trial = runner.measure_level(&workload, duration)?;
        runner.record_level(
            &trial,
            &workload,
            &LevelContext::past_saturation(capacity, &prediction, HostSpeed::default()),
        )?;
        if fraction == OVERLOAD {
            overload = compare_policies(runner, &workload, duration, &trial, connections)?;
        }
    }
    Ok(overload)
}

/// Duration of a load that exceeds the capacity by `excess` calls per second.
fn overload_duration(excess: f64, level_duration: Nanos) -> Nanos {
    Nanos::from_secs_f64((MAX_BACKLOG / excess).max(1.0).min(0.5 * level_duration.as_secs_f64()))
}

/// Durations of all loads above the capacity, for a server with a capacity of `capacity` calls per second.
pub(crate) fn overload_durations(setup: &Setup, capacity: f64) -> impl Iterator<Item = Nanos> {
    let duration = move |fraction: f64| overload_duration((fraction - 1.0) * capacity, setup.level_duration);
    // The comparison of loads with and without a connection pool needs two more runs.
    fractions(setup).iter().chain(&[OVERLOAD; 2]).map(move |fraction| duration(*fraction))
}

fn fractions(setup: &Setup) -> &'static [f64] {
    if setup.thorough { &[SLIGHT_OVERLOAD, OVERLOAD] } else { &[OVERLOAD] }
}

/// Compares the throughput with and without a connection pool. `pooled` was measured with the pool. The load is
/// repeated without the pool, and then with the pool again, so that a drift of the host's speed affects both policies
/// equally.
fn compare_policies(
    runner: &mut Runner<'_>,
    workload: &Workload,
    duration: Nanos,
    pooled: &Trial,
    connections: &ConnectionUse,
) -> Result<Option<Overload>, Halt> {
    let Some((pool, without_pool)) = connections.pool().zip(connections.without_pool(runner.setup)) else {
        return Ok(None);
    };
    runner.begin("past saturation: without a connection pool".to_owned(), duration + duration);
    runner.bench.use_connections(without_pool)?;
    let unlimited = measure(runner, workload, duration)?;
    runner.bench.use_connections(pool)?;
    let pooled_again = measure(runner, workload, duration)?;
    if ![pooled, &unlimited, &pooled_again].iter().all(|trial| trial.not_client_limited()) {
        runner.note("this client could not compare the connection policies".to_owned());
        return Ok(None);
    }
    let completed = |trial: &Trial| trial.record.rates.completed;
    Ok(Some(Overload {
        offered: unlimited.record.rates.offered,
        pooled: f64::midpoint(completed(pooled), completed(&pooled_again)),
        pooled_difference: (completed(pooled) - completed(&pooled_again)).abs(),
        unlimited: completed(&unlimited),
        connections: unlimited.record.counts.established,
    }))
}

fn measure(runner: &mut Runner<'_>, workload: &Workload, duration: Nanos) -> Result<Trial, Halt> {
    let trial = runner.measure(workload, duration)?;
    runner.wait_for_recovery();
    runner.check(&trial)?;
    Ok(trial)
}
