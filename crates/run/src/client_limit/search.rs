//! Searches for the highest load at which two load generators have no higher throughput than one. The caller measures
//! pairs of runs (one generator, and two) at each load that the search tries. Loads and throughputs are in calls per
//! second.
//!
//! A load exceeds the client's limit in each of three cases:
//! - Most runs of the single generator were judged as limited by the client. (This is an addition to the method of
//!   Banga & Druschel: lateness and CPU time show the limit before throughput does.)
//! - Two generators deliver more than one by more than [`TOLERATED_GAIN`], and the difference is significant at 95 %
//!   (Student's t over the differences within pairs).
//! - The throughput of one generator is below the load by more than [`TOLERATED_SHORTFALL`], and that of two is not.
//!
//! If both throughputs are too far below the load and none of these cases applies, the server is the limit, and the
//! client's maximum is at least that load.

use brimful_core::moments::Moments;
use brimful_core::quantity;
use brimful_core::record::{ClientCalibration, ClientLevel};
use brimful_stats::ci95_half_width;

/// The first load that a search tries, in calls per second.
pub const START_RATE: f64 = 2_000.0;
/// Factor between two successive loads. The loads rise until one exceeds the client's limit. If the first load exceeds
/// it, they fall until one does not.
const STEP: f64 = 2.0;
/// The search ends when the lowest load above the client's limit is at most this factor above the highest load below
/// it.
const RESOLUTION: f64 = 1.1;
/// Minimum number of pairs of runs at one load.
pub(super) const MIN_PAIRS: usize = 3;
/// Maximum number of pairs of runs at one load.
const MAX_PAIRS: usize = 5;
/// Maximum number of pairs of runs in a search.
const BUDGET: usize = 36;
/// Gain in throughput from one generator to two that is not taken as a limit, as a share of the throughput of one.
const TOLERATED_GAIN: f64 = 0.02;
/// Difference between load and throughput that is not taken as a limit, as a share of the load.
const TOLERATED_SHORTFALL: f64 = 0.05;

/// Throughputs of one generator and of two at the same load, in successive runs.
#[derive(Clone, Debug, PartialEq)]
pub struct ThroughputPair {
    /// Throughput of one generator, in calls per second.
    pub one: f64,
    /// Throughput of two generators together, in calls per second.
    pub two: f64,
    /// The reason why the run of one generator was judged as limited by the client; `None` if it was not.
    pub limit_reason: Option<String>,
}

/// Number of loads that the search tries until it reaches at least `rate`.
pub(super) fn levels_up_to(rate: f64) -> u32 {
    1 + (rate / START_RATE).log(STEP).ceil().max(0.0) as u32
}

/// Searches for the client's limit. `measure` runs one generator and two at a load, or returns `None` to end the
/// search. The search also ends once a load of at least `enough` calls per second is below the client's limit. `note`
/// receives a description of the result at each load.
pub fn search<E>(
    mut measure: impl FnMut(f64) -> Result<Option<ThroughputPair>, E>,
    enough: f64,
    note: &mut dyn FnMut(String),
) -> Result<ClientCalibration, E> {
    let mut curve = Vec::new();
    let mut budget = BUDGET;
    while let Some(load) = next_load(&curve, enough) {
        let mut level = Level { load, pairs: Vec::new() };
        while budget > 0 && level.pairs.len() < MAX_PAIRS && !level.is_clear() {
            let Some(pair) = measure(load)? else { break };
            level.pairs.push(pair);
            budget -= 1;
        }
        if level.pairs.len() < MIN_PAIRS {
            break;
        }
        let result = level.result();
        note(describe(&result));
        curve.push(result);
    }
    let (passed, failed) = bracket(&curve);
    let lower_bound = passed.is_some_and(fell_short) || (passed.is_some() && failed.is_none());
    let max_rate = passed.map(|level| level.load);
    curve.sort_by(|a, b| a.load.total_cmp(&b.load));
    Ok(ClientCalibration { max_rate, lower_bound, second_shares_cpus: false, curve })
}

