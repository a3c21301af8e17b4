//! Warms the server up before calibration. The first calls are often slower, because of just-in-time compilers and
//! caches. The warm-up offers short loads until the throughput is steady by the MSER-5 rule (White 1997).

use crate::connections::ConnectionUse;
use crate::runner::{Halt, Runner};
use crate::setup::{Setup, closed, times};
use brimful_core::Nanos;
use brimful_stats::truncation_point;

/// Duration of a slice (one of the short loads of the warm-up), in units of [`Setup::level_duration`].
const SLICE_DURATION: f64 = 0.25;
/// Number of slices (short loads) in a typical warm-up: the minimum for the test of whether the throughput is steady.
const TYPICAL_SLICES: u32 = 3;
/// Maximum number of slices (short loads) in a warm-up.
const MAX_SLICES: u32 = 20;
/// Number that is added to the seeds of the warm-up's loads. Their number depends on the server, so they must not
/// change the seeds of later loads.
const SEED_OFFSET: u64 = 1 << 33;

/// Warms the server up, and returns its final throughput in calls per second. Does nothing and returns `None` if the
/// survey limits its load even after calibration: then the server has other clients, which keep it warm.
pub(crate) fn warm_server_up(runner: &mut Runner<'_>, connections: &ConnectionUse) -> Result<Option<f64>, Halt> {
    let setup = runner.setup;
    if setup.impact_limits.applies_after_calibration {
        return Ok(None);
    }
    let workload = setup.workload_with(closed(connections.max_clients(setup)));
    runner.begin("a warm-up, until the throughput is steady".to_owned(), typical_duration(setup));
    let mut throughputs = Vec::new();
    let mut rate = 0.0;
    for slice in 0..MAX_SLICES {
        let seed = setup.seed.wrapping_add(SEED_OFFSET).wrapping_add(slice.into());
        let trial = runner.measure_with_seed(&workload, slice_length(setup), seed)?;
        runner.check(&trial)?;
        let record = &trial.record;
        rate = record.rates.completed;
        let intervals = record.intervals.iter().filter(|interval| interval.t_s + interval.length_s <= record.window_s);
        throughputs.extend(intervals.map(|interval| interval.completed as f64 / interval.length_s));
        if truncation_point(&throughputs).is_some() {
            return Ok(Some(rate));
        }
    }
    let length = times(f64::from(MAX_SLICES), slice_length(setup)).to_rounded_string();
    runner.note(format!("the server's throughput still changed after a warm-up of {length}"));
    Ok(Some(rate))
}

/// Duration of a typical warm-up; zero if the survey limits its load even after calibration.
pub(crate) fn typical_duration(setup: &Setup) -> Nanos {
    if setup.impact_limits.applies_after_calibration {
        Nanos::ZERO
    } else {
        times(f64::from(TYPICAL_SLICES), slice_length(setup))
    }
}

fn slice_length(setup: &Setup) -> Nanos {
    times(SLICE_DURATION, setup.level_duration)
}
