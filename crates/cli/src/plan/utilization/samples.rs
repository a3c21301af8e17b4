//! Collects utilizations, one interval and one resource at a time, and combines them into time steps.

use super::{CPU, Utilization, UtilizationStep};
use std::collections::BTreeMap;

/// Minimum share of the intervals in which a resource must be present. A disk that was plugged in only for a short time
/// is ignored.
const MIN_PRESENCE: f64 = 0.5;

/// Utilizations by interval (start and end, in milliseconds since 1970) and by resource.
#[derive(Default)]
pub(super) struct Samples(BTreeMap<(i64, i64), BTreeMap<String, f64>>);

impl Samples {
    /// Adds a utilization. Ignores intervals without length, and values that are not finite.
    pub fn add(&mut self, from_ms: i64, to_ms: i64, resource: &str, busy: f64) {
        if from_ms < to_ms && busy.is_finite() {
            self.0.entry((from_ms, to_ms)).or_default().insert(resource.to_owned(), busy.clamp(0.0, 1.0));
        }
    }

    /// Adds `busy` to the utilization of a resource in an interval, for example the CPU use of one of several programs.
    pub fn add_part(&mut self, from_ms: i64, to_ms: i64, resource: &str, busy: f64) {
        let before = self.0.get(&(from_ms, to_ms)).and_then(|at| at.get(resource)).copied().unwrap_or(0.0);
        self.add(from_ms, to_ms, resource, before + busy);
    }

    /// Whether no utilization was added.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Combines the samples into time steps. Intervals without a sample of every resource are left out. Single CPUs are
    /// dropped if the mean of all CPUs is known. If any resource was busy, resources that were never busy are dropped,
    /// too.
    pub fn finish(self) -> Utilization {
        let mut found: BTreeMap<&str, (usize, f64)> = BTreeMap::new();
        for (name, busy) in self.0.values().flatten() {
            let (times, most) = found.entry(name).or_default();
            *times += 1;
            *most = most.max(*busy);
        }
        let is_often = |times: usize| times as f64 >= MIN_PRESENCE * self.0.len() as f64;
        let has_all_cpus = found.get(CPU).is_some_and(|(times, _)| is_often(*times));
        let is_single = |name: &str| {
            name.strip_prefix(CPU).is_some_and(|n| !n.is_empty() && n.bytes().all(|byte| byte.is_ascii_digit()))
        };
        let mut resources: Vec<String> = found
            .iter()
            .filter(|(name, (times, _))| is_often(*times) && !(has_all_cpus && is_single(name)))
            .map(|(name, _)| (*name).to_owned())
            .collect();
        if resources.iter().any(|name| found.get(name.as_str()).is_some_and(|(_, most)| *most > 0.0)) {
            resources.retain(|name| found.get(name.as_str()).is_some_and(|(_, most)| *most > 0.0));
        }
        resources.sort_by_key(|name| (name != CPU, !is_single(name), name.clone()));
        let shares = |at: &BTreeMap<String, f64>| {
            resources.iter().map(|name| at.get(name).copied()).collect::<Option<Vec<f64>>>()
        };
        let mut steps: Vec<UtilizationStep> = Vec::new();
        for ((from_ms, to_ms), at) in &self.0 {
            // If intervals overlap, for example those of two files, the first one is used.
            let is_after = steps.last().is_none_or(|last| last.end_ms() <= *from_ms);
            if let Some(shares) = shares(at).filter(|_| is_after) {
                let seconds = to_ms.saturating_sub(*from_ms) as f64 / 1000.0;
                steps.push(UtilizationStep { start_ms: *from_ms, seconds, shares });
            }
        }
        Utilization { resources, steps, ..Utilization::default() }
    }
}

/// Parses a number as monitors print it: with a decimal comma in some locales, and with a percent sign in some tools.
pub(super) fn parse_number(text: &str) -> Option<f64> {
    text.trim_end_matches('%').replace(',', ".").parse::<f64>().ok().filter(|x| x.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_cpus_replace_single_ones_and_rare_or_idle_resources_are_dropped() {
        let mut samples = Samples::default();
        for second in 0..10 {
            let from = 1000 * second;
            let to = 1000 * second + 1000;
            samples.add(from, to, "cpu", 0.5);
            samples.add(from, to, "cpu0", 1.0);
            samples.add(from, to, "sda", 0.25);
            samples.add(from, to, "loop0", 0.0);
            if second == 3 {
                samples.add(from, to, "usb", 0.5);
            }
        }
        samples.add(5, 5, "cpu", 0.5);
        samples.add(20_000, 30_000, "cpu", f64::NAN);
        let found = samples.finish();
        assert_eq!(found.resources, ["cpu", "sda"]);
        assert_eq!((found.steps.len(), &found.steps[3].shares), (10, &vec![0.5, 0.25]));
    }

    #[test]
    fn single_cpus_count_without_the_mean_of_all() {
        let mut samples = Samples::default();
        samples.add(0, 1000, "cpu0", 0.0);
        samples.add(0, 900, "cpu0", 0.5);
        let found = samples.finish();
        assert_eq!((found.resources.as_slice(), found.steps.len()), (&["cpu0".to_owned()][..], 1));
        assert_eq!(
            (parse_number("1,5"), parse_number("12.5%"), parse_number("nan"), parse_number("-")),
            (Some(1.5), Some(12.5), None, None)
        );
    }
}