/// The highest load that did not exceed the client's limit, and the lowest load above it that did. If a load was
/// measured twice, its second result counts.
fn bracket(curve: &[ClientLevel]) -> (Option<&ClientLevel>, Option<&ClientLevel>) {
    let is_latest =
        |(index, level): &(usize, &ClientLevel)| curve[index + 1..].iter().all(|later| later.load != level.load);
    let levels = || curve.iter().enumerate().filter(is_latest).map(|(_, level)| level);
    let by_load = |a: &&ClientLevel, b: &&ClientLevel| a.load.total_cmp(&b.load);
    let passed = levels().filter(|level| level.limited.is_none()).max_by(by_load);
    let above = |level: &&ClientLevel| passed.is_none_or(|passed| level.load > passed.load);
    (passed, levels().filter(above).min_by(by_load))
}

/// The next load to measure; `None` ends the search. The search ends when a load of at least `enough` is below the
/// client's limit, or when the bounds of the limit differ by at most [`RESOLUTION`]. Before it ends, the decisive load
/// is measured again, because other programs may have disturbed the first measurement. This is the lowest load above
/// the limit, or a load at which the server was the limit.
fn next_load(curve: &[ClientLevel], enough: f64) -> Option<f64> {
    let repeat_once = |level: &ClientLevel| {
        let times = curve.iter().filter(|other| other.load == level.load).count();
        (times == 1).then_some(level.load)
    };
    match bracket(curve) {
        (None, None) => Some(START_RATE),
        (None, Some(failed)) => Some(failed.load / STEP).filter(|load| *load >= 1.0),
        (Some(passed), _) if passed.load >= enough => None,
        (Some(passed), _) if fell_short(passed) => repeat_once(passed),
        (Some(passed), None) => Some(passed.load * STEP),
        (Some(passed), Some(failed)) if failed.load > RESOLUTION * passed.load => {
            Some((passed.load * failed.load).sqrt())
        }
        (Some(_), Some(failed)) => repeat_once(failed),
    }
}

/// Whether the throughput of one generator was below the load by more than [`TOLERATED_SHORTFALL`].
fn fell_short(level: &ClientLevel) -> bool {
    level.one_generator < (1.0 - TOLERATED_SHORTFALL) * level.load
}

fn describe(level: &ClientLevel) -> String {
    let [load, one, two] = [level.load, level.one_generator, level.two_generators].map(quantity::rate);
    let limited = level.limited.as_ref().map_or(String::new(), |why| format!("; too much for this client: {why}"));
    format!("offered {load}: {one} with one generator, {two} with two{limited}")
}

/// A load, and the pairs of runs measured at it so far.
struct Level {
    load: f64,
    pairs: Vec<ThroughputPair>,
}

impl Level {
    /// Whether the result at this load is clear. This requires enough pairs of runs, and either that all runs of one
    /// generator were judged as limited by the client, or that none was and the gain is significantly above or below
    /// the tolerated gain.
    fn is_clear(&self) -> bool {
        let limit_reasons = self.limit_reasons().count();
        let (gain, half_width) = self.gain();
        let is_gain_known = (gain - self.tolerated_gain()).abs() > half_width.unwrap_or(f64::INFINITY);
        self.pairs.len() >= MIN_PAIRS && (limit_reasons == self.pairs.len() || (limit_reasons == 0 && is_gain_known))
    }

