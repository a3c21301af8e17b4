//! Options of calibration, and rules for sharing a joint cost among classes that the runs cannot distinguish.

use super::runs::Runs;
use crate::demand::{Resampling, attribute_by_share};

/// Facts and choices that are not in the Records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CalibrateOptions {
    /// Number of CPUs that the server can use at once, if it is less than the number of watched CPUs: 1 for a server
    /// with one worker.
    pub servers: Option<u32>,
    /// The rule by which classes that the runs cannot distinguish share their cost.
    pub attribution: Attribution,
    /// Parameters of the bootstrap for the intervals.
    pub resampling: Resampling,
}

/// A rule by which classes share a cost that is only known for all of them together (equations of Menascé et al., CMG
/// 1999).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Attribution {
    /// Every request costs the same (Eq. 4).
    #[default]
    Requests,
    /// The cost is in proportion to the bytes sent (Eq. 2). The known cost of other classes is subtracted first (Eq.
    /// 3).
    Bytes,
}

/// The ratio of the demand of each class to the joint demand of the classes that it is merged with.
pub(super) fn factors(
    runs: &Runs,
    merged: &[Vec<usize>],
    attribution: Attribution,
    warnings: &mut Vec<String>,
) -> Vec<f64> {
    let mut factors = vec![1.0; runs.classes.len()];
    for group in merged.iter().filter(|_| attribution == Attribution::Bytes) {
        let completed: Vec<f64> = group.iter().map(|class| runs.completed(*class)).collect();
        let bytes: Option<Vec<f64>> = group.iter().zip(&completed).map(|(c, n)| Some(runs.size(*c)? * n)).collect();
        let sent = bytes.as_ref().map_or(0.0, |b| b.iter().sum());
        let shares: Vec<f64> = bytes.iter().flatten().map(|b| b / sent).collect();
        match attribute_by_share(completed.iter().sum(), &completed, &shares, &vec![None; group.len()]) {
            Ok(by_bytes) => group.iter().zip(by_bytes).for_each(|(class, factor)| factors[*class] = factor),
            Err(_) => warnings.push(
                "the Records do not say how many bytes each class received, so every request is charged alike: measure \
                 again with this version"
                    .into(),
            ),
        }
    }
    factors
}
