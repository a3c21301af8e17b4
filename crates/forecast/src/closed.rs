//! Closed steps: the steps of a week or day in which nothing ever arrives, such as days on which a shop is closed, or
//! nights without visitors.
//!
//! A fitted season is added to the trend, so with a growing trend the sum cannot stay at zero. Therefore, closed steps
//! get interpolated values before the fit, and the forecast of a closed step is zero.

/// The closed steps of a period, such as the nights of a week: nothing ever arrives in these steps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClosedSteps {
    /// For each step of the period, whether it is closed; empty if no step is closed.
    is_closed_at: Vec<bool>,
    /// Number of steps in the longest shorter period that divides the period, such as a day in a week; if there is
    /// none, in the period itself.
    inner_period: usize,
}

/// Number of recent periods, such as weeks, that are examined for closed steps.
const RECENT_PERIODS: usize = 8;
/// Minimum number of periods in a history from which closed steps are inferred.
const MIN_PERIODS: usize = 3;
/// If at least this many periods are examined, a step with arrivals in only one of them counts as closed. An example is
/// a shop's sale on one Sunday.
const MIN_PERIODS_WITH_EXCEPTION: usize = 6;

impl ClosedSteps {
    /// Finds the closed steps of a series of rates. `periods` are possible lengths of the period, in steps. The longest
    /// of them that occurs at least [`MIN_PERIODS`] times in the series is used.
    pub(crate) fn find(rates: &[f64], periods: &[usize]) -> ClosedSteps {
        let mut periods: Vec<usize> =
            periods.iter().copied().filter(|period| *period > 1 && rates.len() / period >= MIN_PERIODS).collect();
        periods.sort_unstable();
        let Some(period) = periods.pop() else { return ClosedSteps::default() };
        let is_closed_at: Vec<bool> = (0..period).map(|index| is_closed(rates, index, period)).collect();
        let closed = is_closed_at.iter().filter(|closed| **closed).count();
        let inner_period = periods.iter().copied().rfind(|inner_period| period % inner_period == 0).unwrap_or(period);
        // If all steps of the period are closed, the rate is almost always zero. Then no step counts as closed.
        if closed == 0 || closed == period {
            ClosedSteps::default()
        } else {
            ClosedSteps { is_closed_at, inner_period }
        }
    }

    /// Whether the step at this index of the series is closed.
    pub(crate) fn contains(&self, index: usize) -> bool {
        !self.is_closed_at.is_empty() && self.is_closed_at[index % self.is_closed_at.len()]
    }

    /// The length of the period in steps, and the number of closed steps in each period. `None` if no step is closed.
    pub(crate) fn period_and_closed_count(&self) -> Option<(usize, usize)> {
        (!self.is_closed_at.is_empty())
            .then(|| (self.is_closed_at.len(), self.is_closed_at.iter().filter(|closed| **closed).count()))
    }

    /// The rates as if the site were never closed. The rate of a closed step is interpolated between the nearest open
    /// steps at the same position of the shorter period (`inner_period`), for example at the same hour of the nearest
    /// open days. If there are no such steps, it is interpolated between the nearest open steps at any position.
    pub(crate) fn opened(&self, rates: &[f64]) -> Vec<f64> {
        let mut opened = rates.to_vec();
        for index in (0..rates.len()).filter(|index| self.contains(*index)) {
            let as_on_other_days =
                self.interpolate(rates, index, self.inner_period, self.is_closed_at.len() / self.inner_period);
            let as_nearby = || self.interpolate(rates, index, 1, self.is_closed_at.len());
            opened[index] = as_on_other_days.or_else(as_nearby).unwrap_or_default();
        }
        opened
    }

    /// Interpolates between the nearest open steps before and after `index`. Considers only steps whose distance from
    /// `index` is a multiple of `step`, and at most `most` steps in each direction.
    fn interpolate(&self, rates: &[f64], index: usize, step: usize, most: usize) -> Option<f64> {
        let is_open = |at: &usize| *at < rates.len() && !self.contains(*at);
        let before = (1..=most).filter_map(|k| index.checked_sub(k * step)).find(is_open);
        let after = (1..=most).map(|k| index + k * step).find(is_open);
        let weight = |before: usize, after: usize| (index - before) as f64 / (after - before) as f64;
        match (before, after) {
            (Some(before), Some(after)) => Some(rates[before] + (rates[after] - rates[before]) * weight(before, after)),
            (one, other) => one.or(other).map(|at| rates[at]),
        }
    }
}

fn is_closed(rates: &[f64], index: usize, period: usize) -> bool {
    let seen: Vec<f64> = rates.iter().skip(index).step_by(period).copied().collect();
    let recent = &seen[seen.len().saturating_sub(RECENT_PERIODS)..];
    let open = recent.iter().filter(|rate| **rate > 0.0).count();
    recent.len() >= MIN_PERIODS && open <= usize::from(recent.len() >= MIN_PERIODS_WITH_EXCEPTION)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_that_are_always_zero_are_closed_and_filled_from_their_neighbours() {
        let rates: Vec<f64> = (0..28).map(|i| if i % 7 >= 5 { 0.0 } else { 10.0 + f64::from(i) }).collect();
        let closed = ClosedSteps::find(&rates, &[7]);
        assert_eq!(closed.period_and_closed_count(), Some((7, 2)));
        assert!(closed.contains(5) && closed.contains(34) && !closed.contains(28));
        let opened = closed.opened(&rates);
        assert_eq!(opened[4..8], [14.0, 15.0, 16.0, 17.0]);
        assert_eq!(opened[24..], [34.0, 35.0, 35.0, 35.0]);
    }

    #[test]
    fn an_outage_a_constant_and_a_low_rate_are_not_closed() {
        let mut rates = vec![5.0; 70];
        rates[30] = 0.0;
        assert_eq!(ClosedSteps::find(&rates, &[7]), ClosedSteps::default());
        assert_eq!(ClosedSteps::find(&[0.0; 70], &[7]), ClosedSteps::default());
        assert_eq!(
            ClosedSteps::find(&[0.0, 1.0].repeat(7), &[7]),
            ClosedSteps::default(),
            "two periods must be too few"
        );
        let mut sundays: Vec<f64> = (0..70).map(|i| f64::from(u8::from(i % 7 != 6))).collect();
        sundays[41] = 9.0;
        assert_eq!(
            ClosedSteps::find(&sundays, &[7]).period_and_closed_count(),
            Some((7, 1)),
            "one Sunday with arrivals must not hide the closed days"
        );
        sundays[48] = 9.0;
        assert_eq!(ClosedSteps::find(&sundays, &[7]), ClosedSteps::default());
    }
}