    fn result(&self) -> ClientLevel {
        let (one, one_stddev) = moments(self.pairs.iter().map(|pair| pair.one));
        let (two, two_stddev) = moments(self.pairs.iter().map(|pair| pair.two));
        let (gain, half_width) = self.gain();
        let sufficient = (1.0 - TOLERATED_SHORTFALL) * self.load;
        let is_significant = gain > self.tolerated_gain() && half_width.is_some_and(|half_width| gain > half_width);
        let limited = if 2 * self.limit_reasons().count() > self.pairs.len() {
            self.limit_reasons().next().cloned()
        } else if is_significant {
            Some(format!("two generators deliver {} more", quantity::rate(gain)))
        } else if one < sufficient && two >= sufficient {
            Some("one generator falls short of the load and two do not".to_owned())
        } else {
            None
        };
        ClientLevel {
            load: self.load,
            pairs: self.pairs.len() as u64,
            one_generator: one,
            one_generator_stddev: one_stddev,
            two_generators: two,
            two_generators_stddev: two_stddev,
            difference_ci95_half_width: half_width,
            limited,
        }
    }

    fn limit_reasons(&self) -> impl Iterator<Item = &String> {
        self.pairs.iter().filter_map(|pair| pair.limit_reason.as_ref())
    }

    fn tolerated_gain(&self) -> f64 {
        TOLERATED_GAIN * moments(self.pairs.iter().map(|pair| pair.one)).0
    }

    /// Gain in throughput from one generator to two, and the half width of its 95 % confidence interval.
    fn gain(&self) -> (f64, Option<f64>) {
        let gains: Vec<f64> = self.pairs.iter().map(|pair| pair.two - pair.one).collect();
        let moments = Moments::from_values(&gains);
        (moments.map_or(0.0, |moments| moments.mean()), moments.as_ref().and_then(ci95_half_width))
    }
}

