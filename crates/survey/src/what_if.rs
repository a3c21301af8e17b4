//! Measures the effect of a change of the server («what if»): the effect is predicted, then the change is made,
//! measured and undone. So the model's prediction can be compared with the measurement.

use crate::calibration::Calibration;
use crate::level::LevelContext;
use crate::runner::{Halt, Runner};
use crate::setup::{Change, Setup, closed, times};
use brimful_core::quantity;
use brimful_core::record::{ReasonCode, Verdict};
use brimful_core::survey::{Comparison, Level, WhatIf};
use brimful_core::workload::{Load, Workload};
use brimful_core::{Nanos, Rate};
use brimful_estimate::{MeasurementTime, Quota, QuotaPrediction};
use brimful_monitor::quota_period_s;

/// Duration of each of the two loads that measure a change of the server, in units of `--level`.
pub(crate) const LOAD_DURATION: f64 = 0.5;
/// Rate of the open load that measures the mean response time, as a share of the predicted capacity.
const OPEN_LOAD_RATE: f64 = 0.5;

/// Makes and undoes the change before all measurements, to test whether the host permits it. Returns the change to
/// measure at the end of the survey; `None` if no change is planned, or if the host does not permit an optional change.
pub(crate) fn try_change(runner: &mut Runner<'_>) -> Result<Option<Change>, Halt> {
    let Some(planned) = runner.setup.change else { return Ok(None) };
    let change = planned.change;
    let quota = quota(runner.setup, change);
    match runner.bench.set_cpu_quota(Some(quota.servers)).and_then(|()| runner.bench.set_cpu_quota(None)) {
        Ok(()) => Ok(Some(change)),
        Err(error) if planned.optional => {
            runner.note(format!("left out in the end: what if {change}: {error}"));
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

/// Predicts the effect of the change, makes it, measures it, and undoes it even if a measurement fails. `ahead` is the
/// time from the end of calibration to the end of the predicted load levels. The change is made somewhat later, after
/// the search for objectives and the comparison of connection policies.
pub(crate) fn measure_change(
    runner: &mut Runner<'_>,
    calibration: &Calibration,
    change: Change,
    ahead: Nanos,
) -> Result<WhatIf, Halt> {
    let setup = runner.setup;
    let quota = quota(setup, change);
    let duration = times(LOAD_DURATION, setup.level_duration);
    let time = MeasurementTime { ahead_s: ahead.as_secs_f64(), seconds: duration.as_secs_f64() };
    let predicted = calibration.fit.with_quota(quota, time);
    let rate = OPEN_LOAD_RATE * predicted.saturation;
    let predicted_response = calibration.fit.response_with_quota(quota, rate, setup.seed)?;
    runner.note(format!(
        "predicted, what if {change}: the capacity is {}, and a call takes {} on average at half of that",
        quantity::rate(predicted.saturation),
        predicted_response.map_or("-".to_owned(), |seconds| Nanos::from_secs_f64(seconds).to_rounded_string())
    ));
    runner.begin(format!("what if {change}"), duration + duration);
    let closed = setup.workload_with(closed(calibration.anchor.clients));
    let open = setup.workload_with(Load::poisson(Rate(rate)));
    let ((closed, open), host_speed) = calibration.anchor.measure_between_anchors(runner, duration, |runner| {
        runner.bench.set_cpu_quota(Some(quota.servers))?;
        let levels = runner.under_own_quota(|runner| {
            let closed = measure_under_quota(runner, &closed, duration)?;
            let open = measure_under_quota(runner, &open, duration)?;
            Ok((closed, open))
        });
        runner.bench.set_cpu_quota(None)?;
        levels
    })?;
    Ok(compare(
        &Prediction { change, quota, limited: predicted, rate, response: predicted_response },
        &closed,
        &open,
        host_speed.mean,
    ))
}

fn quota(setup: &Setup, Change::Quota(share): Change) -> Quota {
    let servers = share * f64::from(setup.servers());
    Quota { servers, period_s: quota_period_s(servers) }
}

/// Measures a load under the survey's own CPU quota. A server that this quota stops is no reason to distrust the
/// measurement.
fn measure_under_quota(runner: &mut Runner<'_>, workload: &Workload, duration: Nanos) -> Result<Level, Halt> {
    let trial = runner.measure(workload, duration)?;
    runner.check(&trial)?;
    let mut level = LevelContext::calibration("mix", 1.0).level(&trial, workload, runner.setup.servers());
    level.verdict.reasons.retain(|reason| reason.code != ReasonCode::Throttled);
    level.verdict = Verdict::from_reasons(level.verdict.reasons);
    Ok(level)
}

/// The predicted effect of a change of the server.
struct Prediction {
    change: Change,
    quota: Quota,
    limited: QuotaPrediction,
    /// Rate of the open load, in calls per second.
    rate: f64,
    response: Option<f64>,
}

fn compare(prediction: &Prediction, closed: &Level, open: &Level, host_speed: Option<f64>) -> WhatIf {
    let beside = |predicted: Option<f64>, measured: Comparison| Comparison {
        measured_ci95_half_width: measured.measured_ci95_half_width,
        ..Comparison::new(predicted, measured.measured)
    };
    let limited = &prediction.limited;
    let capacity = Comparison {
        interval90: limited.saturation_interval.map(|spread| spread.interval90),
        ..beside(Some(limited.saturation), closed.throughput)
    };
    let reasons = [closed, open].into_iter().flat_map(|level| level.verdict.reasons.clone()).collect();
    WhatIf {
        change: prediction.change.to_string(),
        cpus: prediction.quota.servers,
        period_s: prediction.quota.period_s,
        saturation_rate: capacity.with_host_prediction(host_speed.map(|speed| limited.saturation * speed)),
        utilization: beside(closed.utilization.measured.map(|_| limited.utilization), closed.utilization),
        offered: prediction.rate,
        response_time_s: beside(prediction.response, open.response_time_s),
        host_speed,
        verdict: Verdict::from_reasons(reasons),
    }
}
