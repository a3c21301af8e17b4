//! Warms the server up before it is calibrated. Compilers at run time and caches make the first calls of a server slower
//! than the later ones. The server serves slices of a load until its throughput is steady (MSER-5, White 1997).

use crate::connections::ConnectionUse;
use crate::runner::{Halt, Runner};
use crate::setup::{Setup, closed, times};
use brimful_core::Nanos;
use brimful_stats::truncation_point;

/// Length of a slice (a short load of the warm-up), in units of [`Setup::level`].
const SLICE: f64 = 0.25;
/// Number of slices of a typical warm-up: the minimum after which a throughput can be judged steady.
const TYPICAL_SLICES: u32 = 3;
const MAX_SLICES: u32 = 20;
/// Offset of the slices' seeds. The number of slices depends on the server's throughput, so the slices do not use the
/// seeds of the later loads: the same `--seed` repeats the schedules of these loads.
const SEEDS: u64 = 1 << 33;

/// Warms the server up. Returns its throughput at the end, in calls per second. Returns `None` if the whole survey must
/// be gentle: such a survey does not warm the server up, because the server's other users keep it warm.
pub(crate) fn warm_server_up(runner: &mut Runner<'_>, connections: &ConnectionUse) -> Result<Option<f64>, Halt> {
    let setup = runner.setup;
    if setup.impact_limits.after_calibration {
        return Ok(None);
    }
    let workload = setup.workload_with(closed(connections.max_clients(setup)));
    runner.begin("a warm-up, until the throughput is steady".to_owned(), typical_duration(setup));
    let mut throughputs = Vec::new();
    let mut rate = 0.0;
    for slice in 0..MAX_SLICES {
        let seed = setup.seed.wrapping_add(SEEDS).wrapping_add(slice.into());
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

pub(crate) fn typical_duration(setup: &Setup) -> Nanos {
    if setup.impact_limits.after_calibration {
        Nanos::ZERO
    } else {
        times(f64::from(TYPICAL_SLICES), slice_length(setup))
    }
}

fn slice_length(setup: &Setup) -> Nanos {
    times(SLICE, setup.level)
}
