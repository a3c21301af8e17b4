//! Options of calibration, and rules that divide a joint cost among request classes that the runs cannot distinguish.

use super::runs::Runs;
use crate::demand::{Resampling, attribute_by_share};

/// Options of calibration: facts about the server and choices of the user that are not in the Records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CalibrateOptions {
    /// Number of CPUs that the server can use at once, such as 1 for a server with one worker. `None` if it can use all
    /// CPUs that were monitored.
    pub servers: Option<u32>,
    /// The rule that divides the cost of request classes that the runs cannot distinguish.
    pub attribution: Attribution,
    /// Number of draws and seed of the bootstrap, which computes confidence intervals.
    pub resampling: Resampling,
}

/// A rule that divides the joint cost of several request classes among them (Menascé, Peraino, Dinh & Dinh, CMG 1999).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Attribution {
    /// Every request has the same cost (Eq. 4 of the paper).
    #[default]
    Requests,
    /// The cost of a request is proportional to the bytes of its response (Eq. 2 of the paper).
    Bytes,
}

/// For each class, the ratio of its demand to the joint demand of the classes that the runs cannot distinguish from it.
/// The ratio is 1 for other classes. `merged` contains the groups of such classes.
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
