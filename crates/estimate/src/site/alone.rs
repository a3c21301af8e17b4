//! Demands of a request class from a run with only this class: busy time divided by completed requests (Eq. 1 of
//! Menascé et al., CMG 1999).

use crate::least_squares::t95;
use crate::window::{RunStretch, stretches, window_means};
use brimful_core::record::Record;
use brimful_model::Estimate;
use std::collections::BTreeMap;

/// Minimum number of short intervals of a run from which a confidence interval is computed.
const MIN_STRETCHES: usize = 3;

/// Demands from a run with only one request class.
#[derive(Clone, Debug, PartialEq)]
pub struct SingleClassDemands {
    /// Mean number of bytes received per request, including the response head; `None` if the Record has no bytes.
    pub mean_bytes: Option<f64>,
    /// CPU time per request, in seconds.
    pub cpu: Estimate,
    /// Busy time of each disk per request, in seconds, by the disk's name.
    pub disks: BTreeMap<String, Estimate>,
}

/// Computes the demands from a run with only one request class. The error states why the Record cannot be used.
pub fn measure_alone(record: &Record) -> Result<SingleClassDemands, String> {
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
    Ok(SingleClassDemands {
        mean_bytes: mean_bytes(record),
        cpu: Estimate { value: means.busy / means.rate, ci95_half_width: scatter },
        disks: disks.filter_map(disk).collect(),
    })
}

/// Half width of the 95 % confidence interval of the CPU time per call, from short intervals of the run (ratio
/// estimation: Cochran, *Sampling Techniques*, 1977, §6.3). `None` if there are too few intervals.
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
