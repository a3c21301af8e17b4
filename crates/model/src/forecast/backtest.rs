//! How good a forecast would have been: the method applied to beginnings of the history, judged by what followed
//! (rolling origin; Hyndman & Athanasopoulos, *Forecasting: Principles and Practice*, 2021, §5.10).

use super::fit::Fitted;
use super::{Backtest, How};

/// Origins, at most.
const ORIGINS: usize = 10;

/// Intervals are not widened more than this: what is worse comes from a break in the history and says little of what
/// followed it.
pub(super) const WIDEST: f64 = 2.0;

/// What a back-test found.
pub(super) struct Judged {
    pub report: Backtest,
    /// By how much intervals must be wider for those of 80 % to hold 80 %, 1 to [`WIDEST`].
    pub widening: f64,
}

/// Forecasts from up to ten origins in the second half of the history; nothing if that is too short.
pub(super) fn backtest(values: &[f64], how: How<'_>, horizon: usize) -> Option<Judged> {
    let n = values.len();
    let horizon = horizon.min(n / 4);
    let (first, last) = ((n / 2).max(super::MINIMUM), n - horizon);
    if horizon == 0 || first > last {
        return None;
    }
    let count = ORIGINS.min(last - first + 1);
    let origins = (0..count).map(|i| if count == 1 { last } else { first + i * (last - first) / (count - 1) });
    let (mut ratios, mut within80, mut within95, mut absolute, mut scales) = (Vec::new(), 0, 0, 0.0, 0.0);
    for origin in origins {
        let (past, future) = (&values[..origin], &values[origin..origin + horizon]);
        let fitted = Fitted::new(past, how);
        scales += fitted.naive_error(past) * horizon as f64;
        let (t80, t95) = fitted.quantiles();
        for ((location, sd), &actual) in fitted.predict(horizon).into_iter().zip(future) {
            let off = (fitted.scale.of(actual) - location).abs();
            within80 += usize::from(off <= t80 * sd);
            within95 += usize::from(off <= t95 * sd);
            absolute += (fitted.scale.back(location) - actual).abs();
            ratios.push(if off == 0.0 { 0.0 } else { off / (t80 * sd) });
        }
    }
    let total = ratios.len();
    let share = |count: usize| count as f64 / total as f64;
    ratios.sort_by(f64::total_cmp);
    let widening = ratios[(total * 4).div_ceil(5) - 1];
    Some(Judged {
        report: Backtest {
            origins: count,
            horizon_steps: horizon,
            coverage80: share(within80),
            coverage95: share(within95),
            mase: (scales > 0.0).then(|| absolute / scales),
        },
        widening: widening.clamp(1.0, WIDEST),
    })
}
