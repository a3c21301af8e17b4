//! Up to which load does the curve of throughput over load not depend on the number of generators? The search alone: what a
//! pair of runs brings is told by whoever calls it. Loads and throughputs are per second.
//!
//! A load is the client's limit when its own verdict on most of the single generator's runs is against it (our addition:
//! lateness and CPU time tell before throughput does), when two generators bring more than one by over [`CHANGE`] and that
//! is significant at 95 % (Student's t over the differences within pairs), or when one falls [`SHORT`] of the load and two
//! do not. When both fall short and nothing speaks against the client, what answers is the limit, and the client's maximum is
//! at least that load.

use brimful_core::moments::Moments;
use brimful_core::quantity;
use brimful_core::record::{ClientCalibration, ClientLevel};
use brimful_stats::t_95;

/// The first load, and the factor from each to the next until one is too much; or, if it is already, until one is not.
pub const START: f64 = 2_000.0;
const STEP: f64 = 2.0;
/// The load that passes and the one that does not are told apart up to this factor.
const RESOLUTION: f64 = 1.1;
/// Pairs of runs at a level that is clear, at one that is not, and at all levels together.
const FEWEST: usize = 3;
const MOST: usize = 5;
const BUDGET: usize = 36;
/// What two generators may bring more than one, as a share of what one brings.
const CHANGE: f64 = 0.02;
/// What a throughput may lack of the load, as a share of it.
const SHORT: f64 = 0.05;

/// The same load from one generator and from two, one after the other.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    pub one: f64,
    pub two: f64,
    /// What the single generator's own verdict has against it.
    pub doubt: Option<String>,
}

/// Searches with the pairs that `measure` brings for a load, until it brings none. Each level is noted when it is decided.
pub fn search<E>(
    mut measure: impl FnMut(f64) -> Result<Option<Pair>, E>,
    note: &mut dyn FnMut(String),
) -> Result<ClientCalibration, E> {
    let (mut curve, mut budget) = (Vec::new(), BUDGET);
    while let Some(load) = next_load(&curve) {
        let mut level = Level { load, pairs: Vec::new() };
        while budget > 0 && level.pairs.len() < MOST && !level.is_clear() {
            let Some(pair) = measure(load)? else { break };
            level.pairs.push(pair);
            budget -= 1;
        }
        if level.pairs.len() < FEWEST {
            break;
        }
        let found = level.found();
        note(told(&found));
        curve.push(found);
    }
    let (passed, failed) = bracket(&curve);
    let lower_bound = passed.is_some_and(fell_short) || (passed.is_some() && failed.is_none());
    let max_rate = passed.map(|level| level.load);
    curve.sort_by(|a, b| a.load.total_cmp(&b.load));
    Ok(ClientCalibration { max_rate, lower_bound, second_shares_cpus: false, curve })
}

/// The highest load that passed, and the lowest above it that did not; of one that was measured twice the second time counts.
fn bracket(curve: &[ClientLevel]) -> (Option<&ClientLevel>, Option<&ClientLevel>) {
    let later = |index: usize| &curve[index + 1..];
    let latest = |(index, level): &(usize, &ClientLevel)| later(*index).iter().all(|other| other.load != level.load);
    let levels = || curve.iter().enumerate().filter(latest).map(|(_, level)| level);
    let by_load = |a: &&ClientLevel, b: &&ClientLevel| a.load.total_cmp(&b.load);
    let passed = levels().filter(|level| level.limited.is_none()).max_by(by_load);
    let above = |level: &&ClientLevel| passed.is_none_or(|passed| level.load > passed.load);
    (passed, levels().filter(above).min_by(by_load))
}

/// Other work on this host comes and goes within seconds. So what ends the search, the lowest load that fails or one of which
/// the server falls short, is measured twice.
fn next_load(curve: &[ClientLevel]) -> Option<f64> {
    let once_more = |level: &ClientLevel| {
        let times = curve.iter().filter(|other| other.load == level.load).count();
        (times == 1).then_some(level.load)
    };
    match bracket(curve) {
        (None, None) => Some(START),
        (None, Some(failed)) => Some(failed.load / STEP).filter(|load| *load >= 1.0),
        (Some(passed), _) if fell_short(passed) => once_more(passed),
        (Some(passed), None) => Some(passed.load * STEP),
        (Some(passed), Some(failed)) if failed.load > RESOLUTION * passed.load => {
            Some((passed.load * failed.load).sqrt())
        }
        (Some(_), Some(failed)) => once_more(failed),
    }
}

/// Whether not even the whole load was answered.
fn fell_short(level: &ClientLevel) -> bool {
    level.one < (1.0 - SHORT) * level.load
}

fn told(level: &ClientLevel) -> String {
    let [load, one, two] = [level.load, level.one, level.two].map(quantity::rate);
    let limited = level.limited.as_ref().map_or(String::new(), |why| format!("; too much for this client: {why}"));
    format!("offered {load}: {one} with one generator, {two} with two{limited}")
}

/// A load, and what was measured at it so far.
struct Level {
    load: f64,
    pairs: Vec<Pair>,
}

impl Level {
    /// Whether further pairs would hardly change the finding.
    fn is_clear(&self) -> bool {
        let doubts = self.doubts().count();
        let (more, half_width) = self.difference();
        let known = (more - self.tolerated()).abs() > half_width.unwrap_or(f64::INFINITY);
        self.pairs.len() >= FEWEST && (doubts == self.pairs.len() || (doubts == 0 && known))
    }

