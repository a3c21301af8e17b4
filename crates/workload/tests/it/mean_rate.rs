//! Tests that every process has its mean rate from the first instant. The mean number of calls in the first seconds,
//! over schedules with many seeds, must be within five standard errors of its expected value. The standard errors are
//! estimated from the variation between the seeds.

use crate::statistics::{arrivals, counts, mean, variance};
use brimful_core::Nanos;

/// Checks that the mean rate over the first `seconds` of `seeds` schedules is 100 calls per second. Also checks that
/// the test is precise enough to detect a deviation of `within` calls per second.
fn keeps(process: &str, seconds: u64, seeds: u64, within: f64) {
    let calls = |seed| counts(arrivals(process, 100.0, seed), Nanos::from_secs(seconds), 1)[0] / seconds as f64;
    let rates: Vec<f64> = (0..seeds).map(calls).collect();
    let error = 5.0 * (variance(&rates) / seeds as f64).sqrt();
    assert!((mean(&rates) - 100.0).abs() <= error, "{process}: {} ± {error}", mean(&rates));
    assert!(error <= within, "{process}: an error of ±{error} is too large for this test");
}

#[test]
fn of_even_processes_exactly() {
    keeps("constant", 10, 2, 0.0);
    keeps("onoff:4,10%,10s", 10, 2, 0.0);
    keeps("onoff:10,10%,2s", 10, 2, 0.0);
}

#[test]
fn of_random_bursts() {
    keeps("poisson", 10, 1000, 1.0);
    keeps("mmpp:4,10%,1s", 2, 5000, 6.0);
    keeps("mmpp:4,10%,1s", 30, 1000, 4.0);
}

#[test]
fn of_pareto_sources_at_once_and_later() {
    for h in ["0.6", "0.9"] {
        keeps(&format!("selfsimilar:{h},pareto"), 1, 4000, 3.0);
        keeps(&format!("selfsimilar:{h},pareto"), 30, 400, 5.0);
    }
}

#[test]
fn of_fractional_noise() {
    keeps("selfsimilar:0.7", 60, 40, 4.0);
}
