//! Observations of a station: the data to which the utilization law is fitted.

use crate::EstimateError;
use brimful_core::number::check_non_negative;

/// Throughput and number of busy servers of one station during one measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    /// Throughput of each class, in requests per second.
    pub throughput: Vec<f64>,
    /// Mean number of busy servers: the station's utilization × its number of servers.
    pub busy: f64,
    /// Relative weight of the observation, such as its duration or the inverse of its variance. An observation of
    /// weight 0 is not used.
    pub weight: f64,
}

impl Observation {
    /// Creates an observation from a measurement of this many seconds. Its weight is the inverse of the variance of
    /// `busy`, which grows with the load and falls with the duration.
    pub fn from_interval(seconds: f64, throughput: Vec<f64>, busy: f64) -> Self {
        Self { throughput, busy, weight: seconds / busy.max(1e-3) }
    }
}

/// The mean number of servers that background work keeps busy, which is work that requests do not cause.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Background {
    /// The number is unknown and is fitted together with the demands.
    Fitted,
    /// The number was measured on the server without load.
    Known(f64),
}

/// The observations with a positive weight. The others are not used.
pub(crate) fn counted(observations: &[Observation]) -> Vec<&Observation> {
    observations.iter().filter(|o| o.weight > 0.0).collect()
}

/// Returns an error unless every observation has one throughput for each class, and only valid numbers.
pub(crate) fn check(classes: usize, observations: &[Observation], background: Background) -> Result<(), EstimateError> {
    if classes == 0 {
        return Err(EstimateError::Inconsistent("there is no class whose demand to fit".into()));
    }
    if let Background::Known(busy) = background {
        check_non_negative(busy, || "the known background".into())?;
    }
    for (i, o) in observations.iter().enumerate() {
        if o.throughput.len() != classes {
            let given = o.throughput.len();
            return Err(EstimateError::Inconsistent(format!(
                "observation {i} has {given} throughputs for {classes} classes"
            )));
        }
        for x in &o.throughput {
            check_non_negative(*x, || format!("a throughput of observation {i}"))?;
        }
        check_non_negative(o.busy, || format!("the busy servers of observation {i}"))?;
        check_non_negative(o.weight, || format!("the weight of observation {i}"))?;
    }
    Ok(())
}
