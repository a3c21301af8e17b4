//! Tests surveys of random servers. The tests assert bounds of the errors of all predictions, and of the share of 90 %
//! intervals that contain the measured value.

use super::*;
use brimful_core::model::IdleCost;
use brimful_core::survey::{Comparison, LevelPurpose};

/// Number of random servers. A survey of each takes half a second.
const SERVERS: u64 = 50;

/// Number of random servers in a test: the value of the environment variable BRIMFUL_SERVERS, or `usual`. The script
/// `scripts/test-long` sets the variable.
pub(super) fn number_of_servers(usual: u64) -> u64 {
    std::env::var("BRIMFUL_SERVERS").ok().and_then(|number| number.parse().ok()).unwrap_or(usual)
}

/// A random server. Its CPUs may need additional time to wake up when they are idle, and service times vary. Calls may
/// also spend time outside of the server, in a delay or in a pool with a limited capacity.
pub(super) fn server(seed: u64) -> Simulated {
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    let mut between = |low: f64, high: f64| low + (high - low) * rng.random::<f64>();
    let demand = between(0.000_3, 0.002);
    let waking = IdleCost { seconds: demand * between(0.0, 1.0), power: if between(0.0, 1.0) < 0.7 { 1 } else { 2 } };
    let cpu = Station {
        name: "cpu".to_owned(),
        scheduling: Scheduling::Fcfs,
        scv: between(0.0, 1.5),
        idle_cost: Some(waking),
        ..Station::default()
    };
    let elsewhere = Station { name: "elsewhere".to_owned(), kind: StationKind::Delay, ..Station::default() };
    let (stations, demands) = if between(0.0, 1.0) < 0.25 {
        let places = between(2.0, 6.0) as u32;
        // The backend pool saturates when the CPUs have a utilization of 60 to 80 %.
        let held = f64::from(places) * demand / between(0.6, 0.8);
        let pool =
            Station { name: "pool".to_owned(), servers: places, scheduling: Scheduling::Fcfs, ..Station::default() };
        (vec![cpu, pool], vec![vec![demand], vec![held]])
    } else {
        (vec![cpu, elsewhere], vec![vec![demand], vec![demand * between(0.05, 1.5)]])
    };
    Simulated { seed, ..Simulated::new(stations, demands) }
}

/// The quantile `q` (0 to 1) of the values.
pub(super) fn quantile(mut values: Vec<f64>, q: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values[((values.len() - 1) as f64 * q).round() as usize]
}

