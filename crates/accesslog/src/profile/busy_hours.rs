//! Finds the hours of the week that are regularly busier than the others, like "weekdays 9–17" (Menascé et al., CMG
//! 1999, §2, from their Figs. 3 and 4).
//!
//! All hours of the week are divided into two groups with one mean rate each: a block of successive hours on a set of
//! days, and the rest. Every block on every set of days is tried. The best block is the one whose division explains the
//! largest share of the variance of the 168 rates (the criterion of Otsu, *A threshold selection method from gray-level
//! histograms*, 1979). There are no busy hours if this share is too small.

use brimful_core::profile::BusyHours;

/// Minimum length of a log, in seconds. A shorter log cannot show that hours are busy regularly. A week with a change
/// to summer time is an hour shorter.
const MIN_SPAN_S: f64 = 7.0 * 86_400.0 - 3_600.0;
/// Minimum length of a log, in seconds, for busy hours on a single day of the week. Each day of the week then occurs
/// twice.
const MIN_SPAN_OF_ONE_DAY_S: f64 = 14.0 * 86_400.0 - 3_600.0;
/// Minimum fraction of the variance of the 168 hourly rates of a week that the busy hours must explain.
const MIN_EXPLAINED: f64 = 0.4;
/// Minimum ratio of the rate in the busy hours to the rate in all other hours.
const MIN_RATIO: f64 = 1.5;
/// The sets of weekdays that are tried, with their names. Monday is 0.
const DAYS: [(&str, &[u8]); 10] = [
    ("every day", &[0, 1, 2, 3, 4, 5, 6]),
    ("weekdays", &[0, 1, 2, 3, 4]),
    ("weekends", &[5, 6]),
    ("Mondays", &[0]),
    ("Tuesdays", &[1]),
    ("Wednesdays", &[2]),
    ("Thursdays", &[3]),
    ("Fridays", &[4]),
    ("Saturdays", &[5]),
    ("Sundays", &[6]),
];
const HOURS: usize = 24;
const WEEK: usize = 7 * HOURS;

/// Finds the busy hours. `rates` has the mean rate of each hour of the week: 7 weekdays × 24 hours, Monday first.
/// `span_s` is the length of the log in seconds.
pub(super) fn find_busy_hours(rates: &[Vec<f64>], span_s: f64) -> Option<BusyHours> {
    let rates: Vec<f64> = rates.iter().flatten().copied().collect();
    if rates.len() != WEEK || span_s < MIN_SPAN_S {
        return None;
    }
    let mean = rates.iter().sum::<f64>() / WEEK as f64;
    let variance = rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>();
    if variance <= 0.0 {
        return None;
    }
    let mut best: Option<BusyHours> = None;
    let sets = DAYS.iter().filter(|(_, days)| days.len() > 1 || span_s >= MIN_SPAN_OF_ONE_DAY_S);
    for (name, days) in sets {
        for from in 0..HOURS {
            for length in 1..HOURS {
                let block = Block { days, from, length };
                let inside = block.mean(&rates);
                let hours = block.hours();
                let outside = (mean * WEEK as f64 - inside * hours) / (WEEK as f64 - hours);
                let between = hours * (inside - mean).powi(2) + (WEEK as f64 - hours) * (outside - mean).powi(2);
                let explained = between / variance;
                let is_better = best.as_ref().is_none_or(|best| explained > best.explained + 1e-9);
                if explained >= MIN_EXPLAINED && is_better && block.is_busy_on_each_day(&rates, outside) {
                    best = Some(block.describe(name, inside, outside, explained));
                }
            }
        }
    }
    best
}

/// Successive hours of the day, on a set of weekdays: candidates for busy hours.
struct Block<'a> {
    days: &'a [u8],
    from: usize,
    length: usize,
}

impl Block<'_> {
    fn hours(&self) -> f64 {
        (self.days.len() * self.length) as f64
    }

    /// Mean request rate in the block of hours.
    fn mean(&self, rates: &[f64]) -> f64 {
        self.days.iter().map(|day| self.mean_on(*day, rates)).sum::<f64>() / self.days.len() as f64
    }

    /// Mean request rate in the block of hours on one day. A block that passes midnight continues on the next day.
    fn mean_on(&self, day: u8, rates: &[f64]) -> f64 {
        let first = usize::from(day) * HOURS + self.from;
        (first..first + self.length).map(|hour| rates[hour % WEEK]).sum::<f64>() / self.length as f64
    }

    fn is_busy_on_each_day(&self, rates: &[f64], outside: f64) -> bool {
        self.days.iter().all(|day| self.mean_on(*day, rates) > MIN_RATIO * outside)
    }

    fn describe(&self, name: &str, rate: f64, other_rate: f64, explained: f64) -> BusyHours {
        let end = self.from + self.length;
        let end = if end > HOURS { end - HOURS } else { end };
        BusyHours {
            name: format!("{name} {}–{end}", self.from),
            weekdays: self.days.to_vec(),
            from_hour: self.from as u8,
            to_hour: end as u8,
            rate,
            other_rate,
            explained,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MONTH_S: f64 = 28.0 * 86_400.0;

    fn week(rate: impl Fn(usize, usize) -> f64) -> Vec<Vec<f64>> {
        (0..7).map(|day| (0..24).map(|hour| rate(day, hour)).collect()).collect()
    }

    /// A rate that varies a little from hour to hour, without a daily pattern.
    fn about(rate: f64, day: usize, hour: usize) -> f64 {
        rate * (1.0 + 0.1 * (((day * 24 + hour) * 7919 % 13) as f64 - 6.0) / 6.0)
    }

    #[test]
    fn the_papers_peak_hours_are_found() {
        let rates = week(|day, hour| {
            let busy = day < 5 && (9..17).contains(&hour);
            about(if busy { 14.0 } else { 3.0 }, day, hour)
        });
        let found = find_busy_hours(&rates, MONTH_S).unwrap();
        assert_eq!((found.name.as_str(), found.from_hour, found.to_hour), ("weekdays 9–17", 9, 17));
        assert!((found.rate - 14.0).abs() < 0.5 && (found.other_rate - 3.0).abs() < 0.2, "{found:?}");
        assert_eq!(find_busy_hours(&rates, 3.0 * 86_400.0), None, "three days are too short");
    }

    #[test]
    fn blocks_may_pass_midnight_or_be_on_one_day() {
        let nights = week(|day, hour| about(if !(3..22).contains(&hour) { 9.0 } else { 2.0 }, day, hour));
        let found = find_busy_hours(&nights, MONTH_S).unwrap();
        assert_eq!((found.name.as_str(), found.to_hour), ("every day 22–3", 3));
        let sunday = week(|day, hour| about(if day == 6 && (10..12).contains(&hour) { 50.0 } else { 2.0 }, day, hour));
        assert_eq!(find_busy_hours(&sunday, MONTH_S).unwrap().name, "Sundays 10–12");
        assert_eq!(find_busy_hours(&sunday, 8.0 * 86_400.0), None, "one Sunday is not regular");
    }

    #[test]
    fn steady_traffic_has_no_busy_hours() {
        assert_eq!(find_busy_hours(&week(|day, hour| about(5.0, day, hour)), MONTH_S), None);
        assert_eq!(find_busy_hours(&week(|_, _| 5.0), MONTH_S), None);
        assert_eq!(find_busy_hours(&[], MONTH_S), None);
    }
}
