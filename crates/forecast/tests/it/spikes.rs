//! Tests forecasts of histories with spikes, with closed days, and without variation.

use crate::forecast::{HOUR_S, WEEK, daily, noise, options, says, series};
use brimful_forecast::{Forecast, ForecastPoint, forecast};

/// `n` daily rates of a growing site that starts at 1,000/s and has fewer requests at weekends. `share` is the standard
/// deviation of the noise, as a share of the rate.
fn site(n: usize, share: f64, seed: u64) -> Vec<f64> {
    let day = |(i, e): (usize, &f64)| {
        (1000.0 + 0.5 * i as f64) * [1.0, 1.05, 1.1, 1.05, 1.0, 0.8, 0.7][i % 7] * (1.0 + share * e)
    };
    noise(seed, n).iter().enumerate().map(day).collect()
}

/// The highest likely rate of the forecast, and the highest upper end of its 95 % intervals.
fn peaks(forecast: &Forecast) -> [f64; 2] {
    let highest = |of: fn(&ForecastPoint) -> f64| forecast.points.iter().map(of).fold(0.0, f64::max);
    [highest(|point| point.likely), highest(|point| point.upper95)]
}

fn assert_near(what: &str, found: &Forecast, expected: &Forecast) {
    let [found, expected] = [found, expected].map(peaks);
    assert!((found[0] / expected[0] - 1.0).abs() < 0.02, "{what}: a peak of {found:?} in place of {expected:?}");
    assert!((found[1] / expected[1] - 1.0).abs() < 0.05, "{what}: up to {found:?} in place of {expected:?}");
}

#[test]
fn a_spike_or_an_outage_leaves_the_forecast_as_it_was() {
    for (seed, share) in [(1, 0.0), (2, 0.03), (3, 0.05)] {
        let plain = site(140, share, seed);
        let expected = daily(&plain, 30);
        for days in [&[0][..], &[75], &[133], &[139], &[40, 47], &[100, 138]] {
            for factor in [0.0, 10.0, 50.0] {
                let mut rates = plain.clone();
                days.iter().for_each(|day| rates[*day] *= factor);
                let found = daily(&rates, 30);
                assert_near(&format!("{factor} times on {days:?}, noise {share}"), &found, &expected);
                assert!(says(&found, "Values far from those around them"), "{:?}", found.notes);
            }
        }
    }
}

#[test]
fn a_spike_among_hours_leaves_the_forecast_as_it_was() {
    let hour = |(i, e): (usize, &f64)| {
        let swing = 1.0 + 0.6 * (i as f64 / 24.0 * std::f64::consts::TAU).sin();
        100.0 * swing * if i / 24 % 7 > 4 { 0.7 } else { 1.0 } * (1.0 + 0.05 * e)
    };
    let plain: Vec<f64> = noise(4, 24 * 42).iter().enumerate().map(hour).collect();
    let ahead = |rates: &[f64]| forecast(&series(HOUR_S, rates), &options(168, HOUR_S)).unwrap();
    let expected = ahead(&plain);
    for hours in [500..501, 500..506, 1000..1001, 24 * 42 - 3..24 * 42 - 2, 3..4] {
        for factor in [0.0, 20.0] {
            let mut rates = plain.clone();
            rates[hours.clone()].iter_mut().for_each(|rate| *rate *= factor);
            assert_near(&format!("{factor} times in {hours:?}"), &ahead(&rates), &expected);
        }
    }
}

#[test]
fn a_sale_each_week_and_a_new_level_are_no_spikes() {
    let mut sales = site(140, 0.03, 5);
    sales.iter_mut().skip(3).step_by(7).for_each(|rate| *rate *= 4.0);
    let found = daily(&sales, 28);
    for (h, point) in found.points.iter().enumerate() {
        let expected = (1000.0 + 0.5 * (140 + h) as f64) * [4.0, 1.05, 1.1, 4.2, 1.0, 0.8, 0.7][(140 + h) % 7];
        let expected = if (140 + h) % 7 == 3 { expected } else { expected.min(1300.0) };
        assert!((140 + h) % 7 != 3 || (point.likely / expected - 1.0).abs() < 0.1, "{h}: {point:?}");
    }
    let mut level = site(140, 0.03, 6);
    level[100..].iter_mut().for_each(|rate| *rate *= 3.0);
    let found = daily(&level, 14);
    assert!(peaks(&found)[0] > 2500.0 && !says(&found, "Values far from"), "{:?}", found.notes);
}

#[test]
fn a_constant_is_covered_by_its_intervals() {
    for rate in [0.0, 0.1, 1234.567, 1e13] {
        for n in [40, 140] {
            for spike in [None, Some(n / 2)] {
                let mut rates = vec![rate; n];
                spike.into_iter().for_each(|at: usize| rates[at] *= 20.0);
                let backtest = daily(&rates, 30).backtest.unwrap();
                assert_eq!((backtest.coverage80, backtest.coverage95), (1.0, 1.0), "{rate} for {n}, {spike:?}");
            }
        }
    }
    let exact: Vec<f64> = (0..140).map(|i| 100.0 + 0.5 * f64::from(i) + WEEK[i as usize % 7]).collect();
    assert!(daily(&exact, 30).backtest.unwrap().coverage95 >= 0.9);
}

#[test]
fn closed_days_and_nights_are_forecast_as_closed() {
    for (growth, share) in [(0.0, 0.0), (0.005, 0.0), (0.005, 0.1), (-0.003, 0.05)] {
        let day = |(i, e): (usize, &f64)| match i % 7 {
            6 => 0.0,
            _ => 100.0 * (1.0 + growth * i as f64) * (1.0 + share * e),
        };
        let rates: Vec<f64> = noise(7, 140).iter().enumerate().map(day).collect();
        let found = daily(&rates, 28);
        assert!(says(&found, "taken for closed"), "{:?}", found.notes);
        for (h, point) in found.points.iter().enumerate() {
            let open = 100.0 * (1.0 + growth * (140 + h) as f64);
            match (140 + h) % 7 {
                6 => assert_eq!((point.lower95, point.likely, point.upper95), (0.0, 0.0, 0.0), "{h}"),
                _ => assert!((point.likely / open - 1.0).abs() < 0.05 + share, "{h}: {point:?}, {open}"),
            }
        }
        assert_eq!(found.seasons, [7]);
    }
    let hour = |(i, e): (usize, &f64)| match (i % 24, i / 24 % 7) {
        (0..6, _) | (_, 6) => 0.0,
        (hour, _) => 10.0 * hour as f64 * (1.0 + 0.1 * e),
    };
    let rates: Vec<f64> = noise(8, 24 * 35).iter().enumerate().map(hour).collect();
    let found = forecast(&series(HOUR_S, &rates), &options(168, HOUR_S)).unwrap();
    for (h, point) in found.points.iter().enumerate() {
        let is_closed = h % 24 < 6 || h / 24 % 7 == 6;
        assert_eq!(point.likely == 0.0, is_closed, "{h}: {point:?}");
        assert!(is_closed || (point.likely / (10.0 * (h % 24) as f64) - 1.0).abs() < 0.2, "{h}: {point:?}");
    }
}