/// The random server [`server`] on a host whose speed changes between runs. `spread` is the standard deviation of the
/// logarithm of the host's slowness. Half of a deviation persists in the next run.
pub(super) fn on_drifting_host(seed: u64, spread: f64) -> Simulated {
    let mut bench = server(seed);
    let drift = RefCell::new((Pcg64Mcg::seed_from_u64(seed ^ 77), 0.0_f64));
    bench.under_load = Box::new(move |model, _| {
        let (rng, log_slowness) = &mut *drift.borrow_mut();
        let normal = (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0;
        *log_slowness = 0.5 * *log_slowness + 0.75_f64.sqrt() * spread * normal;
        model.demands[0].iter_mut().for_each(|demand| *demand *= log_slowness.exp());
    });
    bench
}

/// The random server [`server`] on a host whose slowness changes over time. The logarithm of the slowness is an
/// Ornstein-Uhlenbeck process with the standard deviation `spread`. A deviation decays to the share e⁻¹ in `memory_s`
/// seconds.
fn on_host_with_memory(seed: u64, spread: f64, memory_s: f64) -> Simulated {
    const STEP_S: f64 = 0.05;
    let persistence = (-STEP_S / memory_s).exp();
    let mut rng = Pcg64Mcg::seed_from_u64(seed ^ 78);
    let mut normal = move || (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0;
    let mut log_slowness = spread * normal();
    let mut now = 0.0;
    let mut bench = server(seed);
    bench.slowness = Box::new(move |start, length| {
        let mut sum = 0.0;
        let mut steps = 0.0;
        while now < start + length {
            if now >= start {
                sum += log_slowness.exp();
                steps += 1.0;
            }
            log_slowness = persistence * log_slowness + (1.0 - persistence.powi(2)).sqrt() * spread * normal();
            now += STEP_S;
        }
        if steps > 0.0 { sum / steps } else { log_slowness.exp() }
    });
    bench
}

/// Relative errors of the predictions of all surveys, and numbers of prediction intervals that contain the measured
/// value.
#[derive(Default)]
struct Errors {
    saturation: Vec<f64>,
    /// Errors of mean response times at 80 % of the capacity.
    response: Vec<f64>,
    utilization: Vec<f64>,
    intervals_held: f64,
    intervals: f64,
    /// For each metric: the numbers of measured values below, within and above their prediction intervals.
    by_kind: BTreeMap<String, [usize; 3]>,
}

impl Errors {
    fn collect(surveys: impl Iterator<Item = Survey>) -> Errors {
        let mut errors = Errors::default();
        for survey in surveys {
            assert!(survey.stopped.is_none(), "{:?}", survey.stopped);
            errors.count_interval("capacity".to_owned(), &survey.saturation_rate);
            errors.saturation.push(survey.saturation_rate.error.unwrap().abs());
            for level in survey.levels.iter().filter(|level| level.role == LevelPurpose::HeldOut) {
                let percentiles = level.response_percentiles_s;
                let figures = [
                    ("mean response", level.response_time_s),
                    ("utilization", level.utilization),
                    ("p50", percentiles.p50),
                    ("p95", percentiles.p95),
                ];
                for (name, figure) in figures {
                    errors.count_interval(format!("{name} of {} at {:.1}", level.workload, level.fraction), &figure);
                }
                if level.workload == "mix" {
                    errors.utilization.push(level.utilization.error.unwrap().abs());
                    if (level.fraction - 0.8).abs() < 1e-9 {
                        errors.response.push(level.response_time_s.error.unwrap().abs());
                    }
                }
            }
        }
        errors
    }

    fn count_interval(&mut self, kind: String, comparison: &Comparison) {
        self.intervals_held += f64::from(u8::from(comparison.is_within_interval().unwrap()));
        self.intervals += 1.0;
        let [low, high] = comparison.interval90.unwrap();
        let measured = comparison.measured.unwrap();
        self.by_kind.entry(kind).or_default()[usize::from(measured >= low) + usize::from(measured > high)] += 1;
    }

    /// Asserts upper bounds of the median and of the maximum error of each metric, and bounds of the share `held` of
    /// intervals that contain the measured value.
    fn is_within(&self, saturation: (f64, f64), response: (f64, f64), utilization: (f64, f64), held: [f64; 2]) {
        let figures = [&self.saturation, &self.response, &self.utilization];
        let found = figures.map(|errors| (quantile(errors.clone(), 0.5), quantile(errors.clone(), 1.0)));
        let share = self.intervals_held / self.intervals;
        for (kind, [below, within, above]) in &self.by_kind {
            println!("{kind}: {below} below, {within} within, {above} above");
        }
        println!("{found:?}, {share} of {} intervals hold", self.intervals);
        for (found, allowed) in found.into_iter().zip([saturation, response, utilization]) {
            assert!(found.0 < allowed.0 && found.1 < allowed.1, "{found:?} exceeds {allowed:?}");
        }
        assert!(
            (held[0]..=held[1]).contains(&share),
            "a share of {share} of {} intervals contains the measurement",
            self.intervals
        );
    }
}

#[test]
fn predictions_are_close_and_nine_in_ten_intervals_hold() {
    let errors = Errors::collect((1..=SERVERS).map(|seed| server(seed).survey(&[1.0], 8.0)));
    errors.is_within((0.02, 0.08), (0.08, 0.25), (0.02, 0.15), [0.87, 0.95]);
}

#[test]
fn intervals_hold_on_a_drifting_host() {
    let errors = Errors::collect((1..=SERVERS).map(|seed| on_drifting_host(seed, 0.08).survey(&[1.0], 8.0)));
    errors.is_within((0.06, 0.25), (0.2, 1.0), (0.06, 0.25), [0.82, 0.95]);
}

#[test]
fn intervals_hold_on_a_host_whose_speed_persists_for_seconds() {
    let servers = 1..=number_of_servers(25);
    let errors = Errors::collect(servers.map(|seed| on_host_with_memory(seed, 0.1, 3.0).survey(&[1.0], 8.0)));
    errors.is_within((0.07, 0.3), (0.3, 1.5), (0.06, 0.3), [0.87, 0.97]);
}

/// Expects that fewer prediction intervals contain the measured value if the host's speed changes slowly. Then most of
/// the change happens after calibration, which contains little information about it.
#[test]
fn intervals_hold_on_a_host_whose_speed_persists_for_a_minute() {
    let servers = 1..=number_of_servers(25);
    let errors = Errors::collect(servers.map(|seed| on_host_with_memory(seed, 0.1, 60.0).survey(&[1.0], 8.0)));
    errors.is_within((0.08, 0.35), (0.3, 1.5), (0.07, 0.35), [0.8, 0.95]);
}
