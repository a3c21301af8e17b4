//! Options of calibration, and how classes that the runs cannot tell apart share the cost that is known of all of them.

use super::runs::Runs;
use crate::demand::{Resampling, attribute_by_share};

/// What the Records do not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CalibrateOptions {
    /// CPUs that the server can use at once, where they are fewer than were watched: one for a server of one worker.
    pub servers: Option<u32>,
    /// How classes that the runs cannot tell apart share their cost.
    pub attribution: Attribution,
    /// The bootstrap for the intervals.
    pub resampling: Resampling,
}

/// How classes share a cost that is only known for all of them together (Menascé et al., CMG 1999).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Attribution {
    /// Every request costs the same (their Eq. 4).
    #[default]
    Requests,
    /// In proportion to the bytes sent (their Eq. 2; what other classes cost is set aside, Eq. 3).
    Bytes,
}

/// The demand of each class over the joint demand of the classes that it is merged with.
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
