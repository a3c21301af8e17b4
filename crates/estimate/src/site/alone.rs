//! The demand of a class from a run of this class alone, as Eq. 1 of Menascé et al. (CMG 1999): busy time divided by
//! completions. No rule is needed.

use crate::least_squares::t95;
use crate::window::{RunStretch, stretches, window_means};
use brimful_core::record::Record;
use brimful_model::Estimate;
use std::collections::BTreeMap;

/// Minimum number of stretches (short intervals) of a run from which a confidence interval can be estimated.
const MIN_STRETCHES: usize = 3;

/// Measurements of a run of one class alone.
#[derive(Clone, Debug, PartialEq)]
pub struct AloneRun {
    /// Mean bytes received for a request, including the head of the response; `None` if the Record has no bytes.
    pub mean_bytes: Option<f64>,
    /// CPU time of a request, in seconds.
    pub cpu: Estimate,
    /// Busy time of each disk for a request, in seconds.
    pub disks: BTreeMap<String, Estimate>,
}

/// Computes the measurements of a run of one class alone. The error says what is missing in the Record.
pub fn measure_alone(record: &Record) -> Result<AloneRun, String> {
    let by_process = window_means(record, true);
    let means = by_process.or_else(|| window_means(record, false)).ok_or(
        "it has no CPU time of the server: watch the server during the run, with `brimful load --watch --out FILE`",
    )?;
    if means.rate <= 0.0 {
        return Err("no request was completed in it".to_owned());
    }
    let scatter = by_process.and_then(|_| half_width(&stretches(record, 0.0)?));
    let disks = record.server.iter().flat_map(|server| &server.kernel.disks);
    let disk = |(name, disk): (&String, &brimful_core::server::Disk)| {
        let demand = Estimate { value: disk.utilization / means.rate, ci95_half_width: None };
        Some((name.clone(), demand)).filter(|_| disk.utilization.is_finite())
    };
    Ok(AloneRun {
        mean_bytes: mean_bytes(record),
        cpu: Estimate { value: means.busy / means.rate, ci95_half_width: scatter },
        disks: disks.filter_map(disk).collect(),
    })
}

/// Half width of the 95 % interval of the ratio of work to calls, from stretches of the run (Cochran, *Sampling
/// Techniques*, 1977, §6.3). `None` if there are too few stretches.
fn half_width(stretches: &[RunStretch]) -> Option<f64> {
    let n = stretches.len();
    if n < MIN_STRETCHES {
        return None;
    }
    let work: f64 = stretches.iter().map(|stretch| stretch.work).sum();
    let calls: f64 = stretches.iter().map(|stretch| stretch.calls).sum();
    let squares: f64 = stretches.iter().map(|stretch| (stretch.work - work / calls * stretch.calls).powi(2)).sum();
    (calls > 0.0).then(|| t95(n - 1) * (squares * n as f64 / (n - 1) as f64).sqrt() / calls)
}

fn mean_bytes(record: &Record) -> Option<f64> {
    let completed = record.counts.completed;
    (completed > 0 && record.bytes.received > 0).then(|| record.bytes.received as f64 / completed as f64)
}
