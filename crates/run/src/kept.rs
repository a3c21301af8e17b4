//! The Record of a run that is not over, for those who keep it in case its process is lost.

use crate::RunPlan;
use brimful_core::Nanos;
use brimful_core::record::{Generator, Record, ShardOrigin};
use brimful_os::clock;
use brimful_stats::{Account, Facts, derive};
use std::time::{Duration, SystemTime};

/// What the run of this plan has seen so far, as its Record would be if it were lost now: its shard says so, and what is
/// known only at the end is absent. `None` without a keeper, and before there is anything.
pub fn record_so_far(plan: &RunPlan) -> Option<Record> {
    let keeper = plan.keeper.as_ref()?;
    // What they hand over when they are asked.
    keeper.collect().ok()?;
    keeper.so_far(|account, at| record_at(plan, account, at))?
}

/// Of what was seen until then.
fn record_at(plan: &RunPlan, account: &Account, at: Nanos) -> Option<Record> {
    let started = plan.start_at.or(SystemTime::now().checked_sub(Duration::from_nanos(at.0)))?;
    let facts = Facts {
        started_at: plan.by_the_fleets_clock(started),
        started_monotonic_ns: clock::of_wall(started).0,
        duration: at,
        window: at.min(plan.window),
        command: plan.command.clone(),
        target: plan.endpoint.url.clone(),
        workload: Some(plan.workload.clone().without_secrets(&plan.secret_headers)),
        seed: plan.seed,
        tls: plan.tls_spoken.clone(),
        http: Some(plan.http().to_owned()),
        generator: Generator {
            threads: plan.threads,
            tick_s: plan.tick.map(Nanos::as_secs_f64),
            max_rate: plan.client_max,
            ..Generator::default()
        },
        shards: plan
            .origin()
            .map(|origin| ShardOrigin { lost_at_s: Some(at.as_secs_f64()), ..origin })
            .into_iter()
            .collect(),
        // For a shard, `lost_at_s` says the same.
        interrupted: plan.origin().is_none(),
        ..Facts::default()
    };
    Some(derive(account, facts))
}
