//! Property tests of the universal scalability law and of the Kneedle algorithm, with arbitrary curves.

use brimful_estimate::{LoadPoint, find_knee, fit_usl};
use proptest::prelude::*;

fn law(alpha: f64, beta: f64, gamma: f64, loads: &[f64]) -> Vec<LoadPoint> {
    let x = |n: f64| gamma * n / (1.0 + alpha * (n - 1.0) + beta * n * (n - 1.0));
    loads.iter().map(|n| LoadPoint { load: *n, throughput: x(*n) }).collect()
}

const LOADS: [f64; 8] = [1.0, 3.0, 8.0, 20.0, 40.0, 80.0, 120.0, 200.0];

proptest! {
    #[test]
    fn a_planted_law_is_recovered(alpha in 0.0..0.5, beta in 1e-6..0.01, gamma in 1e-3..1e6) {
        let fit = fit_usl(&law(alpha, beta, gamma, &LOADS)).unwrap();
        prop_assert!((fit.alpha.value - alpha).abs() < 1e-6, "{:?}", fit);
        prop_assert!((fit.beta.value / beta - 1.0).abs() < 1e-3, "{:?}", fit);
        prop_assert!((fit.gamma.value / gamma - 1.0).abs() < 1e-6, "{:?}", fit);
        let peak = fit.peak.unwrap();
        let beside = |factor: f64| fit.throughput(peak.load.value * factor);
        prop_assert!(peak.throughput.value >= beside(0.9) && peak.throughput.value >= beside(1.1), "{:?}", fit);
    }

    #[test]
    fn the_unit_of_throughput_and_the_order_do_not_matter(
        noises in prop::collection::vec(0.9..1.1f64, 8), scale in 1e-3..1e3f64,
        order in Just((0..8usize).collect::<Vec<_>>()).prop_shuffle(),
    ) {
        let mut points = law(0.05, 0.0005, 40.0, &LOADS);
        points.iter_mut().zip(&noises).for_each(|(p, e)| p.throughput *= e);
        let scaled: Vec<LoadPoint> =
            order.iter().map(|i| LoadPoint { throughput: scale * points[*i].throughput, ..points[*i] }).collect();
        let (a, b) = (fit_usl(&points).unwrap(), fit_usl(&scaled).unwrap());
        prop_assert!((a.alpha.value - b.alpha.value).abs() < 1e-6, "{:?} {:?}", a, b);
        prop_assert!((a.beta.value - b.beta.value).abs() < 1e-8, "{:?} {:?}", a, b);
        prop_assert!((b.gamma.value / (scale * a.gamma.value) - 1.0).abs() < 1e-6, "{:?} {:?}", a, b);
        let (a, b) = (find_knee(&points, 1.0).unwrap(), find_knee(&scaled, 1.0).unwrap());
        prop_assert_eq!(a.map(|k| k.load), b.map(|k| k.load));
    }

    #[test]
    fn anything_gets_an_answer_or_an_error(
        points in prop::collection::vec((prop_oneof![any::<f64>(), 0.0..500.0], prop_oneof![any::<f64>(), 0.0..1e4]), 0..12),
        sensitivity in prop_oneof![any::<f64>(), 0.0..3.0],
    ) {
        let points: Vec<LoadPoint> = points.into_iter().map(|(load, throughput)| LoadPoint { load, throughput }).collect();
        if let Ok(fit) = fit_usl(&points) {
            prop_assert!(fit.alpha.value >= 0.0 && fit.beta.value >= 0.0 && fit.gamma.value > 0.0, "{:?}", fit);
        }
        if let Ok(Some(knee)) = find_knee(&points, sensitivity) {
            prop_assert!(points.iter().any(|p| p.load == knee.load));
        }
    }
}
