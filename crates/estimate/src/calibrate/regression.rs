//! Regression over the runs, of the number of busy CPUs or of the utilization of a disk. The law has as many unknowns
//! as the runs can determine.

use super::runs::{LeftOut, Run, Runs};
use crate::EstimateError;
use crate::demand::collinear::COLLINEAR;
use crate::demand::law::UtilizationLaw;
use crate::demand::{Background, DemandFit, Observation, check, counted};

/// One observation for each run: its throughput and its number of busy CPUs.
pub(super) fn observe(runs: &[Run]) -> Vec<Observation> {
    runs.iter().map(|run| run.observe(run.busy)).collect()
}

/// Fits a utilization law for one station. If `idle` (the mean number of busy servers without load) is given, it is the
/// background. Otherwise the background is fitted if the runs determine it, and is 0 if they do not.
///
/// `known` is the known part of each class's demand. With `known`, or with fewer runs than classes, only one demand is
/// fitted, which all classes have in common.
pub(super) fn regress(
    classes: usize,
    observations: &[Observation],
    idle: Option<f64>,
    known: Option<&[f64]>,
) -> Result<(UtilizationLaw, DemandFit), EstimateError> {
    check(classes, observations, Background::Known(idle.unwrap_or(0.0)))?;
    let counted = counted(observations);
    let law_with = |background| match known {
        Some(known) => Ok(UtilizationLaw::with_shared_unknown(known.to_vec(), background)),
        None => UtilizationLaw::with_unknown_per_class(classes, &counted, background),
    };
    let fit = |law: UtilizationLaw| law.fit(&counted).map(|fit| (law, fit));
    if idle.is_none()
        && let Ok((law, fit)) = law_with(Background::Fitted).and_then(fit)
        && fit.condition_number <= COLLINEAR
    {
        return Ok((law, fit));
    }
    let background = Background::Known(idle.unwrap_or(0.0));
    match law_with(background) {
        Err(EstimateError::TooFewObservations { .. }) if classes > 1 => {
            fit(UtilizationLaw::with_shared_unknown(vec![0.0; classes], background))
        }
        law => fit(law?),
    }
}

/// Fits the CPU demands to the runs with steady arrivals only, if these determine as many unknowns as all runs do. The
/// runs with bursty arrivals are then used only to measure the effect of bursts.
pub(super) fn regress_steady_runs(
    runs: &mut Runs,
    known: Option<&[f64]>,
) -> Result<(UtilizationLaw, DemandFit), EstimateError> {
    let classes = runs.classes.len();
    let of_all = regress(classes, &observe(&runs.used), runs.idle.busy, known)?;
    let (bursty, steady): (Vec<Run>, Vec<Run>) = std::mem::take(&mut runs.used).into_iter().partition(Run::is_bursty);
    let of_steady = regress(classes, &observe(&steady), runs.idle.busy, known);
    match of_steady {
        Ok(of_steady)
            if !bursty.is_empty()
                && of_steady.1.indistinguishable_classes == of_all.1.indistinguishable_classes
                && of_steady.1.degrees_of_freedom > 0 =>
        {
            let reason = "its arrivals came in bursts. The steady runs give the demands, and this run the additional cost of bursts";
            runs.left_out.extend(bursty.iter().map(|run| LeftOut { record: run.record, reason: reason.into() }));
            runs.left_out.sort_by_key(|left_out| left_out.record);
            runs.used = steady;
            runs.bursty_runs = bursty;
            Ok(of_steady)
        }
        _ => {
            runs.used = bursty.into_iter().chain(steady).collect();
            runs.used.sort_by_key(|run| run.record);
            Ok(of_all)
        }
    }
}
