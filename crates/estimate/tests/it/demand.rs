//! Tests demands fitted to observations: how often confidence intervals contain the true demand, how often a load
//! dependence is reported by mistake, and properties that are valid for any input.

use brimful_estimate::demand::moving_blocks;
use brimful_estimate::{Background, Observation, Resampling, SizePoint, fit_demands, fit_load_dependence, fit_size};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

/// An approximately standard normal number: the sum of twelve uniform random numbers, minus 6.
fn noise(rng: &mut Pcg64) -> f64 {
    (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0
}

/// 200 observations of requests with a demand of 4 ms. The load and the background work vary slowly, independently of
/// each other.
fn drifting(seed: u64) -> Vec<Observation> {
    let mut rng = Pcg64::seed_from_u64(seed);
    let (mut load, mut disturbance) = (0.0, 0.0);
    let mut observe = || {
        load = 0.8 * load + 0.6 * noise(&mut rng);
        disturbance = 0.8 * disturbance + 0.6 * noise(&mut rng);
        let x = (50.0 + 10.0 * load).max(1.0);
        Observation { throughput: vec![x], busy: (0.1 + 0.004 * x + 0.01 * disturbance).max(0.0), weight: 1.0 }
    };
    (0..200).map(|_| observe()).collect()
}

#[test]
fn the_bootstrap_covers_where_students_t_does_not() {
    const TRIALS: u64 = 200;
    let (mut by_blocks, mut by_t) = (0, 0);
    for seed in 0..TRIALS {
        let seconds = drifting(seed);
        let fit = |of: &[Observation]| fit_demands(1, of, Background::Fitted);
        let demand = fit(&seconds).unwrap().demands[0];
        let bootstrap = moving_blocks(&[seconds], Resampling { draws: 200, seed }, |drawn| {
            let drawn: Vec<Observation> = drawn[0].iter().map(|o| (*o).clone()).collect();
            Some(vec![fit(&drawn).ok()?.demands[0].value])
        });
        let interval = bootstrap.unwrap().interval(0);
        by_blocks += u64::from((interval.low..=interval.high).contains(&0.004));
        by_t += u64::from((demand.value - 0.004).abs() <= demand.ci95_half_width.unwrap());
    }
    let (by_blocks, by_t) = (by_blocks as f64 / TRIALS as f64, by_t as f64 / TRIALS as f64);
    assert!(
        by_blocks > 0.80 && by_blocks > by_t + 0.05,
        "coverage {by_blocks} by blocks and {by_t} by Student's t; nominal 0.95"
    );
}

#[test]
fn load_dependence_is_rarely_found_where_there_is_none() {
    let alarm = |seed: u64| {
        let mut rng = Pcg64::seed_from_u64(seed);
        let level = |k: u32| {
            let x = 100.0 * f64::from(k);
            Observation { throughput: vec![x], busy: (0.001 * x + 0.01 * noise(&mut rng)).max(0.0), weight: 1.0 }
        };
        let levels: Vec<Observation> = (1..9).map(level).collect();
        fit_load_dependence(1, &levels, Background::Known(0.0), 1).unwrap().is_some()
    };
    let alarms = (0..400).filter(|seed| alarm(*seed)).count();
    assert!(alarms <= 28, "{alarms} false alarms in 400; 20 are expected");
}

fn near(a: f64, b: f64, within: f64) -> bool {
    (a - b).abs() <= within * b.abs()
}

/// Generates numbers for property tests, of which some are invalid or extreme.
pub fn invalid_number() -> impl Strategy<Value = f64> {
    let odd = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, f64::MIN_POSITIVE, 5e-324, 0.0, -0.0, -1.0, 1.0];
    prop_oneof![1 => prop::sample::select(odd.to_vec()), 4 => 0.0..1e6f64]
}

proptest! {
    #[test]
    fn units_do_not_matter(
        rows in prop::collection::vec(prop::collection::vec(1.0..100.0, 2), 6..12),
        noises in prop::collection::vec(0.0..0.05, 12),
        scale in 1e-3..1e3,
    ) {
        let observe = |factor: f64, slower: f64| -> Vec<Observation> {
            let of = |(x, e): (&Vec<f64>, &f64)| Observation {
                throughput: x.iter().map(|x| x * factor).collect(),
                busy: slower * (0.01 * x[0] + 0.002 * x[1] + e),
                weight: 1.0,
            };
            rows.iter().zip(&noises).map(of).collect()
        };
        let of = |factor, slower| fit_demands(2, &observe(factor, slower), Background::Known(0.0)).unwrap();
        let (plain, scaled) = (of(1.0, 1.0), of(1.0 / scale, scale));
        prop_assert_eq!(&plain.indistinguishable_classes, &scaled.indistinguishable_classes);
        for class in 0..2 {
            let (a, b) = (plain.demands[class], scaled.demands[class]);
            prop_assert!((b.value - scale * scale * a.value).abs() <= 1e-6 * scale * scale * 0.01);
            let (a, b) = (a.ci95_half_width.unwrap(), b.ci95_half_width.unwrap());
            prop_assert!(near(b, scale * scale * a, 1e-6));
        }
    }

    #[test]
    fn anything_gets_an_answer_or_an_error(
        values in prop::collection::vec((invalid_number(), invalid_number(), invalid_number()), 0..12),
        fitted: bool,
        servers in 0..3u32,
        draws in 0..5usize,
    ) {
        let background = if fitted { Background::Fitted } else { Background::Known(0.1) };
        let observe = |(x, busy, weight): &(f64, f64, f64)| Observation { throughput: vec![*x], busy: *busy, weight: *weight };
        let observations: Vec<Observation> = values.iter().map(observe).collect();
        if let Ok(Some(load)) = fit_load_dependence(1, &observations, background, servers) {
            let _ = (load.demand(f64::NAN, &[1.0]), load.demand(1.0, &[]), load.saturation(&[0.0]));
        }
        let sizes: Vec<SizePoint> = values.iter().map(|v| SizePoint { bytes: v.0, cpu_s: v.1 }).collect();
        if let Ok(fit) = fit_size(&sizes) {
            prop_assert!(fit.per_request_s.value >= 0.0 && fit.per_byte_s.value >= 0.0, "{:?}", fit);
        }
        let _ = moving_blocks(&[values], Resampling { draws, seed: 1 }, |drawn| Some(vec![drawn[0].len() as f64]));
    }
}
