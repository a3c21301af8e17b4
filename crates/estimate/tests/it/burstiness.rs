//! Property tests of the measures of burstiness with arbitrary counts of arrivals.

use brimful_estimate::burstiness::dispersion;
use brimful_estimate::{BurstLevel, burst_factors, fit_burst_demand};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * b.abs()
}

#[test]
fn the_dispersion_of_poisson_arrivals_is_1_as_often_as_its_interval_says() {
    let covered = (0..400).filter(|seed| {
        let mut rng = Pcg64::seed_from_u64(*seed);
        let mut counts = vec![0u64; 100];
        (0..2000).for_each(|_| counts[rng.random_range(0..100)] += 1);
        let ci = dispersion(&counts, 1).unwrap().ci95;
        (ci.low..=ci.high).contains(&1.0)
    });
    let covered = covered.count();
    assert!((368..=392).contains(&covered), "{covered} of 400 intervals cover the true value; 380 are expected");
}

proptest! {
    #[test]
    fn the_length_of_an_epoch_is_a_matter_of_units(counts in prop::collection::vec(0..50u64, 2..60), epoch in 1e-3..1e3) {
        prop_assume!(counts.iter().sum::<u64>() > 0);
        let (one, other) = (burst_factors(&counts, 1.0).unwrap(), burst_factors(&counts, epoch).unwrap());
        prop_assert!(near(other.rate * epoch, one.rate));
        prop_assert_eq!((one.b, one.dispersion, one.peak_to_mean), (other.b, other.dispersion, other.peak_to_mean));
        prop_assert!(one.a.is_none_or(|a| a > 1.0 && a <= one.peak_to_mean * (1.0 + 1e-12) && near(other.a.unwrap(), a)));
        prop_assert!((0.0..1.0).contains(&one.b));
        prop_assert!(one.a.is_none_or(|a| a * one.b <= 1.0 + 1e-12), "the share of arrivals in bursts is at most 1");
    }

    #[test]
    fn counts_that_come_twice_are_twice_as_dispersed(counts in prop::collection::vec(0..50u64, 2..60)) {
        prop_assume!(counts.iter().sum::<u64>() > 0);
        let twice: Vec<u64> = counts.iter().map(|c| 2 * c).collect();
        prop_assert!(near(dispersion(&twice, 1).unwrap().index, 2.0 * dispersion(&counts, 1).unwrap().index));
    }

    #[test]
    fn anything_gets_an_answer_or_an_error(
        counts in prop::collection::vec(prop_oneof![0..9u64, any::<u64>()], 0..200),
        epoch in prop_oneof![any::<f64>(), 0.1..10.0],
        levels in prop::collection::vec((prop_oneof![any::<f64>(), 0.0..1.0], prop_oneof![any::<f64>(), 0.0..1.0]), 0..5),
    ) {
        let _ = burst_factors(&counts, epoch);
        let levels: Vec<BurstLevel> = levels.into_iter().map(|(b, demand)| BurstLevel { b, demand }).collect();
        if let Ok(fit) = fit_burst_demand(&levels) {
            prop_assert!(fit.alpha.value >= 0.0 && fit.without_bursts.value >= 0.0);
        }
    }
}
