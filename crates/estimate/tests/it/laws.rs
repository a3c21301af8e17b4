//! Property tests of fits to arbitrary observations.

use brimful_estimate::{Background, Observation, ResponsePoint, fit_demands, fit_response};
use proptest::prelude::*;

proptest! {
    #[test]
    fn any_observations_get_an_answer_or_an_error(
        rows in prop::collection::vec((prop::collection::vec(invalid_number(), 0..5), invalid_number(), invalid_number()), 0..8),
        classes in 0..5usize,
        background in prop_oneof![Just(Background::Fitted), invalid_number().prop_map(Background::Known)],
    ) {
        let observation = |(x, busy, weight): &(Vec<f64>, f64, f64)| {
            let throughput = x.iter().copied().chain(std::iter::repeat(1.0)).take(classes).collect();
            Observation { throughput, busy: *busy, weight: *weight }
        };
        let _ = fit_demands(classes, &rows.iter().map(observation).collect::<Vec<_>>(), background);
        let response = |(x, response, weight): &(Vec<f64>, f64, f64)| {
            let figure = |i: usize| x.get(i).copied().unwrap_or(1.0);
            ResponsePoint { exponential_wait: figure(0), demand: figure(1), response: *response, weight: *weight }
        };
        let _ = fit_response(&rows.iter().map(response).collect::<Vec<_>>());
    }

    #[test]
    fn regression_recovers_planted_demands((rows, weights, demands, background) in planted(), fitted: bool) {
        let observations = observe(&rows, &weights, &demands, background);
        let mode = if fitted { Background::Fitted } else { Background::Known(background) };
        match fit_demands(demands.len(), &observations, mode) {
            Ok(fit) if fit.indistinguishable_classes.is_empty() => {
                // The condition number of the fit amplifies the rounding errors of the number of busy servers.
                let largest = observations.iter().map(|o| o.busy).fold(0.0, f64::max);
                let slowest = rows.iter().flatten().copied().fold(f64::INFINITY, f64::min);
                let tolerance = 1e-12 * fit.condition_number * largest / slowest.min(1.0);
                prop_assert!((fit.background.value - background).abs() <= tolerance, "{:?}", fit);
                for (d, truth) in fit.demands.iter().zip(&demands) {
                    prop_assert!((d.value - truth).abs() <= tolerance, "{:?} {:?}", fit, demands);
                }
            }
            Ok(fit) => prop_assert!(fit.demands.iter().all(|d| d.value >= 0.0)),
            Err(error) => prop_assert!(fitted, "{}", error),
        }
    }

    #[test]
    fn the_order_of_the_classes_does_not_matter(
        (mut rows, weights, demands, background) in planted(),
        copies in prop::collection::vec((0..4usize, 0..4usize, 0.1..10.0f64), 0..3),
        order in Just((0..4usize).collect::<Vec<_>>()).prop_shuffle(),
    ) {
        let classes = demands.len();
        for (of, to, factor) in copies {
            rows.iter_mut().for_each(|row| row[to % classes] = factor * row[of % classes]);
        }
        let order: Vec<usize> = order.into_iter().filter(|c| *c < classes).collect();
        let permute = |v: &Vec<f64>| order.iter().map(|c| v[*c]).collect::<Vec<f64>>();
        let permuted: Vec<Vec<f64>> = rows.iter().map(permute).collect();
        let mode = Background::Known(background);
        let one = fit_demands(classes, &observe(&rows, &weights, &demands, background), mode).unwrap();
        let other = observe(&permuted, &weights, &permute(&demands), background);
        let other = fit_demands(classes, &other, mode).unwrap();
        let mut back: Vec<Vec<usize>> =
            other.indistinguishable_classes.iter().map(|g| g.iter().map(|c| order[*c]).collect()).collect();
        back.iter_mut().for_each(|g: &mut Vec<usize>| g.sort_unstable());
        back.sort_unstable();
        prop_assert_eq!(&one.indistinguishable_classes, &back);
        let largest = one.demands.iter().map(|d| d.value).fold(0.0, f64::max);
        for (i, c) in order.iter().enumerate() {
            prop_assert!((other.demands[i].value - one.demands[*c].value).abs() <= 1e-8 * largest);
        }
    }
}

fn observe(rows: &[Vec<f64>], weights: &[f64], demands: &[f64], background: f64) -> Vec<Observation> {
    let busy = |x: &[f64]| background + x.iter().zip(demands).map(|(x, d)| x * d).sum::<f64>();
    let observation = |(x, w): (&Vec<f64>, &f64)| Observation { throughput: x.clone(), busy: busy(x), weight: *w };
    rows.iter().zip(weights).map(observation).collect()
}

/// Generates throughputs (observations × classes), weights, true demands and background work. There are more
/// observations than unknowns.
fn planted() -> impl Strategy<Value = (Vec<Vec<f64>>, Vec<f64>, Vec<f64>, f64)> {
    (1..5usize, 1..10usize).prop_flat_map(|(classes, spare)| {
        let levels = classes + 1 + spare;
        (
            prop::collection::vec(prop::collection::vec(1.0..1000.0, classes), levels),
            prop::collection::vec(0.1..10.0, levels),
            prop::collection::vec(prop_oneof![1 => Just(0.0), 4 => 1e-6..0.1f64], classes),
            0.0..0.5,
        )
    })
}

/// Generates numbers for property tests, of which some are invalid or extreme.
fn invalid_number() -> impl Strategy<Value = f64> {
    let odd = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, f64::MIN_POSITIVE, 5e-324, 0.0, -0.0, -1.0, 1.0];
    prop_oneof![2 => any::<f64>(), 2 => prop::sample::select(odd.to_vec()), 6 => 0.0..1e6f64]
}
