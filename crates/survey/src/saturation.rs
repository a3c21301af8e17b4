//! Measures the server's capacity with a closed load.

use crate::baseline::ClientLimit;
use crate::calibration::{Calibration, check_not_too_many_clients};
use crate::level::LevelContext;
use crate::predicted::Predictions;
use crate::runner::{Halt, Runner};
use crate::setup::closed;
use brimful_core::Nanos;
use brimful_target::ReferenceCpuTimes;

/// The measured capacity of the server.
#[derive(Debug)]
pub(crate) struct Saturation {
    /// Calls completed per second under the closed load.
    pub rate: f64,
    /// Half width of the 95 % confidence interval of `rate`.
    pub ci95_half_width: Option<f64>,
    /// Speed of the host during the closed load, relative to its speed during calibration.
    pub host_speed: Option<f64>,
    /// The CPU time that the reference server reported before and after the closed load.
    pub reference_cpu_times: Option<(ReferenceCpuTimes, ReferenceCpuTimes)>,
}

/// Measures the capacity with a closed load. It has the largest number of clients that calibration used, which
/// saturates the server without overloading it. Returns `None` if the measurement is not valid.
pub(crate) fn measure_saturation(
    runner: &mut Runner<'_>,
    calibration: &Calibration,
    client: &ClientLimit,
    predictions: &Predictions,
) -> Result<Option<Saturation>, Halt> {
    let capacity = predictions.saturation;
    let duration = predictions.saturation_level_duration;
    runner.begin("saturation".to_owned(), duration);
    client.check(runner, capacity, capacity)?;
    let workload = runner.setup.workload_with(closed(calibration.anchor.clients));
    let prediction = calibration.fit.predict(1.001 * capacity)?;
    let ((trial, reference_cpu_times), host_speed) =
        calibration.anchor.measure_between_anchors(runner, duration, |runner| {
            let before = runner.bench.reference_cpu_times();
            let trial = runner.measure_level(&workload, duration)?;
            let after = runner.bench.reference_cpu_times();
            Ok((trial, before.zip(after)))
        })?;
    let context = LevelContext::past_saturation(capacity, &prediction, host_speed);
    runner.record_level(&trial, &workload, &context)?;
    let record = &trial.record;
    Ok(record.verdict.valid.then_some(Saturation {
        rate: record.rates.completed,
        ci95_half_width: record.reply_rate.ci95_half_width,
        host_speed: host_speed.mean,
        reference_cpu_times,
    }))
}

/// Notes that the capacity is not measured, because calibration could not saturate the server.
pub(crate) fn leave_out_saturation(
    runner: &mut Runner<'_>,
    calibration: &Calibration,
    client: &ClientLimit,
    capacity: f64,
) -> Result<(), Halt> {
    runner.begin("saturation".to_owned(), Nanos::ZERO);
    client.check(runner, capacity, capacity)?;
    check_not_too_many_clients(runner, calibration.overloading_clients)?;
    let clients = calibration.anchor.clients;
    runner.note(format!(
        "the capacity itself is not measured, because the permitted {clients} clients do not saturate the server"
    ));
    Ok(())
}