    fn found(&self) -> ClientLevel {
        let (one, one_stddev) = mean_and_deviation(self.pairs.iter().map(|pair| pair.one));
        let (two, two_stddev) = mean_and_deviation(self.pairs.iter().map(|pair| pair.two));
        let (more, half_width) = self.difference();
        let enough = (1.0 - SHORT) * self.load;
        let significant = more > self.tolerated() && half_width.is_some_and(|half_width| more > half_width);
        let limited = if 2 * self.doubts().count() > self.pairs.len() {
            self.doubts().next().cloned()
        } else if significant {
            Some(format!("two generators bring {} more", quantity::rate(more)))
        } else if one < enough && two >= enough {
            Some("one generator falls short of the load and two do not".to_owned())
        } else {
            None
        };
        ClientLevel {
            load: self.load,
            pairs: self.pairs.len() as u64,
            one,
            one_stddev,
            two,
            two_stddev,
            difference_ci95_half_width: half_width,
            limited,
        }
    }

    fn doubts(&self) -> impl Iterator<Item = &String> {
        self.pairs.iter().filter_map(|pair| pair.doubt.as_ref())
    }

    fn tolerated(&self) -> f64 {
        CHANGE * mean_and_deviation(self.pairs.iter().map(|pair| pair.one)).0
    }

    /// What two generators bring more, and the half width of its 95 % confidence interval.
    fn difference(&self) -> (f64, Option<f64>) {
        let (mean, stddev) = mean_and_deviation(self.pairs.iter().map(|pair| pair.two - pair.one));
        let n = self.pairs.len();
        (mean, stddev.and_then(|stddev| Some(t_95(n as u64 - 1)? * stddev / (n as f64).sqrt())))
    }
}

/// Mean and standard deviation; the mean of no values is 0.
fn mean_and_deviation(values: impl Iterator<Item = f64>) -> (f64, Option<f64>) {
    Moments::from_values(&values.collect::<Vec<f64>>())
        .map_or((0.0, None), |moments| (moments.mean(), moments.standard_deviation()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    /// The search on a host whose generators bring at most `client` each and whose server answers at most `server`, with
    /// `noise(n)` times as much in the n-th run.
    fn found(client: f64, server: f64, mut noise: impl FnMut(usize) -> f64) -> (ClientCalibration, usize) {
        let (mut runs, mut notes) = (0, 0);
        let mut run = |generators: f64, load: f64| {
            runs += 1;
            (load.min(generators * client) * noise(runs)).min(server).min(load)
        };
        let measure = |load| Ok::<_, Infallible>(Some(Pair { one: run(1.0, load), two: run(2.0, load), doubt: None }));
        let Ok(calibration) = search(measure, &mut |_| notes += 1);
        assert_eq!(notes, calibration.curve.len());
        assert!(calibration.curve.is_sorted_by(|a, b| a.load <= b.load));
        (calibration, runs / 2)
    }

    /// Between 0.97 and 1, differently each time.
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
        // Every fifth run loses a fifth of what it would have brought.
        let (calibration, pairs) = found(48_000.0, f64::INFINITY, |n| if n % 5 == 3 { 0.8 } else { 1.0 });
        assert!(calibration.max_rate.is_some_and(|max| max > 40_000.0), "{calibration:#?}");
        assert!(pairs <= BUDGET);
    }

    /// A client that is late above 10,000/s, always, or in the share of the runs that `late` says.
    fn late_client(late: impl Fn(usize, f64) -> bool) -> ClientCalibration {
        let mut runs = 0;
        let measure = |load: f64| {
            runs += 1;
            let doubt = late(runs, load).then(|| "it was late".to_owned());
            Ok::<_, Infallible>(Some(Pair { one: load, two: load, doubt }))
        };
        let Ok(calibration) = search(measure, &mut |_| ());
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
        // The client is late throughout the third level, at 8,000/s, and never again below 50,000/s.
        let calibration = late_client(|run, load| load > 50_000.0 || (7..12).contains(&run));
        assert!(calibration.max_rate.is_some_and(|max| (16_000.0..50_000.0).contains(&max)), "{calibration:#?}");
        let at_8000 = calibration.curve.iter().filter(|level| level.load == 8_000.0);
        assert_eq!(at_8000.map(|level| level.limited.is_none()).collect::<Vec<_>>(), [false, true]);
    }

    #[test]
    fn a_client_that_can_nothing_has_no_maximum() {
        let calibration = late_client(|_, _| true);
        assert_eq!((calibration.max_rate, calibration.lower_bound), (None, false));
        assert!(calibration.curve.iter().all(|level| level.limited.is_some()) && calibration.curve[0].load < 2.0);
    }

    #[test]
    fn a_search_that_is_cut_short_keeps_what_it_has() {
        let mut pairs = 0;
        let measure = |load: f64| {
            pairs += 1;
            Ok::<_, Infallible>((pairs <= 7).then_some(Pair { one: load, two: load, doubt: None }))
        };
        let Ok(calibration) = search(measure, &mut |_| ());
        assert_eq!((calibration.max_rate, calibration.lower_bound), (Some(2.0 * START), true));
        assert_eq!(calibration.curve.len(), 2);
    }
}