/// Mean and standard deviation; the latter is `None` for fewer than two values.
fn moments(values: impl Iterator<Item = f64>) -> (f64, Option<f64>) {
    let moments = Moments::from_values(&values.collect::<Vec<f64>>());
    (moments.map_or(0.0, |moments| moments.mean()), moments.and_then(|moments| moments.standard_deviation()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    /// Runs the search for a simulated host: one generator delivers at most `client` calls per second, and the server
    /// completes at most `server`. The throughput of the n-th run is multiplied by `noise(n)`. Returns the result and
    /// the number of pairs of runs.
    fn found(client: f64, server: f64, mut noise: impl FnMut(usize) -> f64) -> (ClientCalibration, usize) {
        let (mut runs, mut notes) = (0, 0);
        let mut run = |generators: f64, load: f64| {
            runs += 1;
            (load.min(generators * client) * noise(runs)).min(server).min(load)
        };
        let measure = |load| {
            Ok::<_, Infallible>(Some(ThroughputPair { one: run(1.0, load), two: run(2.0, load), limit_reason: None }))
        };
        let Ok(calibration) = search(measure, f64::INFINITY, &mut |_| notes += 1);
        assert_eq!(notes, calibration.curve.len());
        assert!(calibration.curve.is_sorted_by(|a, b| a.load <= b.load));
        (calibration, runs / 2)
    }

    /// A pseudo-random factor between 0.97 and 1, computed from `n`.
    fn jitter(n: usize) -> f64 {
        1.0 - 0.03 * ((n as f64 * 0.618).fract())
    }

    #[test]
    fn a_client_that_saturates_is_found() {
        for client in [37.0, 700.0, 2_000.0, 5_500.0, 48_000.0, 131_000.0] {
            for noise in [|_| 1.0, jitter as fn(usize) -> f64] {
                let (calibration, pairs) = found(client, f64::INFINITY, noise);
                let max = calibration.max_rate.unwrap();
                assert!(max > client / (RESOLUTION * 1.03) && max < client * 1.06, "{max} of {client}");
                assert!(!calibration.lower_bound && pairs <= BUDGET, "{pairs} pairs");
            }
        }
    }

    #[test]
    fn a_search_ends_at_the_rate_that_is_enough() {
        for (enough, max) in [(500.0, 2_000.0), (2_000.0, 2_000.0), (9_000.0, 16_000.0)] {
            let measure = |load| Ok::<_, Infallible>(Some(ThroughputPair { one: load, two: load, limit_reason: None }));
            let Ok(calibration) = search(measure, enough, &mut |_| ());
            assert_eq!((calibration.max_rate, calibration.lower_bound), (Some(max), true));
            assert_eq!(calibration.curve.len() as u32, levels_up_to(enough));
        }
    }

    #[test]
    fn a_server_that_saturates_first_gives_a_lower_bound() {
        for noise in [|_| 1.0, jitter as fn(usize) -> f64] {
            let (calibration, _) = found(60_000.0, 20_000.0, noise);
            assert!(calibration.lower_bound);
            assert_eq!(calibration.max_rate, Some(32_000.0), "the first load at which the server fell short");
            assert!(calibration.curve.iter().all(|level| level.limited.is_none()), "{calibration:#?}");
        }
    }

    #[test]
    fn a_run_that_was_disturbed_does_not_end_the_search() {
        // Every fifth run has only 80 % of its throughput.
        let (calibration, pairs) = found(48_000.0, f64::INFINITY, |n| if n % 5 == 3 { 0.8 } else { 1.0 });
        assert!(calibration.max_rate.is_some_and(|max| max > 40_000.0), "{calibration:#?}");
        assert!(pairs <= BUDGET);
    }

    /// Runs the search for a client that is late if `late` returns true for the number of the run and the load.
    fn late_client(late: impl Fn(usize, f64) -> bool) -> ClientCalibration {
        let mut runs = 0;
        let measure = |load: f64| {
            runs += 1;
            let limit_reason = late(runs, load).then(|| "it was late".to_owned());
            Ok::<_, Infallible>(Some(ThroughputPair { one: load, two: load, limit_reason }))
        };
        let Ok(calibration) = search(measure, f64::INFINITY, &mut |_| ());
        calibration
    }

    #[test]
    fn a_client_that_is_late_is_the_limit_though_throughput_does_not_show_it() {
        let calibration = late_client(|_, load| load > 10_000.0);
        assert!(calibration.max_rate.is_some_and(|max| max > 9_000.0 && max <= 10_000.0), "{calibration:#?}");
        assert!(!calibration.lower_bound);
        let over = calibration.curve.iter().find(|level| level.load > 10_000.0).unwrap();
        assert_eq!(over.limited.as_deref(), Some("it was late"));
        let sometimes = late_client(|run, load| load > 10_000.0 || run % 3 == 0);
        assert!(sometimes.max_rate.is_some_and(|max| max > 9_000.0), "{sometimes:#?}");
    }

    #[test]
    fn other_work_for_a_second_does_not_end_the_search() {
        // The client is late in all runs of the first measurement at 8,000/s, and otherwise only above 50,000/s.
        let calibration = late_client(|run, load| load > 50_000.0 || (7..12).contains(&run));
        assert!(calibration.max_rate.is_some_and(|max| (16_000.0..50_000.0).contains(&max)), "{calibration:#?}");
        let at_8000 = calibration.curve.iter().filter(|level| level.load == 8_000.0);
        assert_eq!(at_8000.map(|level| level.limited.is_none()).collect::<Vec<_>>(), [false, true]);
    }

    #[test]
    fn a_client_that_is_always_late_has_no_maximum() {
        let calibration = late_client(|_, _| true);
        assert_eq!((calibration.max_rate, calibration.lower_bound), (None, false));
        assert!(calibration.curve.iter().all(|level| level.limited.is_some()) && calibration.curve[0].load < 2.0);
    }

    #[test]
    fn a_search_that_is_cut_short_keeps_what_it_has() {
        let mut pairs = 0;
        let measure = |load: f64| {
            pairs += 1;
            Ok::<_, Infallible>((pairs <= 7).then_some(ThroughputPair { one: load, two: load, limit_reason: None }))
        };
        let Ok(calibration) = search(measure, f64::INFINITY, &mut |_| ());
        assert_eq!((calibration.max_rate, calibration.lower_bound), (Some(2.0 * START_RATE), true));
        assert_eq!(calibration.curve.len(), 2);
    }
}
