//! Forecasts of series whose future is known.

use brimful_model::{ForecastMethod, ForecastOptions, Series, Timestamp, forecast};
use rand::SeedableRng;
use rand_distr::{Distribution, Normal};
use rand_pcg::Pcg64;

const DAY: u32 = 86_400;
const WEEK: [f64; 7] = [0.0, 10.0, 12.0, 8.0, 5.0, -15.0, -20.0];

fn options(steps: usize, step_s: u32) -> ForecastOptions {
    let horizon_s = steps as f64 * f64::from(step_s);
    ForecastOptions { horizon_s, seasons: None, method: ForecastMethod::Auto, peak_to_mean: None }
}

#[test]
fn intervals_hold_what_they_promise() {
    let (n, ahead, mut within80, mut within95, mut total) = (120, 60, 0, 0, 0);
    for seed in 0..30 {
        let mut rng = Pcg64::seed_from_u64(seed);
        let noise = Normal::new(0.0, 5.0).unwrap();
        let rates: Vec<f64> =
            (0..n + ahead).map(|i| 100.0 + 0.3 * i as f64 + WEEK[i % 7] + noise.sample(&mut rng)).collect();
        let series = Series::new(Timestamp::from_unix(0), DAY, rates[..n].to_vec()).unwrap();
        let forecast = forecast(&series, &options(ahead, DAY)).unwrap();
        assert_eq!(forecast.seasons, [7]);
        for (point, rate) in forecast.points.iter().zip(&rates[n..]) {
            within80 += usize::from((point.lower80..=point.upper80).contains(rate));
            within95 += usize::from((point.lower95..=point.upper95).contains(rate));
            total += 1;
        }
    }
    let (share80, share95) = (within80 as f64 / total as f64, within95 as f64 / total as f64);
    assert!((0.75..0.87).contains(&share80), "{share80}");
    assert!((0.92..0.98).contains(&share95), "{share95}");
}
