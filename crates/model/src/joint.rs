//! Classes whose demands are known only jointly ([`JointDemand`]).
//!
//! If some classes always occurred in the same proportions while they were measured, the measurement yields only the
//! mean demand of their requests together. The demand of a single class may be any value from 0 to the whole joint
//! demand. So it is an error if the result of a model depends on how the classes share the joint demand.

use crate::ModelError;
use brimful_core::model::{ClassKind, JointDemand, Model, ModelClass, Scheduling};
use brimful_core::quantity::percent;

/// Two proportions of classes count as equal if they differ by at most this share.
const MAX_CHANGE: f64 = 0.01;

/// Returns an error if classes with a joint demand are closed, are sent in other proportions than measured, or differ
/// in priority where priorities matter.
pub(crate) fn check(model: &Model) -> Result<(), ModelError> {
    model.joint_demands.iter().try_for_each(|joint| {
        let (k, classes) = indices(joint, model)?;
        let members: Vec<&ModelClass> = classes.iter().map(|c| &model.classes[*c]).collect();
        let rates: Vec<f64> = members.iter().map(|class| class.rate.unwrap_or(0.0)).collect();
        let total: f64 = rates.iter().sum();
        let moved = |(rate, share): (&f64, &f64)| (rate / total - share).abs() > MAX_CHANGE * share.max(rate / total);
        let by_priority = matches!(model.stations[k].scheduling, Scheduling::Priority | Scheduling::Preemptive);
        let parted = members.iter().any(|class| class.kind == ClassKind::Closed)
            || total > 0.0 && rates.iter().zip(&joint.shares).any(moved)
            || by_priority && members.iter().any(|class| class.priority != members[0].priority);
        if parted { Err(changed_shares_error(joint)) } else { Ok(()) }
    })
}

/// Returns the index of the joint demand's station, and the indices of the classes whose demand it is.
pub(crate) fn indices(joint: &JointDemand, model: &Model) -> Result<(usize, Vec<usize>), ModelError> {
    let station = model.stations.iter().position(|station| station.name == joint.station);
    let class = |name: &String| model.classes.iter().position(|class| class.name == *name);
    let classes: Option<Vec<usize>> = joint.classes.iter().map(class).collect();
    let sums_to_one =
        (joint.shares.iter().sum::<f64>() - 1.0).abs() < 1e-6 && joint.shares.iter().all(|share| *share >= 0.0);
    match (station, classes) {
        (Some(k), Some(classes)) if sums_to_one && classes.len() > 1 && classes.len() == joint.shares.len() => Ok((k, classes)),
        _ => Err(ModelError::Inconsistent(
            "joint_demands needs the name of a station, the names of two or more classes, and a share for each that together \
             make 1"
                .into(),
        )),
    }
}

/// The error that the proportions of classes with a joint demand differ from the measured proportions.
pub(crate) fn changed_shares_error(joint: &JointDemand) -> ModelError {
    let share = |(class, share): (&String, &f64)| format!("`{class}` {}", percent(*share));
    ModelError::ChangedJointShares {
        station: joint.station.clone(),
        classes: joint.classes.iter().zip(&joint.shares).map(share).collect::<Vec<_>>().join(", "),
        example: joint.classes.first().cloned().unwrap_or_default(),
    }
}
