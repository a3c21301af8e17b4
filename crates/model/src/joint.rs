//! Classes whose demands are known only together ([`JointDemand`]): nothing may part them.
//!
//! Of classes that always came in the same proportions, only the demand of their mean request is known: each demand may
//! be anything between 0 and all of it. So whatever depends on how it is shared is refused.

use crate::ModelError;
use brimful_core::model::{ClassKind, JointDemand, Model, ModelClass, Scheduling};
use brimful_core::quantity::percent;

/// Shares that differ by less than this part of themselves are the same.
const ALIKE: f64 = 0.01;

/// An error if the rates, or priorities, of a model part such classes.
pub(crate) fn check(model: &Model) -> Result<(), ModelError> {
    model.joint_demands.iter().try_for_each(|joint| {
        let (k, classes) = indices(joint, model)?;
        let members: Vec<&ModelClass> = classes.iter().map(|c| &model.classes[*c]).collect();
        let rates: Vec<f64> = members.iter().map(|class| class.rate.unwrap_or(0.0)).collect();
        let total: f64 = rates.iter().sum();
        let moved = |(rate, share): (&f64, &f64)| (rate / total - share).abs() > ALIKE * share.max(rate / total);
        let by_priority = matches!(model.stations[k].scheduling, Scheduling::Priority | Scheduling::Preemptive);
        let parted = members.iter().any(|class| class.kind == ClassKind::Closed)
            || total > 0.0 && rates.iter().zip(&joint.shares).any(moved)
            || by_priority && members.iter().any(|class| class.priority != members[0].priority);
        if parted { Err(error(joint)) } else { Ok(()) }
    })
}

/// Which station and classes it is about.
pub(crate) fn indices(joint: &JointDemand, model: &Model) -> Result<(usize, Vec<usize>), ModelError> {
    let station = model.stations.iter().position(|station| station.name == joint.station);
    let class = |name: &String| model.classes.iter().position(|class| class.name == *name);
    let classes: Option<Vec<usize>> = joint.classes.iter().map(class).collect();
    let whole = (joint.shares.iter().sum::<f64>() - 1.0).abs() < 1e-6 && joint.shares.iter().all(|share| *share >= 0.0);
    match (station, classes) {
        (Some(k), Some(classes)) if whole && classes.len() > 1 && classes.len() == joint.shares.len() => Ok((k, classes)),
        _ => Err(ModelError::Shape(
            "joint_demands needs the name of a station, the names of two or more classes, and a share for each that together \
             make 1"
                .into(),
        )),
    }
}

pub(crate) fn error(joint: &JointDemand) -> ModelError {
    let share = |(class, share): (&String, &f64)| format!("`{class}` {}", percent(*share));
    ModelError::Parted {
        station: joint.station.clone(),
        classes: joint.classes.iter().zip(&joint.shares).map(share).collect::<Vec<_>>().join(", "),
        example: joint.classes.first().cloned().unwrap_or_default(),
    }
}
