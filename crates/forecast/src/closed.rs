//! Steps at which nothing ever arrives: closed days, or nights without a visitor.
//!
//! A season that adds to a growing trend cannot stay at zero. So such steps are left out: they are fitted as if they
//! were open, by the line between their neighbours, and forecast as zero.

/// Which steps are closed, by their place in a period.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Closed {
    /// By index in the period; empty where no step is closed.
    places: Vec<bool>,
    /// A period that is part of this one, such as the day of a week; else the period itself.
    part: usize,
}

/// The last periods that are looked at.
const RECENT: usize = 8;
/// Periods that it takes.
const FEWEST: usize = 3;
/// Number of periods from which one exception is allowed, such as a sale on a Sunday.
const WITH_EXCEPTION: usize = 6;

impl Closed {
    /// Finds them in rates that may have these periods; the longest one that has been seen often enough decides.
    pub(crate) fn find(rates: &[f64], periods: &[usize]) -> Closed {
        let mut periods: Vec<usize> =
            periods.iter().copied().filter(|period| *period > 1 && rates.len() / period >= FEWEST).collect();
        periods.sort_unstable();
        let Some(period) = periods.pop() else { return Closed::default() };
        let places: Vec<bool> = (0..period).map(|place| is_closed(rates, place, period)).collect();
        let closed = places.iter().filter(|closed| **closed).count();
        // Where nothing arrives at any time, zero is the level.
        let part = periods.iter().copied().rfind(|part| period % part == 0).unwrap_or(period);
        if closed == 0 || closed == period { Closed::default() } else { Closed { places, part } }
    }

    /// Whether this step is closed.
    pub(crate) fn at(&self, index: usize) -> bool {
        !self.places.is_empty() && self.places[index % self.places.len()]
    }

    /// The period and how many of its steps are closed.
    pub(crate) fn share(&self) -> Option<(usize, usize)> {
        (!self.places.is_empty()).then(|| (self.places.len(), self.places.iter().filter(|closed| **closed).count()))
    }

    /// The rates as if all steps were open: at closed ones, those of the nearest days that are open at this hour, or
    /// else what lies between the neighbours.
    pub(crate) fn opened(&self, rates: &[f64]) -> Vec<f64> {
        let mut opened = rates.to_vec();
        for index in (0..rates.len()).filter(|index| self.at(*index)) {
            let as_on_other_days = self.between(rates, index, self.part, self.places.len() / self.part);
            let as_nearby = || self.between(rates, index, 1, self.places.len());
            opened[index] = as_on_other_days.or_else(as_nearby).unwrap_or_default();
        }
        opened
    }

    /// On the line between the nearest open steps before and after one, so many steps apart and at most so many times.
    fn between(&self, rates: &[f64], index: usize, step: usize, most: usize) -> Option<f64> {
        let is_open = |at: &usize| *at < rates.len() && !self.at(*at);
        let before = (1..=most).filter_map(|k| index.checked_sub(k * step)).find(is_open);
        let after = (1..=most).map(|k| index + k * step).find(is_open);
        let weight = |before: usize, after: usize| (index - before) as f64 / (after - before) as f64;
        match (before, after) {
            (Some(before), Some(after)) => Some(rates[before] + (rates[after] - rates[before]) * weight(before, after)),
            (one, other) => one.or(other).map(|at| rates[at]),
        }
    }
}

fn is_closed(rates: &[f64], place: usize, period: usize) -> bool {
    let seen: Vec<f64> = rates.iter().skip(place).step_by(period).copied().collect();
    let recent = &seen[seen.len().saturating_sub(RECENT)..];
    let open = recent.iter().filter(|rate| **rate > 0.0).count();
    recent.len() >= FEWEST && open <= usize::from(recent.len() >= WITH_EXCEPTION)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_that_are_always_zero_are_closed_and_filled_from_their_neighbours() {
        let rates: Vec<f64> = (0..28).map(|i| if i % 7 >= 5 { 0.0 } else { 10.0 + f64::from(i) }).collect();
        let closed = Closed::find(&rates, &[7]);
        assert_eq!(closed.share(), Some((7, 2)));
        assert!(closed.at(5) && closed.at(34) && !closed.at(28));
        let opened = closed.opened(&rates);
        assert_eq!(opened[4..8], [14.0, 15.0, 16.0, 17.0]);
        assert_eq!(opened[24..], [34.0, 35.0, 35.0, 35.0]);
    }

    #[test]
    fn an_outage_a_constant_and_a_low_rate_are_not_closed() {
        let mut rates = vec![5.0; 70];
        rates[30] = 0.0;
        assert_eq!(Closed::find(&rates, &[7]), Closed::default());
        assert_eq!(Closed::find(&[0.0; 70], &[7]), Closed::default());
        assert_eq!(Closed::find(&[0.0, 1.0].repeat(7), &[7]), Closed::default(), "seen too seldom");
        let mut sundays: Vec<f64> = (0..70).map(|i| f64::from(u8::from(i % 7 != 6))).collect();
        sundays[41] = 9.0;
        assert_eq!(Closed::find(&sundays, &[7]).share(), Some((7, 1)), "but for one sale");
        sundays[48] = 9.0;
        assert_eq!(Closed::find(&sundays, &[7]), Closed::default());
    }
}
